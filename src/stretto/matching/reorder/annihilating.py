"""Which insertion a retraction takes away, for many at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64

#: Times as ticks, or real numbers.
Times = NDArray[Any]


def codes(table: pa.Table) -> I64:
    """Equal numbers for equal rows; NULL equals NULL."""
    found = np.zeros(table.num_rows, np.int64)
    for array in _flat(table):
        codes = array.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        _, found = np.unique(found * (codes.max(initial=0) + 2) + codes + 1, return_inverse=True)
    return found


def _flat(table: pa.Table) -> Iterator[pa.Array]:
    """Columns of plain values."""
    for column in table.combine_chunks().columns:
        array = (
            column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks)
            if column.num_chunks
            else None
        )
        if array is None:
            continue
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        if pa.types.is_struct(array.type):
            yield array.is_null()
            if array.type.num_fields:
                yield from _flat(pa.table(array.flatten(), names=[str(i) for i in range(array.type.num_fields)]))
        elif pa.types.is_nested(array.type):
            yield pa.array([repr(one) for one in array.to_pylist()])
        else:
            yield array


def matched(group: I64, sign: I64) -> I64:
    """Of each retraction, the last insertion of its group that is still there; −1: none.

    In each group insertions are pushed on a stack that retractions pop: both of a pair have the same depth, and pairs follow one
    another there.
    """
    count = group.size
    order = np.argsort(group, kind="stable")
    g, s = group[order], sign[order]
    opens = np.flatnonzero(np.concatenate(([True], g[1:] != g[:-1])))
    number = np.repeat(np.arange(opens.size), np.diff(np.concatenate((opens, [count]))))
    total = np.cumsum(s)
    level = total - np.repeat(np.concatenate(([0], total))[opens], np.diff(np.concatenate((opens, [count]))))
    # The lowest level so far of each group: groups lie below one another, so that one running minimum serves all.
    shift = -3 * (count + 1) * number
    lowest = np.minimum(np.minimum.accumulate(level + shift), shift) - shift
    before = np.concatenate(([0], lowest[:-1]))
    before[opens] = 0
    lost = lowest < before
    depth = level - lowest + (s < 0)
    place = np.lexsort((np.arange(count), depth, g))
    place = place[~lost[place]]
    pops = np.flatnonzero(s[place] < 0)
    match = np.full(count, -1)
    match[order[place[pops]]] = order[place[pops - 1]]
    return match


def first_rows(rows: I64, match: I64, revises: I64) -> I64:
    """The rows of events: a revised one, behind the retraction at ``revises``, has that of what it revises."""
    origin = np.arange(rows.size)
    known = revises[match[revises] >= 0]
    origin[known + 1] = match[known]
    while True:
        further = origin[origin]
        if (further == origin).all():
            return rows[origin]
        origin = further


def is_unclear(group: I64, sign: I64, match: I64, revises: I64) -> bool:
    """Whether a revised event may be one of several equal ones: the latest arrived is meant, not the last one on the stack."""
    revised = np.unique(group[revises[match[revises] >= 0] + 1])
    if not revised.size:
        return False
    inside = np.isin(group, revised)
    order = np.argsort(group[inside], kind="stable")
    g, s = group[inside][order], sign[inside][order]
    total = np.cumsum(s)
    opens = np.concatenate(([True], g[1:] != g[:-1]))
    base = np.maximum.accumulate(np.where(opens, np.arange(g.size), 0))
    return bool((total - total[base] + s[base] > 1).any())


def one_by_one(group: I64, sign: I64, rows: I64, revises: I64) -> tuple[I64, I64]:
    """As :func:`matched` and :func:`first_rows`, where equal events make the order matter."""
    match, rows = np.full(group.size, -1), rows.copy()
    there: dict[int, list[tuple[int, int]]] = {}
    pairs = set(revises.tolist())
    for at, (code, one) in enumerate(zip(group.tolist(), sign.tolist(), strict=True)):
        events = there.setdefault(code, [])
        if one > 0:
            if at - 1 in pairs and match[at - 1] >= 0:
                rows[at] = rows[match[at - 1]]
            events.append((int(rows[at]), at))
        elif events:
            latest = max(events)
            events.remove(latest)
            match[at] = latest[1]
    return match, rows
