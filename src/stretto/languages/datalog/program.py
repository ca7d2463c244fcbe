"""A program against the relations that it reads: names, arities, aggregates, and the groups of relations that recur together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from stretto.errors import QueryError, Span, placed, suggestion
from stretto.languages.datalog.endings import ending
from stretto.languages.datalog.ordering import Ordered, ordered
from stretto.languages.datalog.strata import stratified
from stretto.languages.datalog.tree import Aggregate, Atom, Goal, Head, Literal, Program, Rule, bare
from stretto.languages.datalog.types import Row, inferred, settled
from stretto.query import functions
from stretto.query import predicate as p


@dataclass(frozen=True)
class Relation:
    """A relation that rules derive, with its columns."""

    name: str
    rules: tuple[Ordered, ...]
    row: Row


@dataclass(frozen=True)
class Group:
    """Relations that depend on each other; ``ending`` says why their recursion ends (``None``: there is none)."""

    relations: tuple[Relation, ...]
    ending: str | None = None

    @property
    def recursive(self) -> bool:
        return self.ending is not None


@dataclass(frozen=True)
class Checked:
    """A program whose groups come in an order in which each reads those before it."""

    program: Program
    groups: tuple[Group, ...]


def checked(program: Program, sources: Mapping[str, Mapping[str, pa.DataType]], bound: int | None = None) -> Checked:
    """Check a program against its sources, and order it.

    Parameters
    ----------
    program
        As the parser gave it.
    sources
        The relations that come from outside with their columns, in order.
    bound
        How often anything may go around a recursion; ``None``: it has to end by itself.

    Raises
    ------
    QueryError
        With the place and, where there is one, a suggestion.

    Examples
    --------
    >>> from stretto.languages.datalog.parser import read_program
    >>> found = checked(read_program("far(X) :- road(X, _, C), C > 9."), {"road": dict.fromkeys("abc", pa.int64())})
    >>> found.groups[0].relations[0].row
    {'x': DataType(int64)}
    """
    with placed(program.text):
        heads: dict[str, list[Rule]] = {}
        for rule in program.rules:
            _check_head(rule.head, heads, sources, program)
            heads.setdefault(rule.head.name, []).append(rule)
        arities = {name: len(row) for name, row in sources.items()}
        arities |= {name: len(rules[0].head.arguments) for name, rules in heads.items()}
        orders = {
            name: tuple(ordered(_resolved(rule, arities, heads, sources, program)) for rule in rules)
            for name, rules in heads.items()
        }
        groups = stratified(orders)
        rows = inferred(orders, groups, sources, program)
        known = {**sources, **rows}
        orders = {name: tuple(settled(rule, known) for rule in rules) for name, rules in orders.items()}
        made = [
            Group(
                tuple(Relation(name, orders[name], rows[name]) for name in group.names),
                ending(group.names, orders, known, bound) if group.recursive else None,
            )
            for group in groups
        ]
        return Checked(program, tuple(made))


def _check_head(
    head: Head, heads: Mapping[str, list[Rule]], sources: Mapping[str, Mapping[str, pa.DataType]], program: Program
) -> None:
    if head.name in sources:
        hint = f"derive a relation of another name: {head.name}_2(…) :- {head.name}(…)."
        raise QueryError(f"'{head.name}' is a source, and rules cannot add to it", span=head.name_span, hint=hint)
    if head.name not in heads:
        return
    first = heads[head.name][0]
    where = f"line {program.line(first)}: {first.head}"
    if len(first.head.arguments) != len(head.arguments):
        here, there = len(head.arguments), len(first.head.arguments)
        message = f"'{head.name}' has {_columns(here)} here and {there} in its first rule"
        raise QueryError(message, span=head.span, hint=where)
    for one, other in zip(head.arguments, first.head.arguments, strict=True):
        mine, its = _function(one), _function(other)
        if mine != its:
            message = (
                f"the rules of '{head.name}' aggregate differently: {_said(one)} here, {_said(other)} in the first"
            )
            span = one.span or head.span
            raise QueryError(message, span=span, hint=where)


def _function(argument: p.Operand | Aggregate) -> str | None:
    return argument.function if isinstance(argument, Aggregate) else None


def _said(argument: p.Operand | Aggregate) -> str:
    return str(argument) if isinstance(argument, Aggregate) else bare(argument)


def _columns(number: int) -> str:
    return f"{number} column" if number == 1 else f"{number} columns"


def _resolved(
    rule: Rule,
    arities: Mapping[str, int],
    heads: Mapping[str, list[Rule]],
    sources: Mapping[str, Mapping[str, pa.DataType]],
    program: Program,
) -> Rule:
    """The rule with known relations in its goals; a call of a registered function that stands alone is a condition."""
    body: list[Goal] = []
    for goal in rule.body:
        if not isinstance(goal, Literal):
            body.append(goal)
            continue
        atom = goal.atom
        if atom.name in arities:
            _check_atom(atom, arities, heads, sources, program)
            body.append(goal)
            continue
        if atom.name in functions.known():
            call = p.Call(atom.name, atom.arguments, atom.span)
            body.append(p.Comparison("!=" if goal.negated else "=", call, p.Constant(True), goal.span))
            continue
        span = _name_span(atom)
        hint = suggestion(atom.name, arities, kind="relation")
        raise QueryError(f"unknown relation '{atom.name}'", span=span, hint=hint)
    return replace(rule, body=tuple(body))


def _check_atom(
    atom: Atom,
    arities: Mapping[str, int],
    heads: Mapping[str, list[Rule]],
    sources: Mapping[str, Mapping[str, pa.DataType]],
    program: Program,
) -> None:
    if len(atom.arguments) != arities[atom.name]:
        if atom.name in sources:
            hint = f"its columns are {', '.join(sources[atom.name])}"
        else:
            first = heads[atom.name][0]
            hint = f"line {program.line(first)}: {first.head}"
        message = f"'{atom.name}' has {_columns(arities[atom.name])}, not {len(atom.arguments)}"
        raise QueryError(message, span=atom.span, hint=hint)
    for argument in atom.arguments:
        if not isinstance(argument, p.Attribute | p.Constant):
            others = tuple(p.Attribute("V") if one is argument else one for one in atom.arguments)
            hint = f"compare it outside: {Atom(atom.name, others)}, V = {bare(argument)}"
            message = "a relation's columns are variables and constants here, nothing computed"
            raise QueryError(message, span=argument.span, hint=hint)


def _name_span(atom: Atom) -> Span | None:
    return Span(atom.span.start, atom.span.start + len(atom.name)) if atom.span else None
