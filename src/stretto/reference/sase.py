"""The reference evaluator of SASE+: what a query means, straight from the definitions, with every run on its own.

SASE+ paper, sections 3.1 (the automaton and its runs) and 3.2 (which condition is on which edge, step 6 included);
SEMANTICS.md (SASE+) for what they leave open. It is the judge of the engines' tests, and slow: nothing is shared.

>>> import pyarrow as pa
>>> from stretto.events import Schema
>>> from stretto.query.passes.bind_sase import bind_sase
>>> from stretto.query.sase import Component, SaseQuery, Selection
>>> events = pa.table({"type": ["A", "A", "B"]})
>>> query = SaseQuery("", (Component(("A",), "a", kleene=True), Component(("B",), "b")), Selection.NEXT, {})
>>> for match in evaluate_sase(bind_sase(query, Schema.of(events)), events):
...     print(match)
SaseMatch(start=0, end=2, bindings=(('a', (0, 1)), ('b', (2,))))
SaseMatch(start=1, end=2, bindings=(('a', (1,)), ('b', (2,))))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa

from stretto.errors import QueryError
from stretto.query import predicate as p
from stretto.query.evaluate import holds, value
from stretto.query.passes.bind import BoundQuery
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.cnf import conjuncts
from stretto.query.sase import (
    DISTINCT,
    LIST,
    Aggregate,
    Component,
    Element,
    Index,
    Length,
    Range,
    Reference,
    Selection,
)
from stretto.reference.ceql import number
from stretto.reference.keeping import kept

Event = Mapping[str, Any]
#: The events that each variable holds, in order.
Chosen = Mapping[str, Sequence[Event]]


@dataclass(frozen=True)
class SaseMatch:
    """The events of an accepting run: for each positive component, in order, its variable and the rows that it selected."""

    start: int
    end: int
    bindings: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The rows of all components; a run selects them in stream order, each for one component."""
        return tuple(i for _, rows in self.bindings for i in rows)


@dataclass(frozen=True)
class Run:
    """A run by what it has selected: the rows of every component that it has begun.

    Its state follows. If the last component begun is a Kleene plus, it is at that one's ``a[i]``; else at the next
    component's singleton state or ``a[1]``.
    """

    selected: tuple[tuple[int, ...], ...]

    @property
    def first(self) -> int:
        return self.selected[0][0]

    def begin(self, row: int) -> Run:
        return Run((*self.selected, (row,)))

    def take(self, row: int) -> Run:
        return Run((*self.selected[:-1], (*self.selected[-1], row)))


@dataclass(frozen=True)
class Edges:
    """The conjuncts on the edges of a component: begin of ``s`` or ``a[1]``, take and proceed of ``a[i]``."""

    begin: tuple[p.Predicate, ...]
    take: tuple[p.Predicate, ...]
    proceed: tuple[p.Predicate, ...]


@dataclass(frozen=True)
class Negation:
    """A negated component between the positive components ``place - 1`` and ``place``, with the conjuncts that name it."""

    component: Component
    place: int
    conditions: tuple[p.Predicate, ...]


def evaluate_sase(query: BoundSase, events: pa.Table) -> list[SaseMatch]:
    """Every match of a query over a table whose rows are in stream order, by end, start, positions and bindings.

    ``LIMIT n`` is applied with ties (equal starts of one end) broken by positions; engines may break them otherwise.
    """
    rows = events.to_pylist()
    found: list[SaseMatch] = []
    for members in _substreams(query, rows):
        matches = _Automaton(query, rows, members).matches()
        found += kept(matches, query.parsed.keep, _held, lambda match: _components(match, query))
    found.sort(key=lambda m: (m.end, m.start, m.positions, m.bindings))
    return _limit(found, query.parsed.limit)


def _held(match: SaseMatch, variable: str) -> tuple[int, ...]:
    return dict(match.bindings).get(variable, ())


def _components(match: SaseMatch, query: BoundSase) -> list[int]:
    """The component of each event: an earlier one takes it rather than a later."""
    names = [one.variable for one in query.parsed.components]
    return [at for _, at in sorted((row, names.index(name)) for name, rows in match.bindings for row in rows)]


def returned(query: BoundSase, match: SaseMatch, rows: Sequence[Event]) -> dict[str, Any]:
    """The RETURN items of a match over the rows of the whole table."""
    chosen = {variable: [rows[i] for i in own] for variable, own in match.bindings}
    found: dict[str, Any] = {}
    for item in query.returns or ():
        references = _references(query, item.value)
        result = value(item.value, {name: _read(one, chosen, {}) for name, one in references.items()})
        # Computed decimals are doubles.
        real = isinstance(result, Decimal) and pa.types.is_floating(item.type)
        if isinstance(result, int) and pa.types.is_temporal(item.type):
            result = pa.scalar(result, pa.int64()).cast(item.type).as_py()
        found[item.name] = float(result) if real else result
    return found


def _substreams(query: BoundSase, rows: Sequence[Event]) -> list[list[int]]:
    """The rows of each partition. Strict contiguity counts every event: then the whole stream is one."""
    if query.parsed.selection is Selection.STRICT:
        return [list(range(len(rows)))]
    parts: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(rows):
        key = _key(query, row)
        if key is not None:
            parts.setdefault(key, []).append(i)
    return list(parts.values())


def _key(query: BoundSase, row: Event) -> tuple[Any, ...] | None:
    """What an event's partition is known by; ``None`` where an attribute is NULL. One NaN equals another here."""
    key = tuple("NaN" if isinstance(one, float) and one != one else one for one in map(row.get, query.partition_by))
    return None if None in key else key


def _limit(found: list[SaseMatch], limit: int | None) -> list[SaseMatch]:
    if limit is None:
        return found
    kept: list[SaseMatch] = []
    for _, same in itertools.groupby(found, key=lambda m: m.end):
        latest = sorted(same, key=lambda m: (-m.start, m.positions, m.bindings))[:limit]
        kept += sorted(latest, key=lambda m: (m.start, m.positions, m.bindings))
    return kept


class _Automaton:
    """The automaton of a query over one substream."""

    def __init__(self, query: BoundSase, rows: Sequence[Event], members: Sequence[int]) -> None:
        self.query = query
        self.rows = rows
        self.members = members
        self.selection = query.parsed.selection
        self.components = query.parsed.positive
        self.place = {row: rank for rank, row in enumerate(members)}
        parts = () if query.condition is None else conjuncts(query.condition)
        self.edges = [_edges(query, parts, i) for i in range(len(self.components))]
        self.negations = _negations(query, parts)

    # ---- Runs

    def matches(self) -> list[SaseMatch]:
        """The matches of all runs over the substream, each once."""
        runs: list[Run] = []
        found: dict[SaseMatch, None] = {}
        for row in self.members:
            ongoing: list[Run] = []
            fresh = self._begin(Run(()), row)
            for run in runs:
                more, stays = self._moves(run, row)
                fresh += more
                ongoing += [run] if stays else []
            complete = [match for run in fresh if self._accepts(run) and not self._denied(match := self._match(run))]
            runs = [*ongoing, *filter(self._goes_on, fresh)]
            if self.query.parsed.non_overlap and complete:
                complete = [min(complete, key=lambda m: (m.start, len(m.positions), m.positions, m.bindings))]
                runs = []  # all of them began at or before this event
            found.update(dict.fromkeys(complete))
        return list(found)

    def _moves(self, run: Run, row: int) -> tuple[list[Run], bool]:
        """What a run becomes by selecting an event, and whether it also goes on without it (ignore)."""
        if not self._within(run.first, row):
            return [], False  # step 5: the window is on every edge, and an event outside is followed by no other inside
        proceeded: list[Run] = []
        if self._at_kleene(run):
            if len(run.selected) < len(self.components) and self._proceeds(run):
                proceeded = self._begin(run, row)
            selected = self._take(run, row)
        else:
            selected = self._begin(run, row)
        ignores = {
            Selection.STRICT: False,
            Selection.PARTITION: False,  # events of other partitions are not in the substream
            Selection.NEXT: not selected,
            Selection.ANY: True,
        }
        return proceeded + selected, ignores[self.selection]

    def _begin(self, run: Run, row: int) -> list[Run]:
        """The begin edge to the next component."""
        after = run.begin(row)
        place = len(run.selected)
        passed = self._selects(after, row, self.components[place]) and self._hold(self.edges[place].begin, after)
        return [after] if passed else []

    def _take(self, run: Run, row: int) -> list[Run]:
        """The take edge of the Kleene plus that a run is at."""
        after = run.take(row)
        place = len(run.selected) - 1
        own = self.components[place]
        current = {own.variable: len(after.selected[place])}
        passed = self._selects(after, row, own) and self._hold(self.edges[place].take, after, current)
        return [after] if passed else []

    def _proceeds(self, run: Run) -> bool:
        """The proceed edge of the Kleene plus that a run is at, but for what it asks of the event that comes."""
        return self._hold(self.edges[len(run.selected) - 1].proceed, run)

    def _accepts(self, run: Run) -> bool:
        """Whether a run that has just selected an event is a match."""
        return len(run.selected) == len(self.components) and (not self._at_kleene(run) or self._proceeds(run))

    def _goes_on(self, run: Run) -> bool:
        return len(run.selected) < len(self.components) or self._at_kleene(run)

    def _at_kleene(self, run: Run) -> bool:
        return self.components[len(run.selected) - 1].kleene

    def _match(self, run: Run) -> SaseMatch:
        bindings = tuple((one.variable, own) for one, own in zip(self.components, run.selected, strict=True))
        return SaseMatch(run.first, run.selected[-1][-1], bindings)

    # ---- Conditions

    def _selects(self, run: Run, row: int, component: Component) -> bool:
        """What every edge that selects an event asks of it: its type, the window, the equivalence tests."""
        event = self.rows[row]
        return _is_of(event, component, self.query) and self._within(run.first, row) and self._equal(run.first, row)

    def _within(self, first: int, row: int) -> bool:
        """WITHIN: not more after the first event than the window."""
        window = self.query.window
        if window is None:
            return True
        if window.attribute is None:
            return self.place[row] - self.place[first] <= window.size
        return self._time(row) - self._time(first) <= window.size

    def _time(self, row: int) -> int | float:
        assert self.query.window is not None
        # It reads schema and window, which both kinds of queries have.
        name = self.query.window.attribute or ""
        return number(self.rows[row][name], cast(BoundQuery, self.query), name)

    def _equal(self, first: int, row: int) -> bool:
        """The equivalence tests. Within a partition they hold; NULL equals nothing, not even itself."""
        key = _key(self.query, self.rows[row])
        return key is not None and key == _key(self.query, self.rows[first])

    def _hold(self, parts: Iterable[p.Predicate], run: Run, current: Mapping[str, int] | None = None) -> bool:
        chosen = {
            one.variable: [self.rows[i] for i in own]
            for one, own in zip(self.components, run.selected, strict=False)  # the components begun
        }
        return all(_holds(self.query, part, chosen, current or {}) for part in parts)

    # ---- Negation

    def _denied(self, match: SaseMatch) -> bool:
        """Whether an event that must not be there is there."""
        return any(self._occurs(negation, row, match) for negation in self.negations for row in self.members)

    def _occurs(self, negation: Negation, row: int, match: SaseMatch) -> bool:
        event = self.rows[row]
        if not (_is_of(event, negation.component, self.query) and self._equal(match.start, row)):
            return False
        if not self._lies(negation, row, match):
            return False
        chosen = {variable: [self.rows[i] for i in own] for variable, own in match.bindings}
        chosen[negation.component.variable] = [event]
        return all(_holds(self.query, part, chosen, {}) for part in negation.conditions)

    def _lies(self, negation: Negation, row: int, match: SaseMatch) -> bool:
        """Whether an event lies where a negated component is."""
        window = self.query.window
        if 0 < negation.place < len(self.components):
            before, after = match.bindings[negation.place - 1][1], match.bindings[negation.place][1]
            return before[-1] < row < after[0]
        assert window is not None
        time, first, last = (self._time(i) for i in (row, match.start, match.end))
        if negation.place == 0:
            return time < first and last - time <= window.size
        return time > last and time - first <= window.size


def _is_of(event: Event, component: Component, query: BoundSase) -> bool:
    schema = query.schema
    stream = event[schema.stream] if schema.stream else query.parsed.streams[0]
    kind = event[schema.type] if schema.type else stream
    return kind in component.types


# ---- Where conditions are placed


def _references(query: BoundSase, expression: p.Expression) -> dict[str, Reference]:
    return {name: query.parsed.references[name] for name in p.attributes(expression)}


def _stage(reference: Reference) -> int:
    """When within its component a reference is known: at begin (0), at take (1), once it is complete (2)."""
    match reference:
        case Element(index=Index.ONLY | Index.FIRST):
            return 0
        case Element(index=Index.EACH | Index.BEFORE) | Aggregate(range=Range.BEFORE | Range.UP_TO):
            return 1
        case _:
            return 2


def _negated(query: BoundSase, part: p.Predicate) -> set[str]:
    """The negated variables that a conjunct names."""
    negated = {one.variable for one in query.parsed.components if one.negated}
    return negated & {one.variable for one in _references(query, part).values()}


def _edges(query: BoundSase, parts: Sequence[p.Predicate], place: int) -> Edges:
    """Step 2: each conjunct is on an edge of its last identifier, the one that is instantiated the latest."""
    order = {one.variable: i for i, one in enumerate(query.parsed.positive)}

    def last(part: p.Predicate) -> tuple[int, int]:
        known = [(order[one.variable], _stage(one)) for one in _references(query, part).values()]
        return max(known, default=(0, 0))

    own = [(part, last(part)) for part in parts if not _negated(query, part)]
    begin, take, proceed = (tuple(part for part, at in own if at == (place, stage)) for stage in range(3))
    return Edges(begin, take, proceed)


def _negations(query: BoundSase, parts: Sequence[p.Predicate]) -> list[Negation]:
    for part in parts:
        if len(_negated(query, part)) > 1:
            raise QueryError(f"a condition relates two negated components: {part}")
    found: list[Negation] = []
    place = 0
    for component in query.parsed.components:
        if component.negated:
            own = tuple(part for part in parts if component.variable in _negated(query, part))
            found.append(Negation(component, place, own))
        else:
            place += 1
    return found


# ---- What conditions say


def _holds(query: BoundSase, part: p.Predicate, chosen: Chosen, current: Mapping[str, int]) -> bool:
    """Whether a conjunct holds; ``current`` says which i is meant where one is being taken, all others mean every i."""
    references = _references(query, part)
    every = {
        variable: range(_first_index(references.values(), variable), len(chosen[variable]) + 1)
        for variable in dict.fromkeys(one.variable for one in references.values() if _stage(one) == 1)
        if variable not in current
    }
    for indices in itertools.product(*every.values()):
        at = {**current, **dict(zip(every, indices, strict=True))}
        if not holds(part, {name: _read(one, chosen, at) for name, one in references.items()}):
            return False
    return True


def _first_index(references: Iterable[Reference], variable: str) -> int:
    """The first i for which a conjunct says something: ``a[i-1]`` and ``a[..i-1]`` are there from 2 on."""
    before = any(
        one.variable == variable
        and (getattr(one, "index", None) is Index.BEFORE or getattr(one, "range", None) is Range.BEFORE)
        for one in references
    )
    return 2 if before else 1


def _read(reference: Reference, chosen: Chosen, at: Mapping[str, int]) -> Any:
    """The value of a reference; ``at`` is the i of each variable for which one is meant."""
    events = chosen[reference.variable]
    match reference:
        case Length():
            return len(events)
        case Aggregate(function, variable, over, attribute):
            selected = events
            if over is not Range.ALL:
                selected = events[: at[variable] - (over is Range.BEFORE)]
            return aggregate(function, [1 if attribute is None else event[attribute] for event in selected])
        case Element(variable, Index.EACH, attribute):
            return events[at[variable] - 1][attribute]
        case Element(variable, Index.BEFORE, attribute):
            return events[at[variable] - 2][attribute]
        case Element(_, index, attribute):
            return events[-1 if index is Index.LAST else 0][attribute]


def aggregate(function: str, values: Iterable[Any]) -> Any:
    """An aggregate of values in the order of their events, NULLs left out.

    Integers are added exactly, floats from left to right, decimals as floats. NaN among floats makes ``min`` and ``max`` NaN,
    as it makes their sum.

    >>> [aggregate(one, [3, None, 1]) for one in ("count", "sum", "avg", "min", "max")]
    [2, 4, 2.0, 1, 3]
    >>> [aggregate(one, [None]) for one in ("count", "sum", "avg", "min", "max")]
    [0, None, None, None, None]
    """
    if function == LIST:
        return list(values)
    known = [one for one in values if one is not None]
    if function == DISTINCT:
        return len({"NaN" if one != one else one for one in known})
    if function == "count":
        return len(known)
    if not known:
        return None
    if function in ("min", "max"):
        if any(one != one for one in known):
            return math.nan
        return min(known) if function == "min" else max(known)
    total = _sum(known)
    return total / len(known) if function == "avg" else total


def _sum(known: Sequence[Any]) -> Any:
    """Plain addition; Python's own ``sum`` corrects the rounding of floats."""
    total: Any = 0
    for one in known:
        total += float(one) if isinstance(one, Decimal) else one
    return total
