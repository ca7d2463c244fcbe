"""A query with ORDER BY … LIMIT or SAMPLE: the run of another engine, of whose matches the best are taken, or some at random.

How they are found without listing the others stands in :mod:`stretto.engines.shared.picking`; how they are taken of those that are
listed, in :mod:`stretto.engines.shared.listed_choice`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.engines.api import Matches, Starting
from stretto.engines.around import AroundProgram, HoldingRun
from stretto.engines.programs import NfabProgram, Program, TimedProgram
from stretto.engines.shared.choice import Choice
from stretto.engines.shared.listed_choice import ListedChoice
from stretto.query.passes.bind_totals import BoundBest, BoundSample

if TYPE_CHECKING:
    from stretto.engines.nfab.runner import NfabRunner
    from stretto.engines.tecs.runner import Runner
    from stretto.engines.timed.runner import TimedRunner


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
        if isinstance(machine, Program):
            machine.added_up = asked.variables
        #: Whether the matches are listed, of which some are taken: where each is decided by itself, or says its group.
        self.lists = (
            isinstance(machine, TimedProgram)
            or (isinstance(machine, NfabProgram) and not machine.counts)
            or any(one.variable is not None for one in asked.scope.groups)
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """What the query reads, for scores and groups as well."""
        return self._columns

    def started(self, how: Starting) -> PickedRun:
        """A run from the beginning of a stream; what is chosen is listed, and bounded by what was asked for."""
        run = self.machine.started(how._replace(counts=False, labels=how.labels or self.lists))
        return (ListingRun if self.lists else PickedRun)(self, run, how)


class PickedRun(HoldingRun):
    """A :class:`~stretto.engines.api.Run`."""

    BESIDE = "choice"
    beside: Choice
    run: Runner | NfabRunner | TimedRunner

    def __init__(self, program: PickedProgram, run: Runner | NfabRunner | TimedRunner, how: Starting) -> None:
        super().__init__(program, run, self._choice(program, run, how))

    def _choice(self, program: PickedProgram, run: Runner | NfabRunner | TimedRunner, how: Starting) -> Choice:
        """What the run hands over what a choice is made of."""
        made = Choice(program.asked, program.marks, capacity=how.capacity, budget=how.budget or Budget())
        run.choice = made
        return made

    def _made(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """What the run gives: it has chosen already."""
        yield from found

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


class ListingRun(PickedRun):
    """A run that lists, and of whose matches those that are chosen are held."""

    beside: ListedChoice

    def _choice(self, program: PickedProgram, run: Runner | NfabRunner | TimedRunner, how: Starting) -> ListedChoice:
        made = ListedChoice(program.asked, program.marks, capacity=how.capacity, budget=how.budget or Budget())
        run.seeing = made.see
        return made

    def _made(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """What is chosen of what the run lists: of each event when it has been read, else nothing yet."""
        for one in found:
            self.beside.take(one)
        yield from self.beside.given()
