"""Changes as rows of int64: weighted intervals of a payload, and the kernels that compare and combine them.

A row says that a payload occurs *weight* times more often than before, at every time in ``[VS, VE)`` and from *level* on. An
insertion is one row of weight 1, a retraction one of weight −1 for the time that is taken away; a stream is the sum of its rows
(its canonical history, section 3.1). Sums commute, so that neither order nor batches matter.

The payload follows the four words: integers as they are, floats as their bits, strings as their numbers in a dictionary.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.errors import LimitError
from stretto.memory import SMALL, available

Rows = NDArray[np.int64]

VS = 0  #: first time
VE = 1  #: first time behind; FOREVER: it has none
WEIGHT = 2
LEVEL = 3  #: how many times it went around its loop; 0 outside loops
PAYLOAD = 4  #: first column of the payload

_MOST = 1 << 31  #: weights stay below

NEVER = -(1 << 63)  #: before all times
EVER = NEVER + 1  #: the first time, when constants begin


def empty(width: int) -> Rows:
    """No rows of so many words."""
    return np.zeros((0, width), np.int64)


def columns(rows: Rows, chosen: NDArray[np.int64]) -> Rows:
    """Rows with some of their words, in C order."""
    return np.ascontiguousarray(rows[:, chosen])


def moved(rows: Rows, *, level: int | None = None, sign: int = 1) -> Rows:
    """A copy with another level for all, or negated weights."""
    made = rows.copy()
    if level is not None:
        made[:, LEVEL] = level
    if sign != 1:
        made[:, WEIGHT] *= sign
    return made


@inlined
def hashed(rows: Rows, row: int, keys: Rows) -> int:
    """32 bits of the words ``keys`` of a row; products stay below 2^63."""
    x = 0
    for at in range(keys.size):
        word = rows[row, keys[at]]
        x = ((x ^ (word & 0xFFFFFFFF)) * 1540483477) & 0xFFFFFFFF
        x ^= x >> 15
        x = ((x ^ ((word >> 32) & 0xFFFFFFFF)) * 1103515245) & 0xFFFFFFFF
        x ^= x >> 13
    return int(x)


@inlined
def same(left: Rows, i: int, left_keys: Rows, right: Rows, j: int, right_keys: Rows) -> bool:
    """Whether two rows agree on their keys."""
    for at in range(left_keys.size):  # noqa: SIM110 - no generators in kernels
        if left[i, left_keys[at]] != right[j, right_keys[at]]:
            return False
    return True


@inlined
def copy_row(source: Rows, row: int, target: Rows, to: int) -> None:
    """``target[to] = source[row]``."""
    for at in range(source.shape[1]):
        target[to, at] = source[row, at]


@jit
def consolidate(rows: Rows, count: int, identity: Rows, table: Rows, since: int) -> int:
    """Combine rows that agree on the words ``identity``, in place, and drop what has weight 0.

    What begins before ``since`` begins there, and what ends by then is dropped: for rows that only meet changes after it. The order
    is that of the first row of each. ``table`` (int64, a power of 2, more than twice ``count``, zeros) is left dirty.

    Cost: one probe a row. Returns how many are left.
    """
    mask = table.size - 1
    kept = 0
    for row in range(count):
        if rows[row, VE] <= since:
            continue
        rows[row, VS] = max(rows[row, VS], since)
        at = hashed(rows, row, identity) & mask
        while table[at] != 0 and not same(rows, row, identity, rows, table[at] - 1, identity):
            at = (at + 1) & mask
        if table[at] != 0:
            rows[table[at] - 1, WEIGHT] += rows[row, WEIGHT]
            continue
        if kept != row:
            copy_row(rows, row, rows, kept)
        kept += 1
        table[at] = kept
    left = 0
    for row in range(kept):
        if rows[row, WEIGHT] != 0:
            if left != row:
                copy_row(rows, row, rows, left)
            left += 1
    return left


def combined(rows: Rows, since: int = NEVER) -> Rows:
    """Rows as few as they can be said with: equal ones are one, and those that cancel out are gone. It changes ``rows``.

    >>> once = np.array([[0, 9, 1, 0, 7]])
    >>> combined(np.concatenate([once, once, moved(once, sign=-1)])).tolist()
    [[0, 9, 1, 0, 7]]
    """
    if len(rows) < 2 and since == NEVER:
        there: Rows = rows[rows[:, WEIGHT] != 0]
        return there
    identity = np.array([at for at in range(rows.shape[1]) if at != WEIGHT], np.int64)
    table = np.zeros(1 << max(2, (2 * len(rows)).bit_length()), np.int64)
    return counted(rows[: consolidate(rows, len(rows), identity, table, since)])


def each(rows: Rows, times: Rows, words: int) -> Rows:
    """Rows, each so many times one after the other; ``words``: how many one of them takes on its way through the caller.

    Raises
    ------
    LimitError
        They take more than half of the memory there is.
    """
    count = float(times.sum(dtype=np.float64))
    need = count * 8 * words
    # Each step comes here, and the system is asked by reading files.
    if need > SMALL and (there := available()) is not None and need > there / 2:
        raise LimitError(
            f"{len(rows):,} rows occur {count:,.0f} times together, which takes {need / 2**30:,.1f} GiB as events of their own: "
            "distinct() keeps each row once"
        )
    found: Rows = np.repeat(rows, times, axis=0)
    return found


def counted(rows: Rows) -> Rows:
    """Rows as they are, if none occurs so often that sums and products of weights may leave 64 bits.

    Raises
    ------
    LimitError
        A weight is 2^31 or more.
    """
    if len(rows) and max(int(rows[:, WEIGHT].max()), -int(rows[:, WEIGHT].min())) >= _MOST:
        raise LimitError(
            "a row occurs 2^31 times or more: it is derived in that many ways; distinct() keeps each row once"
        )
    return rows
