"""What an event adds to the vectors of the matches that hold it: their counts, sums and extremes, and the groups that it says."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined
from stretto.engines.totals import structure as s
from stretto.engines.totals.structure import I64, Plan, Store


class Values(NamedTuple):
    """What events have to say."""

    ints: NDArray[np.int64]  #: [slot, event]: values
    reals: NDArray[np.float64]  #: [slot, event]: the same in floating point
    known: NDArray[np.bool_]  #: [slot, event]: whether it has a value, and it is not NULL
    says: NDArray[np.int64]  #: [part of a group, event]: the number of its value

    def at(self, events: I64) -> Values:
        """The same of some of the events."""
        ints, reals, known, says = self
        return Values(
            np.ascontiguousarray(ints[:, events]),
            np.ascontiguousarray(reals[:, events]),
            np.ascontiguousarray(known[:, events]),
            np.ascontiguousarray(says[:, events]),
        )


class Vector(NamedTuple):
    """Where vectors have their cells."""

    cells: int  #: room
    begin: int
    end: int
    starts: int  #: block of the starts of the cells; 0: they have none
    size: int  #: size class


@inlined
def said(i: int, mark: int, group: int, values: Values, plan: Plan) -> int:
    """The group of what was in one, with the parts that an event says by its mark."""
    for part in range(plan.names.shape[1]):
        if plan.names[mark, part]:
            bits = plan.scope[s.BITS]
            mask = ((np.int64(1) << bits) - 1) << (part * bits)
            group = (group & ~mask) | (values.says[part, i] << (part * bits))
    return group


@inlined
def add_marked(
    i: int,
    mark: int,
    source: int,
    target: int,
    vector: Vector,
    values: Values,
    plan: Plan,
    store: Store,
    registers: I64,
) -> None:
    """Add a vector to another one, each of its matches with the event at hand if there is a mark. O(cells · columns)."""
    length = vector.end - vector.begin
    for n in range(plan.begin[mark], plan.begin[mark + 1]):
        c = plan.column[n]
        into = target + c * vector.cells + vector.begin
        kind = plan.kind[c]
        s.add(kind, store.ints, store.reals, source + c * vector.cells + vector.begin, into, length)
        slot = plan.slot[c]
        if slot >= 0 and plan.holds[mark, slot] and values.known[slot, i]:
            counts = source + plan.counts[c] * vector.cells + vector.begin
            reals = source + plan.reals[c] * vector.cells + vector.begin
            if kind in (s.COUNT, s.LOST_VALUES):
                s.add(kind, store.ints, store.reals, counts, into, length)
            elif kind == s.REAL_COUNT:
                s.add(kind, store.ints, store.reals, reals, into, length)
            elif kind == s.REAL_SUM:
                _add_real(values.reals[slot, i], reals, into, length, store)
            elif kind == s.SUM:
                _add_value(values.ints[slot, i], counts, into, length, store)
            elif kind in (s.LEAST, s.MOST):
                _compare(kind == s.LEAST, values.ints[slot, i], counts, into, length, store)
            else:
                _compare_real(kind == s.REAL_LEAST, values.reals[slot, i], counts, into, length, store)
    registers[s.STEPS] += (plan.begin[mark + 1] - plan.begin[mark]) * length


@inlined
def _add_value(value: int, counts: int, into: int, length: int, store: Store) -> None:
    """Add an integer to the sums, as often as there are matches."""
    if value:
        most = s.most_times(value)
        ints = store.ints
        for k in range(length):
            ints[into + k] = s.plus_sum(ints[into + k], s.times(ints[counts + k], value, most))


@inlined
def _add_real(value: float, counts: int, into: int, length: int, store: Store) -> None:
    """Add a number to the sums, as often as there are matches; what is not finite only where there are some."""
    reals = store.reals
    if np.isfinite(value):
        if value:
            for k in range(length):
                reals[into + k] += value * reals[counts + k]
    else:
        for k in range(length):
            if reals[counts + k]:
                reals[into + k] += value


@inlined
def _compare(least: bool, value: int, counts: int, into: int, length: int, store: Store) -> None:
    ints = store.ints
    if least:
        for k in range(length):
            ints[into + k] = min(ints[into + k], value) if ints[counts + k] else ints[into + k]
    else:
        for k in range(length):
            ints[into + k] = max(ints[into + k], value) if ints[counts + k] else ints[into + k]


@inlined
def _compare_real(least: bool, value: float, counts: int, into: int, length: int, store: Store) -> None:
    ints = store.ints
    reals = store.reals
    if least:
        for k in range(length):
            reals[into + k] = s.least_of(reals[into + k], value) if ints[counts + k] else reals[into + k]
    else:
        for k in range(length):
            reals[into + k] = s.most_of(reals[into + k], value) if ints[counts + k] else reals[into + k]


@inlined
def begin(i: int, mark: int, position: int, at: int, cells: int, values: Values, plan: Plan, store: Store) -> None:
    """Add the partial match that an event begins to a cell. O(columns)."""
    for n in range(plan.begin[mark], plan.begin[mark + 1]):
        c = plan.column[n]
        slot = plan.slot[c]
        if slot < 0:
            count_match(plan.kind[c], position, at + c * cells, store)
        elif plan.holds[mark, slot] and values.known[slot, i]:
            hold_value(i, slot, plan.kind[c], at + c * cells, values, store)


@inlined
def count_match(kind: int, position: int, place: int, store: Store) -> None:
    """Add a match that begins at a position to a number that has no slot."""
    ints = store.ints
    reals = store.reals
    if kind == s.COUNT:
        ints[place] = s.plus(ints[place], 1)
    elif kind == s.REAL_COUNT:
        reals[place] += 1
    else:
        ints[place] = min(ints[place], position)


@inlined
def hold_value(i: int, slot: int, kind: int, place: int, values: Values, store: Store) -> None:
    """Add the value of an event that one match holds to a number."""
    ints = store.ints
    reals = store.reals
    if kind in (s.COUNT, s.LOST_VALUES):
        ints[place] = s.plus(ints[place], 1)
    elif kind == s.REAL_COUNT:
        reals[place] += 1
    elif kind == s.SUM:
        ints[place] = s.plus_sum(ints[place], values.ints[slot, i])
    elif kind == s.REAL_SUM:
        reals[place] += values.reals[slot, i]
    elif kind == s.LEAST:
        ints[place] = min(ints[place], values.ints[slot, i])
    elif kind == s.MOST:
        ints[place] = max(ints[place], values.ints[slot, i])
    elif kind == s.REAL_LEAST:
        reals[place] = s.least_of(reals[place], values.reals[slot, i])
    else:
        reals[place] = s.most_of(reals[place], values.reals[slot, i])
