"""Conditions between events as scalar code for the kernel (SASE+ paper, section 5.2.1; compiled by Numba).

A query becomes one function ``theta(edge, run, row, node, other, V, C, P)`` that says 1 or 0: does the edge's condition hold for
a run (a row of V) with an event (a row of C)? For negations and for conditions on every ``a[i]`` the rows ``node`` and ``other``
of P stand for the negated event and for ``a[i]``.

The function is made as a syntax tree whose names and indexes are this module's own; of the query it holds numbers only.
"""

from __future__ import annotations

import ast
import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from stretto import functions
from stretto.automata.nfab import Edge, Kind, Nfab, own_index
from stretto.engines.nfab.values import Column, Op, Values, column_for
from stretto.errors import QueryError
from stretto.pattern import predicate as p
from stretto.pattern.evaluate import holds
from stretto.pattern.passes.plain import renamed
from stretto.pattern.sase import Aggregate, Element, Index, Length, Range, Reference

__all__ = ["Code", "Conditions"]

PARAMETERS = ("edge", "run", "row", "node", "other", "V", "C", "P")

_OPERATORS: dict[str, type[ast.cmpop]] = {
    "=": ast.Eq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

#: What ``compared(whole, real)`` may give for each operator; 2 is beside NaN.
_SIGNS = {"=": (0,), "!=": (-1, 1, 2), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}


@dataclass(frozen=True)
class Code:
    """An expression: its value, the tests that say whether it is known, and what kind of word it is."""

    value: ast.expr
    known: tuple[ast.expr, ...]
    kind: str
    per_second: int = 0


def _name(text: str) -> ast.expr:
    return ast.Name(text, ast.Load())


def _number(value: int | float) -> ast.expr:
    if value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def _call(function: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(_name(function), list(arguments), [])


def _word(array: str, row: str, at: int) -> ast.expr:
    return ast.Subscript(_name(array), ast.Tuple([_name(row), ast.Constant(at)], ast.Load()), ast.Load())


def _all(tests: tuple[ast.expr, ...] | list[ast.expr]) -> ast.expr:
    """The conjunction, each test once."""
    once = list({ast.dump(test): test for test in tests}.values())
    if not once:
        return ast.Constant(True)
    return once[0] if len(once) == 1 else ast.BoolOp(ast.And(), once)


class Conditions:
    """The code of a query's edges, and the columns and slots that it reads.

    Parameters
    ----------
    nfab
        The automaton.
    """

    def __init__(self, nfab: Nfab) -> None:
        self.nfab = nfab
        self.query = nfab.query
        self.values = Values()
        #: Whether strings of different events are compared with < and the like, so that their words must be in order.
        self.orders_strings = False
        self.numbers = {pair.component.variable: at for at, pair in enumerate(nfab.pairs)}
        self.negated = {one.component.variable for one in nfab.negations}
        #: By edge of the kernel: what it asks, as an expression; and for every ``a[i]``: (variable's number, expression).
        self.codes: list[ast.expr | None] = []
        self.each: list[list[tuple[int, ast.expr]]] = []
        #: Registered functions that conditions call, by their names in the code.
        self.functions: dict[str, Any] = {}
        #: By edge: the slots that its code reads.
        self.reads: list[set[int]] = []
        self._reading: set[int] = set()
        for number, pair in enumerate(nfab.pairs):
            variable = pair.component.variable
            self._add(pair.begin, variable, tests_key=True, first=number == 0)
            self._add(pair.take, variable, tests_key=True)
            self._add(pair.proceed, variable, tests_key=False)
        for negation in nfab.negations:
            self._add(negation.edge, negation.component.variable, tests_key=True)

    def _add(self, edge: Edge | None, variable: str, *, tests_key: bool, first: bool = False) -> None:
        self._reading = set()
        each: list[tuple[int, ast.expr]] = []
        tests: list[ast.expr] = []
        if edge is not None:
            scope = _Scope(self, edge.kind, variable, None)
            if tests_key and self.query.partition_by and not self.nfab.partitioned:
                tests.append(scope.same_key(first=first))
            tests += [scope.predicate(one) for one in edge.related]
            each = [
                (self.numbers[name], _Scope(self, edge.kind, variable, name).predicate(one)) for name, one in edge.each
            ]
        self.codes.append(_all(tests) if tests else None)
        self.each.append(each)
        self.reads.append(self._reading)

    def slot(self, component: int, op: Op, column: int) -> int:
        """A slot that is being read."""
        found = self.values.slot(component, op, column)
        self._reading.add(found)
        return found

    def function(self) -> ast.FunctionDef:
        """``theta`` as a syntax tree: first the edges, then the conditions on every ``a[i]``, numbered on."""
        codes = [*self.codes, *(code for each in self.each for _, code in each)]
        body: list[ast.stmt] = []
        for number, code in enumerate(codes):
            if code is not None:
                found = ast.Return(ast.IfExp(code, ast.Constant(1), ast.Constant(0)))
                body.append(ast.If(ast.Compare(_name("edge"), [ast.Eq()], [ast.Constant(number)]), [found], []))
        body.append(ast.Return(ast.Constant(1)))
        arguments = ast.arguments([], [ast.arg(name) for name in PARAMETERS], None, [], [], None, [])
        return ast.FunctionDef("theta", arguments, body, [], None, None)


class _Scope:
    """Compiles the conjuncts of one edge: what each reference stands for there."""

    def __init__(self, owner: Conditions, kind: Kind, variable: str, each: str | None) -> None:
        self.owner = owner
        self.kind = kind
        self.variable = variable
        self.each = each
        self.negative = variable in owner.negated
        component = next(one for one in owner.query.parsed.components if one.variable == variable)
        self.own = own_index(kind, component)

    # -- references ---------------------------------------------------------------------------------------------------

    def same_key(self, *, first: bool) -> ast.expr:
        """The event has the key of the first one: equivalence tests where they do not split the stream."""
        column = self.owner.values.column(Column(kind="key"))
        own = self._own(column)
        if first:
            return _all(own.known)
        slot = self.owner.slot(0, Op.FIRST, column)
        equal = ast.Compare(own.value, [ast.Eq()], [_word("V", "run", slot)])
        return _all([*own.known, _call("holds", _word("V", "run", 0), ast.Constant(slot)), equal])

    def _own(self, column: int) -> Code:
        """A column of the edge's own event."""
        return self._of_row(column, *(("P", "node") if self.negative else ("C", "row")))

    def _of_row(self, column: int, array: str, row: str) -> Code:
        what = self.owner.values.columns[column - 1]
        word = _word(array, row, column)
        known = _call("holds", _word(array, row, 0), ast.Constant(column))
        return Code(_call("real", word) if what.real else word, (known,), what.kind, what.per_second)

    def _slot(self, component: int, op: Op, column: int, *, always: bool = False) -> Code:
        what = self.owner.values.columns[column - 1] if column else Column()
        slot = self.owner.slot(component, op, column)
        word = _word("V", "run", slot)
        real = op in (Op.SUM_REAL, Op.MIN_REAL, Op.MAX_REAL) or (op in (Op.FIRST, Op.LAST) and what.real)
        known = () if always else (_call("holds", _word("V", "run", 0), ast.Constant(slot)),)
        kind = "int" if op in (Op.LENGTH, Op.COUNT) else "float" if real else what.kind
        return Code(_call("real", word) if real else word, known, kind, what.per_second)

    def element(self, reference: Element, column: int) -> Code:
        """A column of the event that a reference names."""
        if reference.variable == self.variable and self.kind is not Kind.PROCEED and reference.index is self.own:
            return self._own(column)
        if reference.variable == self.each and reference.index is Index.EACH:
            return self._of_row(column, "P", "other")
        first = reference.index in (Index.ONLY, Index.FIRST)
        return self._slot(self.owner.numbers[reference.variable], Op.FIRST if first else Op.LAST, column)

    def reference(self, reference: Reference) -> Code:
        owner = self.owner
        if isinstance(reference, Element):
            kind = owner.query.schema.attributes[reference.attribute]
            return self.element(reference, owner.values.column(column_for(reference.attribute, kind)))
        component = owner.numbers[reference.variable]
        if isinstance(reference, Length):
            return self._slot(component, Op.LENGTH, 0, always=True)
        return self._aggregate(reference, component)

    def _aggregate(self, reference: Aggregate, component: int) -> Code:
        owner = self.owner
        if reference.attribute is None:
            length = self._slot(component, Op.LENGTH, 0, always=True)
            if reference.range is Range.UP_TO:
                return Code(ast.BinOp(length.value, ast.Add(), ast.Constant(1)), (), "int")
            return length
        described = column_for(reference.attribute, owner.query.schema.attributes[reference.attribute])
        column = owner.values.column(described)
        real = described.real
        own = self._own(column) if reference.range is Range.UP_TO else None
        if reference.function == "count":
            return self._count(component, column, own)
        if reference.function in ("min", "max"):
            op = {
                ("min", False): Op.MIN,
                ("min", True): Op.MIN_REAL,
                ("max", False): Op.MAX,
                ("max", True): Op.MAX_REAL,
            }
            return self._joined(self._slot(component, op[reference.function, real], column), own, reference.function)
        total = self._joined(self._slot(component, Op.SUM_REAL if real else Op.SUM, column), own, "sum")
        if reference.function == "sum":
            return total
        count = self._count(component, column, own)
        mean = ast.BinOp(_call("float", total.value), ast.Div(), _call("float", count.value))
        return Code(mean, total.known, "float")

    def _count(self, component: int, column: int, own: Code | None) -> Code:
        before = self._slot(component, Op.COUNT, column, always=True)
        if own is None:
            return before
        more = ast.IfExp(_all(own.known), ast.Constant(1), ast.Constant(0))
        return Code(ast.BinOp(before.value, ast.Add(), more), (), "int")

    def _joined(self, before: Code, own: Code | None, function: str) -> Code:
        """An aggregate over the events before, with the event at hand where it counts."""
        if own is None:
            return before
        if function != "sum":
            name = {"min": "least", "max": "greatest"}[function] if before.kind == "float" else function
            both = _call(name, before.value, own.value)
        elif before.kind == "float":
            both = ast.BinOp(before.value, ast.Add(), own.value)
        else:
            both = _call("added", before.value, own.value, _name("V"))
        here, earlier = _all(own.known), _all(before.known)
        value = ast.IfExp(here, ast.IfExp(earlier, both, own.value), before.value)
        return Code(value, (ast.BoolOp(ast.Or(), [here, earlier]),), before.kind, before.per_second)

    # -- predicates ---------------------------------------------------------------------------------------------------

    def predicate(self, node: p.Predicate) -> ast.expr:
        """A condition as an expression that is true or false."""
        if not p.attributes(node):
            return ast.Constant(holds(node, {}))
        atom = self._atom(node)
        if atom is not None:
            return atom
        match node:
            case p.And(parts):
                return ast.BoolOp(ast.And(), [self.predicate(part) for part in parts])
            case p.Or(parts):
                return ast.BoolOp(ast.Or(), [self.predicate(part) for part in parts])
            case p.Not(part):
                return ast.UnaryOp(ast.Not(), self.predicate(part))
            case p.Comparison(op, left, right):
                return self.compare(op, self.operand(left), self.operand(right))
            case p.In(operand, values):
                own = self.operand(operand)
                tests = [self.compare("=", own, self.operand(value)) for value in values]
                return ast.BoolOp(ast.Or(), tests) if len(tests) > 1 else tests[0]
            case p.Between(operand, low, high):
                own = self.operand(operand)
                tests = [self.compare(op, own, self.operand(side)) for op, side in ((">=", low), ("<=", high))]
                return ast.BoolOp(ast.And(), tests)
            case p.IsNull(operand):
                return ast.UnaryOp(ast.Not(), _all(self.operand(operand).known))
            case p.Like():
                raise self.mistake("LIKE tests an attribute of one event", node)
        raise AssertionError(node)

    def _atom(self, node: p.Predicate) -> ast.expr | None:
        """A condition on one event alone, tested column-wise when that event comes; ``None`` if it is not one."""
        names = list(p.attributes(node))
        references = [self.owner.query.parsed.references[name] for name in names]
        elements = [one for one in references if isinstance(one, Element)]
        if not elements or len(elements) < len(references) or len({(e.variable, e.index) for e in elements}) > 1:
            return None
        if isinstance(node, p.And | p.Or | p.Not) or p.calls(node):
            return None
        alone = renamed(node, {name: one.attribute for name, one in zip(names, elements, strict=True)})
        found = self.element(elements[0], self.owner.values.column(Column(atom=alone)))
        return ast.Compare(found.value, [ast.Eq()], [ast.Constant(1)])

    def compare(self, op: str, left: Code, right: Code) -> ast.expr:
        """``left op right``; false where one of them is not known."""
        known = [*left.known, *right.known]
        if left.kind == "string" and op not in ("=", "!="):
            self.owner.orders_strings = True
        if left.kind == "time":
            left, right = self._one_unit(left, right)
        if (left.kind == "float") != (right.kind == "float"):
            if left.kind == "float":
                left, right, op = right, left, _FLIPPED[op]
            sign = _call("compared", left.value, right.value)
            tests: list[ast.expr] = [ast.Compare(sign, [ast.Eq()], [_number(one)]) for one in _SIGNS[op]]
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        else:
            test = ast.Compare(left.value, [_OPERATORS[op]()], [right.value])
        return _all([*known, test])

    def _one_unit(self, left: Code, right: Code) -> tuple[Code, Code]:
        """Two times in the finer of their units."""
        finest = max(left.per_second, right.per_second)
        return self._in_unit(left, finest), self._in_unit(right, finest)

    def _in_unit(self, time: Code, per_second: int) -> Code:
        if time.per_second == per_second:
            return time
        factor = ast.Constant(per_second // time.per_second)
        return Code(_call("multiplied", time.value, factor, _name("V")), time.known, "time", per_second)

    # -- values -------------------------------------------------------------------------------------------------------

    def operand(self, node: p.Operand) -> Code:
        """A value as an expression."""
        match node:
            case p.Attribute(name):
                return self.reference(self.owner.query.parsed.references[name])
            case p.Constant(value):
                return self._constant(value)
            case p.Negative(inner):
                own = self.operand(inner)
                if own.kind == "float":
                    return Code(ast.UnaryOp(ast.USub(), own.value), own.known, "float")
                return Code(_call("negated", own.value, _name("V")), own.known, "int")
            case p.Call(name, arguments):
                return self._call(name, [self.operand(argument) for argument in arguments])
            case p.Arithmetic(op, left, right):
                return self._arithmetic(op, self.operand(left), self.operand(right))

    def _call(self, name: str, arguments: list[Code]) -> Code:
        """A registered function, by a name of this module's own."""
        function = functions.known()[name]
        kinds = tuple(one.kind for one in arguments)
        own = f"user_{len(self.owner.functions)}"
        self.owner.functions[own] = function.compiled
        given = [
            ast.Compare(one.value, [ast.NotEq()], [ast.Constant(0)]) if one.kind == "bool" else one.value
            for one in arguments
        ]
        known = tuple(test for one in arguments for test in one.known)
        kind = function.result(kinds)
        value = _call(own, *given)
        return Code(ast.IfExp(value, ast.Constant(1), ast.Constant(0)) if kind == "bool" else value, known, kind)

    def _constant(self, value: Any) -> Code:
        if isinstance(value, bool):
            return Code(ast.Constant(int(value)), (), "bool")
        if isinstance(value, int):
            return Code(_number(value), (), "int")
        if isinstance(value, dt.date):
            micros = pa.scalar(
                value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
            )
            return Code(_number(micros.cast(pa.timestamp("us", tz=micros.type.tz)).value), (), "time", 10**6)
        return Code(_number(float(value)) if isinstance(value, float | Decimal) else _number(value), (), "float")

    def _arithmetic(self, op: str, left: Code, right: Code) -> Code:
        known = (*left.known, *right.known)
        if op in "/%":
            known = (*known, ast.Compare(right.value, [ast.NotEq()], [ast.Constant(0)]))
        if op == "/" or "float" in (left.kind, right.kind):
            first, second = (one.value if one.kind == "float" else _call("float", one.value) for one in (left, right))
            if op == "%":
                return Code(_call("remainder_real", first, second), known, "float")
            operators: dict[str, ast.operator] = {"+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div()}
            return Code(ast.BinOp(first, operators[op], second), known, "float")
        if op == "%":
            return Code(_call("remainder", left.value, right.value), known, "int")
        function = {"+": "added", "-": "subtracted", "*": "multiplied"}[op]
        return Code(_call(function, left.value, right.value, _name("V")), known, "int")

    def mistake(self, message: str, node: p.Predicate) -> QueryError:
        spans = [span for span in p.attributes(node).values() if span is not None]
        return QueryError(message, text=self.owner.query.parsed.text, span=spans[0] if spans else None)
