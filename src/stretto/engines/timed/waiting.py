"""Matches that wait until nothing can come behind them any more: NOT at the end of a formula."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.engines.api import Matches
from stretto.engines.limits import TooMany
from stretto.frame import Section

#: What has fewer matches that wait.
FEWER = "SELECT MAX or NEXT, KEEP, or a narrower WITHIN has fewer"


class Waiting:
    """Matches with their partition and the measures of their first and last event.

    Parameters
    ----------
    size
        How long after its first event a match can still be spoilt.
    budget
        How much may wait.
    """

    def __init__(self, size: int | float, budget: Budget) -> None:
        self.size, self.budget = size, budget
        kind = np.float64 if isinstance(size, float) else np.int64
        self.matches, self.part = Matches.none(), np.zeros(0, np.int64)
        self.begun: NDArray[Any] = np.zeros(0, kind)
        self.ended: NDArray[Any] = np.zeros(0, kind)
        self._added: list[tuple[Matches, I64, NDArray[Any], NDArray[Any]]] = []
        self._bytes = 0  # of what was added
        self._listed = (-1, 0, 0)  # the last event with matches, how many were listed, and their bytes

    def __len__(self) -> int:
        return self.part.size

    @property
    def nbytes(self) -> int:
        """Bytes of what waits."""
        return self._bytes + self.matches.nbytes + sum(one.nbytes for one in (self.part, self.begun, self.ended))

    def add(
        self,
        found: Matches,
        part: I64,
        begun: NDArray[Any],
        ended: NDArray[Any],
        spoilers: tuple[I64, I64, NDArray[Any]],
    ) -> None:
        """More matches, complete but for what may still come, which are there after :meth:`join`, without those that are spoilt.

        Raises
        ------
        TooMany
            More would wait than may, or be spoilt of one event.
        """
        if not part.size:
            return
        event = int(found.end[-1])
        own = int(np.searchsorted(found.end, event))
        _, rows, size = self._listed if self._listed[0] == event else (event, 0, 0)
        rows, size = rows + part.size - own, size + found.nbytes * (part.size - own) // part.size
        self._listed = (event, rows, size)
        if not self.budget.holds(0, size):
            what = f"completes more than {rows:,} matches, which wait for the end of their window"
            raise TooMany(event, what, FEWER, self.budget)
        kept = np.flatnonzero(self.spared(found.end, part, begun, *spoilers))
        if not kept.size:
            return
        one = found.taken(kept), part[kept], begun[kept], ended[kept]
        self._added.append(one)
        self._bytes += one[0].nbytes + 3 * one[1].nbytes
        if not self.budget.holds(0, self.nbytes):
            waiting = len(self) + sum(part.size for _, part, *_ in self._added)
            what = f"completes matches that wait for the end of their window, of which there are {waiting:,}"
            raise TooMany(event, what, FEWER, self.budget)

    def join(self) -> None:
        """Take in what was added: once for many pieces, as it costs what all matches that wait cost."""
        if not self._added:
            return
        found, part, begun, ended = zip((self.matches, self.part, self.begun, self.ended), *self._added, strict=True)
        self._added, self._bytes = [], 0
        self.matches = Matches.joined(found)
        self.part, self.begun, self.ended = np.concatenate(part), np.concatenate(begun), np.concatenate(ended)

    def spoil(self, position: I64, part: I64, measure: NDArray[Any]) -> None:
        """Drop the matches behind which one of some events comes, by their positions, partitions and measures."""
        spared = self.spared(self.matches.end, self.part, self.begun, position, part, measure)
        if not spared.all():
            self._keep(np.flatnonzero(spared))

    def spared(
        self, end: I64, own: I64, begun: NDArray[Any], position: I64, part: I64, measure: NDArray[Any]
    ) -> NDArray[np.bool_]:
        """Which matches (last position, partition, measure of the first event) none of some events spoils. O(n log n) of both."""
        if not own.size or not part.size:
            return np.ones(own.size, np.bool_)
        # In each partition by position, an event before the matches that end with it: it must come later than these.
        events = part.size
        parts, places = np.concatenate((part, own)), np.concatenate((position, end))
        kind = np.concatenate((np.zeros(events, np.int8), np.ones(own.size, np.int8)))
        order = np.lexsort((kind, places, parts))
        place = np.where(order < events, np.arange(order.size), order.size)
        following = np.minimum.accumulate(place[::-1])[::-1]
        found = following[np.argsort(order)[events:]]
        at = order[np.minimum(found, order.size - 1)]
        passed = measure[np.minimum(at, events - 1)] - begun
        spoilt: NDArray[np.bool_] = (found < order.size) & (parts[at] == own) & (passed <= self.size)
        return ~spoilt

    def released(self, now: int | float | None, *, by_end: bool = False) -> Matches | None:
        """Take out those that nothing at ``now`` or later can spoil (``None``: all), in the order of their starts.

        ``by_end``: in the order of their ends, and those of one event together, when nothing can spoil what begins with it either.
        """
        times, places = (self.ended, self.matches.end) if by_end else (self.begun, self.matches.start)
        done = np.ones(len(self), np.bool_) if now is None else now - times > self.size
        if not done.any():
            return None
        rows = np.flatnonzero(done)
        found = self.matches.taken(rows[np.argsort(places[rows], kind="stable")])
        self._keep(np.flatnonzero(~done))
        return found

    def rename(self, renamed: I64) -> None:
        """Partitions have other numbers."""
        self.part = renamed[self.part]

    def _keep(self, rows: I64) -> None:
        self.matches = self.matches.taken(rows)
        self.part, self.begun, self.ended = self.part[rows], self.begun[rows], self.ended[rows]

    def save(self, section: Section) -> None:
        """Write what waits."""
        self.matches.keep(section)
        section.arrays |= {"part": self.part, "begun": self.begun, "ended": self.ended}

    def load(self, section: Section, partitions: int, rows: int, marks: int) -> None:
        """Take over what :meth:`save` wrote, of a stream of so many rows in so many partitions, with so many marks."""
        held = section.arrays
        self.matches = Matches.kept(section, rows, marks)
        self.part = section.numbers("part", size=self.matches.start.size, least=0, below=max(1, partitions))
        self.begun, self.ended = held["begun"].astype(self.begun.dtype), held["ended"].astype(self.ended.dtype)
        if not self.part.size == self.begun.size == self.ended.size:
            raise ValueError("matches that wait")
