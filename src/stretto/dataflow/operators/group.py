"""A group at hand: its rows as steps in time, cut into segments between which nothing changes, and its results in each of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.dataflow.run.exact import MOST_PARTS
from stretto.dataflow.run.index import Chains
from stretto.dataflow.run.levels import BITS, below, close, expand
from stretto.dataflow.run.rows import LEVEL, VE, VS, Rows, hashed, same


class Group(NamedTuple):
    """Scratch for the rows of one group."""

    members: Rows  #: (capacity) their places, newest first
    level: Rows  #: (capacity) the number of each one's level
    levels: Rows  #: (capacity) the levels, ascending
    terms: Rows  #: (capacity, 2^fields) of which levels a change is made: see levels.py
    steps: Rows  #: (2 capacity, 2) time, and 1 + member where it begins, −1 − member where it ends; ascending
    segments: Rows  #: (2 capacity + 1, 2) when it begins, and one behind its last step
    ranks: Rows  #: (items, capacity) for min and max: the place of each one's value among those of the group
    values: Rows  #: (items, capacity) the value of each rank
    distinct: Rows  #: (items) how many ranks there are
    pairs: Rows  #: (capacity, 2) scratch: key and member
    weights: Rows  #: (capacity) by rank
    tree: Rows  #: (4 capacity) whether any rank below a node has a positive weight; the root is 1
    results: Rows  #: (room, 1 + items) by level, side and segment: the sum of weights, and the word of each item
    parts: NDArray[np.float64]  #: of a sum
    base: Rows  #: (items, STATE) what each item of row 0 comes to, which stands for all rows that are not among the members
    ends: Rows  #: (items, STATE) what each comes to behind the last step
    operations: Rows  #: (items) what each computes
    of: Rows  #: (items) from which word
    word: Rows  #: what is known of the group: see below


# Words of Group.word.
BEGIN = 0  #: the first of the new rows
SIZE = 1  #: members
LEVELS = 2  #: different levels among them
LOW = 3  #: the new rows reach from here …
HIGH = 4  #: … to before here
COUNT_OUT = 5  #: rows that were written
SEGMENTS = 6  #: segments
KEEPS = 7  #: whether ``ends`` tell all that later rows need
_WORDS = 8

#: Words of what an item comes to: a least or greatest value; the halves of a sum; of floats the parts of one.
STATE = 10


def scratch(capacity: int, room: int, operations: Rows, of: Rows, bits: int) -> Group:
    """Room for so many members and results, of levels with fields of so many bits."""
    items = len(operations)

    def zeros(*shape: int) -> Rows:
        return np.zeros(shape, np.int64)

    return Group(
        zeros(capacity),
        zeros(capacity),
        zeros(capacity),
        zeros(capacity, 1 << BITS // bits),
        zeros(2 * capacity, 2),
        zeros(2 * capacity + 1, 2),
        zeros(items, capacity),
        zeros(items, capacity),
        zeros(items),
        zeros(capacity, 2),
        zeros(capacity),
        zeros(4 * capacity),
        zeros(room, 1 + items),
        np.zeros(MOST_PARTS, np.float64),
        zeros(items, STATE),
        zeros(items, STATE),
        operations,
        of,
        zeros(_WORDS),
    )


@jit
def gather(there: Chains, row: int, group: Group) -> bool:
    """The members of a row's group, and from when to when the new ones reach; false: there is no room for them."""
    rows, keys, word = there.rows, there.keys, group.word
    low = rows[row, VS]
    high = rows[row, VE]
    size = 0
    at = there.heads[hashed(rows, row, keys) & (there.heads.size - 1)]
    while at != 0:
        if same(rows, at, keys, rows, row, keys):
            if size == len(group.members):
                return False
            group.members[size] = at
            size += 1
            if at >= word[BEGIN]:
                low = min(low, rows[at, VS])
                high = max(high, rows[at, VE])
        at = there.following[at]
    word[SIZE], word[LOW], word[HIGH] = size, low, high
    return True


@jit
def arrange(there: Chains, group: Group) -> bool:
    """Keep the members that live in [LOW, HIGH), with their levels, and cut it into segments; false: there is no room."""
    rows, word, bits = there.rows, group.word, there.bits
    low, high = word[LOW], word[HIGH]
    kept = 0
    levels = 0
    for at in range(word[SIZE]):
        member = group.members[at]
        if rows[member, VE] <= low or rows[member, VS] >= high:
            continue
        group.members[kept] = member
        kept += 1
        place = levels
        level = rows[member, LEVEL]
        while place > 0 and group.levels[place - 1] > level:
            place -= 1
        if place > 0 and group.levels[place - 1] == level:
            continue
        for other in range(levels, place, -1):
            group.levels[other] = group.levels[other - 1]
        group.levels[place] = level
        levels += 1
    levels = close(group.levels, levels, bits)
    if levels < 0:
        return False
    expand(group.levels, levels, bits, group.terms)
    word[SIZE], word[LEVELS] = kept, levels
    for at in range(kept):
        level = rows[group.members[at], LEVEL]
        first, last = 0, levels - 1
        while first < last:
            middle = (first + last) >> 1
            if group.levels[middle] < level:
                first = middle + 1
            else:
                last = middle
        group.level[at] = first
    _cut(rows, group)
    return True


@jit
def _cut(rows: Rows, group: Group) -> None:
    """The steps of the members in order, and the segments between them."""
    word, steps, segments = group.word, group.steps, group.segments
    low, high = word[LOW], word[HIGH]
    count = 0
    for at in range(word[SIZE]):
        if rows[group.members[at], VS] <= low:
            steps[count, 0], steps[count, 1] = low, at + 1
            count += 1
    there = count
    for at in range(word[SIZE] - 1, -1, -1):  # oldest first: often they come in order
        member = group.members[at]
        if rows[member, VS] > low:
            steps[count, 0], steps[count, 1] = rows[member, VS], at + 1
            count += 1
        if rows[member, VE] < high:
            steps[count, 0], steps[count, 1] = rows[member, VE], -1 - at
            count += 1
    sort(steps, there, count)
    segments[0, 0], segments[0, 1] = low, there
    last = 0
    for step in range(there, count):
        if steps[step, 0] != segments[last, 0]:
            last += 1
            segments[last, 0] = steps[step, 0]
        segments[last, 1] = step + 1
    word[SEGMENTS] = last + 1


@jit
def sort(pairs: Rows, begin: int, end: int) -> None:
    """Rows [begin, end) by the first word: few by insertion, many by a heap."""
    at = begin + 1
    while at < end and pairs[at - 1, 0] <= pairs[at, 0]:
        at += 1
    if at >= end:
        return
    size = end - begin
    if size <= 24:
        for i in range(begin + 1, end):
            key, value = pairs[i, 0], pairs[i, 1]
            j = i
            while j > begin and pairs[j - 1, 0] > key:
                pairs[j, 0], pairs[j, 1] = pairs[j - 1, 0], pairs[j - 1, 1]
                j -= 1
            pairs[j, 0], pairs[j, 1] = key, value
        return
    for i in range(size // 2 - 1, -1, -1):
        _sink(pairs, begin, i, size)
    for last in range(size - 1, 0, -1):
        for part in range(2):
            pairs[begin, part], pairs[begin + last, part] = pairs[begin + last, part], pairs[begin, part]
        _sink(pairs, begin, 0, last)


@inlined
def _sink(pairs: Rows, begin: int, at: int, size: int) -> None:
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and pairs[begin + child + 1, 0] > pairs[begin + child, 0]:
            child += 1
        if pairs[begin + at, 0] >= pairs[begin + child, 0]:
            return
        for part in range(2):
            pairs[begin + at, part], pairs[begin + child, part] = pairs[begin + child, part], pairs[begin + at, part]
        at = child


@inlined
def counts(at: int, level: int, side: int, bits: int, group: Group) -> bool:
    """Whether a member is there at a level, before (side 0) or with (side 1) the new rows."""
    if side == 0 and group.members[at] >= group.word[BEGIN]:
        return False
    if bits == BITS:
        return bool(group.level[at] <= level)
    return below(group.levels[group.level[at]], group.levels[level], bits)


@inlined
def place(level: int, side: int, group: Group) -> int:
    """Where the results of a level and side begin."""
    return int((2 * level + side) * group.word[SEGMENTS])
