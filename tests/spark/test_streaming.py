"""Continuous queries: the matches of one ordered pass, whatever the micro-batches; late events, duplicates, restarts, mistakes."""

from __future__ import annotations

import datetime as dt
import logging
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, OptionError, SnapshotError
from stretto.spark.streaming.progress import report
from tests.conftest import seeds
from tests.spark.streams import add_file, bag, read_stream, run, run_together

pytestmark = [pytest.mark.spark]

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
END = START + dt.timedelta(days=1)

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("seq", pa.int64()),
        ("key", pa.string()),
        ("x", pa.int64()),
        ("a.b", pa.string()),
    ]
)


def random_events(seed: int, rows: int = 400) -> pa.Table:
    """Events out of order by at most 5 s, with ties and missing keys, and one at the end that moves the watermark past all."""
    rng = random.Random(seed)
    events = [
        {
            "type": rng.choice("ABCD"),
            "ts": START + dt.timedelta(seconds=i // 3 + rng.randrange(5), milliseconds=rng.choice([0, 0, 500])),
            "seq": i,
            "key": rng.choice([None, "a", "b", "c", "ü"]),
            "x": rng.choice([None, *range(6)]),
            "a.b": rng.choice(["u", "v"]),
        }
        for i in range(rows)
    ]
    events.append({"type": "Z", "ts": END, "seq": rows, "key": "end", "x": None, "a.b": "u"})
    return pa.Table.from_pylist(events, schema=SCHEMA)


def stream(spark: Any, folder: Path, table: pa.Table, batches: int = 3) -> Any:
    """The table as a stream: all but the last row in ``batches`` files, then the last row."""
    size = -(-(table.num_rows - 1) // batches)
    for number in range(batches):
        add_file(folder, table.slice(0, table.num_rows - 1).slice(number * size, size), number)
    add_file(folder, table.slice(table.num_rows - 1), batches)
    return read_stream(spark, folder)


def result(spark: Any, path: Path) -> pa.Table:
    table: pa.Table = spark.read.parquet(str(path)).toArrow()
    return table


QUERIES = {
    "keyed": "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 20 seconds",
    "counted, two keys": "SELECT a FROM S WHERE A AS a ; B+ AS b FILTER b[x > 2] PARTITION BY [key], [`a.b`] WITHIN 8 EVENTS",
    "contiguous, no window": "SELECT STRICT * FROM S WHERE A ; B ; C PARTITION BY [key]",
    "no key": "SELECT a, c FROM S WHERE A AS a ; B ; C AS c WITHIN 2 seconds",
    "moving": "SELECT a FROM S WHERE A AS a ; B FILTER a[count(DISTINCT x) OVER 20 seconds >= 3] PARTITION BY [key] WITHIN 9 seconds",
    "kept": "SELECT a FROM S WHERE A+ AS a ; B PARTITION BY [key] WITHIN 9 seconds KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
}


@pytest.mark.usefixtures("two_partitions")
@pytest.mark.parametrize(
    "name", ["keyed", "moving", *seeds("kept", "counted, two keys", "contiguous, no window", "no key")]
)
def test_same_matches_as_embedded(spark: Any, tmp_path: Path, name: str) -> None:
    seed = 11
    table = random_events(seed)
    expected = stretto.match(QUERIES[name], table, time="ts", sequence="seq")
    events = stream(spark, tmp_path / "in", table)
    matches = stretto.spark.match(events, QUERIES[name], time="ts", sequence="seq", disorder="5 seconds", buckets=3)
    assert matches.isStreaming
    assert matches.columns == [n for n in expected.column_names if n not in ("start", "end", "positions")]
    query = run(matches, tmp_path / "checkpoint", tmp_path / "out")
    print(f"seed {seed}: {expected.num_rows} matches")
    assert expected.num_rows > 0
    assert bag(result(spark, tmp_path / "out")) == bag(expected)
    counts = [stretto.spark.metrics(progress) for progress in query.recentProgress]
    total = {name: sum(count[name] for count in counts) for name in ("events", "matches", "late", "no_key", "released")}
    keyless = sum(key is None for key in table.column("key").to_pylist()) if "PARTITION" in QUERIES[name] else 0
    assert total["events"] == table.num_rows
    assert total["no_key"] == keyless
    assert total["matches"] == expected.num_rows
    assert total["late"] == 0
    for count in counts:  # of three buckets
        for level in ("held", "keys", "partial_matches", "state_bytes"):
            assert count[f"fullest_{level}"] <= count[level] <= 3 * count[f"fullest_{level}"]
    assert any(count["fullest_state_bytes"] > 0 for count in counts)
    for progress, count in zip(query.recentProgress, counts, strict=True):
        check_buckets(stretto.spark.buckets(progress), count)


def check_buckets(found: pa.Table, count: dict[str, float]) -> None:
    """The rows of buckets sum up to what is told of them together; what they hold is not before the stream."""
    for level in ("held", "keys", "partial_matches", "state_bytes"):
        told = found[level].to_pylist()
        assert sum(told) == count[level]
        assert max(told, default=0) == count[f"fullest_{level}"]
    assert found["state_bytes"].to_pylist() == sorted(found["state_bytes"].to_pylist(), reverse=True)
    rows = found.to_pylist()
    assert len({one["bucket"] for one in rows}) == len(rows) <= 3
    for one in rows:
        assert 0 <= one["bucket"] < 3
        assert one["oldest"] is not None or not one["held"], one  # of nodes some are of no use any more
        assert one["oldest"] is None or one["held"] or one["partial_matches"], one
        assert one["oldest"] is None or START - dt.timedelta(days=1) < one["oldest"] < END + dt.timedelta(days=1), one
        assert one["age"] == (one["watermark"] - one["oldest"] if one["oldest"] and one["watermark"] else None)


@pytest.mark.usefixtures("two_partitions")
def test_late_events_to_the_side_and_state_is_freed(spark: Any, tmp_path: Path) -> None:
    rows = [("A", 10, "k"), ("A", 100, "k")], [("B", 20, "k"), ("B", 101, "k"), ("C", 99, "k")], [("Z", 10_000, "end")]
    for number, part in enumerate(rows):
        table = pa.table(dict(zip(("type", "t", "key"), zip(*part, strict=True), strict=True)))
        add_file(tmp_path / "in", table, number)
    events = read_stream(spark, tmp_path / "in")
    text = "SELECT b[t] FROM S WHERE A ; B AS b PARTITION BY [key] WITHIN 30 seconds"
    matches = stretto.spark.match(events, text, time="t", time_unit="s", disorder="0 seconds", late="side")
    query = run(matches, tmp_path / "checkpoint", tmp_path / "out")
    shown = result(spark, tmp_path / "out").to_pylist()
    assert [row["late"] for row in shown if row["late"]] == [
        {"type": "B", "t": 20, "key": "k"},
        {"type": "C", "t": 99, "key": "k"},
    ]
    assert [row["start_time"] for row in shown if not row["late"]] == [100]
    assert sum(stretto.spark.metrics(p)["late"] for p in query.recentProgress) == 2
    # What is left is bucket 0, which names the query, and the one event that is held.
    assert query.recentProgress[-1].stateOperators[0].numRowsTotal <= 4
    assert "late" in stretto.spark.progress_line(query.recentProgress[1])
    assert stretto.spark.status(query).startswith("batch ")


AUTOMATON = stretto.AFA({"type": str, "key": str}, window=30, partition_by="key")
AUTOMATON = AUTOMATON.arc("q0", "q1", when="e.type = 'A'").arc("q1", "q2", when="e.type = 'B'").final("q2")

READS_LITTLE: dict[str, Any] = {
    "totals": "SELECT COUNT(*) AS n FROM S WHERE A ; B PARTITION BY [key] WITHIN 30 seconds EVERY EVENT",
    "sase": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [key] } WITHIN 30 seconds RETURN a.t AS at",
    "automaton": AUTOMATON,
}


def test_late_events_come_whole(spark: Any, tmp_path: Path) -> None:
    """They have the columns that the query does not read."""
    late = {"type": "B", "t": 20, "key": "k", "note": "three", "more": {"x": [1, None]}}
    rows = [
        late | {"type": kind, "t": time, "note": note} for kind, time, note in (("A", 10, "one"), ("A", 100, "two"))
    ]
    for number, part in enumerate((rows, [late], [late | {"type": "Z", "t": 10_000}])):
        add_file(tmp_path / "in", pa.Table.from_pylist(part), number)
    events = read_stream(spark, tmp_path / "in")
    options: dict[str, Any] = {"time": "t", "time_unit": "s", "disorder": "0 seconds", "late": "side", "buckets": 2}
    patterns = {"ab": "SELECT a[t] FROM S WHERE A AS a ; B PARTITION BY [key] WITHIN 30 seconds"}
    streams = {kind: stretto.spark.match(events, query, **options) for kind, query in READS_LITTLE.items()}
    streams["patterns"] = stretto.spark.match_patterns(events, patterns, by=["key"], type="type", **options)
    for kind, given in run_together(streams, tmp_path)[1].items():
        assert [row["late"] for row in given.to_pylist() if row["late"]] == [late], kind


def test_late_events_can_end_the_query(spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    add_file(tmp_path / "in", pa.table({"type": ["A"], "t": [100]}), 0)
    add_file(tmp_path / "in", pa.table({"type": ["B"], "t": [20]}), 1)
    events = read_stream(spark, tmp_path / "in")
    text = "SELECT * FROM S WHERE A ; B WITHIN 1 minute"
    matches = stretto.spark.match(events, text, time="t", time_unit="s", disorder="10 seconds", late="error")
    with pytest.raises(
        StreamingQueryException, match="DataError: 1 late events: 't' is 20, and the watermark has passed"
    ):
        run(matches, tmp_path / "checkpoint", tmp_path / "out")


def test_duplicates_streaming_and_batch(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"type": list("AABZ"), "t": [1, 1, 2, 900], "id": ["p", "p", "q", "r"]})
    add_file(tmp_path / "in", table.slice(0, 1), 0)
    add_file(tmp_path / "in", table.slice(1), 1)
    text = "SELECT * FROM S WHERE A ; B WITHIN 5 seconds"
    options: dict[str, Any] = {"time": "t", "time_unit": "s", "event_id": "id", "disorder": "10 seconds"}
    query = run(
        stretto.spark.match(read_stream(spark, tmp_path / "in"), text, **options), tmp_path / "cp", tmp_path / "out"
    )
    assert result(spark, tmp_path / "out").num_rows == 1
    assert sum(stretto.spark.metrics(p)["duplicates"] for p in query.recentProgress) == 1
    assert stretto.spark.match(spark.createDataFrame(table), text, **options).count() == 1


def test_equal_queries_in_one_stream(spark: Any, tmp_path: Path) -> None:
    """Each is counted, and started once more as before."""
    table = pa.table({"type": list("ABZABZ"), "t": [1, 2, 900, 1001, 1002, 1900]})
    for number in range(2):
        add_file(tmp_path / "in", table.slice(3 * number, 3), number)
        one, other = [
            stretto.spark.match(
                read_stream(spark, tmp_path / "in"),
                "SELECT * FROM S WHERE A ; B WITHIN 5 seconds",
                time="t",
                time_unit="s",
                disorder="0 seconds",
                buckets=1,
            )
            for _ in range(2)
        ]
        query = run(one.union(other), tmp_path / "checkpoint", tmp_path / "out")
        assert sum(stretto.spark.metrics(p)["matches"] for p in query.recentProgress) == 2
    times = [row["end_time"] for row in result(spark, tmp_path / "out").to_pylist()]
    assert sorted(times) == [2, 2, 1002, 1002]


@pytest.mark.usefixtures("two_partitions")
def test_restarts_and_a_checkpoint_of_another_query(spark: Any, tmp_path: Path) -> None:
    table = random_events(12, 120)
    text = "SELECT * FROM S WHERE A ; B PARTITION BY [key] WITHIN 10 seconds"
    options: dict[str, Any] = {"time": "ts", "sequence": "seq", "disorder": "5 seconds", "buckets": 4}
    for number in range(3):
        add_file(tmp_path / "in", table.slice(0, 120).slice(40 * number, 40), number)
        run(
            stretto.spark.match(read_stream(spark, tmp_path / "in"), text, **options),
            tmp_path / "checkpoint",
            tmp_path / "out",
        )
    other = text.replace("10 seconds", "11 seconds")
    add_file(tmp_path / "in", table.slice(120), 3)
    for query, changes, message in (
        (other, {}, "the checkpoint holds the state of another query"),
        (text, {"buckets": 5}, "written with buckets=4, and the query now has buckets=5"),
    ):
        matches = stretto.spark.match(read_stream(spark, tmp_path / "in"), query, **(options | changes))
        with pytest.raises(SnapshotError, match=message):
            run(matches, tmp_path / "checkpoint", tmp_path / "out")
    run(
        stretto.spark.match(read_stream(spark, tmp_path / "in"), text, **options),
        tmp_path / "checkpoint",
        tmp_path / "out",
    )
    expected = stretto.match(text, table, time="ts", sequence="seq")
    assert expected.num_rows > 0
    assert bag(result(spark, tmp_path / "out")) == bag(expected)


def test_streams_in_a_dict(spark: Any, tmp_path: Path) -> None:
    """The slower stream holds the watermark back, so that nothing of it is late."""
    buys = pa.table({"type": ["BUY"] * 4, "t": [10, 20, 30, 1000], "price": [1.0, 2.0, 3.0, 4.0]})
    news = pa.table({"type": ["GOOD"] * 4, "t": [11, 21, 45, 1000], "text": ["p", "q", "r", "s"]})
    add_file(tmp_path / "buys", buys, 0)
    for row in range(4):
        add_file(tmp_path / "news", news.slice(row, 1), row)
    frames = {name: read_stream(spark, tmp_path / name) for name in ("buys", "news")}
    text = "SELECT * FROM buys, news WHERE buys>BUY AS b ; news>GOOD AS n WITHIN 5 seconds"
    matches = stretto.spark.match(frames, text, time="t", time_unit="s", disorder="0 seconds")
    run(matches, tmp_path / "checkpoint", tmp_path / "out")
    rows = result(spark, tmp_path / "out").select(["start_time", "end_time"]).to_pylist()
    assert sorted((row["start_time"], row["end_time"]) for row in rows) == [(10, 11), (20, 21)]


@pytest.mark.parametrize("kind", seeds("bigint", "date", "timestamp_ntz"))
def test_time_of_any_kind(spark: Any, tmp_path: Path, kind: str) -> None:
    day = 86_400
    seconds = spark.createDataFrame([("A", day), ("B", 2 * day), ("Z", 90 * day)], "type string, s bigint")
    cast = {
        "timestamp_ntz": "cast(timestamp_seconds(s) as timestamp_ntz)",
        "date": "date_from_unix_date(int(s / 86400))",
        "bigint": "s * 1000",
    }[kind]
    seconds.selectExpr("type", f"{cast} as `t`").coalesce(1).write.parquet(str(tmp_path / "in"))
    unit = "ms" if kind == "bigint" else None
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        events = read_stream(spark, tmp_path / "in")
        text = "SELECT NONE FROM S WHERE A ; B WITHIN 1 days"
        matches = stretto.spark.match(events, text, time="t", time_unit=unit, disorder="1 day")
        run(matches, tmp_path / "checkpoint", tmp_path / "out")
        got = spark.read.parquet(str(tmp_path / "out"))
        assert got.schema["start_time"].dataType == events.schema["t"].dataType
        assert got.count() == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


class TestMistakes:
    @pytest.fixture
    def events(self, spark: Any) -> Any:
        return (
            spark.readStream.format("rate")
            .load()
            .selectExpr("timestamp AS ts", "timestamp AS other", "'A' AS type", "value")
        )

    def test_no_watermark(self, events: Any) -> None:
        with pytest.raises(OptionError, match="a continuous query needs a watermark: disorder='10 seconds'"):
            stretto.spark.match(events, "SELECT * FROM S WHERE A", time="ts")

    def test_watermark_on_another_column(self, events: Any) -> None:
        with pytest.raises(OptionError, match="a watermark on 'other', and the query's time is 'ts'"):
            stretto.spark.match(events.withWatermark("other", "1 second"), "SELECT * FROM S WHERE A", time="ts")

    def test_two_watermarks(self, events: Any) -> None:
        marked = events.withWatermark("ts", "1 second")
        with pytest.raises(OptionError, match="a watermark on 'ts' already: leave out disorder='2 seconds'"):
            stretto.spark.match(marked, "SELECT * FROM S WHERE A", time="ts", disorder="2 seconds")
        assert stretto.spark.match(marked, "SELECT * FROM S WHERE A", time="ts").isStreaming

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"disorder": "speculate"}, "disorder='speculate': expected a number and a unit"),
            ({"disorder": "guess"}, "disorder='guess': expected a number and a unit"),
            (
                {"watermark": "1 second"},
                "Spark's watermark is disorder= behind the latest event: give disorder='10 seconds'",
            ),
            ({"late": "keep"}, "late='keep': expected 'drop', 'error' or 'side'"),
            ({"buckets": 0}, "buckets=0: give a positive number"),
            ({"disorder": "soon"}, "disorder='soon': expected a number and a unit"),
            ({"disorder": "3 secnds"}, "'secnds' is no unit; did you mean 'second'"),
            ({"time": "value"}, "'value' is bigint: say what one unit of it is with time_unit"),
            ({"time": "type"}, "needs a time of type timestamp, date or integer, and 'type' is string"),
        ],
    )
    def test_options(self, events: Any, options: dict[str, Any], message: str) -> None:
        with pytest.raises(OptionError, match=message):
            stretto.spark.match(events, "SELECT * FROM S WHERE A", **({"time": "ts", "disorder": "1 second"} | options))

    @pytest.mark.parametrize(
        ("options", "message"),
        [({}, "KEEP LONGEST in a stream needs WITHIN"), ({"valuations": True}, "leave out valuations=")],
    )
    def test_what_is_kept(self, events: Any, options: dict[str, Any], message: str) -> None:
        with pytest.raises(OptionError, match=message):
            stretto.spark.match(
                events, "SELECT * FROM S WHERE A KEEP LONGEST", time="ts", disorder="1 second", **options
            )

    def test_unknown_columns(self, events: Any) -> None:
        for options in ({"time": "tss"}, {"time": "ts", "event_id": "tss"}):
            with pytest.raises(DataError, match="no column 'tss'"):
                stretto.spark.match(events, "SELECT * FROM S WHERE A", disorder="1 second", **options)

    def test_a_query_without_a_key_says_so(self, events: Any, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, logger="stretto"):
            stretto.spark.match(events, "SELECT * FROM S WHERE A ; A WITHIN 1 minute", time="ts", disorder="1 second")
        assert "it runs in one ordered state, in one task" in caplog.text


def test_watching(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    progress: Any = {
        "batchId": 7,
        "observedMetrics": {
            "stretto:0a": {
                "late": 2,
                "duplicates": 0,
                "no_time": 0,
                "matches": 3,
                "held": 4,
                "keys": 5,
                "kernel_ms": 1.5,
            }
            | {"state_bytes": 2**20, "released": 9, "partial_matches": 1},
            "stretto:0a:in": {"events": 1000, "no_key": 1, "relevant": 90},
            "other": {"events": 5},
        },
    }
    line = "batch 7: 1,000 events, 3 matches, 2 late, 1 without key, 4 held, 5 keys, 1.0 MiB state, 2 ms matching"
    assert stretto.spark.progress_line(progress) == line
    assert stretto.spark.progress_line({"batchId": 1, "observedMetrics": {}}) == ""
    part = {"stretto:0a:in": {"events": 1000}, "stretto:0a": {"late": 2}}
    assert stretto.spark.progress_line({"batchId": 1, "observedMetrics": part}) == "batch 1: 1,000 events, 2 late"
    revised = {"stretto:0a": {"matches": 2, "revisions": 2, "waited_ms": 9.0, "state_bytes": 0}}
    line_of_revised = "batch 1: 2 matches, 2 taken back, 0.0 MiB state"
    assert stretto.spark.progress_line({"batchId": 1, "observedMetrics": revised}) == line_of_revised
    skewed = {
        "stretto:0a": {**progress["observedMetrics"]["stretto:0a"], "fullest_state_bytes": 2**19, "fullest_held": 3}
    }
    again = {"observedMetrics": skewed | {"stretto:0b": {"fullest_state_bytes": 2**18, "fullest_held": 4, "held": 4}}}
    assert stretto.spark.metrics(again)["held"] == 8
    assert [stretto.spark.metrics(again)[f"fullest_{name}"] for name in ("state_bytes", "held")] == [2**19, 4]
    with_input = {"batchId": 7, "observedMetrics": progress["observedMetrics"] | skewed}
    assert "1.0 MiB state (0.5 MiB in the fullest bucket), 2 ms matching" in stretto.spark.progress_line(with_input)
    fields = [{"name": "late"}, {"name": "matches"}]
    connect = {"stretto:0a": {"values": [1, 2], "schema": {"type": "struct", "fields": fields}}}
    assert stretto.spark.metrics({"observedMetrics": connect}) == {"late": 1, "matches": 2}
    levels = {"held": 1, "keys": 2, "partial_matches": 4_000}
    both = [{"bucket": 5, **levels, "state_bytes": 9, "oldest": None}]
    both += [{"bucket": 2, **levels, "state_bytes": 2**20, "oldest": 60_000_000}]
    known = progress["observedMetrics"]
    full = known | {"stretto:0a": {**known["stretto:0a"], "buckets": both}}
    full_of = {"batchId": 8, "observedMetrics": full, "eventTime": {"watermark": "1970-01-01T00:01:30.000Z"}}
    (one, other) = stretto.spark.buckets(full_of).to_pylist()
    assert (one["bucket"], one["age"], one["oldest"].minute) == (2, dt.timedelta(seconds=30), 1)
    assert (other["bucket"], other["age"], other["oldest"]) == (5, None, None)
    assert stretto.spark.metrics(full_of)["held"] == 4
    with caplog.at_level(logging.INFO, logger="stretto"):
        report(full_of, most=1)
    told = [one for one in caplog.messages if one.startswith("batch 8, bucket")]
    behind = "the oldest event 0:00:30 behind the watermark"
    assert told == [f"batch 8, bucket 2: 1.0 MiB state, 4,000 partial matches, 1 held, {behind}"]
    with caplog.at_level(logging.INFO, logger="stretto"):
        listener = stretto.spark.watch(spark, most=3)
        try:
            add_file(tmp_path / "in", pa.table({"type": ["A", "B"], "t": [1, 2], "k": ["x", None]}), 0)
            events = read_stream(spark, tmp_path / "in")
            text = "SELECT * FROM S WHERE A PARTITION BY [k]"
            matches = stretto.spark.match(events, text, time="t", time_unit="s", disorder="1 second")
            run(matches, tmp_path / "checkpoint", tmp_path / "out")
            spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        finally:
            stretto.spark.unwatch(spark, listener)
    assert "1 events take no part: without a partition attribute (NULL)" in caplog.text
    assert re.search(r"batch 0, bucket \d+: 0\.0 MiB state, ", caplog.text)
