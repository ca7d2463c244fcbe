"""Predicates over whole columns, with NumPy and Arrow: exactly the meaning of :mod:`stretto.query.evaluate`.

A constant is first brought onto the *grid* of the column beside it: the integers for integers, the ticks of a timestamp, the
last digit of a decimal. ``x < 2.5`` over integers is ``x <= 2``, so that no comparison rounds, and none converts a column.

Integers are computed in 64 bits. Where a result does not fit, the condition is neither true nor false there
(:func:`~stretto.query.evaluate.truth`); whoever asks of such a row is told by an
:class:`~stretto.columns.overflow.IntegerOverflow`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.columns import eql_functions, sql_functions
from stretto.columns.overflow import IntegerOverflow
from stretto.errors import DataError, hinted
from stretto.query import predicate as p
from stretto.query.eql_functions import EQL
from stretto.query.evaluate import COMPARE, Beyond, bounded, compare, holds, like_pattern, like_search, truth, value
from stretto.times import DAY, PER_SECOND, as_times

Bits = NDArray[np.bool_]

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


class Judged(NamedTuple):
    """Where a condition holds, and where integers of 64 bits do not tell (``None``: nowhere); never both."""

    true: Bits
    unknown: Bits | None

    def __invert__(self) -> Judged:
        return Judged(~self.true if self.unknown is None else ~(self.true | self.unknown), self.unknown)

    def __and__(self, other: Judged) -> Judged:
        true = self.true & other.true
        if self.unknown is None and other.unknown is None:
            return Judged(true, None)
        possible = _either(self.true, self.unknown) & _either(other.true, other.unknown)
        return Judged(true, possible & ~true)

    def __or__(self, other: Judged) -> Judged:
        true = self.true | other.true
        unknown = _or(self.unknown, other.unknown)
        return Judged(true, None if unknown is None else unknown & ~true)


def _either(true: Bits, unknown: Bits | None) -> Bits:
    return true if unknown is None else true | unknown


def _or(left: Bits | None, right: Bits | None) -> Bits | None:
    """Where one of two holds; ``None``: nowhere."""
    if left is None or right is None:
        return right if left is None else left
    return left | right


def mask(predicate: p.Predicate, table: pa.RecordBatch | pa.Table) -> Bits:
    """Find which rows satisfy a typed predicate: bool, one for each row.

    Raises
    ------
    DataError
        A column is missing, or integer arithmetic does not fit into 64 bits and the predicate depends on it.

    >>> from stretto.query.predicate import Attribute, Comparison, Constant
    >>> mask(Comparison(">", Attribute("x"), Constant(1)), pa.table({"x": [1, 2, None]})).tolist()
    [False, True, False]
    """
    found, unknown = judged(predicate, table)
    if unknown is not None and unknown.any():
        raise overflow_at(predicate, table, int(unknown.argmax()))
    return found


def judged(predicate: p.Predicate, table: pa.RecordBatch | pa.Table) -> Judged:
    """Judge rows as :func:`mask` does, and find in which integers of 64 bits do not tell.

    >>> from stretto.query.predicate import Arithmetic, Attribute, Comparison, Constant
    >>> square = Arithmetic("*", Attribute("x"), Attribute("x"))
    >>> [one.tolist() for one in judged(Comparison(">", square, Constant(3)), pa.table({"x": [1, 2, 2**40]}))]
    [[False, True, False], [False, False, True]]
    """
    names = list(p.attributes(predicate))
    if not names:
        return Judged(np.full(table.num_rows, holds(predicate, {}), np.bool_), None)
    parts = [cast(Judged, _Rows(batch).visit(predicate)) for batch in pieces(table, names)]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Judged(np.zeros(0, np.bool_), None)
    unknown = None
    if any(part.unknown is not None for part in parts):
        unknown = np.concatenate(
            [np.zeros(part.true.size, np.bool_) if part.unknown is None else part.unknown for part in parts]
        )
    return Judged(np.concatenate([part.true for part in parts]), unknown)


def overflow_at(asked: p.Predicate | p.Operand, table: pa.RecordBatch | pa.Table, row: int) -> IntegerOverflow:
    """Make the error about a row in which 64 bits do not suffice."""
    event = table.select(list(p.attributes(asked))).slice(row, 1).to_pylist()[0]
    found = bounded(asked, event) if isinstance(asked, p.Operand) else truth(asked, event)
    assert isinstance(found, Beyond)
    why = f"{found.shown} is beyond 64 bits; compute with floats"
    return IntegerOverflow(f"integer overflow in {found.expression}", why, row)


def pieces(table: pa.RecordBatch | pa.Table, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Give the named columns of a table in batches, in order, without a copy unless the chunks are tiny.

    Raises
    ------
    DataError
        A column is missing.
    """
    have = table.schema.names
    for name in names:
        if name not in have:
            raise DataError(hinted(f"the events have no column '{name}'", name, have, kind="column"))
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
    """Make a read-only view. Numba compiles anew for writable arrays, so whatever is only read looks alike."""
    view = array.view()
    view.flags.writeable = False
    return view


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
    buffer = array.buffers()[1]
    types = pa.types
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


def ticks_of(kind: pa.DataType) -> Fraction:
    """Ticks of a timestamp or date in a second."""
    return Fraction(PER_SECOND[kind.unit]) if pa.types.is_timestamp(kind) else Fraction(1, DAY)


# -- constants on a column's grid -------------------------------------------------------------------------------


def on_grid(constant: Any, kind: pa.DataType) -> Fraction | float:
    """Put a constant in units of an integer, decimal or time column; a float when it is not finite."""
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
        return (time - dt.date(1970, 1, 1)).days * DAY * 10**6
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


class _Rows(p.Visitor):
    """The values and truths of the rows of a batch: of an operand a :class:`_Column`, or a Python value if it has no attributes."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.rows = batch.num_rows

    def comparison(self, node: p.Comparison) -> Judged:
        return _compared(node.op, self.operand(node.left), self.operand(node.right), self.rows)

    def among(self, node: p.In) -> Judged:
        own = self.operand(node.operand)
        return _known(own, _among(own, [constant.value for constant in node.values], self.rows))

    def like(self, node: p.Like) -> Judged:
        own = self.operand(node.operand)
        if not isinstance(own, _Column):
            return self._everywhere(holds(node, {}))
        return Judged(_true(_like(own.data, node.pattern)), None)

    def rlike(self, node: p.Rlike) -> Judged:
        own = self.operand(node.operand)
        if not isinstance(own, _Column):
            return self._everywhere(holds(node, {}))
        return Judged(_true(pc.match_substring_regex(own.data, node.pattern)), None)

    def member(self, node: p.Member) -> Judged:
        """Each value of each list beside what is sought in its row."""
        assert isinstance(node.values, p.Attribute)
        lists = self.batch.column(node.values.name)
        if pa.types.is_null(lists.type.value_type):
            return self._everywhere(False)
        rows = np.asarray(pc.list_parent_indices(lists))
        own = self.operand(node.operand)
        found = _compared(
            "=", own.at(rows) if isinstance(own, _Column) else own, _column(pc.list_flatten(lists)), rows.size
        )
        true, unknown = self._everywhere(False).true, None
        true[rows[found.true]] = True
        if found.unknown is not None:
            unknown = np.zeros(self.rows, np.bool_)
            unknown[rows[found.unknown]] = True
            unknown &= ~true
        return Judged(true, unknown)

    def is_null(self, node: p.IsNull) -> Judged:
        if isinstance(node.operand, p.Attribute):
            nulls = self.batch.column(node.operand.name).is_null().to_numpy(zero_copy_only=False)
            return Judged(np.asarray(nulls, np.bool_), None)
        own = self.operand(node.operand)
        if not isinstance(own, _Column):
            return self._everywhere(own is None)
        return _known(own, np.zeros(self.rows, np.bool_) if own.valid is None else ~own.valid)

    def all_of(self, node: p.And) -> Any:
        return reduce(and_, map(self.visit, node.parts)) if node.parts else self._everywhere(True)

    def any_of(self, node: p.Or) -> Any:
        return reduce(or_, map(self.visit, node.parts)) if node.parts else self._everywhere(False)

    def negation(self, node: p.Not) -> Any:
        return ~self.visit(node.part)

    def _everywhere(self, truth: bool) -> Judged:
        return Judged(np.full(self.rows, truth, np.bool_), None)

    def operand(self, node: p.Operand) -> Any:
        """A column; or the Python value of an operand without attributes."""
        return self.visit(node) if p.attributes(node) else value(node, {})

    def attribute(self, node: p.Attribute) -> _Column:
        return _column(self.batch.column(node.name))

    def constant(self, node: p.Constant) -> Any:
        return node.value

    def negative(self, node: p.Negative) -> Any:
        return _negated(self.operand(node.operand))

    def arithmetic(self, node: p.Arithmetic) -> _Column | None:
        first, second = self.operand(node.left), self.operand(node.right)
        return None if first is None or second is None else _computed(node.op, first, second)

    def ticks(self, node: p.Ticks) -> Any:
        own = self.operand(node.operand)
        if not isinstance(own, _Column):
            return value(node, {})
        assert own.type is not None
        whole = _Column("int", own.data, own.valid)
        factor = int(node.per_second / ticks_of(own.type))
        return whole if factor == 1 else _computed("*", whole, factor)

    def function(self, node: p.Function) -> Any:
        sides = [self.operand(argument) for argument in node.arguments]
        if node.name == "coalesce":
            return _coalesced([side for side in sides if side is not None], self.rows)
        if None in sides:
            return None
        return _FUNCTIONS[node.name](*sides) if node.name in _FUNCTIONS else _of_sql(node.name, sides)

    def case(self, node: p.Case) -> _Column:
        sides = [self.operand(one) for one in node.values]
        kind = next((side for side in sides if isinstance(side, _Column)), None)
        like = kind or _column(pa.array([next(side for side in sides if side is not None)]))
        columns = [side if isinstance(side, _Column) else _repeated(side, like, self.rows) for side in sides]
        found = columns[-1]
        for condition, own in zip(reversed(node.conditions), reversed(columns[:-1]), strict=True):
            held: Judged = self.visit(condition) if p.attributes(condition) else self._everywhere(holds(condition, {}))
            found = _chosen(held, own, found)
        return found

    def call(self, node: p.Call) -> Any:
        raise AssertionError(node)  # registered functions are called in kernels


def _known(own: Any, truth: Bits) -> Judged:
    """What a truth about one column says where its values are known."""
    beyond = own.beyond if isinstance(own, _Column) else None
    return Judged(truth, None) if beyond is None else Judged(truth & ~beyond, beyond)


def _true(column: pa.Array) -> Bits:
    """A boolean array with NULL as false."""
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)


def _like(column: pa.Array, pattern: str) -> pa.Array:
    """LIKE by the cheapest of Arrow's searches that says the same."""
    search, text = like_search(pattern)
    if search == "like":
        return pc.match_substring_regex(column, rf"(?s)\A(?:{like_pattern(pattern).pattern})\z")
    return _SEARCHES[search](column, pa.scalar(text, column.type) if search == "equal" else text)


_SEARCHES = {"equal": pc.equal, "starts": pc.starts_with, "ends": pc.ends_with, "contains": pc.match_substring}


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
    #: Where it was computed of an integer beyond 64 bits, and NULL is nothing that it depends on; ``None``: nowhere.
    beyond: Bits | None = None

    def at(self, rows: NDArray[Any]) -> _Column:
        """The values of some rows, in their order."""
        data = self.data[rows] if isinstance(self.data, np.ndarray) else self.data.take(pa.array(rows))
        valid, beyond = (None if one is None else one[rows] for one in (self.valid, self.beyond))
        return replace(self, data=data, valid=valid, beyond=beyond)

    def where(self, truth: Any) -> Bits:
        """A NumPy truth as bool, false where the column is NULL."""
        found: Bits = np.asarray(truth, np.bool_)
        return found if self.valid is None else found & self.valid


def computed(operand: p.Operand, batch: pa.RecordBatch, kind: pa.DataType) -> pa.Array:
    """Compute a typed operand on each row, as an Arrow array; decimals that are computed become ``kind``, too.

    Raises
    ------
    DataError
        Integer arithmetic leaves 64 bits.
    """
    found, beyond = computed_where(operand, batch, kind)
    if beyond is not None:
        raise overflow_at(operand, batch, int(beyond.argmax()))
    return found


def computed_where(operand: p.Operand, batch: pa.RecordBatch, kind: pa.DataType) -> tuple[pa.Array, Bits | None]:
    """Do what :func:`computed` does, and tell in which rows integer arithmetic leaves 64 bits (``None``: in none); anything there."""
    if isinstance(operand, p.Attribute):
        return batch.column(operand.name), None
    found = _Rows(batch).operand(operand)
    if kind == pa.int64() and isinstance(found, _Column) and found.kind == "int":
        data, beyond = _as_int(found)
        found = replace(found, data=data, beyond=_or(found.beyond, _where(beyond, found.valid)))
    lost = isinstance(found, _Column) and found.beyond is not None and bool(found.beyond.any())
    return _computed_array(found, batch, kind), found.beyond if lost else None


def _computed_array(found: Any, batch: pa.RecordBatch, kind: pa.DataType) -> pa.Array:
    """A column that was computed as an Arrow array."""
    if not isinstance(found, _Column):
        shown = float(found) if isinstance(found, Decimal) else found
        return pa.array([shown] * batch.num_rows, kind)
    if found.kind == "string":
        return found.data.cast(kind)
    null = None if found.valid is None else ~found.valid
    if found.kind == "time":
        return as_times(found.data, kind, null)
    if found.kind == "int" and pa.types.is_temporal(kind):
        return pa.array(found.data, pa.int64(), mask=null).cast(kind)
    return pa.array(_as_real(found) if found.kind == "decimal" else found.data, kind, mask=null)


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


def _beyond(side: Any) -> Bits | None:
    return side.beyond if isinstance(side, _Column) else None


def _is_kind(side: Any, kind: str, python: type) -> bool:
    return side.kind == kind if isinstance(side, _Column) else isinstance(side, python)


def _negated(own: Any) -> Any:
    if own is None or own.kind == "float":
        return own if own is None else _Column("float", -own.data, own.valid, beyond=own.beyond)
    if own.kind == "decimal":
        return _exact("-", Decimal(0), own, own.valid, own.beyond)
    return _computed("-", 0, own)


def _computed(op: str, left: Any, right: Any) -> _Column:
    """``left op right`` for at least one column."""
    valid, beyond = _both(_valid(left), _valid(right)), _or(_beyond(left), _beyond(right))
    if op == "/" or _is_kind(left, "float", float) or _is_kind(right, "float", float):
        first, second = _as_real(left), _as_real(right)
        if op in "/%":
            valid = _both(valid, _nonzero(second, first, _beyond(right)))
        with np.errstate(all="ignore"):
            return _Column("float", _REAL[op](first, second), valid, beyond=_where(beyond, valid))
    if _is_kind(left, "decimal", Decimal) or _is_kind(right, "decimal", Decimal):
        return _exact(op, left, right, valid, _where(beyond, valid))
    (first, before), (second, after) = _as_int(left), _as_int(right)
    beyond = _or(beyond, _or(before, after))
    if beyond is not None:
        beyond = np.broadcast_to(beyond, np.broadcast_shapes(np.shape(first), np.shape(second)))
    if op in ("%", "div"):
        divisor = np.where(np.equal(second, 0), 1, second)
        data = np.fmod(first, divisor)
        if op == "div":
            with np.errstate(over="ignore"):  # the least integer by -1
                data = (first - data) // divisor
            wrong = np.broadcast_to((first == _INT64[0]) & (divisor == -1), data.shape)
            beyond = _or(beyond, wrong) if wrong.any() else beyond
        valid = _both(valid, _nonzero(second, first, _or(_beyond(right), after)))
        return _Column("int", data, valid, beyond=_where(beyond, valid))
    with np.errstate(all="ignore"):
        data = _INT[op](first, second)
        wrong = np.broadcast_to(_overflows(op, first, second, data), data.shape)
    if wrong.any():
        beyond = _or(beyond, np.asarray(wrong, np.bool_))
    return _Column("int", data, valid, beyond=_where(beyond, valid))


def _where(beyond: Bits | None, valid: Bits | None) -> Bits | None:
    """What is beyond 64 bits and not NULL; ``None``: nothing."""
    if beyond is None or valid is None:
        return beyond
    return beyond & valid


# -- functions ------------------------------------------------------------------------------------------------------


def _absolute(own: _Column) -> _Column:
    if own.kind == "float":
        return _Column("float", np.abs(own.data), own.valid, beyond=own.beyond)
    data, beyond = _as_int(own)
    least = data == _INT64[0]
    with np.errstate(over="ignore"):
        found = np.abs(data)
    beyond = _or(_or(own.beyond, beyond), least if least.any() else None)
    return _Column("int", found, own.valid, beyond=_where(beyond, own.valid))


def _rounded(own: _Column, digits: int = 0) -> _Column:
    """Do what :func:`~stretto.query.builtins.rounded` does."""
    power = float(10**digits)
    with np.errstate(all="ignore"):
        size = np.abs(own.data)
        scaled = size * power
        whole = np.floor(scaled)
        whole += size >= (2.0 * whole + 1.0) / (2.0 * power)
        found = np.where(scaled < 2.0**51, np.copysign(whole / power, own.data), own.data)
    return _Column("float", found, own.valid, beyond=own.beyond)


def _of_reals(compute: Callable[[Any], Any]) -> Callable[[_Column], _Column]:
    return lambda own: _Column("float", compute(own.data), own.valid, beyond=own.beyond)


def _of_sql(name: str, sides: list[Any]) -> _Column:
    """A function of SQL, or of EQL, which is computed of Arrow's arrays."""
    compute = eql_functions.compute if name in EQL else sql_functions.compute
    found = _column(compute(name, [_array(side) if isinstance(side, _Column) else side for side in sides]))
    beyond = reduce(_or, map(_beyond, sides))
    return replace(found, beyond=_where(beyond, found.valid))


def _array(own: _Column) -> pa.Array:
    if isinstance(own.data, pa.Array):
        return own.data
    null = None if own.valid is None else ~own.valid
    if own.kind == "time":
        return as_times(own.data, own.type, null)
    if own.kind == "decimal":
        return pa.array([None if one is None else float(one) for one in own.data], pa.float64())
    return pa.array(own.data, mask=null)


def _cased(ascii_only: Callable[[pa.Array], pa.Array], python: Callable[[str], str]) -> Callable[[_Column], _Column]:
    """Letters in the other case: Arrow changes a letter at a time, where ß has two great ones."""

    def compute(own: _Column) -> _Column:
        if pc.all(pc.string_is_ascii(own.data)).as_py() is not False:
            return replace(own, data=ascii_only(own.data))
        coded = own.data.dictionary_encode()
        texts = pa.array([None if one is None else python(one) for one in coded.dictionary.to_pylist()], own.data.type)
        return replace(own, data=texts.take(coded.indices))

    return compute


def _concatenated(*sides: Any) -> _Column:
    kinds = {side.data.type for side in sides if isinstance(side, _Column)}
    kind = kinds.pop() if len(kinds) == 1 else pa.large_string()
    texts = [side.data.cast(kind) if isinstance(side, _Column) else pa.scalar(side, kind) for side in sides]
    joined = pc.binary_join_element_wise(*texts, pa.scalar("", kind))
    return _Column("string", joined, valid_of(joined))


def _coalesced(sides: list[Any], rows: int) -> Any:
    """The first that is not NULL, row by row."""
    if not sides or not isinstance(sides[0], _Column):
        return sides[0] if sides else None
    first = sides[0]
    if first.valid is None:
        return first
    other = _coalesced(sides[1:], rows)
    if other is None:
        return first
    if first.kind == "string":
        kind = other.data.type if isinstance(other, _Column) else first.data.type
        kind = kind if kind == first.data.type else pa.large_string()
        second = other.data.cast(kind) if isinstance(other, _Column) else pa.scalar(other, kind)
        joined = pc.coalesce(first.data.cast(kind), second)
        return _Column("string", joined, valid_of(joined))
    beyond = _where(first.beyond, first.valid)
    if first.kind == "int":
        (one, before), (two, after) = _as_int(first), _as_int(other)
        beyond = _where(_or(beyond, before), first.valid)
        after = None if after is None else np.broadcast_to(after, rows)
    else:
        one, two = first.data, other.data if isinstance(other, _Column) else other
        after = None
    after = _or(after, _beyond(other))
    beyond = _or(beyond, None if after is None else after & ~first.valid)
    valid = None if not isinstance(other, _Column) or other.valid is None else first.valid | other.valid
    return _Column(
        first.kind, np.where(first.valid, one, two), valid, first.type if first.kind == "time" else None, beyond
    )


def _repeated(constant: Any, like: _Column, rows: int) -> _Column:
    """A constant, or NULL, as a column of the kind of another one."""
    valid = np.zeros(rows, np.bool_) if constant is None else None
    if like.kind == "string":
        return _Column("string", pa.repeat(pa.scalar(constant, like.data.type), rows), valid)
    data = np.full(rows, 0 if constant is None else constant, like.data.dtype)
    return _Column(like.kind, data, valid, like.type)


def _chosen(held: Judged, first: _Column, second: _Column) -> _Column:
    """Of two columns of one kind the first where a condition holds, else the second."""
    at = held.true
    beyond = held.unknown
    for side, here in ((first, at), (second, ~at)):
        own = _where(side.beyond, here)
        beyond = own if beyond is None else beyond if own is None else beyond | own
    if first.kind == "string":
        kind = first.data.type if first.data.type == second.data.type else pa.large_string()
        data = pc.if_else(pa.array(at), first.data.cast(kind), second.data.cast(kind))
        return _Column("string", data, valid_of(data))
    (one, before), (two, after) = (
        _as_int(side) if first.kind == "int" else (side.data, None) for side in (first, second)
    )
    beyond = _or(beyond, _or(_where(before, at), _where(after, ~at)))
    valid = None
    if first.valid is not None or second.valid is not None:
        known = [np.ones(at.size, np.bool_) if side.valid is None else side.valid for side in (first, second)]
        valid = np.where(at, *known)
    return _Column(first.kind, np.where(at, one, two), valid, first.type if first.kind == "time" else None, beyond)


_FUNCTIONS: dict[str, Callable[..., _Column]] = {
    "abs": _absolute,
    "round": _rounded,
    "floor": _of_reals(np.floor),
    "ceil": _of_reals(np.ceil),
    "upper": _cased(pc.ascii_upper, str.upper),
    "lower": _cased(pc.ascii_lower, str.lower),
    "length": lambda own: _Column(
        "int", np.asarray(pc.fill_null(pc.utf8_length(own.data), 0).to_numpy(zero_copy_only=False), np.int64), own.valid
    ),
    "concat": _concatenated,
}

_REAL: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
}
_INT: dict[str, Callable[[Any, Any], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}


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
        near[at] = not _INT64[0] <= exact <= _INT64[1]
    return near


def _as_int(side: Any) -> tuple[Any, Bits | None]:
    """int64 of an integer column or constant, and where it does not fit."""
    if not isinstance(side, _Column):
        fits = _INT64[0] <= side <= _INT64[1]
        return np.int64(side if fits else 0), None if fits else np.ones(1, np.bool_)
    data = side.data
    if data.dtype != np.uint64:
        return data, None
    beyond = data > np.uint64(_INT64[1])
    return data.view(np.int64), beyond if beyond.any() else None


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


def _exact(op: str, left: Any, right: Any, valid: Bits | None, beyond: Bits | None) -> _Column:
    """Decimals, computed exactly: by Arrow where its widest decimal holds every result, else row by row."""
    with contextlib.suppress(pa.ArrowInvalid):  # more than 76 digits
        sides = [_wide(side) for side in (left, right)]
        if all(side is not None for side in sides):
            found = _WIDE_ARITHMETIC[op](*sides)
            return _Column("decimal", found, valid, found.type, beyond)
    lists = [_objects(side) for side in (left, right)]
    rows = max(len(one) for one in lists if one is not None)
    firsts, seconds = ([side] * rows if one is None else one for one, side in zip(lists, (left, right), strict=True))
    out = np.empty(rows, object)
    for row, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        out[row] = value(p.Arithmetic(op, p.Constant(first), p.Constant(second)), {})
    return _Column("decimal", out, valid, None, beyond)


_WIDE_ARITHMETIC = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def _wide(side: Any) -> Any:
    """A side as decimals of 256 bits, with the digits that it may have; ``None``: it is kept as objects."""
    if isinstance(side, _Column):
        if side.kind == "int":
            whole = pa.array(side.data, mask=None if side.valid is None else ~side.valid)
            return whole.cast(pa.decimal256(20, 0))
        if not isinstance(side.data, pa.Array):
            return None
        kind = side.data.type
        return side.data.cast(pa.decimal256(kind.precision, kind.scale))
    found = pa.scalar(Decimal(side))
    return None if found.type.scale < 0 else found.cast(pa.decimal256(found.type.precision, found.type.scale))


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
        out |= _truth("=", own, constant, rows)
    return out


def _compared(op: str, left: Any, right: Any, rows: int) -> Judged:
    truth = _truth(op, left, right, rows)
    beyond = _where(_or(_beyond(left), _beyond(right)), _both(_valid(left), _valid(right)))
    if beyond is None or left is None or right is None:
        return Judged(truth, None)
    return Judged(truth & ~beyond, beyond)


def _truth(op: str, left: Any, right: Any, rows: int) -> Bits:
    """``left op right``, false where one is NULL."""
    if not isinstance(left, _Column):
        if not isinstance(right, _Column):
            return np.full(rows, compare(op, left, right), np.bool_)
        return _truth(p.FLIPPED[op], right, left, rows)
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


def _times(op: str, left: _Column, right: _Column) -> Bits:
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
