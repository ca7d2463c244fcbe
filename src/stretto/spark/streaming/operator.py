"""What the stateful operator of a continuous query does with a bucket of keys.

A micro-batch that touches a bucket reads its state and writes what changed, once (:mod:`stretto.spark.streaming.journal`). One
event-time timer calls a bucket that has something to do although nothing arrives for it: events to release, or windows to close. A
bucket that holds nothing has no state, except bucket 0, which keeps its header: it tells whose the checkpoint is, when a query
starts (:mod:`stretto.spark.starting`) and in every micro-batch that has events, before it is committed.

A bucket whose matcher revises its answers: an automaton, or a query that answers ahead of what is certain. It knows no Spark.

Events go to the matcher with the micro-batch that brings them, in the order of time and sequence, so that little is taken back; what
waits for certainty waits there. The watermark is the punctuation, and an event before it is late, as in
:mod:`stretto.spark.streaming.bucket`. Rows of one micro-batch that cancel out never were.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row

from stretto.matching.api.matcher import Matcher
from stretto.spark.dataflows.group_bucket import GroupBucket, plan_owner
from stretto.spark.dataflows.groups import Groups
from stretto.spark.revised import Revised
from stretto.spark.streaming.bucket import Bucket, in_order, query_owner
from stretto.spark.streaming.journal import Copies, Journal, Packed
from stretto.spark.streaming.keeping import AnyBucket, Counts, Settings
from stretto.spark.streaming.packing import write_table
from stretto.spark.streaming.runs import run_of
from stretto.spark.streaming.state import Owner
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


_KINDS = {"int": "bigint", "float": "double"}

#: A row that counts nothing, in the types that Spark takes.
_NOTHING = vars(Counts()) | {"bucket": None, "oldest": None}

#: What the operator puts out: packed results and packed late events, and in each call's last row its counts, which bucket it is, and
#: when the oldest event was that it holds.
OUTPUT = ", ".join(
    [
        "data binary",
        "late_data binary",
        *(f"{f.name} {_KINDS[str(f.type)]}" for f in fields(Counts)),
        "bucket bigint",
        "oldest bigint",
    ]
)


def _bucket(task: dict[str, Any], settings: Settings, unbounded: bool) -> AnyBucket:
    """A bucket of a dataflow, of what revises its answers, or of a query or patterns over events in order.

    ``unbounded``: it may list as much as it likes, unless its budget says which patterns are switched off.
    """
    if "plan" in task:
        return GroupBucket(Groups(**task), settings)
    unbounded = unbounded and task.get("on_limit") != "disable"
    run = run_of(task | {"budget": math.inf} if unbounded else task)
    return RevisingBucket(run, settings) if isinstance(run, Revised) else Bucket(run, settings)


def owner_of(task: dict[str, Any], settings: Settings) -> Owner:
    """What the states of a task belong to."""
    return plan_owner(Groups(**task), settings) if "plan" in task else query_owner(run_of(task), settings)


class Operator:
    """Calls for buckets, with the states that Spark hands over."""

    def __init__(
        self, task: dict[str, Any], settings: Settings, handle: Any, state: Any, entries: Any, copied: bool
    ) -> None:
        self.task = task
        self.settings = settings
        self.handle = handle
        self.state = state
        self.entries = entries
        self.copies = Copies.here() if copied else None

    def call(self, number: int, packed: list[Packed], timers: Any, fired: int | None) -> Iterator[Row]:
        """Take what arrived for a bucket, and match what the watermark has passed."""
        journal = Journal(self.state, self.entries, self.copies, partial(_bucket, self.task), self.settings)
        bucket = journal.read()
        passed = timers.getCurrentWatermarkInMs()
        milliseconds = passed - self.settings.behind
        watermark = 1000 * milliseconds if min(passed, milliseconds) > 0 else None  # 0 is Spark's word for none yet
        yield from self._rows(bucket, packed, watermark)
        self._set_timer(bucket, fired)
        if not bucket.idle or number == 0:
            journal.write(bucket, packed, watermark)
        else:
            journal.clear()
        yield self._row(bucket, None, None, self._counts(bucket, number) | {"bucket": number, "oldest": bucket.oldest})

    def _rows(self, bucket: AnyBucket, packed: list[Packed], watermark: int | None) -> Iterator[Row]:
        bucket.receive(packed, watermark)
        for found in bucket.advance(watermark):
            if found.num_rows:
                yield self._row(bucket, found, None, {})
        for late in bucket.set_aside:
            yield self._row(bucket, None, late, {})

    def _row(self, bucket: AnyBucket, found: pa.Table | None, late: pa.Table | None, counts: dict[str, Any]) -> Row:
        return Row(
            data=None if found is None else write_table(found),
            late_data=None if late is None else write_table(late),
            **(_NOTHING | counts),
        )

    def _set_timer(self, bucket: AnyBucket, fired: int | None) -> None:
        wanted = None if bucket.idle else bucket.wakes_at()
        if wanted is not None:
            wanted = max(1, wanted + self.settings.behind)  # at 0, where the watermark begins, no timer fires
        if wanted != bucket.timer or fired is not None:
            if bucket.timer is not None and bucket.timer != fired:
                self.handle.deleteTimer(bucket.timer)
            if wanted is not None:
                self.handle.registerTimer(wanted)
            bucket.timer = wanted

    def _counts(self, bucket: AnyBucket, number: int) -> dict[str, Any]:
        """The counts of the call."""
        counts = dict(vars(bucket.counts))
        if number != 0:  # all buckets get the same changes
            counts["late_changes"] = counts["bad_changes"] = 0
        return counts
