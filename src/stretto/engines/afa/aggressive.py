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
from stretto.engines.afa import structure as s
from stretto.engines.afa.cleaning import drop
from stretto.engines.afa.index import find
from stretto.engines.afa.live import build_with_ends
from stretto.engines.afa.structure import Events, Graph, Parts

I64 = NDArray[np.int64]


@inlined
def _earliest(arc: int, time: int, part: int, graph: Graph, events: Events, parts: Parts) -> int:
    """The time of the earliest event there, at ``time`` or later, that may trigger an arc. O(events passed over)."""
    before = find(part, time - 1, s.FOREVER, graph.ignores, events, parts) if time > -s.FOREVER else s.NIL
    at = parts.first[part] if before == s.NIL else events.X[before, s.BEHIND]
    atom = graph.arcs[arc, s.ATOM]
    while at != s.NIL and atom >= 0 and (events.E[at, graph.bits + (atom >> 6)] >> (atom & 63)) & 1 == 0:
        at = events.X[at, s.BEHIND]
    return int(events.X[at, s.LE]) if at != s.NIL else s.FOREVER


@inlined
def _relax(
    state: int, first: int, pi: I64, part: int, graph: Graph, events: Events, parts: Parts, arrival: I64
) -> None:
    """Arrivals at the states that the arcs of a list lead to."""
    here = arrival[state]
    arc = graph.states[state, first]
    while arc != s.NIL:
        there = graph.arcs[arc, s.TARGET]
        if first == s.FIRST_EPSILON:
            time = here
        elif graph.arcs[arc, s.KIND] == s.IGNORES:
            time = s.FOREVER  # it stays here
        else:
            time = max(here, min(_earliest(arc, here, part, graph, events, parts), pi[arc]))
        arrival[there] = min(arrival[there], time)
        arc = graph.arcs[arc, s.ARC_NEXT]


@jit
def _arrival(
    state: int, time: int, pi: I64, part: int, graph: Graph, events: Events, parts: Parts, arrival: I64, done: I64
) -> int:
    """The least path punctuation from a state on to a final one, from ``time`` on; FOREVER: none is reached."""
    arrival[:] = s.FOREVER
    done[:] = 0
    arrival[state] = time
    while True:
        here = -1
        for one in range(1, arrival.size):
            if done[one] == 0 and arrival[one] < s.FOREVER and (here < 0 or arrival[one] < arrival[here]):
                here = one
        if here < 0:
            return s.FOREVER
        if graph.states[here, s.FINAL] != 0:
            return int(arrival[here])
        done[here] = 1
        _relax(here, s.FIRST_ARC, pi, part, graph, events, parts, arrival)
        _relax(here, s.FIRST_EPSILON, pi, part, graph, events, parts, arrival)


@jit
def _bounds(
    pi: I64, limit: int, part: int, graph: Graph, events: Events, parts: Parts, bounds: I64, arrival: I64, done: I64
) -> None:
    """For each state: partial matches that end before this time are not needed. ``limit``: the punctuation of the arcs."""
    for state in range(1, bounds.size):
        base = graph.states[state, s.BASE]
        least = limit
        for first in (s.FIRST_ARC, s.FIRST_EPSILON):
            arc = graph.states[base, first]
            while arc != s.NIL:
                # What an ε-arc leads to is live beside it, so that the state behind it has its own bound.
                if first == s.FIRST_ARC:
                    found = _arrival(graph.arcs[arc, s.TARGET], pi[arc], pi, part, graph, events, parts, arrival, done)
                    least = min(least, found)
                arc = graph.arcs[arc, s.ARC_NEXT]
        cover = find(part, least - 1, s.FOREVER, graph.ignores, events, parts) if least > -s.FOREVER else s.NIL
        bounds[state] = events.X[cover, s.LE] if cover != s.NIL else -s.FOREVER


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
    extra = s.REG + graph.real.size
    dropped = 0
    for part in range(parts.first.size):
        slot = parts.first[part]
        if slot == s.NIL:
            continue
        if graph.ignores and parts.root[part] == s.NIL and slot != parts.last[part]:
            build_with_ends(part, graph, P, events, parts)
        _bounds(pi, limit, part, graph, events, parts, bounds, arrival, done)
        most = bounds[1]
        for state in range(2, bounds.size):  # arrays have no max() without Numba's run-time
            most = max(most, bounds[state])
        while slot != s.NIL and events.X[slot, s.LE] < most:
            p, last = events.X[slot, s.FIRST], s.NIL
            while p != s.NIL:
                following = P[s.NEXT, p]
                state = P[s.STATE, p]
                over = graph.states[state, s.FINAL] == 0 and events.X[slot, s.LE] < bounds[state]
                if over and graph.ignores:  # an anchor may go on behind
                    over = P[extra + s.OPEN, p] < 0
                    over &= (
                        P[extra + s.UNTIL_LE, p] == events.X[slot, s.LE]
                        and P[extra + s.UNTIL_SEQ, p] == events.X[slot, s.SEQ]
                    )
                if over:
                    drop(p, last, slot, P, events, registers)
                    events.X[slot, s.CLEANED] = 1
                    dropped += 1
                else:
                    last = p
                p = following
            events.X[slot, s.LAST] = last
            slot = events.X[slot, s.BEHIND]
    return dropped
