"""What a group comes to in each segment of time: values that are kept up to date from one to the next.

A group of k rows costs O(k log k) for each of its levels, whatever its segments; and so do sums, which change with the rows that come
and go, and the least and greatest values, which a tree over the values that are there gives.
"""

from __future__ import annotations

import numpy as np

from stretto._jit import inlined, jit
from stretto.dataflow.operators.group import KEEPS, SEGMENTS, SIZE, STATE, Group, counts, place, sort
from stretto.dataflow.run.exact import add, add_times, rounded
from stretto.dataflow.run.index import Chains
from stretto.dataflow.run.rows import VE, VS, WEIGHT, Rows
from stretto.engines.shared.scalar import mean, real, word

# What an item computes.
COUNT, SUM, SUM_REAL, AVG, AVG_REAL, MIN, MAX, MIN_REAL, MAX_REAL = range(9)

_LOW = 0xFFFFFFFF
_MOST = (1 << 63) - 1


@jit
def run(there: Chains, level: int, side: int, group: Group) -> bool:
    """Fill in the results of a level and side; whether they fit into 64 bits."""
    _totals(there, level, side, group)
    group.word[KEEPS] = 1
    for item in range(group.operations.size):
        operation = group.operations[item]
        if operation == COUNT:
            begin = place(level, side, group)
            for segment in range(group.word[SEGMENTS]):
                group.results[begin + segment, 1 + item] = group.results[begin + segment, 0]
        elif operation in (SUM, AVG):
            if not _sums(there, level, side, item, group):
                return False
        elif operation in (SUM_REAL, AVG_REAL):
            _real_sums(there, level, side, item, group)
        else:
            _extremes(there, level, side, item, group)
    return True


@jit
def _totals(there: Chains, level: int, side: int, group: Group) -> None:
    """How often rows occur."""
    begin = place(level, side, group)
    total = 0
    step = 0
    for segment in range(group.word[SEGMENTS]):
        while step < group.segments[segment, 1]:
            code = group.steps[step, 1]
            at = abs(code) - 1
            if counts(at, level, side, there.bits, group):
                weight = there.rows[group.members[at], WEIGHT]
                total += weight if code > 0 else -weight
            step += 1
        group.results[begin + segment, 0] = total


@jit
def _sums(there: Chains, level: int, side: int, item: int, group: Group) -> bool:
    """Sums or means of integers; whether the sums fit."""
    rows, of = there.rows, group.of[item]
    begin = place(level, side, group)
    high, low = 0, 0
    step = 0
    for segment in range(group.word[SEGMENTS]):
        while step < group.segments[segment, 1]:
            code = group.steps[step, 1]
            at = abs(code) - 1
            if counts(at, level, side, there.bits, group):
                member = group.members[at]
                weight = rows[member, WEIGHT] if code > 0 else -rows[member, WEIGHT]
                if member == 0:
                    high += group.base[item, 0]
                    low += group.base[item, 1]
                else:
                    high += (rows[member, of] >> 32) * weight
                    low += (rows[member, of] & _LOW) * weight
            step += 1
        high += low >> 32
        low &= _LOW
        total = group.results[begin + segment, 0]
        if total <= 0:
            continue
        if group.operations[item] == SUM:
            if high >= 1 << 31 or high < -(1 << 31):
                return False
            found = (high << 32) | low
        else:
            carry = high >> 32
            middle = high & _LOW
            if middle >= 1 << 31:
                middle -= 1 << 32
                carry += 1
            found = word(mean((middle << 32) | low, carry, 0, total) + 0.0)
        group.results[begin + segment, 1 + item] = found
    group.ends[item, 0], group.ends[item, 1] = high, low
    return True


@jit
def _real_sums(there: Chains, level: int, side: int, item: int, group: Group) -> None:
    """Exact sums of floats, or their means; what is infinite or no number counts by its weight."""
    rows, of = there.rows, group.of[item]
    begin = place(level, side, group)
    parts, above, under, neither = 0, 0, 0, 0
    step = 0
    for segment in range(group.word[SEGMENTS]):
        while step < group.segments[segment, 1]:
            code = group.steps[step, 1]
            at = abs(code) - 1
            if counts(at, level, side, there.bits, group):
                member = group.members[at]
                weight = rows[member, WEIGHT] if code > 0 else -rows[member, WEIGHT]
                value = real(rows[member, of])
                if member == 0:
                    above += group.base[item, 0]
                    under += group.base[item, 1]
                    neither += group.base[item, 2]
                    parts = _with_base(item, parts, group)
                elif abs(value) < np.inf:
                    parts = add_times(value, weight, group.parts, parts)
                else:
                    above += weight if value > 0 else 0
                    under += weight if value < 0 else 0
                    neither += weight if value != value else 0
            step += 1
        total = group.results[begin + segment, 0]
        if total <= 0:
            continue
        if parts > 0 and not abs(group.parts[parts - 1]) < np.inf:
            parts = _again(there, level, side, segment, item, group)  # it overflowed, from where there is no way back
        found = rounded(group.parts, parts)
        if neither > 0 or above > 0 or under > 0:
            found = _beyond(above, under, neither)
        if group.operations[item] == AVG_REAL:
            found = found / total
        group.results[begin + segment, 1 + item] = word(found + 0.0)
    _end_with(parts, above, under, neither, item, group)


@inlined
def _beyond(above: int, under: int, neither: int) -> float:
    """The sum of infinities and what is no number."""
    if neither > 0 or (above > 0 and under > 0):
        return np.nan
    return np.inf if above > 0 else -np.inf


@inlined
def _end_with(parts: int, above: int, under: int, neither: int, item: int, group: Group) -> None:
    """Keep what a sum of floats comes to, unless it has many parts."""
    if parts > STATE - 4 or (parts > 0 and not abs(group.parts[parts - 1]) < np.inf):
        group.word[KEEPS] = 0
        return
    ends = group.ends
    ends[item, 0], ends[item, 1], ends[item, 2], ends[item, 3] = above, under, neither, parts
    for at in range(parts):
        ends[item, 4 + at] = word(group.parts[at])


@inlined
def _with_base(item: int, parts: int, group: Group) -> int:
    """The parts of a sum with those of the rows that row 0 stands for."""
    for at in range(group.base[item, 3]):
        parts = add(real(group.base[item, 4 + at]), group.parts, parts)
    return parts


@jit
def _again(there: Chains, level: int, side: int, segment: int, item: int, group: Group) -> int:
    """The parts of the sum of what is there in a segment, from scratch."""
    rows, time = there.rows, group.segments[segment, 0]
    parts = 0
    for at in range(group.word[SIZE]):
        member = group.members[at]
        if member == 0:
            parts = _with_base(item, parts, group)
        elif rows[member, VS] <= time < rows[member, VE] and counts(at, level, side, there.bits, group):
            value = real(rows[member, group.of[item]])
            if abs(value) < np.inf:
                parts = add_times(value, rows[member, WEIGHT], group.parts, parts)
    return parts


# -- least and greatest -----------------------------------------------------------------------------------------------


@jit
def rank(rows: Rows, group: Group) -> None:
    """Order the values of the members, for each min and max."""
    size = group.word[SIZE]
    for item in range(group.operations.size):
        operation, of = group.operations[item], group.of[item]
        if operation < MIN:
            continue
        for at in range(size):
            group.pairs[at, 0] = _key(rows[group.members[at], of], operation)
            group.pairs[at, 1] = at
        sort(group.pairs, 0, size)
        count = 0
        for one in range(size):
            if one == 0 or group.pairs[one, 0] != group.pairs[one - 1, 0]:
                group.values[item, count] = rows[group.members[group.pairs[one, 1]], of]
                count += 1
            group.ranks[item, group.pairs[one, 1]] = count - 1
        group.distinct[item] = count


@inlined
def _key(value: int, operation: int) -> int:
    """An integer that orders the words of values as MIN or MAX does; NaN comes last for both."""
    if operation in (MIN_REAL, MAX_REAL):
        if real(value) != real(value):
            return _MOST
        if value < 0:
            value ^= _MOST
    return value if operation in (MIN, MIN_REAL) else ~value


@jit
def _extremes(there: Chains, level: int, side: int, item: int, group: Group) -> None:
    """The first value in the operation's order whose weights come to more than 0."""
    begin = place(level, side, group)
    size = group.distinct[item]
    leaves = 1
    while leaves < size:
        leaves *= 2
    for at in range(2 * leaves):
        group.tree[at] = 0
    for at in range(size):
        group.weights[at] = 0
    step = 0
    for segment in range(group.word[SEGMENTS]):
        while step < group.segments[segment, 1]:
            code = group.steps[step, 1]
            at = abs(code) - 1
            if counts(at, level, side, there.bits, group):
                weight = there.rows[group.members[at], WEIGHT]
                _weigh(group.ranks[item, at], weight if code > 0 else -weight, leaves, group)
            step += 1
        if group.results[begin + segment, 0] > 0:
            node = 1
            while node < leaves:
                node = 2 * node + (0 if group.tree[2 * node] else 1)
            group.results[begin + segment, 1 + item] = group.values[item, min(node - leaves, size - 1)]
    group.ends[item, 0] = group.results[begin + group.word[SEGMENTS] - 1, 1 + item]
    for at in range(size):
        if group.weights[at] < 0:
            group.word[KEEPS] = 0


@inlined
def _weigh(at: int, weight: int, leaves: int, group: Group) -> None:
    """A value occurs more or less often."""
    group.weights[at] += weight
    there = 1 if group.weights[at] > 0 else 0
    node = leaves + at
    while node > 0 and group.tree[node] != there:
        group.tree[node] = there
        node >>= 1
        if node > 0:
            there = group.tree[2 * node] | group.tree[2 * node + 1]
