"""The event index: a treap over the slots of each partition, ordered by (LE, sequence) (AFA paper, section 5.1: *rbtree*).

A slot's place in it follows from its neighbours in the list, so that only :func:`find` searches. Priorities are a hash of the
slot's number, so the expected depth is O(log n). ``reach`` is the greatest end of an interval in the subtree (appendix D: *itree*);
it may be too great after the first events were taken away, never too small.
"""

from __future__ import annotations

from stretto._jit import inlined, jit
from stretto.engines.afa.structure import NIL, Events, Parts

__all__ = ["attach", "build", "detach", "detach_first", "find", "stretch"]


@inlined
def _priority(slot: int) -> int:
    """A hash of 32 bits; products stay below 2^63."""
    x = (slot * 1540483477) & 0xFFFFFFFF
    x ^= x >> 15
    x = (x * 1103515245) & 0xFFFFFFFF
    return x ^ (x >> 13)


@inlined
def _pull(slot: int, events: Events) -> None:
    """The reach of a slot from those below it."""
    most = events.own[slot]
    for side in (events.left[slot], events.right[slot]):
        if side != NIL and events.reach[side] > most:
            most = events.reach[side]
    events.reach[slot] = most


@jit
def _rotate(slot: int, part: int, events: Events, parts: Parts) -> None:
    """Lift a slot above its parent."""
    up = events.parent[slot]
    above = events.parent[up]
    if events.left[up] == slot:
        inner = events.right[slot]
        events.left[up] = inner
        events.right[slot] = up
    else:
        inner = events.left[slot]
        events.right[up] = inner
        events.left[slot] = up
    if inner != NIL:
        events.parent[inner] = up
    events.parent[up] = slot
    events.parent[slot] = above
    if above == NIL:
        parts.root[part] = slot
    elif events.left[above] == up:
        events.left[above] = slot
    else:
        events.right[above] = slot
    _pull(up, events)
    _pull(slot, events)


@jit
def attach(slot: int, part: int, events: Events, parts: Parts) -> None:
    """Take in a slot that is already linked in its partition's list. Expected O(1) at the end, else O(log n)."""
    before, behind = events.prev[slot], events.next[slot]
    events.left[slot] = events.right[slot] = events.parent[slot] = NIL
    events.reach[slot] = events.own[slot]
    if parts.root[part] == NIL:
        parts.root[part] = slot
        return
    if before != NIL and events.right[before] == NIL:
        events.right[before] = slot
        events.parent[slot] = before
    else:
        events.left[behind] = slot
        events.parent[slot] = behind
    up = events.parent[slot]
    while up != NIL and events.reach[up] < events.own[slot]:
        events.reach[up] = events.own[slot]
        up = events.parent[up]
    while events.parent[slot] != NIL and _priority(events.parent[slot]) < _priority(slot):
        _rotate(slot, part, events, parts)


@jit
def detach(slot: int, part: int, events: Events, parts: Parts) -> None:
    """Take out a slot. Expected O(log n)."""
    while events.left[slot] != NIL or events.right[slot] != NIL:
        left, right = events.left[slot], events.right[slot]
        if right == NIL or (left != NIL and _priority(left) > _priority(right)):
            _rotate(left, part, events, parts)
        else:
            _rotate(right, part, events, parts)
    up = events.parent[slot]
    if up == NIL:
        parts.root[part] = NIL
    elif events.left[up] == slot:
        events.left[up] = NIL
    else:
        events.right[up] = NIL
    while up != NIL:
        _pull(up, events)
        up = events.parent[up]


@jit
def detach_first(slot: int, part: int, events: Events, parts: Parts) -> None:
    """Take out the first slot of a partition: O(1). What is above keeps its reach, which may now be too great."""
    up, right = events.parent[slot], events.right[slot]
    if right != NIL:
        events.parent[right] = up
    if up == NIL:
        parts.root[part] = right
    else:
        events.left[up] = right


@jit
def build(part: int, events: Events, parts: Parts) -> None:
    """The treap of a partition, from its list: O(n)."""
    parts.root[part] = NIL
    slot = parts.first[part]
    while slot != NIL:
        attach(slot, part, events, parts)
        slot = events.next[slot]


@jit
def find(part: int, le: int, seq: int, events: Events, parts: Parts) -> int:
    """The last slot at or before (le, seq); NIL if there is none. O(log n), O(1) at the end."""
    last = parts.last[part]
    if last == NIL or events.le[last] < le or (events.le[last] == le and events.seq[last] <= seq):
        return last
    if parts.root[part] == NIL:
        build(part, events, parts)
    found, at = NIL, parts.root[part]
    while at != NIL:
        if events.le[at] < le or (events.le[at] == le and events.seq[at] <= seq):
            found, at = at, events.right[at]
        else:
            at = events.left[at]
    return found


@jit
def stretch(slot: int, events: Events) -> None:
    """The ends of intervals at a slot have changed: O(log n)."""
    while slot != NIL:
        before = events.reach[slot]
        _pull(slot, events)
        if events.reach[slot] == before:
            return
        slot = events.parent[slot]
