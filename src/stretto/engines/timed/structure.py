"""The graph of the timed engine in flat arrays.

A *node* is an event as one step of the formula (``automata/steps.py``). Its *links* lead to what it can come after, one for each
edge of the automaton that enters the step: to the newest such node, behind which the older ones of the same partition and step
are in reach as far as the edge's bounds go. So an event costs what its class has edges, whatever lies in the window, and all
partial matches together take no more than the nodes. Slot 0 is the NIL.
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

#: A start before all others.
NEVER = -(1 << 62)

# Registers: scalars that outlive a kernel call. int64.
NODES = 0  #: the next free node
LINKS = 1  #: the next free link
CURSOR = 2  #: index of the event at hand in the call's arrays
BUSY = 3  #: 1 while the output of the event at hand is not all written
TOP = 4  #: nodes on the path at hand
ROOT = 5  #: the next node at which a path of the event ends
ROOTS = 6  #: how many there are
ROWS = 7  #: rows in the output buffers
CELLS = 8  #: positions in the output buffers
FIRST_ROW = 9  #: the first row of the event at hand
EMITTED = 10  #: matches written for the event at hand
SERIAL = 11  #: number of the event, for stamps in the table of rows
VISITED = 12
TRIGGERS = 13
LOW = 14  #: keys below this are out of the window
CONSUMED = 15  #: CONSUME BY ANY: partial matches that begin up to this position are forgotten
NEED = 16  #: what a GROW_… status asks for
STEPS = 17  #: nodes looked at since the kernel last paused
SETTINGS = 18  #: what follows is not taken from snapshots
# How matches are given; set once.
COUNTED = 18  #: 1: starts are compared by rank, not by position
DISTINCT = 19  #: 1: several paths may be one match
VALUATIONS = 20  #: 1: … which its variables tell apart
WHOLE = 21  #: 1: the rows of an event stay together
LIMIT = 22  #: so many matches of an event, the latest starts first; 0: all
CONSUME = 23  #: 0 none, 1 partition, 2 any
SILENT = 24  #: 1: nothing is listed
GREEDY = 25  #: 1: of each interval the match that has an event before others
BY_START = 26  #: 1: LIMIT counts starts, not matches
COUNTING = 27  #: 1: matches are counted, not listed
# Of the event at hand.
BEST = 28  #: the first node of the match at hand, by its start; NIL: none
START = 29  #: position at which the matches at hand begin; −1: they begin anywhere, or none is at hand yet
FLOOR = 30  #: … and as a key: the least with which a match at hand may begin
FOUND = 31  #: paths that are matches
STARTS = 32  #: starts that have matches
MIXED = 33  #: 1: of one complex event there are valuations that disagree on what ``told`` tells apart
REGISTERS = 34


class Machine(NamedTuple):
    """The automaton; ``least``, ``most`` and ``size`` are of the clock's type."""

    begin: I64  #: [class]: its first entry of ``step``; one more than classes
    step: I64  #: the steps that events of a class can be
    hits: Bits  #: [class, group]: whether an event must not come between
    before: Bits  #: [class]: whether an event must not come before the first
    mark: I32  #: [step]: which variables hold the event; 0: none
    told: I64  #: [mark]: marks with the same number need not be told apart; empty: none need
    first: Bits  #: [step]
    last: Bits  #: [step]
    inside: I64  #: [step]: windows that it lies in, as bits
    into: I64  #: [step]: its first edge; one more than steps
    out: I64  #: [step]: its first entry of ``leaving``; one more than steps
    leaving: I64  #: edges by source
    source: I64  #: [edge]
    contiguous: Bits  #: [edge]
    group: I64  #: [edge]: what must not come between; −1: nothing
    opens: I64  #: [edge]: windows that begin at its target, as bits
    bounded: Bits  #: [edge]: whether ``most`` says something
    late: I64  #: [edge]: its number among those whose ``least`` is above 0; −1: it is none
    least: Clock  #: [edge]
    most: Clock  #: [edge]
    size: Clock  #: [window]
    window: Clock  #: one value, of the type of measures: how long nothing may have come before a match


class Events(NamedTuple):
    """The events to visit, in order."""

    cls: I32
    part: I64  #: partition
    position: I64  #: position in the input
    rank: I64  #: position among the events of the partition
    low: I64  #: least key in the window of the event
    clock: Clock  #: what gaps measure
    measure: Clock  #: what the query's window measures


class Nodes(NamedTuple):
    step: I64
    part: I64
    position: I64
    rank: I64
    clock: Clock
    measure: Clock
    bad: Clock  #: of a first step: measure of the last event before it that must not come before
    spoilt: Bits  #: … and whether there is one
    best: I64  #: the latest start of the matches behind this node and all older ones of its step, as a key
    older: I64  #: the node before of the same partition and step
    newer: I64  #: … and behind
    begin: I64  #: first link
    links: I64  #: how many links
    after: (
        I64  #: of a node from which the event at hand is reached: the next one of the best way there; NIL: that is it
    )
    stamp: I64  #: … and the number of the event; or, where paths are listed, of the one for which none begins behind the node


class Links(NamedTuple):
    edge: I64
    node: I64
    stop: I64  #: nodes at positions below this are out of reach


class Parts(NamedTuple):
    """By partition; ``head`` and ``tail`` by partition and step, ``reached`` by partition and late edge, ``seen`` by group."""

    head: I64  #: the newest node
    tail: I64  #: the oldest node
    reached: I64  #: the newest node that was so long ago as the edge asks; NIL: none
    seen: I64  #: position of the last event of a group; −1: none
    rank: I64  #: of the last visited event
    consumed: I64  #: partial matches that begin up to this position are forgotten
    known: I64  #: whether the next one is known
    latest: Clock  #: the measure of the last event that must not come before


class Walk(NamedTuple):
    """The path at hand, from the last event to the first, by depth. Where ways are looked for, a heap of nodes, latest first."""

    node: I64
    link: I64  #: the next link; −1: the path so far was not written yet
    at: I64  #: the link whose nodes are being tried
    chain: I64  #: the next of these; NIL: none
    found: I64  #: how many matches there were before the path came to its node
    until: Clock  #: [depth · windows + window]: clock of the last event in a window
    root: I64  #: nodes at which paths of the event end
    start: I64  #: [step]: the newest node of a first step at which no match was looked for yet
    dead: Clock  #: [node · windows + window]: where no path begins behind a node, what ``until`` was


class Output(NamedTuple):
    """Matches found; ``stop[k]`` is where row k's positions end."""

    start: I64
    end: I64
    stop: I64
    part: I64
    begun: Clock  #: measure of the first event
    ended: Clock  #: … and of the last
    hash: I64
    position: I64
    mark: I32
    slot: I64  #: a table of the rows of the event at hand: row + 1, by hash
    stamp: I64  #: the event that a slot is of
