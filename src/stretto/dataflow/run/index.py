"""Rows kept by the hash of their keys: the synopses of joins, the groups of aggregates, the live events of inputs and outputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto._jit import jit
from stretto.dataflow.run.levels import BITS
from stretto.dataflow.run.rows import VE, Rows, combined, hashed

_LEAST = 16


class Chains(NamedTuple):
    """The arrays of an :class:`Index`, as kernels take them."""

    rows: Rows  #: (capacity, words); row 0 stands for "none"
    following: Rows  #: (capacity) the next row with the same bucket; 0: none
    heads: Rows  #: (buckets, a power of 2) the newest row of each; 0: none
    keys: Rows  #: the words that are hashed
    bits: int  #: of each field of a level: see levels.py


class Index:
    """Rows in the order in which they came, chained by the hash of their keys, newest first.

    Attributes
    ----------
    rows
        int64 (capacity, words); row 0 stands for "none".
    following
        int64 (capacity): the next row with the same bucket; 0: none.
    heads
        int64 (buckets, a power of 2): the newest row of each; 0: none.
    keys
        int64: the words that are hashed.
    end
        One behind the last row.
    bits
        Of each field of the rows' levels.
    """

    def __init__(self, width: int, keys: Rows, capacity: int = _LEAST) -> None:
        self.keys = keys
        self.bits = BITS
        self.rows = np.zeros((capacity, width), np.int64)
        self.following = np.zeros(capacity, np.int64)
        self.heads = np.zeros(2 * _LEAST, np.int64)
        self.end = 1
        self.swept = 0  #: rows that were left when it was swept last
        self.moves = 0  #: how often rows have changed their places

    def __len__(self) -> int:
        return self.end - 1

    @property
    def chains(self) -> Chains:
        """The arrays; good until the next call that adds or drops rows."""
        return Chains(self.rows, self.following, self.heads, self.keys, self.bits)

    @property
    def held(self) -> Rows:
        """The rows, oldest first."""
        return self.rows[1 : self.end]

    def reserve(self, more: int) -> None:
        """Have room for more rows, in the arrays and in the hash table."""
        end = self.end + more
        if end > len(self.rows):
            capacity = max(end, 2 * len(self.rows))
            self.rows = _grown(self.rows, capacity)
            self.following = _grown(self.following, capacity)
        if end > self.heads.size:
            self.heads = np.zeros(1 << (2 * end).bit_length(), np.int64)
            _chain(self.rows, 1, self.end, self.keys, self.heads, self.following)

    def append(self, rows: Rows) -> int:
        """Keep rows; gives where they begin."""
        self.reserve(len(rows))
        begin, self.end = self.end, self.end + len(rows)
        self.rows[begin : self.end] = rows
        _chain(self.rows, begin, self.end, self.keys, self.heads, self.following)
        return begin

    def sweep(self, since: int) -> None:
        """Forget what no change from ``since`` on can meet, where that pays: at most two looks at a row for each that came.

        What has ended is dropped; if that is little, rows are combined, which takes back what was retracted.
        """
        if len(self) < 2 * self.swept + 64:
            return
        held = self.held
        left = held[held[:, VE] > since]
        if 2 * len(left) > len(held):
            left = combined(left, since)
        self.replace(left)
        self.swept = len(self)

    def load(self, rows: Rows) -> None:
        """Hold these rows, and no others."""
        self.end = 1
        self.moves += 1
        self.append(rows.reshape(-1, self.rows.shape[1]))
        self.swept = 0

    def replace(self, rows: Rows) -> None:
        """Hold fewer rows instead."""
        self.moves += 1
        self.rows[1 : 1 + len(rows)] = rows
        self.end = 1 + len(rows)
        if len(self.rows) > 4 * self.end + _LEAST:
            self.rows = self.rows[: 2 * self.end].copy()
            self.following = self.following[: 2 * self.end].copy()
        self.heads = np.zeros(max(2 * _LEAST, 1 << (2 * self.end).bit_length()), np.int64)
        _chain(self.rows, 1, self.end, self.keys, self.heads, self.following)

    @property
    def bytes(self) -> int:
        """What the arrays take."""
        return self.rows.nbytes + self.following.nbytes + self.heads.nbytes


def _grown(array: Rows, capacity: int) -> Rows:
    made = np.zeros((capacity, *array.shape[1:]), np.int64)
    made[: len(array)] = array
    return made


@jit
def _chain(rows: Rows, begin: int, end: int, keys: Rows, heads: Rows, following: Rows) -> None:
    """Put rows [begin, end) in front of their chains. One hash a row."""
    mask = heads.size - 1
    for row in range(begin, end):
        at = hashed(rows, row, keys) & mask
        following[row] = heads[at]
        heads[at] = row
