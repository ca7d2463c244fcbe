"""Aggressive clean-up (AFA paper, appendix F.2): partial matches that no event still to come can complete.

An *arc punctuation* π says that no event still to come triggers the arc before that time. A *path punctuation* says so of a
path: it begins with π of the first arc, which an event still to come must trigger, and each further arc pushes it ahead to the
earliest event, there already or still to come, that can trigger it (algorithm 2). That step never goes back, and of two times the
later one stays the later. So the least path punctuation from a state to a final one is an earliest arrival, which a label-setting
search finds without listing paths.

A partial match is dropped if it ends before the cover of that time for its state. Where some were dropped, an event is marked, as
the matches behind it no longer show that they were derived from there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.afa.cleaning import drop
from stretto.engines.afa.index import find
from stretto.engines.afa.live import build_with_ends
from stretto.engines.afa.structure import (
    ARC_NEXT,
    ATOM,
    BASE,
    BEHIND,
    CLEANED,
    FINAL,
    FIRST,
    FIRST_ARC,
    FIRST_EPSILON,
    FOREVER,
    IGNORES,
    KIND,
    LAST,
    LE,
    NEXT,
    NIL,
    OPEN,
    REG,
    SEQ,
    STATE,
    TARGET,
    UNTIL_LE,
    UNTIL_SEQ,
    Events,
    Graph,
    Parts,
)

__all__ = ["prune"]

I64 = NDArray[np.int64]


@inlined
def _earliest(arc: int, time: int, part: int, graph: Graph, events: Events, parts: Parts) -> int:
    """The time of the earliest event there, at ``time`` or later, that may trigger an arc. O(events passed over)."""
    before = find(part, time - 1, FOREVER, graph.ignores, events, parts) if time > -FOREVER else NIL
    at = parts.first[part] if before == NIL else events.X[before, BEHIND]
    atom = graph.arcs[arc, ATOM]
    while at != NIL and atom >= 0 and (events.E[at, graph.bits + (atom >> 6)] >> (atom & 63)) & 1 == 0:
        at = events.X[at, BEHIND]
    return int(events.X[at, LE]) if at != NIL else FOREVER


@inlined
def _relax(
    state: int, first: int, pi: I64, part: int, graph: Graph, events: Events, parts: Parts, arrival: I64
) -> None:
    """Arrivals at the states that the arcs of a list lead to."""
    here = arrival[state]
    arc = graph.states[state, first]
    while arc != NIL:
        there = graph.arcs[arc, TARGET]
        if first == FIRST_EPSILON:
            time = here
        elif graph.arcs[arc, KIND] == IGNORES:
            time = FOREVER  # it stays here
        else:
            time = max(here, min(_earliest(arc, here, part, graph, events, parts), pi[arc]))
        arrival[there] = min(arrival[there], time)
        arc = graph.arcs[arc, ARC_NEXT]


@jit
def _arrival(
    state: int, time: int, pi: I64, part: int, graph: Graph, events: Events, parts: Parts, arrival: I64, done: I64
) -> int:
    """The least path punctuation from a state on to a final one, from ``time`` on; FOREVER: none is reached."""
    arrival[:] = FOREVER
    done[:] = 0
    arrival[state] = time
    while True:
        here = -1
        for one in range(1, arrival.size):
            if done[one] == 0 and arrival[one] < FOREVER and (here < 0 or arrival[one] < arrival[here]):
                here = one
        if here < 0:
            return FOREVER
        if graph.states[here, FINAL] != 0:
            return int(arrival[here])
        done[here] = 1
        _relax(here, FIRST_ARC, pi, part, graph, events, parts, arrival)
        _relax(here, FIRST_EPSILON, pi, part, graph, events, parts, arrival)


@jit
def _bounds(
    pi: I64, limit: int, part: int, graph: Graph, events: Events, parts: Parts, bounds: I64, arrival: I64, done: I64
) -> None:
    """For each state: partial matches that end before this time are not needed. ``limit``: the punctuation of the arcs."""
    for state in range(1, bounds.size):
        base = graph.states[state, BASE]
        least = limit
        for first in (FIRST_ARC, FIRST_EPSILON):
            arc = graph.states[base, first]
            while arc != NIL:
                # What an ε-arc leads to is live beside it, so that the state behind it has its own bound.
                if first == FIRST_ARC:
                    found = _arrival(graph.arcs[arc, TARGET], pi[arc], pi, part, graph, events, parts, arrival, done)
                    least = min(least, found)
                arc = graph.arcs[arc, ARC_NEXT]
        cover = find(part, least - 1, FOREVER, graph.ignores, events, parts) if least > -FOREVER else NIL
        bounds[state] = events.X[cover, LE] if cover != NIL else -FOREVER


@jit
def prune(
    pi: I64,
    limit: int,
    graph: Graph,
    P: I64,
    events: Events,
    parts: Parts,
    bounds: I64,
    arrival: I64,
    done: I64,
    registers: I64,
) -> int:
    """Drop what no event still to come can complete; how many partial matches.

    ``pi``: by arc its punctuation. ``bounds``, ``arrival`` and ``done`` are work space, one for each state. For each partition
    O(arcs · (states² + arcs · events passed over)), and O(events + partial matches).
    """
    extra = REG + graph.real.size
    dropped = 0
    for part in range(parts.first.size):
        slot = parts.first[part]
        if slot == NIL:
            continue
        if graph.ignores and parts.root[part] == NIL and slot != parts.last[part]:
            build_with_ends(part, graph, P, events, parts)
        _bounds(pi, limit, part, graph, events, parts, bounds, arrival, done)
        most = bounds[1]
        for state in range(2, bounds.size):  # arrays have no max() without Numba's run-time
            most = max(most, bounds[state])
        while slot != NIL and events.X[slot, LE] < most:
            p, last = events.X[slot, FIRST], NIL
            while p != NIL:
                following = P[NEXT, p]
                state = P[STATE, p]
                over = graph.states[state, FINAL] == 0 and events.X[slot, LE] < bounds[state]
                if over and graph.ignores:  # an anchor may go on behind
                    over = P[extra + OPEN, p] < 0
                    over &= (
                        P[extra + UNTIL_LE, p] == events.X[slot, LE] and P[extra + UNTIL_SEQ, p] == events.X[slot, SEQ]
                    )
                if over:
                    drop(p, last, slot, P, events, registers)
                    events.X[slot, CLEANED] = 1
                    dropped += 1
                else:
                    last = p
                p = following
            events.X[slot, LAST] = last
            slot = events.X[slot, BEHIND]
    return dropped
