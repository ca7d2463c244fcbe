"""What matches come to that another engine lists, since it decides each by itself: they are added up one by one, and forgotten."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, OVERFLOW, inlined, jit
from stretto.engines.totals import structure as s
from stretto.engines.totals.adding import count_match, hold_value, said
from stretto.engines.totals.giving import close_before, group_of, panes_of, row_of
from stretto.engines.totals.paths import Adding, cells_of, event_at, has_room
from stretto.engines.totals.structure import I64, Store


class Listed(NamedTuple):
    """Matches, row by row, in the order of their ends: those of :class:`~stretto.engines.api.Matches`."""

    start: I64
    end: I64
    offset: I64
    position: I64
    mark: NDArray[np.int32]


@jit
def add_listed(found: Listed, adding: Adding) -> int:
    """Add up matches from ``registers[CURSOR]`` on; gives a status, after which the caller makes room and calls again.

    Cost: O(columns) for each of their events, and the search for where it is.
    """
    plan, registers, seen = adding.plan, adding.registers, adding.seen
    while registers[s.CURSOR] < found.end.size:
        k = registers[s.CURSOR]
        at = event_at(found.end[k], seen, registers)
        pane = seen.pane[event_at(found.start[k], seen, registers)]
        inside = True
        if plan.scope[s.EXTENT] == s.OF_WINDOW:
            status = close_before(seen.pane[at], plan, adding.store, adding.sums, adding.rows, registers)
            if status != DONE:
                return status
            registers[s.LAST_LOW] = registers[s.NEXT] * plan.scope[s.SLIDE]
            inside = pane >= registers[s.LAST_LOW]
        if inside:
            status = has_room(1, plan, adding.store, adding.sums, adding.rows, registers)
            if status != DONE:
                return status
            bad = _add(k, at, pane, found, adding)
            if bad >= 0:
                registers[s.BAD_COLUMN] = bad
                return OVERFLOW
        registers[s.CURSOR] = k + 1
    return DONE


@inlined
def _add(k: int, at: int, pane: int, found: Listed, adding: Adding) -> int:
    """Add match k, which ends with event ``at``, to where it belongs; the column that 64 bits do not hold, or −1."""
    plan, sums, rows, registers = adding.plan, adding.sums, adding.rows, adding.registers
    part = 0
    for cell in range(found.offset[k], found.offset[k + 1]):
        i = event_at(found.position[cell], adding.seen, registers)
        part = said(i, found.mark[cell] + 1, part, adding.seen.values, plan)
    base = adding.seen.base[at]
    if plan.scope[s.EXTENT] == s.OF_EVENT:
        row = row_of(found.end[k], base, part, plan, rows, registers)
        return _add_to(k, row * plan.kind.size, 1, Store(rows.ints, rows.reals), found, adding)
    group = group_of(base, part, sums, registers) if sums.slot.size else base
    if plan.scope[s.EXTENT] == s.OF_TABLE:
        return _add_to(k, group * plan.kind.size, 1, Store(sums.ints, sums.reals), found, adding)
    cells = cells_of(plan)
    into = panes_of(group, plan, adding.store, sums, registers)
    sums.latest[group] = max(sums.latest[group], pane)
    return _add_to(k, into + pane % cells, cells, adding.store, found, adding)


@inlined
def _add_to(k: int, at: int, cells: int, store: Store, found: Listed, adding: Adding) -> int:
    """Add match k to a cell; the column that 64 bits do not hold, or −1. O(events · columns)."""
    plan, values = adding.plan, adding.seen.values
    for c in range(plan.kind.size):
        if plan.slot[c] < 0:
            count_match(plan.kind[c], found.start[k], at + c * cells, store)
    for cell in range(found.offset[k], found.offset[k + 1]):
        i = event_at(found.position[cell], adding.seen, adding.registers)
        mark = found.mark[cell] + 1
        for c in range(plan.kind.size):
            slot = plan.slot[c]
            if slot >= 0 and plan.holds[mark, slot] and values.known[slot, i]:
                hold_value(i, slot, plan.kind[c], at + c * cells, values, store)
    return s.is_beyond(plan, store.ints, at, cells)
