"""Counting matches on the structure that holds them, without listing one.

Both engines keep the matches of an event as paths through nodes with lower numbers: a *union* leads to two nodes, any other node
to one, and the last to none. Every match is one path (the tECS is duplicate-free; merged runs of the NFAb differ in their
events), so that the number of paths is the number of rows that a listing would have, with projection, strategies and valuations.
What LIMIT or a negation leaves out is decided match by match, and is listed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit

I64 = NDArray[np.int64]

NIL = 0

#: Stands for a count that 64 bits do not hold.
BEYOND = -1

MOST = np.iinfo(np.int64).max


class Graph(NamedTuple):
    """Nodes by slot: number n lies in slot ``n & mask``."""

    left: I64  #: where a node leads; NIL: the path ends
    right: I64  #: of a union: the other way; else NIL
    start: I64  #: the latest start of its matches, as a key
    position: I64  #: of a last node: where its match begins


class Counts(NamedTuple):
    """What is known of nodes, by slot; the slot after the last is the sum over all roots."""

    node: I64  #: the number of the node that it was counted for
    matches: I64  #: its own, as far as they lie in the window, or BEYOND
    bits: NDArray[np.float64]  #: the binary logarithm of the count, where it is BEYOND
    least: I64  #: the earliest of their starts, as a key
    first: I64  #: … and its position


#: What a number of matches says.
EXACTLY, AT_MOST, AT_LEAST = "", "at most ", "at least "


class Unlisted(NamedTuple):
    """Matches of the event at hand that were not listed yet."""

    matches: int  #: how many, or BEYOND
    bits: float  #: the binary logarithm of that
    told: str = EXACTLY  #: AT_MOST: some of them may be none; AT_LEAST: nobody counts how many more there are

    def at_most(self, most: int) -> Unlisted:
        """The same where a LIMIT cuts them."""
        if 0 <= self.matches <= most:
            return self
        return Unlisted(most, float(np.log2(max(most, 1))), self.told)


def counts_for(nodes: int) -> Counts:
    """Nothing is known of so many nodes."""
    node, count, least, first = (np.zeros(nodes + 1, np.int64) for _ in range(4))
    return Counts(node, count, np.zeros(nodes + 1, np.float64), least, first)


@jit
def count_paths(
    graph: Graph, mask: int, tail: int, low: int, roots: I64, top: int, counts: Counts, waiting: I64
) -> int:
    """Count the matches behind ``roots[:top]`` that begin at ``low`` or later, into the last slot of ``counts``.

    Gives how many nodes were looked at, or −1 when ``waiting`` is too short: lengthen it, and call again. Nodes up to ``tail`` are
    freed. What was counted for a node holds while its earliest start is in the window (``low`` never falls), so that an event looks
    only at nodes that are new or that have lost a start. Cost: O(nodes behind the roots) at most, never more than O(what a
    listing would write).
    """
    looked = 0
    total = counts.node.size - 1
    counts.matches[total] = 0
    counts.bits[total] = 0.0
    counts.least[total] = MOST
    counts.first[total] = -1
    for at in range(top):
        root = roots[at]
        size = 1
        waiting[0] = root
        while size:
            node = waiting[size - 1]
            slot = node & mask
            if _known(counts, node, slot, low):
                size -= 1
                continue
            looked += 1
            left = graph.left[slot]
            right = graph.right[slot]
            if right <= tail or graph.start[right & mask] < low:
                right = NIL
            ready = True
            if size + 2 > waiting.size:
                return -1
            if left != NIL and not _known(counts, left, left & mask, low):
                waiting[size] = left
                size += 1
                ready = False
            if right != NIL and not _known(counts, right, right & mask, low):
                waiting[size] = right
                size += 1
                ready = False
            if not ready:
                continue
            size -= 1
            counts.node[slot] = node
            if left == NIL:
                counts.matches[slot] = 1
                counts.least[slot] = graph.start[slot]
                counts.first[slot] = graph.position[slot]
                continue
            _take(counts, slot, left & mask)
            if right != NIL:
                add(counts, slot, right & mask)
        add(counts, total, root & mask)
    return looked


@inlined
def _known(counts: Counts, node: int, slot: int, low: int) -> bool:
    """Whether a node is counted, and nothing of it has left the window since."""
    return bool(counts.node[slot] == node and counts.least[slot] >= low)


@inlined
def _take(counts: Counts, slot: int, other: int) -> None:
    counts.matches[slot] = counts.matches[other]
    counts.bits[slot] = counts.bits[other]
    counts.least[slot] = counts.least[other]
    counts.first[slot] = counts.first[other]


@inlined
def add(counts: Counts, slot: int, other: int) -> None:
    """The matches of two nodes together."""
    a = counts.matches[slot]
    b = counts.matches[other]
    if a >= 0 and b >= 0 and a <= MOST - b:
        counts.matches[slot] = a + b
    else:
        more = counts.bits[slot] if a < 0 else np.log2(max(a, 1))
        less = counts.bits[other] if b < 0 else np.log2(max(b, 1))
        if more < less:
            more, less = less, more
        counts.bits[slot] = more + np.log2(1.0 + 2.0 ** (less - more))
        counts.matches[slot] = BEYOND
    if counts.least[other] < counts.least[slot]:
        counts.least[slot] = counts.least[other]
        counts.first[slot] = counts.first[other]


def counted(count: int, bits: float, told: str = EXACTLY) -> Unlisted:
    """A number of matches, or BEYOND with its binary logarithm."""
    return Unlisted(count, bits if count == BEYOND else float(np.log2(max(count, 1))), told)


def unlisted(graph: Graph, mask: int, tail: int, low: int, roots: I64, *, exact: bool) -> Unlisted:
    """How many matches lie behind nodes that a listing still has to follow."""
    counts = counts_for(graph.left.size)
    waiting = np.zeros(64, np.int64)
    while count_paths(graph, mask, tail, low, roots, roots.size, counts, waiting) < 0:
        waiting = np.zeros(2 * waiting.size, np.int64)
    count, bits = int(counts.matches[-1]), float(counts.bits[-1])
    return counted(count, bits, EXACTLY if exact else AT_MOST)
