"""Aggregates of segments: values of some rows that lie one behind the other, as those that a variable holds in all matches do.

An aggregate of a *piece*, which begins where a segment does, is that of the whole segment as it runs, looked up at the piece's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.array_types import F64, I64, Bits
from stretto.columns.arrays import frozen, valid_of
from stretto.columns.keys import KeyTable
from stretto.columns.ordering import ordered_words

_LOW = (1 << 32) - 1


class Segments(NamedTuple):
    """Segment k has the places ``path[bounds[k]:bounds[k + 1]]``, piece i those of ``path[begin[i]:end[i]]``."""

    path: I64
    bounds: I64
    begin: I64
    end: I64

    @classmethod
    def of(cls, holds: Bits, offset: I64, match: I64, until: I64 | None = None) -> Segments:
        """The places that are held.

        Parameters
        ----------
        holds
            Of each place: whether it is held.
        offset
            Segment k is what is held of the places ``offset[k]`` to ``offset[k + 1]``.
        match, until
            Of each piece: its segment, and the place where it ends; ``None``: pieces are whole segments.
        """
        counts = np.zeros(holds.size + 1, np.int64)
        np.cumsum(holds, out=counts[1:])
        bounds = counts[offset]
        return cls(np.flatnonzero(holds), bounds, bounds[match], bounds[match + 1] if until is None else counts[until])

    @property
    def sizes(self) -> I64:
        """How many places each piece has."""
        return self.end - self.begin

    def at(self, running: NDArray[Any], nothing: Any) -> NDArray[Any]:
        """A running aggregate for each piece; ``nothing`` for empty ones."""
        there = self.end > self.begin
        if there.all():
            return running[self.end - 1]
        found = np.full(self.end.size, nothing, running.dtype)
        found[there] = running[self.end[there] - 1]
        return found

    def counts(self, known: Bits) -> I64:
        """How many values each piece has that are known."""
        return self.at(_running_count(frozen(known), self.bounds, np.empty(known.size, np.int64)), 0)

    def least(self, words: I64, known: Bits) -> I64:
        """Where the least known value of each piece is, the first of equal ones; −1: there is none."""
        return self.at(_running_least(frozen(words), frozen(known), self.bounds, np.empty(words.size, np.int64)), -1)

    def extreme(self, values: pa.Array, *, greatest: bool, nan_wins: bool = False) -> pa.Array:
        """The least, or the greatest, known value of each piece. NaN is greater than other numbers, or (``nan_wins``) taken first."""
        if pa.types.is_null(values.type):
            return pa.nulls(self.end.size)
        words = ordered_words(values)
        words = ~words if greatest else words
        if nan_wins and pa.types.is_floating(values.type):
            real = np.asarray(values.to_numpy(zero_copy_only=False), np.float64)
            words = np.where(np.isnan(real), np.iinfo(np.int64).min, words)
        return taken(values, self.least(words, known_of(values)))

    def real_sums(self, values: NDArray[Any], known: Bits) -> F64:
        """The sums of known numbers, from left to right."""
        running = np.empty(values.size, np.float64)
        _running_sum(frozen(values.astype(np.float64)), frozen(known), self.bounds, running)
        return self.at(running, 0.0)

    def whole_sums(self, values: NDArray[Any], known: Bits) -> tuple[I64, I64]:
        """The sums of known integers as ``high · 2^32 + low``, with ``low`` in [0, 2^32): exact for up to 2^31 of them in all."""
        values = np.where(known, values if values.dtype == np.uint64 else values.astype(np.int64), values.dtype.type(0))
        low, high = (
            self._differences(part) for part in (values & values.dtype.type(_LOW), values >> values.dtype.type(32))
        )
        return high + (low >> 32), low & _LOW

    def _differences(self, values: NDArray[Any]) -> I64:
        until = np.zeros(values.size + 1, np.int64)
        np.cumsum(values.astype(np.int64), out=until[1:])
        return until[self.end] - until[self.begin]

    def squares(self, values: F64, known: Bits) -> F64:
        """The sums of the squares of known numbers' distances from their mean."""
        running = np.empty(values.size, np.float64)
        _running_squares(frozen(values), frozen(known), self.bounds, running)
        return self.at(running, 0.0)

    def first_of_equal(self, values: Sequence[pa.Array]) -> Bits:
        """Of each place: whether its values come for the first time in its segment."""
        numbers = np.repeat(np.arange(self.bounds.size - 1), np.diff(self.bounds))
        for one in values:
            ids = KeyTable([one.type]).ids([one]) + 1
            _, numbers = np.unique(numbers * (len(one) + 1) + ids, return_inverse=True)
        _, first = np.unique(numbers, return_index=True)
        kept = np.zeros(self.path.size, np.bool_)
        kept[first] = True
        return kept

    def lists(self, values: pa.Array, kind: pa.DataType, *, null: bool = False) -> pa.Array:
        """The values of each piece as a list; ``null``: empty ones are NULL."""
        sizes = self.sizes
        ends = np.cumsum(sizes)
        at = np.repeat(self.begin - ends + sizes, sizes) + np.arange(int(sizes.sum()))
        offsets = pa.array(np.append(0, ends), pa.int32(), mask=np.append((sizes == 0) & null, False))
        return pa.ListArray.from_arrays(offsets, values.take(pa.array(at)).cast(kind.value_type)).cast(kind)


def known_of(array: pa.Array) -> Bits:
    """Which values are not NULL."""
    valid = valid_of(array)
    return np.ones(len(array), np.bool_) if valid is None else valid


def taken(values: pa.Array, places: I64) -> pa.Array:
    """The values at places; NULL at those below 0."""
    return values.take(pa.array(places, mask=places < 0))


@jit
def _running_count(known: Bits, bounds: I64, out: I64) -> I64:
    """How many are known so far in each piece ``bounds[k]`` to ``bounds[k + 1]``. O(values)."""
    for k in range(bounds.size - 1):
        found = 0
        for i in range(bounds[k], bounds[k + 1]):
            found += known[i]
            out[i] = found
    return out


@jit
def _running_least(words: I64, known: Bits, bounds: I64, out: I64) -> I64:
    """The place of the least known value so far, the first of equal ones; −1: none. O(values)."""
    for k in range(bounds.size - 1):
        found = -1
        for i in range(bounds[k], bounds[k + 1]):
            if known[i] and (found < 0 or words[i] < words[found]):
                found = i
            out[i] = found
    return out


@jit
def _running_sum(values: F64, known: Bits, bounds: I64, out: F64) -> None:
    """Sums so far, from left to right. O(values)."""
    for k in range(bounds.size - 1):
        found = 0.0
        for i in range(bounds[k], bounds[k + 1]):
            if known[i]:
                found += values[i]
            out[i] = found


@jit
def _running_squares(values: F64, known: Bits, bounds: I64, out: F64) -> None:
    """The sums so far of the squares of the values' distances from their mean (Welford). O(values)."""
    for k in range(bounds.size - 1):
        count = 0
        mean = 0.0
        found = 0.0
        for i in range(bounds[k], bounds[k + 1]):
            if known[i]:
                count += 1
                before = values[i] - mean
                mean += before / count
                found += before * (values[i] - mean)
            out[i] = found
