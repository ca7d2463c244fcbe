"""Matches where conditions read rows of the match so far: forward by preference, and back where a condition fails.

Such conditions are programs over registers (:mod:`~stretto.engines.rows.interpreter`). A *configuration* is a row, the position
that it was taken as, and the registers that a later condition may still read. One that was left without a match is kept in a table
and not gone through again.
"""

from __future__ import annotations

from stretto._jit import DONE, FAULTED, GROW_STACK, GROW_TABLE, OUTPUT_FULL, PAUSED, inlined, jit
from stretto.engines.rows.failing import Failed, has_failed, limit_of_condition, note, remember, unlimit
from stretto.engines.rows.interpreter import Programs, Scratch, Values, run, update
from stretto.engines.rows.kernels import next_start, possible
from stretto.engines.rows.structure import (
    ASTRAY,
    DEAD,
    FAULT,
    I64,
    INTEGERS,
    MATCHES,
    MOST,
    MOST_TRIED,
    NEXT,
    NUMBER,
    PARTITION,
    PAUSE_AFTER,
    ROW,
    SOUGHT,
    TRIED,
    U64,
    USED,
    WAYS,
    WORK,
    Found,
    Machine,
)

# What :func:`followed` may give in place of a position.
ENDS = -1  #: the match ends here
NOWHERE = -2  #: no follower is left
NO_ROOM = -3
REFUSED = -4  #: an integer left 64 bits
FULL = -5  #: the table of what failed has no room
LOST = -6  #: too many ways failed


@inlined
def followed(
    bits: U64, machine: Machine, programs: Programs, values: Values, registers: I64, scratch: Scratch, failed: Failed,
    row: int, depth: int, last: int,
) -> int:  # fmt: skip
    """The next follower of the match's last row that its next row can be taken as, so far as is known; its registers are written.

    The match begins at ``row``, and no row behind ``last`` is near enough. Else ENDS, NOWHERE, NO_ROOM or REFUSED.
    """
    at = row + depth
    number = registers[NUMBER] + 1
    stop = machine.begin[scratch.position[depth] + 1]
    while scratch.edge[depth] < stop:
        q: int = machine.to[scratch.edge[depth]]
        scratch.edge[depth] += 1
        if q < 0:
            return ENDS
        if at > last or not possible(bits, at, q):
            continue
        if depth + 2 > scratch.edge.size:
            return NO_ROOM
        update(programs, values, at, q, number, depth, depth + 1, scratch)
        top = run(q, programs, values, at, number, depth + 1, scratch)
        true = top < 0 or scratch.stack[top] == 1
        if scratch.faults[0, 0]:
            return REFUSED
        if true and not (
            programs.fails[q]
            and has_failed(programs, values, at, q, number, scratch.frame[0], depth + 1, scratch, failed)
        ):
            return q
        if programs.harder.size:
            limit = scratch.bound
            if not true:
                limit_of_condition(programs, values, at, q, depth + 1, scratch, limit)
            note(programs, values, q, limit, depth, depth + 1, scratch)
    return NOWHERE


@inlined
def write(
    machine: Machine, mode: int, framed: bool, registers: I64, scratch: Scratch, out: Found, row: int, length: int
) -> int:
    """Write a match, and where the next may begin into ROW; DONE, OUTPUT_FULL or FAULTED."""
    matches = registers[MATCHES]
    used = registers[USED]
    if matches == out.start.size or used + length > out.path.size:
        return OUTPUT_FULL
    for j in range(length):
        out.path[used + j] = scratch.position[j + 1]
    following = next_start(row, length, mode, machine, out.path, used, registers)
    if following < 0:
        return FAULTED
    if framed and (length == 0 or mode == NEXT):
        following = registers[ROW] + 1
    registers[NUMBER] += 1
    registers[WAYS] = 0
    out.partition[matches] = registers[PARTITION]
    out.start[matches] = row
    out.length[matches] = length
    out.number[matches] = registers[ROW] if framed else registers[NUMBER]
    registers[MATCHES] = matches + 1
    registers[USED] = used + length
    registers[ROW] = following
    return DONE


@inlined
def later_start(programs: Programs, registers: I64, row: int, start: int) -> int:
    """The next row at which a window seeks a match, where there is none at ``start``.

    What begins further than ``reach`` rows behind the frame's begin does not depend on this: it is tried once for all frames.
    """
    registers[TRIED] += 1
    far = start - row >= programs.reach and not programs.by_start
    if far:
        registers[DEAD] = max(registers[DEAD], start + 1)
    following = start + 1
    if following - row >= programs.reach and not programs.by_start:
        following = max(following, registers[DEAD])
    return following


@inlined
def search(
    bits: U64, bounds: I64, machine: Machine, programs: Programs, values: Values, registers: I64, scratch: Scratch,
    failed: Failed, row: int,
) -> int:  # fmt: skip
    """The preferred match that begins at a row: its length; else NOWHERE, NO_ROOM, FULL or REFUSED.

    Depth first, by preference. Loop invariant: the rows of the match so far are at depths 1 to ``depth``, each with its
    position, the follower to try next, and the registers with it; what is in ``failed`` cannot be completed.
    """
    end = bounds[registers[PARTITION] + 1]
    last = scratch.frame[1]
    first = row == bounds[registers[PARTITION]]
    scratch.position[0] = machine.ends.size + 1 if first else machine.ends.size
    scratch.edge[0] = machine.begin[scratch.position[0]]
    depth = 0
    while depth >= 0:
        if row + depth == end:
            # What is possible at a partition's last row may end there.
            return depth
        taken = followed(bits, machine, programs, values, registers, scratch, failed, row, depth, last)
        if taken >= 0:
            depth += 1
            scratch.position[depth] = taken
            scratch.edge[depth] = machine.begin[taken]
            unlimit(programs, scratch.limit[depth])
        elif taken == ENDS:
            return depth
        elif taken != NOWHERE:
            return taken
        else:
            number = registers[NUMBER] + 1
            begin = scratch.frame[0]
            limit = scratch.limit[depth]
            # No later match begins before this row, and takes it as its first; those of other frames do.
            if depth > 1 or programs.framed:
                at = row + depth - 1
                if depth and not remember(programs, values, registers, number, scratch, failed, begin, row, at, depth):
                    return FULL
                registers[WAYS] += 1
                if registers[WAYS] > registers[MOST]:
                    return LOST
            depth -= 1
            if depth > 0:
                note(programs, values, scratch.position[depth + 1], limit, depth, depth + 1, scratch)
    return NOWHERE


@jit
def walk_back(
    bits: U64,
    bounds: I64,
    machine: Machine,
    mode: int,
    programs: Programs,
    values: Values,
    registers: I64,
    scratch: Scratch,
    failed: Failed,
    out: Found,
) -> int:
    """Do what :func:`stretto.engines.rows.kernels.walk` does, where a follower that is possible may fail.

    Loop invariant: all rows before ROW are done. Cost: O(followers · (registers + steps)) for each configuration, of which each
    fails once; how many starts share one is told in :mod:`~stretto.engines.rows.failing`. Stops with OUTPUT_FULL,
    GROW_STACK or GROW_TABLE, and begins the match anew; and with PAUSED, between two starts.
    """
    while registers[PARTITION] < bounds.size - 1:
        k = registers[PARTITION]
        end = bounds[k + 1]
        while registers[ROW] < end:
            if registers[WORK] > PAUSE_AFTER:
                registers[WORK] = 0
                return PAUSED
            row = registers[ROW]
            last = min(end - 1, values.latest[row]) if values.latest.size else end - 1
            scratch.frame[0] = row
            scratch.frame[1] = last
            start = row
            status = NOWHERE
            while start <= max(row, last):
                status = search(bits, bounds, machine, programs, values, registers, scratch, failed, start)
                if status != NOWHERE or not programs.seeks:
                    break
                start = later_start(programs, registers, row, start)
                registers[WAYS] = 0
                if registers[TRIED] > MOST_TRIED:
                    registers[FAULT] = SOUGHT
                    return FAULTED
            registers[WORK] += registers[WAYS]
            if status >= 0:
                status = write(machine, mode, programs.framed, registers, scratch, out, start, status)
                if status != DONE:
                    return status
            elif status == NOWHERE:
                registers[ROW] = row + 1
                registers[WAYS] = 0
            elif status in (REFUSED, LOST):
                registers[FAULT] = INTEGERS if status == REFUSED else ASTRAY
                return FAULTED
            else:
                return GROW_STACK if status == NO_ROOM else GROW_TABLE
        registers[NUMBER] = 0
        registers[PARTITION] = k + 1
    return DONE
