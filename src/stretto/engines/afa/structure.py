"""Events, partial matches and arcs in flat arrays (AFA paper, section 5.1, figure 6).

Each live event has a slot. The slots of a partition are a doubly linked list in the order of (LE, sequence); a treap over some of
them (*rbtree* in the paper, a red-black tree over all) finds a place in it in O(log n). The treap is built when the first event
comes out of order, so that ordered streams do not pay for it.

A *partial match* (pmatch) is a column of the matrix ``P``, whose rows are its fields: so a register field is one contiguous row.
Those that end at an event are a list, linked by ``NEXT``, in the order of their first events (StartLE).

With ignorable arcs (appendix D) a partial match lies at one event only, its *home*, and says until which event it goes on
unchanged: an *anchor* with an interval. Those that still go on at the last event of a partition are its *open* list. The
treap keeps, for each subtree, the greatest right end of an interval (*itree* in the paper).

Slot 0 of every array stands for "none".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto import times

I64 = NDArray[np.int64]

NIL = 0
SEED = 1  #: a partial match that stands for the initial ID (q0, Z)
FOREVER = times.FOREVER  #: a right end (RE) that never comes

# Rows of P.
NEXT = 0  #: next in the list of its event, or of the free ones
START = 1  #: row of its first event (StartEvent)
START_LE = 2
START_SEQ = 3
LEAST = 4  #: least right end of its events
STATE = 5
REG = 6  #: first field of the register
# Behind the register, with ignorable arcs only; relative to its end.
HOME = 0  #: slot of the event that it ends at
UNTIL_LE = 1  #: it goes on unchanged until this event
UNTIL_SEQ = 2
OPEN = 3  #: next in the open list
TILL_LE = 4  #: what UNTIL becomes when the step at hand is carried out
TILL_SEQ = 5
EXTRA = 6  #: rows behind the register

# Fields of an event: columns of Events.X. One slot fills two lines of the cache: what searches and clean-up read stands in the first.
LE = 0  #: left end of the lifetime: the timestamp
SEQ = 1  #: breaks ties of time
BEHIND = 2  #: the event behind in the partition; of a free slot the next free one
FIRST = 3  #: partial matches that end here: the first …
LAST = 4  #: … the last …
SIZE = 5  #: … and how many
LEFT = 6  #: treap: the slots before …
HIGH = 7  #: … and behind
PREV = 8  #: the event before in the partition
RE = 9  #: right end
ROW = 10  #: arrival row
OF = 11  #: partition
PARENT = 12
OWN = 13  #: greatest end (time) of an interval that begins here
REACH = 14  #: … or in the subtree
CLEANED = 15  #: some partial matches that ended here were dropped before the punctuation
EVENT_FIELDS = 16

# Fields of an arc: columns of Graph.arcs.
ARC_NEXT = 0  #: next arc of the same state, which retires at the same time or before
TARGET = 1
ATOM = 2  #: number of the condition on the event alone; −1: none
FENCE = 3  #: number of the function that asks the register; −1: none
TRANSFER = 4  #: number of the function that gives the register; −1: it is kept
KIND = 5
SINCE = 6  #: valid for events from this time on …
RETIRED = 7  #: … and before this one
SOURCE = 8
LABEL = 9  #: the event that it consumes is selected, for this variable; −1: it is not
ARC_FIELDS = 10

CONSUMES = 0
EPSILON = 1
IGNORES = 2

# Fields of a state: columns of Graph.states.
FIRST_ARC = 0
FIRST_EPSILON = 1
FINAL = 2  #: 0: no; 1: output at each event; 2: not at events that are ignored in it
QUIET = 3  #: what stands for the state after an ignored event where that must give no output
BASE = 4  #: the state whose arcs it has: itself, or the one for which it is quiet
STATE_FIELDS = 5

# Operations.
INSERT = 0
RETRACT = 1
REVISED = 2  #: the first half of a revision: the event to take away
REVISES = 3  #: the second half: what comes in its place
SKIP = 4
MISSED = -1  #: it came too late, or retracts the unknown

# Operations between events.
ADD_ARC = 0
RETIRE_ARC = 1
PUNCTUATE = 2

# Columns of an output row.
SIGN = 0
PART = 1
FROM = 2  #: row of the first event
TO = 3  #: row of the last event
FROM_LE = 4
FROM_SEQ = 5
TO_LE = 6
TO_SEQ = 7
RIGHT = 8  #: right end of the lifetime
LENGTH = 9  #: how many positions stand in Out.cells
STEP = 10  #: rows of one step have the same number here
FIELDS = 11  #: first field of the register

# What an operation may run into, beside what functions note (code.py).
LATE_EVENT = 4
UNKNOWN = 5
SAME_PLACE = 6
ENDLESS = 7
CONTRADICTS = 8  #: its sequence number grows where its time does not

MOST_CLOSURE = 4096  #: IDs that ε-arcs may reach from one

# Registers: scalars that outlive a call. int64.
CURSOR = 0  #: operation at hand
ROWS = 1  #: rows in the output buffer
FREE = 2  #: first free partial match
FREE_EVENTS = 3  #: first free slot of an event
PUNCTUATION = 4  #: no event before this time comes any more
CLEAN = 5  #: nothing that depends on events before this time changes any more
SEEN = 6  #: greatest time of an event
NEED = 7  #: what a GROW_… status asks for
LIVE_PARTIAL = 8  #: partial matches in use
LIVE_EVENTS = 9  #: slots in use
FAULT = 10  #: what went wrong …
FAULT_ARC = 11  #: … at which arc …
AFFECTED = 12  #: entries of Work.S
LATE = 13  #: events and retractions that came too late or of the unknown
REVISING = 14  #: slot of the event that is being revised
COUNT_D = 15  #: partial matches that go on from the event at hand
HEAD = 16  #: first and last of the new partial matches of the event at hand
TAIL = 17
FINALS = 18  #: how many of them are final
PENDING = 19  #: events that the step at hand changes
RETRACTED = 20  #: rows of Work.lost
GAINED = 21  #: rows of Work.won
STEPS = 22  #: partial matches looked at since the kernel last paused
OUT_OF_ORDER = 23  #: events that came out of order so far
MADE = 24  #: partial matches ever made
OLD = 25  #: entries of Work.old
SETTLED = 27  #: entries of Work.L
PEAK = 28  #: most partial matches in use at once
CHANGED = 30  #: changes of the call that are carried out
ARCS_CLEAN = 31  #: punctuation of the arcs
FRESH = 29  #: how many partial matches are new at the event at hand
CELLS = 32  #: positions in the output buffer
TRAILS = 33  #: trails that are known
EPOCH = 34  #: stamps entries of Work.seen
TAKEN = 36  #: steps that were carried out or tried
HASHED = 35  #: the group of D whose members stand in Work.seen; −1: none
REGISTERS = 40


class Events(NamedTuple):
    """The live events, by slot."""

    X: I64  #: [slot, field]
    E: I64  #: [slot, word] known bits, attributes, truths of conditions


class Parts(NamedTuple):
    """The partitions: where the events of each begin, by number."""

    first: I64  #: first event
    last: I64  #: last event
    root: I64  #: of the treap; 0: not built
    oldest: I64  #: first event that is kept for provenance; 0: none before ``first``
    open: I64  #: first of the open list


class Graph(NamedTuple):
    """The automaton, as data."""

    arcs: I64  #: [arc, field]
    states: I64  #: [state, field]
    real: NDArray[np.bool_]  #: [field] whether a field of the register is a float
    start: int
    bits: int  #: word of E where the truths of conditions begin
    ignores: bool  #: ignorable arcs make anchors
    numbered: bool  #: events are adjacent where their sequence numbers are (AFA+O)
    bag: bool  #: equal partial matches are kept apart
    ordered: bool  #: each event is the punctuation of those before it
    lenient: bool  #: what comes too late is counted and left out
    traces: bool  #: outputs come with the rows of their events
    trail: int  #: field of the register that holds the trail of selected events; −1: there is none
    keyed: bool  #: a retraction is told by time and sequence (else by time and payload)


class Batch(NamedTuple):
    """Operations of a call."""

    op: I64
    part: I64
    le: I64
    seq: I64
    re: I64
    row: I64
    W: I64  #: [operation, word] as Events.E
    at: I64  #: [change] operations before this one come before it; ascending
    what: I64  #: [change] ADD_ARC, RETIRE_ARC or PUNCTUATE
    which: I64  #: [change] arc; of a punctuation the time


class Work(NamedTuple):
    """Work space."""

    C: I64  #: partial matches that reach the event at hand, by first event
    D: I64  #: … that go on from it
    L: I64  #: … that are live before the place of the change, and stay as they are
    S: I64  #: … and that do not
    old: I64  #: anchors that went on before the change
    picked: I64  #: finals of the event at hand
    stack: I64
    before: I64  #: [pending] event that the list is taken from; 0: none
    after: I64  #: [pending] event that it is given to; 0: none
    head: I64  #: [pending] new partial matches …
    tail: I64
    size: I64
    lost: I64  #: [row, column] outputs that the step takes back
    won: I64  #: [row, column] … and gives
    F: I64  #: [1, 1] what a function notes
    seen: I64  #: hash table over a group of D: epoch << 32 | place + 1
    #: Selected events as shared lists: trail ``n`` is the trail before and one event more. Equal trails have one number.
    trail_before: I64
    trail_row: I64
    trail_label: I64
    trail_table: I64  #: open addressing: numbers of trails; 0: empty


class Out(NamedTuple):
    """Output rows."""

    rows: I64  #: [row, column]
    cells: I64  #: rows of the events of each, one after the other


class Memory(NamedTuple):
    """All that the kernel works on."""

    graph: Graph
    P: I64  #: [field, partial match]
    events: Events
    parts: Parts
    work: Work
    out: Out
    registers: I64
