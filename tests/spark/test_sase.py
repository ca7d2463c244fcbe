"""SASE+ on Spark: the matches of this process, batch, in slices and streaming."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import OptionError
from stretto.query.sase import Selection
from stretto.spark.batch.slices import unsliceable
from stretto.spark.columns import relevant
from tests.cases import sase
from tests.cases.sase import SaseCase, text_of
from tests.conftest import seeds
from tests.spark.streams import add_file, bag, read_stream, run
from tests.spark.test_batch import found_by_spark

pytestmark = [pytest.mark.spark]

SCHEMA = pa.schema(
    [("type", pa.string()), ("t", pa.int64()), ("seq", pa.int64()), ("k", pa.string()), ("v", pa.int64())]
)

QUERIES = {
    "keyed": "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { [k] and b[i].v >= b[i-1].v } WITHIN 20",
    "unkeyed": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].v > avg(a[..i-1].v) and b.v < a.LEN } WITHIN 9",
    "shortcut": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match { [k] and b[i].v > 2 } WITHIN 12",
    "strict": "PATTERN SEQ(A a, B b) WHERE strict_contiguity { [k] }",
    "strict, window": "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { [k] and b.v > a[1].v } WITHIN 9",
    "partition": "PATTERN SEQ(A+ a[], B b) WHERE partition_contiguity { [k] and b.v > a[1].v } WITHIN 50",
    "negation at the start": "PATTERN SEQ(~(C n), A a, B b) WHERE skip_till_next_match { [k] and n.v > a.v } WITHIN 15",
    "negation in the middle": "PATTERN SEQ(A a, ~(C n), B b) WHERE skip_till_next_match { n.v > a.v } WITHIN 15",
    "negation at the end": "PATTERN SEQ(A a, B b, ~(C n)) WHERE skip_till_next_match { [k] and n.v > a.v } WITHIN 15",
    "returns": """PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [k] and a[i].v > a[1].v } WITHIN 20
        RETURN a.LEN AS n, sum(a[].v) / a.LEN AS mean, b.v - a[1].v AS up, 'x' AS type""",
    "counted": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.v > a.v } WITHIN 6 EVENTS",
    "non-overlap": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [k] and b.v > a[1].v } WITHIN 20 OUTPUT non_overlap",
    "no window": "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { [k] and c.v > b.v and b.v > a.v }",
}


def events(seed: int, rows: int = 300) -> pa.Table:
    """Events with ties in time, missing keys and values, in any order; ``seq`` orders what ``t`` does not."""
    rng = random.Random(seed)
    found = [
        {
            "type": rng.choice("AABBCD"),
            "t": seq // 2,
            "seq": seq,
            "k": rng.choice([None, "a", "b", "ü"]),
            "v": rng.choice([None, *range(6)]),
        }
        for seq in range(rows)
    ]
    rng.shuffle(found)
    return pa.Table.from_pylist(found, schema=SCHEMA)


@pytest.mark.parametrize("name", QUERIES)
def test_same_matches_as_embedded(spark: Any, name: str) -> None:
    query, table = QUERIES[name], events(1)
    expected = stretto.match(query, table, time="t", sequence="seq")
    df = spark.createDataFrame(table).repartition(3)
    found = found_by_spark(df, query, time="t", sequence="seq")
    assert expected.num_rows > 0
    assert found.column_names == [n for n in expected.column_names if n not in ("start", "end", "positions")]
    assert bag(found) == bag(expected)
    for output in ("positions", "summary"):
        if output == "summary" and name == "negation at the end":
            continue
        found = found_by_spark(df, query, time="t", sequence="seq", output=output)
        assert bag(found) == bag(stretto.match(query, table, time="t", sequence="seq", output=output))


SLICED = [
    name for name in QUERIES if name not in ("strict", "no window", "negation at the end", "non-overlap", "counted")
]


@pytest.mark.parametrize("name", [*SLICED, "counted"])
def test_time_slices(spark: Any, name: str) -> None:
    query, table = QUERIES[name], events(2)
    df = spark.createDataFrame(table)
    options: dict[str, Any] = {"time": "t", "sequence": "seq", "slices": 3}
    text = stretto.spark.explain(df, query, **options)
    assert "cut into 3 time slices" in text or "hashed by k" in text
    expected = stretto.match(query, table, time="t", sequence="seq")
    assert expected.num_rows > 0
    assert bag(found_by_spark(df, query, **options)) == bag(expected)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("strict", "without WITHIN a match may begin with the first event"),
        ("negation at the end", "~(C n) looks at the events after a match"),
        ("non-overlap", "OUTPUT non_overlap makes a match depend on all matches before it"),
    ],
)
def test_what_is_not_cut(name: str, why: str) -> None:
    query = stretto.compile(QUERIES[name], SCHEMA, time="t")
    assert unsliceable(query) == why


def prepared(case: SaseCase) -> pa.Table:
    """A case's events with a place, in columns that Spark has."""
    plain = {
        name: column.cast(pa.string()) if name in ("type", "name") else column
        for name, column in zip(case.events.column_names, case.events.columns, strict=True)
    }
    return pa.table(plain | {"seq": list(range(case.events.num_rows))})


@pytest.mark.parametrize("part", seeds(*range(4)))
def test_random_cases(spark: Any, part: int) -> None:
    """Queries of all kinds, as one pass in this process has it; half of them in slices."""
    matches = seen = 0
    seed = 1000 * part
    while seen < 10:
        seed += 1
        case = sase.case(seed)
        if case.query.limit is not None or not case.matches():
            continue
        seen += 1
        query, table = text_of(case.query), prepared(case)
        time = case.schema.time or "t"
        options: dict[str, Any] = {"time": time, "sequence": "seq"}
        expected = stretto.match(query, table, **options)
        df = spark.createDataFrame(table)
        if "ts" in table.column_names:  # without a zone, as the literals of the cases
            df = df.withColumn("ts", df.ts.cast("timestamp_ntz"))
        slices = 3 if seed % 2 else None
        found = found_by_spark(df, query, slices=slices, **options)
        assert bag(found) == bag(expected.cast(widened(expected.schema, found.schema))), f"seed {seed}: {query}"
        matches += expected.num_rows
    print(f"part {part}: {matches} matches")


def widened(own: pa.Schema, spark: pa.Schema) -> pa.Schema:
    """A schema with Spark's types where it has columns."""
    return pa.schema([spark.field(f.name) if f.name in spark.names else f for f in own])


# ---- What reaches Python


def rows_read(df: Any, query: str) -> int:
    """How many rows the filter before the shuffle lets through."""
    condition = relevant(stretto.compile(query, SCHEMA, time="t"))
    return int((df if condition is None else df.filter(condition)).count())


def test_filters_are_pushed_down(spark: Any, tmp_path: Path) -> None:
    spark.createDataFrame(events(3)).write.parquet(str(tmp_path / "events"))
    df = spark.read.parquet(str(tmp_path / "events"))
    query = """PATTERN SEQ(A a, B+ b[])
        WHERE skip_till_next_match { [k] and a.v > 3 and b[1].v = 2 and b[i].v < b[i-1].v } WITHIN 20"""
    text = stretto.spark.explain(df, query, time="t", sequence="seq")
    assert "filter     A[v > 3] OR B\n" in text
    assert "hashed by k" in text
    plan = stretto.spark.match(df, query, time="t", sequence="seq")._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters" in plan
    assert "IsNotNull(k)" in plan
    rows = df.toArrow().to_pylist()
    wanted = [row for row in rows if row["type"] == "B" or (row["type"] == "A" and (row["v"] or 0) > 3)]
    assert rows_read(df, query) == len(wanted) < len(rows)
    assert bag(found_by_spark(df, query, time="t", sequence="seq")) == bag(
        stretto.match(query, df.toArrow(), time="t", sequence="seq")
    )


@pytest.mark.parametrize("strategy", [Selection.STRICT, Selection.PARTITION])
def test_contiguity_filters_nothing(spark: Any, strategy: Selection) -> None:
    df = spark.createDataFrame(events(3))
    query = f"PATTERN SEQ(A a, B b) WHERE {strategy} {{ [k] and a.v > 3 }} WITHIN 20"
    text = stretto.spark.explain(df, query, time="t", sequence="seq", slices=1)
    assert "filter     none: every event can matter" in text
    assert rows_read(df, query) == 300
    assert ("one task for all events" in text) == (strategy is Selection.STRICT)


# ---- Streaming


def stream(spark: Any, folder: Path, table: pa.Table, batches: int = 3) -> Any:
    """The table as a stream: files of about as many rows, then an event that moves the watermark past all."""
    size = -(-table.num_rows // batches)
    for number in range(batches):
        add_file(folder, table.slice(number * size, size), number)
    last = {"type": "Z", "t": 10_000, "seq": 10_000, "k": "end", "v": None}
    add_file(folder, pa.Table.from_pylist([last], schema=SCHEMA), batches)
    return read_stream(spark, folder)


@pytest.mark.parametrize(
    "name",
    seeds("returns", "unkeyed", "shortcut", "strict, window", "negation at the start", "negation at the end"),
)
def test_streaming(spark: Any, tmp_path: Path, name: str) -> None:
    query = QUERIES[name]
    table = events(4, 200).sort_by("seq")
    expected = stretto.match(query, table, time="t", sequence="seq")
    matches = stretto.spark.match(
        stream(spark, tmp_path / "in", table),
        query,
        time="t",
        sequence="seq",
        time_unit="s",
        disorder="5 seconds",
        buckets=2,
    )
    run(matches, tmp_path / "checkpoint", tmp_path / "out")
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert expected.num_rows > 0
    assert bag(found) == bag(expected)


def test_a_negation_at_the_end_comes_out_when_the_watermark_has_passed(spark: Any, tmp_path: Path) -> None:
    query = "PATTERN SEQ(A a, B b, ~(C n)) WHERE skip_till_next_match { [k] } WITHIN 10"
    options: dict[str, Any] = {"time": "t", "sequence": "seq", "time_unit": "s", "disorder": "0 seconds", "buckets": 2}

    def step(number: int, rows: list[tuple[str, int, str]]) -> list[tuple[int, int]]:
        """The matches after one more micro-batch."""
        shown = [{"type": kind, "t": t, "seq": 10 * number + i, "k": k} for i, (kind, t, k) in enumerate(rows)]
        add_file(tmp_path / "in", pa.Table.from_pylist(shown, schema=SCHEMA), number)
        matches = stretto.spark.match(read_stream(spark, tmp_path / "in"), query, **options)
        run(matches, tmp_path / "checkpoint", tmp_path / "out")
        found = spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
        return sorted((row["start_time"], row["end_time"]) for row in found)

    assert step(0, [("A", 0, "x"), ("B", 3, "x"), ("A", 1, "y"), ("B", 2, "y")]) == []
    assert step(1, [("C", 9, "x"), ("D", 10, "y")]) == []
    assert step(2, [("D", 11, "z")]) == []
    assert step(3, [("D", 40, "z")]) == [(1, 2)]


def test_compressed_output_is_bounded(spark: Any) -> None:
    """On Spark an event's matches are listed, so that LIMIT must say how many."""
    df = spark.createDataFrame([("A", n) for n in range(6)], "type string, t int")
    query = "PATTERN SEQ(A+ a[]) WHERE skip_till_any_match { } WITHIN 100 OUTPUT compressed"
    with pytest.raises(OptionError, match="LIMIT n list"):
        stretto.spark.match(df, query, time="t")
    assert stretto.spark.match(df, query + " LIMIT 2", time="t", output="positions").count() == 11
