"""SQL with MATCH_RECOGNIZE on Spark."""

from __future__ import annotations

import datetime as dt
import logging
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto import spark as on_spark
from stretto.languages.match_recognize import parse
from stretto.matching.sql.row_pattern_table import recognize
from stretto.query.passes.bind_rows import bind
from stretto.spark.batch.rows import whole_partitions
from stretto.spark.compat import to_arrow
from tests.cases import rows
from tests.conftest import cases
from tests.match_recognize.examples import Example, examples
from tests.spark.streams import bag, run
from tests.spark.test_streaming import END, random_events, stream

FALLS = """MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY x MEASURES LAST(x) AS until, count(*) AS n PATTERN (A F+) DEFINE F AS price < PREV(price)
)"""
ROWS = [("a", 1, 9), ("a", 2, 7), ("a", 3, 8), ("b", 1, 5), ("b", 2, 4), (None, 1, 3), (None, 2, 1)]

pytestmark = [pytest.mark.spark]

EXAMPLES = [one for one in examples() if "VALUES" not in one.query and not one.further]
FEW = ["a fall and a rise by customer", "unmatched rows are shown", "clauses in WITH, in a join, and behind each other"]


@pytest.fixture
def views(spark: Any) -> Any:
    """A view ``ticker``, and a way to make views of Arrow tables."""
    made = ["ticker"]
    spark.createDataFrame(ROWS, "k string, x long, price long").createOrReplaceTempView("ticker")

    def make(name: str, table: pa.Table) -> None:
        spark.createDataFrame(table).createOrReplaceTempView(name)
        made.append(name)

    yield make
    for name in made:
        spark.catalog.dropTempView(name)


def rows_of(spark: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in on_spark.sql(spark, text).collect()), key=repr)


@pytest.mark.parametrize("name", FEW)
def test_examples(spark: Any, views: Any, name: str) -> None:
    _check(spark, views, next(one for one in EXAMPLES if one.name == name))


def test_a_window_with_a_pattern(spark: Any, views: Any) -> None:
    text = """
        SELECT k, t.x, until OVER w, count(*) OVER w AS n, sum(t.price) OVER w AS total FROM ticker AS t WHERE price > 1
        WINDOW w AS (
            PARTITION BY k ORDER BY x MEASURES LAST(x) AS until ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
            PATTERN (A F+) DEFINE F AS price < PREV(price)
        )
    """
    assert on_spark.sql(spark, text).columns == ["k", "x", "until", "n", "total"]
    assert rows_of(spark, text) == sorted(
        [
            ("a", 1, 2, 2, 16),
            ("a", 2, None, 0, None),
            ("a", 3, None, 0, None),
            ("b", 1, 2, 2, 9),
            ("b", 2, None, 0, None),
            (None, 1, None, 0, None),
        ],
        key=repr,
    )
    assert "the match begins at it" in on_spark.compile_sql(spark, text).explain()
    star = on_spark.sql(spark, text.replace("SELECT k, t.x,", "SELECT t.*,"))
    assert star.columns == ["k", "x", "price", "until", "n", "total"]
    assert star.count() == 6


@pytest.mark.session
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.name)
def test_all_examples(spark: Any, views: Any, example: Example) -> None:
    _check(spark, views, example)


def _check(spark: Any, views: Any, example: Example) -> None:
    for name, table in example.tables.items():
        views(name, table)
    refused = example.error or example.refused
    if refused is None:
        example.check(to_arrow(on_spark.sql(spark, example.query)))
        return
    with pytest.raises(Exception, match=refused):
        on_spark.sql(spark, example.query).collect()


def test_around_clauses(spark: Any, views: Any) -> None:
    before = spark.sql("SHOW TABLES").collect()
    assert rows_of(spark, f"SELECT k, n, '{{\\'}}' AS b FROM ticker {FALLS} m WHERE n > 1") == [
        ("a", 2, "{'}"),
        ("b", 2, "{'}"),
        (None, 2, "{'}"),
    ]
    text = f"WITH c AS (SELECT * FROM ticker WHERE k = 'a') SELECT t.price FROM ticker t JOIN c {FALLS} m ON t.k = m.k AND x = until"
    assert rows_of(spark, text) == [(7,)]
    assert rows_of(spark, f"SELECT n FROM ticker {FALLS} UNION ALL SELECT -1") == [(-1,), (2,), (2,), (2,)]
    assert spark.sql("SHOW TABLES").collect() == before


def test_one_shuffle_and_only_the_columns_that_are_read(spark: Any, views: Any) -> None:
    wide = spark.table("ticker").selectExpr("*", "x * 2 AS more")
    wide.createOrReplaceTempView("wide")
    found = on_spark.sql(spark, f"SELECT * FROM wide {FALLS}")
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange ") == 1
    assert "more" not in plan
    assert found.columns == ["k", "until", "n"]
    spark.catalog.dropTempView("wide")


@pytest.mark.parametrize("shown", ["ONE ROW", "ALL ROWS"])
def test_fields_of_structs(spark: Any, views: Any, shown: str) -> None:
    rows = [{"of": {"k": k, "v": {"price": price}}, "x": x, "unread": 1} for k, x, price in ROWS]
    table = pa.Table.from_pylist(rows)
    views("nested", table)
    clause = (
        FALLS.replace("price", "of.v.price").replace("BY k", "BY of.k").replace("PATTERN", f"{shown} PER MATCH PATTERN")
    )
    found = on_spark.sql(spark, f"SELECT * FROM nested {clause}")
    here = stretto.sql(f"SELECT * FROM nested {clause}", nested=table)
    assert bag(found.toArrow()) == bag(pa.Table.from_pylist(here.to_pylist(), found.toArrow().schema))
    assert here.num_rows == (3 if shown == "ONE ROW" else 6)
    if shown == "ONE ROW":
        assert "unread" not in found._jdf.queryExecution().executedPlan().toString().partition("Scan")[0]


def test_how_spark_runs_a_clause_is_told(spark: Any, views: Any) -> None:
    views("wide", pa.table({"k": ["a"], "x": [1], "price": [2], "unread": [3]}))
    query = on_spark.compile_sql(spark, f"SELECT count(*) AS n FROM wide {FALLS} AS m WHERE n > 1")
    told = query.explain().splitlines()
    assert told[-3:] == [
        "plan       one shuffle by k, sorted by k, x, then mapInArrow in Python workers",
        "           to the workers travel k, x, price",
        "around     Spark runs: SELECT count(*) AS n FROM matched_1 AS m WHERE n > 1",
    ]
    assert "           it never goes back: at most 7 steps a row, and as many for each row of a match" in told
    with pytest.raises(stretto.QueryError, match="lost"):
        on_spark.compile_sql(spark, f"SELECT lost FROM wide {FALLS} AS m")


def test_without_keys_it_runs_in_one_task(spark: Any, views: Any, caplog: pytest.LogCaptureFixture) -> None:
    text = """SELECT * FROM ticker MATCH_RECOGNIZE (
        ORDER BY k DESC, x MEASURES FIRST(k) AS f, LAST(k) AS l, count(*) AS n PATTERN (A+)
    )"""
    with caplog.at_level(logging.WARNING, logger="stretto"):
        assert rows_of(spark, text) == [("b", None, 7)]
    assert "MATCH_RECOGNIZE without PARTITION BY runs in one task" in caplog.text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"SELECT * FROM tickers {FALLS}", "line 1, column 15: [TABLE_OR_VIEW_NOT_FOUND]"),
        (f"SELECT nn FROM ticker {FALLS} AS m", "line 1, column 8: [UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
        (f"SELECT 1 FROM ticker {FALLS} AS m WHER x", "line 3, column 8: [PARSE_SYNTAX_ERROR]"),
        (f"SELECT 1 FROM ticker {FALLS.replace('price <', 'prize <')}", "line 2, column 99: unknown column 'prize'"),
    ],
)
def test_mistakes(spark: Any, views: Any, text: str, error: str) -> None:
    with pytest.raises(stretto.QueryError) as caught:
        on_spark.sql(spark, text)
    assert str(caught.value).startswith(error)
    assert "_pyspark_" not in str(caught.value)


def test_streaming_tables_that_are_refused(spark: Any, views: Any) -> None:
    ticks = spark.readStream.format("rate").load()
    ticks.createOrReplaceTempView("ticks")
    text = "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY timestamp MEASURES count(*) AS value PATTERN (A+))"
    with pytest.raises(stretto.OptionError, match="without a watermark"):
        on_spark.sql(spark, text)
    ticks.withWatermark("timestamp", "1 second").createOrReplaceTempView("ticks")
    for order in ("value", "timestamp DESC"):
        with pytest.raises(stretto.OptionError, match="on 'timestamp': let ORDER BY begin with it"):
            on_spark.sql(spark, text.replace("timestamp", order))
    with pytest.raises(stretto.OptionError, match="late='side'"):
        on_spark.sql(spark, text, late="side")
    with pytest.raises(stretto.OptionError, match="no other clause reads it"):
        on_spark.sql(spark, f"{text} AS m MATCH_RECOGNIZE (ORDER BY value MEASURES count(*) AS n PATTERN (A))")
    spark.catalog.dropTempView("ticks")


STREAMED = """MATCH_RECOGNIZE (
    PARTITION BY key ORDER BY ts, seq
    MEASURES FIRST(ts) AS first_time, A.seq AS a, LAST(B.x) AS x, count(B.*) AS n, MATCH_NUMBER() AS number
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A B+? C | A D+) WITHIN INTERVAL '9' SECOND
    DEFINE A AS type = 'A', B AS x >= A.x OR x IS NULL, C AS type = 'C', D AS type = 'D'
)"""


@pytest.mark.parametrize("key", ["key", "about.key"])
def test_a_stream_gives_what_is_final(spark: Any, tmp_path: Path, key: str) -> None:
    seed = 7
    table = random_events(seed)
    rows = stream(spark, tmp_path / "in", table).withWatermark("ts", "6 seconds")
    rows = rows.selectExpr("*", "named_struct('key', key) AS about")
    rows.createOrReplaceTempView("rows_streamed")
    clause = STREAMED.replace("PARTITION BY key", f"PARTITION BY {key}")
    text = f"SELECT `{key}` AS k, upper(`{key}`) AS u, a, x, n, number FROM rows_streamed {clause} AS m WHERE n < 5"
    found = on_spark.sql(spark, text)
    assert found.isStreaming
    run(found, tmp_path / "checkpoint", tmp_path / "out")
    spark.catalog.dropTempView("rows_streamed")
    before = table.slice(0, table.num_rows - 1)  # the last row moves the watermark past all others
    matcher = stretto.Matcher(STREAMED, schema=table.schema, disorder=math.inf)
    wanted = pa.concat_tables([matcher.push(before), matcher.advance(END)]).to_pylist()
    shown = [
        {"k": row["key"], "u": row["key"] and row["key"].upper()}
        | {name: row[name] for name in ("a", "x", "n", "number")}
        for row in wanted
        if row["n"] < 5
    ]
    assert len(shown) > 10, f"seed {seed}"
    assert any(row["k"] is None for row in shown)
    got = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert bag(got) == bag(pa.Table.from_pylist(shown, got.schema)), f"seed {seed}"


def test_columns_that_arrow_does_not_have(spark: Any, views: Any) -> None:
    text = """SELECT * FROM (SELECT *, make_interval(1) AS i FROM ticker) MATCH_RECOGNIZE (
        ORDER BY x MEASURES count(*) AS n PATTERN (A+)
    )"""
    assert rows_of(spark, text) == [(7,)]
    with pytest.raises(stretto.DataError, match="Arrow has no type for i"):
        on_spark.sql(spark, text.replace("MEASURES count(*) AS n", "ALL ROWS PER MATCH"))


def test_tables_are_cut_between_partitions() -> None:
    for seed in range(cases(500)):
        random = np.random.default_rng(seed)
        number = int(random.integers(0, 40))
        values = np.sort(random.integers(0, 5, number))
        floats = pa.array([[None, float("nan"), 0.0, 1.0, 2.0][one] for one in values], pa.float64())
        table = pa.table({"f": floats, "i": values, "at": np.arange(number)})
        cuts = np.sort(random.integers(0, number + 1, 4)).tolist()
        pieces = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, number], strict=True) if b > a]
        for keys in (["f"], ["i"], ["i", "f"]):
            found = list(whole_partitions(iter(pieces), keys))
            assert [at for piece in found for at in piece.column("at").to_pylist()] == list(range(number)), (
                f"seed {seed}"
            )
            owned = [set(piece.column("i").to_pylist()) for piece in found]
            assert sum(map(len, owned)) == len(set(values.tolist())), f"seed {seed}"
        assert len(list(whole_partitions(iter(pieces), []))) == (number > 0), f"seed {seed}"


@pytest.mark.usefixtures("two_partitions")
def test_random_clauses(spark: Any) -> None:
    """On Spark and around DuckDB as the clause alone, in an order that tells all rows apart."""
    for seed in range(cases(200)):
        drawn = rows.case(seed)
        clause = re.sub(r"(ORDER BY .*)\n", r"\1, at_row\n", drawn.clause, count=1)
        table = drawn.rows.append_column("at_row", pa.array(range(drawn.rows.num_rows)))
        text = f"SELECT * FROM (SELECT * FROM drawn) AS d {clause} AS m"
        if "ROWS BETWEEN" in clause:
            measures = (f", {name} OVER w" for name in ("m0", "m1", "m2") if f"AS {name}" in clause)
            shown = ", ".join(table.schema.names) + "".join(measures)
            text = (
                f"SELECT {shown} FROM (SELECT * FROM drawn) AS d WINDOW w AS {clause.removeprefix('MATCH_RECOGNIZE ')}"
            )
        expected = _answer(_alone, clause, table)
        assert _answer(_here, text, table) == expected, f"seed {seed}: {clause}"
        assert _answer(_on_spark, spark, text, table) == expected, f"seed {seed}: {clause}"
    spark.catalog.dropTempView("drawn")


def _alone(clause: str, table: pa.Table) -> pa.Table:
    return recognize(bind(parse(clause, window=True), table.schema), table)


def _here(text: str, table: pa.Table) -> pa.Table:
    return stretto.sql(text, drawn=table)


def _on_spark(spark: Any, text: str, table: pa.Table) -> pa.Table:
    from pyspark.errors import PythonException

    spark.createDataFrame(table).createOrReplaceTempView("drawn")
    try:
        return to_arrow(on_spark.sql(spark, text))
    except PythonException as error:
        raise stretto.DataError(str(error)) from error


def _answer(compute: Callable[..., pa.Table], *given: Any) -> list[str] | None:
    """The rows as a bag, whatever zone their times have; ``None``: it is refused."""
    try:
        found = compute(*given)
    except stretto.StrettoError:
        return None
    return sorted(repr([_plain(one) for one in row.values()]) for row in found.to_pylist())


def _plain(value: Any) -> Any:
    if isinstance(value, pa.MonthDayNano):  # DuckDB's durations
        return dt.timedelta(value.days, microseconds=value.nanoseconds // 1000)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
