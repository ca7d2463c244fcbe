"""Live events and partial matches in order, for snapshots and clean-up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.structure import Events, Parts

I64 = NDArray[np.int64]


@jit
def list_events(events: Events, parts: Parts, slots: I64) -> int:
    """The slots of all partitions, each in order, those kept for provenance included; how many. O(events)."""
    count = 0
    for part in range(parts.first.size):
        slot = parts.oldest[part] if parts.oldest[part] != s.NIL else parts.first[part]
        while slot != s.NIL:
            slots[count] = slot
            count += 1
            slot = events.X[slot, s.BEHIND]
    return count


@jit
def list_partial(slots: I64, events: Events, P: I64, found: I64) -> int:
    """The partial matches of these events, in the order of their lists; how many. O(partial matches)."""
    count = 0
    for slot in slots:
        p = events.X[slot, s.FIRST]
        while p != s.NIL:
            found[count] = p
            count += 1
            p = P[s.NEXT, p]
    return count
