"""Every event of a stream moves its time on, on Spark, too: of any type and key, and without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.matching.reorder.test_time_moves import ABSENT, LATE, TIMED_OUT, events
from tests.spark.streams import add_file, bag, read_stream, run, run_together

pytestmark = [pytest.mark.spark]

GIVEN: dict[str, Any] = {"time": "ts", "time_unit": "s"}
CHANGES = pa.table(
    {
        "id": [*ABSENT, "pair"],
        "query": [*ABSENT.values(), LATE],
        "language": ["eql" if name == "eql" else None for name in (*ABSENT, "pair")],
    }
)


def short(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((row["pattern"], row["start_time"], row["end_time"], row["k"]) for row in table.to_pylist())


@pytest.mark.parametrize("by", [(), ("k",)])
def test_a_batch_of_patterns(spark: Any, by: tuple[str, ...]) -> None:
    """The last event has no key, and decides what waits in all keys but the one that has just begun."""
    table = events(("A", 5, "u"), ("B", 6, "u"), ("C", 14, "u"), ("C", 16, "v"), ("Z", 17, None))
    df = spark.createDataFrame(table).repartition(3)
    patterns = spark.createDataFrame(CHANGES)
    found = stretto.spark.match_patterns(df, patterns, **GIVEN, by=by, at_end="drop", output="positions").toArrow()
    told = [row for row in found.to_pylist() if row["start_time"] is None]
    assert {row["pattern"]: row["undecided"] for row in told} == dict.fromkeys(ABSENT, 1)  # that of 'v'
    known = [(row["pattern"], row["start_time"], row["end_time"]) for row in found.to_pylist() if row not in told]
    assert sorted(known) == [("ceql", 14, 14), ("eql", 14, 14), ("pair", 5, 6), ("sase", 14, 14)]


def test_a_stream_of_patterns(spark: Any, tmp_path: Path) -> None:
    """Events without a key come in micro-batches of their own: they decide what is absent, and make late what is earlier."""
    pieces = [
        events(("A", 10, "u"), ("A", 10, "v"), ("C", 14, "u")),
        events(("Z", 20, None)),
        events(("B", 12, "u"), ("B", 18, "v")),  # the first one is late: time has come to 17
        events(("Z", 40, None)),
    ]
    for number, piece in enumerate(pieces):
        add_file(tmp_path / "in", piece, number)
    found = stretto.spark.match_patterns(
        read_stream(spark, tmp_path / "in"), CHANGES, **GIVEN, by="k", disorder="3 seconds", output="positions"
    )
    run(found, tmp_path / "checkpoint", tmp_path / "out")
    got = spark.read.schema(found.schema).parquet(str(tmp_path / "out")).toArrow()
    assert short(got) == [("ceql", 14, 14, "u"), ("eql", 14, 14, "u"), ("pair", 10, 18, "v"), ("sase", 14, 14, "u")]


def test_windows_time_out_in_a_stream(spark: Any, tmp_path: Path) -> None:
    pieces = [events(("C", 14, "u"), ("C", 15, None)), events(("Z", 17, None))]
    for number, piece in enumerate(pieces):
        add_file(tmp_path / "in", piece, number)
    options: dict[str, Any] = {**GIVEN, "timeouts": True}
    streams = {
        language: stretto.spark.match(read_stream(spark, tmp_path / "in"), query, **options, disorder="0 seconds")
        for language, query in TIMED_OUT.items()
    }
    for language, given in run_together(streams, tmp_path)[1].items():
        assert [(row["start_time"], row["expired"], row["k"]) for row in given.to_pylist()] == [(14, 16, "u")], language
        whole = stretto.match(TIMED_OUT[language], pa.concat_tables(pieces), **options)
        columns = ["start_time", "expired", "k"]
        assert bag(given, columns) == bag(whole, columns), language
