"""Conjunctive normal form: a condition as the conditions that must all hold (SASE+ paper, section 3.2, step 2).

``NOT`` has two values here, and ``NOT (x < 3)`` is not ``x >= 3`` where x is NULL: so ``NOT`` goes inwards by De Morgan's laws
as far as single comparisons, and stays there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from stretto.errors import LimitError, Span
from stretto.query import predicate as p

#: OR over AND multiplies: a condition with more conjuncts than this is refused.
MOST_CONJUNCTS = 256

#: The alternatives of one conjunct, in order, each once. They are told apart by their text: 1 and 1.0 are equal in Python, and
#: integer and float arithmetic are not.
Clause = dict[str, p.Predicate]


def conjuncts(predicate: p.Predicate) -> tuple[p.Predicate, ...]:
    """Find the conjuncts of a condition, each once, in the order of writing; all hold exactly where the condition does.

    A conjunct is a comparison or the like, ``NOT`` of one, or an ``OR`` of these.

    Raises
    ------
    LimitError
        There are more than 256.

    >>> from stretto.query.predicate import And, Attribute, Comparison, Constant, Not, Or
    >>> x, y, z = (Comparison(">", Attribute(name), Constant(0)) for name in "xyz")
    >>> [str(one) for one in conjuncts(Or((x, And((y, Not(z))))))]
    ['x > 0 OR y > 0', 'x > 0 OR NOT (z > 0)']
    >>> [str(one) for one in conjuncts(Not(Or((x, Not(y)))))]
    ['NOT (x > 0)', 'y > 0']
    """
    return tuple(_disjunction(clause) for clause in _clauses(predicate, True))


def _clauses(predicate: p.Predicate, holds: bool) -> list[Clause]:
    """The clauses of a predicate, or of its negation where ``holds`` is false."""
    match predicate:
        case p.Not(part):
            return _clauses(part, not holds)
        case p.And(parts) | p.Or(parts):
            below = (_clauses(part, holds) for part in parts)
            return _all(below) if isinstance(predicate, p.And) is holds else _any(below)
        case _:
            return [{repr((holds, predicate)): predicate if holds else p.Not(predicate, predicate.span)}]


def _all(parts: Iterable[list[Clause]]) -> list[Clause]:
    """AND: the clauses of all parts."""
    return _distinct(clause for part in parts for clause in part)


def _any(parts: Iterable[list[Clause]]) -> list[Clause]:
    """OR: one clause for each way to choose one of every part. That of no parts is the empty one, which never holds."""
    chosen: list[Clause] = [{}]
    for part in parts:
        chosen = _distinct({**first, **second} for first in chosen for second in part)
    return chosen


def _distinct(clauses: Iterable[Clause]) -> list[Clause]:
    """Each clause once; the same alternatives in another order are the same clause."""
    found: dict[frozenset[str], Clause] = {}
    for clause in clauses:
        found.setdefault(frozenset(clause), clause)
        if len(found) > MOST_CONJUNCTS:
            raise LimitError(
                f"the condition becomes more than {MOST_CONJUNCTS} conditions that must all hold: "
                "an OR over several ANDs multiplies them"
            )
    return list(found.values())


def _disjunction(clause: Clause) -> p.Predicate:
    """A clause as a predicate, whose place in the text spans those of its alternatives."""
    parts = tuple(clause.values())
    if len(parts) == 1:
        return parts[0]
    spans: list[Span] = [part.span for part in parts if part.span is not None]
    return p.Or(parts, reduce(or_, spans) if spans else None)
