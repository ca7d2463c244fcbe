"""One stream through :mod:`stretto.engines.nfab.partial`: which windows close, and the partial matches that time out with them."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto import _jit
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.compiled import Compiled
from stretto.engines.nfab.partial import NONE, WORDS, Firsts, follow
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.nfab.state import NEVER, NfabState
from stretto.engines.nfab.structure import Events
from stretto.engines.shared.intake import Bits
from stretto.frame import Section

I64 = NDArray[np.int64]

#: First events that are gone are left out when there are so many more than were left last time.
SWEEP_AT_LEAST = 1 << 10

#: A window that is open.
OPEN = (1 << 62) - 1


class Furthest(NamedTuple):
    """Partial matches that have timed out, in the order in which their windows closed; row k holds offset[k] to offset[k + 1]."""

    closed: I64  #: the row that closed the window
    offset: I64
    position: I64
    mark: NDArray[np.int32]  #: by position: the component
    expired: NDArray[Any]  #: the last value of the attribute that the window measures


class FollowingState(NfabState):
    """The arrays of runs that are followed, and of their first events.

    ``measure`` is what the window measures of each first event; ``open`` says whether its window is open, and no match begins there.
    """

    def __init__(self, *, words: int, capacity: int, **others: Any) -> None:
        super().__init__(words=words + WORDS, capacity=capacity, **others)
        self.firsts = _room_for(capacity)
        self.measure: NDArray[Any] = np.zeros(0, np.int64)
        self.open: Bits = np.zeros(0, np.bool_)
        self.left = 0  #: how many there were after the last sweep

    @property
    def count(self) -> int:
        """How many first events there are, those that are gone included."""
        return int(self.firsts.used[0])

    def grow_firsts(self) -> None:
        """Room for twice as many."""
        count = self.count
        fresh = _room_for(2 * max(1, count))
        for name, array in self.firsts._asdict().items():
            getattr(fresh, name)[: array.size] = array
        self.firsts = fresh

    def enter(self, before: int, measures: NDArray[Any]) -> None:
        """What the window measures of the first events from slot ``before`` on, which are open."""
        self.measure = np.concatenate((self.measure[:before], measures))
        self.open = np.concatenate((self.open[:before], np.ones(self.count - before, np.bool_)))

    def _needed(self) -> I64:
        nodes = self.firsts.node[: self.count]
        nodes[: self.open.size][~self.open] = s.NIL  # those of the batch at hand are behind
        return nodes

    def _moved(self, place: I64) -> None:
        nodes = self.firsts.node[: self.count]
        nodes[:] = place[nodes]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        own = (*self.firsts, self.measure, self.open)
        return super().nbytes + sum(array.nbytes for array in own)

    def partitions(self, count: int) -> Bits:
        """Which of the first ``count`` partitions have a window that is open."""
        found = np.zeros(count, np.bool_)
        found[self.firsts.part[: self.count][self.open]] = True
        return found

    def renumber(self, renamed: I64) -> None:
        """Partitions have new numbers; those without open windows may have none."""
        parts = self.firsts.part[: self.count]
        parts[:] = renamed[parts]

    def sweep_firsts(self, partitions: int) -> None:
        """Leave out the first events that are gone; runs that begin there are no longer followed. O(runs + first events)."""
        count = self.count
        kept = np.flatnonzero(self.open[:count])
        renamed = np.full(count + 1, NONE, np.int64)  # the last for those that had none
        renamed[kept] = np.arange(kept.size)
        runs, word = self.listed(partitions), self.runs.V.shape[1] - 2
        self.runs.V[runs, word] = renamed[self.runs.V[runs, word]]
        self.runs.start[runs[self.runs.V[runs, word] == NONE]] = NEVER
        for name, array in self.firsts._asdict().items():
            if name != "used":
                array[: kept.size] = array[kept]
        self.firsts.used[0] = self.left = kept.size
        self.measure, self.open = self.measure[kept], self.open[kept]

    def save(self, section: Section, partitions: int) -> None:
        """As of all runs, with the first events."""
        super().save(section, partitions)
        for name, array in self.firsts._asdict().items():
            section.arrays[f"firsts.{name}"] = array[: self.count].copy() if name != "used" else array.copy()
        section.arrays["firsts.measure"] = self.measure.copy()
        section.arrays["firsts.open"] = self.open.copy()

    def load(self, section: Section, *others: Any) -> None:
        """As of all runs, with the first events."""
        super().load(section, *others)
        count = int(section.arrays["firsts.used"][0])
        self.firsts = _room_for(2 * max(1, count))
        for name, array in self.firsts._asdict().items():
            known = section.arrays[f"firsts.{name}"].astype(np.int64)
            array[: known.size] = known
        self.measure, self.open = section.arrays["firsts.measure"], section.arrays["firsts.open"].astype(np.bool_)
        if self.measure.size != count or self.open.size != count:
            raise ValueError("firsts")


def _room_for(size: int) -> Firsts:
    position, part, key, node, length = (np.zeros(max(1, size), np.int64) for _ in range(5))
    return Firsts(position, part, key, node, length, np.zeros(1, np.int64))


class FollowingRun(NfabRunner):
    """A stream whose partial matches are followed; its matches are found by another run, which says where they begin.

    The parameters are those of :class:`NfabRunner`.
    """

    state_type: ClassVar[type[NfabState]] = FollowingState
    state: FollowingState

    def __init__(self, program: Compiled, *, late: str, capacity: int) -> None:
        super().__init__(program, late=late, capacity=capacity)
        machine = program.machine
        components = machine.kleene.size
        ends = (machine.left < 0) | (machine.right == components)
        named = np.array([program.named(one) for one in program.nfab.negations], np.int64)
        #: What must not be before or behind a match is asked of whole matches; else a negation, when all is there that it names.
        right = np.where(ends, components, named)
        self.machine = machine._replace(right=right, merges=not program.why_single)
        self._times: NDArray[Any] = np.zeros(0, np.int64)  # what the window measures, of each row of the batch …
        self._member: Bits | None = None  # … and which of them are in the stream
        self._ranks: tuple[I64, I64] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._closed: tuple[I64, I64] = (np.zeros(0, np.int64), np.zeros(0, np.int64))

    # -- events -------------------------------------------------------------------------------------------------------

    def follow(self, batch: pa.RecordBatch) -> None:
        """Read the next events; the windows that they close are those of :meth:`closed`."""
        self.refuse_if_broken()
        before, first = self.state.count, self.rows
        events, _ = self.prepare(batch)
        self._follow(events)
        state = self.state
        positions = state.firsts.position[before : state.count]
        measures = np.zeros(positions.size, np.int64) if self.counted else self._times[positions - first]
        state.enter(before, measures)
        self._closed = self._by_rank(first) if self.counted else self._by_time(first)
        self.broken = False

    def _keep(self, alive: Bits) -> tuple[I64, I64] | None:
        """As of all runs; where windows count the events of a partition, it goes on counting while one is open."""
        if not self.counted or self.keys is None:
            return super()._keep(alive)
        found = super()._keep(alive | self.state.partitions(len(self.keys)))
        if found is not None:
            self.state.renumber(found[0])
        return found

    def settle(self) -> None:
        """All that the batch closed has been taken: free what is not needed."""
        state = self.state
        self._closed = (self._closed[0][:0], self._closed[1][:0])
        if state.count > max(SWEEP_AT_LEAST, 2 * state.left):
            state.sweep_firsts(self.partitions)
        self._clean_now_and_then()

    def _follow(self, events: Events) -> None:
        state = self.state
        state.registers[s.CURSOR] = state.registers[s.BUSY] = 0
        while True:
            status = follow(self.program.theta, events, self.machine, state.memory, state.firsts)
            if status == _jit.DONE:
                return
            if status == _jit.GROW_OUTPUT:
                state.grow_firsts()
                state.check_room()
                continue
            for _ in self._act(status, events):
                raise AssertionError("nothing is written")

    def _passed(self, measures: NDArray[np.generic] | None, member: Bits | None) -> int | None:
        """Keep what the windows measure."""
        self._member = member
        if measures is not None:
            self._times = measures
        return None

    def _rank(self, part: I64) -> I64:
        """The rank of every event in its substream, which is kept."""
        rank = super()._rank(part)
        self._ranks = part, rank
        return rank

    # -- windows that close -------------------------------------------------------------------------------------------

    def _by_time(self, first: int) -> tuple[I64, I64]:
        """The slots whose windows the batch closes, in order, and the rows that do: those of a later time than the windows have."""
        times, member = self._times, self._member
        rows = np.arange(times.size) if member is None else np.flatnonzero(member)
        chosen = times[rows]
        state = self.state
        slots = np.flatnonzero(state.open)
        if not chosen.size or not slots.size:
            return slots[:0], slots[:0]
        slots = slots[self._is_over(chosen[-1], state.measure[slots])]
        starts = state.measure[slots]
        assert self.window is not None
        at = np.searchsorted(chosen, starts + self.window.size, side="right")
        # Sums of floats are rounded, and it is the difference that counts.
        while (back := (at > 0) & self._is_over(chosen[at - 1], starts)).any():
            at = at - back
        while (on := ~self._is_over(chosen[at], starts)).any():
            at = at + on
        return slots, rows[at] + first

    def _is_over(self, time: Any, starts: NDArray[Any]) -> Bits:
        """Whether windows that begin at some values do not reach another."""
        assert self.window is not None
        over: Bits = time - starts > self.window.size
        return over

    def _by_rank(self, first: int) -> tuple[I64, I64]:
        """As :meth:`_by_time`, of windows that count events of the partition."""
        part, rank = self._ranks
        rows = np.arange(part.size) if self._member is None else np.flatnonzero(self._member)
        state = self.state
        slots = np.flatnonzero(state.open)
        at = _rows_of(part, rank, state.firsts.part[slots], state.firsts.key[slots] + self.span + 1)
        slots, closing = slots[at >= 0], rows[at[at >= 0]] + first
        order = np.argsort(closing, kind="stable")
        return slots[order], closing[order]

    @property
    def closing(self) -> I64:
        """The rows of the batch that close windows, each once."""
        return np.unique(self._closed[1])

    def closed(self, last: int | None = None, *, by_start: bool = False) -> Furthest:
        """What has timed out up to one row that closes windows, or up to a first event; ``None``: all else. Each is given once."""
        slots, rows = self._closed
        count = slots.size
        if last is not None:
            keys = self.state.firsts.position[slots] if by_start else rows
            count = int(np.searchsorted(keys, last, side="right"))
        self._closed = slots[count:], rows[count:]
        return self._timed_out(slots[:count], rows[:count])

    def pass_by(self, value: int | float) -> None:
        """Nothing before ``value`` will come; the windows that this closes are those of :meth:`closed`."""
        if self.last_time is None or value > self.last_time:
            self.last_time = value
        if self.window is not None and self.window.attribute == self.schema.time:
            self.open_from(self.last_time)
            slots = np.flatnonzero(self.state.open)
            slots = slots[self._is_over(self.last_time, self.state.measure[slots])]
            self._closed = slots, np.full(slots.size, self.rows)

    def _timed_out(self, slots: I64, closed: I64) -> Furthest:
        """The furthest partial matches of slots where no match begins; their windows are closed."""
        state = self.state
        there = state.open[slots] & (state.firsts.node[slots] != s.NIL)
        state.open[slots] = False
        slots, closed = slots[there], closed[there]
        offset = np.zeros(slots.size + 1, np.int64)
        np.cumsum(state.firsts.length[slots], out=offset[1:])
        position, mark = np.zeros(offset[-1], np.int64), np.zeros(offset[-1], np.int32)
        node, at = state.firsts.node[slots], offset[1:] - 1
        while node.size:  # the last events of all, then those before them
            position[at], mark[at] = state.nodes.position[node], state.nodes.label[node]
            node, at = state.nodes.previous[node], at - 1
            node, at = node[node != s.NIL], at[node != s.NIL]
        size = 0 if self.window is None else self.window.size
        return Furthest(closed, offset, position, mark, state.measure[slots] + size)

    def begin_matches(self, starts: I64) -> None:
        """Matches begin at these positions."""
        state = self.state
        known = state.firsts.position[: state.count]
        at = np.searchsorted(known, starts)
        there = at < known.size
        at = at[there]
        state.open[at[known[at] == starts[there]]] = False

    # -- what it holds ------------------------------------------------------------------------------------------------

    @property
    def follows(self) -> bool:
        """Whether a window is open, of a first event without a match."""
        return bool(self.state.open.any())

    @property
    def first_end(self) -> int | float | None:
        """The last time of the first window that is open; ``None``: there is none, or time closes none."""
        if self.window is None or self.window.attribute is None or self.window.attribute != self.schema.time:
            return None
        slots = np.flatnonzero(self.state.open)
        return self.state.measure[slots[0]].item() + self.window.size if slots.size else None

    def live(self) -> I64:
        """The rows that partial matches hold (sorted)."""
        self.state.sweep_firsts(self.partitions)
        return super().live()

    def forget(self) -> None:
        """As of all runs, without the first events that are gone."""
        self.state.sweep_firsts(self.partitions)
        super().forget()


def _rows_of(part: I64, rank: I64, parts: I64, ranks: I64) -> I64:
    """Where events with some partitions and ranks stand among others; −1: nowhere. O(n log n)."""
    if not part.size:
        return np.full(parts.size, -1, np.int64)
    known, dense = np.unique(part, return_inverse=True)
    least, width = rank.min(), rank.max() - rank.min() + 1
    codes = dense * width + (rank - least)
    order = np.argsort(codes)
    own = np.minimum(np.searchsorted(known, parts), known.size - 1)
    there = (known[own] == parts) & (ranks >= least) & (ranks < least + width)
    wanted = own * width + (ranks - least)
    at = order[np.minimum(np.searchsorted(codes[order], wanted), order.size - 1)]
    found: I64 = np.where(there & (codes[at] == wanted), at, -1)
    return found
