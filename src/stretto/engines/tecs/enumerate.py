"""Algorithm 2 of the CORE paper (appendix B.1): enumeration with output-linear delay, resumable.

Two orders. Without LIMIT: depth first, left before right, on a stack, as in the paper; a path is kept in one array, because
what lies below a stack entry's depth does not change while the entry waits. With LIMIT n: latest start first, on a heap
by maximum-start, so that the n latest come first; a path is then a linked list, shared by the entries that branch off it.

Both stop when the output is full and go on where they stopped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_OUTPUT, GROW_STACK, OUTPUT_FULL, inlined, jit
from stretto.engines.shared.counting import Counts, Graph, count_paths
from stretto.engines.tecs import structure as s
from stretto.engines.tecs.structure import I64, Nodes

I32 = NDArray[np.int32]


class Stack(NamedTuple):
    """Paths to go on with. int64, marks int32."""

    node: I64  #: where to go on
    depth: I64  #: stack: length of the path so far; heap: the path's last link
    key: I64  #: heap: maximum-start of the node
    path: I64  #: stack: positions of the path at hand; heap: position of each link
    mark: I32  #: the marks beside ``path``
    before: I64  #: heap: the link before; slot 0 is the end


class Output(NamedTuple):
    """Matches found. int64, marks int32.

    ``stop[k]`` is where row k's positions end, or how many matches a counted event has; ``visit[k]`` which of the call's events
    completes it, where that is wanted (else empty).
    """

    start: I64
    end: I64
    stop: I64
    position: I64
    mark: I32
    visit: I64


#: A key above all others.
FIRST_OF_ALL = 2**62


@inlined
def push_root(stack: Stack, registers: I64, node: int, key: int) -> None:
    """Add a node of maximum-start ``key`` whose matches are to be written. The caller has made sure of the room."""
    if registers[s.LIMIT]:
        _heap_push(stack, registers, key, node, 0)
    else:
        top = registers[s.TOP]
        stack.node[top] = node
        stack.depth[top] = 0
        registers[s.TOP] = top + 1


@jit
def enumerate_matches(nodes: Nodes, stack: Stack, out: Output, registers: I64) -> int:
    """Write the matches of the pushed nodes that lie in the window. O(size of what is written) [· log with LIMIT]."""
    if registers[s.LIMIT]:
        return _latest_first(nodes, stack, out, registers)
    return _depth_first(nodes, stack, out, registers)


@jit
def count_matches(nodes: Nodes, stack: Stack, out: Output, counts: Counts, registers: I64) -> int:
    """Write how many matches the pushed nodes have in the window, and where the first begins, as one row.

    Cost: that of :func:`~stretto.engines.shared.counting.count_paths`. Not with LIMIT.
    """
    row = registers[s.ROWS]
    if row == out.start.size:
        return OUTPUT_FULL
    graph = Graph(nodes.left, nodes.right, nodes.start, nodes.position)
    looked = count_paths(
        graph,
        nodes.left.size - 1,
        registers[s.TAIL],
        registers[s.LOW],
        stack.node,
        registers[s.TOP],
        counts,
        stack.path,
    )
    if looked < 0:
        return GROW_STACK
    total = counts.node.size - 1
    out.start[row] = counts.first[total]
    out.end[row] = registers[s.NOW]
    out.stop[row] = counts.matches[total]
    registers[s.ROWS] = row + 1
    registers[s.STEPS] += looked
    registers[s.TOP] = 0
    registers[s.BUSY] = 0
    return DONE


@inlined
def _depth_first(nodes: Nodes, stack: Stack, out: Output, registers: I64) -> int:
    size = nodes.left.size - 1
    low = registers[s.LOW]
    top = registers[s.TOP]
    rows = registers[s.ROWS]
    cells = registers[s.CELLS]
    status = DONE
    while top:
        top -= 1
        node = stack.node[top]
        depth = stack.depth[top]
        while True:
            slot = node & size
            if nodes.right[slot] != s.NIL:
                if nodes.right_start[slot] >= low:
                    # One slot stays free, to put the path at hand back.
                    if top + 2 > stack.node.size:
                        status = GROW_STACK
                        break
                    stack.node[top] = nodes.right[slot]
                    stack.depth[top] = depth
                    top += 1
                node = nodes.left[slot]
            elif nodes.left[slot] != s.NIL:
                if depth == stack.path.size:
                    status = GROW_STACK
                    break
                stack.path[depth] = nodes.position[slot]
                stack.mark[depth] = nodes.mark[slot]
                depth += 1
                node = nodes.left[slot]
            else:
                marked = int(nodes.mark[slot] != 0)
                if rows == out.start.size or cells + depth + marked > out.position.size:
                    status = OUTPUT_FULL if rows else GROW_OUTPUT
                    break
                if marked:
                    out.position[cells] = nodes.position[slot]
                    out.mark[cells] = nodes.mark[slot]
                    cells += 1
                for i in range(depth):
                    out.position[cells + i] = stack.path[depth - 1 - i]
                    out.mark[cells + i] = stack.mark[depth - 1 - i]
                cells += depth
                out.start[rows] = nodes.position[slot]
                out.end[rows] = registers[s.NOW]
                out.stop[rows] = cells
                if out.visit.size:
                    out.visit[rows] = registers[s.CURSOR]
                rows += 1
                break
        if status != DONE:
            stack.node[top] = node
            stack.depth[top] = depth
            top += 1
            break
    registers[s.TOP] = top
    registers[s.ROWS] = rows
    registers[s.CELLS] = cells
    registers[s.BUSY] = int(top > 0)
    return status


@inlined
def _latest_first(nodes: Nodes, stack: Stack, out: Output, registers: I64) -> int:
    size = nodes.left.size - 1
    low = registers[s.LOW]
    while registers[s.TOP] and registers[s.EMITTED] < registers[s.LIMIT]:
        node = stack.node[0]
        link = stack.depth[0]
        _heap_pop(stack, registers)
        status = DONE
        while True:
            slot = node & size
            if nodes.right[slot] != s.NIL:
                if nodes.right_start[slot] >= low:
                    if registers[s.TOP] + 2 > stack.node.size:
                        status = GROW_STACK
                        break
                    _heap_push(stack, registers, nodes.right_start[slot], nodes.right[slot], link)
                node = nodes.left[slot]
            elif nodes.left[slot] != s.NIL:
                fresh = registers[s.LINKS] + 1
                if fresh == stack.path.size:
                    status = GROW_STACK
                    break
                registers[s.LINKS] = fresh
                stack.path[fresh] = nodes.position[slot]
                stack.mark[fresh] = nodes.mark[slot]
                stack.before[fresh] = link
                link = fresh
                node = nodes.left[slot]
            else:
                status = _write_links(nodes.position[slot], nodes.mark[slot], link, stack, out, registers)
                break
        if status != DONE:
            # Back on top, whatever its key: the order of equal starts does not depend on where buffers end.
            _heap_push(stack, registers, FIRST_OF_ALL, node, link)
            return status
    registers[s.TOP] = 0
    registers[s.BUSY] = 0
    return DONE


@inlined
def _write_links(start: int, mark: int, link: int, stack: Stack, out: Output, registers: I64) -> int:
    rows = registers[s.ROWS]
    cells = registers[s.CELLS]
    count = int(mark != 0)
    at = link
    while at:
        count += 1
        at = stack.before[at]
    if rows == out.start.size or cells + count > out.position.size:
        return OUTPUT_FULL if rows else GROW_OUTPUT
    if mark:
        out.position[cells] = start
        out.mark[cells] = mark
        cells += 1
    at = link
    while at:
        # The last link is the earliest event.
        out.position[cells] = stack.path[at]
        out.mark[cells] = stack.mark[at]
        cells += 1
        at = stack.before[at]
    out.start[rows] = start
    out.end[rows] = registers[s.NOW]
    out.stop[rows] = cells
    if out.visit.size:
        out.visit[rows] = registers[s.CURSOR]
    registers[s.ROWS] = rows + 1
    registers[s.CELLS] = cells
    registers[s.EMITTED] += 1
    return DONE


@inlined
def _before(key: int, node: int, link: int, stack: Stack, at: int) -> bool:
    """Whether an entry leaves the heap before the one at ``at``: a total order, so that the layout means nothing."""
    if key != stack.key[at]:
        return key > stack.key[at]
    if node != stack.node[at]:
        return node > stack.node[at]
    return link > stack.depth[at]


@inlined
def _heap_push(stack: Stack, registers: I64, key: int, node: int, link: int) -> None:
    """Add to the heap (greatest key first). O(log size)."""
    at = registers[s.TOP]
    registers[s.TOP] = at + 1
    while at:
        parent = (at - 1) >> 1
        if not _before(key, node, link, stack, parent):
            break
        stack.key[at] = stack.key[parent]
        stack.node[at] = stack.node[parent]
        stack.depth[at] = stack.depth[parent]
        at = parent
    stack.key[at] = key
    stack.node[at] = node
    stack.depth[at] = link


@inlined
def _heap_pop(stack: Stack, registers: I64) -> None:
    """Remove the top of the heap. O(log size)."""
    count = registers[s.TOP] - 1
    registers[s.TOP] = count
    key = stack.key[count]
    node = stack.node[count]
    link = stack.depth[count]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and _before(
            stack.key[child + 1], stack.node[child + 1], stack.depth[child + 1], stack, child
        ):
            child += 1
        if _before(key, node, link, stack, child):
            break
        stack.key[at] = stack.key[child]
        stack.node[at] = stack.node[child]
        stack.depth[at] = stack.depth[child]
        at = child
    if count:
        stack.key[at] = key
        stack.node[at] = node
        stack.depth[at] = link
