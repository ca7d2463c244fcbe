"""Arrays of the row pattern engine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.automata.rows import ACCEPT, RowAutomaton

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
U64 = NDArray[np.uint64]
Bits = NDArray[np.bool_]

# Where the next match may begin.
PAST = 0
NEXT = 1
TO_FIRST = 2
TO_LAST = 3

# Registers of a walk.
PARTITION = 0  #: the partition at hand
ROW = 1  #: the row at which a match is looked for next
NUMBER = 2  #: matches of the partition so far
MATCHES = 3  #: matches in the output
USED = 4  #: rows in the output
FAULT = 5  #: what is refused: see below
KEYS = 6  #: configurations in the table of those that failed
MOST = 7  #: so many configurations of one match may fail
# … over sorted rows:
WAYS = 8  #: configurations of this match that failed
DEAD = 9  #: in a window that seeks: no match begins before this row, but near the begin of a frame
TRIED = 10  #: … rows at which a match was sought in vain
WORK = 11  #: configurations that failed since the kernel paused
WALK_REGISTERS = 12

#: Rows at which a window may seek a match in vain.
MOST_TRIED = 1 << 32

#: A kernel pauses when so many configurations have failed, which takes well below a second, so that ^C acts soon.
PAUSE_AFTER = 1 << 16

# Faults.
NO_TARGET = 1  #: AFTER MATCH SKIP TO a variable that holds no row
TO_START = 2  #: AFTER MATCH SKIP TO the first row of the match
INTEGERS = 3  #: an integer left 64 bits in a condition
SOUGHT = 4  #: a window seeks too long
ASTRAY = 5  #: too many configurations of one match failed
CROWDED = 6  #: … more than the memory holds

# What a register is in the key of a configuration that failed; else a row of which this column is read.
AS_IS = -1
FLAG = -2  #: whether there is any
VALUE = -3  #: the aggregate, which may be left out

# What a value that is left out is compared with.
BESIDE_COLUMN = 1  #: a column of the current row
BESIDE_CONSTANT = 2


class Machine(NamedTuple):
    """The automaton: the followers of position p are ``to[begin[p]:begin[p + 1]]``, in order."""

    begin: I64  #: positions, then what may come later in a partition, then at its first row, and one more
    to: I64  #: positions; ACCEPT: the match may end
    ends: Bits  #: of each position: it may be the last row's
    target: Bits  #: of each position: AFTER MATCH SKIP goes to such a row


class Found(NamedTuple):
    """Matches, by number."""

    partition: I64
    start: I64  #: first row; of an empty match the row before which it is
    length: I64
    number: I64  #: in its partition, from 1; in a window the row that it is the match of
    path: I64  #: the position of each row of each match, one match behind the other


def machine(automaton: RowAutomaton, target: Bits) -> Machine:
    """Lay out an automaton."""
    lists = [*automaton.followers, automaton.later, automaton.first]
    begin = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(one) for one in lists], out=begin[1:])
    to = np.array([one for each in lists for one in each], np.int64)
    assert ACCEPT == -1
    return Machine(begin, to, automaton.ends, target)


def found(matches: int, rows: int) -> Found:
    """Room for so many matches of so many rows."""
    partition, start, length, number = np.empty((4, matches), np.int64)
    return Found(partition, start, length, number, np.empty(rows, np.int64))
