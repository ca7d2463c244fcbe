"""Alter-lifetime: windows over the events of an input (FFP paper, sections 4 and 5).

It needs the start of each event, which changes that operators make do not have; so it stands where events come in, and the plan
moves it there past selections and projections, which do not look at time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.run.events import NEW
from stretto.dataflow.run.rows import FOREVER, LEVEL, NEVER, VE, VS, WEIGHT, Rows, combined

__all__ = ["Alter", "changes"]

#: Duration (None: without end) and hop (None: none).
Window = tuple[int | None, int | None]


def changes(events: Rows, windows: Sequence[Window]) -> Rows:
    """Events (:data:`~stretto.dataflow.run.events.NEW`) as changes, with their lifetimes altered by each window in turn.

    A retraction takes the altered lifetime away and gives the one that the event has now.
    """
    retracts = events[:, NEW] != NEVER
    if not windows:
        made = events.copy()
        made[:, VS] = np.where(retracts, events[:, NEW], events[:, VS])
        made[:, WEIGHT] = np.where(retracts, -1, 1)
        made[:, LEVEL] = 0
        return made[made[:, VS] < made[:, VE]]
    before = events.copy()
    before[:, WEIGHT] = np.where(retracts, -1, 1)
    after = events[retracts]
    after[:, VE] = after[:, NEW]
    after[:, WEIGHT] = 1
    made = np.concatenate([before, after])
    made[:, LEVEL] = 0
    made = _altered(made, windows)
    # A retraction that changes nothing of a window is nothing: it may name a start that is past its punctuation.
    if retracts.any():
        return combined(made)
    return made


def _altered(made: Rows, windows: Sequence[Window]) -> Rows:
    """Whole lifetimes, altered."""
    for duration, every in windows:
        made = made[made[:, VS] < made[:, VE]]
        starts = made[:, VS]
        if duration is None:
            made[:, VE] = FOREVER
        else:
            made[:, VE] = np.where(starts > FOREVER - duration, FOREVER, starts + np.int64(duration))
        if every is not None:
            for word in (VS, VE):
                up = made[:, word]
                made[:, word] = np.where(up == FOREVER, FOREVER, -(-up // every) * every)
    return made[made[:, VS] < made[:, VE]]


class Alter(Operator):
    """Windows over matches: a matcher gives and takes back whole lifetimes, so that each change is altered by itself."""

    def __init__(self, label: str, width: int, windows: Sequence[Window]) -> None:
        super().__init__(label, 1, width)
        self.windows = tuple(windows)

    def receive(self, port: int, rows: Rows) -> Rows:
        return _altered(rows.copy(), self.windows)
