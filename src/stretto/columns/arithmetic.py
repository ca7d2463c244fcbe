"""Arithmetic over whole columns.

Integers are computed in 64 bits; a column says where a result does not fit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.array_types import INT64
from stretto.columns.arrays import Bits
from stretto.columns.operands import (
    Column,
    as_int,
    as_objects,
    as_real,
    beyond_where,
    is_kind,
    valid_where,
    where_both,
    where_either,
    where_known,
)
from stretto.query import predicate as p
from stretto.query.evaluate import value

_REAL: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
}

_INT: dict[str, Callable[[Any, Any], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}

_WIDE_ARITHMETIC = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def negated(own: Any) -> Any:
    """``-own``."""
    if own is None or own.kind == "float":
        return own if own is None else Column("float", -own.data, own.valid, beyond=own.beyond)
    if own.kind == "decimal":
        return _exact("-", Decimal(0), own, own.valid, own.beyond)
    return calculated("-", 0, own)


def calculated(op: str, left: Any, right: Any) -> Column:
    """``left op right`` for at least one column."""
    valid, beyond = (
        where_both(valid_where(left), valid_where(right)),
        where_either(beyond_where(left), beyond_where(right)),
    )
    if op == "/" or is_kind(left, "float", float) or is_kind(right, "float", float):
        first, second = as_real(left), as_real(right)
        if op in "/%":
            valid = where_both(valid, _nonzero(second, first, beyond_where(right)))
        with np.errstate(all="ignore"):
            return Column("float", _REAL[op](first, second), valid, beyond=where_known(beyond, valid))
    if is_kind(left, "decimal", Decimal) or is_kind(right, "decimal", Decimal):
        return _exact(op, left, right, valid, where_known(beyond, valid))
    (first, before), (second, after) = as_int(left), as_int(right)
    beyond = where_either(beyond, where_either(before, after))
    if beyond is not None:
        beyond = np.broadcast_to(beyond, np.broadcast_shapes(np.shape(first), np.shape(second)))
    if op in ("%", "div"):
        divisor = np.where(np.equal(second, 0), 1, second)
        data = np.fmod(first, divisor)
        if op == "div":
            with np.errstate(over="ignore"):  # the least integer by -1
                data = (first - data) // divisor
            wrong = np.broadcast_to((first == INT64[0]) & (divisor == -1), data.shape)
            beyond = where_either(beyond, wrong) if wrong.any() else beyond
        valid = where_both(valid, _nonzero(second, first, where_either(beyond_where(right), after)))
        return Column("int", data, valid, beyond=where_known(beyond, valid))
    with np.errstate(all="ignore"):
        data = _INT[op](first, second)
        wrong = np.broadcast_to(_overflows(op, first, second, data), data.shape)
    if wrong.any():
        beyond = where_either(beyond, np.asarray(wrong, np.bool_))
    return Column("int", data, valid, beyond=where_known(beyond, valid))


def _nonzero(divisor: Any, other: Any, beyond: Bits | None) -> Bits:
    """Where a divisor is not zero, as far as it is known."""
    shape = np.broadcast_shapes(np.shape(divisor), np.shape(other))
    found: Bits = np.broadcast_to(np.not_equal(divisor, 0), shape)
    return found if beyond is None else found | beyond


def _overflows(op: str, left: Any, right: Any, result: Any) -> Any:
    """Where 64 bits were too few: signs that cannot be, or a product that a float sees near or beyond the end."""
    if op == "+":
        return ((left ^ result) & (right ^ result)) < 0
    if op == "-":
        return ((left ^ right) & (left ^ result)) < 0
    near = np.abs(np.multiply(np.asarray(left, np.float64), np.asarray(right, np.float64))) >= 2.0**62
    for at in np.flatnonzero(near):
        exact = int(np.broadcast_to(left, near.shape)[at]) * int(np.broadcast_to(right, near.shape)[at])
        near[at] = not INT64[0] <= exact <= INT64[-1]
    return near


def _exact(op: str, left: Any, right: Any, valid: Bits | None, beyond: Bits | None) -> Column:
    """Decimals, computed exactly: by Arrow where its widest decimal holds every result, else row by row."""
    with contextlib.suppress(pa.ArrowInvalid):  # more than 76 digits
        sides = [_wide(side) for side in (left, right)]
        if all(side is not None for side in sides):
            found = _WIDE_ARITHMETIC[op](*sides)
            return Column("decimal", found, valid, found.type, beyond)
    lists = [as_objects(side) for side in (left, right)]
    rows = max(len(one) for one in lists if one is not None)
    firsts, seconds = ([side] * rows if one is None else one for one, side in zip(lists, (left, right), strict=True))
    out = np.empty(rows, object)
    for row, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        out[row] = value(p.Arithmetic(op, p.Constant(first), p.Constant(second)), {})
    return Column("decimal", out, valid, None, beyond)


def _wide(side: Any) -> Any:
    """A side as decimals of 256 bits, with the digits that it may have; ``None``: it is kept as objects."""
    if isinstance(side, Column):
        if side.kind == "int":
            whole = pa.array(side.data, mask=None if side.valid is None else ~side.valid)
            return whole.cast(pa.decimal256(20, 0))
        if not isinstance(side.data, pa.Array):
            return None
        kind = side.data.type
        return side.data.cast(pa.decimal256(kind.precision, kind.scale))
    found = pa.scalar(Decimal(side))
    return None if found.type.scale < 0 else found.cast(pa.decimal256(found.type.precision, found.type.scale))
