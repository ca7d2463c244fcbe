"""Gaps, windows inside and absence at the ends in CEQL on Spark: the matches of this process, batch, in slices and streaming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.conftest import seeds
from tests.spark.streams import add_file, bag, read_stream, run
from tests.spark.test_batch import found_by_spark
from tests.spark.test_sase import SCHEMA, events, stream

pytestmark = [pytest.mark.spark]

QUERIES = {
    "before, in slices": "SELECT * FROM S WHERE NOT C ; (A ; B) WITHIN 3 [t] ; A WITHIN 9 [t]",
    "sessions": "SELECT MAX * FROM S WHERE A+ GAP 4 [t] ; B AFTER 1 [t] WITHIN 6 [t] PARTITION BY [k]",
    "behind": "SELECT * FROM S WHERE A ; NOT B ; C ; NOT A ; NOT B PARTITION BY [k] WITHIN 12 [t]",
}


@pytest.mark.parametrize("name", seeds(*QUERIES))
def test_same_matches_as_embedded(spark: Any, tmp_path: Path, name: str) -> None:
    query, table = QUERIES[name], events(3, 200).sort_by("seq")
    options: dict[str, Any] = {"time": "t", "sequence": "seq"}
    expected = stretto.match(query, table, **options)
    assert expected.num_rows > 0
    slices = {"slices": 3} if "slices" in name else {}
    assert bag(found_by_spark(spark.createDataFrame(table).repartition(3), query, **options, **slices)) == bag(expected)
    given = stream(spark, tmp_path / "in", table)
    matches = stretto.spark.match(given, query, time_unit="s", disorder="5 seconds", buckets=2, **options)
    run(matches, tmp_path / "checkpoint", tmp_path / "out")
    assert bag(spark.read.parquet(str(tmp_path / "out")).toArrow()) == bag(expected)


def test_what_must_not_come_behind_is_known_when_the_watermark_has_passed(spark: Any, tmp_path: Path) -> None:
    query = "SELECT * FROM S WHERE A ; B ; NOT C PARTITION BY [k] WITHIN 10 [t]"
    options: dict[str, Any] = {"time": "t", "sequence": "seq", "time_unit": "s", "disorder": "0 seconds", "buckets": 2}

    def step(number: int, rows: list[tuple[str, int, str]]) -> list[tuple[int, int]]:
        """The matches after one more micro-batch, which goes on from the checkpoint."""
        shown = [{"type": kind, "t": t, "seq": 10 * number + i, "k": k} for i, (kind, t, k) in enumerate(rows)]
        add_file(tmp_path / "in", pa.Table.from_pylist(shown, schema=SCHEMA), number)
        run(
            stretto.spark.match(read_stream(spark, tmp_path / "in"), query, **options),
            tmp_path / "checkpoint",
            tmp_path / "out",
        )
        found = spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
        return sorted((row["start_time"], row["end_time"]) for row in found)

    assert step(0, [("A", 0, "x"), ("B", 3, "x"), ("A", 1, "y"), ("B", 2, "y")]) == []
    assert step(1, [("C", 9, "x"), ("D", 40, "z")]) == [(1, 2)]
