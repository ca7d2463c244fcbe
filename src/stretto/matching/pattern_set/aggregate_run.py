"""Patterns that count and add up over all of their matches, beside others: they have runs on the engine of totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches
from stretto.engines.totals.runner import TotalsRunner
from stretto.engines.totals.several import SeveralRunner
from stretto.frame import Section
from stretto.matching.pattern_set.compiled_pattern import CompiledQuery
from stretto.matching.pattern_set.dedicated_run import OtherRun
from stretto.matching.pattern_set.event_routing import RoutedEvents
from stretto.matching.pattern_set.result_table import by_event, joined
from stretto.matching.pattern_set.shared_aggregate_run import CompiledAggregates, several
from stretto.matching.pattern_set.shared_predicates import SharedKeys
from stretto.query.totals import Extent


class AddingRun(OtherRun):
    """A run whose rows are counts and sums of an event, a window or all that the pattern sees; the parameters are those of others.

    The row of a window waits until time has come to its end. Rows of a table, and of windows that are open, come when the pattern or
    the stream ends.
    """

    run: TotalsRunner

    def __init__(
        self, part: CompiledQuery | CompiledAggregates, *, labels: bool, capacity: int, budget: Budget
    ) -> None:
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


class SeveralRun(AddingRun):
    """The run of several patterns; ``part`` of what it gives says which of them each row is of, by place.

    Parameters
    ----------
    part
        The patterns.
    ids
        What the set calls them.
    capacity, budget
        As those of other runs.
    """

    run: SeveralRunner

    def __init__(self, part: CompiledAggregates, ids: Sequence[str], *, capacity: int, budget: Budget) -> None:
        super().__init__(part, labels=False, capacity=capacity, budget=budget)
        self.part, self.ids = part, ids

    def follow(
        self,
        batch: pa.RecordBatch,
        first: int,
        handed: RoutedEvents,
        measures: Mapping[str, NDArray[Any]],
        shared: SharedKeys | None,
    ) -> Iterator[Matches]:
        """Read the next events; yields their rows. Must be read to its end before the next call."""
        self.run.told = handed.cls
        return super().follow(batch, first, handed, measures, shared)

    @property
    def blamed(self) -> int:
        """The pattern of an error."""
        return self.run.telling.blamed

    def concerned(self) -> list[int]:
        """By pattern: how many events concerned it since this was asked last."""
        found: list[int] = self.run.concerned.tolist()
        self.run.concerned[:] = 0
        return found

    def forms(self, found: Iterator[Matches]) -> Iterator[Iterator[Matches]]:
        """What it gives, as several streams in the order of events and patterns: one for each form of items."""
        whose = np.zeros(len(self.part.parts), np.int64)
        for number, form in enumerate(self.part.machine.asked.forms):
            whose[form.patterns] = number
        waiting: list[list[Matches]] = [[] for _ in self.part.machine.asked.forms]

        def of(number: int) -> Iterator[Matches]:
            while True:
                while waiting[number]:
                    yield waiting[number].pop(0)
                piece = next(found, None)
                if piece is None:
                    return
                assert piece.part is not None
                waiting[whose[piece.part[0]]].append(piece)

        return (by_event(of(number), _sorted) for number in range(len(waiting)))

    def narrowed(self, ids: Sequence[str], *, capacity: int, budget: Budget) -> SeveralRun:
        """A run of some of the patterns, in the same order, that stands where this one does."""
        section = Section()
        self.save(section)
        parts = [part for part, one in zip(self.part.parts, self.ids, strict=True) if one in ids]
        fresh = SeveralRun(several(parts), ids, capacity=capacity, budget=budget)
        self.run.narrow(section.sub("run"), fresh.part.machine)
        fresh.load(section)
        return fresh


def _sorted(pieces: Sequence[Matches]) -> Matches:
    """Rows of one form as one piece, in the order of events and patterns."""
    whole = pieces[0] if len(pieces) == 1 else joined(pieces)
    assert whole.known is not None
    assert whole.part is not None
    order = np.lexsort((whole.part, whole.known))
    return whole if (np.diff(order) == 1).all() else whole.taken(order)
