"""What in a near match breaks a constraint: rows, values, and by how much."""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice, pairwise
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.array_types import I64
from stretto.asking.trying import Events, Found
from stretto.errors import nearest
from stretto.query import algebra as a
from stretto.query import predicate as p
from stretto.query.constraints.model import Constraint, Kind, Step
from stretto.query.eql import Step as Stage
from stretto.query.evaluate import holds, value
from stretto.query.evaluate_sase import failing, holds_in
from stretto.query.passes.bind import AnyBound, BoundQuery, bind_window, in_words, number, typed_filter
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.sase import Component, Element, Index, Selection
from stretto.query.windows import BoundWindow, Window

Bound = AnyBound

#: Events around a match that are looked at, those whose rows are given, and those that are named.
MOST_BETWEEN, GIVEN, NAMED = 1 << 20, 1000, 3

#: Events of matches that are read at once.
MOST_READ = 10_000


@dataclass(frozen=True)
class Evidence:
    """What was found: in words, in which rows of the input, with which values, and how far it is from what is asked (0: no way)."""

    text: str
    rows: tuple[int, ...] = ()
    values: tuple[tuple[str, Any], ...] = ()
    excess: float = 1.0


class Witness:
    """Looks at near matches of one query."""

    def __init__(self, bound: Bound, events: Events) -> None:
        self.bound, self.events = bound, events
        self._seen: dict[int, dict[str, Any]] = {}
        self._typed: dict[Constraint, p.Predicate] = {}

    def event(self, at: int) -> dict[str, Any]:
        """The event at a position, read once."""
        if at not in self._seen:
            self._seen[at] = self.events.event(at)
        return self._seen[at]

    def row(self, at: int) -> int:
        """The row of the input at a position of the stream."""
        return self.events.row(at)

    def kind(self, at: int) -> str | None:
        """The type of the event at a position of the stream; ``None``: nothing tells it."""
        kinds = self.events.kinds
        return None if kinds is None else kinds[at].as_py()

    def times(self, found: Found) -> tuple[Any, Any] | None:
        """When a match begins and ends; ``None``: no time is known."""
        time = self.events.schema.time
        return None if time is None else (self.event(found.start)[time], self.event(found.end)[time])

    def waiting(self, step: Step, earliest: Found | None) -> str:
        """Why no event comes for a step; ``earliest`` is the first match of the steps before."""
        events = self.events
        last = events.table.num_rows - 1
        known = [] if events.kinds is None else [one for one in pc.unique(events.kinds).to_pylist() if one is not None]
        absent = [name for name in step.types if name not in known]
        if last < 0:
            return "there are no events"
        if absent and len(absent) == len(step.types) and events.kinds is not None:
            best = nearest(absent[0], known)
            hint = f"; did you mean '{best}'?" if best else ""
            return f"no event has the type {' or '.join(map(repr, absent))}{hint}"
        if earliest is not None:
            return f"none comes behind row {events.row(earliest.end)}, and the events end with row {events.row(last)}"
        return f"none comes; the events end with row {events.row(last)}"

    def read(self, matches: Sequence[Found]) -> None:
        """Read the events of some matches at once."""
        more = sorted({at for one in matches for at in (one.start, one.end, *one.positions)}.difference(self._seen))[
            :MOST_READ
        ]
        self._seen |= zip(more, self.events.table.take(pa.array(more, pa.int64())).to_pylist(), strict=True)

    def says(self, one: Constraint, found: Found) -> Evidence:
        """What of a near match breaks a constraint."""
        match one.kind:
            case Kind.CONDITION:
                return self._condition(one, found)
            case Kind.WINDOW:
                return self._window(one, found)
            case Kind.GAP:
                return self._gap(one, found)
            case Kind.CONTIGUITY | Kind.STRATEGY:
                return self._between(one, found)
            case Kind.NEGATION:
                return self._negation(one, found)
            case Kind.KEY:
                return self._key(one, found)
            case Kind.COUNT:
                return self._count(one, found)
            case _:
                return self._until(one, found)

    # ---- Conditions

    def _condition(self, one: Constraint, found: Found) -> Evidence:
        broken = list(self._broken(one, found))
        if not broken:
            return Evidence("it does not hold")
        told, rows, values, excess = [], list[int](), list[tuple[str, Any]](), 0.0
        for own, at, far in broken:
            read = ", ".join(f"{name} is {shown(one)}" for name, one in own)
            told.append(f"{read} in row{'s' * (len(at) > 1)} {', '.join(map(str, at))}" if at else read)
            rows += at
            values += own
            excess += far
        more = "" if len(told) <= NAMED else f"; and {len(told) - NAMED:,} more"
        return Evidence("; ".join(told[:NAMED]) + more, tuple(dict.fromkeys(rows)), tuple(values), excess)

    def _broken(
        self, one: Constraint, found: Found
    ) -> Iterator[tuple[tuple[tuple[str, Any], ...], tuple[int, ...], float]]:
        """Each event, or choice of events, for which a condition does not hold: values, rows, and how far it is."""
        bound = self.bound
        if isinstance(bound, BoundSase):
            yield from self._broken_between(one, found, bound)
            return
        condition = self._with_types(one)
        names = list(p.attributes(condition))
        for at in _own(one, found):
            event = self.event(at)
            if not holds(condition, event):
                values = tuple((name, event.get(name)) for name in names)
                yield values, (self.events.row(at),), distance(condition, event)

    def _with_types(self, one: Constraint) -> p.Predicate:
        """A condition as it is asked of the events."""
        if one not in self._typed:
            self._typed[one] = self.bound.typed(one.what)
        return self._typed[one]

    def _broken_between(
        self, one: Constraint, found: Found, bound: BoundSase
    ) -> Iterator[tuple[tuple[tuple[str, Any], ...], tuple[int, ...], float]]:
        condition = self._with_types(one)
        chosen = {name: [self.event(at) for at in own] for name, own in found.held.items()}
        if not chosen.keys() >= set(one.variables):
            return
        last = one.variables[-1] if one.variables else ""
        for values, at in failing(bound, condition, chosen, {}):
            if at.get(last) == 1:
                continue  # what is said of a[i] is asked of the events that a repetition takes after its first one
            rows = []
            for name in values:
                reference = bound.parsed.references[name]
                own = found.held[reference.variable]
                if isinstance(reference, Element):
                    index = {
                        Index.EACH: at.get(reference.variable, 1) - 1,
                        Index.BEFORE: at.get(reference.variable, 2) - 2,
                    }
                    place = index.get(reference.index, -1 if reference.index is Index.LAST else 0)
                    rows.append(self.events.row(own[place]))
            yield tuple(values.items()), tuple(dict.fromkeys(rows)), distance(condition, values)

    # ---- Windows and gaps

    def _apart(self, window: BoundWindow, first: int, last: int) -> int | float:
        """How far apart two events are in what a window measures."""
        if window.attribute is None:
            return last - first
        late, early = (number(self.event(at)[window.attribute], self.bound, window.attribute) for at in (last, first))
        return late - early

    def _length(self, size: int | float, window: BoundWindow) -> str:
        """An extent in the words of a window."""
        return in_words(size, window.attribute, self.bound.schema)

    def _window(self, one: Constraint, found: Found) -> Evidence:
        window = bind_window(cast(Window, one.what), self.bound.schema)
        lasts = self._apart(window, found.start, found.end)
        rows = (self.events.row(found.start), self.events.row(found.end))
        over = lasts - window.size
        text = f"it lasts {self._length(lasts, window)} (rows {rows[0]} to {rows[1]}), {self._length(over, window)} too long"
        return Evidence(text, rows, (("lasts", lasts), ("most", window.size)), relative(lasts, window.size))

    def _gap(self, one: Constraint, found: Found) -> Evidence:
        least, most = one.what
        window = bind_window(cast(Window, most or least), self.bound.schema)
        pair = self._widest(one, found, window, wide=most is not None)
        if pair is None:
            return Evidence("its events are not so far apart" if most is None else "its events are too far apart")
        first, last = pair
        apart = self._apart(window, first, last)
        rows = (self.events.row(first), self.events.row(last))
        over = apart - window.size if most is not None else window.size - apart
        sign = "too much" if most is not None else "too little"
        text = (
            f"{self._length(apart, window)} between rows {rows[0]} and {rows[1]}, {self._length(over, window)} {sign}"
        )
        return Evidence(text, rows, (("apart", apart), ("bound", window.size)), relative(apart, window.size))

    def _widest(self, one: Constraint, found: Found, window: BoundWindow, *, wide: bool) -> tuple[int, int] | None:
        """The two events that break a gap, or a window of a part."""
        own = _own(one, found)
        if not own:
            return None
        what = one.place[-1]
        if what == "within":
            return own[0], own[-1]
        if what in ("least", "most"):
            before = [at for at in found.positions if at < own[0]]
            return (before[-1], own[0]) if before else None
        pairs = list(zip(own, own[1:], strict=False))
        return max(pairs, key=lambda pair: self._apart(window, *pair), default=None) if wide else None

    # ---- Events that lie between

    def _between(self, one: Constraint, found: Found) -> Evidence:
        """What contiguity, or a strategy that skips less, met."""
        if one.kind is Kind.STRATEGY and one.what in (Selection.NEXT, Selection.LATEST):
            return Evidence("an event that it could select came before, and it takes the first")
        if one.place == ("strict",) and getattr(self.bound.parsed, "items", None) == ():
            return Evidence("no variable is selected, and a match must hold every event of its interval")
        first, last = found.start, found.end
        if one.kind is Kind.CONTIGUITY and isinstance(one.what, tuple):
            before, behind = (_held_by(side, found) for side in one.what)
            if one.what[0] is one.what[1]:
                own = _own(one, found)
                first, last = own[0], own[-1]
            else:
                pairs = pairwise(found.positions)
                apart = [pair for pair in pairs if pair[0] in before and pair[1] in behind and pair[1] - pair[0] > 1]
                first, last = apart[0] if apart else (first, last)
        between = self._among(one, first, last, found)
        if not between.size:
            return Evidence("other events lie between")
        told = ", ".join(map(self._named, between[:NAMED].tolist()))
        more = "" if between.size <= NAMED else f" and {between.size - NAMED:,} more"
        rows = tuple(map(self.events.row, between[:GIVEN].tolist()))
        lies = "lies" if between.size == 1 else "lie"
        return Evidence(f"{told}{more} {lies} between", rows, (), float(between.size))

    def _among(self, one: Constraint, first: int, last: int, found: Found) -> I64:
        """The positions between two that are not held, of the partition, or stream, in which nothing may lie between."""
        schema, begin = self.bound.schema, first + 1
        table = self.events.table.slice(begin, max(last - begin, 0))
        chosen = np.ones(table.num_rows, np.bool_)
        chosen[[at - begin for at in found.positions if first < at < last]] = False
        if schema.stream is not None and not self.bound.parsed.any_stream:
            ours = pa.array(self.bound.parsed.streams)
            chosen &= pc.is_in(table.column(schema.stream).cast(pa.string()), ours).to_numpy()
        if one.what is not Selection.STRICT:
            for name in self.bound.partition_by:
                if name in table.column_names:
                    chosen &= self._has(table.column(name), self.event(found.start)[name])
        return begin + np.flatnonzero(chosen)

    def _has(self, column: pa.ChunkedArray, value: Any) -> Any:
        """Where a column has a value."""
        if value is None:
            return pc.is_null(column).to_numpy()
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        return pc.fill_null(pc.equal(plain, pa.scalar(value, plain.type)), False).to_numpy()

    def _named(self, at: int) -> str:
        """An event in a few words: its row and its type."""
        kinds = self.events.kinds
        return f"row {self.events.row(at)}" if kinds is None else f"row {self.events.row(at)} ({kinds[at].as_py()})"

    # ---- Negations

    def _negation(self, one: Constraint, found: Found) -> Evidence:
        """The events that must not come, and did."""
        for beside in (True, False):  # in a group that repeats, what is behind may come before
            places = self._where(one, found, beside=beside)
            came = list(islice((at for at in places if self._denies(one, found, at)), GIVEN))
            if came:
                break
        else:
            return Evidence("such an event came")
        told = ", ".join(self._named(at) for at in came[:NAMED])
        more = "" if len(came) <= NAMED else f" and {len(came) - NAMED:,} more"
        return Evidence(f"{told}{more} came", tuple(self.events.row(at) for at in came), (), float(len(came)))

    def _until(self, one: Constraint, found: Found) -> Evidence:
        """The event that ends a repetition or a sequence before it is complete."""
        component = one.what.until if isinstance(one.what, Component) else None
        kinds = self._kinds_of(one) if component is None else component.types
        for at in self._of_types(found.start + 1, found.end, kinds):
            if component is None:
                came = self._denies(one, found, at)
            else:
                named = Constraint(one.kind, one.text, (component.variable,), what=component)
                came = self._of_its_key(found, at) and self._fulfils(named, found, at)
            if came:
                return Evidence(f"{self._named(at)} came", (self.events.row(at),))
        lacks = component is not None and one.what.only
        return Evidence("no event that ends it comes behind" if lacks else "such an event came")

    def _where(self, one: Constraint, found: Found, *, beside: bool) -> Iterator[int]:
        """Positions in and around a match at which an event may deny it; ``beside``: right between what is before and behind it."""
        begin, end, size = found.start, found.end + 1, self.events.table.num_rows
        window = self.bound.window
        if window is not None and window.attribute is not None:
            begin, end = max(begin - MOST_BETWEEN, 0), min(end + MOST_BETWEEN, size)
        held = found.positions
        before, behind = self._sides(one, found)
        for at in self._of_types(begin, end, self._kinds_of(one)):
            place = bisect_left(held, at)
            if place < len(held) and held[place] == at:
                continue
            there = held[place - 1] in before if place else not before
            there &= held[place] in behind if place < len(held) else not behind
            if (there or not beside) and (found.start < at < found.end or self._in_window(found, at)):
                yield at

    def _sides(self, one: Constraint, found: Found) -> tuple[set[int], set[int]]:
        """What a match holds before the place at which an event must not come, and behind it."""
        what, plan = one.what, self.bound.plan
        if isinstance(what, Component | Stage):
            names = [next(iter(other.labels)) for other in plan.positions]
            place = names.index(what.variable)
            before, behind = (
                {row for name in own for row in found.held.get(name, ())} for own in (names[:place], names[place + 1 :])
            )
            return before, behind
        sequences = (
            node.parts for node in a.walk(cast(BoundQuery, self.bound).parsed.pattern) if isinstance(node, a.Sequence)
        )
        for parts in sequences:
            for at, part in enumerate(parts):
                if isinstance(part, a.Not) and part.body is what:
                    return _held_by(parts[:at], found), _held_by(parts[at + 1 :], found)
        return set(), set()

    def _kinds_of(self, one: Constraint) -> tuple[str, ...]:
        """The types of the events that must not come; none: any."""
        match one.what:
            case Component(types=types):
                return types
            case Stage(category=category):
                return () if category is None else (category,)
            case body:
                return tuple(node.type for node in a.walk(body) if isinstance(node, a.Atom))

    def _of_types(self, begin: int, end: int, types: tuple[str, ...]) -> list[int]:
        """The positions from one to before another of events of some types; none: of any."""
        end = min(end, begin + 2 * MOST_BETWEEN)
        kinds = self.events.kinds
        if not types or kinds is None:
            return list(range(begin, end))
        there = pc.is_in(kinds.slice(begin, max(end - begin, 0)).cast(pa.string()), pa.array(types))
        found: list[int] = (begin + np.flatnonzero(there.to_numpy())).tolist()
        return found

    def _in_window(self, found: Found, at: int) -> bool:
        window = self.bound.window
        assert window is not None
        first, last = min(at, found.start), max(at, found.end)
        return self._apart(window, first, last) <= window.size

    def _denies(self, one: Constraint, found: Found, at: int) -> bool:
        event, bound, what = self.event(at), self.bound, one.what
        if isinstance(what, Stage):
            first = next(bound.plan.held)
            held = [row for name in first.labels for row in found.held.get(name, ())]
            mine = self.event(held[0]) if held else {}
            same = all(
                event.get(own.name) == mine.get(other.name) for own, other in zip(what.keys, first.keys, strict=True)
            )
            return same and holds(bound.typed(what.condition), event)
        if not self._of_its_key(found, at):
            return False
        if isinstance(what, Component):
            return self._fulfils(one, found, at)
        body = a.fold(what, lambda node: typed_filter(node, bound.schema))
        return bool(_labelings(body, event, cast(BoundQuery, bound)))

    def _of_its_key(self, found: Found, at: int) -> bool:
        """Whether an event is of the partition in which a match begins."""
        return all(self.event(at).get(name) == self.event(found.start).get(name) for name in self.bound.partition_by)

    def _fulfils(self, one: Constraint, found: Found, at: int) -> bool:
        """Whether an event fulfils the conditions on one that is in no match, as far as they are known."""
        bound = cast(BoundSase, self.bound)
        chosen = {name: [self.event(i) for i in own] for name, own in found.held.items()}
        chosen[one.variables[0]] = [self.event(at)]
        for part in p.conjuncts(bound.condition):
            named = {bound.parsed.references[name].variable for name in p.attributes(part)}
            if one.variables[0] in named and chosen.keys() >= named and not holds_in(bound, part, chosen, {}):
                return False
        return True

    # ---- Keys and counts

    def _key(self, one: Constraint, found: Found) -> Evidence:
        names = self._key_names(one, found)
        values: dict[Any, list[int]] = {}
        different: list[tuple[str, Any]] = []
        for at, name in names:
            own = self.event(at).get(name)
            if all(own != other for _, other in different):
                different.append((name, own))
            values.setdefault(shown(own), []).append(self.events.row(at))
        name = " = ".join(dict.fromkeys(name for _, name in names))
        if len(values) < 2 and "NULL" not in values:
            return Evidence("its events are in no common partition", excess=1.0)
        told = " and ".join(
            f"{own} in row{'s' * (len(rows) > 1)} {', '.join(map(str, rows[:NAMED]))}{', …' * (len(rows) > NAMED)}"
            for own, rows in values.items()
        )
        rows = tuple(row for own in values.values() for row in own)
        return Evidence(f"{name} is {told}", rows, tuple(different), float(len(values)))

    def _key_names(self, one: Constraint, found: Found) -> list[tuple[int, str]]:
        """Each event of a match with the attribute that is its key."""
        if isinstance(one.what, int):
            held = [(name, own) for own in self.bound.plan.held for name in own.labels]
            return sorted((at, own.keys[one.what].name) for name, own in held for at in found.held.get(name, ()))
        for key in self.bound.parsed.joined:
            if key.name == one.what:
                parts = dict(key.parts)
                stream = self.bound.schema.stream or ""
                return [(at, parts[self.event(at)[stream]]) for at in found.positions]
        return [(at, one.what) for at in found.positions]

    def _count(self, one: Constraint, found: Found) -> Evidence:
        return counted(one, tuple(map(self.events.row, _own(one, found))), "event")


def counted(one: Constraint, rows: tuple[int, ...], noun: str) -> Evidence:
    """How often something repeats that holds some rows, and how far that is from its bounds."""
    number_ = len(rows)
    told, excess = f"it has {number_:,} {noun}{'' if number_ == 1 else 's'}", 1.0
    if one.what is not None:
        rounds, (least, most) = number_ // one.what, one.bounds or (1, None)
        excess = relative(rounds, least if most is None or rounds < least else most)
        if one.what > 1:
            told = f"it comes {'once' if rounds == 1 else f'{rounds:,} times'}"
    return Evidence(told, rows, ((f"{noun}s", number_),), excess)


def _held_by(part: a.Pattern | Sequence[a.Pattern], found: Found) -> set[int]:
    """The positions that a part of a formula holds, or several, as far as its names tell."""
    match part:
        case a.Not():
            return set()
        case a.Atom(type=name):
            return set(found.held.get(name, ()))
        case a.As(body, name):
            named, inside = set(found.held.get(name, ())), _held_by(body, found)
            return named & inside if named and inside else named | inside
        case _:
            parts = part if isinstance(part, Sequence) else a.children(part)
            return {at for one in parts for at in _held_by(one, found)}


def _labelings(pattern: a.Pattern, event: Mapping[str, Any], bound: BoundQuery) -> set[frozenset[str]]:
    """The names under which a formula of one event takes an event, a set for each way to; none: it does not take it."""
    match pattern:
        case a.Atom(type=kind, stream=stream):
            schema, own = bound.schema, bound.parsed.streams[0]
            own = event[schema.stream] if schema.stream else own
            fits = (event[schema.type] if schema.type else own) == kind and stream in (None, own)
            return {pattern.labels} if fits else set()
        case a.As(body, name):
            return {labels | {name} for labels in _labelings(body, event, bound)}
        case a.Filter(body, name, condition):
            found = _labelings(body, event, bound)
            return found if holds(condition, event) else {labels for labels in found if name not in labels}
        case _:
            return {labels for part in a.children(pattern) for labels in _labelings(part, event, bound)}


def _own(one: Constraint, found: Found) -> list[int]:
    """The positions that a constraint is about, ascending."""
    named = {at for name in one.variables for at in found.held.get(name, ())}
    return sorted(named if one.step is None else named & _held_by(one.step, found))


def distance(condition: p.Predicate, values: Mapping[str, Any]) -> float:
    """How far values are from what a condition asks: the relative difference of what is compared; 1 where that says nothing."""
    if not isinstance(condition, p.Comparison):
        return 1.0
    sides = [value(side, values) for side in (condition.left, condition.right)]
    if any(side is None for side in sides):
        return 2.0
    left, right = (_as_number(side) for side in sides)
    return 1.0 if left is None or right is None else relative(left, right)


def _as_number(one: Any) -> float | None:
    if isinstance(one, bool) or not isinstance(one, int | float | Decimal | dt.datetime):
        return None
    return one.timestamp() if isinstance(one, dt.datetime) else float(one)


def relative(one: float, other: float) -> float:
    scale = max(abs(one), abs(other))
    far = abs(one - other) / scale if scale else 0.0
    return 1.0 if math.isnan(far) else far


def shown(one: Any) -> str:
    """A value as a query has it."""
    if one is None:
        return "NULL"
    if isinstance(one, str):
        return "'" + one.replace("'", "''") + "'"
    if isinstance(one, bool):
        return str(one).upper()
    return one.isoformat(" ") if isinstance(one, dt.datetime) else str(one)
