"""From events to nodes, and from nodes to matches.

Both stop when a store is full, say what is missing, and go on where they stopped.
"""

from __future__ import annotations

from stretto._jit import DONE, GROW_NODES, GROW_OUTPUT, GROW_STACK, GROW_TABLE, OUTPUT_FULL, PAUSED, inlined, jit
from stretto.engines.timed import structure as s
from stretto.engines.timed.structure import Events, Links, Machine, Nodes, Output, Parts, Walk

#: The kernel pauses after so many nodes, which takes well below a second, so that ^C acts soon.
PAUSE_AFTER = 1 << 24

#: Hashes are below this prime.
PRIME = 2147483647


@jit
def advance(
    events: Events,
    machine: Machine,
    nodes: Nodes,
    links: Links,
    parts: Parts,
    walk: Walk,
    out: Output,
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
        if registers[s.GREEDY]:
            status = _list_best(at, events, machine, nodes, links, parts, walk, out, registers)
        else:
            status = _list(at, events, machine, nodes, links, parts, walk, out, registers)
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
def _has_room(cls: int, machine: Machine, nodes: Nodes, links: Links, registers: s.I64) -> bool:
    needed = 0
    for k in range(machine.begin[cls], machine.begin[cls + 1]):
        step = machine.step[k]
        needed += machine.into[step + 1] - machine.into[step]
    own = machine.begin[cls + 1] - machine.begin[cls]
    registers[s.NEED] = max(own, needed)
    return bool(registers[s.NODES] + own <= nodes.step.size and registers[s.LINKS] + needed <= links.edge.size)


@inlined
def _reaches(
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
def _forgotten(part: int, parts: Parts, registers: s.I64) -> int:
    """The least position at which a partial match may begin, after what CONSUME BY has forgotten."""
    return int(max(registers[s.CONSUMED], parts.consumed[part])) + 1


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
    if machine.before[cls] and not (parts.known[part] and parts.latest[part] == measure):
        parts.earlier[part] = parts.latest[part]
        parts.latest[part] = measure
        parts.known[part] = min(parts.known[part] + 1, 2)


@inlined
def _take(
    at: int, events: Events, machine: Machine, nodes: Nodes, links: Links, parts: Parts, walk: Walk, registers: s.I64
) -> None:
    """Make the nodes of an event, and find those at which matches end."""
    part, position, rank, clock = events.part[at], events.position[at], events.rank[at], events.clock[at]
    measure, cls = events.measure[at], events.cls[at]
    key = rank if registers[s.COUNTED] else position
    low = events.low[at]
    least = _forgotten(part, parts, registers)
    steps, groups = machine.first.size, machine.hits.shape[1]
    registers[s.LOW] = low
    registers[s.BUSY] = 1
    registers[s.VISITED] += 1
    registers[s.SERIAL] += 1
    registers[s.TOP] = 0
    registers[s.ROOT] = 0
    registers[s.ROOTS] = 0
    registers[s.EMITTED] = 0
    registers[s.BEST] = s.NIL
    registers[s.FIRST_ROW] = registers[s.ROWS]
    for k in range(machine.begin[cls], machine.begin[cls + 1]):
        step = machine.step[k]
        begin = registers[s.LINKS]
        start = s.NEVER
        for edge in range(machine.into[step], machine.into[step + 1]):
            node = _newest(part, edge, position, clock, machine, nodes, parts)
            group = machine.group[edge]
            stop = parts.seen[part * groups + group] if group >= 0 else -1
            if node and _reaches(node, edge, rank, clock, stop, machine, nodes, least, low):
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
        nodes.spoilt[node] = False
        if parts.known[part] and parts.latest[part] < measure:
            nodes.spoilt[node], nodes.bad[node] = True, parts.latest[part]
        elif parts.known[part] > 1:
            nodes.spoilt[node], nodes.bad[node] = True, parts.earlier[part]
        if machine.last[step]:
            walk.root[registers[s.ROOTS]] = node
            registers[s.ROOTS] += 1
    _see(part, position, measure, cls, machine, parts)
    parts.rank[part] = rank


@inlined
def _list(  # noqa: C901, PLR0912 - one walk, whose state lies in local variables
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

    Invariant: what lies on the path so far keeps every gap and every window that it has seen the end of.
    """
    if registers[s.SILENT]:
        return DONE
    windows = machine.size.size
    low, least = registers[s.LOW], _forgotten(events.part[at], parts, registers)
    while True:
        registers[s.STEPS] += 1
        if registers[s.STEPS] > PAUSE_AFTER:
            registers[s.STEPS] = 0
            return PAUSED
        top = registers[s.TOP]
        if top + 1 >= walk.node.size:
            return GROW_STACK
        if not top:
            if registers[s.ROOT] == registers[s.ROOTS]:
                return DONE
            node = walk.root[registers[s.ROOT]]
            registers[s.ROOT] += 1
            walk.node[0], walk.link[0], walk.chain[0] = node, -1, s.NIL
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
            walk.link[depth] = nodes.begin[node]
        found = walk.chain[depth]
        if found == s.NIL:
            link = walk.link[depth]
            if link == nodes.begin[node] + nodes.links[node]:
                registers[s.TOP] = depth
            else:
                walk.at[depth], walk.chain[depth], walk.link[depth] = link, links.node[link], link + 1
            continue
        link = walk.at[depth]
        edge = links.edge[link]
        good = _reaches(found, edge, nodes.rank[node], nodes.clock[node], links.stop[link], machine, nodes, least, low)
        mine, theirs = machine.inside[nodes.step[node]], machine.inside[nodes.step[found]]
        for window in range(windows):
            if theirs >> window & 1:
                until = nodes.clock[found]
                if mine >> window & 1 and not machine.opens[edge] >> window & 1:
                    until = walk.until[depth * windows + window]
                    good = good and until - nodes.clock[found] <= machine.size[window]
                walk.until[top * windows + window] = until
        if not good:  # nor is anything older
            walk.chain[depth] = s.NIL
            continue
        walk.chain[depth] = nodes.older[found]
        walk.node[top], walk.link[top], walk.chain[top] = found, -1, s.NIL
        registers[s.TOP] = top + 1


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
def _list_best(
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
    low, least = registers[s.LOW], _forgotten(events.part[at], parts, registers)
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
        if not top:
            return DONE
        node = walk.node[0]
        for link in range(nodes.begin[node], nodes.begin[node] + nodes.links[node]):
            edge, stop, found = links.edge[link], links.stop[link], links.node[link]
            rank, clock = nodes.rank[node], nodes.clock[node]
            while found and _reaches(found, edge, rank, clock, stop, machine, nodes, least, low):
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
def _write_way(
    at: int, node: int, events: Events, machine: Machine, nodes: Nodes, walk: Walk, out: Output, registers: s.I64
) -> int:
    """Write the way on from a node as a match, unless it is none."""
    if not _begins(at, node, events, machine, nodes, registers):
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


@inlined
def _begins(at: int, node: int, events: Events, machine: Machine, nodes: Nodes, registers: s.I64) -> bool:
    """Whether a match that ends at the event at hand may begin with a node."""
    key = nodes.rank[node] if registers[s.COUNTED] else nodes.position[node]
    spoilt = nodes.spoilt[node] and events.measure[at] - nodes.bad[node] <= machine.window[0]
    return bool(key >= registers[s.LOW] and not spoilt)


@inlined
def _write(
    at: int, node: int, events: Events, machine: Machine, nodes: Nodes, walk: Walk, out: Output, registers: s.I64
) -> int:
    """Write the path at hand as a match, unless it is none or there already."""
    if not _begins(at, node, events, machine, nodes, registers):
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
    if registers[s.STRICT] and cell - registers[s.CELLS] != events.rank[at] - nodes.rank[node] + 1:
        return DONE
    out.start[row], out.end[row], out.stop[row] = nodes.position[node], events.position[at], cell
    out.part[row], out.begun[row], out.ended[row] = events.part[at], nodes.measure[node], events.measure[at]
    out.hash[row] = value
    if registers[s.DISTINCT] and not _enter(row, registers[s.CELLS], out, registers):
        return DONE
    registers[s.ROWS] = row + 1
    registers[s.CELLS] = cell
    registers[s.EMITTED] += 1
    return DONE


@inlined
def _enter(row: int, cell: int, out: Output, registers: s.I64) -> bool:
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
