"""KEEP and AFTER MATCH over the matches of a run: the longest or the shortest match of each start, and of these one after the other.

An event that may begin a match is a *start*. A start is closed when its window has passed: no further match begins there. The
starts of a key stand in a queue. Of the longest matches a start is decided when it is closed; of the shortest when an event completes
one, as later ones are longer. What stands first in its queue and is decided gives its match, and the starts go that come before where
the next may begin. So what is given, and in which order, depends on the events and not on the batches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.api import Visits

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
    timed: bool  #: whether windows measure an attribute, so that time closes starts


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
def _give(part: int, known: int, found: Found, starts: Starts, queues: Queues, given: I64, registers: I64) -> None:
    """The first start of a queue gives its match, if it has one, and the starts go that may not follow. Amortized O(1)."""
    row = starts.best[queues.first[part]] - 1
    _pop(part, starts, queues)
    if row >= 0:
        given[0, registers[GIVEN]], given[1, registers[GIVEN]] = row, known
        registers[GIVEN] += 1
        while queues.first[part] and starts.position[queues.first[part]] < found.follows[row]:
            _pop(part, starts, queues)


@inlined
def _settle(part: int, known: int, found: Found, starts: Starts, queues: Queues, given: I64, registers: I64) -> None:
    """What is decided at the front of a queue, where the first match decides."""
    while queues.first[part] and starts.best[queues.first[part]]:
        _give(part, known, found, starts, queues, given, registers)


@inlined
def _close(
    low: int, part: int, at: int, found: Found, starts: Starts, queues: Queues, given: I64, registers: I64, rule: Rule
) -> None:
    """The starts with keys below ``low`` are closed, by the event at a position: those of all partitions, or of one."""
    if rule.by_part:
        while queues.first[part] and starts.key[queues.first[part]] < low:
            _give(part, at, found, starts, queues, given, registers)
            if rule.early:
                _settle(part, at, found, starts, queues, given, registers)
        return
    while registers[CLOSED] < registers[COUNT] and starts.key[registers[CLOSED]] < low:
        slot = registers[CLOSED]
        if starts.open[slot]:
            one, known = starts.part[slot], ~starts.position[slot] if rule.timed else at
            _give(one, known, found, starts, queues, given, registers)
            if rule.early:
                _settle(one, known, found, starts, queues, given, registers)
        registers[CLOSED] += 1


@jit
def close(low: int, found: Found, starts: Starts, queues: Queues, given: I64, registers: I64, rule: Rule) -> None:
    """Time has come so far that starts below a key are closed, whatever partition they are of."""
    registers[GIVEN] = 0
    _close(low, 0, -1, found, starts, queues, given, registers, rule)


@jit
def walk(
    until: int, visits: Visits, found: Found, starts: Starts, queues: Queues, given: I64, registers: I64, rule: Rule
) -> None:
    """The events from ``registers[AT]`` on and before ``until``, with their matches; some of event ``until`` may be there.

    Loop invariant: the first start of a queue is open, and neither closed nor, where the first match decides, decided. Cost for an
    event: O(1) amortized, and O(log starts + length) for each match. ``given`` gets the rows of the matches that stay, in order, and
    at which event each is known (``~start``: when the window of that start has passed).
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
            _close(visits.low[i], visits.part[i], visits.position[i], found, starts, queues, given, registers, rule)
            if visits.begins[i] and not rule.waits:
                _enter(i, visits, starts, queues, registers)
        while registers[ROW] < rows and found.end[registers[ROW]] <= visits.position[i]:
            _look(registers[ROW], found, starts, registers, rule)
            registers[ROW] += 1
        registers[ENTERED] = i == until
        if i < until and rule.early:
            _settle(visits.part[i], visits.position[i], found, starts, queues, given, registers)
    registers[AT] = until
