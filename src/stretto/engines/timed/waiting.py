"""Matches that wait until nothing can come behind them any more: NOT at the end of a formula."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.engines.api import Matches
from stretto.engines.timed.structure import I64
from stretto.errors import LimitError
from stretto.frame import Section

#: More positions of matches that wait are refused.
MOST_CELLS = 1 << 27


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

    def __len__(self) -> int:
        return self.part.size

    @property
    def nbytes(self) -> int:
        """Bytes of what waits."""
        held = (*self.matches[:5], self.part, self.begun, self.ended)
        return sum(one.nbytes for one in held if one is not None)

    def add(self, found: Matches, part: I64, begun: NDArray[Any], ended: NDArray[Any]) -> None:
        """More matches, complete but for what may still come.

        Raises
        ------
        LimitError
            Too many wait.
        """
        old = self.matches
        offset = np.concatenate((old.offset, old.offset[-1] + found.offset[1:]))
        if offset[-1] > MOST_CELLS:
            raise LimitError(
                f"{offset.size - 1:,} matches wait for the end of their window, with {offset[-1]:,} events\n"
                "hint: a narrower WITHIN has fewer"
            )
        joined = [
            np.concatenate((getattr(old, one), getattr(found, one))) for one in ("start", "end", "position", "mark")
        ]
        self.matches = Matches(joined[0], joined[1], offset, joined[2], joined[3])
        self.part = np.concatenate((self.part, part))
        self.begun, self.ended = np.concatenate((self.begun, begun)), np.concatenate((self.ended, ended))

    def spoil(self, part: I64, measure: NDArray[Any]) -> None:
        """Drop the matches behind which one of some events comes, by their partitions and measures. O(n log n) of both."""
        if not len(self) or not part.size:
            return
        # In each partition by measure, an event before the matches that end with it: it must come later than these.
        events = part.size
        parts, measures = np.concatenate((part, self.part)), np.concatenate((measure, self.ended))
        kind = np.concatenate((np.zeros(events, np.int8), np.ones(len(self), np.int8)))
        order = np.lexsort((kind, measures, parts))
        place = np.where(order < events, np.arange(order.size), order.size)
        following = np.minimum.accumulate(place[::-1])[::-1]
        found = following[np.argsort(order)[events:]]
        at = order[np.minimum(found, order.size - 1)]
        spoilt = (found < order.size) & (parts[at] == self.part)
        spoilt &= measures[at] - self.begun <= self.size
        if spoilt.any():
            self._keep(np.flatnonzero(~spoilt))

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


def taken(found: Matches, rows: I64) -> Matches:
    """Some rows of a result."""
    lengths = np.diff(found.offset)[rows]
    offset = np.zeros(rows.size + 1, np.int64)
    np.cumsum(lengths, out=offset[1:])
    at = np.repeat(found.offset[rows] - offset[:-1], lengths) + np.arange(offset[-1])
    return Matches(found.start[rows], found.end[rows], offset, found.position[at], found.mark[at])
