"""One stream through the timed engine: batches of events in, raw matches out.

What selection strategies and LIMIT leave of the matches of an event, which are all there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from stretto import _jit
from stretto.array_types import I64
from stretto.budget import Budget
from stretto.engines.api import LISTED, NO_VISITS, Matches, Operator, Visits
from stretto.engines.limits import Patience, TooMany
from stretto.engines.shared.counting import AT_LEAST, BEYOND, Unlisted
from stretto.engines.shared.intake import latest
from stretto.engines.timed import structure as s
from stretto.engines.timed.compiled import Compiled
from stretto.engines.timed.intake import TimedIntake
from stretto.engines.timed.kernels import advance
from stretto.engines.timed.listing import refill
from stretto.engines.timed.reaching import PAUSE_AFTER
from stretto.engines.timed.state import State
from stretto.engines.timed.structure import Events
from stretto.engines.timed.waiting import Waiting
from stretto.frame import Section
from stretto.query.query import Consume, Strategy
from stretto.query.totals import Extent, undecided

#: More matches of one interval are not compared with each other.
MOST_COMPARED = 1 << 12


def chosen(strategy: Strategy, limit: int | None, start: I64, end: I64, offset: I64, position: I64) -> I64 | None:
    """The rows that stay, ascending; ``None``: all. Rows ascend by end."""
    rows = np.arange(start.size)
    if strategy in (Strategy.NEXT, Strategy.LAST, Strategy.MAX):
        intervals: dict[tuple[int, int], list[int]] = {}
        for row, interval in enumerate(zip(end.tolist(), start.tolist(), strict=True)):
            intervals.setdefault(interval, []).append(row)
        kept: list[int] = []
        for (last, _), alike in intervals.items():
            kept += _of_interval(strategy, alike, [position[offset[k] : offset[k + 1]] for k in alike], last)
        rows = np.array(sorted(kept), np.int64)
    if limit is not None and rows.size:
        rows = rows[np.lexsort((-start[rows], end[rows]))]
        begins = np.flatnonzero(np.diff(end[rows], prepend=end[rows[0]] - 1))
        number = np.arange(rows.size) - np.repeat(begins, np.diff(begins, append=rows.size))
        rows = np.sort(rows[number < limit])
    return None if rows.size == start.size else rows


def _of_interval(strategy: Strategy, rows: list[int], held: list[I64], end: int) -> list[int]:
    """NEXT and LAST have one best match, and MAX those that no other includes (SEMANTICS: selection strategies)."""
    if len(rows) == 1:
        return rows
    if strategy is Strategy.MAX:
        if len(rows) > MOST_COMPARED:
            raise TooMany(
                end,
                f"completes {len(rows):,} matches of one interval, of which SELECT MAX compares at most {MOST_COMPARED:,}",
                "a narrower WITHIN or GAP has fewer; SELECT NEXT and LAST compare any number",
            )
        sets = [frozenset(one.tolist()) for one in held]
        return [row for row, own in zip(rows, sets, strict=True) if not any(own < other for other in sets)]
    # Which of two holds the first (last) event that only one of them holds: positions compared from that side, a longer one first.
    if strategy is Strategy.NEXT:
        best = min(range(len(rows)), key=lambda k: (*held[k].tolist(), np.inf))
    else:
        best = max(range(len(rows)), key=lambda k: held[k][::-1].tolist())
    # Valuations of the same events are alike.
    return [row for row, own in zip(rows, held, strict=True) if np.array_equal(own, held[best])]


#: What is said of an event whose matches are the same again and again, and what has fewer of them.
NO_NEW = "completes matches, of which the next one was not found"
FEWER = "a SELECT of more variables tells more matches apart; a narrower WITHIN or GAP, or LIMIT, leaves fewer"


class TimedRunner(TimedIntake):
    """A state of a program, and what is kept beside the kernel's arrays.

    Parameters
    ----------
    program
        The compiled query.
    counts, late, capacity, budget, operator
        How it starts (:class:`~stretto.engines.api.Starting`).
    """

    CURSOR, VISITED, TRIGGERS = s.CURSOR, s.VISITED, s.TRIGGERS
    state: State

    def __init__(
        self,
        program: Compiled,
        *,
        counts: bool = False,
        late: str = "error",
        capacity: int = 1 << 12,
        budget: Budget | None = None,
        operator: Operator = LISTED,
    ) -> None:
        super().__init__(program, late=late, operator=operator)
        self.state = State(program, capacity=capacity, budget=budget or Budget())
        parsed, window = program.query.parsed, program.query.window
        registers = self.state.registers
        registers[s.COUNTED] = self.by_rank
        registers[s.VALUATIONS] = program.valuations
        registers[s.DISTINCT] = program.distinct and not program.greedy
        registers[s.GREEDY] = program.greedy
        self.strategy = Strategy.ALL if program.greedy else parsed.strategy
        chooses = self.strategy in (Strategy.NEXT, Strategy.LAST, Strategy.MAX)
        registers[s.WHOLE] = registers[s.DISTINCT] or chooses
        registers[s.LIMIT] = parsed.limit or 0
        registers[s.BY_START] = chooses
        registers[s.CONSUME] = {Consume.PARTITION: 1, Consume.ANY: 2}.get(parsed.consume, 0)
        #: Whether :meth:`advance` gives counts. With LIMIT the few matches are listed.
        self.counts = counts and program.counts and parsed.limit is None
        registers[s.COUNTING] = self.counts
        self.chooses = chooses
        self._events: Events | None = None  # those at hand
        behind = program.steps.behind
        self.waiting = Waiting(window.size, self.state.budget) if behind and window is not None else None

    @property
    def nodes(self) -> int:
        """Nodes of the graph, those included that no match can hold any more until they are collected."""
        return int(self.state.registers[s.NODES] - 1)

    @property
    def nbytes(self) -> int:
        """Bytes that the run holds."""
        waiting = 0 if self.waiting is None else self.waiting.nbytes
        return int(self.state.nbytes + self.intake_nbytes + waiting)

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Read the next events; yields their matches in pieces that fit the output buffers.

        The iterator must be read to its end before the next call; data errors are raised before anything changes. ``silent``:
        no event gives output, and none consumes; partial matches are built as ever.
        """
        self.refuse_if_broken()
        events, classed = self.prepare(batch)
        if self.keys is not None:
            self.state.fit_partitions(self.partitions)
        if self.operator.visited and not events.cls.size:
            self.operator.visit(NO_VISITS, self.partitions)
        yield from self._read(events, silent)
        if self.operator.visited:
            self.until = self._open_after(classed.measures, classed.timed)
        if self.waiting is not None and (now := latest(classed.measures, classed.timed)) is not None:
            yield from self._released(now)
        if self.keys is not None:
            self._sweep_now_and_then()
        self.broken = False

    def _read(self, events: Events, silent: bool) -> Iterator[Matches]:
        """The events to visit through the kernel."""
        cls, part, measure = events.cls, events.part, events.measure
        if not cls.size:
            return
        if self.operator.visited:
            keys = events.rank if self.by_rank else events.position
            visits = Visits(events.position, part, keys, events.low, self.program.begins(cls))
            self.operator.visit(visits, self.partitions)
        behind = self.program.behind[cls]
        spoilers = events.position[behind], part[behind], measure[behind]
        if self.waiting is not None:
            self.waiting.spoil(*spoilers)
        self.state.registers[s.CURSOR] = 0
        self.state.registers[s.SILENT] = silent
        self._events = events
        for _ in self._kernel(events):
            if self.counts:
                yield self.state.drain_counts()
                continue
            if self.state.registers[s.MIXED]:
                raise undecided(self.program.told)
            found, places, begun, ended = self.state.drain()
            if self.chooses:
                kept = chosen(self.strategy, self.program.query.parsed.limit, *found[:4])
                if kept is not None:
                    found, places, begun, ended = found.taken(kept), places[kept], begun[kept], ended[kept]
            if self.waiting is None:
                yield found
            else:
                self.waiting.add(found, places, begun, ended, spoilers)
        self._events = None
        if self.waiting is not None:
            self.waiting.join()

    def _kernel(self, events: Events) -> Iterator[None]:
        """Run the kernel over events; comes back whenever output is to be drained."""
        state = self.state
        registers = state.registers
        patience = Patience(PAUSE_AFTER, NO_NEW, FEWER)
        while True:
            machine = self.program.machine
            if self.counts:
                state.fit_tally()
            arrays = (state.nodes, state.links, state.parts, state.walk, state.out, state.tally)
            match advance(events, machine, *arrays, registers):
                case _jit.DONE:
                    break
                case _jit.OUTPUT_FULL:
                    yield
                case _jit.PAUSED:
                    patience.go_on(int(events.position[registers[s.CURSOR]]), int(registers[s.EMITTED]))
                case _jit.GROW_OUTPUT:
                    state.grow_output(int(events.position[registers[s.CURSOR]]))
                case _jit.GROW_NODES:
                    at = int(registers[s.CURSOR])
                    self._collect_for(events.clock[at].item(), int(registers[s.NEED]))
                case _jit.GROW_STACK:
                    state.grow_walk()
                case _jit.GROW_TABLE:
                    state.grow_table()
                    refill(state.out, registers)
        if registers[s.ROWS]:
            yield

    @property
    def _span(self) -> int:
        """The size of a window of ranks; −1: none."""
        return self.span if self.by_rank else -1

    @property
    def _by_end(self) -> bool:
        """Whether what waits comes in the order of ends, for rows of events, and not of starts."""
        asked = self.program.query.asked
        return asked is not None and asked.scope.extent is Extent.EVENT

    def _released(self, now: int | float | None) -> Iterator[Matches]:
        found = None if self.waiting is None else self.waiting.released(now, by_end=self._by_end)
        if found is not None:
            yield found

    def unlisted(self) -> Unlisted | None:
        """As :class:`~stretto.engines.api.Run` says; where they cannot be counted unlisted, that there are some."""
        state, registers, events = self.state, self.state.registers, self._events
        if not registers[s.BUSY] or events is None:
            return None
        if not self.program.counts:
            return Unlisted(0, 0.0, AT_LEAST)
        found = state.count(int(registers[s.CURSOR]), events, self.program.machine)
        written = int(registers[s.EMITTED])
        rest = found._replace(matches=found.matches - written) if found.matches != BEYOND else found
        return rest.at_most(int(registers[s.LIMIT]) - written) if registers[s.LIMIT] else rest

    def reach(self, value: int | float) -> Iterator[Matches]:
        """Nothing before ``value`` will come: give what waited for that, and free what is out of its window."""
        if not self.has_passed(value) or self.last_time is None:
            return
        yield from self._released(self.last_time)
        self.state.registers[s.LOW] = max(self.state.registers[s.LOW], self.open_from(self.last_time))
        self._sweep()

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: what waited for more is complete."""
        yield from self._released(None)

    # -- what is kept of the past -----------------------------------------------------------------------------------

    def _collect(self) -> None:
        self._collect_for(self.now, 0)

    def _collect_for(self, now: int | float | None, need: int) -> None:
        """Collect when the last event has the clock ``now``, with room for ``need`` more nodes."""
        own = None if self.program.query.clock is None else now
        self.state.collect(self.program.machine, own, self._span, need)

    def _sweep(self) -> None:
        """Collect, and forget the keys of idle partitions when most of them are idle."""
        self._collect()
        alive = self.state.busy(self.partitions, self.last_measure)
        if self.waiting is not None:
            alive[self.waiting.part] = True
        fresh = self._keep(alive)
        if fresh is None:
            return
        self.state.rename(*fresh)
        if self.waiting is not None:
            self.waiting.rename(fresh[0])

    def live(self) -> I64:
        """The rows that partial matches hold (sorted), after collecting what is unreachable."""
        self._collect()
        held = self.state.nodes.position[1 : self.state.registers[s.NODES]]
        if self.waiting is not None:
            found = self.waiting.matches
            held = np.concatenate((held, found.position, found.start, found.end))
        return np.unique(held)

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come, nor what must not come before a match."""
        return super().idle and not self.state.busy(self.partitions, self.last_measure).any()

    @property
    def expires(self) -> int | float | None:
        """As in :class:`~stretto.engines.shared.intake.Intake`; where matches wait for the end of a window, the first such end."""
        last = super().expires
        if last is None or self.waiting is None or not len(self.waiting):
            return last
        times = self.waiting.ended if self._by_end else self.waiting.begun
        first: int | float = times.min().item()
        return first + self.waiting.size

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more; ``None`` when :meth:`live` must be asked."""
        window = self.window is not None and not self.by_rank
        return int(self.state.registers[s.LOW]) if window and self.waiting is None else None

    # -- state --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the state: what is reachable, and what waits."""
        self._collect()
        self.state.save(section)
        self._save_intake(section)
        if self.waiting is not None:
            self.waiting.save(section.sub("waiting"))

    def load(self, section: Section) -> None:
        """Take over a state that :meth:`save` wrote."""
        partitions = self._load_intake(section)
        self.state.load(section, partitions, self.rows)
        if self.waiting is not None:
            self.waiting.load(section.sub("waiting"), partitions, self.rows, len(self.program.marks))
