"""Complete runs whose negation at the end may still be broken, as an event is read."""

from __future__ import annotations

from typing import Any

from stretto._jit import inlined
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.edges import holds
from stretto.engines.nfab.runs import keep, new_node
from stretto.engines.nfab.structure import Events, Machine, Memory


@inlined
def try_pending(theta: Any, run: int, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """A complete run whose negation at the end may be broken by the event."""
    runs, nodes, registers = memory.runs, memory.nodes, memory.registers
    components = machine.kleene.size
    for negation in range(machine.left.size):
        if machine.right[negation] == components and (events.bits[i] >> (2 * components + negation)) & 1:
            # Behind the last event in the order of the stream, and with the first in its window.
            late = nodes.start[runs.node[run]] < events.low[i]
            if events.position[i] > nodes.position[runs.node[run]] and not late:
                scratch_node = registers[s.HEAD]  # the event as a node of its own, for the time of the test
                new_node(components + negation, s.NIL, 0, i, events, machine, memory)
                registers[s.HEAD] = scratch_node
                if holds(theta, 3 * components + negation, run, i, scratch_node, events, machine, memory):
                    runs.state[run] = s.DEAD  # it is freed when its time has come
                    return
    keep(run, events.part[i], runs, memory.parts, registers)
