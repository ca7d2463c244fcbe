"""An event that comes in order (AFA paper, algorithm 1): it goes on from the partial matches that are live at the last one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_ARENA, GROW_OUTPUT, GROW_STACK, OUTPUT_FULL, inlined, jit
from stretto.engines.afa.cleaning import free_list, free_slot, part_with
from stretto.engines.afa.derive import derive
from stretto.engines.afa.index import attach, is_indexed, stretch
from stretto.engines.afa.live import chain, earlier
from stretto.engines.afa.outputs import pick, put, trace
from stretto.engines.afa.places import new_slot
from stretto.engines.afa.structure import (
    BEHIND,
    CELLS,
    COUNT_D,
    FINALS,
    FIRST,
    FRESH,
    HEAD,
    HOME,
    LAST,
    LE,
    LIVE_PARTIAL,
    NEED,
    NEXT,
    NIL,
    OPEN,
    OWN,
    PEAK,
    PREV,
    REG,
    ROWS,
    SEQ,
    SIZE,
    START_LE,
    START_SEQ,
    TAIL,
    TAKEN,
    TILL_LE,
    TILL_SEQ,
    UNTIL_LE,
    UNTIL_SEQ,
    Batch,
    Events,
    Graph,
    Memory,
    Parts,
    Work,
)

__all__ = ["append"]

I64 = NDArray[np.int64]


@inlined
def _live_at_end(last: int, part: int, graph: Graph, P: I64, events: Events, parts: Parts, work: Work) -> int:
    """C: the partial matches that are live at the last event of a partition, by first event; how many, or −1."""
    C, count = work.C, 0
    p = events.X[last, FIRST]
    q = parts.open[part]
    extra = REG + graph.real.size
    while p != NIL or q != NIL:
        if count == C.size:
            return -1
        if q == NIL or (p != NIL and not earlier(P[START_LE, q], P[START_SEQ, q], P[START_LE, p], P[START_SEQ, p])):
            C[count] = p
            p = P[NEXT, p]
        else:
            C[count] = q
            q = P[extra + OPEN, q]
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
    if y == NIL:
        return GROW_ARENA
    count = 0
    seq = events.X[y, SEQ]
    if x != NIL and (not graph.numbered or events.X[x, SEQ] + 1 == seq):
        count = _live_at_end(x, part, graph, P, events, parts, work)
    registers[HEAD] = registers[TAIL] = NIL
    if count < 0:
        registers[NEED] = work.C.size + 1
        status = GROW_STACK
    else:
        status = derive(theta, y, count, True, events.X[x, LE], events.X[x, SEQ], m)
    rows, cells = registers[ROWS], registers[CELLS]
    if status == DONE and registers[FINALS] > 0:
        size = pick(y, work.D, registers[COUNT_D], 0, graph, P, work)
        if size < 0:
            registers[NEED] = work.picked.size + 1
            status = GROW_STACK
        else:
            rows = put(size, y, False, rows, registers[TAKEN], out.rows, m)
            if rows < 0:
                registers[NEED] = size
                status = OUTPUT_FULL if registers[ROWS] > 0 else GROW_OUTPUT
            elif graph.traces and not trace(out.rows, registers[ROWS], rows, x, NIL, y, m):
                registers[CELLS] = cells
                status = OUTPUT_FULL if registers[ROWS] > 0 else GROW_OUTPUT
    if status != DONE:
        free_list(registers[HEAD], registers[TAIL], 0, P, registers)
        free_slot(y, events, registers)
        return status
    registers[ROWS] = rows
    registers[LIVE_PARTIAL] += registers[FRESH]
    registers[PEAK] = max(registers[PEAK], registers[LIVE_PARTIAL])
    events.X[y, FIRST], events.X[y, LAST], events.X[y, SIZE] = registers[HEAD], registers[TAIL], registers[FRESH]
    events.X[y, PREV] = x
    if x == NIL:
        parts.first[part] = y
    else:
        events.X[x, BEHIND] = y
    parts.last[part] = y
    if graph.ignores:
        _go_on(y, part, m)
    if parts.root[part] != NIL and is_indexed(y, graph.ignores):
        attach(y, part, graph.ignores, events, parts)
    if graph.ordered and x != NIL:
        free_list(events.X[x, FIRST], events.X[x, LAST], events.X[x, SIZE], P, registers)
        parts.first[part] = y
        part_with(x, y, part, events.X[y, LE], graph, events, parts, registers)
    return DONE


@jit
def _go_on(y: int, part: int, m: Memory) -> None:
    """After an in-order event: the open list from D, or, where the event before is dropped at once, all of D as y's list."""
    graph, P, events, parts, work, registers = m.graph, m.P, m.events, m.parts, m.work, m.registers
    extra, D = REG + graph.real.size, work.D
    le, seq, x = events.X[y, LE], events.X[y, SEQ], events.X[y, PREV]
    count = 0
    if graph.ordered:
        p = events.X[x, FIRST]
        for k in range(registers[COUNT_D]):
            if D[k] != NIL:
                P[extra + HOME, D[k]] = y
                P[extra + UNTIL_LE, D[k]], P[extra + UNTIL_SEQ, D[k]] = le, seq
                D[count] = D[k]
                count += 1
        head = tail = size = NIL
        while p != NIL:  # what does not go on stays with x, which is dropped
            following = P[NEXT, p]
            if P[extra + HOME, p] != y:
                P[NEXT, p] = head
                tail = p if head == NIL else tail
                head = p
                size += 1
            p = following
        events.X[x, FIRST], events.X[x, LAST], events.X[x, SIZE] = head, tail, size
        events.X[y, FIRST], events.X[y, LAST], events.X[y, SIZE] = chain(count, D, NEXT, P), NIL, count
        if count > 0:
            events.X[y, LAST] = D[count - 1]
        return
    p = parts.open[part]
    while p != NIL:
        following = P[extra + OPEN, p]
        P[extra + OPEN, p] = -1
        if parts.root[part] != NIL and not (P[extra + TILL_LE, p] == le and P[extra + TILL_SEQ, p] == seq):
            home = P[extra + HOME, p]
            if events.X[home, OWN] < P[extra + UNTIL_LE, p]:
                events.X[home, OWN] = P[extra + UNTIL_LE, p]
                stretch(home, events)
        p = following
    for k in range(registers[COUNT_D]):
        p = D[k]
        if p != NIL and P[extra + HOME, p] != y:
            P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p] = le, seq
            D[count] = p
            count += 1
    parts.open[part] = chain(count, D, extra + OPEN, P)
