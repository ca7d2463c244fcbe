"""A clause over a stream: rows come in batches, and matches are given when no row to come can change them."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto._jit import DONE, FAULTED, GROW_TABLE, OUTPUT_FULL, PAUSED
from stretto.array_types import I64, Bits
from stretto.automata.rows import ACCEPT, RowAutomaton
from stretto.columns.arrays import decoded, frozen, numbers_of, one_array, valid_of
from stretto.columns.gathering import Gatherer
from stretto.columns.keys import KeyTable
from stretto.columns.nullable import key_parts, key_types
from stretto.columns.ordering import SortKey, key_words
from stretto.columns.vectorized import mask
from stretto.engines.rows import state as t
from stretto.engines.rows import structure as s
from stretto.engines.rows.columns import Shifted, overflow_shown
from stretto.engines.rows.encoding import Encoder
from stretto.engines.rows.failing import (
    POSITION_WORD,
    ROW_WORD,
    ROWS,
    SMALL_TABLE,
    START_WORD,
    left_out_of,
    nothing_known,
    roomy,
    rows_of,
    table_of,
    width_of_limit,
    words_of_key,
)
from stretto.engines.rows.history import as_plain
from stretto.engines.rows.interpreter import AT_LABEL, LAST_LABEL, OF_ONE, OF_TWO, Scratch, Values
from stretto.engines.rows.kernels import combine
from stretto.engines.rows.program import MOST_FAILED, RowProgram
from stretto.engines.rows.reading import Walks, read
from stretto.engines.rows.structure import Found
from stretto.engines.rows.within import span_of
from stretto.errors import DataError, SnapshotError
from stretto.frame import Section
from stretto.query import predicate as p
from stretto.query import row_pattern as r
from stretto.times import shown_time

#: Rows are read in pieces of this many: small enough for the caches, and for ^C to act soon.
CHUNK = 1 << 16

#: Room for fewer matches grows when it is full, and is not emptied: each time that it is costs some hundred calls.
FEW = 1 << 11

#: No partition has more rows.
MOST_ROWS = 1 << 62

#: Kinds of registers with a variable.
LABELS = (LAST_LABEL, AT_LABEL)

#: Before any time.
BEFORE_ALL = -(1 << 62)


A = TypeVar("A", bound=NDArray[Any])


class Given(NamedTuple):
    """What a call gives: the rows of matches with those around them, the matches, and the rows of no match, in one order."""

    seen: Shifted
    found: Found
    alone: I64  #: rows of ``seen`` that are in no match
    newest: I64 = np.zeros(0, np.int64)  #: of each match, over a stream: the slot of the row with which it became final


#: What digests call the steps of programs: the numbers that they had when states were first written,
_STEPS = np.array([*range(10), 18, 11, 12, -1, 20, 21, *range(22, 33), *range(33, 45), 47, 48, -2, 49, 50])
#: and those of functions of a double, and of two, by their places; functions that came later go by their places.
_FUNCTIONS = {OF_ONE: np.array([10, 16, 17, 13, 14, 15, 19]), OF_TWO: np.array([45, 46])}


def _as_written(code: I64) -> I64:
    """Steps with the numbers that digests have for them."""
    told = code.copy()
    told[:, 0] = _STEPS[code[:, 0]]
    for step, numbers in _FUNCTIONS.items():
        mine = (code[:, 0] == step) & (code[:, 1] < numbers.size)
        told[mine, 0], told[mine, 1] = numbers[code[mine, 1]], -1
    return told


class RowRun:
    """A stream that goes through a program.

    Parameters
    ----------
    program
        The clause.
    columns
        The columns that are read or shown.
    late
        What becomes of a row before the last one of its partition, or before a time that was reached: ``"error"``, or ``"drop"``.
    capacity
        Initial size of the growing arrays (tests use 1).
    steady
        With which row a match becomes final depends on the rows alone, and not on where they are cut: what reads rows to come waits
        for them also where it could be told without.
    """

    def __init__(
        self,
        program: RowProgram,
        columns: list[str],
        *,
        late: str = "error",
        capacity: int = 1 << 12,
        steady: bool = False,
    ) -> None:
        self.program, self.columns, self.late_policy = program, columns, late
        bound = program.bound
        query = bound.parsed
        self.related = program.programs or program.history.programs({}, window=False)
        self.encoder = Encoder(program.history)
        self.back, self.ahead, by_variable = _reach_of_conditions(bound)
        shown_back, shown_ahead = _reach(bound, [one.value for one in bound.measures])
        names = [program.automaton.variables[v] for v in program.automaton.variable]
        ahead = np.array([by_variable.get(name, 0) for name in names], np.int64)
        unmatched = query.rows is r.RowsPerMatch.WITH_UNMATCHED
        window = -1 if query.within is None else span_of(bound.columns.field(query.order_by[0].column).type, query)
        self.rules = t.Rules(program.mode, unmatched, window, ahead, shown_ahead, shown_back, steady)
        #: How many of the last rows of a partition are kept.
        self.kept_back = max(1, self.back + self.ahead)
        self.machine = s.machine(without_dead_ends(program.automaton), program.machine.target)
        self.capacity = max(2, capacity)
        #: Whether nothing is left of a partition whose rows are all behind.
        numbered = any(isinstance(one, r.MatchNumber) for one in query.references.values())
        same = program.automaton.first == program.automaton.later
        self.forgets = same and not numbered and not self.back and not shown_back and bool(query.order_by)
        self.restart()

    def restart(self) -> None:
        """Begin a stream."""
        bound, history = self.program.bound, self.program.history
        query = bound.parsed
        self.keys = KeyTable(
            [kind for name in query.partition_by for kind in key_types(bound.columns.field(name).type)]
        )
        self.state = t.rows_for(self.capacity, self.program.words, history.initial(), width_of_limit(self.related))
        self.parts = t.parts_for(self.capacity)
        self.partitions = 0
        self.size = 1  #: slots used
        self.kept = 0  #: … that were needed when last that was looked for
        self.encoder.restart()
        #: What programs read of rows, by slot; the last one is that of a row in which all is NULL.
        self.words, self.known = self.encoder.encoded(Shifted(self._nothing(0), np.zeros(2, np.int64)))
        self._place_words(np.zeros(1, np.int64), self.capacity)
        self.registers = np.zeros(t.REGISTERS, np.int64)
        self.registers[s.MOST] = MOST_FAILED
        self.out = t.given(self.capacity, self.capacity)
        #: Slots of the table of configurations that failed, at least.
        self.least = 1 << max(2, min(self.capacity, 1 << 10).bit_length() - 1)
        self._put_failed(np.zeros((0, words_of_key(self.related)), np.int64), self.least)
        self.held: list[pa.Table] = [self._nothing(1)]  #: the rows by slot
        self._rows: Gatherer | None = None
        self.reached: int | float | None = None
        self.rows = self.late = 0

    def _nothing(self, rows: int) -> pa.Table:
        """Rows of NULLs, for slots that hold none."""
        schema = self.program.bound.columns
        return pa.table({name: pa.nulls(rows, schema.field(name).type) for name in self.columns})

    # -- rows ---------------------------------------------------------------------------------------------------------

    def advance(self, groups: I64, table: pa.Table) -> Iterator[Given]:
        """Take rows that were :meth:`accepted`, and give what they make final.

        Raises
        ------
        DataError
            AFTER MATCH SKIP cannot be followed, or an integer leaves 64 bits: the run has stopped inside the rows.
        LimitError
            Conditions that read rows of the match leave too many ways to go.
        """
        for first in range(0, table.num_rows, CHUNK):
            yield from self._read(groups[first : first + CHUNK], table.slice(first, CHUNK))
            self._compact(np.zeros(self.partitions, np.bool_))
        self.settle()

    def reach(self, time: int | float) -> Iterator[Given]:
        """No row before ``time`` will come: give what waited for that."""
        self.reached = time if self.reached is None else max(self.reached, time)
        if self.rules.window >= 0:
            start = self.parts.start[: self.partitions]
            due = self.state.time[start] <= int(self.reached) - self.rules.window
            yield from self._go_on(np.flatnonzero((start > 0) & due))
        self.settle()

    def finish(self) -> Iterator[Given]:
        """No row will come: give what the end completes."""
        if self.ahead:
            self._condition(*self._last_rows(np.flatnonzero(self.parts.newest[: self.partitions])), ended=True)
        yield from self._go_on(np.flatnonzero(self.parts.start[: self.partitions]), ended=True)

    def accepted(self, table: pa.Table) -> tuple[I64, pa.Table]:
        """The partitions of the next rows, and the rows, without those that are late.

        Raises
        ------
        DataError
            A row is late, with ``late="error"``: in its partition a row that is behind it in the order has come, or it is before a
            time that was reached. Nothing was taken.
        """
        query = self.program.bound.parsed
        keys = [part for name in query.partition_by for part in key_parts(whole(table, name))]
        groups = self.keys.ids(keys, None if keys else np.arange(table.num_rows))
        self._make_room_for_partitions()
        fits = np.ones(table.num_rows, np.bool_)
        if query.order_by:
            touched = np.unique(groups)
            newest = self.parts.newest[touched]
            touched, newest = touched[newest > 0], newest[newest > 0]
            names = list(dict.fromkeys(one.column for one in query.order_by))
            both = pa.concat_tables([self.take(newest, names), table.select(names)])
            order = [SortKey(whole(both, one.column), one.descending, one.nulls_first) for one in query.order_by]
            words = np.stack([np.asarray(one, np.int64) for one in key_words(order)])
            every = np.concatenate([touched, groups])
            last = np.full(len(self.keys), -1, np.int64)
            t.accepted(words, every, touched.size, last, fits)
            behind = self._before_reached(whole(table, names[0]))
            fits &= ~behind
        self.rows += table.num_rows
        if fits.all():
            return groups, table
        if self.late_policy == "error":
            at = int(fits.argmin())
            self.rows -= table.num_rows
            shown = ", ".join(f"{one.column} = {shown_time(table.column(one.column)[at])!r}" for one in query.order_by)
            if behind[at]:
                raise DataError(
                    f"row {self.rows + at} is late: {shown}, and advance() has passed that time; advance no "
                    "further than what may still come, or pass late='drop'"
                )
            raise DataError(
                f"row {self.rows + at} is late: {shown}, and a row behind it in the order has come: sort the rows by ORDER "
                "BY before, or say with disorder= how late they may be"
            )
        self.late += int(np.count_nonzero(~fits))
        return groups[fits], table.filter(pa.array(fits))

    def _before_reached(self, column: pa.Array) -> Bits:
        """Which rows are before the time that was reached."""
        if self.reached is None:
            return np.zeros(len(column), np.bool_)
        valid = valid_of(column)
        before = numbers_of(column) < self.reached
        return before if valid is None else before & valid

    def _make_room_for_partitions(self) -> None:
        self.partitions = len(self.keys)
        if self.partitions > self.parts.came.size:
            self.parts = t.kept(self.parts, np.arange(self.parts.came.size), 2 * self.partitions)

    def _read(self, groups: I64, table: pa.Table) -> Iterator[Given]:
        """Take rows that are in order."""
        count = groups.size
        first = self.size
        self._make_room(first + count)
        self.held.append(table.select(self.columns))
        self._rows = None
        self.size += count
        slots = np.arange(first, self.size)
        self.state.partition[first : self.size] = groups
        self.state.bits[first : self.size] = ~np.uint64(0)
        if self.rules.window >= 0:
            times = whole(table, self.program.bound.parsed.order_by[0].column)
            valid = valid_of(times)
            self.state.time[first : self.size] = numbers_of(times)
            self.state.timed[first : self.size] = True if valid is None else valid
        seen = None
        bounds = np.array([0, count])
        if self.back or self.ahead:
            slots, bounds = self._with_those_before(groups, slots)
        else:
            seen = Shifted(self.held[-1], bounds)
        self._condition(slots, bounds, seen=seen, fresh=first)
        yield from self._go_on(np.arange(first, self.size), linking=True)

    def _with_those_before(self, groups: I64, slots: I64) -> tuple[I64, I64]:
        """The slots of rows by partition, behind those of the rows before them, and where each partition begins."""
        touched, place = np.unique(groups, return_inverse=True)
        before, begins = self._last_rows(touched)
        every = np.concatenate([before, slots])
        of = np.concatenate([np.repeat(np.arange(touched.size), np.diff(begins)), place])
        bounds = np.zeros(touched.size + 1, np.int64)
        np.cumsum(np.bincount(of, minlength=touched.size), out=bounds[1:])
        return every[np.argsort(of, kind="stable")], bounds

    def _last_rows(self, touched: I64) -> tuple[I64, I64]:
        """The slots of the last rows of partitions, as many as conditions read, and where each partition begins."""
        sizes = np.zeros(touched.size, np.int64)
        slots = np.zeros(touched.size * self.kept_back + 1, np.int64)
        used = t.around(self.state, self.parts, touched, self.kept_back, sizes, slots)
        return slots[:used], np.append(0, np.cumsum(sizes))

    def _condition(
        self, slots: I64, bounds: I64, *, seen: Shifted | None = None, fresh: int = 1 << 62, ended: bool = False
    ) -> None:
        """Write what rows may be taken as, and what programs read of them, as far as the rows behind them are known.

        ``slots``: the rows, partition by partition; of those that came before slot ``fresh``, the last ones that read rows ahead.
        """
        if not slots.size:
            return
        seen = Shifted(self.take(slots, self.columns), bounds) if seen is None else seen
        behind = np.repeat(bounds[1:], np.diff(bounds)) - np.arange(slots.size)  # the row itself and those behind it
        # What was known before has been written, when the rows before it were here.
        new = slots >= fresh
        came = np.repeat(np.add.reduceat(new, bounds[:-1], dtype=np.int64), np.diff(bounds))
        changed = new | (behind - came <= self.ahead)
        bits = np.zeros((slots.size, self.program.words), np.uint64)
        query = self.program.bound.parsed
        for variable, positions in self.program.masks.items():
            truth = np.ones(slots.size, np.bool_)
            for one in self.program.plain.get(variable, ()):
                condition = as_plain(one, query)
                with overflow_shown(condition, seen):
                    own = mask(condition, seen.table_of(p.attributes(condition)))
                _, ahead = _reach(self.program.bound, [one])
                truth &= own if ended or not ahead else own | (behind <= ahead)
            for word in np.flatnonzero(positions):
                combine(frozen(truth), positions[word], int(word), bits)
        at = slots[changed]
        self.state.bits[at] &= bits[changed]
        if self.words.shape[0]:
            words, known = self.encoder.encoded(seen)
            rows = np.flatnonzero(changed)
            self.words[:, at] = words[:, rows]
            self.known[:, at] = known[:, rows]

    # -- the kernel ---------------------------------------------------------------------------------------------------

    def _go_on(self, work: I64, *, linking: bool = False, ended: bool = False) -> Iterator[Given]:
        if not work.size:
            return
        self.registers[t.AT] = self.registers[t.LINKED] = 0
        reached = BEFORE_ALL if self.reached is None or self.rules.window < 0 else int(self.reached)
        no_window = np.zeros(0, np.int64)
        stack = 1 + max(
            (int(e - b) for b, e in zip(self.related.begin, self.related.begin[1:], strict=False)), default=0
        )
        numbers, truths = np.zeros(stack, np.int64), np.zeros(stack, np.bool_)
        faults, key = np.zeros((1, 1), np.int64), np.zeros(self.failed.key.shape[1], np.int64)
        nothing = np.zeros(2, np.int64), np.zeros((0, 0), np.int64)
        arrays = (numbers, truths, faults, key, *nothing, *left_out_of(self.related))
        while True:
            state = self.state
            walks = Walks(
                self.rules, self.machine, self.related, Values(self.words, self.known, no_window), state, self.parts,
                Scratch(state.registers, state.edge, state.position, state.limit, *arrays), self.failed,
            )  # fmt: skip
            status = read(work, linking, ended, reached, walks, self.registers, self.out)
            if status == PAUSED:
                continue
            if status == OUTPUT_FULL and self.out.slot.size < FEW:
                self.out = t.roomier(self.out)
                continue
            found = self._drained()
            if found is not None:
                yield found
            if status == DONE:
                return
            if status == FAULTED:
                raise self._refused()
            if status == GROW_TABLE:
                self._make_room_for_failed()
            elif found is None:
                self.out = t.roomier(self.out)

    def _drained(self) -> Given | None:
        """The matches in the output, which becomes empty."""
        matches, used, slots = (int(self.registers[at]) for at in (s.MATCHES, s.USED, t.SLOTS))
        if not matches:
            return None
        self.registers[[s.MATCHES, s.USED, t.SLOTS]] = 0
        out = self.out
        seen = Shifted(self.take(out.slot[:slots], self.columns), out.bounds[: matches + 1].copy())
        matched = np.flatnonzero(out.number[:matches])
        found = Found(matched, out.first[matched], out.length[matched], out.number[matched], out.path[:used].copy())
        return Given(seen, found, out.first[:matches][out.number[:matches] == 0], out.newest[matched])

    def _make_room_for_failed(self) -> None:
        """Forget configurations that cannot come up again; double the table where that is not enough."""
        keys = self.failed.key[self.failed.used]
        rows, parts = self.state, self.parts
        start = parts.start[rows.partition[keys[:, ROW_WORD]]]
        kept = (start > 0) & (rows.ordinal[keys[:, ROW_WORD]] >= rows.ordinal[start])
        if self.related.by_start:
            kept &= keys[:, START_WORD] == start
        for column, is_row in rows_of(self.related, keys):
            kept &= ~is_row | (rows.ordinal[np.where(is_row, keys[:, column], 0)] >= rows.ordinal[start])
        kept, size = roomy(kept, keys[:, -1] == start, self.failed)
        if not size:
            self.registers[s.FAULT] = s.CROWDED
            raise self._refused()
        self._put_failed(keys[kept], size)

    def _put_failed(self, keys: I64, size: int) -> None:
        """Fill the table of configurations that failed."""
        self.failed = table_of(self.related, keys, size)
        self.registers[s.KEYS] = keys.shape[0]

    # -- memory -------------------------------------------------------------------------------------------------------

    def _make_room(self, slots: int) -> None:
        if slots <= self.state.partition.size:
            return
        size = 2 * slots
        self.state = t.kept(self.state, np.arange(self.size), size)
        self._place_words(np.arange(self.size), size)

    def _place_words(self, slots: I64, size: int) -> None:
        """Keep the words of some slots, one behind the other, with room for so many."""
        self.words, self.known = grown_across(self.words, slots, size), grown_across(self.known, slots, size)

    def settle(self, *, whole: bool = False) -> None:
        """Let go of rows that are behind, and of partitions of which nothing matters any more."""
        if whole or self._is_worth_it:
            self._compact(self._forgotten(), whole=True)

    @property
    def _is_worth_it(self) -> bool:
        """Whether as many rows came as were needed when last that was looked for; so a row costs O(1) on average."""
        return self.size > 2 * self.kept + self.capacity

    def _compact(self, forget: Bits, *, whole: bool = False) -> None:
        """Renumber the slots that are needed, without those of some partitions."""
        if not whole and not self._is_worth_it:
            return
        needed = np.zeros(self.size, np.bool_)
        t.outlived(self.state, self.parts, self.size, self.kept_back, self.rules.shown_back, forget, needed)
        needed[0] = True
        renamed = np.where(needed, np.cumsum(needed) - 1, 0)
        at = np.flatnonzero(needed)
        self._rename_failed(renamed)
        self.held = [self.take(at, self.columns)]
        self._rows = None
        size = max(self.capacity, at.size)
        state = t.kept(self.state, at, size)
        for links in (state.after, state.before):
            links[: at.size] = renamed[links[: at.size]]
        for number, kind in enumerate(self.related.kind):
            if kind in ROWS:
                own = state.registers[: at.size, number]
                own[:] = np.where(own > 0, renamed[np.minimum(own, self.size - 1)], own)
        self.state = state
        self._place_words(at, size)
        self.encoder.forget(self.words, self.known)
        for links in (self.parts.newest, self.parts.start, self.parts.tip):
            links[: self.partitions] = renamed[links[: self.partitions]]
        self.size = self.kept = at.size
        if forget.any():
            self._forget_partitions(forget)

    def _forgotten(self) -> Bits:
        """The partitions of which nothing matters any more: a row to come would begin them anew."""
        newest = self.parts.newest[: self.partitions]
        nothing: Bits = newest == 0
        if not self.forgets or self.reached is None:
            return nothing
        column = self.take(newest, self.columns).column(self.program.bound.parsed.order_by[0].column)
        passed = self._before_reached(one_array(column))
        nothing |= passed & (self.parts.start[: self.partitions] == 0)
        return nothing

    def _forget_partitions(self, forget: Bits) -> None:
        renamed = self.keys.keep(~forget)
        left = np.flatnonzero(~forget)
        self.parts = t.kept(self.parts, left, max(self.capacity, left.size))
        self.partitions = left.size
        self.state.partition[1 : self.size] = renamed[self.state.partition[1 : self.size]]

    def _rename_failed(self, renamed: I64) -> None:
        """Give the rows of configurations that failed their new slots; those of rows that are gone are forgotten."""
        keys = self.failed.key[self.failed.used]
        if not keys.shape[0]:
            return
        kept = renamed[keys[:, ROW_WORD]] > 0
        for column, is_row in rows_of(self.related, keys):
            keys[is_row, column] = renamed[keys[is_row, column]]
            kept &= ~is_row | (keys[:, column] > 0)
        named = (ROW_WORD, START_WORD, -1) if self.related.by_start else (ROW_WORD, -1)
        for column in named:
            keys[:, column] = renamed[keys[:, column]]
        if self.related.by_start:
            kept &= keys[:, START_WORD] > 0
        keys = keys[kept]
        size = max(self.least, min(self.failed.used.size, SMALL_TABLE))
        while size < 2 * (keys.shape[0] + 1):
            size *= 2
        self._put_failed(keys, size)

    def take(self, slots: I64, names: list[str]) -> pa.Table:
        """Columns of the rows at some slots."""
        if self._rows is None:
            # Pieces are joined with those before that are no larger, so that a row is copied as often as its piece doubles.
            while len(self.held) > 1 and self.held[-1].num_rows >= self.held[-2].num_rows:
                last = self.held.pop()
                self.held[-1] = pa.concat_tables([self.held[-1], last]).combine_chunks()
            self._rows = Gatherer(pa.concat_tables(self.held))
        return self._rows.take(slots, names)

    # -- what it is ---------------------------------------------------------------------------------------------------

    def live(self) -> tuple[I64, I64]:
        """The slots of the rows that a match to come may hold, and the position as which each is taken by now; −1: as none."""
        rows, parts = self.state, self.parts
        slots = np.arange(1, self.size)
        start = parts.start[rows.partition[slots]]
        slots = slots[(start > 0) & (rows.ordinal[slots] >= rows.ordinal[start])]
        tip = parts.tip[rows.partition[slots]]
        return slots, np.where((tip > 0) & (rows.ordinal[slots] <= rows.ordinal[tip]), rows.position[slots], -1)

    @property
    def idle(self) -> bool:
        """Whether nothing that came matters to what is to come."""
        return self.size == 1

    @property
    def expires(self) -> int | float | None:
        """The last time at which something that came may still matter; ``None``: nothing does, or time does not tell."""
        if self.idle or self.rules.window < 0:
            return None
        start = self.parts.start[: self.partitions]
        waits = start[(start > 0) & self.state.timed[start]]
        return int(self.state.time[waits].max()) + self.rules.window - 1 if waits.size else None

    @property
    def stats(self) -> dict[str, int]:
        """Counts of what was read and what is held."""
        return {
            "events": self.rows,
            "late": self.late,
            "partitions": self.partitions,
            "partial_matches": int(np.count_nonzero(self.parts.tip[: self.partitions])),
            "held": self.size - 1,
            "bytes": self.nbytes,
        }

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        arrays = (*self.state, *self.parts, *self.failed[:2], *self.out, self.words, self.known)
        return int(sum(one.nbytes for one in arrays) + sum(one.nbytes for one in self.held) + self.keys.nbytes)

    @property
    def digest(self) -> str:
        """What the state depends on, in short."""
        return self._digest()

    def _digest(self, text: str | None = None) -> str:
        """The same; with the clause's text, as earlier versions had it."""
        automaton, bound, related = self.program.automaton, self.program.bound, self.related
        machine = (
            automaton.variables,
            automaton.variable.tolist(),
            automaton.followers,
            automaton.first,
            automaton.later,
        )
        programs = (
            _as_written(related.code).tolist(),
            related.kind.tolist(),
            related.live.tolist(),
            related.constants.tolist(),
        )
        harder = related.harder.tolist()
        keys = (related.stands.tolist(), harder if len(harder) > 1 else (harder or [-1])[0])
        read = [(str(one.expression), str(one.type), one.rank) for one in self.program.history.columns.columns]
        columns = [(name, str(bound.columns.field(name).type)) for name in self.columns]
        told = (machine, programs, keys, read, columns) if text is None else (text, machine, programs, read, columns)
        return hashlib.sha256(repr(told).encode()).hexdigest()[:16]

    def _where(self, partition: int) -> str:
        start = int(self.parts.start[partition])
        query = self.program.bound.parsed
        first = self.take(np.array([start]), self.columns)
        keys = {name: first.column(name)[0].as_py() for name in query.partition_by}
        of = " of the partition " + ", ".join(f"{name} = {value!r}" for name, value in keys.items()) if keys else ""
        return f"the match that begins at row {int(self.state.ordinal[start])}{of}"

    def _refused(self) -> Exception:
        return self.program.refused(int(self.registers[s.FAULT]), self._where(int(self.registers[s.PARTITION])))

    # -- state --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the state."""
        self.settle(whole=True)
        section.values |= {"digest": self.digest, "rows": self.rows, "late": self.late, "reached": self.reached}
        for name, array in self.state._asdict().items():
            section.arrays[f"row.{name}"] = array[: self.size].reshape(-1)
        for name, array in self.parts._asdict().items():
            section.arrays[f"part.{name}"] = array[: self.partitions]
        kept = np.append(np.arange(self.size), self.words.shape[1] - 1)
        section.arrays["words"] = self.words[:, kept].reshape(-1)
        section.arrays["known"] = self.known[:, kept].reshape(-1)
        section.arrays["failed"] = self.failed.key[self.failed.used].reshape(-1)
        section.put_table("held", self.take(np.arange(self.size), self.columns))
        self.keys.save(section.sub("keys"))
        self.encoder.save(section.sub("encoder"))

    def load(self, section: Section) -> None:
        """Take over, from the beginning, what :meth:`save` wrote.

        Raises
        ------
        SnapshotError, LookupError, ValueError
            The section is of another clause, or damaged.
        """
        self.restart()
        values, arrays = section.values, section.arrays
        # Earlier versions wrote the clause's text into it, and of what failed other keys, and no limits.
        earlier = values["digest"] == self._digest(self.program.bound.parsed.text)
        if not earlier and values["digest"] != self.digest:
            raise SnapshotError(
                "the snapshot does not fit: the clause's automaton and conditions differ, as this version of stretto builds them"
            )
        self.keys.load(section.sub("keys"))
        self._make_room_for_partitions()
        self.encoder.load(section.sub("encoder"))
        self.rows, self.late = section.count("rows"), section.count("late")
        self.reached = section.measure("reached", whole=self.rules.window >= 0)
        table = section.table("held")
        self.held = [table.cast(self._nothing(0).schema)]
        self._make_room(table.num_rows)
        self.size = self.kept = table.num_rows
        self._check(section)
        added = {"row.limit": nothing_known(self.related), "part.ways": 0} if earlier else {}
        for kind, fields, count in (("row", self.state, self.size), ("part", self.parts, self.partitions)):
            for field, array in fields._asdict().items():
                name = f"{kind}.{field}"
                array[:count] = added[name] if name in added else arrays[name].reshape(count, *array.shape[1:])
        kept = np.append(np.arange(self.size), self.words.shape[1] - 1)
        self.words[:, kept] = section.numbers("words").reshape(-1, kept.size)
        self.known[:, kept] = arrays["known"].reshape(-1, kept.size)
        self.encoder.check(self.words[:, kept], self.known[:, kept])
        if earlier:
            return
        keys = section.numbers("failed").reshape(-1, self.failed.key.shape[1])
        self._check_failed(keys)
        self._put_failed(keys, max(self.least, 1 << (2 * keys.shape[0] + 2).bit_length()))

    def _check(self, section: Section) -> None:
        """Raise unless each number is that of something there is, and rows lie in the order in which they came."""
        size, own = self.size, np.arange(self.size)
        positions = self.program.automaton.variable.size
        section.numbers("row.partition", size=size, least=0, below=max(1, self.partitions))
        after = section.numbers("row.after", size=size, least=0, below=size)
        if ((after <= own) & (after != 0))[1:].any():
            raise ValueError("a row is behind a later one")
        before = section.numbers("row.before", size=size, least=0, below=np.maximum(own, 1))
        linked = own[after != 0]
        if (before[after[linked]] != linked).any() or (after[before[own[before != 0]]] != own[before != 0]).any():
            raise ValueError("the rows before and behind each other are others")
        self._check_partitions(section, after)
        section.numbers("row.position", size=size, least=-1, below=max(1, positions))
        section.numbers("row.edge", size=size, least=0, below=positions + 2)
        section.numbers("part.edge", size=self.partitions, least=0, below=positions + 2)
        registers = section.numbers("row.registers", size=size * self.related.kind.size).reshape(size, -1)
        for kind, held in zip(self.related.kind, registers.T, strict=True):
            below = size if kind in ROWS else self.related.ranks.size if kind in LABELS else None
            if below is not None and ((held < -1) | (held >= max(1, below))).any():
                raise ValueError("a condition reads a row, or the variable of one, that is not there")

    def _check_failed(self, keys: I64) -> None:
        """Raise unless configurations that failed are of rows that are held, and of positions that there are."""
        named = (ROW_WORD, START_WORD, -1) if self.related.by_start else (ROW_WORD, -1)
        rows = keys[:, named]
        position = keys[:, POSITION_WORD]
        fits = ((rows >= 0) & (rows < self.size)).all()
        fits &= ((position >= 0) & (position < max(1, self.program.automaton.variable.size))).all()
        if not fits or any((keys[is_row, column] >= self.size).any() for column, is_row in rows_of(self.related, keys)):
            raise ValueError("what failed is of a row, or of a position, that is not there")

    def _check_partitions(self, section: Section, after: I64) -> None:
        """Raise unless rows are numbered one by one in their partitions, which stand at rows of their own."""
        size, partitions, part = self.size, np.arange(self.partitions), section.arrays["row.partition"]
        ordinal = section.numbers("row.ordinal", size=size, least=0)
        came = section.numbers("part.came", size=self.partitions, least=0, below=MOST_ROWS)
        section.numbers("part.number", size=self.partitions, least=0, below=came + 1)
        newest, start, tip = (
            section.numbers(f"part.{name}", size=self.partitions, least=0, below=size)
            for name in ("newest", "start", "tip")
        )
        linked = np.flatnonzero(after)
        fits = (part[after[linked]] == part[linked]).all() and (ordinal[after[linked]] == ordinal[linked] + 1).all()
        for held in (newest, start, tip):
            fits &= bool(((part[held] == partitions) | (held == 0)).all())
        fits &= bool(((ordinal[newest] == came - 1) | (newest == 0)).all())
        fits &= bool(((after[newest] == 0) | (newest == 0)).all())
        fits &= bool(((ordinal[tip] >= ordinal[start]) & (start != 0) | (tip == 0)).all())
        if not fits:
            raise ValueError("the rows of partitions are not numbered one by one")


def grown_across(array: A, chosen: I64, size: int) -> A:
    """Some columns of an array, and its last one as the last, with room for so many before it, which is zero."""
    made = np.zeros((array.shape[0], size + 1), array.dtype)
    made[:, : chosen.size] = array[:, chosen]
    made[:, -1] = array[:, -1]
    return made  # type: ignore[return-value]


def without_dead_ends(automaton: RowAutomaton) -> RowAutomaton:
    """The automaton without followers that never lead to an end, for which nobody need wait.

    >>> from stretto.automata.rows import build
    >>> dead = r.Concatenation((r.Variable("C"), r.Anchor(True)))
    >>> pattern = r.Concatenation((r.Variable("A"), r.Alternation((r.Variable("B"), dead))))
    >>> found = build(r.RowQuery("", pattern, {}))
    >>> found.followers[0], without_dead_ends(found).followers[0]
    ((1, 2), (1,))
    """
    callers: list[list[int]] = [[] for _ in automaton.followers]
    for position, to in enumerate(automaton.followers):
        for q in to:
            if q != ACCEPT:
                callers[q].append(position)
    work = deque(at for at, to in enumerate(automaton.followers) if ACCEPT in to or automaton.ends[at])
    alive = set(work)
    while work:
        for position in callers[work.popleft()]:
            if position not in alive:
                alive.add(position)
                work.append(position)
    alive.add(ACCEPT)

    def kept(to: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(q for q in to if q in alive)

    return replace(
        automaton,
        followers=tuple(map(kept, automaton.followers)),
        first=kept(automaton.first),
        later=kept(automaton.later),
    )


def _reach(bound: r.BoundRows, expressions: list[Any]) -> tuple[int, int]:
    """How many rows before, and behind, those of the match, expressions read."""
    found = [
        reference.shift
        for one in expressions
        for name in p.attributes(one)
        if isinstance(reference := bound.parsed.references[name], r.Navigation)
    ]
    return max(0, -min(found, default=0)), max(0, *found, 0)


def _reach_of_conditions(bound: r.BoundRows) -> tuple[int, int, dict[str, int]]:
    """How many rows before and behind conditions read; and behind, by variable."""
    found = {variable: _reach(bound, [one]) for variable, one in bound.conditions.items()}
    ahead = {variable: one[1] for variable, one in found.items()}
    return max((one[0] for one in found.values()), default=0), max(ahead.values(), default=0), ahead


# ---- Keys


def whole(table: pa.Table, name: str) -> pa.Array:
    """A column in one piece, without a dictionary."""
    return one_array(decoded(table.column(name)))
