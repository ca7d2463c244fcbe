"""What runs the patterns of a set: their runs, the events that go through these, and the matches that they give."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypedDict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.budget import Budget
from stretto.engines.api import Matches
from stretto.errors import LimitError, SnapshotError
from stretto.events import Schema
from stretto.frame import Section
from stretto.matching.output.match_table import CHUNK
from stretto.matching.output.memory_budget import Meter
from stretto.matching.pattern_set.afa_run import AfaRun, CompiledAutomaton
from stretto.matching.pattern_set.aggregate_run import AddingRun, SeveralRun
from stretto.matching.pattern_set.batch_validation import Checked, Numbers
from stretto.matching.pattern_set.changes import Instant
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern, CompiledQuery
from stretto.matching.pattern_set.dedicated_run import OtherRun, TecsRun, own_visits
from stretto.matching.pattern_set.event_history import Kept
from stretto.matching.pattern_set.event_routing import RoutedEvents
from stretto.matching.pattern_set.kept_run import KeepingRun
from stretto.matching.pattern_set.limits import Limits, Options
from stretto.matching.pattern_set.predicate_index import Visits
from stretto.matching.pattern_set.prefix_sharing import Lead
from stretto.matching.pattern_set.result_table import BLOCK, Results, in_order
from stretto.matching.pattern_set.row_pattern_run import ClauseRun, CompiledRowPattern
from stretto.matching.pattern_set.shared_aggregate_run import CompiledAggregates, several
from stretto.matching.pattern_set.shared_nfab_run import AlikeRun
from stretto.matching.pattern_set.shared_predicates import SharedKeys
from stretto.matching.pattern_set.shared_tecs_run import JointRun
from stretto.matching.pattern_set.snapshot import MOST_SLOTS, together
from stretto.matching.pattern_set.snapshot import apart as sections_of
from stretto.matching.pattern_set.versions import InForce, OwnRun, SharedRun, Timeline, Version, counted, release

#: Batches are kept as they came; after so many they are joined, so that a look-up stays quick.
PIECES = 64

#: So many matches that are not decided are counted, of each pattern.
UNDECIDED = 1 << 20


class Running:
    """The patterns of a set, those in force and those to come, with their runs and the events that these hold."""

    def __init__(self, schema: Schema, options: Options, results: Results) -> None:
        self._schema = schema
        self._options = options
        self.results = results
        # A pattern that is switched off leaves nothing behind in a run of its own.
        self.timeline = Timeline(schema, groups=not options.disables)
        #: The runs that patterns share, by what these have in common.
        self.joint: dict[Hashable, SharedRun] = {}
        self.history = Kept()
        self._kept = 0
        #: How many events were read.
        self.rows = 0
        #: What the runs of single patterns that are gone have counted.
        self.gone: Counter[str] = Counter()
        self._keys: dict[tuple[str, ...], SharedKeys] = {}
        #: What a call may list.
        self.limits = Limits(options, self.timeline, self.history, self.gone)

    @property
    def versions(self) -> Sequence[Version]:
        """Those in force, by id."""
        return self.timeline.in_force.versions

    def own(self) -> list[OwnRun]:
        """The runs of versions in force that do not run with others, once for each version."""
        return [version.own for version in self.versions if version.own is not None]

    def runs(self) -> list[OwnRun | SharedRun]:
        """All runs."""
        return [*dict.fromkeys(self.own()), *self.joint.values()]

    def _holders(self) -> dict[OwnRun, list[Version]]:
        """The runs of patterns on their own, with the versions in force that have each."""
        found: dict[OwnRun, list[Version]] = {}
        for version in self.versions:
            if version.own is not None:
                found.setdefault(version.own, []).append(version)
        return found

    def through(self, stretch: Checked, time: int | float) -> Iterator[pa.Table]:
        """The rows of a stretch of events, whose first one has this time."""
        yield from by_id(self._reach(time, inclusive=True, in_force=stretch.in_force))
        begin = 0
        for batch in stretch.tested.to_batches(max_chunksize=stretch.in_force.piece(CHUNK)):
            low = 0
            while low < batch.num_rows:
                first = begin + low
                reached, visits = stretch.visits(first, begin + batch.num_rows)
                piece = batch.slice(low, reached - first)
                yield from self._piece(stretch, piece, first, visits)
                self.rows += piece.num_rows
                self._forget()
                low += piece.num_rows
            begin += batch.num_rows
        for version, value in stretch.reached.items():
            version.measure = value

    def advance(self, time: int | float) -> list[tuple[Version, list[pa.Table]]]:
        """What is known when no event before a time will come."""
        found = self._reach(time, inclusive=False)
        for run in self.runs():
            if not isinstance(run, OtherRun | ClauseRun):
                run.rows = self.rows
        for joint in self.joint.values():
            joint.reach(time)
        return found + self.of_all(lambda run: run.reach(time))

    def _piece(self, stretch: Checked, batch: pa.RecordBatch, low: int, visits: Visits) -> Iterator[pa.Table]:
        """Some events of a stretch, from ``low`` on, through all of its patterns."""
        in_force, high = stretch.in_force, low + batch.num_rows
        if not in_force.versions:
            return
        self.history.append(np.arange(self.rows, self.rows + high - low), stretch.kept.slice(low, high - low))
        measures = {name: values[low:high] for name, values in stretch.measures.items()}
        streams = [
            *self._of_joint(in_force, batch, measures, visits),
            *self._of_own(in_force, batch, measures, [*in_force.conditions.hand_out(stretch.told, low, high)], visits),
        ]
        for block in in_order(streams, min(BLOCK, self._options.capacity**2)):
            yield self.results.table(block, in_force.sources, self.history)

    def _of_joint(
        self, in_force: InForce, batch: pa.RecordBatch, measures: Mapping[str, Numbers], visits: Visits
    ) -> Iterator[Iterator[Matches]]:
        """The matches of the patterns that run together, run by run."""
        run_of, slot_of = in_force.slots
        lead_of = in_force.leads
        concerned = visits.concerned[: lead_of.size] + np.where(lead_of < 0, 0, visits.concerned[lead_of])
        off = (
            np.array([version.off is not None for version in in_force.versions], np.bool_)
            if self._options.disables
            else None
        )
        if off is not None and off.any():
            concerned[off] = 0
            on = np.zeros(run_of.size + 1, np.bool_)
            on[: off.size], on[lead_of[~off]] = ~off, True  # the last one stands for those that have no lead
            visits = visits.of(np.flatnonzero(on[visits.place]))
        for place in np.flatnonzero(concerned).tolist():
            in_force.versions[place].concerned += int(concerned[place])
        shares = [visits] if in_force.in_one else _by_run(visits, run_of[visits.place], len(in_force.joint))
        for mine, (run, place_of) in zip(shares, in_force.joint, strict=True):
            found = run.follow(batch, self.rows, mine.row, slot_of[mine.place], mine.cls, measures)
            if isinstance(run, AlikeRun):
                found = self.limits.blaming(found, run, place_of, in_force.versions)
            yield self.limits.within(_placed(found, place_of), run, in_force.versions)

    def _of_own(
        self,
        in_force: InForce,
        batch: pa.RecordBatch,
        measures: Mapping[str, Numbers],
        handed_out: Sequence[tuple[CompiledPattern, RoutedEvents]],
        visits: Visits,
    ) -> Iterator[Iterator[Matches]]:
        """The matches of the patterns on their own, one by one."""
        shared = self._shared_keys(batch, handed_out)
        told = []
        for part, handed in handed_out:
            if isinstance(part, CompiledAggregates):
                yield from self._of_several(in_force, part, batch, measures, handed)
            else:
                told += [(place, handed) for place in in_force.places(part)]
        told += [
            (place, own_visits(in_force.versions[place].part, visits, place, int(in_force.leads[place])))
            for place in in_force.restored
        ]
        for place, handed in told:
            version = in_force.versions[place]
            run = self._own_of(version, handed)
            if run is not None:
                version.concerned += handed.rows.size
                keys = shared.get(version.part.partition_by)
                found = run.follow(batch, self.rows, handed, measures, keys)
                yield self.limits.of_one(found, run, place, in_force.versions)

    def _of_several(
        self,
        in_force: InForce,
        part: CompiledAggregates,
        batch: pa.RecordBatch,
        measures: Mapping[str, Numbers],
        handed: RoutedEvents,
    ) -> Iterator[Iterator[Matches]]:
        """The rows of patterns that have one run, by what they add up."""
        groups: dict[object, list[int]] = {}
        for place in in_force.places(part):
            groups.setdefault(in_force.versions[place].group, []).append(place)
        for places in groups.values():
            versions = [in_force.versions[place] for place in places]
            run = versions[0].own
            if run is None and (handed.rows.size or part.always):
                run = self._new_several(part, versions)
            if run is not None and (handed.rows.size or run.waits):
                assert isinstance(run, SeveralRun)
                found = self.limits.blaming(
                    run.follow(batch, self.rows, handed, measures, None), run, places, in_force.versions
                )
                for rows in run.forms(found):
                    yield self.limits.within(_placed(rows, np.array(places)), run, in_force.versions)

    def _shared_keys(
        self, batch: pa.RecordBatch, handed_out: Sequence[tuple[CompiledPattern, RoutedEvents]]
    ) -> dict[tuple[str, ...], SharedKeys]:
        """By partition attributes: the keys of the events, where patterns ask for as many of them as there are events."""
        asked: Counter[tuple[str, ...]] = Counter()
        for part, handed in handed_out:
            if part.totals is None:
                asked[part.partition_by] += handed.rows.size
        found = {}
        for names, count in asked.items():
            if names and count >= batch.num_rows and len(handed_out) > 1:
                if names not in self._keys:
                    self._keys[names] = SharedKeys(names, self._schema)
                if self._keys[names].read(batch):
                    found[names] = self._keys[names]
        return found

    def _own_of(self, version: Version, handed: RoutedEvents) -> OwnRun | None:
        """The run of a pattern on its own that some events concern; ``None`` while they leave no trace in it."""
        if version.off is not None:
            return None
        if version.own is None and (handed.rows.size or version.part.always):
            version.own = self._new_own(version.part)
        run = version.own
        return run if run is not None and (handed.rows.size or run.ranked or run.waits) else None

    def of_all(self, give: Callable[[OwnRun], Iterator[Matches]]) -> list[tuple[Version, list[pa.Table]]]:
        """What the runs of patterns on their own give, version by version."""
        found = []
        for run, versions in self._holders().items():
            if isinstance(run, SeveralRun):
                found += self._given_by(versions, self.limits.blaming(give(run), run, range(len(versions)), versions))
            else:
                found.append((versions[0], self._given(versions[0], give(run))))
        return found

    def undecided(self) -> dict[str, int | None]:
        """How many matches of patterns the end of the stream would complete; ``None``: more than memory holds. The runs end."""
        counts: dict[str, int | None] = {}
        for run, versions in self._holders().items():
            found = np.zeros(len(versions), np.int64)
            try:
                for piece in run.finish():
                    whose = np.zeros(piece.end.size, np.int64) if piece.part is None else piece.part
                    found += np.bincount(whose, minlength=found.size)
                    if found.max() > UNDECIDED:
                        raise LimitError("no more are counted")
            except LimitError:
                counts |= dict.fromkeys((version.id for version in versions), None)
            else:
                counts |= {version.id: int(count) for version, count in zip(versions, found, strict=True) if count}
        return counts

    def _reach(
        self, time: int | float, *, inclusive: bool, in_force: InForce | None = None
    ) -> list[tuple[Version, list[pa.Table]]]:
        """Put in force what was to come until ``time``; gives the matches whose windows have passed before their patterns ended."""
        before = self.timeline.in_force
        ended = self.timeline.reach(time, inclusive=inclusive, in_force=in_force)
        if self.timeline.in_force is before:
            return []
        gone = set(before.versions).difference(self.versions)
        found = []
        for version in gone:
            until = ended[version.id]
            if version.own is not None and until is not None:
                if isinstance(version.own, SeveralRun):
                    alone = version.own.narrowed([version.id], **self._holding())
                    found.append((version, self._given(version, alone.finish())))
                elif version.part.ends:
                    found.append((version, self._given(version, version.own.finish())))
                elif version.own.waits:
                    found.append((version, self._given(version, version.own.reach(until))))
        self._leave(gone)
        self._enter(self.timeline.in_force)
        return found

    def _given(self, version: Version, found: Iterator[Matches]) -> list[pa.Table]:
        """The rows of what time alone gives of a pattern."""
        assert version.own is not None
        versions, sources = [version], [version.source]
        pieces = self.limits.of_one(found, version.own, 0, versions)
        # Those of a clause come partition by partition, and are put in order together.
        blocks = [[*pieces]] if isinstance(version.part, CompiledRowPattern) else ([piece] for piece in pieces)
        return [self.results.table(block, sources, self.history) for block in blocks]

    def _given_by(self, versions: Sequence[Version], found: Iterator[Matches]) -> list[tuple[Version, list[pa.Table]]]:
        """The same of a run that several patterns have, whose rows are made in one go."""
        pieces = [piece for piece in found if piece.end.size]
        rows = self.results.table(pieces, [version.source for version in versions], self.history)
        counts = np.zeros(len(versions), np.int64)
        for piece in pieces:
            assert piece.part is not None
            counts += np.bincount(piece.part, minlength=counts.size)
        lows = np.cumsum(counts) - counts
        return [
            (version, [rows.slice(low, count)])
            for version, low, count in zip(versions, lows.tolist(), counts.tolist(), strict=True)
        ]

    def _enter(self, in_force: InForce) -> None:
        """Give the patterns that come into force, and run together, their slots."""
        new = [one for one in in_force.versions if one.part.together and one.joint is None]
        many = Counter(one.part.terms for one in new)
        for version in new:
            terms = version.part.terms
            if terms not in self.joint:
                self.joint[terms] = self._new_joint(version.part, many[terms])
            version.joint = self.joint[terms]
            version.slot = version.joint.enter(version.part, version.lead)

    def _leave(self, versions: Iterable[Version]) -> None:
        """Forget what patterns that end have left."""
        gone: dict[SharedRun, list[int]] = {}
        self._leave_several({version.own for version in versions if isinstance(version.own, SeveralRun)})
        for version in versions:
            if not isinstance(version.own, SeveralRun):
                release([version], self.gone)
            if version.joint is not None:
                gone.setdefault(version.joint, []).append(version.slot)
        for joint, slots in gone.items():
            joint.leave(slots)

    def _leave_several(self, runs: Collection[SeveralRun]) -> None:
        """Let runs that some of their patterns leave go on with the others."""
        staying = {run: list[Version]() for run in runs}
        for version in self.versions if staying else ():
            if isinstance(version.own, SeveralRun) and version.own in staying:
                staying[version.own].append(version)
        for run, versions in staying.items():
            if versions:
                fewer = run.narrowed([version.id for version in versions], **self._holding())
                for version in versions:
                    version.own = fewer
            else:
                counted(run, self.gone)

    def _forget(self) -> None:
        """Drop the events that no partial match holds, now and then: the cost per event stays constant on average."""
        history = self.history
        if history.rows > 2 * self._kept + CHUNK:
            self.retain()
        elif len(history.pieces) > PIECES:
            history.joined()

    def retain(self) -> None:
        """Keep only the patterns' state and the events that later matches may need."""
        live = [np.zeros(0, np.int64), *(joint.live() for joint in self.joint.values())]
        for run, versions in self._holders().items():
            held = run.live()
            if held.size:
                live.append(held)
            elif run.idle:  # a new one gives the same from here on
                release(versions, self.gone)
                self.timeline.in_force.forget_slots()
        self.history.retain(np.unique(np.concatenate(live)))
        self._kept = self.history.rows

    def _check_held(self) -> None:
        """Refuse a restored state in which events are not there that its runs hold."""
        known, _ = self.history.joined()
        for run in (*self.joint.values(), *self._holders()):
            if not np.isin(run.live(), known).all():
                raise ValueError("events are not there that partial matches hold")

    def _labels(self, part: CompiledPattern) -> bool:
        if part.returned is not None:
            return self._options.measures
        return self._options.output == "events" and bool(part.selected)

    def _new_own(self, part: CompiledPattern) -> OwnRun:
        if part.on_tecs:
            return TecsRun(part.program, labels=self._labels(part), capacity=self._options.capacity)
        budget = Meter.of_call(self._options.budget).budget.held
        if isinstance(part, CompiledAutomaton):
            traces = self._options.output == "events" or self._options.positions
            return AfaRun(part, traces=traces, capacity=self._options.capacity, budget=budget)
        if isinstance(part, CompiledRowPattern):
            return ClauseRun(
                part, by=self._options.by, measured=self._options.measures, capacity=self._options.capacity
            )
        assert isinstance(part, CompiledQuery)
        kind = AddingRun if part.totals is not None else OtherRun if part.query.parsed.keep is None else KeepingRun
        return kind(part, labels=self._labels(part), capacity=self._options.capacity, budget=budget)

    def _new_several(self, part: CompiledAggregates, versions: Sequence[Version]) -> SeveralRun:
        run = SeveralRun(part, [version.id for version in versions], **self._holding())
        for version in versions:
            version.own = run
        return run

    def _new_joint(self, part: CompiledPattern, patterns: int) -> SharedRun:
        if isinstance(part, CompiledQuery) and not part.on_tecs:
            return AlikeRun(part, labels=self._labels(part), **self._holding())
        return JointRun(part, labels=self._labels(part), capacity=self._options.capacity * min(patterns, 1 << 8))

    def _holding(self) -> _Holding:
        """How much a run of counts and sums may hold, and what it begins with."""
        return {"capacity": self._options.capacity, "budget": Meter.of_call(self._options.budget).budget.held}

    def save(self, section: Section) -> None:
        """Write the patterns with their times, and all that they hold."""
        for version in self.timeline.versions:
            if version.part.unsaved is not None:
                raise SnapshotError(f"pattern '{version.id}': {version.part.unsaved}")
        self.retain()
        sections: dict[OwnRun, Section] = {}
        joint = [run for run in self.joint.values() if run.busy]
        active = []
        for version in self.versions:
            number = slot = None
            if version.own is not None:
                if version.own not in sections:
                    sections[version.own] = _own_section(version)
                number = list(sections).index(version.own)
            elif version.joint in joint:
                number, slot = joint.index(version.joint), version.slot
            part = version.part
            active.append(
                [version.id, part.text, part.language, number_of(version.since), version.measure, number]
                + ([] if slot is None else [slot, part.digest])
            )
        together(list(sections.values()), section)
        section.values["joint"] = len(joint)
        for number, run in enumerate(joint):
            run.save(section.sub(f"joint{number}"))
        self.history.save(section.sub("history"))
        section.values |= {
            "active": active,
            "pending": [
                [since, name, *((version.part.text, version.part.language) if version else (None, None))]
                for since, step in self.timeline.steps()
                for name, version in step.versions.items()
            ],
        }

    def load(
        self,
        section: Section,
        compiled: Callable[[str, str, str | None], CompiledPattern],
        instant: Callable[[int | float | None], Instant | None],
    ) -> None:
        """Take over what :meth:`save` wrote; ``compiled`` makes a pattern of its id, text and language."""
        values = section.values
        self.history.load(section.sub("history"), Section(values["counts"]).count("rows"), self._schema.attributes)
        own = sections_of(section)
        versions = []
        names = [name for name, *_ in values["active"]]
        if len(set(names)) != len(names):
            raise ValueError("a pattern is there twice")
        for name in (*names, *(name for _, name, *_ in values["pending"])):
            if type(name) is not str:
                raise ValueError(f"a pattern is called {name!r}")
        slots: list[dict[int, Version]] = [
            {} for _ in range(section.count("joint", most=len(names)) if "joint" in values else 0)
        ]
        groups: dict[int, list[Version]] = {}
        for name, text, language, since, measured, number, *slotted in values["active"]:
            if number is not None and not 0 <= number < len(slots if slotted else own):
                raise ValueError(f"pattern {name!r} has the state {number}")
            part = compiled(name, text, language)
            off = values.get("disabled", {}).get(name)
            if not isinstance(off, str | None):
                raise ValueError(f"pattern {name!r} was switched off because of {off!r}")
            measure = Section({"measure": measured}).measure("measure")
            version = Version(name, part, instant(since), off=off, measure=measure)
            if slotted:
                _check_automaton(name, part, slotted[1])
                if type(slotted[0]) is not int or not 0 <= slotted[0] < MOST_SLOTS:
                    raise ValueError(f"pattern {name!r} has the slot {slotted[0]!r}")
                slots[number][slotted[0]] = version
            elif number is not None and own[number].values.get("several"):
                groups.setdefault(number, []).append(version)
            elif number is not None:
                _check_automaton(name, part, own[number].values["automaton"])
                version.own = self._new_own(part)
                version.own.load(own[number])
            versions.append(version)
        for number, members in groups.items():
            self._load_several(own[number], members)
        for number, taken in enumerate(slots):
            self._load_joint(section.sub(f"joint{number}"), taken)
        self.timeline.start(versions)
        self._enter(self.timeline.in_force)
        for since, name, text, language in values["pending"]:
            self.timeline.add(name, instant(since), None if text is None else compiled(name, text, language))
        self._check_held()
        self._kept = self.history.rows

    def _load_several(self, section: Section, versions: Sequence[Version]) -> None:
        """Take over what patterns that have one run have left."""
        part = several([version.part for version in versions if isinstance(version.part, CompiledQuery)])
        _check_automaton(versions[0].id, part, section.values["automaton"])
        self._new_several(part, versions).load(section)
        group = object()
        for version in versions:
            version.group = group

    def _load_joint(self, section: Section, taken: Mapping[int, Version]) -> None:
        """Take over what patterns that run together have left; ``taken``: who has which slot."""
        if not taken:
            raise ValueError("nobody has what patterns that run together have left")
        first = next(iter(taken.values())).part
        joint = self.joint[first.terms] = self._new_joint(first, len(taken))
        lead_of = joint.leads_of(section)
        leads: dict[Lead, int] = {}
        for slot, version in taken.items():
            if version.lead is not None and leads.setdefault(version.lead, lead_of[slot]) != lead_of[slot]:
                version.lead = version.lead._replace(id=version.id)
        slots = joint.resume(section, {slot: (version.part, version.lead) for slot, version in taken.items()})
        for slot, version in taken.items():
            version.joint, version.slot = joint, slots[slot]


class _Holding(TypedDict):
    """How much a run may hold, and what it begins with."""

    capacity: int
    budget: Budget


def number_of(instant: Instant | None) -> int | float | None:
    """An instant as a snapshot has it."""
    return None if instant is None else instant.number


def _own_section(version: Version) -> Section:
    """The state of a run that does not run with others."""
    own = version.own
    assert own is not None
    several_have_it = isinstance(own, SeveralRun)
    digest = own.part.digest if isinstance(own, SeveralRun) else version.part.digest
    section = Section({"automaton": digest} | ({"several": True} if several_have_it else {}))
    own.save(section)
    return section


def by_id(found: Iterable[tuple[Version, list[pa.Table]]]) -> Iterator[pa.Table]:
    """What was found of versions of patterns, by id and then by when they begin to hold."""

    def place(one: tuple[Version, list[pa.Table]]) -> tuple[str, int | float]:
        since = number_of(one[0].since)
        return one[0].id, -math.inf if since is None else since

    for _, tables in sorted(found, key=place):
        yield from tables


def _by_run(visits: Visits, whose: NDArray[np.int64], runs: int) -> list[Visits]:
    """The visits of each run, by its number; −1: those of none."""
    order = np.argsort(whose, kind="stable")
    bounds = np.searchsorted(whose[order], np.arange(runs + 1))
    return [visits.of(order[low:high]) for low, high in pairwise(bounds.tolist())]


def _placed(found: Iterator[Matches], place_of: NDArray[np.int64]) -> Iterator[Matches]:
    """Matches of patterns that run together, with the places of those that have the slots."""
    return (piece._replace(part=place_of[piece.part]) for piece in found)


def _check_automaton(name: str, part: CompiledPattern, digest: str) -> None:
    if digest != part.digest:
        raise SnapshotError(
            f"the snapshot does not fit: the automaton of pattern '{name}', as this version of stretto builds it, differs"
        )
