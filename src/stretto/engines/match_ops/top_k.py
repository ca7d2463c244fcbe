"""A query with ORDER BY … LIMIT or SAMPLE: the run of another engine, of whose matches the best are taken, or some at random.

How they are found without listing the others stands in :mod:`stretto.engines.match_ops.top_k_kernel`; how they are taken of those
that are listed, in :mod:`stretto.engines.match_ops.top_k_of_listed`.
"""

from __future__ import annotations

import numpy as np

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.engines.api import Starting
from stretto.engines.match_ops.top_k_choice import Choice
from stretto.engines.match_ops.top_k_of_listed import ListedChoice
from stretto.engines.match_ops.wrapper import AroundProgram, HoldingRun
from stretto.engines.programs import NfabProgram, Program, TimedProgram
from stretto.query.passes.bind_totals import BoundBest, BoundSample


class PickedProgram(AroundProgram["PickedRun"]):
    """A :class:`~stretto.engines.api.Program`.

    Parameters
    ----------
    machine
        What finds the matches.
    asked
        Which of them are taken.
    columns
        What the query reads, for scores and groups as well.
    """

    machine: Program | NfabProgram | TimedProgram

    def __init__(
        self, machine: Program | NfabProgram | TimedProgram, asked: BoundBest | BoundSample, columns: tuple[str, ...]
    ) -> None:
        super().__init__(machine, asked)
        self._columns = columns
        #: Whether the matches are listed, of which some are taken: where each is decided by itself, or says its group.
        self.lists = Choice.inside not in machine.inside or any(one.variable is not None for one in asked.scope.groups)

    @property
    def columns(self) -> tuple[str, ...]:
        """What the query reads, for scores and groups as well."""
        return self._columns

    def started(self, how: Starting) -> PickedRun:
        """A run from the beginning of a stream; what is chosen is listed, and bounded by what was asked for."""

        kind, labels = (ListedChoice if self.lists else Choice), how.labels or self.lists
        choice = kind(self.asked, self.marks, capacity=how.capacity, budget=how.budget or Budget())
        return PickedRun(self, self.machine.started(how._replace(counts=False, labels=labels, operator=choice)), choice)


class PickedRun(HoldingRun):
    """A :class:`~stretto.engines.api.Run`."""

    BESIDE = "choice"
    beside: Choice

    @property
    def expires(self) -> int | float | None:
        """When the last window closes of which matches are held; else as the machine's run."""
        last, closes, panes = self.run.expires, self.beside.closes, self.beside.panes
        if closes is None or panes is None or panes.attribute != self.run.schema.time:
            return None if self.beside.holds else last
        return closes if last is None else max(last, closes)

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more; what is held may be from long ago."""
        return None if self.beside.holds else self.run.oldest

    def live(self) -> I64:
        """The rows that a match to come may hold (sorted)."""
        return np.union1d(self.run.live(), self.beside.held.live())
