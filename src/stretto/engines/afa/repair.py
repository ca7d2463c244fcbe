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
from stretto.engines.afa import structure as s
from stretto.engines.afa.anchors import divide, prolong, prolong_new
from stretto.engines.afa.cleaning import drop, free_list, free_slot, merge
from stretto.engines.afa.derive import derive
from stretto.engines.afa.live import collect, earlier
from stretto.engines.afa.outputs import pick, put, settle, trace, write
from stretto.engines.afa.places import drop_event, link_event
from stretto.engines.afa.structure import Events, Graph, Memory, Parts, Work

I64 = NDArray[np.int64]


@inlined
def _take_back(pending: int, P: I64, work: Work, registers: I64) -> None:
    """Give back what a step has derived so far."""
    for k in range(pending):
        free_list(work.head[k], work.tail[k], 0, P, registers)
    free_list(registers[s.HEAD], registers[s.TAIL], 0, P, registers)


@inlined
def _concerned(theta: Any, part: int, x: int, taken: int, given: int, whole: bool, m: Memory) -> int:
    """C: the partial matches live at ``x`` that the change concerns, by first event; how many, or −1 for want of room.

    With ignorable arcs they are in S too, and those that it does not concern in L.
    """
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    registers[s.AFFECTED] = registers[s.SETTLED] = registers[s.OLD] = 0
    if graph.ignores:
        live = collect(x, part, graph, P, events, m.parts, work)
        if live < 0 or live > min(work.S.size, work.old.size, work.C.size):
            return -1
        divide(theta, live, x, taken, given, whole, m)
        for k in range(registers[s.AFFECTED]):
            work.C[k] = work.S[k]
        return int(registers[s.AFFECTED])
    count = 0
    p = events.X[x, s.FIRST] if x != s.NIL else s.NIL
    while p != s.NIL:
        if count == work.C.size:
            return -1
        work.C[count] = p
        count += 1
        p = P[s.NEXT, p]
    return count


@inlined
def _adjacent(a: int, b: int, graph: Graph, events: Events) -> bool:
    """Whether matches may go on from event ``a`` to the one behind it, ``b``: where events are numbered, the next number."""
    return not graph.numbered or (s.NIL not in (a, b) and events.X[a, s.SEQ] + 1 == events.X[b, s.SEQ])


@jit
def _affected(p: int, at: int, bound_le: int, bound_seq: int, taken_row: int, m: Memory) -> int:
    """Whether a partial match spans the change: ``at`` or more if so, −1 − at if not; ``at`` is a place in S to go on from.

    Asked along a list, by first event. Where no match is settled, all that began at or before the change are affected.
    """
    P, work, registers = m.P, m.work, m.registers
    if earlier(bound_le, bound_seq, P[s.START_LE, p], P[s.START_SEQ, p]):
        return -1 - at
    if registers[s.SETTLED] == 0 or P[s.START, p] == taken_row:
        return at
    S = work.S
    while at < registers[s.AFFECTED] and earlier(
        P[s.START_LE, S[at]], P[s.START_SEQ, S[at]], P[s.START_LE, p], P[s.START_SEQ, p]
    ):
        at += 1
    if at < registers[s.AFFECTED] and P[s.START, S[at]] == P[s.START, p]:
        return at
    return -1 - at


@inlined
def _lose_all(z: int, bound_le: int, bound_seq: int, m: Memory) -> int:
    """Do what :func:`_lose` does, where every partial match at ``z`` that began at or before the change is affected."""
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    count, p, found = 0, events.X[z, s.FIRST], events.X[z, s.CLEANED]
    while p != s.NIL and not earlier(bound_le, bound_seq, P[s.START_LE, p], P[s.START_SEQ, p]):
        found = 1
        if graph.states[P[s.STATE, p], s.FINAL] != 0:
            if count == work.picked.size:
                return -1
            work.picked[count] = p
            count += 1
        p = P[s.NEXT, p]
    if count > 0:
        end = put(count, z, False, registers[s.RETRACTED], registers[s.TAKEN], work.lost, m)
        if end < 0:
            return -1
        registers[s.RETRACTED] = end
    return int(found)


@jit
def _lose(  # noqa: C901, PLR0912 - one walk along the events, whose state lies in local variables
    z: int,
    first: bool,
    bound_le: int,
    bound_seq: int,
    taken_row: int,
    m: Memory,
) -> int:
    """The outputs at event ``z`` that the change takes back; 1 if matches that it affects are live there, −1 for want of room."""
    graph, P, events, work, registers = m.graph, m.P, m.events, m.work, m.registers
    picked, old, extra = work.picked, work.old, s.REG + graph.real.size
    count = at = 0
    alive = 0
    kept = 0
    le, seq = events.X[z, s.LE], events.X[z, s.SEQ]
    for k in range(registers[s.OLD]):  # anchors that went on at z
        p = old[k]
        if not earlier(P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p], le, seq):
            old[kept] = p
            kept += 1
            alive = 1
            if graph.states[P[s.STATE, p], s.FINAL] == 1:
                if count == picked.size:
                    return -1
                picked[count] = p
                count += 1
    mixed = count > 0
    if first:
        for k in range(registers[s.SETTLED]):
            if graph.states[P[s.STATE, work.L[k]], s.FINAL] == 1:
                if count == picked.size:
                    return -1
                picked[count] = work.L[k]
                count += 1
                mixed = True
    p = events.X[z, s.FIRST]
    while p != s.NIL:
        found = _affected(p, at, bound_le, bound_seq, taken_row, m)
        if found < 0:
            if earlier(bound_le, bound_seq, P[s.START_LE, p], P[s.START_SEQ, p]):
                break
            at = -1 - found
        else:
            at = found
            alive = 1
            if graph.states[P[s.STATE, p], s.FINAL] != 0:
                if count == picked.size:
                    return -1
                picked[count] = p
                count += 1
            if earlier(le, seq, P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p]):
                if kept == old.size:
                    return -1
                old[kept] = p
                kept += 1
        p = P[s.NEXT, p]
    alive |= events.X[z, s.CLEANED]
    registers[s.OLD] = kept
    end = put(count, z, mixed, registers[s.RETRACTED], registers[s.TAKEN], work.lost, m)
    if end < 0:
        return -1
    registers[s.RETRACTED] = end
    return int(alive)


@inlined
def _win(z: int, settled: bool, m: Memory) -> bool:
    """Collect the outputs of what was derived at event ``z``; ``False``: there is no room. ``settled``: anchors that stay count, too.

    Settled anchors are live at the event as well: a first event has one output for each register, whoever gives it.
    """
    graph, P, work, registers = m.graph, m.P, m.work, m.registers
    size = pick(z, work.D, registers[s.COUNT_D], 0, graph, P, work)
    if settled and size >= 0:
        size = pick(z, work.L, registers[s.SETTLED], size, graph, P, work)
    if size > 0:
        size = put(size, z, settled, registers[s.GAINED], registers[s.TAKEN], work.won, m)
        registers[s.GAINED] = max(size, registers[s.GAINED])
    return bool(size >= 0)


@inlined
def _go_on(work: Work, registers: I64) -> int:
    """D without the anchors that were replaced becomes C, for the next event; how many, or −1 for want of room."""
    count = 0
    for k in range(registers[s.COUNT_D]):
        if work.D[k] != s.NIL:
            if count == work.C.size:
                return -1
            work.C[count] = work.D[k]
            count += 1
    return count


@inlined
def _room_for_output(x: int, taken: int, given: int, m: Memory) -> int:
    """Cancel the outputs of both sides against each other, and see that what is left can be written: the status."""
    graph, work, out, registers = m.graph, m.work, m.out, m.registers
    if registers[s.RETRACTED] + registers[s.GAINED] == 0:
        return DONE
    settle(graph, work, registers)
    full = OUTPUT_FULL if registers[s.ROWS] > 0 else GROW_OUTPUT
    if registers[s.ROWS] + registers[s.RETRACTED] + registers[s.GAINED] > out.rows.shape[0]:
        registers[s.NEED] = registers[s.RETRACTED] + registers[s.GAINED]
        return full
    if graph.traces:
        cells = registers[s.CELLS]
        told = trace(work.lost, 0, registers[s.RETRACTED], x, s.NIL, s.NIL, m)
        if not told or not trace(work.won, 0, registers[s.GAINED], x, taken, given, m):
            registers[s.CELLS], registers[s.NEED] = cells, 1
            return full
    return DONE


@jit
def repair(  # noqa: C901, PLR0912, PLR0915 - one walk along the events, whose state lies in local variables
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

    The loop goes through the events from the change on, each with what it was (``old_z``, whose affected matches are lost) and what
    it becomes (``new_z``, where matches are derived from those of the event before). It ends where no affected match was live and
    none is derived: what follows is as before. The outputs of both sides are collected, and cancelled against each other at the
    end, because most matches that span a change come again.
    """
    graph, P, events, parts, work, out, registers = m.graph, m.P, m.events, m.parts, m.work, m.out, m.registers
    registers[s.RETRACTED] = registers[s.GAINED] = registers[s.PENDING] = 0
    registers[s.HEAD] = registers[s.TAIL] = s.NIL
    whole = limit > -s.FOREVER
    behind = events.X[taken, s.BEHIND] if taken != s.NIL else events.X[x, s.BEHIND] if x != s.NIL else parts.first[part]
    here = given if given != s.NIL else taken
    count = _concerned(theta, part, x, taken, given, whole, m)
    if count < 0:
        registers[s.NEED] = work.C.size + 1
        return GROW_STACK
    # A match spans the change if it began at or before this place.
    bound_le, bound_seq = events.X[here, s.LE], events.X[here, s.SEQ]
    taken_row = events.X[taken, s.ROW] if taken != s.NIL else -1
    # Whether a match that the change concerns is live at the event before, as things were.
    alive = (count > 0 or events.X[x, s.CLEANED] != 0) and (taken != s.NIL or _adjacent(x, behind, graph, events))
    before, old_z, new_z = x, taken, given
    pending = 0
    first = True
    status = DONE
    while True:
        if pending == work.head.size:
            registers[s.NEED] = pending + 1
            status = GROW_STACK
            break
        inside = whole and events.X[new_z if new_z != s.NIL else old_z, s.LE] < limit
        if inside:  # derived altogether: the matches that begin here, too
            bound_le, bound_seq = events.X[new_z, s.LE], events.X[new_z, s.SEQ]
        # Noted before anything can stop the step, so that it can be taken back up to here.
        work.before[pending], work.after[pending] = s.NIL, new_z
        work.head[pending] = work.tail[pending] = work.size[pending] = s.NIL
        pending += 1
        if old_z != s.NIL and (alive or first or inside):
            work.before[pending - 1] = old_z
            if graph.ignores:
                found = _lose(old_z, first, bound_le, bound_seq, taken_row, m)
            else:
                found = _lose_all(old_z, bound_le, bound_seq, m)
            if found < 0:
                registers[s.NEED] = work.picked.size + 1
                status = GROW_STACK
                break
            alive = found > 0
        if new_z != s.NIL:
            # Elsewhere the matches that begin at the event are there, and stay.
            starts = (first and given != s.NIL) or inside
            if not _adjacent(before, new_z, graph, events):
                count = 0
            status = derive(
                theta,
                new_z,
                count,
                starts,
                events.X[before, s.LE],
                events.X[before, s.SEQ],
                m,
            )
            if status != DONE:
                break
            k = pending - 1
            work.head[k], work.tail[k], work.size[k] = registers[s.HEAD], registers[s.TAIL], registers[s.FRESH]
            registers[s.HEAD] = registers[s.TAIL] = s.NIL  # theirs is the place in ``work`` now
            if not _win(new_z, first and registers[s.SETTLED] > 0, m):
                registers[s.NEED] = work.picked.size + 1
                status = GROW_STACK
                break
            count = _go_on(work, registers)
            if count < 0:
                registers[s.NEED] = work.D.size
                status = GROW_STACK
                break
            before = new_z
        first = False
        if behind == s.NIL:
            break
        if not _adjacent(before, behind, graph, events):
            count = 0
        # No affected match was live here before, and none is now: all that follows is right as it is.
        if not alive and count == 0 and not (whole and events.X[behind, s.LE] < limit):
            break
        old_z = new_z = behind
        behind = events.X[behind, s.BEHIND]
    # Room for the output comes before the step is carried out, which cannot be taken back.
    if status == DONE:
        status = _room_for_output(x, taken, given, m)
    if status != DONE:
        _take_back(pending, P, work, registers)
        return status
    if registers[s.RETRACTED] + registers[s.GAINED] > 0:
        write(graph, work, out, registers)
    registers[s.PENDING] = pending
    reaching = count if before == _last_after(part, taken, given, x, parts) else 0
    _carry_out(part, x, taken, given, taken_row, bound_le, bound_seq, m)
    if graph.ignores:
        prolong(part, x, taken, given, reaching, m)
    return DONE


@inlined
def _last_after(part: int, taken: int, given: int, x: int, parts: Parts) -> int:
    """The last event of a partition once a change is carried out."""
    last = parts.last[part]
    if taken == last and taken != s.NIL:
        return given if given != s.NIL else x
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
    """The second phase of a step.

    Old partial matches go first, while the events still lie in their old order, by which they are told apart; then the event, and at
    last the new ones, which are merged into lists that hold only what stays.
    """
    graph, P, events, parts, work, registers = m.graph, m.P, m.events, m.parts, m.work, m.registers
    for k in range(registers[s.PENDING]):
        z = work.before[k]
        if z != s.NIL and graph.ignores:
            _unlink(z, bound_le, bound_seq, taken_row, m)
        elif z != s.NIL:
            _unlink_all(z, bound_le, bound_seq, P, events, registers)
    if taken != given:
        if taken != s.NIL:
            drop_event(taken, part, graph, events, parts)
        if given != s.NIL:
            link_event(given, x, part, graph, events, parts)
    for k in range(registers[s.PENDING]):
        z = work.after[k]
        if z != s.NIL:
            if graph.ignores:
                prolong_new(work.head[k], graph, P)
            merge(z, work.head[k], work.tail[k], work.size[k], P, events)
            registers[s.LIVE_PARTIAL] += work.size[k]
    registers[s.PEAK] = max(registers[s.PEAK], registers[s.LIVE_PARTIAL])
    if taken not in (given, s.NIL):
        free_slot(taken, events, registers)


@inlined
def _unlink_all(z: int, bound_le: int, bound_seq: int, P: I64, events: Events, registers: I64) -> None:
    """Take the partial matches that began at or before the change out of an event's list, where they come first."""
    head, last, count = events.X[z, s.FIRST], s.NIL, 0
    p = head
    while p != s.NIL and not earlier(bound_le, bound_seq, P[s.START_LE, p], P[s.START_SEQ, p]):
        last, p = p, P[s.NEXT, p]
        count += 1
    if count > 0:
        free_list(head, last, count, P, registers)
        events.X[z, s.FIRST] = p
        events.X[z, s.SIZE] -= count
        if p == s.NIL:
            events.X[z, s.LAST] = s.NIL


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
    p, last, at = events.X[z, s.FIRST], s.NIL, 0
    while p != s.NIL:
        following = P[s.NEXT, p]
        found = _affected(p, at, bound_le, bound_seq, taken_row, m)
        if found >= 0:
            at = found
            drop(p, last, z, P, events, registers)
        else:
            at = -1 - found
            if earlier(bound_le, bound_seq, P[s.START_LE, p], P[s.START_SEQ, p]):
                return  # the rest began later
            last = p
        p = following
    events.X[z, s.LAST] = last
