"""Columns of integers that play a role in a stream: what orders events of one time, and signs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.array_types import I64
from stretto.errors import DataError


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
