"""The queries whose matches are those of a query that have a given event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from stretto.query import algebra as a
from stretto.query import predicate as p
from stretto.query.constraints.model import AnyParsed
from stretto.query.query import ParsedQuery
from stretto.query.sase import Component, Element, Index, Referred, SaseQuery, Selection, may_lack


def having(parsed: AnyParsed, numbers: str, at: int) -> Iterator[AnyParsed]:
    """Queries that have all matches of a query with the event at a position; some may have others, too.

    Where a variable holds one event, and may hold any, the condition ``numbers = at`` says that it is this one: such a query has few
    partial matches. What a repetition holds, or a strategy chooses, is looked for among all matches.

    Parameters
    ----------
    parsed
        A query without what chooses among matches.
    numbers
        The column with the position of each event.
    at
        The position of the event.
    """
    own = _HAVING.get(type(parsed))
    return iter([parsed]) if own is None else own(parsed, numbers, at)


def _of_ceql(parsed: ParsedQuery, numbers: str, at: int) -> Iterator[ParsedQuery]:
    is_it = p.Comparison("=", p.Attribute(numbers), p.Constant(at))
    count, repeated, absent = 0, set[int](), set[int]()

    def visit(node: a.Pattern) -> a.Pattern:
        """Number the leaves; the last ones are those of the node."""
        nonlocal count
        count += isinstance(node, a.Atom)
        if isinstance(node, a.Not | a.Plus | a.Repeat):
            inside = sum(isinstance(one, a.Atom) for one in a.walk(node.body))
            (absent if isinstance(node, a.Not) else repeated).update(range(count - inside, count))
        return node

    a.fold(parsed.pattern, visit, rebuild=False)
    if any(isinstance(node, a.Or) for node in a.walk(parsed.pattern)):
        parsed = replace(parsed, limit=None)  # a match that takes another alternative may not hold it
    for number in range(count):
        if number not in absent | repeated:
            yield replace(parsed, pattern=_with(parsed.pattern, number, is_it))
    if repeated - absent:
        yield replace(parsed, limit=None)


def _with(pattern: a.Pattern, number: int, is_it: p.Predicate) -> a.Pattern:
    """A formula with a condition on the leaf of a number."""
    count = -1

    def visit(node: a.Pattern) -> a.Pattern:
        nonlocal count
        if not isinstance(node, a.Atom):
            return node
        count += 1
        return a.Filter(node, next(iter(a.variables(node))), is_it) if count == number else node

    return a.fold(pattern, visit)


def _of_sase(parsed: SaseQuery, numbers: str, at: int) -> Iterator[SaseQuery]:
    modes = (parsed.selection, *parsed.steps.values(), *parsed.loops.values())
    rest = any(mode is not Selection.ANY for mode in modes)
    for part in () if rest else parsed.parts:
        if isinstance(part, Component) and part.negated:
            continue
        if not isinstance(part, Component) or part.kleene or may_lack(part):
            rest = True
        else:
            element = Element(part.variable, Index.ONLY, numbers)
            name = str(element)
            is_it = p.Comparison("=", Referred(name, reference=element), p.Constant(at))
            condition = p.joined((*p.conjuncts(parsed.condition), is_it))
            yield replace(parsed, condition=condition, references={**parsed.references, name: element})
    if rest:
        yield replace(parsed, limit=None)


_HAVING: Mapping[type, Callable[[Any, str, int], Iterator[AnyParsed]]] = {ParsedQuery: _of_ceql, SaseQuery: _of_sase}
