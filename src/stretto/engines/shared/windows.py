"""Windows as bounds on keys: what is the earliest start that an event can still complete?

The kernels know neither times nor windows, only the least key in the window of each event. For a window on an attribute
that does not decrease, that is a moving pointer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.columns.arrays import frozen
from stretto.frame import Section

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


@jit
def _admit(
    values: I64, rows: I64, first: int, size: int, times: I64, positions: I64, begin: int, end: int, low: I64
) -> int:
    """Append the values and positions of some rows; low[k] = the first position whose time is not before that of row k − size.

    O(rows + what is passed over). Gives where the window of the last row begins.
    """
    at = begin
    for k in range(rows.size):
        value = values[rows[k]]
        times[end + k] = value
        positions[end + k] = first + rows[k]
        while times[at] < value - size:
            at += 1
        low[k] = positions[at]
    return at


@jit
def _admit_real(
    values: F64, rows: I64, first: int, size: float, times: F64, positions: I64, begin: int, end: int, low: I64
) -> int:
    """Do what :func:`_admit` does, for real times: ``end − start ≤ size`` as floats subtract."""
    at = begin
    for k in range(rows.size):
        value = values[rows[k]]
        times[end + k] = value
        positions[end + k] = first + rows[k]
        while value - times[at] > size:
            at += 1
        low[k] = positions[at]
    return at


@jit
def ranks(part: I64, counter: I64, rank: I64) -> None:
    """The rank of each event in its partition, counted on from ``counter``; partition −1 has none. O(1) an event."""
    for i in range(part.size):
        p = part[i]
        if p >= 0:
            rank[i] = counter[p]
            counter[p] += 1


class Measured:
    """The visited events of a window on an attribute: their values and positions, oldest first, in a sliding buffer."""

    def __init__(self, size: int | float) -> None:
        self.size = size
        self.real = isinstance(size, float)
        self.values: NDArray[np.int64] | NDArray[np.float64] = np.empty(0, np.float64 if self.real else np.int64)
        self.positions: I64 = np.empty(0, np.int64)
        self.begin = 0
        self.end = 0

    def bounds(self, values: NDArray[np.generic], rows: I64, first: int) -> I64:
        """Admit the events at some rows of a batch that begins at position ``first``: the least position in the window of each."""
        low = np.empty(rows.size, np.int64)
        self._make_room(rows.size)
        admit = _admit_real if self.real else _admit
        self.begin = admit(
            frozen(values), rows, first, self.size, self.values, self.positions, self.begin, self.end, low
        )
        self.end += rows.size
        return low

    def _make_room(self, count: int) -> None:
        if self.end + count <= self.positions.size:
            return
        live = self.end - self.begin
        # At least half of the new buffer is free, so that moving costs O(1) an event on average.
        room = max(2 * (live + count), 64)
        fresh_values = np.empty(room, self.values.dtype)
        fresh_positions = np.empty(room, np.int64)
        fresh_values[:live] = self.values[self.begin : self.end]
        fresh_positions[:live] = self.positions[self.begin : self.end]
        self.values, self.positions, self.begin, self.end = fresh_values, fresh_positions, 0, live

    def forget(self, value: int | float) -> None:
        """Drop what is out of the window of an event with ``value``."""
        live = self.values[self.begin : self.end]
        if self.real:
            gone = int(np.count_nonzero(value - live > self.size))
        else:
            gone = int(np.searchsorted(live, value - self.size, side="left"))
        self.begin += gone

    def save(self, section: Section) -> None:
        """Write the values and positions."""
        live = slice(self.begin, self.end)
        section.arrays |= {"values": self.values[live].copy(), "positions": self.positions[live].copy()}

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        self.values = section.arrays["values"].astype(self.values.dtype)
        self.positions = section.numbers("positions", size=self.values.size)
        self.begin, self.end = 0, self.positions.size
