"""Collecting nodes: for windows that give no bound on the age of a node, for snapshots, and for idle partitions.

Children are older than their parents, so one pass from young to old marks what is reachable, and one from old to young
copies it. Both are linear in the nodes, and the caller doubles the store when more than half survives, so that the cost
per event stays constant on average.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.engines.tecs import structure as s
from stretto.engines.tecs.kernels import COUNT, HEADER, KEY, LENGTH, STAMP, WORDS, Records, release
from stretto.engines.tecs.structure import I64, Nodes

UNREACHED = np.iinfo(np.int64).max


@jit
def _bound(records: Records, registers: I64, at: int) -> int:
    """Keys below this are out of the window of the partition whose record lies at ``at``."""
    if registers[s.RING]:
        return registers[s.LOW]
    if registers[s.SPAN] >= 0:
        return records.arena[at + KEY] - registers[s.SPAN]
    return np.iinfo(np.int64).min


@jit
def mark(nodes: Nodes, records: Records, bound: I64, registers: I64) -> int:
    """bound[slot] = the least key in the window of the partition that reaches the node, or UNREACHED; gives how many are reached.

    Reads all records and nodes, and releases records that are forgotten. Nothing may be under enumeration. O(nodes + records).
    """
    size = nodes.left.size - 1
    bound[:] = UNREACHED
    tail = registers[s.TAIL]
    live = 0
    for part in range(records.head.size):
        at = records.head[part]
        if not at:
            continue
        if records.arena[at + STAMP] <= registers[s.CONSUMED]:
            release(records, registers, part)
            continue
        low = _bound(records, registers, at)
        word = at + HEADER
        for _ in range(records.arena[at + COUNT]):
            length = records.arena[word] & LENGTH
            for i in range(word + WORDS, word + WORDS + length):
                node = records.arena[i]
                if node > tail and nodes.start[node & size] >= low:
                    bound[node & size] = low
            word += WORDS + length
    for node in range(registers[s.HEAD] - 1, tail, -1):
        slot = node & size
        low = bound[slot]
        if low == UNREACHED:
            continue
        live += 1
        if nodes.left[slot] == s.NIL:
            continue
        bound[nodes.left[slot] & size] = low
        if nodes.right[slot] != s.NIL and nodes.right_start[slot] >= low:
            bound[nodes.right[slot] & size] = low
    return live


@jit
def copy(nodes: Nodes, to: Nodes, records: Records, bound: I64, number: I64, registers: I64) -> None:
    """Copy the marked nodes of ``nodes`` to ``to``, number them from FIRST on, and rewrite the records' lists. O(nodes + records).

    ``number`` is scratch of the size of ``nodes``.
    """
    size = nodes.left.size - 1
    tail = registers[s.TAIL]
    fresh = s.FIRST
    mask = to.left.size - 1
    for node in range(tail + 1, registers[s.HEAD]):
        slot = node & size
        if bound[slot] == UNREACHED:
            continue
        target = fresh & mask
        to.left[target] = number[nodes.left[slot] & size] if nodes.left[slot] != s.NIL else s.NIL
        right = s.NIL
        if nodes.right[slot] != s.NIL:
            right = s.EXPIRED
            if nodes.right_start[slot] >= bound[slot]:
                right = number[nodes.right[slot] & size]
        to.right[target] = right
        to.start[target] = nodes.start[slot]
        to.right_start[target] = nodes.right_start[slot]
        to.position[target] = nodes.position[slot]
        to.mark[target] = nodes.mark[slot]
        number[slot] = fresh
        fresh += 1
    _renumber(nodes, records, bound, number, registers)
    registers[s.TAIL] = s.FIRST - 1
    registers[s.HEAD] = fresh


@jit
def _renumber(nodes: Nodes, records: Records, bound: I64, number: I64, registers: I64) -> None:
    size = nodes.left.size - 1
    for part in range(records.head.size):
        at = records.head[part]
        if not at:
            continue
        word = at + HEADER
        for _ in range(records.arena[at + COUNT]):
            length = records.arena[word] & LENGTH
            for i in range(word + WORDS, word + WORDS + length):
                node = records.arena[i]
                if node > registers[s.TAIL] and bound[node & size] != UNREACHED:
                    records.arena[i] = number[node & size]
                else:
                    records.arena[i] = s.EXPIRED
            word += WORDS + length


@jit
def live_positions(nodes: Nodes, bound: I64, registers: I64, positions: I64) -> int:
    """The positions that marked bottom and output nodes name, ascending; gives how many. ``positions`` has room for all nodes.

    Nodes lie in the order of their making, and these were made at the position that they name. O(nodes).
    """
    size = nodes.left.size - 1
    count = 0
    for node in range(registers[s.TAIL] + 1, registers[s.HEAD]):
        slot = node & size
        if bound[slot] == UNREACHED or nodes.right[slot] != s.NIL:
            continue
        if count == 0 or positions[count - 1] != nodes.position[slot]:
            positions[count] = nodes.position[slot]
            count += 1
    return count


@jit
def sweep(records: Records, registers: I64) -> int:
    """Release the records in which nothing lies in the window any more; gives how many are left. O(partitions)."""
    left = 0
    for part in range(records.head.size):
        at = records.head[part]
        if not at:
            continue
        alive = False
        if records.arena[at + STAMP] > registers[s.CONSUMED]:
            low = _bound(records, registers, at)
            word = at + HEADER
            for _ in range(records.arena[at + COUNT]):
                if records.arena[word + 1] >= low:
                    alive = True
                    break
                word += WORDS + (records.arena[word] & LENGTH)
        if alive:
            left += 1
        else:
            release(records, registers, part)
    return left


@jit
def release_all(records: Records, registers: I64, parts: I64) -> None:
    """Give the records of some partitions back."""
    for part in parts:
        release(records, registers, part)


@jit
def pack(records: Records, words: I64) -> int:
    """Write all records one after the other as (partition, stamp, key, count, and for each state (state, length, list…)).

    Gives the words used. Called with an empty array it only counts.
    """
    used = 0
    arena = records.arena
    for part in range(records.head.size):
        at = records.head[part]
        if not at:
            continue
        length = HEADER
        for _ in range(arena[at + COUNT]):
            length += WORDS + (arena[at + length] & LENGTH)
        if words.size:
            words[used] = part
            for i in range(1, length):
                words[used + i] = arena[at + i]
            word = HEADER
            for _ in range(arena[at + COUNT]):
                words[used + word] = arena[at + word] >> 32
                words[used + word + 1] = arena[at + word] & LENGTH
                word += WORDS + (arena[at + word] & LENGTH)
        used += length
    return used


@jit
def unpack(words: I64, renamed: I64, states: I64, nodes: Nodes, records: Records, top: int) -> int:
    """Put packed records into an arena from offset ``top`` on, with partitions and states renamed; gives the new top."""
    at = 0
    size = nodes.left.size - 1
    while at < words.size:
        begin = at
        at += HEADER
        for _ in range(words[begin + COUNT]):
            at += WORDS + words[at + 1]
        length = at - begin
        class_ = 0
        while 8 << class_ < length:
            class_ += 1
        records.arena[top] = class_
        for i in range(1, length):
            records.arena[top + i] = words[begin + i]
        word = top + HEADER
        for _ in range(words[begin + COUNT]):
            first = records.arena[word + WORDS]
            long = records.arena[word + 1]
            records.arena[word] = states[records.arena[word]] << 32 | long
            records.arena[word + 1] = nodes.start[first & size] if first != s.EXPIRED else np.iinfo(np.int64).min
            word += WORDS + long
        part = renamed[words[begin]]
        if part >= 0:
            records.head[part] = top
            top += 8 << class_
    return top


def states_of(words: I64, states: int) -> I64:
    """Which automaton states, of so many, packed records name."""
    seen = np.zeros(states, np.bool_)
    states_in(words, seen)
    return np.flatnonzero(seen)


@jit
def states_in(words: I64, seen: NDArray[np.bool_]) -> None:
    """Mark the automaton states that packed records name."""
    at = 0
    while at < words.size:
        count = words[at + COUNT]
        at += HEADER
        for _ in range(count):
            seen[words[at]] = True
            at += 2 + words[at + 1]
