"""The reference evaluator of ``timeouts=``: for each first event the furthest partial match, by brute force over all of them.

>>> import pyarrow as pa
>>> from stretto.events import Schema
>>> from stretto.languages.sase import parse
>>> from stretto.query.passes.bind_sase import bind_sase
>>> events = pa.table({"type": ["A", "B", "A", "D"], "t": [0, 1, 2, 9]})
>>> query = bind_sase(parse("PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { } WITHIN 5 [t]"), Schema.of(events, time="t"))
>>> for timeout in evaluate_timeouts(query, events):
...     print(timeout)
Timeout(closed=3, start=0, reached='b', expired=5, positions=(0, 1), bindings=(('a', (0,)), ('b', (1,)), ('c', ())))
Timeout(closed=3, start=2, reached='a', expired=7, positions=(2,), bindings=(('a', (2,)), ('b', ()), ('c', ())))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa

from stretto.query import algebra as a
from stretto.query.passes.bind import AnyBound, BoundQuery
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.query import Strategy
from stretto.query.sase import Component, Part, places
from stretto.query.windows import Window
from tests.reference import ceql, sase
from tests.reference.sase import Automaton, Run, matches_of, variants

Rows = Sequence[Mapping[str, Any]]


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
    #: The rows of the partial match that are shown.
    positions: tuple[int, ...]
    bindings: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class _Partial:
    """A partial match: how far it got (what comes first got furthest), and what is shown of it."""

    rank: Any
    reached: str
    positions: tuple[int, ...]
    bindings: tuple[tuple[str, tuple[int, ...]], ...]


def evaluate_timeouts(query: AnyBound, events: pa.Table, until: int | float | None = None) -> list[Timeout]:
    """Every timeout over a table whose rows are in stream order, by the event that closes the window, then by first event.

    ``until``: after all rows, no event before this time will come.
    """
    rows = events.to_pylist()
    if isinstance(query, BoundQuery):
        streams = ceql.substreams(query, rows)
        begun = [_of_ceql(query, rows, members) for members in streams]
        matched = {match.start for match in ceql.evaluate(query, events)}
    else:
        streams = sase.substreams(query, rows)
        begun = [_of_sase(query, rows, members) for members in streams]
        matched = {match.start for members in streams for match in matches_of(query, rows, members)}
    clock = [row for row, event in enumerate(rows) if _has_time(query, event)]
    found: list[Timeout] = []
    for members, partial in zip(streams, begun, strict=True):
        for start, one in partial.items():
            closed = _closing(query, rows, members, clock, start, until)
            if closed is not None and start not in matched:
                last = _last_time(query, rows[start])
                found.append(Timeout(closed, start, one.reached, last, one.positions, one.bindings))
    return sorted(found, key=lambda one: (one.closed, one.start))


# ---- SASE+: what the runs of the variants have selected


def _of_sase(query: BoundSase, rows: Rows, members: Sequence[int]) -> dict[int, _Partial]:
    """For each first event the partial match that got furthest."""
    automata = [Automaton(query, rows, members, one) for one in patterns(query, len(members))]
    place = places(query.parsed.parts)
    found: dict[int, _Partial] = {}
    for row in members:
        for one in automata:
            one.read(row)
            for run in one.partial():
                held = tuple(one.held(run).items())
                positions = tuple(sorted(row for _, own in held for row in own))
                partial = _Partial(_rank(one, run, place), one.reached(run), positions, held)
                if run.first not in found or partial.rank < found[run.first].rank:
                    found[run.first] = partial
    return found


def patterns(query: BoundSase, events: int) -> list[tuple[Component, ...]]:
    """The patterns that a query stands for, as long as so many events can begin them."""
    return variants(query.parsed.parts, longest(query, events))


def longest(query: BoundSase, events: int) -> int:
    """As many components as events may hold, and those that a match of them may still lack."""
    return events + _least(query.parsed.parts)


def _rank(automaton: Automaton, run: Run, place: Mapping[str, int]) -> Any:
    """What comes first got furthest: the latest place in the pattern, the most events, the least positions; then, at the first event
    that differs, the later component."""
    components = [
        automaton.order[automaton.components[at].variable] for at, own in enumerate(run.selected) for _ in own
    ]
    positions = [row for own in run.selected for row in own]
    return -place[automaton.reached(run)], -len(positions), positions, [-one for one in components]


def _least(parts: Sequence[Part]) -> int:
    """As many components as anything that is begun may lack: what the pattern must have, and a round of what it may leave out."""
    return sum(_least_of(one) for one in parts)


def _least_of(part: Part) -> int:
    if isinstance(part, Component):
        return 1 if part.least and not part.negated else 0
    inside = [_least_of(one) for one in part.parts]
    return max(1, part.least) * (max(inside) if part.choice else sum(inside))


# ---- CEQL: the matches of the formula's beginnings


def beginnings(formula: a.Pattern) -> a.Pattern:
    """The formula whose matches are the partial matches of another one, which has no NOT at its ends.

    >>> one, two = a.Atom("A"), a.Atom("B")
    >>> print(beginnings(a.Sequence((a.Plus(one), two), (False,))))
    ((A OR ((A+) ; A)) OR ((A+) ; B))
    """
    match formula:
        case a.Atom():
            return formula
        case a.Or(alternatives):
            return a.Or(tuple(map(beginnings, alternatives)))
        case a.Sequence(parts, contiguous):
            found = []
            for k, part in enumerate(parts):
                if not isinstance(part, a.Not):
                    found.append(a.Sequence((*parts[:k], beginnings(part)), contiguous[:k]) if k else beginnings(part))
            return a.Or(tuple(found))
        case a.Plus(body, contiguous, gap):
            return a.Or((beginnings(body), _again(formula, body, contiguous, gap)))
        case a.Repeat(body, _, 1):
            return beginnings(body)
        case a.Repeat(body, _, most, contiguous, gap):
            before = a.Repeat(body, 1, None if most is None else most - 1, contiguous, gap)
            return a.Or((beginnings(body), _again(before, body, contiguous, gap)))
        case a.As() | a.Filter() | a.After() | a.Within() | a.Project():
            return replace(formula, body=beginnings(formula.body))
        case a.Not():
            raise AssertionError("nothing begins with what must not happen")


def _again(before: a.Pattern, body: a.Pattern, contiguous: bool, gap: Window | None) -> a.Pattern:
    """What is repeated, and one more that has begun."""
    more = beginnings(body)
    if gap is not None:
        size = {"events": 0} if gap.events is not None else {"number": 0}
        more = a.After(more, Window(**size, attribute=gap.attribute), gap)  # type: ignore[arg-type]
    return a.Sequence((before, more), (contiguous,))


@dataclass(frozen=True)
class _Type:
    """A type of a formula: how many may stand before it, and the name of what it reaches."""

    place: int
    name: str


def _marked(formula: a.Pattern, types: list[_Type], place: int, name: str | None) -> tuple[a.Pattern, int]:
    """A formula whose types, which are noted, have their numbers as names; and how many may stand in it."""
    match formula:
        case a.Atom():
            types.append(_Type(place, name or formula.type))
            return a.As(formula, _mark(len(types) - 1)), 1
        case a.Or(alternatives):
            inner, widths = zip(*(_marked(one, types, place, name) for one in alternatives), strict=True)
            return a.Or(inner), max(widths)
        case a.Sequence(parts, contiguous):
            marked, begin = [], place
            for part in parts:
                one, width = (part, 0) if isinstance(part, a.Not) else _marked(part, types, place, name)
                marked.append(one)
                place += width
            return a.Sequence(tuple(marked), contiguous), place - begin
        case a.Not():
            raise AssertionError("a sequence leaves it as it is")
        case _:
            inside = formula.variable if isinstance(formula, a.As) else name
            body, width = _marked(formula.body, types, place, inside)
            return replace(formula, body=body), width


def _mark(number: int) -> str:
    return f"\0{number}"


def _of_ceql(query: BoundQuery, rows: Rows, members: Sequence[int]) -> dict[int, _Partial]:
    """For each first event the partial match that got furthest."""
    stream = [rows[i] for i in members]
    formula = a.fold(query.pattern, ceql.between_ends)
    kept = formula.variables if isinstance(formula, a.Project) else None
    formula = formula.body if isinstance(formula, a.Project) else formula
    types: list[_Type] = []
    marked, _ = _marked(formula, types, 0, None)
    number = {_mark(one): one for one in range(len(types))}
    found: dict[int, _Partial] = {}
    for v in ceql.valuations(beginnings(marked), stream, query):
        typed = dict(sorted((i, number[name]) for name, i in v.bindings if name in number))
        shown = {(name, i) for name, i in v.bindings if name not in number and (kept is None or name in kept)}
        held = sorted({i for _, i in shown})
        if not ceql.within(query, stream, v):
            continue
        if query.parsed.strategy is Strategy.STRICT and held != list(range(v.start, v.end + 1)):
            continue
        last = types[typed[v.end]]
        rank = (-last.place, -len(typed), list(typed), [-one for one in typed.values()])
        variables = [name for name, _ in query.selected]
        bindings = tuple((name, tuple(members[i] for i in held if (name, i) in shown)) for name in variables)
        start = members[v.start]
        if start not in found or rank < found[start].rank:
            found[start] = _Partial(rank, last.name, tuple(members[i] for i in held), bindings)
    return found


# ---- Windows


def _closing(
    query: AnyBound,
    rows: Rows,
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


def _last_time(query: AnyBound, event: Mapping[str, Any]) -> int | float | None:
    assert query.window is not None
    return None if query.window.attribute is None else measure(query, event) + query.window.size


def _has_time(query: AnyBound, event: Mapping[str, Any]) -> bool:
    """Whether an event moves time on: of any type, stream or key, or without one, if it has what the window measures."""
    assert query.window is not None
    name = query.window.attribute
    return name is not None and event[name] is not None


def measure(query: AnyBound, event: Mapping[str, Any]) -> int | float:
    """The attribute that the window measures."""
    # It reads schema and window, which both kinds of queries have.
    return sase.measure(cast(BoundSase, query), event)
