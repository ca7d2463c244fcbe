"""Numbers for the strings of events and registers, and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.columns.keys import KeyTable
from stretto.engines.shared.values import strings_of
from stretto.frame import Section


class Names:
    """A word for each string, which it keeps as long as it is known.

    >>> names = Names()
    >>> words, known = names.of(pa.array(["a", None, "b", "a"]))
    >>> words[known].tolist(), names.strings(np.array([1, 0])).to_pylist()
    ([0, 1, 0], ['b', 'a'])
    """

    def __init__(self) -> None:
        self.table = KeyTable([pa.string()])
        self.pieces: list[pa.Array] = []
        #: By number in the table: its word. Ascending.
        self.words = np.empty(0, np.int64)
        self.next = 0
        #: Words that are never forgotten, as code holds them.
        self.constants: set[int] = set()

    def __len__(self) -> int:
        return len(self.table)

    def of(self, column: pa.Array) -> tuple[I64, NDArray[np.bool_]]:
        """The word of each string (0 for NULL), and which are not NULL."""
        plain = strings_of(column)
        numbers = self.table.ids([plain], np.arange(len(plain)))
        known = numbers >= 0
        fresh = numbers >= self.words.size
        if fresh.any():
            _, first = np.unique(numbers[fresh], return_index=True)
            self.pieces.append(plain.take(pa.array(np.flatnonzero(fresh)[first])))
            more = np.arange(self.next, self.next + first.size)
            self.words = np.concatenate((self.words, more))
            self.next += first.size
        if not self.words.size:
            return np.zeros(len(plain), np.int64), known
        return np.where(known, self.words[numbers], 0), known

    def word(self, text: str) -> int:
        """The word of a constant."""
        found = int(self.of(pa.array([text]))[0][0])
        self.constants.add(found)
        return found

    def strings(self, words: I64) -> pa.Array:
        """The strings of words."""
        return self._all().take(pa.array(np.searchsorted(self.words, words)))

    def _all(self) -> pa.Array:
        """The strings by number."""
        if len(self.pieces) != 1:
            self.pieces = [pa.concat_arrays(self.pieces) if self.pieces else pa.array([], pa.string())]
        return self.pieces[0]

    def keep(self, alive: I64) -> None:
        """Forget all words but these and the constants."""
        kept = np.isin(self.words, np.concatenate((alive, np.array(sorted(self.constants), np.int64))))
        self.pieces = [self._all().filter(pa.array(kept))]
        self.table.keep(kept)
        self.words = self.words[kept]

    def save(self, section: Section) -> None:
        """Write the words and their strings."""
        section.arrays["words"] = self.words
        section.sub("tables").put_table("strings", pa.record_batch({"string": self.strings(self.words)}))

    def load(self, section: Section) -> tuple[I64, I64]:
        """Take in strings that :meth:`save` wrote; their words there, ascending, and here."""
        strings = section.sub("tables").table("strings").column("string").combine_chunks()
        return section.arrays["words"].astype(np.int64), self.of(strings)[0]

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return int(self.table.nbytes + self.words.nbytes + sum(piece.nbytes for piece in self.pieces))
