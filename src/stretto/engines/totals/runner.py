"""One stream whose matches are counted: batches of events in, rows of counts and sums out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import I64
from stretto.budget import Budget
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches
from stretto.engines.shared.counting import Unlisted
from stretto.engines.shared.intake import Intake, keyed, latest
from stretto.engines.tecs.kernels import Machine
from stretto.engines.tecs.runner import renumbered
from stretto.engines.totals import structure as s
from stretto.engines.totals.adding import Values
from stretto.engines.totals.kernels import Arrays, Events, advance
from stretto.engines.totals.plan import TotalsCompiled
from stretto.engines.totals.state import State
from stretto.engines.totals.telling import Telling, shown_keys
from stretto.errors import DataError
from stretto.frame import Section


class TotalsRunner(Intake):
    """A state of a program; the parameters are those of :class:`~stretto.engines.tecs.runner.Runner`."""

    CURSOR, VISITED, TRIGGERS = s.CURSOR, s.VISITED, s.TRIGGERS
    TELLING: ClassVar[type[Telling]] = Telling
    counts = False
    state: State

    def __init__(
        self, program: TotalsCompiled, *, late: str = "error", capacity: int = 1 << 12, budget: Budget | None = None
    ) -> None:
        query, asked = program.query, program.asked
        window = query.window
        counted = window is not None and window.attribute is None
        ranked = counted and bool(query.partition_by or query.schema.stream is not None)
        super().__init__(program, query.parsed.streams, query.partition_by, ranked=ranked, late=late)
        self.program, self.asked, self.panes = program, asked, program.totals.scope.panes
        self.state = State(program.plan(), vary=bool(asked.parts), capacity=capacity, budget=budget)
        attributes = query.schema.attributes
        #: Whether groups by keys are the partitions.
        self.by_partition = bool(asked.keys) and {one.attribute for one in asked.keys} == set(self.key_names)
        self.telling = self.TELLING(asked, self.state, attributes, by_partition=self.by_partition)
        self._batch: tuple[int, pa.RecordBatch] | None = None  # at hand, and the position of its first row
        self._positions = np.zeros(0, np.int64)  # of its visited events
        self._widths = self._guards_of_values()
        self._holding = np.zeros((len(self._widths), 0), np.bool_)

    def _guards_of_values(self) -> list[int]:
        """The guards, as bits, under which events are read for each of the telling's variables."""
        return [sum(1 << guard for guard in self.program.guards_of(one)) for one in self.telling.variables]

    # -- events -------------------------------------------------------------------------------------------------------

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Read the next events; yields rows of what they complete. Data errors are raised before anything changes."""
        self.refuse_if_broken()
        first = self.rows
        events, now = self._prepare(batch)
        self.broken = True
        self._batch = first, batch
        if events is not None:
            yield from self._run(events, silent)
        if now is not None:
            yield from self.telling.closed(now)
        self._batch = None
        if self.keys is not None:
            self._sweep_now_and_then()
        self.broken = False

    def _prepare(self, batch: pa.RecordBatch) -> tuple[Events | None, int | None]:
        """Check the batch and turn it into the events to visit (``None``: there are none), and the pane of its last row."""
        classed = self._classed(batch)
        batch = classed.batch
        member, measures, cls = classed.member, classed.measures, classed.cls
        self.program.refresh()
        rows = self.program.visited(cls, member)
        own = self.state.own
        if own:
            rows = np.arange(batch.num_rows) if member is None else np.flatnonzero(member)
        panes = None if own else self._panes(measures, batch.num_rows)
        if panes is not None:
            rows = rows[_in_a_window(panes[rows], *self._window)]
        values = self._said_by(batch, rows, cls)
        first = self._move(batch, classed)
        now = None
        if panes is not None and panes.size:
            now = self._last_pane(panes, classed.timed)
        asked, part, key = rows, np.zeros(rows.size, np.int64), None
        if self.keys is not None or self.ranked:
            rows, part, key = self._substreams(batch, rows, member, skips=self.program.skips)
            self.state.fit_partitions(self.partitions)
        if own:
            rows, part, key = self._own_panes(rows, part, key)
        if not rows.size:
            return None, now
        if rows.size != asked.size:
            at = np.searchsorted(asked, rows)
            values = values.at(at)
        position = rows + first
        low = np.zeros(0, np.int64)
        if panes is not None:
            key = panes[rows]
        elif not own:
            low = self._low(position, key, measures, rows, first)
        base = self._bases(batch, rows, part)
        return Events(cls[rows], part, position, position if key is None else key, low, base, values), now

    def _said_by(self, batch: pa.RecordBatch, rows: I64, cls: NDArray[np.int32]) -> Values:
        """What some rows have to say: values as integers and as reals, where there are any, and numbers of groups' parts."""
        if not self._widths or not rows.size:
            return self.telling.values(batch, rows, [])
        self._learn_classes()
        there = keyed(batch, self.equal)
        mine = [held[cls[rows]] for held in self._holding]
        return self.telling.values(batch, rows, mine if there is None else [held & there[rows] for held in mine])

    def _learn_classes(self) -> None:
        """By variable and class: whether an event of the class may be one of the variable."""
        vectors = self.program.classifier.vectors
        have = self._holding.shape[1]
        if have < len(vectors):
            fresh = [[bool(vector & width) for vector in vectors[have:]] for width in self._widths]
            self._holding = np.concatenate([self._holding, np.array(fresh, np.bool_)], axis=1)

    def _bases(self, batch: pa.RecordBatch, rows: I64, part: I64) -> I64:
        """The group by keys of each row; rows of events show the keys of their event."""
        if self.state.extent == s.OF_EVENT:
            return np.zeros(rows.size, np.int64)
        base, bases = self.telling.learn(batch, rows, part), self.telling.bases
        if self.asked.keys and not self.asked.parts:
            self.state.fit_groups(self.partitions if bases is None else len(bases))
        return base

    # -- windows ------------------------------------------------------------------------------------------------------

    @property
    def _window(self) -> tuple[int, int]:
        """Panes of a window, and between the beginnings of windows."""
        scope = self.state.plan.scope
        return int(scope[s.SIZE]), int(scope[s.SLIDE])

    def _panes(self, measures: NDArray[np.generic] | None, rows: int) -> I64 | None:
        """The pane of each row; ``None``: rows are not about windows."""
        if self.panes is None:
            return None
        if self.panes.attribute is None:
            return (np.arange(rows) + self.rows) // self.panes.width
        assert measures is not None
        return np.asarray(measures, np.int64) // self.panes.width

    def _own_panes(self, rows: I64, part: I64, rank: I64 | None) -> tuple[I64, I64, I64]:
        """The visited rows that are in windows of the events of their key: rows, partitions, and panes of these windows."""
        assert self.panes is not None
        assert rank is not None
        panes = rank // self.panes.width
        inside = _in_a_window(panes, *self._window)
        return rows[inside], part[inside], panes[inside]

    def _last_pane(self, panes: I64, timed: NDArray[np.bool_] | None) -> int | None:
        assert self.panes is not None
        if self.panes.attribute is None:
            return self.rows // self.panes.width
        last = latest(panes, timed)
        return None if last is None else int(last)

    # -- the kernel ---------------------------------------------------------------------------------------------------

    def _run(self, events: Events, silent: bool) -> Iterator[Matches]:
        state, program = self.state, self.program
        registers = state.registers
        registers[s.CURSOR] = 0
        self._positions = events.position
        while True:
            machine = self._machine()
            if silent:  # no state is final, so that nothing is added up
                machine = machine._replace(kind=machine.kind & ~np.uint8(1))
            status = advance(
                events,
                machine,
                Arrays(state.plan, state.store, state.head, state.work, state.sums, state.rows, registers),
            )
            if status == _jit.DONE:
                break
            if status == _jit.TRANSITION_MISSING:
                program.determinize(int(registers[s.MISSING_STATE]), int(registers[s.MISSING_CLASS]))
            else:
                yield from self._mended(status)
        if registers[s.ROWS]:
            yield from self._drained()

    def _machine(self) -> Machine:
        """The automaton as far as it is known, with all of whose marks the plan is."""
        return self.program.machine

    def _mended(self, status: int) -> Iterator[Matches]:
        """What a kernel stopped for: room that is missing, or what 64 bits do not hold."""
        if status == _jit.OUTPUT_FULL:
            yield from self._drained()
            self.state.widen()
        elif status == _jit.OVERFLOW:
            raise self._overflow()
        elif status != _jit.PAUSED:
            self.state.grow(status)

    def _overflow(self) -> IntegerOverflow:
        """What 64 bits do not hold, at the event at hand and of its key."""
        if self._batch is None or self.cursor >= self._positions.size:
            return self.telling.overflow()
        row = int(self._positions[self.cursor])
        first, batch = self._batch
        return self.telling.overflow(row, shown_keys(self.key_names, batch, row - first))

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _drained(self) -> Iterator[Matches]:
        """Take the rows out of the output buffers."""
        state, keys = self.state, None
        if state.extent == s.OF_EVENT:
            keys = []
            if self.asked.keys and self._batch is not None:
                first, batch = self._batch
                at = pa.array(state.rows.end[: int(state.registers[s.ROWS])] - first)
                keys = [batch.column(one.attribute).take(at) for one in self.asked.keys]
        return self.telling.drained(keys)

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: give the rows of the whole table, and those of windows that are open."""
        yield from self.telling.finish()

    def reach(self, value: int | float) -> Iterator[Matches]:
        """Nothing before ``value`` will come: give the windows that are over, and free what is out of its window."""
        name = self.schema.time
        if name is None:
            raise DataError("advance(time) needs a time column: pass time='…'")
        if self.last_time is None or value > self.last_time:
            self.last_time = value
        if self.window is None or self.window.attribute != name:
            return
        self.last_measure = self.last_time if self.late_policy == "error" else self.last_measure
        if self.panes is not None:
            yield from self.telling.closed(int(self.last_time) // self.panes.width)
        else:
            low = self.state.registers[s.LAST_LOW]
            self.state.registers[s.LAST_LOW] = max(low, self.open_from(self.last_time))
        self._sweep()

    # -- what is kept of the past -----------------------------------------------------------------------------------

    @property
    def _low_now(self) -> int:
        """The least start that may still be in a window."""
        registers = self.state.registers
        if self.state.extent == s.OF_WINDOW:
            # Before the first event it is beyond 64 bits.
            return max(int(registers[s.NEXT]) * self._window[1], s.LOWEST)
        return int(registers[s.LAST_LOW])

    def _sweep(self) -> None:
        """Release idle partitions, and forget their keys when most of them are idle and nothing is to be told of them."""
        state = self.state
        if state.own and self.panes is not None:  # no key is forgotten, since its windows count from its first event
            size, slide = self._window
            state.sweep(((self.counter // self.panes.width - size) // slide + 1) * slide)
            return
        state.sweep(self.counter - self.span if self.ranked else np.full(1, self._low_now, np.int64))
        alive = state.head[: self.partitions] != 0
        grouped = self.by_partition and state.extent != s.OF_EVENT  # rows of events are told at once
        if grouped:
            told = state.groups if not self.asked.parts else state.sums.base[: int(state.registers[s.GROUPS])]
            alive = alive.copy()
            alive[told] = True
        fresh = self._keep(alive)
        if fresh is None:
            return
        renamed, rows = fresh
        state.renumber(renamed, rows, groups=grouped and not self.asked.parts)
        if grouped:
            self.telling.said.keep(rows)
            if self.asked.parts:
                state.rename_bases(renamed)

    def live(self) -> I64:
        """The rows that a row to come may name: where the first of partial matches begin."""
        if self.asked.first < 0:
            return np.zeros(0, np.int64)
        return self.state.firsts(self.asked.first)

    @property
    def idle(self) -> bool:
        """Whether no event so far matters to what is to come: windows that count events do so from the first one on."""
        self._sweep()
        if (
            self.panes is not None
            and self.panes.attribute is None
            and (self.counter.any() if self.state.own else self.rows)
        ):
            return False
        return not self.state.head.any() and not (self.state.extent != s.OF_EVENT and self.state.groups.size)

    @property
    def oldest(self) -> int | None:
        """Rows before this one can be named by no row to come; ``None`` when :meth:`live` must be asked."""
        if self.asked.extent != s.OF_EVENT:
            return self.rows
        return None if self.asked.first >= 0 else int(self.state.registers[s.LAST_LOW])

    @property
    def expires(self) -> int | float | None:
        """When the next window ends that may have a row; where none has matches, the last that what was read may be in.

        ``None``: nothing is held, or time alone ends nothing.
        """
        if self.panes is None or self.panes.attribute != self.schema.time or self.last_time is None:
            return super().expires if self.panes is None else None
        size, slide = self._window
        if self.state.registers[s.LIVE]:
            return (int(self.state.registers[s.NEXT]) * slide + size) * self.panes.width
        if not self.state.head.any():
            return None
        last = int(self.last_time) // self.panes.width // slide
        return (last * slide + size) * self.panes.width

    @property
    def nodes(self) -> int:
        """Words of the arena that were given out."""
        return int(self.state.registers[s.TOP])

    @property
    def nbytes(self) -> int:
        """Bytes that the run holds."""
        return int(self.state.nbytes + self.intake_nbytes + self.telling.nbytes)

    def unlisted(self) -> Unlisted | None:
        """Nothing waits to be listed."""
        return None

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the state: states of the automaton by what they stand for, as their numbers are this process's."""
        self.state.save(section)
        determinizer = self.program.determinizer
        states = self.state.states(section.arrays["records"], len(determinizer.states))
        section.values["states"] = {int(n): [hex(mask) for mask in determinizer.states[n]] for n in states}
        self.telling.save(section)
        self._save_intake(section)

    def retype(self, section: Section, old: Intake, unknown: frozenset[str]) -> None:
        """Make the numbers fit the types here."""
        assert isinstance(old, TotalsRunner)
        self.telling.retype(section, old.telling, unknown)

    def load(self, section: Section) -> None:
        """Take over a state that :meth:`save` wrote."""
        partitions = self._load_intake(section)
        program = self.program
        states = renumbered(
            section.values["states"], lambda masks: program.intern(tuple(int(one, 16) for one in masks))
        )
        self.telling.load(section)
        bases = self.telling.bases
        self.state.load(section, partitions, states, partitions if bases is None else len(bases), self.rows)
        begins = self.live()
        if begins.size and not 0 <= begins[0] <= begins[-1] < self.rows:
            raise ValueError("a match begins with an event that has not come")
        program.refresh()


def _in_a_window(panes: I64, size: int, slide: int) -> NDArray[np.bool_]:
    """Which panes are in a window."""
    return panes % slide < size if slide > size else np.ones(panes.size, np.bool_)
