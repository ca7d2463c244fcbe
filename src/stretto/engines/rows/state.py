"""What a stream holds: rows by slot, linked within their partition, and where each partition's walk stands."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from stretto._jit import jit
from stretto.engines.rows.structure import I64, U64, Bits


class Rows(NamedTuple):
    """The rows that are held, by slot, in the order in which they came. Slot 0 is no row."""

    partition: I64
    after: I64  #: the slot of the next row of the partition; 0: it has not come
    before: I64  #: … of the one before; 0: there is none, or it is not held any more
    ordinal: I64  #: the number of the row in its partition, from 0
    time: I64  #: the first column of ORDER BY, where there is a window
    timed: Bits  #: whether that is known
    bits: U64  #: (slots, words): what the row may be taken as; what failed is taken out
    position: I64  #: what the walk took the row as
    edge: I64  #: how many followers of that the walk has tried
    limit: I64  #: … as far as these have failed, no better values than these have a match (failing.py)
    registers: I64  #: (slots, registers) with the row; those of slot 0 are those before the first row of a match


class Parts(NamedTuple):
    """Where partitions stand, by number."""

    newest: I64  #: the slot of the last row that came; 0: none is held
    came: I64  #: how many rows came
    start: I64  #: the slot of the row at which a match is looked for; 0: it has not come
    tip: I64  #: the slot of the last row of the match so far; 0: it has none
    edge: I64  #: how many of what may come first the walk has tried
    number: I64  #: matches so far
    ways: I64  #: configurations of the match that begins at ``start`` that failed
    behind: I64  #: the rows with a lower number are in a match, or known to be in none


class Rules(NamedTuple):
    """What a clause says, for the kernel."""

    mode: int  #: AFTER MATCH
    unmatched: bool  #: rows of no match are given
    window: int  #: in ticks; −1: there is none
    ahead: I64  #: by position: how many rows behind its row conditions read
    shown_ahead: int  #: how many rows behind the match measures read
    shown_back: int  #: … before it
    steady: bool  #: a row that others behind it decide waits for them also where it is known that it does not fit


class Given(NamedTuple):
    """Matches, and rows of none, with the rows around them that measures read, one behind the other."""

    number: I64  #: of the match in its partition; 0: a row of no match
    length: I64
    path: I64  #: the position of each row of each match
    first: I64  #: where, in ``slot``, the match begins
    bounds: I64  #: where, in ``slot``, its rows and those around it begin; and one more
    slot: I64
    newest: I64  #: the slot of the row of the partition that had come last


# Registers of a stream's kernel; those of a walk (structure.py) stand before them.
AT = 8  #: the place in the work
LINKED = 9  #: whether the row at that place is linked
SLOTS = 10  #: slots in the output
WORK = 11  #: configurations that failed since the kernel paused
REGISTERS = 12


T = TypeVar("T", Rows, Parts)


def rows_for(slots: int, words: int, registers: I64, values: int) -> Rows:
    """Room for so many slots; ``registers`` are those before the first row of a match, and a limit is of so many ``values``."""
    partition, after, before, ordinal, time, position, edge = np.zeros((7, slots), np.int64)
    table = np.zeros((slots, registers.size), np.int64)
    table[0] = registers
    timed = np.zeros(slots, np.bool_)
    return Rows(
        partition,
        after,
        before,
        ordinal,
        time,
        timed,
        np.zeros((slots, words), np.uint64),
        position,
        edge,
        np.zeros((slots, values), np.int64),
        table,
    )


def parts_for(count: int) -> Parts:
    """Room for so many partitions."""
    return Parts(*np.zeros((8, count), np.int64))


def given(matches: int, slots: int) -> Given:
    """Room for so many matches with so many rows."""
    number, length, first, newest = np.empty((4, matches), np.int64)
    bounds = np.zeros(matches + 1, np.int64)
    return Given(number, length, np.empty(slots, np.int64), first, bounds, np.empty(slots, np.int64), newest)


def roomier(out: Given) -> Given:
    """Twice the room, with what is there."""
    made = given(2 * out.number.size, 2 * out.slot.size)
    for new, old in zip(made, out, strict=True):
        new[: old.size] = old
    return made


def kept(arrays: T, chosen: I64, size: int) -> T:
    """Some slots, or partitions, one behind the other, with room for so many in all, which is zero."""
    made: list[Any] = []
    for array in arrays:
        own: Any = array
        made.append(np.zeros((size, *own.shape[1:]), own.dtype))
        made[-1][: chosen.size] = own[chosen]
    return type(arrays)(*made)


@jit
def around(rows: Rows, parts: Parts, touched: I64, most: int, sizes: I64, out: I64) -> int:
    """Write the slots of the last rows, ``most`` at most, of some partitions, in order; of each how many. O(slots written)."""
    used = 0
    for i in range(touched.size):
        slot = parts.newest[touched[i]]
        count = 0
        while count < most and slot:
            out[used + count] = slot
            count += 1
            slot = rows.before[slot]
        for j in range(count // 2):
            other = out[used + j]
            out[used + j] = out[used + count - 1 - j]
            out[used + count - 1 - j] = other
        sizes[i] = count
        used += count
    return used


@jit
def accepted(words: I64, groups: I64, held: int, last: I64, out: Bits) -> int:
    """Tell which rows are not before the last one of their group; give how many there are.

    ``words[:, i]`` is what row i is sorted by; the first ``held`` rows came before. ``last``: by group, scratch of −1.
    O(rows · columns).
    """
    count = 0
    for i in range(groups.size):
        g = groups[i]
        before = last[g]
        fits = True
        if before >= 0:
            for c in range(words.shape[0]):
                if words[c, i] != words[c, before]:
                    fits = words[c, i] > words[c, before]
                    break
        if fits:
            last[g] = i
        if i >= held:
            out[i - held] = fits
            count += fits
    return count


@jit
def outlived(rows: Rows, parts: Parts, size: int, kept_back: int, shown_back: int, forget: Bits, out: Bits) -> None:
    """Tell which slots are needed: rows from a partition's open start on, and what conditions and measures read before. O(slots).

    ``kept_back``: so many of the last rows are kept; ``forget``: of these partitions none.
    """
    for s in range(1, size):
        k = rows.partition[s]
        start = parts.start[k]
        least = (rows.ordinal[start] if start else parts.came[k]) - shown_back
        out[s] = not forget[k] and rows.ordinal[s] >= min(least, parts.came[k] - kept_back)
