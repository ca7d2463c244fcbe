"""A pattern with KEEP or AFTER MATCH beside others: its matches come when they are decided, by an event or by time alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.budget import Budget
from stretto.engines.api import Matches
from stretto.engines.greedy.program import GreedyRun
from stretto.engines.match_ops.after_match_skip import KeptRun
from stretto.matching.pattern_set.compiled_pattern import CompiledQuery
from stretto.matching.pattern_set.dedicated_run import OtherRun
from stretto.matching.pattern_set.result_table import by_event


class KeepingRun(OtherRun):
    """A run whose matches are decided one for each start; the parameters are those of others.

    What is decided at one event comes in the order of starts: partitions have numbers that depend on how the stream is cut.
    """

    run: GreedyRun | KeptRun  # type: ignore[assignment]

    def __init__(self, part: CompiledQuery, *, labels: bool, capacity: int, budget: Budget) -> None:
        super().__init__(part, labels=labels, capacity=capacity, budget=budget)
        window = part.query.bound.window
        #: The size of a window whose end decides.
        self._size = 0 if window is None or window.attribute != self._time else window.size

    def reach(self, time: int | float) -> Iterator[Matches]:
        """No event before ``time`` will come: give what that decides."""
        return _as_one(super().reach(time))

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: all is decided."""
        return _as_one(super().finish())

    def _known(self, found: Iterator[Matches], first: int, times: NDArray[Any]) -> Iterator[Matches]:
        """The matches with the event of the stream that decides each: the one at hand, or the first behind a time."""
        return by_event((self._at_events(piece, first, times) for piece in self._placed(found)), _by_start)

    def _at_events(self, piece: Matches, first: int, times: NDArray[Any]) -> Matches:
        at, places = piece.known, self._places
        assert at is not None
        timed = at < 0
        due = places.times_at(~at[timed]) + self._size if piece.due is None else piece.due[timed]
        known = np.empty(at.size, np.int64)
        known[~timed] = places[at[~timed]]
        known[timed] = first + np.minimum(np.searchsorted(times, due, "right"), times.size - 1)
        return piece._replace(known=known)

    @property
    def _oldest(self) -> int:
        """The first event that a match may hold, or whose window may still decide."""
        oldest: int = self._places.open_from(self._size, super()._oldest)
        return oldest

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come; what holds others back does, though no match of it is possible."""
        run = self.run
        return run.idle and not (isinstance(run, KeptRun) and run.keeper.queues.first.any())


def _as_one(found: Iterator[Matches]) -> Iterator[Matches]:
    """Matches that are decided at once, in the order of starts."""
    return by_event((piece._replace(known=np.zeros(piece.end.size, np.int64)) for piece in found), _by_start)


def _by_start(pieces: Sequence[Matches]) -> Matches:
    known = np.concatenate([piece.known for piece in pieces if piece.known is not None])
    whole = Matches.joined(pieces)._replace(known=known)
    return whole.taken(np.lexsort((whole.start, known)))
