"""A query with ``timeouts=``: the run of another engine, with a row for each first event whose window closes without a match.

A row comes with the event that closes the window, before what that event completes; where matches wait for their windows, rows and
matches come in the order of their first events. So what is given, and in which order, depends on the events and not on the batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I64, Bits
from stretto.engines.api import Matches, Starting, TimedOut, offsets
from stretto.engines.match_ops.timeout_tracker import Furthest
from stretto.engines.match_ops.wrapper import AroundProgram, MachineRun
from stretto.engines.nfab import following as nfab
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.programs import NfabProgram, Program, TimedProgram
from stretto.engines.shared.counting import Unlisted
from stretto.engines.tecs.runner import Runner
from stretto.engines.timed import following as timed
from stretto.engines.timed.runner import TimedRunner
from stretto.errors import OptionError
from stretto.frame import Section
from stretto.query.passes.bind import AnyBound, BoundQuery
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.query import AnyQuery, Consume
from stretto.query.sase import Selection

FollowingRun = nfab.FollowingRun | timed.FollowingRun


def refuse_timeouts(query: AnyQuery) -> None:
    """Raise an :class:`OptionError` for a query whose partial matches do not time out one by one."""
    if query.strategy is Selection.LATEST:
        raise OptionError(
            "timeouts= tells the first events without a match, and EQL forgets those that a newer one takes the place of: a missing "
            "event at the end, ![ … ], tells what did not come"
        )
    if query.window is None:
        raise OptionError("timeouts= needs a window that closes: say WITHIN in the query")
    word = _chooser(query)
    if word:
        raise OptionError(
            f"timeouts= tells the first events without a match, and {word} leaves matches out: leave it out of this query, and "
            "choose among the rows"
        )


def _chooser(query: AnyQuery) -> str:
    """What leaves matches out of a query; empty: nothing does."""
    if query.limit is not None:
        return "LIMIT"
    if query.keep is not None:
        return "KEEP and AFTER MATCH"
    if query.non_overlap:
        return "OUTPUT non_overlap"
    return "" if query.consume is Consume.NONE else "CONSUME BY"


class TimeoutProgram(AroundProgram["TimeoutRun"]):
    """A :class:`~stretto.engines.api.Program`.

    Parameters
    ----------
    machine
        What finds the matches.
    query
        The query, whose partial matches are followed.
    """

    machine: Program | NfabProgram | TimedProgram

    def __init__(self, machine: Program | NfabProgram | TimedProgram, query: AnyBound) -> None:
        refuse_timeouts(query.parsed)
        self.followed: NfabProgram | timed.Followed
        if isinstance(query, BoundQuery):
            self.followed = timed.Followed(query)
        else:
            assert isinstance(query, BoundSase)
            self.followed = machine if isinstance(machine, NfabProgram) else NfabProgram(query)
        super().__init__(machine, f"{self.followed.digest}\ntimeouts")

    @property
    def told(self) -> str:
        """What follows the partial matches, in words."""
        what = "the furthest partial match of each first event"
        if isinstance(self.followed, timed.Followed):
            return f"{what}, found among the events of its window when that closes without a match"
        why = self.followed.why_single
        alike = f"each by itself, as {why}" if why else "of those of one first event that go on alike the furthest"
        return f"{what}, followed by nfab: {alike}"

    @property
    def completes_later(self) -> bool:
        """Whether an event behind the last one of a match completes it: UNTIL … ONLY."""
        return isinstance(self.followed, NfabProgram) and any(one.only for one in self.followed.query.parsed.positive)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that matches and partial matches ask for."""
        return tuple(dict.fromkeys((*self.machine.columns, *self.followed.columns)))

    @property
    def marks(self) -> Sequence[frozenset[str]]:
        """The variables of each mark: first those of partial matches."""
        return _Marks(self.followed.marks, self.machine.marks)

    def started(self, how: Starting) -> TimeoutRun:
        """A run from the beginning of a stream; matches are listed."""
        run = self.machine.started(how._replace(counts=False))
        partial: FollowingRun
        if isinstance(self.followed, NfabProgram):
            partial = nfab.FollowingRun(self.followed, late=how.late, capacity=how.capacity)
        else:
            by_rank = run.by_rank if isinstance(run, TimedRunner) else run.ranked
            partial = timed.FollowingRun(
                self.followed, by_rank=by_rank, late=how.late, capacity=how.capacity, budget=how.budget
            )
        return TimeoutRun(self, run, partial)


class _Marks(Sequence[frozenset[str]]):
    """Marks behind others, of which there may come more."""

    def __init__(self, first: Sequence[frozenset[str]], second: Sequence[frozenset[str]]) -> None:
        self.first, self.second = first, second

    def __len__(self) -> int:
        return len(self.first) + len(self.second)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        return self.first[at] if at < len(self.first) else self.second[at - len(self.first)]


class TimeoutRun(MachineRun):
    """A :class:`~stretto.engines.api.Run`."""

    BESIDE = "partial"
    program: TimeoutProgram
    run: Runner | NfabRunner | TimedRunner

    def __init__(self, program: TimeoutProgram, run: Runner | NfabRunner | TimedRunner, partial: FollowingRun) -> None:
        super().__init__(program, run, partial)
        self.partial = partial
        self._shift = len(program.followed.marks)
        self._later = not self.waits and program.completes_later

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote: what is beside the machine is a run as well."""
        self.run.load(section)
        self.partial.load(section.sub(self.BESIDE))

    def take_over(self, old: TimeoutRun, unknown: frozenset[str]) -> None:
        """As :class:`~stretto.engines.api.Run` says."""
        self.run.take_over(old.run, unknown)
        self.partial.take_over(old.partial, unknown)

    @property
    def waits(self) -> bool:
        """Whether matches come when their windows close."""
        return self.program.machine.query.parsed.last_negation is not None

    @property
    def rows(self) -> int:
        """How many rows both runs were given."""
        return self.run.rows

    @rows.setter
    def rows(self, rows: int) -> None:
        self.run.rows = self.partial.rows = rows

    @property
    def broken(self) -> bool:
        """Whether one of them was stopped in the middle of a batch."""
        return self.run.broken or self.partial.broken

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Take the next rows, and give what they complete and what times out; ``silent``: give nothing."""
        if silent:
            raise OptionError("prime() does not list matches, and what times out depends on them: push the events")
        self.partial.follow(batch)
        yield from self._in_slices(batch) if self._later else self._with_timeouts(self.run.advance(batch))
        self.partial.settle()

    def reach(self, time: Any) -> Iterator[Matches]:
        """No row before ``time`` will come: give what that decides."""
        self.partial.pass_by(time)
        yield from self._with_timeouts(self.run.reach(time))
        self.partial.settle()

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: what it completes is a match, and no window closes by it."""
        yield from self._shifted(self.run.finish())

    @property
    def starts(self) -> I64:
        """The first events of what is under way."""
        return self.partial.starts

    def in_flight(self, most: int, chosen: Bits | None = None) -> Matches:
        """The furthest partial matches of the first few of :attr:`starts`, or of those that are ``chosen``, as rows of timeouts."""
        return self._as_matches(self.partial.in_flight(most, chosen))

    def _in_slices(self, batch: pa.RecordBatch) -> Iterator[Matches]:
        """Do it for matches that do not tell which event has completed them: each row that closes windows begins
        a slice."""
        first, begin = self.run.rows, 0
        for row in self.partial.closing.tolist():
            yield from self._shifted(self.run.advance(batch.slice(begin, row - first - begin)))
            begin = row - first
            found = self.partial.closed(row)
            if found.closed.size:
                yield self._as_matches(found)
        yield from self._shifted(self.run.advance(batch.slice(begin)))

    def _shifted(self, pieces: Iterator[Matches]) -> Iterator[Matches]:
        for piece in pieces:
            self.partial.begin_matches(piece.start)
            yield piece._replace(mark=piece.mark + np.int32(self._shift))

    def _with_timeouts(self, pieces: Iterator[Matches]) -> Iterator[Matches]:
        """What the batch completes, with what it times out."""
        for piece in pieces:
            if piece.start.size:
                self.partial.begin_matches(piece.start)
                last = int((piece.start if self.waits else piece.end)[-1])
                yield self._merged(piece, self.partial.closed(last, by_start=self.waits))
        rest = self.partial.closed()
        if rest.closed.size:
            yield self._as_matches(rest)

    def _merged(self, piece: Matches, timeouts: Furthest) -> Matches:
        """Matches and timeouts in one order; what times out with an event comes before what the event completes."""
        shifted = piece._replace(mark=piece.mark + np.int32(self._shift))
        if not timeouts.closed.size:
            return shifted
        other = self._as_matches(timeouts)
        keys = (other.start, piece.start) if self.waits else (timeouts.closed, piece.end)
        kinds = np.repeat([0, 1], [other.start.size, piece.start.size])
        return _joined(other, shifted, np.lexsort((kinds, np.concatenate(keys))))

    @staticmethod
    def _as_matches(found: Furthest) -> Matches:
        start, end, offset, position, mark, reached = found.places
        return Matches(start, end, offset, position, mark, timed_out=TimedOut(reached, found.expired))

    def unlisted(self) -> Unlisted | None:
        """Say what the machine's run says."""
        return self.run.unlisted()

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come."""
        return not self.partial.follows and self.run.idle

    @property
    def expires(self) -> int | float | None:
        """Where a window is open that may time out, the end of the first; else as the machine's run."""
        first = self.partial.first_end
        return self.run.expires if first is None else first

    @property
    def oldest(self) -> int | None:
        """Rows before this one can be shown no more."""
        return self.run.oldest

    def live(self) -> I64:
        """The rows that may still be shown (sorted)."""
        return np.union1d(self.run.live(), self.partial.live())


def _joined(first: Matches, second: Matches, order: I64) -> Matches:
    """Timeouts and matches as one, in an order of all their rows."""
    assert first.timed_out is not None
    sizes = np.concatenate((np.diff(first.offset), np.diff(second.offset)))[order]
    begins = np.concatenate((first.offset[:-1], second.offset[:-1] + first.position.size))[order]
    offset = offsets(sizes)
    cells = np.arange(offset[-1]) + np.repeat(begins - offset[:-1], sizes)
    count = second.start.size
    told = TimedOut(
        np.concatenate((first.timed_out.reached, np.full(count, -1, np.int64)))[order],
        np.concatenate((first.timed_out.expired, np.zeros(count, first.timed_out.expired.dtype)))[order],
    )
    return Matches(
        np.concatenate((first.start, second.start))[order],
        np.concatenate((first.end, second.end))[order],
        offset,
        np.concatenate((first.position, second.position))[cells],
        np.concatenate((first.mark, second.mark))[cells],
        timed_out=told,
    )
