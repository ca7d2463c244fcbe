"""A CEQL query as a plan: names and conditions go to the positions whose events they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.algebra import As, Atom, Filter, Or, Pattern, Project, children, fold
from stretto.query.passes.push_filters import push_filters
from stretto.query.plan import Conjunct, Key, PatternPlan, Position, keys_of
from stretto.query.query import ParsedQuery, Strategy
from stretto.query.sase import Selection
from stretto.query.windows import BoundWindow


def plan_of(parsed: ParsedQuery, schema: Schema, written: Pattern, window: BoundWindow | None) -> PatternPlan:
    """The plan of a query; ``written`` is its pattern as it was written, with the types of its conditions."""
    return PatternPlan(
        formula=formula_of(written, keys_of(parsed, schema)),
        selection=Selection.ANY if parsed.strategy is Strategy.ALL else f"SELECT {parsed.strategy}",
        window=window,
        partition_by=parsed.partition_by,
        chosen=parsed.choosers,
    )


def formula_of(pattern: Pattern, keys: tuple[Key, ...]) -> Pattern:
    """The formula of a plan for a pattern whose conditions have their types and stand as they were written.

    >>> from stretto.languages.ceql import parse
    >>> print(formula_of(parse("SELECT * FROM S WHERE A ; (B OR C) AS x FILTER x[n > 5] AND x[m = 1]").pattern, ()))
    (A A ; B|C x[n > 5 AND m = 1])
    """
    pattern = push_filters(pattern)
    made = _positions(pattern, keys)

    def visit(node: Pattern) -> Pattern:
        match node:
            case Atom():
                return next(made)
            case As() | Filter() | Project():
                return node.body
            case Or(alternatives):
                return _as_one(alternatives) or node
            case _:
                return node

    return fold(pattern, visit)


def _positions(pattern: Pattern, keys: tuple[Key, ...]) -> Iterator[Position]:
    """The positions of all types, in the order of the text."""
    todo: list[tuple[Pattern, frozenset[str], tuple[Conjunct, ...]]] = [(pattern, frozenset(), ())]
    while todo:
        node, names, asked = todo.pop()
        match node:
            case Atom(type, stream, span):
                yield Position(type, stream, span, (type,), names or frozenset({type}), asked, keys)
            case As(body, variable):
                todo.append((body, names | {variable}, asked))
            case Filter(body, variable, predicate):
                own = (
                    Conjunct(f"{variable}[{one}]", one, getattr(one, "span", None)) for one in p.conjuncts(predicate)
                )
                todo.append((body, names, (*own, *asked)))
            case Project(body):  # what is dropped is asked nothing
                todo.append((body, names, ()))
            case _:
                todo += [(child, names, asked) for child in reversed(children(node))]


def _as_one(alternatives: Sequence[Pattern]) -> Position | None:
    """One position of several types in place of alternatives that differ in their types alone; ``None``: they do in more."""
    found = [one for one in alternatives if isinstance(one, Position)]
    if len(found) < len(alternatives):
        return None
    types = tuple(dict.fromkeys(name for one in found for name in one.types))
    made = {replace(one, type="|".join(types), types=types) for one in found}
    return next(iter(made)) if len(made) == 1 else None
