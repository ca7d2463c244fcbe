"""One stream through the AFA operator: batches of operations in, rows of signed output out."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto import _jit
from stretto.automata.afa import Afa, Arc, Emit, Kind
from stretto.engines.afa.aggressive import prune
from stretto.engines.afa.cleaning import sweep
from stretto.engines.afa.code import IS_NULL, OVERFLOWED, RAISED, AfaCode
from stretto.engines.afa.graph import GraphTables
from stretto.engines.afa.kernels import advance, recompute
from stretto.engines.afa.names import Names
from stretto.engines.afa.state import AfaState
from stretto.engines.afa.structure import (
    ADD_ARC,
    ARCS_CLEAN,
    ATOM,
    CHANGED,
    CLEAN,
    CURSOR,
    ENDLESS,
    FAULT,
    FAULT_ARC,
    FIELDS,
    FOREVER,
    FROM,
    FROM_LE,
    FROM_SEQ,
    INSERT,
    LATE,
    LATE_EVENT,
    LENGTH,
    LIVE_EVENTS,
    LIVE_PARTIAL,
    MISSED,
    OF,
    PUNCTUATION,
    REG,
    RETIRE_ARC,
    RETIRED,
    RETRACT,
    REVISED,
    REVISES,
    ROWS,
    SAME_PLACE,
    SEEN,
    SIGN,
    SINCE,
    SKIP,
    TO,
    TO_LE,
    TO_SEQ,
    UNKNOWN,
    Batch,
    Memory,
)
from stretto.engines.afa.times import as_times
from stretto.engines.afa.times import ticks as ticks_of
from stretto.engines.afa.trails import lengths, spell
from stretto.engines.nfab.values import matrix
from stretto.errors import DataError, OptionError
from stretto.pattern import predicate
from stretto.pattern.implication import implies
from stretto.pattern.typing import kind_of
from stretto.predicates.keys import KeyTable
from stretto.predicates.vectorized import mask, numbers_of, valid_of

__all__ = ["AfaRunner", "Changes", "Roles"]

I64 = NDArray[np.int64]

BEFORE_ALL = -((1 << 63) - 1)

#: A sweep visits all partitions: not before the state has grown by as much since the last one.
SWEEP_AT_LEAST = 1 << 12


@dataclass(frozen=True)
class Roles:
    """Which columns play a role, and what happens to what comes too late."""

    time: str
    sequence: str | None = None
    until: str | None = None
    sign: str | None = None
    numbered: str | None = None
    late: str = "error"
    bag: bool = False
    provenance: bool = False
    ordered: bool = False
    ignore: bool = True
    dynamic: str = "default"
    timer: str | None = None


#: Compiles functions of arcs that are valid later.
_COMPILER = ThreadPoolExecutor(1, "stretto-compiler")


class Changes(NamedTuple):
    """Changes between the rows of a batch."""

    at: I64  #: how many rows come before; ascending
    what: I64  #: ADD_ARC, RETIRE_ARC or PUNCTUATE
    which: I64  #: number of the arc; of a punctuation the time

    @classmethod
    def none(cls) -> Changes:
        return cls(*(np.zeros(0, np.int64) for _ in cls._fields))

    @classmethod
    def of(cls, what: int, which: int) -> Changes:
        """One, before all rows."""
        return cls(np.zeros(1, np.int64), np.array([what]), np.array([which]))


class AfaRunner:
    """The operator over one stream.

    Parameters
    ----------
    afa
        The automaton.
    roles
        Of the events' columns, and the options.
    capacity
        Initial size of the growing arrays (tests use 1).
    ignores
        Whether ignorable arcs make anchors; ``None``: where the automaton has such arcs.
    """

    def __init__(self, afa: Afa, roles: Roles, *, capacity: int = 1 << 10, ignores: bool | None = None) -> None:
        self.afa = afa
        self.roles = roles
        self.names = Names()
        keyed = roles.sequence is not None or roles.numbered is not None
        keep_all = roles.dynamic == "explicit" or (roles.sign is not None and not keyed)
        self.code = AfaCode(afa.events, afa.register, keep_all=keep_all, word_of=self.names.word)
        self.tables = GraphTables(afa, self.code)
        # Arcs that come later share functions where they differ in constants only; reading these costs some time.
        self.code.lifts = True
        if ignores is None:
            ignores = roles.ignore and not roles.bag and any(arc.kind is Kind.IGNORE for arc in afa.arcs)
        #: The field behind the register's own that holds a trail; −1: none.
        self.trail = len(afa.register) if any(arc.label >= 0 for arc in afa.arcs) else -1
        kinds = [kind_of(kind) for kind in afa.register.values()] + ["trail"] * (self.trail >= 0)
        self.real = np.array([kind == "float" for kind in kinds], np.bool_)
        self.options = {
            "real": self.real,
            "traces": roles.provenance,
            "trail": self.trail,
            "ignores": ignores,
            "numbered": roles.numbered is not None,
            "bag": roles.bag,
            "ordered": roles.ordered,
            "lenient": roles.late != "error",
            "keyed": keyed,
        }
        self.state = AfaState(fields=len(kinds), words=self._words, ignores=ignores, capacity=capacity)
        self._take_constants()
        self.state.set_seed(self.tables.start, self._initial())
        self.keys = KeyTable([afa.events[name] for name in afa.partition_by]) if afa.partition_by else None
        self.key_values: list[pa.RecordBatch] = []
        self.rows = 0
        self.found: list[tuple[I64, I64]] = []
        self.side: list[pa.RecordBatch] = []
        self.time_kind: pa.DataType | None = None
        self.window: int | None = None  # in ticks
        #: Arcs that are valid from a later time on, not linked yet; their functions compile in another thread.
        self.later: list[int] = []
        self._compiling: Future[tuple[int, Any]] | None = None
        self._functions: Any = None
        #: Punctuations with a condition, over attributes' own names: the time, and how it was written.
        self.predicated: dict[predicate.Predicate, tuple[int, str]] = {}
        self.swept_at = 0
        self.swept_to = BEFORE_ALL
        self.state.registers[ARCS_CLEAN] = BEFORE_ALL if roles.dynamic == "explicit" else FOREVER

    @property
    def _words(self) -> int:
        """Words of an event: which are known, attributes, truths of conditions."""
        return 1 + len(self.code.columns) + (len(self.code.atoms) + 63) // 64

    def _initial(self) -> I64:
        """The words of the initial register."""
        found = np.zeros(len(self.real), np.int64)
        for at, (value, kind) in enumerate(zip(self.afa.initial, self.afa.register.values(), strict=True)):
            family = kind_of(kind)
            if family == "float":
                found[at] = np.float64(value).view(np.int64)
            elif family == "string":
                found[at] = self.names.word(value)
            elif family == "time":
                found[at] = pa.scalar(value, kind).value
            else:
                found[at] = int(value)
        return found

    # -- calls of the kernel ----------------------------------------------------------------------------------------

    def _memory(self) -> Memory:
        state = self.state
        graph = self.tables.graph(bits=1 + len(self.code.columns), **self.options)
        return Memory(graph, state.P, state.events, state.parts, state.work, state.out, state.registers)

    def _act(self, status: int) -> None:
        """Do what a status asks for."""
        state, registers = self.state, self.state.registers
        if status == _jit.OUTPUT_FULL:
            self.found.append(state.drain())
        elif status == _jit.GROW_OUTPUT:
            state.grow_output()
        elif status == _jit.GROW_TABLE:
            self._grow_trails()
        elif status == _jit.GROW_STACK:
            state.grow_work()
        elif status in (_jit.GROW_NODES, _jit.GROW_ARENA):
            cursor = int(registers[CURSOR])
            sweeps = registers[CLEAN] > self.swept_to and not self.roles.ordered
            if sweeps:
                self.sweep()
            free = state.P.shape[1] - registers[LIVE_PARTIAL]
            if status == _jit.GROW_NODES and (not sweeps or 2 * free <= state.P.shape[1]):
                state.grow_partial()
            free = state.events.X.shape[0] - registers[LIVE_EVENTS]
            if status == _jit.GROW_ARENA and (not sweeps or 2 * free <= state.events.X.shape[0]):
                state.grow_events()
            registers[CURSOR] = cursor
        elif status != _jit.PAUSED:
            raise AssertionError(status)

    def sweep(self) -> None:
        """Drop what no partition needs any more."""
        registers = self.state.registers
        registers[CURSOR] = 0
        while True:
            m = self._memory()
            status = sweep(m.graph, m.P, m.events, m.parts, m.work, registers)
            if status == _jit.DONE:
                break
            self._act(status)
        self.swept_to = int(registers[CLEAN])
        self.swept_at = sum(self.state.live)
        self._forget_keys()
        self._forget_names()

    def _forget_keys(self) -> None:
        """Forget partitions without events, when they are most."""
        if self.keys is None:
            return
        parts = self.state.parts
        count = len(self.keys)
        alive = parts.first[:count] != 0
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
        events.X[live, OF] = place[events.X[live, OF]]

    def _forget_names(self) -> None:
        """Forget strings that no event and no register holds, when they are most."""
        columns = [at for at, column in enumerate(self.code.columns, 1) if column.kind == "string"]
        fields = [at for at, kind in enumerate(self.afa.register.values()) if kind_of(kind) == "string"]
        if len(self.names) < SWEEP_AT_LEAST or not (columns or fields):
            return
        state = self.state
        live = state.live_slots()
        words = [state.events.E[live][:, columns].reshape(-1)] if columns else []
        words += [state.P[REG + at] for at in fields]  # those of free ones do no harm
        alive = np.unique(np.concatenate(words))
        if 2 * alive.size + SWEEP_AT_LEAST < len(self.names):
            self.names.keep(alive)

    def _grow_trails(self) -> None:
        """Forget trails that neither a partial match nor output holds, or make room for more."""
        state, field, column = self.state, REG + self.trail, FIELDS + self.trail
        self.found.append(state.drain())
        partial = state.live_partial()
        alive = np.concatenate([state.P[field, partial], *(rows[:, column] for rows, _ in self.found)])
        place = state.grow_trails(alive)
        state.P[field, partial] = place[state.P[field, partial]]
        for rows, _ in self.found:
            rows[:, column] = place[rows[:, column]]

    @property
    def has_output(self) -> bool:
        """Whether :meth:`take` has rows to give."""
        return bool(self.state.registers[ROWS]) or any(len(rows) for rows, _ in self.found)

    def take(self) -> tuple[I64, pa.Array | None, pa.Array | None]:
        """The rows of output so far, with the positions of their events, and which variables selected these."""
        self.found.append(self.state.drain())
        rows = self.found[0][0] if len(self.found) == 1 else np.concatenate([rows for rows, _ in self.found])
        cells = np.concatenate([cells for _, cells in self.found])
        self.found = []
        if self.trail >= 0:
            return rows, *self._spelled(np.ascontiguousarray(rows[:, FIELDS + self.trail]))
        if not self.roles.provenance:
            return rows, None, None
        offsets = np.concatenate(([0], np.cumsum(rows[:, LENGTH])))
        if self.roles.timer is not None:  # the end of a window has no row
            here = cells >= 0
            offsets, cells = np.concatenate(([0], np.cumsum(here)))[offsets], cells[here]
        return rows, pa.LargeListArray.from_arrays(offsets, cells), None

    def _spelled(self, trails: I64) -> tuple[pa.Array, pa.Array]:
        """The selected events of trails, and their variables."""
        sizes = np.zeros(trails.size, np.int64)
        lengths(trails, self.state.work, sizes)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        cells, labels = np.zeros(int(offsets[-1]), np.int64), np.zeros(int(offsets[-1]), np.int64)
        spell(trails, offsets, self.state.work, cells, labels)
        return pa.LargeListArray.from_arrays(offsets, cells), pa.LargeListArray.from_arrays(offsets, labels)

    # -- events -----------------------------------------------------------------------------------------------------

    def push(self, table: pa.RecordBatch, changes: Changes | None = None, rows: I64 | None = None) -> None:
        """Carry out the rows of a batch, with changes between them; ``rows``: their numbers, where they do not follow one another.

        Raises
        ------
        DataError
            A row that cannot be taken; ``row`` of the message counts all rows so far. What comes before it has been taken, itself
            and what comes behind has not.
        """
        batch = self._read(table, changes or Changes.none(), rows)
        if self.later and batch.le.size:
            self._link_due(int(batch.le.max()))
        self._run(batch, table)

    def _run(self, batch: Batch, table: pa.RecordBatch | None) -> None:
        registers, theta = self.state.registers, self._theta()
        registers[CURSOR] = registers[FAULT] = registers[CHANGED] = 0
        late = int(registers[LATE])
        try:
            while True:
                status = advance(theta, batch, self._memory())
                if status == _jit.DONE:
                    break
                if status == _jit.FAULTED:
                    error = self._error(batch)
                    self._step_back(batch)
                    raise error
                self._act(status)
        finally:
            done = int(registers[CURSOR])
            if table is not None:
                self.rows += done
                if self.roles.late == "side" and registers[LATE] > late:
                    self.side.append(table.filter(pa.array(batch.op == MISSED)))
            self.state.work.F[0, 0] = 0
        if not self.roles.ordered:
            self._sweep_now_and_then()

    def _theta(self) -> Any:
        """The functions of all arcs that are linked."""
        if self._compiling is not None:
            if not self._compiling.done():
                return self._functions
            self.code.take(self._compiling.result())
            self._compiling = None
        self._functions = self.code.theta()
        return self._functions

    def _step_back(self, batch: Batch) -> None:
        """The second half of a revision has failed: its first half is not taken either."""
        registers = self.state.registers
        at = int(registers[CURSOR])
        if batch.op[at] == REVISES:
            registers[LATE] -= batch.op[at - 1] == MISSED
            batch.op[at - 1] = REVISED
            registers[CURSOR] = at - 1

    def _error(self, batch: Batch) -> DataError:
        """What went wrong, in words."""
        registers = self.state.registers
        at, fault = int(registers[CURSOR]), int(registers[FAULT])
        row = int(batch.row[at])
        where = f"row {row}" if row >= 0 else "the end of a window"
        time = self.shown_time(int(batch.le[at]))
        if fault == LATE_EVENT and self.roles.ordered:
            return DataError(
                f"{where} comes out of order: its time is {time}, after {self.shown_time(int(registers[SEEN]))}"
            )
        if fault == LATE_EVENT:
            limit = self.shown_time(int(registers[PUNCTUATION]))
            return DataError(f"{where} is late: its time is {time}, and the punctuation stands at {limit}")
        if fault == UNKNOWN:
            told = "time and sequence number" if self.options["keyed"] else "time and payload"
            return DataError(f"{where} retracts an event that is not there: no event has its {told} ({time})")
        if fault == SAME_PLACE:
            return DataError(
                f"{where}: its partition has another event with the time {time} and the sequence number {int(batch.seq[at])}; "
                "a revision retracts the event before"
            )
        return self._function_error(fault, where)

    def _function_error(self, fault: int, where: str) -> DataError:
        arc = self.tables.arc(int(self.state.registers[FAULT_ARC]))
        name = f"arc '{arc.id}' ({arc.source} -> {arc.target})"
        if fault == ENDLESS:
            cycle = " -> ".join(self._cycle(arc))
            return DataError(
                f"{name}: its ε-cycle {cycle} goes on without end at {where}: each round gives another register"
            )
        what = {
            OVERFLOWED: "an integer leaves 64 bits",
            IS_NULL: "a field of the register would be NULL",
            RAISED: "its Python function raised an error",
        }[fault]
        return DataError(f"{name}: {what} at {where}")

    def _cycle(self, arc: Arc) -> list[str]:
        """The states of an ε-cycle through an arc."""
        follows: dict[str, list[str]] = {}
        for one in map(self.tables.arc, range(1, self.tables.arcs.shape[0])):
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

    # -- columns to operations --------------------------------------------------------------------------------------

    def _read(self, table: pa.RecordBatch, changes: Changes, rows: I64 | None) -> Batch:
        """The operations of a batch. Raises before anything changes."""
        roles, count = self.roles, table.num_rows
        le = self._times(table, roles.time)
        row = np.arange(self.rows, self.rows + count) if rows is None else rows
        tie = roles.sequence or roles.numbered
        seq = row if tie is None else self._integers(table, tie, "sequence")
        sign = np.ones(count, np.int64) if roles.sign is None else self._signs(table)
        re = np.full(count, FOREVER, np.int64)
        if roles.until is not None:
            known = valid_of(table.column(roles.until))
            until = self._times(table.slice(0, count), roles.until, nulls=True)
            re = until if known is None else np.where(known, until, FOREVER)
        elif self.window is not None:
            re = np.where(le > FOREVER - self.window, FOREVER, le + self.window)
        part = np.zeros(count, np.int64)
        if self.keys is not None:
            part = self._partitions(table)
        self.state.fit_partitions(1 if self.keys is None else len(self.keys))
        op = np.where(sign > 0, INSERT, RETRACT)
        if roles.sign is not None and count > 1:
            pair = (sign[:-1] < 0) & (sign[1:] > 0) & (part[:-1] == part[1:]) & (le[:-1] == le[1:])
            if tie is not None:
                pair &= seq[:-1] == seq[1:]
            if rows is not None:
                pair &= rows[:-1] + 1 == rows[1:]
            first = np.flatnonzero(pair)
            op[first], op[first + 1] = REVISED, REVISES
        op[part < 0] = SKIP
        if self.predicated:
            self._refuse_predicated(table, le, op)
        # Columns of Arrow are read-only, for which Numba would compile the kernel once more.
        part, le, seq, re = (np.require(one, requirements=("C", "W")) for one in (part, le, seq, re))
        return Batch(op, part, le, seq, re, row, self._event_words(table), *changes)

    def _event_words(self, table: pa.RecordBatch) -> I64:
        """[row, word]: known bits, attributes, truths of conditions."""
        columns, atoms = self.code.columns, self.code.atoms
        bits = 1 + len(columns)
        found = np.zeros((table.num_rows, self._words), np.int64)
        found[:, :bits] = matrix(columns, table, self.names, None)  # type: ignore[arg-type]
        for number, atom in enumerate(atoms):
            held = mask(atom, table).astype(np.int64)
            found[:, bits + (number >> 6)] |= held << (number & 63)
        return found

    def _times(self, table: pa.RecordBatch, name: str, *, nulls: bool = False) -> I64:
        """A time in ticks."""
        column = table.column(name)
        if nulls and column.null_count:
            column = pc.fill_null(column, as_times(np.zeros(1, np.int64), column.type)[0])
        return ticks_of(column, name, self.rows)

    def _integers(self, table: pa.RecordBatch, name: str, role: str) -> I64:
        column = table.column(name)
        if column.null_count:
            at = self.rows + pc.index(pc.is_null(column), True).as_py()
            raise DataError(f"'{name}' ({role}) is NULL at row {at}")
        if not pa.types.is_integer(column.type):
            raise DataError(f"'{name}' ({role}) is {column.type}, not an integer")
        return np.asarray(numbers_of(column)).astype(np.int64)

    def _signs(self, table: pa.RecordBatch) -> I64:
        assert self.roles.sign is not None
        found = self._integers(table, self.roles.sign, "sign")
        wrong = (found != 1) & (found != -1)
        if wrong.any():
            at = int(wrong.argmax())
            raise DataError(f"'{self.roles.sign}' (sign) is {found[at]} at row {self.rows + at}; it is +1 or −1")
        return found

    def _partitions(self, table: pa.RecordBatch) -> I64:
        """The number of each row's partition; −1 where an attribute is NULL."""
        assert self.keys is not None
        before = len(self.keys)
        names = list(self.afa.partition_by)
        part = np.asarray(self.keys.ids([table.column(name) for name in names], np.arange(table.num_rows)))
        if len(self.keys) > before:
            fresh = part >= before
            _, first = np.unique(part[fresh], return_index=True)
            rows = pa.array(np.flatnonzero(fresh)[first])
            plain = {name: _plain(table.column(name)) for name in names}
            self.key_values.append(pa.record_batch(plain).take(rows))
        return part

    def all_keys(self) -> pa.Table:
        """The partition attributes by partition."""
        assert self.keys is not None
        kinds = [(name, _value_type(self.afa.events[name])) for name in self.afa.partition_by]
        whole = pa.Table.from_batches(self.key_values, schema=pa.schema(kinds))
        self.key_values = whole.combine_chunks().to_batches()
        return whole

    def partition_values(self, parts: I64) -> pa.RecordBatch:
        """The partition attributes of partitions."""
        return self.all_keys().take(pa.array(parts)).combine_chunks()

    # -- time and arcs ----------------------------------------------------------------------------------------------

    def advance_time(self, time: int) -> None:
        """A punctuation of the events."""
        self.refuse_back(np.array([time]))
        self.state.registers[PUNCTUATION] = time
        self._clean()

    def mark(self, time: int, timer: str) -> None:
        """The end-of-window indicator (appendix E): before all events of ``time``, every live partition gets an event with ``timer``
        true, its partition attributes and its time, and nothing else. It has no row.
        """
        first = self.state.parts.first
        parts = np.flatnonzero(first[: 1 if self.keys is None else len(self.keys)])
        if not parts.size or time <= self.state.registers[PUNCTUATION]:
            return
        assert self.time_kind is not None
        arrays = {name: pa.nulls(parts.size, _value_type(kind)) for name, kind in self.afa.events.items()}
        arrays[timer] = pa.array(np.ones(parts.size, np.bool_))
        if self.roles.time in arrays:
            arrays[self.roles.time] = as_times(np.full(parts.size, time), self.time_kind)
        if self.keys is not None:
            values = self.partition_values(parts)
            arrays |= {name: values.column(name) for name in self.afa.partition_by}
        le = np.full(parts.size, time)
        re = le + self.window if self.window is not None else np.full(parts.size, FOREVER)
        zeros = np.zeros(parts.size, np.int64)
        W = self._event_words(pa.record_batch(arrays))
        self._run(Batch(zeros + INSERT, parts, le, zeros - FOREVER, re, zeros - 1, W, *Changes.none()), None)

    def advance_where(self, time: int, condition: predicate.Predicate, text: str) -> None:
        """A punctuation of the events that satisfy a condition (over attributes' own names), which was written so."""
        if self.roles.sign is not None:
            raise OptionError("a punctuation with a condition needs a stream without retractions: leave out sign=")
        known, _ = self.predicated.get(condition, (BEFORE_ALL, ""))
        if time < known:
            raise DataError(
                f"the punctuation of {condition} goes back from {self.shown_time(known)} to {self.shown_time(time)}"
            )
        self.predicated[condition] = time, text
        self.prune()

    def prune(self) -> int:
        """Drop partial matches that no event still to come can complete (appendix F.2); how many."""
        if self.roles.ordered:
            return 0
        m = self._memory()
        limit = m.registers[ARCS_CLEAN] if self.roles.dynamic == "explicit" else m.registers[SEEN] + 1
        bounds, arrival, done = (np.zeros(m.graph.states.shape[0], np.int64) for _ in range(3))
        pi = self._arc_punctuations()
        return int(prune(pi, int(limit), m.graph, m.P, m.events, m.parts, bounds, arrival, done, m.registers))

    def _arc_punctuations(self) -> I64:
        """By arc: no event still to come triggers it before this time."""
        arcs = self.tables.arcs
        found = np.full(arcs.shape[0], self.state.registers[PUNCTUATION])
        for condition, (time, _) in self.predicated.items():
            for number, atom in enumerate(self.code.atoms):
                if implies(atom, condition):
                    concerned = arcs[:, ATOM] == number
                    found[concerned] = np.maximum(found[concerned], time)
        return found

    def _refuse_predicated(self, table: pa.RecordBatch, le: I64, op: I64) -> None:
        """Events below a punctuation whose condition they satisfy are late."""
        for condition, (time, _) in self.predicated.items():
            late = (le < time) & (op != SKIP)
            if late.any():
                late &= mask(condition, table)
            if late.any() and self.roles.late == "error":
                at = int(late.argmax())
                raise DataError(
                    f"row {self.rows + at} is late: its time is {self.shown_time(int(le[at]))}, and the punctuation of {condition} "
                    f"stands at {self.shown_time(time)}"
                )
            self.state.registers[LATE] += np.count_nonzero(late & (op >= 0))
            op[late] = MISSED

    def refuse_back(self, times: I64) -> None:
        """Raise a :class:`DataError` when a punctuation would go back."""
        before = np.concatenate((self.state.registers[PUNCTUATION : PUNCTUATION + 1], times[:-1]))
        if (times < before).any():
            at = int((times < before).argmax())
            raise DataError(
                f"the punctuation goes back from {self.shown_time(int(before[at]))} to {self.shown_time(int(times[at]))}"
            )

    def advance_arcs(self, time: int) -> None:
        """A punctuation of the arcs: no change of an arc concerns events before this time any more."""
        if self.roles.dynamic != "explicit":
            raise OptionError("arcs have explicit lifetimes only with dynamic='explicit'")
        if time < self.arc_punctuation:
            raise DataError(
                f"the arcs' punctuation goes back from {self.shown_time(self.arc_punctuation)} to {self.shown_time(time)}"
            )
        self.state.registers[ARCS_CLEAN] = time
        self._clean()

    def rescale(self, kind: pa.DataType) -> None:
        """Times that came before the first event are now of this type."""
        before, self.time_kind = self.time_kind, kind
        assert before is not None

        def moved(ticks: I64) -> I64:
            bounded = np.abs(ticks) < FOREVER - 1
            times = as_times(np.where(bounded, ticks, 0), before)
            return np.where(bounded, ticks_of(times.cast(kind, safe=False), "time", 0), ticks)

        registers, arcs = self.state.registers, self.tables.arcs
        registers[PUNCTUATION : CLEAN + 1] = moved(registers[PUNCTUATION : CLEAN + 1])
        arcs[1:, SINCE], arcs[1:, RETIRED] = moved(arcs[1:, SINCE]), moved(arcs[1:, RETIRED])
        registers[ARCS_CLEAN] = moved(registers[ARCS_CLEAN : ARCS_CLEAN + 1])[0]

    def _clean(self) -> None:
        registers = self.state.registers
        registers[CLEAN] = min(int(registers[PUNCTUATION]), self.arc_punctuation)
        self._sweep_now_and_then()

    def _sweep_now_and_then(self) -> None:
        """Sweep when the state has grown since the last time, and time has gone on."""
        grown = sum(self.state.live) > 2 * self.swept_at + SWEEP_AT_LEAST
        if grown and self.state.registers[CLEAN] > self.swept_to:
            self.sweep()

    @property
    def arc_punctuation(self) -> int:
        """No change of an arc concerns events before this time any more."""
        return int(self.state.registers[ARCS_CLEAN])

    @property
    def punctuation(self) -> int | None:
        """No output before this time changes any more."""
        found = int(self.state.registers[CLEAN])
        return None if found == BEFORE_ALL else found

    # -- changes of arcs --------------------------------------------------------------------------------------------

    def add_arc(self, arc: Arc) -> None:
        """A new arc. Without explicit lifetimes it is valid from the next time unit on."""
        explicit = self.roles.dynamic == "explicit"
        self.compact()
        size = self.sizes
        since = -FOREVER if arc.since is None else arc.since
        if explicit:
            self._refuse_late_arc(arc.id, since)
        number = self.tables.add(arc)
        self.refit(*size)
        if not explicit and arc.since is not None:
            self._compile_for(number)
            return
        if not explicit:
            self._change(Changes.of(ADD_ARC, number))
            return
        self.tables.link(number)
        row = self.tables.arcs[number]
        try:
            self._recompute(int(row[SINCE]), int(row[RETIRED]))
        except DataError:
            row[RETIRED] = row[SINCE]
            self._recompute(since, FOREVER if arc.until is None else arc.until)
            del self.tables.known[arc.id]
            self.found = []
            raise

    @property
    def seen(self) -> int:
        """The greatest time of an event or a punctuation."""
        registers = self.state.registers
        return int(max(registers[SEEN], registers[PUNCTUATION]))

    def make_final(self, state: str, emit: str) -> None:
        """Output comes at a state from now on.

        Raises
        ------
        OptionError
            It is final already, with another ``emit``.
        """
        before = self.tables.finals.get(state)
        if before is not None and before != emit:
            raise OptionError(f"the state '{state}' is final already, with emit='{before}'")
        self.tables.make_final(state, Emit(emit))

    def retire_arc(self, name: str, at: int | None) -> None:
        """An arc that is valid no more: after the greatest time seen, or from a time on."""
        number = self.tables.known[name]
        if self.roles.dynamic != "explicit":
            self._change(Changes.of(RETIRE_ARC, number))
            return
        row = self.tables.arcs[number]
        since, until = int(row[SINCE]), int(row[RETIRED])
        at = max(since, since if at is None else at)
        if at < self.arc_punctuation:
            self._refuse_late_arc(name, at)
        row[RETIRED] = min(at, until)
        try:
            self._recompute(at, until)
        except DataError:
            row[RETIRED] = until
            self._recompute(at, until)
            self.found = []
            raise

    def _compile_for(self, number: int) -> None:
        """Compile an arc's functions while the others go on; it is linked when an event comes that may take it."""
        self._link_due(BEFORE_ALL)
        self._functions = self._functions or self.code.theta()
        self.later.append(number)
        self._compiling = _COMPILER.submit(self.code.compilation())

    def _link_due(self, time: int) -> None:
        """Link the arcs that an event of this time may take, and wait for their functions."""
        due = [number for number in self.later if self.tables.arcs[number, SINCE] <= time]
        if (due or time == BEFORE_ALL) and self._compiling is not None:
            self.code.take(self._compiling.result())
            self._compiling = None
        for number in due:
            self.tables.link(number)
            self.later.remove(number)

    def _refuse_late_arc(self, name: str, since: int) -> None:
        if since < self.arc_punctuation:
            raise DataError(
                f"the change of arc '{name}' is late: it concerns events from {self.shown_time(since)} on, and the arcs' punctuation "
                f"stands at {self.shown_time(self.arc_punctuation)}"
            )

    def _change(self, changes: Changes) -> None:
        """Changes without events."""
        nothing = np.zeros(0, np.int64)
        W = np.zeros((0, self._words), np.int64)
        self._run(Batch(nothing, nothing, nothing, nothing, nothing, nothing, W, *changes), None)

    def _recompute(self, since: int, until: int) -> None:
        """Derive events in [since, until) anew; the rows that come out are put in order."""
        registers = self.state.registers
        assert not registers[ROWS]
        registers[CURSOR] = registers[FAULT] = 0
        theta = self.code.theta()
        while True:
            status = recompute(theta, since, until, self._memory())
            if status == _jit.DONE:
                break
            if status == _jit.FAULTED:
                fault = int(registers[FAULT])
                self.state.work.F[0, 0] = 0
                self.state.drain()
                self.found = []
                raise self._function_error(fault, "an event that it would concern")
            self._act(status)
        self.found.append(self.state.drain())
        rows = np.concatenate([rows for rows, _ in self.found])
        cells = np.concatenate([cells for _, cells in self.found])
        columns = [self._sortable(rows, at) for at in range(len(self.real))]
        keys = [*reversed(columns), *(rows[:, at] for at in (FROM, FROM_SEQ, FROM_LE, TO, TO_SEQ, TO_LE, SIGN))]
        order = np.lexsort(keys)
        sizes = rows[:, LENGTH]
        begins = np.cumsum(sizes) - sizes
        moved = (
            np.repeat(begins[order] - np.concatenate(([0], np.cumsum(sizes[order])[:-1])), sizes[order])
            if cells.size
            else cells
        )
        self.found = [(rows[order], cells[moved + np.arange(cells.size)])]

    def _sortable(self, rows: I64, field: int) -> NDArray[Any]:
        column = np.ascontiguousarray(rows[:, FIELDS + field])
        return column.view(np.float64) if self.real[field] else column

    def _take_constants(self) -> None:
        """The constants of functions, which lie beside the word in which these note what goes wrong."""
        if self.code.rows != self.state.work.F.shape[0] or self.code.rows == 1:
            self.state.work = self.state.work._replace(F=self.code.faults())

    @property
    def sizes(self) -> tuple[int, int]:
        """The word of an event where truths of conditions begin, and how many there are."""
        return 1 + len(self.code.columns), len(self.code.atoms)

    def compact(self) -> None:
        """Forget arcs that no event can take any more, when they are most."""
        if self.later:
            return
        registers = self.state.registers
        self.tables.compact(int(registers[SEEN if self.roles.ordered else CLEAN]))

    def refit(self, bits: int, atoms: int) -> None:
        """After new arcs: stored events get the words that they read.

        Parameters
        ----------
        bits, atoms
            The word where conditions began, and how many there were.
        """
        self._take_constants()
        if self.sizes == (bits, atoms):
            return
        old = self.state.events.E
        now = 1 + len(self.code.columns)
        fresh = np.zeros((old.shape[0], self._words), np.int64)
        fresh[:, :bits] = old[:, :bits]
        fresh[:, now : now + old.shape[1] - bits] = old[:, bits:]
        self.state.events = self.state.events._replace(E=fresh)
        # Without explicit lifetimes no stored event is concerned: the arcs are valid behind all of them.
        if self.roles.dynamic == "explicit" and (now > bits or len(self.code.atoms) > atoms):
            live = self.state.live_slots()
            if live.size:
                fresh[live] = self._event_words(self._stored(live))

    def _stored(self, slots: I64) -> pa.RecordBatch:
        """Stored events as columns again."""
        E = self.state.events.E[slots]
        read = {column.attribute: at for at, column in enumerate(self.code.columns, 1) if column.attribute is not None}
        arrays = {}
        for name, kind in self.afa.events.items():
            if name in read and kind_of(kind) != "decimal":
                at = read[name]
                arrays[name] = self.decoded(E[:, at], _value_type(kind), (E[:, 0] >> at) & 1 == 0)
        asked = {name for atom in self.code.atoms for name in predicate.attributes(atom)}
        if asked - set(arrays):
            raise OptionError(
                f"'{min(asked - set(arrays))}' is not kept with stored events, so a new arc cannot ask them for it"
            )
        return pa.record_batch(arrays)

    def decoded(self, words: I64, kind: pa.DataType, missing: NDArray[np.bool_] | None = None) -> pa.Array:
        """Words of attributes or fields as an Arrow column."""
        family = kind_of(kind)
        words = np.ascontiguousarray(words)
        if family == "float":
            return pa.array(words.view(np.float64), mask=missing).cast(kind, safe=False)
        if family == "decimal":
            return pa.array(words.view(np.float64), mask=missing)
        if family == "bool":
            return pa.array(words != 0, mask=missing)
        if family == "string":
            known = (
                words if missing is None else np.where(missing, self.names.words[:1] if len(self.names) else 0, words)
            )
            if not len(self.names):
                return pa.nulls(words.size, pa.string())
            found = self.names.strings(known)
            return found if missing is None else pc.if_else(pa.array(missing), None, found)
        if family == "time":
            return as_times(words // 86_400 if pa.types.is_date32(kind) else words, kind, missing)
        return pa.array(words, mask=missing).cast(kind)

    def shown_time(self, tick: int) -> Any:
        """A time as users write it."""
        if self.time_kind is None or pa.types.is_integer(self.time_kind) or abs(tick) >= FOREVER:
            return tick
        return as_times(np.array([tick]), self.time_kind)[0].as_py()

    @property
    def nbytes(self) -> int:
        """Bytes that the state takes."""
        keys = self.keys.nbytes if self.keys is not None else 0
        return int(self.state.nbytes + keys + self.names.nbytes + sum(batch.nbytes for batch in self.key_values))


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
