"""From events to nodes, and from nodes to matches or counts of them.

The kernel stops when a store is full, says what is missing, and goes on where it stopped.
"""

from __future__ import annotations

from stretto._jit import DONE, GROW_NODES, OUTPUT_FULL, inlined, jit
from stretto.engines.shared.counting import Counts
from stretto.engines.timed import structure as s
from stretto.engines.timed.best import list_best
from stretto.engines.timed.counting import Tally, count_paths_of
from stretto.engines.timed.listing import list_paths
from stretto.engines.timed.reaching import forgotten, reaches
from stretto.engines.timed.structure import Events, Links, Machine, Nodes, Output, Parts, Walk


@jit
def advance(
    events: Events,
    machine: Machine,
    nodes: Nodes,
    links: Links,
    parts: Parts,
    walk: Walk,
    out: Output,
    tally: Tally,
    registers: s.I64,
) -> int:
    """Take the events from ``registers[CURSOR]`` on. Cost per event: O(edges into its steps), and what is listed.

    Returns a status; on any but DONE the caller mends what it names and calls again.
    """
    while True:
        at = registers[s.CURSOR]
        if not registers[s.BUSY]:
            if at == events.cls.size:
                return DONE
            if 2 * registers[s.ROWS] > out.start.size or 2 * registers[s.CELLS] > out.position.size:
                return OUTPUT_FULL
            if not _has_room(events.cls[at], machine, nodes, links, registers):
                return GROW_NODES
            _take(at, events, machine, nodes, links, parts, walk, registers)
        status = DONE
        if registers[s.SILENT]:
            pass
        elif registers[s.COUNTING]:
            status = count_paths_of(at, events, machine, nodes, links, parts, walk, tally, registers)
            if status == DONE:
                _write_count(at, events, out, tally.counts, registers)
        elif registers[s.GREEDY]:
            status = list_best(at, events, machine, nodes, links, parts, walk, out, registers)
        else:
            status = list_paths(at, events, machine, nodes, links, parts, walk, out, registers)
        if status != DONE:
            return status
        registers[s.BUSY] = 0
        registers[s.CURSOR] = at + 1
        if registers[s.EMITTED]:
            registers[s.TRIGGERS] += 1
            if registers[s.CONSUME] == 2:
                registers[s.CONSUMED] = events.position[at]
            elif registers[s.CONSUME] == 1:
                parts.consumed[events.part[at]] = events.position[at]


@inlined
def _write_count(at: int, events: Events, out: Output, counts: Counts, registers: s.I64) -> None:
    """Write how many matches an event has, if it has any, as one row, for which there is room."""
    total, row = counts.node.size - 1, registers[s.ROWS]
    if counts.matches[total]:
        out.start[row], out.end[row], out.stop[row] = counts.first[total], events.position[at], counts.matches[total]
        registers[s.ROWS] = row + 1
        registers[s.EMITTED] = 1


@inlined
def _has_room(cls: int, machine: Machine, nodes: Nodes, links: Links, registers: s.I64) -> bool:
    needed = 0
    for k in range(machine.begin[cls], machine.begin[cls + 1]):
        step = machine.step[k]
        needed += machine.into[step + 1] - machine.into[step]
    own = machine.begin[cls + 1] - machine.begin[cls]
    registers[s.NEED] = max(own, needed)
    return bool(registers[s.NODES] + own <= nodes.step.size and registers[s.LINKS] + needed <= links.edge.size)


@inlined
def _come_to(low: int, registers: s.I64) -> None:
    """The next event is at hand, and nothing of its matches is known yet."""
    registers[s.LOW] = low
    registers[s.BUSY] = 1
    registers[s.VISITED] += 1
    registers[s.SERIAL] += 1
    registers[s.TOP] = 0
    registers[s.ROOT] = 0
    registers[s.ROOTS] = 0
    registers[s.EMITTED] = 0
    registers[s.BEST] = s.NIL
    registers[s.START] = -1
    registers[s.FLOOR] = low
    registers[s.FOUND] = 0
    registers[s.STARTS] = 0
    registers[s.FIRST_ROW] = registers[s.ROWS]


@inlined
def _newest(part: int, edge: int, position: int, clock: float, machine: Machine, nodes: Nodes, parts: Parts) -> int:
    """The newest node from which an edge may lead to an event, as far as its least gap goes; NIL: none. O(1) on average.

    Clocks do not decrease, so that what was long enough ago for one event is so for the next.
    """
    late, source = machine.late[edge], part * machine.first.size + machine.source[edge]
    if late < 0:
        node = parts.head[source]
        return int(nodes.older[node] if node and nodes.position[node] == position else node)
    slot = part * (parts.reached.size // parts.rank.size) + late
    node = parts.reached[slot]
    following = nodes.newer[node] if node else parts.tail[source]
    while following and clock - nodes.clock[following] >= machine.least[edge]:
        node = following
        following = nodes.newer[node]
    parts.reached[slot] = node
    return int(node)


@inlined
def _see(part: int, position: int, measure: float, cls: int, machine: Machine, parts: Parts) -> None:
    """Note an event that must not come between some steps, or before the first."""
    groups = machine.hits.shape[1]
    for group in range(groups):
        if machine.hits[cls, group]:
            parts.seen[part * groups + group] = position
    if machine.before[cls]:
        parts.latest[part] = measure
        parts.known[part] = 1


@inlined
def _take(
    at: int, events: Events, machine: Machine, nodes: Nodes, links: Links, parts: Parts, walk: Walk, registers: s.I64
) -> None:
    """Make the nodes of an event, and find those at which matches end."""
    part, position, rank, clock = events.part[at], events.position[at], events.rank[at], events.clock[at]
    measure, cls = events.measure[at], events.cls[at]
    key = rank if registers[s.COUNTED] else position
    low = events.low[at]
    least = forgotten(part, parts, registers)
    steps, groups = machine.first.size, machine.hits.shape[1]
    _come_to(low, registers)
    for k in range(machine.begin[cls], machine.begin[cls + 1]):
        step = machine.step[k]
        begin = registers[s.LINKS]
        start = s.NEVER
        for edge in range(machine.into[step], machine.into[step + 1]):
            node = _newest(part, edge, position, clock, machine, nodes, parts)
            group = machine.group[edge]
            stop = parts.seen[part * groups + group] if group >= 0 else -1
            if node and reaches(node, edge, rank, clock, stop, machine, nodes, least, low):
                link = registers[s.LINKS]
                registers[s.LINKS] = link + 1
                links.edge[link] = edge
                links.node[link] = node
                links.stop[link] = stop
                start = max(start, nodes.best[node])
        if machine.first[step]:
            start = max(start, key)
        if start == s.NEVER:
            continue
        node = registers[s.NODES]
        registers[s.NODES] = node + 1
        head = parts.head[part * steps + step]
        parts.head[part * steps + step] = node
        nodes.step[node], nodes.part[node], nodes.position[node], nodes.rank[node] = step, part, position, rank
        nodes.clock[node], nodes.measure[node] = clock, measure
        nodes.best[node] = max(start, nodes.best[head]) if head else start
        nodes.older[node], nodes.newer[node] = head, s.NIL
        if head:
            nodes.newer[head] = node
        else:
            parts.tail[part * steps + step] = node
        nodes.begin[node], nodes.links[node] = begin, registers[s.LINKS] - begin
        nodes.spoilt[node], nodes.bad[node] = parts.known[part] > 0, parts.latest[part]
        if machine.last[step]:
            walk.root[registers[s.ROOTS]] = node
            registers[s.ROOTS] += 1
    _see(part, position, measure, cls, machine, parts)
    parts.rank[part] = rank
