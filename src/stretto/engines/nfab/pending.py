"""The heap of complete runs whose negation at the end is not over yet."""

from __future__ import annotations

from stretto._jit import inlined
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.structure import I64, Runs, Scratch


@inlined
def _before(scratch: Scratch, runs: Runs, a: int, b: int) -> bool:
    """Whether timer a comes before timer b: the earlier start, then the earlier completion."""
    first, second = runs.start[scratch.timer[a]], runs.start[scratch.timer[b]]
    return first < second or (first == second and scratch.serial[a] < scratch.serial[b])


@inlined
def _swap(scratch: Scratch, a: int, b: int) -> None:
    scratch.timer[a], scratch.timer[b] = scratch.timer[b], scratch.timer[a]
    scratch.serial[a], scratch.serial[b] = scratch.serial[b], scratch.serial[a]


@inlined
def push_timer(run: int, runs: Runs, scratch: Scratch, registers: I64) -> None:
    """Push a time onto the heap. O(log pending)."""
    at = registers[s.TIMERS]
    registers[s.TIMERS] = at + 1
    scratch.timer[at] = run
    scratch.serial[at] = registers[s.SERIAL]
    registers[s.SERIAL] += 1
    while at > 0 and _before(scratch, runs, at, (at - 1) // 2):
        _swap(scratch, at, (at - 1) // 2)
        at = (at - 1) // 2


@inlined
def pop_timer(runs: Runs, scratch: Scratch, registers: I64) -> int:
    run = scratch.timer[0]
    size = registers[s.TIMERS] - 1
    registers[s.TIMERS] = size
    scratch.timer[0], scratch.serial[0] = scratch.timer[size], scratch.serial[size]
    at = 0
    while True:
        least = at
        for child in range(2 * at + 1, min(2 * at + 3, size)):
            if _before(scratch, runs, child, least):
                least = child
        if least == at:
            return run
        _swap(scratch, at, least)
        at = least
