"""A query with ORDER BY … LIMIT or SAMPLE: the run of another engine, of whose matches the best are taken, or some at random.

How they are found without listing the others stands in :mod:`stretto.engines.shared.picking`; how they are taken of those that are
listed, in :mod:`stretto.engines.shared.listed_choice`.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from stretto.budget import Budget
from stretto.engines.api import Matches, Startable, Starting
from stretto.engines.around import AroundRun
from stretto.engines.nfab.program import NfabProgram
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.shared.choice import Choice
from stretto.engines.shared.counting import Unlisted
from stretto.engines.shared.foremost import I64
from stretto.engines.shared.listed_choice import ListedChoice
from stretto.engines.tecs.program import Program
from stretto.engines.tecs.runner import Runner
from stretto.engines.timed.program import TimedProgram
from stretto.engines.timed.runner import TimedRunner
from stretto.frame import Section
from stretto.query.passes.bind_totals import BoundBest, BoundSample


class PickedProgram(Startable["PickedRun"]):
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

    revises = False
    abilities: ClassVar[frozenset[str]] = (Program.abilities & NfabProgram.abilities) - {
        "limit",
        "keep",
        "timeouts",
        "summary",
        "patterns",
    }

    def __init__(
        self, machine: Program | NfabProgram | TimedProgram, asked: BoundBest | BoundSample, columns: tuple[str, ...]
    ) -> None:
        self.machine, self.asked, self.columns = machine, asked, columns
        if isinstance(machine, Program):
            machine.added_up = asked.variables
        #: Whether the matches are listed, of which some are taken: where each is decided by itself, or says its group.
        self.lists = (
            isinstance(machine, TimedProgram)
            or (isinstance(machine, NfabProgram) and not machine.counts)
            or any(one.variable is not None for one in asked.scope.groups)
        )

    @property
    def digest(self) -> str:
        """What the machine is, and what is asked of its matches."""
        return hashlib.sha256(f"{self.machine.digest}\n{self.asked}".encode()).hexdigest()

    @property
    def marks(self) -> Sequence[frozenset[str]]:
        """The variables of each mark."""
        return self.machine.marks

    def started(self, how: Starting) -> PickedRun:
        """A run from the beginning of a stream; what is chosen is listed, and bounded by what was asked for."""
        run = self.machine.started(how._replace(counts=False, labels=how.labels or self.lists))
        return (ListingRun if self.lists else PickedRun)(self, run, how)


class PickedRun(AroundRun):
    """A :class:`~stretto.engines.api.Run`."""

    run: Runner | NfabRunner | TimedRunner
    choice: Choice

    def __init__(self, program: PickedProgram, run: Runner | NfabRunner | TimedRunner, how: Starting) -> None:
        super().__init__(run)
        self.program = program
        self._choose(how)

    def _choose(self, how: Starting) -> None:
        """Let the run hand over what a choice is made of."""
        program, budget = self.program, how.budget or Budget()
        self.choice = self.run.choice = Choice(program.asked, program.marks, capacity=how.capacity, budget=budget)

    def __deepcopy__(self, memo: dict[int, Any]) -> PickedRun:
        memo[id(self.program)] = self.program
        memo[id(self.run.program)] = self.run.program
        made = copy.copy(self)
        made.run = copy.deepcopy(self.run, memo)
        assert made.run.choice is not None
        made.choice = made.run.choice
        return made

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Take the next rows, and give what is chosen of their matches; of windows when these have closed."""
        run = self.run
        yield from self._chosen(run.advance(batch, silent=silent))
        panes = self.choice.panes
        reached = run.last_time if run.last_measure is None else run.last_measure
        if panes is not None and panes.attribute is None:
            reached = run.rows
        if reached is not None:
            yield from self.choice.closed(reached)
        self.choice.forget(run.oldest, run.live)

    def reach(self, time: Any) -> Iterator[Matches]:
        """No row before ``time`` will come: give the matches of windows that have closed."""
        yield from self._chosen(self.run.reach(time))
        panes = self.choice.panes
        if panes is not None and panes.attribute == self.run.schema.time and self.run.last_time is not None:
            yield from self.choice.closed(self.run.last_time)

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: give all matches that are held."""
        yield from self._chosen(self.run.finish())
        yield from self.choice.finish()

    def _chosen(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """What is chosen of what the run gives: it has chosen already."""
        yield from found

    def save(self, section: Section) -> None:
        """Write the machine's state, and what is held."""
        self.run.save(section)
        self.choice.save(section.sub("choice"))

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        self.run.load(section)
        self.choice.load(section.sub("choice"))

    def take_over(self, old: Any, unknown: frozenset[str]) -> None:
        """As :class:`~stretto.engines.api.Run` says."""
        self.run.take_over(old.run, unknown)
        there = Section()
        old.choice.save(there)
        self.choice.load(there)

    def unlisted(self) -> Unlisted | None:
        """What is given is no more than was asked for."""
        return None

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come."""
        return not len(self.choice.held) and self.run.idle

    @property
    def expires(self) -> int | float | None:
        """When the last window closes of which matches are held; else as the machine's run."""
        last, closes, panes = self.run.expires, self.choice.closes, self.choice.panes
        if closes is None or panes is None or panes.attribute != self.run.schema.time:
            return None if len(self.choice.held) else last
        return closes if last is None else max(last, closes)

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more; what is held may be from long ago."""
        return None if len(self.choice.held) else self.run.oldest

    def live(self) -> I64:
        """The rows that a match to come may hold (sorted)."""
        return np.union1d(self.run.live(), self.choice.held.live())

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return self.run.nbytes + self.choice.nbytes


class ListingRun(PickedRun):
    """A run that lists, and of whose matches those that are chosen are held."""

    choice: ListedChoice

    def _choose(self, how: Starting) -> None:
        program, budget = self.program, how.budget or Budget()
        self.choice = ListedChoice(program.asked, program.marks, capacity=how.capacity, budget=budget)
        self.run.seeing = self.choice.see

    def __deepcopy__(self, memo: dict[int, Any]) -> ListingRun:
        memo[id(self.program)] = self.program
        memo[id(self.run.program)] = self.run.program
        made = copy.copy(self)
        made.choice = copy.deepcopy(self.choice, memo)
        made.run = copy.deepcopy(self.run, memo)
        made.run.seeing = made.choice.see
        return made

    def _chosen(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """What is chosen of what the run lists: of each event when it has been read, else nothing yet."""
        for one in found:
            self.choice.take(one)
        yield from self.choice.given()
