"""What changes come to: the canonical history of a stream, as insertions with the longest lifetimes (FFP paper, section 3.1).

>>> changes = np.array([[1, 9, 1, 0, 7], [9, 12, 1, 0, 7], [5, 12, -1, 0, 7], [0, 3, 1, 0, 8], [1, 2, 1, 0, 8]])
>>> sorted(settled(changes).tolist())  # words: VS, VE, weight, level, and one of payload
[[0, 3, 1, 0, 8], [1, 2, 1, 0, 8], [1, 5, 1, 0, 7]]
"""

from __future__ import annotations

import numpy as np

from stretto.array_types import I64
from stretto.dataflow.run.rows import EVER, LEVEL, NEVER, PAYLOAD, VE, VS, WEIGHT, each
from stretto.times import FOREVER


def settled(changes: I64) -> I64:
    """I64 of weight 1 that sum up to the same, those of a payload together.

    A payload that occurs more than once at a time has rows inside of each other: the k-th one lives where it occurs k times or more.
    No two rows of a payload can be joined to one.

    Raises
    ------
    ValueError
        At some time a payload occurs less than never.
    """
    hashed = _hashed(changes)
    alone = (changes[:, WEIGHT] == 1) & ~_repeated(hashed)
    if not alone.any():
        return _summed(changes, hashed)
    made = changes[alone]
    made[:, LEVEL] = 0
    return made if alone.all() else np.concatenate([made, _summed(changes[~alone], hashed[~alone])])


def last_end(rows: I64) -> int:
    """When the last of what rows come to ends, but for constants, which are always there; NEVER: there is nothing.

    FOREVER also where that is not known, as more is taken back than there was.
    """
    rows = rows[(rows[:, WEIGHT] != 0) & (rows[:, VS] != EVER)]
    if (rows[:, WEIGHT] < 0).any():
        try:
            rows = settled(rows)
        except ValueError:
            return FOREVER
    return int(rows[:, VE].max()) if len(rows) else NEVER


def _summed(changes: I64, hashed: np.ndarray) -> I64:
    """Do what :func:`settled` says, for payloads that occur more than once or are taken back."""
    count = len(changes)
    payload = changes[:, PAYLOAD:]
    # Each row is two steps, up where it begins and down where it ends.
    times = np.concatenate([changes[:, VS], changes[:, VE]])
    steps = np.concatenate([changes[:, WEIGHT], -changes[:, WEIGHT]])
    order = _by_payload(payload, times, hashed)
    row, times, steps = order % max(count, 1), times[order], steps[order]
    fresh = _differ(payload, row)
    group = np.cumsum(fresh) - 1
    # Steps of one payload at one time are one.
    first = np.flatnonzero(fresh | (np.diff(times, prepend=times[:1]) != 0)) if len(times) else np.zeros(0, np.int64)
    steps = np.add.reduceat(steps, first) if len(first) else steps
    moves = steps != 0
    row, times, group, steps = row[first][moves], times[first][moves], group[first][moves], steps[moves]
    after = np.cumsum(steps)  # every payload ends at 0
    if len(after) and after.min() < 0:
        raise ValueError("more is taken back than there was")
    # Copies begin and end like brackets: those of a depth belong together, in the order of time.
    size = np.abs(steps)
    # Nine words are those of a step and of its order; two steps are a row.
    first = each(np.cumsum(size) - size, size, 9 + changes.shape[1])
    within = np.arange(len(first)) - first
    depth = np.repeat(np.minimum(after, after - steps), size) + within
    row, times, group = (np.repeat(one, size) for one in (row, times, group))
    if len(depth) and depth.max() > 0:
        order = np.lexsort((depth, group))
        row, times = row[order], times[order]
    found = np.zeros((len(row) // 2, changes.shape[1]), np.int64)
    found[:, VS], found[:, VE], found[:, WEIGHT], found[:, LEVEL] = times[::2], times[1::2], 1, 0
    found[:, PAYLOAD:] = payload[row[::2]]
    return found


def _hashed(changes: I64) -> np.ndarray:
    """64 bits of each payload."""
    found = np.zeros(len(changes), np.uint64)
    for at in range(PAYLOAD, changes.shape[1]):
        found = (found ^ np.ascontiguousarray(changes[:, at]).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
    return found


def _repeated(hashed: np.ndarray) -> np.ndarray:
    """Where a value occurs more than once."""
    order = np.argsort(hashed)
    same = np.zeros(len(hashed) + 1, np.bool_)
    same[1:-1] = hashed[order][1:] == hashed[order][:-1]
    found = np.empty(len(hashed), np.bool_)
    found[order] = same[1:] | same[:-1]
    return found


def _by_payload(payload: I64, times: I64, hashed: np.ndarray) -> I64:
    """An order in which steps of one payload come together, by time: by a hash, and if it is no good, by the payload."""
    hashed = np.concatenate([hashed, hashed])
    order: I64 = np.lexsort((times, hashed))
    row = order % max(len(payload), 1)
    if (_differ(payload, row)[1:] & (hashed[order][1:] == hashed[order][:-1])).any():
        order = np.lexsort((times, *np.concatenate([payload, payload]).T))
    return order


def _differ(payload: I64, row: I64) -> np.ndarray:
    """Where another payload begins."""
    fresh = np.ones(len(row), np.bool_)
    if len(row):
        ordered = payload[row]
        fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return fresh
