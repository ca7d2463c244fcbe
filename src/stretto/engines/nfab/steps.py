"""An event is read: the moves of its partition's runs (section 5.2)."""

from __future__ import annotations

from typing import Any

from stretto._jit import inlined
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.edges import holds, passes
from stretto.engines.nfab.runs import copied, drop, keep, new_node, new_run, select
from stretto.engines.nfab.structure import Events, Machine, Memory
from stretto.engines.nfab.variants import move_all
from stretto.engines.nfab.waiting import try_pending


@inlined
def _go_on(theta: Any, component: int, run: int, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """What becomes of a run that has just selected an event for a component: it waits, and it may be complete."""
    runs, scratch, registers = memory.runs, memory.scratch, memory.registers
    kleene = machine.kleene[component]
    last = component == machine.kleene.size - 1
    if last and (not kleene or holds(theta, 3 * component + 2, run, i, s.NIL, events, machine, memory)):
        done = copied(run, runs, registers) if kleene else run
        scratch.queue[registers[s.QUEUED]] = done
        registers[s.QUEUED] += 1
    if kleene:
        runs.state[run] = 2 * component + 1
        keep(run, events.part[i], runs, memory.parts, registers)
    elif not last:
        runs.state[run] = 2 * component + 2
        keep(run, events.part[i], runs, memory.parts, registers)


@inlined
def _move(theta: Any, run: int, i: int, part: int, bits: int, events: Events, machine: Machine, memory: Memory) -> None:
    """A run that waits tries its edges: out of its Kleene plus first, as that leaves the run as it is, then to select the event."""
    runs, parts, registers = memory.runs, memory.parts, memory.registers
    # Of states, bits and operations 2c is the begin of component c and 2c + 1 its take; edges have the proceed as a third.
    state = runs.state[run]
    component, more = state // 2, state % 2
    takes = (bits >> state) & 1 == 1 and holds(theta, 3 * component + more, run, i, s.NIL, events, machine, memory)
    behind = component + 1
    if (
        more
        and behind < machine.kleene.size
        and (bits >> (2 * behind)) & 1
        and passes(theta, 3 * behind - 1, 3 * behind, run, i, events, machine, memory)
    ):
        # Step 6: proceed only with an event that begins the next component.
        other = copied(run, runs, registers)
        select(behind, 0, other, i, events, machine, memory)
        _go_on(theta, behind, other, i, events, machine, memory)
    if takes:
        taker = run
        if machine.ways.any:
            taker = copied(run, runs, registers)
            keep(run, part, runs, parts, registers)
        select(component, more, taker, i, events, machine, memory)
        _go_on(theta, component, taker, i, events, machine, memory)
    elif machine.ways.strict:
        drop(run, runs, registers)
    else:
        keep(run, part, runs, parts, registers)


@inlined
def _begin(theta: Any, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """The event may begin a run."""
    runs = memory.runs
    if events.bits[i] & 1 and holds(theta, 0, s.NIL, i, s.NIL, events, machine, memory):
        run = new_run(runs, memory.registers)
        runs.start[run] = events.key[i]
        runs.node[run] = s.NIL
        runs.V[run, 0] = 0
        select(0, 0, run, i, events, machine, memory)
        _go_on(theta, 0, run, i, events, machine, memory)


@inlined
def _note_negated(i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """Negations keep the event, behind those before it."""
    negated, part = memory.parts.negated, events.part[i]
    components = machine.kleene.size
    for negation in range(machine.left.size):
        if (events.bits[i] >> (2 * components + negation)) & 1:
            before = negated[part, negation]
            negated[part, negation] = new_node(components + negation, before, events.key[i], i, events, machine, memory)


@inlined
def step(theta: Any, conditions: int, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """The runs of the event's partition make their moves; then it begins one, which must not move with it. O(runs)."""
    runs, parts, registers = memory.runs, memory.parts, memory.registers
    part, bits, low = events.part[i], events.bits[i], events.low[i]
    run = parts.head[part]  # the list is made anew: a run stays by being kept
    parts.head[part] = s.NIL
    registers[s.LIVE] -= parts.size[part]
    parts.size[part] = 0
    if not machine.ways.plain:
        move_all(conditions, run, i, events, machine, memory)
        _note_negated(i, events, machine, memory)
        return
    while run != s.NIL:
        following = runs.next[run]
        if runs.state[run] == s.PENDING:
            try_pending(theta, run, i, events, machine, memory)
        elif runs.start[run] < low or (machine.ways.strict and runs.last[run] + 1 != events.rank[i]):
            drop(run, runs, registers)
        else:
            _move(theta, run, i, part, bits, events, machine, memory)
        run = following
    _begin(theta, i, events, machine, memory)
    _note_negated(i, events, machine, memory)
