"""Matches that wait until nothing can come behind them any more: NOT at the end of a formula."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.engines.api import Matches
from stretto.engines.timed.structure import I64
from stretto.errors import LimitError
from stretto.frame import Section

#: More positions of matches that wait are refused: a gigabyte at most.
MOST_CELLS = 1 << 26


class Waiting:
    """Matches with their partition and the measures of their first and last event.

    Parameters
    ----------
    size
        How long after its first event a match can still be spoilt.
    """

    def __init__(self, size: int | float) -> None:
        self.size = size
        kind = np.float64 if isinstance(size, float) else np.int64
        none = np.zeros(0, np.int64)
        self.matches = Matches(none, none, np.zeros(1, np.int64), none, np.zeros(0, np.int32))
        self.part = none
        self.begun: NDArray[Any] = np.zeros(0, kind)
        self.ended: NDArray[Any] = np.zeros(0, kind)
        self._added: list[tuple[Matches, I64, NDArray[Any], NDArray[Any]]] = []
        self._cells = 0  # positions of all

    def __len__(self) -> int:
        return self.part.size

    @property
    def nbytes(self) -> int:
        """Bytes of what waits."""
        held = (*self.matches[:5], self.part, self.begun, self.ended)
        return sum(one.nbytes for one in held if one is not None)

    def add(self, found: Matches, part: I64, begun: NDArray[Any], ended: NDArray[Any]) -> None:
        """More matches, complete but for what may still come; they are there after :meth:`join`.

        Raises
        ------
        LimitError
            Too many wait.
        """
        self._cells += int(found.offset[-1])
        if self._cells > MOST_CELLS:
            waiting = len(self) + part.size + sum(one.size for _, one, *_ in self._added)
            raise LimitError(
                f"{waiting:,} matches wait for the end of their window, with {self._cells:,} events, and more would\n"
                "hint: SELECT MAX or NEXT, KEEP, or a narrower WITHIN has fewer"
            )
        if part.size:
            self._added.append((found, part, begun, ended))

    def join(self) -> None:
        """Take in what was added: once for many pieces, as it costs what all matches that wait cost."""
        if not self._added:
            return
        found, part, begun, ended = zip((self.matches, self.part, self.begun, self.ended), *self._added, strict=True)
        self._added = []
        lengths = np.concatenate([np.diff(one.offset) for one in found])
        offset = np.zeros(lengths.size + 1, np.int64)
        np.cumsum(lengths, out=offset[1:])
        start, end, position, mark = (
            np.concatenate([getattr(one, name) for one in found]) for name in ("start", "end", "position", "mark")
        )
        self.matches = Matches(start, end, offset, position, mark)
        self.part, self.begun, self.ended = np.concatenate(part), np.concatenate(begun), np.concatenate(ended)

    def spoil(self, part: I64, measure: NDArray[Any]) -> None:
        """Drop the matches behind which one of some events comes, by their partitions and measures."""
        spared = self.spared(self.part, self.begun, self.ended, part, measure)
        if not spared.all():
            self._keep(np.flatnonzero(spared))

    def spared(
        self, own: I64, begun: NDArray[Any], ended: NDArray[Any], part: I64, measure: NDArray[Any]
    ) -> NDArray[np.bool_]:
        """Which matches (partition, measures of the first and last event) none of some events spoils. O(n log n) of both."""
        if not own.size or not part.size:
            return np.ones(own.size, np.bool_)
        # In each partition by measure, an event before the matches that end with it: it must come later than these.
        events = part.size
        parts, measures = np.concatenate((part, own)), np.concatenate((measure, ended))
        kind = np.concatenate((np.zeros(events, np.int8), np.ones(own.size, np.int8)))
        order = np.lexsort((kind, measures, parts))
        place = np.where(order < events, np.arange(order.size), order.size)
        following = np.minimum.accumulate(place[::-1])[::-1]
        found = following[np.argsort(order)[events:]]
        at = order[np.minimum(found, order.size - 1)]
        spoilt: NDArray[np.bool_] = (found < order.size) & (parts[at] == own) & (measures[at] - begun <= self.size)
        return ~spoilt

    def released(self, now: int | float | None) -> Matches | None:
        """Take out those that nothing at ``now`` or later can spoil (``None``: all), in the order of their starts."""
        done = np.ones(len(self), np.bool_) if now is None else now - self.begun > self.size
        if not done.any():
            return None
        rows = np.flatnonzero(done)
        found = taken(self.matches, rows[np.argsort(self.matches.start[rows], kind="stable")])
        self._keep(np.flatnonzero(~done))
        return found

    def rename(self, renamed: I64) -> None:
        """Partitions have other numbers."""
        self.part = renamed[self.part]

    def _keep(self, rows: I64) -> None:
        self.matches = taken(self.matches, rows)
        self.part, self.begun, self.ended = self.part[rows], self.begun[rows], self.ended[rows]
        self._cells = int(self.matches.offset[-1])

    def save(self, section: Section) -> None:
        """Write what waits."""
        for name in ("start", "end", "offset", "position", "mark"):
            section.arrays[name] = getattr(self.matches, name)
        section.arrays |= {"part": self.part, "begun": self.begun, "ended": self.ended}

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        held = section.arrays
        start, end, offset, position = (held[name].astype(np.int64) for name in ("start", "end", "offset", "position"))
        self.matches = Matches(start, end, offset, position, held["mark"].astype(np.int32))
        self.part = held["part"].astype(np.int64)
        self.begun, self.ended = held["begun"].astype(self.begun.dtype), held["ended"].astype(self.ended.dtype)
        self._cells = position.size


def taken(found: Matches, rows: I64) -> Matches:
    """Some rows of a result."""
    lengths = np.diff(found.offset)[rows]
    offset = np.zeros(rows.size + 1, np.int64)
    np.cumsum(lengths, out=offset[1:])
    at = np.repeat(found.offset[rows] - offset[:-1], lengths) + np.arange(offset[-1])
    return Matches(found.start[rows], found.end[rows], offset, found.position[at], found.mark[at])
