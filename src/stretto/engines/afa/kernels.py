"""The AFA operator's kernel: insertion, deletion, revision and changes of arcs (AFA paper, algorithm 1 and appendices C, D).

An in-order event costs O(partial matches at the last event); one that is out of order O(log events) and what it derives anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, FAULTED, GROW_ARENA, PAUSED, called, inlined, jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.appending import append
from stretto.engines.afa.arcs import change_arc
from stretto.engines.afa.cleaning import clean, free_slot
from stretto.engines.afa.index import find
from stretto.engines.afa.live import build_with_ends
from stretto.engines.afa.places import find_taken, is_last, is_late, new_slot
from stretto.engines.afa.repair import repair
from stretto.engines.afa.structure import Batch, Graph, Memory

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
    if parts.root[part] == s.NIL and parts.first[part] != parts.last[part]:
        build_with_ends(part, graph, P, events, parts)
    taken = s.NIL
    if op in (s.RETRACT, s.REVISED):
        taken = find_taken(i, batch, graph, events, parts)
        registers[s.REVISING] = taken
        if taken == s.NIL:
            registers[s.FAULT] = s.UNKNOWN
            return FAULTED
        if op == s.REVISED:
            return DONE
    elif op == s.REVISES:
        taken = registers[s.REVISING]
    if taken != s.NIL:
        x = events.X[taken, s.PREV]
    else:
        x = find(part, batch.le[i], batch.seq[i], graph.ignores, events, parts)
        if x != s.NIL and events.X[x, s.LE] == batch.le[i] and events.X[x, s.SEQ] == batch.seq[i]:
            registers[s.FAULT] = s.SAME_PLACE
            return FAULTED
        if graph.numbered:
            behind = parts.first[part] if x == s.NIL else events.X[x, s.BEHIND]
            if (x != s.NIL and events.X[x, s.SEQ] >= batch.seq[i]) or (
                behind != s.NIL and events.X[behind, s.SEQ] <= batch.seq[i]
            ):
                registers[s.FAULT] = s.CONTRADICTS
                return FAULTED
    given = s.NIL
    if op != s.RETRACT:
        given = new_slot(i, batch, events, registers)
        if given == s.NIL:
            return GROW_ARENA
        if taken != s.NIL:
            events.X[given, s.SEQ] = events.X[taken, s.SEQ]
            if graph.trail < 0:  # selected events are told apart by their rows, and this is another one
                events.X[given, s.ROW] = events.X[taken, s.ROW]
    status = repair(theta, part, x, taken, given, -s.FOREVER, m)
    if status != DONE and given != s.NIL:
        free_slot(given, events, registers)
    return int(status)


@inlined
def _between(batch: Batch, graph: Graph, registers: I64) -> None:
    """Carry out the changes that stand before the operation at hand."""
    while registers[s.CHANGED] < batch.at.size and batch.at[registers[s.CHANGED]] <= registers[s.CURSOR]:
        change = registers[s.CHANGED]
        if batch.what[change] == s.PUNCTUATE:
            registers[s.PUNCTUATION] = batch.which[change]
            registers[s.CLEAN] = min(registers[s.PUNCTUATION], registers[s.ARCS_CLEAN])
        else:
            change_arc(change, batch, graph, registers)
        registers[s.CHANGED] += 1


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
    while registers[s.CURSOR] < batch.op.size:
        i = registers[s.CURSOR]
        op = batch.op[i]
        _between(batch, graph, registers)
        if op in (s.SKIP, s.MISSED):
            registers[s.CURSOR] += 1
            continue
        registers[s.TAKEN] += 1
        part = batch.part[i]
        first = parts.first[part]
        status = DONE
        if (
            first != s.NIL
            and events.X[first, s.BEHIND] != s.NIL
            and events.X[events.X[first, s.BEHIND], s.LE] < registers[s.CLEAN]
        ):
            status = clean(part, graph, P, events, parts, work, registers)
        if status == DONE:
            if is_late(i, batch, graph, events, parts, registers):
                registers[s.FAULT] = s.LATE_EVENT
                registers[s.REVISING] = s.NIL
                status = FAULTED
            elif (op == s.INSERT or (op == s.REVISES and registers[s.REVISING] == s.NIL)) and is_last(
                i, batch, events, parts
            ):
                last = parts.last[part]
                if graph.numbered and last != s.NIL and events.X[last, s.SEQ] >= batch.seq[i]:
                    registers[s.FAULT] = s.CONTRADICTS
                    status = FAULTED
                else:
                    status = append(theta, i, batch, m)
            else:
                registers[s.OUT_OF_ORDER] += op == s.INSERT
                status = _change(theta, i, batch, m)
                if status != DONE:
                    registers[s.OUT_OF_ORDER] -= op == s.INSERT
        if status == FAULTED and graph.lenient and registers[s.FAULT] in (s.LATE_EVENT, s.UNKNOWN, s.CONTRADICTS):
            batch.op[i] = s.MISSED
            registers[s.LATE] += 1
            registers[s.FAULT] = 0
            status = DONE
        if status != DONE:
            return int(status)
        if op not in (s.RETRACT, s.REVISED) and batch.op[i] >= 0:
            registers[s.SEEN] = max(registers[s.SEEN], batch.le[i])
        registers[s.CURSOR] += 1
        if registers[s.STEPS] > PAUSE_AFTER:
            registers[s.STEPS] = 0
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
    since = max(since, registers[s.CLEAN])
    while registers[s.CURSOR] < parts.first.size:
        part = registers[s.CURSOR]
        last = parts.last[part]
        if last != s.NIL and events.X[last, s.LE] >= since:
            if parts.root[part] == s.NIL and parts.first[part] != last:
                build_with_ends(part, graph, P, events, parts)
            x = find(part, since - 1, s.FOREVER, graph.ignores, events, parts) if since > -s.FOREVER else s.NIL
            begin = events.X[x, s.BEHIND] if x != s.NIL else parts.first[part]
            if begin != s.NIL and events.X[begin, s.LE] < until:
                status = repair(theta, part, x, begin, begin, until, m)
                if status != DONE:
                    return int(status)
        registers[s.CURSOR] += 1
    return DONE
