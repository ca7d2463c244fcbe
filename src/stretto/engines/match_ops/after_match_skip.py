"""A query with KEEP or AFTER MATCH: the run of another engine, of whose matches one stays for each start.

What a start is, and when one is decided, stands in :mod:`stretto.engines.match_ops.after_match_skip_kernel`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I64, Bits
from stretto.budget import Budget, described_bytes
from stretto.engines.api import NO_VISITS, Matches, Operator, Reached, Starting, Visits
from stretto.engines.limits import TooMany
from stretto.engines.match_ops.after_match_skip_kernel import (
    AT,
    CLOSED,
    COUNT,
    ENTERED,
    GIVEN,
    REGISTERS,
    ROW,
    SWEEP_AT_LEAST,
    Found,
    Queues,
    Rule,
    Starts,
    close,
    walk,
)
from stretto.engines.match_ops.wrapper import AroundProgram, MachineRun
from stretto.engines.programs import NfabProgram, Program, TimedProgram
from stretto.engines.shared.counting import BEYOND
from stretto.engines.store import bytes_of, grown, zeros
from stretto.frame import Section
from stretto.query.query import Keep, Skip

if TYPE_CHECKING:
    from stretto.engines.nfab.runner import NfabRunner
    from stretto.engines.tecs.runner import Runner
    from stretto.engines.timed.runner import TimedRunner

#: What has fewer matches.
FEWER = "skip_till_next_match, a narrower WITHIN or stricter conditions have fewer; CEQL looks at one for each interval"

#: A key above all others.
LAST_OF_ALL = (1 << 62) - 1


class Keeper(Operator):
    """The starts of one run, and the best match of each.

    Parameters
    ----------
    keep
        What is asked.
    marks
        The variables of each mark.
    order
        The variables in the order of the pattern's components, where matches of the same events may differ by them.
    waits
        Whether matches come later than the event that completes them.
    timed
        Whether windows measure an attribute.
    """

    visited = True

    def __init__(
        self, keep: Keep, marks: Sequence[frozenset[str]], order: Sequence[str], *, waits: bool, timed: bool
    ) -> None:
        self.keep, self.marks, self.order = keep, marks, order
        early = not keep.longest and not waits
        self.rule = Rule(longest=keep.longest, early=early, by_part=False, waits=waits, timed=timed)
        self.starts = zeros(Starts, 8, open=np.bool_)
        self.queues = zeros(Queues, 1)
        self.registers = np.zeros(REGISTERS, np.int64)
        self.registers[[COUNT, CLOSED]] = 1
        self.visits = NO_VISITS
        #: Where the matches to list begin at least, by visited event.
        self.floor = np.zeros(0, np.int64)
        self.held = Matches.none()
        self.found = self._read(self.held)
        self.passed = 0  #: positions below this are no starts unless they stand in a queue
        self.kept_starts = 0
        self.looked = 0  #: rows at the beginning of those held that starts have looked at, and all are asked for

    # -- what the run tells -------------------------------------------------------------------------------------------

    def begin(self, *, by_part: bool) -> None:
        """A run begins, whose windows may count the events of each partition."""
        self.rule = self.rule._replace(by_part=by_part)

    def visit(self, visits: Visits, partitions: int) -> I64:
        """The events that the run visits next. Gives where the matches to list begin at least, which later calls may raise."""
        self._make_room(visits.position.size, partitions)
        self.visits = visits
        self.registers[[AT, ENTERED]] = 0
        self.floor = np.zeros(visits.position.size, np.int64)
        self._raise(0)
        return self.floor

    def take(self, piece: Matches | None, until: int) -> Matches | None:
        """The matches that stay, of more that are found, when all events before number ``until`` have been read."""
        if piece is not None:
            self.held = Matches.joined([self.held, piece])
            self.found = self._read(self.held)
        given = np.empty((2, self._starts + until - int(self.registers[AT]) + 1), np.int64)
        walk(until, self.visits, self.found, self.starts, self.queues, given, self.registers, self.rule)
        if until < self.visits.position.size:
            self.passed = int(self.visits.position[until])
            self._raise(until)
        elif until:
            self.passed = int(self.visits.position[-1]) + 1
        return self._given(given)

    def close(self, low: int) -> Matches | None:
        """The matches that stay, as no more begin with an event below ``low``."""
        given = np.empty((2, self._starts), np.int64)
        rule = self.rule._replace(by_part=False)
        close(low, self.found, self.starts, self.queues, given, self.registers, rule)
        return self._given(given)

    def look(self, piece: Matches) -> None:
        """More matches of starts that are not closed."""
        self.held = Matches.joined([self.held, piece])
        self.found = self._read(self.held)
        none = np.empty((2, 0), np.int64)
        walk(0, NO_VISITS, self.found, self.starts, self.queues, none, self.registers, self.rule._replace(waits=True))

    def _raise(self, until: int) -> None:
        """No match is asked for that begins before the first start of its queue."""
        first = self.queues.first[self.visits.part[until:]]
        nothing = 0 if self.rule.by_part else self.passed
        self.floor[until:] = np.where(first > 0, self.starts.key[first], nothing)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _read(self, rows: Matches) -> Found:
        """Matches as the kernel reads them."""
        rank = np.zeros(rows.mark.size, np.int64)
        if self.order and rows.mark.size:
            places = [min(map(self.order.index, labels), default=0) for labels in self.marks]
            rank = np.array(places, np.int64)[rows.mark]
        follows = rows.start + 1
        if self.keep.skip is Skip.PAST:
            follows = rows.end + 1
        elif self.keep.variable is not None and rows.mark.size:
            holds = np.array([self.keep.variable in labels for labels in self.marks], np.bool_)
            cells = np.flatnonzero(holds[rows.mark])
            if self.keep.skip is Skip.FIRST:
                cells = cells[::-1]  # of several the last one counts
            row = np.searchsorted(rows.offset, cells, side="right") - 1
            at = rows.start.copy()
            at[row] = rows.position[cells]
            follows = np.maximum(follows, at)
        return Found(rows.start, rows.end, rows.offset, rows.position, rank, follows)

    def _given(self, given: I64) -> Matches | None:
        """The matches of some rows; the others that a start still has are kept."""
        chosen, known = given[:, : self.registers[GIVEN]]
        if not chosen.size and self.registers[ROW] == self.looked:
            return None
        found = self.held.taken(chosen)._replace(known=known) if chosen.size else None
        best = self.starts.best[: self._starts]
        wanted = np.flatnonzero(self.starts.open[: self._starts] & (best > 0))
        ahead = int(self.registers[ROW])  # those from here on wait for their events
        waiting = np.arange(ahead, self.held.start.size)
        if wanted.size + waiting.size < self.held.start.size:
            rows = np.concatenate((best[wanted] - 1, waiting))
            best[wanted] = np.arange(1, wanted.size + 1)
            self.registers[ROW] = wanted.size
            self.held = self.held.taken(rows)
            self.found = self._read(self.held)
        self.looked = int(self.registers[ROW])
        return found

    # -- starts -------------------------------------------------------------------------------------------------------

    @property
    def _starts(self) -> int:
        return int(self.registers[COUNT])

    def _make_room(self, events: int, partitions: int) -> None:
        if self._starts > 2 * self.kept_starts + SWEEP_AT_LEAST:
            self._sweep()
        need = self._starts + events
        if need > self.starts.position.size:
            self.starts = grown(self.starts, 2 * need)
        if partitions > self.queues.first.size:
            self.queues = grown(self.queues, 2 * partitions)

    def _sweep(self) -> None:
        """Leave out the starts that are gone."""
        count = self._starts
        alive = np.flatnonzero(self.starts.open[1:count]) + 1
        closed = int(np.searchsorted(alive, self.registers[CLOSED])) + 1
        fresh = zeros(Starts, max(8, 2 * alive.size), open=np.bool_)
        for new, old in zip(fresh, self.starts, strict=True):
            new[1 : alive.size + 1] = old[alive]
        self.starts = fresh
        self.registers[[COUNT, CLOSED]] = alive.size + 1, closed
        self.kept_starts = alive.size
        self._queue()

    def _queue(self) -> None:
        """The queues of open starts that stand one behind the other."""
        count = self._starts
        for array in self.queues:
            array[:] = 0
        order = np.argsort(self.starts.part[1:count], kind="stable") + 1
        part = self.starts.part[order]
        ends = np.flatnonzero(np.diff(part, append=-1))
        begins = np.flatnonzero(np.diff(part, prepend=-1))
        following = np.append(order[1:], 0)
        following[ends] = 0
        self.starts.next[order] = following
        self.queues.first[part[begins]] = order[begins]
        self.queues.last[part[ends]] = order[ends]

    def partitions(self, count: int) -> Bits:
        """Which of so many partitions have starts, or events that may become one."""
        found = np.zeros(count, np.bool_)
        known = self.queues.first[:count] > 0
        found[: known.size] = known
        found[self.visits.part[self.registers[AT] :]] = True
        return found

    def renumber(self, fresh: I64) -> None:
        """Partitions get other numbers; those that have no starts may get none."""
        self._sweep()
        own = slice(1, self._starts)
        self.starts.part[own] = fresh[self.starts.part[own]]
        self.visits = self.visits._replace(part=fresh[self.visits.part])
        self._queue()

    @property
    def waits(self) -> bool:
        """Whether a match is kept that may be given."""
        return bool(self.held.start.size)

    @property
    def first(self) -> int:
        """The first start that holds back a match."""
        count = self._starts
        parts = np.unique(self.starts.part[:count][self.starts.open[:count] & (self.starts.best[:count] > 0)])
        return int(self.starts.position[self.queues.first[parts]].min())

    def live(self) -> I64:
        """The positions that matches to be given hold (sorted)."""
        return np.unique(np.concatenate((self.held.start, self.held.end, self.held.position)))

    @property
    def nbytes(self) -> int:
        return bytes_of(self.starts, self.queues, self.found, (self.floor, self.held.mark))

    # -- state --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the starts that stand in queues, and their matches."""
        self._sweep()
        own = slice(1, self._starts)
        for name in ("position", "key", "part", "best"):
            section.arrays[f"starts.{name}"] = getattr(self.starts, name)[own].copy()
        self.held.keep(section)
        section.values |= {"closed": int(self.registers[CLOSED]), "passed": self.passed}

    def load(self, section: Section, run: Reached) -> None:
        """Take over, from the beginning, what :meth:`save` wrote of a run."""
        partitions = run.partitions
        count = section.numbers("starts.position", least=0, below=run.rows, rising=True).size
        arrays = {
            f"starts.{name}": section.numbers(f"starts.{name}", size=count)
            for name in ("position", "key", "part", "best")
        }
        section.numbers("starts.part", least=0, below=max(1, partitions))
        self._make_room(count, partitions)
        for name in ("position", "key", "part", "best"):
            getattr(self.starts, name)[1 : count + 1] = arrays[f"starts.{name}"]
        self.starts.open[1 : count + 1] = True
        self.registers[[COUNT, CLOSED]] = count + 1, max(1, section.count("closed", most=count + 1))
        self._queue()
        self.held = Matches.kept(section, run.rows, len(self.marks))
        section.numbers("starts.best", least=0, below=max(1, self.held.start.size + 1))
        self.found = self._read(self.held)
        self.registers[ROW] = self.looked = self.held.start.size
        self.passed = section.count("passed", most=run.rows)


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

    @property
    def reader(self) -> Program | NfabProgram | TimedProgram:
        """What asks single events."""
        return self.machine

    def started(self, how: Starting) -> KeptRun:
        """A run from the beginning of a stream; matches are never counted unlisted."""
        labels = how.labels or self.keep.variable is not None
        waits = self.machine.query.parsed.last_negation is not None
        window = self.machine.query.window
        timed = window is not None and window.attribute is not None
        keeper = Keeper(self.keep, self.marks, self.order if labels else (), waits=waits, timed=timed)
        run = self.machine.started(how._replace(labels=labels, counts=False, operator=keeper))
        return KeptRun(self, run, keeper, how.budget or Budget())


class KeptRun(MachineRun):
    """A :class:`~stretto.engines.api.Run`."""

    BESIDE = "keeper"
    run: Runner | NfabRunner | TimedRunner

    def __init__(
        self, program: KeptProgram, run: Runner | NfabRunner | TimedRunner, keeper: Keeper, budget: Budget
    ) -> None:
        super().__init__(program, run, keeper)
        self.keeper, self.budget = keeper, budget
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
