"""A bucket of keys of a dataflow that runs over streams: one plan with keys, and its state as bytes. It knows nothing of Spark.

Rows are not held until the watermark: a dataflow takes them in any order, gives results at once and revises them later. The watermark
is the punctuation of all inputs. A row that would change what lies before it is late: an insertion by its start, a retraction by
the end that it gives. A retraction of what is not there goes the same way, since what it takes back was late itself, or never came.
A bucket in which nothing lives any more has no state.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.dataflow.run.rows import NEVER
from stretto.dataflow.run.values import checked_time
from stretto.errors import DataError
from stretto.frame import arrow_table
from stretto.spark.dataflows.groups import OUTPUT, Groups, by_input, in_order
from stretto.spark.streaming.keeping import WAIT, AnyBucket, Settings
from stretto.spark.streaming.state import Owner
from stretto.times import FOREVER, shown_time


class GroupBucket(AnyBucket):
    """The keys of one bucket of a dataflow.

    Parameters
    ----------
    groups
        The plan and its columns.
    settings
        How rows are treated.
    """

    def __init__(self, groups: Groups, settings: Settings) -> None:
        super().__init__(settings, groups.time_kind)
        self.groups = groups
        self.flow = groups.start()
        self.now = NEVER  #: the punctuation
        self._milliseconds = 0  #: of the watermark

    # -- what arrives -------------------------------------------------------------------------------------------------

    def receive(self, rows: Sequence[tuple[int, int, bytes]], watermark: int | None) -> None:
        tables = [arrow_table(data) for _, _, data in sorted(rows, key=lambda row: row[:2]) if data]
        if not self.settings.follows:
            self._move(watermark)
        for name, table in by_input(tables).items():
            self._take(name, self._in_time(name, table))

    def _move(self, watermark: int | None) -> None:
        if watermark is not None:
            self.now, self._milliseconds = max(self.now, self._ticks(watermark)), watermark // 1000

    def _in_time(self, name: str, rows: pa.Table) -> pa.Table:
        """The rows that are not late, and have a start."""
        untimed = rows.column("vs").null_count
        if untimed and self.settings.late == "error":
            in_order(rows, self.groups.vs, name)  # says so
        starts = rows.column("vs").cast(pa.int64())
        times = (
            starts if "ve_new" not in rows.column_names else pc.coalesce(rows.column("ve_new").cast(pa.int64()), starts)
        )
        fits = np.asarray(pc.fill_null(pc.greater_equal(times, self.now), False)) & np.asarray(
            rows.column("vs").is_valid()
        )
        if fits.all():
            return rows
        late = int(np.count_nonzero(~fits)) - untimed
        if late and self.settings.late == "error":
            first = pc.min(times.filter(pa.array(~fits)))
            raise DataError(
                f"source '{name}': {late} late rows, which begin or end at {self._shown(first)}, and the watermark has passed "
                f"{self._shown(pa.scalar(self.now))}; {WAIT}"
            )
        self.counts.late += late
        self.counts.no_time += untimed
        self._put_aside(name, rows.filter(pa.array(~fits)))
        return rows.filter(pa.array(fits))

    def _take(self, name: str, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        ordered = in_order(rows, self.groups.vs, name)
        if self.settings.late == "error":
            self.flow.push(name, ordered)
        elif missing := self.flow.push_known(name, ordered):
            self.counts.late += len(missing)
            self._put_aside(name, ordered.take(pa.array(missing)))
        self.counts.released += rows.num_rows

    def _put_aside(self, name: str, rows: pa.Table) -> None:
        if self.settings.late == "side" and rows.num_rows:
            structs = rows.combine_chunks().to_struct_array()
            self.set_aside.append(pa.table({"source": pa.array([name] * rows.num_rows), name: structs}))

    # -- what comes out -----------------------------------------------------------------------------------------------

    def advance(self, watermark: int | None) -> Iterator[pa.Table]:
        began = clock.perf_counter()
        if self.settings.follows:
            self._move(watermark)
        if self.now != NEVER:
            self.flow.advance(self._moment(self.now))
        self.flow.run_until_idle()
        found = self.groups.shown(self.flow.output(OUTPUT))
        self.counts.matches += found.num_rows
        self.counts.kernel_ms += 1000 * (clock.perf_counter() - began)
        yield found

    @property
    def idle(self) -> bool:
        ends = self.flow.ends
        return not self.groups.keeps and (ends is None or ends <= self.now)

    def wakes_at(self) -> int | None:
        if self.groups.recognizes:  # what a matcher finds may wait for any watermark
            return self._milliseconds + 1
        ends = self.flow.ends
        return None if ends is None or ends == FOREVER else max(0, math.ceil(ends * self.unit) // 1000 + 1)

    # -- times --------------------------------------------------------------------------------------------------------

    def _ticks(self, watermark: int) -> int:
        """A watermark as a punctuation: the first time that it has not passed."""
        return math.ceil(watermark / self.unit)

    def _moment(self, ticks: int) -> Any:
        return shown_time(pa.scalar(ticks, pa.int64()).cast(self.groups.time_kind))

    def _shown(self, ticks: pa.Scalar) -> str:
        return str(self._moment(ticks.as_py()))

    # -- state --------------------------------------------------------------------------------------------------------

    @property
    def owner(self) -> Owner:
        return plan_owner(self.groups, self.settings)

    def saved(self) -> tuple[dict[str, Any], list[bytes]]:
        self.counts.held = sum(self.flow.stats["held"].values())
        return {"now": self.now}, [b"" if self.idle else self.flow.snapshot()]

    def restore(self, header: dict[str, Any], parts: list[bytes]) -> None:
        self.now = checked_time(header["now"])
        if parts[0]:
            self.flow.restore(parts[0])


def plan_owner(groups: Groups, settings: Settings) -> Owner:
    """What the states of a plan belong to."""
    named = ("buckets", "time", "time_unit")
    return Owner(groups.plan, groups.columns, {name: getattr(settings, name) for name in named})
