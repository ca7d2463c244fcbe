"""The matches that are held for each window and group, of which the foremost stay."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.api import Matches
from stretto.frame import Section

I64 = NDArray[np.int64]

#: What a row, and each of its positions, takes.
ROW_BYTES, CELL_BYTES = 48, 12


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


class Work(NamedTuple):
    """Room for the order of rows, twice, and for where their runs begin."""

    order: I64
    other: I64
    runs: I64


@jit
def foremost(rows: Rows, settled: int, count: int, most: int, work: Work, into: Rows) -> int:
    """The first ``most`` rows of each window and group, in order; gives how many.

    The first ``settled`` of ``count`` rows are in order already. The others are merged by the runs that they come in, and events
    that come by time give long ones. Cost: O(count · log runs) comparisons, and O(positions).
    """
    order, other, runs = work
    for at in range(count):
        order[at] = at
    many = 0
    for at in range(settled, count):
        if at == settled or _comes_before(at, at - 1, rows):
            runs[many] = at
            many += 1
    while many > 1:
        left = 0
        for at in range(0, many, 2):
            begin, middle = runs[at], runs[at + 1] if at + 1 < many else count
            end = runs[at + 2] if at + 2 < many else count
            _merge(begin, middle, end, order, other, rows)
            runs[left] = begin
            left += 1
        order, other = other, order
        many = left
    for at in range(settled):
        order[at] = at
    _merge(0, settled, count, order, other, rows)
    return _keep(other, count, most, rows, into)


@inlined
def _merge(begin: int, middle: int, end: int, order: I64, into: I64, rows: Rows) -> None:
    """Two runs of rows that lie side by side, as one."""
    left, right = begin, middle
    for at in range(begin, end):
        if left < middle and (right >= end or not _comes_before(order[right], order[left], rows)):
            into[at] = order[left]
            left += 1
        else:
            into[at] = order[right]
            right += 1


@inlined
def _keep(order: I64, count: int, most: int, rows: Rows, into: Rows) -> int:
    """The first rows of each window and group into other arrays; how many."""
    kept = cells = given = 0
    before = -1
    for at in range(count):
        row = order[at]
        if before < 0 or rows.window[row] != rows.window[before] or rows.group[row] != rows.group[before]:
            given = 0
        before = row
        if given < most:
            cells = _copy(row, kept, cells, rows, into)
            kept += 1
        given += 1
    return kept


@inlined
def _copy(row: int, to: int, cells: int, rows: Rows, into: Rows) -> int:
    """A row into other arrays; how many positions these have now."""
    into.start[to], into.end[to], into.score[to] = rows.start[row], rows.end[row], rows.score[row]
    into.group[to], into.window[to] = rows.group[row], rows.window[row]
    for cell in range(rows.offset[row], rows.offset[row + 1]):
        into.position[cells], into.mark[cells] = rows.position[cell], rows.mark[cell]
        cells += 1
    into.offset[to + 1] = cells
    return cells


@jit
def _copied(of: Rows, rows: I64, into: Rows) -> None:
    """Some rows into other arrays, in this order. O(positions)."""
    cells = 0
    for at in range(rows.size):
        cells = _copy(rows[at], at, cells, of, into)


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
        self._rows, self._spare = _room(0, 0, scores), _room(0, 0, scores)  # one is merged into the other
        self._work = Work(*np.zeros((3, 0), np.int64))
        self._count = 0
        self._settled = 0  # so many of them are in order; the others came since, and may be none of the foremost

    def __len__(self) -> int:
        return self._count

    def add(self, rows: Rows) -> bool:
        """Take in more; whether all were compared.

        They are compared when they are half as many as the others, so that a row costs O(log rows) comparisons.
        """
        count, cells = self._count, int(self._rows.offset[self._count])
        self._rows = _with_room(self._rows, count, count + rows.start.size, cells, cells + rows.position.size)
        _put(rows, self._rows, count, cells)
        self._count += rows.start.size
        if self._count < self._settled + self._settled // 2:
            return False
        self.settle()
        return True

    def settle(self) -> None:
        """Leave out what is not among the foremost any more."""
        if self._settled == self._count:
            return
        room, cells = self._rows.start.size, self._rows.position.size
        if self._spare.start.size < room or self._spare.position.size < cells:
            self._spare = _room(room, cells, self.scores)
        if self._work.order.size < room:
            self._work = Work(*np.empty((3, room), np.int64))
        self._count = foremost(self._rows, self._settled, self._count, self.most, self._work, self._spare)
        self._settled = self._count
        self._rows, self._spare = self._spare, self._rows

    @property
    def rows(self) -> Rows:
        """The foremost, in order."""
        self.settle()
        return _slice(self._rows, 0, self._count)

    def full(self) -> tuple[I64, I64, NDArray[Any]]:
        """The windows and groups that have as many as are asked for, and the score of the last of each, as far as compared."""
        settled = _slice(self._rows, 0, self._settled)
        window, group = settled.window, settled.group
        ends = np.flatnonzero((np.diff(window) != 0) | (np.diff(group) != 0))
        ends = np.append(ends, window.size - 1) if window.size else ends
        last = ends[np.diff(ends, prepend=-1) >= self.most]
        return window[last], group[last], settled.score[last]

    def take(self, until: int | None) -> tuple[Matches, I64]:
        """Give away the matches of windows before one, or all; and which windows they are of."""
        rows = self.rows
        count = len(self) if until is None else int(np.searchsorted(rows.window, until))
        parts = (_slice(rows, 0, count), _slice(rows, count, len(self)))
        given, left = (Rows._make(array.copy() for array in part) for part in parts)
        _put(left, self._rows, 0, 0)
        self._count = self._settled = left.start.size
        return Matches(given.start, given.end, given.offset, given.position, given.mark), given.window

    def live(self) -> I64:
        """The positions that they hold (sorted)."""
        return np.unique(np.concatenate((self.rows.start, self.rows.end, self.rows.position)))

    def save(self, section: Section) -> None:
        """Write the matches."""
        section.arrays |= {name: array.copy() for name, array in self.rows._asdict().items()}

    def load(self, section: Section, rows: int, marks: int) -> None:
        """Take over what :meth:`save` wrote, of a stream of so many rows, with so many marks."""
        found, score = Matches.kept(section, rows, marks), section.arrays["score"].astype(self.scores)
        group = section.numbers("group", size=found.start.size, least=0)
        window = section.numbers("window", size=found.start.size, ordered=True)
        if score.size != found.start.size:
            raise ValueError("not every match that is held has a score")
        self._rows = Rows(*found[:5], score, group, window)
        self._count = self._settled = self._rows.start.size

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return ROW_BYTES * self._count + CELL_BYTES * int(self._rows.offset[self._count])


def _room(rows: int, cells: int, scores: np.dtype[Any]) -> Rows:
    """Room for so many rows with so many positions."""
    start, end, group, window = (np.empty(rows, np.int64) for _ in range(4))
    offset, mark = np.zeros(rows + 1, np.int64), np.empty(cells, np.int32)
    return Rows(start, end, offset, np.empty(cells, np.int64), mark, np.empty(rows, scores), group, window)


def _with_room(rows: Rows, count: int, size: int, cells: int, positions: int) -> Rows:
    """The first rows with their positions, with room for more: at least twice as much where there is not enough."""
    if size <= rows.start.size and positions <= rows.position.size:
        return rows
    longer = _room(max(size, 2 * count), max(positions, 2 * cells), rows.score.dtype)
    _put(_slice(rows, 0, count), longer, 0, 0)
    return longer


def _put(rows: Rows, into: Rows, count: int, cells: int) -> None:
    """Write rows behind so many, which have so many positions."""
    end = count + rows.start.size
    for name in ("start", "end", "score", "group", "window"):
        getattr(into, name)[count:end] = getattr(rows, name)
    into.offset[count : end + 1] = rows.offset + cells
    into.position[cells : cells + rows.position.size] = rows.position
    into.mark[cells : cells + rows.position.size] = rows.mark


def _slice(rows: Rows, begin: int, end: int) -> Rows:
    """The rows between two, as views but for their offsets."""
    cells = slice(rows.offset[begin], rows.offset[end])
    own = {name: getattr(rows, name)[begin:end] for name in ("start", "end", "score", "group", "window")}
    offset = rows.offset[begin : end + 1] - rows.offset[begin]
    return Rows(offset=offset, position=rows.position[cells], mark=rows.mark[cells], **own)


def some(of: Rows, rows: I64) -> Rows:
    """Some rows, in this order."""
    cells = int(np.diff(of.offset)[rows].sum())
    found = _room(rows.size, cells, of.score.dtype)
    _copied(of, rows, found)
    return found
