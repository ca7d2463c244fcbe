"""One event's step: the partial matches that go on from it (AFA paper, algorithm 1: MakeTransitions and NewTransition)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, FAULTED, GROW_NODES, GROW_STACK, GROW_TABLE, inlined, jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.arcs import next_arc
from stretto.engines.afa.structure import Memory, Work
from stretto.engines.afa.trails import intern

I64 = NDArray[np.int64]


@inlined
def _same(a: int, b: int, fields: int, P: I64) -> bool:
    """Whether two partial matches of one start have the same state and register."""
    if P[s.STATE, a] != P[s.STATE, b]:
        return False
    for field in range(s.REG, s.REG + fields):  # noqa: SIM110 - kernels have no generators
        if P[field, a] != P[field, b]:
            return False
    return True


SEVERAL = 24  #: more partial matches of one start than this are looked up in a hash table


@inlined
def _hash(p: int, fields: int, P: I64) -> int:
    """32 bits of a state and a register; products stay below 2^63."""
    x = P[s.STATE, p] & 0xFFFFFFFF
    for field in range(s.REG, s.REG + fields):
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
    while work.seen[at] >> 32 == registers[s.EPOCH]:
        at = (at + 1) & mask
    work.seen[at] = (registers[s.EPOCH] << 32) | (place + 1)


@jit
def _look_up(p: int, group: int, size: int, fields: int, P: I64, work: Work, registers: I64) -> int:
    """The place in D[group: size] of a partial match that equals ``p``; −1: none; −2: no room for the hash table."""
    D = work.D
    if 2 * (size - group) >= work.seen.size:
        return -2
    if registers[s.HASHED] != group:
        registers[s.HASHED] = group
        registers[s.EPOCH] = (registers[s.EPOCH] + 1) & 0x3FFFFFFF
        if registers[s.EPOCH] == 0:
            work.seen[:] = 0
            registers[s.EPOCH] = 1
        for place in range(group, size):
            if D[place] != s.NIL:
                _note(place, D[place], fields, P, work, registers)
    mask = work.seen.size - 1
    at = _hash(p, fields, P) & mask
    while work.seen[at] >> 32 == registers[s.EPOCH]:
        place = (work.seen[at] & 0xFFFFFFFF) - 1
        if D[place] != s.NIL and _same(D[place], p, fields, P):
            return int(place)
        at = (at + 1) & mask
    return -1


@inlined
def _find(p: int, begin: int, group: int, size: int, fields: int, P: I64, work: Work, registers: I64) -> int:
    """As :func:`_look_up` for D[begin: size], by comparing one by one where there are few."""
    if size - begin <= SEVERAL or begin != group:
        for place in range(begin, size):
            if work.D[place] != s.NIL and _same(work.D[place], p, fields, P):
                return place
        return -1
    return _look_up(p, group, size, fields, P, work, registers)


@jit
def _seeds(theta: Any, z: int, count: int, m: Memory) -> int:
    """C[count …]: what ε-arcs reach from the initial ID, itself first; how many, or −1 with FAULT or NEED set.

    All but the first take a free partial match, which the caller gives back.
    """
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    C, arcs, le = work.C, graph.arcs, events.X[z, s.LE]
    fields = graph.real.size
    end = count + 1
    C[count] = s.SEED
    at = count
    while at < end:
        arc = graph.states[graph.states[P[s.STATE, C[at]], s.BASE], s.FIRST_EPSILON]
        while True:
            this = next_arc(arc, z, le, graph, events)
            if this == s.NIL:
                break
            arc = arcs[this, s.ARC_NEXT]
            holds = arcs[this, s.FENCE] < 0 or theta(arcs[this, s.FENCE], s.NIL, C[at], s.NIL, events.E, P, work.F) != 0
            if work.F[0, 0] == 0 and not holds:
                continue
            fresh = registers[s.FREE]
            if end == C.size or fresh == s.NIL:
                registers[s.NEED] = 0 if fresh == s.NIL else 1
                return -1 - end
            if work.F[0, 0] == 0 and arcs[this, s.TRANSFER] >= 0:
                theta(arcs[this, s.TRANSFER], s.NIL, C[at], fresh, events.E, P, work.F)
            elif work.F[0, 0] == 0:
                for field in range(s.REG, s.REG + fields):
                    P[field, fresh] = P[field, C[at]]
            if work.F[0, 0] != 0:
                registers[s.FAULT] = work.F[0, 0]
                registers[s.FAULT_ARC] = this
                return -1 - end
            P[s.STATE, fresh] = arcs[this, s.TARGET]
            known = False
            for other in range(count, end):
                known |= _same(C[other], fresh, fields, P)
            if known:
                continue
            registers[s.FREE] = P[s.NEXT, fresh]
            C[end] = fresh
            end += 1
            if end - count > s.MOST_CLOSURE:
                registers[s.FAULT] = s.ENDLESS
                registers[s.FAULT_ARC] = this
                return -1 - end
        at += 1
    return end


@inlined
def _begun(theta: Any, z: int, count: int, m: Memory) -> int:
    """Put the initial ID, and what ε-arcs reach from it, behind C[: count], as matches that begin at ``z``.

    How long C is then; −1 − so long with FAULT or NEED set.
    """
    graph, C = m.graph, m.work.C
    if count >= C.size:
        m.registers[s.NEED] = 1
        return -1 - count
    C[count] = s.SEED
    if graph.states[graph.start, s.FIRST_EPSILON] == s.NIL:
        return count + 1
    return int(_seeds(theta, z, count, m))


@inlined
def _why_not_begun(m: Memory) -> int:
    """The status where :func:`_begun` has stopped."""
    if m.work.F[0, 0] != 0 or m.registers[s.FAULT] != 0:
        return FAULTED
    if m.registers[s.NEED] == 0:
        return GROW_NODES
    m.registers[s.NEED] = m.work.C.size + 1
    return GROW_STACK


@inlined
def _take(theta: Any, this: int, at: int, source: int, made: int, row: int, m: Memory) -> int:
    """Give ``made`` the register and the trail that an arc makes of those of ``source``; the status."""
    graph, P, work, registers = m.graph, m.P, m.work, m.registers
    arcs = graph.arcs
    if arcs[this, s.TRANSFER] >= 0:
        theta(arcs[this, s.TRANSFER], at, source, made, m.events.E, P, work.F)
        if work.F[0, 0] != 0:
            registers[s.FAULT], registers[s.FAULT_ARC] = work.F[0, 0], this
            return FAULTED
    else:
        for field in range(s.REG, s.REG + graph.real.size):
            P[field, made] = P[field, source]
    if graph.trail >= 0:
        field = s.REG + graph.trail
        P[field, made] = P[field, source]
        if arcs[this, s.LABEL] >= 0:
            P[field, made] = intern(P[field, source], row, arcs[this, s.LABEL], work, registers)
            if P[field, made] == s.NIL:
                return GROW_TABLE
    return DONE


@inlined
def _live_from(z: int, le: int, seq: int, made: int, extra: int, P: I64) -> None:
    """A new anchor is live at ``z``, and so far no longer."""
    P[extra + s.HOME, made] = z
    P[extra + s.UNTIL_LE, made] = P[extra + s.TILL_LE, made] = le
    P[extra + s.UNTIL_SEQ, made] = P[extra + s.TILL_SEQ, made] = seq
    P[extra + s.OPEN, made] = -1


@inlined
def derive(  # noqa: C901, PLR0912, PLR0915 - one loop, whose state lies in local variables; its phases are above
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

    Three phases: the initial ID and what ε-arcs reach from it come behind C, as matches that begin at z (:func:`_begun`); each member
    of C takes every arc of its state that holds (:func:`_take`); what an arc has made goes on by ε-arcs at once, before the next arc
    is looked at. Nothing that is live is changed, so that the caller may try again with more room.
    """
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    arcs, states = graph.arcs, graph.states
    C, D, F, E = work.C, work.D, work.F, events.E
    fields = graph.real.size
    extra = s.REG + fields
    le, seq, re, row = events.X[z, s.LE], events.X[z, s.SEQ], events.X[z, s.RE], events.X[z, s.ROW]
    registers[s.HEAD] = registers[s.TAIL] = s.NIL
    registers[s.FRESH] = registers[s.FINALS] = registers[s.COUNT_D] = 0
    total = _begun(theta, z, count, m) if starts else count
    status = DONE
    if total < 0:
        total = -1 - total
        status = _why_not_begun(m)
    # In local variables while the loop runs: a register is memory that the compiler cannot keep to itself.
    free = registers[s.FREE]
    head = tail = s.NIL
    size = fresh_ones = finals = group = 0
    registers[s.HASHED] = -1
    of = -1  # the first event's row of the group at hand
    k = 0
    while k < total and status == DONE:
        p = C[k]
        seed = k >= count
        k += 1
        if p == s.NIL:
            continue
        if seed:
            of_row, of_le, of_seq, right = row, le, seq, re
        else:
            of_row, of_le, of_seq, right = P[s.START, p], P[s.START_LE, p], P[s.START_SEQ, p], min(P[s.LEAST, p], re)
        if right <= le:
            continue  # one of its events has ended before z
        # C is ordered by first event, and only matches of one first event can be equal: their group in D begins here.
        if of_row != of:
            of, group = of_row, size
            registers[s.HASHED] = -1
        arc = states[states[P[s.STATE, p], s.BASE], s.FIRST_ARC]
        # The arcs of p read z; those of what one of them has made, D[first:], are ε-arcs and read no event: then ``closing`` is set,
        # and ``behind`` is the arc of p to go on with. One loop for both, as the step is the same.
        source, at = p, z
        closing = False
        behind = first = 0
        c = 0
        while True:
            this = next_arc(arc, z, le, graph, events)
            if this == s.NIL:
                if not closing:
                    break
                # The ε-arcs of D[c] are done: those of the next that the arc has made, and then the arcs of p again.
                c += 1
                if c < size:
                    source = D[c]
                    arc = states[states[P[s.STATE, source], s.BASE], s.FIRST_EPSILON] if source != s.NIL else s.NIL
                else:
                    closing = False
                    source, at, arc = p, z, behind
                continue
            arc = arcs[this, s.ARC_NEXT]
            if arcs[this, s.FENCE] >= 0:
                holds = theta(arcs[this, s.FENCE], at, source, s.NIL, E, P, F)
                if F[0, 0] != 0:
                    status = FAULTED
                    registers[s.FAULT], registers[s.FAULT_ARC] = F[0, 0], this
                    break
                if holds == 0:
                    continue
            if size == D.size:
                status = GROW_STACK
                registers[s.NEED] = size + 1
                break
            target = arcs[this, s.TARGET]
            made = s.NIL
            if arcs[this, s.KIND] == s.IGNORES:
                # Where a state is final on entering only, its quiet twin stands for it after an ignored event: it gives no output.
                target = states[P[s.STATE, source], s.QUIET]
                # The anchor itself goes on where nothing of it changes; where z ends before the events of the match, its least right
                # end does, and a partial match of its own is made below.
                if graph.ignores and not seed and right == P[s.LEAST, p]:
                    equal = _find(p, group, group, size, fields, P, work, registers)
                    if equal == -2:
                        status = GROW_STACK
                        registers[s.NEED] = 4 * (size - group)
                        break
                    if equal < 0:
                        D[size] = p
                        if registers[s.HASHED] == group:
                            _note(size, p, fields, P, work, registers)
                        size += 1
                        P[extra + s.TILL_LE, p], P[extra + s.TILL_SEQ, p] = le, seq
                        finals += states[P[s.STATE, p], s.FINAL] == 1
                        made = p
                    if made == s.NIL:
                        continue
            if made == s.NIL:
                if free == s.NIL:
                    status = GROW_NODES
                    break
                made = free  # and stays the first free one until it is certain that it is needed
                P[s.STATE, made] = target
                status = _take(theta, this, at, source, made, row, m)
                if status != DONE:
                    break
                # With a bag, equal computations stay apart; but an ε-cycle that comes back to where it was must end.
                begin = (first if closing else size) if graph.bag else group
                equal = _find(made, begin, group, size, fields, P, work, registers)
                if equal == -2:
                    status = GROW_STACK
                    registers[s.NEED] = 4 * (size - group)
                    break
                if equal >= 0:
                    if not graph.ignores or P[extra + s.HOME, D[equal]] == z:
                        continue
                    # An anchor that goes on is equal, and has not entered its state at z, as this one has: it ends before z.
                    P[extra + s.TILL_LE, D[equal]], P[extra + s.TILL_SEQ, D[equal]] = before_le, before_seq
                    D[equal] = s.NIL
                free = P[s.NEXT, made]
                P[s.NEXT, made] = s.NIL
                P[s.START, made], P[s.START_LE, made], P[s.START_SEQ, made] = of_row, of_le, of_seq
                P[s.LEAST, made] = right
                if graph.ignores:
                    _live_from(z, le, seq, made, extra, P)
                if tail == s.NIL:
                    head = made
                else:
                    P[s.NEXT, tail] = made
                tail = made
                D[size] = made
                if registers[s.HASHED] == group:
                    _note(size, made, fields, P, work, registers)
                size += 1
                fresh_ones += 1
                finals += states[target, s.FINAL] != 0
            if closing:
                if size - first > s.MOST_CLOSURE:
                    status = FAULTED
                    registers[s.FAULT], registers[s.FAULT_ARC] = s.ENDLESS, this
                    break
            elif states[states[P[s.STATE, made], s.BASE], s.FIRST_EPSILON] != s.NIL:
                closing, behind, at = True, arc, s.NIL
                c = first = size - 1
                source = made
                arc = states[states[P[s.STATE, made], s.BASE], s.FIRST_EPSILON]
    # What ε-arcs reached from the initial ID was only there to be looked at.
    for k in range(count + 1, total):
        P[s.NEXT, C[k]] = free
        free = C[k]
    registers[s.FREE] = free
    registers[s.HEAD], registers[s.TAIL], registers[s.FRESH] = head, tail, fresh_ones
    registers[s.COUNT_D], registers[s.FINALS] = size, finals
    registers[s.MADE] += fresh_ones
    registers[s.STEPS] += total + fresh_ones
    return status
