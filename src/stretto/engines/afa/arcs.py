"""The arcs of a state: which of them an event may take, and how they come and go (AFA paper, section 2.3).

They are a list in the order in which they retire, the last to retire first. So an event that comes in order looks at the arcs in
force, and at one behind them; one that is late at those also that have retired since its time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.structure import Batch, Events, Graph

I64 = NDArray[np.int64]


@inlined
def next_arc(arc: int, z: int, le: int, graph: Graph, events: Events) -> int:
    """The first arc of a list, from ``arc`` on, that event ``z``, of time ``le``, may take if its fence holds; NIL: there is none.

    It is valid at that time, and its condition on the event alone holds.
    """
    arcs = graph.arcs
    while arc != s.NIL:
        if le >= arcs[arc, s.RETIRED]:
            return s.NIL  # those behind retired no later
        atom = arcs[arc, s.ATOM]
        holds = atom < 0 or (events.E[z, graph.bits + (atom >> 6)] >> (atom & 63)) & 1 != 0
        if holds and le >= arcs[arc, s.SINCE]:
            return arc
        arc = arcs[arc, s.ARC_NEXT]
    return s.NIL


@inlined
def _list_of(arc: int, arcs: I64) -> int:
    """Which list of its state an arc belongs to: a column of the states."""
    return s.FIRST_EPSILON if arcs[arc, s.KIND] == s.EPSILON else s.FIRST_ARC


@inlined
def _link(arc: int, arcs: I64, states: I64) -> None:
    """Let computations take an arc: at its place in the list of its state."""
    state, first = arcs[arc, s.SOURCE], _list_of(arc, arcs)
    last, at = s.NIL, states[state, first]
    while at != s.NIL and arcs[at, s.RETIRED] > arcs[arc, s.RETIRED]:
        last, at = at, arcs[at, s.ARC_NEXT]
    arcs[arc, s.ARC_NEXT] = at
    if last == s.NIL:
        states[state, first] = arc
    else:
        arcs[last, s.ARC_NEXT] = arc


@inlined
def _retire(arc: int, time: int, arcs: I64, states: I64) -> None:
    """Let an arc retire at a time, which moves it in the list of its state. O(arcs that retire later)."""
    arcs[arc, s.RETIRED] = time
    state, first = arcs[arc, s.SOURCE], _list_of(arc, arcs)
    last, at = s.NIL, states[state, first]
    while at not in (s.NIL, arc):
        last, at = at, arcs[at, s.ARC_NEXT]
    following = arcs[arc, s.ARC_NEXT]
    in_order = last == s.NIL or arcs[last, s.RETIRED] >= time
    if at == s.NIL or (in_order and (following == s.NIL or arcs[following, s.RETIRED] <= time)):
        return  # it is not linked yet, or stands where it belongs
    if last == s.NIL:
        states[state, first] = following
    else:
        arcs[last, s.ARC_NEXT] = following
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
        place[arc] = s.NIL
        if arcs[arc, s.RETIRED] > max(least, arcs[arc, s.SINCE]):
            count += 1
            place[arc] = count
    return count


@inlined
def change_arc(change: int, batch: Batch, graph: Graph, registers: I64) -> None:
    """An arc is valid from the next time unit on, or up to the greatest time seen (default operation)."""
    arcs, states = graph.arcs, graph.states
    arc = batch.which[change]
    now = max(registers[s.SEEN], registers[s.PUNCTUATION])
    now = now + 1 if now > -s.FOREVER else now
    if batch.what[change] == s.ADD_ARC:
        arcs[arc, s.SINCE] = now
        _link(arc, arcs, states)
    else:
        _retire(arc, now, arcs, states)
