"""What the matches come to that another engine holds as paths through nodes, without a list of them.

A node of the structure (:mod:`~stretto.engines.shared.counting`) is an event, behind which another node lies, or leads to two
nodes, each of which has matches that the other has not. So what the matches behind a node come to is what those behind the next
node do, with the event, or the numbers of both together: each node is looked at once, whatever the number of matches. Its numbers
are a vector of :mod:`~stretto.engines.totals.structure`: of one cell, or where windows begin every so often of one for each pane.

With one cell they hold so long as the earliest start behind the node is in the window. With panes they always do: what has left the
window is in cells that are not read any more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto._jit import DONE, GROW_ARENA, GROW_OUTPUT, GROW_STACK, GROW_TABLE, OVERFLOW, inlined
from stretto.engines.shared.counting import Graph
from stretto.engines.totals import structure as s
from stretto.engines.totals.adding import Values, Vector, add_marked, begin, said
from stretto.engines.totals.blocks import class_of
from stretto.engines.totals.giving import close_before, group_of, panes_of, row_of
from stretto.engines.totals.structure import I64, Plan, Rows, Store, Sums

# Registers, in place of those of the engine that holds numbers by state.
OPEN = s.VISITED  #: 1 while the matches of the event at hand are not all added up
EVENTS = s.TRIGGERS  #: events of which the values are known


class Paths(NamedTuple):
    """Matches as paths through nodes with lower numbers; 0 is none."""

    graph: Graph
    mark: I64  #: [node]: which variables hold its event; −1: it is no event, but leads to two nodes


class Seen(NamedTuple):
    """The events that matches may hold, in their order."""

    position: I64
    pane: I64  #: of a window; 0 where there are none
    base: I64  #: the group by keys
    values: Values


class Memo(NamedTuple):
    """What is known of nodes."""

    known: I64  #: [node]: 1: its numbers are there
    least: I64  #: [node]: the key of the earliest start behind it; where windows have panes beyond all
    latest: I64  #: [node]: the pane of the latest start
    part: I64  #: [node]: what the events behind it say of groups
    store: Store  #: [node · columns · cells + column · cells + cell]


class Adding(NamedTuple):
    """All that is read and written while matches are added up."""

    seen: Seen
    memo: Memo
    waiting: I64  #: nodes still to be looked at
    plan: Plan
    store: Store  #: vectors of groups in windows
    sums: Sums
    rows: Rows
    registers: I64


@inlined
def add_paths(paths: Paths, low: int, roots: I64, top: int, end: int, adding: Adding) -> int:
    """Add the matches behind ``roots[:top]`` that begin at ``low`` or later, and end at the event in position ``end``.

    Gives a status: on any but DONE and OVERFLOW the caller makes the room that is asked for, and calls again; what was found of nodes
    stays. Cost: O(columns · cells) for each node behind the roots that is new or, of one cell, has lost a start to the window.
    """
    plan, registers, seen = adding.plan, adding.registers, adding.seen
    at = event_at(end, seen, registers)
    least = 0
    if plan.scope[s.EXTENT] == s.OF_WINDOW:
        status = close_before(seen.pane[at], plan, adding.store, adding.sums, adding.rows, registers)
        if status != DONE:
            return status
        least = int(registers[s.NEXT] * plan.scope[s.SLIDE])
        registers[s.LAST_LOW] = least
    for k in range(top):
        if paths.graph.start[roots[k]] >= low:
            status = _look(paths, low, least, roots[k], adding)
            if status != DONE:
                return status
    status = has_room(top, plan, adding.store, adding.sums, adding.rows, registers)
    if status != DONE:
        return status
    bad = -1
    for k in range(top):
        if paths.graph.start[roots[k]] >= low and adding.memo.latest[roots[k]] >= least:
            bad = max(bad, _give(roots[k], least, at, adding))
    if bad >= 0:
        registers[s.BAD_COLUMN] = bad
        return OVERFLOW
    return DONE


@inlined
def event_at(position: int, seen: Seen, registers: I64) -> int:
    """Where the event in a position is."""
    return int(np.searchsorted(seen.position[: registers[EVENTS]], position))


@inlined
def _is_known(node: int, low: int, memo: Memo) -> bool:
    return bool(memo.known[node] and memo.least[node] >= low)


@inlined
def _look(paths: Paths, low: int, least: int, root: int, adding: Adding) -> int:
    """Find the numbers of a node, and first those of all nodes behind it that are not known; DONE or GROW_STACK."""
    graph, memo, waiting, registers = paths.graph, adding.memo, adding.waiting, adding.registers
    size = 1
    waiting[0] = root
    while size:
        node = waiting[size - 1]
        if _is_known(node, low, memo):
            size -= 1
            continue
        left, right = graph.left[node], graph.right[node]
        if right and graph.start[right] < low:
            right = 0
        if size + 2 > waiting.size:
            return GROW_STACK
        before = size
        if left and not _is_known(left, low, memo):
            waiting[size] = left
            size += 1
        if right and not _is_known(right, low, memo):
            waiting[size] = right
            size += 1
        if size > before:
            continue
        size -= 1
        _find(paths, node, left, right, least, adding)
        registers[s.STEPS] += 1
    return DONE


@inlined
def _find(paths: Paths, node: int, left: int, right: int, least: int, adding: Adding) -> None:
    """Find the numbers of a node whose next ones are known. O(columns · cells)."""
    graph, memo, plan, seen = paths.graph, adding.memo, adding.plan, adding.seen
    columns = plan.kind.size
    cells = cells_of(plan)
    own = node * columns * cells
    for c in range(columns):
        s.clear(plan.kind[c], memo.store.ints, memo.store.reals, own + c * cells, own + (c + 1) * cells)
    mark = paths.mark[node] + 1
    at = event_at(graph.position[node], seen, adding.registers) if mark else 0
    memo.known[node] = 1
    if not left:
        memo.least[node] = s.HIGHEST if plan.scope[s.EXTENT] == s.OF_WINDOW else graph.start[node]
        memo.latest[node] = seen.pane[at]
        memo.part[node] = said(at, mark, 0, seen.values, plan)
        begin(at, mark, graph.position[node], own + seen.pane[at] % cells, cells, seen.values, plan, memo.store)
        return
    memo.least[node] = memo.least[left]
    memo.latest[node] = memo.latest[left]
    memo.part[node] = said(at, mark, memo.part[left], seen.values, plan)
    _add_node(at, mark, left, own, least, adding)
    if right:
        memo.least[node] = min(memo.least[left], memo.least[right])
        memo.latest[node] = max(memo.latest[left], memo.latest[right])
        _add_node(at, mark, right, own, least, adding)


@inlined
def cells_of(plan: Plan) -> int:
    """How many cells a vector has."""
    return int(plan.scope[s.SIZE]) if plan.scope[s.EXTENT] == s.OF_WINDOW else 1


@inlined
def _add_node(at: int, mark: int, source: int, own: int, least: int, adding: Adding) -> None:
    """Add the numbers of a node from the pane ``least`` on, with the event at hand if there is a mark. O(columns · cells)."""
    memo, plan = adding.memo, adding.plan
    cells = cells_of(plan)
    from_ = source * plan.kind.size * cells
    first = max(least, memo.latest[source] - cells + 1)
    length = memo.latest[source] - first + 1
    if length > 0:
        cell = first % cells
        some = min(length, cells - cell)
        vector = Vector(cells, cell, cell + some, 0, 0)
        add_marked(at, mark, from_, own, vector, adding.seen.values, plan, memo.store, adding.registers)
        if length > some:
            vector = Vector(cells, 0, length - some, 0, 0)
            add_marked(at, mark, from_, own, vector, adding.seen.values, plan, memo.store, adding.registers)


# -- what is complete ---------------------------------------------------------------------------------------------------


@inlined
def has_room(top: int, plan: Plan, store: Store, sums: Sums, rows: Rows, registers: I64) -> int:
    """Whether there is room for what so many roots can need; a status."""
    extent = plan.scope[s.EXTENT]
    if extent == s.OF_EVENT and registers[s.ROWS] + top > rows.end.size:
        registers[s.NEED] = registers[s.ROWS] + top
        return GROW_OUTPUT
    if extent == s.OF_WINDOW:
        need = top * (8 << class_of(plan.kind.size * plan.scope[s.SIZE]))
        if registers[s.TOP] + need > store.ints.size:
            registers[s.NEED] = need
            return GROW_ARENA
    if extent != s.OF_EVENT and sums.slot.size:
        groups = registers[s.GROUPS] + top
        if groups > sums.base.size or 2 * groups > sums.slot.size:
            registers[s.NEED] = groups
            return GROW_TABLE
    return DONE


@inlined
def _give(root: int, least: int, at: int, adding: Adding) -> int:
    """Add the numbers of a node to where they belong; the column that 64 bits do not hold, or −1. O(columns · cells)."""
    memo, plan, sums, rows, registers = adding.memo, adding.plan, adding.sums, adding.rows, adding.registers
    columns = plan.kind.size
    cells = cells_of(plan)
    own = root * columns * cells
    part = memo.part[root]
    base = adding.seen.base[at]
    if plan.scope[s.EXTENT] == s.OF_EVENT:
        row = row_of(adding.seen.position[at], base, part, plan, rows, registers)
        return _given(own, row * columns, plan, memo.store, rows.ints, rows.reals)
    group = group_of(base, part, sums, registers) if sums.slot.size else base
    if plan.scope[s.EXTENT] == s.OF_TABLE:
        return _given(own, group * columns, plan, memo.store, sums.ints, sums.reals)
    into = panes_of(group, plan, adding.store, sums, registers)
    sums.latest[group] = max(sums.latest[group], memo.latest[root])
    bad = -1
    for pane in range(max(least, memo.latest[root] - cells + 1), memo.latest[root] + 1):
        cell = pane % cells
        for c in range(columns):
            here = own + c * cells + cell
            there = into + c * cells + cell
            s.fold(
                plan.kind[c],
                memo.store.ints,
                memo.store.reals,
                here,
                here + 1,
                adding.store.ints,
                adding.store.reals,
                there,
            )
        bad = max(bad, s.is_beyond(plan, adding.store.ints, into + cell, cells))
    return bad


@inlined
def _given(own: int, at: int, plan: Plan, store: Store, ints: I64, reals: s.F64) -> int:
    """Add a vector of one cell to a row of numbers; the column that 64 bits do not hold, or −1."""
    for c in range(plan.kind.size):
        s.fold(plan.kind[c], store.ints, store.reals, own + c, own + c + 1, ints, reals, at + c)
    return s.is_beyond(plan, ints, at, 1)
