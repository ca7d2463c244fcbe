"""What a group comes to at every time and level: the common kernel of distinct and aggregates.

A group's rows are step functions of time and level. When some of them are new, the times that they cover are cut where any row of
the group begins or ends; between two cuts nothing changes but with the level. For each level the rows below it give the group's
result (or none: their weights come to 0); what differs from the levels directly below is the output there. Output is what is new
less what was there before the new rows, so that nothing of it needs to be kept.

A group of k rows costs O(k log k) for each of its levels. What a large group of one level comes to behind its last step is kept: rows
that begin there cost only themselves, whatever k is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto._jit import DONE, GROW_OUTPUT, GROW_STACK, GROW_TABLE, OUTPUT_FULL, OVERFLOW, inlined, jit
from stretto.dataflow.operators.group import (
    BEGIN,
    COUNT_OUT,
    HIGH,
    KEEPS,
    LEVELS,
    LOW,
    SEGMENTS,
    SIZE,
    STATE,
    Group,
    arrange,
    gather,
    place,
    scratch,
)
from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.operators.running import MIN, rank, run
from stretto.dataflow.run.index import Chains, Index
from stretto.dataflow.run.rows import LEVEL, PAYLOAD, VE, VS, WEIGHT, Rows, combined, empty, hashed, same
from stretto.errors import DataError
from stretto.times import FOREVER

CAPACITY = 1024  #: rows of the output buffer
MEMBERS = 64  #: rows of a group that there is room for at first
LARGE = 16  #: members of a group of which is kept what it comes to

_NONE = np.zeros(0, np.int64)


class Past(NamedTuple):
    """What large groups come to behind their last steps."""

    slots: Rows  #: (rows of the index) of the newest row of a group: its row of ``last``; 0: none
    last: (
        Rows  #: (slots, 2 + items · STATE) since when, the sum of weights, each item; in row 0 how many slots there are
    )


class Reduce(Operator):
    """Groups with their aggregates.

    Parameters
    ----------
    label
        What errors call it.
    groups
        How many words a group has. Behind them the rows that come in have one for each item that has a column.
    operations, of
        What each item computes (:mod:`~stretto.dataflow.operators.running`), and from which word (0: from none).
    """

    def __init__(self, label: str, groups: int, operations: Rows = _NONE, of: Rows = _NONE) -> None:
        super().__init__(label, 1, PAYLOAD + groups + len(operations))
        keys = np.arange(PAYLOAD, PAYLOAD + groups, dtype=np.int64)
        self.index = Index(PAYLOAD + groups + int((of > 0).sum()), keys)
        self.synopses = {"groups": self.index}
        self.operations = operations
        self.of = of
        self._make(MEMBERS, 2 * MEMBERS)
        self._out = empty(self.width)
        self._past = Past(_NONE, np.zeros((1, 2 + STATE * len(operations)), np.int64))
        self._moves = 0

    def nest(self, bits: int) -> None:
        super().nest(bits)
        self._make(MEMBERS, 2 * MEMBERS)

    def _make(self, members: int, results: int) -> None:
        """Room for the rows of a group, and for what they come to."""
        self._group = scratch(members, results, self.operations, self.of, self.index.bits)

    def receive(self, port: int, rows: Rows) -> Rows:
        """How the results of the groups of new rows change."""
        if not len(rows):
            return empty(self.width)
        begin = self.index.append(rows)
        done = np.zeros(len(rows), np.int64)
        if not len(self._out):
            self._out = np.zeros((CAPACITY, self.width), np.int64)
        past = self._remembered(len(rows))
        found = []
        row = begin
        chains = self.index.chains
        while True:
            self._group.word[BEGIN] = begin
            status, row, count = _reduce(chains, self.index.end, row, done, past, self._group, self._out)
            if count:
                found.append(self._out[:count].copy())
            if status == DONE:
                break
            if status == OVERFLOW:
                raise DataError(
                    f"{self.label}: a sum of integers leaves 64 bits; make them floats before: project(…, name='name * 1.0')"
                )
            if status == GROW_STACK:
                self._make(2 * len(self._group.members), len(self._group.results))
            elif status == GROW_TABLE:
                self._make(len(self._group.members), 2 * len(self._group.results))
            elif status == GROW_OUTPUT:
                self._out = np.zeros((2 * len(self._out), self.width), np.int64)
        return combined(np.concatenate(found)) if found else empty(self.width)

    def _remembered(self, more: int) -> Past:
        """What groups come to, with room for so many more rows; nothing, where rows have changed their places."""
        slots, last = self._past
        if self._moves != self.index.moves:
            self._moves = self.index.moves
            slots, last = _NONE, np.zeros_like(last[:1])
        if slots.size < len(self.index.rows):
            slots = np.concatenate([slots, np.zeros(len(self.index.rows) - slots.size, np.int64)])
        if last[0, 0] + more >= len(last):
            last = np.concatenate([last, np.zeros((len(last) + more, last.shape[1]), np.int64)])
        self._past = Past(slots, last)
        return self._past

    def forget(self) -> None:
        self.index.sweep(self.definite[0])


@jit
def _reduce(there: Chains, end: int, row: int, done: Rows, past: Past, group: Group, out: Rows) -> tuple[int, int, int]:
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
        # The newest row of the group but for the new ones, of which this is the first; where anything is kept of any group.
        old = there.following[row] if past.last[0, 0] > 0 else 0
        while old != 0 and not same(there.rows, old, there.keys, there.rows, row, there.keys):
            old = there.following[old]
        slot = past.slots[old]
        recalled = slot != 0 and _recall(there, row, old, slot, past.last, group)
        if not (recalled or gather(there, row, group)) or not arrange(there, group):
            return GROW_STACK, row, word[COUNT_OUT]
        if 2 * word[LEVELS] * word[SEGMENTS] > len(group.results):
            return GROW_TABLE, row, word[COUNT_OUT]
        if 2 * group.terms.shape[1] * word[SEGMENTS] * word[LEVELS] > len(out) - word[COUNT_OUT]:
            return (OUTPUT_FULL if word[COUNT_OUT] else GROW_OUTPUT), row, word[COUNT_OUT]
        before = word[COUNT_OUT]
        rank(there.rows, group)
        for level in range(word[LEVELS]):
            if not (run(there, level, 0, group) and run(there, level, 1, group)):
                return OVERFLOW, row, before
        _write(there, group, out)
        newest = row
        at = there.heads[hashed(there.rows, row, there.keys) & (there.heads.size - 1)]
        while at >= begin:  # newest first
            if same(there.rows, at, there.keys, there.rows, row, there.keys):
                done[at - begin] = 1
                newest = max(newest, at)
            at = there.following[at]
        past.slots[newest] = _remember(slot, past.last, group)
        row += 1
    return DONE, row, word[COUNT_OUT]


@jit
def _recall(there: Chains, row: int, old: int, slot: int, last: Rows, group: Group) -> bool:
    """The new rows of a group as its members, and row 0 for all before; false: they do not all begin behind the last step of these.

    O(new rows).
    """
    rows, keys, operations = there.rows, there.keys, group.operations
    low = FOREVER
    least = -FOREVER  # weight: what takes values back shows the next best one
    for item in range(operations.size):
        least = 1 if operations[item] >= MIN else least
    size = 0
    at = there.heads[hashed(rows, row, keys) & (there.heads.size - 1)]
    while at >= row:
        if same(rows, at, keys, rows, row, keys):
            low = min(low, rows[at, VS])
            if low < last[slot, 0] or rows[at, LEVEL] != rows[old, LEVEL] or rows[at, WEIGHT] < least:
                return False
            if size + 1 >= len(group.members):
                return False
            group.members[size] = at
            size += 1
        at = there.following[at]
    group.members[size] = 0
    for at in range(rows.shape[1]):
        rows[0, at] = rows[old, at]
    rows[0, VS], rows[0, VE], rows[0, WEIGHT] = low, FOREVER, last[slot, 1]
    for item in range(operations.size):
        for at in range(STATE):
            group.base[item, at] = last[slot, 2 + STATE * item + at]
        if operations[item] >= MIN:
            rows[0, group.of[item]] = group.base[item, 0]
    group.word[SIZE], group.word[LOW], group.word[HIGH] = size + 1, low, FOREVER
    return True


@jit
def _remember(slot: int, last: Rows, group: Group) -> int:
    """Keep what a large group comes to behind its last step, in ``slot`` or a new one; gives which (0: none)."""
    word = group.word
    if slot == 0 and word[SIZE] < LARGE:
        return 0
    if word[KEEPS] == 0 or word[LEVELS] > 1 or word[HIGH] < FOREVER:
        last[slot, 0] = FOREVER if slot else last[0, 0]
        return slot
    if slot == 0:
        last[0, 0] += 1
        slot = last[0, 0]
    end = word[SEGMENTS] - 1
    last[slot, 0] = group.segments[end, 0]
    last[slot, 1] = group.results[place(0, 1, group) + end, 0]
    for item in range(group.operations.size):
        for at in range(STATE):
            last[slot, 2 + STATE * item + at] = group.ends[item, at]
    return slot


@jit
def _write(there: Chains, group: Group, out: Rows) -> None:
    """Write how the results change. Segments in which those of all levels are the same are one.

    Levels are not cut one by one: where a result goes at one level and comes at another, both rows cover the same time, and cancel
    out where levels do not count.
    """
    segments = group.word[SEGMENTS]
    first = 0
    while first < segments:
        last = first + 1
        while last < segments and _alike(first, last, group):
            last += 1
        until = group.segments[last, 0] if last < segments else group.word[HIGH]
        for level in range(group.word[LEVELS]):
            if _changes(level, first, group):
                _write_run(there, level, first, until, group, out)
        first = last


@inlined
def _alike(segment: int, other: int, group: Group) -> bool:
    """Whether the results are the same in two segments."""
    for level in range(group.word[LEVELS]):
        for side in range(2):
            begin = place(level, side, group)
            if not _equal(begin + segment, begin + other, group):
                return False
    return True


@inlined
def _changes(level: int, segment: int, group: Group) -> bool:
    """Whether the new rows make a difference."""
    for t in range(group.terms.shape[1]):
        term = group.terms[level, t]
        if term >= 0 and not _equal(place(term, 0, group) + segment, place(term, 1, group) + segment, group):
            return True
    return False


@jit
def _write_run(there: Chains, level: int, segment: int, until: int, group: Group, out: Rows) -> None:
    """Write the changes from a segment on: at the level what it adds to those below, after less before."""
    count = group.terms.shape[1]
    for side in range(2):
        here = place(level, side, group) + segment
        if count == 2 and level > 0 and _equal(place(level - 1, side, group) + segment, here, group):
            continue
        for t in range(count):
            term = group.terms[level, t]
            if term < 0:
                continue
            result = place(term, side, group) + segment
            if group.results[result, 0] > 0:
                sign = 2 * side - 1
                bits = t
                while bits:
                    sign = -sign
                    bits &= bits - 1
                _put(there, result, (group.segments[segment, 0], until, sign, level), group, out)


@inlined
def _equal(one: int, other: int, group: Group) -> bool:
    """Whether two results are the same."""
    results = group.results
    if (results[one, 0] > 0) != (results[other, 0] > 0):
        return False
    if results[one, 0] <= 0:
        return True
    for item in range(1, results.shape[1]):  # noqa: SIM110 - no generators in kernels
        if results[one, item] != results[other, item]:
            return False
    return True


@inlined
def _put(there: Chains, result: int, about: tuple[int, int, int, int], group: Group, out: Rows) -> None:
    """Write a row with a result; ``about``: from when to when it holds, its weight, and the number of its level."""
    count = group.word[COUNT_OUT]
    out[count, VS] = about[0]
    out[count, VE] = about[1]
    out[count, WEIGHT] = about[2]
    out[count, LEVEL] = group.levels[about[3]]
    member = group.members[0]
    for at in range(there.keys.size):
        out[count, PAYLOAD + at] = there.rows[member, there.keys[at]]
    for item in range(1, group.results.shape[1]):
        out[count, PAYLOAD + there.keys.size + item - 1] = group.results[result, item]
    group.word[COUNT_OUT] = count + 1
