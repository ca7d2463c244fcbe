"""The NFAb engine over many events, of whose matches a few are chosen (:mod:`stretto.engines.match_ops.top_k_kernel`)."""

from __future__ import annotations

from stretto._jit import DONE, HANDED_OVER, jit
from stretto.engines.match_ops import top_k_arrays as k
from stretto.engines.match_ops.top_k_arrays import Paths, Picker, Seen
from stretto.engines.match_ops.top_k_kernel import pick
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.kernels import advance
from stretto.engines.nfab.structure import Events, Machine, Memory
from stretto.engines.shared.counting import Counts, Graph
from stretto.engines.tecs.enumerate import Output


@jit
def advance_choosing(
    conditions: int,
    events: Events,
    machine: Machine,
    memory: Memory,
    out: Output,
    counts: Counts,
    seen: Seen,
    picker: Picker,
) -> int:
    """:func:`~stretto.engines.nfab.kernels.advance` of a machine that hands over, with what is chosen of each event's matches.

    Cost: that, and what choosing costs. While ``picker`` is open, a status is about its arrays.
    """
    runs, nodes, scratch, registers = memory.runs, memory.nodes, memory.scratch, memory.registers
    while True:
        if not picker.registers[k.OPEN]:
            status = advance(conditions, events, machine, memory, out, counts)
            if status != HANDED_OVER:
                return status
            for at in range(registers[s.QUEUED]):
                scratch.stack[at] = runs.node[scratch.queue[at]]
        i = registers[s.CURSOR]
        graph = Graph(nodes.previous, nodes.other, nodes.start, nodes.position)
        paths = Paths(graph, nodes.label, -1, s.NIL, -1)
        status = pick(
            paths,
            events.low[i],
            scratch.stack,
            registers[s.QUEUED],
            events.position[i],
            seen.time[i],
            seen.group[i],
            picker,
        )
        if status != DONE:
            return status
        registers[s.STEPS] += picker.registers[k.STEPS]
        picker.registers[k.STEPS] = 0
