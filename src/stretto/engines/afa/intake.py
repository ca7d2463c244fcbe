"""The columns of a batch as operations of the AFA operator; what is wrong with them shows before anything changes.

The functions of arcs, some of which may compile in another thread while the others are used.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.columns.arrays import decoded, valid_of
from stretto.columns.keys import KeyTable
from stretto.columns.measured import integers, signs
from stretto.columns.vectorized import mask
from stretto.engines.afa import structure as s
from stretto.engines.afa.between import Changes
from stretto.engines.afa.code import AfaCode
from stretto.engines.afa.compiled import Compiled
from stretto.engines.afa.graph import GraphTables
from stretto.engines.afa.names import Names
from stretto.engines.afa.state import AfaState
from stretto.engines.afa.structure import Batch
from stretto.engines.shared.values import matrix
from stretto.errors import DataError
from stretto.query import predicate
from stretto.query.afa import Kind
from stretto.query.typing import kind_of
from stretto.times import BEFORE_ALL, as_times, shown_time
from stretto.times import ticks as ticks_of

_COMPILER = ThreadPoolExecutor(1, "stretto-compiler")


class Functions:
    """What the kernel calls for fences and transfers.

    Parameters
    ----------
    code
        The functions.
    tables
        The arcs that they are of.
    """

    def __init__(self, code: AfaCode, tables: GraphTables) -> None:
        self._code, self._tables = code, tables
        #: Arcs that are valid from a later time on; they are linked when an event comes that may take them.
        self.later: list[int] = []
        self._compiling: Future[tuple[int, Any]] | None = None
        self._linked: Any = None
        self._version = 0  # of the code that is being compiled

    def theta(self) -> Any:
        """The functions of all arcs that are linked."""
        if self._compiling is not None:
            # What has come since is needed at once.
            if not self._compiling.done() and self._code.version == self._version:
                return self._linked
            self._take()
        self._linked = self._code.theta()
        return self._linked

    def link_due(self, time: int) -> None:
        """Link the arcs that an event of this time may take, and wait for their functions."""
        due = [number for number in self.later if self._tables.arcs[number, s.SINCE] <= time]
        if due:
            self._take()
        for number in due:
            self._tables.link(number)
            self.later.remove(number)

    def compile_for(self, number: int) -> None:
        """Compile an arc's functions while the others go on; it is linked when an event comes that may take it."""
        self._take()
        self._linked = self._linked or self._code.theta()
        self.later.append(number)
        self._version = self._code.version
        self._compiling = _COMPILER.submit(self._code.compilation())

    def _take(self) -> None:
        """Wait for what compiles."""
        if self._compiling is not None:
            self._code.take(self._compiling.result())
            self._compiling = None


class AfaIntake:
    """What an AFA reads, and the memory of one stream. The parameters are those of :class:`~stretto.engines.afa.runner.AfaRunner`."""

    open_windows: int | float | None = None  #: no condition of an automaton has a moving aggregate

    def __init__(
        self, program: Compiled, *, late: str = "error", capacity: int = 1 << 10, ignores: bool | None = None
    ) -> None:
        self.late_policy = late
        self.capacity = capacity
        self.budget = Budget()  # of the output that is held
        self.time_kind: pa.DataType | None = None
        self.window: int | None = None  # in ticks
        self.begin(program, ignores)

    def begin(self, program: Compiled, ignores: bool | None) -> None:
        """The beginning of a stream, of which only types are known."""
        afa, roles = program.afa, program.roles
        self.program = program
        self.given_as = afa  # before any arc changed
        self.afa = afa
        self.roles = roles
        self.names = Names()
        keyed = roles.sequence is not None or roles.numbered is not None
        keep_all = roles.dynamic == "explicit" or (roles.sign is not None and not keyed)
        self.code = AfaCode(afa.events, afa.register, keep_all=keep_all, word_of=self.names.word)
        self.tables = GraphTables(afa, self.code)
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
            "lenient": self.late_policy != "error",
            "keyed": keyed,
        }
        self.state = AfaState(fields=len(kinds), words=self.words, ignores=ignores, capacity=self.capacity)
        self.take_constants()
        self.state.set_seed(self.tables.start, self._initial())
        self.keys = KeyTable([afa.events[name] for name in afa.partition_by]) if afa.partition_by else None
        self.key_values: list[pa.RecordBatch] = []
        self.rows = 0
        self.found: list[tuple[I64, I64]] = []
        self.side: list[pa.RecordBatch] = []
        self.functions = Functions(self.code, self.tables)
        #: Punctuations with a condition, over attributes' own names: the time, and how it was written.
        self.predicated: dict[predicate.Predicate, tuple[int, str]] = {}
        self.swept_at = 0
        self.swept_to = BEFORE_ALL
        self.forgets = False  # keys and strings, when the batch is over
        self.state.registers[s.ARCS_CLEAN] = BEFORE_ALL if roles.dynamic == "explicit" else s.FOREVER

    @property
    def words(self) -> int:
        """Words of an event: which are known, attributes, truths of conditions."""
        return 1 + len(self.code.columns) + (len(self.code.atoms) + 63) // 64

    @property
    def sizes(self) -> tuple[int, int]:
        """The word of an event where truths of conditions begin, and how many there are."""
        return 1 + len(self.code.columns), len(self.code.atoms)

    def take_constants(self) -> None:
        """The constants of functions, which lie beside the word in which these note what goes wrong."""
        if self.code.size != self.state.work.F.shape[1] or self.code.size == 1:
            self.state.work = self.state.work._replace(F=self.code.faults())

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

    @staticmethod
    def over(times: I64, window: int) -> I64:
        """When the windows of events of these times end."""
        return np.where(times > s.FOREVER - window, s.FOREVER, times + window)

    def _read(self, table: pa.RecordBatch, changes: Changes, rows: I64 | None) -> Batch:
        """The operations of a batch. Raises before anything changes."""
        roles, count = self.roles, table.num_rows
        le = self._times(table, roles.time)
        row = np.arange(self.rows, self.rows + count) if rows is None else rows
        tie = roles.sequence or roles.numbered
        seq = row if tie is None else integers(table, tie, "sequence", self.rows)
        sign = np.ones(count, np.int64) if roles.sign is None else signs(table, roles.sign, self.rows)
        re = np.full(count, s.FOREVER, np.int64)
        if roles.until is not None:
            known = valid_of(table.column(roles.until))
            until = self._times(table.slice(0, count), roles.until, nulls=True)
            re = until if known is None else np.where(known, until, s.FOREVER)
        elif self.window is not None:
            re = self.over(le, self.window)
        part = np.zeros(count, np.int64)
        if self.keys is not None:
            part = self._partitions(table)
        self.state.fit_partitions(1 if self.keys is None else len(self.keys))
        op = np.where(sign > 0, s.INSERT, s.RETRACT)
        if roles.sign is not None and count > 1:
            pair = (sign[:-1] < 0) & (sign[1:] > 0) & (part[:-1] == part[1:]) & (le[:-1] == le[1:])
            if tie is not None:
                pair &= seq[:-1] == seq[1:]
            if rows is not None:
                pair &= rows[:-1] + 1 == rows[1:]
            # What a punctuation or a change of an arc stands between is two steps.
            between = changes.at[(changes.at > 0) & (changes.at < count)]
            pair[between - 1] = False
            first = np.flatnonzero(pair)
            op[first], op[first + 1] = s.REVISED, s.REVISES
        op[part < 0] = s.SKIP
        if self.predicated:
            self._refuse_predicated(table, le, op)
        # Columns of Arrow are read-only, for which Numba would compile the kernel once more.
        part, le, seq, re = (np.require(one, requirements=("C", "W")) for one in (part, le, seq, re))
        return Batch(op, part, le, seq, re, row, self.event_words(table), *changes)

    def event_words(self, table: pa.RecordBatch) -> I64:
        """[row, word]: known bits, attributes, truths of conditions."""
        columns, atoms = self.code.columns, self.code.atoms
        bits = 1 + len(columns)
        found = np.zeros((table.num_rows, self.words), np.int64)
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
            plain = {name: decoded(table.column(name)) for name in names}
            self.key_values.append(pa.record_batch(plain).take(rows))
        return part

    def _refuse_predicated(self, table: pa.RecordBatch, le: I64, op: I64) -> None:
        """Events below a punctuation whose condition they satisfy are late."""
        for condition, (time, _) in self.predicated.items():
            late = (le < time) & (op != s.SKIP)
            if late.any():
                late &= mask(condition, table)
            if late.any() and self.late_policy == "error":
                at = int(late.argmax())
                raise DataError(
                    f"row {self.rows + at} is late: its time is {self.shown_time(int(le[at]))}, and the punctuation of {condition} "
                    f"stands at {self.shown_time(time)}"
                )
            self.state.registers[s.LATE] += np.count_nonzero(late & (op >= 0))
            op[late] = s.MISSED

    def all_keys(self) -> pa.Table:
        """The partition attributes by partition."""
        assert self.keys is not None
        kinds = [(name, value_type(self.afa.events[name])) for name in self.afa.partition_by]
        whole = pa.Table.from_batches(self.key_values, schema=pa.schema(kinds))
        self.key_values = whole.combine_chunks().to_batches()
        return whole

    def partition_values(self, parts: I64) -> pa.RecordBatch:
        """The partition attributes of partitions."""
        return self.all_keys().take(pa.array(parts)).combine_chunks()

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
        if self.time_kind is None or pa.types.is_integer(self.time_kind) or abs(tick) >= s.FOREVER:
            return tick
        return shown_time(as_times(np.array([tick]), self.time_kind)[0])


def value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
