"""What edges ask of runs, and what selecting an event does to their value vectors (SASE+ paper, sections 3.2 and 5.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._jit import called, inlined
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.structure import I64, Events, Machine, Memory, Runs
from stretto.engines.shared.scalar import greatest, least, mark, real, word

#: The query's conditions, as the kernel is handed them.
conditions_at = called(numbers=6, matrices=3)


@inlined
def holds(
    theta: Any, edge: int, run: int, row: int, node: int, events: Events, machine: Machine, memory: Memory
) -> bool:
    """Whether what an edge asks beyond its own event holds for a run. O(1), or O(events of the run) for every ``a[i]``.

    Bit 0 of ``V[0, 0]`` is noted where an integer beyond 64 bits decides: not where another of its conditions is false anyway.
    """
    runs, nodes = memory.runs, memory.nodes
    V = runs.V
    unknown = False
    if machine.asks[edge] and theta(edge, run, row, node, s.NIL, events.constants[row], V, events.C, nodes.P) == 0:
        unknown = V[0, 0] & 1 != 0
        if not unknown:
            return False
        V[0, 0] &= ~1
    edges = machine.asks.size
    for at in range(machine.each_first[edge], machine.each_first[edge + 1]):
        one = runs.node[run]
        while one != s.NIL:
            mine = nodes.label[one] == machine.each_component[at]
            if mine and theta(edges + at, run, row, node, one, events.constants[row], V, events.C, nodes.P) == 0:
                if V[0, 0] & 1 == 0:
                    return False
                V[0, 0] &= ~1
                unknown = True
            one = nodes.previous[one]
    if unknown:
        V[0, 0] |= 1
    return not unknown


@inlined
def passes(
    theta: Any, leave: int, begin: int, run: int, i: int, events: Events, machine: Machine, memory: Memory
) -> bool:
    """Whether a run may leave its Kleene plus by an edge (less than 0: nothing is asked), and begin what comes behind it by another.

    Where an integer beyond 64 bits decides what one of these edges asks, and the other says no, it is no overflow.
    """
    V = memory.runs.V
    noted = mark(V)
    leaves = leave < 0 or holds(theta, leave, run, i, s.NIL, events, machine, memory)
    unknown = mark(V)
    begins = (leaves or unknown != 0) and holds(theta, begin, run, i, s.NIL, events, machine, memory)
    if begins or V[0, 0] != 0:
        noted |= unknown | V[0, 0]
    V[0, 0] = noted
    return leaves and begins


@inlined
def _add(kind: int, run: int, slot: int, new: int, V: I64) -> None:
    """One more value to what a slot aggregates; bit 1 of ``V[0, 0]`` is noted where a sum leaves 64 bits."""
    old = V[run, slot]
    if kind == 4:  # SUM
        if (new > 0 and old > 9223372036854775807 - new) or (new < 0 and old < -9223372036854775808 - new):
            V[0, 0] |= 2
        else:
            V[run, slot] = old + new
    elif kind == 5:
        V[run, slot] = word(real(old) + real(new))
    elif kind == 6:
        V[run, slot] = min(old, new)
    elif kind == 7:
        V[run, slot] = word(least(real(old), real(new)))
    elif kind == 8:
        V[run, slot] = max(old, new)
    elif kind == 10:  # WIDE_SUM and CARRY; the halves of 2^64 are taken off before what is added leaves 64 bits
        if new > 0 and old > 9223372036854775807 - new:
            V[run, slot] = (old - 9223372036854775807) + (new - 9223372036854775807) - 2
            V[run, slot + 1] += 1
        elif new < 0 and old < -9223372036854775808 - new:
            V[run, slot] = (old + 9223372036854775807) + (new + 9223372036854775807) + 2
            V[run, slot + 1] -= 1
        else:
            V[run, slot] = old + new
    else:
        V[run, slot] = word(greatest(real(old), real(new)))


@inlined
def apply(machine: Machine, component: int, how: int, run: int, row: int, events: Events, runs: Runs) -> None:
    """Bring V up to date with a selected event; ``how``: 0 begin, 1 take, 2 begin once more."""
    V, C = runs.V, events.C
    begins = how == 0
    operations = 3 * component + how
    for at in range(machine.op_first[operations], machine.op_first[operations + 1]):
        kind, slot, column = machine.op_kind[at], machine.op_slot[at], machine.op_column[at]
        known = column == 0 or (C[row, 0] >> column) & 1 == 1
        had = not begins and (V[run, 0] >> slot) & 1 == 1
        bit = np.int64(1) << slot
        if kind <= 1:  # FIRST, LAST
            V[run, slot] = C[row, column]
            V[run, 0] = V[run, 0] | bit if known else V[run, 0] & ~bit
        elif kind == 2:  # LENGTH
            V[run, slot] = 1 if begins else V[run, slot] + 1
            V[run, 0] |= bit
        elif kind == 3:  # COUNT
            V[run, slot] = (0 if begins else V[run, slot]) + (1 if known else 0)
            V[run, 0] |= bit
        elif kind >= 12:  # HELD, ROUND
            V[run, slot] = V[run, slot] + 1 if kind == 13 and how == 1 else 1
            V[run, 0] |= bit
        elif not known:
            if begins:
                V[run, slot] = 0
                V[run, 0] &= ~bit
                if kind == 10:
                    V[run, slot + 1] = 0
                    V[run, 0] &= ~(bit << 1)
        elif not had:
            V[run, slot] = C[row, column]
            V[run, 0] |= bit
            if kind == 10:
                V[run, slot + 1] = 0
                V[run, 0] |= bit << 1
        else:
            _add(kind, run, slot, C[row, column], V)
