"""The event index: a treap over slots of each partition, ordered by (LE, sequence) (AFA paper, section 5.1: *rbtree*).

Of the slots one in eight is in the treap, told by a hash of its number; :func:`find` goes on along the list from there. So most
events that come in order touch no treap, and a search is through an eighth of the events. With ignorable arcs all slots are in it,
as ``reach`` is kept for each: the greatest end of an interval in the subtree (appendix D: *itree*); it may be too great after the
first events were taken away, never too small.

Priorities are a hash of the slot's number too, so the expected depth is O(log n).
"""

from __future__ import annotations

from stretto._jit import inlined, jit
from stretto.engines.afa.structure import BEHIND, HIGH, LE, LEFT, NIL, OWN, PARENT, PREV, REACH, SEQ, Events, Parts

__all__ = ["attach", "build", "detach", "detach_first", "find", "is_indexed", "stretch"]

SAMPLED = 7  #: where these bits of its hash are 0, a slot is in the treap


@inlined
def _priority(slot: int) -> int:
    """A hash of 32 bits; products stay below 2^63."""
    x = (slot * 1540483477) & 0xFFFFFFFF
    x ^= x >> 15
    x = (x * 1103515245) & 0xFFFFFFFF
    return x ^ (x >> 13)


@inlined
def is_indexed(slot: int, every: bool) -> bool:
    """Whether a slot of a partition that has a treap is in it; ``every``: all are."""
    return every or _priority(slot) & SAMPLED == 0


@inlined
def _pull(slot: int, events: Events) -> None:
    """The reach of a slot from those below it."""
    most = events.X[slot, OWN]
    for side in (events.X[slot, LEFT], events.X[slot, HIGH]):
        if side != NIL and events.X[side, REACH] > most:
            most = events.X[side, REACH]
    events.X[slot, REACH] = most


@jit
def _rotate(slot: int, part: int, every: bool, events: Events, parts: Parts) -> None:
    """Lift a slot above its parent."""
    up = events.X[slot, PARENT]
    above = events.X[up, PARENT]
    if events.X[up, LEFT] == slot:
        inner = events.X[slot, HIGH]
        events.X[up, LEFT] = inner
        events.X[slot, HIGH] = up
    else:
        inner = events.X[slot, LEFT]
        events.X[up, HIGH] = inner
        events.X[slot, LEFT] = up
    if inner != NIL:
        events.X[inner, PARENT] = up
    events.X[up, PARENT] = slot
    events.X[slot, PARENT] = above
    if above == NIL:
        parts.root[part] = slot
    elif events.X[above, LEFT] == up:
        events.X[above, LEFT] = slot
    else:
        events.X[above, HIGH] = slot
    if every:
        _pull(up, events)
        _pull(slot, events)


@jit
def attach(slot: int, part: int, every: bool, events: Events, parts: Parts) -> None:
    """Take in a slot that is already linked in its partition's list. Expected O(1) at the end, else O(log n)."""
    before = slot
    while before != parts.first[part]:
        before = events.X[before, PREV]
        if is_indexed(before, every):
            break
    events.X[slot, LEFT] = events.X[slot, HIGH] = events.X[slot, PARENT] = NIL
    events.X[slot, REACH] = events.X[slot, OWN]
    if parts.root[part] == NIL:
        parts.root[part] = slot
        return
    if before == slot or not is_indexed(before, every):  # the first of the treap
        at = parts.root[part]
    elif events.X[before, HIGH] == NIL:
        at = NIL
        events.X[before, HIGH] = slot
        events.X[slot, PARENT] = before
    else:
        at = events.X[before, HIGH]
    if at != NIL:
        while events.X[at, LEFT] != NIL:
            at = events.X[at, LEFT]
        events.X[at, LEFT] = slot
        events.X[slot, PARENT] = at
    up = events.X[slot, PARENT]
    while every and up != NIL and events.X[up, REACH] < events.X[slot, OWN]:
        events.X[up, REACH] = events.X[slot, OWN]
        up = events.X[up, PARENT]
    while events.X[slot, PARENT] != NIL and _priority(events.X[slot, PARENT]) < _priority(slot):
        _rotate(slot, part, every, events, parts)


@jit
def detach(slot: int, part: int, every: bool, events: Events, parts: Parts) -> None:
    """Take out a slot. Expected O(log n)."""
    while events.X[slot, LEFT] != NIL or events.X[slot, HIGH] != NIL:
        left, right = events.X[slot, LEFT], events.X[slot, HIGH]
        if right == NIL or (left != NIL and _priority(left) > _priority(right)):
            _rotate(left, part, every, events, parts)
        else:
            _rotate(right, part, every, events, parts)
    up = events.X[slot, PARENT]
    if up == NIL:
        parts.root[part] = NIL
    elif events.X[up, LEFT] == slot:
        events.X[up, LEFT] = NIL
    else:
        events.X[up, HIGH] = NIL
    while every and up != NIL:
        _pull(up, events)
        up = events.X[up, PARENT]


@inlined
def detach_first(slot: int, part: int, events: Events, parts: Parts) -> None:
    """Take out the first slot of a treap: O(1). What is above keeps its reach, which may now be too great."""
    up, right = events.X[slot, PARENT], events.X[slot, HIGH]
    if right != NIL:
        events.X[right, PARENT] = up
    if up == NIL:
        parts.root[part] = right
    else:
        events.X[up, LEFT] = right


@jit
def build(part: int, every: bool, events: Events, parts: Parts) -> None:
    """The treap of a partition, from its list: O(n). It is empty, so not there, where a few slots are all not to be in it."""
    parts.root[part] = NIL
    slot = parts.first[part]
    while slot != NIL:
        if is_indexed(slot, every):
            attach(slot, part, every, events, parts)
        slot = events.X[slot, BEHIND]


@jit
def find(part: int, le: int, seq: int, every: bool, events: Events, parts: Parts) -> int:
    """The last slot at or before (le, seq); NIL if there is none. Expected O(log n), O(1) at the end."""
    last = parts.last[part]
    if last == NIL or events.X[last, LE] < le or (events.X[last, LE] == le and events.X[last, SEQ] <= seq):
        return int(last)
    if parts.root[part] == NIL:
        build(part, every, events, parts)
    found, at = NIL, parts.root[part]
    while at != NIL:
        if events.X[at, LE] < le or (events.X[at, LE] == le and events.X[at, SEQ] <= seq):
            found, at = at, events.X[at, HIGH]
        else:
            at = events.X[at, LEFT]
    at = parts.first[part] if found == NIL else events.X[found, BEHIND]
    while at != NIL and (events.X[at, LE] < le or (events.X[at, LE] == le and events.X[at, SEQ] <= seq)):
        found, at = at, events.X[at, BEHIND]
    return found


@jit
def stretch(slot: int, events: Events) -> None:
    """The ends of intervals at a slot have changed: O(log n)."""
    while slot != NIL:
        before = events.X[slot, REACH]
        _pull(slot, events)
        if events.X[slot, REACH] == before:
            return
        slot = events.X[slot, PARENT]
