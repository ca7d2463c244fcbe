"""The event index: a treap over slots of each partition, ordered by (LE, sequence) (AFA paper, section 5.1: *rbtree*).

Of the slots one in eight is in the treap, told by a hash of its number; :func:`find` goes on along the list from there. So most
events that come in order touch no treap, and a search is through an eighth of the events. With ignorable arcs all slots are in it,
as ``reach`` is kept for each: the greatest end of an interval in the subtree (appendix D: *itree*); it may be too great after the
first events were taken away, never too small.

Priorities are a hash of the slot's number too, so the expected depth is O(log n).
"""

from __future__ import annotations

from stretto._jit import inlined, jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.structure import Events, Parts

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
    most = events.X[slot, s.OWN]
    for side in (events.X[slot, s.LEFT], events.X[slot, s.HIGH]):
        if side != s.NIL and events.X[side, s.REACH] > most:
            most = events.X[side, s.REACH]
    events.X[slot, s.REACH] = most


@jit
def _rotate(slot: int, part: int, every: bool, events: Events, parts: Parts) -> None:
    """Lift a slot above its parent."""
    up = events.X[slot, s.PARENT]
    above = events.X[up, s.PARENT]
    if events.X[up, s.LEFT] == slot:
        inner = events.X[slot, s.HIGH]
        events.X[up, s.LEFT] = inner
        events.X[slot, s.HIGH] = up
    else:
        inner = events.X[slot, s.LEFT]
        events.X[up, s.HIGH] = inner
        events.X[slot, s.LEFT] = up
    if inner != s.NIL:
        events.X[inner, s.PARENT] = up
    events.X[up, s.PARENT] = slot
    events.X[slot, s.PARENT] = above
    if above == s.NIL:
        parts.root[part] = slot
    elif events.X[above, s.LEFT] == up:
        events.X[above, s.LEFT] = slot
    else:
        events.X[above, s.HIGH] = slot
    if every:
        _pull(up, events)
        _pull(slot, events)


@jit
def attach(slot: int, part: int, every: bool, events: Events, parts: Parts) -> None:
    """Take in a slot that is already linked in its partition's list. Expected O(1) at the end, else O(log n)."""
    before = slot
    while before != parts.first[part]:
        before = events.X[before, s.PREV]
        if is_indexed(before, every):
            break
    events.X[slot, s.LEFT] = events.X[slot, s.HIGH] = events.X[slot, s.PARENT] = s.NIL
    events.X[slot, s.REACH] = events.X[slot, s.OWN]
    if parts.root[part] == s.NIL:
        parts.root[part] = slot
        return
    if before == slot or not is_indexed(before, every):  # the first of the treap
        at = parts.root[part]
    elif events.X[before, s.HIGH] == s.NIL:
        at = s.NIL
        events.X[before, s.HIGH] = slot
        events.X[slot, s.PARENT] = before
    else:
        at = events.X[before, s.HIGH]
    if at != s.NIL:
        while events.X[at, s.LEFT] != s.NIL:
            at = events.X[at, s.LEFT]
        events.X[at, s.LEFT] = slot
        events.X[slot, s.PARENT] = at
    up = events.X[slot, s.PARENT]
    while every and up != s.NIL and events.X[up, s.REACH] < events.X[slot, s.OWN]:
        events.X[up, s.REACH] = events.X[slot, s.OWN]
        up = events.X[up, s.PARENT]
    while events.X[slot, s.PARENT] != s.NIL and _priority(events.X[slot, s.PARENT]) < _priority(slot):
        _rotate(slot, part, every, events, parts)


@jit
def detach(slot: int, part: int, every: bool, events: Events, parts: Parts) -> None:
    """Take out a slot. Expected O(log n)."""
    while events.X[slot, s.LEFT] != s.NIL or events.X[slot, s.HIGH] != s.NIL:
        left, right = events.X[slot, s.LEFT], events.X[slot, s.HIGH]
        if right == s.NIL or (left != s.NIL and _priority(left) > _priority(right)):
            _rotate(left, part, every, events, parts)
        else:
            _rotate(right, part, every, events, parts)
    up = events.X[slot, s.PARENT]
    if up == s.NIL:
        parts.root[part] = s.NIL
    elif events.X[up, s.LEFT] == slot:
        events.X[up, s.LEFT] = s.NIL
    else:
        events.X[up, s.HIGH] = s.NIL
    while every and up != s.NIL:
        _pull(up, events)
        up = events.X[up, s.PARENT]


@inlined
def detach_first(slot: int, part: int, events: Events, parts: Parts) -> None:
    """Take out the first slot of a treap: O(1). What is above keeps its reach, which may now be too great."""
    up, right = events.X[slot, s.PARENT], events.X[slot, s.HIGH]
    if right != s.NIL:
        events.X[right, s.PARENT] = up
    if up == s.NIL:
        parts.root[part] = right
    else:
        events.X[up, s.LEFT] = right


@jit
def build(part: int, every: bool, events: Events, parts: Parts) -> None:
    """The treap of a partition, from its list: O(n). It is empty, so not there, where a few slots are all not to be in it."""
    parts.root[part] = s.NIL
    slot = parts.first[part]
    while slot != s.NIL:
        if is_indexed(slot, every):
            attach(slot, part, every, events, parts)
        slot = events.X[slot, s.BEHIND]


@jit
def find(part: int, le: int, seq: int, every: bool, events: Events, parts: Parts) -> int:
    """The last slot at or before (le, seq); NIL if there is none. Expected O(log n), O(1) at the end."""
    last = parts.last[part]
    if last == s.NIL or events.X[last, s.LE] < le or (events.X[last, s.LE] == le and events.X[last, s.SEQ] <= seq):
        return int(last)
    if parts.root[part] == s.NIL:
        build(part, every, events, parts)
    found, at = s.NIL, parts.root[part]
    while at != s.NIL:
        if events.X[at, s.LE] < le or (events.X[at, s.LE] == le and events.X[at, s.SEQ] <= seq):
            found, at = at, events.X[at, s.HIGH]
        else:
            at = events.X[at, s.LEFT]
    at = parts.first[part] if found == s.NIL else events.X[found, s.BEHIND]
    while at != s.NIL and (events.X[at, s.LE] < le or (events.X[at, s.LE] == le and events.X[at, s.SEQ] <= seq)):
        found, at = at, events.X[at, s.BEHIND]
    return found


@jit
def stretch(slot: int, events: Events) -> None:
    """The ends of intervals at a slot have changed: O(log n)."""
    while slot != s.NIL:
        before = events.X[slot, s.REACH]
        _pull(slot, events)
        if events.X[slot, s.REACH] == before:
            return
        slot = events.X[slot, s.PARENT]
