"""From events to the matches that stay (KEEP, AFTER MATCH), which are given as soon as they are decided.

Cost of an event: O(open starts of its partition · edges into its steps), where ways are compared at the place where they part. After
``SKIP PAST LAST EVENT`` a start that completes a match ends all later ones: it is kept itself, or what keeps it out ends later
still, and keeps them out as well. A start that is at the same steps as an earlier one is never made, unless a window may close the
earlier one first. So a loop whose every round is a match has one open start, however long it is.
"""

from __future__ import annotations

from stretto._jit import DONE, GROW_NODES, GROW_OUTPUT, GROW_STACK, OUTPUT_FULL, inlined, jit
from stretto.engines.greedy import structure as s
from stretto.engines.greedy.structure import Nodes, Output, Parts, Rules, Starts, Timers
from stretto.engines.timed.structure import Events, Machine


@jit
def advance(
    events: Events,
    machine: Machine,
    rules: Rules,
    starts: Starts,
    nodes: Nodes,
    parts: Parts,
    timers: Timers,
    out: Output,
    registers: s.I64,
) -> int:
    """Take the events from ``registers[CURSOR]`` on.

    Returns a status; on any but DONE the caller mends what it names and calls again.
    """
    while registers[s.CURSOR] < events.cls.size:
        at = registers[s.CURSOR]
        part, rank = events.part[at], events.rank[at]
        if not registers[s.TAKEN]:
            if registers[s.TIMED]:
                now = events.clock[at] if registers[s.TIMED] & 1 else events.measure[at]
                status = pass_time(now, machine, rules, starts, nodes, parts, timers, out, registers)
                if status != DONE:
                    return status
            status = _settle(at, rank - 1, events, machine, rules, starts, nodes, parts, out, registers)
            if status != DONE:
                return status
            own = machine.begin[events.cls[at] + 1] - machine.begin[events.cls[at]]
            registers[s.NEED] = (parts.open[part] + 1) * own
            if registers[s.NODES] + registers[s.NEED] > nodes.step.size:
                return GROW_NODES
            if (not registers[s.FREE] and registers[s.STARTS] == starts.part.size) or (
                registers[s.TIMERS] + 2 > timers.part.size
            ):
                return GROW_STACK
            _take(at, events, machine, rules, starts, nodes, parts, registers)
            registers[s.TAKEN] = 1
        status = _settle(at, rank, events, machine, rules, starts, nodes, parts, out, registers)
        if status != DONE:
            return status
        _set_timer(part, machine, rules, starts, nodes, parts, timers, registers)
        registers[s.TAKEN] = 0
        registers[s.CURSOR] = at + 1
    return DONE


@jit
def pass_time(
    now: float,
    machine: Machine,
    rules: Rules,
    starts: Starts,
    nodes: Nodes,
    parts: Parts,
    timers: Timers,
    out: Output,
    registers: s.I64,
) -> int:
    """Give what was decided before a time, in the order of decisions. O(log timers) for each start that is closed."""
    while registers[s.TIMERS] and timers.time[0] < now:
        time, part = timers.time[0], timers.part[0]
        if parts.timed[part] and parts.due[part] == time:
            while parts.first[part]:
                start = parts.first[part]
                bounded, end = _deadline(start, part, machine, rules, starts, nodes, parts, registers)
                if not starts.closed[start] and not (bounded and end <= time):
                    break
                status = _give(part, -1, machine, rules, starts, nodes, parts, out, registers)
                if status != DONE:
                    return status
            parts.timed[part] = False
        _pop_timer(timers, registers)
        _set_timer(part, machine, rules, starts, nodes, parts, timers, registers)
    return DONE


@jit
def close(
    order: s.I64,
    machine: Machine,
    rules: Rules,
    starts: Starts,
    nodes: Nodes,
    parts: Parts,
    out: Output,
    registers: s.I64,
) -> int:
    """The stream has ended: give what the starts have, which come in the order of the stream. O(starts + what is given)."""
    while registers[s.CURSOR] < order.size:
        start = order[registers[s.CURSOR]]
        part = starts.part[start]
        if starts.used[start] and parts.first[part] == start:
            status = _give(part, -1, machine, rules, starts, nodes, parts, out, registers)
            if status != DONE:
                return status
        registers[s.CURSOR] += 1
    return DONE


# ---- what is decided


@inlined
def _goes_on(
    start: int, part: int, last: int, clock: float, machine: Machine, starts: Starts, nodes: Nodes, parts: Parts
) -> bool:
    """Whether a way from a start may still go on at a clock, with an event behind that of rank ``last``. O(edges)."""
    steps, groups = machine.first.size, machine.hits.shape[1]
    for step in range(steps):
        node = starts.head[start * steps + step]
        if node == s.NIL:
            continue
        for k in range(machine.out[step], machine.out[step + 1]):
            edge = machine.leaving[k]
            if machine.contiguous[edge] and nodes.rank[node] != last:
                continue
            if machine.group[edge] >= 0 and parts.seen[part * groups + machine.group[edge]] > nodes.position[node]:
                continue
            if machine.bounded[edge] and clock - nodes.clock[node] > machine.most[edge]:
                continue
            return True
    return False


@inlined
def _deadline(
    start: int, part: int, machine: Machine, rules: Rules, starts: Starts, nodes: Nodes, parts: Parts, registers: s.I64
) -> tuple[bool, float]:
    """Whether time closes a start, and the last time at which it is open. O(edges)."""
    steps, groups = machine.first.size, machine.hits.shape[1]
    bounded = False
    end = starts.measure[start] + rules.size[0]
    if registers[s.TIMED] & 2:
        bounded = True
    if registers[s.TIMED] & 1:
        alone, latest, alive = True, nodes.clock[0], False
        for step in range(steps):
            node = starts.head[start * steps + step]
            if node == s.NIL:
                continue
            for k in range(machine.out[step], machine.out[step + 1]):
                edge = machine.leaving[k]
                if machine.contiguous[edge] and nodes.rank[node] != parts.rank[part]:
                    continue
                if machine.group[edge] >= 0 and parts.seen[part * groups + machine.group[edge]] > nodes.position[node]:
                    continue
                if not machine.bounded[edge]:
                    alone = False
                elif not alive or nodes.clock[node] + machine.most[edge] > latest:
                    latest = nodes.clock[node] + machine.most[edge]
                alive = True
        if alone and alive and (not bounded or latest < end):
            bounded = True
            end = latest
    return bounded, end


@inlined
def _settle(
    at: int,
    last: int,
    events: Events,
    machine: Machine,
    rules: Rules,
    starts: Starts,
    nodes: Nodes,
    parts: Parts,
    out: Output,
    registers: s.I64,
) -> int:
    """Give what is decided in the partition of the event at hand. O(edges) for each start that goes."""
    part = events.part[at]
    while parts.first[part]:
        start = parts.first[part]
        if (
            not starts.closed[start]
            and not (registers[s.WINDOWED] and starts.key[start] < events.low[at])
            and _goes_on(start, part, last, events.clock[at], machine, starts, nodes, parts)
        ):
            return DONE
        status = _give(part, events.position[at], machine, rules, starts, nodes, parts, out, registers)
        if status != DONE:
            return status
    return DONE


@inlined
def _give(
    part: int,
    known: int,
    machine: Machine,
    rules: Rules,
    starts: Starts,
    nodes: Nodes,
    parts: Parts,
    out: Output,
    registers: s.I64,
) -> int:
    """The first start of a partition gives its match, if it has one, and the starts go that may not follow. O(length).

    ``known``: position of the event that decides it; −1: the timer of the partition does.
    """
    start = parts.first[part]
    best = starts.best[start]
    if best == s.NIL:
        _pop(part, starts, parts, registers)
        return DONE
    row, cell = registers[s.ROWS], registers[s.CELLS]
    length = nodes.length[best]
    if row == out.start.size or cell + length > out.position.size:
        registers[s.NEED] = length
        return OUTPUT_FULL if row else GROW_OUTPUT
    follows = starts.position[start] + 1
    if registers[s.SKIP] == s.PAST:
        follows = nodes.position[best] + 1
    node, place, told = best, cell + length, False
    while node:
        place -= 1
        mark = machine.mark[nodes.step[node]]
        out.position[place], out.mark[place] = nodes.position[node], mark
        if registers[s.SKIP] > s.PAST and rules.holds[mark] and (registers[s.SKIP] == s.FIRST or not told):
            told = True
            follows = max(starts.position[start] + 1, nodes.position[node])
        node = nodes.before[node]
    out.start[row], out.end[row], out.stop[row] = starts.position[start], nodes.position[best], cell + length
    out.known[row], out.due[row] = known, parts.due[part]
    registers[s.ROWS] = row + 1
    registers[s.CELLS] = cell + length
    registers[s.TRIGGERS] += 1
    _pop(part, starts, parts, registers)
    while parts.first[part] and starts.position[parts.first[part]] < follows:
        _pop(part, starts, parts, registers)
    return DONE


@inlined
def _pop(part: int, starts: Starts, parts: Parts, registers: s.I64) -> None:
    """The first start of a partition goes."""
    start = parts.first[part]
    parts.first[part] = starts.next[start]
    if parts.first[part] == s.NIL:
        parts.last[part] = s.NIL
    _free(start, part, starts, parts, registers)


@inlined
def _free(start: int, part: int, starts: Starts, parts: Parts, registers: s.I64) -> None:
    parts.open[part] -= 1
    starts.used[start] = False
    starts.next[start] = registers[s.FREE]
    registers[s.FREE] = start


# ---- an event


@inlined
def _take(
    at: int,
    events: Events,
    machine: Machine,
    rules: Rules,
    starts: Starts,
    nodes: Nodes,
    parts: Parts,
    registers: s.I64,
) -> None:
    """All open starts of its partition go on with an event, which may be a start itself."""
    part, position, cls, groups = events.part[at], events.position[at], events.cls[at], machine.hits.shape[1]
    registers[s.VISITED] += 1
    previous, start, completed = s.NIL, parts.first[part], False
    while start and not completed:
        following = starts.next[start]
        if not starts.closed[start]:
            completed = _visit(at, start, events, machine, rules, starts, nodes, parts, registers)
            completed = completed and registers[s.SKIP] == s.PAST
        if starts.closed[start] and starts.best[start] == s.NIL:
            if previous:
                starts.next[previous] = following
            else:
                parts.first[part] = following
            _free(start, part, starts, parts, registers)
        else:
            previous = start
        start = following
    if completed:
        starts.next[previous] = s.NIL
        while start:
            following = starts.next[start]
            _free(start, part, starts, parts, registers)
            start = following
    parts.last[part] = previous
    if not completed:
        _begin(at, events, machine, rules, starts, nodes, parts, registers)
    for group in range(groups):
        if machine.hits[cls, group]:
            parts.seen[part * groups + group] = position
    parts.rank[part] = events.rank[at]


@inlined
def _visit(
    at: int,
    start: int,
    events: Events,
    machine: Machine,
    rules: Rules,
    starts: Starts,
    nodes: Nodes,
    parts: Parts,
    registers: s.I64,
) -> bool:
    """A start goes on with an event, or is closed; whether the event completes a match of it."""
    if registers[s.WINDOWED] and starts.key[start] < events.low[at]:
        starts.closed[start] = True
        return False
    made, completed = registers[s.NODES], False
    _go_on(at, start, events, machine, nodes, starts, parts, registers)
    if made < registers[s.NODES]:
        _link(start, made, machine, rules, starts, nodes, registers)
        completed = _complete(start, made, machine, starts, nodes, registers)
    if not starts.closed[start]:
        part, rank, clock = events.part[at], events.rank[at], events.clock[at]
        starts.closed[start] = not _goes_on(start, part, rank, clock, machine, starts, nodes, parts)
    return completed


@inlined
def _go_on(
    at: int, start: int, events: Events, machine: Machine, nodes: Nodes, starts: Starts, parts: Parts, registers: s.I64
) -> None:
    """Make a node for each step that an event is behind a start, by the best way there."""
    part, rank, position, clock = events.part[at], events.rank[at], events.position[at], events.clock[at]
    cls, steps, groups = events.cls[at], machine.first.size, machine.hits.shape[1]
    for k in range(machine.begin[cls], machine.begin[cls + 1]):
        step = machine.step[k]
        best = s.NIL
        for edge in range(machine.into[step], machine.into[step + 1]):
            group = machine.group[edge]
            stop = parts.seen[part * groups + group] if group >= 0 else -1
            node = starts.head[start * steps + machine.source[edge]]
            while node:
                if nodes.position[node] < stop:
                    break
                if machine.contiguous[edge] and nodes.rank[node] != rank - 1:
                    break
                apart = clock - nodes.clock[node]
                if machine.bounded[edge] and apart > machine.most[edge]:
                    break
                if apart >= machine.least[edge] and (best == s.NIL or _is_before(node, best, nodes)):
                    best = node
                node = nodes.older[node]
        if best:
            _make(step, position, rank, clock, best, nodes, registers)


@inlined
def _make(step: int, position: int, rank: int, clock: float, before: int, nodes: Nodes, registers: s.I64) -> None:
    node = registers[s.NODES]
    registers[s.NODES] = node + 1
    nodes.step[node], nodes.position[node], nodes.rank[node], nodes.clock[node] = step, position, rank, clock
    nodes.before[node], nodes.older[node] = before, s.NIL
    nodes.length[node] = nodes.length[before] + 1


@inlined
def _link(
    start: int, made: int, machine: Machine, rules: Rules, starts: Starts, nodes: Nodes, registers: s.I64
) -> None:
    """Nodes from ``made`` on become the newest of their steps; older ones whose ways are worse are let go."""
    steps = machine.first.size
    for node in range(made, registers[s.NODES]):
        place = start * steps + nodes.step[node]
        older = starts.head[place]
        while older and not rules.late[nodes.step[node]] and not _is_before(older, node, nodes):
            older = nodes.older[older]
        nodes.older[node] = older
        starts.head[place] = node


@inlined
def _complete(start: int, made: int, machine: Machine, starts: Starts, nodes: Nodes, registers: s.I64) -> bool:
    """Whether nodes from ``made`` on complete a match of a start, which keeps the best one."""
    completed = False
    for node in range(made, registers[s.NODES]):
        if machine.last[nodes.step[node]]:
            completed = True
            best = starts.best[start]
            if best == s.NIL or nodes.position[best] < nodes.position[node] or _is_before(node, best, nodes):
                starts.best[start] = node
    if completed and not registers[s.LONGEST]:
        starts.closed[start] = True
    return completed


@inlined
def _begin(
    at: int,
    events: Events,
    machine: Machine,
    rules: Rules,
    starts: Starts,
    nodes: Nodes,
    parts: Parts,
    registers: s.I64,
) -> None:
    """An event becomes the last start of its partition, if it may begin a match that can be kept."""
    part, cls, position, steps = events.part[at], events.cls[at], events.position[at], machine.first.size
    begins = False
    for k in range(machine.begin[cls], machine.begin[cls + 1]):
        begins = begins or machine.first[machine.step[k]]
    if not begins or _is_matched(at, events, machine, starts, nodes, parts, registers):
        return
    start = registers[s.FREE]
    if start:
        registers[s.FREE] = starts.next[start]
    else:
        start = registers[s.STARTS]
        registers[s.STARTS] = start + 1
    starts.position[start], starts.part[start], starts.next[start] = position, part, s.NIL
    starts.key[start] = events.rank[at] if registers[s.COUNTED] else position
    starts.best[start], starts.closed[start], starts.used[start] = s.NIL, False, True
    starts.measure[start] = events.measure[at]
    for step in range(steps):
        starts.head[start * steps + step] = s.NIL
    made = registers[s.NODES]
    for k in range(machine.begin[cls], machine.begin[cls + 1]):
        if machine.first[machine.step[k]]:
            _make(machine.step[k], position, events.rank[at], events.clock[at], s.NIL, nodes, registers)
    _link(start, made, machine, rules, starts, nodes, registers)
    _complete(start, made, machine, starts, nodes, registers)
    if not starts.closed[start]:
        rank, clock = events.rank[at], events.clock[at]
        starts.closed[start] = not _goes_on(start, part, rank, clock, machine, starts, nodes, parts)
    if parts.last[part]:
        starts.next[parts.last[part]] = start
    else:
        parts.first[part] = start
    parts.last[part] = start
    parts.open[part] += 1


@inlined
def _is_matched(
    at: int, events: Events, machine: Machine, starts: Starts, nodes: Nodes, parts: Parts, registers: s.I64
) -> bool:
    """Whether an open start has come with this event to each step at which it would begin, and is open as long. O(starts · steps)."""
    if registers[s.SKIP] != s.PAST or registers[s.WINDOWED]:
        return False
    cls, position, steps = events.cls[at], events.position[at], machine.first.size
    start = parts.first[events.part[at]]
    while start:
        same = not starts.closed[start]
        for k in range(machine.begin[cls], machine.begin[cls + 1]):
            step = machine.step[k]
            if machine.first[step]:
                node = starts.head[start * steps + step]
                same = same and node != s.NIL and nodes.position[node] == position
        if same:
            return True
        start = starts.next[start]
    return False


@inlined
def _is_before(first: int, second: int, nodes: Nodes) -> bool:
    """Whether the way to one node is better than that to another of the same start, where both go on or end with the same event.

    At the first difference the way is better that has the event. O(events behind the last common node).
    """
    a, b = first, second
    only_a, only_b, told_a, told_b = s.NIL, s.NIL, s.NIL, s.NIL
    while a != b:
        if nodes.position[a] == nodes.position[b] and a and b:
            if only_a or only_b:
                told_a, told_b = only_a, only_b
                only_a, only_b = s.NIL, s.NIL
            a, b = nodes.before[a], nodes.before[b]
        elif b == s.NIL or (a and nodes.position[a] > nodes.position[b]):
            only_a = a
            a = nodes.before[a]
        else:
            only_b = b
            b = nodes.before[b]
    if not only_a and not only_b:
        only_a, only_b = told_a, told_b
    if not only_a:
        return False
    return bool(only_b == s.NIL or nodes.position[only_a] < nodes.position[only_b])


# ---- timers


@inlined
def _set_timer(
    part: int,
    machine: Machine,
    rules: Rules,
    starts: Starts,
    nodes: Nodes,
    parts: Parts,
    timers: Timers,
    registers: s.I64,
) -> None:
    """Note when time may close the first start of a partition, unless a timer is set for then or before. O(edges + log timers)."""
    start = parts.first[part]
    if not registers[s.TIMED] or not start:
        return
    bounded, end = _deadline(start, part, machine, rules, starts, nodes, parts, registers)
    if not bounded or (parts.timed[part] and parts.due[part] <= end):
        return
    parts.timed[part], parts.due[part] = True, end
    at = registers[s.TIMERS]
    registers[s.TIMERS] = at + 1
    while at and timers.time[(at - 1) // 2] > end:
        timers.time[at], timers.part[at] = timers.time[(at - 1) // 2], timers.part[(at - 1) // 2]
        at = (at - 1) // 2
    timers.time[at], timers.part[at] = end, part


@inlined
def _pop_timer(timers: Timers, registers: s.I64) -> None:
    size = registers[s.TIMERS] - 1
    registers[s.TIMERS] = size
    time, part, at = timers.time[size], timers.part[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and timers.time[child + 1] < timers.time[child]:
            child += 1
        if timers.time[child] >= time:
            break
        timers.time[at], timers.part[at] = timers.time[child], timers.part[child]
        at = child
    timers.time[at], timers.part[at] = time, part


# ---- room


@jit
def mark(starts: Starts, nodes: Nodes, steps: int, keep: s.I64, registers: s.I64) -> int:
    """Number the nodes that open starts lead to, in their order; gives how many there are. O(nodes)."""
    for start in range(1, registers[s.STARTS]):
        if not starts.used[start]:
            continue
        _mark_way(starts.best[start], nodes, keep)
        if not starts.closed[start]:
            for step in range(steps):
                node = starts.head[start * steps + step]
                while node:
                    _mark_way(node, nodes, keep)
                    node = nodes.older[node]
    count = 0
    for node in range(1, registers[s.NODES]):
        if keep[node]:
            count += 1
            keep[node] = count
    return count


@inlined
def _mark_way(node: int, nodes: Nodes, keep: s.I64) -> None:
    while node and not keep[node]:
        keep[node] = 1
        node = nodes.before[node]
