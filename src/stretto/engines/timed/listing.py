"""Writing the matches that end at an event: the paths behind its last steps.

A listing stops when a buffer is full, says what is missing, and goes on where it stopped.
"""

from __future__ import annotations

from stretto._jit import DONE, GROW_OUTPUT, GROW_STACK, GROW_TABLE, OUTPUT_FULL, PAUSED, inlined, jit
from stretto.engines.timed import structure as s
from stretto.engines.timed.reaching import PAUSE_AFTER, begins, forgotten, reaches
from stretto.engines.timed.structure import Events, Links, Machine, Nodes, Output, Parts, Walk

#: Hashes are below this prime.
PRIME = 2147483647


@inlined
def list_paths(  # noqa: C901, PLR0912 - one walk, whose state lies in local variables
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
    """Write the matches that end at the event at hand: the paths behind its last steps, depth first.

    With LIMIT those of the latest start come first, then those of the one before, until there are enough. Invariant: what lies on
    the path so far keeps every gap and every window that it has seen the end of. A node behind which no match was found is not
    come to again for this event, so that from one match to the next it costs O(nodes · their reach) at most; windows inside
    count as nodes for each end that they had.
    """
    if registers[s.SILENT]:
        return DONE
    windows = machine.size.size
    least = forgotten(events.part[at], parts, registers)
    while True:
        registers[s.STEPS] += 1
        if registers[s.STEPS] > PAUSE_AFTER:
            registers[s.STEPS] = 0
            return PAUSED
        top = registers[s.TOP]
        if top + 1 >= walk.node.size:
            return GROW_STACK
        if not top:
            if registers[s.LIMIT] and (registers[s.START] < 0 or registers[s.ROOT] == registers[s.ROOTS]):
                if registers[s.START] < 0:
                    _before_all(events.part[at], machine, parts, walk)
                if not _go_on(at, events, machine, nodes, walk, registers, least):
                    return DONE
            elif registers[s.ROOT] == registers[s.ROOTS]:
                return DONE
            node = walk.root[registers[s.ROOT]]
            registers[s.ROOT] += 1
            walk.node[0], walk.link[0], walk.chain[0], walk.found[0] = node, -1, s.NIL, registers[s.FOUND]
            for window in range(windows):
                walk.until[window] = nodes.clock[node]
            registers[s.TOP] = 1
            continue
        depth = top - 1
        node = walk.node[depth]
        if walk.link[depth] < 0:
            if machine.first[nodes.step[node]]:
                status = _write(at, node, events, machine, nodes, walk, out, registers)
                if status != DONE:
                    return status
                if registers[s.LIMIT] and not registers[s.BY_START] and registers[s.EMITTED] == registers[s.LIMIT]:
                    return DONE
            if not nodes.links[node]:
                registers[s.TOP] = depth
                continue
            walk.link[depth] = nodes.begin[node]
        found = walk.chain[depth]
        if found == s.NIL:
            link = walk.link[depth]
            if link == nodes.begin[node] + nodes.links[node]:
                _leave(node, depth, windows, nodes, walk, registers)
            else:
                walk.at[depth], walk.chain[depth], walk.link[depth] = link, links.node[link], link + 1
            continue
        link, low = walk.at[depth], registers[s.FLOOR]
        edge = links.edge[link]
        good = reaches(found, edge, nodes.rank[node], nodes.clock[node], links.stop[link], machine, nodes, least, low)
        mine, theirs = machine.inside[nodes.step[node]], machine.inside[nodes.step[found]]
        for window in range(windows):
            until = nodes.clock[found]
            if (theirs & mine) >> window & 1 and not machine.opens[edge] >> window & 1:
                until = walk.until[depth * windows + window]
                good = good and until - nodes.clock[found] <= machine.size[window]
            walk.until[top * windows + window] = until
        if not good:  # nor is anything older
            walk.chain[depth] = s.NIL
            continue
        walk.chain[depth] = nodes.older[found]
        if not nodes.links[found] or not _is_dead(found, top, windows, nodes, walk, registers):
            walk.node[top], walk.link[top], walk.chain[top], walk.found[top] = found, -1, s.NIL, registers[s.FOUND]
            registers[s.TOP] = top + 1


@inlined
def _before_all(part: int, machine: Machine, parts: Parts, walk: Walk) -> None:
    """No match of the event at hand was looked for yet, at any start."""
    steps = machine.first.size
    for step in range(steps):
        walk.start[step] = parts.head[part * steps + step]


@inlined
def _go_on(at: int, events: Events, machine: Machine, nodes: Nodes, walk: Walk, registers: s.I64, least: int) -> bool:
    """Take up the latest start at which no match was looked for yet; false: there is none, or there are enough matches."""
    registers[s.STARTS] += registers[s.FOUND] > 0
    if not registers[s.ROOTS] or (registers[s.BY_START] and registers[s.STARTS] == registers[s.LIMIT]):
        return False
    registers[s.ROOT] = registers[s.FOUND] = 0
    registers[s.START] = -1
    registers[s.SERIAL] += 1
    while True:
        latest = s.NIL
        for step in range(machine.first.size):
            node = walk.start[step]
            if machine.first[step] and node and nodes.position[node] >= nodes.position[latest]:
                latest = node
        key = nodes.rank[latest] if registers[s.COUNTED] else nodes.position[latest]
        if latest == s.NIL or nodes.position[latest] < least or key < registers[s.LOW]:
            return False
        for step in range(machine.first.size):
            node = walk.start[step]
            if machine.first[step] and node and nodes.position[node] == nodes.position[latest]:
                walk.start[step] = nodes.older[node]
        if begins(at, latest, events, machine, nodes, registers):
            registers[s.START], registers[s.FLOOR] = nodes.position[latest], key
            return True


@inlined
def _leave(node: int, depth: int, windows: int, nodes: Nodes, walk: Walk, registers: s.I64) -> None:
    """Take the last node off the path at hand, and note where no match was found behind it."""
    registers[s.TOP] = depth
    if walk.found[depth] == registers[s.FOUND]:
        nodes.stamp[node] = registers[s.SERIAL]
        for window in range(windows):
            walk.dead[node * windows + window] = walk.until[depth * windows + window]


@inlined
def _is_dead(node: int, depth: int, windows: int, nodes: Nodes, walk: Walk, registers: s.I64) -> bool:
    """Whether no match begins behind a node that would be at a depth of the path: none did when its windows ended no later."""
    if nodes.stamp[node] != registers[s.SERIAL]:
        return False
    for window in range(windows):  # noqa: SIM110 - no generators in kernels
        if walk.until[depth * windows + window] < walk.dead[node * windows + window]:
            return False
    return True


@inlined
def _write(
    at: int, node: int, events: Events, machine: Machine, nodes: Nodes, walk: Walk, out: Output, registers: s.I64
) -> int:
    """Write the path at hand as a match, unless it is none or there already."""
    if registers[s.START] >= 0 and nodes.position[node] != registers[s.START]:
        return DONE
    if not begins(at, node, events, machine, nodes, registers):
        return DONE
    row, first, cell = registers[s.ROWS], registers[s.FIRST_ROW], registers[s.CELLS]
    top = registers[s.TOP]
    if row == out.start.size or cell + top > out.position.size:
        return GROW_OUTPUT if registers[s.WHOLE] or not row else OUTPUT_FULL
    if registers[s.DISTINCT] and 2 * (row - first) >= out.slot.size:
        return GROW_TABLE
    value = nodes.position[node] % PRIME
    for depth in range(top - 1, -1, -1):
        step = nodes.step[walk.node[depth]]
        mark = machine.mark[step]
        if mark:
            out.position[cell] = nodes.position[walk.node[depth]]
            out.mark[cell] = mark
            value = (value * 1000003 + out.position[cell]) % PRIME
            cell += 1
    out.start[row], out.end[row], out.stop[row] = nodes.position[node], events.position[at], cell
    out.part[row], out.begun[row], out.ended[row] = events.part[at], nodes.measure[node], events.measure[at]
    out.hash[row] = value
    registers[s.FOUND] += 1
    if registers[s.DISTINCT] and not _enter(row, registers[s.CELLS], machine, out, registers):
        return DONE
    registers[s.ROWS] = row + 1
    registers[s.CELLS] = cell
    registers[s.EMITTED] += 1
    return DONE


@inlined
def _enter(row: int, cell: int, machine: Machine, out: Output, registers: s.I64) -> bool:
    """Put a row, whose positions begin at ``cell``, into the table of the event's rows; false: one like it is there."""
    mask = out.slot.size - 1
    slot = out.hash[row] & mask
    length = out.stop[row] - cell
    while out.stamp[slot] == registers[s.SERIAL]:
        other = out.slot[slot]
        begin = out.stop[other - 1] if other else 0
        same = out.start[other] == out.start[row] and out.stop[other] - begin == length
        for k in range(length):
            if not same:
                break
            same = out.position[begin + k] == out.position[cell + k] and (
                not registers[s.VALUATIONS] or out.mark[begin + k] == out.mark[cell + k]
            )
        if same:
            if machine.told.size:
                for k in range(length):
                    if machine.told[out.mark[begin + k]] != machine.told[out.mark[cell + k]]:
                        registers[s.MIXED] = 1
            return False
        slot = slot + 1 & mask
    out.stamp[slot] = registers[s.SERIAL]
    out.slot[slot] = row
    return True


@jit
def refill(out: Output, registers: s.I64) -> None:
    """Put the rows of the event at hand into a new table. O(rows)."""
    mask = out.slot.size - 1
    for row in range(registers[s.FIRST_ROW], registers[s.ROWS]):
        slot = out.hash[row] & mask
        while out.stamp[slot] == registers[s.SERIAL]:
            slot = slot + 1 & mask
        out.stamp[slot] = registers[s.SERIAL]
        out.slot[slot] = row
