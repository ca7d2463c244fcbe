"""What the patterns of a set may list in one call, and which of them an error names.

The budget of matches that come from many patterns mixed.
"""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.engines.api import Compiled, Matches, Unlisted
from stretto.engines.limits import TooMany
from stretto.engines.rows.program import RowProgram
from stretto.errors import DataError, LimitError, QueryError, StrettoError, warn
from stretto.matching.output.memory_budget import GUESS, MEASURED, Columns, Meter, Watch, Width, described
from stretto.matching.output.return_clause import Rows
from stretto.matching.pattern_set.aggregate_run import SeveralRun
from stretto.matching.pattern_set.event_history import Kept
from stretto.matching.pattern_set.result_table import Source
from stretto.matching.pattern_set.shared_nfab_run import AlikeRun
from stretto.matching.pattern_set.versions import OwnRun, SharedRun, Timeline, Version, release


class Listing(Protocol):
    """A run that lists matches."""

    def unlisted(self) -> Unlisted | None:
        """How many matches of the last event are still to come."""


class _Lister(NamedTuple):
    """An engine as one pattern sees it."""

    program: Compiled | RowProgram
    rest: Unlisted | None

    def unlisted(self) -> Unlisted | None:
        return self.rest


#: Where patterns that list too much are switched off, that is more than such a part of the budget in one call.
SHARE = 4


class Shares:
    """What each pattern has listed in one call.

    Parameters
    ----------
    budget
        What all may list.
    patterns
        How many there are.
    """

    def __init__(self, budget: Budget, patterns: int) -> None:
        self.budget = budget.part(SHARE)
        self.rows = np.zeros(patterns, np.int64)
        self.bytes = np.zeros(patterns)

    def add(self, places: NDArray[np.int64], rows: NDArray[np.int64], size: NDArray[np.float64]) -> None:
        """Some patterns, each named once, have listed more."""
        self.rows[places] += rows
        self.bytes[places] += size

    def meter(self, place: int) -> Meter:
        """The meter of one pattern, which goes on where it stands."""
        found = Meter(self.budget)
        found.rows, found.bytes = int(self.rows[place]), float(self.bytes[place])
        return found

    def note(self, place: int, meter: Meter) -> None:
        """How far the meter of a pattern has come."""
        self.rows[place], self.bytes[place] = meter.rows, meter.bytes


class Budgeted:
    """The pieces of one run, as long as they are within the budget.

    What a piece takes is guessed for all patterns at once; pattern by pattern it is asked only where the guess goes over the budget,
    where a pattern's events are many enough to be measured, or where the matches of an event do not fit into one piece.

    Parameters
    ----------
    meter
        What is counted.
    run
        Where the pieces come from.
    sources
        The patterns, by the numbers that pieces have for them.
    rows
        Where events are looked up.
    output, positions
        As in :class:`~stretto.matching.output.match_table.Layout`.
    shares
        What each pattern has listed; ``None``: all patterns share one budget.
    switch_off
        With ``shares``: told the place of a pattern that goes over its share, and how; gives whether the run is at an end with that.
    """

    def __init__(
        self,
        meter: Meter,
        run: Listing,
        sources: Sequence[Source],
        rows: Rows,
        *,
        output: str,
        positions: bool,
        shares: Shares | None = None,
        switch_off: Callable[[int, StrettoError], bool] | None = None,
    ) -> None:
        self._shares, self._switch_off = shares, switch_off
        self._ended = False
        self._meter, self._run, self._sources, self._rows = meter, run, sources, rows
        self._output, self._positions = output, positions
        self._cells = np.zeros(len(sources), np.int64)
        self._rates = np.full((len(sources), 2), np.nan)
        self._watches: dict[int, Watch] = {}

    def pieces(self, found: Iterable[Matches]) -> Iterator[Matches]:
        """The same pieces.

        Raises
        ------
        LimitError
            They are more; the message names the pattern.
        """
        for piece in found:
            if piece.start.size and piece.totals is None and not self._meter.budget.open:
                kept = self._take(piece)
                yield piece if kept is None else piece.taken(kept)
                if self._ended:
                    return
            else:
                yield piece

    def refused(self, place: int, error: StrettoError) -> StrettoError:
        """An error of the run of one pattern, with the pattern's name."""
        whose = f"pattern '{self._sources[place].id}': "
        if isinstance(error, TooMany):
            return LimitError(f"{whose}{described(error.event, self._layout(place), self._rows, None)} {error.what}")
        return (DataError if isinstance(error, DataError) else LimitError)(f"{whose}{error}")

    def _take(self, piece: Matches) -> NDArray[np.int64] | None:
        """Count the matches of a piece; where patterns are switched off, the rows that are left, ``None``: all."""
        assert piece.part is not None
        count = np.bincount(piece.part)
        places = np.flatnonzero(count)
        cells = np.bincount(piece.part, np.diff(piece.offset))[places]
        self._cells[places] += cells.astype(np.int64)
        for place in places[np.isnan(self._rates[places, 0])]:
            self._rates[place] = Width(self._layout(place), self._rows).rates
        meter, rates = self._meter, self._rates[places]
        rows, size = piece.start.size, float(np.dot(count[places], rates[:, 0]) + np.dot(cells, rates[:, 1]))
        rest = self._run.unlisted()
        known = (rows, size) if meter.each else (meter.rows + rows, meter.bytes + size)
        budget = meter.budget if self._shares is None else self._shares.budget
        if rest is None and (self._cells[places] * GUESS <= MEASURED).all() and budget.holds(*known):
            meter.rows += rows
            meter.bytes += size
            if self._shares is not None:
                self._shares.add(places, count[places], count[places] * rates[:, 0] + cells * rates[:, 1])
            return None
        kept = np.ones(rows, np.bool_)
        for place in map(int, places):
            mine = piece.part == place
            watch = self._watch(place, rest if place == piece.part[-1] else None)
            if self._shares is None:
                watch.take(piece.taken(np.flatnonzero(mine)))
            elif not self._within_share(place, watch, piece.taken(np.flatnonzero(mine))):
                kept &= ~mine
        return None if kept.all() else np.flatnonzero(kept)

    def _within_share(self, place: int, watch: Watch, piece: Matches) -> bool:
        """Count what one pattern lists; whether it may go on."""
        assert self._shares is not None
        assert self._switch_off is not None
        meter = self._shares.meter(place)
        try:
            watch.take(piece, meter)
        except LimitError as error:
            self._ended = self._switch_off(place, error)
            return False
        rows, size = meter.rows - int(self._shares.rows[place]), meter.bytes - float(self._shares.bytes[place])
        self._shares.note(place, meter)
        self._meter.rows += rows
        self._meter.bytes += size
        if not self._meter.budget.holds(self._meter.rows, self._meter.bytes):
            raise LimitError(
                f"the matches of all patterns together go over the budget of {self._meter.budget}, and none goes over its share, "
                f"which is 1/{SHARE} of it\nhint: iter_push() gives them in pieces; budget= allows more"
            )
        return True

    def _layout(self, place: int) -> Columns:
        return self._sources[place].part.columns(output=self._output, positions=self._positions)

    def _watch(self, place: int, rest: Unlisted | None) -> Watch:
        source = self._sources[place]
        lister = _Lister(source.part.lister, rest)
        if place not in self._watches:
            whose = f"pattern '{source.id}': "
            self._watches[place] = Watch(self._meter, lister, self._layout(place), self._rows, None, whose)
        watch = self._watches[place]
        watch.lister = lister
        return watch


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
