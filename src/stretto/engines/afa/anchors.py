"""What a change out of order means for anchors: partial matches that go on unchanged until some event (AFA paper, appendix D)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.index import stretch
from stretto.engines.afa.live import earlier, greatest_end, is_settled
from stretto.engines.afa.structure import Events, Graph, Memory, Parts, Work

I64 = NDArray[np.int64]


@jit
def divide(
    theta: Any,
    live: int,
    x: int,
    taken: int,
    given: int,
    whole: bool,
    m: Memory,
) -> None:
    """L[: live] is divided into S, whose matches the change affects, and L[: SETTLED], which it leaves as they are."""
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    L, S, extra = work.L, work.S, s.REG + graph.real.size
    settled = affected = old = 0
    begin = 0
    # Where adjacency is by number, an event that comes or goes joins or parts those beside it.
    # Where partial matches were dropped, those that are left do not tell all that a change concerns.
    apart = whole or (graph.numbered and (s.NIL in (taken, given))) or events.X[x, s.CLEANED] != 0
    while begin < live:
        end = begin + 1
        while end < live and P[s.START, L[end]] == P[s.START, L[begin]]:
            end += 1
        stays = not apart and is_settled(theta, begin, end, taken, given, m)
        for k in range(begin, end):
            p = L[k]
            if stays:
                L[settled] = p
                settled += 1
            else:
                S[affected] = p
                affected += 1
                P[extra + s.TILL_LE, p], P[extra + s.TILL_SEQ, p] = events.X[x, s.LE], events.X[x, s.SEQ]
                if earlier(events.X[x, s.LE], events.X[x, s.SEQ], P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p]):
                    work.old[old] = p
                    old += 1
        begin = end
    registers[s.SETTLED], registers[s.AFFECTED], registers[s.OLD] = settled, affected, old


@inlined
def prolong_new(p: int, graph: Graph, P: I64) -> None:
    """The new partial matches of an event, a list that begins with ``p``, go on until where the step says."""
    extra = s.REG + graph.real.size
    while p != s.NIL:
        P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p] = P[extra + s.TILL_LE, p], P[extra + s.TILL_SEQ, p]
        p = P[s.NEXT, p]


@inlined
def _measure(slot: int, graph: Graph, P: I64, events: Events) -> None:
    """The ends of the intervals that begin at an event, for the treap."""
    if slot != s.NIL:
        events.X[slot, s.OWN] = greatest_end(slot, graph, P, events)
        stretch(slot, events)


@jit
def prolong(part: int, x: int, taken: int, given: int, reaching: int, m: Memory) -> None:
    """The anchors there were go on until where a step says, which is carried out but for this. C[: reaching] is live at the end."""
    graph, P, events, parts, work, registers = m.graph, m.P, m.events, m.parts, m.work, m.registers
    extra = s.REG + graph.real.size
    for k in range(registers[s.AFFECTED]):
        p = work.S[k]
        P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p] = P[extra + s.TILL_LE, p], P[extra + s.TILL_SEQ, p]
    last = parts.last[part]
    for k in range(registers[s.SETTLED]):
        p = work.L[k]
        if given != s.NIL and earlier(
            P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p], events.X[given, s.LE], events.X[given, s.SEQ]
        ):
            P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p] = events.X[given, s.LE], events.X[given, s.SEQ]
        if last == x:  # the last event was taken away
            P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p] = events.X[x, s.LE], events.X[x, s.SEQ]
    _reopen(part, reaching, graph, P, events, parts, work)
    if parts.root[part] != s.NIL:
        for k in range(registers[s.PENDING]):
            _measure(work.after[k], graph, P, events)
            if work.before[k] != taken or taken == given:
                _measure(work.before[k], graph, P, events)
        for k in range(registers[s.AFFECTED]):
            _measure(P[extra + s.HOME, work.S[k]], graph, P, events)
        for k in range(registers[s.SETTLED]):
            _measure(P[extra + s.HOME, work.L[k]], graph, P, events)


@jit
def _reopen(part: int, reaching: int, graph: Graph, P: I64, events: Events, parts: Parts, work: Work) -> None:
    """The open list after a step: those of it that still go on at the last event, with those of C[: reaching]; by first event."""
    extra = s.REG + graph.real.size
    last = parts.last[part]
    le, seq = events.X[last, s.LE], events.X[last, s.SEQ]
    p, k, tail = parts.open[part], 0, s.NIL
    parts.open[part] = s.NIL
    while True:
        while p != s.NIL:
            following = P[extra + s.OPEN, p]
            goes_on = P[extra + s.UNTIL_LE, p] == le and P[extra + s.UNTIL_SEQ, p] == seq
            if P[s.STATE, p] >= 0 and goes_on and P[extra + s.HOME, p] != last:
                break
            P[extra + s.OPEN, p] = -1
            p = following
        while k < reaching and (P[extra + s.HOME, work.C[k]] == last or P[extra + s.OPEN, work.C[k]] >= 0):
            k += 1
        if p == s.NIL and k >= reaching:
            return
        if k >= reaching or (
            p != s.NIL
            and earlier(P[s.START_LE, p], P[s.START_SEQ, p], P[s.START_LE, work.C[k]], P[s.START_SEQ, work.C[k]])
        ):
            here = p
            p = P[extra + s.OPEN, p]
        else:
            here = work.C[k]
            k += 1
        P[extra + s.OPEN, here] = s.NIL
        if tail == s.NIL:
            parts.open[part] = here
        else:
            P[extra + s.OPEN, tail] = here
        tail = here
