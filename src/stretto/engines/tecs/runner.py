"""One stream through the tECS engine: batches of events in, raw matches out.

The way of an event: its class (``predicates``), whether that class can change anything, its partition, the least start in
its window, and then the kernel. All steps are over whole columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.automata.determinize import AMBIGUOUS
from stretto.engines.api import NO_VISITS, Matches, Visits
from stretto.engines.tecs.collect import states_of
from stretto.engines.tecs.compiled import Compiled
from stretto.engines.tecs.driver import Driver
from stretto.engines.tecs.kernels import Events
from stretto.engines.tecs.labels import resolved
from stretto.frame import Section


class Runner(Driver):
    """A state of a program, and what is kept beside the kernel's arrays.

    Parameters
    ----------
    program
        The compiled query.
    labels, counts, late, capacity, operator
        How it starts (:class:`~stretto.engines.api.Starting`).
    """

    program: Compiled

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Read the next events; yields their matches, or counts of them, in pieces that fit the output buffers.

        The iterator must be read to its end before the next call; data errors are raised before anything changes. ``silent``:
        no event gives output, and none consumes; partial matches are built as ever.
        """
        self.refuse_if_broken()
        prepared = self._prepare(batch)
        if prepared is None:
            return
        self.broken = True
        yield from self._carried_out(prepared, silent)
        self.broken = False

    # -- columns to kernel input ------------------------------------------------------------------------------------

    def _prepare(self, batch: pa.RecordBatch) -> Events | None:
        """Check the batch and turn it into the events to visit; ``None`` when there are none."""
        classed = self._classed(batch)
        batch = classed.batch
        member, measures, cls = classed.member, classed.measures, classed.cls
        self.program.refresh()
        first = self._move(batch, classed)
        rows = self.program.visited(cls, member)
        part, key = np.zeros(rows.size, np.int64), None
        if self.keys is not None or self.ranked:
            rows, part, key = self._substreams(batch, rows, member, skips=self.program.skips)
            self.state.fit_partitions(self.partitions)
        events = self._placed_events(cls[rows], rows, part, key, measures, first) if rows.size else None
        if self.operator.visited:
            self.until = self._open_after(measures, classed.timed)
            events = self._kept_events(events)
        self.operator.see(batch, rows, rows + first, ())
        return events

    def _kept_events(self, events: Events | None) -> Events | None:
        """The same events, with where the matches to list begin at least."""
        if events is None:
            self.operator.visit(NO_VISITS, self.partitions)
            return None
        begins = self.program.begins(events.cls)
        visits = Visits(events.position, events.part, events.key, events.low, begins)
        return events._replace(floor=self.operator.visit(visits, self.partitions))

    def _drain(self) -> Matches:
        if self.counts:
            return self.state.drain_counts()
        found = self.state.drain()
        self._resolve(found)
        return found

    def _resolve(self, found: Matches) -> None:
        if self.labels and not self.program.valuations and (found.mark == AMBIGUOUS).any():
            last_class = self.trace.cls[np.searchsorted(self.trace.position, found.end)]
            resolved(found, last_class, self.trace, self.program.arcs(), self.program.truth())

    def _save_names(self, section: Section) -> None:
        determinizer, vectors = self.program.determinizer, self.program.classifier.vectors
        states = states_of(section.arrays["records"], len(determinizer.states))
        section.values["states"] = {int(n): [hex(mask) for mask in determinizer.states[n]] for n in states}
        section.values["classes"] = {int(c): hex(vectors[c]) for c in np.unique(self.trace.cls)}

    @property
    def _marks(self) -> int:
        return len(self.program.determinizer.marks)

    def _load_states(self, section: Section) -> I64:
        program = self.program
        return renumbered(section.values["states"], lambda masks: program.intern(tuple(int(one, 16) for one in masks)))

    def _load_classes(self, section: Section, part: I64, cls: NDArray[Any]) -> NDArray[np.int32]:
        classifier = self.program.classifier
        classes = renumbered(section.values["classes"], lambda vector: classifier.intern(int(vector, 16)))
        return np.asarray(classes[cls], np.int32)


def renumbered(named: Mapping[str, Any], number: Callable[[Any], int]) -> I64:
    """By number in a snapshot: the number here."""
    if named and not 0 <= min(map(int, named)) <= max(map(int, named)) < 1 << 31:
        raise ValueError("a number of a state or class is out of range")
    found = np.zeros(max(map(int, named), default=0) + 1, np.int64)
    for old, what in named.items():
        found[int(old)] = number(what)
    return found
