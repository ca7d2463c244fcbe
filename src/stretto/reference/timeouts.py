"""The reference evaluator of ``timeouts=``: for each first event the furthest partial match, by brute force over all of them.

>>> import pyarrow as pa
>>> from stretto.events import Schema
>>> from stretto.languages.sase import parse
>>> from stretto.query.passes.bind_sase import bind_sase
>>> events = pa.table({"type": ["A", "B", "A", "D"], "t": [0, 1, 2, 9]})
>>> query = bind_sase(parse("PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { } WITHIN 5 [t]"), Schema.of(events, time="t"))
>>> for timeout in evaluate_timeouts(query, events):
...     print(timeout)
Timeout(closed=3, start=0, reached='b', expired=5, bindings=(('a', (0,)), ('b', (1,)), ('c', ())))
Timeout(closed=3, start=2, reached='a', expired=7, bindings=(('a', (2,)), ('b', ()), ('c', ())))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stretto.query.passes.bind_sase import BoundSase
from stretto.query.sase import Component, Part
from stretto.reference.sase import Automaton, Run, matches_of, measure, substreams, variants


@dataclass(frozen=True)
class Timeout:
    """A first event whose window has closed without a match that begins with it, and its furthest partial match."""

    #: The row with which the window is closed; the number of rows: a punctuation behind them closes it.
    closed: int
    start: int
    #: The variable of the last event.
    reached: str
    #: The last time of the window; ``None``: it counts events.
    expired: int | float | None
    bindings: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The rows of the partial match."""
        return tuple(sorted(row for _, rows in self.bindings for row in rows))


def evaluate_timeouts(query: BoundSase, events: pa.Table, until: int | float | None = None) -> list[Timeout]:
    """Every timeout over a table whose rows are in stream order, by the event that closes the window, then by first event.

    ``until``: after all rows, no event before this time will come.
    """
    rows = events.to_pylist()
    streams = substreams(query, rows)
    clock = sorted(row for members in streams for row in members)
    found: list[Timeout] = []
    for members in streams:
        matched = {match.start for match in matches_of(query, rows, members)}
        for start, (automaton, run) in _furthest(query, rows, members).items():
            closed = _closing(query, rows, members, clock, start, until)
            if closed is None or start in matched:
                continue
            held = tuple(automaton.held(run).items())
            found.append(Timeout(closed, start, automaton.reached(run), _last_time(query, rows[start]), held))
    return sorted(found, key=lambda one: (one.closed, one.start))


def _furthest(
    query: BoundSase, rows: Sequence[Mapping[str, Any]], members: Sequence[int]
) -> dict[int, tuple[Automaton, Run]]:
    """For each first event the partial match that got furthest."""
    automata = [Automaton(query, rows, members, one) for one in patterns(query, len(members))]
    found: dict[int, tuple[Automaton, Run]] = {}
    for row in members:
        for one in automata:
            one.read(row)
            for run in one.partial():
                best = found.get(run.first)
                if best is None or _rank(one, run) < _rank(*best):
                    found[run.first] = one, run
    return found


def patterns(query: BoundSase, events: int) -> list[tuple[Component, ...]]:
    """The patterns that a query stands for, as long as so many events can begin them."""
    # As many components as events may hold, and those that a match of them may still lack.
    return variants(query.parsed.parts, events + _least(query.parsed.parts))


def _rank(automaton: Automaton, run: Run) -> Any:
    """What comes first got furthest: the latest component, the most events, the least positions; then, at the first event that
    differs, the later component."""
    components = [
        automaton.order[automaton.components[at].variable] for at, own in enumerate(run.selected) for _ in own
    ]
    positions = [row for own in run.selected for row in own]
    return -components[-1], -len(positions), positions, [-one for one in components]


def _least(parts: Sequence[Part]) -> int:
    """As many components as anything that is begun may lack: what the pattern must have, and a round of what it may leave out."""
    return sum(_least_of(one) for one in parts)


def _least_of(part: Part) -> int:
    if isinstance(part, Component):
        return 1 if part.least and not part.negated else 0
    inside = [_least_of(one) for one in part.parts]
    return max(1, part.least) * (max(inside) if part.choice else sum(inside))


def _closing(
    query: BoundSase,
    rows: Sequence[Mapping[str, Any]],
    members: Sequence[int],
    clock: Sequence[int],
    start: int,
    until: int | float | None,
) -> int | None:
    """The row that closes the window of a first event; ``None``: it is open."""
    window = query.window
    assert window is not None
    if window.attribute is None:
        behind = members[members.index(start) + int(window.size) + 1 :]
        return behind[0] if behind else None
    first = measure(query, rows[start])
    for row in clock:
        if row > start and measure(query, rows[row]) - first > window.size:
            return row
    if until is not None and until - first > window.size:
        return len(rows)
    return None


def _last_time(query: BoundSase, event: Mapping[str, Any]) -> int | float | None:
    assert query.window is not None
    return None if query.window.attribute is None else measure(query, event) + query.window.size
