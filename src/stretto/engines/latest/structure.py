"""What the kernels of EQL read and write.

A partial match is a chain of nodes, one for each event, from its last to its first. A node is behind one other at most, since an
event that goes on takes the partial match away: so a chain that is forgotten is free at once, and nothing is collected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]

NIL = 0  #: no node

#: Registers.
CURSOR, VISITED, TRIGGERS, HEAD, FREE, LOW, ROWS, CELLS, TIMERS, LIVE, PASSED, REGISTERS = range(12)


class Machine(NamedTuple):
    """A query: its steps by bits of conditions and by groups of keys, −1 where there is none."""

    bit: I64  #: by step
    group: I64  #: by step
    missing_bit: I64  #: by missing event
    missing_group: I64
    behind: I64  #: the step before a missing event; −1: it stands before all
    until_bit: int
    until_group: int
    silent: bool


class Events(NamedTuple):
    """Events to visit, in order; ``key`` has a row for each group of keys, −1 where the event has no such key."""

    bits: I64
    position: I64
    low: I64  #: the least position in the window of each
    key: NDArray[np.int64]


class Nodes(NamedTuple):
    """Node 0 is none. A free node leads to the next one by ``previous``."""

    position: I64
    previous: I64
    start: I64  #: the position of the first event
    spoilt: I64  #: whether an event came that must not
    before: I64  #: the last event before the first that must not come there; −1: none
    key: I64
    timer: I64  #: a heap of complete chains that wait for the end of their window, by start


class Parts(NamedTuple):
    """By key: the partial match at each step, and the last event of each kind that must not come, that of ``until`` last."""

    head: NDArray[np.int64]
    seen: NDArray[np.int64]


class Samples(NamedTuple):
    """Of samples, by key: for each step its first events, as many as there are steps, and how many there are; behind these whether
    the sample is found."""

    position: NDArray[np.int64]  #: [key, step, event]
    number: NDArray[np.int64]


class Joined(NamedTuple):
    """Of joins, by key: the event of each step, −1 where there is none, and how many there are."""

    position: NDArray[np.int64]  #: [key, step]
    number: I64


class Out(NamedTuple):
    """Matches that are complete."""

    start: I64
    end: I64
    stop: I64
    position: I64
    mark: NDArray[np.int32]
