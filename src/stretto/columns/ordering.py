"""Values as integers in the same order, and rows sorted by several columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.columns.arrays import frozen, numbers_of, valid_of

I64 = NDArray[np.int64]

_MOST = np.int64((1 << 63) - 1)


class SortKey(NamedTuple):
    """A column that rows are sorted by."""

    column: pa.Array
    descending: bool
    nulls_first: bool


def ordered_words(array: pa.Array) -> I64:
    """Integers in the order of an array's values, equal where these are; anything under NULL.

    A NaN is greater than any other number, and −0.0 equals 0.0. Strings are ordered by their bytes.

    >>> ordered_words(pa.array([2.5, float("nan"), -1.0])).argsort().tolist()
    [2, 0, 1]
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if pa.types.is_string_view(kind):
        array = array.cast(pa.large_string())
    if pa.types.is_floating(kind):
        real = numbers_of(array).astype(np.float64) + 0.0
        bits = real.view(np.int64)
        return np.where(np.isnan(real), _MOST, bits ^ ((bits >> 63) & _MOST))
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
        data = numbers_of(array)
        return data.view(np.int64) ^ ~_MOST if data.dtype == np.uint64 else data.astype(np.int64, copy=False)
    ranks = pc.rank(array, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks.to_numpy(zero_copy_only=False)).astype(np.int64)


def sorted_rows(groups: I64, count: int, keys: Sequence[SortKey]) -> tuple[I64 | None, I64]:
    """Sort rows by group and within each by keys, rows that are equal there in their order.

    Parameters
    ----------
    groups
        The number of each row's group, below ``count``.
    count, keys
        How many groups there are; the keys, the first one first.

    Returns
    -------
    tuple
        The rows in order, ``None`` where they are already; and int64, ``count + 1`` long: where each group begins.

    >>> key = SortKey(pa.array([3, None, 1, 2]), descending=False, nulls_first=False)
    >>> [one.tolist() for one in sorted_rows(np.array([0, 1, 0, 1]), 2, [key])]
    [[2, 0, 3, 1], [0, 2, 4]]
    """
    bounds = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=count), out=bounds[1:])
    grouped = bool((groups[1:] >= groups[:-1]).all())
    words = key_words(keys)
    if grouped and _in_order(groups, words):
        return None, bounds
    rows = None if _in_order(np.zeros(0, np.int64), words) else np.lexsort(words[::-1]).astype(np.int64)
    if count <= 1:
        return rows, bounds
    order = np.arange(groups.size) if rows is None else rows
    out = np.empty(groups.size, np.int64)
    _dealt(frozen(order), frozen(groups), bounds[:-1].copy(), out)
    return out, bounds


def key_words(keys: Sequence[SortKey]) -> list[NDArray[Any]]:
    """The keys as columns of integers to be sorted upwards."""
    found: list[NDArray[Any]] = []
    for key in keys:
        words = ordered_words(key.column)
        valid = valid_of(key.column)
        if key.descending:
            words = ~words
        if valid is not None:
            found.append(valid if key.nulls_first else ~valid)
            words = np.where(valid, words, 0)
        found.append(words)
    return found


def _in_order(groups: I64, words: Sequence[NDArray[Any]]) -> bool:
    """Whether rows are in order already; within groups, where there are any."""
    size = words[0].size if words else 0
    equal = groups[1:] == groups[:-1] if groups.size else np.ones(max(0, size - 1), np.bool_)
    for one in words:
        if (equal & (one[1:] < one[:-1])).any():
            return False
        equal = equal & (one[1:] == one[:-1])
    return True


@jit
def _dealt(order: I64, groups: I64, place: I64, out: I64) -> None:
    """Rows by group, each group's in the given order: ``place[g]`` is where the next row of group g goes. O(rows)."""
    for i in range(order.size):
        row = order[i]
        out[place[groups[row]]] = row
        place[groups[row]] += 1
