"""Alerts that come again too soon."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
Bits = NDArray[np.bool_]


def first_of_each_span(key: I64, time: NDArray[Any], every: int | float | None) -> Bits:
    """Which rows stay when, for each key, a row that stays leaves out those that come less than ``every`` after it.

    Parameters
    ----------
    key, time
        Of each row, in any order; rows of one time stay in their order.
    every
        In the unit of ``time``; ``None``: without end.

    >>> first_of_each_span(np.array([1, 1, 2, 1, 1]), np.array([0, 4, 5, 10, 12]), 10).tolist()
    [True, False, True, True, False]
    """
    order = np.lexsort((time, key))
    values = np.unique(time)
    keys = np.unique(key[order], return_inverse=True)[1]
    # A row as one number: its key, then the rank of its time. No row has a rank beyond the last one.
    width = values.size + 1
    rows = keys * width + np.searchsorted(values, time[order])
    late = values.size if every is None else np.searchsorted(values, time[order] + every)
    after = np.searchsorted(rows, keys * width + late)
    ends = np.searchsorted(keys, np.arange(keys[-1] + 1 if keys.size else 0), side="right")
    kept = np.zeros(key.size, np.bool_)
    at = np.concatenate(([0], ends[:-1])).astype(np.int64) if ends.size else np.zeros(0, np.int64)
    while at.size:  # one row of each key that has one left
        kept[order[at]] = True
        after_at = after[at]
        going = after_at < ends
        at, ends = after_at[going], ends[going]
    return kept
