"""A pattern that needs another engine than tECS: it has a run of its own over the events that concern it.

A pattern that runs on its own on the tECS engine: what it has left behind of the stream so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.columns.arrays import longer
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches, Unlisted
from stretto.engines.latest.runner import LatestRunner
from stretto.engines.limits import TooMany
from stretto.engines.match_ops.wrapper import AroundRun
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.programs import Program
from stretto.engines.tecs.runner import Runner
from stretto.engines.timed.runner import TimedRunner
from stretto.engines.totals.runner import TotalsRunner
from stretto.frame import Section
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern, CompiledQuery
from stretto.matching.pattern_set.event_routing import RoutedEvents
from stretto.matching.pattern_set.predicate_index import Visits
from stretto.matching.pattern_set.shared_aggregate_run import CompiledAggregates
from stretto.matching.pattern_set.shared_predicates import OwnNumbers, SharedKeys

#: Places are forgotten when there are so many more than twice those that were kept last.
PLACES = 1 << 12


class OtherRun(AroundRun):
    """A run that is handed some events of a stream, and says of its matches where in the whole stream their events are.

    Parameters
    ----------
    part
        The pattern.
    labels
        Tell which variables hold which event.
    capacity
        Initial size of the growing arrays.
    budget
        How many bytes of matches it may hold before it gives them.
    """

    run: Runner | NfabRunner | TimedRunner | LatestRunner | TotalsRunner
    ranked = False  #: nothing counts the events that it is not handed

    def __init__(
        self, part: CompiledQuery | CompiledAggregates, *, labels: bool, capacity: int, budget: Budget
    ) -> None:
        self._places: Any = _Places()
        super().__init__(self._started(part, labels=labels, capacity=capacity, budget=budget))
        #: Whether matches are given when time has passed their window.
        self.waits = part.waits
        self._size = part.wait
        self._columns = list(part.machine.columns)
        assert part.query.bound.schema.time is not None
        self._time = part.query.bound.schema.time

    def _started(self, part: CompiledQuery | CompiledAggregates, *, labels: bool, capacity: int, budget: Budget) -> Any:
        """The run inside."""
        return part.machine.start(labels=labels, capacity=capacity, budget=budget)

    # -- events ---------------------------------------------------------------------------------------------------------

    def follow(
        self,
        batch: pa.RecordBatch,
        first: int,
        handed: RoutedEvents,
        measures: Mapping[str, NDArray[Any]],
        shared: SharedKeys | None,
    ) -> Iterator[Matches]:
        """As :class:`~stretto.matching.pattern_set.dedicated_run.TecsRun` does; the run numbers keys by itself."""
        times = measures[self._time]
        if handed.rows.size:
            self._places.add(handed.rows + first, times[handed.rows])
            mine = batch.select(self._columns)
            if handed.rows.size < batch.num_rows:
                mine = mine.take(pa.array(handed.rows))
            yield from self._known(self.run.advance(mine), first, times)
        if self._is_due(times[-1].item()):
            yield from self._known(self.run.reach(times[-1].item()), first, times)
        if self._places.many:
            self._places.forget(self._oldest)

    def reach(self, time: int | float) -> Iterator[Matches]:
        """No event before ``time`` will come: give what waited for that, and free what is out of its window."""
        return self._placed(self.run.reach(time))

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: give what waits."""
        return self._placed(self.run.finish())

    def _is_due(self, time: int | float) -> bool:
        """Whether something has waited long enough at a time."""
        last = self.run.expires if self.waits else None
        return last is not None and time > last

    def _known(self, found: Iterator[Matches], first: int, times: NDArray[Any]) -> Iterator[Matches]:
        """The matches with the event of the batch at which each is known, where they wait: the first behind its window."""
        if not self.waits:
            yield from self._placed(found)
            return
        for piece in self._placed(found):
            ends = self._places.times_of(piece.start) + self._size
            known = np.minimum(np.searchsorted(times, ends, "right"), times.size - 1)
            yield piece._replace(known=first + known)

    def _placed(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """The matches with the positions of the whole stream."""
        places = self._places
        try:
            for piece in found:
                yield places.placed(piece)
        except TooMany as error:
            error.event = int(places[error.event])
            raise
        except IntegerOverflow as error:
            raise error.renumbered(places) from None

    # -- what is kept of the past ---------------------------------------------------------------------------------------

    @property
    def _oldest(self) -> int:
        """The first event, by its number in the run, that a match may still hold."""
        oldest: int | None = self.run.oldest
        if oldest is not None:
            return oldest
        live = self.run.live()
        return int(live[0]) if live.size else int(self.run.rows)

    def live(self) -> I64:
        """The positions of the events that a match to come may hold (sorted)."""
        found: I64 = self._places[self.run.live()]
        return found

    @property
    def expires(self) -> int | float | None:
        """The last time at which something that was given may still matter; where matches wait, when the first is due."""
        return self.run.expires

    def unlisted(self) -> Unlisted | None:
        """While events are being read: how many matches of the last one are still to come; ``None``: none."""
        return self.run.unlisted()

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return int(self.run.nbytes + self._places.nbytes)

    def save(self, section: Section) -> None:
        """Write the run's state, and where its events are."""
        self.run.save(section.sub("run"))
        self._places.forget(self._oldest)
        self._places.save(section.sub("places"))

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        self.run.load(section.sub("run"))
        rows = self.run.rows
        # What a window alone says of what may be named goes by numbers that need not rise.
        self._places.load(section.sub("places"), rows, self._oldest if self.run.oldest is None else rows)


class _Places:
    """Of the events of a run, by their numbers there: positions in the stream, and times."""

    def __init__(self) -> None:
        self._first = 0  # the number of the first that is kept
        self._count = self._kept = 0
        self._position = np.zeros(1, np.int64)
        self._time: NDArray[Any] = np.zeros(1, np.int64)

    def __getitem__(self, numbers: Any) -> Any:
        return self._position[numbers - self._first]

    def placed(self, piece: Matches) -> Matches:
        """Matches whose events are told by their numbers, with positions."""
        return piece._replace(start=self[piece.start], end=self[piece.end], position=self[piece.position])

    def times_of(self, positions: I64) -> NDArray[Any]:
        """The times of events at positions of the stream."""
        return self._time[np.searchsorted(self._position[: self._count], positions)]

    def times_at(self, numbers: I64) -> NDArray[Any]:
        """The times of events by their numbers."""
        return self._time[numbers - self._first]

    def open_from(self, size: int | float, oldest: int) -> int:
        """The first event that is kept, by its number, from ``oldest`` on or in a window that ends with the last one."""
        time = self._time[: self._count]
        return min(oldest, self._first + int(np.searchsorted(time, time[-1] - size))) if self._count else oldest

    def since(self, oldest: int) -> I64:
        """The positions of the events from number ``oldest`` on."""
        found: I64 = self._position[max(oldest - self._first, 0) : self._count].copy()
        return found

    def add(self, positions: I64, times: NDArray[Any]) -> None:
        """The next events."""
        stop = self._count + positions.size
        if stop > self._position.size or self._time.dtype != times.dtype:
            size = max(stop, 2 * self._count)
            self._position, self._time = longer(self._position, size), longer(self._time.astype(times.dtype), size)
        self._position[self._count : stop] = positions
        self._time[self._count : stop] = times
        self._count = stop

    @property
    def many(self) -> bool:
        """Whether there are so many more than were kept last that it is worth to forget."""
        return self._count > 2 * self._kept + PLACES

    def forget(self, oldest: int) -> None:
        """Drop the events before number ``oldest``."""
        gone = min(max(oldest - self._first, 0), self._count)
        self._position, self._time = self._position[gone : self._count].copy(), self._time[gone : self._count].copy()
        self._first += gone
        self._count = self._kept = self._position.size

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return self._position.nbytes + self._time.nbytes

    def save(self, section: Section) -> None:
        """Write the events that are kept."""
        section.values["first"] = self._first
        section.arrays |= {"position": self._position[: self._count], "time": self._time[: self._count]}

    def load(self, section: Section, rows: int, oldest: int) -> None:
        """Take over what :meth:`save` wrote of a run that was handed so many events, and may name those from ``oldest`` on."""
        self._first = section.count("first", most=min(rows, oldest))
        self._position, self._time = section.numbers("position", least=0, rising=True), section.arrays["time"].copy()
        if not self._position.size == self._time.size == rows - self._first:
            raise ValueError("there are not as many places as events")
        self._count = self._kept = self._position.size


class TecsRun(Runner):
    """A run that is told which events to visit, and their classes.

    Order and NULLs of times and windows are checked by whoever tells; positions count the whole stream.
    """

    waits = False  #: every match is given with the event that completes it

    def __init__(self, program: Program, *, labels: bool, capacity: int) -> None:
        super().__init__(program, labels=labels, capacity=capacity)
        self._numbers = OwnNumbers()

    def follow(
        self,
        batch: pa.RecordBatch,
        first: int,
        handed: RoutedEvents,
        measures: Mapping[str, NDArray[Any]],
        shared: SharedKeys | None,
    ) -> Iterator[Matches]:
        """Read the next events; yields their matches. Must be read to its end before the next call.

        Parameters
        ----------
        batch
            The events.
        first
            The position of the first of them.
        handed
            Those that matter.
        measures
            By attribute: what windows measure of every event.
        shared
            The keys of the events, where they are numbered for several patterns at once.
        """
        self.program.refresh()
        self.rows = first + batch.num_rows
        rows, part, key = self._placed(batch, handed, shared)
        if not rows.size:
            return
        cls = handed.cls if rows.size == handed.rows.size else handed.cls[np.searchsorted(handed.rows, rows)]
        yield from self._carried_out(self._placed_events(cls, rows, part, key, self._measured_of(measures), first))

    def _placed(
        self, batch: pa.RecordBatch, handed: RoutedEvents, shared: SharedKeys | None
    ) -> tuple[I64, I64, I64 | None]:
        """The events to visit that are in a substream, with its number and, where the window counts, their ranks in it."""
        rows = handed.rows
        if self.ranked or (self.keys is not None and shared is None):
            placed = self._substreams(batch, rows, handed.member, skips=self.program.skips)
            self.state.fit_partitions(self.partitions)
            return placed
        if self.keys is None or shared is None:
            return rows, np.zeros(rows.size, np.int64), None
        part = self._numbers.of(self.keys, shared, rows)
        self.state.fit_partitions(len(self.keys))
        known = part >= 0
        return (rows, part, None) if known.all() else (rows[known], part[known], None)

    def _sweep(self) -> None:
        before = self.partitions
        super()._sweep()
        if self.partitions != before:  # keys that are idle were forgotten, and the others renumbered
            self._numbers.forget()


def own_visits(part: CompiledPattern, visits: Visits, place: int, lead: int) -> RoutedEvents:
    """What a pattern that could run with the others gets of their visits, and of those of its prefix, where it runs on its own."""
    mine = np.flatnonzero((visits.place == place) | (visits.place == lead))
    rows, where = np.unique(visits.row[mine], return_inverse=True)
    if not part.on_tecs:
        return RoutedEvents(rows, visits.cls[mine], None)
    both = np.zeros((rows.size, 2), np.int32)  # class 0 concerns nobody
    both[where, (visits.place[mine] == lead).astype(np.int64)] = visits.cls[mine]
    distinct, which = np.unique(both, axis=0, return_inverse=True)
    vectors, own = part.model.classifier.vectors, part.program.classifier
    classes = np.array([own.intern(vectors[one] | vectors[two]) for one, two in distinct], np.int32)
    return RoutedEvents(rows, classes[which.reshape(-1)], None)
