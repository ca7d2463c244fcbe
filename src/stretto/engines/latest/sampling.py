"""A batch of events for EQL's samples: different events, one for each step, in any order, once for each key.

The first events of a step suffice, as many as there are steps: the others take fewer. An event costs O(steps!) at most, and there are
five steps at most.
"""

from __future__ import annotations

from stretto._jit import DONE, OUTPUT_FULL, inlined, jit
from stretto.engines.latest import structure as s
from stretto.engines.latest.structure import I64, Events, Machine, Out, Samples


@inlined
def _choose(key: int, steps: int, samples: Samples, chosen: I64) -> bool:
    """Choose the least positions, in the order of steps, that are different; ``chosen`` has the number of each step's event."""
    step = 0
    chosen[0] = -1
    while 0 <= step < steps:
        chosen[step] += 1
        if chosen[step] >= samples.number[key, step]:
            step -= 1
            continue
        taken = False
        for other in range(step):
            if samples.position[key, other, chosen[other]] == samples.position[key, step, chosen[step]]:
                taken = True
        if not taken:
            step += 1
            if step < steps:
                chosen[step] = -1
    return step == steps


@inlined
def _put(key: int, steps: int, samples: Samples, chosen: I64, out: Out, registers: I64) -> None:
    """A sample into the output, its events in the order of the stream."""
    row, cell = registers[s.ROWS], registers[s.CELLS]
    for step in range(steps):
        position = samples.position[key, step, chosen[step]]
        at = cell + step
        while at > cell and out.position[at - 1] > position:
            out.position[at], out.mark[at] = out.position[at - 1], out.mark[at - 1]
            at -= 1
        out.position[at], out.mark[at] = position, step
    out.start[row], out.end[row] = out.position[cell], out.position[cell + steps - 1]
    registers[s.ROWS], registers[s.CELLS] = row + 1, cell + steps
    out.stop[row] = cell + steps
    registers[s.TRIGGERS] += 1


@jit
def sample(events: Events, machine: Machine, samples: Samples, out: Out, chosen: I64, registers: I64) -> int:
    """Read events from the cursor on; DONE, or OUTPUT_FULL."""
    steps = machine.bit.size
    while registers[s.CURSOR] < events.bits.size:
        i = registers[s.CURSOR]
        if registers[s.ROWS] + steps > out.start.size or registers[s.CELLS] + steps * steps > out.position.size:
            return OUTPUT_FULL
        for step in range(steps):
            key = events.key[machine.group[step], i]
            if key < 0 or not events.bits[i] >> machine.bit[step] & 1 or samples.number[key, steps]:
                continue
            count = samples.number[key, step]
            if count < steps:
                samples.position[key, step, count] = events.position[i]
                samples.number[key, step] = count + 1
        for step in range(steps):
            key = events.key[machine.group[step], i]
            if key < 0 or not events.bits[i] >> machine.bit[step] & 1 or samples.number[key, steps]:
                continue
            if _choose(key, steps, samples, chosen):
                samples.number[key, steps] = 1
                if not machine.silent:
                    _put(key, steps, samples, chosen, out, registers)
        registers[s.VISITED] += 1
        registers[s.CURSOR] = i + 1
    return DONE
