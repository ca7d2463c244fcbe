"""Durations in conditions beside numbers that count the time: on Spark they mean what they mean in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.matching.api.test_clock_durations import CEQL, CLAUSE, ROWS, SASE, WINDOW, table
from tests.spark.streams import add_file, bag, read_stream, run
from tests.spark.test_batch import found_by_spark

pytestmark = [pytest.mark.spark]

GIVEN: dict[str, Any] = {"time": "ts", "time_unit": "s"}
QUERIES = {
    "between events": SASE.format("b.ts - a.ts > 5 seconds"),
    "of one event": CEQL.format("ts - sent > 6500 ms"),
    "returned": f"{SASE.format('b.ts > a.ts + 5 s')} RETURN b.ts - 1 minute AS before, b.ts - a.ts AS lasted",
}


@pytest.mark.parametrize("name", QUERIES)
def test_batches(spark: Any, name: str) -> None:
    expected = stretto.match(QUERIES[name], table(ROWS), **GIVEN)
    assert 0 < expected.num_rows < 5
    df = spark.createDataFrame(table(ROWS)).repartition(2)
    assert bag(found_by_spark(df, QUERIES[name], **GIVEN)) == bag(expected)


def test_a_stream(spark: Any, tmp_path: Path) -> None:
    query, rows = QUERIES["between events"], [*ROWS, ("C", 1000, 0, 0)]
    for number, begin in enumerate(range(0, len(rows), 2)):
        add_file(tmp_path / "in", table(rows[begin : begin + 2]), number)
    found = stretto.spark.match(read_stream(spark, tmp_path / "in"), query, **GIVEN, disorder="0 seconds")
    run(found, tmp_path / "checkpoint", tmp_path / "out")
    assert bag(spark.read.parquet(str(tmp_path / "out")).toArrow()) == bag(stretto.match(query, table(rows), **GIVEN))


def test_sets_of_patterns(spark: Any) -> None:
    """A clause in a set has the unit of the set."""
    texts = {
        "pair": SASE.format("b.ts - a.ts > 5 seconds"),
        "clause": CLAUSE.replace("B AS", "B AS type = 'B' AND").replace("(A B)", "(A C* B)"),
        "window": WINDOW.format("6.5").replace("PARTITION BY n", "").replace("A B+", "A C* B+"),
    }
    changes = pa.table({"id": list(texts), "query": list(texts.values())})
    found = stretto.spark.match_patterns(
        spark.createDataFrame(table(ROWS)), spark.createDataFrame(changes), **GIVEN, output="positions"
    )
    got = sorted((row["pattern"], row["start_time"], row["end_time"]) for row in found.toArrow().to_pylist())
    patterns = stretto.PatternSet(table(ROWS).schema, **GIVEN, output="positions")
    patterns.change([stretto.Change(name, text) for name, text in texts.items()])
    tables = [patterns.push(table(ROWS)), patterns.finish()]
    expected = sorted((row["pattern"], row["start_time"], row["end_time"]) for one in tables for row in one.to_pylist())
    assert got == expected
    assert {name for name, *_ in got} == set(texts)
