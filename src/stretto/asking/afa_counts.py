"""How far events get in an automaton: how many lead to each state, and how many take each arc.

Each number is that of the events at which an automaton gives output whose only final state is the one that is asked about; of an arc,
that in which the same arc leads to a final state of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from stretto.asking.afa_events import AfaTrial
from stretto.asking.explanation import in_words
from stretto.asking.trying import Number
from stretto.explaining.afa import draw_afa
from stretto.explaining.dot import Drawing, Stage
from stretto.query.afa import Afa, Arc, Emit, Kind, beginning, fence_text

#: States and arcs that are counted; those behind have no number.
MOST_COUNTED = 64

#: The state to which an arc leads that is asked about, and the arc; no state or arc of the user has this name.
_ASKED = "\0"

_SCHEMA = pa.schema(
    [
        ("state", pa.string()),
        ("arc", pa.string()),
        ("target", pa.string()),
        ("events", pa.int64()),
        ("at_least", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class ArcCounts:
    """How many events lead to the states of an automaton, and take its arcs; what is in neither has no number."""

    afa: Afa
    states: Mapping[str, Number]
    arcs: Mapping[str, Number]

    @property
    def lines(self) -> list[str]:
        """In words: each state, and below it the arcs that leave it."""
        lines = []
        for state in self.afa.states:
            lines.append(f"{state}{' (final)' * (state in self.afa.finals)}{_told(self.states.get(state))}")
            for arc in self._leaving(state):
                fence = fence_text(arc)
                way = "ignores" if arc.kind is Kind.IGNORE else f"-> {arc.target}"
                sort = "ε " if arc.kind is Kind.EPSILON else ""
                when = f" when {fence}" if fence else ""
                lines.append(f"  {arc.id} {sort}{way}{when}{_told(self.arcs.get(arc.id))}")
        return lines

    def _leaving(self, state: str) -> list[Arc]:
        return [arc for arc in self.afa.arcs if arc.source == state]

    @property
    def table(self) -> pa.Table:
        """As a table."""
        rows: list[dict[str, Any]] = []
        for state in self.afa.states:
            rows.append({"state": state} | _cells(self.states.get(state)))
            for arc in self._leaving(state):
                rows.append({"state": state, "arc": arc.id, "target": arc.target} | _cells(self.arcs.get(arc.id)))
        return pa.Table.from_pylist(rows, _SCHEMA)

    def draw(self, of: str) -> Drawing:
        """As a picture; ``of`` says of how many events."""
        states, arcs = (
            {name: Stage((_in_words(one),), one.value) for name, one in own.items()} for own in (self.states, self.arcs)
        )
        return draw_afa(self.afa, states, arcs, [of])


def arc_counts(trial: AfaTrial) -> ArcCounts:
    """Count the events of an automaton's states and arcs.

    A state in which it may begin has no number, nor an arc that takes no event.

    Raises
    ------
    OptionError, DataError
        The automaton does not fit the events.
    """
    afa = trial.events.afa
    trial.executor(afa)  # an automaton that does not fit is an error
    states, arcs = dict[str, Number](), dict[str, Number]()
    begins = beginning(afa)
    for state in [one for one in afa.states if one not in begins][:MOST_COUNTED]:
        states[state] = trial.completing(replace(afa, finals={state: Emit.ON_ENTER}))
    taking = [arc for arc in afa.arcs if arc.kind is not Kind.EPSILON]
    for arc in taking[: MOST_COUNTED - len(states)]:
        entering = [one for one in afa.arcs if one.target == arc.target and one.kind is not Kind.IGNORE]
        if states.get(arc.source) == Number(0):
            arcs[arc.id] = Number(0)
        elif entering == [arc] and arc.target in states:
            arcs[arc.id] = states[arc.target]  # nothing else leads there
        else:
            asked = replace(arc, id=_ASKED, target=_ASKED, then=None, kind=Kind.CONSUME)
            arcs[arc.id] = trial.completing(replace(afa, arcs=(*afa.arcs, asked), finals={_ASKED: Emit.ON_ENTER}))
    return ArcCounts(afa, states, arcs)


def _told(number: Number | None) -> str:
    return "" if number is None else f": {_in_words(number)}"


def _in_words(number: Number) -> str:
    return f"{'' if number.exact else 'at least '}{in_words(number.value)}"


def _cells(number: Number | None) -> dict[str, Any]:
    return {
        "events": None if number is None else number.value,
        "at_least": number is not None and not number.exact,
    }
