"""Programs and runs around others, which find the matches: what both say is said here once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from stretto.engines.api import Compiled, Matches, R_co, Run, Startable
from stretto.engines.shared.counting import Unlisted
from stretto.frame import Section

if TYPE_CHECKING:
    from stretto.engines.nfab.runner import NfabRunner
    from stretto.engines.tecs.runner import Runner
    from stretto.engines.timed.runner import TimedRunner


class AroundProgram(Startable[R_co]):
    """What a :class:`~stretto.engines.api.Program` answers for the one inside of it.

    Parameters
    ----------
    machine
        What finds the matches.
    asked
        What is asked of them, whose text is part of the digest.
    """

    revises = False
    machine: Compiled
    asked: Any

    def __init__(self, machine: Compiled, asked: Any) -> None:
        self.machine, self.asked = machine, asked

    @property
    def digest(self) -> str:
        """What the machine is, and what is asked of its matches."""
        return hashlib.sha256(f"{self.machine.digest}\n{self.asked}".encode()).hexdigest()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the machine reads."""
        return self.machine.columns

    @property
    def marks(self) -> Sequence[frozenset[str]]:
        """The variables of each mark."""
        return self.machine.marks


class AroundRun:
    """What a :class:`~stretto.engines.api.Run` answers for the run inside of it.

    Parameters
    ----------
    run
        The run inside.
    """

    counts = False
    run: Run

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def rows(self) -> int:
        """How many rows it was given."""
        return self.run.rows

    @rows.setter
    def rows(self, rows: int) -> None:
        self.run.rows = rows

    @property
    def broken(self) -> bool:
        """Whether it was stopped in the middle of a batch."""
        return self.run.broken

    @property
    def late_policy(self) -> str:
        """What happens to a row that comes too late."""
        return self.run.late_policy

    @property
    def late(self) -> int:
        """How many rows came too late."""
        return self.run.late

    def check(self, table: pa.Table) -> None:
        """Raise what :meth:`advance` would raise for these rows, and change nothing."""
        self.run.check(table)

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come."""
        return self.run.idle

    @property
    def open_windows(self) -> int | float | None:
        """As of :class:`~stretto.engines.shared.intake.Intake`."""
        return self.run.open_windows

    def unlisted(self) -> Unlisted | None:
        """Nothing waits to be listed."""
        return None

    @property
    def stats(self) -> dict[str, int]:
        """Counts of what was read and what is held."""
        return self.run.stats | {"bytes": self.nbytes}

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return self.run.nbytes


class MachineRun(AroundRun):
    """A run of an :class:`AroundProgram`: that of its machine, and what is kept beside it.

    Parameters
    ----------
    program
        The program.
    run
        The run of its machine.
    beside
        What is kept beside it.
    """

    BESIDE: ClassVar[str]  #: its section in a snapshot
    program: AroundProgram[Any]

    def __init__(self, program: AroundProgram[Any], run: Run, beside: Any) -> None:
        super().__init__(run)
        self.program, self.beside = program, beside

    def save(self, section: Section) -> None:
        """Write the machine's state, and what is kept beside it."""
        self.run.save(section)
        self.beside.save(section.sub(self.BESIDE))

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        self.run.load(section)
        self.beside.load(section.sub(self.BESIDE), self.run)

    def take_over(self, old: Any, unknown: frozenset[str]) -> None:
        """As :class:`~stretto.engines.api.Run` says."""
        self.run.take_over(old.run, unknown)
        self.beside.take_over(old.beside, unknown, self.run)

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return self.run.nbytes + int(self.beside.nbytes)


class HoldingRun(MachineRun):
    """A run beside which something of the matches is held until windows close, or the stream ends."""

    run: Runner | NfabRunner | TimedRunner

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Take the next rows, and give what is made of their matches; of windows when these have closed."""
        run, panes = self.run, self.beside.panes
        yield from self.beside.made(run.advance(batch, silent=silent))
        reached = run.last_time if run.last_measure is None else run.last_measure
        if panes is not None and panes.attribute is None:
            reached = run.rows
        if reached is not None:
            yield from self.beside.closed(reached)
        self.beside.forget(run.oldest, run.live)

    def reach(self, time: Any) -> Iterator[Matches]:
        """No row before ``time`` will come: give what is held of windows that have closed."""
        yield from self.beside.made(self.run.reach(time))
        panes = self.beside.panes
        if panes is not None and panes.attribute == self.run.schema.time and self.run.last_time is not None:
            yield from self.beside.closed(self.run.last_time)

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come: no match is held, and events are not numbered from the first one on."""
        numbered = self.beside.numbers and self.run.rows > 0
        return not numbered and not self.beside.holds and self.run.idle

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: give all that is held."""
        yield from self.beside.made(self.run.finish())
        yield from self.beside.finish()
