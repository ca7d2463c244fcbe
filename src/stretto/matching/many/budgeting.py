"""The budget of matches that come from many patterns mixed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from stretto.engines.api import Compiled, Matches
from stretto.engines.shared.counting import Unlisted
from stretto.engines.shared.holding import TooMany
from stretto.errors import DataError, LimitError, StrettoError
from stretto.matching.many.results import Source, chosen
from stretto.matching.metering import GUESS, MEASURED, Meter, Watch, Width, described
from stretto.matching.results import Layout
from stretto.matching.returns import Rows


class Listing(Protocol):
    """A run that lists matches."""

    def unlisted(self) -> Unlisted | None:
        """How many matches of the last event are still to come."""


class _Lister(NamedTuple):
    """An engine as one pattern sees it."""

    program: Compiled
    rest: Unlisted | None

    def unlisted(self) -> Unlisted | None:
        return self.rest


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
        As in :class:`~stretto.matching.results.Layout`.
    """

    def __init__(
        self, meter: Meter, run: Listing, sources: Sequence[Source], rows: Rows, *, output: str, positions: bool
    ) -> None:
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
            if piece.start.size and not self._meter.budget.open:
                self._take(piece)
            yield piece

    def refused(self, place: int, error: StrettoError) -> StrettoError:
        """An error of the run of one pattern, with the pattern's name."""
        whose = f"pattern '{self._sources[place].id}': "
        if isinstance(error, TooMany):
            return LimitError(f"{whose}{described(error.event, self._layout(place), self._rows, None)} {error.what}")
        return (DataError if isinstance(error, DataError) else LimitError)(f"{whose}{error}")

    def _take(self, piece: Matches) -> None:
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
        if rest is None and (self._cells[places] * GUESS <= MEASURED).all() and meter.budget.holds(*known):
            meter.rows += rows
            meter.bytes += size
            return
        for place in places:
            mine = chosen(piece, np.flatnonzero(piece.part == place))
            watch = self._watch(int(place), rest if place == piece.part[-1] else None)
            watch.take(mine)

    def _layout(self, place: int) -> Layout:
        return Layout(self._sources[place].part.query.bound, output=self._output, positions=self._positions)

    def _watch(self, place: int, rest: Unlisted | None) -> Watch:
        source = self._sources[place]
        lister = _Lister(source.part.lister, rest)
        if place not in self._watches:
            whose = f"pattern '{source.id}': "
            self._watches[place] = Watch(self._meter, lister, self._layout(place), self._rows, None, whose)
        watch = self._watches[place]
        watch.lister = lister
        return watch
