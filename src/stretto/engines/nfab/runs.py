"""Runs and nodes: making, copying, keeping and dropping them, and merging runs that are equivalent (section 5.2.2)."""

from __future__ import annotations

import numpy as np

from stretto._jit import inlined
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.edges import apply
from stretto.engines.nfab.structure import I64, Events, Machine, Memory, Parts, Runs


@inlined
def new_run(runs: Runs, registers: I64) -> int:
    run = registers[s.FREE]
    registers[s.FREE] = runs.next[run]
    registers[s.FREE_RUNS] -= 1
    registers[s.MADE] += 1
    return run


@inlined
def drop(run: int, runs: Runs, registers: I64) -> None:
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
def copied(run: int, runs: Runs, registers: I64) -> int:
    """A new run in the same computation state."""
    fresh = new_run(runs, registers)
    copy_run(run, fresh, runs)
    return fresh


@inlined
def new_node(label: int, previous: int, start: int, i: int, events: Events, machine: Machine, memory: Memory) -> int:
    nodes, registers = memory.nodes, memory.registers
    node = registers[s.HEAD]
    registers[s.HEAD] = node + 1
    nodes.previous[node] = previous
    nodes.other[node] = s.NIL
    nodes.start[node] = start
    nodes.position[node] = events.position[i]
    nodes.label[node] = label
    if machine.keeps:
        for at in range(events.C.shape[1]):
            nodes.P[node, at] = events.C[i, at]
    return node


@inlined
def select(component: int, how: int, run: int, i: int, events: Events, machine: Machine, memory: Memory) -> None:
    """A run selects the event for a component: 0 begins it, 1 takes, 2 begins it once more."""
    runs = memory.runs
    runs.node[run] = new_node(component, runs.node[run], runs.start[run], i, events, machine, memory)
    runs.last[run] = events.rank[i]
    apply(machine, component, how, run, i, events, runs)


@inlined
def keep(run: int, part: int, runs: Runs, parts: Parts, registers: I64) -> None:
    """Put a run into its partition's list."""
    runs.next[run] = parts.head[part]
    parts.head[part] = run
    parts.size[part] += 1
    registers[s.LIVE] += 1


@inlined
def unlink(run: int, part: int, runs: Runs, parts: Parts, registers: I64) -> None:
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


@inlined
def same(a: int, b: int, machine: Machine, runs: Runs) -> bool:
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
def hash_of(run: int, machine: Machine, runs: Runs) -> int:
    """A hash of what :func:`same` compares."""
    state = runs.state[run]
    found = np.uint64(state + 1)
    for at in range(machine.mask_first[state], machine.mask_first[state + 1]):
        slot = machine.mask_slot[at]
        value = runs.V[run, slot] if (runs.V[run, 0] >> slot) & 1 else np.int64(-7)
        found = _mixed(found ^ np.uint64(value))
    return np.int64(_mixed(found) >> np.uint64(1))


@inlined
def merge(part: int, machine: Machine, memory: Memory) -> None:
    """Runs of a partition that are equivalent become one. O(runs)."""
    runs, nodes, parts, scratch, registers = memory.runs, memory.nodes, memory.parts, memory.scratch, memory.registers
    registers[s.EPOCH] += 1
    epoch = registers[s.EPOCH]
    mask = scratch.table.size - 1
    before = s.NIL
    run = parts.head[part]
    while run != s.NIL:
        following = runs.next[run]
        at = hash_of(run, machine, runs) & mask
        while scratch.stamp[at] == epoch and not same(scratch.table[at], run, machine, runs):
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
            drop(run, runs, registers)
        run = following
