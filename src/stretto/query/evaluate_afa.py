"""One transition of an automaton with registers, and its cheapest computation over given events, straight from the definitions.

AFA paper, definition 2 (the next-ID relation); ``docs/semantics.md`` (AFA) for what it leaves open. No engine reads this: it is what
they are judged by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from stretto.array_types import INT64
from stretto.errors import DataError
from stretto.query.afa import Afa, Arc, Kind, UserFunction
from stretto.query.evaluate import holds, value

Register = tuple[Any, ...]

#: The state and the register of an instantaneous description; the events that are left are the caller's loop.
Description = tuple[str, Register]

#: How many descriptions a closure over ε-arcs may reach.
MOST_STEPS = 2_000


@dataclass(frozen=True)
class Event:
    """An event of the stream.

    ``key``: its partition, the values of the partition attributes; with a NULL it is in no substream. ``sequence`` breaks ties of
    ``le``, and ``row``, where it arrived, those of both. ``re`` is the right end of its lifetime (``None``: unbounded). ``number``
    is the source's sequence number of AFA+O.
    """

    row: int
    key: tuple[Any, ...]
    le: int
    payload: Mapping[str, Any]
    sequence: int = 0
    re: int | None = None
    number: int | None = None

    @property
    def place(self) -> tuple[int, int, int]:
        """What the stream is ordered by."""
        return self.le, self.sequence, self.row


# ---- Transitions


def initial(afa: Afa) -> Description:
    """The description before any event."""
    return afa.start, _as_register(afa, afa.initial, "initial")


def steps(afa: Afa, description: Description, event: Event, *, epsilon: bool) -> Iterator[tuple[Arc, Description]]:
    """The arcs that a description can take at an event, each with the description behind it; ``epsilon``: those without an event."""
    state, register = description
    for arc in afa.arcs:
        if arc.source == state and (arc.kind is Kind.EPSILON) == epsilon and arc.valid_at(event.le):
            payload = None if epsilon else event.payload
            if fulfils(afa, arc, payload, register):
                yield arc, (arc.target, _transferred(afa, arc, payload, register))


# ---- One computation


class Taken(NamedTuple):
    """An arc that a computation takes, the register before it, and its event; ``None``: it is an ε-arc."""

    arc: Arc
    register: Register
    event: Event | None


def computation(
    afa: Afa, stream: Sequence[Event], cost: Callable[[Taken], int], *, most: int = MOST_STEPS
) -> tuple[Taken, ...]:
    """The arcs of a computation that consumes all events of a substream and ends in a final state, of the least cost.

    At each event at most so many descriptions are followed, the cheapest first; nothing: none of them ends in a final state.
    """

    def further(found: dict[Description, _Trail], event: Event, at: Event | None) -> dict[Description, _Trail]:
        """What one arc more leads to."""
        after: dict[Description, _Trail] = {}
        for description, trail in found.items():
            for arc, target in steps(afa, description, event, epsilon=at is None):
                taken = Taken(arc, description[1], at)
                spent = trail.cost + cost(taken)
                if target not in after or spent < after[target].cost:
                    after[target] = _Trail(spent, taken, trail)
        return after

    def closed(found: dict[Description, _Trail], event: Event) -> dict[Description, _Trail]:
        """The same with what ε-arcs lead to."""
        new = found
        while new and len(found) <= most:
            new = {
                one: trail
                for one, trail in further(new, event, None).items()
                if one not in found or trail.cost < found[one].cost
            }
            found = found | new
        return dict(sorted(found.items(), key=lambda one: one[1].cost)[:most])

    reached: dict[Description, _Trail] = {initial(afa): _Trail(0, None, None)}
    if stream:
        reached = closed(reached, stream[0])
    for event in stream:
        reached = closed(further(reached, event, event), event)
    ends = [trail for (state, _), trail in reached.items() if state in afa.finals]
    found, trail = list[Taken](), min(ends, key=lambda one: one.cost, default=None)
    while trail is not None and trail.taken is not None:
        found.append(trail.taken)
        trail = trail.before
    return tuple(reversed(found))


class _Trail(NamedTuple):
    """How a description was reached: what that costs, by which arc, and how the one before was reached."""

    cost: int
    taken: Taken | None
    before: _Trail | None


# ---- Fences and transfers


def scope(afa: Afa, payload: Mapping[str, Any] | None, register: Register) -> dict[str, Any]:
    """What expressions read; an ε-arc has no event."""
    known = {f"r.{name}": one for name, one in zip(afa.register, register, strict=True)}
    if payload is not None:
        known |= {f"e.{name}": payload[name] for name in afa.events}
    return known


def fulfils(afa: Afa, arc: Arc, payload: Mapping[str, Any] | None, register: Register) -> bool:
    """Whether an arc's fence lets an event pass with a register."""
    if arc.when is None:
        return True
    if not isinstance(arc.when, UserFunction):
        return holds(arc.when, scope(afa, payload, register))
    found = _called(afa, arc.when, payload, register)
    if found is None:
        return False
    if not isinstance(found, bool):
        raise DataError(f"the fence {arc.when} of arc '{arc.id}' must give a truth value, not {found!r}")
    return found


def _called(afa: Afa, function: UserFunction, payload: Mapping[str, Any] | None, register: Register) -> Any:
    """The value of a Python function; NULL where a field that it uses is NULL."""
    if payload is not None and any(payload[name] is None for name in function.uses):
        return None
    event = None if payload is None else _tuple_type("Event", tuple(afa.events))(*(payload[n] for n in afa.events))
    return function.python(event, _tuple_type("Register", tuple(afa.register))(*register))


@cache
def _tuple_type(name: str, fields: tuple[str, ...]) -> Any:
    return NamedTuple(name, [(one, Any) for one in fields])


def _transferred(afa: Afa, arc: Arc, payload: Mapping[str, Any] | None, register: Register) -> Register:
    """The register after an arc."""
    if arc.then is None:
        return register
    if isinstance(arc.then, UserFunction):
        found = _called(afa, arc.then, payload, register)
        if found is None:
            raise DataError(f"the transfer of arc '{arc.id}' reads NULL")
    else:
        known = scope(afa, payload, register)
        found = tuple(value(operand, known) for operand in arc.then)
    return _as_register(afa, found, f"arc '{arc.id}'")


def _as_register(afa: Afa, values: Sequence[Any], what: str) -> Register:
    """Values as the register holds them."""
    return tuple(
        _held(one, kind, f"field '{name}' of the register ({what})")
        for one, (name, kind) in zip(values, afa.register.items(), strict=True)
    )


def _held(found: Any, kind: pa.DataType, where: str) -> Any:
    if found is None:
        raise DataError(f"{where} becomes NULL\nhint: guard the arc with IS NOT NULL")
    if pa.types.is_integer(kind):
        if isinstance(found, float) and not found.is_integer():
            raise DataError(f"{where} holds integers, not {found!r}")
        if int(found) not in INT64:
            raise DataError(f"{where} overflows: {found} does not fit 64 bits")
        return int(found)
    if pa.types.is_floating(kind):
        number = float(found)
        return math.nan if number != number else number + 0.0  # one NaN, one zero
    return bool(found) if pa.types.is_boolean(kind) else found
