"""The state of a continuous query without Spark: any cut into micro-batches, restored after each, gives the same matches."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, OptionError, SnapshotError
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.spark.streaming.bucket import Bucket, microseconds
from stretto.spark.streaming.keeping import Settings
from stretto.spark.streaming.packing import write_table
from stretto.spark.streaming.runs import ManyPatterns, OneQuery
from tests.conftest import cases
from tests.spark.streams import bag

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)

TOTALS = [
    "SELECT COUNT(*), SUM(b[x]), AVG(b[x]) FROM S WHERE A AS a ; B+ AS b PARTITION BY [key] WITHIN 8 seconds EVERY EVENT",
    "SELECT COUNT(*), SUM(b[x]) FROM S WHERE A AS a ; B+ AS b PARTITION BY [key] GROUP BY [key], a[x] WITHIN 8 s EVERY 3 s",
    "SELECT COUNT(*), MAX(b[x]) FROM S WHERE A ; B+ AS b WITHIN 4 seconds EVERY 6 seconds",
]

QUERIES = [
    "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 8 seconds",
    "SELECT a, b FROM S WHERE A AS a ; B+ AS b FILTER b[x > 2] PARTITION BY [key] WITHIN 5 EVENTS",
    "SELECT * FROM S WHERE A : B PARTITION BY [key]",
    "SELECT * FROM S WHERE A AS a ; B FILTER a[count(DISTINCT x) OVER 9 seconds >= 3] PARTITION BY [key] WITHIN 4 seconds",
    "SELECT * FROM S WHERE A AS a FILTER a[x > 0 AND avg(x) OVER 20 seconds > 2] PARTITION BY [key]",
    "SELECT MAX * FROM S WHERE A ; B+ ; C PARTITION BY [key] WITHIN 6 seconds",
    "SELECT * FROM S WHERE A ; B PARTITION BY [key] CONSUME BY PARTITION",
    "SELECT * FROM S WHERE A ; B ; C WITHIN 4 seconds",
    "SELECT * FROM S WHERE A ; C WITHIN 5 EVENTS",
    "SELECT * FROM S WHERE A+ ; B PARTITION BY [key] WITHIN 6 seconds KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
    "SELECT * FROM S WHERE A AS a ; B+ ; C PARTITION BY [key] WITHIN 9 seconds AFTER MATCH SKIP TO LAST C",
    *TOTALS,
]

KINDS = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "ntz": pa.timestamp("us"),
    "seconds": pa.int64(),
    "milliseconds": pa.int32(),
}


def events(rng: random.Random, rows: int, kind: str) -> pa.Table:
    seconds = [i // 3 + rng.randrange(4) for i in range(rows)]
    if kind == "seconds":
        times = pa.array(seconds, KINDS[kind])
    elif kind == "milliseconds":
        times = pa.array([1000 * s for s in seconds], KINDS[kind])
    else:
        times = pa.array([START + dt.timedelta(seconds=s) for s in seconds], KINDS["timestamp"]).cast(KINDS[kind])
    return pa.table(
        {
            "type": [rng.choice("ABCD") for _ in range(rows)],
            "ts": times,
            "seq": list(range(rows)),
            "key": [rng.choice("abc") for _ in range(rows)],
            "x": [rng.randrange(6) for _ in range(rows)],
        }
    )


UNITS = {"seconds": "s", "milliseconds": "ms"}


def make(text: str, table: pa.Table, kind: str = "timestamp", **changes: object) -> Bucket:
    query = stretto.compile(text, table, time="ts", time_unit=UNITS.get(kind))
    settings = {
        "time": "ts",
        "sequence": "seq",
        "time_unit": UNITS.get(kind),
        "late": "drop",
        "event_id": None,
        "delay": 4_000_000,
        "buckets": 1,
    }
    return Bucket(OneQuery(query), Settings(**(settings | changes)))  # type: ignore[arg-type]


def restored(bucket: Bucket) -> Bucket:
    fresh = Bucket(bucket.run, bucket.settings)
    fresh.load(bucket.dump())
    return fresh


def cut(rng: random.Random, table: pa.Table) -> Iterator[pa.Table]:
    at = 0
    while at < table.num_rows:
        size = rng.randrange(1, 12)
        yield table.slice(at, size)
        at += size


@pytest.mark.parametrize("kind", KINDS)
def test_any_micro_batches_give_the_matches_of_one_pass(kind: str) -> None:
    for seed in range(cases(150)):
        rng = random.Random(seed)
        table = events(rng, rng.randrange(1, 60), kind)
        text = QUERIES[seed % len(QUERIES)]
        expected = stretto.match(text, table, time="ts", sequence="seq", time_unit=UNITS.get(kind))
        bucket = make(text, table, kind)
        found, greatest, late = [], None, 0
        for part in cut(rng, table):
            watermark = None if greatest is None else greatest - 4_000_000
            bucket.take(part, watermark)
            found += bag_of(bucket, watermark)
            late += bucket.counts.late
            greatest = max(greatest or 0, int(microseconds(part.column("ts"), UNITS.get(kind)).max()))
            bucket = restored(bucket)
        found += bag_of(bucket, (greatest or 0) + 60_000_000)
        assert late == 0  # disorder is within the delay
        assert sorted(found) == bag(expected), f"seed {seed}: {text}"
        assert bucket.held is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM S WHERE A ; B WITHIN 4 EVENTS EVERY 4 EVENTS",
        "SELECT COUNT(*) AS n FROM S WHERE A ; B AFTER 1 EVENTS WITHIN 9 EVENTS WITHIN 4 EVENTS EVERY 4 EVENTS",
        "SELECT * FROM S WHERE A ; B WITHIN 4 EVENTS EVERY 4 EVENTS ORDER BY COUNT(A) LIMIT 1",
    ],
)
def test_windows_count_events_from_the_first_one_on(text: str) -> None:
    """Also where no event matters for a while: no micro-batch begins the windows anew."""
    kinds = [*"DDDA", *"BDDD", *"DAAB"]
    size = len(kinds)
    table = pa.table({"type": kinds, "ts": range(size), "seq": range(size), "key": ["a"] * size, "x": [0] * size})
    bucket = make(text, table, "seconds")
    found: list[pa.Table] = []
    for at in range(size):
        bucket.take(table.slice(at, 1), None)
        found += bucket.advance(1_000_000 * (at + 1))
        bucket = restored(bucket)
    starts = [start for one in found for start in one.column("window_start").to_pylist()]
    assert starts == [8]


@pytest.mark.parametrize("text", ["A ; B", "A ; B AFTER 1 seconds"])
def test_samples_are_the_same_whatever_the_micro_batches(text: str) -> None:
    """Also where no event matters for a while: they are drawn by the numbers of events."""
    query = f"SELECT * FROM S WHERE {text} WITHIN 5 seconds EVERY EVENT SAMPLE 1 SEED 3"
    size = 120
    kinds = ["AAAB"[at % 10] if at % 10 < 4 else "D" for at in range(size)]
    table = pa.table({"type": kinds, "ts": range(size), "seq": range(size), "key": ["a"] * size, "x": range(size)})
    right = bag(stretto.match(query, table, time="ts", sequence="seq", time_unit="s"))
    assert len(right) == size // 10
    bucket = make(query, table, "seconds")
    found: list[str] = []
    for at in range(size):
        bucket.take(table.slice(at, 1), None)
        found += bag_of(bucket, 1_000_000 * (at + 1))
        bucket = restored(bucket)
    assert sorted(found) == right


def bag_of(bucket: Bucket, watermark: int | None) -> list[str]:
    return [row for table in bucket.advance(watermark) for row in bag(table)]


@pytest.mark.parametrize("text", [QUERIES[0], *TOTALS])
def test_state_is_freed_when_windows_have_passed(text: str) -> None:
    table = events(random.Random(1), 50, "timestamp")
    bucket = make(text, table)
    bucket.take(table, None)
    last = int(microseconds(table.column("ts"), None).max())
    assert bucket.wakes_at() == int(microseconds(table.column("ts"), None).min()) // 1000 + 1
    found = bag_of(bucket, last + 1)
    assert bucket.held is None
    assert not bucket.idle
    while not bucket.idle:  # a window at a time
        wakes = bucket.wakes_at()
        assert wakes is not None
        assert last // 1000 < wakes <= (last + 8_000_000) // 1000 + 1
        bucket = restored(bucket)
        found += bag_of(bucket, 1000 * wakes)
    assert bucket.wakes_at() is None
    assert sorted(found) == bag(stretto.match(text, table, time="ts", sequence="seq"))


def test_late_events_are_dropped_and_counted() -> None:
    table = pa.table({"type": ["A", "A", "B"], "ts": [5, 15, 20], "seq": [0, 1, 2], "key": ["a"] * 3, "x": [0] * 3})
    bucket = make(QUERIES[0], table, "seconds")
    bucket.take(table, 10_000_000)
    assert bucket.counts.late == 1
    assert next(row.num_rows for row in bucket.advance(21_000_000)) == 1
    exactly = make(QUERIES[0], table, "seconds")
    exactly.take(table, 5_000_000)  # an event at the watermark's time is on time
    assert exactly.counts.late == 0


def test_late_events_can_be_an_error_or_set_aside() -> None:
    table = pa.table({"type": ["A", "B"], "ts": [5, 15], "seq": [0, 1], "key": ["a"] * 2, "x": [0] * 2})
    with pytest.raises(DataError, match=r"1 late events: 'ts' is 5, and the watermark has passed 1970-01-01 00:00:10"):
        make(QUERIES[0], table, "seconds", late="error").take(table, 10_000_000)
    bucket = make(QUERIES[0], table, "seconds", late="side")
    bucket.take(table, 10_000_000)
    assert pa.concat_tables(bucket.set_aside).to_pylist() == table.slice(0, 1).to_pylist()


def test_events_without_a_time() -> None:
    table = pa.table({"type": ["A", "B"], "ts": pa.array([None, 15]), "seq": [0, 1], "key": ["a"] * 2, "x": [0] * 2})
    with pytest.raises(DataError, match=r"'ts' \(time\) is NULL in 1 events"):
        make(QUERIES[0], table, "seconds", late="error").take(table, None)
    bucket = make(QUERIES[0], table, "seconds", late="side")
    bucket.take(table, None)
    assert (bucket.counts.no_time, bucket.counts.late) == (1, 0)
    assert pa.concat_tables(bucket.set_aside).to_pylist() == table.slice(0, 1).to_pylist()


def test_duplicates_are_known_as_long_as_the_delay_says() -> None:
    table = pa.table(
        {"type": ["A", "A", "B", "A"], "ts": [5, 5, 6, 7], "seq": [0, 1, 2, 3], "key": ["a"] * 4, "x": [1, 1, 2, None]}
    )
    bucket = make(QUERIES[0], table, "seconds", event_id="x")
    bucket.take(table, None)
    assert bucket.counts.duplicates == 1
    assert bucket.held is not None
    assert bucket.held.column("seq").to_pylist() == [0, 2, 3]
    bucket = restored(bucket)
    list(bucket.advance(9_000_000))  # both ids are known until 4 s after their events
    again = table.set_column(1, "ts", pa.array([9, 9, 9, 9]))
    bucket.take(again, 9_000_000)
    assert bucket.counts.duplicates == 3
    assert bucket.held is not None
    assert bucket.held.column("seq").to_pylist() == [3]
    list(bucket.advance(20_000_000))
    bucket.take(again.set_column(1, "ts", pa.array([21, 21, 21, 21])), 20_000_000)
    assert bucket.held is not None
    assert bucket.held.column("seq").to_pylist() == [0, 2, 3]


class TestState:
    @pytest.fixture
    def bucket(self) -> Bucket:
        table = events(random.Random(3), 40, "timestamp")
        bucket = make(QUERIES[0], table)
        bucket.take(table, None)
        list(bucket.advance(int(np.median(microseconds(table.column("ts"), None)))))
        return bucket

    def test_every_damaged_byte_is_noticed(self, bucket: Bucket) -> None:
        state = bucket.dump()
        rng = random.Random(7)
        for at in [0, 8, 9, 10, 13, 20, len(state) - 1, *(rng.randrange(len(state)) for _ in range(60))]:
            damaged = bytearray(state)
            damaged[at] ^= 1 << rng.randrange(8)
            with pytest.raises(SnapshotError):
                Bucket(bucket.run, bucket.settings).load(bytes(damaged))

    @pytest.mark.parametrize("kept", [0, 5, 14, 100, -1])
    def test_every_cut_is_noticed(self, bucket: Bucket, kept: int) -> None:
        with pytest.raises(SnapshotError, match=r"damaged|not a stretto snapshot"):
            Bucket(bucket.run, bucket.settings).load(bucket.dump()[:kept])

    def test_another_query(self, bucket: Bucket) -> None:
        other = make(QUERIES[1], events(random.Random(3), 4, "timestamp"))
        with pytest.raises(SnapshotError, match="state of another query") as caught:
            other.load(bucket.dump())
        assert QUERIES[0] in str(caught.value)
        assert QUERIES[1] in str(caught.value)

    def test_other_settings(self, bucket: Bucket) -> None:
        other = make(QUERIES[0], events(random.Random(3), 4, "timestamp"), buckets=2)
        with pytest.raises(SnapshotError, match="written with buckets=1, and the query now has buckets=2"):
            other.load(bucket.dump())

    def test_other_columns(self, bucket: Bucket) -> None:
        table = events(random.Random(3), 4, "timestamp")
        table = table.set_column(4, "x", table.column("x").cast(pa.float64()))
        with pytest.raises(SnapshotError, match="other columns: 'x' was int64, is double"):
            make(QUERIES[0], table).load(bucket.dump())


class TestPatterns:
    """Patterns that change: every bucket gets all changes, whether or not it has events."""

    TABLE = events(random.Random(1), 30, "seconds")
    CHANGES = pa.schema([("id", pa.string()), ("query", pa.string()), ("since", pa.int64()), ("language", pa.string())])

    def bucket(self) -> Bucket:
        known = write_table(self.CHANGES.empty_table())
        schema = self.TABLE.schema.serialize().to_pybytes()
        run = ManyPatterns(schema, ("type", "ts", None, "s"), "positions", False, ("key",), None, known)
        return Bucket(run, Settings("ts", "seq", "s", "drop", None, 0, 8))

    def changes(self, *rows: tuple[str, str | None, int | None]) -> pa.Table:
        named = [dict(zip(self.CHANGES.names, (*row, None), strict=True)) for row in rows]
        return pa.Table.from_pylist(named, schema=self.CHANGES)

    def query(self, least: int) -> str:
        return f"SELECT * FROM S WHERE A AS a ; B FILTER a[x > {least}] PARTITION BY [key] WITHIN 8 seconds"

    def test_without_events_a_bucket_forgets_what_was_replaced(self) -> None:
        bucket = self.bucket()
        bucket.change(self.changes(*((name, self.query(0), None) for name in "pqr")), None)
        for minute in range(1, 20):
            bucket.change(self.changes(("p", self.query(minute), 60 * minute)), 1_000_000 * 60 * (minute - 1))
            assert list(bucket.advance(1_000_000 * (60 * minute + 1))) == [bucket.matcher.output_schema.empty_table()]
            kept = bucket.dump()
            bucket = self.bucket()
            bucket.load(kept)
            assert isinstance(bucket.matcher, PatternSet)
            assert bucket.matcher.patterns.select(["id", "query", "started"]).to_pylist() == [
                {"id": name, "query": self.query(minute if name == "p" else 0), "started": True} for name in "pqr"
            ]
        assert (bucket.counts.late_changes, bucket.counts.bad_changes) == (0, 0)

    def test_wrong_changes_leave_the_others_of_their_call(self) -> None:
        bucket = self.bucket()
        wrong = [("w", "SELECT", None), ("v", "SELECT * FROM S WHERE A", None)]  # no query, and not by key
        bucket.change(self.changes(("p", self.query(1), None), *wrong, ("q", self.query(2), None)), None)
        assert bucket.counts.bad_changes == 2
        bucket.take(self.TABLE, None)
        found = pa.concat_tables(bucket.advance(10**9))
        whole = stretto.PatternSet(self.TABLE.schema, time="ts", time_unit="s", by=["key"], output="positions")
        whole.change([stretto.Change("p", self.query(1)), stretto.Change("q", self.query(2))])
        expected = whole.push(self.TABLE.sort_by([("ts", "ascending"), ("seq", "ascending")]))
        assert bag(found) == bag(expected)
        assert expected.num_rows


@pytest.mark.parametrize("kind", [pa.float64(), pa.string(), pa.int64()])
def test_times_that_cannot_be_compared_with_a_watermark(kind: pa.DataType) -> None:
    with pytest.raises(OptionError, match="timestamp, date or integer with a unit"):
        microseconds(pa.chunked_array([pa.array([], kind)]), None)


def test_microseconds() -> None:
    def micros(values: list[object], kind: pa.DataType, unit: str | None = None) -> list[int]:
        return microseconds(pa.chunked_array([pa.array(values, kind)]), unit).tolist()

    assert micros([1, -1], pa.int32(), "s") == [1_000_000, -1_000_000]
    assert micros([1500, -1], pa.int64(), "ns") == [1, -1]
    assert micros([dt.date(1970, 1, 3)], pa.date32()) == [2 * 86_400_000_000]
    assert micros([-1], pa.timestamp("ns")) == [-1]
    assert micros([None, 3], pa.timestamp("ms")) == [np.iinfo(np.int64).min, 3000]
