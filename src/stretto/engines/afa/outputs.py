"""Outputs: one for each (first event, last event, register), as differences (SEMANTICS: AFA, output)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.afa.index import find
from stretto.engines.afa.live import sort
from stretto.engines.afa.structure import (
    CELLS,
    FIELDS,
    FINAL,
    FROM,
    FROM_LE,
    FROM_SEQ,
    GAINED,
    HOME,
    LE,
    LEAST,
    LENGTH,
    NIL,
    OF,
    PART,
    PREV,
    REG,
    RETRACTED,
    RIGHT,
    ROW,
    ROWS,
    SEQ,
    SIGN,
    START,
    START_LE,
    START_SEQ,
    STATE,
    STEP,
    TO,
    TO_LE,
    TO_SEQ,
    Events,
    Graph,
    Memory,
    Out,
    Work,
)

__all__ = ["pick", "put", "settle", "trace", "write"]

I64 = NDArray[np.int64]


@inlined
def pick(z: int, of: I64, count: int, at: int, graph: Graph, P: I64, work: Work) -> int:
    """Add the finals of ``of[: count]`` to ``picked``; anchors in it ignore event ``z``. Where it ends; −1: no room."""
    extra = REG + graph.real.size
    for k in range(count):
        p = of[k]
        if p == NIL:
            continue
        final = graph.states[P[STATE, p], FINAL]
        if final == 1 or (final == 2 and not (graph.ignores and P[extra + HOME, p] != z)):
            if at == work.picked.size:
                return -1
            work.picked[at] = p
            at += 1
    return at


@inlined
def _word_order(a: int, b: int, real: bool) -> int:
    """−1, 0 or 1 as one value of the register is before another; NaN is behind all."""
    if a == b:
        return 0
    if not real:
        return -1 if a < b else 1
    x, y = np.int64(a).view(np.float64), np.int64(b).view(np.float64)
    if x < y or (x == x and y != y):
        return -1
    if y < x or (y == y and x != x):
        return 1
    return -1 if a < b else 1


@inlined
def _order(a: int, b: int, graph: Graph, P: I64) -> int:
    for field in range(graph.real.size):
        found = _word_order(P[REG + field, a], P[REG + field, b], graph.real[field])
        if found != 0:
            return found
    return 0


FEW = 16  #: more outputs of one first event than this are sorted as a heap


@jit
def _sift(at: int, begin: int, end: int, graph: Graph, P: I64, picked: I64) -> None:
    """Let ``picked[begin + at]`` sink to its place in a heap with the last register at its top."""
    size = end - begin
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _order(picked[begin + child], picked[begin + child + 1], graph, P) < 0:
            child += 1
        if _order(picked[begin + at], picked[begin + child], graph, P) >= 0:
            return
        picked[begin + at], picked[begin + child] = picked[begin + child], picked[begin + at]
        at = child


@jit
def _sort_group(begin: int, end: int, graph: Graph, P: I64, picked: I64) -> None:
    """Put ``picked[begin: end]`` in the order of their registers. O(n log n), O(n) where they are."""
    if end - begin <= FEW:
        for at in range(begin + 1, end):
            here, to = picked[at], at
            while to > begin and _order(here, picked[to - 1], graph, P) < 0:
                picked[to] = picked[to - 1]
                to -= 1
            picked[to] = here
        return
    at = begin + 1
    while at < end and _order(picked[at - 1], picked[at], graph, P) <= 0:
        at += 1
    if at == end:
        return
    for at in range((end - begin) // 2 - 1, -1, -1):
        _sift(at, begin, end, graph, P, picked)
    for last in range(end - 1, begin, -1):
        picked[begin], picked[last] = picked[last], picked[begin]
        _sift(0, begin, last, graph, P, picked)


@jit
def put(count: int, z: int, mixed: bool, at: int, step: int, rows: I64, m: Memory) -> int:
    """Write the outputs of ``picked[: count]``, finals at event ``z``, to ``rows`` from ``at`` on: where they end; −1: no room.

    ``mixed``: they are not in the order of first events. Those of one first event are put in the order of their registers, equal
    ones once.
    """
    graph, P, events, work = m.graph, m.P, m.events, m.work
    picked = work.picked
    if mixed:
        sort(count, picked, P)
    begin = 0
    while begin < count:
        end = begin + 1
        start = P[START, picked[begin]]
        while end < count and P[START, picked[end]] == start:
            end += 1
        if end - begin > 1:
            _sort_group(begin, end, graph, P, picked)
        for k in range(begin, end):
            p = picked[k]
            if k > begin and not graph.bag and _order(p, picked[k - 1], graph, P) == 0:
                continue
            if at == rows.shape[0]:
                return -1
            rows[at, SIGN] = 1
            rows[at, PART] = events.X[z, OF]
            rows[at, FROM], rows[at, FROM_LE], rows[at, FROM_SEQ] = start, P[START_LE, p], P[START_SEQ, p]
            rows[at, TO], rows[at, TO_LE], rows[at, TO_SEQ] = events.X[z, ROW], events.X[z, LE], events.X[z, SEQ]
            rows[at, RIGHT], rows[at, LENGTH], rows[at, STEP] = P[LEAST, p], 0, step
            for field in range(graph.real.size):
                rows[at, FIELDS + field] = P[REG + field, p]
            at += 1
        begin = end
    return at


@inlined
def _row_order(a: I64, i: int, b: I64, j: int, graph: Graph) -> int:
    for column in (TO_LE, TO_SEQ, FROM_LE, FROM_SEQ):
        if a[i, column] != b[j, column]:
            return -1 if a[i, column] < b[j, column] else 1
    for field in range(graph.real.size):
        found = _word_order(a[i, FIELDS + field], b[j, FIELDS + field], graph.real[field])
        if found != 0:
            return found
    return 0


@inlined
def _copy(source: I64, i: int, target: I64, j: int, fields: int) -> None:
    for column in range(FIELDS + fields):
        target[j, column] = source[i, column]


@jit
def settle(graph: Graph, work: Work, registers: I64) -> None:
    """Leave out of ``lost`` and ``won`` what stands in both: one pass, as both are in order."""
    lost, won = work.lost, work.won
    fields = graph.real.size
    i = j = kept_lost = kept_won = 0
    while i < registers[RETRACTED] or j < registers[GAINED]:
        order = 0
        if i == registers[RETRACTED]:
            order = 1
        elif j == registers[GAINED]:
            order = -1
        else:
            order = _row_order(lost, i, won, j, graph)
        if order == 0 and lost[i, RIGHT] == won[j, RIGHT]:
            i, j = i + 1, j + 1
            continue
        if order <= 0:
            _copy(lost, i, lost, kept_lost, fields)
            kept_lost, i = kept_lost + 1, i + 1
        if order >= 0:
            _copy(won, j, won, kept_won, fields)
            kept_won, j = kept_won + 1, j + 1
    registers[RETRACTED], registers[GAINED] = kept_lost, kept_won


@jit
def write(graph: Graph, work: Work, out: Out, registers: I64) -> None:
    """Retractions, then insertions; there is room."""
    at = registers[ROWS]
    for i in range(registers[RETRACTED]):
        _copy(work.lost, i, out.rows, at, graph.real.size)
        out.rows[at, SIGN] = -1
        at += 1
    for i in range(registers[GAINED]):
        _copy(work.won, i, out.rows, at, graph.real.size)
        at += 1
    registers[ROWS] = at


@inlined
def _before(at: int, x: int, taken: int, given: int, events: Events) -> int:
    """The event before ``at`` once ``taken`` has given its place, behind ``x``, to ``given``."""
    if taken == given:
        return int(events.X[at, PREV])
    if at == given:
        return x
    before = int(events.X[at, PREV])
    if before == (taken if taken != NIL else x):
        return given if given != NIL else x
    return before


@jit
def trace(
    rows: I64,
    begin: int,
    end: int,
    x: int,
    taken: int,
    given: int,
    m: Memory,
) -> bool:
    """Write the rows of the events of outputs ``rows[begin: end]`` behind the output's cells; false where there is no room.

    After the change if ``given`` or ``taken`` says so, else (both NIL) as it is. O(events of the outputs).
    """
    events, parts, out, registers = m.events, m.parts, m.out, m.registers
    for i in range(begin, end):
        if given != NIL and events.X[given, ROW] == rows[i, TO]:
            at = given
        else:
            at = find(rows[i, PART], rows[i, TO_LE], rows[i, TO_SEQ], m.graph.ignores, events, parts)
        first = registers[CELLS]
        while True:
            if registers[CELLS] == out.cells.size:
                return False
            out.cells[registers[CELLS]] = events.X[at, ROW]
            registers[CELLS] += 1
            if events.X[at, ROW] == rows[i, FROM]:
                break
            at = _before(at, x, taken, given, events)
        low, high = first, registers[CELLS] - 1
        while low < high:
            out.cells[low], out.cells[high] = out.cells[high], out.cells[low]
            low, high = low + 1, high - 1
        rows[i, LENGTH] = registers[CELLS] - first
    return True
