"""SASE+ with negations between components and no condition between events: random queries and streams, which tECS runs too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stretto.automata.nfab import build
from stretto.automata.shortcut import why_not
from stretto.errors import LimitError, QueryError
from stretto.events import Schema
from stretto.languages import sase
from stretto.query.sase import Component, Group, Part
from tests.cases.choices import Choices, Seeded
from tests.cases.sase.engines import check
from tests.cases.sase.queries import SaseCase, events_for
from tests.cases.variants import MOST_VARIANTS, parts_of, ways

__all__ = ["case", "check"]

_STRATEGIES = ("skip_till_any_match", "skip_till_any_match", "skip_till_any_match", "partition_contiguity")
_CONDITIONS = ("{}.v > 1", "{}.v <= 2", "{}.name = 'a'", "{}.w is null")


def case(seed: int) -> SaseCase:
    """A case from a seed: one that tECS may run."""
    choose = Seeded(seed)
    while True:
        try:
            found = _case(choose)
            if sum(ways(found.query.parts, found.events.num_rows)) > MOST_VARIANTS:
                continue  # the reference lists them
            nfab = build(found.bound)
        except (QueryError, LimitError):
            continue  # it says what has no one meaning: drawn again
        if nfab.negations and not why_not(nfab):
            return found


def _case(choose: Choices) -> SaseCase:
    parts = parts_of(choose, list("abcd"[: choose.integer(2, 4)]), ends=False)
    negated = [Component((choose.one_of("ABCD"),), name, negated=True) for name in "mn"[: choose.integer(1, 2)]]
    for one in negated:
        parts = _with(choose, parts, one)
    conditions = [
        choose.one_of(_CONDITIONS).format(one.variable)
        for one in (*negated, *parts)
        if isinstance(one, Component) and not one.many
    ]
    asked = [*choose.one_of([(), ("[k]",), ("[name]",)]), *(one for one in conditions if choose.chance(30))]
    window = choose.one_of(["", "", f"\nWITHIN {choose.integer(2, 8)} EVENTS", f"\nWITHIN {choose.integer(3, 9)} [t]"])
    text = f"PATTERN SEQ({', '.join(map(str, parts))})\nWHERE {choose.one_of(_STRATEGIES)} {{ {' and '.join(asked)} }}{window}"
    if choose.chance(10):
        text += f"\nLIMIT {choose.integer(1, 3)}"
    query = sase.parse(text)
    events = events_for(choose, query).slice(0, 9)
    return SaseCase(query, Schema.of(events, time="t"), events)


def _with(choose: Choices, parts: Sequence[Part], negation: Component) -> list[Part]:
    """Parts with a negation somewhere between them, or between those of a group."""
    groups = [
        at for at, part in enumerate(parts) if isinstance(part, Group) and len(part.parts) > 1 and not part.choice
    ]
    if groups and choose.chance(50):
        at = choose.one_of(groups)
        group = parts[at]
        assert isinstance(group, Group)
        return [*parts[:at], replace(group, parts=tuple(_with(choose, group.parts, negation))), *parts[at + 1 :]]
    at = choose.integer(0, len(parts))
    return [*parts[:at], negation, *parts[at:]]
