"""One event's step: the partial matches that go on from it (AFA paper, algorithm 1: MakeTransitions and NewTransition)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, FAULTED, GROW_NODES, GROW_STACK, GROW_TABLE, inlined, jit
from stretto.engines.afa.arcs import next_arc
from stretto.engines.afa.structure import (
    ARC_NEXT,
    BASE,
    COUNT_D,
    ENDLESS,
    EPOCH,
    FAULT,
    FAULT_ARC,
    FENCE,
    FINAL,
    FINALS,
    FIRST_ARC,
    FIRST_EPSILON,
    FREE,
    FRESH,
    HASHED,
    HEAD,
    HOME,
    IGNORES,
    KIND,
    LABEL,
    LE,
    LEAST,
    MADE,
    MOST_CLOSURE,
    NEED,
    NEXT,
    NIL,
    OPEN,
    QUIET,
    RE,
    REG,
    ROW,
    SEED,
    SEQ,
    START,
    START_LE,
    START_SEQ,
    STATE,
    STEPS,
    TAIL,
    TARGET,
    TILL_LE,
    TILL_SEQ,
    TRANSFER,
    UNTIL_LE,
    UNTIL_SEQ,
    Memory,
    Work,
)
from stretto.engines.afa.trails import intern

__all__ = ["derive"]

I64 = NDArray[np.int64]


@inlined
def _same(a: int, b: int, fields: int, P: I64) -> bool:
    """Whether two partial matches of one start have the same state and register."""
    if P[STATE, a] != P[STATE, b]:
        return False
    for field in range(REG, REG + fields):  # noqa: SIM110 - kernels have no generators
        if P[field, a] != P[field, b]:
            return False
    return True


SEVERAL = 24  #: more partial matches of one start than this are looked up in a hash table


@inlined
def _hash(p: int, fields: int, P: I64) -> int:
    """32 bits of a state and a register; products stay below 2^63."""
    x = P[STATE, p] & 0xFFFFFFFF
    for field in range(REG, REG + fields):
        word = P[field, p]
        x = ((x ^ (word & 0xFFFFFFFF)) * 1540483477) & 0xFFFFFFFF
        x ^= x >> 15
        x = ((x ^ ((word >> 32) & 0xFFFFFFFF)) * 1103515245) & 0xFFFFFFFF
        x ^= x >> 13
    return int(x)


@jit
def _note(place: int, p: int, fields: int, P: I64, work: Work, registers: I64) -> None:
    """Put D[place] = p into the hash table of its group."""
    mask = work.seen.size - 1
    at = _hash(p, fields, P) & mask
    while work.seen[at] >> 32 == registers[EPOCH]:
        at = (at + 1) & mask
    work.seen[at] = (registers[EPOCH] << 32) | (place + 1)


@jit
def _look_up(p: int, group: int, size: int, fields: int, P: I64, work: Work, registers: I64) -> int:
    """The place in D[group: size] of a partial match that equals ``p``; −1: none; −2: no room for the hash table."""
    D = work.D
    if 2 * (size - group) >= work.seen.size:
        return -2
    if registers[HASHED] != group:
        registers[HASHED] = group
        registers[EPOCH] = (registers[EPOCH] + 1) & 0x3FFFFFFF
        if registers[EPOCH] == 0:
            work.seen[:] = 0
            registers[EPOCH] = 1
        for place in range(group, size):
            if D[place] != NIL:
                _note(place, D[place], fields, P, work, registers)
    mask = work.seen.size - 1
    at = _hash(p, fields, P) & mask
    while work.seen[at] >> 32 == registers[EPOCH]:
        place = (work.seen[at] & 0xFFFFFFFF) - 1
        if D[place] != NIL and _same(D[place], p, fields, P):
            return int(place)
        at = (at + 1) & mask
    return -1


@inlined
def _find(p: int, begin: int, group: int, size: int, fields: int, P: I64, work: Work, registers: I64) -> int:
    """As :func:`_look_up` for D[begin: size], by comparing one by one where there are few."""
    if size - begin <= SEVERAL or begin != group:
        for place in range(begin, size):
            if work.D[place] != NIL and _same(work.D[place], p, fields, P):
                return place
        return -1
    return _look_up(p, group, size, fields, P, work, registers)


@jit
def _seeds(theta: Any, z: int, count: int, m: Memory) -> int:
    """C[count …]: what ε-arcs reach from the initial ID, itself first; how many, or −1 with FAULT or NEED set.

    All but the first take a free partial match, which the caller gives back.
    """
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    C, arcs, le = work.C, graph.arcs, events.X[z, LE]
    fields = graph.real.size
    end = count + 1
    C[count] = SEED
    at = count
    while at < end:
        arc = graph.states[graph.states[P[STATE, C[at]], BASE], FIRST_EPSILON]
        while True:
            this = next_arc(arc, z, le, graph, events)
            if this == NIL:
                break
            arc = arcs[this, ARC_NEXT]
            holds = arcs[this, FENCE] < 0 or theta(arcs[this, FENCE], NIL, C[at], NIL, events.E, P, work.F) != 0
            if work.F[0, 0] == 0 and not holds:
                continue
            fresh = registers[FREE]
            if end == C.size or fresh == NIL:
                registers[NEED] = 0 if fresh == NIL else 1
                return -1 - end
            if work.F[0, 0] == 0 and arcs[this, TRANSFER] >= 0:
                theta(arcs[this, TRANSFER], NIL, C[at], fresh, events.E, P, work.F)
            elif work.F[0, 0] == 0:
                for field in range(REG, REG + fields):
                    P[field, fresh] = P[field, C[at]]
            if work.F[0, 0] != 0:
                registers[FAULT] = work.F[0, 0]
                registers[FAULT_ARC] = this
                return -1 - end
            P[STATE, fresh] = arcs[this, TARGET]
            known = False
            for other in range(count, end):
                known |= _same(C[other], fresh, fields, P)
            if known:
                continue
            registers[FREE] = P[NEXT, fresh]
            C[end] = fresh
            end += 1
            if end - count > MOST_CLOSURE:
                registers[FAULT] = ENDLESS
                registers[FAULT_ARC] = this
                return -1 - end
        at += 1
    return end


@inlined
def derive(
    theta: Any,
    z: int,
    count: int,
    starts: bool,
    before_le: int,
    before_seq: int,
    m: Memory,
) -> int:
    """What reaches event ``z``: C[: count] becomes D[: COUNT_D]; the new ones are linked from HEAD to TAIL.

    C and D are ordered by first event; within one, D has no two of the same state and register. ``starts``: matches may begin at
    z. Anchors that ignore z are in D as they are, with TILL set to z; where a new one equals one, the new one takes its place,
    because it has *entered* its state (D then has NIL in the old one's place). ``before_…``: the event before z.

    Reads arcs, states, events; writes D and free partial matches. O(count · arcs of a state). On any status but DONE, what is
    linked from HEAD to TAIL is to be given back.
    """
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    arcs, states = graph.arcs, graph.states
    C, D, F, E = work.C, work.D, work.F, events.E
    fields = graph.real.size
    extra = REG + fields
    le, seq, re, row = events.X[z, LE], events.X[z, SEQ], events.X[z, RE], events.X[z, ROW]
    registers[HEAD] = registers[TAIL] = NIL
    registers[FRESH] = registers[FINALS] = registers[COUNT_D] = 0
    total = count
    if starts:
        if count >= C.size:
            registers[NEED] = count + 1
            return GROW_STACK
        total = count + 1
        C[count] = SEED
        if states[graph.start, FIRST_EPSILON] != NIL:
            total = _seeds(theta, z, count, m)
    status = DONE
    if total < 0:
        total = -1 - total
        if work.F[0, 0] != 0 or registers[FAULT] != 0:
            status = FAULTED
        elif registers[NEED] == 0:
            status = GROW_NODES
        else:
            status = GROW_STACK
            registers[NEED] = C.size + 1
    free = registers[FREE]
    head = tail = NIL
    size = fresh_ones = finals = group = 0
    registers[HASHED] = -1
    of = -1  # the first event's row of the group at hand
    k = 0
    while k < total and status == DONE:
        p = C[k]
        seed = k >= count
        k += 1
        if p == NIL:
            continue
        if seed:
            of_row, of_le, of_seq, right = row, le, seq, re
        else:
            of_row, of_le, of_seq, right = P[START, p], P[START_LE, p], P[START_SEQ, p], min(P[LEAST, p], re)
        if right <= le:
            continue
        if of_row != of:
            of, group = of_row, size
            registers[HASHED] = -1
        arc = states[states[P[STATE, p], BASE], FIRST_ARC]
        source, at = p, z
        closing = False
        behind = first = 0
        c = 0
        while True:
            this = next_arc(arc, z, le, graph, events)
            if this == NIL:
                if not closing:
                    break
                c += 1
                if c < size:
                    source = D[c]
                    arc = states[states[P[STATE, source], BASE], FIRST_EPSILON] if source != NIL else NIL
                else:
                    closing = False
                    source, at, arc = p, z, behind
                continue
            arc = arcs[this, ARC_NEXT]
            if arcs[this, FENCE] >= 0:
                holds = theta(arcs[this, FENCE], at, source, NIL, E, P, F)
                if F[0, 0] != 0:
                    status = FAULTED
                    registers[FAULT], registers[FAULT_ARC] = F[0, 0], this
                    break
                if holds == 0:
                    continue
            if size == D.size:
                status = GROW_STACK
                registers[NEED] = size + 1
                break
            target = arcs[this, TARGET]
            made = NIL
            if arcs[this, KIND] == IGNORES:
                target = states[P[STATE, source], QUIET]
                if graph.ignores and not seed and right == P[LEAST, p]:
                    equal = _find(p, group, group, size, fields, P, work, registers)
                    if equal == -2:
                        status = GROW_STACK
                        registers[NEED] = 4 * (size - group)
                        break
                    if equal < 0:
                        D[size] = p
                        if registers[HASHED] == group:
                            _note(size, p, fields, P, work, registers)
                        size += 1
                        P[extra + TILL_LE, p], P[extra + TILL_SEQ, p] = le, seq
                        finals += states[P[STATE, p], FINAL] == 1
                        made = p
                    if made == NIL:
                        continue
            if made == NIL:
                if free == NIL:
                    status = GROW_NODES
                    break
                made = free
                if arcs[this, TRANSFER] >= 0:
                    theta(arcs[this, TRANSFER], at, source, made, E, P, F)
                    if F[0, 0] != 0:
                        status = FAULTED
                        registers[FAULT], registers[FAULT_ARC] = F[0, 0], this
                        break
                else:
                    for field in range(REG, REG + fields):
                        P[field, made] = P[field, source]
                P[STATE, made] = target
                if graph.trail >= 0:
                    field = REG + graph.trail
                    P[field, made] = P[field, source]
                    if arcs[this, LABEL] >= 0:
                        P[field, made] = intern(P[field, source], row, arcs[this, LABEL], work, registers)
                        if P[field, made] == NIL:
                            status = GROW_TABLE
                            break
                begin = (first if closing else size) if graph.bag else group
                equal = _find(made, begin, group, size, fields, P, work, registers)
                if equal == -2:
                    status = GROW_STACK
                    registers[NEED] = 4 * (size - group)
                    break
                if equal >= 0:
                    if not graph.ignores or P[extra + HOME, D[equal]] == z:
                        continue
                    P[extra + TILL_LE, D[equal]], P[extra + TILL_SEQ, D[equal]] = before_le, before_seq
                    D[equal] = NIL
                free = P[NEXT, made]
                P[NEXT, made] = NIL
                P[START, made], P[START_LE, made], P[START_SEQ, made] = of_row, of_le, of_seq
                P[LEAST, made] = right
                if graph.ignores:
                    P[extra + HOME, made] = z
                    P[extra + UNTIL_LE, made] = P[extra + TILL_LE, made] = le
                    P[extra + UNTIL_SEQ, made] = P[extra + TILL_SEQ, made] = seq
                    P[extra + OPEN, made] = -1
                if tail == NIL:
                    head = made
                else:
                    P[NEXT, tail] = made
                tail = made
                D[size] = made
                if registers[HASHED] == group:
                    _note(size, made, fields, P, work, registers)
                size += 1
                fresh_ones += 1
                finals += states[target, FINAL] != 0
            if closing:
                if size - first > MOST_CLOSURE:
                    status = FAULTED
                    registers[FAULT], registers[FAULT_ARC] = ENDLESS, this
                    break
            elif states[states[P[STATE, made], BASE], FIRST_EPSILON] != NIL:
                closing, behind, at = True, arc, NIL
                c = first = size - 1
                source = made
                arc = states[states[P[STATE, made], BASE], FIRST_EPSILON]
    for k in range(count + 1, total):  # seeds of ε-arcs
        P[NEXT, C[k]] = free
        free = C[k]
    registers[FREE] = free
    registers[HEAD], registers[TAIL], registers[FRESH] = head, tail, fresh_ones
    registers[COUNT_D], registers[FINALS] = size, finals
    registers[MADE] += fresh_ones
    registers[STEPS] += total + fresh_ones
    return status
