"""Complete runs become matches: which of them a negation or the strategy leaves, and how they are listed or counted."""

from __future__ import annotations

from typing import Any

from stretto._jit import DONE, GROW_OUTPUT, GROW_STACK, OUTPUT_FULL, inlined
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.edges import holds
from stretto.engines.nfab.pending import pop_timer, push_timer
from stretto.engines.nfab.runs import drop, keep, unlink
from stretto.engines.nfab.structure import I64, Events, Machine, Memory, Nodes, Runs, Scratch
from stretto.engines.shared.counting import Counts, Graph, count_paths
from stretto.engines.tecs.enumerate import Output


@inlined
def is_negated(
    theta: Any, run: int, i: int, length: int, low: int, end: int, events: Events, machine: Machine, memory: Memory
) -> bool:
    """Whether a negated event stands where the match on the path allows none. O(length + negated events of the window).

    Negations are asked that lie before component ``end``: of a match, all.
    """
    nodes, parts, scratch = memory.nodes, memory.parts, memory.scratch
    components = machine.kleene.size
    for negation in range(machine.left.size):
        at_start = machine.left[negation] < 0
        if machine.right[negation] >= end:
            continue
        one = parts.negated[events.part[i], negation]
        if (
            machine.right[negation] == components
        ):  # with UNTIL … ONLY the match is complete later than with its last event
            while one != s.NIL and nodes.position[one] > nodes.position[scratch.path[0]]:
                if holds(theta, 3 * components + negation, run, i, one, events, machine, memory):
                    return True
                one = nodes.previous[one]
            continue
        for at in range(length - 1 if at_start else 0, length if at_start else length - 1):
            node = scratch.path[at]
            until = nodes.position[node]
            after = low - 1  # position of the event before
            if not at_start:
                before = scratch.path[at + 1]
                if not machine.between[negation, nodes.label[before], nodes.label[node]]:
                    continue
                after = nodes.position[before]
            while one != s.NIL and nodes.position[one] > after:
                if nodes.position[one] < until and holds(
                    theta, 3 * components + negation, run, i, one, events, machine, memory
                ):
                    return True
                one = nodes.previous[one]
    return False


@inlined
def _room(length: int, registers: I64, out: Output) -> int:
    """The status that asks for room for a match; DONE where there is some."""
    if registers[s.CELLS] + length <= out.position.size and registers[s.ROWS] < out.start.size:
        return DONE
    registers[s.NEED] = length
    return OUTPUT_FULL if registers[s.ROWS] > 0 else GROW_OUTPUT


@inlined
def _write(length: int, machine: Machine, memory: Memory, out: Output) -> None:
    """The match on the path into the output buffers. O(length)."""
    scratch, registers = memory.scratch, memory.registers
    row, cell = registers[s.ROWS], registers[s.CELLS]
    last = cell + length - 1
    for at in range(length):
        out.position[last - at] = scratch.spot[at]
    if machine.marks:
        for at in range(length):
            out.mark[last - at] = scratch.mark[at]
    out.start[row] = out.position[cell]
    out.end[row] = out.position[cell + length - 1]
    out.stop[row] = cell + length
    registers[s.ROWS] = row + 1
    registers[s.CELLS] = cell + length
    registers[s.EMITTED] += 1


@inlined
def path_of(run: int, runs: Runs, nodes: Nodes, scratch: Scratch) -> int:
    """The events of an unmerged run onto the path, which has room for all nodes; their number."""
    length = 0
    node = runs.node[run]
    while node != s.NIL:
        scratch.path[length] = node
        scratch.spot[length] = nodes.position[node]
        scratch.mark[length] = nodes.label[node]
        length += 1
        node = nodes.previous[node]
    return length


@inlined
def _is_better(run: int, best: int, runs: Runs, nodes: Nodes) -> bool:
    """Whether one match comes before another that ends with the same event: earliest start, shortest, smallest positions."""
    if runs.start[run] != runs.start[best]:
        return runs.start[run] < runs.start[best]
    return comes_before(runs.node[run], runs.node[best], nodes)


@inlined
def comes_before(a: int, b: int, nodes: Nodes) -> bool:
    """Whether one list of events comes before another: the shorter, then smaller positions, then the later component."""
    first = 0  # which is smaller at the first position, from the start on, where both differ; lists go backwards
    label = 0
    while a > s.NIL and b > s.NIL:
        if nodes.position[a] != nodes.position[b]:
            first = -1 if nodes.position[a] < nodes.position[b] else 1
        if nodes.label[a] != nodes.label[b]:
            # The later of two components at one event: the earlier component went on for longer.
            label = -1 if nodes.label[a] < nodes.label[b] else 1
        a, b = nodes.previous[a], nodes.previous[b]
    if a != b:
        return a == s.NIL
    return first < 0 or (first == 0 and label > 0)


@inlined
def choose(theta: Any, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """Non-overlap output: the queue keeps one match, and the partition no run (section 5.2.1)."""
    runs, nodes, parts, scratch, registers = memory.runs, memory.nodes, memory.parts, memory.scratch, memory.registers
    best = s.NIL
    for at in range(registers[s.QUEUED]):
        run = scratch.queue[at]
        length = path_of(run, runs, nodes, scratch)
        if is_negated(theta, run, i, length, events.low[i], machine.kleene.size + 1, events, machine, memory):
            drop(run, runs, registers)
        elif best == s.NIL or _is_better(run, best, runs, nodes):
            if best != s.NIL:
                drop(best, runs, registers)
            best = run
        else:
            drop(run, runs, registers)
    registers[s.QUEUED] = 0
    if best == s.NIL:
        return
    scratch.queue[0] = best
    registers[s.QUEUED] = 1
    part = events.part[i]
    run = parts.head[part]
    while run != s.NIL:
        following = runs.next[run]
        drop(run, runs, registers)
        run = following
    registers[s.LIVE] -= parts.size[part]
    parts.head[part] = s.NIL
    parts.size[part] = 0


@inlined
def wait(theta: Any, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """Complete runs wait until the time of their negation at the end is over."""
    runs, scratch, registers = memory.runs, memory.scratch, memory.registers
    for at in range(registers[s.QUEUED]):
        run = scratch.queue[at]
        length = path_of(run, runs, memory.nodes, scratch)
        if is_negated(theta, run, i, length, events.low[i], machine.kleene.size + 1, events, machine, memory):
            drop(run, runs, registers)
        else:
            runs.state[run] = s.PENDING
            if machine.by_end:
                runs.start[run] = events.key[i]
            runs.last[run] = events.part[i]
            keep(run, events.part[i], runs, memory.parts, registers)
            push_timer(run, runs, scratch, registers)
    registers[s.QUEUED] = 0


@inlined
def release(low: int, machine: Machine, memory: Memory, out: Output) -> int:
    """Put out pending matches that began before ``low``, by start; or ended, by end. O(log pending + length) each."""
    runs, scratch, registers = memory.runs, memory.scratch, memory.registers
    while registers[s.TIMERS] > 0 and runs.start[scratch.timer[0]] < low:
        run = scratch.timer[0]
        if runs.state[run] != s.DEAD:
            length = path_of(run, runs, memory.nodes, scratch)
            status = _room(length, registers, out)
            if status != DONE:
                return status
            _write(length, machine, memory, out)
            unlink(run, runs.last[run], runs, memory.parts, registers)
        pop_timer(runs, scratch, registers)
        drop(run, runs, registers)
    return DONE


@inlined
def count_matches(i: int, events: Events, memory: Memory, out: Output, counts: Counts) -> int:
    """Write how many matches lie behind the stack's entries, and where the first begins, as one row. Cost: see ``count_paths``."""
    nodes, scratch, registers = memory.nodes, memory.scratch, memory.registers
    row = registers[s.ROWS]
    if registers[s.TOP] == 0:
        return DONE
    if row == out.start.size:
        return OUTPUT_FULL
    graph = Graph(nodes.previous, nodes.other, nodes.start, nodes.position)
    looked = count_paths(graph, -1, s.NIL, events.low[i], scratch.stack, registers[s.TOP], counts, scratch.path)
    if looked < 0:
        registers[s.NEED] = 2 * scratch.path.size
        return GROW_STACK
    total = counts.node.size - 1
    out.start[row] = counts.first[total]
    out.end[row] = events.position[i]
    out.stop[row] = counts.matches[total]
    registers[s.ROWS] = row + 1
    registers[s.EMITTED] = 1
    registers[s.STEPS] += looked
    return DONE


@inlined
def fill_stack(i: int, events: Events, memory: Memory) -> None:
    """All completed runs onto the enumeration stack, those that may begin at the threshold."""
    runs, nodes, scratch, registers = memory.runs, memory.nodes, memory.scratch, memory.registers
    top = 0
    for at in range(registers[s.QUEUED]):
        run = scratch.queue[registers[s.QUEUED] - 1 - at]
        start = nodes.start[runs.node[run]]
        if start >= max(events.low[i], registers[s.THRESHOLD]):
            scratch.stack[top], scratch.depth[top], scratch.owner[top] = runs.node[run], 0, run
            top += 1
        elif start >= events.low[i]:
            registers[s.NEXT] = max(registers[s.NEXT], start)
    registers[s.TOP] = top


@inlined
def begin_output(i: int, events: Events, machine: Machine, memory: Memory) -> None:
    runs, nodes, scratch, registers = memory.runs, memory.nodes, memory.scratch, memory.registers
    registers[s.BUSY] = 1
    registers[s.EMITTED] = 0
    registers[s.NEXT] = -1
    registers[s.THRESHOLD] = -1
    if machine.limit > 0:
        for at in range(registers[s.QUEUED]):
            registers[s.THRESHOLD] = max(registers[s.THRESHOLD], nodes.start[runs.node[scratch.queue[at]]])
    fill_stack(i, events, memory)


@inlined
def _follow(
    top: int, node: int, length: int, run: int, low: int, threshold: int, machine: Machine, memory: Memory
) -> tuple[int, int, int]:
    """Bring the list of the stack's entry onto the path; of unions the later start first, the other onto the stack.

    Gives the node of the first event, the number of events, and the top of the stack; for the number −1 where room is missing.
    """
    nodes, scratch, registers = memory.nodes, memory.scratch, memory.registers
    while True:
        if nodes.label[node] == s.UNION:
            if top + 1 >= scratch.stack.size:
                registers[s.NEED] = 2 * scratch.stack.size
                return node, -1, top
            other = nodes.other[node]
            if nodes.start[other] >= max(low, threshold):
                scratch.stack[top], scratch.depth[top], scratch.owner[top] = other, length, run
                top += 1
            elif nodes.start[other] >= low:
                registers[s.NEXT] = max(registers[s.NEXT], nodes.start[other])
            node = nodes.previous[node]
            continue
        if length >= scratch.path.size:
            registers[s.NEED] = 2 * scratch.path.size
            return node, -1, top
        scratch.spot[length] = nodes.position[node]
        if machine.marks:
            scratch.mark[length] = nodes.label[node]
        if machine.left.size > 0:
            scratch.path[length] = node
        length += 1
        if nodes.previous[node] == s.NIL:
            return node, length, top
        node = nodes.previous[node]


@inlined
def list_matches(theta: Any, i: int, events: Events, machine: Machine, memory: Memory, out: Output) -> int:
    """Write the matches behind the stack's entries. Output-linear: a list that is followed gives a match, or is out of the window."""
    nodes, scratch, registers = memory.nodes, memory.scratch, memory.registers
    low = events.low[i]
    while registers[s.TOP] > 0:
        at = registers[s.TOP] - 1
        entry, begun, run = scratch.stack[at], scratch.depth[at], scratch.owner[at]
        threshold = registers[s.THRESHOLD]
        node, length, top = _follow(at, entry, begun, run, low, threshold, machine, memory)
        start = nodes.start[node]
        status = DONE
        if length < 0:
            status = GROW_STACK
        elif threshold >= 0 and start != threshold:
            if start < threshold:
                registers[s.NEXT] = max(registers[s.NEXT], start)
        elif start >= low and not (
            machine.left.size > 0
            and is_negated(theta, run, i, length, low, machine.kleene.size + 1, events, machine, memory)
        ):
            status = _room(length, registers, out)
            if status == DONE:
                _write(length, machine, memory, out)
                if machine.limit > 0 and registers[s.EMITTED] == machine.limit:
                    top = 0
                    registers[s.NEXT] = -1
        if status != DONE:  # the entry is read again when there is room
            scratch.stack[at], scratch.depth[at] = entry, begun
            return status
        registers[s.TOP] = top
    return DONE
