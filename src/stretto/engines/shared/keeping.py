"""KEEP and AFTER MATCH over the matches of a run: the longest or the shortest match of each start, and of these one after the other.

An event that may begin a match is a *start*. A start is closed when its window has passed: no further match begins there. The
starts of a key stand in a queue. Of the longest matches a start is decided when it is closed; of the shortest when an event completes
one, as later ones are longer. What stands first in its queue and is decided gives its match, and the starts go that come before where
the next may begin. So what is given, and in which order, depends on the events and not on the batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.api import Matches, Reached
from stretto.frame import Section
from stretto.query.query import Keep, Skip

I64 = NDArray[np.int64]
Bits = NDArray[np.bool_]

#: Starts that are gone are left out when there are so many, and twice as many as there were to keep last time.
SWEEP_AT_LEAST = 1 << 10

# Registers.
COUNT = 0  #: the first unused slot of the starts
CLOSED = 1  #: all starts below this slot are closed, where windows are those of the whole stream
AT = 2  #: the event at hand
ENTERED = 3  #: 1 while the event at hand has closed and made starts, and not all of its matches are here
ROW = 4  #: the first match that no start has looked at
GIVEN = 5  #: how many matches are given
REGISTERS = 6


class Visits(NamedTuple):
    """The events that a kernel visits."""

    position: I64
    part: I64  #: partition
    key: I64  #: what starts are compared by: the position, or the rank in the partition
    low: I64  #: least key in the window of the event
    begins: Bits  #: whether it may begin a match


class Starts(NamedTuple):
    """Starts in the order of the stream; slot 0 is none."""

    position: I64
    key: I64
    part: I64
    next: I64  #: the next one of its partition; 0: there is none
    best: I64  #: its match, as the number of a row, from 1; 0: there is none
    open: Bits  #: whether it stands in its queue


class Queues(NamedTuple):
    """The queues of partitions, by their first and last start; 0: none."""

    first: I64
    last: I64


class Found(NamedTuple):
    """Matches, row by row."""

    start: I64
    end: I64
    offset: I64  #: row k holds the cells from offset[k] up to offset[k + 1]
    position: I64  #: [cell]
    rank: I64  #: [cell]: which component holds the event
    follows: I64  #: where the next match may begin


class Rule(NamedTuple):
    """What is asked."""

    longest: bool
    early: bool  #: whether a start is decided by the first event that completes a match
    by_part: bool  #: whether windows are those of each partition
    waits: bool  #: whether matches come later than the event that completes them


@inlined
def _is_better(a: int, b: int, found: Found, rule: Rule) -> bool:
    """Whether row a comes before row b, which begins with the same event. O(length)."""
    if found.end[a] != found.end[b]:
        return bool((found.end[a] > found.end[b]) == rule.longest)
    first, second = found.offset[a], found.offset[b]
    length, other = found.offset[a + 1] - first, found.offset[b + 1] - second
    for i in range(min(length, other)):
        if found.position[first + i] != found.position[second + i]:
            return bool(found.position[first + i] < found.position[second + i])
    if length != other:
        return bool(length > other)
    for i in range(length):
        if found.rank[first + i] != found.rank[second + i]:
            return bool(found.rank[first + i] < found.rank[second + i])
    return False


@inlined
def _slot_of(position: int, starts: Starts, registers: I64) -> int:
    """The open start at a position; 0: there is none. O(log starts)."""
    low, high = 1, registers[COUNT]
    while low < high:
        middle = (low + high) // 2
        if starts.position[middle] < position:
            low = middle + 1
        else:
            high = middle
    if low < registers[COUNT] and starts.position[low] == position and starts.open[low]:
        return low
    return 0


@inlined
def _look(row: int, found: Found, starts: Starts, registers: I64, rule: Rule) -> None:
    """A match goes to its start, if that is still asked for one."""
    slot = _slot_of(found.start[row], starts, registers)
    if slot and (starts.best[slot] == 0 or _is_better(row, starts.best[slot] - 1, found, rule)):
        starts.best[slot] = row + 1


@inlined
def _enter(i: int, visits: Visits, starts: Starts, queues: Queues, registers: I64) -> None:
    """An event becomes the last start of its queue."""
    slot, part = registers[COUNT], visits.part[i]
    registers[COUNT] = slot + 1
    starts.position[slot] = visits.position[i]
    starts.key[slot] = visits.key[i]
    starts.part[slot] = part
    starts.next[slot] = 0
    starts.best[slot] = 0
    starts.open[slot] = True
    if queues.first[part]:
        starts.next[queues.last[part]] = slot
    else:
        queues.first[part] = slot
    queues.last[part] = slot


@inlined
def _pop(part: int, starts: Starts, queues: Queues) -> None:
    slot = queues.first[part]
    starts.open[slot] = False
    queues.first[part] = starts.next[slot]


@inlined
def _give(part: int, found: Found, starts: Starts, queues: Queues, given: I64, registers: I64) -> None:
    """The first start of a queue gives its match, if it has one, and the starts go that may not follow. Amortized O(1)."""
    row = starts.best[queues.first[part]] - 1
    _pop(part, starts, queues)
    if row >= 0:
        given[registers[GIVEN]] = row
        registers[GIVEN] += 1
        while queues.first[part] and starts.position[queues.first[part]] < found.follows[row]:
            _pop(part, starts, queues)


@inlined
def _settle(part: int, found: Found, starts: Starts, queues: Queues, given: I64, registers: I64) -> None:
    """What is decided at the front of a queue, where the first match decides."""
    while queues.first[part] and starts.best[queues.first[part]]:
        _give(part, found, starts, queues, given, registers)


@inlined
def _close(
    low: int, part: int, found: Found, starts: Starts, queues: Queues, given: I64, registers: I64, rule: Rule
) -> None:
    """The starts with keys below ``low`` are closed: those of all partitions, or of one."""
    if rule.by_part:
        while queues.first[part] and starts.key[queues.first[part]] < low:
            _give(part, found, starts, queues, given, registers)
            if rule.early:
                _settle(part, found, starts, queues, given, registers)
        return
    while registers[CLOSED] < registers[COUNT] and starts.key[registers[CLOSED]] < low:
        slot = registers[CLOSED]
        if starts.open[slot]:
            one = starts.part[slot]
            _give(one, found, starts, queues, given, registers)
            if rule.early:
                _settle(one, found, starts, queues, given, registers)
        registers[CLOSED] += 1


@jit
def close(low: int, found: Found, starts: Starts, queues: Queues, given: I64, registers: I64, rule: Rule) -> None:
    """Time has come so far that starts below a key are closed, whatever partition they are of."""
    registers[GIVEN] = 0
    _close(low, 0, found, starts, queues, given, registers, rule)


@jit
def walk(
    until: int, visits: Visits, found: Found, starts: Starts, queues: Queues, given: I64, registers: I64, rule: Rule
) -> None:
    """The events from ``registers[AT]`` on and before ``until``, with their matches; some of event ``until`` may be there.

    Loop invariant: the first start of a queue is open, and neither closed nor, where the first match decides, decided. Cost for an
    event: O(1) amortized, and O(log starts + length) for each match. ``given`` gets the rows of the matches that stay, in order.
    """
    registers[GIVEN] = 0
    rows = found.start.size
    if rule.waits:
        for i in range(registers[AT], until):
            if visits.begins[i]:
                _enter(i, visits, starts, queues, registers)
        while registers[ROW] < rows:
            _look(registers[ROW], found, starts, registers, rule)
            registers[ROW] += 1
    for i in range(registers[AT], min(until + 1, visits.position.size)):
        if i == until and registers[ROW] == rows:
            break
        if not registers[ENTERED]:
            _close(visits.low[i], visits.part[i], found, starts, queues, given, registers, rule)
            if visits.begins[i] and not rule.waits:
                _enter(i, visits, starts, queues, registers)
        while registers[ROW] < rows and found.end[registers[ROW]] <= visits.position[i]:
            _look(registers[ROW], found, starts, registers, rule)
            registers[ROW] += 1
        registers[ENTERED] = i == until
        if i < until and rule.early:
            _settle(visits.part[i], found, starts, queues, given, registers)
    registers[AT] = until


_NOTHING = np.zeros(0, np.int64)

NO_VISITS = Visits(_NOTHING, _NOTHING, _NOTHING, _NOTHING, np.zeros(0, np.bool_))


class Keeper:
    """The starts of one run, and the best match of each.

    Parameters
    ----------
    keep
        What is asked.
    marks
        The variables of each mark.
    order
        The variables in the order of the pattern's components, where matches of the same events may differ by them.
    rule
        The same for the kernel.
    """

    def __init__(self, keep: Keep, marks: Sequence[frozenset[str]], order: Sequence[str], rule: Rule) -> None:
        self.keep, self.marks, self.order, self.rule = keep, marks, order, rule
        self.starts = _room(8)
        self.queues = Queues(np.zeros(1, np.int64), np.zeros(1, np.int64))
        self.registers = np.zeros(REGISTERS, np.int64)
        self.registers[[COUNT, CLOSED]] = 1
        self.visits = NO_VISITS
        #: Where the matches to list begin at least, by visited event.
        self.floor = np.zeros(0, np.int64)
        self.held = _no_matches()
        self.found = self._read(self.held)
        self.passed = 0  #: positions below this are no starts unless they stand in a queue
        self.kept_starts = 0
        self.looked = 0  #: rows at the beginning of those held that starts have looked at, and all are asked for

    # -- what the run tells -------------------------------------------------------------------------------------------

    def see(self, visits: Visits, partitions: int) -> I64:
        """The events that the run visits next. Gives where the matches to list begin at least, which later calls may raise."""
        self._make_room(visits.position.size, partitions)
        self.visits = visits
        self.registers[[AT, ENTERED]] = 0
        self.floor = np.zeros(visits.position.size, np.int64)
        self._raise(0)
        return self.floor

    def take(self, piece: Matches | None, until: int) -> Matches | None:
        """The matches that stay, of more that are found, when all events before number ``until`` have been read."""
        if piece is not None:
            self.held = Matches.joined([self.held, piece])
            self.found = self._read(self.held)
        given = np.empty(self._starts + until - int(self.registers[AT]) + 1, np.int64)
        walk(until, self.visits, self.found, self.starts, self.queues, given, self.registers, self.rule)
        if until < self.visits.position.size:
            self.passed = int(self.visits.position[until])
            self._raise(until)
        elif until:
            self.passed = int(self.visits.position[-1]) + 1
        return self._given(given)

    def close(self, low: int) -> Matches | None:
        """The matches that stay, as no more begin with an event below ``low``."""
        given = np.empty(self._starts, np.int64)
        rule = self.rule._replace(by_part=False)
        close(low, self.found, self.starts, self.queues, given, self.registers, rule)
        return self._given(given)

    def look(self, piece: Matches) -> None:
        """More matches of starts that are not closed."""
        self.held = Matches.joined([self.held, piece])
        self.found = self._read(self.held)
        none = np.empty(0, np.int64)
        walk(0, NO_VISITS, self.found, self.starts, self.queues, none, self.registers, self.rule._replace(waits=True))

    def _raise(self, until: int) -> None:
        """No match is asked for that begins before the first start of its queue."""
        first = self.queues.first[self.visits.part[until:]]
        nothing = 0 if self.rule.by_part else self.passed
        self.floor[until:] = np.where(first > 0, self.starts.key[first], nothing)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _read(self, rows: Matches) -> Found:
        """Matches as the kernel reads them."""
        rank = np.zeros(rows.mark.size, np.int64)
        if self.order and rows.mark.size:
            places = [min(map(self.order.index, labels), default=0) for labels in self.marks]
            rank = np.array(places, np.int64)[rows.mark]
        follows = rows.start + 1
        if self.keep.skip is Skip.PAST:
            follows = rows.end + 1
        elif self.keep.variable is not None and rows.mark.size:
            holds = np.array([self.keep.variable in labels for labels in self.marks], np.bool_)
            cells = np.flatnonzero(holds[rows.mark])
            if self.keep.skip is Skip.FIRST:
                cells = cells[::-1]  # of several the last one counts
            row = np.searchsorted(rows.offset, cells, side="right") - 1
            at = rows.start.copy()
            at[row] = rows.position[cells]
            follows = np.maximum(follows, at)
        return Found(rows.start, rows.end, rows.offset, rows.position, rank, follows)

    def _given(self, given: I64) -> Matches | None:
        """The matches of some rows; the others that a start still has are kept."""
        chosen = given[: self.registers[GIVEN]]
        if not chosen.size and self.registers[ROW] == self.looked:
            return None
        found = self.held.taken(chosen) if chosen.size else None
        best = self.starts.best[: self._starts]
        wanted = np.flatnonzero(self.starts.open[: self._starts] & (best > 0))
        ahead = int(self.registers[ROW])  # those from here on wait for their events
        waiting = np.arange(ahead, self.held.start.size)
        if wanted.size + waiting.size < self.held.start.size:
            rows = np.concatenate((best[wanted] - 1, waiting))
            best[wanted] = np.arange(1, wanted.size + 1)
            self.registers[ROW] = wanted.size
            self.held = self.held.taken(rows)
            self.found = self._read(self.held)
        self.looked = int(self.registers[ROW])
        return found

    # -- starts -------------------------------------------------------------------------------------------------------

    @property
    def _starts(self) -> int:
        return int(self.registers[COUNT])

    def _make_room(self, events: int, partitions: int) -> None:
        if self._starts > 2 * self.kept_starts + SWEEP_AT_LEAST:
            self._sweep()
        need = self._starts + events
        if need > self.starts.position.size:
            before, self.starts = self.starts, _room(2 * need)
            for old, new in zip(before, self.starts, strict=True):
                new[: old.size] = old
        if partitions > self.queues.first.size:
            longer = np.zeros((2, 2 * partitions), np.int64)
            longer[:, : self.queues.first.size] = self.queues
            self.queues = Queues(*longer)

    def _sweep(self) -> None:
        """Leave out the starts that are gone."""
        count = self._starts
        alive = np.flatnonzero(self.starts.open[1:count]) + 1
        closed = int(np.searchsorted(alive, self.registers[CLOSED])) + 1
        fresh = _room(max(8, 2 * alive.size))
        for new, old in zip(fresh, self.starts, strict=True):
            new[1 : alive.size + 1] = old[alive]
        self.starts = fresh
        self.registers[[COUNT, CLOSED]] = alive.size + 1, closed
        self.kept_starts = alive.size
        self._queue()

    def _queue(self) -> None:
        """The queues of open starts that stand one behind the other."""
        count = self._starts
        for array in self.queues:
            array[:] = 0
        order = np.argsort(self.starts.part[1:count], kind="stable") + 1
        part = self.starts.part[order]
        ends = np.flatnonzero(np.diff(part, append=-1))
        begins = np.flatnonzero(np.diff(part, prepend=-1))
        following = np.append(order[1:], 0)
        following[ends] = 0
        self.starts.next[order] = following
        self.queues.first[part[begins]] = order[begins]
        self.queues.last[part[ends]] = order[ends]

    def partitions(self, count: int) -> Bits:
        """Which of so many partitions have starts, or events that may become one."""
        found = np.zeros(count, np.bool_)
        known = self.queues.first[:count] > 0
        found[: known.size] = known
        found[self.visits.part[self.registers[AT] :]] = True
        return found

    def renumber(self, fresh: I64) -> None:
        """Partitions get other numbers; those that have no starts may get none."""
        self._sweep()
        own = slice(1, self._starts)
        self.starts.part[own] = fresh[self.starts.part[own]]
        self.visits = self.visits._replace(part=fresh[self.visits.part])
        self._queue()

    @property
    def waits(self) -> bool:
        """Whether a match is kept that may be given."""
        return bool(self.held.start.size)

    @property
    def first(self) -> int:
        """The first start that holds back a match."""
        count = self._starts
        parts = np.unique(self.starts.part[:count][self.starts.open[:count] & (self.starts.best[:count] > 0)])
        return int(self.starts.position[self.queues.first[parts]].min())

    def live(self) -> I64:
        """The positions that matches to be given hold (sorted)."""
        return np.unique(np.concatenate((self.held.start, self.held.end, self.held.position)))

    @property
    def nbytes(self) -> int:
        groups = (self.starts, self.queues, self.found, (self.floor, self.held.mark))
        return sum(array.nbytes for group in groups for array in group)

    # -- state --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the starts that stand in queues, and their matches."""
        self._sweep()
        own = slice(1, self._starts)
        for name in ("position", "key", "part", "best"):
            section.arrays[f"starts.{name}"] = getattr(self.starts, name)[own].copy()
        for name in ("start", "end", "offset", "position", "mark"):
            section.arrays[name] = getattr(self.held, name)
        section.values |= {"closed": int(self.registers[CLOSED]), "passed": self.passed}

    def load(self, section: Section, run: Reached) -> None:
        """Take over, from the beginning, what :meth:`save` wrote of a run."""
        partitions = run.partitions
        count = section.numbers("starts.position", least=0, below=run.rows, rising=True).size
        arrays = {
            f"starts.{name}": section.numbers(f"starts.{name}", size=count)
            for name in ("position", "key", "part", "best")
        }
        section.numbers("starts.part", least=0, below=max(1, partitions))
        self._make_room(count, partitions)
        for name in ("position", "key", "part", "best"):
            getattr(self.starts, name)[1 : count + 1] = arrays[f"starts.{name}"]
        self.starts.open[1 : count + 1] = True
        self.registers[[COUNT, CLOSED]] = count + 1, max(1, section.count("closed", most=count + 1))
        self._queue()
        self.held = Matches.kept(section, run.rows, len(self.marks))
        section.numbers("starts.best", least=0, below=max(1, self.held.start.size + 1))
        self.found = self._read(self.held)
        self.registers[ROW] = self.looked = self.held.start.size
        self.passed = section.count("passed", most=run.rows)


def _room(slots: int) -> Starts:
    position, key, part, following, best = (np.zeros(slots, np.int64) for _ in range(5))
    return Starts(position, key, part, following, best, np.zeros(slots, np.bool_))


def _no_matches() -> Matches:
    return Matches(_NOTHING, _NOTHING, np.zeros(1, np.int64), _NOTHING, np.zeros(0, np.int32))
