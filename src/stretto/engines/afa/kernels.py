"""The AFA operator's kernel: insertion, deletion, revision and changes of arcs (AFA paper, algorithm 1 and appendices C, D).

An in-order event costs O(partial matches at the last event); one that is out of order O(log events) and what it derives anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, FAULTED, GROW_ARENA, PAUSED, called, inlined, jit
from stretto.engines.afa.appending import append
from stretto.engines.afa.arcs import change_arc
from stretto.engines.afa.cleaning import clean, free_slot
from stretto.engines.afa.index import find
from stretto.engines.afa.live import build_with_ends
from stretto.engines.afa.places import find_taken, is_last, is_late, new_slot
from stretto.engines.afa.repair import repair
from stretto.engines.afa.structure import (
    ARCS_CLEAN,
    BEHIND,
    CHANGED,
    CLEAN,
    CONTRADICTS,
    CURSOR,
    FAULT,
    FOREVER,
    INSERT,
    LATE,
    LATE_EVENT,
    LE,
    MISSED,
    NIL,
    OUT_OF_ORDER,
    PREV,
    PUNCTUATE,
    PUNCTUATION,
    RETRACT,
    REVISED,
    REVISES,
    REVISING,
    ROW,
    SAME_PLACE,
    SEEN,
    SEQ,
    SKIP,
    STEPS,
    TAKEN,
    UNKNOWN,
    Batch,
    Graph,
    Memory,
)

__all__ = ["advance", "recompute"]

I64 = NDArray[np.int64]

PAUSE_AFTER = 1 << 24  #: partial matches looked at between two looks at signals


#: The functions of the arcs, as a kernel is handed them.
functions_at = called(numbers=4, matrices=3)


@inlined
def _change(
    theta: Any,
    i: int,
    batch: Batch,
    m: Memory,
) -> int:
    """An operation on an event that is not the last one of its partition, or that takes one away."""
    graph, P, events, parts, registers = m.graph, m.P, m.events, m.parts, m.registers
    op, part = batch.op[i], batch.part[i]
    if parts.root[part] == NIL and parts.first[part] != parts.last[part]:
        build_with_ends(part, graph, P, events, parts)
    taken = NIL
    if op in (RETRACT, REVISED):
        taken = find_taken(i, batch, graph, events, parts)
        registers[REVISING] = taken
        if taken == NIL:
            registers[FAULT] = UNKNOWN
            return FAULTED
        if op == REVISED:
            return DONE
    elif op == REVISES:
        taken = registers[REVISING]
    if taken != NIL:
        x = events.X[taken, PREV]
    else:
        x = find(part, batch.le[i], batch.seq[i], graph.ignores, events, parts)
        if x != NIL and events.X[x, LE] == batch.le[i] and events.X[x, SEQ] == batch.seq[i]:
            registers[FAULT] = SAME_PLACE
            return FAULTED
        if graph.numbered:
            behind = parts.first[part] if x == NIL else events.X[x, BEHIND]
            if (x != NIL and events.X[x, SEQ] >= batch.seq[i]) or (
                behind != NIL and events.X[behind, SEQ] <= batch.seq[i]
            ):
                registers[FAULT] = CONTRADICTS
                return FAULTED
    given = NIL
    if op != RETRACT:
        given = new_slot(i, batch, events, registers)
        if given == NIL:
            return GROW_ARENA
        if taken != NIL:
            events.X[given, SEQ] = events.X[taken, SEQ]
            if graph.trail < 0:  # selected events are told apart by their rows, and this is another one
                events.X[given, ROW] = events.X[taken, ROW]
    status = repair(theta, part, x, taken, given, -FOREVER, m)
    if status != DONE and given != NIL:
        free_slot(given, events, registers)
    return int(status)


@inlined
def _between(batch: Batch, graph: Graph, registers: I64) -> None:
    """Carry out the changes that stand before the operation at hand."""
    while registers[CHANGED] < batch.at.size and batch.at[registers[CHANGED]] <= registers[CURSOR]:
        change = registers[CHANGED]
        if batch.what[change] == PUNCTUATE:
            registers[PUNCTUATION] = batch.which[change]
            registers[CLEAN] = min(registers[PUNCTUATION], registers[ARCS_CLEAN])
        else:
            change_arc(change, batch, graph, registers)
        registers[CHANGED] += 1


@jit
def advance(
    functions: int,
    batch: Batch,
    m: Memory,
) -> int:
    """Carry out operations from CURSOR on, until all are done or one needs what the status says.

    ``theta(function, event, old, new, E, P, F)`` asks a fence or carries out a transfer (code.py). What comes too late is marked
    with −1 in ``batch.op`` where the graph is lenient. An in-order event: O(partial matches at the last event · arcs of a state).
    """
    theta = functions_at(functions)
    graph, P, events, parts, work, registers = m.graph, m.P, m.events, m.parts, m.work, m.registers
    while registers[CURSOR] < batch.op.size:
        i = registers[CURSOR]
        op = batch.op[i]
        _between(batch, graph, registers)
        if op in (SKIP, MISSED):
            registers[CURSOR] += 1
            continue
        registers[TAKEN] += 1
        part = batch.part[i]
        first = parts.first[part]
        status = DONE
        if first != NIL and events.X[first, BEHIND] != NIL and events.X[events.X[first, BEHIND], LE] < registers[CLEAN]:
            status = clean(part, graph, P, events, parts, work, registers)
        if status == DONE:
            if is_late(i, batch, graph, events, parts, registers):
                registers[FAULT] = LATE_EVENT
                registers[REVISING] = NIL
                status = FAULTED
            elif (op == INSERT or (op == REVISES and registers[REVISING] == NIL)) and is_last(i, batch, events, parts):
                last = parts.last[part]
                if graph.numbered and last != NIL and events.X[last, SEQ] >= batch.seq[i]:
                    registers[FAULT] = CONTRADICTS
                    status = FAULTED
                else:
                    status = append(theta, i, batch, m)
            else:
                registers[OUT_OF_ORDER] += op == INSERT
                status = _change(theta, i, batch, m)
                if status != DONE:
                    registers[OUT_OF_ORDER] -= op == INSERT
        if status == FAULTED and graph.lenient and registers[FAULT] in (LATE_EVENT, UNKNOWN, CONTRADICTS):
            batch.op[i] = MISSED
            registers[LATE] += 1
            registers[FAULT] = 0
            status = DONE
        if status != DONE:
            return int(status)
        if op not in (RETRACT, REVISED) and batch.op[i] >= 0:
            registers[SEEN] = max(registers[SEEN], batch.le[i])
        registers[CURSOR] += 1
        if registers[STEPS] > PAUSE_AFTER:
            registers[STEPS] = 0
            return PAUSED
    _between(batch, graph, registers)
    return DONE


@jit
def recompute(
    functions: int,
    since: int,
    until: int,
    m: Memory,
) -> int:
    """The arcs that are valid for events in [since, until) have changed: derive those events anew, partition by partition.

    From partition CURSOR on. O(partial matches at these events, and at those behind that depend on them).
    """
    theta = functions_at(functions)
    graph, P, events, parts, registers = m.graph, m.P, m.events, m.parts, m.registers
    since = max(since, registers[CLEAN])
    while registers[CURSOR] < parts.first.size:
        part = registers[CURSOR]
        last = parts.last[part]
        if last != NIL and events.X[last, LE] >= since:
            if parts.root[part] == NIL and parts.first[part] != last:
                build_with_ends(part, graph, P, events, parts)
            x = find(part, since - 1, FOREVER, graph.ignores, events, parts) if since > -FOREVER else NIL
            begin = events.X[x, BEHIND] if x != NIL else parts.first[part]
            if begin != NIL and events.X[begin, LE] < until:
                status = repair(theta, part, x, begin, begin, until, m)
                if status != DONE:
                    return int(status)
        registers[CURSOR] += 1
    return DONE
