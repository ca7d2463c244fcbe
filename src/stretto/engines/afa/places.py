"""Events at their places: slots, and the list of a partition in the order of (LE, sequence)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.index import attach, detach, find, is_indexed
from stretto.engines.afa.live import earlier
from stretto.engines.afa.structure import Batch, Events, Graph, Parts

I64 = NDArray[np.int64]


@inlined
def new_slot(i: int, batch: Batch, events: Events, registers: I64) -> int:
    """A slot with the event of operation ``i``; NIL if there is none."""
    slot = registers[s.FREE_EVENTS]
    if slot != s.NIL:
        registers[s.FREE_EVENTS] = events.X[slot, s.BEHIND]
        registers[s.LIVE_EVENTS] += 1
        events.X[slot, s.LE], events.X[slot, s.SEQ], events.X[slot, s.RE] = batch.le[i], batch.seq[i], batch.re[i]
        events.X[slot, s.ROW], events.X[slot, s.OF] = batch.row[i], batch.part[i]
        events.X[slot, s.OWN] = batch.le[i]
        events.X[slot, s.CLEANED] = 0
        events.X[slot, s.PREV] = events.X[slot, s.BEHIND] = events.X[slot, s.FIRST] = events.X[slot, s.LAST] = events.X[
            slot, s.SIZE
        ] = s.NIL
        for word in range(events.E.shape[1]):
            events.E[slot, word] = batch.W[i, word]
    return int(slot)


@jit
def drop_event(slot: int, part: int, graph: Graph, events: Events, parts: Parts) -> None:
    """Take an event out of its partition."""
    before, behind = events.X[slot, s.PREV], events.X[slot, s.BEHIND]
    if parts.root[part] != s.NIL and is_indexed(slot, graph.ignores):
        detach(slot, part, graph.ignores, events, parts)
    if before == s.NIL:
        parts.first[part] = behind
    else:
        events.X[before, s.BEHIND] = behind
    if behind == s.NIL:
        parts.last[part] = before
    else:
        events.X[behind, s.PREV] = before


@inlined
def link_event(slot: int, x: int, part: int, graph: Graph, events: Events, parts: Parts) -> None:
    """Put an event behind ``x``."""
    behind = parts.first[part] if x == s.NIL else events.X[x, s.BEHIND]
    events.X[slot, s.PREV], events.X[slot, s.BEHIND] = x, behind
    if x == s.NIL:
        parts.first[part] = slot
    else:
        events.X[x, s.BEHIND] = slot
    if behind == s.NIL:
        parts.last[part] = slot
    else:
        events.X[behind, s.PREV] = slot
    if parts.root[part] != s.NIL and is_indexed(slot, graph.ignores):
        attach(slot, part, graph.ignores, events, parts)


@jit
def find_taken(i: int, batch: Batch, graph: Graph, events: Events, parts: Parts) -> int:
    """The event that a retraction names: by its place, or by its time and payload (the latest one); NIL: there is none."""
    part, le = batch.part[i], batch.le[i]
    if graph.keyed:
        at = find(part, le, batch.seq[i], graph.ignores, events, parts)
        return at if at != s.NIL and events.X[at, s.LE] == le and events.X[at, s.SEQ] == batch.seq[i] else s.NIL
    at = find(part, le, s.FOREVER, graph.ignores, events, parts)
    while at != s.NIL and events.X[at, s.LE] == le:
        same = True
        for word in range(graph.bits):
            same &= events.E[at, word] == batch.W[i, word]
        if same:
            return at
        at = events.X[at, s.PREV]
    return s.NIL


@inlined
def is_last(i: int, batch: Batch, events: Events, parts: Parts) -> bool:
    """Whether operation ``i`` is behind all events of its partition."""
    last = parts.last[batch.part[i]]
    return last == s.NIL or earlier(events.X[last, s.LE], events.X[last, s.SEQ], batch.le[i], batch.seq[i])


@inlined
def is_late(i: int, batch: Batch, graph: Graph, events: Events, parts: Parts, registers: I64) -> bool:
    """Whether an operation is below the punctuation; in an ordered stream, before the last event."""
    le = batch.le[i]
    if le < registers[s.PUNCTUATION]:
        return True
    return graph.ordered and (le < registers[s.SEEN] or not is_last(i, batch, events, parts))
