"""Rows that insert events, and rows that take them back, as a micro-batch has them: in any order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import DataError
from stretto.matching.reorder.annihilating import codes


def netted(events: pa.Table, sign: str) -> pa.Table:
    """The rows that do not cancel out; equal rows that stay are alike in all columns, and the first ones of them.

    An event that is inserted and taken back in one micro-batch never was, whatever order its rows come in. What is left is an
    insertion, or the retraction of an event from before, and then its place comes first what is taken back.

    Raises
    ------
    DataError
        A sign is neither 1 nor −1.

    Examples
    --------
    >>> netted(pa.table({"t": [1, 2, 1, 3], "op": [1, 1, -1, -1]}), "op").to_pylist()
    [{'t': 2, 'op': 1}, {'t': 3, 'op': -1}]
    """
    signs = events.column(sign)
    if not pa.types.is_integer(signs.type) or not pc.all(pc.equal(pc.abs(pc.fill_null(signs, 0)), 1)).as_py():
        raise DataError(
            f"column '{sign}' (sign) says 1 of an event that comes, and -1 of one that is taken back, and nothing else"
        )
    signs = np.asarray(signs.cast(pa.int8()))
    events = events.set_column(events.column_names.index(sign), sign, pa.array(signs))
    if (signs > 0).all():
        return events
    numbers = codes(events.drop_columns([sign]))
    first = np.unique(numbers, return_index=True)[1]
    total = np.bincount(numbers, signs).astype(np.int64)
    order = np.argsort(first)
    total, first = total[order], first[order]
    kept = events.take(pa.array(np.repeat(first, np.abs(total))))
    left = np.repeat(np.sign(total), np.abs(total)).astype(np.int8)
    return kept.set_column(kept.column_names.index(sign), sign, pa.array(left))
