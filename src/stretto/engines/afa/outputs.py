"""Outputs: one for each (first event, last event, register), as differences (SEMANTICS: AFA, output)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.index import find
from stretto.engines.afa.live import sort
from stretto.engines.afa.structure import Events, Graph, Memory, Out, Work

I64 = NDArray[np.int64]


@inlined
def pick(z: int, of: I64, count: int, at: int, graph: Graph, P: I64, work: Work) -> int:
    """Add the finals of ``of[: count]`` to ``picked``; anchors in it ignore event ``z``. Where it ends; −1: no room."""
    extra = s.REG + graph.real.size
    for k in range(count):
        p = of[k]
        if p == s.NIL:
            continue
        final = graph.states[P[s.STATE, p], s.FINAL]
        if final == 1 or (final == 2 and not (graph.ignores and P[extra + s.HOME, p] != z)):
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
        found = _word_order(P[s.REG + field, a], P[s.REG + field, b], graph.real[field])
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
        start = P[s.START, picked[begin]]
        while end < count and P[s.START, picked[end]] == start:
            end += 1
        if end - begin > 1:
            _sort_group(begin, end, graph, P, picked)
        for k in range(begin, end):
            p = picked[k]
            if k > begin and not graph.bag and _order(p, picked[k - 1], graph, P) == 0:
                continue
            if at == rows.shape[0]:
                return -1
            rows[at, s.SIGN] = 1
            rows[at, s.PART] = events.X[z, s.OF]
            rows[at, s.FROM], rows[at, s.FROM_LE], rows[at, s.FROM_SEQ] = start, P[s.START_LE, p], P[s.START_SEQ, p]
            rows[at, s.TO], rows[at, s.TO_LE], rows[at, s.TO_SEQ] = (
                events.X[z, s.ROW],
                events.X[z, s.LE],
                events.X[z, s.SEQ],
            )
            rows[at, s.RIGHT], rows[at, s.LENGTH], rows[at, s.STEP] = P[s.LEAST, p], 0, step
            for field in range(graph.real.size):
                rows[at, s.FIELDS + field] = P[s.REG + field, p]
            at += 1
        begin = end
    return at


@inlined
def _row_order(a: I64, i: int, b: I64, j: int, graph: Graph) -> int:
    for column in (s.TO_LE, s.TO_SEQ, s.FROM_LE, s.FROM_SEQ):
        if a[i, column] != b[j, column]:
            return -1 if a[i, column] < b[j, column] else 1
    for field in range(graph.real.size):
        found = _word_order(a[i, s.FIELDS + field], b[j, s.FIELDS + field], graph.real[field])
        if found != 0:
            return found
    return 0


@inlined
def _copy(source: I64, i: int, target: I64, j: int, fields: int) -> None:
    for column in range(s.FIELDS + fields):
        target[j, column] = source[i, column]


@jit
def settle(graph: Graph, work: Work, registers: I64) -> None:
    """Leave out of ``lost`` and ``won`` what stands in both: one pass, as both are in order."""
    lost, won = work.lost, work.won
    fields = graph.real.size
    i = j = kept_lost = kept_won = 0
    while i < registers[s.RETRACTED] or j < registers[s.GAINED]:
        order = 0
        if i == registers[s.RETRACTED]:
            order = 1
        elif j == registers[s.GAINED]:
            order = -1
        else:
            order = _row_order(lost, i, won, j, graph)
        if order == 0 and lost[i, s.RIGHT] == won[j, s.RIGHT]:
            i, j = i + 1, j + 1
            continue
        if order <= 0:
            _copy(lost, i, lost, kept_lost, fields)
            kept_lost, i = kept_lost + 1, i + 1
        if order >= 0:
            _copy(won, j, won, kept_won, fields)
            kept_won, j = kept_won + 1, j + 1
    registers[s.RETRACTED], registers[s.GAINED] = kept_lost, kept_won


@jit
def write(graph: Graph, work: Work, out: Out, registers: I64) -> None:
    """Retractions, then insertions; there is room."""
    at = registers[s.ROWS]
    for i in range(registers[s.RETRACTED]):
        _copy(work.lost, i, out.rows, at, graph.real.size)
        out.rows[at, s.SIGN] = -1
        at += 1
    for i in range(registers[s.GAINED]):
        _copy(work.won, i, out.rows, at, graph.real.size)
        at += 1
    registers[s.ROWS] = at


@inlined
def _before(at: int, x: int, taken: int, given: int, events: Events) -> int:
    """The event before ``at`` once ``taken`` has given its place, behind ``x``, to ``given``."""
    if taken == given:
        return int(events.X[at, s.PREV])
    if at == given:
        return x
    before = int(events.X[at, s.PREV])
    if before == (taken if taken != s.NIL else x):
        return given if given != s.NIL else x
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
        if given != s.NIL and events.X[given, s.ROW] == rows[i, s.TO]:
            at = given
        else:
            at = find(rows[i, s.PART], rows[i, s.TO_LE], rows[i, s.TO_SEQ], m.graph.ignores, events, parts)
        first = registers[s.CELLS]
        while True:
            if registers[s.CELLS] == out.cells.size:
                return False
            out.cells[registers[s.CELLS]] = events.X[at, s.ROW]
            registers[s.CELLS] += 1
            if events.X[at, s.ROW] == rows[i, s.FROM]:
                break
            at = _before(at, x, taken, given, events)
        low, high = first, registers[s.CELLS] - 1
        while low < high:
            out.cells[low], out.cells[high] = out.cells[high], out.cells[low]
            low, high = low + 1, high - 1
        rows[i, s.LENGTH] = registers[s.CELLS] - first
    return True
