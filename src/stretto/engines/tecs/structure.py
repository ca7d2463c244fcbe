"""The timed enumerable compact set (tECS) in flat arrays, and its operations.

CORE paper, sections 4.1 and 4.2, figure 5. Nodes are numbered in the order of their making; number ``n`` lies in slot
``n mod capacity`` of every array, so that the arrays are a ring. Numbers are never used twice while a structure lives, so
a number that is not above ``registers[TAIL]`` names a freed node, and nothing looks at it again.

Invariants (asserted in tests on random runs): *time-ordered* (a union's left child starts no earlier than its right
one), *3-bounded* (at most three unions in a row to the left), *duplicate-free*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined

I64 = NDArray[np.int64]

NIL = 0  #: no node
EXPIRED = 1  #: stands for any node that has left the window
FIRST = 2  #: the number of the first node

# Registers: scalars that outlive a kernel call. int64.
HEAD = 0  #: the number of the next node
TAIL = 1  #: nodes up to this number are freed
NOW = 2  #: position of the event at hand
LOW = 3  #: keys (positions or ranks) below this are out of the window
CURSOR = 4  #: index of the event at hand in the call's arrays
BUSY = 5  #: 1 while the output of the event at hand is not all written; 2: it was handed over
TOP = 6  #: entries on the enumeration stack or heap
LINKS = 7  #: links in use (heap enumeration)
EMITTED = 8  #: matches written for the event at hand
ROWS = 9  #: rows in the output buffers
CELLS = 10  #: positions in the output buffers
ARENA = 11  #: first unused word of the arena
CONSUMED = 12  #: partial matches of events up to this position are forgotten
EPOCH = 13  #: number of the event, for stamps in scratch arrays
MISSING_STATE = 14  #: the transition that is asked for: state
MISSING_CLASS = 15  #: … and class
RING = 16  #: 1: free nodes by the position of their making; 0: collect
CONSUME = 17  #: 0 none, 1 partition, 2 any
LIMIT = 18  #: matches for each event at most; 0: all
SPAN = 19  #: size of a rank window (collecting only); −1: none
PART = 20  #: partition of the event at hand
VISITED = 21  #: events visited so far
TRIGGERS = 22  #: events that have output so far
NEED = 23  #: what a GROW_… status asks for, in elements
FREE = 24  #: first of the heads of the arena's free lists
REGISTERS = FREE + 48
# No record has a size of the last classes; these words of a snapshot are not read.
INITIAL = REGISTERS - 3  #: the start state of the automaton of the event at hand
COUNTING = REGISTERS - 2  #: 1: matches are counted, not listed; 2: their structure is handed over
STEPS = REGISTERS - 1  #: nodes looked at by counting since the kernel last paused


class Nodes(NamedTuple):
    """Nodes by slot; int64 unless said otherwise. The capacity is a power of two."""

    left: I64  #: union: left child; output: next(o); bottom: NIL
    right: I64  #: union: right child; else NIL
    start: I64  #: max(n), the maximum-start, as a key
    right_start: I64  #: union: max(right(u)), kept so that a freed child is never looked at
    position: I64  #: bottom and output: pos(n); union: the position at which it was made
    mark: NDArray[np.int32]  #: output: which variables hold the event; bottom: as well, or 0


class Cells(NamedTuple):
    """Union-lists under construction, as linked lists; slot 0 is the end."""

    node: I64
    next: I64
    scratch: I64  #: one list as an array


@inlined
def new_bottom(nodes: Nodes, registers: I64, key: int, mark: int) -> int:
    """new-bottom(i): a run starts at the event at hand; with a mark also extend(n, i), in the same node. O(1)."""
    number = registers[HEAD]
    registers[HEAD] = number + 1
    slot = number & (nodes.left.size - 1)
    nodes.left[slot] = NIL
    nodes.right[slot] = NIL
    nodes.start[slot] = key
    nodes.position[slot] = registers[NOW]
    nodes.mark[slot] = mark
    return number


@inlined
def extend(nodes: Nodes, registers: I64, node: int, start: int, mark: int) -> int:
    """extend(n, j): every open complex event of ``node``, of maximum-start ``start``, gets the event at hand. O(1)."""
    number = registers[HEAD]
    registers[HEAD] = number + 1
    slot = number & (nodes.left.size - 1)
    nodes.left[slot] = node
    nodes.right[slot] = NIL
    nodes.start[slot] = start
    nodes.position[slot] = registers[NOW]
    nodes.mark[slot] = mark
    return number


@inlined
def _new_union(nodes: Nodes, registers: I64, left: int, right: int, right_start: int) -> int:
    size = nodes.left.size - 1
    number = registers[HEAD]
    registers[HEAD] = number + 1
    slot = number & size
    nodes.left[slot] = left
    nodes.right[slot] = right
    nodes.start[slot] = nodes.start[left & size]
    nodes.right_start[slot] = right_start
    nodes.position[slot] = registers[NOW]
    return number


@inlined
def is_expired(nodes: Nodes, registers: I64, node: int) -> bool:
    """Whether nothing of the node lies in the window any more (freed nodes included)."""
    return node <= registers[TAIL] or nodes.start[node & (nodes.left.size - 1)] < registers[LOW]


@inlined
def union(nodes: Nodes, registers: I64, first: int, second: int) -> int:
    """union(n1, n2) of two safe nodes with the same maximum-start: figure 5, gadgets (a) to (d). O(1), at most 3 nodes.

    Right parts that have left the window are dropped on the way.
    """
    size = nodes.left.size - 1
    a = first & size
    b = second & size
    start = nodes.start[a]
    if nodes.right[a] == NIL:
        return _new_union(nodes, registers, first, second, start)
    if nodes.right[b] == NIL:
        return _new_union(nodes, registers, second, first, start)
    low = registers[LOW]
    left_a = nodes.left[a]
    left_b = nodes.left[b]
    right_a = nodes.right[a]
    right_b = nodes.right[b]
    start_a = nodes.right_start[a]
    start_b = nodes.right_start[b]
    if start_a < start_b:
        right_a, right_b = right_b, right_a
        start_a, start_b = start_b, start_a
    if start_a < low:
        rest = left_b
    else:
        tail = right_a
        if start_b >= low:
            tail = _new_union(nodes, registers, right_a, right_b, start_b)
        rest = _new_union(nodes, registers, left_b, tail, start_a)
    return _new_union(nodes, registers, left_a, rest, start)


@inlined
def merge_list(nodes: Nodes, registers: I64, array: I64, begin: int, length: int) -> int:
    """merge(ul) of a union-list in ``array``: figure 5 (e). O(length), length − 1 new nodes. None of it is expired."""
    size = nodes.left.size - 1
    node = array[begin + length - 1]
    for i in range(begin + length - 2, begin - 1, -1):
        node = _new_union(nodes, registers, array[i], node, nodes.start[node & size])
    return node


@inlined
def merge_cells(nodes: Nodes, registers: I64, cells: Cells, first: int) -> int:
    """merge(ul) of a union-list in cells."""
    if not cells.next[first]:
        return cells.node[first]
    length = 0
    cell = first
    while cell:
        cells.scratch[length] = cells.node[cell]
        length += 1
        cell = cells.next[cell]
    return merge_list(nodes, registers, cells.scratch, 0, length)


@inlined
def insert(nodes: Nodes, registers: I64, cells: Cells, first: int, node: int, spare: int) -> int:
    """insert(ul, n): 1 if the cell ``spare`` was used, 0 if ``node`` was united with a member. O(length).

    ``first`` is the list's first cell; its node is no union and starts no earlier than ``node``.
    """
    size = nodes.left.size - 1
    start = nodes.start[node & size]
    before = first
    cell = cells.next[first]
    while cell:
        other = cells.node[cell]
        at = nodes.start[other & size]
        if at == start:
            cells.node[cell] = union(nodes, registers, other, node)
            return 0
        if at < start:
            break
        before = cell
        cell = cells.next[cell]
    cells.node[spare] = node
    cells.next[spare] = cell
    cells.next[before] = spare
    return 1
