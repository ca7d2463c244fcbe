"""Counts, sums, the best matches and samples, straight from the definition: all matches are listed, and added up.

SEMANTICS.md (counts and sums over all matches). It is the judge of the engines' tests, and as slow as listing is.

>>> import pyarrow as pa
>>> import stretto
>>> events = pa.table({"type": ["A", "B", "B"], "v": [1, 2, 3]})
>>> query = stretto.compile("SELECT COUNT(*), SUM(b[v]) FROM S WHERE A; B+ AS b", events.schema)
>>> total_rows(query.bound, events)
[{'count': 3, 'sum_b_v': 10}]
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from stretto.query.evaluate import Beyond, bounded
from stretto.query.passes.bind import AnyBound, number
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.bind_totals import BoundBest, BoundScope, BoundTotal, BoundTotals, Panes
from stretto.query.totals import Extent, Function
from tests.reference import ceql, sase

Event = Mapping[str, Any]
Held = Callable[[str], frozenset[int]]

_INT64 = range(-(1 << 63), 1 << 63)


class Undecided(Exception):
    """Runs of one complex event disagree on which events a variable holds."""


class Overflow(Exception):
    """A count or a sum that is part of the result leaves 64 bits."""


@dataclass(frozen=True)
class Listed:
    """A match, with the events that each variable holds."""

    start: int
    end: int
    positions: tuple[int, ...]
    held: Held
    undecided: str | None = None  #: a variable of which runs of the match disagree what it holds

    @property
    def place(self) -> tuple[Any, ...]:
        """What decides between equal scores: the later start, then the later end, then the latest event that only one of two has."""
        return -self.start, -self.end, (*(-position for position in reversed(self.positions)), math.inf)


@dataclass(frozen=True)
class Part:
    """The matches of one row: of one window or event, and of one group."""

    place: tuple[int, ...]  #: the end of an event's matches, or where a window starts
    group: tuple[Any, ...]
    matches: list[Listed]


# ---- Rows


def total_rows(query: AnyBound, events: pa.Table, *, valuations: bool = False) -> list[dict[str, Any]]:
    """The rows of a query that counts and sums, by window or event, over a table whose rows are in stream order.

    Where windows measure time, ``window_start`` and ``window_end`` are in the units of the bound query.

    Raises
    ------
    Undecided
        Which events a variable holds is not the complex event's to say.
    Overflow
        An integer that is part of the result leaves 64 bits.
    """
    return rows_of(query, parts(query, events, valuations=valuations), events.to_pylist())


def rows_of(query: AnyBound, found: Sequence[Part], rows: Sequence[Event]) -> list[dict[str, Any]]:
    """The rows of what is counted and added up, of matches by window or event and by group; ``rows`` are the events."""
    asked = query.asked
    assert isinstance(asked, BoundTotals)
    scope = asked.scope
    if scope.extent is Extent.TABLE and not scope.groups and not found:
        found = [Part((), (), [])]
    return [
        {
            **_place(part, scope),
            **dict(zip((group.name for group in scope.groups), part.group, strict=True)),
            **{item.name: total(item, part.matches, rows) for item in asked.items},
        }
        for part in found
    ]


def _place(part: Part, scope: BoundScope) -> dict[str, int]:
    match scope.extent:
        case Extent.EVENT:
            return {"start": min(match.start for match in part.matches), "end": part.place[0]}
        case Extent.WINDOW:
            assert scope.panes is not None
            return {"window_start": part.place[0], "window_end": part.place[0] + scope.panes.size}
        case _:
            return {}


def best_of(query: AnyBound, events: pa.Table, *, valuations: bool = False) -> list[Part]:
    """The best matches of each window or event and of each group, in the order of their rank, as :func:`total_rows` raises."""
    asked = query.asked
    assert isinstance(asked, BoundBest)
    rows = events.to_pylist()
    found = []
    for part in parts(query, events, valuations=valuations):
        ranked = sorted(part.matches, key=lambda match: (_rank(score(asked, match, rows), asked), match.place))
        found.append(replace(part, matches=ranked[: asked.most]))
    return found


def _rank(value: float, asked: BoundBest) -> tuple[bool, float]:
    """Where a score stands: one that is no finite number comes last."""
    if not math.isfinite(value):
        return True, 0
    return False, -value if asked.descending else value


def score(asked: BoundBest, match: Listed, rows: Sequence[Event]) -> int | float:
    """What the events of a match add up to, in their order; those without a value add nothing."""
    found: int | float = 0 if asked.exact else 0.0
    for i in sorted({*match.positions}.union(*(match.held(one.variable or "") for one in asked.score))):
        for one, factor in zip(asked.score, asked.factors, strict=True):
            assert one.variable is not None
            assert one.value is not None
            if i not in match.held(one.variable):
                continue
            own = bounded(one.value, rows[i])
            if isinstance(own, Beyond):
                raise Overflow(one.name)
            if own is None:
                continue
            if one.function is Function.COUNT:
                own = 1
            elif isinstance(own, Decimal) and asked.exact:
                assert one.kind is not None
                own = int(own.scaleb(one.kind.scale))
            elif isinstance(own, dt.timedelta):
                own = own // dt.timedelta(microseconds=1)
            found += factor * (own if asked.exact else float(own))
    if asked.exact and found not in _INT64:
        raise Overflow("score")
    return found


# ---- What a row is made of


def parts(query: AnyBound, events: pa.Table, *, valuations: bool) -> list[Part]:
    """All matches, by window or event and by group."""
    return parts_of(query, listed(query, events, _variables(query), valuations=valuations), events.to_pylist())


def parts_of(query: AnyBound, matches: Iterable[Listed], rows: Sequence[Event]) -> list[Part]:
    """Matches by window or event and by group; ``rows`` are the events. :class:`Undecided` where a row has such a match."""
    assert query.asked is not None
    scope = query.asked.scope
    found: dict[tuple[Any, ...], Part] = {}
    for match in matches:
        group = tuple(_group_value(one.variable, one.attribute, query, match, rows) for one in scope.groups)
        for place in _places(query, scope, match, rows):
            if match.undecided is not None:
                raise Undecided(match.undecided)
            key = place, tuple(map(_same, group))
            found.setdefault(key, Part(place, group, [])).matches.append(match)
    return sorted(found.values(), key=lambda part: part.place)


def _variables(query: AnyBound) -> set[str]:
    """The variables whose events are read."""
    asked = query.asked
    assert asked is not None
    items = asked.items if isinstance(asked, BoundTotals) else asked.score if isinstance(asked, BoundBest) else ()
    named = [one.variable for one in items] + [one.variable for one in asked.scope.groups]
    return {name for name in named if name is not None}


def listed(query: AnyBound, events: pa.Table, variables: Iterable[str], *, valuations: bool) -> Iterator[Listed]:
    """Every match; where WITHIN is the size of windows, whatever its length."""
    assert query.asked is not None
    if query.asked.scope.extent is Extent.WINDOW:
        query = replace(query, window=None)
    if isinstance(query, BoundSase):
        for run in sase.evaluate_sase(query, events):
            bindings = {name: frozenset(own) for name, own in run.bindings}
            yield Listed(
                run.start,
                run.end,
                tuple(sorted(run.positions)),
                lambda name, own=bindings: own.get(name, frozenset()),  # type: ignore[misc]
            )
        return
    for match in ceql.evaluate(query, events):
        each = [_held(one.bindings) for one in match.valuations]
        positions = tuple(sorted(match.positions))
        if valuations:
            yield from (Listed(match.start, match.end, positions, held) for held in each)
            continue
        undecided = next((name for name in variables if len({held(name) for held in each}) > 1), None)
        yield Listed(match.start, match.end, positions, each[0], undecided)


def _held(bindings: Iterable[tuple[str, int]]) -> Held:
    found: dict[str, set[int]] = {}
    for name, position in bindings:
        found.setdefault(name, set()).add(position)
    return lambda name: frozenset(found.get(name, ()))


def _group_value(variable: str | None, attribute: str, query: AnyBound, match: Listed, rows: Sequence[Event]) -> Any:
    """A key of the partition, or the attribute of the one event of a variable; NULL where a match lacks it."""
    if variable is None:
        row = rows[match.start]
        joined = {key.name: dict(key.parts) for key in query.parsed.joined}
        return row[joined[attribute][row[query.schema.stream or ""]] if attribute in joined else attribute]
    own = match.held(variable)
    return rows[min(own)][attribute] if own else None


def _same(value: Any) -> Any:
    """A value of which one NaN equals another."""
    return "NaN" if isinstance(value, float) and value != value else value


def _places(query: AnyBound, scope: BoundScope, match: Listed, rows: Sequence[Event]) -> Iterable[tuple[int, ...]]:
    """Of which rows a match is part: that of its last event, or those of all windows around it."""
    if scope.extent is not Extent.WINDOW:
        return [(match.end,)] if scope.extent is Extent.EVENT else [()]
    panes = scope.panes
    assert panes is not None
    low, high = (_measured(query, panes, row, rows) for row in (match.start, match.end))
    first = -((panes.size - 1 - high) // panes.slide)  # the least k with high < k · slide + size
    return [(k * panes.slide,) for k in range(first, low // panes.slide + 1)]


def _measured(query: AnyBound, panes: Panes, row: int, rows: Sequence[Event]) -> int:
    if panes.attribute is not None:
        return int(number(rows[row][panes.attribute], query, panes.attribute))
    own = sase.substreams(query, rows) if isinstance(query, BoundSase) else ceql.substreams(query, rows)
    return next(members.index(row) for members in own if row in members)


# ---- Totals


def total(item: BoundTotal, matches: Sequence[Listed], rows: Sequence[Event]) -> Any:
    """A count or a sum over the events of a variable in all matches; NULLs are left out, and of nothing only a count is known."""
    if item.variable is None:
        return _whole(item, len(matches))
    assert item.value is not None
    values = [bounded(item.value, rows[i]) for match in matches for i in sorted(match.held(item.variable))]
    if any(isinstance(one, Beyond) for one in values):
        raise Overflow(item.name)
    values = [one for one in values if one is not None]
    if item.function is Function.COUNT:
        return _whole(item, len(values))
    return _added_up(item, values) if values else None


def _added_up(item: BoundTotal, values: Sequence[Any]) -> Any:
    match item.function:
        case Function.MIN | Function.MAX:
            if any(one != one for one in values):
                return math.nan
            return (min if item.function is Function.MIN else max)(values)
        case Function.AVG:
            return _sum_of_reals(values) / len(values)
    if item.kind is not None and pa.types.is_duration(item.kind):
        return sum(values, dt.timedelta())
    if pa.types.is_floating(item.type):
        return _sum_of_reals(values)
    return _whole(item, sum(values))


def _whole(item: BoundTotal, found: int | Decimal) -> int | float | Decimal:
    """An integer of 64 bits, which of a decimal is its digits; a double where one is asked for."""
    if item.floating:
        return float(found)
    scaled = found.scaleb(item.type.scale) if isinstance(found, Decimal) else found
    if int(scaled) not in _INT64:
        raise Overflow(item.name)
    return found


def _sum_of_reals(values: Sequence[Any]) -> float:
    """The sum of numbers as doubles, whatever their order."""
    reals = [float(one) for one in values]
    if any(one != one for one in reals) or {math.inf, -math.inf} <= set(reals):
        return math.nan
    return next((one for one in reals if math.isinf(one)), None) or math.fsum(reals)
