"""Cells as numbers: tables from the cell of an event (the codes of its columns in a mixed radix) to what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.columns.coding import Coder

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U64 = NDArray[np.uint64]


DENSE = 1 << 20  #: cells up to this many are looked up in an array, more in a hash table
MOST_CELLS = 1 << 62  #: cells of one stage, numbered in 64 bits
MOST_SEEN = 1 << 20  #: a table of cells with more entries than this is emptied; it is a cache
PIECE = 1 << 14  #: rows are classified in pieces of this many, so that cells stay in the cache

_LOW32 = np.uint64(0xFFFFFFFF)
_SHIFT32 = np.uint64(32)
_MIX = np.uint64(0x9E3779B1)  # below 2^32: products of 32 bits never wrap, compiled or not
_MIX2 = np.uint64(0x85EBCA77)


@jit
def _look_up(cell: I64, table: I32, out: I32) -> Any:
    """``out[i] = table[cell[i]]``; whether an entry is missing (−1). O(1) a row; writes ``out``."""
    least = np.int32(0)
    for i in range(out.size):
        found = table[cell[i]]
        out[i] = found
        least = min(least, found)
    return least < 0


@inlined
def _hash(key: Any, wrap: int) -> Any:
    mixed = ((key & _LOW32) * _MIX) ^ (((key >> _SHIFT32) ^ (key << _SHIFT32 >> np.uint64(37))) * _MIX2)
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & _LOW32) & wrap


@jit
def _look_up_hashed(cell: U64, keys: U64, values: I32, out: I32) -> bool:
    """As :func:`_look_up` in a hash table: ``values`` is −1 where a slot is empty. Writes ``out``."""
    wrap = keys.size - 1
    missing = False
    for i in range(out.size):
        key = cell[i]
        at = _hash(key, wrap)
        while values[at] >= 0 and keys[at] != key:
            at = (at + 1) & wrap
        out[i] = values[at]
        missing |= values[at] < 0
    return missing


@jit
def _insert(cells: U64, numbers: I32, keys: U64, values: I32) -> None:
    """Put cells that are not there into a hash table with room. O(1) a cell; writes ``keys`` and ``values``."""
    wrap = keys.size - 1
    for i in range(cells.size):
        at = _hash(cells[i], wrap)
        while values[at] >= 0:
            at = (at + 1) & wrap
        keys[at] = cells[i]
        values[at] = numbers[i]


class Hashed:
    """A number for each of some 64-bit keys, in a hash table."""

    def __init__(self) -> None:
        self.count = 0
        self._keys = np.zeros(1 << 10, np.uint64)
        self._values = np.full(self._keys.size, -1, np.int32)

    def look_up(self, keys: U64, out: I32) -> bool:
        """Look up the numbers of keys; whether some are not known (−1)."""
        return bool(_look_up_hashed(keys, self._keys, self._values, out))

    def learn(self, keys: U64, numbers: I32) -> None:
        """Add distinct keys that are not known."""
        self.count += keys.size
        if 2 * self.count > self._keys.size:
            old, filled = self._keys, self._values >= 0
            kept, values = old[filled], self._values[filled]
            self._keys = np.zeros(1 << (4 * self.count).bit_length(), np.uint64)
            self._values = np.full(self._keys.size, -1, np.int32)
            _insert(kept, values, self._keys, self._values)
        _insert(keys, numbers, self._keys, self._values)


class Stage:
    """Some columns, their cells, and a number for each cell that occurred.

    One stage does unless the cells of all columns are too many for 64 bits: then the numbers of one stage are the first
    digit of the next.
    """

    def __init__(self, coders: Sequence[Coder], follows: bool) -> None:
        self.coders = list(coders)
        self.strides: list[int] = []
        # The digit of the stage before: its numbers stay below MOST_SEEN + PIECE.
        stride = 2 * MOST_SEEN if follows else 1
        self.first = stride
        for coder in self.coders:
            self.strides.append(stride)
            stride *= coder.radix
        self.cells = stride
        self.clear()

    def clear(self) -> None:
        """Forget all cells."""
        self.seen = np.empty(0, np.uint64)  # cells in order of their numbers, where numbers are given here
        self.count = 0
        self._table = np.full(self.cells if self.cells <= DENSE else 0, -1, np.int32)
        self._hashed = Hashed()

    def look_up(self, cell: I64, out: I32) -> bool:
        """Look up the numbers of cells; whether some are not known (−1)."""
        if self._table.size:
            return bool(_look_up(cell, self._table, out))
        return self._hashed.look_up(cell.view(np.uint64), out)

    def learn(self, cells: U64, numbers: I32) -> None:
        """Add cells that are not known."""
        self.count += cells.size
        if self._table.size:
            self._table[cells] = numbers
        else:
            self._hashed.learn(cells, numbers)

    def number(self, cells: U64) -> I32:
        """Give cells new numbers, for the next stage."""
        numbers = np.arange(self.seen.size, self.seen.size + cells.size, dtype=np.int32)
        self.seen = np.concatenate((self.seen, cells))
        return numbers

    def codes(self, cells: U64) -> list[I64]:
        """Find the code of every coder in cells."""
        parts = zip(self.coders, self.strides, strict=True)
        return [(cells // np.uint64(stride) % np.uint64(coder.radix)).astype(np.int64) for coder, stride in parts]


def stages_for(coders: Sequence[Coder]) -> list[Stage]:
    """Put coders in as few stages as the sizes allow."""
    stages: list[Stage] = []
    group: list[Coder] = []
    size = 1
    for coder in coders:
        if group and size * coder.radix > MOST_CELLS:
            stages.append(Stage(group, bool(stages)))
            group, size = [], 2 * MOST_SEEN
        group.append(coder)
        size *= coder.radix
    return [*stages, Stage(group, bool(stages))]
