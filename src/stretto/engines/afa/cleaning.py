"""State that nothing needs any more (AFA paper, appendix C.1): all before the cover of the punctuation, and the cover's event.

``cover(t)`` is the latest event with a time before t: what comes can continue its partial matches, but none before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_STACK, inlined, jit
from stretto.engines.afa.index import detach_first, is_indexed, stretch
from stretto.engines.afa.live import chain, earlier, greatest_end, sort
from stretto.engines.afa.structure import (
    BEHIND,
    CLEAN,
    CURSOR,
    FIRST,
    FREE,
    FREE_EVENTS,
    HOME,
    LAST,
    LE,
    LEAST,
    LIVE_EVENTS,
    LIVE_PARTIAL,
    NEED,
    NEXT,
    NIL,
    OPEN,
    OWN,
    PREV,
    RE,
    REG,
    SEQ,
    SIZE,
    START_LE,
    START_SEQ,
    STATE,
    UNTIL_LE,
    UNTIL_SEQ,
    Events,
    Graph,
    Parts,
    Work,
)

__all__ = ["clean", "drop", "free_list", "free_slot", "merge", "part_with", "sweep"]

I64 = NDArray[np.int64]


@inlined
def free_list(head: int, tail: int, size: int, P: I64, registers: I64) -> None:
    """Give back a list of partial matches: O(1)."""
    if head != NIL:
        P[NEXT, tail] = registers[FREE]
        registers[FREE] = head
        registers[LIVE_PARTIAL] -= size


@inlined
def drop(p: int, last: int, slot: int, P: I64, events: Events, registers: I64) -> None:
    """Take a partial match, which stands behind ``last``, out of an event's list, and give it back; LAST is the caller's to set."""
    if last == NIL:
        events.X[slot, FIRST] = P[NEXT, p]
    else:
        P[NEXT, last] = P[NEXT, p]
    events.X[slot, SIZE] -= 1
    P[STATE, p] = -1
    P[NEXT, p] = registers[FREE]
    registers[FREE] = p
    registers[LIVE_PARTIAL] -= 1


@inlined
def free_slot(slot: int, events: Events, registers: I64) -> None:
    """Give back the slot of an event."""
    events.X[slot, BEHIND] = registers[FREE_EVENTS]
    registers[FREE_EVENTS] = slot
    registers[LIVE_EVENTS] -= 1


@jit
def part_with(
    slot: int, first: int, part: int, time: int, graph: Graph, events: Events, parts: Parts, registers: I64
) -> None:
    """Drop an event before ``first``, whose partial matches are gone; for provenance it stays until its lifetime is over."""
    if not graph.traces:
        free_slot(slot, events, registers)
        events.X[first, PREV] = NIL
        return
    events.X[slot, FIRST] = events.X[slot, LAST] = events.X[slot, SIZE] = NIL
    if parts.oldest[part] == NIL:
        parts.oldest[part] = slot
    while parts.oldest[part] != NIL and events.X[parts.oldest[part], RE] <= time:
        over = parts.oldest[part]
        following = events.X[over, BEHIND]
        free_slot(over, events, registers)
        events.X[following, PREV] = NIL
        parts.oldest[part] = following if following != first else NIL


@jit
def merge(slot: int, head: int, tail: int, size: int, P: I64, events: Events) -> None:
    """Put a list, which is in order, into the list of an event: O(1) where all of it comes first, else one pass."""
    if head == NIL:
        return
    rest = events.X[slot, FIRST]
    events.X[slot, SIZE] += size
    if rest == NIL:
        events.X[slot, FIRST], events.X[slot, LAST] = head, tail
        return
    if earlier(P[START_LE, tail], P[START_SEQ, tail], P[START_LE, rest], P[START_SEQ, rest]):
        P[NEXT, tail] = rest
        events.X[slot, FIRST] = head
        return
    last = NIL
    while head != NIL or rest != NIL:
        if rest == NIL or (
            head != NIL and not earlier(P[START_LE, rest], P[START_SEQ, rest], P[START_LE, head], P[START_SEQ, head])
        ):
            here, head = head, P[NEXT, head]
        else:
            here, rest = rest, P[NEXT, rest]
        if last == NIL:
            events.X[slot, FIRST] = here
        else:
            P[NEXT, last] = here
        last = here
    P[NEXT, last] = NIL
    events.X[slot, LAST] = last


@jit
def clean(part: int, graph: Graph, P: I64, events: Events, parts: Parts, work: Work, registers: I64) -> int:
    """Drop what is before the cover of a partition. Anchors that go on at the cover move there. O(what is dropped)."""
    first, time = parts.first[part], registers[CLEAN]
    cover, moved = first, 0
    if graph.ignores:
        while events.X[cover, BEHIND] != NIL and events.X[events.X[cover, BEHIND], LE] < time:
            cover = events.X[cover, BEHIND]
        moved = _gather_moved(first, cover, graph, P, events, work)
        if moved < 0:
            registers[NEED] = work.L.size + 1
            return GROW_STACK
    cover = first
    while events.X[cover, BEHIND] != NIL and events.X[events.X[cover, BEHIND], LE] < time:
        slot, cover = cover, events.X[cover, BEHIND]
        free_list(events.X[slot, FIRST], events.X[slot, LAST], events.X[slot, SIZE], P, registers)
        if parts.root[part] != NIL and is_indexed(slot, graph.ignores):
            detach_first(slot, part, events, parts)
        if graph.traces:
            part_with(slot, cover, part, time, graph, events, parts, registers)
        else:
            free_slot(slot, events, registers)
    if cover == first:
        return DONE
    if not graph.traces:
        events.X[cover, PREV] = NIL
    parts.first[part] = cover
    if moved:
        _move(cover, moved, part, graph, P, events, parts, work)
    if cover == parts.last[part]:
        parts.root[part] = NIL
    return DONE


@jit
def _gather_moved(first: int, cover: int, graph: Graph, P: I64, events: Events, work: Work) -> int:
    """L: the anchors homed before the cover that go on there, taken out of their lists; how many, or −1 for want of room."""
    extra, le, seq = REG + graph.real.size, events.X[cover, LE], events.X[cover, SEQ]
    count = 0
    slot = first
    while slot != cover:  # first without a change, as this may stop
        p = events.X[slot, FIRST]
        while p != NIL:
            count += not earlier(P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p], le, seq)
            p = P[NEXT, p]
        slot = events.X[slot, BEHIND]
    if count > work.L.size:
        return -1
    count = 0
    slot = first
    while slot != cover:
        p, last = events.X[slot, FIRST], NIL
        while p != NIL:
            following = P[NEXT, p]
            if not earlier(P[extra + UNTIL_LE, p], P[extra + UNTIL_SEQ, p], le, seq):
                work.L[count] = p
                count += 1
                events.X[slot, SIZE] -= 1
                if last == NIL:
                    events.X[slot, FIRST] = following
                else:
                    P[NEXT, last] = following
            else:
                last = p
            p = following
        events.X[slot, LAST] = last
        slot = events.X[slot, BEHIND]
    return count


@jit
def _move(cover: int, count: int, part: int, graph: Graph, P: I64, events: Events, parts: Parts, work: Work) -> None:
    """L[: count] becomes part of the cover's list."""
    extra, L = REG + graph.real.size, work.L
    sort(count, L, P)
    for k in range(count):
        P[extra + HOME, L[k]] = cover
    merge(cover, chain(count, L, NEXT, P), L[count - 1], count, P, events)
    if cover == parts.last[part]:
        p = parts.open[part]
        while p != NIL:
            following = P[extra + OPEN, p]
            P[extra + OPEN, p] = -1
            p = following
        parts.open[part] = NIL
    elif parts.root[part] != NIL:
        events.X[cover, OWN] = greatest_end(cover, graph, P, events)
        stretch(cover, events)


@jit
def sweep(graph: Graph, P: I64, events: Events, parts: Parts, work: Work, registers: I64) -> int:
    """Clean all partitions, from CURSOR on; forget partial matches whose lifetime is over, and covers without any. O(state)."""
    while registers[CURSOR] < parts.first.size:
        part = registers[CURSOR]
        first = parts.first[part]
        if first != NIL:
            status = clean(part, graph, P, events, parts, work, registers)
            if status != DONE:
                return int(status)
            first = parts.first[part]
            if events.X[first, LE] < registers[CLEAN]:
                _forget(first, part, graph, P, events, parts, registers)
        registers[CURSOR] += 1
    return DONE


@jit
def _forget(cover: int, part: int, graph: Graph, P: I64, events: Events, parts: Parts, registers: I64) -> None:
    """Partial matches of the cover whose least RE is not after the punctuation; the cover itself if it has no other."""
    extra = REG + graph.real.size
    p, last = events.X[cover, FIRST], NIL
    while p != NIL:
        following = P[NEXT, p]
        anchored = graph.ignores and (P[extra + OPEN, p] >= 0 or P[extra + UNTIL_LE, p] > events.X[cover, LE])
        if P[LEAST, p] <= registers[CLEAN] and not anchored:
            drop(p, last, cover, P, events, registers)
        else:
            last = p
        p = following
    events.X[cover, LAST] = last
    if last == NIL and cover == parts.last[part] and parts.open[part] == NIL:
        slot = parts.oldest[part]
        while slot not in (NIL, cover):
            following = events.X[slot, BEHIND]
            free_slot(slot, events, registers)
            slot = following
        free_slot(cover, events, registers)
        parts.oldest[part] = NIL
        parts.first[part] = parts.last[part] = parts.root[part] = NIL
