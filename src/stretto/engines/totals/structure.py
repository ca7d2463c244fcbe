"""Counts and sums of partial matches, by where these begin: arrays, and what is done with one number of them.

A determinized automaton has one run for each complex event, so that it is enough to know how many partial matches are in each
state, what their values add up to, and which one is least. That is a *vector* for each active state of a partition (and group),
with a *cell* for each start that may still be in a window: for each of them a number in every *column*.

A number of 64 bits that does not hold its value says so by itself, and stays so whatever is added: −1 is no count, and the least
of all integers is no sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bits = NDArray[np.bool_]

# Kinds of columns. The first column counts the matches.
COUNT = 0  #: matches, or with a slot their values that are not NULL; int64, BEYOND where 64 bits do not hold it
REAL_COUNT = 1  #: the same in floating point
SUM = 2  #: int64, LOST where 64 bits do not hold it
REAL_SUM = 3
LEAST = 4
MOST = 5
REAL_LEAST = 6
REAL_MOST = 7
FIRST = 8  #: the position at which the first match begins
LOST_VALUES = 9  #: values that 64 bits do not hold; of a match that has one nothing is told

BEYOND = -1
HIGHEST = np.iinfo(np.int64).max
LOST = np.iinfo(np.int64).min
LOWEST = LOST + 1
_LOW = 0xFFFFFFFF

# Which matches a row is about.
OF_TABLE = 0
OF_EVENT = 1
OF_WINDOW = 2

# Registers: scalars that outlive a call of the kernel.
CURSOR = 0  #: the next event of the batch
VISITED = 1  #: events so far
TRIGGERS = 2  #: events that completed matches so far
NEED = 3  #: how much room is missing
MISSING_STATE = 4
MISSING_CLASS = 5
TOP = 6  #: words of the arena that were given out
EPOCH = 7  #: tells events apart in the scratch space
ROWS = 8  #: rows in the output buffers
NEXT = 9  #: the next window that closes
LIVE = 10  #: groups with matches in windows that are open
GROUPS = 11  #: groups that have a number, where events say what the groups are
BAD_COLUMN = 12  #: the column of what 64 bits do not hold
STEPS = 13  #: numbers added since the last pause
CONSUMED = 14  #: position of the last event with output, where that ends all partial matches
LAST_LOW = 15  #: least key in the window of the last event
FREE = 16  #: + size class: first free block of 8 << class words
CLASSES = 48
REGISTERS = FREE + CLASSES


class Plan(NamedTuple):
    """What is counted and added up, and for whom: one pattern, or several in one run, each with columns of its own."""

    kind: I64  #: [column]: see above
    slot: I64  #: [column]: which value of an event it is about; −1: of none
    asked: Bits  #: [column]: an integer that must be exact
    holds: Bits  #: [mark, slot]: whether the event with the mark has the value
    names: Bits  #: [mark, part of a group]: whether the event with the mark says the part
    counts: I64  #: [column]: the column that counts the matches of its pattern
    reals: I64  #: [column]: the one that counts them in floating point, where there is one
    begin: I64  #: [mark]: where its columns begin in ``column``; one entry more than marks
    column: I64  #: the columns of the patterns whose matches go on with the mark; mark 0 is one of all patterns
    scope: I64  #: single numbers, by place (below)


# Places in ``Plan.scope``.
EXTENT = 0  #: OF_TABLE, OF_EVENT or OF_WINDOW
SIZE = 1  #: panes of a window; 1 where there are none
SLIDE = 2  #: panes from the beginning of one window to that of the next
BITS = 3  #: of each part of a group
APART = 4  #: 1: starts are told apart, because of a window; 0: all are one cell
CONSUME = 5  #: what an output forgets
OWN = 6  #: 1: windows are of the events of each key, which are groups, and are over one key at a time


class Store(NamedTuple):
    """Blocks of 8 << class words; word 0 is none."""

    ints: I64
    reals: F64  #: the same words


class Work(NamedTuple):
    """The vectors after the event at hand."""

    slot: I64  #: hash table: the entry, if ``epoch`` is the event's; a power of two long
    epoch: I64
    state: I64  #: [entry]
    group: I64  #: [entry]
    latest: I64  #: [entry]: the greatest start
    block: I64  #: [entry]: its vector


class Sums(NamedTuple):
    """What matches of groups add up to. A group's number is ``base`` where events say no parts of it."""

    ints: I64  #: [group · columns + column], of the whole table
    reals: F64  #: the same words
    block: I64  #: [group]: a vector with a cell for each pane of a window, by pane modulo their number; 0: none
    latest: I64  #: [group]: the greatest pane in it
    next: I64  #: [group]: where windows are of each key's own events, the next one that closes
    live: I64  #: the groups that have a block; where windows are of each key's own events, nothing
    slot: I64  #: hash table: group + 1; a power of two long; empty where events say no parts
    base: I64  #: [group]: the group by keys
    part: I64  #: [group]: and what events say


class Rows(NamedTuple):
    """Rows of a result."""

    start: I64  #: of the match that begins first
    end: I64  #: the event
    base: I64  #: the group by keys
    part: I64  #: and what events say
    window: I64  #: the number of the window
    ints: I64  #: [row · columns + column]
    reals: F64  #: the same words


@inlined
def plus(x: int, y: int) -> int:
    """Two counts together; BEYOND where 64 bits do not hold them."""
    if (x | y) < 0 or x > HIGHEST - (y & HIGHEST):
        return BEYOND
    return x + y


@inlined
def plus_sum(x: int, y: int) -> int:
    """Two sums together; LOST where 64 bits do not hold them."""
    if LOST in (x, y) or x > HIGHEST - max(y, 0) or x < LOWEST - min(y, 0):
        return LOST
    return x + y


@inlined
def most_times(value: int) -> int:
    """How often a value other than 0 may be added up."""
    if value == LOST:
        return 0
    return HIGHEST // abs(value)


@inlined
def times(count: int, value: int, most: int) -> int:
    """So many times a value, at the most :func:`most_times`; LOST where 64 bits do not hold that."""
    if count < 0 or count > most:
        return LOST
    return count * value


@inlined
def least_of(x: float, y: float) -> float:
    """Return the lesser of two, or the one that is NaN."""
    return y if y < x or y != y else x


@inlined
def most_of(x: float, y: float) -> float:
    """Return the greater of two, or the one that is NaN."""
    return y if y > x or y != y else x


@inlined
def clear(kind: int, ints: I64, reals: F64, begin: int, end: int) -> None:
    """Make the numbers of a column those of no match at all."""
    if kind in (LEAST, FIRST):
        for k in range(begin, end):
            ints[k] = HIGHEST
    elif kind == MOST:
        for k in range(begin, end):
            ints[k] = LOST
    elif kind == REAL_LEAST:
        for k in range(begin, end):
            reals[k] = np.inf
    elif kind == REAL_MOST:
        for k in range(begin, end):
            reals[k] = -np.inf
    else:  # the words of 0 and 0.0 are the same
        for k in range(begin, end):
            ints[k] = 0


@inlined
def add(kind: int, ints: I64, reals: F64, source: int, target: int, length: int) -> None:
    """Add numbers of a column to others, one by one. O(length)."""
    if kind in (COUNT, LOST_VALUES):
        for k in range(length):
            ints[target + k] = plus(ints[target + k], ints[source + k])
    elif kind == SUM:
        for k in range(length):
            ints[target + k] = plus_sum(ints[target + k], ints[source + k])
    elif kind in (LEAST, FIRST):
        for k in range(length):
            ints[target + k] = min(ints[target + k], ints[source + k])
    elif kind == MOST:
        for k in range(length):
            ints[target + k] = max(ints[target + k], ints[source + k])
    elif kind == REAL_LEAST:
        for k in range(length):
            reals[target + k] = least_of(reals[target + k], reals[source + k])
    elif kind == REAL_MOST:
        for k in range(length):
            reals[target + k] = most_of(reals[target + k], reals[source + k])
    else:
        for k in range(length):
            reals[target + k] += reals[source + k]


@inlined
def _all_counts(ints: I64, begin: int, end: int) -> int:
    """Counts together, as two halves, so that nothing overflows on the way."""
    signs = np.int64(0)
    high = np.int64(0)
    low = np.int64(0)
    for k in range(begin, end):
        signs |= ints[k]
        high += ints[k] >> 32
        low += ints[k] & _LOW
    high += low >> 32
    if signs < 0 or high >= 1 << 31:
        return BEYOND
    return int(high << 32 | (low & _LOW))


@inlined
def _all_sums(ints: I64, begin: int, end: int) -> int:
    """Sums together, as two halves."""
    lost = False
    high = np.int64(0)
    low = np.int64(0)
    for k in range(begin, end):
        lost |= ints[k] == LOST
        high += ints[k] >> 32
        low += ints[k] & _LOW
    high += low >> 32
    if lost or high >= 1 << 31 or high < -(1 << 31):
        return LOST
    return int(high << 32 | (low & _LOW))


@inlined
def fold(kind: int, ints: I64, reals: F64, begin: int, end: int, into: I64, into_reals: F64, at: int) -> None:
    """Add all of some numbers of a column to one. O(their number)."""
    if kind in (COUNT, LOST_VALUES):
        into[at] = plus(into[at], _all_counts(ints, begin, end))
    elif kind == SUM:
        into[at] = plus_sum(into[at], _all_sums(ints, begin, end))
    elif kind in (LEAST, FIRST):
        least = into[at]
        for k in range(begin, end):
            least = min(least, ints[k])
        into[at] = least
    elif kind == MOST:
        most = into[at]
        for k in range(begin, end):
            most = max(most, ints[k])
        into[at] = most
    elif kind == REAL_LEAST:
        for k in range(begin, end):
            into_reals[at] = least_of(into_reals[at], reals[k])
    elif kind == REAL_MOST:
        for k in range(begin, end):
            into_reals[at] = most_of(into_reals[at], reals[k])
    else:
        total = into_reals[at]
        for k in range(begin, end):
            total += reals[k]
        into_reals[at] = total


@inlined
def is_beyond(plan: Plan, ints: I64, at: int, stride: int) -> int:
    """The first column that must be exact and is not, of numbers that lie so far apart; −1: all are."""
    for c in range(plan.kind.size):
        if plan.asked[c]:
            word = ints[at + c * stride]
            kind = plan.kind[c]
            if (kind == COUNT and word < 0) or (kind == SUM and word == LOST) or (kind == LOST_VALUES and word != 0):
                return c
    return -1
