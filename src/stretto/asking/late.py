"""Events that come too late for a stream: which a table in the order of arrival has, and how late each is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.explaining.answer import Answer, NearMiss, Reason
from stretto.matching.reorder import Cleanse

#: Late rows that an answer names.
NAMED = 5


@dataclass(frozen=True)
class Late:
    """The rows of a table that a stream with ``disorder=`` would leave out.

    >>> late = Late.of(pa.table({"t": [5, 9, 3, 8]}), "t", disorder=2, time_unit=None)
    >>> late.rows.tolist(), late.told([2])
    ([2], 'row 2 (t is 3) came behind row 1 (t is 9)')
    """

    table: pa.Table
    time: str
    disorder: Any
    rows: I64

    @classmethod
    def of(cls, table: pa.Table, time: str, disorder: Any, time_unit: str | None) -> Late:
        """Those of a table in the order in which its rows have arrived."""
        cleanse = Cleanse(time=time, disorder=disorder, late="drop", time_unit=time_unit)
        let = cleanse.let(table.select([time])).rows, cleanse.end().rows
        return cls(table, time, disorder, np.setdiff1d(np.arange(table.num_rows), np.concatenate(let)))

    @property
    def on_time(self) -> pa.ChunkedArray:
        """Which rows are not late, as booleans."""
        found = np.ones(self.table.num_rows, np.bool_)
        found[self.rows] = False
        return pa.chunked_array([found])

    def told(self, rows: list[int]) -> str:
        """Behind which row of a later time each of some rows came."""
        times = self.table[self.time]
        told = []
        for row in rows[:NAMED]:
            before = times.slice(0, row).to_numpy()
            at = int(before.argmax())
            told.append(
                f"row {row} ({self.time} is {times[row].as_py()}) came behind row {at} ({self.time} is {times[at].as_py()})"
            )
        more = len(rows) - NAMED
        return "; ".join(told) + (f"; and {more:,} more" if more > 0 else "")

    def answered(self, whole: Answer, on_time: Answer | None, most: int) -> Answer:
        """The answer over the events on time, and what those that are late would change.

        ``whole``: the answer over all events. ``on_time`` is ``None`` where the event that is asked about is late.
        """
        there = self.rows.tolist()
        if on_time is None:
            assert whole.event is not None
            reason = self._reason([whole.event])
            given = (NearMiss((), whole.match),) if whole.match is not None else whole.misses
            misses = tuple(replace(miss, reasons=(reason, *miss.reasons)) for miss in given)
            return replace(whole, match=None, misses=misses)
        misses = on_time.misses
        if whole.match is not None:
            held = {row for rows in whole.match.values() for row in rows}
            reason = self._reason([row for row in there if row in held] or there)
            misses = (NearMiss((reason,), whole.match), *misses)[:most]
        named = ", ".join(map(str, there[:NAMED])) + ", …" * (len(there) > NAMED)
        count = "1 event came" if len(there) == 1 else f"{len(there):,} events came"
        note = f"{count} too late for disorder={self.disorder!r}: row{'s' * (len(there) > 1)} {named}"
        return replace(on_time, misses=misses, notes=(*on_time.notes, note))

    def _reason(self, rows: list[int]) -> Reason:
        text = f"disorder={self.disorder!r}"
        values = tuple((self.time, self.table[self.time][row].as_py()) for row in rows[:NAMED])
        return Reason("late", text, self.told(rows), tuple(rows[:NAMED]), values)
