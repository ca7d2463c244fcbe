"""The values of operands in conditions over whole columns: a :class:`Column`, or a Python value of what reads no column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import INT64
from stretto.columns.arrays import Bits, numbers_of, reals_of_decimals, valid_of
from stretto.errors import DataError
from stretto.query import predicate as p
from stretto.query.evaluate import value
from stretto.times import as_times


@dataclass(frozen=True)
class Column:
    """A computed column.

    ``kind`` is ``int`` (data: int64 or uint64), ``float`` (float64), ``bool``, ``time`` (integer ticks), ``string``
    (Arrow, string or large_string), ``decimal`` (Arrow, or objects).
    """

    kind: str
    data: Any
    valid: Bits | None
    type: pa.DataType | None = None
    #: Where it was computed of an integer beyond 64 bits, and NULL is nothing that it depends on; ``None``: nowhere.
    beyond: Bits | None = None

    def at(self, rows: NDArray[Any]) -> Column:
        """The values of some rows, in their order."""
        data = self.data[rows] if isinstance(self.data, np.ndarray) else self.data.take(pa.array(rows))
        valid, beyond = (None if one is None else one[rows] for one in (self.valid, self.beyond))
        return replace(self, data=data, valid=valid, beyond=beyond)

    def where(self, truth: Any) -> Bits:
        """A NumPy truth as bool, false where the column is NULL."""
        found: Bits = np.asarray(truth, np.bool_)
        return found if self.valid is None else found & self.valid


def column_of(array: pa.Array) -> Column:
    """Take in an Arrow array; an error where its values cannot be compared."""
    types = pa.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_string_view(kind):
        array = array.cast(pa.large_string())
    if types.is_string(array.type) or types.is_large_string(array.type):
        return Column("string", array, valid_of(array))
    if types.is_decimal(kind):
        return Column("decimal", array, valid_of(array), kind)
    values, valid = numbers_of(array), valid_of(array)
    if types.is_boolean(kind):
        return Column("bool", values, valid)
    if types.is_floating(kind):
        return Column("float", values.astype(np.float64, copy=False), valid)
    if types.is_integer(kind):
        return Column("int", values if kind == pa.uint64() else values.astype(np.int64, copy=False), valid, kind)
    if types.is_timestamp(kind) or types.is_date(kind):
        return Column("time", values.astype(np.int64, copy=False), valid, kind)
    raise DataError(f"values of type {kind} cannot be compared")


def where_both(left: Bits | None, right: Bits | None) -> Bits | None:
    """Where both of two hold; ``None``: everywhere."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


def where_either(left: Bits | None, right: Bits | None) -> Bits | None:
    """Where one of two holds; ``None``: nowhere."""
    if left is None or right is None:
        return right if left is None else left
    return left | right


def where_known(beyond: Bits | None, valid: Bits | None) -> Bits | None:
    """What is beyond 64 bits and not NULL; ``None``: nothing."""
    if beyond is None or valid is None:
        return beyond
    return beyond & valid


def valid_where(side: Any) -> Bits | None:
    """Where an operand is not NULL; ``None``: everywhere."""
    return side.valid if isinstance(side, Column) else None


def beyond_where(side: Any) -> Bits | None:
    """Where an operand is beyond 64 bits; ``None``: nowhere."""
    return side.beyond if isinstance(side, Column) else None


def is_kind(side: Any, kind: str, python: type) -> bool:
    """Whether an operand is a column of a kind, or a value of a Python type."""
    return side.kind == kind if isinstance(side, Column) else isinstance(side, python)


def as_int(side: Any) -> tuple[Any, Bits | None]:
    """int64 of an integer column or constant, and where it does not fit."""
    if not isinstance(side, Column):
        fits = INT64[0] <= side <= INT64[-1]
        return np.int64(side if fits else 0), None if fits else np.ones(1, np.bool_)
    data = side.data
    if data.dtype != np.uint64:
        return data, None
    beyond = data > np.uint64(INT64[-1])
    return data.view(np.int64), beyond if beyond.any() else None


def as_real(side: Any) -> Any:
    """float64, correctly rounded, of a column of numbers or a constant."""
    if not isinstance(side, Column):
        return np.float64(value(p.Arithmetic("/", p.Constant(side), p.Constant(1)), {}))
    if side.kind != "decimal":
        return side.data.astype(np.float64, copy=False)
    if isinstance(side.data, np.ndarray):
        return np.array([0.0 if one is None else float(one) for one in side.data], np.float64)
    return np.asarray(reals_of_decimals(side.data).fill_null(0.0).to_numpy(zero_copy_only=False), np.float64)


def as_objects(side: Any) -> Any:
    """A column of numbers as Python objects with ``None`` for NULL; ``None`` for a constant."""
    if not isinstance(side, Column):
        return None
    if isinstance(side.data, pa.Array):
        return side.data.to_pylist()
    found = side.data.tolist()
    return found if side.valid is None else [x if ok else None for x, ok in zip(found, side.valid, strict=True)]


def as_array(own: Column) -> pa.Array:
    """A column as an Arrow array."""
    if isinstance(own.data, pa.Array):
        return own.data
    null = None if own.valid is None else ~own.valid
    if own.kind == "time":
        return as_times(own.data, own.type, null)
    if own.kind == "decimal":
        return pa.array([None if one is None else float(one) for one in own.data], pa.float64())
    return pa.array(own.data, mask=null)


def known_true(column: pa.Array) -> Bits:
    """A boolean array with NULL as false."""
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)
