"""Where what is complete goes: into the row of its event, the numbers of its group, or the windows of its group, which close."""

from __future__ import annotations

from stretto._jit import DONE, GROW_OUTPUT, OUTPUT_FULL, OVERFLOW, inlined, jit
from stretto.engines.totals import structure as s
from stretto.engines.totals.blocks import class_of, cleared, given_back, taken
from stretto.engines.totals.structure import I64, Plan, Rows, Store, Sums

# -- windows ------------------------------------------------------------------------------------------------------------


@jit
def close_until(pane: int, plan: Plan, store: Store, sums: Sums, rows: Rows, registers: I64) -> int:
    """Give the windows that are over when a pane begins."""
    return close_before(pane, plan, store, sums, rows, registers)


@inlined
def close_before(pane: int, plan: Plan, store: Store, sums: Sums, rows: Rows, registers: I64) -> int:
    """Give the windows that end before a pane, a row for each group with matches. O(windows · groups · panes) for those given."""
    size = plan.scope[s.SIZE]
    slide = plan.scope[s.SLIDE]
    while registers[s.LIVE]:
        window = registers[s.NEXT]
        if pane < window * slide + size:
            return DONE
        live = registers[s.LIVE]
        if registers[s.ROWS] + live > rows.end.size:
            registers[s.NEED] = live
            return OUTPUT_FULL if registers[s.ROWS] else GROW_OUTPUT
        kept = 0
        for j in range(live):
            group = sums.live[j]
            bad = _give_window(group, window, plan, store, sums, rows, registers)
            if bad >= 0:
                registers[s.BAD_COLUMN] = bad
                return OVERFLOW
            if sums.latest[group] < (window + 1) * slide:
                given_back(sums.block[group], class_of(plan.kind.size * size), store, registers)
                sums.block[group] = 0
            else:
                sums.live[kept] = group
                kept += 1
        registers[s.LIVE] = kept
        registers[s.NEXT] = window + 1
    registers[s.NEXT] = max(registers[s.NEXT], (pane - size) // slide + 1)
    return DONE


@inlined
def close_own(group: int, pane: int, plan: Plan, store: Store, sums: Sums, rows: Rows, registers: I64) -> int:
    """Give the windows of a key's own events that end before one of their panes. O(windows · panes) for those given."""
    size = plan.scope[s.SIZE]
    slide = plan.scope[s.SLIDE]
    while sums.block[group]:
        window = sums.next[group]
        if pane < window * slide + size:
            break
        if registers[s.ROWS] == rows.end.size:
            return OUTPUT_FULL
        bad = _give_window(group, window, plan, store, sums, rows, registers)
        if bad >= 0:
            registers[s.BAD_COLUMN] = bad
            return OVERFLOW
        if sums.latest[group] < (window + 1) * slide:
            given_back(sums.block[group], class_of(plan.kind.size * size), store, registers)
            sums.block[group] = 0
            registers[s.LIVE] -= 1
        sums.next[group] = window + 1
    return DONE


@jit
def close_all(plan: Plan, store: Store, sums: Sums, rows: Rows, registers: I64) -> int:
    """Give all windows of all keys' own events; called again, it goes on. O(groups + windows · panes)."""
    for group in range(sums.block.size):
        status = close_own(group, s.HIGHEST, plan, store, sums, rows, registers)
        if status != DONE:
            return status
    return DONE


@inlined
def _give_window(group: int, window: int, plan: Plan, store: Store, sums: Sums, rows: Rows, registers: I64) -> int:
    """The row of a group and window, if it has matches; forgets the panes that no later window has."""
    size = plan.scope[s.SIZE]
    slide = plan.scope[s.SLIDE]
    columns = plan.kind.size
    block = sums.block[group]
    row = registers[s.ROWS]
    at = row * columns
    there = False
    for c in range(columns):
        kind = plan.kind[c]
        s.clear(kind, rows.ints, rows.reals, at + c, at + c + 1)
        begin = block + c * size
        s.fold(kind, store.ints, store.reals, begin, begin + size, rows.ints, rows.reals, at + c)
        there = there or (plan.counts[c] == c and rows.ints[at + c] != 0)
    registers[s.STEPS] += columns * size
    bad = -1
    if there:
        bad = s.is_beyond(plan, rows.ints, at, 1)
        _named(group, row, sums, rows)
        rows.window[row] = window
        registers[s.ROWS] = row + 1
    for pane in range(window * slide, min((window + 1) * slide, window * slide + size)):
        cleared(block, size, pane % size, pane % size + 1, plan, store)
    return bad


@inlined
def _named(group: int, row: int, sums: Sums, rows: Rows) -> None:
    if sums.slot.size:
        rows.base[row] = sums.base[group]
        rows.part[row] = sums.part[group]
    else:
        rows.base[row] = group
        rows.part[row] = 0


@inlined
def panes_of(group: int, plan: Plan, store: Store, sums: Sums, registers: I64) -> int:
    """The vector of a group in windows, a new one where it has none: a cell for each pane. O(cells) for a new one."""
    if not sums.block[group]:
        size = plan.scope[s.SIZE]
        fresh = taken(class_of(plan.kind.size * size), store, registers)
        cleared(fresh, size, 0, size, plan, store)
        sums.block[group] = fresh
        sums.latest[group] = registers[s.LAST_LOW]
        sums.next[group] = registers[s.LAST_LOW] // plan.scope[s.SLIDE]
        sums.live[registers[s.LIVE]] = group
        registers[s.LIVE] += 1
    return int(sums.block[group])


# -- rows and groups ----------------------------------------------------------------------------------------------------


@inlined
def row_of(position: int, base: int, part: int, plan: Plan, rows: Rows, registers: I64) -> int:
    """The row of an event and group, a new one where it has none. O(groups of the event)."""
    row = int(registers[s.ROWS]) - 1
    while row >= 0 and rows.end[row] == position:
        if rows.part[row] == part:
            return row
        row -= 1
    row = int(registers[s.ROWS])
    registers[s.ROWS] = row + 1
    rows.start[row] = s.HIGHEST
    rows.end[row] = position
    rows.base[row] = base
    rows.part[row] = part
    columns = plan.kind.size
    for c in range(columns):
        s.clear(plan.kind[c], rows.ints, rows.reals, row * columns + c, row * columns + c + 1)
    return row


@inlined
def group_of(base: int, part: int, sums: Sums, registers: I64) -> int:
    """The number of a group, a new one where it has none. O(1)."""
    wrap = sums.slot.size - 1
    place = _group_hash(base, part) & wrap
    while sums.slot[place]:
        group = int(sums.slot[place]) - 1
        if sums.base[group] == base and sums.part[group] == part:
            return group
        place = (place + 1) & wrap
    group = int(registers[s.GROUPS])
    registers[s.GROUPS] = group + 1
    sums.slot[place] = group + 1
    sums.base[group] = base
    sums.part[group] = part
    return group


@inlined
def _group_hash(base: int, part: int) -> int:
    """Some number of a group; small ones make small ones, so that nothing overflows."""
    return (base & 0xFFFFFFFF) * 31 + (part & 0xFFFF) * 7 + (part >> 16 & 0xFFFF) * 8191 + (part >> 32)


@jit
def place_groups(sums: Sums, groups: int) -> None:
    """Fill an empty table with the groups that there are. O(groups)."""
    wrap = sums.slot.size - 1
    for group in range(groups):
        place = _group_hash(sums.base[group], sums.part[group]) & wrap
        while sums.slot[place]:
            place = (place + 1) & wrap
        sums.slot[place] = group + 1
