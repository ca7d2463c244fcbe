"""Keys that streams, or types, call differently on Spark: the same matches as in this process, distributed by these keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.conftest import seeds
from tests.matching.input.test_joined_keys import JOINED, QUERY, one, streams
from tests.spark.streams import add_file, bag, read_stream, run_together

pytestmark = [pytest.mark.spark]

CEQL = QUERY.format("*", "{}", "WITHIN 9 [at]").replace("{}", JOINED)
SASE = """
PATTERN SEQ(NEW n, PAID+ p[], SENT s)
WHERE skip_till_any_match { p[1].order_id = n.id AND p[i].order_id = p[i-1].order_id AND n.id = s.of.order }
WITHIN 9
"""
GIVEN: dict[str, Any] = {"time": "at", "stream": "from", "time_unit": "s"}
QUERIES = {
    "CEQL": CEQL,
    "CEQL, two keys": CEQL.replace("WITHIN", ", [region] WITHIN"),
    "CEQL, projected": CEQL.replace("*", "p[id], s"),
    "CEQL, consumed": CEQL.replace("WITHIN 9 [at]", "CONSUME BY ANY"),
    "SASE+": SASE,
    "SASE+, next": SASE.replace("any", "next").replace("n.id = s.of.order", "s.of.order = n.id AND [region]"),
}


def events(seed: int) -> pa.Table:
    """The events of the streams, each at a time of its own."""
    return one(streams(seed))


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", seeds(*range(4)))
def test_batch(spark: Any, name: str, seed: int) -> None:
    table = events(seed)
    expected = stretto.match(QUERIES[name], table, **GIVEN)
    found = stretto.spark.match(spark.createDataFrame(table), QUERIES[name], **GIVEN, slices=2).toArrow()
    assert found.column_names == [one for one in expected.column_names if one not in ("start", "end", "positions")]
    columns = ["start_time", "end_time", *(["id"] if "CEQL" in name else [])]
    assert bag(found, columns) == bag(expected, columns)


def test_streaming(spark: Any, tmp_path: Path) -> None:
    """In a stream, too; behind all windows comes an event without a key, which moves time."""
    table = events(3)
    last = pa.Table.from_pylist([{"type": "OTHER", "at": 1_000, "from": "orders"}], table.schema)
    for number, begin in enumerate(range(0, table.num_rows, 15)):
        add_file(tmp_path / "in", table.slice(begin, 15), number)
    add_file(tmp_path / "in", last, 9)
    streams = {
        name: stretto.spark.match(read_stream(spark, tmp_path / "in"), QUERIES[name], **GIVEN, disorder="5 seconds")
        for name in ("CEQL", "SASE+, next")
    }
    for name, given in run_together(streams, tmp_path)[1].items():
        expected = stretto.match(QUERIES[name], table, **GIVEN)
        columns = ["start_time", "end_time", *(["id"] if name == "CEQL" else [])]
        assert expected.num_rows, name
        assert bag(given, columns) == bag(expected, columns), name


def test_explain_says_how_they_are_distributed(spark: Any, tmp_path: Path) -> None:
    df = spark.createDataFrame(events(0))
    assert f"hashed by {JOINED} into" in stretto.spark.explain(df, CEQL, **GIVEN)
    told = "NEW[id] = PAID[order_id] = SENT[of.order]"
    assert f"hashed by {told} into" in stretto.spark.explain(df, SASE, **GIVEN)
    assert "one task for all events" in stretto.spark.explain(df, SASE.replace("n.id = s.of.order", "TRUE"), **GIVEN)
    add_file(tmp_path / "in", events(0), 0)
    stream = read_stream(spark, tmp_path / "in")
    for late, how in (("drop", "keys hashed into 64 buckets"), ("side", "one state, in one task")):
        assert how in stretto.spark.explain(stream, SASE, **GIVEN, disorder="5 seconds", late=late)


def test_dataframes_by_stream(spark: Any) -> None:
    tables = streams(2)
    frames = {name: spark.createDataFrame(table) for name, table in tables.items()}
    expected = stretto.match(CEQL, tables, time="at")
    found = stretto.spark.match(frames, CEQL, time="at").toArrow()
    assert expected.num_rows
    assert bag(found, ["start_time", "end_time", "id"]) == bag(expected, ["start_time", "end_time", "id"])


def test_a_column_of_the_name_of_a_key(spark: Any) -> None:
    df = spark.createDataFrame(events(0)).withColumnRenamed("region", JOINED)
    with pytest.raises(stretto.DataError, match="as the key of the query is: rename it"):
        stretto.spark.match(df, CEQL, **GIVEN)


def test_in_sql(spark: Any) -> None:
    table, key = events(2).drop_columns(["of"]), "orders[id] = payments[order_id]"
    text = f"SELECT * FROM orders, payments WHERE NEW ; PAID PARTITION BY {key} WITHIN 9 [at]"
    spark.createDataFrame(table).createOrReplaceTempView("joined_events")
    stretto.spark.register(spark)
    asked = "time => 'at', time_unit => 's', stream => 'from'"
    found = spark.sql(f"SELECT * FROM stretto_query(TABLE(joined_events), '{text}', {asked})").toArrow()
    expected = stretto.match(text, table, **GIVEN)
    assert expected.num_rows
    assert bag(found, ["start_time", "end_time", "id"]) == bag(expected, ["start_time", "end_time", "id"])


#: Keys of integers and of floating point.
MIXED = {
    "CEQL": ("SELECT * FROM o, p WHERE A ; B PARTITION BY o[x] = p[k] WITHIN 9 [t]", {"stream": "s", "time_unit": "s"}),
    "EQL": (
        "sequence with maxspan=9s [A where true] by x [B where true] by k",
        {"language": "eql", "time_unit": "s"},
    ),
}


def mixed(number: int) -> pa.Table:
    """An event with a key of floating point, and one with an integer."""
    return pa.table(
        {
            "type": ["A", "B"],
            "s": ["o", "p"],
            "t": [0, 1],
            "x": pa.array([float(number), None], pa.float64()),
            "k": pa.array([None, number], pa.int64()),
        }
    )


@pytest.mark.parametrize("language", MIXED)
def test_integers_and_floating_point(spark: Any, language: str) -> None:
    """Above 2^53, too; an integer that no number of floating point is, is an error, as in this process."""
    query, options = MIXED[language]
    found = stretto.spark.match(spark.createDataFrame(mixed(2**60)), query, time="t", **options)
    assert found.count() == stretto.match(query, mixed(2**60), time="t", **options).num_rows == 1
    other = stretto.spark.match(spark.createDataFrame(mixed(2**53 + 1)), query, time="t", **options)
    with pytest.raises(Exception, match="compares integers with double, which has no 9007199254740993"):
        other.collect()
