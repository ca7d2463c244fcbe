"""A query with counts and sums over all matches: the run of another engine, whose matches are counted and added up.

Where the engine holds them as paths through nodes, that is done there, without listing one (:mod:`stretto.engines.totals.paths`).
Where it decides match by match, each is added up as it is found, and forgotten.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from stretto.engines.api import Matches, Startable, Starting
from stretto.engines.around import AroundRun
from stretto.engines.nfab.program import NfabProgram
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.shared.counting import Unlisted
from stretto.engines.timed.program import TimedProgram
from stretto.engines.timed.runner import TimedRunner
from stretto.engines.totals import structure as s
from stretto.engines.totals.adder import Adder
from stretto.engines.totals.program import TotalsProgram
from stretto.engines.totals.structure import I64
from stretto.frame import Section
from stretto.query.passes.bind_totals import BoundTotals


class AddedProgram(Startable["AddedRun"]):
    """A :class:`~stretto.engines.api.Program` whose rows are counts and sums.

    Parameters
    ----------
    machine
        What finds the matches.
    totals
        What is asked of them.
    """

    revises = False
    abilities: ClassVar[frozenset[str]] = TotalsProgram.abilities - {"patterns"} | {
        "next",
        "closing",
        "relations",
        "gaps",
    }

    def __init__(self, machine: NfabProgram | TimedProgram, totals: BoundTotals) -> None:
        self.machine, self.totals = machine, totals

    @property
    def digest(self) -> str:
        """What the machine is, and what is asked of its matches."""
        return hashlib.sha256(f"{self.machine.digest}\n{self.totals}".encode()).hexdigest()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that conditions, windows, keys, values and groups read."""
        return self.machine.columns

    @property
    def marks(self) -> Sequence[frozenset[str]]:
        """The variables of each mark."""
        return self.machine.marks

    def started(self, how: Starting) -> AddedRun:
        """A run from the beginning of a stream."""
        return AddedRun(self, self.machine.started(how._replace(counts=False, labels=True)), how)


class AddedRun(AroundRun):
    """A :class:`~stretto.engines.api.Run`."""

    run: NfabRunner | TimedRunner

    def __init__(self, program: AddedProgram, run: NfabRunner | TimedRunner, how: Starting) -> None:
        super().__init__(run)
        self.program = program
        attributes = run.schema.attributes
        self.adder = run.adder = Adder(
            program.totals, program.marks, attributes, capacity=how.capacity, budget=how.budget
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> AddedRun:
        memo[id(self.program)] = self.program
        memo[id(self.run.program)] = self.run.program
        made = copy.copy(self)
        made.run = copy.deepcopy(self.run, memo)
        assert made.run.adder is not None
        made.adder = made.run.adder
        return made

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Take the next rows, and give what their matches come to; of windows when these have closed."""
        run, adder = self.run, self.adder
        yield from self._added(run.advance(batch, silent=silent))
        if adder.panes is not None:
            reached = run.last_time if run.last_measure is None else run.last_measure
            reached = run.rows if adder.panes.attribute is None else reached
            if reached is not None:
                yield from adder.closed(reached)
        adder.forget(run.oldest, run.live)

    def reach(self, time: Any) -> Iterator[Matches]:
        """No row before ``time`` will come: give the windows that have closed."""
        yield from self._added(self.run.reach(time))
        panes = self.adder.panes
        if panes is not None and panes.attribute == self.run.schema.time and self.run.last_time is not None:
            yield from self.adder.closed(self.run.last_time)

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: give the rows of the whole table, and those of windows that are open."""
        yield from self._added(self.run.finish())
        yield from self.adder.finish()

    def _added(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """Rows of totals as they are, and what listed matches come to."""
        for one in found:
            if one.totals is not None:
                yield one
            else:
                yield from self.adder.take(one)
        yield from self.adder.drain()

    def save(self, section: Section) -> None:
        """Write the machine's state, and what its matches come to."""
        self.run.save(section)
        self.adder.save(section.sub("totals"))

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        self.run.load(section)
        self.adder.load(section.sub("totals"))

    def take_over(self, old: Any, unknown: frozenset[str]) -> None:
        """As :class:`~stretto.engines.api.Run` says."""
        self.run.take_over(old.run, unknown)
        self.adder.take_over(old.adder, unknown)

    def unlisted(self) -> Unlisted | None:
        """Nothing waits to be listed."""
        return None

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come."""
        return not self.adder.holds and self.run.idle

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

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return self.run.nbytes + self.adder.nbytes
