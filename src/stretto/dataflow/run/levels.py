"""Levels: how many times a row went around its loops.

In a loop by itself that is a number. Where loops stand in each other it is one for each of them, the outermost first, packed into the
fields of a word, so that the order of words is the order of turns: all of the inner loop before the outer one turns again. What a row
is derived from is *below* it in every field; what is derived from two rows is at the least level above both (their join).

>>> pair = (3 << 31) | 1, (1 << 31) | 4
>>> joined(*pair, 31) == (3 << 31) | 4
True
>>> below(pair[1], joined(*pair, 31), 31), below(*pair, 31)
(True, False)
"""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import NDArray

from stretto._jit import inlined, jit

BITS = 62  #: of all fields together


class Scope(NamedTuple):
    """Where a vertex stands among loops that stand in each other, from the outermost one on."""

    depth: int = 1  #: of the deepest of them: how many fields levels have
    ranks: tuple[int, ...] = (0,)  #: of each loop that it stands in, the place among those of the loop around it
    turns: bool = True  #: of a flying fixed point: whether its relation depends on itself there

    def shift(self, bits: int) -> int:
        """Where the level in the innermost of its loops begins."""
        return bits * (self.depth - len(self.ranks))

    def mask(self, other: Scope, bits: int) -> int:
        """What a level keeps on the way to another vertex: the fields of the loops that both stand in."""
        common = 0
        for one, its in zip(self.ranks, other.ranks, strict=False):
            if one != its:
                break
            common += 1
        return -1 << bits * (self.depth - common)

    def turn(self, level: int, bits: int) -> tuple[int, ...]:
        """A level in the order of turns."""
        found: list[int] = []
        for at, rank in enumerate(self.ranks):
            found += [rank, (level >> bits * (self.depth - 1 - at)) & ((1 << bits) - 1)]
        return tuple(found)


@inlined
def joined(a: int, b: int, bits: int) -> int:
    """The least level above two, of fields of so many bits."""
    if bits == BITS or a == b:
        return max(a, b)
    found = 0
    mask = (1 << bits) - 1
    shift = 0
    while shift < BITS:
        found |= max((a >> shift) & mask, (b >> shift) & mask) << shift
        shift += bits
    return found


@inlined
def below(a: int, b: int, bits: int) -> bool:
    """Whether what has level ``a`` is there at level ``b``."""
    return a <= b and (bits == BITS or joined(a, b, bits) == b)


@jit
def close(levels: NDArray, count: int, bits: int) -> int:  # type: ignore[type-arg]
    """Add the joins of levels (ascending) to them; how many there are then, or −1: there is no room."""
    high = 1
    while bits != BITS and high < count:
        for low in range(high):
            level = joined(levels[low], levels[high], bits)
            place = high
            while place < count and levels[place] < level:
                place += 1
            if place < count and levels[place] == level:
                continue
            if count == len(levels):
                return -1
            for at in range(count, place, -1):
                levels[at] = levels[at - 1]
            levels[place] = level
            count += 1
        high += 1
    return count


@jit
def expand(levels: NDArray, count: int, bits: int, terms: NDArray) -> None:  # type: ignore[type-arg]
    """Say of which levels a change at each one is made: that of ``terms[level, t]`` (−1: of none) counts +1, or −1 for odd t's.

    What is there at a level is the sum of the changes below it. So a change is what is there, less what was there at the levels
    directly below, of which there are no more than fields; what lies below several of these is counted by inclusion and exclusion:
    bit k of t says that it is below the k-th of them. ``t`` is odd where the number of its bits is.
    """
    covers = 0
    while 1 << covers < terms.shape[1]:
        covers += 1
    for level in range(count):
        for t in range(terms.shape[1]):
            terms[level, t] = -1
        terms[level, 0] = level
        found = 0
        for one in range(level - 1, -1, -1):
            if found == covers:
                break
            if not below(levels[one], levels[level], bits):
                continue
            covered = False
            for k in range(found):
                covered |= below(levels[one], levels[terms[level, 1 << k]], bits)
            if not covered:
                terms[level, 1 << found] = one
                found += 1
        for t in range(3, 1 << found):
            if t & (t - 1) == 0:
                continue
            # The greatest level below all of them.
            for one in range(level - 1, -1, -1):
                common = True
                for k in range(found):
                    if t >> k & 1:
                        common &= below(levels[one], levels[terms[level, 1 << k]], bits)
                if common:
                    terms[level, t] = one
                    break
