"""Join: pairs of rows that agree on their keys, where both lifetimes hold (FFP paper, sections 2 and 5.2: *synopses*).

Each side is kept. A new row meets what the other side holds: its lifetime is cut to the common one, weights multiply, and the
level is the least above both. Where the other side cannot change before its punctuation, what this side holds ended by then is
forgotten.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._jit import DONE, OUTPUT_FULL, jit
from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.run.index import Chains, Index
from stretto.dataflow.run.levels import joined
from stretto.dataflow.run.rows import FOREVER, LEVEL, PAYLOAD, VE, VS, WEIGHT, Rows, counted, empty, hashed, same

__all__ = ["Join"]

CAPACITY = 1 << 15  #: rows of the output buffer


class Join(Operator):
    """The join of two inputs.

    Parameters
    ----------
    label
        What errors call it.
    widths
        Words of the rows of the left and the right.
    keys
        The words that must be equal: of the left, of the right.
    taken
        The words of the right that the result has behind all of the left.
    """

    def __init__(self, label: str, widths: tuple[int, int], keys: tuple[Rows, Rows], taken: Rows) -> None:
        super().__init__(label, 2, widths[0] + len(taken))
        self.sides = tuple(Index(width, own) for width, own in zip(widths, keys, strict=True))
        self.keys = keys
        self.taken = taken
        self._out = empty(self.width)

    def nest(self, bits: int) -> None:
        for side in self.sides:
            side.bits = bits

    def receive(self, port: int, rows: Rows) -> Rows:
        """The pairs of new rows with those that the other side holds."""
        own, other = self.sides[port], self.sides[1 - port]
        found = []
        if len(other):
            row, at = 0, -1
            chains = other.chains
            if not len(self._out):
                self._out = np.zeros((CAPACITY, self.width), np.int64)
            while True:
                status, row, at, count = _probe(rows, row, at, own.keys, chains, port, self.taken, self._out)
                found.append(counted(self._out[:count].copy()))
                if status == DONE:
                    break
        if self.definite[1 - port] < FOREVER:  # else nothing can meet them
            own.append(rows)
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else empty(self.width)

    def forget(self) -> None:
        for port in (0, 1):
            self.sides[port].sweep(self.definite[1 - port])

    @property
    def held(self) -> int:
        return sum(map(len, self.sides))

    @property
    def bytes(self) -> int:
        return sum(side.bytes for side in self.sides)

    def saved(self) -> dict[str, Any]:
        return {"left": self.sides[0].held, "right": self.sides[1].held}

    def load(self, state: dict[str, Any]) -> None:
        self.sides[0].load(state["left"])
        self.sides[1].load(state["right"])


@jit
def _probe(
    rows: Rows,
    row: int,
    at: int,
    own_keys: Rows,
    other: Chains,
    port: int,
    taken: Rows,
    out: Rows,
) -> tuple[int, int, int, int]:
    """Write the pairs of rows from ``row`` on, where the search goes on at ``at`` (−1: from the head of its chain).

    Cost: one hash a row and one comparison for each row of its bucket, then the words of each pair. Returns a status, where to
    go on, and how many pairs were written.
    """
    held = other.rows
    mask = other.heads.size - 1
    count = 0
    while row < len(rows):
        if at < 0:
            at = other.heads[hashed(rows, row, own_keys) & mask]
        while at != 0:
            if (
                rows[row, VS] < held[at, VE]
                and held[at, VS] < rows[row, VE]
                and same(rows, row, own_keys, held, at, other.keys)
            ):
                if count == len(out):
                    return OUTPUT_FULL, row, at, count
                if port == 0:
                    _pair(rows, row, held, at, taken, out, count)
                else:
                    _pair(held, at, rows, row, taken, out, count)
                out[count, LEVEL] = joined(rows[row, LEVEL], held[at, LEVEL], other.bits)
                count += 1
            at = other.following[at]
        row += 1
        at = -1
    return DONE, row, at, count


@jit
def _pair(left: Rows, i: int, right: Rows, j: int, taken: Rows, out: Rows, to: int) -> None:
    """A row of the result, but for its level."""
    out[to, VS] = max(left[i, VS], right[j, VS])
    out[to, VE] = min(left[i, VE], right[j, VE])
    out[to, WEIGHT] = left[i, WEIGHT] * right[j, WEIGHT]
    width = left.shape[1]
    for word in range(PAYLOAD, width):
        out[to, word] = left[i, word]
    for word in range(taken.size):
        out[to, width + word] = right[j, taken[word]]
