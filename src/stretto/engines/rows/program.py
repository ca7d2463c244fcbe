"""A clause as a program, and its matches in sorted rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, FAULTED, GROW_STACK, GROW_TABLE, PAUSED
from stretto.automata.rows import ACCEPT, build
from stretto.columns.arrays import frozen
from stretto.columns.vectorized import mask
from stretto.engines.rows import structure as s
from stretto.engines.rows.backtracking import walk_back
from stretto.engines.rows.columns import Shifted, overflow_shown
from stretto.engines.rows.conditions import Scope
from stretto.engines.rows.failing import (
    ROW_WORD,
    START_WORD,
    left_out_of,
    roomy,
    rows_of,
    table_of,
    width_of_limit,
    words_of_key,
)
from stretto.engines.rows.history import History, as_plain, conjuncts, is_plain
from stretto.engines.rows.interpreter import Programs, Scratch
from stretto.engines.rows.kernels import combine, narrow_down, narrow_down_wide, walk
from stretto.engines.rows.within import last_within
from stretto.errors import DataError, LimitError
from stretto.query import predicate as p
from stretto.query import row_pattern as r
from stretto.query.row_pattern import BoundRows

_MODES = {
    r.AfterMatch.PAST: s.PAST,
    r.AfterMatch.NEXT: s.NEXT,
    r.AfterMatch.FIRST: s.TO_FIRST,
    r.AfterMatch.LAST: s.TO_LAST,
}

#: So many configurations of one match may fail.
MOST_FAILED = 1 << 22


class RowProgram:
    """What a clause is compiled to, once: the automaton, the conditions that are columns, and those that are programs."""

    def __init__(self, bound: BoundRows) -> None:
        self.bound = bound
        query = bound.parsed
        self.automaton = build(query)
        names = [self.automaton.variables[v] for v in self.automaton.variable]
        self.plain: dict[str, tuple[p.Predicate, ...]] = {}  #: by variable: conditions that are columns
        self.history = History(query, bound.columns, dict(bound.types), self.automaton)
        for variable, condition in bound.conditions.items():
            if variable not in names:
                continue
            parts = conjuncts(condition)
            plain = tuple(one for one in parts if is_plain(one, variable, query))
            if plain:
                self.plain[variable] = plain
            related = [one for one in parts if not is_plain(one, variable, query)]
            if related:
                self.history.asked[variable] = related
        target = query.after_variable
        held = frozenset() if target is None else query.holds(target)
        self.machine = s.machine(self.automaton, np.array([name in held for name in names], np.bool_))
        self.mode = _MODES[query.after]
        self.programs: Programs | None = None
        bounded = query.frame is not None and query.frame.following is not None
        if self.history.asked or query.within is not None or query.frame is not None:
            self.programs = self.history.programs(
                {variable: Scope(self.history, variable).all(parts) for variable, parts in self.history.asked.items()},
                window=query.within is not None or bounded,
            )

    @property
    def marks(self) -> list[frozenset[str]]:
        """The variables of each mark: a row of a match has one."""
        return [frozenset({name}) for name in self.automaton.variables]

    @cached_property
    def words(self) -> int:
        """Words of bits that a row takes."""
        return max(1, -(-len(self.automaton.followers) // 64))

    @cached_property
    def masks(self) -> dict[str, NDArray[np.uint64]]:
        """Of each variable: its positions."""
        found = {name: np.zeros(self.words, np.uint64) for name in self.automaton.variables}
        for position, variable in enumerate(self.automaton.variable):
            found[self.automaton.variables[variable]][position >> 6] |= np.uint64(1 << (position & 63))
        return found

    @cached_property
    def _before(self) -> tuple[np.uint64, np.uint64, NDArray[np.uint64]]:
        """What :func:`narrow_down` reads: who may end at the end, who anywhere, and who comes before what."""
        last = always = 0
        callers = [0] * 64
        for position, followers in enumerate(self.automaton.followers):
            last |= int(self.automaton.ends[position]) << position
            for q in followers:
                if q == ACCEPT:
                    always |= 1 << position
                else:
                    callers[q] |= 1 << position
        table = np.zeros((-(-len(self.automaton.followers) // 8) or 1, 256), np.uint64)
        for c in range(table.shape[0]):
            for byte in range(256):
                found = 0
                for bit in range(8):
                    if byte >> bit & 1:
                        found |= callers[8 * c + bit]
                table[c, byte] = found
        return np.uint64(last), np.uint64(always), table

    def possible(self, seen: Shifted) -> NDArray[np.uint64]:
        """As which positions each row can be taken so that a match may be completed: bits, (rows, words)."""
        bits = np.zeros((seen.rows, self.words), np.uint64)
        for variable, positions in self.masks.items():
            parts = self.plain.get(variable)
            if parts is None:
                bits |= positions
                continue
            condition = as_plain(parts[0] if len(parts) == 1 else p.And(parts), self.bound.parsed)
            with overflow_shown(condition, seen):
                truth = mask(condition, seen.table_of(p.attributes(condition)))
            for word in np.flatnonzero(positions):
                combine(frozen(truth), positions[word], int(word), bits)
        bounds = frozen(seen.bounds)
        if self.words == 1:
            narrow_down(bits, bounds, *self._before)
        else:
            narrow_down_wide(bits, bounds, self.machine)
        return bits

    def refused(self, fault: int, where: str) -> Exception:
        """What is wrong with the match that begins at some place."""
        target = self.bound.parsed.after_variable
        if fault == s.NO_TARGET:
            return DataError(f"{where} has no row of {target}, to which AFTER MATCH SKIP would go")
        if fault == s.TO_START:
            return DataError(f"{where} begins with {target}: AFTER MATCH SKIP would find it again for ever")
        if fault == s.SOUGHT:
            return LimitError(
                f"{where}: SEEK has looked for matches at more than {s.MOST_TRIED:,} rows in vain: use INITIAL, or a shorter frame"
            )
        if fault in (s.ASTRAY, s.CROWDED):
            many = f"more than {MOST_FAILED:,} ways" if fault == s.ASTRAY else "more ways than the memory holds"
            return LimitError(
                f"{where}: {many} were gone through without a match, because conditions of "
                f"{', '.join(sorted(self.history.asked)) or 'WITHIN'} read rows of the match so far: "
                "let them read the row before (PREV), bound the quantifiers, or add conditions on single rows"
            )
        return DataError(f"{where}: an integer leaves 64 bits in a condition; compute with doubles")

    def matches(self, seen: Shifted, *, capacity: int = 1 << 16, failing: int | None = None) -> Iterator[s.Found]:
        """The matches of rows, partition by partition, in pieces.

        ``failing``: how many configurations of one match may fail, if not :data:`MOST_FAILED`.

        Raises
        ------
        DataError
            AFTER MATCH SKIP cannot be followed, or an integer leaves 64 bits in a condition.
        LimitError
            Conditions that read rows of the match leave too many ways to go.
        """
        if not seen.rows:
            return
        walking = _Walk(self, seen, capacity, MOST_FAILED if failing is None else failing)
        while True:
            status = walking.step()
            found = walking.drained()
            if found is not None:
                yield found
            if status == DONE:
                return
            walking.mend(status)


class _Walk:
    """One walk over sorted rows, with the arrays that grow on the way."""

    def __init__(self, program: RowProgram, seen: Shifted, capacity: int, failing: int) -> None:
        self.program, self.seen = program, seen
        self.bits = frozen(program.possible(seen))
        self.bounds = frozen(seen.bounds)
        self.registers = np.zeros(s.WALK_REGISTERS, np.int64)
        self.registers[s.MOST] = failing
        self.out = s.found(capacity, capacity)
        programs = program.programs
        if programs is None:
            return
        history = program.history
        self.values = history.columns.values(seen, self._latest())
        longest = max((end - begin for begin, end in zip(programs.begin, programs.begin[1:], strict=False)), default=0)
        self.scratch = Scratch(
            np.zeros((0, programs.kind.size), np.int64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.zeros((0, width_of_limit(programs)), np.int64),
            np.zeros(int(longest) + 1, np.int64),
            np.zeros(int(longest) + 1, np.bool_),
            np.zeros((1, 1), np.int64),
            np.zeros(words_of_key(programs), np.int64),
            np.zeros(2, np.int64),
            history.first(self.values),
            *left_out_of(programs),
        )
        self._room(min(capacity, 256) + 1)
        nothing = np.zeros((0, self.scratch.key.size), np.int64)
        self.failed = table_of(programs, nothing, max(2, min(capacity, 1 << 10)))

    def _room(self, depth: int) -> None:
        """Room for matches of so many rows."""
        registers = np.zeros((depth, self.scratch.registers.shape[1]), np.int64)
        registers[0] = self.program.history.initial()
        self.scratch = self.scratch._replace(
            registers=registers,
            edge=np.zeros(depth, np.int64),
            position=np.zeros(depth, np.int64),
            limit=np.zeros((depth, self.scratch.limit.shape[1]), np.int64),
        )

    def _latest(self) -> s.I64:
        """Of each row: the last one within the window, or the frame, that it begins; empty where there is none."""
        query = self.program.bound.parsed
        if query.frame is not None and query.frame.following is not None:
            return np.arange(self.seen.rows, dtype=np.int64) + np.int64(min(query.frame.following, self.seen.rows))
        return np.zeros(0, np.int64) if query.within is None else last_within(self.seen, query)

    def step(self) -> int:
        program = self.program
        if program.programs is None:
            return walk(self.bits, self.bounds, program.machine, program.mode, self.registers, self.out)
        with np.errstate(all="ignore"):  # where kernels are interpreted, functions of doubles would warn
            return self._walk_back(program.programs)

    def _walk_back(self, programs: Programs) -> int:
        program = self.program
        return walk_back(
            self.bits, self.bounds, program.machine, program.mode, programs, self.values, self.registers,
            self.scratch, self.failed, self.out,
        )  # fmt: skip

    def drained(self) -> s.Found | None:
        """The matches in the output, which becomes empty."""
        matches, used = int(self.registers[s.MATCHES]), int(self.registers[s.USED])
        if not matches:
            return None
        self.registers[s.MATCHES] = self.registers[s.USED] = 0
        out = self.out
        partition, start, length, number = (one[:matches].copy() for one in out[:4])
        return s.Found(partition, start, length, number, out.path[:used].copy())

    def mend(self, status: int) -> None:
        """Make room, or say what is refused."""
        if status == PAUSED:
            return
        if status == FAULTED:
            raise self._refused()
        if status == GROW_STACK:
            self._room(2 * self.scratch.edge.size)
        elif status == GROW_TABLE:
            self._grow_table()
        else:
            # The output was drained: one match is larger than it.
            self.out = s.found(2 * self.out.start.size, 2 * self.out.path.size)

    def _grow_table(self) -> None:
        """Forget configurations that cannot come up again; double the table where that is not enough."""
        assert self.program.programs is not None
        row = int(self.registers[s.ROW])
        keys = self.failed.key[self.failed.used]
        kept = keys[:, ROW_WORD] >= row
        if self.program.programs.by_start:
            kept &= keys[:, START_WORD] >= row
        for column, is_row in rows_of(self.program.programs, keys):
            kept &= ~is_row | (keys[:, column] >= row)
        kept, size = roomy(kept, keys[:, -1] >= row, self.failed)
        if not size:
            self.registers[s.FAULT] = s.CROWDED
            raise self._refused()
        self.failed = table_of(self.program.programs, keys[kept], size)
        self.registers[s.KEYS] = np.count_nonzero(kept)

    def _where(self, row: int) -> str:
        partition = int(self.registers[s.PARTITION])
        query = self.program.bound.parsed
        first = self.seen.table.slice(row, 1)
        keys = {name: first.column(name)[0].as_py() for name in query.partition_by}
        of = " of the partition " + ", ".join(f"{name} = {value!r}" for name, value in keys.items()) if keys else ""
        return f"the match that begins at row {row - int(self.bounds[partition])}{of}"

    def _refused(self) -> Exception:
        where = self._where(int(self.registers[s.ROW]))
        return self.program.refused(int(self.registers[s.FAULT]), where)
