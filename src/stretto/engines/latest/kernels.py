"""A batch of events for EQL's sequences (``docs/semantics.md``, EQL).

Invariants: ``head[key, j]`` is the latest partial match of a key that has reached step j, and no event of step j+1 has come after it;
chains share no node. An event costs O(steps + events that must not come), and O(log waiting) where a missing event stands last.
"""

from __future__ import annotations

from stretto._jit import DONE, GROW_NODES, OUTPUT_FULL, inlined, jit
from stretto.engines.latest import structure as s
from stretto.engines.latest.structure import I64, NIL, Events, Machine, Nodes, Out, Parts


@inlined
def _new(nodes: Nodes, registers: I64) -> int:
    node = registers[s.FREE]
    if node != NIL:
        registers[s.FREE] = nodes.previous[node]
    else:
        node = registers[s.HEAD]
        registers[s.HEAD] = node + 1
    registers[s.LIVE] += 1
    return int(node)


@inlined
def _forget(node: int, nodes: Nodes, registers: I64) -> None:
    """Free a chain."""
    while node != NIL:
        behind = nodes.previous[node]
        nodes.previous[node] = registers[s.FREE]
        registers[s.FREE] = node
        registers[s.LIVE] -= 1
        node = behind


@inlined
def _write(node: int, length: int, nodes: Nodes, out: Out, registers: I64) -> None:
    """A match into the output, which has room for it."""
    row, cell = registers[s.ROWS], registers[s.CELLS]
    out.start[row], out.end[row] = nodes.start[node], nodes.position[node]
    at = node
    for step in range(length - 1, -1, -1):
        out.position[cell + step] = nodes.position[at]
        out.mark[cell + step] = step
        at = nodes.previous[at]
    registers[s.ROWS], registers[s.CELLS] = row + 1, cell + length
    out.stop[row] = cell + length
    registers[s.TRIGGERS] += 1


@inlined
def _has_room(length: int, out: Out, registers: I64) -> bool:
    return bool(registers[s.ROWS] < out.start.size and registers[s.CELLS] + length <= out.position.size)


@inlined
def _swap(nodes: Nodes, a: int, b: int) -> None:
    nodes.timer[a], nodes.timer[b] = nodes.timer[b], nodes.timer[a]


@inlined
def _push(node: int, nodes: Nodes, registers: I64) -> None:
    """Onto the heap of chains that wait. O(log waiting)."""
    at = registers[s.TIMERS]
    registers[s.TIMERS] = at + 1
    nodes.timer[at] = node
    while at > 0 and nodes.start[nodes.timer[at]] < nodes.start[nodes.timer[(at - 1) // 2]]:
        _swap(nodes, at, (at - 1) // 2)
        at = (at - 1) // 2


@inlined
def _pop(nodes: Nodes, registers: I64) -> int:
    node = nodes.timer[0]
    size = registers[s.TIMERS] - 1
    registers[s.TIMERS] = size
    nodes.timer[0] = nodes.timer[size]
    at = 0
    while True:
        least = at
        for child in range(2 * at + 1, min(2 * at + 3, size)):
            if nodes.start[nodes.timer[child]] < nodes.start[nodes.timer[least]]:
                least = child
        if least == at:
            return int(node)
        _swap(nodes, at, least)
        at = least


@inlined
def _release(low: int, machine: Machine, nodes: Nodes, parts: Parts, out: Out, registers: I64) -> bool:
    """Put out what has waited for windows that begin before ``low``; whether there was room for all of it."""
    length = machine.bit.size
    while registers[s.TIMERS] > 0 and nodes.start[nodes.timer[0]] < low:
        if not _has_room(length, out, registers):
            return False
        node = _pop(nodes, registers)
        spoilt = False
        for one in range(machine.behind.size):
            if machine.behind[one] == length - 1 and parts.seen[nodes.key[node], one] > nodes.position[node]:
                spoilt = True
        if not spoilt and not machine.silent:
            _write(node, length, nodes, out, registers)
        _forget(node, nodes, registers)
    return True


@inlined
def _take(
    i: int, step: int, key: int, events: Events, machine: Machine, nodes: Nodes, parts: Parts, registers: I64
) -> int:
    """The partial match that goes on with an event as a step, which it takes from the step before; none: ``NIL``."""
    node = parts.head[key, step - 1]
    if node == NIL:
        return NIL
    parts.head[key, step - 1] = NIL
    ended = machine.until_bit >= 0 and parts.seen[key, machine.behind.size] >= nodes.position[node]
    if nodes.start[node] < events.low[i] or ended:
        _forget(node, nodes, registers)
        return NIL
    spoilt = nodes.spoilt[node]
    for one in range(machine.behind.size):
        if machine.behind[one] == step - 1 and parts.seen[key, one] > nodes.position[node]:
            spoilt = 1
    found = _new(nodes, registers)
    nodes.position[found], nodes.previous[found] = events.position[i], node
    nodes.start[found], nodes.before[found] = nodes.start[node], nodes.before[node]
    nodes.spoilt[found], nodes.key[found] = spoilt, key
    return found


@inlined
def _begin(i: int, key: int, events: Events, machine: Machine, nodes: Nodes, parts: Parts, registers: I64) -> int:
    """A partial match of one event."""
    before = -1
    for one in range(machine.behind.size):
        if machine.behind[one] < 0:
            before = max(before, parts.seen[key, one])
    found = _new(nodes, registers)
    nodes.position[found], nodes.previous[found] = events.position[i], NIL
    nodes.start[found], nodes.before[found] = events.position[i], before
    nodes.spoilt[found], nodes.key[found] = 0, key
    return found


@inlined
def _look(i: int, events: Events, machine: Machine, parts: Parts) -> None:
    """Note an event that must not come, or that ends what goes on."""
    missing = machine.behind.size
    for one in range(missing):
        key = events.key[machine.missing_group[one], i]
        if key >= 0 and events.bits[i] >> machine.missing_bit[one] & 1:
            parts.seen[key, one] = events.position[i]
    if machine.until_bit >= 0 and events.bits[i] >> machine.until_bit & 1:
        key = events.key[machine.until_group, i]
        if key >= 0:
            parts.seen[key, missing] = events.position[i]


@inlined
def _complete(node: int, low: int, machine: Machine, nodes: Nodes, out: Out, registers: I64) -> None:
    """Put out a chain of all steps, or let it wait, unless an event came that must not."""
    steps, missing = machine.bit.size, machine.behind.size
    if nodes.spoilt[node] or nodes.before[node] >= low:
        _forget(node, nodes, registers)
    elif missing and machine.behind[missing - 1] == steps - 1:
        _push(node, nodes, registers)
    else:
        if not machine.silent:
            _write(node, steps, nodes, out, registers)
        _forget(node, nodes, registers)


@jit
def advance(events: Events, machine: Machine, nodes: Nodes, parts: Parts, out: Out, registers: I64) -> int:
    """Read events from the cursor on; DONE, or which array has no room for what the next event may need."""
    steps = machine.bit.size
    while registers[s.CURSOR] < events.bits.size:
        i = registers[s.CURSOR]
        if registers[s.TIMERS] > 0 and not _release(events.low[i], machine, nodes, parts, out, registers):
            return OUTPUT_FULL
        if not _has_room(steps, out, registers):
            return OUTPUT_FULL
        if nodes.position.size - 1 - registers[s.LIVE] < steps:
            return GROW_NODES
        for step in range(steps - 1, -1, -1):  # the last first: an event does not go on with itself
            key = events.key[machine.group[step], i]
            if key < 0 or not events.bits[i] >> machine.bit[step] & 1:
                continue
            if step == 0:
                node = _begin(i, key, events, machine, nodes, parts, registers)
            else:
                node = _take(i, step, key, events, machine, nodes, parts, registers)
            if node == NIL:
                continue
            if step == steps - 1:
                _complete(node, events.low[i], machine, nodes, out, registers)
            else:
                _forget(parts.head[key, step], nodes, registers)
                parts.head[key, step] = node
        _look(i, events, machine, parts)
        registers[s.LOW] = events.low[i]
        registers[s.VISITED] += 1
        registers[s.CURSOR] = i + 1
    return DONE


@jit
def expire(low: int, machine: Machine, nodes: Nodes, parts: Parts, out: Out, registers: I64) -> int:
    """Put out what has waited for windows that begin before ``low``."""
    return DONE if _release(low, machine, nodes, parts, out, registers) else OUTPUT_FULL


@jit
def sweep(keys: int, low: int, nodes: Nodes, parts: Parts, registers: I64) -> None:
    """Forget partial matches that begin before ``low``."""
    for key in range(keys):
        for step in range(parts.head.shape[1]):
            node = parts.head[key, step]
            if node != NIL and nodes.start[node] < low:
                _forget(node, nodes, registers)
                parts.head[key, step] = NIL


@jit
def listed(keys: int, nodes: Nodes, parts: Parts, registers: I64, chain: I64, position: I64) -> int:
    """Write all chains: of each its last node and step (−1: it waits), and its positions, the last one first; how many they are."""
    count = at = 0
    for number in range(keys * parts.head.shape[1] + registers[s.TIMERS]):
        waits = number - keys * parts.head.shape[1]
        if waits >= 0:
            node, step = nodes.timer[waits], -1
        else:
            step = number % parts.head.shape[1]
            node = parts.head[number // parts.head.shape[1], step]
        if node == NIL:
            continue
        chain[2 * count], chain[2 * count + 1] = node, step
        count += 1
        while node != NIL:
            position[at] = nodes.position[node]
            at += 1
            node = nodes.previous[node]
    return count
