"""Writing one match for each start, that which has an event before others (NEXT), without listing the others."""

from __future__ import annotations

from stretto._jit import DONE, GROW_OUTPUT, GROW_STACK, OUTPUT_FULL, inlined
from stretto.engines.timed import structure as s
from stretto.engines.timed.reaching import begins, forgotten, reaches
from stretto.engines.timed.structure import Events, Links, Machine, Nodes, Output, Parts, Walk


@inlined
def list_best(
    at: int,
    events: Events,
    machine: Machine,
    nodes: Nodes,
    links: Links,
    parts: Parts,
    walk: Walk,
    out: Output,
    registers: s.I64,
) -> int:
    """Write for each start the match that has an event before others: from the latest node to the earliest, by its best way on.

    Invariant: of a node that was taken off the heap the way on is settled, since it leads through later nodes only. Cost: O(nodes
    from which the event is reached · their reach), and no more than these are listed.
    """
    if registers[s.SILENT]:
        return DONE
    low, least = registers[s.LOW], forgotten(events.part[at], parts, registers)
    serial = registers[s.SERIAL]
    while True:
        if registers[s.ROOT] < registers[s.ROOTS]:
            if registers[s.TOP] == walk.node.size:
                return GROW_STACK
            node = walk.root[registers[s.ROOT]]
            registers[s.ROOT] += 1
            nodes.after[node], nodes.stamp[node] = s.NIL, serial
            _push(node, walk, registers)
            continue
        top, best = registers[s.TOP], registers[s.BEST]
        if best and (not top or nodes.position[walk.node[0]] != nodes.position[best]):
            status = _write_way(at, best, events, machine, nodes, walk, out, registers)
            if status != DONE:
                return status
            registers[s.BEST] = s.NIL
        if not top or (registers[s.LIMIT] and registers[s.EMITTED] == registers[s.LIMIT]):
            return DONE
        node = walk.node[0]
        for link in range(nodes.begin[node], nodes.begin[node] + nodes.links[node]):
            edge, stop, found = links.edge[link], links.stop[link], links.node[link]
            rank, clock = nodes.rank[node], nodes.clock[node]
            while found and reaches(found, edge, rank, clock, stop, machine, nodes, least, low):
                if nodes.stamp[found] != serial:
                    if registers[s.TOP] == walk.node.size:
                        return GROW_STACK
                    nodes.after[found], nodes.stamp[found] = node, serial
                    _push(found, walk, registers)
                elif _before(node, nodes.after[found], nodes):
                    nodes.after[found] = node
                found = nodes.older[found]
        _pop(walk, registers)
        if machine.first[nodes.step[node]]:
            best = registers[s.BEST]
            if not best or _before(node, best, nodes):
                registers[s.BEST] = node


@inlined
def _before(first: int, second: int, nodes: Nodes) -> bool:
    """Whether the way on from one node has an event before that from another: at the first difference the earlier, the longer."""
    while first != second and nodes.position[first] == nodes.position[second]:
        first, second = nodes.after[first], nodes.after[second]
    if first == s.NIL:
        return False
    return bool(first != second and (second == s.NIL or nodes.position[first] < nodes.position[second]))


@inlined
def _push(node: int, walk: Walk, registers: s.I64) -> None:
    at = registers[s.TOP]
    registers[s.TOP] = at + 1
    while at and walk.node[(at - 1) // 2] < node:
        walk.node[at] = walk.node[(at - 1) // 2]
        at = (at - 1) // 2
    walk.node[at] = node


@inlined
def _pop(walk: Walk, registers: s.I64) -> None:
    """Take the latest node off the heap."""
    size = registers[s.TOP] - 1
    registers[s.TOP] = size
    last, at = walk.node[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and walk.node[child + 1] > walk.node[child]:
            child += 1
        if walk.node[child] <= last:
            break
        walk.node[at] = walk.node[child]
        at = child
    walk.node[at] = last


@inlined
def _write_way(
    at: int, node: int, events: Events, machine: Machine, nodes: Nodes, walk: Walk, out: Output, registers: s.I64
) -> int:
    """Write the way on from a node as a match, unless it is none."""
    if not begins(at, node, events, machine, nodes, registers):
        return DONE
    row, cell = registers[s.ROWS], registers[s.CELLS]
    one = node
    while one:
        if row == out.start.size or cell == out.position.size:
            return GROW_OUTPUT if registers[s.WHOLE] or not row else OUTPUT_FULL
        out.position[cell], out.mark[cell] = nodes.position[one], machine.mark[nodes.step[one]]
        cell += 1
        one = nodes.after[one]
    out.start[row], out.end[row], out.stop[row] = nodes.position[node], events.position[at], cell
    out.part[row], out.begun[row], out.ended[row] = events.part[at], nodes.measure[node], events.measure[at]
    registers[s.ROWS] = row + 1
    registers[s.CELLS] = cell
    registers[s.EMITTED] += 1
    return DONE
