"""Algorithm 1 of the CORE paper (section 4.3) over many events and many partitions in one call.

What differs from the paper, and why:

- **Many partitions.** Each has a *record* (its active states with their union-lists, in insertion order) in one arena;
  an event touches its own partition's record and nothing else.
- **Merging is lazy.** A union-list is merged only when a transition needs the merged node; a state that just waits keeps
  its list as it is.
- **Freeing.** Nodes are a ring in the order of their making. A node made at a position that has left the window holds
  only matches that have left it too, so the ring's tail moves with the window and nothing is traced. Without such a
  window, :mod:`~stretto.engines.tecs.collect` traces what is reachable when the ring is full.
- **LIMIT 1** keeps the first node of each union-list, and none beside it. The match that it takes is the leftmost path of the
  nodes at the end: ``merge`` puts the first of a list leftmost, ``insert`` never changes which node is first, and of several
  final states the maximum-start decides, which is that of the first. So nothing else of a list is ever looked at.
- **Bottoms carry a mark.** A run's first event is marked in the node that starts the run.
- **Many automata.** An event may be for one of several automata, whose states are numbered together: then it says where that
  one starts, and comes once for each that it concerns.
- **Events that satisfy no guard** never come here (see ``program.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import (
    DONE,
    GROW_ACTIVE,
    GROW_ARENA,
    GROW_NODES,
    GROW_STACK,
    HANDED_OVER,
    PAUSED,
    TRANSITION_MISSING,
    inlined,
    jit,
    prefetch,
)
from stretto.engines.shared.counting import Counts
from stretto.engines.tecs import structure as s
from stretto.engines.tecs.enumerate import Output, Stack, count_matches, enumerate_matches, push_root
from stretto.engines.tecs.structure import (
    I64,
    Cells,
    Nodes,
    extend,
    insert,
    is_expired,
    merge_cells,
    merge_list,
    new_bottom,
)

I32 = NDArray[np.int32]

# Entries of the transition table; what is not below EDGES is an offset into the edges, plus EDGES.
UNKNOWN = -1  #: not determinized yet
DEAD = 0  #: no transition: the run dies
KEEP = 1  #: only an unmarked loop, and no output: nothing happens
EDGES = 2

# A record in the arena: a header and then, for each active state, an entry: what it is, the maximum-start of its list, the list.
SIZE = 0  #: size class: the record has 8 << class words
STAMP = 1  #: position of the last event that changed the record
KEY = 2  #: its key
COUNT = 3  #: active states
HEADER = 4
WORDS = 2  #: before an entry's list: state · 2^32 + length of the list; the maximum-start
LENGTH = 0xFFFFFFFF

#: The kernel pauses after counting so many nodes, which takes well below a second, so that ^C acts soon.
PAUSE_AFTER = 1 << 24

#: What an event reads is loaded so many events ahead, where there are more partitions than the caches hold.
AHEAD = 16
IN_CACHE = 1 << 11

#: What is done with the matches of an event, where they are not listed or counted (COUNTING).
HANDS_OVER = 2

CONSUME_PARTITION = 1
CONSUME_ANY = 2


class Events(NamedTuple):
    """The events to visit, in order."""

    cls: I32  #: event class
    part: I64  #: partition
    position: I64  #: position in the input
    key: I64  #: what starts are compared by: the position, or the rank in the partition
    low: I64  #: least key in the window of the event
    floor: I64  #: least key from which on matches are listed; empty: all of the window are
    initial: I64  #: start state of the automaton that the event is for; empty: 0 for all


class Machine(NamedTuple):
    """The determinized automaton, as far as it is known."""

    table: I32  #: [state, class of the state's automaton]: UNKNOWN, DEAD, KEEP, or EDGES + offset into ``edges``
    edges: I32  #: at an offset: how many, then pairs (mark, state)
    kind: NDArray[np.uint8]  #: bit 0: final; bit 1: nothing leads on


class Records(NamedTuple):
    """The partitions' records."""

    head: I64  #: [partition]: offset of the record in the arena; 0: none
    arena: I64


class Work(NamedTuple):
    """T′: the active states after the event at hand."""

    slot: I64  #: [state]: its entry, if ``epoch[state]`` is the event's
    epoch: I64  #: [state]
    state: I64  #: [entry]
    start: I64  #: [entry]: maximum-start of its union-list
    first: I64  #: [entry]: first cell of its union-list; 0: the list still lies in the old record
    begin: I64  #: [entry]: where in the arena
    length: I64  #: [entry]: and how long
    words: I64  #: the record to be


@jit
def advance(
    events: Events,
    machine: Machine,
    nodes: Nodes,
    records: Records,
    work: Work,
    cells: Cells,
    stack: Stack,
    out: Output,
    counts: Counts,
    registers: I64,
) -> int:
    """Algorithm 1 from event ``registers[CURSOR]`` on.

    Invariant: before each event, every record holds the active states of its partition in an order of decreasing
    maximum-start, each with a union-list. Cost per event: O(active states of its partition · list length), whatever the
    window, the number of partitions or of partial matches; plus output, or what counting costs (``count_matches``).

    Returns a status; on any but DONE the caller mends what it names and calls again.
    """
    while True:
        if registers[s.BUSY]:
            if registers[s.COUNTING] == HANDS_OVER:
                if registers[s.BUSY] == 1:
                    registers[s.BUSY] = 2
                    return HANDED_OVER
                registers[s.TOP] = registers[s.BUSY] = 0
                status = DONE
            elif registers[s.COUNTING]:
                status = count_matches(nodes, stack, out, counts, registers)
            else:
                status = enumerate_matches(nodes, stack, out, registers)
            if status != DONE:
                return status
            _consume(records, registers)
            registers[s.LOW] = events.low[registers[s.CURSOR]]
            registers[s.CURSOR] += 1
        i = registers[s.CURSOR]
        if i >= events.position.size:
            return DONE
        if registers[s.STEPS] > PAUSE_AFTER:
            registers[s.STEPS] = 0
            return PAUSED
        if records.head.size > IN_CACHE:
            _load_ahead(i, events, records)
        registers[s.NOW] = events.position[i]
        registers[s.LOW] = events.low[i]
        registers[s.PART] = events.part[i]
        if events.initial.size:
            registers[s.INITIAL] = events.initial[i]
        status = _read(events.cls[i], events.key[i], machine, nodes, records, work, cells, stack, registers)
        if status != DONE:
            return status
        if not registers[s.BUSY]:
            registers[s.CURSOR] = i + 1
        elif events.floor.size:
            registers[s.LOW] = max(events.low[i], events.floor[i])


@inlined
def _load_ahead(i: int, events: Events, records: Records) -> None:
    """Have the record of a later event loaded: with many partitions it lies in no cache, and waiting for it costs most."""
    last = events.part.size - 1
    prefetch(records.head, events.part[min(i + 2 * AHEAD, last)])
    at = records.head[events.part[min(i + AHEAD, last)]]
    prefetch(records.arena, at)
    prefetch(records.arena, at + 7)


@inlined
def _has_room(need: int, nodes: Nodes, registers: I64) -> bool:
    """Whether so many nodes fit into the ring, if need be after freeing."""
    room = nodes.left.size - (registers[s.HEAD] - registers[s.TAIL] - 1)
    if need > room and registers[s.RING]:
        _free(nodes, registers)
        room = nodes.left.size - (registers[s.HEAD] - registers[s.TAIL] - 1)
    return bool(need <= room)


@inlined
def _free(nodes: Nodes, registers: I64) -> None:
    """Free the nodes made before the window. Amortized O(1): each node is freed once."""
    size = nodes.left.size - 1
    low = registers[s.LOW]
    tail = registers[s.TAIL] + 1
    head = registers[s.HEAD]
    while tail < head and nodes.position[tail & size] < low:
        tail += 1
    registers[s.TAIL] = tail - 1


@inlined
def _read(
    cls: int,
    key: int,
    machine: Machine,
    nodes: Nodes,
    records: Records,
    work: Work,
    cells: Cells,
    stack: Stack,
    registers: I64,
) -> int:
    """Lines 5 to 12: one event. First make sure that nothing can be missing, then carry it out."""
    part = registers[s.PART]
    arena = records.arena
    at = records.head[part]
    active = 0
    if at:
        if arena[at + STAMP] <= registers[s.CONSUMED]:
            release(records, registers, part)
            at = 0
        else:
            active = arena[at + COUNT]
    table = machine.table
    # Known transitions, and how many nodes, cells and entries they can need.
    initial = registers[s.INITIAL]
    fresh = table[initial, cls]
    if fresh == UNKNOWN:
        registers[s.MISSING_STATE] = initial
        registers[s.MISSING_CLASS] = cls
        return TRANSITION_MISSING
    adds = 0
    if fresh >= EDGES:
        adds = np.int64(machine.edges[fresh - EDGES])
    still = fresh == DEAD
    total = 0
    word = at + HEADER
    for _ in range(active):
        state = arena[word] >> 32
        length = arena[word] & LENGTH
        code = table[state, cls]
        if code == UNKNOWN:
            registers[s.MISSING_STATE] = state
            registers[s.MISSING_CLASS] = cls
            return TRANSITION_MISSING
        total += length
        if code >= EDGES:
            adds += machine.edges[code - EDGES]
            still = False
        elif code == KEEP:
            adds += 1
        else:
            still = False
        word += WORDS + length
    if still:
        return DONE
    need = 2 + 2 * total + 5 * adds
    if not _has_room(need, nodes, registers):
        registers[s.NEED] = need
        return GROW_NODES
    most = total + adds + 2
    if most > cells.node.size or HEADER + 2 * adds + most > work.state.size:
        registers[s.NEED] = HEADER + 2 * adds + most
        return GROW_ACTIVE
    words = 2 * (HEADER + 2 * adds + most)  # a record's size is rounded up to a power of two
    if registers[s.ARENA] + words > arena.size:
        registers[s.NEED] = words
        return GROW_ARENA
    if adds + 2 > stack.node.size:
        registers[s.NEED] = adds + 2
        return GROW_STACK
    _carry_out(cls, key, at, machine, nodes, records, work, cells, stack, registers)
    return DONE


@inlined
def _carry_out(
    cls: int,
    key: int,
    at: int,
    machine: Machine,
    nodes: Nodes,
    records: Records,
    work: Work,
    cells: Cells,
    stack: Stack,
    registers: I64,
) -> None:
    """Lines 5 to 12 of an event for which there is room: transitions, output, the new record."""
    active = records.arena[at + COUNT] if at else 0
    registers[s.VISITED] += 1
    registers[s.TOP] = 0
    registers[s.LINKS] = 0
    registers[s.EMITTED] = 0
    if registers[s.LIMIT] == 1:
        used = _first_of_each(cls, key, at, active, machine, nodes, records.arena, work, stack, registers)
        kept = (used - HEADER) // (WORDS + 1)
    else:
        count = _transitions(cls, key, at, active, machine, nodes, records.arena, work, cells, registers)
        _output(count, machine, nodes, records.arena, work, cells, stack, registers)
        kept, used = _listed(count, machine, records.arena, work, cells)
    if registers[s.TOP]:
        registers[s.BUSY] = 1
        registers[s.TRIGGERS] += 1
    _store(kept, used, key, records, work, registers)


@inlined
def _first_of_each(
    cls: int,
    key: int,
    at: int,
    active: int,
    machine: Machine,
    nodes: Nodes,
    arena: I64,
    work: Work,
    stack: Stack,
    registers: I64,
) -> int:
    """Lines 5 to 12 and 29 to 33 with LIMIT 1, where a list is its first node: nothing is inserted and nothing merged.

    Writes the record to be, and gives where it ends.
    """
    epoch = registers[s.EPOCH] + 1
    registers[s.EPOCH] = epoch
    low = registers[s.LOW]
    edges = machine.edges
    used = HEADER
    code = machine.table[registers[s.INITIAL], cls]
    if code >= EDGES:
        edge = code - EDGES
        for k in range(edges[edge]):
            target = np.int64(edges[edge + 2 + 2 * k])
            if work.epoch[target] != epoch:
                node = new_bottom(nodes, registers, key, edges[edge + 1 + 2 * k])
                used = _enter_first(target, node, key, used, epoch, machine, work, stack, registers)
    word = at + HEADER
    for _ in range(active):
        state = arena[word] >> 32
        start = arena[word + 1]
        first = arena[word + WORDS]
        word += WORDS + (arena[word] & LENGTH)
        code = machine.table[state, cls]
        if start < low or code == DEAD:
            continue
        if code == KEEP:
            if work.epoch[state] != epoch:
                used = _enter_first(state, first, start, used, epoch, machine, work, stack, registers)
            continue
        edge = code - EDGES
        for k in range(edges[edge]):
            target = np.int64(edges[edge + 2 + 2 * k])
            if work.epoch[target] != epoch:
                mark = np.int64(edges[edge + 1 + 2 * k])
                node = extend(nodes, registers, first, start, mark) if mark else first
                used = _enter_first(target, node, start, used, epoch, machine, work, stack, registers)
    return used


@inlined
def _enter_first(
    target: int,
    node: int,
    start: int,
    used: int,
    epoch: int,
    machine: Machine,
    work: Work,
    stack: Stack,
    registers: I64,
) -> int:
    """T′[q] ← new-ulist(n), with its output; a state that nothing leads on from is left out. Gives where the record ends."""
    work.epoch[target] = epoch
    kind = machine.kind[target]
    if kind & 1:
        push_root(stack, registers, node, start)
    if kind & 2:
        return used
    work.words[used] = target << 32 | 1
    work.words[used + 1] = start
    work.words[used + 2] = node
    return used + 3


@inlined
def _transitions(
    cls: int,
    key: int,
    at: int,
    active: int,
    machine: Machine,
    nodes: Nodes,
    arena: I64,
    work: Work,
    cells: Cells,
    registers: I64,
) -> int:
    """Lines 7 to 10: the transitions of the start state, then of the active states in insertion order. Gives |T′|."""
    epoch = registers[s.EPOCH] + 1
    registers[s.EPOCH] = epoch
    low = registers[s.LOW]
    count = 0
    used = 0
    edges = machine.edges
    code = machine.table[registers[s.INITIAL], cls]
    if code >= EDGES:
        edge = code - EDGES
        for k in range(edges[edge]):
            target = np.int64(edges[edge + 2 + 2 * k])
            node = new_bottom(nodes, registers, key, edges[edge + 1 + 2 * k])
            if work.epoch[target] == epoch:
                used = _insert(target, node, used, nodes, arena, work, cells, registers)
            else:
                used += 1
                _enter_node(target, node, key, used, count, epoch, work, cells)
                count += 1
    word = at + HEADER
    for _ in range(active):
        state = arena[word] >> 32
        length = arena[word] & LENGTH
        start = arena[word + 1]
        begin = word + WORDS
        word = begin + length
        code = machine.table[state, cls]
        if start < low or code == DEAD:
            continue
        while length > 1 and is_expired(nodes, registers, arena[begin + length - 1]):
            length -= 1
        if code == KEEP and work.epoch[state] != epoch:
            _enter_list(state, start, begin, length, count, epoch, work)
            count += 1
            continue
        # From here on the merged node is needed, unless all that happens is that the list moves on as it is.
        merged = s.NIL
        first_edge = code - EDGES
        steps = 1 if code == KEEP else np.int64(edges[first_edge])
        for k in range(steps):
            mark = 0
            target = state
            if code != KEEP:
                mark = np.int64(edges[first_edge + 1 + 2 * k])
                target = np.int64(edges[first_edge + 2 + 2 * k])
            there = work.epoch[target] == epoch
            if not mark and not there:
                _enter_list(target, start, begin, length, count, epoch, work)
                count += 1
                continue
            if merged == s.NIL:
                merged = merge_list(nodes, registers, arena, begin, length)
            node = extend(nodes, registers, merged, start, mark) if mark else merged
            if there:
                used = _insert(target, node, used, nodes, arena, work, cells, registers)
            else:
                used += 1
                _enter_node(target, node, start, used, count, epoch, work, cells)
                count += 1
    return count


@inlined
def _enter_node(
    target: int, node: int, start: int, cell: int, count: int, epoch: int, work: Work, cells: Cells
) -> None:
    """T′[q] ← new-ulist(n), lines 17 and 26; ``node`` is no union."""
    cells.node[cell] = node
    cells.next[cell] = 0
    work.epoch[target] = epoch
    work.slot[target] = count
    work.state[count] = target
    work.start[count] = start
    work.first[count] = cell


@inlined
def _enter_list(target: int, start: int, begin: int, length: int, count: int, epoch: int, work: Work) -> None:
    """T′[q] ← ul, line 26: the list stays where it is until something is inserted into it."""
    work.epoch[target] = epoch
    work.slot[target] = count
    work.state[count] = target
    work.start[count] = start
    work.first[count] = 0
    work.begin[count] = begin
    work.length[count] = length


@inlined
def _insert(
    target: int, node: int, used: int, nodes: Nodes, arena: I64, work: Work, cells: Cells, registers: I64
) -> int:
    """T′[q] ← insert(T′[q], n), line 24. Gives the cells used."""
    entry = work.slot[target]
    first = work.first[entry]
    if not first:
        first = used + 1
        used += work.length[entry]
        for i in range(work.length[entry]):
            cells.node[first + i] = arena[work.begin[entry] + i]
            cells.next[first + i] = first + i + 1
        cells.next[used] = 0
        work.first[entry] = first
    return used + insert(nodes, registers, cells, first, node, used + 1)


@inlined
def _output(
    count: int, machine: Machine, nodes: Nodes, arena: I64, work: Work, cells: Cells, stack: Stack, registers: I64
) -> None:
    """Lines 29 to 33: hand the final states' nodes to the enumeration."""
    for entry in range(count):
        if machine.kind[work.state[entry]] & 1:
            if work.first[entry]:
                node = merge_cells(nodes, registers, cells, work.first[entry])
            else:
                node = merge_list(nodes, registers, arena, work.begin[entry], work.length[entry])
            push_root(stack, registers, node, work.start[entry])


@inlined
def _listed(count: int, machine: Machine, arena: I64, work: Work, cells: Cells) -> tuple[int, int]:
    """The record to be: how many states are in it, and where it ends. States that nothing leads on from are left out."""
    words = work.words
    used = HEADER
    kept = 0
    for entry in range(count):
        state = work.state[entry]
        if machine.kind[state] & 2:
            continue
        kept += 1
        words[used + 1] = work.start[entry]
        cell = work.first[entry]
        if cell:
            top = used + WORDS
            while cell:
                words[top] = cells.node[cell]
                top += 1
                cell = cells.next[cell]
            words[used] = state << 32 | (top - used - WORDS)
            used = top
        else:
            length = work.length[entry]
            words[used] = state << 32 | length
            for i in range(length):
                words[used + WORDS + i] = arena[work.begin[entry] + i]
            used += WORDS + length
    return kept, used


@inlined
def _store(kept: int, used: int, key: int, records: Records, work: Work, registers: I64) -> None:
    """T ← T′: write the partition's record, in place where it fits."""
    part = registers[s.PART]
    arena = records.arena
    if not kept:
        release(records, registers, part)
        return
    at = records.head[part]
    if at and 8 << arena[at + SIZE] < used:
        release(records, registers, part)
        at = 0
    if not at:
        at = _allocate(arena, registers, used)
        records.head[part] = at
    arena[at + STAMP] = registers[s.NOW]
    arena[at + KEY] = key
    arena[at + COUNT] = kept
    for i in range(HEADER, used):
        arena[at + i] = work.words[i]


@inlined
def _allocate(arena: I64, registers: I64, words: int) -> int:
    """A record of at least ``words`` words: from the free list of its size, or from the arena's end."""
    size = 0
    while 8 << size < words:
        size += 1
    at = registers[s.FREE + size]
    if at:
        registers[s.FREE + size] = arena[at + STAMP]
    else:
        at = registers[s.ARENA]
        registers[s.ARENA] = at + (8 << size)
    arena[at + SIZE] = size
    return at


@jit
def release(records: Records, registers: I64, part: int) -> None:
    """Give a partition's record back."""
    at = records.head[part]
    if at:
        size = records.arena[at + SIZE]
        records.arena[at + STAMP] = registers[s.FREE + size]
        registers[s.FREE + size] = at
        records.head[part] = 0


@inlined
def _consume(records: Records, registers: I64) -> None:
    """CONSUME BY, after an event has output."""
    if registers[s.CONSUME] == CONSUME_PARTITION:
        release(records, registers, registers[s.PART])
    elif registers[s.CONSUME] == CONSUME_ANY:
        registers[s.CONSUMED] = registers[s.NOW]
        if registers[s.RING]:
            registers[s.TAIL] = registers[s.HEAD] - 1
