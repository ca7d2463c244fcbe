"""Keys in which NULL is a value like others: a truth value beside it says so, for a hash table has none."""

from __future__ import annotations

import decimal

import pyarrow as pa


def key_types(kind: pa.DataType) -> tuple[pa.DataType, pa.DataType]:
    """The types of :func:`key_parts` of a column of this type."""
    return pa.bool_(), kind.value_type if pa.types.is_dictionary(kind) else kind


def key_parts(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Which values of a column without a dictionary are NULL, and the column with one and the same value in place of NULL.

    >>> [part.to_pylist() for part in key_parts(pa.array([5, None]))]
    [[False, True], [5, 0]]
    """
    if not column.null_count:
        return pa.repeat(False, len(column)), column
    return column.is_null(), column.fill_null(some_value(column.type))


def some_value(kind: pa.DataType) -> pa.Scalar:
    """Some value of a type.

    >>> some_value(pa.date32()), some_value(pa.string())
    (<pyarrow.Date32Scalar: datetime.date(1970, 1, 1)>, <pyarrow.StringScalar: ''>)
    """
    types = pa.types
    if types.is_boolean(kind):
        return pa.scalar(False)
    if types.is_fixed_size_binary(kind):
        return pa.scalar(bytes(kind.byte_width), kind)
    if types.is_decimal(kind):  # few digits: an integer is cast only where 19 digits fit
        return pa.scalar(decimal.Decimal(0), kind)
    if types.is_temporal(kind) or types.is_integer(kind) or types.is_floating(kind):
        return pa.scalar(0, pa.int32() if kind.bit_width == 32 and types.is_temporal(kind) else pa.int64()).cast(kind)
    return pa.scalar("").cast(kind)
