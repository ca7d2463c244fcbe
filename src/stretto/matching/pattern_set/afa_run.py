"""An automaton among patterns: what a set knows of it, and its run over the events in their order."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.column_types import time_hint
from stretto.engines.afa import structure as s
from stretto.engines.afa.code import AfaCode
from stretto.engines.afa.compiled import Roles, Texts
from stretto.engines.afa.graph import GraphTables
from stretto.engines.afa.program import AfaProgram
from stretto.engines.afa.runner import AfaRunner
from stretto.engines.api import Matches
from stretto.engines.match_ops.wrapper import AroundRun
from stretto.errors import DataError, OptionError, SnapshotError, hinted
from stretto.events import Schema, conform
from stretto.frame import Section
from stretto.languages.afa.written import write_afa
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern, WholeEvents
from stretto.matching.pattern_set.event_routing import RoutedEvents
from stretto.matching.pattern_set.shared_predicates import SharedKeys
from stretto.query import predicate as p
from stretto.query.afa import Afa, Arc, UserFunction, shown
from stretto.query.typing import UNITS
from stretto.times import DAY, PER_SECOND, ticks_in, width

#: Arrays of a run begin no larger than this: there may be many runs.
ROOM = 1 << 4

#: The language of automata that are texts.
LANGUAGE = "afa"


def text_of(afa: Afa) -> str | None:
    """An automaton as text; ``None``: it has Python functions, of which the text would say the names alone."""
    return None if with_functions(afa) else write_afa(afa)


def with_functions(afa: Afa) -> list[Arc]:
    """The arcs that have Python functions."""
    return [arc for arc in afa.arcs if isinstance(arc.when, UserFunction) or isinstance(arc.then, UserFunction)]


class CompiledAutomaton(CompiledPattern):
    """An automaton. An event that no arc takes ends what is under way, so that it reads all events.

    Parameters
    ----------
    afa
        The automaton.
    schema
        The columns of the events.
    text
        How it is written; ``None``: it has Python functions.

    Raises
    ------
    OptionError
        It has no arcs, reads what no column has, or orders the stream by what is no time of its own.
    """

    language = LANGUAGE

    def __init__(self, afa: Afa, schema: Schema, text: str | None = None) -> None:
        assert schema.time is not None
        if not afa.arcs:
            raise OptionError("the AFA has no arcs, so that nothing can match: afa.arc(source, target, when=…)")
        self.schema, self.partition_by = schema, afa.partition_by
        self._check(afa)
        self.afa = of_what_it_reads(afa)
        self.text = "\n".join(shown(arc, afa.register) for arc in afa.arcs) if text is None else text
        if text is None:
            arc = with_functions(afa)[0]
            self.unsaved = (
                f"its arc '{arc.id}' has a Python function, which no snapshot holds: write it as a text over e. and r., or run the "
                "automaton on its own, in stretto.Matcher"
            )
        self.tested = frozenset({*self.afa.events, schema.time})
        self.selected = ((None, tuple(schema.attributes)),)
        #: How long an event contributes, in ticks of the time; ``None``: for ever.
        self.window = self._width(afa.window)
        GraphTables(self.afa, AfaCode(self.afa.events, self.afa.register))  # what is wrong with functions shows now
        #: The columns whose type is another one in the events.
        self._other = [name for name, kind in self.afa.events.items() if schema.attributes[name] != kind]
        self.doubtful = bool(self._other)
        self.machine = self.lister = self.program_for(traces=False)

    def _check(self, afa: Afa) -> None:
        """Whether the events have what it reads."""
        time, attributes = self.schema.time, self.schema.attributes
        assert time is not None
        kind = attributes[time]
        if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise OptionError(
                f"'{time}' is {kind}: an automaton orders events by integers, dates or timestamps{time_hint(time, kind)}"
            )
        own, unit = afa.clock, self.schema.time_unit
        if (
            own.column == time
            and own.per_second is not None
            and unit is not None
            and PER_SECOND[unit] != own.per_second
        ):
            raise OptionError(
                f"the AFA has '{time}' in {UNITS[own.per_second]}, and time_unit='{unit}' in {unit}: they must be the same"
            )
        for name in afa.events:
            if name not in attributes:
                raise OptionError(
                    hinted(f"the AFA reads '{name}', which no column is", name, attributes, kind="column")
                )
        if afa.events.get(time, kind) != kind:
            raise OptionError(
                f"the AFA has the time '{time}' as {afa.events[time]}, and the events as {kind}: they must be the same"
            )
        none = pa.schema(list(attributes.items())).empty_table()
        try:
            conform(none, afa.events, afa.events, "the AFA has")
        except DataError as error:
            raise OptionError(str(error)) from error

    def _width(self, window: int | dt.timedelta | None) -> int | None:
        time = self.schema.time
        assert time is not None
        kind, unit = self.schema.attributes[time], self.schema.time_unit
        if isinstance(window, dt.timedelta) and pa.types.is_integer(kind) and unit is not None:
            found = ticks_in(window, kind, unit)
            assert found is not None
            if found.denominator > 1:
                raise OptionError(f"a window of {window} is no whole number of '{time}' ({unit})")
            window = int(found)
        return width(window, kind, time)

    def program_for(self, *, traces: bool, ordered: bool = True) -> AfaProgram:
        """What runs it.

        ``traces``: matches tell all of their events; ``ordered``: no event is kept that later ones do not go on from.
        """
        assert self.schema.time is not None
        roles = Roles(self.schema.time, provenance=traces, ordered=ordered)
        return AfaProgram(self.afa, roles, (frozenset({""}),), Texts(_no_arc, _no_arc))

    @property
    def meaning(self) -> Afa:
        """The automaton."""
        return self.afa

    @property
    def digest(self) -> str:
        """What a saved state belongs to: the text, whose arcs and states it names."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def holders(self) -> list[list[int]]:
        """By mark: matches have no variables, and one mark stands for all of their events."""
        return [[0]]

    def columns(self, *, output: str, positions: bool) -> WholeEvents:
        """The columns of its matches."""
        attributes = self.schema.attributes
        variables = [("", tuple(attributes))] if output == "events" else []
        return WholeEvents(LANGUAGE, self.schema.time, self.partition_by, attributes, variables, positions)

    def look(self, events: pa.Table) -> None:
        """Raise what is wrong with events: a value that does not fit its type there. What arcs compute shows when they do."""
        self.conformed(events)

    def conformed(self, events: pa.Table) -> pa.Table:
        """The columns that it reads, in its types."""
        if not self._other:
            return events
        names = [name for name in events.column_names if name in self.tested]
        return conform(events, names, {**self.schema.attributes, **self.afa.events}, "the AFA has")

    def same(self, other: CompiledPattern) -> bool:
        """Whether both are of one automaton; of Python functions the text does not tell."""
        if self.unsaved is None or not isinstance(other, CompiledAutomaton):
            return super().same(other)
        return self.afa == other.afa


def of_what_it_reads(afa: Afa) -> Afa:
    """The same with the attributes alone that arcs and keys read, so that no other column is read for it."""
    if with_functions(afa):  # which are given all
        return afa
    read = {f"e.{name}" for name in afa.partition_by}
    for arc in afa.arcs:
        for one in (arc.when, *(arc.then if isinstance(arc.then, tuple) else ())):
            if one is not None:
                assert not isinstance(one, UserFunction)
                read.update(p.attributes(one))
    return replace(afa, events={name: kind for name, kind in afa.events.items() if f"e.{name}" in read})


def _no_arc(given: Any) -> Any:
    raise SnapshotError(f"the snapshot is damaged: patterns that are automata keep their arcs, and {given} was added")


class AfaRun(AroundRun):
    """The run of an automaton over a stream in order, of whose events it reads all.

    Parameters
    ----------
    part
        The pattern.
    traces
        Whether matches tell all of their events; else the first and the last one.
    capacity
        Initial size of the growing arrays.
    budget
        How much output it may hold before it gives it.
    """

    run: AfaRunner
    waits = False  #: every match is given with the event that completes it
    ranked = False

    def __init__(self, part: CompiledAutomaton, *, traces: bool, capacity: int, budget: Budget) -> None:
        self._part, self._traces, self._ordered = part, traces, True
        self._how: dict[str, Any] = {"capacity": min(capacity, ROOM), "budget": budget}
        super().__init__(self._started())
        assert part.schema.time is not None
        self._time = part.schema.time
        self._columns = sorted(part.tested)
        #: In what is measured of a time, one tick.
        self._tick = DAY if pa.types.is_date32(part.schema.attributes[self._time]) else 1
        self._visited = self._triggers = 0
        self._set_time()

    def _started(self) -> AfaRunner:
        """The run inside, at the beginning of a stream."""
        return self._part.program_for(traces=self._traces, ordered=self._ordered).start(**self._how)

    def _set_time(self) -> None:
        self.run.time_kind, self.run.window = self._part.schema.attributes[self._time], self._part.window

    def follow(
        self,
        batch: pa.RecordBatch,
        first: int,
        handed: RoutedEvents,
        measures: Mapping[str, NDArray[Any]],
        shared: SharedKeys | None,
    ) -> Iterator[Matches]:
        """All events come here, as in :class:`~stretto.matching.pattern_set.dedicated_run.TecsRun`; the run numbers its keys."""
        self.run.rows = first
        self._visited += batch.num_rows
        mine = self._part.conformed(pa.Table.from_batches([batch.select(self._columns)])).combine_chunks()
        for piece in mine.to_batches():
            for found in self.run.advance(piece):
                self._triggers += np.unique(found.end).size
                yield self._plain(found)
        self._punctuate(measures[self._time][-1].item())

    def _plain(self, found: Matches) -> Matches:
        """Output as matches without variables, of which none is taken back as events come in order."""
        return found._replace(mark=np.zeros(found.position.size, np.int32), sign=None, outputs=None)

    def _punctuate(self, time: int | float) -> None:
        tick = int(time) // self._tick
        if tick > self.run.state.registers[s.PUNCTUATION]:
            self.run.punctuations.punctuate(tick)

    def reach(self, time: int | float) -> Iterator[Matches]:
        """No event before ``time`` will come: free what is out of its window. Nothing waits for that."""
        self._punctuate(time)
        return iter(())

    def finish(self) -> Iterator[Matches]:
        """The stream has ended; nothing waits for that."""
        return iter(())

    # -- what is kept of the past ---------------------------------------------------------------------------------------

    def live(self) -> I64:
        """The positions of the events that a match to come may hold (sorted), the last ones among them."""
        self.run.sweep()
        return self.run.live()

    @property
    def expires(self) -> int | float | None:
        """The last time at which an event of the past still contributes; ``None``: none does, or they do for ever."""
        end = self.run.expires
        return None if end is None or end == s.FOREVER else (end - 1) * self._tick

    @property
    def stats(self) -> dict[str, int]:
        """Counts of what was read and what is held."""
        found = self.run.stats
        return {
            "visited": self._visited,
            "triggers": self._triggers,
            "nodes": found["partial_matches"],
            "partitions": found["partitions"],
            "bytes": found["bytes"],
        }

    def save(self, section: Section) -> None:
        """Write the run's state."""
        section.values |= {"traces": self._traces, "visited": self._visited, "triggers": self._triggers}
        section.values["ordered"] = self._ordered
        self.run.sweep()
        self.run.save(section.sub("run"))

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote.

        Raises
        ------
        SnapshotError
            It tells all events of matches, and this one does not, or the reverse.
        """
        if section.values["traces"] != self._traces:
            raise SnapshotError(
                "the snapshot does not fit: its automata keep the events that output='events' and positions=True show, and here "
                "they do not, or the reverse"
            )
        self._visited, self._triggers = section.count("visited"), section.count("triggers")
        # A state of an earlier version holds all events of its window, and goes on so.
        if self._ordered != section.values.get("ordered", False):
            self._ordered = not self._ordered
            self.run = self._started()
        self.run.load(section.sub("run"))
        self._set_time()
