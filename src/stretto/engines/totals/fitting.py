"""Whether records of a snapshot are whole, before :func:`~stretto.engines.totals.kernels.unpack` reads them."""

from __future__ import annotations

from stretto._jit import jit
from stretto.engines.totals.structure import I64


@jit
def misfit(words: I64, columns: int, partitions: int, states: int, groups: int, least: int, below: int) -> int:
    """The first place in packed records that names no partition, state or group there is, or ends too early; −1: none. O(records).

    ``least``, ``below``: where the starts lie, if they are told apart: they rise, and no entry has a later one than the last cell.
    They are equal if all starts are one.
    """
    at = 0
    while at < words.size:
        if at + 4 > words.size or not 0 <= words[at] < partitions:
            return int(at)
        entries, cells = words[at + 2], words[at + 3]
        if not (0 <= entries <= words.size and 0 <= cells <= words.size - at - 4):
            return int(at + 2)
        at += 4
        if least < below:
            for cell in range(at, at + cells):
                if not least <= words[cell] < below or (cell > at and words[cell] <= words[cell - 1]):
                    return int(cell)
        at += cells
        last = words[at - 1]
        for _ in range(entries):
            if 3 + columns * cells > words.size - at or not 0 <= words[at] < states or not 0 <= words[at + 1] < groups:
                return int(at)
            if least < below and cells and words[at + 2] > last:
                return int(at + 2)
            at += 3 + columns * cells
    return -1
