"""State that nothing needs any more (AFA paper, appendix C.1): all before the cover of the punctuation, and the cover's event.

``cover(t)`` is the latest event with a time before t: what comes can continue its partial matches, but none before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_STACK, inlined, jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.index import detach_first, is_indexed, stretch
from stretto.engines.afa.live import chain, earlier, greatest_end, sort
from stretto.engines.afa.structure import Events, Graph, Parts, Work

I64 = NDArray[np.int64]


@inlined
def free_list(head: int, tail: int, size: int, P: I64, registers: I64) -> None:
    """Give back a list of partial matches: O(1)."""
    if head != s.NIL:
        P[s.NEXT, tail] = registers[s.FREE]
        registers[s.FREE] = head
        registers[s.LIVE_PARTIAL] -= size


@inlined
def drop(p: int, last: int, slot: int, P: I64, events: Events, registers: I64) -> None:
    """Take a partial match, which stands behind ``last``, out of an event's list, and give it back; LAST is the caller's to set."""
    if last == s.NIL:
        events.X[slot, s.FIRST] = P[s.NEXT, p]
    else:
        P[s.NEXT, last] = P[s.NEXT, p]
    events.X[slot, s.SIZE] -= 1
    P[s.STATE, p] = -1
    P[s.NEXT, p] = registers[s.FREE]
    registers[s.FREE] = p
    registers[s.LIVE_PARTIAL] -= 1


@inlined
def free_slot(slot: int, events: Events, registers: I64) -> None:
    """Give back the slot of an event."""
    events.X[slot, s.BEHIND] = registers[s.FREE_EVENTS]
    registers[s.FREE_EVENTS] = slot
    registers[s.LIVE_EVENTS] -= 1


@jit
def part_with(
    slot: int, first: int, part: int, time: int, graph: Graph, events: Events, parts: Parts, registers: I64
) -> None:
    """Drop an event before ``first``, whose partial matches are gone; for provenance it stays until its lifetime is over."""
    if not graph.traces:
        free_slot(slot, events, registers)
        events.X[first, s.PREV] = s.NIL
        return
    events.X[slot, s.FIRST] = events.X[slot, s.LAST] = events.X[slot, s.SIZE] = s.NIL
    if parts.oldest[part] == s.NIL:
        parts.oldest[part] = slot
    while parts.oldest[part] != s.NIL and events.X[parts.oldest[part], s.RE] <= time:
        over = parts.oldest[part]
        following = events.X[over, s.BEHIND]
        free_slot(over, events, registers)
        events.X[following, s.PREV] = s.NIL
        parts.oldest[part] = following if following != first else s.NIL


@jit
def merge(slot: int, head: int, tail: int, size: int, P: I64, events: Events) -> None:
    """Put a list, which is in order, into the list of an event: O(1) where all of it comes first, else one pass."""
    if head == s.NIL:
        return
    rest = events.X[slot, s.FIRST]
    events.X[slot, s.SIZE] += size
    if rest == s.NIL:
        events.X[slot, s.FIRST], events.X[slot, s.LAST] = head, tail
        return
    if earlier(P[s.START_LE, tail], P[s.START_SEQ, tail], P[s.START_LE, rest], P[s.START_SEQ, rest]):
        P[s.NEXT, tail] = rest
        events.X[slot, s.FIRST] = head
        return
    last = s.NIL
    while head != s.NIL or rest != s.NIL:
        if rest == s.NIL or (
            head != s.NIL
            and not earlier(P[s.START_LE, rest], P[s.START_SEQ, rest], P[s.START_LE, head], P[s.START_SEQ, head])
        ):
            here, head = head, P[s.NEXT, head]
        else:
            here, rest = rest, P[s.NEXT, rest]
        if last == s.NIL:
            events.X[slot, s.FIRST] = here
        else:
            P[s.NEXT, last] = here
        last = here
    P[s.NEXT, last] = s.NIL
    events.X[slot, s.LAST] = last


@jit
def clean(part: int, graph: Graph, P: I64, events: Events, parts: Parts, work: Work, registers: I64) -> int:
    """Drop what is before the cover of a partition. Anchors that go on at the cover move there. O(what is dropped)."""
    first, time = parts.first[part], registers[s.CLEAN]
    cover, moved = first, 0
    if graph.ignores:
        while events.X[cover, s.BEHIND] != s.NIL and events.X[events.X[cover, s.BEHIND], s.LE] < time:
            cover = events.X[cover, s.BEHIND]
        moved = _gather_moved(first, cover, graph, P, events, work)
        if moved < 0:
            registers[s.NEED] = work.L.size + 1
            return GROW_STACK
    cover = first
    while events.X[cover, s.BEHIND] != s.NIL and events.X[events.X[cover, s.BEHIND], s.LE] < time:
        slot, cover = cover, events.X[cover, s.BEHIND]
        free_list(events.X[slot, s.FIRST], events.X[slot, s.LAST], events.X[slot, s.SIZE], P, registers)
        if parts.root[part] != s.NIL and is_indexed(slot, graph.ignores):
            detach_first(slot, part, events, parts)
        if graph.traces:
            part_with(slot, cover, part, time, graph, events, parts, registers)
        else:
            free_slot(slot, events, registers)
    if cover == first:
        return DONE
    if not graph.traces:
        events.X[cover, s.PREV] = s.NIL
    parts.first[part] = cover
    if moved:
        _move(cover, moved, part, graph, P, events, parts, work)
    if cover == parts.last[part]:
        parts.root[part] = s.NIL
    return DONE


@jit
def _gather_moved(first: int, cover: int, graph: Graph, P: I64, events: Events, work: Work) -> int:
    """L: the anchors homed before the cover that go on there, taken out of their lists; how many, or −1 for want of room."""
    extra, le, seq = s.REG + graph.real.size, events.X[cover, s.LE], events.X[cover, s.SEQ]
    count = 0
    slot = first
    while slot != cover:  # first without a change, as this may stop
        p = events.X[slot, s.FIRST]
        while p != s.NIL:
            count += not earlier(P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p], le, seq)
            p = P[s.NEXT, p]
        slot = events.X[slot, s.BEHIND]
    if count > work.L.size:
        return -1
    count = 0
    slot = first
    while slot != cover:
        p, last = events.X[slot, s.FIRST], s.NIL
        while p != s.NIL:
            following = P[s.NEXT, p]
            if not earlier(P[extra + s.UNTIL_LE, p], P[extra + s.UNTIL_SEQ, p], le, seq):
                work.L[count] = p
                count += 1
                events.X[slot, s.SIZE] -= 1
                if last == s.NIL:
                    events.X[slot, s.FIRST] = following
                else:
                    P[s.NEXT, last] = following
            else:
                last = p
            p = following
        events.X[slot, s.LAST] = last
        slot = events.X[slot, s.BEHIND]
    return count


@jit
def _move(cover: int, count: int, part: int, graph: Graph, P: I64, events: Events, parts: Parts, work: Work) -> None:
    """L[: count] becomes part of the cover's list."""
    extra, L = s.REG + graph.real.size, work.L
    sort(count, L, P)
    for k in range(count):
        P[extra + s.HOME, L[k]] = cover
    merge(cover, chain(count, L, s.NEXT, P), L[count - 1], count, P, events)
    if cover == parts.last[part]:
        p = parts.open[part]
        while p != s.NIL:
            following = P[extra + s.OPEN, p]
            P[extra + s.OPEN, p] = -1
            p = following
        parts.open[part] = s.NIL
    elif parts.root[part] != s.NIL:
        events.X[cover, s.OWN] = greatest_end(cover, graph, P, events)
        stretch(cover, events)


@jit
def sweep(graph: Graph, P: I64, events: Events, parts: Parts, work: Work, registers: I64) -> int:
    """Clean all partitions, from CURSOR on; forget partial matches whose lifetime is over, and covers without any. O(state)."""
    while registers[s.CURSOR] < parts.first.size:
        part = registers[s.CURSOR]
        first = parts.first[part]
        if first != s.NIL:
            status = clean(part, graph, P, events, parts, work, registers)
            if status != DONE:
                return int(status)
            first = parts.first[part]
            if events.X[first, s.LE] < registers[s.CLEAN]:
                _forget(first, part, graph, P, events, parts, registers)
            if parts.oldest[part] != s.NIL:
                _forget_kept(part, P, events, parts, registers)
        registers[s.CURSOR] += 1
    return DONE


@jit
def _forget_kept(part: int, P: I64, events: Events, parts: Parts, registers: I64) -> None:
    """Events that are kept for provenance only, and come before the first event of every partial match. O(events)."""
    first = parts.first[part]
    le, seq = events.X[first, s.LE], events.X[first, s.SEQ]
    slot = first
    while slot != s.NIL:
        p = events.X[slot, s.FIRST]  # the first of the list begins first
        if p != s.NIL and earlier(P[s.START_LE, p], P[s.START_SEQ, p], le, seq):
            le, seq = P[s.START_LE, p], P[s.START_SEQ, p]
        slot = events.X[slot, s.BEHIND]
    slot = parts.oldest[part]
    while slot != first and earlier(events.X[slot, s.LE], events.X[slot, s.SEQ], le, seq):
        following = events.X[slot, s.BEHIND]
        free_slot(slot, events, registers)
        events.X[following, s.PREV] = s.NIL
        slot = following
    parts.oldest[part] = slot if slot != first else s.NIL


@jit
def _forget(cover: int, part: int, graph: Graph, P: I64, events: Events, parts: Parts, registers: I64) -> None:
    """Partial matches of the cover whose least RE is not after the punctuation; the cover itself if it has no other."""
    extra = s.REG + graph.real.size
    p, last = events.X[cover, s.FIRST], s.NIL
    while p != s.NIL:
        following = P[s.NEXT, p]
        anchored = graph.ignores and (P[extra + s.OPEN, p] >= 0 or P[extra + s.UNTIL_LE, p] > events.X[cover, s.LE])
        if P[s.LEAST, p] <= registers[s.CLEAN] and not anchored:
            drop(p, last, cover, P, events, registers)
        else:
            last = p
        p = following
    events.X[cover, s.LAST] = last
    if last == s.NIL and cover == parts.last[part] and parts.open[part] == s.NIL:
        slot = parts.oldest[part]
        while slot not in (s.NIL, cover):
            following = events.X[slot, s.BEHIND]
            free_slot(slot, events, registers)
            slot = following
        free_slot(cover, events, registers)
        parts.oldest[part] = s.NIL
        parts.first[part] = parts.last[part] = parts.root[part] = s.NIL
