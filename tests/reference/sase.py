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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa

from stretto.errors import QueryError
from stretto.query import predicate as p
from stretto.query.evaluate import value
from stretto.query.evaluate_sase import Event, holds_in, read, references_of, stage_of
from stretto.query.passes.bind import BoundQuery, number
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.cnf import conjuncts
from stretto.query.sase import (
    Component,
    Group,
    Index,
    Part,
    Reference,
    Selection,
    are_paired,
    components_of,
)
from tests.reference.keeping import kept


@dataclass(frozen=True)
class SaseMatch:
    """The events of an accepting run: for each positive component, in order, its variable and the rows that it selected."""

    start: int
    end: int
    bindings: tuple[tuple[str, tuple[int, ...]], ...]
    #: The row that completes it: the last one, or with UNTIL … ONLY the end of the repetition.
    completed: int = field(default=-1, compare=False, repr=False)

    @property
    def positions(self) -> tuple[int, ...]:
        """The rows of all components; a run selects them in stream order, each for one component."""
        return tuple(i for _, rows in self.bindings for i in rows)


@dataclass(frozen=True)
class Run:
    """A run by what it has selected: the rows of every component that it has begun.

    Its state follows. If the last component begun is a Kleene plus, it is at that one's ``a[i]`` unless it has ``left`` it; else at
    the next component's singleton state or ``a[1]``. ``ended``: what ends its Kleene plus has come.
    """

    selected: tuple[tuple[int, ...], ...]
    left: bool = False
    ended: bool = False

    @property
    def first(self) -> int:
        return self.selected[0][0]

    def take(self, row: int) -> Run:
        return Run((*self.selected[:-1], (*self.selected[-1], row)))


@dataclass(frozen=True)
class Negation:
    """A negated component between the positive ones ``place - 1`` and ``place`` of a variant, with the conjuncts that name it."""

    component: Component
    place: int
    conditions: tuple[p.Predicate, ...]


def evaluate_sase(query: BoundSase, events: pa.Table) -> list[SaseMatch]:
    """Every match of a query over a table whose rows are in stream order, by end, start, positions and bindings.

    ``LIMIT n`` is applied with ties (equal starts of one end) broken by positions; engines may break them otherwise.
    """
    rows = events.to_pylist()
    found: list[SaseMatch] = []
    for members in substreams(query, rows):
        matches = matches_of(query, rows, members)
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
        references = references_of(query, item.value)
        result = value(item.value, {name: read(one, chosen, {}) for name, one in references.items()})
        # Computed decimals are doubles.
        real = isinstance(result, Decimal) and pa.types.is_floating(item.type)
        if isinstance(result, int) and pa.types.is_temporal(item.type):
            result = pa.scalar(result, pa.int64()).cast(item.type).as_py()
        found[item.name] = float(result) if real else result
    return found


def substreams(query: BoundSase, rows: Sequence[Event]) -> list[list[int]]:
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
    for _, same in itertools.groupby(sorted(found, key=lambda m: m.completed), key=lambda m: m.completed):
        latest = sorted(same, key=lambda m: (-m.start, m.positions, m.bindings))[:limit]
        kept += sorted(latest, key=lambda m: (m.start, m.positions, m.bindings))
    return kept


# ---- Variants


def variants(parts: Sequence[Part], room: int) -> list[tuple[Component, ...]]:
    """Every pattern without options and groups that a pattern stands for, of at most so many components that hold events.

    >>> a, b = (Component((name.upper(),), name) for name in "ab")
    >>> for one in variants((Group((a, replace(b, least=0)), 1, None),), 2):
    ...     print(*one, sep=", ")
    A a
    A a, B b
    A a, A a
    """
    found: list[tuple[Component, ...]] = [()]
    for part in parts:
        own: list[tuple[Component, ...]]
        if isinstance(part, Component):
            own = [(part,)] if part.least else [(), (replace(part, least=1),)]
        else:
            own = _repeated(part, room)
        found = _fitting((*one, *other) for one in found for other in own if len(one) + len(other) <= 3 * room + 9)
        found = [one for one in found if _size(one) <= room]
    return found


def _repeated(group: Group, room: int) -> list[tuple[Component, ...]]:
    if group.choice:
        once = _fitting(one for part in group.parts for one in variants((part,), room))
    else:
        once = variants(group.parts, room)
    found: list[tuple[Component, ...]] = [()] if not group.least else []
    so_far: list[tuple[Component, ...]] = [()]
    # Rounds without an event add nothing.
    for count in range(1, 1 + (group.least + room if group.most is None else group.most)):
        so_far = [one for one in _fitting((*one, *other) for one in so_far for other in once) if _size(one) <= room]
        if count >= group.least:
            found += so_far
    return _fitting(found)


def _size(variant: Sequence[Component]) -> int:
    return sum(not one.negated for one in variant)


def _fitting(found: Iterable[tuple[Component, ...]]) -> list[tuple[Component, ...]]:
    return list(dict.fromkeys(found))


def matches_of(query: BoundSase, rows: Sequence[Event], members: Sequence[int]) -> list[SaseMatch]:
    """The matches over a substream, each once: those of all variants."""
    automata = [Automaton(query, rows, members, one) for one in variants(query.parsed.parts, len(members))]
    automata = [one for one in automata if one.possible()]
    found: dict[SaseMatch, None] = {}
    for row in members:
        complete = [match for one in automata for match in one.read(row)]
        if query.parsed.non_overlap and complete:
            complete = [min(complete, key=_preferred)]
            for one in automata:
                one.runs = []  # all of them began at or before this event
        found.update(dict.fromkeys(complete))
    return list(found)


def _preferred(match: SaseMatch) -> Any:
    """Earliest start, shortest, smallest positions; at the first event that differs, the later component."""
    component = {row: number for number, (_, rows) in enumerate(match.bindings) for row in rows}
    positions = sorted(match.positions)
    return match.start, len(positions), positions, [-component[row] for row in positions]


class Automaton:
    """The automaton of a variant over one substream: components one after the other."""

    def __init__(
        self, query: BoundSase, rows: Sequence[Event], members: Sequence[int], variant: Sequence[Component]
    ) -> None:
        self.query = query
        self.rows = rows
        self.members = members
        self.components = [one for one in variant if not one.negated]
        self.place = {row: rank for rank, row in enumerate(members)}
        parts = () if query.condition is None else conjuncts(query.condition)
        there = {one.variable for one in variant} | {one.until.variable for one in variant if one.until is not None}
        self.parts = [one for one in parts if {ref.variable for ref in references_of(query, one).values()} <= there]
        self.runs: list[Run] = []
        #: The runs that have selected the event read last.
        self.fresh: list[Run] = []
        self.negations = _negations(query, self.parts, variant)
        self.order = {one.variable: i for i, one in enumerate(query.parsed.positive)}
        self.groups = _groups(query.parsed.parts)

    def possible(self) -> bool:
        """Whether the stream has events of its types in its order."""
        rows = iter(self.members)
        return all(any(_is_of(self.rows[row], one, self.query) for row in rows) for one in self.components)

    # ---- Runs

    def read(self, row: int) -> list[SaseMatch]:
        """The matches that an event completes."""
        ongoing: list[Run] = []
        fresh = self._begin(Run(()), row)
        ended: list[Run] = []
        for run in self.runs:
            more, stays, done = self._moves(run, row)
            fresh += more
            ongoing += stays
            ended += done
        self.fresh = fresh
        complete = [*ended, *(run for run in fresh if self._accepts(run))]
        left = [replace(run, left=True) for run in fresh if self._waits_apart(run) and self._proceeds(run)]
        self.runs = [*ongoing, *filter(self._goes_on, fresh), *left]
        return [self._match(run, row) for run in complete if not self._denied(run, row)]

    def partial(self) -> list[Run]:
        """The runs that have selected the event read last and are matches, or may become some as far as their events say.

        A negation between two components counts where both have begun, and all that its conditions name stands no later than the
        last component that has.
        """
        going = [one for one in self.fresh if self._at_kleene(one) or self._accepts(one) or self._may_proceed(one)]
        return [one for one in going if not self._occurs_in(self._known(one), one, one.selected[-1][-1])]

    def _may_proceed(self, run: Run) -> bool:
        return len(run.selected) < len(self.components) and self._proceeds(run)

    def _known(self, run: Run) -> list[Negation]:
        """The negations of which a run has both sides and all that they name."""
        last = self.order[self.components[len(run.selected) - 1].variable]
        return [
            one
            for one in self.negations
            if 0 < one.place < len(run.selected)
            and all(
                self.order.get(named.variable, -1) <= last
                for part in one.conditions
                for named in references_of(self.query, part).values()
            )
        ]

    def held(self, run: Run) -> dict[str, tuple[int, ...]]:
        """The rows of each variable, in the order of the pattern."""
        found: dict[str, tuple[int, ...]] = {one.variable: () for one in self.query.parsed.positive}
        for one, own in zip(self.components, run.selected, strict=False):  # the components begun
            found[one.variable] += own
        return found

    def reached(self, run: Run) -> str:
        """The variable of the last event."""
        return self.components[len(run.selected) - 1].variable

    def _moves(self, run: Run, row: int) -> tuple[list[Run], list[Run], list[Run]]:
        """What a run becomes by selecting an event, what goes on without it (ignore), and what its end completes."""
        if not self._within(run.first, row):
            return (
                [],
                [],
                [],
            )  # step 5: the window is on every edge, and an event outside is followed by no other inside
        if not self._at_kleene(run) or run.left:
            selected = self._begin(replace(run, left=False), row)
            mode = self._step(len(run.selected))
            stays = mode is Selection.ANY or (mode is Selection.NEXT and not selected)
            return selected, [run] if stays else [], []
        own = self.components[len(run.selected) - 1]
        done: list[Run] = []
        if own.until is not None and not run.ended and self._ends(run, row):
            run = replace(run, ended=True)
            if own.only and len(run.selected) == len(self.components) and self._proceeds(run):
                done = [run]
        proceeded: list[Run] = []
        inside = len(run.selected) < len(self.components) and not self._waits_apart(run)
        if inside and (run.ended or not own.only):
            proceeded = self._begin(run, row)
        selected = [] if run.ended else self._take(run, row)
        mode = self._loop(len(run.selected) - 1)
        stays = mode is Selection.ANY or (mode is Selection.NEXT and not selected)
        return proceeded + selected, [run] if stays else [], done

    def _step(self, place: int) -> Selection:
        return self.query.parsed.steps.get(self.components[place].variable, self.query.parsed.selection)

    def _loop(self, place: int) -> Selection:
        return self.query.parsed.loops.get(self.components[place].variable, self.query.parsed.selection)

    def _waits_apart(self, run: Run) -> bool:
        """Whether the Kleene plus that a run is at has another strategy than the step behind it: each prefix waits by itself."""
        place = len(run.selected)
        if not self._at_kleene(run) or place == len(self.components):
            return False
        contiguous = (Selection.STRICT, Selection.PARTITION)
        loop, step = self._loop(place - 1), self._step(place)
        return loop is not step and not (loop in contiguous and step in contiguous)

    def _begin(self, run: Run, row: int) -> list[Run]:
        """The begin edge to the next component; of one that has been before it asks what it asks of a further event."""
        after = Run((*run.selected, (row,)))
        place = len(run.selected)
        own = self.components[place].variable
        had = any(one.variable == own for one in self.components[:place])
        passed = self._selects(after, row, self.components[place]) and self._hold_at(after, 1 if had else 0)
        return [after] if passed and (place == 0 or self._proceeds(run)) else []

    def _take(self, run: Run, row: int) -> list[Run]:
        """The take edge of the Kleene plus that a run is at."""
        after = run.take(row)
        own = self.components[len(run.selected) - 1]
        if own.again and own.most is not None and len(run.selected[-1]) >= own.most:
            return []
        return [after] if self._selects(after, row, own) and self._hold_at(after, 1) else []

    def _hold_at(self, run: Run, stage: int) -> bool:
        """The conjuncts of the begin (0) or take edge (1) by which a run has just selected its last event."""
        own = self.components[len(run.selected) - 1].variable
        chosen = self._chosen(run)
        number = len(chosen[own])
        for part in self.parts:
            references = references_of(self.query, part)
            moving = [one for one in references.values() if stage_of(one) == 1]
            paired = are_paired(moving, self.query.parsed.parts)
            before = {name for name, one in references.items() if getattr(one, "index", None) is Index.BEFORE}
            # What relates a round to the one before is asked from the second one on, and knows the first event of each.
            known = {self.groups.get(references[name].variable) for name in before} if paired else set()
            earlier = {
                name for name, one in references.items() if not stage_of(one) and self.groups.get(one.variable) in known
            }
            at = self._last(
                {name: one for name, one in references.items() if not paired or name not in before | earlier}
            )
            # What relates the events of one round is asked in the first one as well.
            stages = (0, 1) if paired and not before else (at[1],)
            if self._apart(references) or at[0] != self.order[own] or at[1] == 2 or stage not in stages:
                continue
            current = {one.variable: number for one in moving} if paired else {own: number} if stage else {}
            if not holds_in(self.query, part, chosen, current):
                return False
        return True

    def _proceeds(self, run: Run) -> bool:
        """What is asked of a run before it goes on from the component that it is at, or is a match."""
        place = len(run.selected) - 1
        own = self.components[place]
        if own.again and own.kleene and len(run.selected[-1]) < own.least:
            return False
        group = self.groups[own.variable]
        behind = self.components[place + 1 : place + 2]
        if group is not None and behind and self.groups[behind[0].variable] == group:
            return True  # another component of the group
        chosen = self._chosen(run)
        for part in self.parts:
            references = references_of(self.query, part)
            at = self._last(references)
            mine = self.groups.get(at[2]) == group if group is not None else at[2] == own.variable
            if at[1] == 2 and mine and not self._apart(references) and not holds_in(self.query, part, chosen, {}):
                return False
        return True

    def _last(self, references: Mapping[str, Reference]) -> tuple[int, int, str]:
        """The last identifier of a conjunct: place of its variable, stage, and the variable. What is known of a whole variable in a
        group that repeats is known when the group is left."""

        def known(one: Reference) -> tuple[int, int, str]:
            group = self.groups.get(one.variable)
            if stage_of(one) == 2 and group is not None:
                return max(at for name, at in self.order.items() if self.groups[name] == group), 2, one.variable
            return self.order.get(one.variable, -1), stage_of(one), one.variable

        return max(map(known, references.values()), default=(0, 0, self.query.parsed.positive[0].variable))

    def _apart(self, references: Mapping[str, Reference]) -> bool:
        """Whether a conjunct is about an event that is in no match."""
        return any(one.variable not in self.order for one in references.values())

    def _ends(self, run: Run, row: int) -> bool:
        """Whether an event ends the Kleene plus that a run is at."""
        end = self.components[len(run.selected) - 1].until
        assert end is not None
        if not (_is_of(self.rows[row], end, self.query) and self._equal(run.first, row)):
            return False
        chosen = {**self._chosen(run), end.variable: [self.rows[row]]}
        own = [
            part
            for part in self.parts
            if end.variable in {r.variable for r in references_of(self.query, part).values()}
        ]
        return all(holds_in(self.query, part, chosen, {}) for part in own)

    def _accepts(self, run: Run) -> bool:
        """Whether a run that has just selected an event is a match."""
        complete = len(run.selected) == len(self.components) and not self.components[-1].only
        return complete and self._proceeds(run)

    def _goes_on(self, run: Run) -> bool:
        return len(run.selected) < len(self.components) or self._at_kleene(run)

    def _at_kleene(self, run: Run) -> bool:
        return self.components[len(run.selected) - 1].kleene

    def _chosen(self, run: Run) -> dict[str, list[Event]]:
        """The events of each variable so far."""
        found: dict[str, list[Event]] = {}
        for one, own in zip(self.components, run.selected, strict=False):  # the components begun
            found.setdefault(one.variable, []).extend(self.rows[i] for i in own)
        return found

    def _match(self, run: Run, completed: int) -> SaseMatch:
        return SaseMatch(run.first, run.selected[-1][-1], tuple(self.held(run).items()), completed)

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
        return measure(self.query, self.rows[row])

    def _equal(self, first: int, row: int) -> bool:
        """The equivalence tests. Within a partition they hold; NULL equals nothing, not even itself."""
        key = _key(self.query, self.rows[row])
        return key is not None and key == _key(self.query, self.rows[first])

    # ---- Negation

    def _denied(self, run: Run, completed: int) -> bool:
        """Whether an event that must not be there is there."""
        return self._occurs_in(self.negations, run, completed)

    def _occurs_in(self, negations: Sequence[Negation], run: Run, completed: int) -> bool:
        return any(self._occurs(negation, row, run, completed) for negation in negations for row in self.members)

    def _occurs(self, negation: Negation, row: int, run: Run, completed: int) -> bool:
        event = self.rows[row]
        if not (_is_of(event, negation.component, self.query) and self._equal(run.first, row)):
            return False
        if not self._lies(negation, row, run, completed):
            return False
        chosen = self._chosen(run)
        chosen[negation.component.variable] = [event]
        return all(holds_in(self.query, part, chosen, {}) for part in negation.conditions)

    def _lies(self, negation: Negation, row: int, run: Run, completed: int) -> bool:
        """Whether an event lies where a negated component is."""
        window = self.query.window
        if 0 < negation.place < len(self.components):
            return run.selected[negation.place - 1][-1] < row < run.selected[negation.place][0]
        assert window is not None
        time = self._time(row)
        if negation.place == 0:
            return row < run.first and self._time(completed) - time <= window.size
        return row > run.selected[-1][-1] and time - self._time(run.first) <= window.size


def measure(query: BoundSase, event: Event) -> int | float:
    """The attribute that the window measures."""
    assert query.window is not None
    # It reads schema and window, which both kinds of queries have.
    name = query.window.attribute or ""
    return number(event[name], cast(BoundQuery, query), name)


def _is_of(event: Event, component: Component, query: BoundSase) -> bool:
    schema = query.schema
    stream = event[schema.stream] if schema.stream else query.parsed.streams[0]
    kind = event[schema.type] if schema.type else stream
    return kind in component.types


# ---- Where conditions are placed


def _negated(query: BoundSase, part: p.Predicate) -> set[str]:
    """The negated variables that a conjunct names."""
    negated = {one.variable for one in query.parsed.components if one.negated}
    return negated & {one.variable for one in references_of(query, part).values()}


def _groups(parts: Sequence[Part]) -> dict[str, int | None]:
    """For each variable the number of the outermost group that repeats it, if there is one."""
    found: dict[str, int | None] = {}
    for at, part in enumerate(parts):
        if isinstance(part, Component):
            found[part.variable] = None
        elif part.most == 1:
            inside = _groups(part.parts)
            found |= {name: None if own is None else 1000 * (at + 1) + own for name, own in inside.items()}
        else:
            found |= {one.variable: at for one in components_of(part.parts)}
    return found


def _negations(query: BoundSase, parts: Sequence[p.Predicate], variant: Sequence[Component]) -> list[Negation]:
    for part in parts:
        if len(_negated(query, part)) > 1:
            raise QueryError(f"a condition relates two negated components: {part}")
    found: list[Negation] = []
    place = 0
    for component in variant:
        if component.negated:
            own = tuple(part for part in parts if component.variable in _negated(query, part))
            found.append(Negation(component, place, own))
        else:
            place += 1
    return found
