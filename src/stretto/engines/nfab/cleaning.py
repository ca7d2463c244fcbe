"""What can matter no more is dropped, and nodes move together."""

from __future__ import annotations

from stretto._jit import inlined, jit
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.runs import drop
from stretto.engines.nfab.structure import I64, Memory, Parts, Runs


@jit
def sweep(count: int, low: int, memory: Memory) -> int:
    """Drop what has left the window in the first ``count`` partitions; how many hold something even so. O(partitions + runs)."""
    runs, nodes, parts, registers = memory.runs, memory.nodes, memory.parts, memory.registers
    left = 0
    for part in range(count):
        before = s.NIL
        run = parts.head[part]
        while run != s.NIL:  # the order of those that stay is the order of their matches
            following = runs.next[run]
            if runs.start[run] < low and runs.state[run] != s.PENDING:
                if before == s.NIL:
                    parts.head[part] = following
                else:
                    runs.next[before] = following
                parts.size[part] -= 1
                registers[s.LIVE] -= 1
                drop(run, runs, registers)
            else:
                before = run
            run = following
        busy = parts.head[part] != s.NIL
        for negation in range(parts.negated.shape[1]):
            node = parts.negated[part, negation]
            # Without a window a negated event matters as long as there are runs.
            if node != s.NIL and (nodes.start[node] < low or (low < 0 and not busy)):
                parts.negated[part, negation] = s.NIL
            busy = busy or parts.negated[part, negation] != s.NIL
        left += busy
    return left


@jit
def empty(which: I64, memory: Memory) -> None:
    """Drop all that some partitions hold. O(these + their runs)."""
    runs, parts, registers = memory.runs, memory.parts, memory.registers
    for k in range(which.size):
        part = which[k]
        run = parts.head[part]
        while run != s.NIL:
            following = runs.next[run]
            drop(run, runs, registers)
            run = following
        registers[s.LIVE] -= parts.size[part]
        parts.head[part] = s.NIL
        parts.size[part] = 0
        for negation in range(parts.negated.shape[1]):
            parts.negated[part, negation] = s.NIL


@jit
def list_runs(count: int, runs: Runs, parts: Parts, numbers: I64) -> None:
    """The runs of the first ``count`` partitions, list by list, into ``numbers``. O(partitions + runs)."""
    found = 0
    for part in range(count):
        run = parts.head[part]
        while run != s.NIL:
            numbers[found] = run
            found += 1
            run = runs.next[run]


@inlined
def _mark(count: int, low: int, span: int, memory: Memory, place: I64) -> None:
    """Put 1 at the nodes that are needed: those that begin lists, and then, latest first, those before them."""
    runs, nodes, parts = memory.runs, memory.nodes, memory.parts
    for part in range(count):
        run = parts.head[part]
        while run != s.NIL:
            place[runs.node[run]] = 1
            run = runs.next[run]
        for negation in range(parts.negated.shape[1]):
            node = parts.negated[part, negation]
            place[node] = 1
            bound = max(low, nodes.start[node] - span)
            while nodes.previous[node] != s.NIL:
                if nodes.start[nodes.previous[node]] < bound:
                    nodes.previous[node] = s.NIL
                else:
                    node = nodes.previous[node]
    for node in range(memory.registers[s.HEAD] - 1, 0, -1):
        if place[node]:
            if nodes.label[node] == s.UNION and nodes.start[nodes.other[node]] < low:
                nodes.other[node] = s.NIL
            place[nodes.previous[node]] = 1
            place[nodes.other[node]] = 1
    place[s.NIL] = 0


@inlined
def _move_nodes(memory: Memory, place: I64) -> int:
    """Move the marked nodes together; a node's predecessors have moved before it. How many slots are in use then."""
    nodes, head = memory.nodes, 1
    for node in range(1, memory.registers[s.HEAD]):
        if place[node]:
            place[node] = head
            nodes.previous[head] = place[nodes.previous[node]]
            nodes.other[head] = place[nodes.other[node]]
            nodes.start[head] = nodes.start[node]
            nodes.position[head] = nodes.position[node]
            nodes.label[head] = nodes.label[node]
            if nodes.P.shape[0] > 1:
                for at in range(nodes.P.shape[1]):
                    nodes.P[head, at] = nodes.P[node, at]
            head += 1
    return head


@jit
def collect(count: int, low: int, span: int, memory: Memory, place: I64) -> int:
    """Move the nodes that a run still needs to the front, in their order; how many slots are in use then. O(nodes + partitions).

    ``place`` (one word a node, zero) becomes the new number of each node. Negated events before ``low``, or more than ``span``
    before the latest one of their kind, are in the window of no event to come.
    """
    runs, parts = memory.runs, memory.parts
    _mark(count, low, span, memory, place)
    head = _move_nodes(memory, place)
    for part in range(count):
        run = parts.head[part]
        while run != s.NIL:
            runs.node[run] = place[runs.node[run]]
            run = runs.next[run]
        for negation in range(parts.negated.shape[1]):
            parts.negated[part, negation] = place[parts.negated[part, negation]]
    memory.registers[s.HEAD] = head
    return head
