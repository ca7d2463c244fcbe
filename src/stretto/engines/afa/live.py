"""Which partial matches are live at an event, and which of them a change leaves as they are (AFA paper, appendix D)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.arcs import next_arc
from stretto.engines.afa.index import build
from stretto.engines.afa.structure import Events, Graph, Memory, Parts, Work

I64 = NDArray[np.int64]


@inlined
def earlier(a_le: int, a_seq: int, b_le: int, b_seq: int) -> bool:
    """Whether one place in the order of (LE, sequence) is before another."""
    return a_le < b_le or (a_le == b_le and a_seq < b_seq)


@inlined
def chain(count: int, which: I64, row: int, P: I64) -> int:
    """Link ``which[: count]`` by a row of P into a list; the first of it, NIL if there is none."""
    if count == 0:
        return s.NIL
    for k in range(1, count):
        P[row, which[k - 1]] = which[k]
    P[row, which[count - 1]] = s.NIL
    return int(which[0])


@jit
def _sift(at: int, count: int, which: I64, P: I64) -> None:
    while 2 * at + 1 < count:
        child = 2 * at + 1
        a, b = which[child], which[min(child + 1, count - 1)]
        if earlier(P[s.START_LE, a], P[s.START_SEQ, a], P[s.START_LE, b], P[s.START_SEQ, b]):
            child += 1
        a, b = which[at], which[child]
        if not earlier(P[s.START_LE, a], P[s.START_SEQ, a], P[s.START_LE, b], P[s.START_SEQ, b]):
            return
        which[at], which[child] = b, a
        at = child


@jit
def sort(count: int, which: I64, P: I64) -> None:
    """Partial matches by their first events. O(count log count)."""
    for at in range(count // 2 - 1, -1, -1):
        _sift(at, count, which, P)
    for end in range(count - 1, 0, -1):
        which[0], which[end] = which[end], which[0]
        _sift(0, end, which, P)


@jit
def collect(x: int, part: int, graph: Graph, P: I64, events: Events, parts: Parts, work: Work) -> int:  # noqa: C901, PLR0912 - one walk, whose state lies in local variables
    """L: the partial matches that are live at event ``x``, by first event; how many, or −1 for want of room.

    Those of its list; with ignorable arcs also the anchors whose intervals reach over it: of the open list those that begin
    before, of the treap O(log events) for each.
    """
    L, count = work.L, 0
    if x == s.NIL:
        return 0
    p = events.X[x, s.FIRST]
    while p != s.NIL:
        if count == L.size:
            return -1
        L[count] = p
        count += 1
        p = P[s.NEXT, p]
    if not graph.ignores:
        return count
    own, extra = count, s.REG + graph.real.size
    le, seq, last = events.X[x, s.LE], events.X[x, s.SEQ], parts.last[part]
    p = parts.open[part]
    while p != s.NIL:
        home = P[extra + s.HOME, p]
        if earlier(events.X[home, s.LE], events.X[home, s.SEQ], le, seq):
            if count == L.size:
                return -1
            L[count] = p
            count += 1
        p = P[extra + s.OPEN, p]
    if x != last:
        if parts.root[part] == s.NIL:
            build_with_ends(part, graph, P, events, parts)
        top = 0
        work.stack[top] = parts.root[part]
        top += 1
        while top:
            top -= 1
            at = work.stack[top]
            if at == s.NIL or events.X[at, s.REACH] < le:
                continue
            if top + 2 > work.stack.size:
                return -1
            work.stack[top] = events.X[at, s.LEFT]
            top += 1
            if not earlier(events.X[at, s.LE], events.X[at, s.SEQ], le, seq):
                continue
            work.stack[top] = events.X[at, s.HIGH]
            top += 1
            p = events.X[at, s.FIRST] if events.X[at, s.OWN] >= le else s.NIL
            while p != s.NIL:
                over = not earlier(P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p], le, seq)
                if over and P[extra + s.OPEN, p] < 0:
                    if count == L.size:
                        return -1
                    L[count] = p
                    count += 1
                p = P[s.NEXT, p]
    if count > own:
        sort(count, L, P)
    return count


@jit
def build_with_ends(part: int, graph: Graph, P: I64, events: Events, parts: Parts) -> None:
    """The treap of a partition, with the ends of intervals as they are."""
    if graph.ignores:
        slot = parts.first[part]
        while slot != s.NIL:
            events.X[slot, s.OWN] = greatest_end(slot, graph, P, events)
            slot = events.X[slot, s.BEHIND]
    build(part, graph.ignores, events, parts)


@jit
def greatest_end(slot: int, graph: Graph, P: I64, events: Events) -> int:
    """The greatest time until which a partial match of an event's list goes on."""
    extra = s.REG + graph.real.size
    most, p = events.X[slot, s.LE], events.X[slot, s.FIRST]
    while p != s.NIL:
        most = max(most, P[extra + s.UNTIL_LE, p])
        p = P[s.NEXT, p]
    return int(most)


@jit
def _ignores(theta: Any, p: int, z: int, graph: Graph, P: I64, events: Events, work: Work) -> bool:
    """Whether event ``z`` leaves a partial match as it is: an ignorable arc fires, and no other."""
    arcs, E, le = graph.arcs, events.E, events.X[z, s.LE]
    if (
        P[s.LEAST, p] <= le
        or events.X[z, s.RE] < P[s.LEAST, p]
        or graph.states[graph.states[P[s.STATE, p], s.BASE], s.FIRST_EPSILON] != s.NIL
    ):
        return False
    ignored = False
    arc = graph.states[graph.states[P[s.STATE, p], s.BASE], s.FIRST_ARC]
    while True:
        this = next_arc(arc, z, le, graph, events)
        if this == s.NIL:
            return ignored
        arc = arcs[this, s.ARC_NEXT]
        if arcs[this, s.FENCE] >= 0 and theta(arcs[this, s.FENCE], z, p, s.NIL, E, P, work.F) == 0:
            continue
        if arcs[this, s.KIND] != s.IGNORES:
            return False
        ignored = True


@jit
def is_settled(
    theta: Any,
    begin: int,
    end: int,
    taken: int,
    given: int,
    m: Memory,
) -> bool:
    """Whether a change leaves the matches of one first event, L[begin: end], as they are.

    They all ignored the event that is taken away, and all ignore the one that is given.
    """
    graph, P, events, work = m.graph, m.P, m.events, m.work
    L, extra = work.L, s.REG + graph.real.size
    if taken != s.NIL:
        start = P[s.START, L[begin]]
        p = events.X[taken, s.FIRST]
        while p != s.NIL:
            if P[s.START, p] == start:
                return False
            p = P[s.NEXT, p]
        for k in range(begin, end):
            p = L[k]
            if earlier(
                P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p], events.X[taken, s.LE], events.X[taken, s.SEQ]
            ):
                return False
    if given != s.NIL:
        for k in range(begin, end):
            if not _ignores(theta, L[k], given, graph, P, events, work):
                work.F[0, 0] = 0  # what goes wrong here goes wrong again where it is told
                return False
    return True
