"""Work: the selected events of a partial match, as a field of its register.

A trail is an event and the trail before it; those that have both in common are one, found in a hash table, so that registers with
equal trails are equal. Work hold rows, not events: they outlive clean-up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.afa.structure import NIL, TRAILS, Work

I64 = NDArray[np.int64]

_LOW = 0xFFFFFFFF


@inlined
def _hash(before: int, row: int, label: int) -> int:
    """32 bits; products stay below 2^63."""
    x = ((before & _LOW) * 1540483477 + label) & _LOW
    x ^= x >> 15
    x = ((x ^ (row & _LOW)) * 1103515245) & _LOW
    x ^= x >> 13
    x = ((x ^ ((row >> 32) & _LOW)) * 1540483477) & _LOW
    return x ^ (x >> 16)


@jit
def intern(before: int, row: int, label: int, work: Work, registers: I64) -> int:
    """The number of a trail; NIL where there is no room for a new one."""
    mask = work.trail_table.size - 1
    at = _hash(before, row, label) & mask
    while work.trail_table[at] != NIL:
        known = work.trail_table[at]
        if work.trail_before[known] == before and work.trail_row[known] == row and work.trail_label[known] == label:
            return int(known)
        at = (at + 1) & mask
    fresh = registers[TRAILS] + 1
    if fresh >= work.trail_row.size:
        return NIL
    work.trail_before[fresh], work.trail_row[fresh], work.trail_label[fresh] = before, row, label
    work.trail_table[at] = fresh
    registers[TRAILS] = fresh
    return int(fresh)


@jit
def rebuild(count: int, work: Work) -> None:
    """Fill an empty table with trails 1 to ``count``."""
    mask = work.trail_table.size - 1
    for number in range(1, count + 1):
        at = _hash(work.trail_before[number], work.trail_row[number], work.trail_label[number]) & mask
        while work.trail_table[at] != NIL:
            at = (at + 1) & mask
        work.trail_table[at] = number


@jit
def keep(alive: I64, work: Work, place: I64) -> int:
    """Renumber the trails behind some numbers, in order; ``place`` is filled by old number. How many are kept."""
    for number in alive:
        at = number
        while at != NIL and place[at] == 0:
            place[at] = 1
            at = work.trail_before[at]
    count = 0
    for number in range(1, place.size):
        if place[number] != 0:
            count += 1
            place[number] = count
            work.trail_before[count] = place[work.trail_before[number]]
            work.trail_row[count], work.trail_label[count] = work.trail_row[number], work.trail_label[number]
    return count


@jit
def lengths(numbers: I64, work: Work, found: I64) -> None:
    """How many events trails have."""
    for i in range(numbers.size):
        at, count = numbers[i], 0
        while at != NIL:
            count += 1
            at = work.trail_before[at]
        found[i] = count


@jit
def spell(numbers: I64, offsets: I64, work: Work, rows: I64, labels: I64) -> None:
    """The events of trails, first to last: rows and labels; trail ``i`` ends before ``offsets[i + 1]``."""
    for i in range(numbers.size):
        at, place = numbers[i], offsets[i + 1]
        while at != NIL:
            place -= 1
            rows[place], labels[place] = work.trail_row[at], work.trail_label[at]
            at = work.trail_before[at]
