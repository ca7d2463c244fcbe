"""An event is read where components may be missing or come again, or have strategies of their own: the moves of its partition's runs.

As in :mod:`stretto.engines.nfab.steps`, but that a run is at a place of the pattern, and waits for each that may follow by itself.
These moves are a function of their own, so that they cost those of plain patterns nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._jit import inlined, jit
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.edges import conditions_at, holds, passes
from stretto.engines.nfab.runs import copied, drop, keep, new_run, select
from stretto.engines.nfab.structure import Events, Machine, Memory, Runs
from stretto.engines.nfab.waiting import try_pending


@inlined
def _is_enough(place: int, run: int, machine: Machine, memory: Memory) -> bool:
    """Whether a run has taken as many events in its round as it must, to go on from a place."""
    component = machine.ways.component[place]
    counted = machine.ways.round[component]
    return bool(counted == 0 or memory.runs.V[run, counted] >= machine.ways.least[component])


@inlined
def _leaves(
    theta: Any, place: int, edge: int, run: int, i: int, events: Events, machine: Machine, memory: Memory
) -> bool:
    """Whether a run at a place may go on from there, as far as its events so far say."""
    return _is_enough(place, run, machine, memory) and (
        edge < 0 or holds(theta, edge, run, i, s.NIL, events, machine, memory)
    )


@inlined
def _again(component: int, run: int, machine: Machine, runs: Runs) -> int:
    """1 where a run that waits to begin a component has had it before, else 0."""
    slot = machine.ways.held[component]
    return (runs.V[run, 0] >> slot) & 1 if slot != 0 else 0


@inlined
def _queue(run: int, memory: Memory) -> None:
    memory.scratch.queue[memory.registers[s.QUEUED]] = run
    memory.registers[s.QUEUED] += 1


@inlined
def _go_on(theta: Any, place: int, run: int, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """What becomes of a run that has just selected an event at a place: it may be complete, and it waits for each that may follow."""
    runs, registers, ways = memory.runs, memory.registers, machine.ways
    component = ways.component[place]
    kleene = machine.kleene[component]
    begin, end = ways.follow_first[place], ways.follow_first[place + 1]
    given = False  # whether the run itself is handed on, and not a copy
    done = ways.final[place] and not ways.only[component]
    if done and _leaves(theta, place, ways.final_edge[place], run, i, events, machine, memory):
        given = not kleene and begin == end
        _queue(run if given else copied(run, runs, registers), memory)
    for at in range(begin, end):
        if ways.eager[at] and _leaves(theta, place, ways.follow_edge[at], run, i, events, machine, memory):
            given = not kleene and at == end - 1
            other = run if given else copied(run, runs, registers)
            runs.state[other] = 2 * ways.follow_place[at]
            keep(other, events.part[i], runs, memory.parts, registers)
    if kleene:
        runs.state[run] = 2 * place + 1
        keep(run, events.part[i], runs, memory.parts, registers)
    elif not given:
        drop(run, runs, registers)


@inlined
def _ends(
    theta: Any, place: int, run: int, bits: int, i: int, events: Events, machine: Machine, memory: Memory
) -> bool:
    """Whether a run's Kleene plus takes no more, as of this event or one before; a run that needs the end is complete with it."""
    runs, ways = memory.runs, machine.ways
    component = ways.component[place]
    edge = ways.until[component]
    if edge < 0:
        return False
    bit = np.int64(1) << ways.ended[component]
    if runs.V[run, 0] & bit:
        return True
    if (bits >> ways.until_bit[component]) & 1 == 0 or not holds(theta, edge, run, i, s.NIL, events, machine, memory):
        return False
    runs.V[run, 0] |= bit
    done = ways.only[component] and ways.final[place]
    if done and _leaves(theta, place, ways.final_edge[place], run, i, events, machine, memory):
        _queue(copied(run, runs, memory.registers), memory)
    return True


@inlined
def _move(theta: Any, run: int, i: int, part: int, bits: int, events: Events, machine: Machine, memory: Memory) -> None:
    """A run that waits tries its edges: out of its Kleene plus first, as that leaves the run as it is, then to select the event."""
    runs, parts, registers, ways = memory.runs, memory.parts, memory.registers, machine.ways
    # Of bits 2c is the begin of component c and 2c + 1 its take; edges and operations have a third: proceed, and begin once more.
    state = runs.state[run]
    place, inside = state // 2, state % 2
    component, more = ways.component[place], inside
    stays = room = True
    if inside:
        stays = not _ends(theta, place, run, bits, i, events, machine, memory)
        counted = ways.round[component]
        room = counted == 0 or runs.V[run, counted] < ways.most[component]
    else:
        more = _again(component, run, machine, runs)
    takes = (
        stays
        and room
        and (bits >> (2 * component + more)) & 1 == 1
        and holds(theta, 3 * component + more, run, i, s.NIL, events, machine, memory)
    )
    begin, end = ways.follow_first[place], ways.follow_first[place + 1]
    ended = not stays and begin == end
    if not inside or (stays and ways.only[component]):
        end = begin
    for at in range(begin, end):
        target = ways.follow_place[at]
        after = ways.component[target]
        had = _again(after, run, machine, runs)
        if ways.eager[at]:
            continue
        if (
            (bits >> (2 * after + had)) & 1
            and _is_enough(place, run, machine, memory)
            and passes(theta, ways.follow_edge[at], 3 * after + had, run, i, events, machine, memory)
        ):
            # Step 6: proceed only with an event that begins the next component.
            other = copied(run, runs, registers)
            select(after, 2 * had, other, i, events, machine, memory)
            _go_on(theta, target, other, i, events, machine, memory)
    if takes:
        taker = run
        if ways.mode[state] == 2:
            taker = copied(run, runs, registers)
            keep(run, part, runs, parts, registers)
        select(component, 1 if inside else 2 * more, taker, i, events, machine, memory)
        _go_on(theta, place, taker, i, events, machine, memory)
    elif ways.mode[state] == 0 or ended:
        drop(run, runs, registers)
    else:
        keep(run, part, runs, parts, registers)


@inlined
def _begin(theta: Any, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """The event may begin a run."""
    runs, ways = memory.runs, machine.ways
    for at in range(ways.first.size):
        place = ways.first[at]
        component = ways.component[place]
        if (events.bits[i] >> (2 * component)) & 1 and holds(
            theta, 3 * component, s.NIL, i, s.NIL, events, machine, memory
        ):
            run = new_run(runs, memory.registers)
            runs.start[run] = events.key[i]
            runs.node[run] = s.NIL
            runs.V[run, 0] = 0
            select(component, 0, run, i, events, machine, memory)
            _go_on(theta, place, run, i, events, machine, memory)


@jit
def move_all(conditions: int, run: int, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """The runs of a list, which is made anew, make their moves; then the event begins some. O(runs)."""
    theta = conditions_at(conditions)
    runs, registers = memory.runs, memory.registers
    part, bits, low = events.part[i], events.bits[i], events.low[i]
    while run != s.NIL:
        following = runs.next[run]
        strict = runs.state[run] != s.PENDING and machine.ways.mode[runs.state[run]] == 0
        if runs.state[run] == s.PENDING:
            try_pending(theta, run, i, events, machine, memory)
        elif runs.start[run] < low or (strict and runs.last[run] + 1 != events.rank[i]):
            drop(run, runs, registers)
        else:
            _move(theta, run, i, part, bits, events, machine, memory)
        run = following
    _begin(theta, i, events, machine, memory)
