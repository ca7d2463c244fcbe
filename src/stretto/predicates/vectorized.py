"""Predicates over whole columns, with Arrow and NumPy: the same meaning as :mod:`stretto.pattern.evaluate`."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.errors import DataError
from stretto.pattern import predicate as p

__all__ = ["mask"]

Batch: TypeAlias = "pa.RecordBatch | pa.Table"

_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

_ARITHMETIC = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}


def mask(predicate: p.Predicate, batch: Batch) -> NDArray[np.bool_]:
    """Which rows satisfy a typed predicate.

    Raises
    ------
    DataError
        Integer arithmetic overflows 64 bits.
    """
    try:
        return _mask(predicate, batch)
    except pa.ArrowInvalid as error:
        raise DataError(f"{predicate}: {error}") from error
    except pa.ArrowNotImplementedError as error:
        raise DataError(f"{predicate} cannot be computed: {error}") from error


def _mask(predicate: p.Predicate, batch: Batch) -> NDArray[np.bool_]:
    match predicate:
        case p.Comparison(op, left, right):
            return _compared(op, left, right, batch)
        case p.In(operand, values):
            found = np.zeros(batch.num_rows, np.bool_)
            for constant in values:
                found |= _compared("=", operand, constant, batch)
            return found
        case p.Between(operand, low, high):
            return _compared(">=", operand, low, batch) & _compared("<=", operand, high, batch)
        case p.Like(operand, pattern):
            body = "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
            regex = f"(?s)\\A(?:{body})\\z"
            return _truth(pc.match_substring_regex(_operand(operand, batch), regex), batch)
        case p.IsNull(operand):
            return _truth(pc.is_null(_operand(operand, batch)), batch)
        case p.And(parts):
            return np.asarray(np.logical_and.reduce([_mask(part, batch) for part in parts]))
        case p.Or(parts):
            return np.asarray(np.logical_or.reduce([_mask(part, batch) for part in parts]))
        case p.Not(part):
            return ~_mask(part, batch)


def _truth(column: Any, batch: Batch) -> NDArray[np.bool_]:
    """A boolean column with NULL as false."""
    if isinstance(column, pa.Scalar):
        return np.full(batch.num_rows, bool(column.as_py()), np.bool_)
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)


def _compared(op: str, left: p.Operand, right: p.Operand, batch: Batch) -> NDArray[np.bool_]:
    first, second = _alike(_operand(left, batch), _operand(right, batch))
    return _truth(_COMPARE[op](first, second), batch)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """A float beside another number makes both doubles, as in the scalar evaluation."""
    kinds = pa.types
    if kinds.is_floating(left.type) != kinds.is_floating(right.type):
        return pc.cast(left, pa.float64(), safe=False), pc.cast(right, pa.float64(), safe=False)
    return left, right


def _operand(operand: p.Operand, batch: Batch) -> Any:
    match operand:
        case p.Attribute(name):
            return _column(batch.column(name))
        case p.Constant(value):
            return pa.scalar(value)
        case p.Negative(inner):
            return pc.negate_checked(_operand(inner, batch))
        case p.Arithmetic(op, left, right):
            first, second = _alike(_operand(left, batch), _operand(right, batch))
            if op in _ARITHMETIC:
                return _ARITHMETIC[op](first, second)
            return _divided(op, first, second, batch)


def _column(column: Any) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_integer(kind) and kind != pa.int64():
        return column.cast(pa.int64())
    if kind in (pa.float16(), pa.float32()):
        return column.cast(pa.float64())
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    return column


def _divided(op: str, left: Any, right: Any, batch: Batch) -> Any:
    """``/`` and ``%``, NULL where the divisor is zero."""
    if op == "/":
        left, right = (pc.cast(side, pa.float64(), safe=False) for side in (left, right))
    real = pa.types.is_floating(left.type)
    kind = np.float64 if real else np.int64
    first, known_first = _numbers(left, batch, kind)
    second, known_second = _numbers(right, batch, kind)
    known = known_first & known_second & (second != 0)
    safe = np.where(known, second, kind(1))
    with np.errstate(all="ignore"):
        result = first / safe if op == "/" else np.fmod(first, safe)
    return pa.array(result, mask=~known)


def _numbers(side: Any, batch: Batch, kind: type) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A column or scalar as a NumPy array, and where it is not NULL."""
    if isinstance(side, pa.Scalar):
        value = side.as_py()
        return np.full(batch.num_rows, 0 if value is None else value, kind), np.full(batch.num_rows, value is not None)
    known = np.asarray(pc.is_valid(side).to_numpy(zero_copy_only=False), np.bool_)
    return np.asarray(pc.fill_null(side, 0).to_numpy(zero_copy_only=False), kind), known
