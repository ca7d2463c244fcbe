"""Arrow columns as arrays of NumPy, without a copy where that can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.times import DAY

Bits = NDArray[np.bool_]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Make a read-only view. Numba compiles anew for writable arrays, so whatever is only read looks alike."""
    view = array.view()
    view.flags.writeable = False
    return view


def longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    """An array with ``size`` rows: a copy with zeros behind the old content, or the array itself where it has as many."""
    if array.shape[0] >= size:
        return array
    found = np.zeros((size, *array.shape[1:]), array.dtype)
    found[: array.shape[0]] = array
    return found


def roomy(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The same with room for more: where it has fewer rows than ``size``, at least twice as many as it had."""
    return array if array.shape[0] >= size else longer(array, max(size, 2 * array.shape[0]))


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Give a column in one piece: without a copy where it is in one."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def decoded(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Give a column without a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def bits_of(buffer: pa.Buffer, offset: int, length: int) -> Bits:
    """Read a bitmap as bool, from bit ``offset`` on."""
    data = np.frombuffer(buffer, np.uint8)[offset >> 3 : (offset + length + 7) >> 3]
    bits = np.unpackbits(data, bitorder="little")[offset & 7 : (offset & 7) + length]
    return bits.view(np.bool_)


def valid_of(array: pa.Array) -> Bits | None:
    """Tell where an array is not NULL; ``None``: everywhere."""
    if array.null_count == 0:
        return None
    buffer = array.buffers()[0]
    if buffer is None:
        return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    return bits_of(buffer, array.offset, len(array))


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """Read a column of numbers, times or booleans without a copy (booleans: with one); anything under NULL.

    Times come as ticks; a ``date64`` as days.
    """
    kind = array.type
    types = pa.types
    if types.is_null(kind):  # which has no values
        return np.zeros(len(array))
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        dtype = np.bool_ if types.is_boolean(kind) else _dtype(kind)
        return np.zeros(len(array), dtype)
    if types.is_boolean(kind):
        return bits_of(buffer, array.offset, len(array))
    values = np.frombuffer(buffer, _dtype(kind), array.offset + len(array))[array.offset :]
    return values // (1000 * DAY) if types.is_date64(kind) else values


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    wide = np.int32 if kind.bit_width == 32 else np.int64
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return np.dtype(kind.to_pandas_dtype() if is_number else wide)


def reals_of_decimals(column: pa.Array) -> pa.Array:
    """Decimals as the nearest doubles: by way of text, which Arrow rounds correctly; its own conversion does not always."""
    return column.cast(pa.string()).cast(pa.float64())
