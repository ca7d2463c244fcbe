"""Running an NFAb depth first (SASE+ paper, section 5.2.3).

``explore`` follows one run at a time, the *singleton*. Where several moves are possible, it makes one; runs that make the others
are *postponed*: put on a stack with their state and the event to go on from. When the singleton fails or is complete, the
latest postponed run becomes the singleton and reads the events of its partition again from there.

Invariants: the events of a partition lie side by side, in order; slot 1 of the runs is the singleton, the slots behind it are the
stack; a run's node is the number of events that it has selected, and these are the nodes up to there: a postponed run has
selected a prefix of what every later one has. Arrays read: ``events``, ``machine``, ``search.stop``. Written: all others.
Nothing grows here: capacity is checked before each move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stretto._jit import DONE, GROW_NODES, GROW_OUTPUT, GROW_TABLE, OUTPUT_FULL, OVERFLOW, inlined, jit
from stretto.engines.nfab.edges import apply, conditions_at, holds
from stretto.engines.nfab.runs import copy_run
from stretto.engines.nfab.structure import I64, NIL, Events, Machine, Memory, Nodes
from stretto.engines.tecs.enumerate import Output

__all__ = ["BACKTRACKS", "CELLS", "NEED", "READ", "REGISTERS", "ROWS", "Search", "explore"]

RUN = 1  #: the singleton

# What a postponed run does with the event that it goes on from.
READS = 0  #: tries all edges
TAKES = 1  #: takes it: the edge was tried before

# Registers.
START = 0  #: the next event that may begin a match
RUNNING = 1  #: 1: there is a singleton …
AT = 2  #: … that reads this event next
END = 3  #: where reading ends: behind the partition, or behind the best match
TOP = 4  #: postponed runs
MOVE = 5  #: what the singleton does with the event at AT
ROWS = 6  #: rows in the output buffers
CELLS = 7  #: positions in the output buffers
NEED = 8  #: what a GROW_… status asks for
BEST = 9  #: non-overlap: length of the best match so far; 0: none
BEST_START = 10  #: … and its first event
READ = 11  #: events read by singletons, again and again
BACKTRACKS = 12  #: postponed runs that were resumed
REGISTERS = 16


class Search(NamedTuple):
    """What a depth-first search has beside runs and nodes."""

    stop: I64  #: [event] where the events of its partition end
    at: I64  #: [run] the event that a postponed run goes on from …
    move: I64  #: [run] … and what it does with it
    position: I64  #: [place] non-overlap: the best match so far …
    label: I64  #: [place] … and the components of its events


@inlined
def _postpone(at: int, move: int, memory: Memory, search: Search) -> None:
    """Put a copy of the singleton onto the stack."""
    runs, registers = memory.runs, memory.registers
    registers[TOP] += 1
    other = RUN + registers[TOP]
    copy_run(RUN, other, runs)
    search.at[other] = at
    search.move[other] = move


@inlined
def _resume(memory: Memory, search: Search) -> None:
    """The latest postponed run becomes the singleton."""
    runs, registers = memory.runs, memory.registers
    other = RUN + registers[TOP]
    registers[TOP] -= 1
    registers[BACKTRACKS] += 1
    copy_run(other, RUN, runs)
    registers[AT] = search.at[other]
    registers[MOVE] = search.move[other]
    registers[RUNNING] = 1


@inlined
def _select(component: int, how: int, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """The singleton selects an event for a component."""
    runs, nodes = memory.runs, memory.nodes
    node = runs.node[RUN] + 1
    runs.node[RUN] = node
    runs.last[RUN] = events.rank[i]
    nodes.previous[node] = node - 1
    nodes.label[node] = component
    nodes.position[node] = events.position[i]
    if machine.keeps:
        for at in range(events.C.shape[1]):
            nodes.P[node, at] = events.C[i, at]
    apply(machine, component, how, RUN, i, events, runs)


@inlined
def _go_on(
    theta: Any, component: int, i: int, events: Events, machine: Machine, memory: Memory, search: Search, out: Output
) -> bool:
    """The singleton has just selected an event for a component: it may be a match, and it may go on."""
    runs, nodes, registers = memory.runs, memory.nodes, memory.registers
    kleene = machine.kleene[component]
    last = component == machine.kleene.size - 1
    if last and (not kleene or holds(theta, 3 * component + 2, RUN, i, NIL, events, machine, memory)):
        if machine.single:
            _compare(i, memory, search)
        else:
            _write(runs.node[RUN], nodes.position, nodes.label, machine, out, registers)
    runs.state[RUN] = 2 * component + (1 if kleene else 2)
    return kleene or not last


@inlined
def _begin(theta: Any, i: int, events: Events, machine: Machine, memory: Memory, search: Search, out: Output) -> bool:
    """Whether the event begins a run; it is the singleton then."""
    runs, registers = memory.runs, memory.registers
    if registers[BEST] == 0:
        registers[END] = search.stop[i]
    if events.bits[i] & 1 == 0 or not holds(theta, 0, NIL, i, NIL, events, machine, memory):
        return False
    registers[READ] += 1
    registers[AT] = i + 1
    registers[MOVE] = READS
    runs.start[RUN] = events.key[i]
    runs.node[RUN] = NIL
    runs.V[RUN, 0] = 0
    _select(0, 0, i, events, machine, memory)
    return _go_on(theta, 0, i, events, machine, memory, search, out)


@inlined
def _move(theta: Any, i: int, events: Events, machine: Machine, memory: Memory, search: Search, out: Output) -> bool:
    """The singleton reads an event; whether it goes on. O(1) but for conditions on every ``a[i]``."""
    runs, registers = memory.runs, memory.registers
    move = registers[MOVE]
    registers[MOVE] = READS
    if i >= registers[END] or runs.start[RUN] < events.low[i]:
        return False
    mode = machine.ways.mode[runs.state[RUN]]  # the same in all states
    if mode == 0 and runs.last[RUN] + 1 != events.rank[i]:
        return False
    registers[READ] += 1
    registers[AT] = i + 1
    bits = events.bits[i]
    component = runs.state[RUN] // 2
    taken = move == TAKES
    begun = False
    if runs.state[RUN] % 2 == 0:
        begun = (bits >> (2 * component)) & 1 == 1 and holds(theta, 3 * component, RUN, i, NIL, events, machine, memory)
    elif not taken:
        taken = (bits >> (2 * component + 1)) & 1 == 1 and holds(
            theta, 3 * component + 1, RUN, i, NIL, events, machine, memory
        )
        begun = (
            component + 1 < machine.kleene.size
            and (bits >> (2 * component + 2)) & 1 == 1
            and holds(theta, 3 * component + 2, RUN, i, NIL, events, machine, memory)
            and holds(theta, 3 * component + 3, RUN, i, NIL, events, machine, memory)
        )
    if move == READS and begun | taken:
        # Ignore beside select: always under skip till any match; where a run proceeds without a take, under skip till next.
        proceeds = runs.state[RUN] % 2 == 1 and begun
        if mode == 2 or (proceeds and not taken and mode != 0):
            _postpone(i + 1, READS, memory, search)
        if proceeds and taken:
            _postpone(i, TAKES, memory, search)
    if begun:
        component = (runs.state[RUN] + 1) // 2
        _select(component, 0, i, events, machine, memory)
    elif taken:
        _select(component, 1, i, events, machine, memory)
    else:
        return mode != 0
    return _go_on(theta, component, i, events, machine, memory, search, out)


# -- output ------------------------------------------------------------------------------------------------------------


@inlined
def _write(length: int, position: I64, label: I64, machine: Machine, out: Output, registers: I64) -> None:
    """A match into the output buffers, from place 1 on. O(length)."""
    row, cell = registers[ROWS], registers[CELLS]
    for at in range(length):
        out.position[cell + at] = position[at + 1]
    if machine.marks:
        for at in range(length):
            out.mark[cell + at] = label[at + 1]
    out.start[row] = position[1]
    out.end[row] = position[length]
    out.stop[row] = cell + length
    registers[ROWS] = row + 1
    registers[CELLS] = cell + length


@inlined
def _compare(i: int, memory: Memory, search: Search) -> None:
    """Non-overlap: keep the singleton's match if it is the best so far, and read no further than to its end. O(length).

    The best one ends first; then it has the earliest start, which is the first one found; then it is the shortest, and has the
    smallest positions.
    """
    runs, nodes, registers = memory.runs, memory.nodes, memory.registers
    length = runs.node[RUN]
    if registers[BEST] > 0 and i + 1 == registers[END]:
        if runs.start[RUN] != registers[BEST_START] or length > registers[BEST]:
            return
        if length == registers[BEST] and not _is_smaller(length, nodes, search):
            return
    registers[BEST], registers[BEST_START], registers[END] = length, runs.start[RUN], i + 1
    for at in range(1, length + 1):
        search.position[at] = nodes.position[at]
        search.label[at] = nodes.label[at]


@inlined
def _is_smaller(length: int, nodes: Nodes, search: Search) -> bool:
    """Whether the path has smaller positions than the best match, or leaves a component earlier."""
    for at in range(1, length + 1):
        if nodes.position[at] != search.position[at]:
            return nodes.position[at] < search.position[at]
    for at in range(1, length + 1):
        if nodes.label[at] != search.label[at]:
            return nodes.label[at] > search.label[at]
    return False


# -- the search --------------------------------------------------------------------------------------------------------


@inlined
def _lacks_room(memory: Memory, out: Output) -> int:
    """The status that asks for what a move may need at most; DONE when there is room."""
    runs, nodes, registers = memory.runs, memory.nodes, memory.registers
    if RUN + registers[TOP] + 3 > runs.state.size:
        return GROW_TABLE
    if runs.node[RUN] + 2 > nodes.previous.size:
        return GROW_NODES
    length = max(runs.node[RUN] + 1, registers[BEST])
    if registers[ROWS] == out.start.size or registers[CELLS] + length > out.position.size:
        registers[NEED] = length
        return OUTPUT_FULL if registers[ROWS] > 0 else GROW_OUTPUT
    return DONE


@jit
def explore(conditions: int, events: Events, machine: Machine, memory: Memory, search: Search, out: Output) -> int:
    """All events, from where the registers say; a status says why it stopped.

    Cost: O(1) for each event that a singleton reads, and O(length) for each match.
    """
    runs, registers = memory.runs, memory.registers
    theta = conditions_at(conditions)
    while True:
        status = _lacks_room(memory, out)
        if status != DONE:
            return status
        if registers[RUNNING] == 1:
            goes_on = _move(theta, registers[AT], events, machine, memory, search, out)
            registers[RUNNING] = 1 if goes_on else 0
        elif registers[TOP] > 0:
            _resume(memory, search)
        elif registers[BEST] > 0 and registers[START] >= registers[END]:
            _write(registers[BEST], search.position, search.label, machine, out, registers)
            registers[BEST] = 0
        elif registers[START] < events.part.size:
            first = registers[START]
            registers[START] = first + 1
            goes_on = _begin(theta, first, events, machine, memory, search, out)
            registers[RUNNING] = 1 if goes_on else 0
        else:
            return DONE
        if runs.V[0, 0] != 0:
            return OVERFLOW
