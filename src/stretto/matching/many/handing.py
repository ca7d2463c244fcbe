"""Kernels that hand events to the parts which they concern, in one pass over the events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import jit

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]


class Shares(NamedTuple):
    """By shared class: the parts whose guards it satisfies, and its class there."""

    begin: I64  #: [shared class]: its first share; one entry more than classes
    part: I32
    own: I32


@jit
def count_shares(cls: I32, shares: Shares, counts: I64) -> None:
    """``counts[p]`` += the events that concern part p. O(events + shares of their classes); writes ``counts``."""
    for i in range(cls.size):
        for k in range(shares.begin[cls[i]], shares.begin[cls[i] + 1]):
            counts[shares.part[k]] += 1


@jit
def hand_out(cls: I32, shares: Shares, place: I64, rows: I64, own: I32) -> None:
    """Write each event's row and own class at ``place[p]`` for every part p that it concerns, and move ``place[p]`` on.

    Rows of a part ascend. O(events + shares of their classes); writes ``place``, ``rows`` and ``own``.
    """
    for i in range(cls.size):
        for k in range(shares.begin[cls[i]], shares.begin[cls[i] + 1]):
            part = shares.part[k]
            at = place[part]
            rows[at] = i
            own[at] = shares.own[k]
            place[part] = at + 1
