"""The furthest partial match of each first event, for ``timeouts=``: runs that are followed beside those that find the matches.

Of the partial matches that begin with one event that one got furthest whose last component has the latest place in the pattern; then
that with the most events; then the least positions; then, at the first event that differs, the later component. Invariants: ``node``
of a first event begins the list of the furthest partial match so far; two words behind V say which first event a run has, and how
many events. Of runs with one first event that will do the same from here on only the one that is ahead goes on: what is behind
stays behind. So the runs of a query whose conditions relate no events are at most as many as its first events have states.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stretto._jit import DONE, GROW_OUTPUT, OVERFLOW, PAUSED, inlined, jit
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.edges import conditions_at
from stretto.engines.nfab.kernels import PAUSE_AFTER, lacks_room
from stretto.engines.nfab.output import comes_before, is_negated, path_of
from stretto.engines.nfab.runs import drop, hash_of, same
from stretto.engines.nfab.steps import step
from stretto.engines.nfab.structure import I64, Events, Machine, Memory, Nodes

#: Words of a run behind V.
WORDS = 2

#: The slot of no first event: its window has closed, or a match begins with it.
NONE = -1


class Firsts(NamedTuple):
    """First events in the order of the stream."""

    position: I64
    part: I64  #: partition
    key: I64  #: what windows bound
    node: I64  #: the last node of the furthest partial match; NIL: there is none
    length: I64  #: how many events it has
    used: I64  #: [1] how many there are


@inlined
def _is_ahead(node: int, length: int, best: int, most: int, nodes: Nodes) -> bool:
    """Whether one list of events has more than another, or as many and comes before it. O(1), or O(length)."""
    return length > most or (length == most and comes_before(node, best, nodes))


@inlined
def _is_further(node: int, length: int, best: int, most: int, place: I64, nodes: Nodes) -> bool:
    """Whether one list of events got further than another that begins with the same event: to a later place, or ahead."""
    mine, other = place[nodes.label[node]], place[nodes.label[best]]
    if mine != other:
        return bool(mine > other)
    return _is_ahead(node, length, best, most, nodes)


@inlined
def _first_of(i: int, events: Events, firsts: Firsts) -> int:
    """The slot of an event that begins runs; all of them follow each other."""
    slot: int = firsts.used[0] - 1
    if slot < 0 or firsts.position[slot] != events.position[i]:
        slot += 1
        firsts.position[slot] = events.position[i]
        firsts.part[slot] = events.part[i]
        firsts.key[slot] = events.key[i]
        firsts.node[slot] = s.NIL
        firsts.length[slot] = 0
        firsts.used[0] = slot + 1
    return slot


@inlined
def _note(
    theta: Any, run: int, i: int, events: Events, machine: Machine, place: I64, memory: Memory, firsts: Firsts
) -> None:
    """A run that has just selected the event counts it, and may be the furthest of its first event."""
    runs, nodes, V = memory.runs, memory.nodes, memory.runs.V
    node, words = runs.node[run], V.shape[1]
    if nodes.previous[node] == s.NIL:
        V[run, words - 2] = _first_of(i, events, firsts)
        V[run, words - 1] = 0
    V[run, words - 1] += 1
    slot, length = V[run, words - 2], V[run, words - 1]
    if slot == NONE:
        return
    best = firsts.node[slot]
    if best != s.NIL and not _is_further(node, length, best, firsts.length[slot], place, nodes):
        return
    if machine.left.size > 0:
        count = path_of(run, runs, nodes, memory.scratch)
        if is_negated(theta, run, i, count, events.low[i], nodes.label[node] + 1, events, machine, memory):
            return
    firsts.node[slot] = node
    firsts.length[slot] = length


@inlined
def _will_do_the_same(a: int, b: int, machine: Machine, memory: Memory) -> bool:
    runs, words = memory.runs, memory.runs.V.shape[1]
    if runs.V[a, words - 2] != runs.V[b, words - 2] or not same(a, b, machine, runs):
        return False
    return not machine.ways.strict or runs.last[a] == runs.last[b]


@inlined
def _thin(part: int, machine: Machine, memory: Memory) -> None:
    """Of runs of a partition that will do the same, the one that is ahead stays, wherever its last event stands. O(runs)."""
    runs, nodes, parts, scratch, registers = memory.runs, memory.nodes, memory.parts, memory.scratch, memory.registers
    words = runs.V.shape[1]
    registers[s.EPOCH] += 1
    epoch, mask = registers[s.EPOCH], scratch.table.size - 1
    before = s.NIL
    run = parts.head[part]
    while run != s.NIL:
        following = runs.next[run]
        at = (hash_of(run, machine, runs) + runs.V[run, words - 2]) & mask
        while scratch.stamp[at] == epoch and not _will_do_the_same(scratch.table[at], run, machine, memory):
            at = (at + 1) & mask
        if scratch.stamp[at] != epoch:
            scratch.stamp[at] = epoch
            scratch.table[at] = run
            before = run
        else:
            kept = scratch.table[at]
            length, most = runs.V[run, words - 1], runs.V[kept, words - 1]
            if _is_ahead(runs.node[run], length, runs.node[kept], most, nodes):
                runs.node[kept] = runs.node[run]
                runs.V[kept, words - 1] = runs.V[run, words - 1]
            runs.next[before] = following
            parts.size[part] -= 1
            registers[s.LIVE] -= 1
            registers[s.MERGED] += 1
            drop(run, runs, registers)
        run = following


@jit
def follow(conditions: int, events: Events, machine: Machine, place: I64, memory: Memory, firsts: Firsts) -> int:
    """All visited events of a batch, from ``registers[CURSOR]`` on; a status says why it stopped. O(runs of the partition) an event.

    ``place``: by component, how many may stand before it in the pattern. What an event may need is there before anything changes.
    """
    runs, nodes, parts, scratch, registers = memory.runs, memory.nodes, memory.parts, memory.scratch, memory.registers
    theta = conditions_at(conditions)
    while registers[s.CURSOR] < events.part.size:
        i = registers[s.CURSOR]
        part = events.part[i]
        registers[s.STEPS] += parts.size[part]
        if registers[s.STEPS] > PAUSE_AFTER:
            registers[s.STEPS] = 0
            return PAUSED
        status = lacks_room(i, machine.left.size > 0, events, machine, memory)
        if status != DONE:
            return status
        if firsts.used[0] == firsts.position.size:
            return GROW_OUTPUT
        registers[s.LOW] = max(registers[s.LOW], events.low[i])
        registers[s.VISITED] += 1
        registers[s.QUEUED] = 0
        step(theta, conditions, i, events, machine, memory)
        if runs.V[0, 0] != 0:
            return OVERFLOW
        run = parts.head[part]
        while run != s.NIL:
            if nodes.position[runs.node[run]] == events.position[i]:
                _note(theta, run, i, events, machine, place, memory, firsts)
            run = runs.next[run]
        for at in range(registers[s.QUEUED]):
            if nodes.position[runs.node[scratch.queue[at]]] == events.position[i]:
                _note(theta, scratch.queue[at], i, events, machine, place, memory, firsts)
            drop(scratch.queue[at], runs, registers)
        registers[s.QUEUED] = 0
        if machine.merges and parts.size[part] > 1:
            _thin(part, machine, memory)
        registers[s.CURSOR] = i + 1
    return DONE
