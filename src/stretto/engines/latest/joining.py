"""A batch of events for EQL's joins: the first event of each step, in any order, again and again for each key.

Invariant: no key holds an event of every step. An event costs O(steps), and O(steps²) where it completes a match.
"""

from __future__ import annotations

from stretto._jit import DONE, OUTPUT_FULL, inlined, jit
from stretto.engines.latest import structure as s
from stretto.engines.latest.structure import I64, Events, Joined, Machine, Out


@inlined
def _empty(key: int, joined: Joined, registers: I64) -> None:
    """Forget what a key holds."""
    for step in range(joined.position.shape[1]):
        joined.position[key, step] = -1
    registers[s.LIVE] -= joined.number[key]
    joined.number[key] = 0


@inlined
def _put(key: int, steps: int, joined: Joined, out: Out, registers: I64) -> None:
    """A match into the output, its events in the order of the stream; the mark of each is the set of steps at which it stands."""
    row, cell = registers[s.ROWS], registers[s.CELLS]
    stop = cell
    for step in range(steps):
        position = joined.position[key, step]
        at = cell
        while at < stop and out.position[at] < position:
            at += 1
        if at < stop and out.position[at] == position:
            out.mark[at] |= 1 << step
            continue
        for behind in range(stop, at, -1):
            out.position[behind], out.mark[behind] = out.position[behind - 1], out.mark[behind - 1]
        out.position[at], out.mark[at] = position, 1 << step
        stop += 1
    out.start[row], out.end[row] = out.position[cell], out.position[stop - 1]
    out.stop[row] = stop
    registers[s.ROWS], registers[s.CELLS] = row + 1, stop
    registers[s.TRIGGERS] += 1


@jit
def join(events: Events, machine: Machine, joined: Joined, out: Out, registers: I64) -> int:
    """Read events from the cursor on; DONE, or OUTPUT_FULL."""
    steps = machine.bit.size
    while registers[s.CURSOR] < events.bits.size:
        i = registers[s.CURSOR]
        if registers[s.ROWS] + steps > out.start.size or registers[s.CELLS] + steps * steps > out.position.size:
            return OUTPUT_FULL
        if machine.until_bit >= 0 and events.bits[i] >> machine.until_bit & 1:
            key = events.key[machine.until_group, i]
            if key >= 0:
                _empty(key, joined, registers)
        for step in range(steps):
            key = events.key[machine.group[step], i]
            if key < 0 or not events.bits[i] >> machine.bit[step] & 1 or joined.position[key, step] >= 0:
                continue
            joined.position[key, step] = events.position[i]
            joined.number[key] += 1
            registers[s.LIVE] += 1
            if joined.number[key] == steps:
                if not machine.silent:
                    _put(key, steps, joined, out, registers)
                _empty(key, joined, registers)
        registers[s.VISITED] += 1
        registers[s.CURSOR] = i + 1
    return DONE
