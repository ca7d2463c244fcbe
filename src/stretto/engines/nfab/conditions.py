"""Conditions between events as scalar code for the kernel (SASE+ paper, section 5.2.1; compiled by Numba).

A query becomes one function ``theta(edge, run, row, node, other, K, V, C, P)`` that says 1 or 0: does the edge's condition hold for
a run (a row of V) with an event (a row of C)? For negations and for conditions on every ``a[i]`` the rows ``node`` and ``other``
of P stand for the negated event and for ``a[i]``. K is the address of the constants, so that queries which differ in these only have
one function, which is compiled once.

The function is made as a syntax tree whose names and indexes are this module's own.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from stretto.automata.nfab import Edge, Kind, Nfab, own_index
from stretto.engines.shared.scalar_code import Code, Lifted, ScalarCode, Test, function_of, joined
from stretto.engines.shared.scalar_code import all_of as _all
from stretto.engines.shared.scalar_code import call as _call
from stretto.engines.shared.scalar_code import cell as _word
from stretto.engines.shared.scalar_code import name as _name
from stretto.engines.shared.values import Column, Op, Values, column_for, computed_column, decimal_columns, op_of
from stretto.query import predicate as p
from stretto.query.sase import Aggregate, Element, Index, Kept, Length, Range, Reference, kept

_E = TypeVar("_E", bound=p.Expression)

PARAMETERS = ("edge", "run", "row", "node", "other", "K", "V", "C", "P")


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
        #: What they compare and compute with.
        self.constants = Lifted(lambda at: _call("word_at", _name("K"), ast.Constant(at)))
        #: By edge: the slots that its code reads.
        self.reads: list[set[int]] = []
        self.reading: set[int] = set()
        #: The variables and attributes whose sums conditions read.
        self.summed = {(one.variable, one.attribute) for one in self._aggregates() if one.function == "sum"}
        plain = self.query.parsed.pattern is None
        #: The components of which one is the first of a match, and the slot of each that another's condition asks for.
        self.firsts = [0] if plain else sorted({nfab.places.component[step.place] for step in nfab.places.first})
        self.held = {} if plain else {number: self._noted(number, Op.HELD) for number in self._lacking()}
        self.rounds = {
            number: self._noted(number, Op.ROUND) for number in range(len(nfab.pairs)) if self._counts(number)
        }
        self.ended = {one.of: self._noted(one.of, Op.ENDED) for one in nfab.endings}
        for number, pair in enumerate(nfab.pairs):
            variable = pair.component.variable
            self._add(pair.begin, variable, tests_key=True, first=plain and number == 0)
            self._add(pair.take, variable, tests_key=True)
            self._add(pair.proceed, variable, tests_key=False)
        for negation in nfab.negations:
            self._add(negation.edge, negation.component.variable, tests_key=True)
        for leave in nfab.leaves:
            self._add(leave, "", tests_key=False)
        for ending in nfab.endings:
            self._add(ending.edge, ending.component.variable, tests_key=True)

    def _noted(self, component: int, op: Op) -> int:
        return self.values.slot(component, op, 0)

    def _lacking(self) -> list[int]:
        """The components of which a run must know whether it has one: those that a match may lack, and those that come again."""
        names = () if self.query.condition is None else p.attributes(self.query.condition)
        lacking = {self.query.parsed.references[name].variable for name in names} & self.query.parsed.optional
        found = [(number, pair.component) for number, pair in enumerate(self.nfab.pairs)]
        return [number for number, one in found if one.variable in lacking or one.again]

    def _counts(self, number: int) -> bool:
        one = self.nfab.pairs[number].component
        return one.again and one.kleene and (one.least > 1 or one.most is not None)

    def _add(self, edge: Edge | None, variable: str, *, tests_key: bool, first: bool = False) -> None:
        self.reading = set()
        each: list[tuple[int, ast.expr]] = []
        tests: list[ast.expr] = []
        if edge is not None:
            scope = _Scope(self, edge.kind, variable, None)
            if tests_key and self.query.partition_by and not self.nfab.partitioned:
                tests.append(scope.same_key(first=first))
            if edge.related:
                tests.append(scope.predicate(p.And(edge.related)))
            each = [
                (self.numbers[name], _Scope(self, edge.kind, variable, name).predicate(p.And((one,))))
                for name, one in edge.each
            ]
        self.codes.append(_all(tests) if tests else None)
        self.each.append(each)
        self.reads.append(self.reading)

    def _aggregates(self) -> list[Aggregate]:
        """The aggregates that conditions read."""
        condition, references = self.query.condition, self.query.parsed.references
        names = () if condition is None else p.attributes(condition)
        return [one for name in names if isinstance(one := references[name], Aggregate)]

    def slot(self, component: int, op: Op, column: int) -> int:
        """A slot that is being read."""
        found = self.values.slot(component, op, column)
        self.reading.add(found)
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
        return function_of("theta", PARAMETERS, body)


class _Scope(ScalarCode):
    """Compiles the conjuncts of one edge: what each reference stands for there."""

    def __init__(self, owner: Conditions, kind: Kind, variable: str, each: str | None) -> None:
        super().__init__(owner.functions, "V", owner.query.parsed.text)
        self.owner = owner
        self.kind = kind
        self.variable = variable
        self.each = each
        self.of_negation = variable in owner.negated
        parsed = owner.query.parsed
        component = next((one for one in (*parsed.components, *parsed.endings) if one.variable == variable), None)
        self.own = None if component is None else own_index(kind, component)

    # -- references ---------------------------------------------------------------------------------------------------

    def same_key(self, *, first: bool) -> ast.expr:
        """The event has the key of the first one: equivalence tests where they do not split the stream."""
        column = self.owner.values.column(Column(kind="key"))
        own = self._own(column)
        if first:
            return _all(own.known)
        tests = list(own.known)
        for component in self.owner.firsts:
            slot = self.owner.slot(component, Op.FIRST, column)
            equal = ast.Compare(own.value, [ast.Eq()], [_word("V", "run", slot)])
            known = _call("holds", _word("V", "run", 0), ast.Constant(slot))
            if self.owner.query.parsed.pattern is None:
                tests += [known, equal]
            else:
                tests.append(ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.Not(), known), equal]))
        return _all(tests)

    def _own(self, column: int) -> Code:
        """A column of the edge's own event."""
        return self._of_row(column, *(("P", "node") if self.of_negation else ("C", "row")))

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
        mine = reference.variable == self.variable and self.kind is not Kind.PROCEED
        if mine and reference.index in (self.own, Index.EACH):
            return self._own(column)
        if reference.variable == self.each and reference.index is Index.EACH:
            return self._of_row(column, "P", "other")
        (end,) = kept(reference)
        return self._slot(self.owner.numbers[reference.variable], op_of(end), column)

    def type_of(self, attribute: str) -> pa.DataType:
        return self.owner.query.compared[attribute]

    def reference(self, attribute: str) -> Code:
        owner = self.owner
        reference: Reference = owner.query.parsed.references[attribute]
        if isinstance(reference, Element):
            kind = owner.query.schema.attributes[reference.attribute]
            if self.exact and pa.types.is_decimal(kind):
                columns = decimal_columns(reference.attribute, kind)
                return self.decimal([self.element(reference, owner.values.column(one)) for one in columns], kind)
            return self.element(reference, owner.values.column(column_for(reference.attribute, kind)))
        if isinstance(reference, Length) or reference.attribute is None:
            return self._length(reference)
        return self._aggregate(reference, reference.attribute)

    def _length(self, reference: Length | Aggregate) -> Code:
        length = self._slot(self.owner.numbers[reference.variable], Op.LENGTH, 0, always=True)
        if isinstance(reference, Length) or reference.range is not Range.UP_TO:
            return length
        return Code(ast.BinOp(length.value, ast.Add(), ast.Constant(1)), (), "int")

    def _aggregate(self, reference: Aggregate, attribute: str) -> Code:
        owner, (what, *counted) = self.owner, kept(reference)
        component, kind = owner.numbers[reference.variable], owner.query.schema.attributes[attribute]
        described = column_for(attribute, kind)
        exact = self.exact and pa.types.is_decimal(kind) and what in (Kept.MIN, Kept.MAX)
        if exact:
            (described,) = decimal_columns(attribute, kind)
        column, real = owner.values.column(described), described.real
        own = self._own(column) if reference.range is Range.UP_TO else None
        if what is Kept.COUNT:
            return self._count(component, column, own)
        if described.kind == "string" and what in (Kept.MIN, Kept.MAX):
            owner.orders_strings = True
        if counted and not real:
            return self._mean(reference, component, column, own)
        found = self._joined(self._slot(component, op_of(what, real), column), own, what)
        if not counted:
            return self.decimal([found], kind) if exact else found
        count = self._count(component, column, own)
        mean = ast.BinOp(_call("float", found.value), ast.Div(), _call("float", count.value))
        return Code(mean, found.known, "float")

    def _mean(self, reference: Aggregate, component: int, column: int, own: Code | None) -> Code:
        """An average of integers: of their sum in 128 bits, unless a condition reads the sum, which is an error beyond 64."""
        zero: ast.expr = ast.Constant(0)
        if (reference.variable, reference.attribute) in self.owner.summed:
            total, carry = self._slot(component, Op.SUM, column), zero
        else:
            total = self._slot(component, Op.WIDE_SUM, column)
            carry = self._slot(component, Op.CARRY, column, always=True).value
        count = self._count(component, column, own)
        more, known = zero, total.known
        if own is not None:
            here = _all(own.known)
            more = ast.IfExp(here, own.value, zero)
            known = (ast.BoolOp(ast.Or(), [here, _all(total.known)]),)
        return Code(_call("mean", total.value, carry, more, count.value), known, "float")

    def _count(self, component: int, column: int, own: Code | None) -> Code:
        before = self._slot(component, Op.COUNT, column, always=True)
        if own is None:
            return before
        more = ast.IfExp(_all(own.known), ast.Constant(1), ast.Constant(0))
        return Code(ast.BinOp(before.value, ast.Add(), more), (), "int")

    def _joined(self, before: Code, own: Code | None, what: Kept) -> Code:
        """An aggregate over the events before, with the event at hand where it counts."""
        if own is None:
            return before
        if what is not Kept.SUM:
            name = {Kept.MIN: "least", Kept.MAX: "greatest"}[what] if before.kind == "float" else str(what)
            both = _call(name, before.value, own.value)
        elif before.kind == "float":
            both = ast.BinOp(before.value, ast.Add(), own.value)
        else:
            both = _call("added", before.value, own.value, _name("V"))
        here, earlier = _all(own.known), _all(before.known)
        value = ast.IfExp(here, ast.IfExp(earlier, both, own.value), before.value)
        return Code(value, (ast.BoolOp(ast.Or(), [here, earlier]),), before.kind, before.per_second)

    def all_of(self, node: p.And) -> Test:
        return joined([self._if_there(part) for part in node.parts], ast.And())

    def _if_there(self, conjunct: p.Predicate) -> Test:
        """A conjunct, which says nothing where a variable that it names is missing."""
        owner, references = self.owner, self.owner.query.parsed.references
        named = {references[name].variable for name in p.attributes(conjunct)} & owner.query.parsed.optional
        if self.kind is not Kind.PROCEED:
            named -= {self.variable}
        absent = []
        for variable in sorted(named):
            slot = owner.held[owner.numbers[variable]]
            owner.reading.add(slot)
            held = _call("holds", _word("V", "run", 0), ast.Constant(slot))
            absent.append(Test(ast.UnaryOp(ast.Not(), held)))
        return joined([*absent, self.judged(conjunct)], ast.Or()) if absent else self.judged(conjunct)

    # -- predicates ---------------------------------------------------------------------------------------------------

    def atom(self, node: p.Predicate) -> ast.expr | None:
        """A condition on one event alone, tested column-wise when that event comes."""
        alone = self._alone(node)
        if alone is None or isinstance(node, p.And | p.Or | p.Not) or p.calls(node):
            return None
        return self.element(alone[0], self.owner.values.column(Column(atom=alone[1]))).value

    def of_one_event(self, node: p.Function) -> Code | None:
        alone = self._alone(node)
        return None if alone is None else self.element(alone[0], self.owner.values.column(computed_column(alone[1])))

    def _alone(self, node: _E) -> tuple[Element, _E] | None:
        """The element that an expression is about, and the expression over its plain attributes; ``None``: it is about several."""
        names = list(p.attributes(node))
        references = [self.owner.query.parsed.references[name] for name in names]
        elements = [one for one in references if isinstance(one, Element)]
        if not elements or len(elements) < len(references) or len({(e.variable, e.index) for e in elements}) > 1:
            return None
        return elements[0], p.renamed(node, {name: one.attribute for name, one in zip(names, elements, strict=True)})

    def lifted(self, constant: Code) -> Code:
        return self.owner.constants.of(constant)

    def string(self, value: str, node: p.Constant) -> Code:
        """A word that every event has."""
        column = self.owner.values.column(Column(kind="string", value=replace(node, span=None)))
        return replace(self._own(column), known=())

    def strings(self, op: str, node: p.Predicate) -> None:
        if op not in ("=", "!="):
            self.owner.orders_strings = True
