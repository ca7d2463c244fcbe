"""Which patterns hold when: those in force, and the changes to come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.events import Schema
from stretto.matching.pattern_set.afa_run import AfaRun
from stretto.matching.pattern_set.changes import Instant
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern, CompiledQuery
from stretto.matching.pattern_set.dedicated_run import OtherRun, TecsRun
from stretto.matching.pattern_set.event_routing import grouped
from stretto.matching.pattern_set.predicate_index_kernel import Owners
from stretto.matching.pattern_set.prefix_sharing import Lead
from stretto.matching.pattern_set.result_table import Source
from stretto.matching.pattern_set.row_pattern_run import ClauseRun
from stretto.matching.pattern_set.shared_aggregate_run import KINDS, MOST, several, terms
from stretto.matching.pattern_set.shared_nfab_run import AlikeRun
from stretto.matching.pattern_set.shared_predicates import SharedConditions, conditions_of, known_conditions
from stretto.matching.pattern_set.shared_tecs_run import JointRun

Number = int | float


#: Events go through patterns that run on their own in pieces that make at most so many pairs of event and pattern.
PAIRS = 1 << 23


#: The run of a pattern on its own.
OwnRun = TecsRun | OtherRun | AfaRun | ClauseRun

#: The run of patterns together.
SharedRun = JointRun | AlikeRun


@dataclass(eq=False)
class Version:
    """A pattern from one change to the next."""

    id: str
    part: CompiledPattern
    since: Instant | None
    #: What is left of the stream by a pattern that runs on its own; ``None`` while that is nothing.
    own: OwnRun | None = None
    #: The run that it shares with others, and its slot there, once it is in force.
    joint: SharedRun | None = None
    slot: int = -1
    #: Why it was switched off; ``None``: it was not.
    off: str | None = None
    #: The last value of the attribute that the window measures, if that is not the time.
    measure: Number | None = None
    #: With which others it shares a run (:mod:`~stretto.matching.pattern_set.shared_aggregate_run`); ``None``: with none.
    group: object | None = None
    #: How many events concerned it, and of a run of its own how long they took.
    concerned: int = 0
    seconds: float = 0.0

    @cached_property
    def lead(self) -> Lead | None:
        """Whose state it looks at, where it runs with others and has a prefix."""
        prefix = self.part.prefix
        return None if prefix is None else Lead(prefix, None if self.since is None else self.since.number)

    @cached_property
    def source(self) -> Source:
        return Source(self.id, None if self.since is None else self.since.shown, self.part)


class InForce:
    """The patterns in force in one stretch of time, by id.

    Parameters
    ----------
    versions
        In any order.
    schema
        The events' columns.
    before
        The conditions of patterns that were in force before, of which much may stay.
    groups
        Whether patterns that count and add up may have one run.
    """

    def __init__(
        self,
        versions: Iterable[Version],
        schema: Schema,
        before: SharedConditions | None = None,
        *,
        groups: bool = True,
    ) -> None:
        self.versions = tuple(sorted(versions, key=lambda version: version.id))
        self.sources = [version.source for version in self.versions]
        if groups:
            _join(self.versions)
        #: What the index of conditions knows of each version: its part, or that of the group that has one run.
        self._parts = self._grouped()
        #: The states that versions share. Their places are behind those of the versions.
        self._leads: dict[Lead, int] = {}
        #: By place in ``versions``: the place of the state that the version looks at; −1: it has a state of its own.
        self.leads: I64 = np.full(len(self.versions), -1)
        for number, version in enumerate(self.versions):
            if version.lead is not None:
                behind = len(self.versions) + len(self._leads)
                self.leads[number] = self._leads.setdefault(version.lead, behind)
        self.conditions: SharedConditions = conditions_of(self._parts, schema, before)
        #: Who has each part, by their places.
        self.owners = self._owners()
        #: How many patterns run on their own.
        self.alone = len({part for part in self._parts if not part.together})

    def _grouped(self) -> list[CompiledPattern]:
        members: dict[object, list[CompiledQuery]] = {}
        for version in self.versions:
            if version.group is not None:
                assert isinstance(version.part, CompiledQuery)
                members.setdefault(version.group, []).append(version.part)
        found = {group: several(parts) for group, parts in members.items()}
        return [version.part if version.group is None else found[version.group] for version in self.versions]

    @cached_property
    def parts(self) -> list[CompiledPattern]:
        """The parts of all versions, each once."""
        return list(dict.fromkeys(version.part for version in self.versions))

    @cached_property
    def doubtful(self) -> list[CompiledPattern]:
        """The parts that must look at the values of events before these are read."""
        return [part for part in self.conditions.parts if part.doubtful]

    def _owners(self) -> Owners:
        return self.conditions.owners([*self._parts, *(lead.prefix for lead in self._leads)])

    def settle(self) -> None:
        """Between events: join the conditions' segments where that pays by now."""
        settled = self.conditions.settled()
        if settled is not self.conditions:
            self.conditions = settled
            self.owners = self._owners()

    def places(self, part: CompiledPattern) -> list[int]:
        """The versions that have a part, by their places in ``versions``."""
        return self.conditions.places(part, self.owners)

    @cached_property
    def by_id(self) -> dict[str, Version]:
        """The versions by id."""
        return {version.id: version for version in self.versions}

    @cached_property
    def joint(self) -> list[tuple[SharedRun, I64]]:
        """The runs that patterns share, and by slot who has it: its place in ``versions``."""
        found: dict[SharedRun, dict[int, int]] = {}
        for place, version in enumerate(self.versions):
            if version.joint is not None and version.own is None:
                found.setdefault(version.joint, {})[version.slot] = place
        return [(run, _by_number(slots)) for run, slots in found.items()]

    @property
    def restored(self) -> list[int]:
        """Who runs on its own although it need not: what a snapshot of an earlier version has of it is read so."""
        return [place for place, one in enumerate(self.versions) if one.part.together and one.own is not None]

    @cached_property
    def in_one(self) -> bool:
        """Whether one shared run has all patterns that run together."""
        return len(self.joint) == 1 and not self.restored

    def forget_slots(self) -> None:
        """Somebody has left, or runs with the others from now on."""
        self.__dict__.pop("joint", None)
        self.__dict__.pop("slots", None)
        self.__dict__.pop("in_one", None)

    def piece(self, most: int) -> int:
        """How many events go through all patterns at once: ``most``, or fewer where that could make too many pairs."""
        return max(1, min(most, PAIRS // max(1, self.alone)))

    @cached_property
    def slots(self) -> tuple[I64, I64]:
        """By place: the number of the shared run in ``joint`` (−1: none), and the slot."""
        run, slot = np.full((2, len(self.versions) + len(self._leads)), -1, np.int64)
        for number, (joint, places) in enumerate(self.joint):
            taken = np.flatnonzero(places >= 0)
            run[places[taken]], slot[places[taken]] = number, taken
            led = taken[self.leads[places[taken]] >= 0]
            lead = self.leads[places[led]]
            run[lead], slot[lead] = number, joint.lead[led]
        return run, slot


def _by_number(named: Mapping[int, int]) -> I64:
    found = np.full(max(named) + 1, -1, np.int64)
    found[list(named)] = list(named.values())
    return found


def _join(versions: Iterable[Version]) -> None:
    """Put versions that come into force together, and count and add up alike, into groups."""
    alike: dict[Hashable, list[Version]] = {}
    for version in versions:
        if version.group is None and version.own is None and (common := terms(version.part)) is not None:
            alike.setdefault((common, version.since), []).append(version)
    for found in alike.values():
        parts = [*dict.fromkeys(version.part for version in found)]
        groups = dict[CompiledPattern, object]()
        for together in grouped(parts, most_cells=KINDS, most=MOST):
            groups |= dict.fromkeys(together, object())
        for version in found:
            version.group = groups[version.part]


class Stretch(NamedTuple):
    """Rows of a batch between two changes, and the patterns that hold there."""

    low: int
    high: int
    in_force: InForce


@dataclass
class _Step:
    """What holds from one time on: by id a new version, or ``None`` where a pattern ends."""

    since: Instant | None
    versions: dict[str, Version | None] = field(default_factory=dict)


class Timeline:
    """The patterns in force and the changes to come.

    Of two changes of one id at one time the later given holds, so that the order of giving matters for nothing else.
    """

    def __init__(self, schema: Schema, *, groups: bool) -> None:
        self._schema, self._groups = schema, groups
        self.in_force = InForce((), schema)
        self._steps: dict[Number | None, _Step] = {}

    def add(self, name: str, since: Instant | None, part: CompiledPattern | None) -> None:
        """From ``since`` on, pattern ``name`` is ``part``, or nothing."""
        step = self._steps.setdefault(None if since is None else since.number, _Step(since))
        step.versions[name] = None if part is None else Version(name, part, since)

    def withdraw(self, name: str, after: Number | None, but: Sequence[Number | None]) -> None:
        """Leave out what is to come of a pattern after a time (``None``: the beginning), except at the times ``but``."""
        for since, step in list(self._steps.items()):
            if since is None or since in but or (after is not None and since <= after):
                continue
            step.versions.pop(name, None)
            if not step.versions:
                del self._steps[since]

    def start(self, versions: Iterable[Version]) -> None:
        """Put versions in force, in place of those that are."""
        self.in_force = InForce(versions, self._schema, known_conditions(self._schema), groups=self._groups)

    def holds(self, name: str, since: Instant | None, part: CompiledPattern | None) -> bool:
        """Whether just this is in force."""
        version = self.in_force.by_id.get(name)
        return version is not None and part is not None and version.part.same(part) and version.since == since

    def part(self, name: str, since: Number | None) -> CompiledPattern | None:
        """What a pattern is from just this time on; ``None``: nothing is known of that time, or there is no pattern."""
        version = self.in_force.by_id.get(name)
        if version is None or (None if version.since is None else version.since.number) != since:
            step = self._steps.get(since)
            version = None if step is None else step.versions.get(name)
        return None if version is None else version.part

    def stretches(self, times: NDArray[Any]) -> list[Stretch]:
        """Cut events, whose times ascend, where changes hold."""
        self.in_force.settle()
        found = []
        low, in_force = 0, self.in_force
        for since, step in self._until(times[-1].item(), inclusive=True):
            high = 0 if since is None else int(np.searchsorted(times, since))
            if high > low:
                found.append(Stretch(low, high, in_force))
                low = high
            in_force = self._after(in_force, [step])
        found.append(Stretch(low, times.size, in_force))
        return found

    def reach(self, time: Number, *, inclusive: bool, in_force: InForce | None = None) -> dict[str, Number | None]:
        """What was to come until ``time`` holds now; ``in_force`` is it where the caller knows it.

        Gives the ids of the patterns that were replaced or have ended, with the time of the first change.
        """
        past = list(self._until(time, inclusive=inclusive))
        ended: dict[str, Number | None] = {}
        for since, step in past:
            for name in step.versions:
                ended.setdefault(name, since)
        if past:
            self.in_force = in_force if in_force is not None else self._after(self.in_force, [step for _, step in past])
        for since, _ in past:
            del self._steps[since]
        return ended

    def _until(self, time: Number, *, inclusive: bool) -> Iterator[tuple[Number | None, _Step]]:
        for since, step in self.steps():
            if since is None or since < time or (inclusive and since == time):
                yield since, step

    def _after(self, in_force: InForce, steps: Sequence[_Step]) -> InForce:
        held: dict[str, Version | None] = dict(in_force.by_id)
        for step in steps:
            held |= step.versions
        return InForce(
            [version for version in held.values() if version is not None],
            self._schema,
            in_force.conditions,
            groups=self._groups,
        )

    def steps(self) -> list[tuple[Number | None, _Step]]:
        """What is to come, in order."""
        return sorted(self._steps.items(), key=lambda item: (item[0] is not None, item[0] or 0))

    @property
    def versions(self) -> list[Version]:
        """All versions, those in force and those to come."""
        coming = (version for _, step in self.steps() for version in step.versions.values() if version is not None)
        return [*self.in_force.versions, *coming]

    def table(self, when: pa.DataType) -> pa.Table:
        """A row for each pattern that holds or will hold, from when until when."""
        changes: dict[str, list[tuple[Instant | None, Version | None]]] = {}
        for version in self.in_force.versions:
            changes[version.id] = [(version.since, version)]
        for _, step in self.steps():
            for name, coming in step.versions.items():
                changes.setdefault(name, []).append((step.since, coming))
        started = set(self.in_force.versions)
        rows = []
        for name in sorted(changes):
            line = changes[name]
            for (since, held), (until, _) in zip(line, [*line[1:], (None, None)], strict=True):
                if held is not None:
                    rows.append((name, held.part.text, _shown(since), _shown(until), held in started))
        fields = [
            ("id", pa.string()),
            ("query", pa.string()),
            ("since", when),
            ("until", when),
            ("started", pa.bool_()),
        ]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
        return pa.Table.from_arrays(
            [pa.array(values, kind) for values, (_, kind) in zip(columns, fields, strict=True)],
            schema=pa.schema(fields),
        )


def _shown(instant: Instant | None) -> pa.Scalar | None:
    return None if instant is None else instant.shown


def release(versions: Sequence[Version], gone: Counter[str]) -> None:
    """Forget the run of a version, or of several that have one."""
    if versions[0].own is not None:
        counted(versions[0].own, gone)
    for version in versions:
        version.own = None


def counted(run: OwnRun, gone: Counter[str]) -> None:
    """Add what a run has visited, and how often that had output, to what those that are gone have."""
    stats = run.stats
    gone.update({name: stats[name] for name in ("visited", "triggers")})
