"""The values of operands in conditions over whole columns: a :class:`Column`, or a Python value of what reads no column.

Comparisons over whole columns: exact between all kinds of numbers, decimals and times; false where one side is NULL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import INT64
from stretto.columns.arrays import Bits, numbers_of, reals_of_decimals, valid_of
from stretto.columns.grid import on_grid, snapped, snapped_real, ticks_of
from stretto.errors import DataError
from stretto.query import predicate as p
from stretto.query.evaluate import COMPARE, compare, like_pattern, like_search, value
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


_ARROW = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

_WIDE = Context(prec=80)


def truths(op: str, left: Any, right: Any, rows: int) -> Bits:
    """``left op right``, false where one is NULL."""
    if not isinstance(left, Column):
        if not isinstance(right, Column):
            return np.full(rows, compare(op, left, right), np.bool_)
        return truths(p.FLIPPED[op], right, left, rows)
    if right is None:
        return np.zeros(rows, np.bool_)
    if not isinstance(right, Column):
        return _with_constant(op, left, right)
    valid = where_both(left.valid, right.valid)
    truth = _with_column(op, left, right)
    return truth if valid is None else truth & valid


def is_among(own: Any, constants: list[p.Value], rows: int) -> Bits:
    """IN: strings by one look-up, other values one comparison each."""
    if isinstance(own, Column) and own.kind == "string" and len(constants) > 4:
        found = pc.is_in(own.data, value_set=pa.array([str(c) for c in constants], own.data.type))
        return own.where(found.to_numpy(zero_copy_only=False))
    out = np.zeros(rows, np.bool_)
    for constant in constants:
        out |= truths("=", own, constant, rows)
    return out


def _with_constant(op: str, own: Column, constant: Any) -> Bits:
    if own.kind == "string":
        return known_true(_ARROW[op](own.data, pa.scalar(constant, own.data.type)))
    if own.kind == "bool":
        return own.where(COMPARE[op](own.data, constant))
    if own.kind == "decimal" and isinstance(constant, float):
        own = Column("float", as_real(own), own.valid)
    if own.kind == "float":
        op, near = snapped_real(op, float(constant) if isinstance(constant, Decimal) else constant)
        return own.where(COMPARE[op](own.data, near))
    if own.kind == "decimal":
        return _decimal_with_constant(op, own, constant)
    if own.kind == "int" and isinstance(constant, Decimal):
        constant = Fraction(constant)
    bounds = (0, (1 << 64) - 1) if own.data.dtype == np.uint64 else (INT64[0], INT64[-1])
    found = snapped(op, on_grid(constant, own.type or pa.int64()), *bounds)
    if isinstance(found, bool):
        return own.where(np.full(own.data.shape, found))
    return own.where(COMPARE[found[0]](own.data, found[1]))


def _decimal_with_constant(op: str, own: Column, constant: Any) -> Bits:
    if not isinstance(own.data, pa.Array):
        return np.array([compare(op, one, constant) for one in own.data], np.bool_)
    assert own.type is not None
    most = 10**own.type.precision - 1
    found = snapped(op, on_grid(constant, own.type), -most, most)
    if isinstance(found, bool):
        return own.where(np.full(len(own.data), found))
    exact = Decimal(found[1]).scaleb(-own.type.scale, _WIDE)
    return known_true(_ARROW[found[0]](own.data, pa.scalar(exact, own.type)))


def _with_column(op: str, left: Column, right: Column) -> Bits:
    """Two columns; anything where one is NULL."""
    kinds = {left.kind, right.kind}
    if kinds == {"string"}:
        first, second = left.data, right.data
        if first.type != second.type:
            first, second = first.cast(pa.large_string()), second.cast(pa.large_string())
        return known_true(_ARROW[op](first, second))
    if kinds == {"time"}:
        return _times(op, left, right)
    if "decimal" in kinds:
        if "float" in kinds:
            return np.asarray(COMPARE[op](as_real(left), as_real(right)), np.bool_)
        return _decimals(op, left, right)
    if kinds == {"int", "float"}:
        if left.kind == "float":
            return _int_with_float(p.FLIPPED[op], right.data, left.data)
        return _int_with_float(op, left.data, right.data)
    return np.asarray(COMPARE[op](left.data, right.data), np.bool_)


def _int_with_float(op: str, whole: NDArray[Any], real: NDArray[np.float64]) -> Bits:
    """Exactly: ``n < f`` says ``n < ⌈f⌉``, and so on; beyond the integers' range the float's sign decides."""
    low, high = (0.0, 2.0**64) if whole.dtype == np.uint64 else (-(2.0**63), 2.0**63)
    with np.errstate(invalid="ignore"):
        near = np.floor(real)
        inside = (near >= low) & (near < high)
        near = np.where(inside, near, 0.0).astype(whole.dtype)
        integral = np.floor(real) == real
    if op in ("=", "!="):
        equal: Bits = inside & integral & (whole == near)
        return equal if op == "=" else ~equal
    match op:
        case "<=":
            truth = whole <= near
        case "<":
            truth = np.where(integral, whole < near, whole <= near)
        case ">":
            truth = whole > near
        case _:
            truth = np.where(integral, whole >= near, whole > near)
    return np.asarray(np.where(inside, truth, real > 0 if op[0] == "<" else real < 0), np.bool_)


def _times(op: str, left: Column, right: Column) -> Bits:
    """Times of two units on the coarser grid: ``x < y / k`` for integers says ``x <= ⌊y / k⌋`` unless k divides y."""
    assert left.type is not None
    assert right.type is not None
    ratio = ticks_of(right.type) / ticks_of(left.type)
    if ratio < 1:
        return _times(p.FLIPPED[op], right, left)
    if ratio == 1:
        return np.asarray(COMPARE[op](left.data, right.data), np.bool_)
    whole, rest = np.divmod(right.data, int(ratio))
    even = rest == 0
    match op:
        case "=":
            return np.asarray(even & (left.data == whole), np.bool_)
        case "!=":
            return np.asarray(~even | (left.data != whole), np.bool_)
        case "<" | ">=":
            below = np.where(even, left.data < whole, left.data <= whole)
            return np.asarray(below if op == "<" else ~below, np.bool_)
        case _:
            return np.asarray(COMPARE[op](left.data, whole), np.bool_)


def _decimals(op: str, left: Column, right: Column) -> Bits:
    """Decimals and integers exactly: by Arrow on a common scale where the widest decimal holds both, else one by one."""
    try:
        scale = max(_scale(left), _scale(right))
        first, second = (_rescaled(side, scale) for side in (left, right))
    except (pa.ArrowInvalid, _NoScale):
        pairs = zip(as_objects(left), as_objects(right), strict=True)
        return np.array([compare(op, one, two) for one, two in pairs], np.bool_)
    return known_true(_ARROW[op](first, second))


class _NoScale(Exception):
    """Decimals that no Arrow type holds."""


def _scale(side: Column) -> int:
    if side.kind == "int":
        return 0
    if not isinstance(side.data, pa.Array):
        raise _NoScale
    return int(side.data.type.scale)


def _rescaled(side: Column, scale: int) -> pa.Array:
    """A column as the widest decimal of a scale."""
    data = side.data
    if side.kind == "int":
        data = pa.array(data, mask=None if side.valid is None else ~side.valid).cast(pa.decimal256(20, 0))
    return data.cast(pa.decimal256(76, scale))


def is_like(column: pa.Array, pattern: str) -> pa.Array:
    """LIKE by the cheapest of Arrow's searches that says the same."""
    search, text = like_search(pattern)
    if search == "like":
        return pc.match_substring_regex(column, rf"(?s)\A(?:{like_pattern(pattern).pattern})\z")
    return _SEARCHES[search](column, pa.scalar(text, column.type) if search == "equal" else text)


_SEARCHES = {"equal": pc.equal, "starts": pc.starts_with, "ends": pc.ends_with, "contains": pc.match_substring}
