"""What comes before the kernels of the timed engine: events with their clocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import Bits
from stretto.engines.api import LISTED, Operator
from stretto.engines.shared.intake import FALLS, Classed, Intake
from stretto.engines.timed.compiled import Compiled
from stretto.engines.timed.structure import Events
from stretto.frame import Section


class TimedIntake(Intake):
    """The part of a run that reads columns.

    Parameters
    ----------
    program
        The compiled query.
    late
        What to do with an event before the last one in time: ``"error"``, or ``"drop"`` and count it.
    operator
        What is done with the matches.
    """

    SCALARS = Intake.SCALARS | {"last_clock": Section.measure, "now": Section.measure}

    def __init__(self, program: Compiled, *, late: str, operator: Operator = LISTED) -> None:
        query = program.query
        apart = bool(query.partition_by or query.schema.stream is not None)
        counted = query.window is not None and query.window.attribute is None
        ranked = (apart and (counted or program.adjoins)) or (program.adjoins and late == "drop")
        super().__init__(program, query.parsed.streams, query.partition_by, ranked=ranked, late=late, operator=operator)
        self.program = program
        #: Whether the window counts the events of a partition.
        self.by_rank = counted and ranked
        self.last_clock: int | float | None = None
        self.now: int | float | None = None  #: the clock of the last visited event

    def check(self, table: pa.Table) -> None:
        super().check(table)
        self._clocks(table, self._members(table))

    def prepare(self, batch: pa.RecordBatch) -> tuple[Events, Classed]:
        """The events to visit, and what was told of all rows.

        Raises
        ------
        DataError
            The events are not what the query needs; then nothing has changed.
        """
        member = self._members(batch)
        measures, timed, last_measure = self._measure(batch, member)
        clocks, last_clock = self._clocks(batch, member)
        member, last_time, late = self._in_time(batch, member, last_measure)
        batch = self._with_moving(batch, member)
        cls = self._classes(batch, member)
        self.program.refresh()
        self.broken = True
        classed = Classed(batch, member, measures, timed, cls, last_measure, last_time, late)
        first = self._move(batch, classed)
        self.last_clock = last_clock
        relevant = self.program.relevant[cls]
        rows = np.flatnonzero(relevant if member is None else relevant & member)
        part, rank = np.zeros(rows.size, np.int64), None
        if self.keys is not None or self.ranked:
            rows, part, rank = self._substreams(batch, rows, member, skips=True)
        position = rows + first
        ranks = position if rank is None else rank
        low = self._low(position, ranks if self.by_rank else None, measures, rows, first)
        clock = ranks if clocks is None else clocks[rows]
        measure = np.zeros(rows.size, self.program.types[1]) if measures is None else measures[rows]
        if rows.size:
            self.now = clock.max().item()
        mine = [self.program.selecting(name)[cls[rows]] for name in self.operator.variables]
        self.operator.see(batch, rows, position, mine)
        return Events(cls[rows], part, position, ranks, low, clock, measure), classed

    def _clocks(
        self, batch: pa.RecordBatch | pa.Table, member: Bits | None
    ) -> tuple[NDArray[Any] | None, int | float | None]:
        """What gaps measure of every row, checked not to decrease, and its last value."""
        name = self.program.query.clock
        if name is None:
            return None, None
        if name == self.schema.time and self.late_policy == "drop":
            return self._values(batch, name, "gaps", member)[0], None
        clocks, _, last = self._ordered(batch, name, self.last_clock, member, FALLS)
        return clocks, last

    def has_passed(self, value: int | float) -> bool:
        """Nothing before ``value`` will come; whether windows close by that."""
        if self.last_time is None or value > self.last_time:
            self.last_time = value
        name = self.schema.time
        if self.program.query.clock == name and self.now is not None:
            self.now = max(self.now, self.last_time)
            if self.late_policy == "error":
                self.last_clock = self.now
        if self.measured is None or self.window is None or self.window.attribute != name:
            return False
        if self.late_policy == "error":
            self.last_measure = self.last_time
        return True
