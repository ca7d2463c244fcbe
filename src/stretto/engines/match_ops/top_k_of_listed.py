"""The best matches, or a sample, of those that a run lists: each is looked at, and forgotten where others are before it.

A run lists where it decides match by match, and where groups are attributes of events, of which a node of its structure may lead to
several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.budget import Budget
from stretto.engines.api import Matches, Reached
from stretto.engines.match_ops import top_k_arrays as k
from stretto.engines.match_ops.top_k_arrays import I64, Bits, Values
from stretto.engines.match_ops.top_k_choice import Choice
from stretto.engines.match_ops.top_k_held import Rows, some
from stretto.engines.match_ops.top_k_kernel import leaves
from stretto.engines.totals.plan import BITS
from stretto.engines.totals.values import Part
from stretto.errors import LimitError
from stretto.frame import Section
from stretto.query.passes.bind_totals import BoundBest, BoundSample

_WEYL, _ONE, _TWO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class ListedChoice(Choice):
    """A choice among matches that are listed; the parameters are those of :class:`~stretto.engines.match_ops.top_k_choice.Choice`."""

    inside = ""

    def __init__(
        self, asked: BoundBest | BoundSample, marks: Sequence[frozenset[str]], *, capacity: int, budget: Budget
    ) -> None:
        super().__init__(asked, marks, capacity=capacity, budget=budget)
        self.remembers = True
        own = [one for one in asked.scope.groups if one.variable is not None]
        names = list(dict.fromkeys(str(one.variable) for one in own))
        self._bits = BITS // (len(names) + 1)
        self._parts = [Part([one for one in own if one.variable == name], self._bits) for name in names]
        self._names = [np.array([name in labels for labels in marks], np.bool_) for name in names]
        self._group = np.zeros(0, np.int64)  # by event: that of its keys …
        self._says = np.zeros((len(names), 0), np.int64)  # … and what it says of others

    def see(self, batch: pa.RecordBatch, rows: I64, position: I64, mine: Sequence[Bits]) -> None:
        """The events that are visited next, of which it remembers the groups as well."""
        super().see(batch, rows, position, mine)
        if self.groups is not None and len(self.groups) >> self._bits:
            raise LimitError(
                f"there are more than {len(self.groups):,} groups of keys\nhint: group by fewer attributes"
            )
        said = [part.numbers(batch, rows) for part in self._parts]
        self._group = np.concatenate((self._group, self.seen.group))
        self._says = np.concatenate((self._says, np.array(said, np.int64).reshape(len(said), rows.size)), axis=1)

    def _drop(self, gone: int, count: int) -> None:
        super()._drop(gone, count)
        self._group, self._says = self._group[gone:], self._says[:, gone:]

    def take(self, found: Matches) -> None:
        """Hold those of some matches that are among the foremost so far.

        Raises
        ------
        IntegerOverflow
            The score of a match leaves 64 bits.
        TooMany
            What is held goes over the budget.
        """
        if not found.end.size:
            return
        values = self.picker.values
        known = values.position[: self.picker.registers[k.EVENTS]]
        event = np.searchsorted(known, found.position)
        score = np.zeros(found.end.size, self.scores)
        bad = add_scores(found.offset, event, found.mark, values, score, self.scores == np.int64)
        if bad >= 0:
            raise self.overflow(int(found.end[bad]))
        match, window = self._windows(found, known)
        group = self._groups(found, event, np.searchsorted(known, found.end))
        rows = some(Rows(*found[:5], score, group, np.zeros(found.end.size, np.int64)), match)._replace(window=window)
        if isinstance(self.asked, BoundSample):
            rows = rows._replace(score=drawn(rows, self.asked.seed))
        self.hold(rows)

    def _windows(self, found: Matches, known: I64) -> tuple[I64, I64]:
        """Which matches lie in which windows; an event is a window of its own where each is asked for."""
        every = np.arange(found.end.size)
        if self.panes is None:
            return every, np.zeros(every.size, np.int64) if self.bounded else found.end
        time, panes = self.picker.values.time, self.panes
        low, high = (time[np.searchsorted(known, place)] for place in (found.start, found.end))
        first, last = (high - panes.size) // panes.slide + 1, low // panes.slide
        count = np.maximum(last - first + 1, 0)
        match = np.repeat(every, count)
        return match, first[match] + np.arange(match.size) - np.repeat(np.cumsum(count) - count, count)

    def _groups(self, found: Matches, event: I64, end: I64) -> I64:
        """The group of each match: that of its keys, and what its events say."""
        group = self._group[end]
        match = np.repeat(np.arange(end.size), np.diff(found.offset))
        for names, says in zip(self._names, self._says, strict=True):
            own = np.zeros(end.size, np.int64)
            holds = names[found.mark]
            own[match[holds]] = says[event[holds]]
            group = group << self._bits | own
        return group

    def made(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """What is chosen of what a run lists: of each event when it has been read, else nothing yet."""
        for one in found:
            self.take(one)
        if not self.bounded:
            yield from self._given(None)

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return super().nbytes + self._group.nbytes + self._says.nbytes + sum(part.nbytes for part in self._parts)

    def save(self, section: Section) -> None:
        """Write the values of events, and what is held."""
        super().save(section)
        section.arrays |= {"group": self._group.copy(), "says": self._says.ravel()}
        for number, part in enumerate(self._parts):
            part.save(section.sub(f"part{number}"))

    def load(self, section: Section, run: Reached) -> None:
        """Take over, from the beginning, what :meth:`save` wrote of a run."""
        super().load(section, run)
        count = int(self.picker.registers[k.EVENTS])
        groups = 1 if self.groups is None else len(self.groups)
        # Under strict contiguity there are events without a key, of group −1, which no match holds.
        self._group = np.maximum(section.numbers("group", size=count, least=-1, below=max(1, groups)), 0)
        says = section.numbers("says", size=len(self._parts) * count, least=0, below=1 << self._bits)
        self._says = says.reshape(len(self._parts), count)
        for number, part in enumerate(self._parts):
            part.load(section.sub(f"part{number}"))

    def _raise_bounds(self) -> None:
        """What a match must reach is not asked while it is listed."""


@jit
def add_scores(offset: I64, event: I64, mark: NDArray[np.int32], values: Values, score: k.Reals, exact: bool) -> int:
    """The scores of matches, which begin as 0; the number of one that 64 bits do not hold, or −1. O(events · items)."""
    for row in range(score.size):
        for cell in range(offset[row], offset[row + 1]):
            for item in range(values.value.shape[1]):
                if values.holds[mark[cell], item]:
                    one = values.value[event[cell], item]
                    if one != one or (exact and one == k.LOST) or leaves(score[row], one, exact):
                        return row
                    score[row] += one
    return -1


def drawn(rows: Rows, seed: int) -> NDArray[np.float64]:
    """For each row a number as good as random: a function of the seed, the window, the place, and the events with their marks."""
    place = np.arange(rows.position.size) - np.repeat(rows.offset[:-1], np.diff(rows.offset))
    words = _mixed(_mixed(_mixed(np.zeros(1, np.uint64), place), rows.position), rows.mark)
    before = np.concatenate((np.zeros(1, np.uint64), np.cumsum(words)))
    held = before[rows.offset[1:]] - before[rows.offset[:-1]]
    state = _mixed(_mixed(np.zeros(1, np.uint64), np.array([seed])), rows.window)
    state = _mixed(_mixed(_mixed(state, rows.start), rows.end), held)
    return (state >> np.uint64(11)).astype(np.float64)


def _mixed(state: NDArray[np.uint64], value: NDArray[Any]) -> NDArray[np.uint64]:
    """One word more each (the finalizer of SplitMix64)."""
    found = (state ^ value.astype(np.uint64)) + _WEYL
    found = (found ^ (found >> np.uint64(30))) * _ONE
    found = (found ^ (found >> np.uint64(27))) * _TWO
    mixed: NDArray[np.uint64] = found ^ (found >> np.uint64(31))
    return mixed
