"""Freeing nodes that no match to come can hold."""

from __future__ import annotations

import numpy as np

from stretto._jit import inlined, jit
from stretto.engines.timed import structure as s
from stretto.engines.timed.structure import Links, Machine, Nodes, Parts

LAST = np.iinfo(np.int64).max


@inlined
def _leads_on(node: int, now: float, counted: bool, machine: Machine, nodes: Nodes, parts: Parts) -> bool:
    """Whether some event to come may follow a node, by what the edges that leave its step ask; ``now`` and ``counted`` as for
    :func:`mark`."""
    part, step = nodes.part[node], nodes.step[node]
    groups = machine.hits.shape[1]
    for k in range(machine.out[step], machine.out[step + 1]):
        edge = machine.leaving[k]
        if machine.contiguous[edge] and nodes.rank[node] != parts.rank[part]:
            continue
        if machine.bounded[edge] and (parts.rank[part] if counted else now) - nodes.clock[node] > machine.most[edge]:
            continue
        group = machine.group[edge]
        if group < 0 or parts.seen[part * groups + group] <= nodes.position[node]:
            return True
    return False


@jit
def mark(
    machine: Machine,
    nodes: Nodes,
    links: Links,
    parts: Parts,
    now: float,
    counted: bool,
    span: int,
    keep: s.I64,
    clock: s.Clock,
    registers: s.I64,
) -> int:
    """keep[node] = 1 for the nodes that matches to come may hold; gives how many. O(nodes + links).

    ``now`` is the clock of the last event; where gaps are ``counted`` in events, each partition has its own, which is the rank of its
    last event. ``span`` is the size of a window of ranks, −1: none; ``clock`` is scratch. A link reaches all older nodes of the same
    step down to a position or a clock: what is asked of a node is handed on to the one before it.
    """
    count = registers[s.NODES]
    # First keep[node] is the least position that a newer node reaches through this one, and clock[node] the least clock.
    for node in range(count):
        keep[node] = LAST
        clock[node] = nodes.clock[node] + 1
    live = 0
    for node in range(count - 1, 0, -1):
        part = nodes.part[node]
        low = parts.rank[part] - span if span >= 0 else registers[s.LOW]
        floor = max(registers[s.CONSUMED], parts.consumed[part]) + 1
        asked = nodes.position[node] >= keep[node] or nodes.clock[node] >= clock[node]
        older = nodes.older[node]
        if older:
            keep[older] = min(keep[older], keep[node])
            clock[older] = min(clock[older], clock[node])
        wanted = asked or _leads_on(node, now, counted, machine, nodes, parts)
        if not wanted or nodes.best[node] < low or nodes.position[node] < floor:
            keep[node] = 0
            continue
        keep[node] = 1
        live += 1
        for link in range(nodes.begin[node], nodes.begin[node] + nodes.links[node]):
            edge, other = links.edge[link], links.node[link]
            if machine.contiguous[edge]:
                keep[other] = min(keep[other], nodes.position[other])
            elif machine.bounded[edge]:
                clock[other] = min(clock[other], nodes.clock[node] - machine.most[edge])
            else:
                keep[other] = min(keep[other], max(links.stop[link], 0))
    keep[0] = 0
    return live


@jit
def copy(nodes: Nodes, links: Links, to: Nodes, into: Links, parts: Parts, number: s.I64, registers: s.I64) -> None:
    """Copy the marked nodes, numbered from 1 on. ``number``: the marks, in whose place the new numbers come.

    A node that goes is replaced by the next older one that stays, which is what its reach was for. O(nodes + links + heads).
    """
    fresh, linked = 1, 0
    steps = parts.head.size // parts.rank.size
    parts.tail[:] = s.NIL
    for node in range(1, registers[s.NODES]):
        older = number[nodes.older[node]]
        if not number[node]:
            number[node] = older
            continue
        number[node] = fresh
        to.step[fresh], to.part[fresh] = nodes.step[node], nodes.part[node]
        to.position[fresh], to.rank[fresh] = nodes.position[node], nodes.rank[node]
        to.clock[fresh], to.measure[fresh] = nodes.clock[node], nodes.measure[node]
        to.bad[fresh], to.spoilt[fresh] = nodes.bad[node], nodes.spoilt[node]
        to.best[fresh], to.older[fresh], to.begin[fresh] = nodes.best[node], older, linked
        to.newer[fresh] = s.NIL
        if older:
            to.newer[older] = fresh
        else:
            parts.tail[nodes.part[node] * steps + nodes.step[node]] = fresh
        for link in range(nodes.begin[node], nodes.begin[node] + nodes.links[node]):
            if number[links.node[link]]:
                into.edge[linked], into.stop[linked] = links.edge[link], links.stop[link]
                into.node[linked] = number[links.node[link]]
                linked += 1
        to.links[fresh] = linked - to.begin[fresh]
        fresh += 1
    for at in range(parts.head.size):
        parts.head[at] = number[parts.head[at]]
    for at in range(parts.reached.size):
        parts.reached[at] = number[parts.reached[at]]
    registers[s.NODES] = fresh
    registers[s.LINKS] = linked
