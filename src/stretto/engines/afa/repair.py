"""A change out of order: an event comes or goes somewhere in its partition (AFA paper, algorithm 1 and appendices C, D).

It is a step in two phases. First the new partial matches are derived, event by event, beside the old ones; this may stop for want
of room, or at a fence or transfer that fails, and then the step is taken back as if it had not been tried. Then it is carried out,
which cannot fail: old partial matches are unlinked, new ones linked, and the difference between the outputs before and after is
written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_OUTPUT, GROW_STACK, OUTPUT_FULL, inlined, jit
from stretto.engines.afa.anchors import divide, prolong, prolong_new
from stretto.engines.afa.cleaning import drop, free_list, free_slot, merge
from stretto.engines.afa.derive import derive
from stretto.engines.afa.live import collect, earlier
from stretto.engines.afa.outputs import pick, put, settle, trace, write
from stretto.engines.afa.places import drop_event, link_event
from stretto.engines.afa.structure import (
    AFFECTED,
    BEHIND,
    CELLS,
    CLEANED,
    COUNT_D,
    FINAL,
    FIRST,
    FOREVER,
    FRESH,
    GAINED,
    HEAD,
    LAST,
    LE,
    LIVE_PARTIAL,
    NEED,
    NEXT,
    NIL,
    OLD,
    PEAK,
    PENDING,
    REG,
    RETRACTED,
    ROW,
    ROWS,
    SEQ,
    SETTLED,
    SIZE,
    START,
    START_LE,
    START_SEQ,
    STATE,
    TAIL,
    TAKEN,
    UNTIL_LE,
    UNTIL_SEQ,
    Events,
    Graph,
    Memory,
    Parts,
    Work,
)

__all__ = ["repair"]

I64 = NDArray[np.int64]


@inlined
def _take_back(pending: int, P: I64, work: Work, registers: I64) -> None:
    """Give back what a step has derived so far."""
    for k in range(pending):
        free_list(work.head[k], work.tail[k], 0, P, registers)
    free_list(registers[HEAD], registers[TAIL], 0, P, registers)


@inlined
def _concerned(theta: Any, part: int, x: int, taken: int, given: int, whole: bool, m: Memory) -> int:
    """C: the partial matches live at ``x`` that the change concerns, by first event; how many, or −1 for want of room.

    With ignorable arcs they are in S too, and those that it does not concern in L.
    """
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    registers[AFFECTED] = registers[SETTLED] = registers[OLD] = 0
    if graph.ignores:
        live = collect(x, part, graph, P, events, m.parts, work)
        if live < 0 or live > min(work.S.size, work.old.size, work.C.size):
            return -1
        divide(theta, live, x, taken, given, whole, m)
        for k in range(registers[AFFECTED]):
            work.C[k] = work.S[k]
        return int(registers[AFFECTED])
    count = 0
    p = events.X[x, FIRST] if x != NIL else NIL
    while p != NIL:
        if count == work.C.size:
            return -1
        work.C[count] = p
        count += 1
        p = P[NEXT, p]
    return count


@inlined
def _adjacent(a: int, b: int, graph: Graph, events: Events) -> bool:
    """Whether matches may go on from event ``a`` to the one behind it, ``b``: where events are numbered, the next number."""
    return not graph.numbered or (NIL not in (a, b) and events.X[a, SEQ] + 1 == events.X[b, SEQ])


@jit
def _affected(p: int, at: int, bound_le: int, bound_seq: int, taken_row: int, m: Memory) -> int:
    """Whether a partial match spans the change: ``at`` or more if so, −1 − at if not; ``at`` is a place in S to go on from.

    Asked along a list, by first event. Where no match is settled, all that began at or before the change are affected.
    """
    P, work, registers = m.P, m.work, m.registers
    if earlier(bound_le, bound_seq, P[START_LE, p], P[START_SEQ, p]):
        return -1 - at
    if registers[SETTLED] == 0 or P[START, p] == taken_row:
        return at
    S = work.S
    while at < registers[AFFECTED] and earlier(
        P[START_LE, S[at]], P[START_SEQ, S[at]], P[START_LE, p], P[START_SEQ, p]
    ):
        at += 1
    if at < registers[AFFECTED] and P[START, S[at]] == P[START, p]:
        return at
    return -1 - at


@inlined
def _lose_all(z: int, bound_le: int, bound_seq: int, m: Memory) -> int:
    """As :func:`_lose`, where every partial match at ``z`` that began at or before the change is affected."""
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    count, p, found = 0, events.X[z, FIRST], events.X[z, CLEANED]
    while p != NIL and not earlier(bound_le, bound_seq, P[START_LE, p], P[START_SEQ, p]):
        found = 1
        if graph.states[P[STATE, p], FINAL] != 0:
            if count == work.picked.size:
                return -1
            work.picked[count] = p
            count += 1
        p = P[NEXT, p]
    if count > 0:
        end = put(count, z, False, registers[RETRACTED], registers[TAKEN], work.lost, m)
        if end < 0:
            return -1
        registers[RETRACTED] = end
    return int(found)


@jit
def _lose(
    z: int,
    first: bool,
    bound_le: int,
    bound_seq: int,
    taken_row: int,
    m: Memory,
) -> int:
    """The outputs at event ``z`` that the change takes back; 1 if matches that it affects are live there, −1 for want of room."""
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    picked, old, extra = work.picked, work.old, REG + graph.real.size
    count = at = 0
    alive = 0
    kept = 0
    le, seq = events.X[z, LE], events.X[z, SEQ]
    for k in range(registers[OLD]):  # anchors that went on at z
        p = old[k]
        if not earlier(P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p], le, seq):
            old[kept] = p
            kept += 1
            alive = 1
            if graph.states[P[STATE, p], FINAL] == 1:
                if count == picked.size:
                    return -1
                picked[count] = p
                count += 1
    mixed = count > 0
    if first:
        for k in range(registers[SETTLED]):
            if graph.states[P[STATE, work.L[k]], FINAL] == 1:
                if count == picked.size:
                    return -1
                picked[count] = work.L[k]
                count += 1
                mixed = True
    p = events.X[z, FIRST]
    while p != NIL:
        found = _affected(p, at, bound_le, bound_seq, taken_row, m)
        if found < 0:
            if earlier(bound_le, bound_seq, P[START_LE, p], P[START_SEQ, p]):
                break
            at = -1 - found
        else:
            at = found
            alive = 1
            if graph.states[P[STATE, p], FINAL] != 0:
                if count == picked.size:
                    return -1
                picked[count] = p
                count += 1
            if earlier(le, seq, P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p]):
                if kept == old.size:
                    return -1
                old[kept] = p
                kept += 1
        p = P[NEXT, p]
    alive |= events.X[z, CLEANED]
    registers[OLD] = kept
    end = put(count, z, mixed, registers[RETRACTED], registers[TAKEN], work.lost, m)
    if end < 0:
        return -1
    registers[RETRACTED] = end
    return int(alive)


@jit
def repair(
    theta: Any,
    part: int,
    x: int,
    taken: int,
    given: int,
    limit: int,
    m: Memory,
) -> int:
    """Event ``taken`` gives its place, behind event ``x``, to event ``given``; either may be NIL.

    Events before time ``limit`` are derived anew altogether (for a change of arcs, where taken is given); else only what spans
    the change (RemoveInvalidatedSequences, PropagateInsert). Nothing is changed unless the status is DONE.
    """
    graph, P, events, parts, work, out, registers = m.graph, m.P, m.events, m.parts, m.work, m.out, m.registers
    registers[RETRACTED] = registers[GAINED] = registers[PENDING] = 0
    registers[HEAD] = registers[TAIL] = NIL
    whole = limit > -FOREVER
    behind = events.X[taken, BEHIND] if taken != NIL else events.X[x, BEHIND] if x != NIL else parts.first[part]
    here = given if given != NIL else taken
    count = _concerned(theta, part, x, taken, given, whole, m)
    if count < 0:
        registers[NEED] = work.C.size + 1
        return GROW_STACK
    bound_le, bound_seq = events.X[here, LE], events.X[here, SEQ]
    taken_row = events.X[taken, ROW] if taken != NIL else -1
    # Whether a match that the change concerns is live at the event before, as things were.
    alive = (count > 0 or events.X[x, CLEANED] != 0) and (taken != NIL or _adjacent(x, behind, graph, events))
    before, old_z, new_z = x, taken, given
    pending = 0
    first = True
    status = DONE
    while True:
        if pending == work.head.size:
            registers[NEED] = pending + 1
            status = GROW_STACK
            break
        inside = whole and events.X[new_z if new_z != NIL else old_z, LE] < limit
        if inside:
            bound_le, bound_seq = events.X[new_z, LE], events.X[new_z, SEQ]
        work.before[pending], work.after[pending] = NIL, new_z
        work.head[pending] = work.tail[pending] = work.size[pending] = NIL
        pending += 1
        if old_z != NIL and (alive or first or inside):
            work.before[pending - 1] = old_z
            if graph.ignores:
                found = _lose(old_z, first, bound_le, bound_seq, taken_row, m)
            else:
                found = _lose_all(old_z, bound_le, bound_seq, m)
            if found < 0:
                registers[NEED] = work.picked.size + 1
                status = GROW_STACK
                break
            alive = found > 0
        if new_z != NIL:
            starts = (first and given != NIL) or inside
            if not _adjacent(before, new_z, graph, events):
                count = 0
            status = derive(
                theta,
                new_z,
                count,
                starts,
                events.X[before, LE],
                events.X[before, SEQ],
                m,
            )
            if status != DONE:
                break
            k = pending - 1
            work.head[k], work.tail[k], work.size[k] = registers[HEAD], registers[TAIL], registers[FRESH]
            registers[HEAD] = registers[TAIL] = NIL
            size = pick(new_z, work.D, registers[COUNT_D], 0, graph, P, work)
            settled = first and registers[SETTLED] > 0
            if settled and size >= 0:
                size = pick(new_z, work.L, registers[SETTLED], size, graph, P, work)
            if size > 0:
                size = put(size, new_z, settled, registers[GAINED], registers[TAKEN], work.won, m)
                registers[GAINED] = max(size, registers[GAINED])
            if size < 0:
                registers[NEED] = work.picked.size + 1
                status = GROW_STACK
                break
            count = 0
            for k in range(registers[COUNT_D]):
                if work.D[k] != NIL:
                    if count == work.C.size:
                        status = GROW_STACK
                        registers[NEED] = work.D.size
                        break
                    work.C[count] = work.D[k]
                    count += 1
            if status != DONE:
                break
            before = new_z
        first = False
        if behind == NIL:
            break
        if not _adjacent(before, behind, graph, events):
            count = 0
        if not alive and count == 0 and not (whole and events.X[behind, LE] < limit):
            break
        old_z = new_z = behind
        behind = events.X[behind, BEHIND]
    if status == DONE and registers[RETRACTED] + registers[GAINED] > 0:
        settle(graph, work, registers)
        if registers[ROWS] + registers[RETRACTED] + registers[GAINED] > out.rows.shape[0]:
            registers[NEED] = registers[RETRACTED] + registers[GAINED]
            status = OUTPUT_FULL if registers[ROWS] > 0 else GROW_OUTPUT
        elif graph.traces:
            cells = registers[CELLS]
            told = trace(work.lost, 0, registers[RETRACTED], x, NIL, NIL, m)
            if not told or not trace(work.won, 0, registers[GAINED], x, taken, given, m):
                registers[CELLS], registers[NEED] = cells, 1
                status = OUTPUT_FULL if registers[ROWS] > 0 else GROW_OUTPUT
    if status != DONE:
        _take_back(pending, P, work, registers)
        return status
    if registers[RETRACTED] + registers[GAINED] > 0:
        write(graph, work, out, registers)
    registers[PENDING] = pending
    reaching = count if before == _last_after(part, taken, given, x, parts) else 0
    _carry_out(part, x, taken, given, taken_row, bound_le, bound_seq, m)
    if graph.ignores:
        prolong(part, x, taken, given, reaching, m)
    return DONE


@inlined
def _last_after(part: int, taken: int, given: int, x: int, parts: Parts) -> int:
    """The last event of a partition once a change is carried out."""
    last = parts.last[part]
    if taken == last and taken != NIL:
        return given if given != NIL else x
    return int(last)


@inlined
def _carry_out(
    part: int,
    x: int,
    taken: int,
    given: int,
    taken_row: int,
    bound_le: int,
    bound_seq: int,
    m: Memory,
) -> None:
    """The second phase of a step."""
    graph, P, events, parts, work, registers = m.graph, m.P, m.events, m.parts, m.work, m.registers
    for k in range(registers[PENDING]):
        z = work.before[k]
        if z != NIL and graph.ignores:
            _unlink(z, bound_le, bound_seq, taken_row, m)
        elif z != NIL:
            _unlink_all(z, bound_le, bound_seq, P, events, registers)
    if taken != given:
        if taken != NIL:
            drop_event(taken, part, graph, events, parts)
        if given != NIL:
            link_event(given, x, part, graph, events, parts)
    for k in range(registers[PENDING]):
        z = work.after[k]
        if z != NIL:
            if graph.ignores:
                prolong_new(work.head[k], graph, P)
            merge(z, work.head[k], work.tail[k], work.size[k], P, events)
            registers[LIVE_PARTIAL] += work.size[k]
    registers[PEAK] = max(registers[PEAK], registers[LIVE_PARTIAL])
    if taken not in (given, NIL):
        free_slot(taken, events, registers)


@inlined
def _unlink_all(z: int, bound_le: int, bound_seq: int, P: I64, events: Events, registers: I64) -> None:
    """Take the partial matches that began at or before the change out of an event's list, where they come first."""
    head, last, count = events.X[z, FIRST], NIL, 0
    p = head
    while p != NIL and not earlier(bound_le, bound_seq, P[START_LE, p], P[START_SEQ, p]):
        last, p = p, P[NEXT, p]
        count += 1
    if count > 0:
        free_list(head, last, count, P, registers)
        events.X[z, FIRST] = p
        events.X[z, SIZE] -= count
        if p == NIL:
            events.X[z, LAST] = NIL


@jit
def _unlink(
    z: int,
    bound_le: int,
    bound_seq: int,
    taken_row: int,
    m: Memory,
) -> None:
    """Take the affected partial matches out of an event's list."""
    P, events, registers = m.P, m.events, m.registers
    p, last, at = events.X[z, FIRST], NIL, 0
    while p != NIL:
        following = P[NEXT, p]
        found = _affected(p, at, bound_le, bound_seq, taken_row, m)
        if found >= 0:
            at = found
            drop(p, last, z, P, events, registers)
        else:
            at = -1 - found
            if earlier(bound_le, bound_seq, P[START_LE, p], P[START_SEQ, p]):
                return  # the rest began later
            last = p
        p = following
    events.X[z, LAST] = last
