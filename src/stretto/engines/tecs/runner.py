"""One stream through the tECS engine: batches of events in, raw matches out.

The way of an event: its class (``predicates``), whether that class can change anything, its partition, the least start in
its window, and then the kernel. All steps are over whole columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto import _jit
from stretto.automata.determinize import AMBIGUOUS
from stretto.engines.tecs.collect import live_positions, sweep
from stretto.engines.tecs.kernels import Events, advance
from stretto.engines.tecs.labels import Trace, resolve
from stretto.engines.tecs.program import Program
from stretto.engines.tecs.state import Matches, State
from stretto.engines.tecs.structure import (
    CURSOR,
    HEAD,
    I64,
    LOW,
    MISSING_CLASS,
    MISSING_STATE,
    RING,
    ROWS,
    TAIL,
    TRIGGERS,
    VISITED,
)
from stretto.engines.tecs.windows import Measured, ranks, values_of
from stretto.errors import DataError, EngineError
from stretto.predicates.keys import KeyTable

__all__ = ["Runner"]

#: Key tables and records of idle partitions are looked through after as many events as there are keys, and at least these.
SWEEP_AT_LEAST = 1 << 16


class Runner:
    """A state of a program, and what is kept beside the kernel's arrays.

    Parameters
    ----------
    program
        The compiled query.
    labels
        Tell which variables hold which event (else marks mean nothing).
    late
        What to do with an event before the last one in time: ``"error"``, or ``"drop"`` and count it.
    capacity
        Initial size of the growing arrays (tests use 1).
    """

    def __init__(self, program: Program, *, labels: bool, late: str = "error", capacity: int = 1 << 12) -> None:
        query = program.query
        window = query.window
        self.program = program
        self.labels = labels
        self.late_policy = late
        self.keys = (
            KeyTable([query.schema.attributes[name] for name in query.partition_by]) if query.partition_by else None
        )
        counted = window is not None and window.attribute is None
        #: Positions in a substream differ from positions in the input where the input holds other events as well.
        self.ranked = counted and (self.keys is not None or query.schema.stream is not None)
        ring = window is not None and not self.ranked
        span = int(window.size) if self.ranked and window is not None else -1
        self.span = int(window.size) if counted and window is not None else -1
        self.state = State(query.parsed, ring=ring, span=span, capacity=capacity)
        self.state.fit_partitions(1)
        self.measured = Measured(window.size) if window is not None and window.attribute is not None else None
        self.counter = np.zeros(1, np.int64)
        self.rows = 0
        self.late = 0
        self.last_time: int | float | None = None
        self.last_measure: int | float | None = None
        self.swept_at = 0
        self.trace = Trace(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))
        self.traced = 0
        self.broken = False

    @property
    def visited(self) -> int:
        """Events that reached the kernel so far."""
        return int(self.state.registers[VISITED])

    @property
    def triggers(self) -> int:
        """Events that have output so far."""
        return int(self.state.registers[TRIGGERS])

    @property
    def partitions(self) -> int:
        """Partitions with a number."""
        return 1 if self.keys is None else len(self.keys)

    @property
    def nodes(self) -> int:
        """Nodes of the structure that holds the partial matches, those of forgotten ones included until they are collected."""
        return int(self.state.registers[HEAD] - self.state.registers[TAIL] - 1)

    @property
    def expires(self) -> int | float | None:
        """The last time from which a partial match may still be completed; ``None`` when time alone ends none, or there is none.

        In the unit of :func:`~stretto.engines.tecs.windows.values_of`.
        """
        window, measured = self.program.query.window, self.measured
        if window is None or measured is None or window.attribute != self.program.query.schema.time:
            return None
        if measured.begin == measured.end:
            return None
        last: int | float = measured.values[measured.end - 1].item()
        return last + window.size

    @property
    def nbytes(self) -> int:
        """Bytes that the run holds."""
        own: tuple[NDArray[Any], ...] = (self.counter,)
        if self.measured is not None:
            own = (self.counter, self.measured.values, self.measured.positions)
        keys = self.keys.nbytes if self.keys is not None else 0
        return int(self.state.nbytes + keys + sum(array.nbytes for array in (*own, *self.trace)))

    def check(self, table: pa.Table) -> None:
        """Raise what :meth:`advance` would raise for these events, and change nothing.

        Raises
        ------
        DataError
            A missing column, a NULL or a decreasing time.
        """
        member = self._members(table)
        self._measure(table, member)
        self._in_time(table, member)

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Read the next events; yields their matches in pieces that fit the output buffers.

        The iterator must be read to its end before the next call; data errors are raised before anything changes. ``silent``:
        no event gives output, and none consumes; partial matches are built as ever.
        """
        if self.broken:
            raise EngineError(
                "this matcher was stopped in the middle of a batch; restore a snapshot or start a new one"
            )
        prepared = self._prepare(batch)
        if prepared is None:
            return
        self.broken = True
        events = prepared
        if self.labels:
            self._follow(events)
        yield from self._run(events, silent)
        self._forget()
        self.broken = False

    # -- columns to kernel input ------------------------------------------------------------------------------------

    def _prepare(self, batch: pa.RecordBatch) -> Events | None:
        """Check the batch and turn it into the events to visit; ``None`` when there are none."""
        member = self._members(batch)
        measures, last_measure = self._measure(batch, member)
        member, last_time, late = self._in_time(batch, member)
        cls = self.program.classifier.classify(batch)
        self.program.refresh()
        # All checks are behind us: from here on the stream has moved.
        first = self.rows
        self.rows += batch.num_rows
        self.last_measure, self.last_time = last_measure, last_time
        self.late += late
        rows = self._visited(cls, member)
        part, key = np.zeros(rows.size, np.int64), None
        if self.keys is not None or self.ranked:
            rows, part, key = self._substreams(batch, rows, member)
        if not rows.size:
            return None
        position = rows + first
        low = self._low(position, key, measures, rows)
        return Events(cls[rows], part, position, position if key is None else key, low)

    def _substreams(
        self, batch: pa.RecordBatch, rows: I64, member: NDArray[np.bool_] | None
    ) -> tuple[I64, I64, I64 | None]:
        """The rows to visit that are in a substream, with its number and, where the window counts, their ranks in it."""
        asked = rows
        if self.ranked and self.program.skips:
            # Ranks count every event of the substream, also those that are not visited.
            asked = np.arange(batch.num_rows) if member is None else np.flatnonzero(member)
        part = np.zeros(asked.size, np.int64)
        if self.keys is not None:
            part = self.keys.ids([batch.column(name) for name in self.program.query.partition_by], asked)
            self.state.fit_partitions(len(self.keys))
        key = None
        if self.ranked:
            key = self._rank(part)
            chosen = np.searchsorted(asked, rows)
            part, key = part[chosen], key[chosen]
        known = part >= 0
        if not known.all():
            rows, part, key = rows[known], part[known], None if key is None else key[known]
        return rows, part, key

    def _members(self, batch: pa.RecordBatch | pa.Table) -> NDArray[np.bool_] | None:
        """Which rows belong to a stream of FROM; ``None``: all."""
        stream = self.program.query.schema.stream
        if stream is None:
            return None
        if stream not in batch.schema.names:
            raise DataError(f"the events have no column '{stream}' (stream)")
        names = pa.array(self.program.query.parsed.streams)
        column = batch.column(stream)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        inside = pc.is_in(column.cast(pa.string()), value_set=names)
        return np.asarray(inside.to_numpy(zero_copy_only=False))

    def _measure(
        self, batch: pa.RecordBatch | pa.Table, member: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.generic] | None, int | float | None]:
        """The window attribute of every row, checked not to decrease, and its last value."""
        window = self.program.query.window
        if window is None or window.attribute is None:
            return None, None
        name = window.attribute
        if name == self.program.query.schema.time and self.late_policy == "drop":
            return values_of(_column(batch, name, "window"), name, self.rows), None
        return self._ordered(batch, name, self.last_measure, member, "a window needs an attribute that does not")

    def _ordered(
        self,
        batch: pa.RecordBatch | pa.Table,
        name: str,
        last: int | float | None,
        member: NDArray[np.bool_] | None,
        why: str,
    ) -> tuple[NDArray[np.generic], int | float | None]:
        """The values of a column that must not decrease along the stream, from ``last`` on, and the new last one."""
        values = values_of(_column(batch, name, "window or time"), name, self.rows)
        chosen = values if member is None else values[member]
        if not chosen.size:
            return values, last
        before = np.concatenate((chosen[:1] if last is None else np.array([last], chosen.dtype), chosen[:-1]))
        falls = chosen < before
        if falls.any():
            at = int(falls.argmax())
            row = self.rows + (at if member is None else int(np.flatnonzero(member)[at]))
            raise DataError(f"'{name}' decreases from {before[at]} to {chosen[at]} at row {row}; {why}")
        return values, chosen[-1].item()

    def _in_time(
        self, batch: pa.RecordBatch | pa.Table, member: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.bool_] | None, int | float | None, int]:
        """Check the order of time, or leave out what is late: the rows that stay, the last time, how many were late."""
        name = self.program.query.schema.time
        if name is None:
            return member, None, 0
        if self.late_policy == "error":
            why = "events must come in the order of their time (or pass late='drop')"
            return member, self._ordered(batch, name, self.last_time, member, why)[1], 0
        values = values_of(_column(batch, name, "time"), name, self.rows)
        rows = np.arange(values.size) if member is None else np.flatnonzero(member)
        chosen = values[rows]
        if not chosen.size:
            return member, self.last_time, 0
        start = chosen[0] if self.last_time is None else self.last_time
        reached = np.maximum.accumulate(np.maximum(chosen, start))
        on_time = chosen == reached
        kept = np.zeros(values.size, np.bool_)
        kept[rows[on_time]] = True
        return kept, reached[-1].item(), int(rows.size - np.count_nonzero(on_time))

    def _visited(self, cls: NDArray[np.int32], member: NDArray[np.bool_] | None) -> I64:
        """The rows whose class can change something."""
        if not self.program.skips:
            return np.arange(cls.size) if member is None else np.flatnonzero(member)
        relevant = self.program.relevant[cls]
        if member is not None:
            relevant &= member
        return np.flatnonzero(relevant)

    def _rank(self, part: I64) -> I64:
        """The rank of every event in its substream."""
        if self.counter.size < self.partitions:
            longer = np.zeros(max(self.partitions, 2 * self.counter.size), np.int64)
            longer[: self.counter.size] = self.counter
            self.counter = longer
        rank = np.zeros(part.size, np.int64)
        ranks(part, self.counter, rank)
        return rank

    def _low(self, position: I64, key: I64 | None, measures: NDArray[np.generic] | None, rows: I64) -> I64:
        if self.measured is not None and measures is not None:
            return self.measured.bounds(measures[rows], position)
        if self.span >= 0:
            return (position if key is None else key) - self.span
        return np.zeros(position.size, np.int64)

    # -- the kernel -------------------------------------------------------------------------------------------------

    def _run(self, events: Events, silent: bool) -> Iterator[Matches]:
        state, program = self.state, self.program
        registers = state.registers
        registers[CURSOR] = 0
        while True:
            state.fit_states(program.machine.table.shape[0])
            machine = program.machine
            if silent:  # no state is final, so that nothing is enumerated
                machine = machine._replace(kind=machine.kind & ~np.uint8(1))
            status = advance(
                events,
                machine,
                state.nodes,
                state.records,
                state.work,
                state.cells,
                state.stack,
                state.out,
                registers,
            )
            match status:
                case _jit.DONE:
                    break
                case _jit.TRANSITION_MISSING:
                    program.determinize(int(registers[MISSING_STATE]), int(registers[MISSING_CLASS]))
                case _jit.OUTPUT_FULL:
                    yield self._drain()
                case _jit.GROW_OUTPUT:
                    state.grow_output()
                case _jit.GROW_NODES:
                    state.grow_nodes()
                case _jit.GROW_ARENA:
                    state.grow_arena()
                case _jit.GROW_ACTIVE:
                    state.grow_active()
                case _jit.GROW_STACK:
                    state.grow_stack()
        if registers[ROWS]:
            yield self._drain()

    def _drain(self) -> Matches:
        found = self.state.drain()
        if self.labels and not self.program.valuations and (found.mark == AMBIGUOUS).any():
            self._resolve(found)
        return found

    # -- what is kept of the past -----------------------------------------------------------------------------------

    def _follow(self, events: Events) -> None:
        """Keep the classes of visited events, to tell variables apart where runs disagree."""
        if self.program.valuations:
            return
        old = self.trace
        self.trace = Trace(
            np.concatenate((old.position, events.position)),
            np.concatenate((old.part, events.part)),
            np.concatenate((old.cls, events.cls)),
        )

    def _resolve(self, found: Matches) -> None:
        program = self.program
        arcs, truth = program.arcs(), program.truth()
        scratch = np.empty(1 << 12, np.bool_)
        while True:
            status, need = resolve(found, self.trace, arcs, truth, scratch)
            if status == _jit.DONE:
                return
            scratch = np.empty(2 * int(need), np.bool_)

    def _forget(self) -> None:
        """After a batch: drop what no window reaches any more."""
        if self.keys is not None and self.rows - self.swept_at > max(SWEEP_AT_LEAST, len(self.keys)):
            self.swept_at = self.rows
            self._sweep()
        if self.trace.position.size:
            self._forget_trace()

    def _forget_trace(self) -> None:
        registers = self.state.registers
        if registers[RING]:
            oldest = int(registers[LOW])
        elif self.trace.position.size > 2 * self.traced + SWEEP_AT_LEAST:
            live = self.live()
            oldest = int(live[0]) if live.size else self.rows
        else:
            return
        gone = int(np.searchsorted(self.trace.position, oldest))
        if gone:
            position, part, cls = self.trace
            self.trace = Trace(position[gone:].copy(), part[gone:].copy(), cls[gone:].copy())
        self.traced = self.trace.position.size

    def _sweep(self) -> None:
        """Release idle partitions, and forget their keys when most of them are idle."""
        assert self.keys is not None
        left = sweep(self.state.nodes, self.state.records, self.state.registers)
        if 2 * left >= len(self.keys):
            return
        head = self.state.records.head
        alive = head[: len(self.keys)] != 0
        renamed = self.keys.keep(alive)
        survivors = np.flatnonzero(alive)
        fresh = np.zeros(max(1, survivors.size), np.int64)
        fresh[: survivors.size] = head[survivors]
        self.state.records = self.state.records._replace(head=fresh)
        if self.ranked:
            counter = np.zeros(max(1, survivors.size), np.int64)
            counter[: survivors.size] = self.counter[survivors]
            self.counter = counter
        if self.trace.part.size:
            self.trace = self.trace._replace(part=np.where(self.trace.part >= 0, renamed[self.trace.part], -1))

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more; ``None`` when :meth:`live` must be asked."""
        registers = self.state.registers
        return int(registers[LOW]) if registers[RING] else None

    def live(self) -> I64:
        """The rows that partial matches hold (sorted), after collecting what is unreachable."""
        state = self.state
        state.collect()
        positions = np.empty(state.nodes.left.size, np.int64)
        count = live_positions(state.nodes, state.registers, positions)
        return positions[:count]

    def advance_time(self, value: int | float) -> None:
        """Nothing before ``value`` will come: free what is out of its window."""
        name = self.program.query.schema.time
        window = self.program.query.window
        if name is None:
            raise DataError("advance(time) needs a time column: pass time='…'")
        if self.last_time is None or value > self.last_time:
            self.last_time = value
        if self.measured is None or window is None or window.attribute != name:
            return
        self.last_measure = self.last_time if self.late_policy == "error" else self.last_measure
        self.measured.forget(self.last_time)
        measured = self.measured
        registers = self.state.registers
        live = measured.begin < measured.end
        registers[LOW] = max(registers[LOW], measured.positions[measured.begin] if live else self.rows)
        if self.keys is not None:
            self._sweep()
        self._forget_trace()


def _column(batch: pa.RecordBatch | pa.Table, name: str, role: str) -> pa.Array | pa.ChunkedArray:
    if name not in batch.schema.names:
        raise DataError(f"the events have no column '{name}' ({role})")
    return batch.column(name)
