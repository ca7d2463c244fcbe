"""Conditions that read rows of the match so far, as programs (:mod:`stretto.engines.rows.backtracking`).

Whatever a condition makes of one row alone, be it the current one or the last one of a variable, is a column, computed
before; a program only finds the row. So strings, decimals and functions need no code of their own: what is
compared with them stands as ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.automata.rows import RowAutomaton
from stretto.columns.vectorized import computed, mask, numbers_of, valid_of
from stretto.engines.rows import backtracking as b
from stretto.engines.rows.columns import Shifted, plain_name
from stretto.engines.rows.structure import I64, Bits
from stretto.errors import QueryError, Span
from stretto.query import predicate as p
from stretto.query import row_pattern as r
from stretto.query.evaluate import value as value_of
from stretto.query.typing import kind_of_operand, type_of_operand

_E = TypeVar("_E", bound=p.Expression)

#: The row that an expression is about: a set of variables, an end and how many rows from there; ``None``: the current row.
Base = tuple[frozenset[str], r.Side, int] | None


@dataclass(frozen=True)
class Column:
    """What a program reads of a row: an expression over :func:`~stretto.engines.rows.columns.plain_name` columns.

    ``rank``: the number of the group of columns that are compared with each other as ranks; −1: integers, truths or doubles.
    """

    expression: p.Expression
    type: pa.DataType
    rank: int = -1


def base_of(reference: r.RowReference, variable: str, query: r.RowQuery) -> Base:
    """The row that a navigation starts at, in the condition of a variable."""
    assert isinstance(reference, r.Navigation)
    held = query.holds(reference.variable)
    if reference.side is r.Side.LAST and not reference.skip and variable in held:
        return None
    return held, reference.side, reference.skip


def is_plain(condition: p.Expression, variable: str, query: r.RowQuery) -> bool:
    """Whether a condition reads rows at a fixed distance from the current one only."""
    found = (query.references[name] for name in p.attributes(condition))
    return all(
        isinstance(one, r.Navigation) and one.attribute is not None and base_of(one, variable, query) is None
        for one in found
    )


def conjuncts(condition: p.Predicate) -> tuple[p.Predicate, ...]:
    """The conditions that must all hold."""
    return condition.parts if isinstance(condition, p.And) else (condition,)


def as_plain(expression: _E, query: r.RowQuery) -> _E:
    """An expression about one row, over columns of the table that is seen from that row."""
    names = {}
    for name in p.attributes(expression):
        reference = query.references[name]
        assert isinstance(reference, r.Navigation)
        assert reference.attribute is not None
        names[name] = plain_name(reference.attribute, reference.shift)
    return p.renamed(expression, names)


@dataclass
class History:
    """The programs of a clause, and what they need."""

    query: r.RowQuery
    schema: pa.Schema
    types: Mapping[str, pa.DataType]
    automaton: RowAutomaton
    columns: list[Column] = field(default_factory=list)
    registers: list[tuple[int, frozenset[str], int, int]] = field(default_factory=list)
    constants: list[int | str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)  #: names that classifiers are compared with
    groups: int = 0
    by_number: bool = False
    code: list[tuple[int, int, int]] = field(default_factory=list)
    asked: dict[str, list[p.Predicate]] = field(default_factory=dict)  #: conditions by variable

    def register(self, kind: int, held: frozenset[str], argument: int = -1, counted: int = -1) -> int:
        """The number of a register, a new one where there is none."""
        wanted = kind, held, argument, counted
        if wanted not in self.registers:
            self.registers.append(wanted)
        return self.registers.index(wanted)

    def row_register(self, kind: int, held: frozenset[str], skip: int) -> int:
        """The register of a row some rows from an end, which continues those of the rows between."""
        found = -1
        for _ in range(skip + 1):
            found = self.register(kind, held, found)
        return found

    def column(self, expression: p.Expression, kind: pa.DataType, rank: int = -1) -> int:
        wanted = Column(expression, kind, rank)
        if wanted not in self.columns:
            self.columns.append(wanted)
        return self.columns.index(wanted)

    def constant(self, bits: int | str) -> int:
        self.constants.append(bits)
        return len(self.constants) - 1

    def programs(self, *, window: bool) -> b.Programs:
        """All programs as arrays."""
        conditions = {variable: _Scope(self, variable).all(parts) for variable, parts in self.asked.items()}
        names = sorted({*self.automaton.variables, *self.labels})
        constants = [names.index(one) if isinstance(one, str) else one for one in self.constants]
        of = [self.automaton.variables[v] for v in self.automaton.variable]
        codes = [conditions.get(name, []) for name in of]
        begin = np.zeros(len(codes) + 1, np.int64)
        np.cumsum([len(code) for code in codes], out=begin[1:])
        member = np.array([[name in held for name in of] for _, held, _, _ in self.registers], np.bool_)
        live, fails = self._live(codes, window=window)
        live_begin = np.zeros(len(live) + 1, np.int64)
        np.cumsum([len(one) for one in live], out=live_begin[1:])
        return b.Programs(
            self.automaton.variable,
            begin,
            np.array([step for code in codes for step in code], np.int64).reshape(-1, 3),
            np.array([*constants, 0], np.int64),
            np.array([names.index(name) for name in self.automaton.variables], np.int64),
            np.array([kind for kind, *_ in self.registers], np.int64),
            np.array([argument for _, _, argument, _ in self.registers], np.int64),
            np.array([counted for *_, counted in self.registers], np.int64),
            member.reshape(len(self.registers), len(of)),
            live_begin,
            np.array([register for one in live for register in one], np.int64),
            fails,
            self.by_number,
            window,
        )

    def _live(self, codes: list[list[tuple[int, int, int]]], *, window: bool) -> tuple[list[list[int]], Bits]:
        """Of each position: the registers that conditions behind it may read, and whether there are any.

        From the end: what a position's condition reads and what those behind it read, before the position's row has
        changed registers.
        """
        followers = self.automaton.followers
        of = [self.automaton.variables[v] for v in self.automaton.variable]
        reads = [self._reads(code) for code in codes]
        after = [0] * len(codes)
        fails = [window] * len(codes)
        callers: list[list[int]] = [[] for _ in codes]
        for position, to in enumerate(followers):
            for q in to:
                if q >= 0:
                    callers[q].append(position)
        work = list(range(len(codes)))
        while work:
            q = work.pop()
            before = self._before(reads[q] | after[q], of[q])
            failing = bool(codes[q]) or fails[q]
            for position in callers[q]:
                if before & ~after[position] or (failing and not fails[position]):
                    after[position] |= before
                    fails[position] = fails[position] or failing
                    work.append(position)
        count = len(self.registers)
        return [[k for k in range(count) if after_one >> k & 1] for after_one in after], np.array(fails, np.bool_)

    def _reads(self, code: list[tuple[int, int, int]]) -> int:
        found = 0
        for op, first, second in code:
            if op in (b.REGISTER, b.LABEL):
                found |= 1 << first
            if op in (b.REGISTER, b.COLUMN) and second >= 0:
                found |= 1 << second
        return found

    def _before(self, wanted: int, variable: str) -> int:
        """The registers that must be known before a row of a variable, for others to be known behind it."""
        found = 0
        for k, (kind, held, argument, counted) in enumerate(self.registers):
            if not wanted >> k & 1:
                continue
            if variable not in held:
                found |= 1 << k
            elif kind in (b.LAST_ROW, b.LAST_LABEL):
                found |= 1 << argument if argument >= 0 else 0
            else:
                found |= 1 << k
                other = argument if kind == b.FIRST_ROW else counted
                found |= 1 << other if other >= 0 else 0
        return found

    def initial(self) -> I64:
        """The registers before the first row of a match."""
        none = (b.LAST_ROW, b.FIRST_ROW, b.LAST_LABEL)
        return np.array([-1 if kind in none else 0 for kind, *_ in self.registers], np.int64)

    def values(self, seen: Shifted, latest: I64) -> b.Values:
        """What programs read of the rows of a table."""
        words = np.zeros((len(self.columns), seen.rows + 1), np.int64)
        known = np.zeros((len(self.columns), seen.rows + 1), np.bool_)
        arrays = [self._array(column, seen) for column in self.columns]
        for group in range(self.groups):
            members = [at for at, column in enumerate(self.columns) if column.rank == group]
            kind = _common([arrays[at].type for at in members])
            cast = pa.chunked_array([arrays[at].cast(kind) for at in members])
            codes = pc.rank(cast, sort_keys="ascending", tiebreaker="dense").cast(pa.int64())
            for number, at in enumerate(members):
                part = codes.slice(number * (seen.rows + 1), seen.rows + 1)
                valid = arrays[at].is_valid()
                arrays[at] = pc.if_else(valid, part, pa.scalar(None, pa.int64()))
        for at, array in enumerate(arrays):
            valid = valid_of(array)
            known[at] = True if valid is None else valid
            data = numbers_of(array)
            words[at] = data.astype(np.float64).view(np.int64) if data.dtype.kind == "f" else data.astype(np.int64)
        return b.Values(words, known, latest)

    def _array(self, column: Column, seen: Shifted) -> pa.Array:
        table = seen.table_of(p.attributes(column.expression), beyond=True)
        if isinstance(column.expression, p.Predicate):
            return pa.array(mask(column.expression, table))
        if isinstance(column.expression, p.Constant):
            return pa.array([column.expression.value] * (seen.rows + 1), column.type)
        found = computed(column.expression, table, column.type)
        if pa.types.is_dictionary(found.type):
            found = found.dictionary_decode()
        return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def _common(types: list[pa.DataType]) -> pa.DataType:
    """A type that has the values of all."""
    if all(pa.types.is_decimal(one) for one in types):
        scale = max(one.scale for one in types)
        return pa.decimal256(min(76, max(one.precision - one.scale for one in types) + scale), scale)
    if all(pa.types.is_temporal(one) for one in types):
        units = ["s", "ms", "us", "ns"]
        finest = max(units.index(one.unit) if pa.types.is_timestamp(one) else 0 for one in types)
        zone = next((one.tz for one in types if pa.types.is_timestamp(one) and one.tz), None)
        return pa.timestamp(units[finest], zone)
    return pa.large_string()


class _Scope(p.Visitor):
    """Compiles the conditions of one variable. What has no attributes is a constant before it is visited."""

    takes: ClassVar = tuple(one for one in p.NODES if one is not p.Constant)

    def __init__(self, owner: History, variable: str) -> None:
        self.owner = owner
        self.variable = variable
        self.code: list[tuple[int, int, int]] = []

    def all(self, parts: list[p.Predicate]) -> list[tuple[int, int, int]]:
        for number, part in enumerate(parts):
            self.predicate(part)
            if number:
                self.put(b.AND)
        return self.code

    def put(self, op: int, first: int = -1, second: int = -1) -> None:
        self.code.append((op, first, second))

    def mistake(self, why: str, node: p.Expression) -> QueryError:
        span = getattr(node, "span", None)
        hint = "compute it as a column of the input, or ask it of one row"
        return QueryError(why, text=self.owner.query.text, span=span if isinstance(span, Span) else None, hint=hint)

    def references(self, node: p.Expression) -> list[r.RowReference]:
        return [self.owner.query.references[name] for name in p.attributes(node)]

    def base(self, node: p.Expression) -> tuple[bool, Base]:
        """Whether an expression is about one row, and which."""
        found = self.references(node)
        if not found or not all(isinstance(one, r.Navigation) and one.attribute is not None for one in found):
            return False, None
        bases = {base_of(one, self.variable, self.owner.query) for one in found}
        return len(bases) == 1, next(iter(bases))

    def load(self, node: p.Expression, base: Base, kind: pa.DataType, rank: int = -1) -> None:
        """Put what an expression makes of one row on the stack."""
        at = -1
        if base is not None:
            held, side, skip = base
            at = self.owner.row_register(b.LAST_ROW if side is r.Side.LAST else b.FIRST_ROW, held, skip)
        self.put(b.COLUMN, self.owner.column(as_plain(node, self.owner.query), kind, rank), at)

    # -- conditions ---------------------------------------------------------------------------------------------------

    def predicate(self, node: p.Predicate) -> None:
        """Put the truth of a condition on the stack."""
        alone, base = self.base(node)
        if alone:
            self.load(node, base, pa.bool_())
        elif not p.attributes(node):
            self.put(b.CONSTANT, self.owner.constant(int(bool(mask(node, pa.table({"": [0]}))[0]))))
        else:
            self.visit(node)

    def _joined(self, parts: tuple[p.Predicate, ...], op: int) -> None:
        for number, part in enumerate(parts):
            self.predicate(part)
            if number:
                self.put(op)

    def all_of(self, node: p.And) -> None:
        self._joined(node.parts, b.AND)

    def any_of(self, node: p.Or) -> None:
        self._joined(node.parts, b.OR)

    def negation(self, node: p.Not) -> None:
        self.predicate(node.part)
        self.put(b.NOT)

    def is_null(self, node: p.IsNull) -> None:
        self.operand(node.operand)
        self.put(b.IS_NULL)

    def like(self, node: p.Like) -> None:
        raise self.mistake(f"{type(node).__name__.upper()} tests a column of one row", node)

    rlike = like

    def member(self, node: p.Member) -> None:
        raise self.mistake("IN asks for a value in a list of the same row", node)

    def comparison(self, node: p.Comparison) -> None:
        op, left, right = node.op, node.left, node.right
        kinds = self.kind(left), self.kind(right)
        if kinds in (("float", "int"), ("int", "float")):
            if kinds[0] == "float":
                op, left, right = p.FLIPPED[op], right, left
            self._mixed(op, left, right)
            return
        if op in (">", ">="):
            op, left, right = p.FLIPPED[op], right, left
        if "string" in kinds or "decimal" in kinds or ("time" in kinds and self.type(left) != self.type(right)):
            self._ranks(left, right, node)
        else:
            self.operand(left)
            self.operand(right)
        self.put(_COMPARISONS[op] + (4 if kinds[0] == "float" else 0))

    def _mixed(self, op: str, whole: p.Operand, real: p.Operand) -> None:
        """An integer beside a double, of which neither is rounded."""
        wanted = self.owner.constant(_SIGN[op])
        if op == ">=":
            self.put(b.CONSTANT, wanted)
        self.operand(whole)
        self.operand(real)
        self.put(b.COMPARED_LOW if op == ">=" else b.COMPARED)
        if op != ">=":
            self.put(b.CONSTANT, wanted)
        self.put({"!=": b.NOT_EQUAL, "<=": b.LESS_EQUAL, ">=": b.LESS_EQUAL}.get(op, b.EQUAL))

    def _ranks(self, left: p.Operand, right: p.Operand, node: p.Comparison) -> None:
        """Values that are no numbers of 64 bits: their ranks among all that they are compared with."""
        sides = (left, right)
        if any(self._classifier(side) for side in sides):
            for side in sides:
                if isinstance(side, p.Constant) and isinstance(side.value, str):
                    self.owner.labels.append(side.value)
                    self.put(b.CONSTANT, self.owner.constant(side.value))
                elif self._classifier(side):
                    self.operand(side)
                else:
                    raise self.mistake("CLASSIFIER is compared with names of variables", node)
            return
        group = self.owner.groups
        self.owner.groups += 1
        for side in sides:
            alone, base = self.base(side)
            if not alone and p.attributes(side):
                raise self.mistake(f"{side} computes values of several rows that are no integers and no doubles", node)
            self.load(side, base, self.type(side), group)

    def _classifier(self, node: p.Operand) -> bool:
        return any(isinstance(one, r.Navigation) and one.attribute is None for one in self.references(node))

    # -- values -------------------------------------------------------------------------------------------------------

    def kind(self, node: p.Operand) -> str:
        return kind_of_operand(node, self.owner.types)

    def type(self, node: p.Operand) -> pa.DataType:
        return type_of_operand(node, self.owner.types)

    def operand(self, node: p.Operand, *, real: bool = False) -> None:
        """Put a value on the stack; integers as doubles where ``real``."""
        alone, base = self.base(node)
        if alone:
            self.load(node, base, self.type(node))
        elif not p.attributes(node):
            self._value(value_of(node, {}), self.type(node))
        else:
            self.visit(node)
        if real and self.kind(node) == "int":
            self.put(b.TO_REAL)

    def _value(self, value: Any, kind: pa.DataType) -> None:
        if value is None:
            self.put(b.NULL)
            return
        scalar = pa.scalar(value, kind)
        if pa.types.is_floating(kind):
            bits = int(np.float64(scalar.as_py()).view(np.int64))
        else:
            bits = int(numbers_of(pa.array([value], kind))[0])
        self.put(b.CONSTANT, self.owner.constant(bits))

    def attribute(self, node: p.Attribute) -> None:
        reference = self.owner.query.references[node.name]
        if isinstance(reference, r.MatchNumber):
            self.owner.by_number = True
            self.put(b.MATCH)
        elif isinstance(reference, r.Navigation):
            self._label(reference, node)
        elif isinstance(reference, r.Aggregated):
            self._aggregate(reference, node)
        else:
            raise self.mistake("a condition's own classifier is that of its variable", node)

    def _label(self, reference: r.Navigation, node: p.Attribute) -> None:
        held = self.owner.query.holds(reference.variable)
        skip = reference.skip
        if reference.shift:
            if reference.shift > 0 or reference.side is not r.Side.LAST or reference.variable:
                raise self.mistake(
                    f"{node} follows the names of rows elsewhere in the match, which DEFINE does not", node
                )
            skip -= reference.shift
        if reference.side is r.Side.FIRST:
            raise self.mistake(f"{node} asks for the name of the first row, which DEFINE does not", node)
        self.put(b.LABEL, self.owner.row_register(b.LAST_LABEL, held, skip))

    def _aggregate(self, reference: r.Aggregated, node: p.Attribute) -> None:
        held = self.owner.query.holds(reference.variable)
        if reference.distinct or reference.function not in ("count", "sum", "avg", "min", "max"):
            raise self.mistake(f"DEFINE computes count, sum, avg, min and max of rows so far, not {reference}", node)
        if not reference.arguments:
            self.put(b.REGISTER, self.owner.register(b.COUNT, held))
            return
        (argument,) = reference.arguments
        names = {name: plain_name(name) for name in p.attributes(argument)}
        if not set(names) <= set(self.owner.schema.names):
            raise self.mistake(f"{reference} reads the classifier or the number of the match", node)
        kind = type_of_operand(argument, {one.name: one.type for one in self.owner.schema})
        at = self.owner.column(p.renamed(argument, names), kind)
        counted = self.owner.register(b.COUNT, held, at)
        if reference.function == "count":
            self.put(b.REGISTER, counted)
            return
        real = pa.types.is_floating(kind)
        if (
            not real
            and not pa.types.is_integer(kind)
            and not (reference.function in ("min", "max") and pa.types.is_temporal(kind))
        ):
            raise self.mistake(f"{reference} is of {kind}: DEFINE computes it of integers and doubles", node)
        function = {"min": b.MIN, "max": b.MAX}.get(reference.function, b.SUM)
        self.put(b.REGISTER, self.owner.register(function + real, held, at, counted), counted)
        if reference.function == "avg":
            if not real:
                self.put(b.TO_REAL)
            self.put(b.REGISTER, counted)
            self.put(b.TO_REAL)
            self.put(b.DIVIDE_REAL)

    def negative(self, node: p.Negative) -> None:
        self.operand(node.operand)
        self.put(b.NEGATE_REAL if self.kind(node.operand) == "float" else b.NEGATE)

    def arithmetic(self, node: p.Arithmetic) -> None:
        kinds = {self.kind(node.left), self.kind(node.right)}
        if not kinds <= {"int", "float"}:
            raise self.mistake(f"{node} computes values of several rows that are no integers and no doubles", node)
        real = node.op == "/" or "float" in kinds
        self.operand(node.left, real=real)
        self.operand(node.right, real=real)
        self.put(_ARITHMETIC[node.op] + (0 if not real or node.op == "/" else b.ADD_REAL - b.ADD))

    def function(self, node: p.Function) -> None:
        real = self.kind(node) == "float"
        if node.name == "coalesce":
            for number, argument in enumerate(node.arguments):
                self.operand(argument, real=real)
                if number:
                    self.put(b.COALESCE)
        elif node.name == "abs":
            self.operand(node.arguments[0])
            self.put(b.ABSOLUTE_REAL if real else b.ABSOLUTE)
        else:
            raise self.mistake(f"{node} computes values of several rows", node)

    def case(self, node: p.Case) -> None:
        raise self.mistake(f"{node} computes values of several rows", node)

    def ticks(self, node: p.Ticks) -> None:
        raise self.mistake(f"{node} computes times of several rows", node)

    def call(self, node: p.Call) -> None:
        raise self.mistake(f"{node} is a function of Python, which MATCH_RECOGNIZE does not call", node)


_COMPARISONS = {"=": b.EQUAL, "!=": b.NOT_EQUAL, "<": b.LESS, "<=": b.LESS_EQUAL}
_ARITHMETIC = {"+": b.ADD, "-": b.SUBTRACT, "*": b.MULTIPLY, "%": b.REMAINDER, "div": b.DIVIDE, "/": b.DIVIDE_REAL}

#: What ``compared(whole, real)`` is beside, for each operator.
_SIGN = {"=": 0, "!=": 0, "<": -1, "<=": 0, ">": 1, ">=": 0}
