"""Keys of events, numbered once for all patterns that are partitioned alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stretto.array_types import I32, I64
from stretto.columns.keys import KeyTable
from stretto.events import Schema
from stretto.frame import Section

#: While there are at most so many keys, each pattern remembers its own number of each; more are numbered pattern by pattern.
MOST = 1 << 14

UNKNOWN = -2

#: Where patterns run together, a slot and the number of a key are one word.
HALF = 32


class SharedKeys:
    """Numbers keys for a set of patterns.

    Parameters
    ----------
    names
        The partition attributes.
    schema
        The events' columns.
    """

    def __init__(self, names: Sequence[str], schema: Schema) -> None:
        self._names = list(names)
        self._table = KeyTable([schema.attributes[name] for name in names])
        self.columns: list[pa.Array] = []
        #: By event: the number of its key; −1: it has none.
        self.numbers: I64 = np.zeros(0, np.int64)

    def read(self, batch: pa.RecordBatch) -> bool:
        """Number the keys of some events; false when there are too many keys."""
        if len(self._table) > MOST:
            return False
        self.columns = [batch.column(name) for name in self._names]
        self.numbers = self._table.ids(self.columns)
        return len(self._table) <= MOST

    def __len__(self) -> int:
        return len(self._table)


class OwnNumbers:
    """What one pattern's key table says of shared numbers, as far as it was asked."""

    def __init__(self) -> None:
        self._shared: SharedKeys | None = None
        self._own: I32 = np.zeros(0, np.int32)

    def forget(self) -> None:
        """The pattern's key table was renumbered."""
        self._shared = None

    def of(self, keys: KeyTable, shared: SharedKeys, rows: I64) -> I64:
        """The numbers of the keys of some events in the pattern's key table; −1 for none."""
        if self._shared is not shared:
            self._shared, self._own = shared, np.zeros(0, np.int32)
        if self._own.size <= len(shared):
            wider = np.full(2 * len(shared) + 1, UNKNOWN, np.int32)
            if self._own.size:
                wider[: self._own.size - 1] = self._own[:-1]
            wider[-1] = -1  # what −1 looks up
            self._own = wider
        asked = shared.numbers[rows]
        found = self._own[asked].astype(np.int64)
        new = np.flatnonzero(found == UNKNOWN)
        if new.size:
            found[new] = keys.ids(shared.columns, rows[new])
            self._own[asked[new]] = found[new]
        return found


def renewed(pairs: KeyTable, numbers: KeyTable) -> KeyTable:
    """Forget the keys that no pair of a slot and a key names, where these are the most; gives the table of the pairs."""
    saved = Section()
    pairs.save(saved)
    words = saved.arrays["words"].view(np.int64)
    asked = np.zeros(len(numbers), np.bool_)
    key = words & ((1 << HALF) - 1)
    asked[key] = True
    if 2 * np.count_nonzero(asked) >= asked.size:
        return pairs
    renamed = numbers.keep(asked)
    fresh = KeyTable([pa.int64()])
    fresh.ids([pa.array((words >> HALF) << HALF | renamed[key])])
    return fresh
