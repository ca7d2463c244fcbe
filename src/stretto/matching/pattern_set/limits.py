"""What the patterns of a set may list in one call, and which of them an error names."""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from stretto.array_types import I64
from stretto.engines.api import Matches
from stretto.errors import DataError, LimitError, QueryError, StrettoError, warn
from stretto.matching.output.memory_budget import Meter
from stretto.matching.pattern_set.aggregate_run import SeveralRun
from stretto.matching.pattern_set.budget import Budgeted, Shares
from stretto.matching.pattern_set.event_history import Kept
from stretto.matching.pattern_set.shared_nfab_run import AlikeRun
from stretto.matching.pattern_set.versions import OwnRun, SharedRun, Timeline, Version, release


class Options(NamedTuple):
    """The options of a set that its runs need (:class:`stretto.PatternSet`)."""

    output: str
    positions: bool
    measures: bool
    by: tuple[str, ...]
    capacity: int
    budget: int | float | str | Meter | None
    disables: bool


class Limits:
    """The budget of the call at hand, through which the matches of all runs go.

    Parameters
    ----------
    options
        Those of the set.
    timeline, history
        Its patterns, and the events that they hold.
    gone
        What runs that are gone have counted.
    """

    def __init__(self, options: Options, timeline: Timeline, history: Kept, gone: Counter[str]) -> None:
        self._options = options
        self._timeline = timeline
        self._history = history
        self._gone = gone
        self._meter = Meter.of_call(options.budget)  # of the call at hand
        self._shares: tuple[Sequence[Version], Shares] | None = None  # of the patterns at hand

    def begin_call(self, *, pieces: bool = False) -> None:
        """A call of the set begins, with a budget of its own."""
        self._meter, self._shares = Meter.of_call(self._options.budget, pieces=pieces), None

    def of_one(
        self, found: Iterator[Matches], run: OwnRun, place: int, versions: Sequence[Version]
    ) -> Iterator[Matches]:
        """Matches of a pattern on its own, within the budget of the call."""
        return self.within(self._named(found, run, place, versions), run, versions)

    def _named(
        self, found: Iterator[Matches], run: OwnRun, place: int, versions: Sequence[Version]
    ) -> Iterator[Matches]:
        """Matches with the place of their pattern; errors of its engine name the pattern."""
        began = clock.perf_counter()
        try:
            for piece in found:
                versions[place].seconds += clock.perf_counter() - began
                yield piece._replace(part=np.full(piece.end.size, place, np.int64))
                began = clock.perf_counter()
            versions[place].seconds += clock.perf_counter() - began
        except (DataError, LimitError) as error:
            told = self._budgeted(run, versions).refused(place, error)
            if not self._options.disables or isinstance(told, DataError):
                raise told from error
            self._switch_off(versions[place], told)
        except QueryError as error:  # what a query asks is not told by its events
            raise named_error(error, f"pattern '{versions[place].id}'") from error

    def blaming(
        self,
        found: Iterator[Matches],
        run: SeveralRun | AlikeRun,
        places: Sequence[int] | I64,
        versions: Sequence[Version],
    ) -> Iterator[Matches]:
        """What patterns give that have one run; errors name the pattern."""
        if isinstance(run, AlikeRun) and self._options.disables:
            run.run.switch_off = lambda slot, error: self._refused(run, int(places[slot]), error, versions)
        try:
            yield from found
        except (DataError, LimitError) as error:
            raise self._budgeted(run, versions).refused(int(places[run.blamed]), error) from error
        if isinstance(run, AlikeRun):
            return
        for place, concerned in zip(places, run.concerned(), strict=True):
            versions[place].concerned += concerned

    def _refused(self, run: AlikeRun, place: int, error: LimitError, versions: Sequence[Version]) -> None:
        """Switch off a pattern whose partial matches take too much memory."""
        self._switch_off(versions[place], self._budgeted(run, versions).refused(place, error))

    def within(
        self, found: Iterator[Matches], run: OwnRun | SharedRun, versions: Sequence[Version]
    ) -> Iterator[Matches]:
        """Matches within the budget of the call."""
        first = next(found, None)
        if first is not None:  # few find something in a batch
            yield from self._budgeted(run, versions).pieces(chain([first], found))

    def _budgeted(self, run: OwnRun | SharedRun, versions: Sequence[Version]) -> Budgeted:
        in_force = self._timeline.in_force
        sources = in_force.sources if versions is in_force.versions else [version.source for version in versions]
        return Budgeted(
            self._meter,
            run,
            sources,
            self._history,
            output=self._options.output,
            positions=self._options.positions,
            shares=self._shares_of(versions) if self._options.disables else None,
            switch_off=lambda place, error: self._switch_off(versions[place], error),
        )

    def _shares_of(self, versions: Sequence[Version]) -> Shares:
        """What each of some patterns has listed in the call at hand."""
        if self._shares is None or self._shares[0] is not versions:
            self._shares = versions, Shares(self._meter.budget, len(versions))
        return self._shares[1]

    def _switch_off(self, version: Version, error: StrettoError) -> bool:
        """The pattern gives no more; whether its run is at an end with that, as it has one of its own."""
        version.off = str(error).splitlines()[0]
        warn(f"{version.off}; the pattern is switched off until another change of its id holds")
        if version.own is not None:
            release([version], self._gone)
            self._timeline.in_force.forget_slots()
            return True
        assert version.joint is not None
        version.joint.silence(version.slot)
        return False


def named_error(error: QueryError, where: str) -> QueryError:
    """An error of a query, with the name of its pattern."""
    return QueryError(f"{where}: {error.message}", text=error.text, span=error.span, hint=error.hint)
