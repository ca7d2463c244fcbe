"""Conditions on the events of several variables, straight from the definitions, such as ``a[i].v > avg(a[..i-1].v)``.

SASE+ paper, section 3.2; ``docs/semantics.md`` (SASE+) for what it leaves open. No engine reads this: it is what they are judged by.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from stretto.query import predicate as p
from stretto.query.evaluate import holds
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.sase import DISTINCT, LIST, Aggregate, Element, Index, Length, Range, Reference

Event = Mapping[str, Any]

#: The events that each variable holds, in order.
Chosen = Mapping[str, Sequence[Event]]


def references_of(query: BoundSase, expression: p.Expression) -> dict[str, Reference]:
    """What an expression reads, by the names of its references."""
    return {name: query.parsed.references[name] for name in p.attributes(expression)}


def stage_of(reference: Reference) -> int:
    """When within its component a reference is known: at begin (0), at take (1), once it is complete (2)."""
    match reference:
        case Element(index=Index.ONLY | Index.FIRST):
            return 0
        case Element(index=Index.EACH | Index.BEFORE) | Aggregate(range=Range.BEFORE | Range.UP_TO):
            return 1
        case _:
            return 2


def holds_in(query: BoundSase, part: p.Predicate, chosen: Chosen, current: Mapping[str, int]) -> bool:
    """Whether a conjunct holds; ``current`` says which i is meant where one is being taken, all others mean every i."""
    return next(failing(query, part, chosen, current), None) is None


def failing(
    query: BoundSase, part: p.Predicate, chosen: Chosen, current: Mapping[str, int]
) -> Iterator[tuple[dict[str, Any], dict[str, int]]]:
    """The values of a conjunct's references for which it does not hold, each with the i of its variables."""
    references = references_of(query, part)
    every = {
        variable: range(_first_index(references.values(), variable), len(chosen[variable]) + 1)
        for variable in dict.fromkeys(one.variable for one in references.values() if stage_of(one) == 1)
        if variable not in current
    }
    for indices in itertools.product(*every.values()):
        at = {**current, **dict(zip(every, indices, strict=True))}
        values = {name: read(one, chosen, at) for name, one in references.items()}
        if not holds(part, values):
            yield values, at


def _first_index(references: Iterable[Reference], variable: str) -> int:
    """The first i for which a conjunct says something: ``a[i-1]`` and ``a[..i-1]`` are there from 2 on."""
    before = any(
        one.variable == variable
        and (getattr(one, "index", None) is Index.BEFORE or getattr(one, "range", None) is Range.BEFORE)
        for one in references
    )
    return 2 if before else 1


def read(reference: Reference, chosen: Chosen, at: Mapping[str, int]) -> Any:
    """The value of a reference; ``at`` is the i of each variable for which one is meant."""
    events = chosen[reference.variable]
    match reference:
        case Length():
            return len(events)
        case Aggregate(function, variable, over, attribute):
            selected = events
            if over is not Range.ALL:
                selected = events[: at[variable] - (over is Range.BEFORE)]
            return aggregate(function, [1 if attribute is None else event[attribute] for event in selected])
        case Element(variable, Index.EACH, attribute):
            return events[at[variable] - 1][attribute]
        case Element(variable, Index.BEFORE, attribute):
            return events[at[variable] - 2][attribute]
        case Element(_, index, attribute):
            return (
                events[-1 if index is Index.LAST else 0][attribute] if events else None
            )  # in RETURN a variable may be missing


def aggregate(function: str, values: Iterable[Any]) -> Any:
    """An aggregate of values in the order of their events, NULLs left out.

    Integers are added exactly, floats from left to right, decimals as floats. NaN among floats makes ``min`` and ``max`` NaN,
    as it makes their sum.

    >>> [aggregate(one, [3, None, 1]) for one in ("count", "sum", "avg", "min", "max")]
    [2, 4, 2.0, 1, 3]
    >>> [aggregate(one, [None]) for one in ("count", "sum", "avg", "min", "max")]
    [0, None, None, None, None]
    """
    if function == LIST:
        return list(values)
    known = [one for one in values if one is not None]
    if function == DISTINCT:
        return len({"NaN" if one != one else one for one in known})
    if function == "count":
        return len(known)
    if not known:
        return None
    if function in ("min", "max"):
        if any(one != one for one in known):
            return math.nan
        return min(known) if function == "min" else max(known)
    total = _sum(known)
    return total / len(known) if function == "avg" else total


def _sum(known: Sequence[Any]) -> Any:
    """Plain addition; Python's own ``sum`` corrects the rounding of floats."""
    total: Any = 0
    for one in known:
        total += float(one) if isinstance(one, Decimal) else one
    return total
