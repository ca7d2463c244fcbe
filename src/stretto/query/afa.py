"""The augmented finite automaton (AFA paper, definition 1): a graph of states and arcs, and a register beside each computation.

An :class:`Afa` is a value: what :class:`stretto.AFA` builds, what the engine runs, and what the reference evaluator reads.

A fence (the paper's *f*) and a transfer (*g*) are typed expressions whose attributes are named ``e.price`` and ``r.count``, or a
Python function ``(e, r)``.

What arcs of an automaton look like as text.

Which states of an AFA computations can reach, and from which they can get to output: what its graph alone says.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping
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

    def by_groups(self, keys: Mapping[str, pa.DataType]) -> Afa:
        """The automaton over events of groups: partitioned by their keys as well."""
        return replace(self, events={**self.events, **keys}, partition_by=(*self.partition_by, *keys))

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


def shown(arc: Arc, register: Iterable[str]) -> str:
    """Write an arc with its states, functions and the time in which it is valid, for a register with these fields.

    >>> print(shown(Arc("a0", "q0", "q1", None, (p.Constant(3),), since=10), ["n"]))
    q0 -> q1  a0  then n = 3  since 10
    """
    parts = [f"{arc.source} -> {arc.target}", arc.id, f"{_mark(arc)}{_said(arc, register)}".strip()]
    if arc.since is not None:
        parts.append(f"since {arc.since}")
    if arc.until is not None:
        parts.append(f"until {arc.until}")
    return "  ".join(part for part in parts if part)


def _said(arc: Arc, register: Iterable[str]) -> str:
    fence, transfer = fence_text(arc), transfer_text(arc, register)
    return "  ".join(
        part for part in (f"when {fence}" if fence else "", f"then {transfer}" if transfer else "") if part
    )


def _mark(arc: Arc) -> str:
    return {Kind.CONSUME: "", Kind.EPSILON: "ε ", Kind.IGNORE: "ignore "}[arc.kind]


def fence_text(arc: Arc) -> str:
    """Write the fence; nothing where it always holds."""
    return "" if arc.when is None else str(arc.when)


def transfer_text(arc: Arc, register: Iterable[str]) -> str:
    """Write the transfer as assignments of the fields that it changes; nothing where it keeps all."""
    if arc.then is None:
        return ""
    if isinstance(arc.then, UserFunction):
        return str(arc.then)
    changed = [
        f"{p.Attribute(field)} = {_value(value)}"
        for field, value in zip(register, arc.then, strict=True)
        if value != Field(f"r.{field}")
    ]
    return ", ".join(changed)


def _value(value: p.Operand) -> str:
    """A value without brackets around the whole of it."""
    return str(value)[1:-1] if isinstance(value, p.Arithmetic | p.Negative) else str(value)


def reached(afa: Afa) -> set[str]:
    """Find the states that a computation may be in after at least one event.

    >>> from stretto.query.afa import Arc
    >>> arcs = (Arc("a0", "q0", "q1"), Arc("a1", "q1", "q2", kind=Kind.EPSILON), Arc("a2", "q3", "q4"))
    >>> sorted(reached(Afa({}, {}, (), "q0", arcs)))
    ['q1', 'q2']
    """
    found = {(afa.start, False)}
    waiting = [*found]
    while waiting:
        state, consumed = waiting.pop()
        for arc in afa.arcs:
            after = arc.target, consumed or arc.kind is not Kind.EPSILON
            if arc.source == state and after not in found:
                found.add(after)
                waiting.append(after)
    return {state for state, consumed in found if consumed}


def beginning(afa: Afa, state: str | None = None) -> set[str]:
    """Find the states in which a computation may be before its first event, or before the next one, from a state.

    >>> from stretto.query.afa import Arc
    >>> arcs = (Arc("a0", "q0", "q1", kind=Kind.EPSILON), Arc("a1", "q1", "q2"))
    >>> sorted(beginning(Afa({}, {}, (), "q0", arcs)))
    ['q0', 'q1']
    """
    first = afa.start if state is None else state
    found, waiting = {first}, [first]
    while waiting:
        state = waiting.pop()
        after = {arc.target for arc in afa.arcs if arc.source == state and arc.kind is Kind.EPSILON} - found
        found |= after
        waiting += after
    return found


def leading(afa: Afa, to: Collection[str]) -> set[str]:
    """Find the states from which a path leads to one of some states, these included.

    >>> from stretto.query.afa import Arc
    >>> arcs = (Arc("a0", "q0", "q1"), Arc("a1", "q1", "q2"), Arc("a2", "q1", "q3"))
    >>> sorted(leading(Afa({}, {}, (), "q0", arcs), ["q2"]))
    ['q0', 'q1', 'q2']
    """
    found = set(to)
    waiting = [*found]
    while waiting:
        state = waiting.pop()
        before = {arc.source for arc in afa.arcs if arc.target == state} - found
        found |= before
        waiting += before
    return found


def steps_left(afa: Afa) -> dict[str, int]:
    """Find how many events, at least, lead from each state to a final one; states from which nothing does are left out.

    >>> from stretto.query.afa import Arc, Emit
    >>> arcs = (Arc("a0", "q0", "q1"), Arc("a1", "q1", "q2"), Arc("a2", "q1", "q3"))
    >>> sorted(steps_left(Afa({}, {}, (), "q0", arcs, {"q2": Emit.EVERY})).items())
    [('q0', 2), ('q1', 1), ('q2', 0)]
    """
    found = dict.fromkeys(afa.finals, 0)
    waiting = [*found]
    while waiting:
        state = waiting.pop(0)
        for arc in afa.arcs:
            steps = found[state] + (arc.kind is not Kind.EPSILON)
            if arc.target == state and steps < found.get(arc.source, steps + 1):
                found[arc.source] = steps
                waiting.append(arc.source)
    return found
