"""An event that comes in order (AFA paper, algorithm 1): it goes on from the partial matches that are live at the last one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_ARENA, GROW_OUTPUT, GROW_STACK, OUTPUT_FULL, inlined, jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.cleaning import free_list, free_slot, part_with
from stretto.engines.afa.derive import derive
from stretto.engines.afa.index import attach, is_indexed, stretch
from stretto.engines.afa.live import chain, earlier
from stretto.engines.afa.outputs import pick, put, trace
from stretto.engines.afa.places import new_slot
from stretto.engines.afa.structure import Batch, Events, Graph, Memory, Parts, Work

I64 = NDArray[np.int64]


@inlined
def _live_at_end(last: int, part: int, graph: Graph, P: I64, events: Events, parts: Parts, work: Work) -> int:
    """C: the partial matches that are live at the last event of a partition, by first event; how many, or −1."""
    C, count = work.C, 0
    p = events.X[last, s.FIRST]
    q = parts.open[part]
    extra = s.REG + graph.real.size
    while p != s.NIL or q != s.NIL:
        if count == C.size:
            return -1
        if q == s.NIL or (
            p != s.NIL and not earlier(P[s.START_LE, q], P[s.START_SEQ, q], P[s.START_LE, p], P[s.START_SEQ, p])
        ):
            C[count] = p
            p = P[s.NEXT, p]
        else:
            C[count] = q
            q = P[extra + s.OPEN, q]
        count += 1
    return count


@inlined
def append(
    theta: Any,
    i: int,
    batch: Batch,
    m: Memory,
) -> int:
    """An event behind all others of its partition. O(partial matches live at the last one)."""
    graph, P, events, parts, work, out, registers = m.graph, m.P, m.events, m.parts, m.work, m.out, m.registers
    part = batch.part[i]
    x = parts.last[part]
    y = new_slot(i, batch, events, registers)
    if y == s.NIL:
        return GROW_ARENA
    count = 0
    seq = events.X[y, s.SEQ]
    if x != s.NIL and (not graph.numbered or events.X[x, s.SEQ] + 1 == seq):
        count = _live_at_end(x, part, graph, P, events, parts, work)
    registers[s.HEAD] = registers[s.TAIL] = s.NIL
    if count < 0:
        registers[s.NEED] = work.C.size + 1
        status = GROW_STACK
    else:
        status = derive(theta, y, count, True, events.X[x, s.LE], events.X[x, s.SEQ], m)
    rows, cells = registers[s.ROWS], registers[s.CELLS]
    if status == DONE and registers[s.FINALS] > 0:
        size = pick(y, work.D, registers[s.COUNT_D], 0, graph, P, work)
        if size < 0:
            registers[s.NEED] = work.picked.size + 1
            status = GROW_STACK
        else:
            rows = put(size, y, False, rows, registers[s.TAKEN], out.rows, m)
            if rows < 0:
                registers[s.NEED] = size
                status = OUTPUT_FULL if registers[s.ROWS] > 0 else GROW_OUTPUT
            elif graph.traces and not trace(out.rows, registers[s.ROWS], rows, x, s.NIL, y, m):
                registers[s.CELLS] = cells
                status = OUTPUT_FULL if registers[s.ROWS] > 0 else GROW_OUTPUT
    if status != DONE:
        free_list(registers[s.HEAD], registers[s.TAIL], 0, P, registers)
        free_slot(y, events, registers)
        return status
    registers[s.ROWS] = rows
    registers[s.LIVE_PARTIAL] += registers[s.FRESH]
    registers[s.PEAK] = max(registers[s.PEAK], registers[s.LIVE_PARTIAL])
    events.X[y, s.FIRST], events.X[y, s.LAST], events.X[y, s.SIZE] = (
        registers[s.HEAD],
        registers[s.TAIL],
        registers[s.FRESH],
    )
    events.X[y, s.PREV] = x
    if x == s.NIL:
        parts.first[part] = y
    else:
        events.X[x, s.BEHIND] = y
    parts.last[part] = y
    if graph.ignores:
        _go_on(y, part, m)
    if parts.root[part] != s.NIL and is_indexed(y, graph.ignores):
        attach(y, part, graph.ignores, events, parts)
    if graph.ordered and x != s.NIL:
        free_list(events.X[x, s.FIRST], events.X[x, s.LAST], events.X[x, s.SIZE], P, registers)
        parts.first[part] = y
        part_with(x, y, part, events.X[y, s.LE], graph, events, parts, registers)
    return DONE


@jit
def _go_on(y: int, part: int, m: Memory) -> None:
    """After an in-order event: the open list from D, or, where the event before is dropped at once, all of D as y's list."""
    graph, P, events, parts, work, registers = m.graph, m.P, m.events, m.parts, m.work, m.registers
    extra, D = s.REG + graph.real.size, work.D
    le, seq, x = events.X[y, s.LE], events.X[y, s.SEQ], events.X[y, s.PREV]
    count = 0
    if graph.ordered:
        p = events.X[x, s.FIRST]
        for k in range(registers[s.COUNT_D]):
            if D[k] != s.NIL:
                P[extra + s.HOME, D[k]] = y
                P[extra + s.UNTIL_LE, D[k]], P[extra + s.UNTIL_SEQ, D[k]] = le, seq
                D[count] = D[k]
                count += 1
        head = tail = size = s.NIL
        while p != s.NIL:  # what does not go on stays with x, which is dropped
            following = P[s.NEXT, p]
            if P[extra + s.HOME, p] != y:
                P[s.NEXT, p] = head
                tail = p if head == s.NIL else tail
                head = p
                size += 1
            p = following
        events.X[x, s.FIRST], events.X[x, s.LAST], events.X[x, s.SIZE] = head, tail, size
        events.X[y, s.FIRST], events.X[y, s.LAST], events.X[y, s.SIZE] = chain(count, D, s.NEXT, P), s.NIL, count
        if count > 0:
            events.X[y, s.LAST] = D[count - 1]
        return
    p = parts.open[part]
    while p != s.NIL:
        following = P[extra + s.OPEN, p]
        P[extra + s.OPEN, p] = -1
        if parts.root[part] != s.NIL and not (P[extra + s.TILL_LE, p] == le and P[extra + s.TILL_SEQ, p] == seq):
            home = P[extra + s.HOME, p]
            if events.X[home, s.OWN] < P[extra + s.UNTIL_LE, p]:
                events.X[home, s.OWN] = P[extra + s.UNTIL_LE, p]
                stretch(home, events)
        p = following
    for k in range(registers[s.COUNT_D]):
        p = D[k]
        if p != s.NIL and P[extra + s.HOME, p] != y:
            P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p] = le, seq
            D[count] = p
            count += 1
    parts.open[part] = chain(count, D, extra + s.OPEN, P)
