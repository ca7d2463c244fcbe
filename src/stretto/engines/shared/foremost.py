"""The matches that are held for each window and group, of which the foremost stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.api import Matches
from stretto.frame import Section

I64 = NDArray[np.int64]


class Rows(NamedTuple):
    """Matches that are held, row by row, and what they are compared by."""

    start: I64
    end: I64
    offset: I64
    position: I64
    mark: NDArray[np.int32]
    score: NDArray[Any]  #: the greater the better
    group: I64
    window: I64


@inlined
def _comes_before(a: int, b: int, rows: Rows) -> bool:
    """Whether row a comes before row b: by window and group, by score, then what is later (see ``best.py``). O(length) at most."""
    if rows.window[a] != rows.window[b]:
        return bool(rows.window[a] < rows.window[b])
    if rows.group[a] != rows.group[b]:
        return bool(rows.group[a] < rows.group[b])
    if rows.score[a] != rows.score[b]:
        return bool(rows.score[a] > rows.score[b])
    if rows.start[a] != rows.start[b]:
        return bool(rows.start[a] > rows.start[b])
    if rows.end[a] != rows.end[b]:
        return bool(rows.end[a] > rows.end[b])
    at, other = rows.offset[a + 1] - 1, rows.offset[b + 1] - 1
    while at >= rows.offset[a] and other >= rows.offset[b]:
        if rows.position[at] != rows.position[other]:
            return bool(rows.position[at] > rows.position[other])
        at -= 1
        other -= 1
    return bool(at >= rows.offset[a] and other < rows.offset[b])


@jit
def foremost(rows: Rows, most: int, order: I64, other: I64) -> int:
    """The first ``most`` rows of each window and group into ``order``, in order; gives how many. O(rows · log rows) comparisons.

    ``order`` and ``other`` have room for all rows.
    """
    count = rows.start.size
    for at in range(count):
        order[at] = at
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            left, right = begin, middle
            for at in range(begin, end):
                if left < middle and (right >= end or not _comes_before(order[right], order[left], rows)):
                    other[at] = order[left]
                    left += 1
                else:
                    other[at] = order[right]
                    right += 1
        for at in range(count):
            order[at] = other[at]
        width *= 2
    kept = given = 0
    for at in range(count):
        row = order[at]
        if at and (rows.window[row] != rows.window[other[0]] or rows.group[row] != rows.group[other[0]]):
            given = 0
        other[0] = row
        if given < most:
            order[kept] = row
            kept += 1
        given += 1
    return kept


class Held:
    """The foremost matches of each window and group so far.

    Parameters
    ----------
    most
        How many of each stay.
    scores
        The type of scores.
    """

    def __init__(self, most: int, scores: np.dtype[Any]) -> None:
        self.most = most
        self.scores = scores
        self._settled = _none(scores)
        self._fresh: list[Rows] = []  # what has come since, of which some may be none of the foremost

    def __len__(self) -> int:
        return self._settled.start.size + sum(one.start.size for one in self._fresh)

    def add(self, rows: Rows) -> None:
        """Take in more. They are compared with the others when they are as many, so that a row costs O(log rows) comparisons."""
        self._fresh.append(rows)
        if len(self) >= 2 * self._settled.start.size:
            self.settle()

    def settle(self) -> None:
        """Leave out what is not among the foremost any more."""
        if self._fresh:
            rows = _joined([self._settled, *self._fresh])
            order = np.empty(rows.start.size, np.int64)
            count = foremost(rows, self.most, order, np.empty(max(1, order.size), np.int64))
            self._settled, self._fresh = some(rows, order[:count]), []

    @property
    def rows(self) -> Rows:
        """The foremost, in order."""
        self.settle()
        return self._settled

    def full(self) -> tuple[I64, I64, NDArray[Any]]:
        """The windows and groups that have as many as are asked for, and the score of the last of each, as far as compared."""
        window, group = self._settled.window, self._settled.group
        ends = np.flatnonzero((np.diff(window) != 0) | (np.diff(group) != 0))
        ends = np.append(ends, window.size - 1) if window.size else ends
        last = ends[np.diff(ends, prepend=-1) >= self.most]
        return window[last], group[last], self._settled.score[last]

    def take(self, until: int | None) -> tuple[Matches, I64]:
        """Give away the matches of windows before one, or all; and which windows they are of."""
        rows = self.rows
        count = rows.start.size if until is None else int(np.searchsorted(rows.window, until))
        given = some(rows, np.arange(count))
        self._settled = some(rows, np.arange(count, rows.start.size))
        return Matches(given.start, given.end, given.offset, given.position, given.mark), given.window

    def live(self) -> I64:
        """The positions that they hold (sorted)."""
        return np.unique(np.concatenate((self.rows.start, self.rows.end, self.rows.position)))

    def save(self, section: Section) -> None:
        """Write the matches."""
        section.arrays |= self.rows._asdict()

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        found = {name: section.arrays[name].astype(np.int64) for name in Rows._fields if name not in ("mark", "score")}
        mark, score = section.arrays["mark"].astype(np.int32), section.arrays["score"].astype(self.scores)
        self._settled = Rows(mark=mark, score=score, **found)

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return sum(array.nbytes for rows in (self._settled, *self._fresh) for array in rows)


def _none(scores: np.dtype[Any]) -> Rows:
    start, end, position, group, window = (np.zeros(0, np.int64) for _ in range(5))
    return Rows(start, end, np.zeros(1, np.int64), position, np.zeros(0, np.int32), np.zeros(0, scores), group, window)


def _joined(pieces: Sequence[Rows]) -> Rows:
    """The rows of all pieces."""
    joined = {name: np.concatenate([getattr(one, name) for one in pieces]) for name in Rows._fields}
    sizes = np.concatenate([np.diff(one.offset) for one in pieces])
    return Rows(**joined | {"offset": np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])})


def some(of: Rows, rows: I64) -> Rows:
    """Some rows, in this order."""
    sizes = np.diff(of.offset)[rows]
    offset = np.zeros(rows.size + 1, np.int64)
    np.cumsum(sizes, out=offset[1:])
    cells = np.arange(offset[-1]) + np.repeat(of.offset[rows] - offset[:-1], sizes)
    own = {name: getattr(of, name)[rows] for name in ("start", "end", "score", "group", "window")}
    return Rows(offset=offset, position=of.position[cells], mark=of.mark[cells], **own)
