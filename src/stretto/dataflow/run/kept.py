"""Rows of a snapshot of a dataflow."""

from __future__ import annotations

import numpy as np

from stretto.dataflow.run.rows import PAYLOAD, VE, VS, WEIGHT, Rows
from stretto.frame import Section

_MOST = 1 << 31  #: weights stay below


def rows_of(section: Section, name: str, width: int) -> Rows:
    """Rows of a snapshot, as a copy: what the snapshot has cannot be written to.

    Raises
    ------
    ValueError
        They have another width, or one of them ends before it begins or has a weight that none may have.
    """
    if type(width) is not int or width < PAYLOAD:
        raise ValueError(f"'{name}' has rows of {width!r} words")
    rows = section.numbers(name).reshape(-1, width)
    if ((rows[:, WEIGHT] <= -_MOST) | (rows[:, WEIGHT] >= _MOST) | (rows[:, VS] > rows[:, VE])).any():
        raise ValueError(f"'{name}' has a row that is no interval with a weight")
    return np.array(rows)
