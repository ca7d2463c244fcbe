"""Matches where conditions read rows of the match so far: forward by preference, and back where a condition fails.

Such conditions are small programs over *registers*, which say of the match so far what conditions may read of it: the
last or first rows of a set of variables, and running aggregates. A *configuration* is a row, the position that it was
taken as, and the registers that a later condition may still read. One that was left without a match is kept in a table
and not gone through again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto._jit import DONE, FAULTED, GROW_STACK, GROW_TABLE, OUTPUT_FULL, inlined, jit
from stretto.engines.rows.kernels import next_start, possible
from stretto.engines.rows.structure import (
    FAULT,
    I64,
    INTEGERS,
    KEYS,
    MATCHES,
    NUMBER,
    PARTITION,
    ROW,
    U64,
    USED,
    Bits,
    Found,
    Machine,
)
from stretto.engines.shared.scalar import (
    absolute,
    added,
    compared,
    multiplied,
    negated,
    quotient,
    real,
    remainder,
    remainder_real,
    subtracted,
    word,
)

# Kinds of registers. ARGUMENT: the register that they continue, or their column; COUNTED: the register that counts their values.
LAST_ROW = 0  #: the last row of a set, or the one that was when its argument was ... −1: none
FIRST_ROW = 1
LAST_LABEL = 2  #: the variable of such a row
COUNT = 3
SUM = 4
SUM_REAL = 5
MIN = 6
MIN_REAL = 7
MAX = 8
MAX_REAL = 9

# Steps of programs: operator, argument, second argument. They work on a stack of words, each known or NULL.
# Those that put a value on it:
COLUMN = 0  #: a column (argument) of the current row (second argument −1), or of the row in a register
CONSTANT = 1
NULL = 2
REGISTER = 3  #: NULL where the register that counts its values (second argument) is 0
LABEL = 4  #: the rank of the name of the variable in a register
MATCH = 5  #: the number of the match
# Those that change the value on top:
TO_REAL = 6
NEGATE = 7
NEGATE_REAL = 8
ABSOLUTE = 9
ABSOLUTE_REAL = 10
NOT = 11
IS_NULL = 12
# Those that make one of two, of known values or not:
AND = 13
OR = 14
COALESCE = 15
# … comparisons, which are false where a value is NULL:
EQUAL = 16
NOT_EQUAL = 17
LESS = 18
LESS_EQUAL = 19
EQUAL_REAL = 20
NOT_EQUAL_REAL = 21
LESS_REAL = 22
LESS_EQUAL_REAL = 23
# … and what is NULL where a value is NULL:
ADD = 24
SUBTRACT = 25
MULTIPLY = 26
REMAINDER = 27
DIVIDE = 28  #: integers, towards zero
ADD_REAL = 29
SUBTRACT_REAL = 30
MULTIPLY_REAL = 31
REMAINDER_REAL = 32
DIVIDE_REAL = 33
COMPARED = 34  #: an integer beside a double: −1, 0, 1, or 2 where that is NaN
COMPARED_LOW = 35  #: … or −2

# What :func:`followed` may give in place of a position.
ENDS = -1  #: the match ends here
NOWHERE = -2  #: no follower is left
NO_ROOM = -3
REFUSED = -4  #: an integer left 64 bits


class Programs(NamedTuple):
    """The conditions of all positions as programs, and the registers that they read."""

    variable: I64  #: of each position
    begin: I64  #: the program of position p is ``code[begin[p]:begin[p + 1]]``; empty: nothing is asked
    code: I64  #: (steps, 3)
    constants: I64  #: words
    ranks: I64  #: of each variable: the rank of its name
    kind: I64  #: of each register
    argument: I64
    counted: I64
    member: Bits  #: (registers, positions): a row taken as the position changes the register
    live_begin: I64  #: a configuration of position p has the registers ``live[live_begin[p]:live_begin[p + 1]]``
    live: I64
    fails: Bits  #: of each position: a match may fail behind it
    by_number: bool  #: a condition reads the number of the match
    by_start: bool  #: … the first row's time: WITHIN


class Values(NamedTuple):
    """What programs read of rows; behind the last row stands one whose values are all NULL."""

    words: I64  #: (columns, rows + 1)
    known: Bits  #: (columns, rows + 1)
    latest: I64  #: of each row: the last row within the window that begins with it; empty: no window


class Scratch(NamedTuple):
    """What the kernel writes on the way."""

    registers: I64  #: (rows of the match so far + 1, registers)
    edge: I64  #: of each row of the match so far: the follower to try next
    position: I64
    stack: I64
    known: Bits
    faults: I64  #: (1, 1): an integer left 64 bits
    key: I64


class Failed(NamedTuple):
    """Configurations that failed: open addressing, half empty at least."""

    key: I64  #: (slots, words): row, position, number or start where they matter, registers
    used: Bits


@inlined
def aggregated(kind: int, before: int, value: int, faults: I64) -> int:
    """An aggregate of at least one value, with one more."""
    if kind == SUM:
        return added(before, value, faults)
    if kind == MIN:
        return min(before, value)
    if kind == MAX:
        return max(before, value)
    if kind == SUM_REAL:
        return word(real(before) + real(value))
    # NaN is greater than any other number.
    if kind == MIN_REAL:
        return value if real(value) < real(before) or np.isnan(real(before)) else before
    return value if real(value) > real(before) or np.isnan(real(value)) else before


@inlined
def updated(programs: Programs, values: Values, r: int, row: int, position: int, before: I64, faults: I64) -> int:
    """One register behind a row that is taken as a position that changes it; ``before``: the registers behind the row before."""
    kind = programs.kind[r]
    argument = programs.argument[r]
    if kind == LAST_ROW:
        return row if argument < 0 else before[argument]
    if kind == LAST_LABEL:
        return int(programs.variable[position] if argument < 0 else before[argument])
    if kind == FIRST_ROW:
        return row if before[r] < 0 and (argument < 0 or before[argument] >= 0) else before[r]
    if argument >= 0 and not values.known[argument, row]:
        return int(before[r])
    if kind == COUNT:
        return int(before[r] + 1)
    value = values.words[argument, row]
    return aggregated(kind, before[r], value, faults) if before[programs.counted[r]] else value


@inlined
def update(programs: Programs, values: Values, row: int, position: int, depth: int, scratch: Scratch) -> None:
    """The registers at ``depth``: those of the row before, with a row that is taken as a position. O(registers)."""
    before = scratch.registers[depth - 1]
    for r in range(programs.kind.size):
        found = before[r]
        if programs.member[r, position]:
            found = updated(programs, values, r, row, position, before, scratch.faults)
        scratch.registers[depth, r] = found


@inlined
def put(
    step: I64, programs: Programs, values: Values, row: int, number: int, depth: int, top: int, scratch: Scratch
) -> None:
    """Write what a step puts on the stack at ``top``."""
    registers = scratch.registers
    op = step[0]
    a = step[1]
    b = step[2]
    found = 0
    known = True
    if op == COLUMN:
        at = row if b < 0 else registers[depth, b]
        if at < 0:
            at = values.words.shape[1] - 1
        found = values.words[a, at]
        known = values.known[a, at]
    elif op == CONSTANT:
        found = programs.constants[a]
    elif op == NULL:
        known = False
    elif op == REGISTER:
        found = registers[depth, a]
        known = b < 0 or registers[depth, b] > 0
    elif op == LABEL:
        label = registers[depth, a]
        known = label >= 0
        found = programs.ranks[max(label, 0)]
    else:
        found = number
    scratch.stack[top] = found
    scratch.known[top] = known


@inlined
def change(op: int, top: int, scratch: Scratch) -> None:
    """Run a step on the value on top of the stack."""
    stack = scratch.stack
    x = stack[top]
    if op == IS_NULL:
        stack[top] = 0 if scratch.known[top] else 1
        scratch.known[top] = True
    elif op == NOT:
        stack[top] = 1 - x
    elif not scratch.known[top]:
        return
    elif op == TO_REAL:
        stack[top] = word(float(x))
    elif op == NEGATE:
        stack[top] = negated(x, scratch.faults)
    elif op == NEGATE_REAL:
        stack[top] = word(-real(x))
    elif op == ABSOLUTE:
        stack[top] = absolute(x, scratch.faults)
    else:
        stack[top] = word(abs(real(x)))


@inlined
def agrees(op: int, x: int, y: int) -> bool:
    """Whether a comparison is true of two words."""
    if op == EQUAL:
        found = x == y
    elif op == NOT_EQUAL:
        found = x != y
    elif op == LESS:
        found = x < y
    elif op == LESS_EQUAL:
        found = x <= y
    elif op == EQUAL_REAL:
        found = real(x) == real(y)
    elif op == NOT_EQUAL_REAL:
        found = real(x) != real(y)
    elif op == LESS_REAL:
        found = real(x) < real(y)
    else:
        found = real(x) <= real(y)
    return found


@inlined
def whole(op: int, x: int, y: int, faults: I64) -> int:
    """Arithmetic of integers; y is not 0 where it divides."""
    if op == ADD:
        return added(x, y, faults)
    if op == SUBTRACT:
        return subtracted(x, y, faults)
    if op == MULTIPLY:
        return multiplied(x, y, faults)
    if op == REMAINDER:
        return remainder(x, y)
    return quotient(x, y, faults)


@inlined
def fraction(op: int, x: float, y: float) -> float:
    """Arithmetic of doubles; y is not 0 where it divides."""
    if op == ADD_REAL:
        return x + y
    if op == SUBTRACT_REAL:
        return x - y
    if op == MULTIPLY_REAL:
        return x * y
    if op == REMAINDER_REAL:
        return remainder_real(x, y)
    return x / y


@inlined
def join(op: int, top: int, scratch: Scratch) -> None:
    """Run a step on two values, the one at ``top`` and the one above it."""
    stack = scratch.stack
    known = scratch.known
    x = stack[top]
    y = stack[top + 1]
    both = known[top] and known[top + 1]
    if op == AND:
        stack[top] = x & y
    elif op == OR:
        stack[top] = x | y
    elif op == COALESCE:
        if not known[top]:
            stack[top] = y
            known[top] = known[top + 1]
    elif op < ADD:
        stack[top] = 1 if both and agrees(op, x, y) else 0
        known[top] = True
    elif not both:
        known[top] = False
    elif op < ADD_REAL:
        known[top] = op < REMAINDER or y != 0
        if known[top]:
            stack[top] = whole(op, x, y, scratch.faults)
    elif op < COMPARED:
        known[top] = op < REMAINDER_REAL or real(y) != 0.0
        if known[top]:
            stack[top] = word(fraction(op, real(x), real(y)))
    else:
        sign = compared(x, real(y))
        stack[top] = -2 if sign == 2 and op == COMPARED_LOW else sign


@inlined
def holds(
    programs: Programs, values: Values, row: int, position: int, number: int, depth: int, scratch: Scratch
) -> bool:
    """Run the program of a position. O(steps)."""
    top = -1
    for c in range(programs.begin[position], programs.begin[position + 1]):
        op = programs.code[c, 0]
        if op <= MATCH:
            top += 1
            put(programs.code[c], programs, values, row, number, depth, top, scratch)
        elif op <= IS_NULL:
            change(op, top, scratch)
        else:
            top -= 1
            join(op, top, scratch)
    return top < 0 or scratch.stack[top] == 1


@inlined
def hashed(key: I64) -> int:
    """31 bits that depend on all words of a key. Products stay below 2^63, compiled or not."""
    found = 0
    for j in range(key.size):
        found = (found ^ (key[j] & 0x7FFFFFFF) ^ ((key[j] >> 31) & 0x7FFFFFFF)) * 0x9E3779B1
        found = (found ^ (found >> 29)) & 0x7FFFFFFF
    return found


@inlined
def sought(
    programs: Programs, row: int, position: int, number: int, start: int, depth: int, scratch: Scratch, failed: Failed
) -> int:
    """Write the key of a configuration; give its slot in the table, which is empty where it is not there."""
    key = scratch.key
    key[0] = row
    key[1] = position
    key[2] = number if programs.by_number else 0
    key[3] = start if programs.by_start else 0
    k = 4
    for at in range(programs.live_begin[position], programs.live_begin[position + 1]):
        key[k] = scratch.registers[depth, programs.live[at]]
        k += 1
    while k < key.size:
        key[k] = 0
        k += 1
    wrap = failed.used.size - 1
    slot = hashed(key) & wrap
    while failed.used[slot]:
        j = 0
        while j < k and failed.key[slot, j] == key[j]:
            j += 1
        if j == k:
            break
        slot = (slot + 1) & wrap
    return slot


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
        update(programs, values, at, q, depth + 1, scratch)
        true = holds(programs, values, at, q, number, depth + 1, scratch)
        if scratch.faults[0, 0]:
            return REFUSED
        if true and not (
            programs.fails[q] and failed.used[sought(programs, at, q, number, row, depth + 1, scratch, failed)]
        ):
            return q
    return NOWHERE


@inlined
def remember(programs: Programs, registers: I64, scratch: Scratch, failed: Failed, row: int, depth: int) -> bool:
    """Keep the configuration at ``depth`` as one that failed; false: the table has no room."""
    if 2 * (registers[KEYS] + 1) > failed.used.size:
        return False
    position = scratch.position[depth]
    slot = sought(programs, row + depth - 1, position, registers[NUMBER] + 1, row, depth, scratch, failed)
    if not failed.used[slot]:
        failed.used[slot] = True
        for j in range(scratch.key.size):
            failed.key[slot, j] = scratch.key[j]
        registers[KEYS] += 1
    return True


@inlined
def write(machine: Machine, mode: int, registers: I64, scratch: Scratch, out: Found, row: int, length: int) -> int:
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
    registers[NUMBER] += 1
    out.partition[matches] = registers[PARTITION]
    out.start[matches] = row
    out.length[matches] = length
    out.number[matches] = registers[NUMBER]
    registers[MATCHES] = matches + 1
    registers[USED] = used + length
    registers[ROW] = following
    return DONE


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

    Depth first, by preference. Loop invariant: the rows of the match so far are at depths 1 to ``depth``, each with its
    position, the follower to try next, and the registers with it; what is in ``failed`` cannot be completed. Cost:
    O(followers · (registers + steps)) for each configuration, of which each fails once. Stops with OUTPUT_FULL,
    GROW_STACK or GROW_TABLE, and begins the match anew.
    """
    while registers[PARTITION] < bounds.size - 1:
        k = registers[PARTITION]
        end = bounds[k + 1]
        while registers[ROW] < end:
            row = registers[ROW]
            last = min(end - 1, values.latest[row]) if values.latest.size else end - 1
            source = machine.ends.size + 1 if row == bounds[k] else machine.ends.size
            depth = 0
            scratch.edge[0] = machine.begin[source]
            scratch.position[0] = source
            ended = False
            while depth >= 0 and not ended:
                if row + depth == end:
                    # What is possible at a partition's last row may end there.
                    ended = True
                    continue
                taken = followed(bits, machine, programs, values, registers, scratch, failed, row, depth, last)
                if taken >= 0:
                    depth += 1
                    scratch.position[depth] = taken
                    scratch.edge[depth] = machine.begin[taken]
                elif taken == ENDS:
                    ended = True
                elif taken == NO_ROOM:
                    return GROW_STACK
                elif taken == REFUSED:
                    registers[FAULT] = INTEGERS
                    return FAULTED
                else:
                    if depth > 0 and not remember(programs, registers, scratch, failed, row, depth):
                        return GROW_TABLE
                    depth -= 1
            if ended:
                status = write(machine, mode, registers, scratch, out, row, depth)
                if status != DONE:
                    return status
            else:
                registers[ROW] = row + 1
        registers[NUMBER] = 0
        registers[PARTITION] = k + 1
    return DONE


@jit
def move_failed(old: Failed, row: int, new: Failed) -> int:
    """Copy the configurations of rows from ``row`` on into an empty table; give how many they are. O(slots)."""
    wrap = new.used.size - 1
    count = 0
    for s in range(old.used.size):
        if not old.used[s] or old.key[s, 0] < row:
            continue
        count += 1
        slot = hashed(old.key[s]) & wrap
        while new.used[slot]:
            slot = (slot + 1) & wrap
        new.used[slot] = True
        for j in range(old.key.shape[1]):
            new.key[slot, j] = old.key[s, j]
    return count
