"""Whether records of a snapshot are whole, before :func:`~stretto.engines.tecs.collect.unpack` reads them."""

from __future__ import annotations

from stretto._jit import jit
from stretto.engines.tecs.kernels import COUNT, HEADER, WORDS
from stretto.engines.tecs.structure import FIRST, I64


@jit
def misfit(words: I64, partitions: int, states: int, nodes: int) -> int:
    """The first place in packed records that names no partition, state or node there is, or ends too early; −1: none. O(words)."""
    at = 0
    while at < words.size:
        begin = at
        at += HEADER
        if at > words.size or not 0 <= words[begin] < partitions or not 0 <= words[begin + COUNT] <= words.size:
            return begin
        for _ in range(words[begin + COUNT]):
            if at + WORDS > words.size or not 0 <= words[at] < states:
                return at
            length = words[at + 1]
            at += WORDS
            if not 0 < length <= words.size - at:
                return at - 1
            for i in range(at, at + length):
                if not FIRST - 1 <= words[i] < FIRST + nodes:
                    return i
            at += length
    return -1
