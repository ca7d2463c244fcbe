"""One stream through the greedy engine: batches of events in, the matches that stay out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from stretto import _jit
from stretto.array_types import I64
from stretto.budget import Budget
from stretto.engines.api import Matches
from stretto.engines.greedy import structure as s
from stretto.engines.greedy.kernels import advance, close, pass_time
from stretto.engines.greedy.state import State
from stretto.engines.greedy.structure import Rules
from stretto.engines.timed.compiled import Compiled
from stretto.engines.timed.intake import TimedIntake
from stretto.frame import Section
from stretto.query.query import Keep, Skip

SKIPS = {Skip.NEXT: s.NEXT, Skip.PAST: s.PAST, Skip.FIRST: s.FIRST, Skip.LAST: s.LAST}


class GreedyRunner(TimedIntake):
    """A state of a program, and what is kept beside the kernel's arrays.

    Parameters
    ----------
    program
        The automaton, that of the timed engine.
    keep
        Which matches stay.
    marks
        The variables of each mark.
    late, capacity, budget
        How it starts (:class:`~stretto.engines.api.Starting`).
    """

    CURSOR, VISITED, TRIGGERS = s.CURSOR, s.VISITED, s.TRIGGERS
    counts = False
    state: State

    def __init__(
        self,
        program: Compiled,
        keep: Keep,
        marks: Sequence[frozenset[str]],
        *,
        late: str,
        capacity: int,
        budget: Budget,
    ) -> None:
        super().__init__(program, late=late)
        query = program.query
        window = query.window
        time = self.schema.time
        timed = (time is not None and query.clock == time) + 2 * (
            window is not None and window.attribute == time is not None
        )
        self.state = State(program, timed=timed, capacity=capacity, budget=budget)
        registers = self.state.registers
        registers[s.LONGEST] = keep.longest
        registers[s.SKIP] = SKIPS[keep.skip]
        registers[s.TIMED] = timed
        registers[s.WINDOWED] = window is not None
        registers[s.COUNTED] = self.by_rank
        machine = program.machine
        late_steps = np.zeros(machine.first.size, np.bool_)
        late_steps[machine.source[machine.late >= 0]] = True
        holds = np.array([keep.variable in labels for labels in marks], np.bool_)
        self._rules = Rules(late_steps, holds, machine.window)

    @property
    def nodes(self) -> int:
        """Nodes of the best ways, those included that no match can hold any more until they are collected."""
        return int(self.state.registers[s.NODES] - 1)

    @property
    def nbytes(self) -> int:
        """Bytes that the run holds."""
        return int(self.state.nbytes + self.intake_nbytes)

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Read the next events; yields the matches that are decided. The iterator must be read to its end before the next call."""
        self.refuse_if_broken()
        events, _ = self.prepare(batch)
        if self.keys is not None:
            self.state.fit_partitions(self.partitions)
        self.state.registers[s.CURSOR] = 0
        self.state.registers[s.TAKEN] = 0
        yield from self._given(lambda: advance(events, *self._machine, *self._arrays), events.position, silent)
        if self.state.registers[s.TIMED]:
            yield from self._passed(self.last_time, silent)
        if self.keys is not None:
            self._sweep_now_and_then()
        self.broken = False

    @property
    def _machine(self) -> tuple[Any, Rules]:
        return self.program.machine, self._rules

    @property
    def _arrays(self) -> tuple[Any, ...]:
        state = self.state
        return state.starts, state.nodes, state.parts, state.timers, state.out, state.registers

    def _given(self, kernel: Callable[[], int], position: I64, silent: bool = False) -> Iterator[Matches]:
        """Run a kernel to its end; gives what it writes."""
        state, registers = self.state, self.state.registers
        while (status := kernel()) != _jit.DONE:
            event = int(position[registers[s.CURSOR]]) if registers[s.CURSOR] < position.size else self.rows - 1
            match status:
                case _jit.OUTPUT_FULL:
                    found = state.drain()
                    if not silent:
                        yield found
                case _jit.GROW_OUTPUT:
                    state.grow_output()
                case _jit.GROW_NODES:
                    state.collect(event, int(registers[s.NEED]))
                case _jit.GROW_STACK:
                    state.grow_starts(event)
        if registers[s.ROWS]:
            found = state.drain()
            if not silent:
                yield found

    def _passed(self, now: int | float | None, silent: bool = False) -> Iterator[Matches]:
        """Time has come to ``now``: give what was decided before."""
        if now is None:
            return
        reached = self.state.due.type(now)
        nowhere = np.zeros(0, np.int64)
        yield from self._given(lambda: pass_time(reached, *self._machine, *self._arrays), nowhere, silent)

    def reach(self, value: int | float) -> Iterator[Matches]:
        """Nothing before ``value`` will come: give what is decided by that."""
        self.has_passed(value)
        if self.state.registers[s.TIMED] and self.last_time is not None:
            yield from self._passed(self.last_time)
            self._sweep()

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: all is decided."""
        state = self.state
        state.registers[s.CURSOR] = 0
        order = state.opened()

        def kernel() -> int:
            held: tuple[Any, ...] = state.starts, state.nodes, state.parts, state.out, state.registers
            return close(order, *self._machine, *held)

        yield from self._given(kernel, np.zeros(0, np.int64))

    def unlisted(self) -> None:
        """Nothing waits to be listed."""

    # -- what is kept of the past -----------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Collect, and forget the keys of idle partitions when most of them are idle."""
        self.state.collect(self.rows - 1, 0)
        fresh = self._keep(self.state.busy(self.partitions))
        if fresh is not None:
            self.state.rename(*fresh)

    def live(self) -> I64:
        """The rows that partial matches hold (sorted), after collecting what is unreachable."""
        self.state.collect(self.rows - 1, 0)
        return np.unique(self.state.nodes.position[1 : self.state.registers[s.NODES]])

    @property
    def idle(self) -> bool:
        """Whether no start is open, nor the window of a moving aggregate."""
        return not self.state.starts.used.any() and self.open_windows is None

    @property
    def expires(self) -> int | float | None:
        """The time at which the first start may be closed; ``None``: time closes none, or there is none."""
        timers = self.state.registers[s.TIMERS]
        return self.state.timers.time[0].item() if timers else None

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more."""
        starts = self.state.starts
        return int(starts.position[starts.used].min()) if starts.used.any() else self.rows

    # -- state --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the state: what open starts lead to."""
        self.state.collect(self.rows - 1, 0)
        self.state.save(section)
        self._save_intake(section)

    def load(self, section: Section) -> None:
        """Take over a state that :meth:`save` wrote."""
        partitions = self._load_intake(section)
        self.state.load(section, partitions, self.rows)
