"""What orders or windows a stream, as numbers that can be subtracted, and back as values of its type.

Columns of integers that play a role in a stream: what orders events of one time, and signs.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.errors import DataError, SnapshotError
from stretto.times import DAY, MOST


def integers(table: pa.RecordBatch, name: str, role: str, first_row: int) -> I64:
    """Read a column of integers, without a copy where they have 64 bits.

    Raises
    ------
    DataError
        The column has a NULL, a number of more than 64 bits with a sign, or is of another type.
    """
    column = table.column(name)
    if column.null_count:
        at = first_row + pc.index(pc.is_null(column), True).as_py()
        raise DataError(f"'{name}' ({role}) is NULL at row {at}")
    if not pa.types.is_integer(column.type):
        raise DataError(f"'{name}' ({role}) is {column.type}, not an integer")
    try:
        return np.asarray(column.cast(pa.int64()))
    except pa.ArrowInvalid as error:
        raise DataError(f"'{name}' ({role}) does not fit into 64 bits: {error}") from error


def signs(table: pa.RecordBatch, name: str, first_row: int) -> I64:
    """Read a column that says +1 or −1.

    Raises
    ------
    DataError
        A value is another, or the column no column of integers.
    """
    found = integers(table, name, "sign", first_row)
    wrong = (found != 1) & (found != -1)
    if wrong.any():
        at = int(wrong.argmax())
        raise DataError(f"'{name}' (sign) is {found[at]} at row {first_row + at}; it is +1 or −1")
    return found


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
