"""What a query asks, one constraint after the other, and the query without some of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from stretto.errors import Span
from stretto.query import predicate as p
from stretto.query.afa import Afa
from stretto.query.query import AnyQuery
from stretto.query.row_pattern import RowQuery

#: How often something repeats, at least and at most; ``None``: any number.
Bounds = tuple[int, int | None]

#: The places of constraints that are dropped, each with what is left of it.
Dropped = Mapping[tuple[Any, ...], Bounds]

AnyParsed = AnyQuery | RowQuery | Afa


class Kind(StrEnum):
    """What sort of constraint may be in the way of a match."""

    CONDITION = "condition"  #: on the values of its events
    WINDOW = "window"  #: on how long it lasts
    GAP = "gap"  #: on how far apart two of its events are, or how long a part of it lasts
    CONTIGUITY = "contiguity"  #: nothing lies between two of its events
    NEGATION = "negation"  #: an event that must not come
    KEY = "key"  #: all its events have the same value
    STRATEGY = "strategy"  #: how events are selected
    COUNT = "count"  #: how often a step is repeated
    ANCHOR = "anchor"  #: where in its partition a match begins or ends
    UNTIL = "until"  #: what ends a repetition, or a sequence


@dataclass(frozen=True)
class Constraint:
    """One of the things that a query asks.

    Parameters
    ----------
    kind
        What sort it is.
    text
        As it stands in the query.
    variables
        Those whose events it is about, the last one last; empty: the whole match.
    span
        Where it stands in the query's text, where that is known.
    what
        The part of the query that says it: a condition, a window, a negated part, the name of a key …
    place
        Where in the query that part is; each constraint has its own.
    step
        The step of a CEQL formula in which it stands: its names tell its events from those of other steps of the same type.
    bounds
        Of a count: how often at least and at most (``None``: any number).
    left
        Of a count that is dropped: the bounds that are asked all the same.
    """

    kind: Kind
    text: str
    variables: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    what: Any = field(default=None, compare=False, repr=False)
    place: tuple[Any, ...] = ()
    step: Any = field(default=None, compare=False, repr=False)
    bounds: Bounds | None = field(default=None, compare=False, repr=False)
    left: Bounds = (1, None)


def places_of(dropped: Iterable[Constraint]) -> Dropped:
    """The places of some constraints that are dropped, each with what is left of it."""
    return {one.place: one.left for one in dropped}


class Chain(Protocol):
    """A query as a chain of steps and the constraints on them."""

    @property
    def parsed(self) -> AnyParsed:
        """The query itself."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that hold events, in order."""

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints, in the order of the text."""

    def asks(self, steps: int) -> tuple[Constraint, ...]:
        """The constraints that the first so many steps ask."""

    def relaxed(self, steps: int, dropped: Collection[Constraint]) -> AnyParsed | None:
        """The query of the first so many steps without some constraints; ``None``: that is no query."""

    def alone(self, step: int) -> AnyParsed | None:
        """The query of one step by itself, counted from 1, with what it asks of its own events; ``None``: that is no query."""

    def only(self, one: Constraint) -> AnyParsed | None:
        """The step that a condition is about by itself, with nothing else asked; ``None``: it is about none that must come.

        Where this query has no match, no query that asks the condition has one.
        """


@dataclass(frozen=True)
class Step:
    """A step of a query: how it is written, the variables that hold its events, and their types (none: any).

    ``least`` is how many events it needs where it repeats one. ``composed``: what has come to it may still wait for more of it.
    """

    text: str
    variables: tuple[str, ...]
    types: tuple[str, ...]
    optional: bool = False
    least: int = 1
    composed: bool = False


def by_step(steps: Iterable[Step], held: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """What each variable holds, in the order of the steps; of several names of the same events the outermost one, and a name that
    stands in several steps only where the step has no other.

    >>> by_step([Step("A AS a", ("a", "A"), ("A",))], {"A": [1], "a": [1]})
    {'a': (1,)}
    >>> by_step([Step("A AS a", ("a", "A"), ("A",)), Step("A AS b", ("b", "A"), ("A",))], {"A": [1, 2], "a": [1], "b": [2]})
    {'a': (1,), 'b': (2,)}
    """
    found: dict[str, tuple[int, ...]] = {}
    steps = tuple(steps)
    named = Counter(name for step in steps for name in {*step.variables})
    for step in steps:
        seen: dict[tuple[int, ...], str] = {}
        alone = any(named[name] == 1 and held.get(name) for name in step.variables)
        for name in step.variables:
            if held.get(name) and (named[name] == 1 or not alone):
                seen.setdefault(tuple(held[name]), name)
        found |= {name: own for own, name in seen.items()}
    return found


#: What a query asks of its steps together: how long they last, and of which events they are made.
TOGETHER = (Kind.WINDOW, Kind.GAP, Kind.KEY, Kind.STRATEGY)


def span_of(condition: p.Expression) -> Span | None:
    """Where a condition stands in the text."""
    return getattr(condition, "span", None)
