"""Programs over registers: what conditions that read rows of the match so far become, and what runs them.

A *register* says of the match so far what conditions may read of it: the last or first rows of a set of variables, or a running
aggregate. A row that is taken as a variable changes registers (:func:`update`); whether it may be is what a program says
(:func:`run`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto._jit import inlined
from stretto.engines.rows.structure import I64, Bits
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
from stretto.engines.shared.scalar_functions import of_one, of_two

# Kinds of registers. A row that is taken as a position that the register belongs to changes it:
LAST_ROW = 0  #: the last row of a set, or the one that CONTINUES said before it; −1: none
FIRST_ROW = 1  #: the first row of a set, or the first one behind that of CONTINUES
LAST_LABEL = 2  #: the variable of the last row, or the one that CONTINUES said before it
#: The variable of the row that is SHIFT rows from that of AMONG, while the match has it; every row changes it.
AT_LABEL = 3
# … aggregates, which a row without a value (SOURCE) does not change, nor one that does not change AMONG:
COUNT = 4
SUM = 5
SUM_REAL = 6
MIN = 7
MIN_REAL = 8
MAX = 9
MAX_REAL = 10
MEAN = 11  #: of doubles; COUNTED: how many
SQUARES = 12  #: the sum of the squares of their distances from the mean, which is CONTINUES
SEEN = 13  #: how many values, each once
MARK = 14  #: random bits for the set of those values: those of all values, joined by exclusive or
ANY_ROW = 15  #: the first row with a value
LEAST_ROW = 16  #: the first row with the least one
GREATEST_ROW = 17

# Steps of programs: operator, argument, second argument. They work on a stack of words, each known or NULL.
# What an aggregate is given of a row is a program, too, unless it is a column.
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
SIGN = 10
NOT = 11
IS_NULL = 12
OF_ONE = 13  #: a function of a double (argument)
# Those that go on elsewhere, so many steps further:
JUMP = 14
UNLESS = 15  #: where the value on top, which is taken away, is not true
# Those that make one of two, of known values or not:
AND = 16
OR = 17
COALESCE = 18
# … comparisons, which are false where a value is NULL:
EQUAL = 19
NOT_EQUAL = 20
LESS = 21
LESS_EQUAL = 22
EQUAL_REAL = 23
NOT_EQUAL_REAL = 24
LESS_REAL = 25
LESS_EQUAL_REAL = 26
# … and what is NULL where a value is NULL:
ADD = 27
SUBTRACT = 28
MULTIPLY = 29
REMAINDER = 30
DIVIDE = 31  #: integers, towards zero
LEAST = 32
GREATEST = 33
ADD_REAL = 34
SUBTRACT_REAL = 35
MULTIPLY_REAL = 36
REMAINDER_REAL = 37
DIVIDE_REAL = 38
LEAST_REAL = 39
GREATEST_REAL = 40
OF_TWO = 41  #: a function of two doubles (argument)
COMPARED = 42  #: an integer beside a double: −1, 0, 1, or 2 where that is NaN
COMPARED_LOW = 43  #: … or −2


class Programs(NamedTuple):
    """The conditions of all positions as programs, and the registers that they read."""

    variable: I64  #: of each position
    begin: I64  #: program p is ``code[begin[p]:begin[p + 1]]``: those of positions, which may be empty, then those of arguments
    code: I64  #: (steps, 3)
    constants: I64  #: words
    ranks: I64  #: of each variable: the rank of its name
    kind: I64  #: of each register
    continues: I64  #: another register, as it was before the row; −1: none
    counted: I64  #: the register that counts the values
    among: I64  #: another register
    shift: I64
    source: I64  #: (registers, positions): what a row gives: a column, NOTHING, or the program −2 − ``source``
    place: I64  #: of each register of values: the row of ``Scratch.first`` that is its own
    member: Bits  #: (registers, positions): a row taken as the position changes the register
    live_begin: I64  #: a configuration of position p has the reads ``live[live_begin[p]:live_begin[p + 1]]``
    live: I64
    fails: Bits  #: of each position: a match may fail behind it
    read: I64  #: of each read: its register
    stands: I64  #: … and what that is in the key of a configuration that failed
    left: I64  #: … and which value it is of those left out of keys, with which conditions get harder; −1: none
    harder: I64  #: of each of these values: its read
    rising: Bits  #: … conditions get harder the smaller it is
    real: Bits  #: … it is a double
    limits_begin: I64  #: position p's condition has the comparisons ``limits[limits_begin[p]:limits_begin[p + 1]]``
    limits: I64  #: which value is compared, with what, the number of that, whether it holds where both are equal
    reads: Bits  #: (positions, values): a position's condition reads the value
    by_number: bool  #: a condition reads the number of the match
    by_start: bool  #: … the first row's time (WITHIN), or it depends on where the frame begins
    framed: bool  #: the clause is a window: matches read rows of their frame only
    seeks: bool  #: … and may begin later than that
    reach: int  #: how far conditions read back from the current row, in a frame
    back: I64  #: of each column: it is the first of those for 0 to ``back`` rows of the frame before the row
    ahead: I64  #: … for each of them, of those for 0 to ``ahead`` rows behind it


#: What an aggregate without arguments is given.
NOTHING = -1


class Values(NamedTuple):
    """What programs read of rows; behind the last row stands one whose values are all NULL."""

    words: I64  #: (columns, rows + 1)
    known: Bits  #: (columns, rows + 1)
    latest: I64  #: of each row: the last row within the window, or the frame, that begins with it; empty: there is none


class Scratch(NamedTuple):
    """What the kernel writes on the way."""

    registers: I64  #: (rows of the match so far + 1, registers)
    edge: I64  #: of each row of the match so far: the follower to try next
    position: I64
    limit: I64  #: … no better values left out of keys than these have a match, as far as followers have failed
    stack: I64
    known: Bits
    faults: I64  #: (1, 1): an integer left 64 bits
    key: I64
    frame: I64  #: (2,): the first and the last row of the frame
    first: I64  #: (registers of values, values): the depth at which a value came last for the first time
    left_out: Bits  #: of each value that may be left out of keys: it is, of that written last
    bound: I64  #: … the value, or the limit with which the configuration has failed
    alone: I64  #: … how often a condition was false for this value alone


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
        elif programs.framed:
            behind = programs.ahead[a]
            a += min(at - scratch.frame[0], programs.back[a]) * (behind + 1)
            a += min(scratch.frame[1] - at, behind)
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
def change(op: int, argument: int, top: int, scratch: Scratch) -> None:
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
    elif op == SIGN:
        stack[top] = int(x > 0) - int(x < 0)
    else:
        stack[top] = word(of_one(argument, real(x)))


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
    if op == LEAST:
        return min(x, y)
    if op == GREATEST:
        return max(x, y)
    return quotient(x, y, faults)


@inlined
def fraction(op: int, argument: int, x: float, y: float) -> float:
    """Arithmetic of doubles; y is not 0 where it divides. NaN is greater than other numbers."""
    if op == ADD_REAL:
        return x + y
    if op == SUBTRACT_REAL:
        return x - y
    if op == MULTIPLY_REAL:
        return x * y
    if op == REMAINDER_REAL:
        return remainder_real(x, y)
    if op == DIVIDE_REAL:
        return x / y
    if op == LEAST_REAL:
        return y if np.isnan(x) or y < x else x
    if op == GREATEST_REAL:
        return y if np.isnan(y) or y > x else x
    return of_two(argument, x, y)


@inlined
def join(op: int, argument: int, top: int, scratch: Scratch) -> None:
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
        known[top] = y != 0 or op not in (REMAINDER, DIVIDE)
        if known[top]:
            stack[top] = whole(op, x, y, scratch.faults)
    elif op < COMPARED:
        known[top] = real(y) != 0.0 or op not in (REMAINDER_REAL, DIVIDE_REAL)
        if known[top]:
            stack[top] = word(fraction(op, argument, real(x), real(y)))
    else:
        sign = compared(x, real(y))
        stack[top] = -2 if sign == 2 and op == COMPARED_LOW else sign


@inlined
def run(program: int, programs: Programs, values: Values, row: int, number: int, depth: int, scratch: Scratch) -> int:
    """Run a program; give where the top of the stack is, −1 where the program is empty. O(steps)."""
    top = -1
    c = programs.begin[program]
    end = programs.begin[program + 1]
    while c < end:
        op = programs.code[c, 0]
        if op <= MATCH:
            top += 1
            put(programs.code[c], programs, values, row, number, depth, top, scratch)
        elif op < JUMP:
            change(op, programs.code[c, 1], top, scratch)
        elif op == JUMP:
            c += programs.code[c, 1]
        elif op == UNLESS:
            if scratch.stack[top] != 1:
                c += programs.code[c, 1]
            top -= 1
        else:
            top -= 1
            join(op, programs.code[c, 1], top, scratch)
        c += 1
    return top


@inlined
def label_at(programs: Programs, base: int, shift: int, row: int, position: int, depth: int, scratch: Scratch) -> int:
    """The variable of a row of the match, −1 where it has no such row. The match's last row is taken as ``position``."""
    at = depth + base + shift - row
    if base < 0 or at < 1 or at > depth:
        return -1
    return int(programs.variable[position if at == depth else scratch.position[at]])


@inlined
def is_new(programs: Programs, values: Values, r: int, value: int, row: int, depth: int, scratch: Scratch) -> bool:
    """Whether no row of the match so far gave a register of values this one, which is noted then. O(1).

    On one way through a match a value is new once, and where that was is noted; what is noted of other ways is not there.
    """
    first = scratch.first[programs.place[r]]
    at = first[value]
    if 1 <= at < depth:
        taken = scratch.position[at]
        if programs.member[r, taken]:
            column = programs.source[r, taken]
            then = row - depth + at
            if values.known[column, then] and values.words[column, then] == value:
                return False
    first[value] = depth
    return True


@inlined
def chosen(
    programs: Programs, values: Values, r: int, value: int, row: int, before: int, depth: int, scratch: Scratch
) -> int:
    """The row that a register chooses, where ``before`` was the one before this row."""
    kind = programs.kind[r]
    if before < 0:
        return row
    if kind == ANY_ROW:
        return before
    taken = scratch.position[depth + before - row]
    least = values.words[programs.source[r, taken], before]
    better = value < least if kind == LEAST_ROW else value > least
    return row if better else before


@inlined
def given(
    programs: Programs, values: Values, r: int, row: int, position: int, number: int, depth: int, scratch: Scratch
) -> bool:
    """Put what a row gives an aggregate at the bottom of the stack; False: NULL."""
    source = programs.source[r, position]
    if source == NOTHING:
        return True
    if source >= 0:
        scratch.stack[0] = values.words[source, row]
        return bool(values.known[source, row])
    run(-2 - source, programs, values, row, number, depth, scratch)
    return bool(scratch.known[0])


@inlined
def reached(programs: Programs, r: int, row: int, position: int, before: I64, depth: int, scratch: Scratch) -> int:
    """A register of a row, or of a classifier, at ``depth``; ``before``: the registers of the row before."""
    kind = programs.kind[r]
    continues = programs.continues[r]
    if kind == AT_LABEL:
        base = scratch.registers[depth, programs.among[r]]
        return label_at(programs, base, programs.shift[r], row, position, depth, scratch)
    if kind == FIRST_ROW:
        return row if before[r] < 0 and (continues < 0 or before[continues] >= 0) else before[r]
    own = row if kind == LAST_ROW else programs.variable[position]
    return int(own if continues < 0 else before[continues])


@inlined
def gathered(programs: Programs, values: Values, r: int, row: int, before: I64, depth: int, scratch: Scratch) -> int:
    """An aggregate at ``depth`` with one value more, which is at the bottom of the stack."""
    value = scratch.stack[0]
    kind = programs.kind[r]
    if kind == COUNT:
        found = before[r] + 1
    elif kind == SEEN:
        found = before[r] + is_new(programs, values, r, value, row, depth, scratch)
    elif kind == MARK:
        found = before[r] ^ value
    elif kind >= ANY_ROW:
        found = chosen(programs, values, r, value, row, before[r], depth, scratch)
    elif kind == MEAN:
        mean = real(before[r])
        found = word(mean + (real(value) - mean) / (before[programs.counted[r]] + 1))
    elif kind == SQUARES:
        m = programs.continues[r]
        x = real(value)
        found = word(real(before[r]) + (x - real(before[m])) * (x - real(scratch.registers[depth, m])))
    else:
        found = aggregated(kind, before[r], value, scratch.faults) if before[programs.counted[r]] else value
    return int(found)


@inlined
def update(
    programs: Programs, values: Values, row: int, position: int, number: int, last: int, depth: int, scratch: Scratch
) -> None:
    """The registers at ``depth``: those at ``last``, with a row that is taken as a position. O(registers).

    A register reads others at the same row only where they stand before it.
    """
    before = scratch.registers[last]
    for r in range(programs.kind.size):
        scratch.registers[depth, r] = before[r]
        if not programs.member[r, position]:
            continue
        if programs.kind[r] < COUNT:
            scratch.registers[depth, r] = reached(programs, r, row, position, before, depth, scratch)
            continue
        among = programs.among[r]
        same = among >= 0 and scratch.registers[depth, among] == before[among]
        if not same and given(programs, values, r, row, position, number, depth, scratch):
            scratch.registers[depth, r] = gathered(programs, values, r, row, before, depth, scratch)
