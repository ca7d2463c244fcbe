"""A query with KEEP or AFTER MATCH whose choice is made while events are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.automata.shortcut import Unmarked
from stretto.automata.steps import steps_of
from stretto.budget import Budget
from stretto.engines.api import Matches, Starting
from stretto.engines.match_ops.after_match_skip import KeptProgram, KeptRun
from stretto.engines.match_ops.wrapper import AroundRun
from stretto.engines.programs import NfabProgram, Program, TimedProgram
from stretto.frame import Section
from stretto.query.algebra import spans_of
from stretto.query.query import Consume, Keep, ParsedQuery, Strategy

if TYPE_CHECKING:
    from stretto.engines.greedy.runner import GreedyRunner


def why_not_greedy(query: ParsedQuery) -> str:
    """Why the choice cannot be made while events are read, in words; empty where it can.

    >>> from stretto.languages.ceql import parse
    >>> why_not_greedy(parse("SELECT LAST * FROM S WHERE A ; B+ KEEP LONGEST"))
    'LAST prefers other matches of an interval'
    """
    if query.strategy not in (Strategy.ALL, Strategy.NEXT, Strategy.MAX):
        return f"{query.strategy} prefers other matches of an interval"
    if query.consume is not Consume.NONE or query.limit is not None:
        return "CONSUME BY and LIMIT go by all matches of an event"
    steps = steps_of(query.pattern, lambda size: size)
    if not all(step.labels.intersection(query.variables) for step in steps.steps):
        return "matches are compared by what SELECT shows, which leaves events out"
    if steps.windows:
        return "a window inside asks what was chosen before"
    if steps.before or steps.behind:
        return "what must not come before or behind is known with the match"
    clocks = {one.attribute for one in (query.window, *spans_of(query.pattern)) if one is not None}
    return "gaps and window measure different things" if len(clocks) > 1 else ""


class GreedyProgram(KeptProgram):
    """A :class:`~stretto.engines.api.Program`.

    Parameters
    ----------
    listing
        Makes the machine that lists matches: snapshots of earlier versions go on with it, and their digests are of it.
    keep, order
        As for :class:`~stretto.engines.match_ops.after_match_skip.KeptProgram`.
    steps
        The automaton.
    """

    def __init__(
        self,
        listing: Callable[[], Program | NfabProgram | TimedProgram],
        keep: Keep,
        order: Sequence[str],
        steps: TimedProgram,
    ) -> None:
        self.listing, self.steps = listing, steps
        self.asked = self.keep = keep
        self.order = order

    @cached_property
    def machine(self) -> Program | NfabProgram | TimedProgram:  # type: ignore[override]
        """The machine that lists matches, which is made when something asks for it."""
        return self.listing()

    @property
    def marks(self) -> Sequence[frozenset[str]]:
        """The variables of each mark."""
        found = self.steps.marks
        return Unmarked(found) if self.steps.query.parsed.language == "sase" else found

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self.steps.columns

    @property
    def reader(self) -> TimedProgram:
        """What asks single events."""
        return self.steps

    def started(self, how: Starting) -> GreedyRun:  # type: ignore[override]
        """A run from the beginning of a stream."""
        return GreedyRun(self, how)


class GreedyRun(AroundRun):
    """A :class:`~stretto.engines.api.Run`: of the greedy engine, unless it goes on from a snapshot of an earlier version."""

    run: GreedyRunner | KeptRun

    def __init__(self, program: GreedyProgram, how: Starting) -> None:
        from stretto.engines.greedy.runner import GreedyRunner  # with its kernels, when something runs

        self.program, self.how = program, how
        budget = how.budget or Budget()
        super().__init__(
            GreedyRunner(
                program.steps, program.keep, program.marks, late=how.late, capacity=how.capacity, budget=budget
            )
        )

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Take the next rows, and give the matches that are decided."""
        return self._marked(self.run.advance(batch, silent=silent))

    def reach(self, time: Any) -> Iterator[Matches]:
        """No row before ``time`` will come: give what that decides."""
        return self._marked(self.run.reach(time))

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: all is decided."""
        return self._marked(self.run.finish())

    @property
    def expires(self) -> int | float | None:
        """The last time at which something that was given may still matter."""
        return self.run.expires

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more."""
        return self.run.oldest

    def live(self) -> I64:
        """The rows that a match to come may hold (sorted)."""
        return self.run.live()

    def take_over(self, old: Any, unknown: frozenset[str]) -> None:
        """As :class:`~stretto.engines.api.Run` says."""
        there = Section()
        old.save(there)
        if "starts.head" not in there.arrays:
            self._go_back()
        self.run.take_over(old.run, unknown)

    def save(self, section: Section) -> None:
        """Write the state."""
        self.run.save(section)

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote, in this version or in an earlier one."""
        if "starts.head" not in section.arrays:
            self._go_back()
        self.run.load(section)

    def _go_back(self) -> None:
        """Run as earlier versions did."""
        program = self.program
        self.run = KeptProgram(program.machine, program.keep, program.order).started(self.how)

    def _marked(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """Matches with the marks of the program; an earlier version has marks of its own, which become more as it goes on."""
        if not isinstance(self.run, KeptRun):
            yield from found
            return
        marks = list(self.program.marks)
        for piece in found:
            own = [marks.index(labels) if labels in marks else 0 for labels in self.program.machine.marks]
            yield piece._replace(mark=np.array(own, np.int32)[piece.mark])
