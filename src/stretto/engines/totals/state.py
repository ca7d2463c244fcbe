"""What a stream leaves behind where matches are counted, and how its arrays grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import F64, I64
from stretto.budget import Budget, described_bytes
from stretto.columns.arrays import roomy
from stretto.engines.shared.intake import kept
from stretto.engines.store import bytes_of, over, zeros
from stretto.engines.totals import structure as s
from stretto.engines.totals.blocks import class_of
from stretto.engines.totals.fitting import misfit
from stretto.engines.totals.giving import place_groups
from stretto.engines.totals.kernels import firsts, pack, states_in, sweep, unpack
from stretto.engines.totals.structure import Plan, Rows, Store, Sums, Work
from stretto.errors import LimitError
from stretto.frame import Section

#: Room for fewer numbers in rows grows when it is full.
FEW = 1 << 17

#: What :meth:`State.save` writes.
SAVED = ("records", "registers", "sums", "base", "part", "live", "latest", "panes")

#: Panes are no farther than that from 0.
FAR = 1 << 62


class State:
    """The arrays of one stream's run, and the scratch space beside them; kernels write into it in place.

    Parameters
    ----------
    plan
        What is kept.
    vary
        Whether events say parts of groups.
    capacity
        The size that growing arrays start with: tests start with 1, so that every point of growth is met.
    budget
        How many bytes vectors may take; ``None``: a quarter of the memory there is.
    """

    def __init__(self, plan: Plan, *, vary: bool, capacity: int, budget: Budget | None) -> None:
        small = max(1, capacity)
        self.plan, self.vary = plan, vary
        self.budget = Budget() if budget is None else budget
        self.store = _store(max(16, small))
        self.head = np.zeros(1, np.int64)
        self.work = _work(small)
        self.sums = self._sums(1)
        self.rows = self._rows(small)
        self.registers = np.zeros(s.REGISTERS, np.int64)
        self.registers[s.TOP] = 8  # word 0 stands for no block
        self.registers[s.NEXT] = -(1 << 62)
        self.registers[s.CONSUMED] = -1

    @property
    def columns(self) -> int:
        """How many numbers each cell has."""
        return int(self.plan.kind.size)

    @property
    def extent(self) -> int:
        """Which matches a row is about."""
        return int(self.plan.scope[s.EXTENT])

    @property
    def own(self) -> bool:
        """Whether windows are of the events of each key."""
        return bool(self.plan.scope[s.OWN])

    def _sums(self, groups: int) -> Sums:
        ints = np.zeros(groups * self.columns if self.extent == s.OF_TABLE else 0, np.int64)
        reals = ints.view(np.float64)
        for column, kind in enumerate(self.plan.kind):
            if ints.size:
                _clear(int(kind), ints[column :: self.columns], reals[column :: self.columns])
        slots = 4 << max(1, (groups - 1).bit_length()) if self.vary else 0
        base, part = np.zeros((2, groups if self.vary else 0), np.int64)
        return zeros(Sums, groups, ints=ints, reals=reals, slot=np.zeros(slots, np.int64), base=base, part=part)

    def _rows(self, rows: int) -> Rows:
        ints = np.zeros(rows * self.columns, np.int64)
        return zeros(Rows, rows, ints=ints, reals=ints.view(np.float64))

    # -- growing ------------------------------------------------------------------------------------------------------

    def grow(self, status: int) -> None:
        """Make the room that a kernel asks for.

        Raises
        ------
        LimitError
            What is kept goes over the budget.
        """
        need = int(self.registers[s.NEED])
        match status:
            case _jit.GROW_ARENA:
                self._grow_store(need)
            case _jit.GROW_ACTIVE:
                self.work = _work(max(need, 2 * self.work.state.size))
            case _jit.GROW_OUTPUT:
                self.rows = over(self.rows, self._rows(max(need, 2 * self.rows.end.size)))
            case _jit.GROW_TABLE:
                self.fit_groups(max(need, 2 * self.sums.block.size))

    def widen(self) -> None:
        """Twice the room for rows, which are taken out, while it is small: each time that this is done costs some hundred calls."""
        if self.rows.ints.size < FEW:
            self.rows = self._rows(2 * self.rows.end.size)

    def _grow_store(self, need: int) -> None:
        words = max(int(self.registers[s.TOP]) + need, 2 * self.store.ints.size)
        if not self.budget.holds(0, 8 * words):
            raise LimitError(
                f"the counts of partial matches go over the budget of {self.budget}, at {described_bytes(8 * words)}: each partition "
                "has one for each state and each start in its window\nhint: a narrower WITHIN has fewer starts; budget= allows more"
            )
        self.store = over(self.store, _store(words))

    def fit_partitions(self, partitions: int) -> None:
        """Room for so many records."""
        if self.head.size < partitions:
            self.head = roomy(self.head, partitions)

    def fit_groups(self, groups: int) -> None:
        """Room for so many groups."""
        old = self.sums
        if groups <= old.block.size:
            return
        self.sums = self._sums(max(groups, 2 * old.block.size))
        for new, before in zip(self.sums, old, strict=True):
            if before is not old.slot and before is not old.reals:
                new[: before.size] = before
        if self.vary:
            place_groups(self.sums, int(self.registers[s.GROUPS]))

    # -- what is read --------------------------------------------------------------------------------------------------

    @property
    def groups(self) -> I64:
        """The groups that have matches which no row was given for yet."""
        if self.extent == s.OF_TABLE:
            counts = self.sums.ints.reshape(-1, self.columns)[:, np.unique(self.plan.counts)]
            return np.flatnonzero(counts.any(axis=1))
        if self.own:
            return np.flatnonzero(self.sums.block)
        return np.sort(self.sums.live[: self.registers[s.LIVE]])

    def numbers(self, groups: I64) -> tuple[I64, F64]:
        """What the matches of the whole table come to, by group: [group, column]."""
        ints = self.sums.ints.reshape(-1, self.columns)[groups]
        return ints, ints.view(np.float64)

    def names(self, groups: I64) -> tuple[I64, I64]:
        """Of groups: those by keys, and what events say."""
        if self.vary:
            return self.sums.base[groups], self.sums.part[groups]
        return groups, np.zeros(groups.size, np.int64)

    def drain(self) -> Rows:
        """Take the rows out of the output buffers; numbers are [row · columns + column]."""
        count = int(self.registers[s.ROWS])
        self.registers[s.ROWS] = 0
        ints = self.rows.ints[: count * self.columns].copy()
        start, end, base, part, window = (one[:count].copy() for one in self.rows[:5])
        return Rows(start, end, base, part, window, ints, ints.view(np.float64))

    def firsts(self, column: int) -> I64:
        """The positions at which the first of partial matches begin, ascending."""
        found = np.zeros(firsts(self.plan, column, self.store, self.head, np.zeros(0, np.int64)), np.int64)
        firsts(self.plan, column, self.store, self.head, found)
        return np.unique(found[found != s.HIGHEST])

    def sweep(self, low: I64) -> None:
        """Release the records in which nothing is in the window any more; ``low``: its least start, of each partition or of all."""
        sweep(self.plan, self.store, self.head, low, self.registers)

    def rename_bases(self, renamed: I64) -> None:
        """Groups by keys have new numbers."""
        groups = int(self.registers[s.GROUPS])
        self.sums.base[:groups] = renamed[self.sums.base[:groups]]
        self._place_groups()

    def _place_groups(self) -> None:
        """Fill the table of groups anew."""
        self.sums.slot[:] = 0
        place_groups(self.sums, int(self.registers[s.GROUPS]))

    def renumber(self, renamed: I64, rows: I64, *, groups: bool) -> None:
        """Partitions have new numbers, and so have ``groups``, if they are partitions; ``rows``: those that stay."""
        self.head = kept(self.head, rows)
        if groups:
            old = self.sums
            self.sums = self._sums(max(1, rows.size))
            if self.extent == s.OF_TABLE:
                ints = old.ints.reshape(-1, self.columns)[rows]
                self.sums.ints[: ints.size] = ints.ravel()
            self.sums.block[: rows.size] = old.block[rows]
            self.sums.latest[: rows.size] = old.latest[rows]
            self.sums.next[: rows.size] = old.next[rows]
            if self.own:
                return
            live = int(self.registers[s.LIVE])
            self.sums.live[:live] = renamed[old.live[:live]]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return bytes_of((self.head,), self.store[:1], self.work, self.sums, self.rows)

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the records, the groups and the registers."""
        arrays, live = section.arrays, int(self.registers[s.LIVE])
        words = np.zeros(pack(self.plan, self.store, self.head, np.zeros(0, np.int64)), np.int64)
        if words.size:
            pack(self.plan, self.store, self.head, words)
        arrays["records"] = words
        arrays["registers"] = self.registers.copy()
        arrays["registers"][s.FREE :] = 0
        arrays["sums"] = self.sums.ints.copy()
        arrays["base"], arrays["part"] = self.sums.base.copy(), self.sums.part.copy()
        groups = self.groups if self.own else self.sums.live[:live]
        if self.own:
            arrays["next"] = self.sums.next[groups]
        arrays["live"], arrays["latest"] = groups.copy(), self.sums.latest[groups]
        size = self.columns * int(self.plan.scope[s.SIZE])
        blocks = self.sums.block[groups][:, np.newaxis] + np.arange(size)
        arrays["panes"] = self.store.ints[blocks].ravel()

    def load(self, section: Section, partitions: int, states: I64, bases: int, rows: int) -> None:
        """Take over what :meth:`save` wrote.

        Parameters
        ----------
        section
            What was written.
        partitions
            How many partitions there are.
        states
            The number here of each state of the automaton.
        bases
            How many groups by keys there are.
        rows
            How many events have come.
        """
        arrays = {name: section.numbers(name) for name in SAVED}
        registers = section.numbers("registers", size=s.REGISTERS)
        section.numbers("base", least=0, below=max(1, bases))
        most = max(1, partitions, bases, arrays["sums"].size // self.columns, arrays["base"].size)
        live = section.numbers("live", least=0, below=most)
        if arrays["sums"].size % self.columns or np.unique(live).size != live.size:
            raise ValueError("groups")
        self._check_windows(section, live, int(registers[s.NEXT]))
        section.numbers("panes", size=live.size * self.columns * int(self.plan.scope[s.SIZE]))
        section.numbers("part", size=arrays["base"].size)
        groups = max(1, partitions, arrays["sums"].size // self.columns, arrays["base"].size)
        groups = max(groups, int(arrays["live"].max(initial=0)) + 1)
        known = arrays["base"].size if self.vary else 0
        for number in (s.VISITED, s.TRIGGERS, s.NEXT, s.CONSUMED, s.LAST_LOW):
            self.registers[number] = registers[number]
        self.registers[[s.TOP, s.LIVE, s.GROUPS]] = 8, 0, min(max(0, registers[s.GROUPS]), known)
        self.registers[s.FREE :] = 0
        self.fit_groups(groups)
        for name, array in (("sums", self.sums.ints), ("base", self.sums.base), ("part", self.sums.part)):
            array[: arrays[name].size] = arrays[name]
        if self.vary:
            self._place_groups()
        self.fit_partitions(max(1, partitions))
        words, renamed = arrays["records"], np.arange(max(1, partitions))
        named = s.HIGHEST if self.vary else groups
        # Starts are panes of windows, or numbers of events.
        starts = (s.LOWEST, s.HIGHEST) if self.extent == s.OF_WINDOW else (0, max(1, rows))
        starts = starts if self.plan.scope[s.APART] else (0, 0)
        if (place := misfit(words, self.columns, renamed.size, states.size, named, *starts)) >= 0:
            raise ValueError(f"'records' holds {words[place]} at place {place}")
        while unpack(words, renamed, states, self.plan, self.store, self.head, self.registers) != _jit.DONE:
            self.grow(_jit.GROW_ARENA)
        self._load_panes(arrays["live"], arrays["latest"], arrays["panes"])
        if self.own:
            self.sums.next[live] = section.arrays["next"]

    def _check_windows(self, section: Section, live: I64, following: int) -> None:
        """Raise unless the last pane of each group lies in the next window that closes, which is ``following`` or the group's own."""
        latest = section.numbers("latest", size=live.size, least=-FAR, below=FAR)
        size, slide = int(self.plan.scope[s.SIZE]), int(self.plan.scope[s.SLIDE])
        window = section.numbers("next", size=live.size) if self.own else following
        if self.extent == s.OF_WINDOW and ((window > latest // slide) | (window <= (latest - size) // slide)).any():
            raise ValueError("the windows of groups have closed, or are far away")

    def _load_panes(self, live: I64, latest: I64, panes: I64) -> None:
        size = self.columns * int(self.plan.scope[s.SIZE])
        block = 8 << int(class_of(size))
        top = int(self.registers[s.TOP])
        if top + block * live.size > self.store.ints.size:
            self.registers[s.NEED] = block * live.size
            self.grow(_jit.GROW_ARENA)
        blocks = top + block * np.arange(live.size)
        self.store.ints[blocks[:, np.newaxis] + np.arange(size)] = panes.reshape(live.size, size)
        self.sums.block[live], self.sums.latest[live] = blocks, latest
        self.sums.live[: live.size] = live
        self.registers[[s.TOP, s.LIVE]] = top + block * live.size, live.size

    def states(self, words: I64, states: int) -> I64:
        """Which of so many states of the automaton packed records name."""
        seen = np.zeros(states, np.bool_)
        states_in(words, self.columns, seen)
        return np.flatnonzero(seen)


def _store(words: int) -> Store:
    ints = np.zeros(words, np.int64)
    return Store(ints, ints.view(np.float64))


def _work(entries: int) -> Work:
    slots = 4 << entries.bit_length()
    return zeros(Work, entries, slot=np.zeros(slots, np.int64), epoch=np.zeros(slots, np.int64))


def _clear(kind: int, ints: NDArray[Any], reals: NDArray[Any]) -> None:
    s.clear(kind, ints, reals, 0, ints.size)
