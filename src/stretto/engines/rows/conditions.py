"""Conditions that read rows of the match so far, as programs (:mod:`stretto.engines.rows.interpreter`).

Whatever a condition makes of one row alone, be it the current one or the last one of a variable, is a column, computed
before; a program only finds the row. So strings, decimals and functions need no code of their own: what is
compared with them stands as ranks.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from stretto.columns.arrays import numbers_of
from stretto.columns.vectorized import mask
from stretto.engines.rows import interpreter as b
from stretto.engines.rows.columns import plain_name
from stretto.engines.rows.history import History, base_of
from stretto.engines.shared.scalar_functions import OF_ONE, OF_TWO
from stretto.errors import QueryError, Span
from stretto.query import predicate as p
from stretto.query import row_pattern as r
from stretto.query.evaluate import value as value_of
from stretto.query.passes.bind_rows import row_types, typed_arguments
from stretto.query.sase import Referred
from stretto.query.typing import kind_of, kind_of_operand, type_of_operand

_E = TypeVar("_E", bound=p.Expression)


class Scope(p.Visitor):
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

    def mistake(
        self, why: str, node: p.Expression, hint: str = "compute it as a column of the input, or ask it of one row"
    ) -> QueryError:
        span = getattr(node, "span", None)
        return QueryError(why, text=self.owner.query.text, span=span if isinstance(span, Span) else None, hint=hint)

    def references(self, node: p.Expression) -> list[r.RowReference]:
        return [self.owner.references[name] for name in p.attributes(node)]

    def one_row(self, node: _E) -> tuple[int, _E] | None:
        """The register of the row that an expression is about, −1 for the current one, and the expression over its columns.

        ``None``: it is about none, or about several.
        """
        found = {name: self._row_of(self.owner.references[name], node) for name in p.attributes(node)}
        known = [one for one in found.values() if one is not None]
        rows = {row for row, _ in known}
        if len(rows) != 1 or len(known) < len(found):
            return None
        values = {name: one for name, (_, one) in zip(found, known, strict=True)}
        plain: _E = p.substituted(node, values)
        return next(iter(rows)), plain

    def _row_of(self, reference: r.RowReference, node: p.Expression) -> tuple[int, p.Operand] | None:
        if isinstance(reference, r.Navigation) and reference.attribute is not None:
            column = p.Attribute(plain_name(reference.attribute, reference.shift))
            base = base_of(reference, self.variable, self.owner.query)
            if base is None:
                return -1, column
            held, side, skip = base
            kind = b.LAST_ROW if side is r.Side.LAST else b.FIRST_ROW
            return self.owner.row_register(kind, held, skip), column
        if getattr(reference, "function", "") == "sum" and pa.types.is_decimal(self.owner.types[str(reference)]):
            hint = "sum up doubles: sum(CAST(x AS double))"
            raise self.mistake(f"{reference} of decimals is computed in MEASURES, not in conditions", node, hint)
        if isinstance(reference, r.Aggregated) and self._chooses(reference):
            shown = self._arguments(reference)[0]
            if not set(p.attributes(shown)) & _OF_ROWS:
                if not p.needed(shown):
                    raise self.mistake(f"{reference} has a value where there is no row", node)
                return self._chosen_row(reference, node), _plain(shown)
        return None

    def load(self, node: p.Expression, row: int, kind: pa.DataType, rank: int = -1) -> None:
        """Put what an expression makes of one row on the stack."""
        if row >= 0 and self.owner.columns.reach(node) != (0, 0):
            self.owner.by_frame = True
        self.put(b.COLUMN, self.owner.columns.number(node, kind, rank), row)

    # -- conditions ---------------------------------------------------------------------------------------------------

    def predicate(self, node: p.Predicate) -> None:
        """Put the truth of a condition on the stack."""
        alone = self.one_row(node)
        if alone is not None:
            row, plain = alone
            self.load(plain, row, pa.bool_())
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
        op = node.op
        left, right = self._reals(node.left, node.right)
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

    def _reals(self, *sides: p.Operand) -> list[p.Operand]:
        """Decimals beside a double become doubles."""
        kinds = [self.kind(side) for side in sides]
        return [
            p.Arithmetic("/", side, p.Constant(1.0)) if kind == "decimal" and "float" in kinds else side
            for side, kind in zip(sides, kinds, strict=True)
        ]

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
        if any(self._is_label(side) for side in sides):
            for side in sides:
                if isinstance(side, p.Constant) and isinstance(side.value, str):
                    self.owner.labels.append(side.value)
                    self.put(b.CONSTANT, self.owner.constant(side.value))
                elif self._is_label(side):
                    self.operand(side)
                else:
                    raise self.mistake("CLASSIFIER is compared with names of variables", node)
            return
        group = self.owner.columns.group(str(node))
        self.owner.columns.spans[group] = getattr(node, "span", None)
        if node.op in ("=", "!="):
            self.owner.columns.equal.add(group)
        for side in sides:
            alone = self.one_row(side)
            if alone is not None:
                self.load(alone[1], alone[0], self.type(side), group)
            elif not p.attributes(side):
                self.load(side, -1, self.type(side), group)
            else:
                raise self.mistake(f"{side} computes values of several rows that are no integers and no doubles", node)

    def _is_label(self, node: p.Operand) -> bool:
        """Whether an operand is a classifier, which has a register for its name."""
        if not isinstance(node, p.Attribute):
            return False
        one = self.owner.references[node.name]
        if isinstance(one, r.Aggregated):
            return self._chooses(one) and self._arguments(one)[0] == p.Attribute(str(r.Classifier()))
        return isinstance(one, r.Navigation) and one.attribute is None

    # -- values -------------------------------------------------------------------------------------------------------

    def kind(self, node: p.Operand) -> str:
        return kind_of_operand(node, self.owner.types)

    def type(self, node: p.Operand) -> pa.DataType:
        """The type of an operand as it is computed here: what is computed of times is a number of ticks."""
        return pa.int64() if self.kind(node) in _TICKS else type_of_operand(node, self.owner.types)

    def operand(self, node: p.Operand, *, real: bool = False) -> None:
        """Put a value on the stack; integers as doubles where ``real``."""
        alone = self.one_row(node)
        if alone is not None:
            row, plain = alone
            self.load(plain, row, self.type(node))
        elif not p.attributes(node):
            self._value(value_of(node, {}), self.type(node))
        else:
            self.visit(node)
        if real and self.kind(node) in ("int", *_TICKS):
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
        reference = self.owner.references[node.name]
        if isinstance(reference, r.MatchNumber):
            self.owner.by_number = True
            self.put(b.MATCH)
        elif isinstance(reference, r.Navigation):
            self.put(b.LABEL, self.owner.label_register(reference))
        else:
            assert isinstance(reference, r.Aggregated)
            self._aggregate(reference, node)

    # -- aggregates ---------------------------------------------------------------------------------------------------

    def _arguments(self, reference: r.Aggregated) -> tuple[p.Operand, ...]:
        return typed_arguments(reference, self.owner.schema)

    def _argument_type(self, argument: p.Operand) -> pa.DataType:
        found = type_of_operand(argument, row_types(self.owner.schema))
        return found.value_type if pa.types.is_dictionary(found) else found

    def _chooses(self, reference: r.Aggregated) -> bool:
        """Whether an aggregate is a value of one of the rows."""
        if reference.function in ("min", "max"):
            return kind_of(self._argument_type(self._arguments(reference)[0])) not in ("int", "float")
        return reference.function in ("min_by", "max_by", "any_value")

    def _chosen_row(self, reference: r.Aggregated, node: p.Expression) -> int:
        """The register of the row that an aggregate chooses."""
        held = self.owner.query.holds(reference.variable)
        key = self._arguments(reference)[-1]
        if str(r.MatchNumber()) in p.attributes(key):
            raise self.mistake(f"{reference} chooses by the number of the match, which is the same in all rows", node)
        kind = {"min": b.LEAST_ROW, "max": b.GREATEST_ROW}.get(reference.function[:3], b.ANY_ROW)
        source = self._known(held, key) if kind == b.ANY_ROW else self._ranked(held, key)
        found = self.owner.register(kind, held, source=source)
        if str(r.Classifier()) in p.attributes(key):  # two rows are compared by what they were taken as, too
            self.owner.depends[found] = (self.owner.label_at(found),)
        return found

    def _sources(self, held: frozenset[str], argument: p.Operand, kind: pa.DataType, **more: int) -> tuple[int, ...]:
        """What rows give an aggregate, by variable: a column, or a program where it reads the number of the match."""
        found = []
        for variable in self.owner.automaton.variables:
            own: p.Operand = p.substituted(argument, {str(r.Classifier()): p.Constant(variable)})
            if variable not in held:
                found.append(b.NOTHING)
            elif str(r.MatchNumber()) not in p.attributes(own):
                found.append(self.owner.columns.number(_plain(own), kind, **more))
            else:
                found.append(b.NOTHING - 1 - self._program(own, variable))
        return tuple(found)

    def _program(self, argument: p.Operand, variable: str) -> int:
        """The number of the program of an argument."""
        names: dict[str, p.Operand] = {}
        for name in p.attributes(argument):
            reference = r.MatchNumber() if name in _OF_ROWS else r.Navigation("", attribute=name)
            names[name] = Referred(str(reference))
            self.owner.references[str(reference)] = reference
            self.owner.types[str(reference)] = row_types(self.owner.schema)[name]
        inside = Scope(self.owner, variable)
        inside.operand(p.substituted(argument, names))
        if inside.code not in self.owner.arguments:
            self.owner.arguments.append(inside.code)
        return self.owner.arguments.index(inside.code)

    def _ranked(self, held: frozenset[str], argument: p.Operand, mark: int = 0) -> tuple[int, ...]:
        """Columns of the ranks of values, or of random words for them."""
        group = self.owner.columns.group(f"of {argument}")
        return self._sources(held, argument, self._argument_type(argument), rank=group, mark=mark)

    def _known(self, held: frozenset[str], argument: p.Operand) -> tuple[int, ...]:
        """Columns, or programs, that are NULL where values are."""
        kind = self._argument_type(argument)
        if kind_of(kind) not in ("int", "float", "bool"):
            kind = pa.int64()
            argument = p.Case((p.IsNull(argument),), (p.NULL, p.Constant(1)))
        return self._sources(held, argument, kind)

    def _aggregate(self, reference: r.Aggregated, node: p.Attribute) -> None:
        held, function = self.owner.query.holds(reference.variable), reference.function
        if not reference.arguments or function == "array_agg":
            count = self.owner.register(b.COUNT, held)
            self.put(b.REGISTER, count, count if reference.arguments else -1)
            return
        if self._chooses(reference):
            if not self._is_label(node):
                raise self.mistake(f"{reference} computes a value of rows of which it chooses one", node)
            self.put(b.LABEL, self.owner.label_at(self._chosen_row(reference, node)))
            return
        (argument,) = self._arguments(reference)
        seen = self._seen(held, argument, node) if reference.distinct else -1
        counted = seen if seen >= 0 else self.owner.register(b.COUNT, held, source=self._known(held, argument))
        if function == "count":
            self.put(b.REGISTER, counted)
        elif function == "count_if":
            source = self._sources(held, argument, pa.bool_())
            self.put(b.REGISTER, self.owner.register(b.SUM, held, counted=counted, source=source))
        else:
            self._computed(function, held, argument, counted, seen)

    def _seen(self, held: frozenset[str], argument: p.Operand, node: p.Attribute) -> int:
        """The register of how many values there are, each once."""
        if str(r.MatchNumber()) in p.attributes(argument):
            raise self.mistake("DISTINCT tells values apart that do not read MATCH_NUMBER()", node)
        seen = self.owner.register(b.SEEN, held, source=self._ranked(held, argument))
        marks = (self._ranked(held, argument, mark) for mark in (1, 2))
        self.owner.depends[seen] = tuple(
            self.owner.register(b.MARK, held, among=seen, source=source) for source in marks
        )
        return seen

    def _computed(self, function: str, held: frozenset[str], argument: p.Operand, counted: int, seen: int) -> None:
        """An aggregate that is computed of the values."""
        kind = self._argument_type(argument)
        deviates = function.startswith(("stddev", "var"))
        real = deviates or not (pa.types.is_integer(kind) or pa.types.is_boolean(kind))
        if real and not pa.types.is_floating(kind):
            kind, argument = pa.float64(), p.Arithmetic("/", argument, p.Constant(1.0))
        given = {"counted": counted, "among": seen, "source": self._sources(held, argument, kind)}
        if not deviates:
            plain = {"min": b.MIN, "max": b.MAX, "bool_and": b.MIN, "bool_or": b.MAX}.get(function, b.SUM)
            self.put(b.REGISTER, self.owner.register(plain + real, held, **given), counted)
            if function == "avg":
                self._over_count(real, counted)
            return
        mean = self.owner.register(b.MEAN, held, **given)
        self.put(b.REGISTER, self.owner.register(b.SQUARES, held, continues=mean, **given), counted)
        self._over_count(True, counted, less=int(function.endswith("_samp")))
        if function.startswith("stddev"):
            self.put(b.OF_ONE, _ONE.index("sqrt"))

    def _over_count(self, real: bool, counted: int, less: int = 0) -> None:
        """Divide what is on the stack by the number of values, less some."""
        if not real:
            self.put(b.TO_REAL)
        self.put(b.REGISTER, counted)
        if less:
            self.put(b.CONSTANT, self.owner.constant(less))
            self.put(b.SUBTRACT)
        self.put(b.TO_REAL)
        self.put(b.DIVIDE_REAL)

    def negative(self, node: p.Negative) -> None:
        self.operand(node.operand)
        self.put(b.NEGATE_REAL if self.kind(node.operand) == "float" else b.NEGATE)

    def arithmetic(self, node: p.Arithmetic) -> None:
        left, right = self._reals(node.left, node.right)
        kinds = {self.kind(left), self.kind(right)}
        if not kinds <= {"int", "float", *_TICKS}:
            raise self.mistake(f"{node} computes values of several rows that are no integers and no doubles", node)
        real = node.op == "/" or "float" in kinds
        self.operand(left, real=real)
        self.operand(right, real=real)
        self.put(_ARITHMETIC[node.op] + (0 if not real or node.op == "/" else b.ADD_REAL - b.ADD))

    def ticks(self, node: p.Ticks) -> None:
        self.visit(node.operand)

    def function(self, node: p.Function) -> None:
        real = self.kind(node) == "float"
        first, *more = node.arguments
        if not (real or self.kind(node) in ("int", *_TICKS)) or self.kind(first) not in ("int", "float", *_TICKS):
            raise self.mistake(f"{node} computes values of several rows", node)
        self.operand(first, real=real)
        if node.name == "round":
            digits = value_of(more[0], {}) if more else 0
            self._value(float(10**digits), pa.float64())
            self.put(b.OF_TWO, _TWO.index("round"))
        elif real and node.name in OF_TWO:
            self.operand(more[0], real=True)
            self.put(b.OF_TWO, _TWO.index(node.name))
        elif real and node.name in OF_ONE:
            self.put(b.OF_ONE, _ONE.index(node.name))
        elif node.name in _OF_INTEGERS:
            self.put(_OF_INTEGERS[node.name])
        elif node.name in _OF_SEVERAL:
            for argument in more:
                self.operand(argument, real=real)
                self.put(_OF_SEVERAL[node.name][real])
        elif node.name != "cast_double":
            raise self.mistake(f"{node} computes values of several rows", node)

    def case(self, node: p.Case) -> None:
        jumps = []
        real = self.kind(node) == "float"
        for condition, chosen in zip(node.conditions, node.values, strict=False):
            self.predicate(condition)
            unless = self._later(b.UNLESS)
            self.operand(chosen, real=real)
            jumps.append(self._later(b.JUMP))
            self._here(unless)
        self.operand(node.values[-1], real=real)
        for jump in jumps:
            self._here(jump)

    def _later(self, op: int) -> int:
        """A jump whose end is not known yet."""
        self.put(op)
        return len(self.code) - 1

    def _here(self, jump: int) -> None:
        self.code[jump] = (self.code[jump][0], len(self.code) - 1 - jump, -1)

    def call(self, node: p.Call) -> None:
        raise self.mistake(f"{node} is a function of Python, which MATCH_RECOGNIZE does not call", node)


#: Kinds of what is computed of times.
_TICKS = ("instant", "duration")

#: Functions that have a step of their own: of an integer, and of several integers or doubles.
_OF_INTEGERS = {"abs": b.ABSOLUTE, "sign": b.SIGN}
_OF_SEVERAL = {
    "coalesce": (b.COALESCE, b.COALESCE),
    "least": (b.LEAST, b.LEAST_REAL),
    "greatest": (b.GREATEST, b.GREATEST_REAL),
}
#: Functions of a double, and of two, by their places in the interpreter.
_ONE, _TWO = list(OF_ONE), list(OF_TWO)

#: What an aggregate may read of a row besides its columns.
_OF_ROWS = frozenset((str(r.Classifier()), str(r.MatchNumber())))


def _plain(expression: _E) -> _E:
    """An expression over the columns of a row, by their :func:`plain_name`."""
    return p.renamed(expression, {name: plain_name(name) for name in p.attributes(expression)})


_COMPARISONS = {"=": b.EQUAL, "!=": b.NOT_EQUAL, "<": b.LESS, "<=": b.LESS_EQUAL}
_ARITHMETIC = {"+": b.ADD, "-": b.SUBTRACT, "*": b.MULTIPLY, "%": b.REMAINDER, "div": b.DIVIDE, "/": b.DIVIDE_REAL}

#: What ``compared(whole, real)`` is beside, for each operator.
_SIGN = {"=": 0, "!=": 0, "<": -1, "<=": 0, ">": 1, ">=": 0}
