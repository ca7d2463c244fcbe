"""Matches of rows that keep coming, each given when no row to come can change it.

The walk of a partition goes depth first, by preference, from the row at which a match is looked for. It stops where it needs a row
that has not come (the *frontier*): what it prefers may still succeed there, so that nothing behind it is final. It goes on
from there when rows come. What failed depends on rows that have come, and so it failed for good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto._jit import DONE, FAULTED, GROW_TABLE, OUTPUT_FULL, PAUSED, inlined, jit
from stretto.engines.rows.backtracking import (
    ENDS,
    NOWHERE,
    REFUSED,
)
from stretto.engines.rows.failing import Failed, has_failed, limit_of_condition, note, remember, unlimit
from stretto.engines.rows.interpreter import Programs, Scratch, Values, run, update
from stretto.engines.rows.kernels import ONE, possible
from stretto.engines.rows.state import AT, LINKED, SLOTS, WORK, Given, Parts, Rows, Rules
from stretto.engines.rows.structure import (
    ASTRAY,
    FAULT,
    I64,
    INTEGERS,
    MATCHES,
    MOST,
    NEXT,
    NO_TARGET,
    PARTITION,
    PAST,
    PAUSE_AFTER,
    TO_FIRST,
    TO_START,
    USED,
    Machine,
)


class Walks(NamedTuple):
    """The walks of all partitions, and what they go by."""

    rules: Rules
    machine: Machine
    programs: Programs
    values: Values
    rows: Rows
    parts: Parts
    scratch: Scratch
    failed: Failed


WAITS = -5  #: what comes next depends on rows that have not come


@inlined
def link(rows: Rows, parts: Parts, slot: int) -> None:
    """Put a row behind the others of its partition."""
    k = rows.partition[slot]
    newest = parts.newest[k]
    rows.before[slot] = newest
    if newest:
        rows.after[newest] = slot
    rows.after[slot] = 0
    rows.ordinal[slot] = parts.came[k]
    parts.came[k] += 1
    parts.newest[k] = slot
    if parts.start[k] == 0:
        parts.start[k] = slot


@inlined
def is_near(rows: Rows, start: int, at: int, window: int) -> bool:
    """Whether a row is in the window of a match's first row."""
    return bool(rows.timed[start] and rows.timed[at] and rows.time[at] - rows.time[start] < window)


@inlined
def next_taken(k: int, ended: bool, reached: int, walks: Walks) -> int:
    """The next follower of the match's last row that its next row can be taken as, so far as is known.

    Else ENDS, NOWHERE, WAITS or REFUSED.
    """
    rules, machine, programs, scratch, failed = walks.rules, walks.machine, walks.programs, walks.scratch, walks.failed
    rows, parts = walks.rows, walks.parts
    start = parts.start[k]
    tip = parts.tip[k]
    source = rows.position[tip] if tip else machine.ends.size + (1 if rows.ordinal[start] == 0 else 0)
    edge = rows.edge[tip] if tip else parts.edge[k]
    at = rows.after[tip] if tip else start
    begin = machine.begin[source]
    size = machine.begin[source + 1] - begin
    # Whether no row to come can be near enough, as far as it has not come.
    closed = rules.window >= 0 and (not rows.timed[start] or reached - rows.time[start] >= rules.window)
    far = rules.window >= 0 and at != 0 and not is_near(rows, start, at, rules.window)
    taken = NOWHERE
    while edge < size:
        q = machine.to[begin + edge]
        if q < 0:
            taken = ENDS
            break
        if at == 0 and not (ended or closed):
            taken = WAITS
            break
        fits = at != 0 and not far and possible(rows.bits, at, q)
        asked = fits or (rules.steady and at != 0 and not far)
        if asked and not ended and rows.ordinal[at] + rules.ahead[q] >= parts.came[k]:
            taken = WAITS
            break
        edge += 1
        if not fits:
            continue
        number = parts.number[k] + 1
        # A row's place in the match is its slot.
        update(programs, walks.values, at, q, number, tip, at, scratch)
        top = run(q, programs, walks.values, at, number, at, scratch)
        true = top < 0 or scratch.stack[top] == 1
        if scratch.faults[0, 0]:
            taken = REFUSED
            break
        if true and not (
            programs.fails[q] and has_failed(programs, walks.values, at, q, number, start, at, scratch, failed)
        ):
            taken = q
            break
        if programs.harder.size:
            limit = scratch.bound
            if not true:
                limit_of_condition(programs, walks.values, at, q, at, scratch, limit)
            note(programs, walks.values, q, limit, tip, at, scratch)
    if taken == NOWHERE and at == 0 and machine.ends[source]:
        taken = ENDS if ended else WAITS
    if tip:
        rows.edge[tip] = edge
    else:
        parts.edge[k] = edge
    return taken


@inlined
def put(
    rules: Rules, rows: Rows, newest: int, start: int, length: int, number: int, registers: I64, out: Given
) -> bool:
    """Write a match, or a row of none, with the rows around it; false: the output has no room."""
    matches = registers[MATCHES]
    used = registers[USED]
    slots = registers[SLOTS]
    if matches == out.number.size or slots + length + 1 + rules.shown_back + rules.shown_ahead > out.slot.size:
        return False
    slot = start
    back = 0
    if length:
        while back < rules.shown_back and rows.before[slot]:
            slot = rows.before[slot]
            back += 1
    out.number[matches] = number
    out.length[matches] = length
    out.first[matches] = slots + back
    out.newest[matches] = newest
    for j in range(back + max(length, 1)):
        if j >= back and length:
            out.path[used] = rows.position[slot]
            used += 1
        out.slot[slots] = slot
        slots += 1
        slot = rows.after[slot]
    ahead = 0
    while length and ahead < rules.shown_ahead and slot:
        out.slot[slots] = slot
        slots += 1
        slot = rows.after[slot]
        ahead += 1
    out.bounds[matches + 1] = slots
    registers[MATCHES] = matches + 1
    registers[USED] = used
    registers[SLOTS] = slots
    return True


@inlined
def begins_next(rules: Rules, machine: Machine, rows: Rows, start: int, tip: int, registers: I64) -> int:
    """The slot of the row at which the next match may begin, 0 where it has not come; −1: AFTER MATCH cannot be followed."""
    if tip == 0 or rules.mode == NEXT:
        return int(rows.after[start])
    if rules.mode == PAST:
        return int(rows.after[tip])
    found = 0
    slot = start
    while True:
        if machine.target[rows.position[slot]]:
            found = slot
            if rules.mode == TO_FIRST:
                break
        if slot == tip:
            break
        slot = rows.after[slot]
    if found == 0:
        registers[FAULT] = NO_TARGET
    elif found == start:
        registers[FAULT] = TO_START
    else:
        return found
    return -1


@inlined
def give(k: int, walks: Walks, registers: I64, out: Given) -> int:
    """Write the match that a partition's walk has ended, and go to where the next may begin."""
    rules, rows, parts = walks.rules, walks.rows, walks.parts
    start = parts.start[k]
    tip = parts.tip[k]
    following = begins_next(rules, walks.machine, rows, start, tip, registers)
    if following < 0:
        return FAULTED
    length = rows.ordinal[tip] - rows.ordinal[start] + 1 if tip else 0
    if not put(rules, rows, parts.newest[k], start, length, parts.number[k] + 1, registers, out):
        return OUTPUT_FULL
    parts.number[k] += 1
    if tip:
        parts.behind[k] = max(parts.behind[k], rows.ordinal[tip] + 1)
    parts.start[k] = following
    parts.tip[k] = 0
    parts.edge[k] = 0
    parts.ways[k] = 0
    return DONE


@inlined
def fall_back(k: int, walks: Walks, registers: I64, out: Given) -> int:
    """Nothing follows the last row of the match so far: it is taken off; or, where it has none, no match begins at the row."""
    rules, programs, rows, parts = walks.rules, walks.programs, walks.rows, walks.parts
    start = parts.start[k]
    tip = parts.tip[k]
    if tip == 0:
        alone = rules.unmatched and rows.ordinal[start] >= parts.behind[k]
        if alone and not put(rules, rows, parts.newest[k], start, 0, 0, registers, out):
            return OUTPUT_FULL
        parts.start[k] = rows.after[start]
        parts.edge[k] = 0
        parts.ways[k] = 0
        return DONE
    p = rows.position[tip]
    if not programs.fails[p]:
        # Whatever came before it: so it is never tried again.
        rows.bits[tip, p >> 6] &= ~(ONE << np.uint64(p & 63))
    elif tip != start:
        # … but for the first row, which no later match has.
        number = parts.number[k] + 1
        if not remember(programs, walks.values, registers, number, walks.scratch, walks.failed, start, start, tip, tip):
            return GROW_TABLE
        registers[WORK] += 1
        parts.ways[k] += 1
        if parts.ways[k] > registers[MOST]:
            registers[FAULT] = ASTRAY
            return FAULTED
    parts.tip[k] = 0 if tip == start else rows.before[tip]
    if programs.fails[p] and parts.tip[k]:
        note(programs, walks.values, p, rows.limit[tip], parts.tip[k], tip, walks.scratch)
    return DONE


@jit
def read(work: I64, linking: bool, ended: bool, reached: int, walks: Walks, registers: I64, out: Given) -> int:
    """Go on with the walks of partitions: of the rows at slots ``work``, in this order, or (not ``linking``) of these numbers.

    ``ended``: no row will come; ``reached``: none before that time. Loop invariant: each partition's walk needs a row, or a time,
    that has not come, but for the one at AT. Cost: a configuration (a row, what it is taken as, what conditions may still read)
    fails once, as in :func:`~stretto.engines.rows.backtracking.walk_back`, whatever the batches; a row that comes costs the
    followers of its partition's last one, and nothing for others. Without conditions on the match so far that is O(rows · edges),
    and the rows of matches. Stops with OUTPUT_FULL, GROW_TABLE, FAULTED or PAUSED and goes on where it stood.
    """
    rows, parts = walks.rows, walks.parts
    while registers[AT] < work.size:
        k = work[registers[AT]]
        if linking:
            slot = k
            k = rows.partition[slot]
            if registers[LINKED] == 0:
                link(rows, parts, slot)
                registers[LINKED] = 1
        while parts.start[k]:
            if registers[WORK] > PAUSE_AFTER:
                registers[WORK] = 0
                return PAUSED
            taken = next_taken(k, ended, reached, walks)
            status = DONE
            if taken >= 0:
                tip = parts.tip[k]
                at = rows.after[tip] if tip else parts.start[k]
                rows.position[at] = taken
                rows.edge[at] = 0
                unlimit(walks.programs, rows.limit[at])
                parts.tip[k] = at
            elif taken == ENDS:
                tip = parts.tip[k]
                if tip and not ended and rows.ordinal[tip] + walks.rules.shown_ahead >= parts.came[k]:
                    break
                status = give(k, walks, registers, out)
            elif taken == NOWHERE:
                status = fall_back(k, walks, registers, out)
            elif taken == REFUSED:
                registers[FAULT] = INTEGERS
                status = FAULTED
            else:
                break
            if status != DONE:
                registers[PARTITION] = k
                return status
        registers[AT] += 1
        registers[LINKED] = 0
    return DONE
