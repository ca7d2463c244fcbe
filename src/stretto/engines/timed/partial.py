"""The furthest partial match of a first event whose window has closed without a match, for ``timeouts=``.

The events of windows that are open lie in a *log*; nothing else is done with an event when it comes. When a window closes in vain,
the events from its first one on are gone through once, with the ways to each step: a *way* is a partial match from the first event
to an event as a step (``automata/steps.py``). Of two ways to one step the one that is behind is given up where all that may follow
it may follow the other: the same edges lead on, and no window inside ends earlier. What is behind stays behind, because the same
events are added to both. So where edges ask only what comes later, one way a step is kept, and a window costs O(its events of the
key · edges); where gaps, neighbours and ``NOT`` ask when the last event was, an event costs the ways in their reach; with windows
inside, a step has a way for each combination of their beginnings that may still matter, which ``budget=`` bounds. Reads the log,
writes ``Ways`` and ``Found``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stretto._jit import DONE, GROW_OUTPUT, GROW_STACK, PAUSED, inlined, jit
from stretto.engines.timed import structure as s
from stretto.engines.timed.reaching import PAUSE_AFTER
from stretto.engines.timed.structure import I64, Clock, Machine

# Registers. int64.
AT = 0  #: which of the first events is at hand
EVENT = 1  #: the next event of its window; NIL: it was not begun; ALL_READ
WAYS = 2  #: the next free way
BEST = 3  #: the furthest so far; NIL: none
STEPS = 4  #: ways looked at since the kernel last paused
CELLS = 5  #: events written
NEED = 6  #: how many events the next row has
REGISTERS = 7

ALL_READ = -1

#: Which other way to a step makes one needless that is behind: one to any event, to an event that is not earlier, or to the same.
ANY, LATER, SAME = 0, 1, 2


class Log(NamedTuple):
    """The events that partial matches may hold, in the order of the stream; slot 0 is none."""

    cls: I64
    part: I64  #: partition
    position: I64
    rank: I64  #: position among the events of the partition
    key: I64  #: what windows bound: position or rank
    low: I64  #: least key in the window of the event
    clock: Clock  #: what gaps measure
    next: I64  #: the next event of the partition; NIL: none


class Traits(NamedTuple):
    """What tells how far a way got, and which others it makes needless, by step."""

    place: I64  #: how many types of the formula may stand before it
    atom: I64  #: number of its type in the text
    keeps: I64  #: ANY, LATER or SAME


class Ways(NamedTuple):
    """Partial matches of the first event at hand; slot 0 is none."""

    event: I64  #: slot of the last event
    step: I64
    length: I64  #: events
    before: I64  #: the way that it goes on from
    older: I64  #: in the list of its step: to an event that is not later
    begun: Clock  #: [way · windows + window]: clock of the first event in a window
    head: I64  #: [step]: the newest way that is kept
    fresh: I64  #: [step]: those to the event at hand
    seen: I64  #: [group]: position of the last event that must not come between; −1: none


class Found(NamedTuple):
    """Partial matches; row k ends at ``stop[k]``."""

    stop: I64
    position: I64
    step: I64


@jit
def link(log: Log, tail: I64, begin: int, end: int) -> None:
    """Put the events of some slots behind those of their partitions; ``tail`` is the last of each. O(1) an event."""
    for slot in range(begin, end):
        log.next[slot] = s.NIL
        last = tail[log.part[slot]]
        if last != s.NIL:
            log.next[last] = slot
        tail[log.part[slot]] = slot


@jit
def furthest(firsts: I64, machine: Machine, traits: Traits, log: Log, ways: Ways, found: Found, registers: I64) -> int:
    """Write the furthest partial match of each first event, from ``registers[AT]`` on; a status says why it stopped.

    An event is taken in whole or not at all, so that the kernel goes on with the one at which it stopped.
    """
    while registers[AT] < firsts.size:
        first = firsts[registers[AT]]
        event = registers[EVENT]
        if event == s.NIL:
            event = first
            registers[WAYS], registers[BEST] = 1, s.NIL
            for step in range(ways.head.size):
                ways.head[step] = s.NIL
            for group in range(ways.seen.size):
                ways.seen[group] = -1
        while event != ALL_READ:
            registers[EVENT] = event
            if registers[STEPS] > PAUSE_AFTER:
                registers[STEPS] = 0
                return PAUSED
            if not _take(event, first, machine, traits, log, ways, registers):
                return GROW_STACK
            event = log.next[event]
            if event == s.NIL or log.low[event] > log.key[first]:
                event = ALL_READ
        registers[EVENT] = ALL_READ
        if not _write(log, ways, found, registers):
            return GROW_OUTPUT
        registers[EVENT] = s.NIL
        registers[AT] += 1
    return DONE


@inlined
def _write(log: Log, ways: Ways, found: Found, registers: I64) -> bool:
    """Write the furthest way as the next row; false: there is no room."""
    way, begin = registers[BEST], registers[CELLS]
    cell = begin + ways.length[way]
    if cell > found.position.size:
        registers[NEED] = ways.length[way]
        return False
    registers[CELLS] = found.stop[registers[AT]] = cell
    while way != s.NIL:
        cell -= 1
        found.position[cell] = log.position[ways.event[way]]
        found.step[cell] = ways.step[way]
        way = ways.before[way]
    return True


@inlined
def _take(event: int, first: int, machine: Machine, traits: Traits, log: Log, ways: Ways, registers: I64) -> bool:
    """Find the ways to an event, and keep them; false: there is no room, and nothing has changed."""
    used, best, cls = registers[WAYS], registers[BEST], log.cls[event]
    for k in range(machine.begin[cls], machine.begin[cls + 1]):
        step = machine.step[k]
        ways.fresh[step] = s.NIL
        room = True
        if event != first:
            room = _go_on(event, step, machine, traits, log, ways, registers)
        elif machine.first[step]:
            room = _offer(s.NIL, -1, event, step, machine, traits, log, ways, registers)
        if not room:
            registers[WAYS], registers[BEST] = used, best
            return False
    for k in range(machine.begin[cls], machine.begin[cls + 1]):
        _keep(machine.step[k], machine, traits, ways, registers)
    for group in range(machine.hits.shape[1]):
        if machine.hits[cls, group]:
            ways.seen[group] = log.position[event]
    return True


@inlined
def _go_on(event: int, step: int, machine: Machine, traits: Traits, log: Log, ways: Ways, registers: I64) -> bool:
    """The ways to an event as a step, from those before; false: there is no room."""
    for edge in range(machine.into[step], machine.into[step + 1]):
        group = machine.group[edge]
        stop = ways.seen[group] if group >= 0 else -1
        way = ways.head[machine.source[edge]]
        while way != s.NIL:
            registers[STEPS] += 1
            last = ways.event[way]
            apart = log.clock[event] - log.clock[last]
            # Nor does the edge lead from any that is older.
            if log.position[last] < stop or (machine.contiguous[edge] and log.rank[last] != log.rank[event] - 1):
                break
            if machine.bounded[edge] and apart > machine.most[edge]:
                break
            early = machine.late[edge] >= 0 and apart < machine.least[edge]
            if not early and not _offer(way, edge, event, step, machine, traits, log, ways, registers):
                return False
            way = ways.older[way]
    return True


@inlined
def _offer(
    way: int,
    edge: int,
    event: int,
    step: int,
    machine: Machine,
    traits: Traits,
    log: Log,
    ways: Ways,
    registers: I64,
) -> bool:
    """A way goes on by an edge to an event, unless a window inside is over or another way makes it needless; false: no room."""
    new, windows = registers[WAYS], machine.size.size
    if new == ways.event.size:
        return False
    clock = log.clock[event]
    for window in range(windows):
        begun = clock
        if way != s.NIL and not machine.opens[edge] >> window & 1:
            both = machine.inside[ways.step[way]] & machine.inside[step]
            if both >> window & 1:
                begun = ways.begun[way * windows + window]
                if clock - begun > machine.size[window]:
                    return True
        ways.begun[new * windows + window] = begun
    ways.event[new], ways.step[new], ways.before[new] = event, step, way
    ways.length[new] = ways.length[way] + 1 if way != s.NIL else 1
    if traits.keeps[step] == ANY and _is_needless(new, ways.head[step], machine, traits, ways, registers):
        return True
    if _is_needless(new, ways.fresh[step], machine, traits, ways, registers):
        return True
    ways.fresh[step] = _without(ways.fresh[step], new, True, machine, traits, ways, registers)
    ways.older[new] = ways.fresh[step]
    ways.fresh[step] = new
    registers[WAYS] = new + 1
    best = registers[BEST]
    if best == s.NIL or _is_further(new, best, traits, ways, registers):
        registers[BEST] = new
    return True


@inlined
def _keep(step: int, machine: Machine, traits: Traits, ways: Ways, registers: I64) -> None:
    """The ways to the event at hand come into the list of their step, without those that they make needless."""
    way = ways.fresh[step]
    while way != s.NIL:
        following = ways.older[way]
        if traits.keeps[step] != SAME:
            whole = machine.inside[step] != 0
            ways.head[step] = _without(ways.head[step], way, whole, machine, traits, ways, registers)
        ways.older[way] = ways.head[step]
        ways.head[step] = way
        way = following


@inlined
def _without(head: int, way: int, whole: bool, machine: Machine, traits: Traits, ways: Ways, registers: I64) -> int:
    """A list without what a way makes needless; unless ``whole``, the list ends with the furthest, and is looked at no further
    than to the first that stays."""
    before, one = s.NIL, head
    while one != s.NIL:
        following = ways.older[one]
        if _serves(way, one, machine, traits, ways, registers):
            if before == s.NIL:
                head = following
            else:
                ways.older[before] = following
        else:
            if not whole:
                return head
            before = one
        one = following
    return head


@inlined
def _is_needless(way: int, head: int, machine: Machine, traits: Traits, ways: Ways, registers: I64) -> bool:
    one = head
    while one != s.NIL:
        if _serves(one, way, machine, traits, ways, registers):
            return True
        one = ways.older[one]
    return False


@inlined
def _serves(a: int, b: int, machine: Machine, traits: Traits, ways: Ways, registers: I64) -> bool:
    """Whether one way to a step is not behind another, and the windows that it lies in do not end earlier."""
    registers[STEPS] += 1
    windows, inside = machine.size.size, machine.inside[ways.step[a]]
    for window in range(windows):
        if inside >> window & 1 and ways.begun[a * windows + window] < ways.begun[b * windows + window]:
            return False
    return not _is_ahead(b, a, traits, ways, registers)


@inlined
def _is_further(a: int, b: int, traits: Traits, ways: Ways, registers: I64) -> bool:
    """Whether one way got further than another: to a later place, or ahead."""
    mine, other = traits.place[ways.step[a]], traits.place[ways.step[b]]
    if mine != other:
        return bool(mine > other)
    return _is_ahead(a, b, traits, ways, registers)


@inlined
def _is_ahead(a: int, b: int, traits: Traits, ways: Ways, registers: I64) -> bool:
    """Whether one way has more events than another; the least positions; at the first that differs the later type. O(length)."""
    if ways.length[a] != ways.length[b]:
        return bool(ways.length[a] > ways.length[b])
    earlier, later = 0, 0
    while a != b:
        registers[STEPS] += 1
        if ways.event[a] != ways.event[b]:
            earlier = ways.event[b] - ways.event[a]
        type_a, type_b = traits.atom[ways.step[a]], traits.atom[ways.step[b]]
        if type_a != type_b:
            later = type_a - type_b
        a, b = ways.before[a], ways.before[b]
    return bool(earlier > 0 or (earlier == 0 and later > 0))


def room_for_events(size: int, clock: np.dtype[Any]) -> Log:
    """An empty log for so many events."""
    words = {name: np.zeros(size + 1, np.int64) for name in Log._fields}
    return Log(**(words | {"clock": np.zeros(size + 1, clock)}))


def room_for_ways(size: int, machine: Machine) -> Ways:
    """Room for so many ways."""
    words = {name: np.zeros(size + 1, np.int64) for name in ("event", "step", "length", "before", "older")}
    begun = np.zeros((size + 1) * machine.size.size, machine.size.dtype)
    head, fresh = (np.zeros(machine.first.size, np.int64) for _ in range(2))
    return Ways(**words, begun=begun, head=head, fresh=fresh, seen=np.zeros(machine.hits.shape[1], np.int64))


def room_for_rows(rows: int, cells: int) -> Found:
    """Room for so many partial matches with so many events."""
    return Found(np.zeros(rows, np.int64), np.zeros(cells, np.int64), np.zeros(cells, np.int64))
