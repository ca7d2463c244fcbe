"""The tECS engine over many events, of whose matches a few are chosen (:mod:`stretto.engines.match_ops.top_k_kernel`)."""

from __future__ import annotations

from stretto._jit import DONE, HANDED_OVER, jit
from stretto.automata.determinize import SKIP
from stretto.engines.match_ops import top_k_arrays as k
from stretto.engines.match_ops.top_k_arrays import Paths, Picker, Seen
from stretto.engines.match_ops.top_k_kernel import pick
from stretto.engines.shared.counting import Counts, Graph
from stretto.engines.tecs import structure as s
from stretto.engines.tecs.enumerate import Output, Stack
from stretto.engines.tecs.kernels import Events, Machine, Records, Work, advance
from stretto.engines.tecs.structure import I64, Cells, Nodes


@jit
def advance_choosing(  # noqa: PLR0913 - those of advance, and two more
    events: Events,
    machine: Machine,
    nodes: Nodes,
    records: Records,
    work: Work,
    cells: Cells,
    stack: Stack,
    out: Output,
    counts: Counts,
    registers: I64,
    seen: Seen,
    picker: Picker,
) -> int:
    """:func:`~stretto.engines.tecs.kernels.advance`, which hands over the structure of each event that completes matches.

    Cost: that, and what choosing costs. While ``picker`` is open, a status is about its arrays.
    """
    while True:
        if not picker.registers[k.OPEN]:
            status = advance(events, machine, nodes, records, work, cells, stack, out, counts, registers)
            if status != HANDED_OVER:
                return status
        i = registers[s.CURSOR]
        graph = Graph(nodes.left, nodes.right, nodes.start, nodes.position)
        paths = Paths(graph, nodes.mark, nodes.left.size - 1, registers[s.TAIL], SKIP)
        status = pick(
            paths,
            registers[s.LOW],
            stack.node,
            registers[s.TOP],
            events.position[i],
            seen.time[i],
            seen.group[i],
            picker,
        )
        if status != DONE:
            return status
        registers[s.STEPS] += picker.registers[k.STEPS]
        picker.registers[k.STEPS] = 0
