"""What edges, windows and consumption allow: from which node an event is reached, and where a match may begin."""

from __future__ import annotations

from stretto._jit import inlined
from stretto.engines.timed import structure as s
from stretto.engines.timed.structure import Events, Machine, Nodes, Parts

#: A kernel pauses after so many nodes, which takes well below a second, so that ^C acts soon.
PAUSE_AFTER = 1 << 24


@inlined
def reaches(
    node: int, edge: int, rank: int, clock: float, stop: int, machine: Machine, nodes: Nodes, least: int, low: int
) -> bool:
    """Whether an edge leads from a node to an event; once it does not, it leads from no older node either.

    ``least``: partial matches that begin below this position are forgotten, ``low``: those below this key.
    """
    if nodes.position[node] < least or nodes.best[node] < low or nodes.position[node] < stop:
        return False
    if machine.contiguous[edge] and nodes.rank[node] != rank - 1:
        return False
    return not (machine.bounded[edge] and clock - nodes.clock[node] > machine.most[edge])


@inlined
def forgotten(part: int, parts: Parts, registers: s.I64) -> int:
    """The least position at which a partial match may begin, after what CONSUME BY has forgotten."""
    return int(max(registers[s.CONSUMED], parts.consumed[part])) + 1


@inlined
def is_spoilt(node: int, measure: float, machine: Machine, nodes: Nodes) -> bool:
    """Whether an event that must not come before a match did, of one that begins with a node and ends at a measure."""
    return bool(nodes.spoilt[node] and measure - nodes.bad[node] <= machine.window[0])


@inlined
def begins(at: int, node: int, events: Events, machine: Machine, nodes: Nodes, registers: s.I64) -> bool:
    """Whether a match that ends at the event at hand may begin with a node."""
    key = nodes.rank[node] if registers[s.COUNTED] else nodes.position[node]
    return bool(key >= registers[s.LOW] and not is_spoilt(node, events.measure[at], machine, nodes))
