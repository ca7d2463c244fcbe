"""Distinct: each row once, wherever its weights come to more than 0 (FFP paper, section 6)."""

from __future__ import annotations

import numpy as np

from stretto.dataflow.operators.reduce import Reduce
from stretto.dataflow.run.rows import PAYLOAD

__all__ = ["Distinct"]


class Distinct(Reduce):
    """Groups of equal rows, without aggregates; the kept weights are the counts of derivations, level by level."""

    def __init__(self, label: str, width: int) -> None:
        none = np.zeros(0, np.int64)
        super().__init__(label, width, width - PAYLOAD, none, none)
