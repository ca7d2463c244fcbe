"""Running an NFAb over a batch (SASE+ paper, section 5.2).

``advance`` takes the runs of an event's partition one by one, tries their edges, and makes new runs where several hold.
Invariants: a partition's list holds only runs that the next event may extend; a run's node begins the list of its events; the
cost of an event is O(runs of its partition) plus the output, whatever the number of partitions.

Arrays read: ``events``, ``machine``. Written: all others. Nothing grows here: capacity is checked before an event begins.
"""

from __future__ import annotations

from stretto._jit import (
    DONE,
    GROW_ACTIVE,
    GROW_NODES,
    GROW_STACK,
    GROW_TABLE,
    HANDED_OVER,
    OVERFLOW,
    PAUSED,
    inlined,
    jit,
)
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.edges import conditions_at
from stretto.engines.nfab.output import begin_output, choose, count_matches, fill_stack, list_matches, release, wait
from stretto.engines.nfab.runs import drop, merge
from stretto.engines.nfab.steps import step
from stretto.engines.nfab.structure import Events, Machine, Memory
from stretto.engines.shared.counting import Counts
from stretto.engines.tecs.enumerate import Output

#: The kernel pauses after looking at so many runs, which takes well below a second, so that ^C acts soon.
PAUSE_AFTER = 1 << 23


@inlined
def lacks_room(i: int, walks: bool, events: Events, machine: Machine, memory: Memory) -> int:
    """The status that asks for what the event may need at most; DONE when there is room. ``walks``: lists are followed."""
    nodes, parts, scratch, registers = memory.nodes, memory.parts, memory.scratch, memory.registers
    count = parts.size[events.part[i]]
    most = machine.fan * (count + 1)  # the event may begin a run
    if registers[s.FREE_RUNS] < most:
        registers[s.NEED] = most
        return GROW_TABLE
    if registers[s.HEAD] + most + count + machine.left.size + 2 > nodes.previous.size:
        registers[s.NEED] = most + count + machine.left.size + 2
        return GROW_NODES
    wanted = max(2 * most, registers[s.TIMERS] + most)
    if scratch.queue.size < wanted:
        registers[s.NEED] = wanted
        return GROW_ACTIVE
    if walks and scratch.path.size < registers[s.HEAD] + most + 2:
        registers[s.NEED] = 2 * (registers[s.HEAD] + most + 2)  # no list is longer than all nodes
        return GROW_STACK
    return DONE


@jit
def advance(  # noqa: C901, PLR0912 - what is most of the kernel would compile twice as a function of its own
    conditions: int, events: Events, machine: Machine, memory: Memory, out: Output, counts: Counts
) -> int:
    """All visited events of a batch, from ``registers[CURSOR]`` on; a status says why it stopped.

    Cost: O(runs of the event's partition) for an event, and O(length) for each match, or what counting costs (``count_paths``).

    What an event may need is there before anything changes. Pending matches whose time is over come first, as they end before it;
    then runs move, and merge when all have; then matches are written. BUSY says where an event goes on.
    """
    runs, parts, registers = memory.runs, memory.parts, memory.registers
    theta = conditions_at(conditions)
    while registers[s.CURSOR] < events.part.size:
        i = registers[s.CURSOR]
        if registers[s.BUSY] == 0:
            part = events.part[i]
            registers[s.STEPS] += parts.size[part]
            if registers[s.STEPS] > PAUSE_AFTER:
                registers[s.STEPS] = 0
                return PAUSED
            status = lacks_room(i, machine.single or machine.pending, events, machine, memory)
            if status != DONE:
                return status
            registers[s.LOW] = max(registers[s.LOW], events.low[i])
            if machine.pending:
                status = release(events.low[i], machine, memory, out)
                if status != DONE:
                    return status
            registers[s.VISITED] += 1
            registers[s.QUEUED] = 0
            step(theta, conditions, i, events, machine, memory)
            if runs.V[0, 0] != 0:
                return OVERFLOW
            if machine.merges and parts.size[part] > 1:
                merge(part, machine, memory)
            if registers[s.QUEUED] > 0 and not machine.silent:
                if machine.pending:
                    wait(theta, i, events, machine, memory)
                elif machine.single:
                    choose(theta, i, events, machine, memory)
                if machine.hands and registers[s.QUEUED] > 0:
                    registers[s.BUSY] = 2
                    return HANDED_OVER
                begin_output(i, events, machine, memory)
        elif registers[s.BUSY] == 2:
            registers[s.BUSY] = 0
            registers[s.TRIGGERS] += 1
        while registers[s.BUSY] == 1:
            if machine.counts:
                status = count_matches(i, events, memory, out, counts)
            else:
                status = list_matches(theta, i, events, machine, memory, out)
            if status != DONE:
                return status
            if registers[s.THRESHOLD] >= 0 and registers[s.NEXT] >= 0:
                registers[s.THRESHOLD] = registers[s.NEXT]
                registers[s.NEXT] = -1
                fill_stack(i, events, memory)
            else:
                registers[s.BUSY] = 0
                registers[s.TRIGGERS] += 1 if registers[s.EMITTED] > 0 else 0
        for at in range(registers[s.QUEUED]):
            drop(memory.scratch.queue[at], runs, registers)
        registers[s.QUEUED] = 0
        registers[s.CURSOR] = i + 1
    return DONE


@jit
def expire(low: int, machine: Machine, memory: Memory, out: Output) -> int:
    """Time has passed: put out the pending matches that began before ``low``."""
    registers = memory.registers
    registers[s.LOW] = max(registers[s.LOW], low)
    return release(low, machine, memory, out)
