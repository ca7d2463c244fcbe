"""Running an NFAb over a batch (SASE+ paper, section 5.2).

``advance`` takes the runs of an event's partition one by one, tries their edges, and makes new runs where several hold.
Invariants: a partition's list holds only runs that the next event may extend; a run's node begins the list of its events; the
cost of an event is O(runs of its partition) plus the output, whatever the number of partitions.

Arrays read: ``events``, ``machine``. Written: all others. Nothing grows here: capacity is checked before an event begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._jit import (
    DONE,
    GROW_ACTIVE,
    GROW_NODES,
    GROW_OUTPUT,
    GROW_STACK,
    GROW_TABLE,
    HANDED_OVER,
    OUTPUT_FULL,
    OVERFLOW,
    PAUSED,
    called,
    inlined,
    jit,
)
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.structure import I64, Events, Machine, Nodes, Parts, Runs, Scratch
from stretto.engines.shared.counting import Counts, Graph, count_paths
from stretto.engines.shared.scalar import greatest, least, real, word
from stretto.engines.tecs.enumerate import Output

#: The query's conditions, as the kernel is handed them.
conditions_at = called(numbers=5, matrices=3)

#: The kernel pauses after looking at so many runs, which takes well below a second, so that ^C acts soon.
PAUSE_AFTER = 1 << 23

# -- edges -------------------------------------------------------------------------------------------------------------


@inlined
def _holds(
    theta: Any, edge: int, run: int, row: int, node: int, events: Events, machine: Machine, runs: Runs, nodes: Nodes
) -> bool:
    """Whether what an edge asks beyond its own event holds for a run. O(1), or O(events of the run) for every ``a[i]``.

    Bit 0 of ``V[0, 0]`` is noted where an integer beyond 64 bits decides: not where another of its conditions is false anyway.
    """
    V = runs.V
    unknown = False
    if machine.asks[edge] and theta(edge, run, row, node, s.NIL, V, events.C, nodes.P) == 0:
        unknown = V[0, 0] & 1 != 0
        if not unknown:
            return False
        V[0, 0] &= ~1
    edges = machine.asks.size
    for at in range(machine.each_first[edge], machine.each_first[edge + 1]):
        one = runs.node[run]
        while one != s.NIL:
            mine = nodes.label[one] == machine.each_component[at]
            if mine and theta(edges + at, run, row, node, one, V, events.C, nodes.P) == 0:
                if V[0, 0] & 1 == 0:
                    return False
                V[0, 0] &= ~1
                unknown = True
            one = nodes.previous[one]
    if unknown:
        V[0, 0] |= 1
    return not unknown


@inlined
def _apply(machine: Machine, operations: int, run: int, row: int, events: Events, runs: Runs) -> None:
    """Bring V up to date with a selected event; ``operations`` is 2c for a begin, 2c + 1 for a take."""
    V, C = runs.V, events.C
    begins = operations % 2 == 0
    for at in range(machine.op_first[operations], machine.op_first[operations + 1]):
        kind, slot, column = machine.op_kind[at], machine.op_slot[at], machine.op_column[at]
        known = column == 0 or (C[row, 0] >> column) & 1 == 1
        had = not begins and (V[run, 0] >> slot) & 1 == 1
        bit = np.int64(1) << slot
        if kind <= 1:  # FIRST, LAST
            V[run, slot] = C[row, column]
            V[run, 0] = V[run, 0] | bit if known else V[run, 0] & ~bit
        elif kind == 2:  # LENGTH
            V[run, slot] = 1 if begins else V[run, slot] + 1
            V[run, 0] |= bit
        elif kind == 3:  # COUNT
            V[run, slot] = (0 if begins else V[run, slot]) + (1 if known else 0)
            V[run, 0] |= bit
        elif not known:
            if begins:
                V[run, slot] = 0
                V[run, 0] &= ~bit
                if kind == 10:
                    V[run, slot + 1] = 0
                    V[run, 0] &= ~(bit << 1)
        elif not had:
            V[run, slot] = C[row, column]
            V[run, 0] |= bit
            if kind == 10:
                V[run, slot + 1] = 0
                V[run, 0] |= bit << 1
        else:
            old, new = V[run, slot], C[row, column]
            if kind == 4:  # SUM
                if (new > 0 and old > 9223372036854775807 - new) or (new < 0 and old < -9223372036854775808 - new):
                    V[0, 0] |= 2
                else:
                    V[run, slot] = old + new
            elif kind == 5:
                V[run, slot] = word(real(old) + real(new))
            elif kind == 6:
                V[run, slot] = min(old, new)
            elif kind == 7:
                V[run, slot] = word(least(real(old), real(new)))
            elif kind == 8:
                V[run, slot] = max(old, new)
            elif kind == 10:  # WIDE_SUM and CARRY; the halves of 2^64 are taken off before what is added leaves 64 bits
                if new > 0 and old > 9223372036854775807 - new:
                    V[run, slot] = (old - 9223372036854775807) + (new - 9223372036854775807) - 2
                    V[run, slot + 1] += 1
                elif new < 0 and old < -9223372036854775808 - new:
                    V[run, slot] = (old + 9223372036854775807) + (new + 9223372036854775807) + 2
                    V[run, slot + 1] -= 1
                else:
                    V[run, slot] = old + new
            else:
                V[run, slot] = word(greatest(real(old), real(new)))


# -- runs and nodes ----------------------------------------------------------------------------------------------------


@inlined
def _new_run(runs: Runs, registers: I64) -> int:
    run = registers[s.FREE]
    registers[s.FREE] = runs.next[run]
    registers[s.FREE_RUNS] -= 1
    registers[s.MADE] += 1
    return run


@inlined
def _drop(run: int, runs: Runs, registers: I64) -> None:
    runs.next[run] = registers[s.FREE]
    registers[s.FREE] = run
    registers[s.FREE_RUNS] += 1


@inlined
def copy_run(source: int, target: int, runs: Runs) -> None:
    """Bring a run into the computation state of another."""
    runs.state[target] = runs.state[source]
    runs.start[target] = runs.start[source]
    runs.last[target] = runs.last[source]
    runs.node[target] = runs.node[source]
    for at in range(runs.V.shape[1]):
        runs.V[target, at] = runs.V[source, at]


@inlined
def _copy(run: int, runs: Runs, registers: I64) -> int:
    """A new run in the same computation state."""
    fresh = _new_run(runs, registers)
    copy_run(run, fresh, runs)
    return fresh


@inlined
def _new_node(
    label: int, previous: int, start: int, i: int, events: Events, machine: Machine, nodes: Nodes, registers: I64
) -> int:
    node = registers[s.HEAD]
    registers[s.HEAD] = node + 1
    nodes.previous[node] = previous
    nodes.other[node] = s.NIL
    nodes.start[node] = start
    nodes.position[node] = events.position[i]
    nodes.tie[node] = events.tie[i]
    nodes.label[node] = label
    if machine.keeps:
        for at in range(events.C.shape[1]):
            nodes.P[node, at] = events.C[i, at]
    return node


@inlined
def _select(
    operations: int, run: int, i: int, events: Events, machine: Machine, runs: Runs, nodes: Nodes, registers: I64
) -> None:
    """A run selects the event for component ``operations // 2``."""
    runs.node[run] = _new_node(operations // 2, runs.node[run], runs.start[run], i, events, machine, nodes, registers)
    runs.last[run] = events.rank[i]
    _apply(machine, operations, run, i, events, runs)


@inlined
def _keep(run: int, part: int, runs: Runs, parts: Parts, registers: I64) -> None:
    """Put a run into its partition's list."""
    runs.next[run] = parts.head[part]
    parts.head[part] = run
    parts.size[part] += 1
    registers[s.LIVE] += 1


@inlined
def _go_on(
    theta: Any,
    component: int,
    run: int,
    i: int,
    events: Events,
    machine: Machine,
    runs: Runs,
    nodes: Nodes,
    parts: Parts,
    scratch: Scratch,
    registers: I64,
) -> None:
    """What becomes of a run that has just selected an event for a component: it waits, and it may be complete."""
    kleene = machine.kleene[component]
    last = component == machine.kleene.size - 1
    if last and (not kleene or _holds(theta, 3 * component + 2, run, i, s.NIL, events, machine, runs, nodes)):
        done = _copy(run, runs, registers) if kleene else run
        scratch.queue[registers[s.QUEUED]] = done
        registers[s.QUEUED] += 1
    if kleene:
        runs.state[run] = 2 * component + 1
        _keep(run, events.part[i], runs, parts, registers)
    elif not last:
        runs.state[run] = 2 * component + 2
        _keep(run, events.part[i], runs, parts, registers)


# -- an event ----------------------------------------------------------------------------------------------------------


@inlined
def _step(
    theta: Any,
    i: int,
    events: Events,
    machine: Machine,
    runs: Runs,
    nodes: Nodes,
    parts: Parts,
    scratch: Scratch,
    registers: I64,
) -> None:
    """All runs of the event's partition make their moves. O(runs)."""
    part, bits, low = events.part[i], events.bits[i], events.low[i]
    components = machine.kleene.size
    run = parts.head[part]
    parts.head[part] = s.NIL
    registers[s.LIVE] -= parts.size[part]
    parts.size[part] = 0
    while run != s.NIL:
        following = runs.next[run]
        state = runs.state[run]
        if state == s.PENDING:
            _try_pending(theta, run, i, events, machine, runs, nodes, parts, registers)
        elif runs.start[run] < low or (machine.contiguous and runs.last[run] + 1 != events.rank[i]):
            _drop(run, runs, registers)
        elif state % 2 == 0:
            component = state // 2
            if (bits >> (2 * component)) & 1 and _holds(
                theta, 3 * component, run, i, s.NIL, events, machine, runs, nodes
            ):
                taker = run
                if machine.any:
                    taker = _copy(run, runs, registers)
                    _keep(run, part, runs, parts, registers)
                _select(2 * component, taker, i, events, machine, runs, nodes, registers)
                _go_on(theta, component, taker, i, events, machine, runs, nodes, parts, scratch, registers)
            elif machine.contiguous:
                _drop(run, runs, registers)
            else:
                _keep(run, part, runs, parts, registers)
        else:
            component = state // 2
            following_one = component + 1
            takes = (bits >> (2 * component + 1)) & 1 == 1 and _holds(
                theta, 3 * component + 1, run, i, s.NIL, events, machine, runs, nodes
            )
            if (
                following_one < components
                and (bits >> (2 * following_one)) & 1
                and _holds(theta, 3 * component + 2, run, i, s.NIL, events, machine, runs, nodes)
                and _holds(theta, 3 * following_one, run, i, s.NIL, events, machine, runs, nodes)
            ):
                # Step 6: proceed only with an event that begins the next component.
                other = _copy(run, runs, registers)
                _select(2 * following_one, other, i, events, machine, runs, nodes, registers)
                _go_on(theta, following_one, other, i, events, machine, runs, nodes, parts, scratch, registers)
            if takes:
                taker = run
                if machine.any:
                    taker = _copy(run, runs, registers)
                    _keep(run, part, runs, parts, registers)
                _select(2 * component + 1, taker, i, events, machine, runs, nodes, registers)
                _go_on(theta, component, taker, i, events, machine, runs, nodes, parts, scratch, registers)
            elif machine.contiguous:
                _drop(run, runs, registers)
            else:
                _keep(run, part, runs, parts, registers)
        run = following
    if bits & 1 and _holds(theta, 0, s.NIL, i, s.NIL, events, machine, runs, nodes):
        run = _new_run(runs, registers)
        runs.start[run] = events.key[i]
        runs.node[run] = s.NIL
        runs.V[run, 0] = 0
        _select(0, run, i, events, machine, runs, nodes, registers)
        _go_on(theta, 0, run, i, events, machine, runs, nodes, parts, scratch, registers)
    for negation in range(machine.left.size):
        if (bits >> (2 * components + negation)) & 1:
            before = parts.negated[part, negation]
            parts.negated[part, negation] = _new_node(
                components + negation, before, events.key[i], i, events, machine, nodes, registers
            )


# -- negation at the end -----------------------------------------------------------------------------------------------


@inlined
def _try_pending(
    theta: Any,
    run: int,
    i: int,
    events: Events,
    machine: Machine,
    runs: Runs,
    nodes: Nodes,
    parts: Parts,
    registers: I64,
) -> None:
    """A complete run whose negation at the end may be broken by the event."""
    components = machine.kleene.size
    for negation in range(machine.left.size):
        if machine.right[negation] == components and (events.bits[i] >> (2 * components + negation)) & 1:
            # In (last.time, first.time + d]: later in time than the last event, and with the first in its window.
            late = runs.start[run] < events.low[i]
            if events.tie[i] > nodes.position[runs.node[run]] and not late:
                scratch_node = registers[s.HEAD]  # the event as a node of its own, for the time of the test
                _new_node(components + negation, s.NIL, 0, i, events, machine, nodes, registers)
                registers[s.HEAD] = scratch_node
                if _holds(theta, 3 * components + negation, run, i, scratch_node, events, machine, runs, nodes):
                    runs.state[run] = s.DEAD  # it is freed when its time has come
                    return
    _keep(run, events.part[i], runs, parts, registers)


@inlined
def _before(scratch: Scratch, runs: Runs, a: int, b: int) -> bool:
    """Whether timer a comes before timer b: the earlier start, then the earlier completion."""
    first, second = runs.start[scratch.timer[a]], runs.start[scratch.timer[b]]
    return first < second or (first == second and scratch.serial[a] < scratch.serial[b])


@inlined
def _swap(scratch: Scratch, a: int, b: int) -> None:
    scratch.timer[a], scratch.timer[b] = scratch.timer[b], scratch.timer[a]
    scratch.serial[a], scratch.serial[b] = scratch.serial[b], scratch.serial[a]


@inlined
def _push_timer(run: int, runs: Runs, scratch: Scratch, registers: I64) -> None:
    """Onto the heap. O(log pending)."""
    at = registers[s.TIMERS]
    registers[s.TIMERS] = at + 1
    scratch.timer[at] = run
    scratch.serial[at] = registers[s.SERIAL]
    registers[s.SERIAL] += 1
    while at > 0 and _before(scratch, runs, at, (at - 1) // 2):
        _swap(scratch, at, (at - 1) // 2)
        at = (at - 1) // 2


@inlined
def _pop_timer(runs: Runs, scratch: Scratch, registers: I64) -> int:
    run = scratch.timer[0]
    size = registers[s.TIMERS] - 1
    registers[s.TIMERS] = size
    scratch.timer[0], scratch.serial[0] = scratch.timer[size], scratch.serial[size]
    at = 0
    while True:
        least = at
        for child in range(2 * at + 1, min(2 * at + 3, size)):
            if _before(scratch, runs, child, least):
                least = child
        if least == at:
            return run
        _swap(scratch, at, least)
        at = least


@inlined
def _unlink(run: int, part: int, runs: Runs, parts: Parts, registers: I64) -> None:
    """Out of its partition's list. O(runs of the partition)."""
    before = s.NIL
    one = parts.head[part]
    while one != run:
        before = one
        one = runs.next[one]
    if before == s.NIL:
        parts.head[part] = runs.next[run]
    else:
        runs.next[before] = runs.next[run]
    parts.size[part] -= 1
    registers[s.LIVE] -= 1


# -- merging -----------------------------------------------------------------------------------------------------------


@inlined
def _same(a: int, b: int, machine: Machine, runs: Runs) -> bool:
    """Whether two runs will do the same from here on: state and masked V (section 5.2.2)."""
    state = runs.state[a]
    if runs.state[b] != state:
        return False
    for at in range(machine.mask_first[state], machine.mask_first[state + 1]):
        slot = machine.mask_slot[at]
        known = (runs.V[a, 0] >> slot) & 1
        if known != (runs.V[b, 0] >> slot) & 1 or (known and runs.V[a, slot] != runs.V[b, slot]):
            return False
    return True


@inlined
def _mixed(bits: np.uint64) -> np.uint64:
    """Bits stirred by shifts alone, which no mode of running complains about (xorshift64)."""
    bits ^= bits << np.uint64(13)
    bits ^= bits >> np.uint64(7)
    return bits ^ (bits << np.uint64(17))


@inlined
def _hash(run: int, machine: Machine, runs: Runs) -> int:
    state = runs.state[run]
    found = np.uint64(state + 1)
    for at in range(machine.mask_first[state], machine.mask_first[state + 1]):
        slot = machine.mask_slot[at]
        value = runs.V[run, slot] if (runs.V[run, 0] >> slot) & 1 else np.int64(-7)
        found = _mixed(found ^ np.uint64(value))
    return np.int64(_mixed(found) >> np.uint64(1))


@inlined
def _merge(
    part: int, machine: Machine, runs: Runs, nodes: Nodes, parts: Parts, scratch: Scratch, registers: I64
) -> None:
    """Runs of a partition that are equivalent become one. O(runs)."""
    registers[s.EPOCH] += 1
    epoch = registers[s.EPOCH]
    mask = scratch.table.size - 1
    before = s.NIL
    run = parts.head[part]
    while run != s.NIL:
        following = runs.next[run]
        at = _hash(run, machine, runs) & mask
        while scratch.stamp[at] == epoch and not _same(scratch.table[at], run, machine, runs):
            at = (at + 1) & mask
        if scratch.stamp[at] != epoch:
            scratch.stamp[at] = epoch
            scratch.table[at] = run
            before = run
        else:
            kept = scratch.table[at]
            first, second = runs.node[kept], runs.node[run]
            if nodes.start[second] > nodes.start[first]:
                first, second = second, first
            node = registers[s.HEAD]
            registers[s.HEAD] = node + 1
            nodes.previous[node], nodes.other[node] = first, second
            nodes.start[node] = nodes.start[first]
            nodes.label[node] = s.UNION
            runs.node[kept] = node
            runs.start[kept] = nodes.start[first]
            runs.next[before] = following
            parts.size[part] -= 1
            registers[s.LIVE] -= 1
            registers[s.MERGED] += 1
            _drop(run, runs, registers)
        run = following


# -- output ------------------------------------------------------------------------------------------------------------


@inlined
def _is_negated(
    theta: Any,
    run: int,
    i: int,
    length: int,
    low: int,
    events: Events,
    machine: Machine,
    runs: Runs,
    nodes: Nodes,
    parts: Parts,
    scratch: Scratch,
) -> bool:
    """Whether a negated event stands where the match on the path allows none. O(length + negated events of the window)."""
    components = machine.kleene.size
    for negation in range(machine.left.size):
        left, right = machine.left[negation], machine.right[negation]
        if right == components:
            continue
        after = np.int64(-1)  # position of the last event of the component before
        until = np.int64(0)  # … and of the first one of the component behind
        for at in range(length):
            node = scratch.path[at]
            if nodes.label[node] == right:
                until = nodes.position[node]
                if left < 0:
                    until = nodes.tie[node]
            if nodes.label[node] == left and after < 0:
                after = nodes.position[node]
        if left < 0:
            after = low - 1
        one = parts.negated[events.part[i], negation]
        while one != s.NIL and nodes.position[one] > after:
            if nodes.position[one] < until and _holds(
                theta, 3 * components + negation, run, i, one, events, machine, runs, nodes
            ):
                return True
            one = nodes.previous[one]
    return False


@inlined
def _write(length: int, machine: Machine, scratch: Scratch, out: Output, registers: I64) -> None:
    """The match on the path into the output buffers. O(length)."""
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
def _enumerate(
    theta: Any,
    i: int,
    events: Events,
    machine: Machine,
    runs: Runs,
    nodes: Nodes,
    parts: Parts,
    scratch: Scratch,
    out: Output,
    registers: I64,
) -> int:
    """Write the matches behind the stack's entries. Output-linear: a list that is followed gives a match, or is out of the window."""
    low = events.low[i]
    negates = machine.left.size > 0
    while registers[s.TOP] > 0:
        top = registers[s.TOP] - 1
        node, length, run = scratch.stack[top], scratch.depth[top], scratch.owner[top]
        entry, begun = node, length  # put back when there is no room: the entry is read again then
        threshold = registers[s.THRESHOLD]
        while True:
            if nodes.label[node] == s.UNION:
                if top + 1 >= scratch.stack.size:
                    registers[s.NEED] = 2 * scratch.stack.size
                    scratch.stack[registers[s.TOP] - 1], scratch.depth[registers[s.TOP] - 1] = entry, begun
                    return GROW_STACK
                later = nodes.other[node]
                if nodes.start[later] >= max(low, threshold):
                    scratch.stack[top], scratch.depth[top], scratch.owner[top] = later, length, run
                    top += 1
                elif nodes.start[later] >= low:
                    registers[s.NEXT] = max(registers[s.NEXT], nodes.start[later])
                node = nodes.previous[node]
                continue
            if length >= scratch.path.size:
                registers[s.NEED] = 2 * scratch.path.size
                scratch.stack[registers[s.TOP] - 1], scratch.depth[registers[s.TOP] - 1] = entry, begun
                return GROW_STACK
            scratch.spot[length] = nodes.position[node]
            if machine.marks:
                scratch.mark[length] = nodes.label[node]
            if negates:
                scratch.path[length] = node
            length += 1
            behind = nodes.previous[node]
            if behind == s.NIL:
                break
            node = behind
        start = nodes.start[node]
        if threshold >= 0 and start != threshold:
            if start < threshold:
                registers[s.NEXT] = max(registers[s.NEXT], start)
        elif start >= low and not (
            negates and _is_negated(theta, run, i, length, low, events, machine, runs, nodes, parts, scratch)
        ):
            if registers[s.CELLS] + length > out.position.size or registers[s.ROWS] == out.start.size:
                registers[s.NEED] = length
                scratch.stack[registers[s.TOP] - 1], scratch.depth[registers[s.TOP] - 1] = entry, begun
                return OUTPUT_FULL if registers[s.ROWS] > 0 else GROW_OUTPUT
            _write(length, machine, scratch, out, registers)
            if machine.limit > 0 and registers[s.EMITTED] == machine.limit:
                top = 0
                registers[s.NEXT] = -1
        registers[s.TOP] = top
    return DONE


@inlined
def _count(i: int, events: Events, nodes: Nodes, scratch: Scratch, out: Output, counts: Counts, registers: I64) -> int:
    """Write how many matches lie behind the stack's entries, and where the first begins, as one row. Cost: see ``count_paths``."""
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
def _path_of(run: int, runs: Runs, nodes: Nodes, scratch: Scratch) -> int:
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
    a, b = runs.node[run], runs.node[best]
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
def _choose(
    theta: Any,
    i: int,
    events: Events,
    machine: Machine,
    runs: Runs,
    nodes: Nodes,
    parts: Parts,
    scratch: Scratch,
    registers: I64,
) -> None:
    """Non-overlap output: the queue keeps one match, and the partition no run (section 5.2.1)."""
    best = s.NIL
    for at in range(registers[s.QUEUED]):
        run = scratch.queue[at]
        length = _path_of(run, runs, nodes, scratch)
        if _is_negated(theta, run, i, length, events.low[i], events, machine, runs, nodes, parts, scratch):
            _drop(run, runs, registers)
        elif best == s.NIL or _is_better(run, best, runs, nodes):
            if best != s.NIL:
                _drop(best, runs, registers)
            best = run
        else:
            _drop(run, runs, registers)
    registers[s.QUEUED] = 0
    if best == s.NIL:
        return
    scratch.queue[0] = best
    registers[s.QUEUED] = 1
    part = events.part[i]
    run = parts.head[part]
    while run != s.NIL:
        following = runs.next[run]
        _drop(run, runs, registers)
        run = following
    registers[s.LIVE] -= parts.size[part]
    parts.head[part] = s.NIL
    parts.size[part] = 0


@inlined
def _wait(
    theta: Any,
    i: int,
    events: Events,
    machine: Machine,
    runs: Runs,
    nodes: Nodes,
    parts: Parts,
    scratch: Scratch,
    registers: I64,
) -> None:
    """Complete runs wait until the time of their negation at the end is over."""
    for at in range(registers[s.QUEUED]):
        run = scratch.queue[at]
        length = _path_of(run, runs, nodes, scratch)
        if _is_negated(theta, run, i, length, events.low[i], events, machine, runs, nodes, parts, scratch):
            _drop(run, runs, registers)
        else:
            runs.state[run] = s.PENDING
            runs.last[run] = events.part[i]
            _keep(run, events.part[i], runs, parts, registers)
            _push_timer(run, runs, scratch, registers)
    registers[s.QUEUED] = 0


@inlined
def _release(
    low: int, machine: Machine, runs: Runs, nodes: Nodes, parts: Parts, scratch: Scratch, out: Output, registers: I64
) -> int:
    """Put out pending matches that began before ``low``, by start. O(log pending + length) each."""
    while registers[s.TIMERS] > 0 and runs.start[scratch.timer[0]] < low:
        run = scratch.timer[0]
        if runs.state[run] != s.DEAD:
            length = _path_of(run, runs, nodes, scratch)
            if registers[s.CELLS] + length > out.position.size or registers[s.ROWS] == out.start.size:
                registers[s.NEED] = length
                return OUTPUT_FULL if registers[s.ROWS] > 0 else GROW_OUTPUT
            _write(length, machine, scratch, out, registers)
            _unlink(run, runs.last[run], runs, parts, registers)
        _pop_timer(runs, scratch, registers)
        _drop(run, runs, registers)
    return DONE


@inlined
def _fill_stack(i: int, events: Events, runs: Runs, nodes: Nodes, scratch: Scratch, registers: I64) -> None:
    """All completed runs onto the enumeration stack, those that may begin at the threshold."""
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
def _begin_output(
    i: int, events: Events, machine: Machine, runs: Runs, nodes: Nodes, scratch: Scratch, registers: I64
) -> None:
    registers[s.BUSY] = 1
    registers[s.EMITTED] = 0
    registers[s.NEXT] = -1
    registers[s.THRESHOLD] = -1
    if machine.limit > 0:
        for at in range(registers[s.QUEUED]):
            registers[s.THRESHOLD] = max(registers[s.THRESHOLD], nodes.start[runs.node[scratch.queue[at]]])
    _fill_stack(i, events, runs, nodes, scratch, registers)


@inlined
def _lacks_room(
    i: int, events: Events, machine: Machine, runs: Runs, nodes: Nodes, parts: Parts, scratch: Scratch, registers: I64
) -> int:
    """The status that asks for what the event may need at most; DONE when there is room."""
    count = parts.size[events.part[i]]
    if registers[s.FREE_RUNS] < 4 * count + 3:
        registers[s.NEED] = 4 * count + 3
        return GROW_TABLE
    if registers[s.HEAD] + 5 * count + machine.left.size + 6 > nodes.previous.size:
        registers[s.NEED] = 5 * count + machine.left.size + 6
        return GROW_NODES
    wanted = max(8 * count + 8, registers[s.TIMERS] + 2 * count + 4)
    if scratch.queue.size < wanted:
        registers[s.NEED] = wanted
        return GROW_ACTIVE
    if (machine.single or machine.pending) and scratch.path.size < registers[s.HEAD] + 2 * count + 2:
        registers[s.NEED] = 2 * (registers[s.HEAD] + 2 * count + 2)  # no list is longer than all nodes
        return GROW_STACK
    return DONE


@jit
def advance(
    conditions: int,
    events: Events,
    machine: Machine,
    runs: Runs,
    nodes: Nodes,
    parts: Parts,
    scratch: Scratch,
    out: Output,
    counts: Counts,
    registers: I64,
) -> int:
    """All visited events of a batch, from ``registers[CURSOR]`` on; a status says why it stopped.

    Cost: O(runs of the event's partition) for an event, and O(length) for each match, or what counting costs (``count_paths``).
    """
    theta = conditions_at(conditions)
    while registers[s.CURSOR] < events.part.size:
        i = registers[s.CURSOR]
        if registers[s.BUSY] == 0:
            registers[s.STEPS] += parts.size[events.part[i]]
            if registers[s.STEPS] > PAUSE_AFTER:
                registers[s.STEPS] = 0
                return PAUSED
            status = _lacks_room(i, events, machine, runs, nodes, parts, scratch, registers)
            if status != DONE:
                return status
            registers[s.LOW] = max(registers[s.LOW], events.low[i])
            if machine.pending:
                status = _release(events.low[i], machine, runs, nodes, parts, scratch, out, registers)
                if status != DONE:
                    return status
            registers[s.VISITED] += 1
            registers[s.QUEUED] = 0
            _step(theta, i, events, machine, runs, nodes, parts, scratch, registers)
            if runs.V[0, 0] != 0:
                return OVERFLOW
            if machine.merges and parts.size[events.part[i]] > 1:
                _merge(events.part[i], machine, runs, nodes, parts, scratch, registers)
            if registers[s.QUEUED] > 0 and not machine.silent:
                if machine.pending:
                    _wait(theta, i, events, machine, runs, nodes, parts, scratch, registers)
                elif machine.single:
                    _choose(theta, i, events, machine, runs, nodes, parts, scratch, registers)
                if machine.hands and registers[s.QUEUED] > 0:
                    registers[s.BUSY] = 2
                    return HANDED_OVER
                _begin_output(i, events, machine, runs, nodes, scratch, registers)
        elif registers[s.BUSY] == 2:
            registers[s.BUSY] = 0
            registers[s.TRIGGERS] += 1
        while registers[s.BUSY] == 1:
            if machine.counts:
                status = _count(i, events, nodes, scratch, out, counts, registers)
            else:
                status = _enumerate(theta, i, events, machine, runs, nodes, parts, scratch, out, registers)
            if status != DONE:
                return status
            if registers[s.THRESHOLD] >= 0 and registers[s.NEXT] >= 0:
                registers[s.THRESHOLD] = registers[s.NEXT]
                registers[s.NEXT] = -1
                _fill_stack(i, events, runs, nodes, scratch, registers)
            else:
                registers[s.BUSY] = 0
                registers[s.TRIGGERS] += 1 if registers[s.EMITTED] > 0 else 0
        for at in range(registers[s.QUEUED]):
            _drop(scratch.queue[at], runs, registers)
        registers[s.QUEUED] = 0
        registers[s.CURSOR] = i + 1
    return DONE


@jit
def expire(
    low: int, machine: Machine, runs: Runs, nodes: Nodes, parts: Parts, scratch: Scratch, out: Output, registers: I64
) -> int:
    """Time has passed: put out the pending matches that began before ``low``."""
    registers[s.LOW] = max(registers[s.LOW], low)
    return _release(low, machine, runs, nodes, parts, scratch, out, registers)


# -- memory ------------------------------------------------------------------------------------------------------------


@jit
def sweep(count: int, low: int, runs: Runs, nodes: Nodes, parts: Parts, registers: I64) -> int:
    """Drop what has left the window in the first ``count`` partitions; how many hold something even so. O(partitions + runs)."""
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
                _drop(run, runs, registers)
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
def list_runs(count: int, runs: Runs, parts: Parts, numbers: I64) -> None:
    """The runs of the first ``count`` partitions, list by list, into ``numbers``. O(partitions + runs)."""
    found = 0
    for part in range(count):
        run = parts.head[part]
        while run != s.NIL:
            numbers[found] = run
            found += 1
            run = runs.next[run]


@jit
def collect(count: int, low: int, span: int, runs: Runs, nodes: Nodes, parts: Parts, place: I64, registers: I64) -> int:
    """Move the nodes that a run still needs to the front, in their order; how many slots are in use then. O(nodes + partitions).

    ``place`` (one word a node, zero) becomes the new number of each node. Negated events before ``low``, or more than ``span``
    before the latest one of their kind, are in the window of no event to come.
    """
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
    for node in range(registers[s.HEAD] - 1, 0, -1):
        if place[node]:
            if nodes.label[node] == s.UNION and nodes.start[nodes.other[node]] < low:
                nodes.other[node] = s.NIL
            place[nodes.previous[node]] = 1
            place[nodes.other[node]] = 1
    place[s.NIL] = 0
    head = 1
    for node in range(1, registers[s.HEAD]):
        if place[node]:
            place[node] = head
            nodes.previous[head] = place[nodes.previous[node]]
            nodes.other[head] = place[nodes.other[node]]
            nodes.start[head] = nodes.start[node]
            nodes.position[head] = nodes.position[node]
            nodes.tie[head] = nodes.tie[node]
            nodes.label[head] = nodes.label[node]
            if nodes.P.shape[0] > 1:
                for at in range(nodes.P.shape[1]):
                    nodes.P[head, at] = nodes.P[node, at]
            head += 1
    for part in range(count):
        run = parts.head[part]
        while run != s.NIL:
            runs.node[run] = place[runs.node[run]]
            run = runs.next[run]
        for negation in range(parts.negated.shape[1]):
            parts.negated[part, negation] = place[parts.negated[part, negation]]
    registers[s.HEAD] = head
    return head
