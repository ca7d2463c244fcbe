"""Windows as bounds on keys: what is the earliest start that an event can still complete?

The kernels know neither times nor windows, only the least key in the window of each event. For a window on an attribute
that does not decrease, that is a moving pointer.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.columns.arrays import frozen
from stretto.errors import DataError, SnapshotError
from stretto.frame import Section
from stretto.times import DAY, MOST

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


def values_of(column: pa.ChunkedArray | pa.Array, name: str, first_row: int) -> NDArray[np.generic]:
    """A time or window attribute as int64 (in its own unit; dates in seconds or milliseconds) or float64.

    Raises
    ------
    DataError
        A NULL or NaN, or a value that is too great to subtract; named with its row.
    """
    if column.null_count:
        row = int(np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False))[0])
        raise DataError(f"'{name}' orders or windows the stream and is NULL at row {first_row + row}")
    kind = column.type
    if pa.types.is_floating(kind):
        real = np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False))
        odd = ~np.isfinite(real)
        if odd.any():
            at = int(odd.argmax())
            what = "NaN" if np.isnan(real[at]) else "infinite"
            raise DataError(f"'{name}' orders or windows the stream and is {what} at row {first_row + at}")
        return real
    values = _integers(column, kind, name)
    if values.size and (int(values.max()) > MOST or int(values.min()) < -MOST):
        row = int((np.abs(values.astype(np.float64)) > MOST).argmax())
        raise DataError(f"'{name}' is {values[row]} at row {first_row + row}: beyond ±2^62, where differences overflow")
    return values


def measured_type(kind: pa.DataType) -> pa.DataType:
    """The type of what :func:`values_of` gives of a column, and of sums with the size of a window: :func:`as_measured`."""
    if pa.types.is_date32(kind):
        return pa.timestamp("s")
    if pa.types.is_date64(kind):
        return pa.timestamp("ms")
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale) if kind.bit_width <= 128 else pa.decimal256(76, kind.scale)
    if pa.types.is_floating(kind):
        return pa.float64()
    return kind if pa.types.is_timestamp(kind) else pa.int64()


def as_measured(values: NDArray[np.generic], missing: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Numbers of :func:`values_of` as values of such a type; NULL where ``missing``.

    Raises
    ------
    SnapshotError
        They came from a snapshot, and are numbers of another kind.
    """
    if values.size and pa.types.is_floating(kind) != (values.dtype.kind == "f"):
        raise SnapshotError(
            f"the matcher goes on from a damaged snapshot: it has {values.dtype} where times are {kind}"
        )
    if pa.types.is_decimal(kind):
        known = [
            None if no else Decimal(one).scaleb(-kind.scale) for one, no in zip(values.tolist(), missing, strict=True)
        ]
        return pa.array(known, kind)
    return pa.array(values, mask=missing).cast(kind)


def _integers(column: pa.ChunkedArray | pa.Array, kind: pa.DataType, name: str) -> NDArray[np.int64]:
    if pa.types.is_date32(kind):
        return np.asarray(column.cast(pa.int32()).to_numpy(zero_copy_only=False), np.int64) * DAY
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(kind):
        return _unscaled(column, name)
    try:
        return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid as error:
        raise DataError(f"'{name}' does not fit into 64 bits: {error}") from error


def _unscaled(column: pa.ChunkedArray | pa.Array, name: str) -> NDArray[np.int64]:
    """Decimals as integers at their scale, read from their bytes."""
    parts = []
    if column.type.bit_width < 128:
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    width = column.type.bit_width // 64
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        words = np.frombuffer(chunk.buffers()[1], np.int64)[width * chunk.offset : width * (chunk.offset + len(chunk))]
        low = words[::width]
        for more in range(1, width):
            if (words[more::width] != low >> 63).any():
                raise DataError(f"'{name}' does not fit into 64 bits at its scale")
        parts.append(low)
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
