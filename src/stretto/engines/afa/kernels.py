"""The AFA operator's kernel: insertion, deletion, revision and changes of arcs (AFA paper, algorithm 1 and appendices C, D).

Each operation is a *step* in two phases. First the new partial matches are derived, event by event, beside the old ones; this
may stop for want of room, or at a fence or transfer that fails, and then the step is taken back as if it had not been tried.
Then the step is carried out, which cannot fail: old partial matches are unlinked, new ones linked, and the difference between
the outputs before and after is written.

An in-order event costs O(partial matches at the last event); one that is out of order O(log events) and what it derives anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto._jit import (
    DONE,
    FAULTED,
    GROW_ARENA,
    GROW_OUTPUT,
    GROW_STACK,
    OUTPUT_FULL,
    PAUSED,
    inlined,
    jit,
)
from stretto.engines.afa.cleaning import clean, drop, free_list, free_slot, merge, part_with
from stretto.engines.afa.derive import derive
from stretto.engines.afa.index import attach, detach, find, stretch
from stretto.engines.afa.live import build_with_ends, collect, earlier, greatest_end, is_settled
from stretto.engines.afa.outputs import put, settle, trace, write
from stretto.engines.afa.structure import (
    ADD_ARC,
    AFFECTED,
    ARC_NEXT,
    ARCS_CLEAN,
    BEHIND,
    CELLS,
    CHANGED,
    CLEAN,
    CLEANED,
    COUNT_D,
    CURSOR,
    EPSILON,
    FAULT,
    FINAL,
    FINALS,
    FIRST,
    FIRST_ARC,
    FIRST_EPSILON,
    FOREVER,
    FREE_EVENTS,
    FRESH,
    GAINED,
    HEAD,
    HOME,
    INSERT,
    KIND,
    LAST,
    LATE,
    LATE_EVENT,
    LE,
    LIVE_EVENTS,
    LIVE_PARTIAL,
    MISSED,
    NEED,
    NEXT,
    NIL,
    OF,
    OLD,
    OPEN,
    OUT_OF_ORDER,
    OWN,
    PEAK,
    PENDING,
    PREV,
    PUNCTUATE,
    PUNCTUATION,
    RE,
    REG,
    RETIRED,
    RETRACT,
    RETRACTED,
    REVISED,
    REVISES,
    REVISING,
    ROW,
    ROWS,
    SAME_PLACE,
    SEEN,
    SEQ,
    SETTLED,
    SINCE,
    SIZE,
    SKIP,
    SOURCE,
    START,
    START_LE,
    START_SEQ,
    STATE,
    STEPS,
    TAIL,
    TAKEN,
    TILL_LE,
    TILL_SEQ,
    UNKNOWN,
    UNTIL_LE,
    UNTIL_SEQ,
    Batch,
    Events,
    Graph,
    Memory,
    Parts,
    Work,
)

__all__ = ["advance", "recompute"]

I64 = NDArray[np.int64]

PAUSE_AFTER = 1 << 24  #: partial matches looked at between two looks at signals


@inlined
def _take_back(pending: int, P: I64, work: Work, registers: I64) -> None:
    """Give back what a step has derived so far."""
    for k in range(pending):
        free_list(work.head[k], work.tail[k], 0, P, registers)
    free_list(registers[HEAD], registers[TAIL], 0, P, registers)


@inlined
def _new_slot(i: int, batch: Batch, events: Events, registers: I64) -> int:
    """A slot with the event of operation ``i``; NIL if there is none."""
    slot = registers[FREE_EVENTS]
    if slot != NIL:
        registers[FREE_EVENTS] = events.X[slot, BEHIND]
        registers[LIVE_EVENTS] += 1
        events.X[slot, LE], events.X[slot, SEQ], events.X[slot, RE] = batch.le[i], batch.seq[i], batch.re[i]
        events.X[slot, ROW], events.X[slot, OF] = batch.row[i], batch.part[i]
        events.X[slot, OWN] = batch.le[i]
        events.X[slot, CLEANED] = 0
        events.X[slot, PREV] = events.X[slot, BEHIND] = events.X[slot, FIRST] = events.X[slot, LAST] = events.X[
            slot, SIZE
        ] = NIL
        for word in range(events.E.shape[1]):
            events.E[slot, word] = batch.W[i, word]
    return int(slot)


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
def _picked(z: int, of: I64, count: int, at: int, graph: Graph, P: I64, work: Work) -> int:
    """Add the finals of ``of[: count]`` to ``picked``; anchors in it ignore event ``z``. Where it ends; −1: no room."""
    extra = REG + graph.real.size
    for k in range(count):
        p = of[k]
        if p == NIL:
            continue
        final = graph.states[P[STATE, p], FINAL]
        if final == 1 or (final == 2 and not (graph.ignores and P[extra + HOME, p] != z)):
            if at == work.picked.size:
                return -1
            work.picked[at] = p
            at += 1
    return at


@inlined
def _append(
    theta: Any,
    i: int,
    batch: Batch,
    m: Memory,
) -> int:
    """An event behind all others of its partition. O(partial matches live at the last one)."""
    graph, P, events, parts, work, out, registers = m.graph, m.P, m.events, m.parts, m.work, m.out, m.registers
    part = batch.part[i]
    x = parts.last[part]
    y = _new_slot(i, batch, events, registers)
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
        size = _picked(y, work.D, registers[COUNT_D], 0, graph, P, work)
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
    if parts.root[part] != NIL:
        attach(y, part, events, parts)
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
    if graph.ordered:
        p = events.X[x, FIRST]
        for k in range(registers[COUNT_D]):
            if D[k] != NIL:
                P[extra + HOME, D[k]] = y
                P[extra + UNTIL_LE, D[k]], P[extra + UNTIL_SEQ, D[k]] = le, seq
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
        last = size = NIL
        events.X[y, FIRST] = NIL
        for k in range(registers[COUNT_D]):
            if D[k] != NIL:
                if last == NIL:
                    events.X[y, FIRST] = D[k]
                else:
                    P[NEXT, last] = D[k]
                last = D[k]
                size += 1
        if last != NIL:
            P[NEXT, last] = NIL
        events.X[y, LAST], events.X[y, SIZE] = last, size
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
    last = NIL
    parts.open[part] = NIL
    for k in range(registers[COUNT_D]):
        p = D[k]
        if p != NIL and P[extra + HOME, p] != y:
            P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p] = le, seq
            P[extra + OPEN, p] = NIL
            if last == NIL:
                parts.open[part] = p
            else:
                P[extra + OPEN, last] = p
            last = p


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


@jit
def _divide(
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
    L, S, extra = work.L, work.S, REG + graph.real.size
    settled = affected = old = 0
    begin = 0
    while begin < live:
        end = begin + 1
        while end < live and P[START, L[end]] == P[START, L[begin]]:
            end += 1
        # Where adjacency is by number, an event that comes or goes joins or parts those beside it.
        # Where partial matches were dropped, those that are left do not tell all that a change concerns.
        apart = (graph.numbered and (NIL in (taken, given))) or events.X[x, CLEANED] != 0
        stays = graph.ignores and not whole and not apart and is_settled(theta, begin, end, taken, given, m)
        for k in range(begin, end):
            p = L[k]
            if stays:
                L[settled] = p
                settled += 1
            else:
                S[affected] = p
                affected += 1
                if graph.ignores:
                    P[extra + TILL_LE, p], P[extra + TILL_SEQ, p] = events.X[x, LE], events.X[x, SEQ]
                    if earlier(events.X[x, LE], events.X[x, SEQ], P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p]):
                        work.old[old] = p
                        old += 1
        begin = end
    registers[SETTLED], registers[AFFECTED], registers[OLD] = settled, affected, old


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
            if graph.ignores and earlier(le, seq, P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p]):
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
def _repair(
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
    live = collect(x, part, graph, P, events, parts, work)
    if live > min(work.S.size, work.old.size, work.C.size):
        live = -1
    if live < 0:
        registers[NEED] = work.L.size + 1
        return GROW_STACK
    _divide(theta, live, x, taken, given, whole, m)
    bound_le, bound_seq = events.X[here, LE], events.X[here, SEQ]
    taken_row = events.X[taken, ROW] if taken != NIL else -1
    count = registers[AFFECTED]
    for k in range(count):
        work.C[k] = work.S[k]
    alive = count > 0 or events.X[x, CLEANED] != 0
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
        work.before[pending], work.after[pending] = old_z, new_z
        work.head[pending] = work.tail[pending] = work.size[pending] = NIL
        pending += 1
        if old_z != NIL:
            found = _lose(old_z, first, bound_le, bound_seq, taken_row, m)
            if found < 0:
                registers[NEED] = work.picked.size + 1
                status = GROW_STACK
                break
            alive = found > 0
        if new_z != NIL:
            if graph.numbered and (before == NIL or events.X[before, SEQ] + 1 != events.X[new_z, SEQ]):
                count = 0
            starts = (first and given != NIL) or inside
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
            size = _picked(new_z, work.D, registers[COUNT_D], 0, graph, P, work)
            settled = first and registers[SETTLED] > 0
            if settled and size >= 0:
                size = _picked(new_z, work.L, registers[SETTLED], size, graph, P, work)
            if size >= 0:
                size = put(size, new_z, settled, registers[GAINED], registers[TAKEN], work.won, m)
            if size < 0:
                registers[NEED] = work.picked.size + 1
                status = GROW_STACK
                break
            registers[GAINED] = size
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
        if not alive and count == 0 and not (whole and events.X[behind, LE] < limit):
            break
        old_z = new_z = behind
        behind = events.X[behind, BEHIND]
    if status == DONE:
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
    write(graph, work, out, registers)
    registers[PENDING] = pending
    _carry_out(
        part,
        x,
        taken,
        given,
        count if before == _last_after(part, taken, given, x, events, parts) else 0,
        taken_row,
        bound_le,
        bound_seq,
        m,
    )
    return DONE


@inlined
def _last_after(part: int, taken: int, given: int, x: int, events: Events, parts: Parts) -> int:
    """The last event of a partition once a change is carried out."""
    last = parts.last[part]
    if taken == last and taken != NIL:
        return given if given != NIL else x
    return int(last)


@jit
def _carry_out(
    part: int,
    x: int,
    taken: int,
    given: int,
    reaching: int,
    taken_row: int,
    bound_le: int,
    bound_seq: int,
    m: Memory,
) -> None:
    """The second phase of a step. C[: reaching] is live at the last event."""
    graph, P, events, parts, work, registers = m.graph, m.P, m.events, m.parts, m.work, m.registers
    extra, ignores = REG + graph.real.size, graph.ignores
    for k in range(registers[PENDING]):
        if work.before[k] != NIL:
            _unlink(work.before[k], bound_le, bound_seq, taken_row, m)
    if taken != given:
        if taken != NIL:
            _drop_event(taken, part, events, parts)
        if given != NIL:
            _link_event(given, x, part, events, parts)
    for k in range(registers[PENDING]):
        z = work.after[k]
        if z != NIL:
            merge(z, work.head[k], work.tail[k], work.size[k], P, events)
            registers[LIVE_PARTIAL] += work.size[k]
    registers[PEAK] = max(registers[PEAK], registers[LIVE_PARTIAL])
    if taken not in (given, NIL):
        free_slot(taken, events, registers)
    if not ignores:
        return
    for k in range(registers[AFFECTED]):
        p = work.S[k]
        P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p] = P[extra + TILL_LE, p], P[extra + TILL_SEQ, p]
    last = parts.last[part]
    for k in range(registers[SETTLED]):
        p = work.L[k]
        if given != NIL and earlier(
            P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p], events.X[given, LE], events.X[given, SEQ]
        ):
            P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p] = events.X[given, LE], events.X[given, SEQ]
        if last == x:  # the last event was taken away
            P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p] = events.X[x, LE], events.X[x, SEQ]
    for k in range(registers[PENDING]):
        p = work.head[k]
        for _ in range(work.size[k]):
            P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p] = P[extra + TILL_LE, p], P[extra + TILL_SEQ, p]
            p = P[NEXT, p]
    _reopen(part, reaching, graph, P, events, parts, work)
    if parts.root[part] != NIL:
        for k in range(registers[PENDING]):
            _measure(work.after[k], graph, P, events)
            if work.before[k] != taken or taken == given:
                _measure(work.before[k], graph, P, events)
        for k in range(registers[AFFECTED]):
            _measure(P[extra + HOME, work.S[k]], graph, P, events)
        for k in range(registers[SETTLED]):
            _measure(P[extra + HOME, work.L[k]], graph, P, events)


@inlined
def _measure(slot: int, graph: Graph, P: I64, events: Events) -> None:
    """The ends of the intervals that begin at an event, for the treap."""
    if slot != NIL:
        events.X[slot, OWN] = greatest_end(slot, graph, P, events)
        stretch(slot, events)


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


@jit
def _drop_event(slot: int, part: int, events: Events, parts: Parts) -> None:
    """Take an event out of its partition."""
    before, behind = events.X[slot, PREV], events.X[slot, BEHIND]
    if parts.root[part] != NIL:
        detach(slot, part, events, parts)
    if before == NIL:
        parts.first[part] = behind
    else:
        events.X[before, BEHIND] = behind
    if behind == NIL:
        parts.last[part] = before
    else:
        events.X[behind, PREV] = before


@jit
def _link_event(slot: int, x: int, part: int, events: Events, parts: Parts) -> None:
    """Put an event behind ``x``."""
    behind = parts.first[part] if x == NIL else events.X[x, BEHIND]
    events.X[slot, PREV], events.X[slot, BEHIND] = x, behind
    if x == NIL:
        parts.first[part] = slot
    else:
        events.X[x, BEHIND] = slot
    if behind == NIL:
        parts.last[part] = slot
    else:
        events.X[behind, PREV] = slot
    if parts.root[part] != NIL:
        attach(slot, part, events, parts)


@jit
def _reopen(part: int, reaching: int, graph: Graph, P: I64, events: Events, parts: Parts, work: Work) -> None:
    """The open list after a step: those of it that still go on at the last event, with those of C[: reaching]; by first event."""
    extra = REG + graph.real.size
    last = parts.last[part]
    le, seq = events.X[last, LE], events.X[last, SEQ]
    p, k, tail = parts.open[part], 0, NIL
    parts.open[part] = NIL
    while True:
        while p != NIL:
            following = P[extra + OPEN, p]
            goes_on = P[extra + UNTIL_LE, p] == le and P[extra + UNTIL_SEQ, p] == seq
            if P[STATE, p] >= 0 and goes_on and P[extra + HOME, p] != last:
                break
            P[extra + OPEN, p] = -1
            p = following
        while k < reaching and (P[extra + HOME, work.C[k]] == last or P[extra + OPEN, work.C[k]] >= 0):
            k += 1
        if p == NIL and k >= reaching:
            return
        if k >= reaching or (
            p != NIL and earlier(P[START_LE, p], P[START_SEQ, p], P[START_LE, work.C[k]], P[START_SEQ, work.C[k]])
        ):
            here = p
            p = P[extra + OPEN, p]
        else:
            here = work.C[k]
            k += 1
        P[extra + OPEN, here] = NIL
        if tail == NIL:
            parts.open[part] = here
        else:
            P[extra + OPEN, tail] = here
        tail = here


@jit
def _find_taken(i: int, batch: Batch, graph: Graph, events: Events, parts: Parts) -> int:
    """The event that a retraction names: by its place, or by its time and payload (the latest one); NIL: there is none."""
    part, le = batch.part[i], batch.le[i]
    if graph.keyed:
        at = find(part, le, batch.seq[i], events, parts)
        return at if at != NIL and events.X[at, LE] == le and events.X[at, SEQ] == batch.seq[i] else NIL
    at = find(part, le, FOREVER, events, parts)
    while at != NIL and events.X[at, LE] == le:
        same = events.X[at, RE] == batch.re[i]
        for word in range(graph.bits):
            same &= events.E[at, word] == batch.W[i, word]
        if same:
            return at
        at = events.X[at, PREV]
    return NIL


@inlined
def _is_late(i: int, batch: Batch, graph: Graph, events: Events, parts: Parts, registers: I64) -> bool:
    """Whether an operation is below the punctuation; in an ordered stream, before the last event."""
    le = batch.le[i]
    if le < registers[PUNCTUATION]:
        return True
    if not graph.ordered:
        return False
    last = parts.last[batch.part[i]]
    return le < registers[SEEN] or (
        last != NIL and not earlier(events.X[last, LE], events.X[last, SEQ], le, batch.seq[i])
    )


@jit
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
        taken = _find_taken(i, batch, graph, events, parts)
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
        x = find(part, batch.le[i], batch.seq[i], events, parts)
        if x != NIL and events.X[x, LE] == batch.le[i] and events.X[x, SEQ] == batch.seq[i]:
            registers[FAULT] = SAME_PLACE
            return FAULTED
    given = NIL
    if op != RETRACT:
        given = _new_slot(i, batch, events, registers)
        if given == NIL:
            return GROW_ARENA
        if taken != NIL:
            events.X[given, SEQ] = events.X[taken, SEQ]
            if graph.trail < 0:  # selected events are told apart by their rows, and this is another one
                events.X[given, ROW] = events.X[taken, ROW]
    status = _repair(theta, part, x, taken, given, -FOREVER, m)
    if status != DONE and given != NIL:
        free_slot(given, events, registers)
    return int(status)


@inlined
def _change_arc(change: int, batch: Batch, graph: Graph, registers: I64) -> None:
    """An arc is valid from the next time unit on, or up to the greatest time seen (section 2.3, default operation)."""
    arcs, states = graph.arcs, graph.states
    arc = batch.which[change]
    state = arcs[arc, SOURCE]
    now = max(registers[SEEN], registers[PUNCTUATION])
    now = now + 1 if now > -FOREVER else now
    first = FIRST_EPSILON if arcs[arc, KIND] == EPSILON else FIRST_ARC
    if batch.what[change] == ADD_ARC:
        arcs[arc, SINCE] = now
        arcs[arc, ARC_NEXT] = states[state, first]
        states[state, first] = arc
    else:
        arcs[arc, RETIRED] = now
    # Arcs that no event can take any more are unlinked on the way.
    least = registers[SEEN] if graph.ordered else registers[CLEAN]
    at, last = states[state, first], NIL
    while at != NIL:
        following = arcs[at, ARC_NEXT]
        if arcs[at, RETIRED] <= least or arcs[at, RETIRED] <= arcs[at, SINCE]:
            if last == NIL:
                states[state, first] = following
            else:
                arcs[last, ARC_NEXT] = following
        else:
            last = at
        at = following


@inlined
def _between(batch: Batch, graph: Graph, registers: I64) -> None:
    """Carry out the changes that stand before the operation at hand."""
    while registers[CHANGED] < batch.at.size and batch.at[registers[CHANGED]] <= registers[CURSOR]:
        change = registers[CHANGED]
        if batch.what[change] == PUNCTUATE:
            registers[PUNCTUATION] = batch.which[change]
            registers[CLEAN] = min(registers[PUNCTUATION], registers[ARCS_CLEAN])
        else:
            _change_arc(change, batch, graph, registers)
        registers[CHANGED] += 1


@jit
def advance(
    theta: Any,
    batch: Batch,
    m: Memory,
) -> int:
    """Carry out operations from CURSOR on, until all are done or one needs what the status says.

    ``theta(function, event, old, new, E, P, F)`` asks a fence or carries out a transfer (code.py). What comes too late is marked
    with −1 in ``batch.op`` where the graph is lenient. An in-order event: O(partial matches at the last event · arcs of a state).
    """
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
            le, last = batch.le[i], parts.last[part]
            if _is_late(i, batch, graph, events, parts, registers):
                registers[FAULT] = LATE_EVENT
                registers[REVISING] = NIL
                status = FAULTED
            elif (
                op == INSERT and (last == NIL or earlier(events.X[last, LE], events.X[last, SEQ], le, batch.seq[i]))
            ) or (
                op == REVISES
                and registers[REVISING] == NIL
                and (last == NIL or earlier(events.X[last, LE], events.X[last, SEQ], le, batch.seq[i]))
            ):
                status = _append(theta, i, batch, m)
            else:
                registers[OUT_OF_ORDER] += op == INSERT
                status = _change(theta, i, batch, m)
                if status != DONE:
                    registers[OUT_OF_ORDER] -= op == INSERT
        if status == FAULTED and graph.lenient and (registers[FAULT] == LATE_EVENT or registers[FAULT] == UNKNOWN):
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
    theta: Any,
    since: int,
    until: int,
    m: Memory,
) -> int:
    """The arcs that are valid for events in [since, until) have changed: derive those events anew, partition by partition.

    From partition CURSOR on. O(partial matches at these events, and at those behind that depend on them).
    """
    graph, P, events, parts, registers = m.graph, m.P, m.events, m.parts, m.registers
    since = max(since, registers[CLEAN])
    while registers[CURSOR] < parts.first.size:
        part = registers[CURSOR]
        last = parts.last[part]
        if last != NIL and events.X[last, LE] >= since:
            if parts.root[part] == NIL and parts.first[part] != last:
                build_with_ends(part, graph, P, events, parts)
            x = find(part, since - 1, FOREVER, events, parts) if since > -FOREVER else NIL
            begin = events.X[x, BEHIND] if x != NIL else parts.first[part]
            if begin != NIL and events.X[begin, LE] < until:
                status = _repair(theta, part, x, begin, begin, until, m)
                if status != DONE:
                    return int(status)
        registers[CURSOR] += 1
    return DONE
