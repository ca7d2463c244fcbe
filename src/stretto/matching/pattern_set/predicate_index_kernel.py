"""The kernel that finds the patterns which an event concerns, by what few conditions can hold on it at all.

A condition is a disjunction of *clauses*, each a conjunction of *literals*: a column's code lies in a range, or does not, or is
one of a table. Of its literals a clause is *anchored* at the most selective one: it is looked at for the events with a code of
that column under which this literal holds, and for no others. Where no literal is selective, it is looked at for every event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U64 = NDArray[np.uint64]
U8 = NDArray[np.uint8]

# How a literal is told by a code.
INSIDE = 0  #: low ≤ code < high
OUTSIDE = 1  #: not that
LISTED = 2  #: ``listed[low + code]``


class Clauses(NamedTuple):
    """By anchored column and code: the clauses to look at; by clause: its literals, and whom it satisfies."""

    column: I64  #: [anchor]: the column
    base: I64  #: [anchor]: where its codes begin in ``begin``
    begin: I64  #: [base + code]: its first entry in ``clause``; one more than there are
    clause: I32
    literal: I64  #: [clause]: its first literal; one more than there are
    test: I64  #: [literal]: column << 2 | how the code tells
    low: I64
    high: I64
    listed: U8
    pair: I64  #: [clause]: the first guard that it satisfies; one more than there are
    part: I32  #: whose guard
    bit: U64  #: 1 << guard


def joined(several: Sequence[Clauses], columns: Sequence[int], parts: Sequence[int]) -> Clauses:
    """Several indexes as one, with their columns, and their parts, one after the other. It copies arrays, and makes none anew.

    ``columns`` and ``parts`` are how many each has.
    """
    if len(several) == 1:
        return several[0]
    column, part = _before(columns), _before(parts)
    codes, entries = _before([one.begin.size for one in several]), _before([one.clause.size for one in several])
    clauses, tests = _before([one.literal.size - 1 for one in several]), _before([one.test.size for one in several])
    listed, pairs = _before([one.listed.size for one in several]), _before([one.part.size for one in several])
    each = range(len(several))
    lows = [np.where(one.test & 3 == LISTED, one.low + listed[k], one.low) for k, one in enumerate(several)]
    return Clauses(
        np.concatenate([several[k].column + column[k] for k in each]),
        np.concatenate([several[k].base + codes[k] for k in each]),
        np.concatenate([several[k].begin + entries[k] for k in each]),
        np.concatenate([several[k].clause + np.int32(clauses[k]) for k in each]),
        np.concatenate([*(several[k].literal[:-1] + tests[k] for k in each), tests[-1:]]),
        np.concatenate([several[k].test + (column[k] << 2) for k in each]),
        np.concatenate(lows),
        np.concatenate([one.high for one in several]),
        np.concatenate([one.listed for one in several]),
        np.concatenate([*(several[k].pair[:-1] + pairs[k] for k in each), pairs[-1:]]),
        np.concatenate([several[k].part + np.int32(part[k]) for k in each]),
        np.concatenate([one.bit for one in several]),
    )


def _before(counts: Sequence[int]) -> I64:
    """How many come before each, and how many there are."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


class Owners(NamedTuple):
    """Who has each part: the patterns in force, by their places. A prefix is a part as well, whose states have places behind them."""

    begin: I64  #: [part]: the first in ``place``; one more than there are
    place: I64
    model: U64  #: [part]: the number of its automaton << GUARDS
    prefix: I64  #: [part]: the number of its prefix; −1: it has none


class Found(NamedTuple):
    """Pairs of event and pattern, by event and then by place."""

    row: I64
    place: I64
    key: U64  #: automaton and guards that hold
    concerned: I64  #: [place]: how many events, without those that concern the prefix as well


class Marks(NamedTuple):
    """Scratch space."""

    held: U64  #: [part]: the guards that hold on the event at hand; 0 between events
    touched: I64  #: the parts of these
    order: I64  #: the pairs of the event at hand: place
    key: U64  #: … and key


@inlined
def _holds(clause: int, row: int, codes: I32, clauses: Clauses) -> bool:
    for k in range(clauses.literal[clause], clauses.literal[clause + 1]):
        code = codes[clauses.test[k] >> 2, row]
        how = clauses.test[k] & 3
        if how == LISTED:
            if not clauses.listed[clauses.low[k] + code]:
                return False
        elif (clauses.low[k] <= code < clauses.high[k]) == (how == OUTSIDE):
            return False
    return True


@inlined
def _in_order(count: int, marks: Marks) -> None:
    """Sort the pairs of an event by place (Shell's way). They are in order already where one column anchors all."""
    gap = count >> 1
    while gap > 0:
        for i in range(gap, count):
            place = marks.order[i]
            key = marks.key[i]
            at = i
            while at >= gap and marks.order[at - gap] > place:
                marks.order[at] = marks.order[at - gap]
                marks.key[at] = marks.key[at - gap]
                at -= gap
            marks.order[at] = place
            marks.key[at] = key
        gap >>= 1


@jit
def find(
    codes: I32, first: int, stop: int, clauses: Clauses, owners: Owners, marks: Marks, found: Found, most: int
) -> tuple[int, int]:
    """Write the pairs of the events ``first`` to ``stop``, rows counted from ``first``.

    Gives the event before which it stopped for want of room, and how many pairs there are: it stops when they are more than
    ``most``, and ``found`` has room for ``most`` and all owners. Cost: a look-up for each event and anchored column, a test for each
    literal of the clauses that are looked at, and what the pairs of an event cost to sort.
    """
    used = 0
    for row in range(first, stop):
        if used > most:
            return row, used
        touched = 0
        for a in range(clauses.column.size):
            at = clauses.base[a] + codes[clauses.column[a], row]
            for k in range(clauses.begin[at], clauses.begin[at + 1]):
                clause = clauses.clause[k]
                if _holds(clause, row, codes, clauses):
                    for pair in range(clauses.pair[clause], clauses.pair[clause + 1]):
                        part = clauses.part[pair]
                        if not marks.held[part]:
                            marks.touched[touched] = part
                            touched += 1
                        marks.held[part] |= clauses.bit[pair]
        if not touched:
            continue
        count = 0
        for k in range(touched):
            part = marks.touched[k]
            prefix = owners.prefix[part]
            alone = int(prefix < 0 or not marks.held[prefix])
            for at in range(owners.begin[part], owners.begin[part + 1]):
                marks.order[count] = owners.place[at]
                marks.key[count] = owners.model[part] | marks.held[part]
                found.concerned[owners.place[at]] += alone
                count += 1
        for k in range(touched):
            marks.held[marks.touched[k]] = 0
        _in_order(count, marks)
        for k in range(count):
            found.row[used] = row - first
            found.place[used] = marks.order[k]
            found.key[used] = marks.key[k]
            used += 1
    return stop, used
