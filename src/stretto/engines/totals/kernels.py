"""How many matches there are and what they add up to, over many events and many partitions in one call.

The automaton of :mod:`~stretto.automata.determinize` has exactly one run for each complex event of a start (in valuations: for each
valuation), so that runs need not be told apart: a partition's *record* has an entry for each active state and group, and each entry
a vector of numbers (:mod:`~stretto.engines.totals.structure`) with a cell for each start that may still be in a window.

An event takes each entry along the transitions on its class: what it adds to the vector of the target is the vector of the source,
cell by cell, and where it is marked as an event of a variable that values are asked of, ``count · value`` for sums, ``value`` for
extremes of the cells that are not empty. An entry that only waits is left as it is. What enters a final state is added to the row of
the event, to the group's row, or to the cell of its start in the group's windows. Those of a window are the sum of the cells of its
panes when it closes: whatever was complete before lies wholly inside, if it began inside.

Cost per event: O(active entries of its partition · transitions · cells · columns), whatever the number of matches. The cells of one
column lie side by side, so that they are added up several at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import (
    DONE,
    GROW_ACTIVE,
    GROW_ARENA,
    GROW_OUTPUT,
    GROW_TABLE,
    OUTPUT_FULL,
    OVERFLOW,
    PAUSED,
    TRANSITION_MISSING,
    inlined,
    jit,
    prefetch,
)
from stretto.engines.tecs.kernels import AHEAD, DEAD, EDGES, IN_CACHE, KEEP, UNKNOWN, Machine
from stretto.engines.totals import structure as s
from stretto.engines.totals.adding import Values, Vector, add_marked, begin, said
from stretto.engines.totals.blocks import class_of, cleared, given_back, moved, taken
from stretto.engines.totals.giving import close_before, close_own, group_of, panes_of, row_of
from stretto.engines.totals.structure import I64, Bits, Plan, Rows, Store, Sums, Work

# A record: a header, and for each entry WORDS words: state, group, greatest start, vector.
SIZE = 0  #: size class of the record
STAMP = 1  #: position of the last event that changed it
COUNT = 2  #: entries
CELLS = 3  #: cells that a vector has room for
BEGIN = 4  #: the first cell in use
END = 5  #: behind the last one
STARTS = 6  #: block of the cells' starts
HEADER = 8
WORDS = 4

#: The kernel pauses after adding so many numbers, which takes well below a second, so that ^C acts soon.
PAUSE_AFTER = 1 << 28

CONSUME_PARTITION = 1
CONSUME_ANY = 2


class Events(NamedTuple):
    """The events to visit, in order."""

    cls: NDArray[np.int32]  #: event class
    part: I64  #: partition
    position: I64  #: position in the input
    key: I64  #: what starts are told apart by: the position, the rank in the partition, or the number of the pane
    low: I64  #: least key in the window of the event; where windows have panes, nothing
    base: I64  #: the group by keys
    values: Values


class Arrays(NamedTuple):
    """What a run holds."""

    plan: Plan
    store: Store
    head: I64  #: [partition]: its record; 0: none
    work: Work
    sums: Sums
    rows: Rows
    registers: I64


@jit
def advance(events: Events, machine: Machine, arrays: Arrays) -> int:
    """Read the events from ``registers[CURSOR]`` on.

    Invariant: before each event, every record holds an entry for each state (and group) that partial matches of its partition are
    in, with what they come to by start. Reads events, machine and plan; writes all others. Returns a status; on any but DONE the
    caller mends what it names and calls again, OVERFLOW apart.
    """
    plan = arrays.plan
    store = arrays.store
    head = arrays.head
    sums = arrays.sums
    rows = arrays.rows
    registers = arrays.registers
    while True:
        i = registers[s.CURSOR]
        if i >= events.position.size:
            return DONE
        if registers[s.STEPS] > PAUSE_AFTER:
            registers[s.STEPS] = 0
            return PAUSED
        if head.size > IN_CACHE:
            last = events.part.size - 1
            prefetch(head, events.part[min(i + 2 * AHEAD, last)])
            prefetch(store.ints, head[events.part[min(i + AHEAD, last)]])
        if plan.scope[s.OWN]:
            pane = events.key[i]
            status = close_own(events.base[i], pane, plan, store, sums, rows, registers)
            if status != DONE:
                return status
            slide = plan.scope[s.SLIDE]
            registers[s.LAST_LOW] = ((pane - plan.scope[s.SIZE]) // slide + 1) * slide
        elif plan.scope[s.EXTENT] == s.OF_WINDOW:
            status = close_before(events.key[i], plan, store, sums, rows, registers)
            if status != DONE:
                return status
            registers[s.LAST_LOW] = registers[s.NEXT] * plan.scope[s.SLIDE]
        else:
            registers[s.LAST_LOW] = events.low[i]
        status = _read(i, events, machine, arrays)
        if status != DONE:
            return status
        registers[s.CURSOR] = i + 1


@inlined
def _read(i: int, events: Events, machine: Machine, arrays: Arrays) -> int:
    """One event. First make sure that nothing can be missing, then carry it out."""
    plan = arrays.plan
    store = arrays.store
    head = arrays.head
    work = arrays.work
    sums = arrays.sums
    rows = arrays.rows
    registers = arrays.registers
    part = events.part[i]
    cls = events.cls[i]
    arena = store.ints
    if plan.scope[s.CONSUME] == CONSUME_ANY and head[part] and arena[head[part] + STAMP] <= registers[s.CONSUMED]:
        _release(part, plan, store, head, registers)
    at = head[part]
    active = arena[at + COUNT] if at else 0
    fresh = machine.table[0, cls]
    if fresh == UNKNOWN:
        registers[s.MISSING_STATE] = 0
        registers[s.MISSING_CLASS] = cls
        return TRANSITION_MISSING
    adds = active
    if fresh >= EDGES:
        adds += machine.edges[fresh - EDGES]
    still = fresh == DEAD
    for e in range(active):
        state = arena[at + HEADER + WORDS * e]
        code = machine.table[state, cls]
        if code == UNKNOWN:
            registers[s.MISSING_STATE] = state
            registers[s.MISSING_CLASS] = cls
            return TRANSITION_MISSING
        if code >= EDGES:
            adds += machine.edges[code - EDGES]
        still = still and code == KEEP
    if still:
        return DONE
    status = _has_room(at, adds, plan, store, work, sums, rows, registers)
    if status != DONE:
        return status
    registers[s.VISITED] += 1
    vector = _with_start(i, at, fresh >= EDGES, events, plan, store, registers)
    count = _transitions(i, at, active, fresh, vector, events, machine, arrays)
    bad, done = _output(i, count, vector, events, machine, arrays)
    _write(i, at, count, vector, events, machine, arrays)
    if done:
        registers[s.TRIGGERS] += 1
        if plan.scope[s.CONSUME]:
            registers[s.CONSUMED] = events.position[i]
            _release(part, plan, store, head, registers)
    if bad >= 0:
        registers[s.BAD_COLUMN] = bad
        return OVERFLOW
    return DONE


@inlined
def _has_room(at: int, adds: int, plan: Plan, store: Store, work: Work, sums: Sums, rows: Rows, registers: I64) -> int:
    """Whether there is room for all that an event can need, which has so many entries and transitions; a status."""
    columns = plan.kind.size
    extent = plan.scope[s.EXTENT]
    cells = 2 * store.ints[at + CELLS] if at else 8
    need = (adds + 1) * (16 << class_of(columns * cells)) + 2 * (HEADER + WORDS * adds) + (16 << class_of(cells))
    if extent == s.OF_WINDOW:
        need += adds * (8 << class_of(columns * plan.scope[s.SIZE]))
    if registers[s.TOP] + need > store.ints.size:
        registers[s.NEED] = need
        return GROW_ARENA
    if adds > work.state.size or 2 * (adds + 1) > work.slot.size:
        registers[s.NEED] = adds + 1
        return GROW_ACTIVE
    if extent == s.OF_EVENT and registers[s.ROWS] + adds > rows.end.size:
        registers[s.NEED] = adds
        return OUTPUT_FULL if registers[s.ROWS] else GROW_OUTPUT
    if extent != s.OF_EVENT and sums.slot.size:
        groups = registers[s.GROUPS] + adds
        if groups > sums.base.size or 2 * groups > sums.slot.size:
            registers[s.NEED] = groups
            return GROW_TABLE
    return DONE


@inlined
def _with_start(i: int, at: int, starts: bool, events: Events, plan: Plan, store: Store, registers: I64) -> Vector:
    """The cells of a record after those that have left the window are gone, with one for the event where it starts matches."""
    arena = store.ints
    columns = plan.kind.size
    if not at:
        size = class_of(columns)
        cells = (8 << size) // columns
        block = taken(class_of(cells), store, registers)
        arena[block] = events.key[i]
        return Vector(cells, 0, 1, block, size)
    cells = arena[at + CELLS]
    begin = arena[at + BEGIN]
    end = arena[at + END]
    block = arena[at + STARTS]
    size = class_of(columns * cells)
    if not plan.scope[s.APART]:
        return Vector(cells, 0, 1, block, size)
    low = registers[s.LAST_LOW]
    while begin < end and arena[block + begin] < low:
        begin += 1
    if not starts or (begin < end and arena[block + end - 1] == events.key[i]):
        return Vector(cells, begin, end, block, size)
    if end == cells:
        length = end - begin
        have = cells
        old = block
        if 2 * length > cells:
            size += 1
            cells = (8 << size) // columns
            block = taken(class_of(cells), store, registers)
        for k in range(length):
            arena[block + k] = arena[old + begin + k]
        for e in range(arena[at + COUNT]):
            place = at + HEADER + WORDS * e + 3
            source = arena[place]
            if cells != have:
                arena[place] = taken(size, store, registers)
            moved(source, have, begin, length, arena[place], cells, plan, store)
            if cells != have:
                given_back(source, size - 1, store, registers)
        if cells != have:
            given_back(old, class_of(have), store, registers)
        registers[s.STEPS] += columns * length
        begin = 0
        end = length
    arena[block + end] = events.key[i]
    for e in range(arena[at + COUNT]):
        cleared(arena[at + HEADER + WORDS * e + 3], cells, end, end + 1, plan, store)
    return Vector(cells, begin, end + 1, block, size)


@inlined
def _transitions(
    i: int, at: int, active: int, fresh: int, vector: Vector, events: Events, machine: Machine, arrays: Arrays
) -> int:
    """The transitions of the active entries, in order, then of the start state. Gives how many entries there are then."""
    plan = arrays.plan
    store = arrays.store
    work = arrays.work
    registers = arrays.registers
    epoch = registers[s.EPOCH] + 1
    registers[s.EPOCH] = epoch
    arena = store.ints
    cls = events.cls[i]
    low = registers[s.LAST_LOW]
    edges = machine.edges
    count = 0
    for e in range(active):
        word = at + HEADER + WORDS * e
        state = arena[word]
        group = arena[word + 1]
        latest = arena[word + 2]
        source = arena[word + 3]
        code = machine.table[state, cls]
        if plan.scope[s.APART] and latest < low:
            code = DEAD
        if code == KEEP:
            place = _place_of(state, group, epoch, work)
            if work.epoch[place] != epoch:
                _enter(place, state, group, latest, source, count, epoch, work)
                count += 1
                continue
            entry = work.slot[place]
            work.latest[entry] = max(work.latest[entry], latest)
            add_marked(i, 0, source, work.block[entry], vector, events.values, plan, store, registers)
        elif code >= EDGES:
            edge = code - EDGES
            stays = False
            for k in range(edges[edge]):
                mark = int(edges[edge + 1 + 2 * k])
                target = int(edges[edge + 2 + 2 * k])
                group_said = said(i, mark, group, events.values, plan)
                place = _place_of(target, group_said, epoch, work)
                if work.epoch[place] != epoch:
                    if mark == 0:  # it comes last: nothing else is done with the vector
                        _enter(place, target, group, latest, source, count, epoch, work)
                        count += 1
                        stays = True
                        continue
                    into = taken(vector.size, store, registers)
                    _enter(place, target, group_said, latest, into, count, epoch, work)
                    count += 1
                    cleared(into, vector.cells, vector.begin, vector.end, plan, store)
                entry = work.slot[place]
                work.latest[entry] = max(work.latest[entry], latest)
                add_marked(i, mark, source, work.block[entry], vector, events.values, plan, store, registers)
            if stays:
                continue
        given_back(source, vector.size, store, registers)
    if fresh >= EDGES:
        count = _starts(i, fresh, count, vector, events, machine, arrays)
    return count


@inlined
def _starts(i: int, fresh: int, count: int, vector: Vector, events: Events, machine: Machine, arrays: Arrays) -> int:
    """The transitions of the start state, into the last cell, where there are ``count`` entries. Gives how many there are then."""
    plan = arrays.plan
    store = arrays.store
    work = arrays.work
    registers = arrays.registers
    edges = machine.edges
    epoch = registers[s.EPOCH]
    edge = fresh - EDGES
    for k in range(edges[edge]):
        mark = int(edges[edge + 1 + 2 * k])
        target = int(edges[edge + 2 + 2 * k])
        group = said(i, mark, 0, events.values, plan)
        place = _place_of(target, group, epoch, work)
        if work.epoch[place] != epoch:
            into = taken(vector.size, store, registers)
            _enter(place, target, group, events.key[i], into, count, epoch, work)
            count += 1
            cleared(into, vector.cells, vector.begin, vector.end, plan, store)
        entry = work.slot[place]
        work.latest[entry] = events.key[i]
        begin(i, mark, events.position[i], work.block[entry] + vector.end - 1, vector.cells, events.values, plan, store)
    return count


@inlined
def _place_of(state: int, group: int, epoch: int, work: Work) -> int:
    """Where a state and group is in the scratch table, or would be. O(1)."""
    wrap = work.slot.size - 1
    place = (state * 31 + (group & 0xFFFF) * 7 + (group >> 16 & 0xFFFF) * 13 + (group >> 32)) & wrap
    while work.epoch[place] == epoch:
        entry = work.slot[place]
        if work.state[entry] == state and work.group[entry] == group:
            break
        place = (place + 1) & wrap
    return place


@inlined
def _enter(place: int, state: int, group: int, latest: int, block: int, entry: int, epoch: int, work: Work) -> None:
    work.epoch[place] = epoch
    work.slot[place] = entry
    work.state[entry] = state
    work.group[entry] = group
    work.latest[entry] = latest
    work.block[entry] = block


# -- output -------------------------------------------------------------------------------------------------------------


@inlined
def _output(i: int, count: int, vector: Vector, events: Events, machine: Machine, arrays: Arrays) -> tuple[int, bool]:
    """Add what the event completes to where it belongs: the column that 64 bits do not hold, or −1, and whether there is any."""
    plan = arrays.plan
    store = arrays.store
    work = arrays.work
    sums = arrays.sums
    rows = arrays.rows
    registers = arrays.registers
    extent = plan.scope[s.EXTENT]
    done = False
    bad = -1
    for e in range(count):
        if not machine.kind[work.state[e]] & 1:
            continue
        done = True
        block = work.block[e]
        if extent == s.OF_EVENT:
            at = row_of(events.position[i], events.base[i], work.group[e], plan, rows, registers)
            _note_start(block, at, vector, plan, store, rows)
            found = _fold_all(block, vector, plan, store, rows.ints, rows.reals, at * plan.kind.size)
        else:
            group = events.base[i]
            if sums.slot.size:
                group = group_of(group, work.group[e], sums, registers)
            if extent == s.OF_TABLE:
                found = _fold_all(block, vector, plan, store, sums.ints, sums.reals, group * plan.kind.size)
            else:
                found = _fold_panes(block, group, vector, plan, store, sums, registers)
                sums.latest[group] = max(sums.latest[group], work.latest[e])
        bad = max(bad, found)
        registers[s.STEPS] += plan.kind.size * (vector.end - vector.begin)
    return bad, done


@inlined
def _note_start(block: int, row: int, vector: Vector, plan: Plan, store: Store, rows: Rows) -> None:
    """The start of the first match, where the cells tell it."""
    if plan.scope[s.APART]:
        for k in range(vector.begin, vector.end):
            if store.ints[block + k]:
                rows.start[row] = min(rows.start[row], store.ints[vector.starts + k])
                return


@inlined
def _fold_all(block: int, vector: Vector, plan: Plan, store: Store, ints: I64, reals: s.F64, at: int) -> int:
    """Add all cells of a vector to one row; the column that 64 bits do not hold, or −1."""
    for c in range(plan.kind.size):
        begin = block + c * vector.cells
        s.fold(plan.kind[c], store.ints, store.reals, begin + vector.begin, begin + vector.end, ints, reals, at + c)
    return s.is_beyond(plan, ints, at, 1)


@inlined
def _fold_panes(block: int, group: int, vector: Vector, plan: Plan, store: Store, sums: Sums, registers: I64) -> int:
    """Add each cell of a vector to that of its pane; the column that 64 bits do not hold, or −1."""
    size = plan.scope[s.SIZE]
    columns = plan.kind.size
    into = panes_of(group, plan, store, sums, registers)
    for c in range(columns):
        kind = plan.kind[c]
        for k in range(vector.begin, vector.end):
            at = store.ints[vector.starts + k] % size
            s.add(kind, store.ints, store.reals, block + c * vector.cells + k, into + c * size + at, 1)
    for k in range(vector.begin, vector.end):
        bad = s.is_beyond(plan, store.ints, into + store.ints[vector.starts + k] % size, size)
        if bad >= 0:
            return bad
    return -1


# -- records ------------------------------------------------------------------------------------------------------------


@inlined
def _write(i: int, at: int, count: int, vector: Vector, events: Events, machine: Machine, arrays: Arrays) -> None:
    """Write the record of what goes on; where nothing does, it is given back."""
    store = arrays.store
    head = arrays.head
    work = arrays.work
    registers = arrays.registers
    arena = store.ints
    part = events.part[i]
    left = 0
    for e in range(count):
        if machine.kind[work.state[e]] & 2:
            given_back(work.block[e], vector.size, store, registers)
        else:
            left += 1
    size = class_of(HEADER + WORDS * left)
    if at and (not left or arena[at + SIZE] != size):
        given_back(at, arena[at + SIZE], store, registers)
        at = 0
    if not left:
        given_back(vector.starts, class_of(vector.cells), store, registers)
        head[part] = 0
        return
    if not at:
        at = taken(size, store, registers)
        head[part] = at
    arena[at + SIZE] = size
    arena[at + STAMP] = events.position[i]
    arena[at + COUNT] = left
    arena[at + CELLS] = vector.cells
    arena[at + BEGIN] = vector.begin
    arena[at + END] = vector.end
    arena[at + STARTS] = vector.starts
    word = at + HEADER
    for e in range(count):
        if not machine.kind[work.state[e]] & 2:
            arena[word] = work.state[e]
            arena[word + 1] = work.group[e]
            arena[word + 2] = work.latest[e]
            arena[word + 3] = work.block[e]
            word += WORDS


@inlined
def _release(part: int, plan: Plan, store: Store, head: I64, registers: I64) -> None:
    """Give all that a partition's record has back. O(entries)."""
    at = head[part]
    if not at:
        return
    arena = store.ints
    cells = arena[at + CELLS]
    for e in range(arena[at + COUNT]):
        given_back(arena[at + HEADER + WORDS * e + 3], class_of(plan.kind.size * cells), store, registers)
    given_back(arena[at + STARTS], class_of(cells), store, registers)
    given_back(at, arena[at + SIZE], store, registers)
    head[part] = 0


@jit
def sweep(plan: Plan, store: Store, head: I64, low: I64, registers: I64) -> None:
    """Release the records in which nothing is in the window any more; ``low``: by partition, or one for all. O(entries)."""
    arena = store.ints
    for part in range(head.size):
        at = head[part]
        if not at:
            continue
        alive = not plan.scope[s.APART]
        for e in range(arena[at + COUNT]):
            alive = alive or arena[at + HEADER + WORDS * e + 2] >= low[part if low.size > 1 else 0]
        if plan.scope[s.CONSUME] == CONSUME_ANY and arena[at + STAMP] <= registers[s.CONSUMED]:
            alive = False
        if not alive:
            _release(part, plan, store, head, registers)


@jit
def firsts(plan: Plan, column: int, store: Store, head: I64, found: I64) -> int:
    """The numbers of a column of all cells; gives how many. Called with an empty array it only counts. O(cells)."""
    arena = store.ints
    count = 0
    for part in range(head.size):
        at = head[part]
        if not at:
            continue
        for e in range(arena[at + COUNT]):
            block = arena[at + HEADER + WORDS * e + 3]
            for k in range(arena[at + BEGIN], arena[at + END]):
                if found.size:
                    found[count] = arena[block + column * arena[at + CELLS] + k]
                count += 1
    return count


@jit
def pack(plan: Plan, store: Store, head: I64, words: I64) -> int:
    """Write the records one after the other: partition, stamp, entries, cells, starts; by entry state, group, latest, numbers.

    Gives the words used. Called with an empty array it only counts.
    """
    arena = store.ints
    columns = plan.kind.size
    used = 0
    for part in range(head.size):
        at = head[part]
        if not at:
            continue
        cells = arena[at + END] - arena[at + BEGIN]
        if words.size:
            words[used] = part
            words[used + 1] = arena[at + STAMP]
            words[used + 2] = arena[at + COUNT]
            words[used + 3] = cells
            for k in range(cells):
                words[used + 4 + k] = arena[arena[at + STARTS] + arena[at + BEGIN] + k]
        used += 4 + cells
        for e in range(arena[at + COUNT]):
            word = at + HEADER + WORDS * e
            if words.size:
                for k in range(3):
                    words[used + k] = arena[word + k]
                for c in range(columns):
                    begin = arena[word + 3] + c * arena[at + CELLS] + arena[at + BEGIN]
                    for k in range(cells):
                        words[used + 3 + c * cells + k] = arena[begin + k]
            used += 3 + columns * cells
    return used


@jit
def unpack(words: I64, renamed: I64, states: I64, plan: Plan, store: Store, head: I64, registers: I64) -> int:
    """Put packed records into blocks, with partitions and states renamed; DONE, or GROW_ARENA with nothing done."""
    columns = plan.kind.size
    need = 16
    at = 0
    while at < words.size:
        entries, cells = words[at + 2], words[at + 3]
        room = max(cells, (8 << class_of(columns)) // columns)
        need += (
            (entries + 1) * (16 << class_of(columns * room)) + 2 * (HEADER + WORDS * entries) + (16 << class_of(room))
        )
        at += 4 + cells + entries * (3 + columns * cells)
    if need > store.ints.size:
        registers[s.NEED] = need
        return GROW_ARENA
    arena = store.ints
    at = 0
    while at < words.size:
        part, stamp, entries, length = renamed[words[at]], words[at + 1], words[at + 2], words[at + 3]
        size = class_of(columns * max(length, 1))
        while (8 << size) // columns < length:
            size += 1
        cells = (8 << size) // columns
        starts = taken(class_of(cells), store, registers)
        for k in range(length):
            arena[starts + k] = words[at + 4 + k]
        at += 4 + length
        record = class_of(HEADER + WORDS * entries)
        here = taken(record, store, registers)
        head[part] = here
        arena[here + SIZE] = record
        arena[here + STAMP] = stamp
        arena[here + COUNT] = entries
        arena[here + CELLS] = cells
        arena[here + BEGIN] = 0
        arena[here + END] = length
        arena[here + STARTS] = starts
        for e in range(entries):
            word = here + HEADER + WORDS * e
            block = taken(size, store, registers)
            arena[word] = states[words[at]]
            arena[word + 1] = words[at + 1]
            arena[word + 2] = words[at + 2]
            arena[word + 3] = block
            for c in range(columns):
                for k in range(length):
                    arena[block + c * cells + k] = words[at + 3 + c * length + k]
            at += 3 + columns * length
    return DONE


@jit
def states_in(words: I64, columns: int, seen: Bits) -> None:
    """Mark the automaton states that packed records name."""
    at = 0
    while at < words.size:
        entries, cells = words[at + 2], words[at + 3]
        at += 4 + cells
        for _ in range(entries):
            seen[words[at]] = True
            at += 3 + columns * cells
