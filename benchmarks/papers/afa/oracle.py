"""What the queries must find: plain loops over the definitions, without automata or registers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Found", "changing", "cleansed", "q1", "q2", "q3"]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

#: First event, last event, and the register.
Found = tuple[int, int, tuple[float, ...]]


def q1(changes: Sequence[float], window: int, *, k: int, drop: float) -> list[Found]:
    """A drop, then k times some downticks and as many upticks; what stays the same is skipped after the drop."""
    found = []
    for first, change in enumerate(changes):
        last = _v_patterns(changes, first, k, window) if change < -drop else -1
        if last >= 0:
            found.append((first, last, (0, k)))
    return found


def _v_patterns(changes: Sequence[float], first: int, k: int, window: int) -> int:
    """The last event of k V-patterns behind ``first``; −1: there is none in the window."""
    v = downs = ups = 0
    for at in range(first + 1, min(first + window, len(changes))):
        change = changes[at]
        if change == 0:
            continue
        if change < 0:
            if ups:
                return -1
            downs += 1
            continue
        ups += 1
        if not downs:
            return -1
        if ups == downs:
            v, downs, ups = v + 1, 0, 0
            if v == k:
                return at
    return -1


def q2(changes: Sequence[float], prices: Sequence[float], window: int, *, drop: float) -> list[Found]:
    """A drop, then V-patterns until the price is back."""
    found = []
    for first, change in enumerate(changes):
        if change >= -drop:
            continue
        before = prices[first] - change
        number, falling = 0, True
        for at in range(first + 1, min(first + window, len(changes))):
            if changes[at] == 0:
                break
            if changes[at] > 0 and prices[at] >= before:
                found.append((first, at, (before, number + 1)))
                break
            number += changes[at] < 0 and not falling
            falling = changes[at] < 0
    return found


def q3(changes: F64, directions: Sequence[bool]) -> int:
    """How often the directions follow each other."""
    return changing(changes, np.tile(np.array(directions)[:, None], (1, changes.size)))


def changing(changes: F64, directions: NDArray[np.bool_]) -> int:
    """The same where ``directions[arc, event]`` says what each arc asks of each event."""
    arcs, count = directions.shape
    held = np.ones(max(0, count - arcs + 1), np.bool_)
    for arc in range(arcs):
        here = changes[arc : arc + held.size]
        held &= np.where(directions[arc, arc : arc + held.size], here > 0, here < 0)
    return int(held.sum())


def cleansed(times: I64, punctuations: Sequence[tuple[int, int]], factor: int) -> list[tuple[int, int]]:
    """The rows in the order in which Cleanse lets them through, with the operations of each: as ``2 · rows before + arrival``."""
    waiting: list[int] = []
    found: list[tuple[int, int]] = []
    limit = None
    pairs = dict(punctuations)
    for row in range(len(times) + 1):
        if row in pairs or row == len(times):
            limit = pairs[row] + factor if row < len(times) else None
            free = [one for one in waiting if limit is None or times[one] < limit]
            found += [(one, 2 * row) for one in sorted(free, key=lambda one: times[one])]
            waiting = [one for one in waiting if one not in set(free)]
        if row < len(times):
            if limit is not None and times[row] < limit:
                found.append((row, 2 * row + 1))
            else:
                waiting.append(row)
    return found
