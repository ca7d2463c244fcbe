"""Predicates over whole columns, with NumPy and Arrow: exactly the meaning of :mod:`stretto.pattern.evaluate`.

A constant is first brought onto the *grid* of the column beside it: the integers for integers, the ticks of a timestamp, the
last digit of a decimal. ``x < 2.5`` over integers is ``x <= 2``, so that no comparison rounds, and none converts a column.

Integers are computed in 64 bits; where a result does not fit, an :class:`~stretto.predicates.overflow.IntegerOverflow`
says so.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.errors import DataError, suggestion
from stretto.pattern import predicate as p
from stretto.pattern.evaluate import COMPARE, compare, holds, value
from stretto.predicates.overflow import IntegerOverflow

__all__ = [
    "bits_of",
    "computed",
    "flipped",
    "frozen",
    "mask",
    "numbers_of",
    "on_grid",
    "pieces",
    "reals_of_decimals",
    "snapped",
    "snapped_real",
    "ticks_of",
    "valid_of",
]

Bits = NDArray[np.bool_]

#: Comparisons seen from the other side.
flipped = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_ARROW = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

_INT64 = (-(1 << 63), (1 << 63) - 1)

_WIDE = Context(prec=80)

_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def mask(predicate: p.Predicate, table: pa.RecordBatch | pa.Table) -> Bits:
    """Which rows satisfy a typed predicate: bool, one for each row.

    Raises
    ------
    DataError
        A column is missing, or integer arithmetic does not fit into 64 bits.

    >>> from stretto.pattern.predicate import Attribute, Comparison, Constant
    >>> mask(Comparison(">", Attribute("x"), Constant(1)), pa.table({"x": [1, 2, None]})).tolist()
    [False, True, False]
    """
    names = list(p.attributes(predicate))
    if not names:
        return np.full(table.num_rows, holds(predicate, {}), np.bool_)
    parts = [_mask(predicate, batch) for batch in pieces(table, names)]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def pieces(table: pa.RecordBatch | pa.Table, names: list[str]) -> Iterator[pa.RecordBatch]:
    """The named columns of a table in batches, in order, without a copy unless the chunks are tiny.

    Raises
    ------
    DataError
        A column is missing.
    """
    have = table.schema.names
    for name in names:
        if name not in have:
            hint = suggestion(name, have, kind="column")
            raise DataError(f"the events have no column '{name}'" + (f"; {hint}" if hint else ""))
    chosen = table.select(names)
    if isinstance(chosen, pa.RecordBatch):
        yield chosen
        return
    chunks = max(column.num_chunks for column in chosen.columns)
    if chunks > 8 and chosen.num_rows < 1024 * chunks:
        with contextlib.suppress(pa.ArrowInvalid):  # dictionaries that do not fit into one
            chosen = chosen.combine_chunks()
    yield from chosen.to_batches()


# -- columns as arrays ----------------------------------------------------------------------------------------


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view. Numba compiles anew for writable arrays, so whatever is only read looks alike."""
    view = array.view()
    view.flags.writeable = False
    return view


def bits_of(buffer: pa.Buffer, offset: int, length: int) -> Bits:
    """A bitmap as bool, from bit ``offset`` on."""
    data = np.frombuffer(buffer, np.uint8)[offset >> 3 : (offset + length + 7) >> 3]
    bits = np.unpackbits(data, bitorder="little")[offset & 7 : (offset & 7) + length]
    return bits.view(np.bool_)


def valid_of(array: pa.Array) -> Bits | None:
    """Where an array is not NULL; ``None``: everywhere."""
    if array.null_count == 0:
        return None
    buffer = array.buffers()[0]
    if buffer is None:
        return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    return bits_of(buffer, array.offset, len(array))


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """The values of a column of numbers, times or booleans without a copy (booleans: with one); anything under NULL.

    Times come as ticks; a ``date64`` as days.
    """
    kind = array.type
    buffer = array.buffers()[1]
    types = pa.types
    if buffer is None or not len(array):
        dtype = np.bool_ if types.is_boolean(kind) else _dtype(kind)
        return np.zeros(len(array), dtype)
    if types.is_boolean(kind):
        return bits_of(buffer, array.offset, len(array))
    values = np.frombuffer(buffer, _dtype(kind), array.offset + len(array))[array.offset :]
    return values // (1000 * _DAY) if types.is_date64(kind) else values


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    wide = np.int32 if kind.bit_width == 32 else np.int64
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return np.dtype(kind.to_pandas_dtype() if is_number else wide)


def ticks_of(kind: pa.DataType) -> Fraction:
    """Ticks of a timestamp or date in a second."""
    return Fraction(_PER_SECOND[kind.unit]) if pa.types.is_timestamp(kind) else Fraction(1, _DAY)


# -- constants on a column's grid -------------------------------------------------------------------------------


def on_grid(constant: Any, kind: pa.DataType) -> Fraction | float:
    """A constant in units of an integer, decimal or time column; a float when it is not finite."""
    if isinstance(constant, float) and not math.isfinite(constant):
        return constant
    if isinstance(constant, dt.date):
        return _microseconds(constant) * ticks_of(kind) / 10**6
    if pa.types.is_decimal(kind):
        return Fraction(constant) * Fraction(10) ** int(kind.scale)
    return Fraction(constant)


def _microseconds(time: dt.date) -> int:
    """Since 1970, in UTC where the time has a zone."""
    if not isinstance(time, dt.datetime):
        return (time - dt.date(1970, 1, 1)).days * _DAY * 10**6
    zero = dt.datetime(1970, 1, 1, tzinfo=time.tzinfo and dt.UTC)
    return (time - zero) // dt.timedelta(microseconds=1)


def snapped(op: str, constant: Fraction | float, low: int, high: int) -> tuple[str, int] | bool:
    """``x op constant`` for the integers x in [low, high] as a comparison with one of them, or its constant truth.

    >>> from fractions import Fraction
    >>> snapped("<", Fraction(5, 2), 0, 9), snapped("=", Fraction(5, 2), 0, 9), snapped("<", Fraction(10), 0, 9)
    (('<=', 2), False, True)
    """
    if constant != constant:
        return op == "!="
    if constant > high or constant < low:
        above = constant > high
        return op == "!=" or (op[0] == "<" if above else op[0] == ">")
    whole = math.floor(constant)
    if whole == constant:
        return op, whole
    match op:
        case "=" | "!=":
            return op == "!="
        case "<" | "<=":
            return "<=", whole
        case _:
            return ">", whole


def snapped_real(op: str, constant: int | float) -> tuple[str, float]:
    """``x op constant`` for floats x as a comparison with a float; an integer that is none lies between two."""
    try:
        near = float(constant)
    except OverflowError:
        near = math.inf if constant > 0 else -math.inf
    if near == constant or near != near:
        return op, near
    if op in ("=", "!="):
        return op, math.nan
    below = near if near < constant else math.nextafter(near, -math.inf)
    return ("<=", below) if op[0] == "<" else (">", below)


# -- predicates -------------------------------------------------------------------------------------------------


def _mask(predicate: p.Predicate, batch: pa.RecordBatch) -> Bits:
    match predicate:
        case p.Comparison(op, left, right):
            return _compared(op, _operand(left, batch), _operand(right, batch), batch.num_rows)
        case p.In(operand, values):
            return _among(_operand(operand, batch), [constant.value for constant in values], batch.num_rows)
        case p.Between(operand, low, high):
            own = _operand(operand, batch)
            above = _compared(">=", own, _operand(low, batch), batch.num_rows)
            return above & _compared("<=", own, _operand(high, batch), batch.num_rows)
        case p.Like(operand, pattern):
            own = _operand(operand, batch)
            if not isinstance(own, _Column):
                return np.full(batch.num_rows, holds(p.Like(p.Constant(own), pattern), {}), np.bool_)
            return _true(_like(own.data, pattern))
        case p.IsNull(operand):
            if isinstance(operand, p.Attribute):
                return np.asarray(batch.column(operand.name).is_null().to_numpy(zero_copy_only=False), np.bool_)
            own = _operand(operand, batch)
            if not isinstance(own, _Column):
                return np.full(batch.num_rows, own is None, np.bool_)
            return np.zeros(batch.num_rows, np.bool_) if own.valid is None else ~own.valid
        case p.And(parts):
            return np.asarray(np.logical_and.reduce([_mask(part, batch) for part in parts]), np.bool_)
        case p.Or(parts):
            return np.asarray(np.logical_or.reduce([_mask(part, batch) for part in parts]), np.bool_)
        case p.Not(part):
            return ~_mask(part, batch)


def _true(column: pa.Array) -> Bits:
    """A boolean array with NULL as false."""
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)


def _like(column: pa.Array, pattern: str) -> pa.Array:
    """LIKE by the cheapest of Arrow's searches that says the same."""
    inner = pattern.strip("%")
    if "_" not in pattern and "%" not in inner:
        match pattern.startswith("%"), pattern.endswith("%"):
            case False, False:
                return pc.equal(column, pa.scalar(pattern, column.type))
            case False, True:
                return pc.starts_with(column, inner)
            case True, False:
                return pc.ends_with(column, inner)
            case _:
                return pc.match_substring(column, inner)
    regex = "".join(
        ".*" if c == "%" else "." if c == "_" else "\\" + c if c in "\\.+*?()|[]{}^$" else c for c in pattern
    )
    return pc.match_substring_regex(column, rf"(?s)\A(?:{regex})\z")


# -- operands -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """A computed column.

    ``kind`` is ``int`` (data: int64 or uint64), ``float`` (float64), ``bool``, ``time`` (integer ticks), ``string``
    (Arrow, string or large_string), ``decimal`` (Arrow, or objects).
    """

    kind: str
    data: Any
    valid: Bits | None
    type: pa.DataType | None = None

    def where(self, truth: Any) -> Bits:
        """A NumPy truth as bool, false where the column is NULL."""
        found: Bits = np.asarray(truth, np.bool_)
        return found if self.valid is None else found & self.valid


def computed(operand: p.Operand, batch: pa.RecordBatch, kind: pa.DataType) -> pa.Array:
    """The values of a typed operand on each row, as an Arrow array; decimals that are computed become ``kind``, too.

    Raises
    ------
    DataError
        Integer arithmetic leaves 64 bits.
    """
    if isinstance(operand, p.Attribute):
        return batch.column(operand.name)
    found = _operand(operand, batch)
    if not isinstance(found, _Column):
        shown = float(found) if isinstance(found, Decimal) else found
        return pa.array([shown] * batch.num_rows, kind)
    if found.kind == "decimal":
        return pa.array([None if one is None else float(one) for one in found.data], kind)
    return pa.array(found.data, kind, mask=None if found.valid is None else ~found.valid)


def _operand(operand: p.Operand, batch: pa.RecordBatch) -> Any:
    """A :class:`_Column`, or the Python value of an operand without attributes."""
    if not p.attributes(operand):
        return value(operand, {})
    match operand:
        case p.Attribute(name):
            return _column(batch.column(name))
        case p.Negative(inner):
            return _negated(_operand(inner, batch), operand)
        case p.Arithmetic(op, left, right):
            first, second = _operand(left, batch), _operand(right, batch)
            if first is None or second is None:
                return None
            return _computed(op, first, second, operand)
    raise AssertionError(operand)  # registered functions are called in kernels


def _column(array: pa.Array) -> _Column:
    types = pa.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_string_view(kind):
        array = array.cast(pa.large_string())
    if types.is_string(array.type) or types.is_large_string(array.type):
        return _Column("string", array, valid_of(array))
    if types.is_decimal(kind):
        return _Column("decimal", array, valid_of(array), kind)
    values, valid = numbers_of(array), valid_of(array)
    if types.is_boolean(kind):
        return _Column("bool", values, valid)
    if types.is_floating(kind):
        return _Column("float", values.astype(np.float64, copy=False), valid)
    if types.is_integer(kind):
        return _Column("int", values if kind == pa.uint64() else values.astype(np.int64, copy=False), valid, kind)
    if types.is_timestamp(kind) or types.is_date(kind):
        return _Column("time", values.astype(np.int64, copy=False), valid, kind)
    raise DataError(f"values of type {kind} cannot be compared")


def _both(left: Bits | None, right: Bits | None) -> Bits | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def _valid(side: Any) -> Bits | None:
    return side.valid if isinstance(side, _Column) else None


def _is_kind(side: Any, kind: str, python: type) -> bool:
    return side.kind == kind if isinstance(side, _Column) else isinstance(side, python)


def _negated(own: Any, expression: p.Negative) -> Any:
    if own is None or own.kind == "float":
        return own if own is None else _Column("float", -own.data, own.valid)
    if own.kind == "decimal":
        return _Column("decimal", _rowwise(expression, {"x": own}, p.Negative(p.Attribute("x"))), own.valid)
    return _computed("-", 0, own, expression)


def _computed(op: str, left: Any, right: Any, expression: p.Operand) -> _Column:
    """``left op right`` for at least one column."""
    valid = _both(_valid(left), _valid(right))
    if op == "/" or _is_kind(left, "float", float) or _is_kind(right, "float", float):
        first, second = _as_real(left), _as_real(right)
        if op in "/%":
            valid = _both(valid, _nonzero(second, first))
        with np.errstate(all="ignore"):
            return _Column("float", _REAL[op](first, second), valid)
    if _is_kind(left, "decimal", Decimal) or _is_kind(right, "decimal", Decimal):
        node = p.Arithmetic(op, p.Attribute("left"), p.Attribute("right"))
        data = _rowwise(expression, {"left": left, "right": right}, node)
        return _Column("decimal", data, np.array([one is not None for one in data], np.bool_))
    first, second = (_as_int(side, expression) for side in (left, right))
    if op == "%":
        zero = np.equal(second, 0)
        data = np.fmod(first, np.where(zero, 1, second))
        return _Column("int", data, _both(valid, _nonzero(second, first)))
    with np.errstate(all="ignore"):
        data = _INT[op](first, second)
        wrong = _overflows(op, first, second, data)
    if valid is not None:
        wrong = wrong & valid
    if np.any(wrong):
        at = int(np.argmax(wrong))
        shown = (int(np.broadcast_to(side, data.shape)[at]) for side in (first, second))
        raise _overflow(expression, f" {op} ".join(map(str, shown)))
    return _Column("int", data, valid)


_REAL: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
}
_INT: dict[str, Callable[[Any, Any], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}


def _nonzero(divisor: Any, other: Any) -> Bits:
    shape = np.broadcast_shapes(np.shape(divisor), np.shape(other))
    found: Bits = np.broadcast_to(np.not_equal(divisor, 0), shape)
    return found


def _overflows(op: str, left: Any, right: Any, result: Any) -> Any:
    """Where 64 bits were too few: signs that cannot be, or a product that a float sees near or beyond the end."""
    if op == "+":
        return ((left ^ result) & (right ^ result)) < 0
    if op == "-":
        return ((left ^ right) & (left ^ result)) < 0
    near = np.abs(np.multiply(np.asarray(left, np.float64), np.asarray(right, np.float64))) >= 2.0**62
    for at in np.flatnonzero(near):
        exact = int(np.broadcast_to(left, near.shape)[at]) * int(np.broadcast_to(right, near.shape)[at])
        near[at] = not _INT64[0] <= exact <= _INT64[1]
    return near


def _overflow(expression: p.Operand, shown: object) -> IntegerOverflow:
    return IntegerOverflow(f"integer overflow in {expression}", f"{shown} is beyond 64 bits; compute with floats")


def _as_int(side: Any, expression: p.Operand) -> Any:
    """int64 of an integer column or constant."""
    if isinstance(side, _Column):
        data = side.data
        if data.dtype == np.uint64:
            beyond = data > np.uint64(_INT64[1])
            if np.any(beyond if side.valid is None else beyond & side.valid):
                raise _overflow(expression, int(data[beyond].max()))
            data = data.view(np.int64)
        return data
    if not _INT64[0] <= side <= _INT64[1]:
        raise _overflow(expression, side)
    return np.int64(side)


def _as_real(side: Any) -> Any:
    """float64, correctly rounded, of a column of numbers or a constant."""
    if not isinstance(side, _Column):
        return np.float64(value(p.Arithmetic("/", p.Constant(side), p.Constant(1)), {}))
    if side.kind != "decimal":
        return side.data.astype(np.float64, copy=False)
    if isinstance(side.data, np.ndarray):
        return np.array([0.0 if one is None else float(one) for one in side.data], np.float64)
    return np.asarray(reals_of_decimals(side.data).fill_null(0.0).to_numpy(zero_copy_only=False), np.float64)


def reals_of_decimals(column: pa.Array) -> pa.Array:
    """Decimals as the nearest doubles: by way of text, which Arrow rounds correctly; its own conversion does not always."""
    return column.cast(pa.string()).cast(pa.float64())


def _rowwise(expression: p.Operand, sides: dict[str, Any], node: p.Operand) -> NDArray[Any]:
    """Decimals, computed exactly row by row: their results fit no type of fixed width."""
    lists = {name: _objects(side) for name, side in sides.items()}
    rows = max(len(one) for one in lists.values() if one is not None)
    columns = [(name, one if one is not None else [sides[name]] * rows) for name, one in lists.items()]
    out = np.empty(rows, object)
    for row in range(rows):
        out[row] = value(node, {name: one[row] for name, one in columns})
    return out


def _objects(side: Any) -> Any:
    """A column of numbers as Python objects with ``None`` for NULL; ``None`` for a constant."""
    if not isinstance(side, _Column):
        return None
    if isinstance(side.data, pa.Array):
        return side.data.to_pylist()
    found = side.data.tolist()
    return found if side.valid is None else [x if ok else None for x, ok in zip(found, side.valid, strict=True)]


# -- comparisons ----------------------------------------------------------------------------------------------------


def _among(own: Any, constants: list[p.Value], rows: int) -> Bits:
    """IN: strings by one look-up, other values one comparison each."""
    if isinstance(own, _Column) and own.kind == "string" and len(constants) > 4:
        found = pc.is_in(own.data, value_set=pa.array([str(c) for c in constants], own.data.type))
        return own.where(found.to_numpy(zero_copy_only=False))
    out = np.zeros(rows, np.bool_)
    for constant in constants:
        out |= _compared("=", own, constant, rows)
    return out


def _compared(op: str, left: Any, right: Any, rows: int) -> Bits:
    if not isinstance(left, _Column):
        if not isinstance(right, _Column):
            return np.full(rows, compare(op, left, right), np.bool_)
        return _compared(flipped[op], right, left, rows)
    if right is None:
        return np.zeros(rows, np.bool_)
    if not isinstance(right, _Column):
        return _with_constant(op, left, right)
    valid = _both(left.valid, right.valid)
    truth = _with_column(op, left, right)
    return truth if valid is None else truth & valid


def _with_constant(op: str, own: _Column, constant: Any) -> Bits:
    if own.kind == "string":
        return _true(_ARROW[op](own.data, pa.scalar(constant, own.data.type)))
    if own.kind == "bool":
        return own.where(COMPARE[op](own.data, constant))
    if own.kind == "decimal" and isinstance(constant, float):
        own = _Column("float", _as_real(own), own.valid)
    if own.kind == "float":
        op, near = snapped_real(op, float(constant) if isinstance(constant, Decimal) else constant)
        return own.where(COMPARE[op](own.data, near))
    if own.kind == "decimal":
        return _decimal_with_constant(op, own, constant)
    if own.kind == "int" and isinstance(constant, Decimal):
        constant = Fraction(constant)
    bounds = (0, (1 << 64) - 1) if own.data.dtype == np.uint64 else _INT64
    found = snapped(op, on_grid(constant, own.type or pa.int64()), *bounds)
    if isinstance(found, bool):
        return own.where(np.full(own.data.shape, found))
    return own.where(COMPARE[found[0]](own.data, found[1]))


def _decimal_with_constant(op: str, own: _Column, constant: Any) -> Bits:
    if not isinstance(own.data, pa.Array):
        return np.array([compare(op, one, constant) for one in own.data], np.bool_)
    assert own.type is not None
    most = 10**own.type.precision - 1
    found = snapped(op, on_grid(constant, own.type), -most, most)
    if isinstance(found, bool):
        return own.where(np.full(len(own.data), found))
    exact = Decimal(found[1]).scaleb(-own.type.scale, _WIDE)
    return _true(_ARROW[found[0]](own.data, pa.scalar(exact, own.type)))


def _with_column(op: str, left: _Column, right: _Column) -> Bits:
    """Two columns; anything where one is NULL."""
    kinds = {left.kind, right.kind}
    if kinds == {"string"}:
        first, second = left.data, right.data
        if first.type != second.type:
            first, second = first.cast(pa.large_string()), second.cast(pa.large_string())
        return _true(_ARROW[op](first, second))
    if kinds == {"time"}:
        return _times(op, left, right)
    if "decimal" in kinds:
        if "float" in kinds:
            return np.asarray(COMPARE[op](_as_real(left), _as_real(right)), np.bool_)
        return _decimals(op, left, right)
    if kinds == {"int", "float"}:
        if left.kind == "float":
            return _int_with_float(flipped[op], right.data, left.data)
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


def _times(op: str, left: _Column, right: _Column) -> Bits:
    """Times of two units on the coarser grid: ``x < y / k`` for integers says ``x <= ⌊y / k⌋`` unless k divides y."""
    assert left.type is not None
    assert right.type is not None
    ratio = ticks_of(right.type) / ticks_of(left.type)
    if ratio < 1:
        return _times(flipped[op], right, left)
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


def _decimals(op: str, left: _Column, right: _Column) -> Bits:
    """Decimals and integers exactly: by Arrow on a common scale where the widest decimal holds both, else one by one."""
    try:
        scale = max(_scale(left), _scale(right))
        first, second = (_rescaled(side, scale) for side in (left, right))
    except (pa.ArrowInvalid, _NoScale):
        pairs = zip(_objects(left), _objects(right), strict=True)
        return np.array([compare(op, one, two) for one, two in pairs], np.bool_)
    return _true(_ARROW[op](first, second))


class _NoScale(Exception):
    """Decimals that no Arrow type holds."""


def _scale(side: _Column) -> int:
    if side.kind == "int":
        return 0
    if not isinstance(side.data, pa.Array):
        raise _NoScale
    return int(side.data.type.scale)


def _rescaled(side: _Column, scale: int) -> pa.Array:
    """A column as the widest decimal of a scale."""
    data = side.data
    if side.kind == "int":
        data = pa.array(data, mask=None if side.valid is None else ~side.valid).cast(pa.decimal256(20, 0))
    return data.cast(pa.decimal256(76, scale))
