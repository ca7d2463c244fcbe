"""The arcs of a state: which of them an event may take, and how they come and go (AFA paper, section 2.3).

They are a list in the order in which they retire, the last to retire first. So an event that comes in order looks at the arcs in
force, and at one behind them; one that is late at those also that have retired since its time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined
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

__all__ = ["change_arc", "next_arc"]

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
def change_arc(change: int, batch: Batch, graph: Graph, registers: I64) -> None:
    """An arc is valid from the next time unit on, or up to the greatest time seen (default operation)."""
    arcs, states = graph.arcs, graph.states
    arc = batch.which[change]
    state = arcs[arc, SOURCE]
    now = max(registers[SEEN], registers[PUNCTUATION])
    now = now + 1 if now > -FOREVER else now
    first = FIRST_EPSILON if arcs[arc, KIND] == EPSILON else FIRST_ARC
    if batch.what[change] == ADD_ARC:
        arcs[arc, SINCE] = now
        arcs[arc, ARC_NEXT] = states[state, first]
        states[state, first] = arc
        return
    arcs[arc, RETIRED] = now
    last, at = NIL, states[state, first]
    while at not in (NIL, arc):
        last, at = at, arcs[at, ARC_NEXT]
    following = arcs[arc, ARC_NEXT]
    if NIL in (at, following) or arcs[following, RETIRED] <= now:
        return  # it is not linked yet, or stands where it belongs
    if last == NIL:
        states[state, first] = following
    else:
        arcs[last, ARC_NEXT] = following
    while following != NIL and arcs[following, RETIRED] > now:
        last, following = following, arcs[following, ARC_NEXT]
    arcs[last, ARC_NEXT] = arc
    arcs[arc, ARC_NEXT] = following
