"""What the greedy engine holds: open starts, and for each the best way to every step that can still go on.

A *start* is an event that may begin a match. Of all ways from a start to a step only the best one that is still in reach can be part
of what is kept: two ways that go on with the same event keep their order. So a start has, for each step, a short list of *nodes*:
events as that step, each with the node before it on its best way. Slot 0 is none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Bits = NDArray[np.bool_]
Clock = NDArray[Any]  #: int64, or float64 where the attribute is real

NIL = 0

# Registers: scalars that outlive a kernel call. int64.
NODES = 0  #: the next free node
STARTS = 1  #: the next start that was never used
FREE = 2  #: a start that is free again, which leads to the next; NIL: none
CURSOR = 3  #: index of the event at hand in the call's arrays
TAKEN = 4  #: 1: the event at hand has been taken, and what it decides is being given
ROWS = 5  #: rows in the output buffers
CELLS = 6  #: positions in the output buffers
TIMERS = 7  #: entries of the heap of timers
VISITED = 8
TRIGGERS = 9
NEED = 10  #: what a GROW_… status asks for
SETTINGS = 11  #: what follows is not taken from snapshots
LONGEST = 11  #: 1: the longest match of a start; 0: the shortest
SKIP = 12  #: where the next match may begin
TIMED = 13  #: 1: time moves gaps; 2: it moves the window; 3: both; 0: neither
WINDOWED = 14  #: 1: there is a window; 2: it is of a time
COUNTED = 15  #: 1: starts are compared by rank, not by position
REGISTERS = 16

# Values of SKIP.
NEXT, PAST, FIRST, LAST = range(4)


class Rules(NamedTuple):
    """What the automaton of the timed engine does not say."""

    late: Bits  #: [step]: whether an edge that leaves it has a least gap
    holds: Bits  #: [mark]: whether the variable of AFTER MATCH holds the event
    size: Clock  #: one value, of the type of measures: the window


class Starts(NamedTuple):
    position: I64
    key: I64  #: the position, or the rank in the partition
    part: I64
    next: I64  #: the next start of its partition, or the next free one
    best: I64  #: the last node of its match so far; NIL: it has none
    closed: Bits  #: no later event can change its match
    used: Bits
    measure: Clock  #: what the window measures of it
    head: I64  #: [start · steps + step]: the newest node


class Nodes(NamedTuple):
    step: I64
    position: I64
    rank: I64
    clock: Clock
    before: I64  #: the node before on the best way from the start
    older: I64  #: the next older node of the same start and step: its way is better, but it is out of reach sooner
    length: I64  #: events on the way


class Parts(NamedTuple):
    """By partition; ``seen`` by partition and group."""

    first: I64  #: the first open start
    last: I64  #: the last one
    open: I64  #: how many there are
    rank: I64  #: of the last visited event
    seen: I64  #: position of the last event of a group; −1: none
    timed: Bits  #: whether there is a timer …
    due: Clock  #: … and at what time


class Timers(NamedTuple):
    """A heap, the earliest first: when the first start of a partition may be closed by time."""

    time: Clock
    part: I64


class Output(NamedTuple):
    """Matches to give; ``stop[k]`` is where row k's positions end."""

    start: I64
    end: I64
    stop: I64
    position: I64
    mark: I32
    known: I64  #: position of the event at which row k is decided; −1: time decides it, or the end
    due: Clock  #: of a row that time decides: the last time at which it was open
