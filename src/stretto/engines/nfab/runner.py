"""One stream through the NFAb engine: batches of events in, raw matches out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from stretto import _jit
from stretto.array_types import I64
from stretto.columns.keys import KeyTable
from stretto.columns.overflow import IntegerOverflow, located
from stretto.engines.api import LISTED, Matches, Operator, Visits
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.adding import advance_adding
from stretto.engines.nfab.cleaning import sweep
from stretto.engines.nfab.compiled import Compiled
from stretto.engines.nfab.forgetting import forget, move_words
from stretto.engines.nfab.kernels import advance, expire
from stretto.engines.nfab.picking import advance_choosing
from stretto.engines.nfab.state import NEVER, NfabState
from stretto.engines.nfab.structure import Events, Machine, Nodes
from stretto.engines.shared.counting import Graph, Unlisted, unlisted
from stretto.engines.shared.intake import Classed, Intake, kept
from stretto.engines.shared.values import Vocabulary, matrix
from stretto.frame import Section
from stretto.query import predicate as p
from stretto.query.sase import Aggregate
from stretto.query.typing import may_overflow
from stretto.times import ALL_TIME

#: Strings and keys that no run holds are forgotten when so many new ones have come, and as many as there was to look at last time:
#: O(1) for each.
FORGET_AT_LEAST = 1 << 12


SHOWN = 3  #: conditions that a message names

#: The kernels that read events, by what they do with the graph of an event's matches.
KERNELS: dict[str, Callable[..., int]] = {"": advance, "choosing": advance_choosing, "adding": advance_adding}


class HandedOver(NamedTuple):
    """The matches that an event completes, not listed: lists of nodes, from their ends."""

    nodes: Nodes
    roots: I64
    low: int  #: matches that begin at a lesser key are out of the window
    end: int  #: position of the event

    def joins(self, node: int) -> bool:
        """Whether a node is no event, but leads to two others."""
        return bool(self.nodes.label[node] == s.UNION)

    def behind(self, node: int) -> list[int]:
        """The nodes that one leads to; none: a match begins there."""
        first = int(self.nodes.previous[node])
        if self.joins(node):
            return [first, int(self.nodes.other[node])]
        return [] if first == s.NIL else [first]


class NfabRunner(Intake):
    """A state of an NFAb program.

    Parameters
    ----------
    program
        The compiled query.
    labels, counts, late, capacity, operator
        How it starts (:class:`~stretto.engines.api.Starting`).
    """

    CURSOR, VISITED, TRIGGERS = s.CURSOR, s.VISITED, s.TRIGGERS
    #: What holds its arrays.
    state_type: ClassVar[type[NfabState]] = NfabState
    state: NfabState

    def __init__(
        self,
        program: Compiled,
        *,
        labels: bool = True,
        counts: bool = False,
        late: str = "error",
        capacity: int = 1 << 12,
        operator: Operator = LISTED,
    ) -> None:
        query, nfab = program.query, program.nfab
        counted = query.window is not None and query.window.attribute is None
        keys = query.partition_by if nfab.partitioned else ()
        ranked, equal = counted or nfab.contiguous, query.partition_by
        super().__init__(program, (), keys, ranked=ranked, late=late, equal=equal, operator=operator)
        self.program = program
        self.theta = program.theta
        self.labels = labels
        #: Whether :meth:`advance` gives counts.
        self.counts = counts and program.counts
        self.counted = counted
        values = program.conditions.values
        machine = program.machine
        self.state = self.state_type(
            words=len(values.slots),
            columns=len(values.columns) if machine.keeps else 0,
            negations=machine.left.size,
            span=self.span if self.span >= 0 else ALL_TIME,
            capacity=capacity,
        )
        self.texts = [column for column in values.columns if column.kind == "string"]
        self.words = Vocabulary(ordered=program.conditions.orders_strings) if self.texts else None
        kinds = [query.schema.attributes[name] for name in query.partition_by]
        needs_keys = any(column.kind == "key" for column in values.columns)
        self.tests = KeyTable(kinds) if needs_keys else None
        self.named_at = 0  # how many strings and keys were left when the others were last forgotten
        self._events: Events | None = None  # those at hand

    @property
    def nodes(self) -> int:
        """Nodes of the lists that hold the events of runs, those of forgotten ones included until they are collected."""
        return int(self.state.registers[s.HEAD]) - 1

    @property
    def runs(self) -> int:
        """Runs that are active."""
        return int(self.state.registers[s.LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes that the run holds."""
        tables = (self.tests, self.words)
        return self.state.nbytes + self.intake_nbytes + sum(table.nbytes for table in tables if table is not None)

    @property
    def expires(self) -> int | float | None:
        """As in :class:`~stretto.engines.shared.intake.Intake`; where matches wait for the end of a window, the first such end."""
        last = super().expires
        if last is None or not self.state.registers[s.TIMERS]:
            return last
        return self.open_until(self.state.runs.start[self.state.scratch.timer[0]])

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more; ``None`` when :meth:`live` must be asked."""
        return int(self.state.registers[s.LOW]) if self._prunes and not self.program.by_end else None

    @property
    def _prunes(self) -> bool:
        """Whether windows bound positions of the stream."""
        return self.measured is not None

    @property
    def _low_bound(self) -> int:
        return int(self.state.registers[s.LOW]) if self._prunes else NEVER

    def live(self) -> I64:
        """The rows that partial matches hold (sorted), after collecting what is unreachable."""
        self._sweep()
        self.state.collect(self._low_bound)
        return self.state.live()

    def save(self, section: Section) -> None:
        """Write the state, runs partition by partition, in the order of their lists."""
        self.forget()
        self.state.save(section, self.partitions)
        self._save_intake(section)

    def load(self, section: Section) -> None:
        """Take over a state that :meth:`save` wrote."""
        machine = self.program.machine
        components = machine.kleene.size
        section.numbers("nodes.label", below=components + machine.left.size)
        section.numbers("runs.state", below=2 * machine.ways.component.size)
        partitions = self._load_intake(section)
        section.numbers("nodes.position", least=0, below=self.rows)
        self.state.load(section, partitions, self.program.conditions.values.slots, components)

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Read the next events; yields their matches, or counts of them, in pieces that fit the output buffers.

        The iterator must be read to its end before the next call. ``silent``: no event gives output.

        Raises
        ------
        DataError
            The events are not what the query needs, or a sum leaves 64 bits.
        """
        self.refuse_if_broken()
        events, until = self.prepare(batch)
        yield from self._run(events, silent)
        if self.program.machine.pending and until is not None:
            yield from self._expire(until)
        self._clean_now_and_then()
        self.broken = False

    def sets(self, batch: pa.RecordBatch) -> Iterator[HandedOver]:
        """Do what :meth:`advance` does, with the matches of each event that completes some as a set; must be read to its end."""
        self.refuse_if_broken()
        events, _ = self.prepare(batch)
        state, registers = self.state, self.state.registers
        registers[s.CURSOR] = registers[s.BUSY] = 0
        machine = self.program.machine._replace(hands=True)
        while True:
            status = self._call(events, machine)
            if status == _jit.DONE:
                break
            if status == _jit.HANDED_OVER:
                at = int(registers[s.CURSOR])
                runs = state.scratch.queue[: int(registers[s.QUEUED])]
                state.shared = True
                low = int(events.low[at])
                yield HandedOver(state.nodes, state.runs.node[runs].copy(), low, int(events.position[at]))
            else:
                for _ in self._act(status, events):
                    raise AssertionError("nothing is written")
        self._clean_now_and_then()
        self.broken = False

    # -- columns to kernel input ------------------------------------------------------------------------------------

    def prepare(self, batch: pa.RecordBatch) -> tuple[Events, int | None]:
        """The events to visit, and from which start on windows are open after the batch."""
        program = self.program
        classed = self._classed(batch)
        batch = classed.batch
        member, measures = classed.member, classed.measures
        bits = program.bits(classed.cls)
        relevant = bits != 0 if member is None else (bits != 0) & member
        self.broken = True  # from here on the stream has moved: what fails now leaves it half read
        first = self._move(batch, classed)
        rows = np.flatnonzero(relevant)
        part, rank = np.zeros(rows.size, np.int64), None
        if self.keys is not None or self.ranked:
            if member is not None and self.ranked:
                rows, part, rank = self._substreams(batch, rows, member, skips=True)
            else:
                rows, part, rank = self._substreams(batch, rows, None, skips=True)
            self.state.fit_partitions(self.partitions)
        position = rows + first
        ranks = position if rank is None else rank
        low = self._low(position, rank if self.counted else None, measures, rows, first)
        table = batch.take(pa.array(rows)) if rows.size < batch.num_rows else batch
        keys = None
        if self.tests is not None:
            names = self.program.query.partition_by
            keys = self.tests.ids([table.column(name) for name in names], np.arange(rows.size))
        self._learn(table)
        C = self._matrix(table, keys, position)
        key = ranks if self.counted else position
        self.until = until = self._passed(classed)
        if self.operator.visited:
            begins = (bits[rows] & program.beginning) != 0
            self.operator.visit(Visits(position, part, key, low, begins), self.partitions)
        mine = [(bits[rows] & program.selecting(name)) != 0 for name in self.operator.variables]
        self.operator.see(batch, rows, position, mine)
        constants = np.full(rows.size, program.constants.ctypes.data)
        return Events(bits[rows], part, position, ranks, key, low, constants, C), until

    def _passed(self, classed: Classed) -> int | None:
        """From which start on windows are open after a batch, where something waits for that."""
        waits = self.program.machine.pending or self.operator.visited
        return self._open_after(classed.measures, classed.timed) if waits else None

    def _matrix(self, table: pa.RecordBatch, keys: I64 | None, position: I64) -> I64:
        """The columns of the visited events, whose positions are given."""
        columns = self.program.conditions.values.columns
        try:
            return matrix(columns, table, self.words, keys)
        except IntegerOverflow:
            alone = [column for column in columns if column.kind != "key"]
            try:
                return located(lambda part: matrix(alone, part, self.words, None), table)
            except IntegerOverflow as error:
                raise error.renumbered(position) from None

    def _learn(self, table: pa.RecordBatch) -> None:
        """Take in new strings; where that moves the words of known ones, runs and nodes get the new words."""
        moved = None if self.words is None else self.words.learn([column.read(table) for column in self.texts])
        if moved is None or not moved[0].size:
            return
        move_words(self.state, self.program.conditions.values, *moved)

    # -- the kernel -------------------------------------------------------------------------------------------------

    def _run(self, events: Events, silent: bool) -> Iterator[Matches]:
        registers = self.state.registers
        registers[s.CURSOR] = registers[s.BUSY] = 0
        self._events = events
        operator, hands = self.operator, bool(self.operator.inside)
        machine = self.program.machine._replace(silent=silent, marks=self.labels, counts=self.counts, hands=hands)
        while True:
            status = self._call(events, machine)
            if status == _jit.DONE:
                break
            if operator.open:
                yield from operator.act(status, int(events.position[int(registers[s.CURSOR])]), _as_it_is)
            else:
                yield from self._act(status, events)
        self._events = None
        if registers[s.ROWS]:
            yield self._drain()
        yield from operator.drain(_as_it_is)

    def _call(self, events: Events, machine: Machine) -> int:
        state = self.state
        if self.counts:
            state.fit_counts()
        self.operator.fit(state.nodes.previous.size, state.counts)
        kernel = KERNELS[self.operator.inside]
        return kernel(self.theta, events, machine, state.memory, state.out, state.counts, *self.operator.arrays)

    def _drain(self) -> Matches:
        return self.state.drain_counts() if self.counts else self.state.drain()

    def unlisted(self) -> Unlisted | None:
        """While :meth:`advance` is being read: how many matches of the last event are still to come; ``None``: none.

        With a negation, which is decided match by match, at most so many.
        """
        state, registers, machine = self.state, self.state.registers, self.program.machine
        events = self._events
        if registers[s.BUSY] != 1 or not registers[s.TOP] or events is None:
            return None
        nodes = state.nodes
        graph = Graph(nodes.previous, nodes.other, nodes.start, nodes.position)
        low = int(events.low[int(registers[s.CURSOR])])
        roots = state.scratch.stack[: int(registers[s.TOP])]
        if machine.limit:  # the stack has only those that begin where matches are listed now
            roots = state.runs.node[state.scratch.queue[: int(registers[s.QUEUED])]]
        found = unlisted(graph, -1, 0, low, roots, exact=not machine.left.size)
        return found.at_most(machine.limit - int(registers[s.EMITTED])) if machine.limit else found

    def _act(self, status: int, events: Events | None = None) -> Iterator[Matches]:
        """Do what a kernel asks for."""
        state = self.state
        match status:
            case _jit.OUTPUT_FULL:
                yield self._drain()
            case _jit.GROW_OUTPUT:
                state.grow_output()
            case _jit.GROW_NODES:
                state.grow_nodes(self._low_bound)
                state.check_room()
            case _jit.GROW_TABLE:
                state.grow_runs()
                state.check_room()
            case _jit.GROW_ACTIVE:
                state.grow_queue()
            case _jit.GROW_STACK:
                state.grow_stack()
            case _jit.OVERFLOW:
                assert events is not None
                row = int(events.position[int(state.registers[s.CURSOR])])
                raise IntegerOverflow(self._overflown(), "compute with floats", row)

    @property
    def _at_hand(self) -> Compiled:
        """The query that the event at hand is read for."""
        return self.program

    def _overflown(self) -> str:
        """Which conditions between events an integer that left 64 bits may be of."""
        nfab = self._at_hand.nfab
        references = nfab.query.parsed.references
        sums = {name for name, one in references.items() if isinstance(one, Aggregate) and one.function == "sum"}
        asked = [one for edge in nfab.edges for one in (*edge.related, *(one for _, one in edge.each))]
        computing = [one for one in asked if p.computes(one) or sums & p.attributes(one).keys()]
        own = [one for one in computing if may_overflow(one, nfab.query.compared) or sums & p.attributes(one).keys()]
        shown = [str(one) for one in own or computing]
        several = "one of " if len(shown) > 1 else ""
        return f"integer overflow in {several}{', '.join(shown[:SHOWN])}{', …' if len(shown) > SHOWN else ''}"

    def _expire(self, low: int) -> Iterator[Matches]:
        """Matches that need not wait any more."""
        state = self.state
        while True:
            status = expire(
                low,
                self.program.machine,
                state.memory,
                state.out,
            )
            if status == _jit.DONE:
                break
            yield from self._act(status)
        if state.registers[s.ROWS]:
            yield state.drain()

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: what was waiting for more is complete."""
        if self.state.registers[s.TIMERS]:
            yield from self._expire(ALL_TIME)

    def reach(self, value: int | float) -> Iterator[Matches]:
        """Nothing before ``value`` will come: put out what waited for it, and free what is out of its window."""
        if self.last_time is None or value > self.last_time:
            self.last_time = value
        if self.measured is None or self.window is None or self.window.attribute != self.schema.time:
            return
        low = self.open_from(self.last_time)
        yield from self._expire(low)
        self._sweep()

    def _clean_now_and_then(self) -> None:
        self._sweep_now_and_then()
        state = self.state
        looked_at = max(self.named_at, state.runs.state.size, state.nodes.position.size, self.partitions)
        if self.named - self.named_at > max(FORGET_AT_LEAST, looked_at):
            self.forget()

    @property
    def named(self) -> int:
        """Strings and keys that have a number for conditions between events."""
        return sum(len(table) for table in (self.tests, self.words) if table is not None)

    def forget(self) -> None:
        """Collect what is unreachable, and forget the strings and keys that no run holds."""
        self._sweep()
        self.state.collect(self._low_bound)
        forget(self.state, self.program.conditions.values, self.partitions, self.words, self.tests)
        self.named_at = self.named

    def _sweep(self) -> None:
        """Release runs out of their window and idle partitions, and forget their keys when most of them are idle."""
        state = self.state
        count = self.partitions
        sweep(count, self._low_bound, state.memory)
        head, negated = state.parts.head[:count], state.parts.negated[:count]
        fresh = self._keep((head != 0) | (negated != 0).any(axis=1))
        if fresh is None:
            return
        rows = fresh[1]
        size = kept(state.parts.size[:count], rows)
        state.parts = state.parts._replace(head=kept(head, rows), size=size, negated=kept(negated, rows))
        self._renumber_pending()

    def _renumber_pending(self) -> None:
        """A pending run knows its partition by number."""
        state = self.state
        if not state.registers[s.TIMERS]:
            return
        for part, head in enumerate(state.parts.head.tolist()):
            run = head
            while run:
                if state.runs.state[run] < 0:
                    state.runs.last[run] = part
                run = int(state.runs.next[run])


def _as_it_is(_: Matches) -> None:
    """Marks of the NFAb say which variable holds each event."""
