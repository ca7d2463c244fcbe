"""What stands between the rows of a batch: changes of arcs and punctuations; and the pieces in which both are carried out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.engines.afa import structure as s
from stretto.engines.afa.changes import merge

#: Rows that one call of the kernel reads.
CHUNK = 1 << 16

#: A change that is carried out between two calls of the kernel, in place of ADD_ARC and RETIRE_ARC.
ALONE = -1


class Changes(NamedTuple):
    """Changes between the rows of a batch."""

    at: I64  #: how many rows come before; ascending
    what: I64  #: ADD_ARC, RETIRE_ARC, PUNCTUATE or ALONE
    which: I64  #: number of the arc; of a punctuation the time; of one that is ALONE its own number

    @classmethod
    def none(cls) -> Changes:
        return cls(*(np.zeros(0, np.int64) for _ in cls._fields))

    @classmethod
    def of(cls, what: int, which: int) -> Changes:
        """One, before all rows."""
        return cls(np.zeros(1, np.int64), np.array([what]), np.array([which]))

    @classmethod
    def of_arcs(cls, at: I64, adds: NDArray[np.bool_], alone: NDArray[np.bool_], which: I64) -> Changes:
        """Additions and retirements of arcs; those ``alone`` are carried out by the caller, who is told their places here."""
        what = np.where(alone, ALONE, np.where(adds, s.ADD_ARC, s.RETIRE_ARC))
        return cls(at, what, np.where(alone, np.arange(at.size), which))

    @classmethod
    def punctuations(cls, at: I64, times: I64) -> Changes:
        """Punctuations of the events."""
        return cls(at, np.full(at.size, s.PUNCTUATE), times)

    def and_then(self, punctuations: Changes) -> Changes:
        """Both, by row; at one row, arcs change before the punctuation."""
        if not self.at.size:
            return punctuations
        both = Changes(*(np.empty(self.at.size + punctuations.at.size, np.int64) for _ in self))
        self.at.flags.writeable = False  # as it is where it is a column of Arrow, so that the kernel compiles once
        merge(self.at, self.what, self.which, punctuations.at, punctuations.which, both.at, both.what, both.which)
        return both

    def moved(self, punctuations: Changes, places: I64) -> Changes:
        """Both, among rows that are let through: ``places`` says after which operation each goes."""
        rows = punctuations.at
        at = np.concatenate((np.searchsorted(places, 2 * self.at), np.searchsorted(places, 2 * rows, side="right")))
        order = np.argsort(np.concatenate((2 * self.at, 2 * rows + 1)), kind="stable")
        what, which = (np.concatenate(pair) for pair in zip(self[1:], punctuations[1:], strict=True))
        return Changes(at[order], what[order], which[order])

    def arcs_among(self, count: int) -> int:
        """How many of the first ``count`` are of arcs."""
        return int(np.count_nonzero(self.what[:count] != s.PUNCTUATE))


class Piece(NamedTuple):
    """Rows that one call of the kernel takes, with the changes that it carries out among them."""

    first: int  #: the first row
    batch: pa.RecordBatch
    changes: Changes
    alone: int | None  #: the change behind them that the kernel does not carry out


def pieces(table: pa.Table, changes: Changes, sign: str | None) -> Iterator[Piece]:
    """Cut a table; ``sign``: the column that says which rows are retractions."""
    first = done = 0
    for at in [*np.flatnonzero(changes.what == ALONE).tolist(), None]:
        last = table.num_rows if at is None else int(changes.at[at])
        for begin, batch in _batches(table.slice(first, last - first), sign):
            here = first + begin
            end = here + batch.num_rows
            ends = end == last
            until = int(np.searchsorted(changes.at[:at], end, side="left")) if not ends else changes.at[:at].size
            own = Changes(changes.at[done:until] - here, changes.what[done:until], changes.which[done:until])
            done = until
            yield Piece(here, batch, own, int(changes.which[at]) if ends and at is not None else None)
        first, done = last, done if at is None else at + 1


def _batches(table: pa.Table, sign: str | None) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of bounded size with their first rows; they part no retraction from the insertion behind it."""
    whole = table.combine_chunks()
    signs = whole.column(sign) if sign else None
    begin, rows = 0, whole.num_rows
    while begin < rows or (begin == 0 and not rows):
        end = min(begin + CHUNK, rows)
        if signs is not None and end < rows and signs[end].as_py() == 1 and signs[end - 1].as_py() == -1:
            end += 1
        found = whole.slice(begin, end - begin).to_batches()
        yield begin, found[0] if found else _no_rows(whole.schema)
        if not rows:
            return
        begin = end


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
