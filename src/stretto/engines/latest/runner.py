"""One stream through the engine of EQL: batches of events in, raw matches out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import I64, Bits
from stretto.column_types import as_key
from stretto.columns.keys import KeyTable
from stretto.columns.nullable import key_parts
from stretto.engines.api import Matches, TimedOut, offsets
from stretto.engines.latest import structure as s
from stretto.engines.latest.compiled import Compiled
from stretto.engines.latest.joining import join
from stretto.engines.latest.kernels import advance, expire, sweep
from stretto.engines.latest.sampling import sample
from stretto.engines.latest.state import JoinState, LatestState, SampleState
from stretto.engines.latest.structure import Events, Machine
from stretto.engines.shared.counting import Unlisted
from stretto.engines.shared.intake import Intake
from stretto.frame import Section
from stretto.query.eql import Mode
from stretto.query.plan import Key
from stretto.times import ALL_TIME

_STATES = {Mode.SAMPLE: SampleState, Mode.JOIN: JoinState}


class LatestRunner(Intake):
    """A state of a program of EQL.

    Parameters
    ----------
    program
        The compiled query.
    counts, late, capacity
        How it starts (:class:`~stretto.engines.api.Starting`).
    """

    CURSOR, VISITED, TRIGGERS = s.CURSOR, s.VISITED, s.TRIGGERS
    state: LatestState

    def __init__(self, program: Compiled, *, counts: bool, late: str, capacity: int) -> None:
        query = program.query
        super().__init__(program, (), (), ranked=False, late=late, equal=query.partition_by)
        self.program = program
        #: Whether it gives counts: an event completes one match at most.
        self.counts = counts
        machine = program.machine
        seen = machine.behind.size + (machine.until_bit >= 0)
        kind = _STATES.get(query.parsed.mode, LatestState)
        self.state = kind(machine.bit.size, seen, capacity)
        every = [key for group in program.groups for key in group]
        #: The places of keys that may be NULL in some step: there a truth value tells that from values.
        self._nullable = [
            at for at in range(len(query.key_types)) if any(group[at].optional for group in program.groups)
        ]
        kinds = [*query.key_types, *(pa.bool_() for _ in self._nullable)]
        self.tests = KeyTable(kinds) if every else None

    @property
    def partitions(self) -> int:
        """Keys with a number."""
        return 1 if self.tests is None else len(self.tests)

    @property
    def nodes(self) -> int:
        """Events that partial matches hold."""
        return int(self.state.registers[s.LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes that the run holds."""
        return self.state.nbytes + self.intake_nbytes + (0 if self.tests is None else self.tests.nbytes)

    @property
    def expires(self) -> int | float | None:
        """As in :class:`~stretto.engines.shared.intake.Intake`; where matches wait for the end of a window, the first such end."""
        last = super().expires
        if last is None or not self.state.registers[s.TIMERS]:
            return last
        return self.open_until(self.state.nodes.start[self.state.nodes.timer[0]])

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more; ``None`` when :meth:`live` must be asked."""
        return None if self.measured is None else self._low_bound

    @property
    def _low_bound(self) -> int:
        return int(self.state.registers[s.LOW]) if self.measured is not None else 0

    def live(self) -> I64:
        """The rows that partial matches hold (sorted)."""
        self._sweep()
        return self.state.live(self.partitions)

    @property
    def starts(self) -> I64:
        """The first events of the chains of a sequence that may still become a match, in the order of :meth:`in_flight`."""
        return self.state.nodes.start[self._open_chains()[0]]

    def in_flight(self, most: int, chosen: Bits | None = None) -> Matches:
        """The first few chains of a sequence that may still become a match, or those of them that are ``chosen``, as what has not
        timed out yet; nothing changes."""
        nodes = self.state.nodes
        last, length = self._open_chains()
        if chosen is not None:
            last, length = last[chosen], length[chosen]
        last, length = last[:most], length[:most]
        offset = offsets(length)
        position = np.zeros(offset[-1], np.int64)
        at, left = last.copy(), length.copy()
        for place in range(1, int(length.max(initial=0)) + 1):  # from the last event of each to its first
            there = left >= place
            position[offset[1:][there] - place] = nodes.position[at[there]]
            at[there] = nodes.previous[at[there]]
        mark = (np.arange(offset[-1]) - np.repeat(offset[:-1], length)).astype(np.int32)
        start = nodes.start[last]
        expired: NDArray[Any] = np.zeros(last.size, np.int64)
        if self.measured is not None and last.size:
            expired = self.ends_of(start)
        return Matches(start, nodes.position[last], offset, position, mark, timed_out=TimedOut(length - 1, expired))

    def _open_chains(self) -> tuple[I64, I64]:
        """The last nodes of the chains that may still become a match, by first event, and their lengths."""
        state, machine = self.state, self.program.machine
        chain = state.chains(self.partitions)[0]
        node, step = chain[:, 0], np.where(chain[:, 1] < 0, state.steps - 1, chain[:, 1])
        nodes, seen = state.nodes, state.by_key.seen
        key, position = nodes.key[node], nodes.position[node]
        low = self._low_bound
        if self.measured is not None and self.last_time is not None:
            low = max(low, self.open_from(self.last_time))
        alive = (nodes.start[node] >= low) & (nodes.spoilt[node] == 0)
        for one in range(machine.behind.size):
            alive &= (machine.behind[one] != step) | (seen[key, one] <= position)
        if machine.until_bit >= 0:
            alive &= (seen[key, machine.behind.size] < position) | (chain[:, 1] < 0)
        order = np.argsort(nodes.start[node[alive]], kind="stable")
        return node[alive][order], step[alive][order] + 1

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come: neither what must not come before a match, nor a sample."""
        if not super().idle:
            return False
        if isinstance(self.state, SampleState):
            return self.partitions == 0 or not self.state.by_key.number[: self.partitions].any()
        return isinstance(self.state, JoinState) or not self._lasting(self.partitions, self._low_bound).any()

    def save(self, section: Section) -> None:
        """Write the state."""
        self._sweep()
        self.state.save(section, self.partitions)
        self._save_intake(section)

    def load(self, section: Section) -> None:
        """Take over a state that :meth:`save` wrote."""
        keys = self._load_intake(section)
        self.state.load(section, keys, self.rows)

    def unlisted(self) -> Unlisted | None:
        """None: an event completes one match at most."""
        return None

    # -- batches ------------------------------------------------------------------------------------------------------

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Read the next events; yields their matches in pieces.

        The iterator must be read to its end before the next call. ``silent``: no event gives output.

        Raises
        ------
        DataError
            The events are not what the query needs.
        """
        self.refuse_if_broken()
        events, until = self._prepare(batch)
        registers = self.state.registers
        registers[s.CURSOR] = 0
        machine = self.program.machine._replace(silent=silent)
        while (status := self._step(events, machine)) != _jit.DONE:
            if status == _jit.GROW_NODES:
                self.state.grow_nodes()
            else:
                yield self._drain()
        if until is not None:
            yield from self._expire(until, silent)
        if registers[s.ROWS]:
            yield self._drain()
        self._clean_now_and_then()
        self.broken = False

    def _step(self, events: Events, machine: Machine) -> int:
        """Call the kernel; what stopped it."""
        state = self.state
        if isinstance(state, SampleState):
            return int(sample(events, machine, state.by_key, state.out, state.chosen, state.registers))
        if isinstance(state, JoinState):
            return int(join(events, machine, state.by_key, state.out, state.registers))
        return int(advance(events, machine, state.nodes, state.by_key, state.out, state.registers))

    def _prepare(self, batch: pa.RecordBatch) -> tuple[Events, int | None]:
        """The events to visit, and from which start on windows are open after the batch."""
        classed = self._classed(batch)
        batch = classed.batch
        member, measures = classed.member, classed.measures
        bits = self.program.bits(classed.cls)
        relevant = bits != 0 if member is None else (bits != 0) & member
        self.broken = True  # from here on the stream has moved: what fails now leaves it half read
        first = self._move(batch, classed)
        rows = np.flatnonzero(relevant)
        position = rows + first
        low = self._low(position, None, measures, rows, first)
        key = self._keys(batch, rows)
        self.state.fit(self.partitions)
        waits = self.program.query.parsed.last_negation is not None
        self.until = until = self._open_after(measures, classed.timed) if waits else None
        return Events(bits[rows], position, low, key), until

    def _keys(self, batch: pa.RecordBatch, rows: I64) -> I64:
        """The keys of the visited events, a row for each way to write them; −1 where an event has none."""
        groups = self.program.groups
        found = np.zeros((len(groups), rows.size), np.int64)
        if self.tests is None:
            return found
        table = batch if rows.size == batch.num_rows else batch.take(pa.array(rows))
        for at, group in enumerate(groups):
            found[at] = self.tests.ids(self._columns_of(table, group), np.arange(rows.size))
        return found

    def _columns_of(self, table: pa.RecordBatch, group: tuple[Key, ...]) -> list[pa.Array]:
        """The columns of keys in the types in which they are compared; NULL leaves an event without a key."""
        columns, nulls = [], {}
        for at, (key, kind) in enumerate(zip(group, self.program.query.key_types, strict=True)):
            column = table.column(key.name) if key.name in table.schema.names else pa.nulls(table.num_rows, kind)
            if pa.types.is_dictionary(column.type) and column.type.value_type != kind:
                column = column.cast(column.type.value_type)
            if not pa.types.is_dictionary(column.type):
                column = as_key(column, kind, key.name)
            if at in self._nullable:
                nulls[at] = pa.repeat(pa.scalar(False), table.num_rows)
                if key.optional:
                    nulls[at], column = key_parts(column.cast(kind))
            columns.append(column)
        return [*columns, *(nulls[at] for at in self._nullable)]

    def _expire(self, low: int, silent: bool = False) -> Iterator[Matches]:
        """Matches whose missing event has not come in time."""
        state = self.state
        machine = self.program.machine._replace(silent=silent)
        while expire(low, machine, state.nodes, state.by_key, state.out, state.registers) != _jit.DONE:
            yield self._drain()
        if state.registers[s.ROWS]:
            yield self._drain()

    def _drain(self) -> Matches:
        found = self.state.drain()
        return Matches.counted(found.start, found.end, np.ones_like(found.start)) if self.counts else found

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
        self.state.registers[s.LOW] = max(low, self._low_bound)
        self._sweep()

    def _sweep(self) -> None:
        """Forget partial matches that are out of their window, and keys without any when most are."""
        state, count, low = self.state, self.partitions, self._low_bound
        if isinstance(state, SampleState):
            return
        if isinstance(state, JoinState):
            alive: Bits = state.by_key.number[:count] > 0
        else:
            sweep(count, low, state.nodes, state.by_key, state.registers)
            alive = np.asarray((state.by_key.head[:count] != s.NIL).any(axis=1) | self._lasting(count, low))
            waiting = state.nodes.timer[: int(state.registers[s.TIMERS])]
            alive[state.nodes.key[waiting]] = True
        if self.tests is not None and 2 * np.count_nonzero(alive) < count:
            state.renumber(self.tests.keep(alive), np.flatnonzero(alive))

    def _lasting(self, count: int, low: int) -> Bits:
        """The keys of which an event was seen that must not come before a match that is still to begin."""
        before = np.flatnonzero(self.program.machine.behind < 0)
        return np.asarray((self.state.by_key.seen[:count][:, before] >= max(low, 0)).any(axis=1))
