"""What stands behind a match of a stream in the same plan: other matches, dropDuplicates, joins, windows; never nothing."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import OptionError
from tests.conftest import seeds
from tests.spark.streams import add_file, read_stream, run

pytestmark = [pytest.mark.spark]

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
PAIRS = "SELECT a[ts] FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 5 seconds"
SILENCE = "SELECT a[ts] FROM S WHERE A AS a ; NOT B PARTITION BY [key] WITHIN 3 seconds"
TWICE = "SELECT * FROM S WHERE M AS m ; M AS n PARTITION BY [key] WITHIN 1 minute"


def table(rows: list[tuple[str, float, str]]) -> pa.Table:
    kinds, seconds, keys = zip(*rows, strict=True)
    times = [START + dt.timedelta(seconds=second) for second in seconds]
    return pa.table({"type": kinds, "ts": pa.array(times, pa.timestamp("us", tz="UTC")), "key": keys})


PAIRED = [
    ("A", 1, "k"),
    ("B", 2, "k"),
    ("A", 11, "k"),
    ("B", 12, "k"),
    ("A", 21, "k"),
    ("B", 22, "k"),
    ("X", 10_000, "k"),
]


def stream(spark: Any, folder: Path, rows: list[tuple[str, float, str]], size: int) -> Any:
    for number, first in enumerate(range(0, len(rows), size)):
        add_file(folder, table(rows[first : first + size]), number)
    return read_stream(spark, folder)


def result(spark: Any, folder: Path) -> pa.Table:
    found: pa.Table = spark.read.parquet(str(folder)).toArrow()
    return found


def test_a_watermark_behind_a_match_is_refused_when_the_query_starts(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    events = stream(spark, tmp_path / "in", PAIRED, 7)
    matches = stretto.spark.match(events, PAIRS, time="ts", disorder="5 seconds", buckets=2)
    counted = matches.withWatermark("end_time", "1 minute").groupBy(F.window("end_time", "1 hour")).count()
    matches.createOrReplaceTempView("matches_of_a_stream")
    viewed = spark.table("matches_of_a_stream").withWatermark("end_time", "1 minute")
    for behind in (counted, viewed):
        with pytest.raises(
            OptionError,
            match=r"withWatermark stands behind a continuous query.*Leave it out.*second query.*foreachBatch",
        ):
            run(behind, tmp_path / "checkpoint", tmp_path / "out")
    # The way out: a batch at a time.
    counts: dict[Any, int] = {}

    def add(batch: Any, _: int) -> None:
        for row in batch.groupBy(F.window("end_time", "1 hour")).count().collect():
            counts[row.window.start] = counts.get(row.window.start, 0) + row["count"]

    run(matches, tmp_path / "checkpoint", tmp_path / "out", add)
    assert list(counts.values()) == [3]


@pytest.mark.parametrize("size", [7, *seeds(2, 1)])
def test_duplicates_and_joins_behind_a_match(spark: Any, tmp_path: Path, size: int) -> None:
    events = stream(spark, tmp_path / "in", PAIRED, size)
    matches = stretto.spark.match(events, PAIRS, time="ts", disorder="5 seconds", buckets=2)
    named = spark.createDataFrame([("k", "a name")], "key string, name string")
    joined = matches.select("key", "end_time").dropDuplicates(["key", "end_time"]).join(named, "key")
    others = events.select("key", "ts").withColumnRenamed("ts", "at")
    run(joined.join(others, ["key"]).where("at = end_time"), tmp_path / "checkpoint", tmp_path / "out")
    found = result(spark, tmp_path / "out")
    assert [row.second for row in sorted(found["end_time"].to_pylist())] == [2, 12, 22]
    assert set(found["name"].to_pylist()) == {"a name"}


@pytest.mark.usefixtures("two_partitions")
@pytest.mark.parametrize(
    ("first", "size"), [(SILENCE, 40), *seeds((PAIRS, 20), (PAIRS, 7), (PAIRS, 1000), (SILENCE, 15), (SILENCE, 1000))]
)
def test_a_match_behind_a_match(spark: Any, tmp_path: Path, first: str, size: int) -> None:
    seed = random.randrange(10**6)
    rng = random.Random(seed)
    print(f"seed {seed}, {size} events a micro-batch")
    rows = [(rng.choice("AAABC"), float(i // 2 + rng.randrange(4)), rng.choice("kl")) for i in range(75)]
    rows += [("X", 10_000.0, "k"), ("X", 20_000.0, "k")]
    pairs = stretto.match(first, table(rows), time="ts")
    as_events = pa.table({"type": ["M"] * pairs.num_rows, "ts": pairs["end_time"], "key": pairs["key"]})
    expected = stretto.match(TWICE, as_events.sort_by("ts"), time="ts")

    matches = stretto.spark.match(
        stream(spark, tmp_path / "in", rows, size), first, time="ts", disorder="5 seconds", buckets=2
    )
    renamed = matches.selectExpr("'M' AS type", "end_time AS ts", "key")
    again = stretto.spark.match(renamed, TWICE, time="ts", buckets=3)
    query = run(again, tmp_path / "checkpoint", tmp_path / "out")
    found = result(spark, tmp_path / "out")
    columns = ["key", "start_time", "end_time"]
    assert expected.num_rows > 2
    assert sorted(map(repr, found.select(columns).to_pylist())) == sorted(
        map(repr, expected.select(columns).to_pylist())
    )
    assert sum(stretto.spark.metrics(progress)["late"] for progress in query.recentProgress) == 0


@pytest.mark.usefixtures("two_partitions")
def test_windows_over_matches(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    events = stream(spark, tmp_path / "in", PAIRED, 3)
    matches = stretto.spark.match(events, PAIRS, time="ts", disorder="5 seconds", buckets=2)
    run(
        matches.groupBy(F.window("end_time", "1 hour")).count(),
        tmp_path / "checkpoint",
        tmp_path / "out",
    )
    assert result(spark, tmp_path / "out").to_pylist() == [
        {"window": {"start": START, "end": START + dt.timedelta(hours=1)}, "count": 3}
    ]


@pytest.mark.parametrize(("mode", "counts"), [("update", {1, 2, 3}), ("complete", {3})])
def test_windows_in_modes_that_show_them_before_they_end(
    spark: Any, tmp_path: Path, mode: str, counts: set[int]
) -> None:
    from pyspark.sql import functions as F

    matches = stretto.spark.match(
        stream(spark, tmp_path / "in", PAIRED, 2), PAIRS, time="ts", disorder="5 seconds", buckets=2
    )
    counted = matches.groupBy(F.window("end_time", "1 hour")).count()
    name = f"counted_in_{mode}"
    writer = counted.writeStream.format("memory").queryName(name).outputMode(mode)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    assert {row["count"] for row in spark.table(name).collect()} <= counts
    assert max(row["count"] for row in spark.table(name).collect()) == 3


@pytest.mark.parametrize("size", [13, *seeds(1000, 1, 3, 8)])
def test_what_ends_at_a_watermark_is_in_time_for_what_stands_behind(spark: Any, tmp_path: Path, size: int) -> None:
    """Times are whole seconds, so that watermarks are where matches end; Spark takes what lies there for late."""
    from pyspark.sql import functions as F

    seed = random.randrange(10**6)
    rng = random.Random(seed)
    print(f"seed {seed}, {size} events a micro-batch")
    ends: list[tuple[str, dt.datetime]] = []
    while len(set(ends)) < 4:  # few events may have none
        rows = [(rng.choice("AABC"), float(i + rng.randrange(3)), rng.choice("kl")) for i in range(24)]
        rows += [("C", 10_000.0, "k"), ("C", 20_000.0, "k")]
        plain = stretto.match(PAIRS, table(rows), time="ts")
        ends = list(zip(plain["key"].to_pylist(), plain["end_time"].to_pylist(), strict=True))
    stream(spark, tmp_path / "in", rows, size)

    def matches() -> Any:
        return stretto.spark.match(
            read_stream(spark, tmp_path / "in"), PAIRS, time="ts", disorder="5 seconds", buckets=2
        )

    run(matches().dropDuplicates(["key", "end_time"]), tmp_path / "c1", tmp_path / "single")
    single = result(spark, tmp_path / "single").select(["key", "end_time"]).to_pylist()
    assert sorted((row["key"], row["end_time"]) for row in single) == sorted(set(ends))

    counted = matches().groupBy("key", F.window("end_time", "4 seconds")).count()
    run(counted, tmp_path / "c2", tmp_path / "windows")
    of_window = Counter((key, int((end - START).total_seconds()) // 4) for key, end in ends)
    assert {
        (row["key"], int((row["window"]["start"] - START).total_seconds()) // 4): row["count"]
        for row in result(spark, tmp_path / "windows").to_pylist()
    } == of_window

    # An outer join gives what finds nothing when both watermarks have passed it.
    others = (
        read_stream(spark, tmp_path / "in")
        .where("type = 'C'")
        .select(F.col("key").alias("of"), F.col("ts").alias("at"))
    )
    outer = (
        matches()
        .select("key", "end_time")
        .join(others.withWatermark("at", "5 seconds"), F.expr("key = of AND at = end_time"), "leftOuter")
    )
    run(outer, tmp_path / "c3", tmp_path / "outer")
    at = Counter((key, START + dt.timedelta(seconds=second)) for kind, second, key in rows if kind == "C")
    wanted = Counter(
        {(key, end, bool(at[key, end])): max(1, at[key, end]) * number for (key, end), number in Counter(ends).items()}
    )
    found = result(spark, tmp_path / "outer").to_pylist()
    assert Counter((row["key"], row["end_time"], row["at"] is not None) for row in found) == wanted


@pytest.mark.parametrize("how", ["negation", "patterns", "own watermark", "ahead"])
def test_matches_without_a_watermark_of_their_own_have_no_windows(spark: Any, tmp_path: Path, how: str) -> None:
    """Spark refuses such windows when the query starts."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    events, running = stream(spark, tmp_path / "in", PAIRED, 7), {"disorder": "5 seconds", "buckets": 2}
    if how == "negation":
        found = stretto.spark.match(events, SILENCE, time="ts", **running)
    elif how == "patterns":
        found = stretto.spark.match_patterns(events, {"pair": PAIRS}, by=["key"], time="ts", type="type", **running)
    elif how == "own watermark":
        found = stretto.spark.match(events.withWatermark("ts", "5 seconds"), PAIRS, time="ts", buckets=2)
    else:
        text = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [key] } WITHIN 5 seconds"
        found = stretto.spark.match(events, text, time="ts", speculation=math.inf, **running)
    with pytest.raises(AnalysisException, match="without watermark"):
        run(found.groupBy(F.window("end_time", "1 hour")).count(), tmp_path / "checkpoint", tmp_path / "out")


def test_a_clause_behind_a_match_and_a_match_behind_a_clause(spark: Any, tmp_path: Path) -> None:
    events = stream(spark, tmp_path / "in", PAIRED, 3)
    matches = stretto.spark.match(events, PAIRS, time="ts", disorder="5 seconds", buckets=2)
    matches.createOrReplaceTempView("pairs_of_a_stream")
    clause = "PARTITION BY key ORDER BY end_time MEASURES p.end_time AS first, q.end_time AS second PATTERN (p q)"
    text = f"SELECT * FROM pairs_of_a_stream MATCH_RECOGNIZE ({clause} DEFINE q AS q.end_time > p.end_time)"
    run(stretto.spark.sql(spark, text), tmp_path / "c1", tmp_path / "twos")
    shown = result(spark, tmp_path / "twos").to_pylist()
    assert [(row["first"].second, row["second"].second) for row in shown] == [(2, 12)]

    events.withWatermark("ts", "5 seconds").createOrReplaceTempView("events_of_a_stream")
    clause = "PARTITION BY key ORDER BY ts MEASURES b.ts AS ended PATTERN (a b) DEFINE a AS type = 'A', b AS type = 'B'"
    found = stretto.spark.sql(
        spark, f"SELECT 'M' AS type, ended AS ts, key FROM events_of_a_stream MATCH_RECOGNIZE ({clause})"
    )
    with pytest.raises(OptionError, match="disorder='10 minutes' says it"):
        stretto.spark.match(found, TWICE, time="ts")
    again = stretto.spark.match(found, TWICE, time="ts", disorder="1 minute", buckets=3)
    run(again, tmp_path / "c2", tmp_path / "again")
    assert result(spark, tmp_path / "again").num_rows == 3


def test_a_match_behind_a_match_goes_on_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    def again() -> Any:
        matches = stretto.spark.match(
            read_stream(spark, tmp_path / "in"), PAIRS, time="ts", disorder="5 seconds", buckets=2
        )
        return stretto.spark.match(
            matches.selectExpr("'M' AS type", "end_time AS ts", "key"), TWICE, time="ts", buckets=3
        )

    for number, (first, last) in enumerate([(0, 3), (3, 5), (5, 7)]):
        add_file(tmp_path / "in", table(PAIRED[first:last]), number)
        run(again(), tmp_path / "checkpoint", tmp_path / "out")
    found = result(spark, tmp_path / "out").to_pylist()
    assert sorted((row["start_time"].second, row["end_time"].second) for row in found) == [(2, 12), (2, 22), (12, 22)]


def test_files_of_matches_are_a_stream_without_a_watermark(spark: Any, tmp_path: Path) -> None:
    """Spark writes into files that a column had a watermark."""
    matches = stretto.spark.match(
        stream(spark, tmp_path / "in", PAIRED, 7), PAIRS, time="ts", disorder="5 seconds", buckets=2
    )
    run(matches, tmp_path / "c1", tmp_path / "matches")
    schema = spark.read.parquet(str(tmp_path / "matches")).schema
    assert schema["end_time"].metadata
    written = spark.readStream.schema(schema).parquet(str(tmp_path / "matches"))
    renamed = written.selectExpr("'M' AS type", "end_time AS ts", "key")
    with pytest.raises(OptionError, match="needs a watermark"):
        stretto.spark.match(renamed, TWICE, time="ts")
    again = stretto.spark.match(renamed, TWICE, time="ts", disorder="0 seconds", buckets=3)
    run(again, tmp_path / "c2", tmp_path / "out")
    assert result(spark, tmp_path / "out").num_rows == 1  # nothing moves the watermark past the third


def test_who_reads_results_of_unknown_delay_says_it(spark: Any, tmp_path: Path) -> None:
    events = stream(spark, tmp_path / "in", PAIRED, 2)
    found = stretto.spark.match_patterns(
        events, {"pair": PAIRS}, by=["key"], time="ts", disorder="5 seconds", type="type", buckets=2
    )
    renamed = found.selectExpr("'M' AS type", "end_time AS ts", "key")
    with pytest.raises(OptionError, match="disorder='10 minutes' says it"):
        stretto.spark.match(renamed, TWICE, time="ts")
    again = stretto.spark.match(renamed, TWICE, time="ts", disorder="10 seconds", buckets=2)
    run(again, tmp_path / "checkpoint", tmp_path / "out")
    assert result(spark, tmp_path / "out").num_rows == 3
