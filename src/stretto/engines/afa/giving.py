"""The rows that the kernel writes as matches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.engines.afa import structure as s
from stretto.engines.afa.names import Names
from stretto.engines.api import Matches
from stretto.query.typing import kind_of


def given(rows: I64, offset: I64, position: I64, labels: I64 | None = None) -> Matches:
    """Rows with the events that they hold, and which variables hold these; ``start`` or ``end`` −1: the end of a window."""
    mark = np.zeros(0, np.int32) if labels is None else labels.astype(np.int32)
    return Matches(rows[:, s.FROM], rows[:, s.TO], offset, position, mark, rows[:, s.SIGN].astype(np.int8))


def order_of(rows: I64, register: Mapping[str, pa.DataType], names: Names) -> I64 | None:
    """The order of rows that differ in their registers only: the kernel orders strings by their numbers. ``None``: as they are."""
    kinds = [kind_of(kind) for kind in register.values()]
    if "string" not in kinds or len(rows) < 2:
        return None
    told = [s.STEP, s.SIGN, s.PART, s.FROM, s.TO]
    same = (rows[1:, told] == rows[:-1, told]).all(axis=1)
    if not same.any():
        return None
    group = np.concatenate(([0], np.cumsum(~same)))
    keys: list[NDArray[Any]] = []
    for at, kind in enumerate(kinds):
        words = np.ascontiguousarray(rows[:, s.FIELDS + at])
        if kind == "string":
            distinct, place = np.unique(words, return_inverse=True)
            ranks = np.empty(distinct.size, np.int64)
            ranks[np.asarray(pc.sort_indices(names.strings(distinct)))] = np.arange(distinct.size)
            words = ranks[place]
        keys.append(words.view(np.float64) if kind == "float" else words)
    return np.lexsort([*reversed(keys), group])
