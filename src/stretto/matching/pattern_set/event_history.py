"""The events that matches of any pattern may still hold, kept once for all patterns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.matching.output.match_table import History


class Kept(History):
    """A history from which few events are wanted at a time: what is dropped costs nothing."""

    def __init__(self) -> None:
        super().__init__(())

    def retain(self, live: I64) -> None:
        kept = []
        for positions, table in self.pieces:
            first, last = np.searchsorted(live, (positions[0], positions[-1] + 1))
            inside = live[first:last]
            if inside.size == positions.size:
                kept.append((positions, table))
            elif inside.size:
                kept.append((inside, table.take(pa.array(np.searchsorted(positions, inside)))))
        self._replace(kept)
