"""A pattern that counts and adds up over all of its matches, beside others: it has a run of its own on the engine of totals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.budget import Budget
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches
from stretto.engines.totals.runner import TotalsRunner
from stretto.matching.many.other import I64, OtherRun
from stretto.matching.many.parts import QueryPart
from stretto.query.totals import Extent


class AddingRun(OtherRun):
    """A run whose rows are counts and sums of an event, a window or all that the pattern sees; the parameters are those of others.

    The row of a window waits until time has come to its end. Rows of a table, and of windows that are open, come when the pattern or
    the stream ends.
    """

    run: TotalsRunner

    def __init__(self, part: QueryPart, *, labels: bool, capacity: int, budget: Budget) -> None:
        super().__init__(part, labels=labels, capacity=capacity, budget=budget)
        assert part.totals is not None
        scope = part.totals.scope
        self._extent, self._panes = scope.extent, scope.panes
        self.waits = scope.extent is Extent.WINDOW
        self._always = part.always

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come; where one row is always there, that somebody gives it does."""
        return not self._always and self.run.idle

    def live(self) -> I64:
        """The positions of the events that a row to come may name (sorted): those with which the first matches of events begin."""
        oldest = self.run.oldest
        if self._extent is not Extent.EVENT:
            return np.zeros(0, np.int64)
        return super().live() if oldest is None else self._places.since(oldest)

    def _is_due(self, time: int | float) -> bool:
        """Whether a window is over at a time, which is no part of it."""
        last = self.run.expires if self.waits else None
        return last is not None and time >= last

    def _known(self, found: Iterator[Matches], first: int, times: NDArray[Any]) -> Iterator[Matches]:
        """The rows; of windows with the event of the batch at which each is known, the first that is not before its end."""
        panes = self._panes
        for piece in self._placed(found):
            assert piece.totals is not None
            window = piece.totals.window
            if panes is None or window is None:
                yield piece
            else:
                known = np.searchsorted(times, window * panes.slide + panes.size, "left")
                yield piece._replace(known=first + np.minimum(known, times.size - 1))

    def _placed(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """The rows, those of events with the positions of the whole stream."""
        places = self._places
        try:
            if self._extent is Extent.EVENT:
                for piece in found:
                    yield piece._replace(start=places[piece.start], end=places[piece.end])
            else:
                yield from found
        except IntegerOverflow as error:
            raise error.renumbered(places) from None
