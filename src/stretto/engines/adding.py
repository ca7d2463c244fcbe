"""A query with counts and sums over all matches: the run of another engine, whose matches are counted and added up.

Where the engine holds them as paths through nodes, that is done there, without listing one (:mod:`stretto.engines.totals.paths`).
Where it decides match by match, each is added up as it is found, and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stretto.array_types import I64
from stretto.engines.api import Matches, Starting
from stretto.engines.around import AroundProgram, HoldingRun
from stretto.engines.totals import structure as s
from stretto.engines.totals.adder import Adder
from stretto.query.passes.bind_totals import BoundTotals

if TYPE_CHECKING:
    from stretto.engines.nfab.runner import NfabRunner
    from stretto.engines.programs import NfabProgram, TimedProgram
    from stretto.engines.timed.runner import TimedRunner


class AddedProgram(AroundProgram["AddedRun"]):
    """A :class:`~stretto.engines.api.Program` whose rows are counts and sums.

    Parameters
    ----------
    machine
        What finds the matches.
    totals
        What is asked of them.
    """

    machine: NfabProgram | TimedProgram

    def __init__(self, machine: NfabProgram | TimedProgram, totals: BoundTotals) -> None:
        super().__init__(machine, totals)
        self.totals = totals

    def started(self, how: Starting) -> AddedRun:
        """A run from the beginning of a stream."""
        return AddedRun(self, self.machine.started(how._replace(counts=False, labels=True)), how)


class AddedRun(HoldingRun):
    """A :class:`~stretto.engines.api.Run`."""

    BESIDE = "totals"
    run: NfabRunner | TimedRunner

    def __init__(self, program: AddedProgram, run: NfabRunner | TimedRunner, how: Starting) -> None:
        attributes = run.schema.attributes
        self.adder = run.adder = Adder(
            program.totals, program.marks, attributes, capacity=how.capacity, budget=how.budget
        )
        super().__init__(program, run, self.adder)

    def _made(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """Rows of totals as they are, and what listed matches come to."""
        for one in found:
            if one.totals is not None:
                yield one
            else:
                yield from self.adder.take(one)
        yield from self.adder.drain()

    @property
    def expires(self) -> int | float | None:
        """When the next window ends that has matches; where none has, as the machine's run."""
        closes, panes = self.adder.closes, self.adder.panes
        if closes is None or panes is None or panes.attribute != self.run.schema.time:
            return self.run.expires
        return closes

    @property
    def oldest(self) -> int | None:
        """Rows before this one can be named by no row to come; ``None`` when :meth:`live` must be asked."""
        return self.run.oldest if self.adder.state.extent == s.OF_EVENT else self.run.rows

    def live(self) -> I64:
        """The rows that a row to come may name."""
        return self.run.live() if self.adder.state.extent == s.OF_EVENT else np.zeros(0, np.int64)
