"""The arcs of a state: which of them an event may take, and how they come and go (AFA paper, section 2.3).

They are a list in the order in which they retire, the last to retire first. So an event that comes in order looks at the arcs in
force, and at one behind them; one that is late at those also that have retired since its time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.afa.structure import (
    ADD_ARC,
    ARC_NEXT,
    ATOM,
    EPSILON,
    FIRST_ARC,
    FIRST_EPSILON,
    FOREVER,
    KIND,
    NIL,
    PUNCTUATION,
    RETIRED,
    SEEN,
    SINCE,
    SOURCE,
    Batch,
    Events,
    Graph,
)

__all__ = ["change_arc", "link_all", "link_arc", "next_arc", "retire_arc", "survivors"]

I64 = NDArray[np.int64]


@inlined
def next_arc(arc: int, z: int, le: int, graph: Graph, events: Events) -> int:
    """The first arc of a list, from ``arc`` on, that event ``z``, of time ``le``, may take if its fence holds; NIL: there is none.

    It is valid at that time, and its condition on the event alone holds.
    """
    arcs = graph.arcs
    while arc != NIL:
        if le >= arcs[arc, RETIRED]:
            return NIL  # those behind retired no later
        atom = arcs[arc, ATOM]
        holds = atom < 0 or (events.E[z, graph.bits + (atom >> 6)] >> (atom & 63)) & 1 != 0
        if holds and le >= arcs[arc, SINCE]:
            return arc
        arc = arcs[arc, ARC_NEXT]
    return NIL


@inlined
def _list_of(arc: int, arcs: I64) -> int:
    """Which list of its state an arc belongs to: a column of the states."""
    return FIRST_EPSILON if arcs[arc, KIND] == EPSILON else FIRST_ARC


@inlined
def _link(arc: int, arcs: I64, states: I64) -> None:
    """Let computations take an arc: at its place in the list of its state."""
    state, first = arcs[arc, SOURCE], _list_of(arc, arcs)
    last, at = NIL, states[state, first]
    while at != NIL and arcs[at, RETIRED] > arcs[arc, RETIRED]:
        last, at = at, arcs[at, ARC_NEXT]
    arcs[arc, ARC_NEXT] = at
    if last == NIL:
        states[state, first] = arc
    else:
        arcs[last, ARC_NEXT] = arc


@inlined
def _retire(arc: int, time: int, arcs: I64, states: I64) -> None:
    """Let an arc retire at a time, which moves it in the list of its state. O(arcs that retire later)."""
    arcs[arc, RETIRED] = time
    state, first = arcs[arc, SOURCE], _list_of(arc, arcs)
    last, at = NIL, states[state, first]
    while at not in (NIL, arc):
        last, at = at, arcs[at, ARC_NEXT]
    following = arcs[arc, ARC_NEXT]
    in_order = last == NIL or arcs[last, RETIRED] >= time
    if at == NIL or (in_order and (following == NIL or arcs[following, RETIRED] <= time)):
        return  # it is not linked yet, or stands where it belongs
    if last == NIL:
        states[state, first] = following
    else:
        arcs[last, ARC_NEXT] = following
    _link(arc, arcs, states)


@jit
def link_arc(arc: int, arcs: I64, states: I64) -> None:
    """Let computations take an arc."""
    _link(arc, arcs, states)


@jit
def link_all(arcs: I64, states: I64) -> None:
    """Let computations take all arcs, where none is linked."""
    for arc in range(1, arcs.shape[0]):
        _link(arc, arcs, states)


@jit
def retire_arc(arc: int, time: int, arcs: I64, states: I64) -> None:
    """Let an arc retire at a time."""
    _retire(arc, time, arcs, states)


@jit
def survivors(least: int, arcs: I64, place: I64) -> int:
    """Number the arcs that an event from time ``least`` on may take; ``place`` gets these numbers, NIL for others. How many."""
    count = 0
    for arc in range(1, arcs.shape[0]):
        place[arc] = NIL
        if arcs[arc, RETIRED] > max(least, arcs[arc, SINCE]):
            count += 1
            place[arc] = count
    return count


@inlined
def change_arc(change: int, batch: Batch, graph: Graph, registers: I64) -> None:
    """An arc is valid from the next time unit on, or up to the greatest time seen (default operation)."""
    arcs, states = graph.arcs, graph.states
    arc = batch.which[change]
    now = max(registers[SEEN], registers[PUNCTUATION])
    now = now + 1 if now > -FOREVER else now
    if batch.what[change] == ADD_ARC:
        arcs[arc, SINCE] = now
        _link(arc, arcs, states)
    else:
        _retire(arc, now, arcs, states)
