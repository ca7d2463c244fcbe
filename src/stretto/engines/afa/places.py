"""Events at their places: slots, and the list of a partition in the order of (LE, sequence)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.afa.index import attach, detach, find, is_indexed
from stretto.engines.afa.live import earlier
from stretto.engines.afa.structure import (
    BEHIND,
    CLEANED,
    FIRST,
    FOREVER,
    FREE_EVENTS,
    LAST,
    LE,
    LIVE_EVENTS,
    NIL,
    OF,
    OWN,
    PREV,
    PUNCTUATION,
    RE,
    ROW,
    SEEN,
    SEQ,
    SIZE,
    Batch,
    Events,
    Graph,
    Parts,
)

__all__ = ["drop_event", "find_taken", "is_last", "is_late", "link_event", "new_slot"]

I64 = NDArray[np.int64]


@inlined
def new_slot(i: int, batch: Batch, events: Events, registers: I64) -> int:
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


@jit
def drop_event(slot: int, part: int, graph: Graph, events: Events, parts: Parts) -> None:
    """Take an event out of its partition."""
    before, behind = events.X[slot, PREV], events.X[slot, BEHIND]
    if parts.root[part] != NIL and is_indexed(slot, graph.ignores):
        detach(slot, part, graph.ignores, events, parts)
    if before == NIL:
        parts.first[part] = behind
    else:
        events.X[before, BEHIND] = behind
    if behind == NIL:
        parts.last[part] = before
    else:
        events.X[behind, PREV] = before


@inlined
def link_event(slot: int, x: int, part: int, graph: Graph, events: Events, parts: Parts) -> None:
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
    if parts.root[part] != NIL and is_indexed(slot, graph.ignores):
        attach(slot, part, graph.ignores, events, parts)


@jit
def find_taken(i: int, batch: Batch, graph: Graph, events: Events, parts: Parts) -> int:
    """The event that a retraction names: by its place, or by its time and payload (the latest one); NIL: there is none."""
    part, le = batch.part[i], batch.le[i]
    if graph.keyed:
        at = find(part, le, batch.seq[i], graph.ignores, events, parts)
        return at if at != NIL and events.X[at, LE] == le and events.X[at, SEQ] == batch.seq[i] else NIL
    at = find(part, le, FOREVER, graph.ignores, events, parts)
    while at != NIL and events.X[at, LE] == le:
        same = True
        for word in range(graph.bits):
            same &= events.E[at, word] == batch.W[i, word]
        if same:
            return at
        at = events.X[at, PREV]
    return NIL


@inlined
def is_last(i: int, batch: Batch, events: Events, parts: Parts) -> bool:
    """Whether operation ``i`` is behind all events of its partition."""
    last = parts.last[batch.part[i]]
    return last == NIL or earlier(events.X[last, LE], events.X[last, SEQ], batch.le[i], batch.seq[i])


@inlined
def is_late(i: int, batch: Batch, graph: Graph, events: Events, parts: Parts, registers: I64) -> bool:
    """Whether an operation is below the punctuation; in an ordered stream, before the last event."""
    le = batch.le[i]
    if le < registers[PUNCTUATION]:
        return True
    return graph.ordered and (le < registers[SEEN] or not is_last(i, batch, events, parts))
