"""EQL on Spark: batches, cut by key and by time, and streams give what the library gives in this process."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import OptionError
from tests.spark.streams import add_file, bag, read_stream, run_together
from tests.spark.test_batch import found_by_spark

pytestmark = [pytest.mark.spark]

QUERIES = {
    "event": 'A where name : ("a*", "?b") and not v > 1',
    "key": "sequence by k [A where true] [B where v > 0] until [C where true]",
    "key and time": "sequence by k with maxspan=9s [A where true] ![C where true] [any where v == 1]",
    "time": "sequence with maxspan=9s [A where true] [B where true] with runs=2",
    "keys of steps": "sequence with maxspan=9s [A where true] by k [B where true] by j",
    "key that may be missing": "sequence by ?k with maxspan=9s [A where true] [B where startsWith~(name, j)]",
    "nothing came": "sequence by k with maxspan=6s [A where true] ![B where true]",
    "join": "join by k [A where true] [B where v > 0] [any where v == 2] until [D where v == 0]",
    "join with keys of steps": "join [A where true] by k [B where true] by j",
    "sample": "sample by k [A where true] [B where true] [any where v == 2]",
}
GIVEN: dict[str, Any] = {"language": "eql", "time": "t", "time_unit": "s", "sequence": "n"}


def events(seed: int, count: int) -> pa.Table:
    choose = random.Random(seed)
    time, rows = 0, []
    for number in range(count):
        time += choose.choice([0, 1, 2])
        row = {"type": choose.choice("ABCD"), "t": time, "n": number, "v": choose.choice([0, 1, 2, None])}
        row |= {name: choose.choice(["a", "b", "c", None]) for name in ("k", "j")}
        rows.append(row | {"name": choose.choice(["a", "ab", "AB", None])})
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("name", QUERIES)
def test_batches(spark: Any, name: str) -> None:
    table = events(3, 120)
    expected = stretto.match(QUERIES[name], table, **GIVEN)
    assert expected.num_rows
    df = spark.createDataFrame(table).repartition(3)
    assert bag(found_by_spark(df, QUERIES[name], **GIVEN, partitions=4)) == bag(expected)


def test_a_stream(spark: Any, tmp_path: Path) -> None:
    table = events(5, 90)
    last = {"type": "D", "t": 10_000, "n": 10_000, "v": None, "k": "a", "j": None, "name": None}
    table = pa.concat_tables([table, pa.Table.from_pylist([last], table.schema)])
    for number, begin in enumerate(range(0, table.num_rows, 30)):
        add_file(tmp_path / "in", table.slice(begin, 30), number)
    streams = {
        name: stretto.spark.match(read_stream(spark, tmp_path / "in"), QUERIES[name], **GIVEN, disorder="0 seconds")
        for name in ("key and time", "join")
    }
    columns = ["start_time", "end_time", "k"]
    for name, given in run_together(streams, tmp_path)[1].items():
        expected = stretto.match(QUERIES[name], table, **GIVEN)
        assert expected.num_rows, name
        assert bag(given, columns) == bag(expected, columns), name


def test_pipes_are_refused(spark: Any) -> None:
    with pytest.raises(OptionError, match="Spark finds matches side by side"):
        stretto.spark.match(spark.createDataFrame(events(1, 5)), "A where true | head 2", **GIVEN)
