"""Predicates over whole columns, with NumPy and Arrow: exactly the meaning of :mod:`stretto.query.evaluate`.

Where an integer does not fit into 64 bits, the condition is neither true nor false (:func:`~stretto.query.evaluate.truth`);
whoever asks of such a row is told by an :class:`~stretto.columns.overflow.IntegerOverflow`.

Arithmetic over whole columns.

Integers are computed in 64 bits; a column says where a result does not fit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.array_types import INT64
from stretto.columns.arrays import Bits, valid_of
from stretto.columns.functions import applied
from stretto.columns.grid import ticks_of
from stretto.columns.operands import (
    Column,
    as_int,
    as_objects,
    as_real,
    beyond_where,
    column_of,
    is_among,
    is_kind,
    is_like,
    known_true,
    truths,
    valid_where,
    where_both,
    where_either,
    where_known,
)
from stretto.columns.overflow import IntegerOverflow
from stretto.errors import DataError, hinted
from stretto.query import predicate as p
from stretto.query.evaluate import Beyond, bounded, holds, truth, value
from stretto.times import as_times

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
        unknown = where_either(self.unknown, other.unknown)
        return Judged(true, None if unknown is None else unknown & ~true)


def _either(true: Bits, unknown: Bits | None) -> Bits:
    return true if unknown is None else true | unknown


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


class _Rows(p.Visitor):
    """The values and truths of the rows of a batch: of an operand a :class:`Column`, or a Python value if it has no attributes."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.rows = batch.num_rows

    def comparison(self, node: p.Comparison) -> Judged:
        return _compared(node.op, self.operand(node.left), self.operand(node.right), self.rows)

    def among(self, node: p.In) -> Judged:
        own = self.operand(node.operand)
        return _known(own, is_among(own, [constant.value for constant in node.values], self.rows))

    def like(self, node: p.Like) -> Judged:
        own = self.operand(node.operand)
        if not isinstance(own, Column):
            return self._everywhere(holds(node, {}))
        return Judged(known_true(is_like(own.data, node.pattern)), None)

    def rlike(self, node: p.Rlike) -> Judged:
        own = self.operand(node.operand)
        if not isinstance(own, Column):
            return self._everywhere(holds(node, {}))
        return Judged(known_true(pc.match_substring_regex(own.data, node.pattern)), None)

    def member(self, node: p.Member) -> Judged:
        """Each value of each list beside what is sought in its row."""
        assert isinstance(node.values, p.Attribute)
        lists = self.batch.column(node.values.name)
        if pa.types.is_null(lists.type.value_type):
            return self._everywhere(False)
        rows = np.asarray(pc.list_parent_indices(lists))
        own = self.operand(node.operand)
        found = _compared(
            "=", own.at(rows) if isinstance(own, Column) else own, column_of(pc.list_flatten(lists)), rows.size
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
        if not isinstance(own, Column):
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

    def attribute(self, node: p.Attribute) -> Column:
        return column_of(self.batch.column(node.name))

    def constant(self, node: p.Constant) -> Any:
        return node.value

    def negative(self, node: p.Negative) -> Any:
        return negated(self.operand(node.operand))

    def arithmetic(self, node: p.Arithmetic) -> Column | None:
        first, second = self.operand(node.left), self.operand(node.right)
        return None if first is None or second is None else calculated(node.op, first, second)

    def ticks(self, node: p.Ticks) -> Any:
        own = self.operand(node.operand)
        if not isinstance(own, Column):
            return value(node, {})
        assert own.type is not None
        whole = Column("int", own.data, own.valid)
        factor = int(node.per_second / ticks_of(own.type))
        return whole if factor == 1 else calculated("*", whole, factor)

    def function(self, node: p.Function) -> Any:
        return applied(node.name, [self.operand(argument) for argument in node.arguments], self.rows)

    def case(self, node: p.Case) -> Column:
        sides = [self.operand(one) for one in node.values]
        kind = next((side for side in sides if isinstance(side, Column)), None)
        like = kind or column_of(pa.array([next(side for side in sides if side is not None)]))
        columns = [side if isinstance(side, Column) else _repeated(side, like, self.rows) for side in sides]
        found = columns[-1]
        for condition, own in zip(reversed(node.conditions), reversed(columns[:-1]), strict=True):
            held: Judged = self.visit(condition) if p.attributes(condition) else self._everywhere(holds(condition, {}))
            found = _chosen(held, own, found)
        return found

    def call(self, node: p.Call) -> Any:
        raise AssertionError(node)  # registered functions are called in kernels


def _known(own: Any, truth: Bits) -> Judged:
    """What a truth about one column says where its values are known."""
    beyond = own.beyond if isinstance(own, Column) else None
    return Judged(truth, None) if beyond is None else Judged(truth & ~beyond, beyond)


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
    if kind == pa.int64() and isinstance(found, Column) and found.kind == "int":
        data, beyond = as_int(found)
        found = replace(found, data=data, beyond=where_either(found.beyond, where_known(beyond, found.valid)))
    lost = isinstance(found, Column) and found.beyond is not None and bool(found.beyond.any())
    return _computed_array(found, batch, kind), found.beyond if lost else None


def _computed_array(found: Any, batch: pa.RecordBatch, kind: pa.DataType) -> pa.Array:
    """A column that was computed as an Arrow array."""
    if not isinstance(found, Column):
        shown = float(found) if isinstance(found, Decimal) else found
        return pa.array([shown] * batch.num_rows, kind)
    if found.kind == "string":
        return found.data.cast(kind)
    null = None if found.valid is None else ~found.valid
    if found.kind == "time":
        return as_times(found.data, kind, null)
    if found.kind == "int" and pa.types.is_temporal(kind):
        return pa.array(found.data, pa.int64(), mask=null).cast(kind)
    return pa.array(as_real(found) if found.kind == "decimal" else found.data, kind, mask=null)


def _repeated(constant: Any, like: Column, rows: int) -> Column:
    """A constant, or NULL, as a column of the kind of another one."""
    valid = np.zeros(rows, np.bool_) if constant is None else None
    if like.kind == "string":
        return Column("string", pa.repeat(pa.scalar(constant, like.data.type), rows), valid)
    data = np.full(rows, 0 if constant is None else constant, like.data.dtype)
    return Column(like.kind, data, valid, like.type)


def _chosen(held: Judged, first: Column, second: Column) -> Column:
    """Of two columns of one kind the first where a condition holds, else the second."""
    at = held.true
    beyond = held.unknown
    for side, here in ((first, at), (second, ~at)):
        own = where_known(side.beyond, here)
        beyond = own if beyond is None else beyond if own is None else beyond | own
    if first.kind == "string":
        kind = first.data.type if first.data.type == second.data.type else pa.large_string()
        data = pc.if_else(pa.array(at), first.data.cast(kind), second.data.cast(kind))
        return Column("string", data, valid_of(data))
    (one, before), (two, after) = (
        as_int(side) if first.kind == "int" else (side.data, None) for side in (first, second)
    )
    beyond = where_either(beyond, where_either(where_known(before, at), where_known(after, ~at)))
    valid = None
    if first.valid is not None or second.valid is not None:
        known = [np.ones(at.size, np.bool_) if side.valid is None else side.valid for side in (first, second)]
        valid = np.where(at, *known)
    return Column(first.kind, np.where(at, one, two), valid, first.type if first.kind == "time" else None, beyond)


def _compared(op: str, left: Any, right: Any, rows: int) -> Judged:
    truth = truths(op, left, right, rows)
    beyond = where_known(
        where_either(beyond_where(left), beyond_where(right)), where_both(valid_where(left), valid_where(right))
    )
    if beyond is None or left is None or right is None:
        return Judged(truth, None)
    return Judged(truth & ~beyond, beyond)
