"""The augmented finite automaton (AFA paper, definition 1): a graph of states and arcs, and a register beside each computation.

An :class:`Afa` is a value: what :class:`stretto.AFA` builds, what the engine runs, and what the reference evaluator reads.

A fence (the paper's *f*) and a transfer (*g*) are typed expressions whose attributes are named ``e.price`` and ``r.count``, or a
Python function ``(e, r)``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

from stretto.query import predicate as p
from stretto.query.typing import NO_CLOCK, Clock


@dataclass(frozen=True, eq=False)
class Field(p.Attribute):
    """``e.price`` or ``r.count``: the attribute of its name, equal to a plain one, but printed as it is written.

    >>> str(Field("e.price")), str(Field("r.in"))
    ('e.price', 'r.`in`')
    """

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, p.Attribute) else NotImplemented

    __hash__ = p.Attribute.__hash__

    def __str__(self) -> str:
        side, _, own = self.name.partition(".")
        return f"{side}.{p.Attribute(own)}"


class Kind(StrEnum):
    """What an arc does with the event."""

    CONSUME = "consume"
    EPSILON = "epsilon"  #: it consumes no event (section 2.2); its functions read the register only
    IGNORE = "ignore"  #: a self-loop that keeps the register (appendix D)


class Emit(StrEnum):
    """When a final state gives output."""

    EVERY = "every"  #: at each event that leads to it, or is ignored in it
    ON_ENTER = "on_enter"  #: not at events that are ignored in it


@dataclass(frozen=True)
class UserFunction:
    """A Python function ``(e, r)`` over named tuples, to be compiled by Numba.

    ``uses``: the event's fields that it names; where one of them is NULL, the function is not called.
    """

    python: Callable[[Any, Any], Any]
    name: str
    uses: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


Fence = p.Predicate | UserFunction | None
"""``None``: always."""

Transfer = tuple[p.Operand, ...] | UserFunction | None
"""An operand for each field of the register, in order; ``None``: the register stays as it is."""


@dataclass(frozen=True)
class Arc:
    """An arc, with the time in which it is valid: from ``since`` on and before ``until`` (``None``: unbounded).

    In ticks of the time attribute.
    """

    id: str
    source: str
    target: str
    when: Fence = None
    then: Transfer = None
    kind: Kind = Kind.CONSUME
    since: int | None = None
    until: int | None = None
    label: int = -1  #: the event is selected, for the variable of this number: outputs tell their selected events apart

    def valid_at(self, time: int) -> bool:
        """Tell whether an event of this time may take the arc (section 2.3)."""
        return (self.since is None or self.since <= time) and (self.until is None or time < self.until)


@dataclass(frozen=True)
class Afa:
    """The 7-tuple (Q, A, q0, F, Z, E, R) of definition 1.

    Q is what the arcs name. ``register`` gives each field's type (int64, double, bool, string, or a timestamp) and
    ``initial`` its first value (Z), as a Python object. ``window`` is how long an event contributes (RE = LE + window), in ticks
    of the time attribute or as a duration; ``None``: for ever, or as each event says. ``partition_by``: every substream is matched
    on its own. ``clock``: which attribute counts the time, for durations in texts of arcs.
    """

    events: Mapping[str, pa.DataType]
    register: Mapping[str, pa.DataType]
    initial: tuple[Any, ...]
    start: str
    arcs: tuple[Arc, ...] = ()
    finals: Mapping[str, Emit] = field(default_factory=dict)
    window: int | dt.timedelta | None = None
    partition_by: tuple[str, ...] = ()
    clock: Clock = field(default=NO_CLOCK, compare=False, repr=False)

    @property
    def frozen(self) -> Afa:
        """Itself: what :class:`stretto.AFA` gives when it is complete."""
        return self

    @property
    def states(self) -> tuple[str, ...]:
        """All states in the order of their first mention; the start state is the first."""
        found = dict.fromkeys([self.start])
        for arc in self.arcs:
            found |= dict.fromkeys([arc.source, arc.target])
        found |= dict.fromkeys(self.finals)
        return tuple(found)

    def arc(self, name: str) -> Arc:
        """Find the arc of this id."""
        return next(arc for arc in self.arcs if arc.id == name)

    def with_arc(self, arc: Arc) -> Afa:
        """Give the same with an arc more, or with another arc of the same id in its place."""
        others = tuple(one for one in self.arcs if one.id != arc.id)
        return replace(self, arcs=(*others, arc))

    @property
    def scope(self) -> dict[str, pa.DataType]:
        """What expressions may read: ``e.`` and ``r.`` names with their types."""
        return {f"e.{name}": kind for name, kind in self.events.items()} | {
            f"r.{name}": kind for name, kind in self.register.items()
        }
