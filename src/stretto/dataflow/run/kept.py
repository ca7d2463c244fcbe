"""I64 of a snapshot of a dataflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.array_types import I64
from stretto.dataflow.run.rows import LEVEL, NEVER, PAYLOAD, VE, VS, WEIGHT
from stretto.frame import Section

_MOST = 1 << 31  #: weights stay below


def checked_time(time: Any) -> int:
    """A time of a snapshot.

    Raises
    ------
    ValueError
        It is none.
    """
    if type(time) is not int or not NEVER <= time < 1 << 63:
        raise ValueError(f"{time!r} is no time")
    return time


def rows_of(section: Section, name: str, width: int) -> I64:
    """I64 of a snapshot, as a copy: what the snapshot has cannot be written to.

    Raises
    ------
    ValueError
        They have another width, or one of them ends before it begins or has a weight or a level that none may have.
    """
    if type(width) is not int or width < PAYLOAD:
        raise ValueError(f"'{name}' has rows of {width!r} words")
    rows = section.numbers(name).reshape(-1, width)
    if ((rows[:, WEIGHT] <= -_MOST) | (rows[:, WEIGHT] >= _MOST) | (rows[:, VS] > rows[:, VE])).any():
        raise ValueError(f"'{name}' has a row that is no interval with a weight")
    if (rows[:, LEVEL] < 0).any():
        raise ValueError(f"'{name}' has a row with a level below 0")
    return np.array(rows)
