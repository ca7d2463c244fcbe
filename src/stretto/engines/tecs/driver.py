"""Driving the kernel of the tECS engine: the loop that mends what it stops for, and what is kept beside its arrays.

What is asked of events before that — their class, their partition — is the matter of those that derive from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import I64
from stretto.engines.api import LISTED, Matches, Operator
from stretto.engines.shared.counting import Graph, Unlisted, unlisted
from stretto.engines.shared.intake import CHUNK, SWEEP_AT_LEAST, Classifying, Intake, kept
from stretto.engines.tecs import structure as s
from stretto.engines.tecs.collect import sweep
from stretto.engines.tecs.kernels import HANDS_OVER, Events, Machine, advance
from stretto.engines.tecs.labels import Trace
from stretto.engines.tecs.picking import advance_choosing
from stretto.engines.tecs.state import State
from stretto.errors import DataError
from stretto.frame import Section
from stretto.query.passes.bind import BoundQuery

NO_KEYS = np.zeros(0, np.int64)


class Driven(Classifying, Protocol):
    """What the kernel is driven with."""

    valuations: bool
    machine: Machine

    @property
    def query(self) -> BoundQuery:
        """The bound query."""

    def determinize(self, state: int, cls: int) -> None:
        """Add the transitions of a state on a class to the machine."""


class Driver(Intake):
    """A state of the engine, and what is kept beside the kernel's arrays.

    Parameters
    ----------
    program
        The machine.
    labels, counts, late, capacity, operator
        How it starts (:class:`~stretto.engines.api.Starting`).
    tells_visits
        Matches say which of the events of a call completes them.
    """

    CURSOR, VISITED, TRIGGERS = s.CURSOR, s.VISITED, s.TRIGGERS
    SCALARS = Intake.SCALARS | {"traced": Section.count}
    state: State
    program: Driven

    def __init__(
        self,
        program: Driven,
        *,
        labels: bool,
        counts: bool = False,
        late: str = "error",
        capacity: int = 1 << 12,
        tells_visits: bool = False,
        operator: Operator = LISTED,
    ) -> None:
        query = program.query
        window = query.window
        counted = window is not None and window.attribute is None
        #: Positions in a substream differ from positions in the input where the input holds other events as well.
        ranked = counted and bool(query.partition_by or query.schema.stream is not None)
        super().__init__(program, query.parsed.streams, query.partition_by, ranked=ranked, late=late, operator=operator)
        ring = window is not None and not self.ranked
        self.program = program
        self.labels = labels
        #: Whether :meth:`advance` gives counts. With LIMIT the few matches are listed.
        self.counts = counts and query.parsed.limit is None
        span = self.span if ranked else -1
        self.state = State(query.parsed, ring=ring, span=span, capacity=capacity, tells_visits=tells_visits)
        self.state.fit_partitions(1)
        self._traces: list[Trace] = []
        self.traced = 0

    @property
    def nodes(self) -> int:
        """Nodes of the structure that holds the partial matches, those of forgotten ones included until they are collected."""
        return int(self.state.registers[s.HEAD] - self.state.registers[s.TAIL] - 1)

    @property
    def nbytes(self) -> int:
        """Bytes that the run holds."""
        return int(self.state.nbytes + self.intake_nbytes + sum(array.nbytes for one in self._traces for array in one))

    def _measured_of(self, measures: Mapping[str, NDArray[np.generic]]) -> NDArray[np.generic] | None:
        """What the window measures, by attribute, of every event; ``None``: it measures no attribute."""
        return None if self.window is None or self.window.attribute is None else measures[self.window.attribute]

    def _placed_events(
        self,
        cls: NDArray[np.int32],
        rows: I64,
        part: I64,
        key: I64 | None,
        measures: NDArray[np.generic] | None,
        first: int,
    ) -> Events:
        """What the kernel reads of the events to visit: ``cls``, ``part`` and ``key`` are theirs, ``measures`` all rows'."""
        position = rows + first
        low = self._low(position, key, measures, rows, first)
        return Events(cls, part, position, position if key is None else key, low, NO_KEYS, NO_KEYS)

    def _carried_out(self, events: Events, silent: bool = False) -> Iterator[Matches]:
        if self.labels:
            self._follow(events)
        yield from self._run(events, silent)
        self._forget()

    # -- the kernel -------------------------------------------------------------------------------------------------

    def _run(self, events: Events, silent: bool) -> Iterator[Matches]:
        state, program = self.state, self.program
        registers = state.registers
        registers[s.CURSOR] = 0
        registers[s.COUNTING] = HANDS_OVER if self.operator.inside else self.counts
        while True:
            state.fit_states(program.machine.table.shape[0])
            machine = program.machine
            if silent:  # no state is final, so that nothing is enumerated
                machine = machine._replace(kind=machine.kind & ~np.uint8(1))
            if self.counts:
                state.fit_counts()
            status = self._call(events, machine)
            if self.operator.open:
                yield from self.operator.act(status, int(registers[s.NOW]), self._resolve)
                continue
            match status:
                case _jit.DONE:
                    break
                case _jit.TRANSITION_MISSING:
                    program.determinize(int(registers[s.MISSING_STATE]), int(registers[s.MISSING_CLASS]))
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
        if registers[s.ROWS]:
            yield self._drain()
        yield from self.operator.drain(self._resolve)

    def _call(self, events: Events, machine: Machine) -> int:
        """The kernel."""
        state, operator = self.state, self.operator
        operator.fit(state.nodes.left.size, state.nodes)
        arrays = state.nodes, state.records, state.work, state.cells, state.stack, state.out, state.counts
        kernel = advance_choosing if operator.inside else advance
        return int(kernel(events, machine, *arrays, state.registers, *operator.arrays))

    def _resolve(self, found: Matches) -> None:
        """Tell which variables hold the events of matches, where that was not clear."""
        raise NotImplementedError

    def unlisted(self) -> Unlisted | None:
        """While :meth:`advance` is being read: how many matches of the last event are still to come; ``None``: none."""
        state, registers = self.state, self.state.registers
        top = int(registers[s.TOP])
        if not registers[s.BUSY] or not top:
            return None
        nodes = state.nodes
        graph = Graph(nodes.left, nodes.right, nodes.start, nodes.position)
        size = nodes.left.size - 1
        found = unlisted(graph, size, int(registers[s.TAIL]), int(registers[s.LOW]), state.stack.node[:top], exact=True)
        most = int(registers[s.LIMIT]) - int(registers[s.EMITTED])
        return found if not registers[s.LIMIT] else found.at_most(most)

    def _drain(self) -> Matches:
        """Take what is found out of the output buffers."""
        raise NotImplementedError

    # -- what is kept of the past -----------------------------------------------------------------------------------

    def _follow(self, events: Events) -> None:
        """Keep the classes of visited events, to tell variables apart where runs disagree."""
        if self.program.valuations:
            return
        traces, last = self._traces, Trace(events.position, events.part, events.cls)
        while traces and traces[-1].position.size < min(2 * last.position.size, CHUNK):
            last = _joined([traces.pop(), last])
        traces.append(last)

    @property
    def trace(self) -> Trace:
        """The classes of visited events, as far as they are kept."""
        if len(self._traces) != 1:
            self._traces = [_joined(self._traces)]
        return self._traces[0]

    def _forget(self) -> None:
        """After a batch: drop what no window reaches any more."""
        if self.keys is not None:
            self._sweep_now_and_then()
        self._forget_trace()

    def _forget_trace(self) -> None:
        registers = self.state.registers
        if registers[s.RING]:
            oldest = int(registers[s.LOW])
        elif sum(one.position.size for one in self._traces) > 2 * self.traced + SWEEP_AT_LEAST:
            live = self.live()
            oldest = int(live[0]) if live.size else self.rows
        else:
            return
        self._traces = [one for one in self._traces if one.position.size and one.position[-1] >= oldest]
        self.traced = sum(one.position.size for one in self._traces)

    def _sweep(self) -> None:
        """Release idle partitions, and forget their keys when most of them are idle."""
        state = self.state
        sweep(state.records, state.registers)
        head = state.records.head[: self.partitions]
        fresh = self._keep(head != 0)
        if fresh is None:
            return
        renamed, rows = fresh
        state.records = state.records._replace(head=kept(head, rows))
        self._traces = [
            one._replace(part=np.where(one.part >= 0, renamed[one.part], -1)) for one in self._traces if one.part.size
        ]

    def save(self, section: Section) -> None:
        """Write the state: what is reachable, and states and classes by what they stand for, as their numbers are this process's."""
        self.state.save(section)
        gone = int(np.searchsorted(self.trace.position, self.oldest)) if self.oldest is not None else 0
        position, part, cls = self.trace
        self._traces = [Trace(position[gone:].copy(), part[gone:].copy(), cls[gone:].copy())]
        self._save_names(section)
        section.sub("trace").arrays |= self.trace._asdict()
        self._save_intake(section)

    def load(self, section: Section) -> None:
        """Take over a state that :meth:`save` wrote."""
        partitions = self._load_intake(section)
        states = self._load_states(section)
        self.state.load(section, partitions, states, rows=self.rows, marks=self._marks)
        trace = section.sub("trace")
        position = trace.numbers("position", least=0, below=self.rows, ordered=True)
        part = trace.numbers("part", size=position.size, least=-1, below=max(1, partitions))
        cls = trace.numbers("cls", size=position.size, least=0)
        self._traces = [Trace(position, part, self._load_classes(section, part, cls))]

    def _save_names(self, section: Section) -> None:
        """Write what the states of the saved records, and the classes of the trace, stand for."""
        raise NotImplementedError

    def _load_states(self, section: Section) -> I64:
        """By number in a snapshot: the number here of each state."""
        raise NotImplementedError

    @property
    def _marks(self) -> int:
        """How many marks a node may have."""
        raise NotImplementedError

    def _load_classes(self, section: Section, part: I64, cls: NDArray[Any]) -> NDArray[np.int32]:
        """The numbers here of the classes of a trace."""
        raise NotImplementedError

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more; ``None`` when :meth:`live` must be asked."""
        registers = self.state.registers
        return int(registers[s.LOW]) if registers[s.RING] else None

    def live(self) -> I64:
        """The rows that partial matches hold (sorted)."""
        return self.state.live()

    def finish(self) -> Iterator[Matches]:
        """The stream has ended; no match waits for that."""
        return iter(())

    def reach(self, value: int | float) -> Iterator[Matches]:
        """Nothing before ``value`` will come: free what is out of its window."""
        name = self.program.query.schema.time
        window = self.program.query.window
        if name is None:
            raise DataError("advance(time) needs a time column: pass time='…'")
        if self.last_time is None or value > self.last_time:
            self.last_time = value
        if self.measured is None or window is None or window.attribute != name:
            return iter(())
        self.last_measure = self.last_time if self.late_policy == "error" else self.last_measure
        registers = self.state.registers
        registers[s.LOW] = max(registers[s.LOW], self.open_from(self.last_time))
        if self.keys is not None:
            self._sweep()
        self._forget_trace()
        return iter(())


def _joined(traces: list[Trace]) -> Trace:
    none = Trace(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))
    return Trace(*map(np.concatenate, zip(none, *traces, strict=True)))
