"""A query with KEEP or AFTER MATCH: the run of another engine, of whose matches one stays for each start.

What a start is, and when one is decided, stands in :mod:`stretto.engines.shared.keeping`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.budget import Budget, described_bytes
from stretto.engines.api import Matches, Starting
from stretto.engines.around import AroundProgram, MachineRun
from stretto.engines.programs import NfabProgram, Program, TimedProgram
from stretto.engines.shared.counting import BEYOND
from stretto.engines.shared.holding import TooMany
from stretto.engines.shared.keeping import Keeper, Rule
from stretto.frame import Section
from stretto.query.query import Keep

if TYPE_CHECKING:
    from stretto.engines.nfab.runner import NfabRunner
    from stretto.engines.tecs.runner import Runner
    from stretto.engines.timed.runner import TimedRunner

#: What has fewer matches.
FEWER = "skip_till_next_match, a narrower WITHIN or stricter conditions have fewer; CEQL looks at one for each interval"

#: A key above all others.
LAST_OF_ALL = (1 << 62) - 1


class KeptProgram(AroundProgram["KeptRun"]):
    """A :class:`~stretto.engines.api.Program`.

    Parameters
    ----------
    machine
        What finds the matches.
    keep
        Which of them stay.
    order
        The variables in the order of the pattern's components, where matches of the same events may differ by them.
    """

    machine: Program | NfabProgram | TimedProgram

    def __init__(self, machine: Program | NfabProgram | TimedProgram, keep: Keep, order: Sequence[str]) -> None:
        super().__init__(machine, keep)
        self.keep, self.order = keep, order

    def started(self, how: Starting) -> KeptRun:
        """A run from the beginning of a stream; matches are never counted unlisted."""
        labels = how.labels or self.keep.variable is not None
        run = self.machine.started(how._replace(labels=labels, counts=False))
        return KeptRun(self, run, labels=labels, budget=how.budget or Budget())


class KeptRun(MachineRun):
    """A :class:`~stretto.engines.api.Run`."""

    BESIDE = "keeper"
    run: Runner | NfabRunner | TimedRunner

    def __init__(
        self, program: KeptProgram, run: Runner | NfabRunner | TimedRunner, *, labels: bool, budget: Budget
    ) -> None:
        waits = program.machine.query.parsed.last_negation is not None
        rule = Rule(
            longest=program.keep.longest,
            early=not program.keep.longest and not waits,
            by_part=run.span >= 0 and run.ranked,
            waits=waits,
        )
        self.keeper = run.keeper = Keeper(program.keep, program.marks, program.order if labels else (), rule)
        super().__init__(program, run, self.keeper)
        self.budget = budget
        self._event = -1  # whose matches were counted last

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Take the next rows, and give the matches that are decided; ``silent``: give nothing, as if they were not asked for."""
        run, keeper = self.run, self.keeper
        found = run.advance(batch)
        for piece in found:
            self._refuse_too_many(piece)
            # What waited for time may come with a batch of which nothing is visited.
            yield from _some(keeper.take(piece, min(run.cursor, keeper.visits.position.size)), silent)
            self._refuse_too_much(piece)
        yield from _some(keeper.take(None, keeper.visits.position.size), silent)
        if run.until is not None:
            yield from _some(keeper.close(run.until), silent)

    def _refuse_too_much(self, piece: Matches) -> None:
        """What waits to be decided has a budget."""
        size = self.keeper.nbytes
        if piece.end.size and not self.budget.holds(0, size):
            what = f"completes matches of which some may be kept, which take {described_bytes(size)} with those of earlier events"
            ways = "WITHIN, or a narrower one, has fewer that wait; KEEP SHORTEST decides sooner"
            raise TooMany(int(piece.end[-1]), what, ways, self.budget)

    def _refuse_too_many(self, piece: Matches) -> None:
        """Count what one event completes before it is all looked at."""
        if not piece.end.size or piece.end[-1] == self._event:
            return
        rest = self.run.unlisted()
        if rest is None:
            return
        self._event = int(piece.end[-1])
        size = piece.nbytes / piece.end.size * (math.inf if rest.matches == BEYOND else rest.matches)
        if not self.budget.holds(0, size):
            number = f"about 2^{rest.bits:,.0f}" if rest.matches == BEYOND else f"{rest.matches:,}"
            what = f"completes {rest.told}{number} matches, of which KEEP and AFTER MATCH look at each"
            raise TooMany(self._event, what, FEWER, self.budget)

    def reach(self, time: Any) -> Iterator[Matches]:
        """No row before ``time`` will come: give what that decides."""
        for piece in self.run.reach(time):
            self.keeper.look(piece)
        window, last = self.run.window, self.run.last_time
        if (
            self.run.measured is not None
            and window is not None
            and window.attribute == self.run.schema.time
            and last is not None
        ):
            yield from _some(self.keeper.close(self.run.open_from(last)))

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: all is decided."""
        for piece in self.run.finish():
            self.keeper.look(piece)
        yield from _some(self.keeper.close(LAST_OF_ALL))

    def take_over(self, old: Any, unknown: frozenset[str]) -> None:
        """As :class:`~stretto.engines.api.Run` says."""
        self.run.take_over(old.run, unknown)
        there = Section()
        old.keeper.save(there)
        self.keeper.load(there, self.run)

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come."""
        return not self.keeper.waits and self.run.idle

    @property
    def expires(self) -> int | float | None:
        """Where a match is kept, when the first start is closed that holds one back; else as the machine's run."""
        last = self.run.expires
        if last is None or not self.keeper.waits:
            return last
        return self.run.open_until(self.keeper.first)

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more."""
        found = self.run.oldest
        return min(found, int(self.keeper.held.start.min())) if found is not None and self.keeper.waits else found

    def live(self) -> I64:
        """The rows that a match to come may hold (sorted)."""
        found = self.run.live()
        return np.union1d(found, self.keeper.live()) if self.keeper.waits else found


def _some(found: Matches | None, silent: bool = False) -> Iterator[Matches]:
    return iter(() if found is None or silent else (found,))
