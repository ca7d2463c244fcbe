"""What stands behind a match of a stream in the same plan: other matches, dropDuplicates, joins, windows; never nothing."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import OptionError
from tests.conftest import seeds
from tests.spark.streams import add_file, read_stream, run

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

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
    with pytest.raises(
        OptionError, match=r"withWatermark stands behind a continuous query.*second query.*foreachBatch"
    ):
        run(counted, tmp_path / "checkpoint", tmp_path / "out")
    # The way out: a batch at a time.
    counts: dict[Any, int] = {}

    def add(batch: Any, _: int) -> None:
        for row in batch.groupBy(F.window("end_time", "1 hour")).count().collect():
            counts[row.window.start] = counts.get(row.window.start, 0) + row["count"]

    run(matches, tmp_path / "checkpoint", tmp_path / "out", add)
    assert list(counts.values()) == [3]


@pytest.mark.parametrize("size", [7, *seeds(1)])
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


@pytest.mark.parametrize(("first", "size"), [(SILENCE, 15), *seeds((PAIRS, 7), (PAIRS, 1000), (SILENCE, 1000))])
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
