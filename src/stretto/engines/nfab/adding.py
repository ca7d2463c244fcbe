"""The NFAb engine over many events, whose matches are counted and added up on its lists (:mod:`stretto.engines.totals.paths`)."""

from __future__ import annotations

from stretto._jit import DONE, HANDED_OVER, jit
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.kernels import advance
from stretto.engines.nfab.structure import Events, Machine, Memory
from stretto.engines.shared.counting import Counts, Graph
from stretto.engines.tecs.enumerate import Output
from stretto.engines.totals import paths as t
from stretto.engines.totals import structure as totals
from stretto.engines.totals.paths import Adding, Paths, add_paths


@jit
def advance_adding(
    conditions: int, events: Events, machine: Machine, memory: Memory, out: Output, counts: Counts, adding: Adding
) -> int:
    """:func:`~stretto.engines.nfab.kernels.advance` of a machine that hands over, with what each event's matches come to.

    Cost: that, and what adding up costs. While ``adding`` is open, a status is about its arrays.
    """
    runs, nodes, scratch, registers = memory.runs, memory.nodes, memory.scratch, memory.registers
    while True:
        if not adding.registers[t.OPEN]:
            status = advance(conditions, events, machine, memory, out, counts)
            if status != HANDED_OVER:
                return status
            for at in range(registers[s.QUEUED]):
                scratch.stack[at] = runs.node[scratch.queue[at]]
            adding.registers[t.OPEN] = 1
        i = registers[s.CURSOR]
        graph = Graph(nodes.previous, nodes.other, nodes.start, nodes.position)
        found = Paths(graph, nodes.label)
        status = add_paths(found, events.low[i], scratch.stack, registers[s.QUEUED], events.position[i], adding)
        if status != DONE:
            return status
        adding.registers[t.OPEN] = 0
        registers[s.STEPS] += adding.registers[totals.STEPS]
        adding.registers[totals.STEPS] = 0
