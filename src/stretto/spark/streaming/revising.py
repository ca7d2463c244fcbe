"""A bucket whose matcher revises its answers: an automaton, or a query that answers ahead of what is certain. It knows no Spark.

Events go to the matcher with the micro-batch that brings them, in the order of time and sequence, so that little is taken back; what
waits for certainty waits there. The watermark is the punctuation, and an event before it is late, as in
:mod:`stretto.spark.streaming.bucket`. Rows of one micro-batch that cancel out never were.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from stretto.matching.api.matcher import Matcher
from stretto.spark.revised import Revised
from stretto.spark.streaming.bucket import Bucket, in_order
from stretto.spark.streaming.keeping import Settings
from stretto.times import FOREVER


class RevisingBucket(Bucket):
    """The keys of one bucket of what revises.

    Parameters
    ----------
    run
        What runs.
    settings
        How events are treated.
    """

    changing = "arc"
    matcher: Matcher
    run: Revised

    def __init__(self, run: Revised, settings: Settings) -> None:
        super().__init__(run, settings)
        self.signs = bool(run.ahead)
        self._due: list[pa.Table] = []
        self._milliseconds = 0  #: of the watermark

    def since(self, changes: pa.Table) -> pa.ChunkedArray:
        adds = pc.equal(changes.column("action"), "add")
        return pc.if_else(pc.fill_null(adds, True), changes.column("since"), changes.column("until"))

    def apply(self, changes: pa.Table, now: pa.Scalar | None) -> None:
        self._due.append(self.matcher.push([], arcs=changes))

    def advance(self, watermark: int | None) -> Iterator[pa.Table]:
        yield from self.counted(map(self.run.shown, self._revised(watermark)), watermark)
        if watermark is not None:
            self._milliseconds = watermark // 1000
            self.leave(watermark)

    def _revised(self, watermark: int | None) -> Iterator[pa.Table]:
        yield from self._due
        self._due = []
        known = self.matcher.late
        if self.held is not None:
            events, self.held = in_order(self.held, self.settings), None
            self.counts.released += events.num_rows
            yield from self.matcher.iter_push(events)
        if number := self.matcher.late - known:
            self.refuse_unknown(self.matcher.late_events(), number)
        if watermark is not None:
            time = self._time(watermark)
            if self.run.changes is not None:
                yield self.matcher.advance_arcs(time)
            yield self.matcher.advance(time)

    @property
    def expiry(self) -> int | None:
        ends = self.matcher.ends
        return None if ends is None or ends == FOREVER else int(ends * self.unit)

    def wakes_at(self) -> int | None:
        if self.matcher.stats.get("waiting"):
            return self._milliseconds + 1
        return super().wakes_at()
