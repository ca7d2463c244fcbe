"""Counting the paths that end at an event, without listing one.

What is counted has a number: 2n is the matches behind node n, 2n + 1 those behind it and all older nodes of its step, which is what
a link without bounds reaches. A count holds until the first of its starts leaves the window, or one that was left out no longer
must be: an event looks at what is new or changed.
"""

from __future__ import annotations

from typing import NamedTuple

from stretto._jit import DONE, GROW_STACK, PAUSED, inlined, jit
from stretto.engines.shared.counting import MOST, Counts, add
from stretto.engines.timed import structure as s
from stretto.engines.timed.reaching import PAUSE_AFTER, forgotten, is_spoilt, reaches
from stretto.engines.timed.structure import Bits, Clock, Events, Links, Machine, Nodes, Parts, Walk


class Tally(NamedTuple):
    """What is known, by number of what is counted; the slot behind the last is the sum over all roots."""

    counts: Counts
    left_out: Bits  #: whether starts were left out, because of an event before them that must not come
    bad: Clock  #: … and the measure of the first such event


@jit
def count_paths_of(
    at: int,
    events: Events,
    machine: Machine,
    nodes: Nodes,
    links: Links,
    parts: Parts,
    walk: Walk,
    tally: Tally,
    registers: s.I64,
) -> int:
    """Count the matches of the event at hand into the last slot of ``tally``; not with windows inside, nor where paths are alike.

    Invariant: what lies on the stack waits for what lies above it. Cost: O(nodes from which the event is reached · their reach
    where it is bounded) at most.
    """
    measure, low, least = events.measure[at], registers[s.LOW], forgotten(events.part[at], parts, registers)
    while True:
        registers[s.STEPS] += 1
        if registers[s.STEPS] > PAUSE_AFTER:
            registers[s.STEPS] = 0
            return PAUSED
        top = registers[s.TOP]
        if not top:
            if registers[s.ROOT] == registers[s.ROOTS]:
                break
            walk.node[0] = 2 * walk.root[registers[s.ROOT]]
            registers[s.ROOT] += 1
            registers[s.TOP] = 1
            continue
        one = walk.node[top - 1]
        if _is_known(one, measure, low, machine, tally):
            registers[s.TOP] = top - 1
            continue
        _clear(one, tally)
        if one & 1:
            missing = _of_step(one, measure, low, least, machine, nodes, tally, walk, registers)
        else:
            missing = _of_node(one, measure, low, least, machine, nodes, links, tally, walk, registers)
        if not missing:
            tally.counts.node[one] = one >> 1
        elif registers[s.TOP] == top:  # there was no room for any
            return GROW_STACK
    total = tally.counts.node.size - 1
    _clear(total, tally)
    for at_root in range(registers[s.ROOTS]):
        add(tally.counts, total, 2 * walk.root[at_root])
    return DONE


@inlined
def _is_known(one: int, measure: float, low: int, machine: Machine, tally: Tally) -> bool:
    """Whether it was counted, and holds."""
    if not tally.counts.node[one] or tally.counts.least[one] < low:
        return False
    return not (tally.left_out[one] and measure - tally.bad[one] > machine.window[0])


@inlined
def _clear(one: int, tally: Tally) -> None:
    tally.counts.node[one] = s.NIL
    tally.counts.matches[one], tally.counts.bits[one] = 0, 0.0
    tally.counts.least[one], tally.counts.first[one] = MOST, -1
    tally.left_out[one] = False


@inlined
def _of_step(
    one: int,
    measure: float,
    low: int,
    least: int,
    machine: Machine,
    nodes: Nodes,
    tally: Tally,
    walk: Walk,
    registers: s.I64,
) -> int:
    """Add up the matches behind a node and all older ones of its step; gives how many parts are not known yet."""
    node = one >> 1
    older = nodes.older[node]
    missing = int(not _take(2 * node, one, measure, low, machine, tally, walk, registers))
    if older and nodes.position[older] >= least and nodes.best[older] >= low:
        missing += not _take(2 * older + 1, one, measure, low, machine, tally, walk, registers)
    return missing


@inlined
def _of_node(
    one: int,
    measure: float,
    low: int,
    least: int,
    machine: Machine,
    nodes: Nodes,
    links: Links,
    tally: Tally,
    walk: Walk,
    registers: s.I64,
) -> int:
    """Add up the matches behind a node; gives how many parts are not known yet."""
    node, missing = one >> 1, 0
    if machine.first[nodes.step[node]]:
        _begin(node, one, measure, low, machine, nodes, tally, registers)
    for link in range(nodes.begin[node], nodes.begin[node] + nodes.links[node]):
        edge, stop, found = links.edge[link], links.stop[link], links.node[link]
        rank, clock = nodes.rank[node], nodes.clock[node]
        whole = stop < 0 and not machine.bounded[edge] and not machine.contiguous[edge]
        while found and reaches(found, edge, rank, clock, stop, machine, nodes, least, low):
            part = 2 * found + whole
            missing += not _take(part, one, measure, low, machine, tally, walk, registers)
            if whole:
                break
            found = nodes.older[found]
    return missing


@inlined
def _begin(
    node: int,
    one: int,
    measure: float,
    low: int,
    machine: Machine,
    nodes: Nodes,
    tally: Tally,
    registers: s.I64,
) -> None:
    """A match may begin with a node."""
    key = nodes.rank[node] if registers[s.COUNTED] else nodes.position[node]
    if is_spoilt(node, measure, machine, nodes):
        tally.left_out[one], tally.bad[one] = True, nodes.bad[node]
    elif key >= low:
        tally.counts.matches[one], tally.counts.least[one], tally.counts.first[one] = 1, key, nodes.position[node]


@inlined
def _take(
    part: int,
    one: int,
    measure: float,
    low: int,
    machine: Machine,
    tally: Tally,
    walk: Walk,
    registers: s.I64,
) -> bool:
    """Add a part of what is counted, or put it on the stack; false: it is not known yet."""
    if not _is_known(part, measure, low, machine, tally):
        if registers[s.TOP] < walk.node.size:
            walk.node[registers[s.TOP]] = part
            registers[s.TOP] += 1
        return False
    add(tally.counts, one, part)
    if tally.left_out[part]:
        if not tally.left_out[one] or tally.bad[part] < tally.bad[one]:
            tally.bad[one] = tally.bad[part]
        tally.left_out[one] = True
    return True
