"""First events whose windows are open, and which of them close without a match, for ``timeouts=``: what every follower does alike."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64, Bits
from stretto.engines.shared.intake import Classed, Intake
from stretto.frame import Section

#: First events that are gone are left out when there are so many more than were left last time.
SWEEP_AT_LEAST = 1 << 10


class Firsts(Protocol):
    """First events in the order of the stream."""

    @property
    def position(self) -> I64: ...
    @property
    def part(self) -> I64:
        """The number of the partition."""

    @property
    def key(self) -> I64:
        """What windows bound."""


class Places(NamedTuple):
    """Partial matches; row k holds offset[k] to offset[k + 1]."""

    start: I64
    end: I64
    offset: I64
    position: I64
    mark: NDArray[np.int32]  #: by position: which variables hold the event
    reached: I64  #: the mark of the variable of the last event


class Furthest(NamedTuple):
    """Partial matches that have timed out, in the order in which their windows closed."""

    closed: I64  #: the row that closed the window
    places: Places
    expired: NDArray[Any]  #: the last value of the attribute that the window measures


class FollowingState:
    """First events: ``measure`` is what the window measures of each, ``open`` whether it is open and no match begins there."""

    firsts: Firsts

    def __init__(self, **others: Any) -> None:
        super().__init__(**others)
        self.measure: NDArray[Any] = np.zeros(0, np.int64)
        self.open: Bits = np.zeros(0, np.bool_)
        self.left = 0  #: how many there were after the last sweep

    @property
    def count(self) -> int:
        """How many first events there are, those that are gone included."""
        raise NotImplementedError

    def enter(self, before: int, measures: NDArray[Any]) -> None:
        """What the window measures of the first events from slot ``before`` on, which are open."""
        self.measure = np.concatenate((self.measure[:before], measures))
        self.open = np.concatenate((self.open[:before], np.ones(self.count - before, np.bool_)))

    def waits(self, slots: I64) -> Bits:
        """Which first events have no match so far."""
        return self.open[slots]

    def partitions(self, count: int) -> Bits:
        """Which of the first ``count`` partitions have a window that is open."""
        found = np.zeros(count, np.bool_)
        found[self.firsts.part[: self.count][self.open]] = True
        return found

    def renumber(self, renamed: I64) -> None:
        """Partitions have new numbers; those without open windows may have none."""
        parts = self.firsts.part[: self.count]
        parts[:] = renamed[parts]

    def keep_firsts(self, kept: I64) -> None:
        """Only some first events are left."""
        self.left = kept.size
        self.measure, self.open = self.measure[kept], self.open[kept]

    def save_firsts(self, section: Section) -> None:
        """Write which windows are open."""
        section.arrays["firsts.measure"] = self.measure.copy()
        section.arrays["firsts.open"] = self.open.copy()

    def load_firsts(self, section: Section) -> None:
        """Take over what :meth:`save_firsts` wrote."""
        self.measure, self.open = section.arrays["firsts.measure"], section.arrays["firsts.open"].astype(np.bool_)
        if self.measure.size != self.count or self.open.size != self.count:
            raise ValueError("firsts")


class Following(Intake):
    """A stream whose partial matches are followed; its matches are found by another run, which says where they begin.

    The parameters are those of the class behind it that reads columns.
    """

    state: Any  #: a :class:`FollowingState` that is the state of an engine
    counted: bool  #: whether the window counts events …
    by_rank: bool  #: … of a partition

    def __init__(self, *program: Any, **options: Any) -> None:
        super().__init__(*program, **options)
        self._times: NDArray[Any] = np.zeros(0, np.int64)  # what the window measures, of each row of the batch …
        self._member: Bits | None = None  # … and which of them are in the stream
        self._timed: Bits | None = None  # … and which move time on
        self._ranks: tuple[I64, I64] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._closed: tuple[I64, I64] = (np.zeros(0, np.int64), np.zeros(0, np.int64))

    # -- what an engine does by itself ----------------------------------------------------------------------------------

    def _read(self, batch: pa.RecordBatch) -> None:
        """Read the next events."""
        raise NotImplementedError

    def _places(self, slots: I64) -> Places:
        """The furthest partial matches of some first events."""
        raise NotImplementedError

    def _sweep_firsts(self) -> None:
        """Leave out the first events that are gone."""
        raise NotImplementedError

    # -- events -------------------------------------------------------------------------------------------------------

    def follow(self, batch: pa.RecordBatch) -> None:
        """Read the next events; the windows that they close are those of :meth:`closed`."""
        self.refuse_if_broken()
        before, first = self.state.count, self.rows
        self._read(batch)
        state = self.state
        positions = state.firsts.position[before : state.count]
        measures = np.zeros(positions.size, np.int64) if self.counted else self._times[positions - first]
        state.enter(before, measures)
        self._closed = self._by_rank(first) if self.counted else self._by_time(first)
        self.broken = False

    def _keep(self, alive: Bits) -> tuple[I64, I64] | None:
        """Do what all runs do; a partition stays while a window of it is open."""
        if self.keys is None:
            return None
        found = super()._keep(alive | self.state.partitions(len(self.keys)))
        if found is not None:
            self.state.renumber(found[0])
        return found

    def settle(self) -> None:
        """All that the batch closed has been taken: free what is not needed."""
        state = self.state
        self._closed = (self._closed[0][:0], self._closed[1][:0])
        if state.count > max(SWEEP_AT_LEAST, 2 * state.left):
            self._sweep_firsts()
        self._clean_now_and_then()

    def _passed(self, classed: Classed) -> int | None:
        """Keep what the windows measure."""
        self._member, self._timed = classed.member, classed.timed
        if classed.measures is not None:
            self._times = classed.measures
        return None

    def _rank(self, part: I64) -> I64:
        """The rank of every event in its substream, which is kept."""
        rank = super()._rank(part)
        self._ranks = part, rank
        return rank

    # -- windows that close -------------------------------------------------------------------------------------------

    def _by_time(self, first: int) -> tuple[I64, I64]:
        """The slots whose windows the batch closes, in order, and the rows that do: those of a later time than the windows have."""
        times, timed = self._times, self._timed
        rows = np.arange(times.size) if timed is None else np.flatnonzero(timed)
        chosen = np.maximum.accumulate(times[rows])  # late rows, which are dropped, close nothing
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
        """Do what :meth:`_by_time` does, of windows that count events."""
        state = self.state
        slots = np.flatnonzero(state.open)
        wanted = state.firsts.key[slots] + self.span + 1
        if self.by_rank:
            part, rank = self._ranks
            rows = np.arange(part.size) if self._member is None else np.flatnonzero(self._member)
            at = _rows_of(part, rank, state.firsts.part[slots], wanted)
        else:
            rows = np.arange(self.rows - first) if self._member is None else np.flatnonzero(self._member)
            at = np.searchsorted(rows, wanted - first)
            at[at == rows.size] = -1
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

    @property
    def starts(self) -> I64:
        """The first events whose windows are open, and with which no match begins so far, in the order of the stream."""
        found: I64 = self.state.firsts.position[np.flatnonzero(self.state.open)]
        return found

    def in_flight(self, most: int, chosen: Bits | None = None) -> Furthest:
        """The furthest partial matches of the first few of :attr:`starts`, or of those of them that are ``chosen``.

        Nothing changes: they can be asked for again, and time out as ever.
        """
        slots = np.flatnonzero(self.state.open)
        slots = (slots if chosen is None else slots[chosen])[:most]
        return self._furthest(slots, np.full(slots.size, self.rows))

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
        there = state.waits(slots)
        state.open[slots] = False
        return self._furthest(slots[there], closed[there])

    def _furthest(self, slots: I64, closed: I64) -> Furthest:
        size = 0 if self.window is None else self.window.size
        return Furthest(closed, self._places(slots), self.state.measure[slots] + size)

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
