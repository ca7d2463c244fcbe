"""The reference evaluator: what a query means, straight from the definitions, by brute force.

CORE paper, figure 2 (valuations of a formula), section 2.2 (complex events), SEMANTICS.md (selection strategies,
windows, consumption). It is the judge of the engines' tests, and slow: exponential in the number of events.

>>> import pyarrow as pa
>>> from stretto.languages.ceql import parse
>>> from stretto.query.passes.bind import bind
>>> from stretto.events import Schema
>>> events = pa.table({"type": ["A", "B", "B"]})
>>> query = bind(parse("SELECT * FROM S WHERE A; B"), Schema.of(events))
>>> [(m.start, m.end, sorted(m.positions)) for m in evaluate(query, events)]
[(0, 1, [0, 1]), (0, 2, [0, 2])]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stretto.query import algebra as a
from stretto.query.evaluate import holds
from stretto.query.passes.bind import BoundQuery, number
from stretto.query.query import Consume, Strategy
from stretto.query.windows import Window
from tests.reference.keeping import kept

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Valuation:
    """``([start, end], μ)``: ``bindings`` holds the pairs (variable, position) of μ."""

    start: int
    end: int
    bindings: frozenset[tuple[str, int]]

    @property
    def positions(self) -> frozenset[int]:
        """The data of the complex event that the valuation stands for: C_V(data)."""
        return frozenset(position for _, position in self.bindings)


@dataclass(frozen=True)
class Match:
    """A complex event ``([start, end], D)`` with the valuations that it stands for; positions are rows of the input."""

    start: int
    end: int
    positions: frozenset[int]
    valuations: frozenset[Valuation]


def valuations(  # noqa: C901, PLR0911, PLR0912 - an operator a case
    pattern: a.Pattern, stream: Sequence[Event], query: BoundQuery
) -> frozenset[Valuation]:
    """⌈φ⌋(S), figure 2: every valuation of a formula over a finite stream that holds events (positions are indices of ``stream``)."""
    match pattern:
        case a.Atom():
            return frozenset(
                Valuation(i, i, frozenset((label, i) for label in pattern.labels))
                for i, event in enumerate(stream)
                if _is_of(event, pattern, query)
            )
        case a.As(body, variable):
            return frozenset(
                Valuation(v.start, v.end, v.bindings | {(variable, i) for i in v.positions})
                for v in valuations(body, stream, query)
            )
        case a.Filter(body, variable, predicate):
            return frozenset(
                v
                for v in valuations(body, stream, query)
                if all(holds(predicate, stream[i]) for name, i in v.bindings if name == variable)
            )
        case a.Or(alternatives):
            return frozenset().union(*(valuations(part, stream, query) for part in alternatives))
        case a.Sequence(parts, contiguous):
            #: What the next part may follow, with the positions that must not lie before it.
            tails = [(valuations(parts[0], stream, query), frozenset[int]())]
            missing = a.nullable(parts[0])
            for joint, step in zip(contiguous, parts[1:], strict=True):
                part = step.body if isinstance(step, a.After) else step
                if isinstance(part, a.Not):
                    banned = {v.start for v in valuations(part.body, stream, query)}
                    tails = [(found, before | banned) for found, before in tails]
                    continue
                own, optional = valuations(part, stream, query), a.nullable(part)
                pairs = (_pairs(found, own, joint, banned) for found, banned in tails)
                if isinstance(step, a.After):
                    joined = frozenset(
                        _together(v, w) for one in pairs for v, w in one if _after(v, w, step, stream, query)
                    )
                else:
                    joined = frozenset(_together(v, w) for one in pairs for v, w in one)
                tails = [*(tails if optional else ()), (joined | (own if missing else set()), frozenset())]
                missing &= optional
            return frozenset().union(*(found for found, _ in tails))
        case a.Plus(body, contiguous, gap):
            once = valuations(body, stream, query)
            every = found = once
            while found:
                found = _again(found, once, contiguous, gap, stream, query) - every
                every |= found
            return every
        case a.Repeat(body, least, most, contiguous, gap):
            found = once = valuations(body, stream, query)
            enough: frozenset[Valuation] = frozenset()
            for number in range(1, 1 + (len(stream) if most is None else most)):
                enough |= found if number >= least or a.nullable(body) else frozenset()
                found = _again(found, once, contiguous, gap, stream, query)
            return enough
        case a.Within(body, window):
            return frozenset(
                v
                for v in valuations(body, stream, query)
                if _apart(v.start, v.end, stream, query) <= query.size(window)
            )
        case a.After():
            raise AssertionError("a sequence asks how long after the step before")
        case a.Not():
            raise AssertionError("a sequence asks what must not happen")
        case a.Project(body, kept):
            return frozenset(
                Valuation(v.start, v.end, frozenset(pair for pair in v.bindings if pair[0] in kept))
                for v in valuations(body, stream, query)
            )


def _pairs(
    first: Iterable[Valuation], second: Iterable[Valuation], contiguous: bool, banned: frozenset[int] = frozenset()
) -> Iterator[tuple[Valuation, Valuation]]:
    """Which can be one after the other, with no position of ``banned`` in between."""
    right = list(second)
    for v in first:
        for w in right:
            fits = v.end + 1 == w.start if contiguous else v.end < w.start
            if fits and not any(v.end < position < w.start for position in banned):
                yield v, w


def _together(v: Valuation, w: Valuation) -> Valuation:
    return Valuation(v.start, w.end, v.bindings | w.bindings)


def _again(
    found: Iterable[Valuation],
    once: Iterable[Valuation],
    contiguous: bool,
    gap: Window | None,
    stream: Sequence[Event],
    query: BoundQuery,
) -> frozenset[Valuation]:
    """One more of a repetition, at most ``gap`` after what was found."""
    return frozenset(
        _together(v, w)
        for v, w in _pairs(found, once, contiguous)
        if gap is None or _apart(v.end, w.start, stream, query) <= query.size(gap)
    )


def _after(v: Valuation, w: Valuation, step: a.After, stream: Sequence[Event], query: BoundQuery) -> bool:
    between = _apart(v.end, w.start, stream, query)
    return query.size(step.least) <= between and (step.most is None or between <= query.size(step.most))


def _apart(first: int, last: int, stream: Sequence[Event], query: BoundQuery) -> int | float:
    """How far apart two events are, by the clock of the gaps."""
    if query.clock is None:
        return last - first
    late, early = (number(stream[i][query.clock], query, query.clock) for i in (last, first))
    return late - early


def _is_of(event: Event, atom: a.Atom, query: BoundQuery) -> bool:
    schema = query.schema
    only = query.parsed.streams[0]
    stream = event[schema.stream] if schema.stream else only
    kind = event[schema.type] if schema.type else stream
    return bool(kind == atom.type and (atom.stream is None or stream == atom.stream))


def evaluate(query: BoundQuery, events: pa.Table) -> list[Match]:
    """Every complex event of a query over a table whose rows are in stream order, by end, then start, then positions.

    ``LIMIT n`` is applied with ties (equal starts of one trigger) broken by positions; engines may break them otherwise.
    """
    rows = events.to_pylist()
    found: list[Match] = []
    for members in substreams(query, rows):
        stream = [rows[i] for i in members]
        matches = kept(_select(query, stream), query.parsed.keep, _held, lambda _: ())
        found += [_at(match, members) for match in matches]
    found.sort(key=lambda m: (m.end, m.start, sorted(m.positions)))
    return _limit(_consume(query, found, rows), query.parsed.limit)


def substreams(query: BoundQuery, rows: Sequence[Event]) -> list[list[int]]:
    """The rows of each substream: those of a FROM stream, split by the partition attributes, none of them NULL."""
    stream = query.schema.stream
    parts: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(rows):
        if stream is not None and row[stream] not in query.parsed.streams:
            continue
        key = _key(query, row)
        if None not in key:
            parts.setdefault(key, []).append(i)
    return list(parts.values())


def _key(query: BoundQuery, row: Event) -> tuple[Any, ...]:
    """What an event has as the partition attributes, of which each stream may call some differently."""
    joined = {key.name: dict(key.parts)[row[query.schema.stream or ""]] for key in query.parsed.joined}
    return tuple(_same(row[joined.get(name, name)]) for name in query.partition_by)


def _same(value: Any) -> Any:
    """A key value such that one NaN equals another."""
    return "NaN" if isinstance(value, float) and value != value else value


def _select(query: BoundQuery, stream: Sequence[Event]) -> list[Match]:
    """The complex events of one substream, after window and selection strategy."""
    groups: dict[tuple[int, int], dict[frozenset[int], set[Valuation]]] = {}
    absent = [[v.start for one in nots for v in valuations(one.body, stream, query)] for nots in a.ends(query.pattern)]
    for v in valuations(a.fold(query.pattern, between_ends), stream, query):
        if within(query, stream, v) and not _occurs(query, stream, v, *absent):
            groups.setdefault((v.start, v.end), {}).setdefault(v.positions, set()).add(v)
    return [
        Match(start, end, positions, frozenset(same[positions]))
        for (start, end), same in groups.items()
        for positions in same
        if _kept(query.parsed.strategy, positions, same, start, end)
    ]


def between_ends(node: a.Pattern) -> a.Pattern:
    """A sequence without what must not come before its first or after its last step."""
    if not isinstance(node, a.Sequence) or not any(a.ends(node)):
        return node
    low, high = len(a.ends(node)[0]), len(node.parts) - len(a.ends(node)[1])
    parts = node.parts[low:high]
    return parts[0] if len(parts) == 1 else a.Sequence(parts, node.contiguous[low : high - 1])


def _occurs(query: BoundQuery, stream: Sequence[Event], v: Valuation, before: list[int], after: list[int]) -> bool:
    """Whether one of some events lies in the window before the first event of a match, or one of others in that after the last."""
    if query.window is None or query.window.attribute is None:
        return False
    name, size = query.window.attribute, query.window.size
    time = [number(event[name], query, name) for event in stream]
    first, last = time[v.start], time[v.end]
    return any(i < v.start and last - time[i] <= size for i in before) or any(
        i > v.end and time[i] - first <= size for i in after
    )


def _held(match: Match, variable: str) -> set[int]:
    """The events that a variable holds, whichever valuation is asked."""
    return {position for one in match.valuations for name, position in one.bindings if name == variable}


def within(query: BoundQuery, stream: Sequence[Event], v: Valuation) -> bool:
    """WITHIN: from first to last event not more than the query's window."""
    window = query.window
    if window is None:
        return True
    if window.attribute is None:
        return v.end - v.start <= window.size
    last, first = (number(stream[i][window.attribute], query, window.attribute) for i in (v.end, v.start))
    return bool(last - first <= window.size)


def _kept(strategy: Strategy, own: frozenset[int], others: Iterable[frozenset[int]], start: int, end: int) -> bool:
    """Selection strategies, SEMANTICS.md: complex events of the same interval, compared by D."""
    match strategy:
        case Strategy.MAX:
            return not any(own < other for other in others)
        case Strategy.NEXT:
            return not any(min(own ^ other) in other for other in others if other != own)
        case Strategy.LAST:
            return not any(max(own ^ other) in other for other in others if other != own)
        case Strategy.STRICT:
            return own == frozenset(range(start, end + 1))
        case _:
            return True


def _at(match: Match, members: Sequence[int]) -> Match:
    """A match with positions of the whole input in place of those of its substream."""
    return Match(
        members[match.start],
        members[match.end],
        frozenset(members[i] for i in match.positions),
        frozenset(
            Valuation(members[v.start], members[v.end], frozenset((name, members[i]) for name, i in v.bindings))
            for v in match.valuations
        ),
    )


def _consume(query: BoundQuery, found: list[Match], rows: Sequence[Event]) -> list[Match]:
    """CONSUME BY: an event that has output forgets everything that began up to it."""
    consume = query.parsed.consume
    if consume is Consume.NONE:
        return found
    kept: list[Match] = []
    forgotten: dict[Any, int] = {}
    for match in found:
        key = None
        if consume is Consume.PARTITION:
            key = _key(query, rows[match.end])
        last = forgotten.get(key, -1)
        if match.start > last or (kept and match.end == last and match.end == kept[-1].end):
            kept.append(match)
            forgotten[key] = match.end
    return kept


def _limit(found: list[Match], limit: int | None) -> list[Match]:
    if limit is None:
        return found
    kept: list[Match] = []
    by_end: dict[int, list[Match]] = {}
    for match in found:
        by_end.setdefault(match.end, []).append(match)
    for end in sorted(by_end):
        latest = sorted(by_end[end], key=lambda m: (-m.start, sorted(m.positions)))[:limit]
        kept += sorted(latest, key=lambda m: (m.start, sorted(m.positions)))
    return kept
