"""WITHIN: which rows are near enough to the first row of a match, by the first column of ORDER BY."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa

from stretto._jit import jit
from stretto.columns.arrays import frozen, numbers_of, valid_of
from stretto.columns.grid import ticks_of
from stretto.engines.rows.columns import Shifted, plain_name
from stretto.engines.rows.structure import I64, Bits
from stretto.query.row_pattern import RowQuery
from stretto.times import FOREVER


def last_within(seen: Shifted, query: RowQuery) -> I64:
    """Of each row: the last row whose time is less than its own plus the window; the row before it where there is none."""
    column = seen.column(plain_name(query.order_by[0].column))
    valid = valid_of(column)
    known = np.ones(seen.rows, np.bool_) if valid is None else valid
    span = span_of(column.type, query)
    out = np.empty(seen.rows, np.int64)
    _last_within(frozen(numbers_of(column).astype(np.int64)), frozen(known), frozen(seen.bounds), span, out)
    return out


def span_of(kind: pa.DataType, query: RowQuery) -> int:
    """The window in ticks of the first column of ORDER BY, or in its units."""
    window = query.within
    assert window is not None
    size = window.number if window.seconds is None else Fraction(window.seconds) * ticks_of(kind)
    assert size is not None
    return min(math.ceil(size), FOREVER)


@jit
def _last_within(times: I64, known: Bits, bounds: I64, span: int, out: I64) -> None:
    """Times do not decrease in a partition, or do not increase, and NULLs are at one end. O(rows)."""
    for k in range(bounds.size - 1):
        last = bounds[k] - 1
        for i in range(bounds[k], bounds[k + 1]):
            last = max(last, i - 1)
            if known[i]:
                while last + 1 < bounds[k + 1] and known[last + 1] and times[last + 1] - times[i] < span:
                    last += 1
                out[i] = last
            else:
                out[i] = i - 1
