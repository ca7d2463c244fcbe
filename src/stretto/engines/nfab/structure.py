"""Runs, shared storage of their events, and what a program says to the kernel, in flat arrays.

SASE+ paper, sections 5.1 to 5.3. In place of the shared versioned buffer the events of runs lie in *persistent lists*: a node
holds an event and points to the node of the event selected before it. A node has one predecessor, so a run needs no version
number: the list that begins at its node is its match, and runs that split share all nodes before the split, as in the paper's
figure 4 (d). Where runs merge, a *union* node points to the lists of both; ``start`` of a node is the latest start among the
lists behind it, so that expired ones are left out at construction.

Slot 0 of every array stands for "none".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]

NIL = 0

# States: 2p waits for an event at place p, 2p + 1 for a further one of its Kleene plus. A run that is complete has no state; one
# whose negation at the end is not over yet is PENDING, one that is only waiting to be taken off the heap is DEAD.
PENDING = -1
DEAD = -2
UNION = -1  #: label of a union node

# Registers: scalars that outlive a kernel call. int64.
CURSOR = 0  #: index of the event at hand
BUSY = 1  #: 1 while the output of the event at hand is not all written
TOP = 2  #: entries on the enumeration stack
QUEUED = 3  #: completed runs of the event at hand
ROWS = 4  #: rows in the output buffers
CELLS = 5  #: positions in the output buffers
HEAD = 6  #: first unused node
FREE = 7  #: first free run, linked by ``next``
FREE_RUNS = 8  #: how many runs are free
LIVE = 9  #: runs in lists
LOW = 10  #: latest bound of a window: runs that began before are dead (windows that measure the stream only)
TRIGGERS = 11  #: events that have output so far
VISITED = 12  #: events visited so far
NEED = 13  #: what a GROW_… status asks for
EMITTED = 14  #: matches written for the event at hand
THRESHOLD = 15  #: LIMIT: matches that begin at this key are written now; −1: all
NEXT = 16  #: LIMIT: the latest start below the threshold that was seen
EPOCH = 17  #: stamps of the merge table
TIMERS = 18  #: entries of the heap of pending runs
MADE = 19  #: runs ever made, those that go on included
MERGED = 20  #: runs that became part of another
SERIAL = 21  #: order of pending runs that began together
STEPS = 22  #: runs looked at since the kernel last paused
REGISTERS = 24


class Ways(NamedTuple):
    """What follows what, by place; of a pattern whose components come one after the other place c is that of component c."""

    plain: bool  #: the components come one after the other, under one strategy: what follows is not looked at
    component: I64  #: [place]
    first: I64  #: places at which a match may begin
    follow_first: I64  #: [place + 1] where the steps from a place begin …
    follow_place: I64  #: … where they lead …
    follow_edge: I64  #: … which edge they ask first; −1: none …
    eager: NDArray[np.bool_]  #: … and whether a run waits for each by itself, not inside its Kleene plus
    final: NDArray[np.bool_]  #: [place] whether a match may end there …
    final_edge: I64  #: … and which edge is asked then; −1: none
    mode: I64  #: [state] 0: no event is left out, 1: what cannot be selected, 2: any
    strict: bool  #: whether there is a 0 …
    any: bool  #: … or a 2
    held: I64  #: [component] slot that says whether there is one, where it may come again; 0: the state says it
    round: I64  #: [component] slot that counts the events of this round; 0: none
    least: I64  #: [component] … and its bounds
    most: I64
    until: I64  #: [component] edge of the event that ends its Kleene plus; −1: none …
    until_bit: I64  #: … its bit …
    ended: I64  #: … the slot that says that it has come …
    only: NDArray[np.bool_]  #: … and whether nothing is complete without it


class Machine(NamedTuple):
    """A program.

    Edges: 3c begin, 3c + 1 take, 3c + 2 proceed of component c; 3m + k: negation k; then groups that repeat, as they are left; then
    endings of repetitions.
    """

    kleene: NDArray[np.bool_]  #: [component]
    asks: NDArray[np.bool_]  #: [edge] whether theta is to be asked
    each_first: I64  #: [edge + 1] where the edge's conditions on every a[i] begin …
    each_component: I64  #: … whose events they go over; theta knows them as edges + this index
    op_first: I64  #: [3c] begin, [3c + 1] take, [3c + 2] begin once more: where the operations on V begin
    op_kind: I64
    op_slot: I64
    op_column: I64
    mask_first: I64  #: [state + 1] where the slots that matter from a state on begin (the masks M)
    mask_slot: I64
    left: I64  #: [negation] the component before; −1: none
    right: I64  #: … and behind; the number of components: none
    between: NDArray[np.bool_]  #: [negation, component before, component behind]
    ways: Ways
    fan: int  #: how many runs one may become, and nodes make
    merges: bool
    single: bool  #: non-overlap output
    limit: int
    silent: bool  #: nothing is put out
    hands: bool  #: complete runs are handed over, not enumerated
    marks: bool  #: matches say which component holds which event
    keeps: bool  #: nodes hold the columns of their events
    pending: bool  #: there is a negation at the end …
    by_end: bool  #: … and complete runs wait until no match can end with their last event any more, and come in the order of these
    counts: bool  #: matches are counted, not enumerated


class Events(NamedTuple):
    """The visited events of a call."""

    bits: I64  #: bit 2c: may begin c; 2c + 1: may be taken by c; 2m + k: is negated by k; then endings
    part: I64
    position: I64
    rank: I64  #: what contiguity counts
    key: I64  #: what the window bounds
    low: I64  #: least key in the window
    constants: I64  #: the address of the words that theta compares and computes with
    C: I64  #: [event, word]


class Runs(NamedTuple):
    """Runs by number. A partition's runs are a list linked by ``next``; so are the free ones."""

    state: I64
    start: I64  #: key of the first event; of a merged run the latest; of one that waits, that for whose window it waits
    last: I64  #: rank of the last selected event
    node: I64
    next: I64
    V: I64  #: [run, word] value vector; word 0: which are known


class Nodes(NamedTuple):
    """Selected events, in the order of selection; predecessors have lower numbers."""

    previous: I64  #: the node before; of a union: one alternative
    other: I64  #: of a union: the other alternative, whose matches begin no later
    start: I64  #: latest start key behind it
    position: I64  #: of the event
    label: I64  #: component; UNION; of a negated event m + negation
    P: I64  #: [node, word] columns of the event


class Parts(NamedTuple):
    """Partitions."""

    head: I64  #: [partition] first run
    size: I64  #: [partition] runs in its list
    negated: I64  #: [partition, negation] latest negated event, a node


class Scratch(NamedTuple):
    """Work space, and the heap of pending runs."""

    queue: I64  #: completed runs of the event at hand
    stack: I64  #: nodes still to be enumerated …
    depth: I64  #: … how many events of the path lie behind them …
    owner: I64  #: … and the completed run
    path: I64  #: the match under construction, last event first: nodes, where negations look at them …
    spot: I64  #: … positions …
    mark: I64  #: … and components, where they are asked for
    table: I64  #: merging: run by hash …
    stamp: I64  #: … valid in this epoch
    timer: I64  #: pending runs as a heap by start …
    serial: I64  #: … and order of completion


class Memory(NamedTuple):
    """All that a kernel writes but the output."""

    runs: Runs
    nodes: Nodes
    parts: Parts
    scratch: Scratch
    registers: I64
