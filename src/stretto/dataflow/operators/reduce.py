"""What a group comes to, at every time and level: the common kernel of distinct and aggregates.

A group's rows are step functions of time and level. When some of them are new, the times that they cover are cut where any row of
the group begins or ends; between two cuts nothing changes but with the level. For each level, from the least on, the rows up
to it give the group's result (or none: their weights come to 0); what differs between two levels is the output at the
second one. Output is what is new less what was there before the new rows, so that nothing of it needs to be kept.

A group of k rows costs O(k log k) for its cuts, and for an aggregate O(k) for each cut and level among the new rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_OUTPUT, GROW_STACK, OUTPUT_FULL, OVERFLOW, inlined, jit
from stretto.dataflow.exact import MOST_PARTS, add_times, rounded
from stretto.dataflow.index import Chains, Index
from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.rows import LEVEL, PAYLOAD, VE, VS, WEIGHT, Rows, combined, empty, hashed, same
from stretto.engines.nfab.scalar import mean, real, word
from stretto.errors import DataError

__all__ = ["AVG", "AVG_REAL", "COUNT", "MAX", "MAX_REAL", "MIN", "MIN_REAL", "SUM", "SUM_REAL", "Reduce"]

# What an item computes.
COUNT, SUM, SUM_REAL, AVG, AVG_REAL, MIN, MAX, MIN_REAL, MAX_REAL = range(9)

CAPACITY = 1024  #: rows of the output buffer
MEMBERS = 64  #: rows of a group that there is room for at first

_LOW = 0xFFFFFFFF


class Group(NamedTuple):
    """Scratch for the rows of one group."""

    members: Rows  #: (capacity) their places
    level: Rows  #: (capacity) the number of each one's level
    levels: Rows  #: (capacity) the levels, ascending
    starts: Rows  #: (capacity, 2) clipped VS and member, ascending
    ends: Rows  #: (capacity, 2) clipped VE and member, ascending
    counts: Rows  #: (2, capacity) weights that are active at each level: before, and with the new rows
    values: (
        Rows  #: (4, capacity, 1 + items) result up to each level: before and after; of the run of equal segments before
    )
    parts: NDArray[np.float64]  #: of a sum
    operations: Rows  #: (items) what each computes
    of: Rows  #: (items) from which word
    word: Rows  #: what is known of the group at hand: see below


# Words of Group.word.
BEGIN = 0  #: the first of the new rows
SIZE = 1  #: members
LEVELS = 2  #: different levels among them
LOW = 3  #: the new rows reach from here …
HIGH = 4  #: … to before here
COUNT_OUT = 5  #: rows that were written
_WORDS = 6


class Part(NamedTuple):
    """Which rows of a group are meant."""

    time: int
    level: int  #: those up to the level of this number
    side: int  #: 0: without the new ones, 1: with them; 2, 3: the same of the run of segments before


class Reduce(Operator):
    """Groups with their aggregates.

    Parameters
    ----------
    label
        What errors call it.
    width
        Words of the rows that come in: those of the groups, then one for each item that has a column.
    groups
        How many words a group has.
    operations, of
        What each item computes, and from which word.
    """

    def __init__(self, label: str, width: int, groups: int, operations: Rows, of: Rows) -> None:
        super().__init__(label, 1, PAYLOAD + groups + len(operations))
        self.index = Index(width, np.arange(PAYLOAD, PAYLOAD + groups, dtype=np.int64))
        self.operations = operations
        self.of = of
        self._group = _scratch(MEMBERS, operations, of)
        self._out = empty(self.width)

    def receive(self, port: int, rows: Rows) -> Rows:
        """How the results of the groups of new rows change."""
        if not len(rows):
            return empty(self.width)
        begin = self.index.append(rows)
        done = np.zeros(len(rows), np.int64)
        if not len(self._out):
            self._out = np.zeros((CAPACITY, self.width), np.int64)
        found = []
        row = begin
        chains = self.index.chains
        while True:
            self._group.word[BEGIN] = begin
            status, row, count = _reduce(chains, self.index.end, row, done, self._group, self._out)
            if count:
                found.append(self._out[:count].copy())
            if status == DONE:
                break
            if status == OVERFLOW:
                raise DataError(
                    f"{self.label}: a sum of integers leaves 64 bits; make them floats before: project(…, name='name * 1.0')"
                )
            if status == GROW_STACK:
                self._group = _scratch(2 * len(self._group.members), self.operations, self.of)
            elif status == GROW_OUTPUT:
                self._out = np.zeros((2 * len(self._out), self.width), np.int64)
        return combined(np.concatenate(found)) if found else empty(self.width)

    def forget(self) -> None:
        self.index.sweep(self.definite[0])

    @property
    def held(self) -> int:
        return len(self.index)

    @property
    def bytes(self) -> int:
        return self.index.bytes

    def saved(self) -> dict[str, Any]:
        return {"groups": self.index.held}

    def load(self, state: dict[str, Any]) -> None:
        self.index.load(state["groups"])


def _scratch(capacity: int, operations: Rows, of: Rows) -> Group:
    return Group(
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros((capacity, 2), np.int64),
        np.zeros((capacity, 2), np.int64),
        np.zeros((2, capacity), np.int64),
        np.zeros((4, capacity, 1 + len(operations)), np.int64),
        np.zeros(MOST_PARTS, np.float64),
        operations,
        of,
        np.zeros(_WORDS, np.int64),
    )


@jit
def _reduce(there: Chains, end: int, row: int, done: Rows, group: Group, out: Rows) -> tuple[int, int, int]:
    """Write the changes of the groups of rows [row, end), of which those from BEGIN on are new.

    Returns a status, the row to go on with, and how many rows were written.
    """
    word = group.word
    begin = word[BEGIN]
    word[COUNT_OUT] = 0
    while row < end:
        if done[row - begin] != 0:
            row += 1
            continue
        if not _gather(there, row, group):
            return GROW_STACK, row, word[COUNT_OUT]
        _levels(there.rows, group)
        if (8 * word[SIZE] + 4) * word[LEVELS] > len(out) - word[COUNT_OUT]:
            return (OUTPUT_FULL if word[COUNT_OUT] else GROW_OUTPUT), row, word[COUNT_OUT]
        before = word[COUNT_OUT]
        if not _sweep(there, group, out):
            return OVERFLOW, row, before
        at = there.heads[hashed(there.rows, row, there.keys) & (there.heads.size - 1)]
        while at >= begin:  # newest first
            if same(there.rows, at, there.keys, there.rows, row, there.keys):
                done[at - begin] = 1
            at = there.following[at]
        row += 1
    return DONE, row, word[COUNT_OUT]


@jit
def _gather(there: Chains, row: int, group: Group) -> bool:
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
def _levels(rows: Rows, group: Group) -> None:
    """Keep the members that live in [LOW, HIGH), with their levels and in the order of their starts and ends."""
    low, high = group.word[LOW], group.word[HIGH]
    kept = 0
    levels = 0
    for at in range(group.word[SIZE]):
        member = group.members[at]
        if rows[member, VE] <= low or rows[member, VS] >= high:
            continue
        group.members[kept] = member
        group.starts[kept, 0] = max(rows[member, VS], low)
        group.starts[kept, 1] = kept
        group.ends[kept, 0] = min(rows[member, VE], high)
        group.ends[kept, 1] = kept
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
    _sort(group.starts, kept)
    _sort(group.ends, kept)
    group.word[SIZE], group.word[LEVELS] = kept, levels


@jit
def _sort(pairs: Rows, size: int) -> None:
    """By the first word: few by insertion, many by a heap."""
    if size <= 24:
        for i in range(1, size):
            time, member = pairs[i, 0], pairs[i, 1]
            j = i
            while j > 0 and pairs[j - 1, 0] > time:
                pairs[j, 0], pairs[j, 1] = pairs[j - 1, 0], pairs[j - 1, 1]
                j -= 1
            pairs[j, 0], pairs[j, 1] = time, member
        return
    for i in range(size // 2 - 1, -1, -1):
        _sink(pairs, i, size)
    for last in range(size - 1, 0, -1):
        for part in range(2):
            pairs[0, part], pairs[last, part] = pairs[last, part], pairs[0, part]
        _sink(pairs, 0, last)


@inlined
def _sink(pairs: Rows, at: int, size: int) -> None:
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and pairs[child + 1, 0] > pairs[child, 0]:
            child += 1
        if pairs[at, 0] >= pairs[child, 0]:
            return
        for part in range(2):
            pairs[at, part], pairs[child, part] = pairs[child, part], pairs[at, part]
        at = child


@jit
def _sweep(there: Chains, group: Group, out: Rows) -> bool:
    """Write how the results of a group change between LOW and HIGH; whether they fit into 64 bits.

    Segments with the same results are one: ``since`` is where the run of equal ones begins.
    """
    word = group.word
    size, high = word[SIZE], word[HIGH]
    for level in range(word[LEVELS]):
        group.counts[0, level] = 0
        group.counts[1, level] = 0
    first, last = 0, 0
    time = word[LOW]
    since = time
    while time < high:
        while first < size and group.starts[first, 0] == time:
            _count(there.rows, group.starts[first, 1], 1, group)
            first += 1
        while last < size and group.ends[last, 0] == time:
            _count(there.rows, group.ends[last, 1], -1, group)
            last += 1
        following = high
        if first < size:
            following = min(following, group.starts[first, 0])
        if last < size:
            following = min(following, group.ends[last, 0])
        if not _results(there.rows, time, group):
            return False
        if time == word[LOW]:
            _remember(group)
        elif not _unchanged(group):
            _write(there, since, time, group, out)
            _remember(group)
            since = time
        time = following
    _write(there, since, high, group, out)
    return True


@inlined
def _count(rows: Rows, at: int, sign: int, group: Group) -> None:
    """A member begins or ends to count."""
    member = group.members[at]
    weight = sign * rows[member, WEIGHT]
    group.counts[1, group.level[at]] += weight
    if member < group.word[BEGIN]:
        group.counts[0, group.level[at]] += weight


@jit
def _results(rows: Rows, time: int, group: Group) -> bool:
    """The results at a time up to each level, before and after; whether they fit into 64 bits."""
    for side in range(2):
        total = 0
        for level in range(group.word[LEVELS]):
            total += group.counts[side, level]
            group.values[side, level, 0] = 1 if total > 0 else 0
            if total <= 0:
                continue
            for item in range(group.operations.size):
                found, fits = _item(rows, item, total, Part(time, level, side), group)
                if not fits:
                    return False
                group.values[side, level, 1 + item] = found
    return True


@inlined
def _active(rows: Rows, at: int, part: Part, group: Group) -> bool:
    """Whether a member counts at a time, up to a level, before or after the new rows."""
    member = group.members[at]
    return (
        group.level[at] <= part.level
        and rows[member, VS] <= part.time < rows[member, VE]
        and (part.side == 1 or member < group.word[BEGIN])
    )


@jit
def _item(rows: Rows, item: int, total: int, part: Part, group: Group) -> tuple[int, bool]:
    """The word of one aggregate, and whether it fits."""
    operation, of = group.operations[item], group.of[item]
    if operation == COUNT:
        return total, True
    if operation in (SUM, AVG):
        high, low = 0, 0
        for at in range(group.word[SIZE]):
            if _active(rows, at, part, group):
                member = group.members[at]
                high += (rows[member, of] >> 32) * rows[member, WEIGHT]
                low += (rows[member, of] & _LOW) * rows[member, WEIGHT]
        high += low >> 32
        low &= _LOW
        if operation == SUM:
            if high >= 1 << 31 or high < -(1 << 31):
                return 0, False
            return (high << 32) | low, True
        carry = high >> 32
        middle = high & _LOW
        if middle >= 1 << 31:
            middle -= 1 << 32
            carry += 1
        return word(mean((middle << 32) | low, carry, 0, total) + 0.0), True
    if operation in (SUM_REAL, AVG_REAL):
        found = _real_sum(rows, of, part, group)
        if operation == AVG_REAL:
            found = found / total
        return word(found + 0.0), True
    return _extreme(rows, operation, of, part, group), True


@jit
def _real_sum(rows: Rows, of: int, part: Part, group: Group) -> float:
    """The exact sum of floats; what is infinite or no number counts by its weight."""
    parts = 0
    above, below, neither = 0, 0, 0
    for at in range(group.word[SIZE]):
        if _active(rows, at, part, group):
            member = group.members[at]
            value = real(rows[member, of])
            weight = rows[member, WEIGHT]
            if value != value:
                neither += weight
            elif value == np.inf:
                above += weight
            elif value == -np.inf:
                below += weight
            else:
                parts = add_times(value, weight, group.parts, parts)
    if neither > 0 or (above > 0 and below > 0):
        return np.nan
    if above > 0:
        return np.inf
    if below > 0:
        return -np.inf
    return rounded(group.parts, parts)


@inlined
def _before(a: int, b: int, operation: int) -> bool:
    """Whether word a comes before word b for MIN or MAX; NaN comes last for both."""
    if operation == MIN:
        return a < b
    if operation == MAX:
        return a > b
    x, y = real(a), real(b)
    if x != x or y != y:
        return x == x
    return x < y if operation == MIN_REAL else x > y


@jit
def _extreme(rows: Rows, operation: int, of: int, part: Part, group: Group) -> int:
    """The first value in the operation's order whose weights come to more than 0."""
    tried = False
    beyond = 0
    while True:
        found = False
        best = 0
        weight = 0
        for at in range(group.word[SIZE]):
            if not _active(rows, at, part, group):
                continue
            value = rows[group.members[at], of]
            if tried and (value == beyond or not _before(beyond, value, operation)):
                continue
            if not found or (value != best and _before(value, best, operation)):
                found = True
                best = value
                weight = 0
            if value == best:
                weight += rows[group.members[at], WEIGHT]
        if not found or weight > 0:
            return best
        tried = True
        beyond = best


@jit
def _unchanged(group: Group) -> bool:
    """Whether the results are those of the segment before."""
    for side in range(2):
        for level in range(group.word[LEVELS]):
            if not _equal(side, level, 2 + side, level, group):
                return False
    return True


@jit
def _remember(group: Group) -> None:
    """The results are those of a new run of segments."""
    for side in range(2):
        for level in range(group.word[LEVELS]):
            for item in range(group.values.shape[2]):
                group.values[2 + side, level, item] = group.values[side, level, item]


@jit
def _write(there: Chains, since: int, until: int, group: Group, out: Rows) -> None:
    """Write the changes of a run of segments: at each level what it adds to the one before, after less before."""
    for level in range(group.word[LEVELS]):
        if _equal(2, level, 3, level, group) and (level == 0 or _equal(2, level - 1, 3, level - 1, group)):
            continue
        for side in range(2, 4):
            sign = 2 * side - 5
            if level > 0 and _equal(side, level - 1, side, level, group):
                continue
            if level > 0 and group.values[side, level - 1, 0] == 1:
                _put(there, Part(since, level, side), until, -sign, level - 1, group, out)
            if group.values[side, level, 0] == 1:
                _put(there, Part(since, level, side), until, sign, level, group, out)


@inlined
def _equal(side: int, level: int, other: int, at: int, group: Group) -> bool:
    """Whether two results are the same."""
    if group.values[side, level, 0] != group.values[other, at, 0]:
        return False
    if group.values[side, level, 0] == 0:
        return True
    for item in range(1, group.values.shape[2]):  # noqa: SIM110 - no generators in kernels
        if group.values[side, level, item] != group.values[other, at, item]:
            return False
    return True


@jit
def _put(there: Chains, part: Part, until: int, weight: int, of: int, group: Group, out: Rows) -> None:
    """Write a row with the result up to level number ``of``, at the level of ``part`` and from its time on."""
    count = group.word[COUNT_OUT]
    out[count, VS] = part.time
    out[count, VE] = until
    out[count, WEIGHT] = weight
    out[count, LEVEL] = group.levels[part.level]
    member = group.members[0]
    for at in range(there.keys.size):
        out[count, PAYLOAD + at] = there.rows[member, there.keys[at]]
    for item in range(1, group.values.shape[2]):
        out[count, PAYLOAD + there.keys.size + item - 1] = group.values[part.side, of, item]
    group.word[COUNT_OUT] = count + 1
