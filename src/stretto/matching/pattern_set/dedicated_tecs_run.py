"""A pattern that runs on its own on the tECS engine: what it has left behind of the stream so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.engines.api import Matches
from stretto.engines.programs import Program
from stretto.engines.tecs.runner import Runner
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern
from stretto.matching.pattern_set.event_routing import RoutedEvents
from stretto.matching.pattern_set.predicate_index import Visits
from stretto.matching.pattern_set.shared_keys import OwnNumbers, SharedKeys


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
