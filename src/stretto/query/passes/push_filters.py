"""A condition on a variable moves down to where the variable is bound.

``X[p]`` asks p of *every* event that X holds, so it may be asked where those events are read: of both parts of a sequence or a
disjunction, and of each iteration. It stops at ``φ AS X``, which gathers what φ holds, and at an atom of type X. A query that
filters hundreds of steps in one clause becomes as many small conditions beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stretto.query.algebra import After, As, Atom, Filter, Not, Or, Pattern, Plus, Project, Repeat, Sequence, Within

_Conditions = Mapping[str, tuple[Filter, ...]]


def push_filters(pattern: Pattern) -> Pattern:
    """Move every condition down.

    >>> from stretto.languages.ceql import parse
    >>> print(push_filters(parse("SELECT * FROM S WHERE A; B+ FILTER A[x > 1] AND B[x > 2]").pattern))
    ((A FILTER A[x > 1]) ; ((B FILTER B[x > 2])+))
    """
    return _push(pattern, {})


def _push(node: Pattern, above: _Conditions) -> Pattern:
    """``node`` with the conditions that stand above it on variables that it binds."""
    if isinstance(node, Filter):
        # A loop over the whole chain: it may be long. The innermost condition comes first.
        own: dict[str, tuple[Filter, ...]] = {}
        while isinstance(node, Filter):
            own[node.variable] = (node, *own.get(node.variable, ()))
            node = node.body
        above = {name: own.get(name, ()) + above.get(name, ()) for name in {**own, **above}}
    match node:
        case Atom():
            return _filtered(node, [one for label in sorted(node.labels) for one in above.get(label, ())])
        case As(body, variable):
            inner = {name: conditions for name, conditions in above.items() if name != variable}
            return _filtered(replace(node, body=_push(body, inner)), above.get(variable, ()))
        case Or(alternatives):
            return Or(tuple(_push(part, above) for part in alternatives))
        case Sequence(parts, contiguous):
            return Sequence(tuple(_push(part, above) for part in parts), contiguous)
        case Plus(body) | Repeat(body) | After(body) | Within(body):
            return replace(node, body=_push(body, above))
        case Not(body):
            # It binds nothing, so that what is asked of all events of a variable is not asked of these.
            return Not(_push(body, {}))
        case Project(body, kept):
            # What the projection drops holds nothing, so a condition on it is true.
            inner = {name: conditions for name, conditions in above.items() if name in kept}
            return replace(node, body=_push(body, inner))
    raise AssertionError(node)


def _filtered(node: Pattern, conditions: list[Filter] | tuple[Filter, ...]) -> Pattern:
    for one in conditions:
        node = Filter(node, one.variable, one.predicate, one.span)
    return node
