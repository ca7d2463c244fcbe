"""``timeouts=`` on Spark: the rows of this process, batch and streaming."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import OptionError
from tests.spark.streams import bag, run_together
from tests.spark.test_batch import found_by_spark
from tests.spark.test_sase import events
from tests.spark.test_streaming import random_events, stream

pytestmark = [pytest.mark.spark]

QUERIES = {
    "keyed": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [k] and b[i].v >= b[i-1].v } WITHIN 20",
    "unkeyed": "PATTERN SEQ(A a, B b, ~(D n), C c) WHERE skip_till_any_match { b.v > a.v } WITHIN 5",
    "shortcut": "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match { [k] and b.v > 2 } WITHIN 9",
    "counted": "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { [k] } WITHIN 3 EVENTS",
    "closing": "PATTERN SEQ(A a, B b, ~(C n)) WHERE skip_till_next_match { [k] } WITHIN 9 RETURN b.v - a.v AS up",
    "ceql": "SELECT * FROM S WHERE A AS a ; B+ AS b GAP 9 [t] ; NOT D ; C PARTITION BY [k] WITHIN 20 [t]",
}


@pytest.mark.parametrize("name", QUERIES)
def test_batch(spark: Any, name: str) -> None:
    query, table = QUERIES[name], events(3)
    options: dict[str, Any] = {"time": "t", "sequence": "seq", "timeouts": True}
    expected = stretto.match(query, table, **options)
    assert 0 < expected.num_rows - expected.column("reached").null_count < expected.num_rows
    found = found_by_spark(spark.createDataFrame(table).repartition(3), query, **options, partitions=3)
    assert found.column_names == [n for n in expected.column_names if n not in ("start", "end", "positions")]
    assert bag(found) == bag(expected)


def test_an_event_of_no_match_closes_windows_of_all_keys(spark: Any) -> None:
    rows = [("A", 1, "x"), ("B", 3, "x"), ("A", 2, "y"), ("Z", 40, "z")]
    table = pa.Table.from_pylist([{"type": kind, "t": t, "k": k} for kind, t, k in rows])
    query = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { [k] } WITHIN 10"
    found = found_by_spark(spark.createDataFrame(table), query, time="t", timeouts=True, output="positions")
    assert sorted((row["k"], row["reached"], row["expired"]) for row in found.to_pylist()) == [
        ("x", "b", 11),
        ("y", "a", 12),
    ]


STREAMED = {
    "keyed": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [key] and b[i].x >= b[i-1].x } WITHIN 20 seconds",
    "closing": "PATTERN SEQ(A a, B b, ~(C n)) WHERE skip_till_next_match { [key] } WITHIN 9 seconds",
    "counted": "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { [key] } WITHIN 3 EVENTS",
    "ceql": "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c PARTITION BY [key] WITHIN 20 seconds",
}


def test_streaming(spark: Any, tmp_path: Path) -> None:
    table = random_events(5)
    events = stream(spark, tmp_path / "events", table)
    options: dict[str, Any] = {"time": "ts", "sequence": "seq", "timeouts": True}
    streams = {
        name: stretto.spark.match(events, text, disorder="10 seconds", buckets=3, **options)
        for name, text in STREAMED.items()
    }
    query, given = run_together(streams, tmp_path)
    matches = timeouts = 0
    for name, text in STREAMED.items():
        expected = stretto.match(text, table, **options)
        found = expected.column("reached").null_count
        assert 0 < found < expected.num_rows, name
        assert bag(given[name]) == bag(expected), name
        matches, timeouts = matches + found, timeouts + expected.num_rows - found
    counts = [stretto.spark.metrics(progress) for progress in query.recentProgress]
    assert sum(one["matches"] for one in counts) == matches
    assert sum(one["timeouts"] for one in counts) == timeouts


def test_late_events_have_rows_beside_those_of_timeouts(spark: Any, tmp_path: Path) -> None:
    table = random_events(5, 40)
    found = stretto.spark.match(
        stream(spark, tmp_path / "events", table),
        STREAMED["keyed"],
        time="ts",
        disorder="10 seconds",
        late="side",
        timeouts=True,
    )
    assert found.columns[-3:] == ["reached", "expired", "late"]
    assert found.schema["expired"].dataType == found.schema["start_time"].dataType


def test_what_is_refused(spark: Any) -> None:
    df = spark.createDataFrame([("A", 1, 2, dt.datetime(2024, 1, 1))], "type string, t long, w long, ts timestamp")
    with pytest.raises(OptionError, match="needs a window of 't', and this one measures 'w'"):
        stretto.spark.match(
            df, "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 5 [w]", time="t", timeouts=True
        )
    query = "SELECT * FROM S WHERE A ; B WITHIN 5 [t] CONSUME BY ANY"
    with pytest.raises(OptionError, match="CONSUME BY leaves matches out"):
        stretto.spark.match(df, query, time="t", timeouts=True)
