"""``φ FILTER X[p] OR X[q]`` is ``φ FILTER X[p OR q]`` when X never holds more than one event.

By definition (CORE, section 2.2) a disjunction of filters doubles φ, so k of them in a row make 2^k copies. For a
variable that holds at most one event, "all of X satisfy p, or all of X satisfy q" and "all of X satisfy p or q" say the
same, and one copy does.
"""

from __future__ import annotations

from stretto.query import predicate as p
from stretto.query.algebra import (
    After,
    As,
    Atom,
    Filter,
    Not,
    Or,
    Pattern,
    Plus,
    Project,
    Repeat,
    Sequence,
    Within,
    fold,
)


def join_filters(pattern: Pattern) -> Pattern:
    """Join disjunctions of filters on the same single event.

    >>> from stretto.query.algebra import Atom, Filter, Or
    >>> from stretto.query.predicate import Attribute, Comparison, Constant
    >>> cheap, dear = (Comparison(op, Attribute("x"), Constant(3)) for op in "<>")
    >>> body = Atom("A")
    >>> print(join_filters(Or((Filter(body, "A", cheap), Filter(body, "A", dear)))))
    (A FILTER A[x < 3 OR x > 3])
    """
    return fold(pattern, _join)


def _join(node: Pattern) -> Pattern:
    if not isinstance(node, Or) or not all(isinstance(part, Filter) for part in node.alternatives):
        return node
    filters = [part for part in node.alternatives if isinstance(part, Filter)]
    first = filters[0]
    # The parser makes copies that share their body; comparing bodies by value would recurse.
    if any(f.variable != first.variable or f.body is not first.body for f in filters[1:]):
        return node
    if most(first.body, first.variable) > 1:
        return node
    parts: list[p.Predicate] = []
    for one in filters:
        parts += one.predicate.parts if isinstance(one.predicate, p.Or) else (one.predicate,)
    return Filter(first.body, first.variable, p.Or(tuple(parts)), first.span)


def most(pattern: Pattern, variable: str) -> int:
    """At most how many events ``variable`` holds in one match: 0, 1 or 2 (which stands for "many").

    >>> from stretto.query.algebra import Atom, Plus
    >>> most(Plus(Atom("A")), "A"), most(Atom("A"), "A"), most(Atom("A"), "B")
    (2, 1, 0)
    """
    return _count(pattern, variable)[1]


def _count(pattern: Pattern, variable: str) -> tuple[int, int]:
    """(events of any variable, events of ``variable``), each capped at 2."""
    results: dict[int, tuple[int, int]] = {}

    def visit(node: Pattern) -> Pattern:
        match node:
            case Atom():
                found = (1, int(variable in node.labels))
            case As(body, name):
                any_, own = results[id(body)]
                found = (any_, any_ if name == variable else own)
            case Filter(body):
                found = results[id(body)]
            case Or(alternatives):
                found = (
                    max(results[id(a)][0] for a in alternatives),
                    max(results[id(a)][1] for a in alternatives),
                )
            case Sequence(parts):
                found = (min(2, sum(results[id(a)][0] for a in parts)), min(2, sum(results[id(a)][1] for a in parts)))
            case Not():
                found = (0, 0)
            case Repeat(body, _, 1) | After(body) | Within(body):
                found = results[id(body)]
            case Plus(body) | Repeat(body):
                any_, own = results[id(body)]
                found = (2 if any_ else 0, 2 if own else 0)
            case Project(body, kept):
                any_, own = results[id(body)]
                found = (any_, own if variable in kept else 0)
        results[id(node)] = found
        return node

    fold(pattern, visit, rebuild=False)
    return results[id(pattern)]
