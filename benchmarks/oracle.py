"""Counts the matches of a sequence query without any engine: dynamic programming over (steps, start
events).

Independent of the library: conditions are read from the definition's structure, not from a parsed query. For
every start event in the window it holds the number of ways to have completed each prefix of the sequence.
That is as slow as it sounds, and simple enough to be believed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.queries import Sequence

__all__ = ["Count", "count"]

COMPARISONS: dict[str, Callable[..., Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True)
class Count:
    """How many complex events, and how many events completed at least one."""

    matches: int
    triggers: int


class Rules(NamedTuple):
    """What the counting needs to know besides the events."""

    window: int
    limit: int
    consume: bool
    one_an_interval: bool


def count(query: Sequence, pieces: Iterable[pa.Table | pa.RecordBatch]) -> Count:
    """Count what ``query`` finds in a stream that is given in pieces."""
    bits, times, keys = [], [], []
    for piece in pieces:
        bits.append(np.stack([_step_bits(query, index, piece) for index in range(len(query.steps))]))
        times.append(np.asarray(piece[query.attribute]))
        keys.append(np.asarray(piece[query.partition]) if query.partition else np.zeros(len(piece), np.int64))
    satisfied, time = np.concatenate(bits, axis=1), np.concatenate(times)
    if query.strategy == "STRICT":
        return Count(*_count_contiguous(satisfied, time, query.window, bool(query.consume)))
    plus = np.array([step.plus for step in query.steps])
    one_an_interval = query.strategy in ("NEXT", "LAST")
    rules = Rules(query.window, query.limit or (1 << 62), bool(query.consume), one_an_interval)
    found = _count(satisfied, time, np.concatenate(keys), plus, rules)
    return Count(int(found[0]), int(found[1]))


def _step_bits(query: Sequence, index: int, table: pa.Table | pa.RecordBatch) -> np.ndarray:
    """Which events can be taken by a step."""
    step = query.steps[index]
    bits = _numpy(pc.is_in(table["type"], value_set=pa.array(list(step.types))))
    conditions = [*step.where, *([query.over[1]] if query.over else [])]
    for condition in conditions:
        for atom in re.split(r"\s+and\s+", condition, flags=re.IGNORECASE):
            bits = bits & _atom_bits(atom, table)
    return bits


def _atom_bits(atom: str, table: pa.Table | pa.RecordBatch) -> np.ndarray:
    parts = re.fullmatch(r"(\w+)\s*(=|!=|<=|>=|<|>)\s*(.+)", atom.strip())
    assert parts, atom
    name, operator, constant = parts.groups()
    value = constant.strip("'").replace("''", "'") if constant.startswith("'") else float(constant)
    return _numpy(pc.fill_null(COMPARISONS[operator](table[name], value), False))


def _numpy(bits: Any) -> np.ndarray:
    return np.asarray(bits).astype(bool)


@numba.njit(cache=False)
def _count(  # noqa: C901, PLR0912 - one branch for each case of the definition
    satisfied: np.ndarray, times: np.ndarray, keys: np.ndarray, plus: np.ndarray, rules: Rules
) -> tuple[int, int]:
    steps, events = satisfied.shape
    capacity = 1024
    ways = np.zeros((capacity, steps))
    start_time = np.zeros(capacity, np.int64)
    start_key = np.zeros(capacity, np.int64)
    head = 0
    tail = 0
    matches = 0
    triggers = 0
    last = steps - 1
    for event in range(events):
        wanted = False
        for step in range(steps):
            wanted = wanted or satisfied[step, event]
        if not wanted:
            continue
        now = times[event]
        while head < tail and now - start_time[head % capacity] > rules.window:
            head += 1
        if tail - head == capacity:
            bigger = np.zeros((2 * capacity, steps))
            bigger_time = np.zeros(2 * capacity, np.int64)
            bigger_key = np.zeros(2 * capacity, np.int64)
            for row in range(head, tail):
                bigger[row % (2 * capacity)] = ways[row % capacity]
                bigger_time[row % (2 * capacity)] = start_time[row % capacity]
                bigger_key[row % (2 * capacity)] = start_key[row % capacity]
            ways, start_time, start_key = bigger, bigger_time, bigger_key
            capacity *= 2
        total = 0.0
        for row in range(head, tail):
            slot = row % capacity
            if start_key[slot] != keys[event]:
                continue
            for step in range(last, 0, -1):
                if satisfied[step, event]:
                    taken = ways[slot, step - 1] + (ways[slot, step] if plus[step] else 0.0)
                    if step == last:
                        total += min(taken, 1.0) if rules.one_an_interval else taken
                    ways[slot, step] += taken
            if plus[0] and satisfied[0, event]:
                ways[slot, 0] *= 2.0
        if satisfied[0, event]:
            slot = tail % capacity
            ways[slot] = 0.0
            ways[slot, 0] = 1.0
            start_time[slot] = now
            start_key[slot] = keys[event]
            tail += 1
            if last == 0:
                total += 1.0
        if total > 0:
            matches += int(min(total, float(rules.limit)))
            triggers += 1
            if rules.consume:
                head = tail
    return matches, triggers


def _count_contiguous(satisfied: np.ndarray, times: np.ndarray, window: int, consume: bool) -> tuple[int, int]:
    steps, events = satisfied.shape
    starts = np.arange(events - steps + 1)
    hit = np.all([satisfied[step, step : events - steps + 1 + step] for step in range(steps)], axis=0)
    hit &= times[steps - 1 :] - times[: events - steps + 1] <= window
    found, free = 0, 0
    for start in starts[hit]:
        if start >= free:
            found += 1
            free = start + steps if consume else free
    return found, found
