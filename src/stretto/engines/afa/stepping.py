"""The steps of the AFA operator: calls of its kernel, room for what it makes, and its output.

The rows that the kernel writes as matches.

What a step ran into, in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import I64
from stretto.engines.afa import structure as s
from stretto.engines.afa.between import Changes
from stretto.engines.afa.cleaning import sweep
from stretto.engines.afa.intake import AfaIntake
from stretto.engines.afa.kernels import advance
from stretto.engines.afa.names import Names
from stretto.engines.afa.python import RAISED
from stretto.engines.afa.structure import Batch, Memory
from stretto.engines.afa.trails import lengths, spell
from stretto.engines.api import Matches, Outputs
from stretto.engines.shared.scalar_code import IS_NULL, OVERFLOWED
from stretto.errors import DataError, LimitError, StrettoError
from stretto.query.afa import Arc, Kind
from stretto.query.typing import kind_of
from stretto.times import BEFORE_ALL, as_times

#: What may become of such rows.
_POLICY = "hint: late='drop' leaves such rows out and counts them, late='side' hands them over"


def error_at(run: AfaIntake, batch: Batch) -> StrettoError:
    """Name the row, and what went wrong there."""
    registers = run.state.registers
    at, fault = int(registers[s.CURSOR]), int(registers[s.FAULT])
    row = int(batch.row[at])
    where = f"row {row}" if row >= 0 else "the end of a window"
    time = run.shown_time(int(batch.le[at]))
    if fault == s.LATE_EVENT and run.roles.ordered:
        return DataError(
            f"{where} comes out of order: its time is {time}, after {run.shown_time(int(registers[s.SEEN]))}"
        )
    if fault == s.LATE_EVENT:
        limit = run.shown_time(int(registers[s.PUNCTUATION]))
        return DataError(f"{where} is late: its time is {time}, and the punctuation stands at {limit}\n{_POLICY}")
    if fault == s.UNKNOWN:
        told = "time and sequence number" if run.options["keyed"] else "time and payload"
        return DataError(f"{where} retracts an event that is not there: no event has its {told} ({time})\n{_POLICY}")
    if fault == s.CONTRADICTS:
        return DataError(
            f"{where}: its sequence number {int(batch.seq[at])} contradicts its time {time}: in a partition both grow together\n"
            f"{_POLICY}"
        )
    if fault == s.SAME_PLACE:
        return DataError(
            f"{where}: its partition has another event with the time {time} and the sequence number {int(batch.seq[at])}; "
            "a revision retracts the event before"
        )
    return function_error(run, fault, where)


def function_error(run: AfaIntake, fault: int, where: str) -> StrettoError:
    """Name the arc whose function failed, and why."""
    arc = run.tables.arc(int(run.state.registers[s.FAULT_ARC]))
    name = f"arc '{arc.id}' ({arc.source} -> {arc.target})"
    if fault == s.ENDLESS:
        cycle = " -> ".join(_cycle(run, arc))
        return LimitError(
            f"{name}: its ε-cycle {cycle} goes on without end at {where}: each round gives another register, and from one "
            f"partial match {s.MOST_CLOSURE:,} steps are allowed\nhint: a fence on one of its arcs must end it, such as "
            'when="r.n < 100"'
        )
    what, hint = {
        OVERFLOWED: ("an integer leaves 64 bits", "bound it by a fence, or declare the field as float"),
        IS_NULL: (
            "a field of the register would be NULL",
            "a fence such as e.price IS NOT NULL keeps such events from the arc; a division by zero is NULL",
        ),
        RAISED: (
            "its Python function raised an error",
            "it must give a value for every event and register that it is asked",
        ),
    }[fault]
    return DataError(f"{name}: {what} at {where}\nhint: {hint}")


def _cycle(run: AfaIntake, arc: Arc) -> list[str]:
    """The states of an ε-cycle through an arc."""
    follows: dict[str, list[str]] = {}
    for one in map(run.tables.arc, range(1, run.tables.arcs.shape[0])):
        if one.kind is Kind.EPSILON:
            follows.setdefault(one.source, []).append(one.target)
    paths = [[arc.source, arc.target]]
    seen = {arc.target}
    for path in paths:
        if path[-1] == arc.source:
            return path
        for state in follows.get(path[-1], []):
            if state not in seen or state == arc.source:
                seen.add(state)
                paths.append([*path, state])
    return [arc.source, arc.target]


def given(rows: I64, offset: I64, position: I64, labels: I64 | None = None) -> Matches:
    """Rows with the events that they hold, and which variables hold these; ``start`` or ``end`` −1: the end of a window."""
    mark = np.zeros(0, np.int32) if labels is None else labels.astype(np.int32)
    return Matches(rows[:, s.FROM], rows[:, s.TO], offset, position, mark, rows[:, s.SIGN].astype(np.int8))


def order_of(rows: I64, register: Mapping[str, pa.DataType], names: Names) -> I64 | None:
    """The order of rows that differ in their registers only: the kernel orders strings by their numbers. ``None``: as they are."""
    kinds = [kind_of(kind) for kind in register.values()]
    if "string" not in kinds or len(rows) < 2:
        return None
    told = [s.STEP, s.SIGN, s.PART, s.FROM, s.TO]
    same = (rows[1:, told] == rows[:-1, told]).all(axis=1)
    if not same.any():
        return None
    group = np.concatenate(([0], np.cumsum(~same)))
    keys: list[NDArray[Any]] = []
    for at, kind in enumerate(kinds):
        words = np.ascontiguousarray(rows[:, s.FIELDS + at])
        if kind == "string":
            distinct, place = np.unique(words, return_inverse=True)
            ranks = np.empty(distinct.size, np.int64)
            ranks[np.asarray(pc.sort_indices(names.strings(distinct)))] = np.arange(distinct.size)
            words = ranks[place]
        keys.append(words.view(np.float64) if kind == "float" else words)
    return np.lexsort([*reversed(keys), group])


#: A sweep visits all partitions: not before the state has grown by as much since the last one.
SWEEP_AT_LEAST = 1 << 12


class AfaStepping(AfaIntake):
    """Carries out operations."""

    def memory(self) -> Memory:
        """What the kernels read and write, as it lies now."""
        state = self.state
        graph = self.tables.graph(bits=1 + len(self.code.columns), **self.options)
        return Memory(graph, state.P, state.events, state.parts, state.work, state.out, state.registers)

    def act(self, status: int) -> None:
        """Do what a status asks for."""
        state, registers = self.state, self.state.registers
        if status == _jit.OUTPUT_FULL:
            self.found.append(state.drain())
            self._refuse_beyond(0)
            state.grow_output()  # so that what is held is in few pieces
        elif status == _jit.GROW_OUTPUT:
            self._refuse_beyond(int(registers[s.NEED]))
            state.grow_output(int(registers[s.NEED]))
        elif status == _jit.GROW_TABLE:
            self.forget_trails(grow=True)
        elif status == _jit.GROW_STACK:
            state.grow_work()
        elif status in (_jit.GROW_NODES, _jit.GROW_ARENA):
            cursor = int(registers[s.CURSOR])
            sweeps = registers[s.CLEAN] > self.swept_to and not self.roles.ordered
            if sweeps:
                self._sweep()
                self.forgets = True
            free = state.P.shape[1] - registers[s.LIVE_PARTIAL]
            if status == _jit.GROW_NODES and (not sweeps or 2 * free <= state.P.shape[1]):
                state.grow_partial()
            free = state.events.X.shape[0] - registers[s.LIVE_EVENTS]
            if status == _jit.GROW_ARENA and (not sweeps or 2 * free <= state.events.X.shape[0]):
                state.grow_events()
            registers[s.CURSOR] = cursor
        elif status != _jit.PAUSED:
            raise AssertionError(status)

    def _refuse_beyond(self, more: int) -> None:
        """Whether the output held, and ``more`` rows that a step gives, are within the budget."""
        held = sum(len(rows) for rows, _ in self.found)
        size = sum(rows.nbytes + cells.nbytes for rows, cells in self.found) + more * self.state.out.rows[:1].nbytes
        if not self.budget.holds(held + more, size):
            gives = f"gives {more:,} outputs or more" if more else "gives output"
            raise LimitError(
                f"{gives}, after {held:,} of what comes before: together they go over the budget of {self.budget}\n"
                "hint: fewer rows at once, a narrower window or stricter fences give less; budget= allows more"
            )

    def _act_for(self, status: int, batch: Batch) -> None:
        """Do what a status asks for at a row; where a bound is reached, the row is not taken."""
        try:
            self.act(status)
        except LimitError as error:
            at = int(self.state.registers[s.CURSOR])
            self._step_back(batch)
            if at < batch.row.size:
                place = f"row {batch.row[at]} ({self.shown_time(int(batch.le[at]))})"
                raise LimitError(f"{place}: {error}") from None
            raise

    def sweep(self) -> None:
        """Between batches: drop what no partition needs any more, and the keys and strings of that."""
        self._sweep()
        self._forget()

    def _forget(self) -> None:
        """Forget keys and strings; not inside a batch, whose rows have the numbers of theirs."""
        self.forgets = False
        if self.state.registers[s.ROWS]:
            self.found.append(self.state.drain())
        self._forget_keys()
        self._forget_names()

    def _sweep(self) -> None:
        registers = self.state.registers
        registers[s.CURSOR] = 0
        while True:
            m = self.memory()
            status = sweep(m.graph, m.P, m.events, m.parts, m.work, registers)
            if status == _jit.DONE:
                break
            self.act(status)
        self.swept_to = int(registers[s.CLEAN])
        self.swept_at = sum(self.state.live)

    def _forget_keys(self) -> None:
        """Forget partitions without events and output, when they are most."""
        if self.keys is None:
            return
        parts = self.state.parts
        count = len(self.keys)
        alive = parts.first[:count] != 0
        for rows, _ in self.found:
            alive[rows[:, s.PART]] = True
        kept = int(np.count_nonzero(alive))
        if count < 2 * kept + SWEEP_AT_LEAST:
            return
        place = self.keys.keep(alive)
        whole = self.all_keys().filter(pa.array(alive))
        self.key_values = whole.to_batches()
        for array in parts:
            array[:kept] = array[:count][alive]
            array[kept:] = 0
        events = self.state.events
        live = self.state.live_slots()
        events.X[live, s.OF] = place[events.X[live, s.OF]]
        for rows, _ in self.found:
            rows[:, s.PART] = place[rows[:, s.PART]]

    def _forget_names(self) -> None:
        """Forget strings that no event, no register and no output holds, when they are most."""
        columns = [at for at, column in enumerate(self.code.columns, 1) if column.kind == "string"]
        fields = [at for at, kind in enumerate(self.afa.register.values()) if kind_of(kind) == "string"]
        if len(self.names) < SWEEP_AT_LEAST or not (columns or fields):
            return
        state = self.state
        live = state.live_slots()
        words = [state.events.E[live][:, columns].reshape(-1)] if columns else []
        words += [state.P[s.REG + at] for at in fields]  # those of free ones do no harm
        words += [rows[:, s.FIELDS + at] for at in fields for rows, _ in self.found]
        alive = np.unique(np.concatenate(words))
        if 2 * alive.size + SWEEP_AT_LEAST < len(self.names):
            self.names.keep(alive)

    def forget_trails(self, *, grow: bool = False) -> None:
        """Forget trails that neither a partial match nor output holds, or make room for more."""
        state, field, column = self.state, s.REG + self.trail, s.FIELDS + self.trail
        self.found.append(state.drain())
        partial = state.live_partial()
        alive = np.concatenate([state.P[field, partial], *(rows[:, column] for rows, _ in self.found)])
        place = state.forget_trails(alive, grow=grow)
        state.P[field, partial] = place[state.P[field, partial]]
        for rows, _ in self.found:
            rows[:, column] = place[rows[:, column]]

    @property
    def has_output(self) -> bool:
        """Whether :meth:`take` has rows to give."""
        return bool(self.state.registers[s.ROWS]) or any(len(rows) for rows, _ in self.found)

    def take(self) -> Matches:
        """The output so far: each step's rows by last event, first event and register, first what it takes back."""
        self.found.append(self.state.drain())
        self.state.shrink_output()
        rows = self.found[0][0] if len(self.found) == 1 else np.concatenate([rows for rows, _ in self.found])
        cells = np.concatenate([cells for _, cells in self.found])
        self.found = []
        if self.trail >= 0:
            return given(rows, *self._spelled(np.ascontiguousarray(rows[:, s.FIELDS + self.trail])))
        offset = np.concatenate(
            ([0], np.cumsum(rows[:, s.LENGTH] if self.roles.provenance else np.zeros(len(rows), np.int64)))
        )
        if self.roles.timer is not None:  # the end of a window has no row
            here = cells >= 0
            offset, cells = np.concatenate(([0], np.cumsum(here)))[offset], cells[here]
        order = order_of(rows, self.afa.register, self.names)
        if order is not None:
            rows = rows[order]
            lists = pa.LargeListArray.from_arrays(offset, cells).take(pa.array(order))
            offset, cells = np.asarray(lists.offsets), np.asarray(lists.values)
        return given(rows, offset, cells)._replace(outputs=self._outputs(rows))

    def _outputs(self, rows: I64) -> Outputs:
        """What rows say beside their place."""
        kind = self.time_kind or pa.int64()
        return Outputs(
            as_times(rows[:, s.FROM_LE], kind),
            as_times(rows[:, s.TO_LE], kind),
            as_times(rows[:, s.RIGHT], kind, rows[:, s.RIGHT] == s.FOREVER),
            None if self.keys is None else self.partition_values(rows[:, s.PART]),
            [self.decoded(rows[:, s.FIELDS + at], kind) for at, kind in enumerate(self.afa.register.values())],
        )

    def _spelled(self, trails: I64) -> tuple[I64, I64, I64]:
        """Where the selected events of trails begin, these events, and their variables."""
        sizes = np.zeros(trails.size, np.int64)
        lengths(trails, self.state.work, sizes)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        cells, labels = np.zeros(int(offsets[-1]), np.int64), np.zeros(int(offsets[-1]), np.int64)
        spell(trails, offsets, self.state.work, cells, labels)
        return offsets, cells, labels

    def push(
        self,
        table: pa.RecordBatch,
        changes: Changes | None = None,
        rows: I64 | None = None,
        refused: list[StrettoError] | None = None,
    ) -> None:
        """Carry out the rows of a batch, with changes between them.

        Parameters
        ----------
        table, changes
            The rows, and what stands between them.
        rows
            Their numbers, where they do not follow one another.
        refused
            Takes the errors of rows that cannot be taken; the others are. ``None``: the first of them is raised.

        Raises
        ------
        DataError, LimitError
            A row that cannot be taken; ``row`` of the message counts all rows so far. What comes before it has been taken, itself
            and what comes behind has not.
        """
        batch = self._read(table, changes or Changes.none(), rows)
        if self.functions.later and batch.le.size:
            self.functions.link_due(int(batch.le.max()))
        self.carry(batch, table, refused)

    def carry(self, batch: Batch, table: pa.RecordBatch | None, refused: list[StrettoError] | None = None) -> None:
        """Carry out operations, which are the rows of ``table``; without one they have no rows. ``refused`` as for :meth:`push`."""
        registers, theta = self.state.registers, self.functions.theta()
        registers[s.CURSOR] = registers[s.FAULT] = registers[s.CHANGED] = 0
        late = int(registers[s.LATE])
        try:
            while True:
                status = advance(theta, batch, self.memory())
                if status == _jit.DONE:
                    break
                if status == _jit.FAULTED:
                    error = error_at(self, batch)
                    if refused is None:
                        self._step_back(batch)
                        raise error
                    refused.append(error)
                    self._leave_out(batch)
                else:
                    self._act_for(status, batch)
        finally:
            done = int(registers[s.CURSOR])
            if table is not None:
                self.rows += done
                if self.late_policy == "side" and registers[s.LATE] > late:
                    self.side.append(table.filter(pa.array(batch.op == s.MISSED)))
            self.state.work.F[0, 0] = 0
        if not self.roles.ordered:
            self._sweep_now_and_then()

    def _leave_out(self, batch: Batch) -> None:
        """Go on behind the row that failed; of a revision that failed, neither half is taken."""
        registers = self.state.registers
        at = int(registers[s.CURSOR])
        if batch.op[at] == s.REVISES:
            registers[s.LATE] -= batch.op[at - 1] == s.MISSED
            batch.op[at - 1] = s.SKIP
        batch.op[at] = s.SKIP
        registers[s.CURSOR] = at + 1
        registers[s.FAULT] = self.state.work.F[0, 0] = 0

    def _step_back(self, batch: Batch) -> None:
        """The second half of a revision has failed: its first half is not taken either."""
        registers = self.state.registers
        at = int(registers[s.CURSOR])
        if batch.op[at] == s.REVISES:
            registers[s.LATE] -= batch.op[at - 1] == s.MISSED
            batch.op[at - 1] = s.REVISED
            registers[s.CURSOR] = at - 1

    def clean(self) -> None:
        """After a punctuation: say what it makes final, and free what only depends on that."""
        registers = self.state.registers
        registers[s.CLEAN] = min(int(registers[s.PUNCTUATION]), self.arc_punctuation)
        self._sweep_now_and_then()

    def _sweep_now_and_then(self) -> None:
        """Sweep when the state has grown since the last time, and time has gone on."""
        grown = sum(self.state.live) > 2 * self.swept_at + SWEEP_AT_LEAST
        if grown and self.state.registers[s.CLEAN] > self.swept_to:
            self.sweep()
        elif self.forgets:
            self._forget()

    @property
    def arc_punctuation(self) -> int:
        """No change of an arc concerns events before this time any more."""
        return int(self.state.registers[s.ARCS_CLEAN])

    @property
    def punctuation(self) -> int | None:
        """No output before this time changes any more."""
        found = int(self.state.registers[s.CLEAN])
        return None if found == BEFORE_ALL else found

    @property
    def seen(self) -> int:
        """The greatest time of an event or a punctuation."""
        registers = self.state.registers
        return int(max(registers[s.SEEN], registers[s.PUNCTUATION]))
