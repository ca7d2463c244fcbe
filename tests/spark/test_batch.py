"""``stretto.spark.match``: the same matches as in this process, whatever Spark does with the rows."""

from __future__ import annotations

import datetime as dt
import pickletools
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, OptionError, QueryError
from tests.conftest import seeds
from tests.matching.input.test_fields import EVENTS as FIELDS

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("two_partitions")]

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("seq", pa.int64()),
        ("key", pa.string()),
        ("group", pa.int32()),
        ("x", pa.int64()),
    ]
)

QUERIES = {
    "plain": "SELECT * FROM S WHERE A ; B PARTITION BY [key] WITHIN 20 seconds",
    "no window": "SELECT * FROM S WHERE A ; B ; C PARTITION BY [key] LIMIT 3",
    "kleene": "SELECT a, b FROM S WHERE A AS a ; B+ AS b FILTER b[x > 2] PARTITION BY [key] WITHIN 8 EVENTS",
    "contiguous": "SELECT * FROM S WHERE A : B PARTITION BY [key]",
    "two keys": "SELECT * FROM S WHERE A ; B PARTITION BY [key], [group] WITHIN 1 minute",
    "attributes": "SELECT b[x], a FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 10 seconds",
    "nothing selected": "SELECT NONE FROM S WHERE A ; B PARTITION BY [key] WITHIN 10 seconds",
    "strict": "SELECT STRICT * FROM S WHERE A ; B+ ; C PARTITION BY [key]",
    "max": "SELECT MAX b FROM S WHERE A ; B+ AS b ; C PARTITION BY [key] WITHIN 20 seconds",
    "next": "SELECT NEXT * FROM S WHERE A ; B ; C PARTITION BY [key] WITHIN 30 seconds",
    "last": "SELECT LAST * FROM S WHERE A ; B ; C PARTITION BY [key] WITHIN 30 seconds",
    "consume partition": "SELECT * FROM S WHERE A ; B PARTITION BY [key] CONSUME BY PARTITION",
    "consume any": "SELECT * FROM S WHERE A ; B PARTITION BY [key] CONSUME BY ANY",
    "limit": "SELECT * FROM S WHERE A ; B PARTITION BY [key] WITHIN 1 minute LIMIT 2",
    "kept": "SELECT * FROM S WHERE A ; B+ PARTITION BY [key] WITHIN 20 seconds KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
    "moving": "SELECT * FROM S WHERE A AS a ; B FILTER a[count(DISTINCT x) OVER 40 seconds >= 3] PARTITION BY [key] WITHIN 9 s",
    "no key": "SELECT * FROM S WHERE A ; B ; C WITHIN 6 EVENTS",
    "no key, time": "SELECT a, c FROM S WHERE A AS a : B ; C AS c WITHIN 3 seconds",
}


def random_events(seed: int, rows: int = 300) -> pa.Table:
    """Events with ties in time, missing keys, and rows in any order; ``seq`` orders what ``ts`` does not."""
    rng = random.Random(seed)
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    events = [
        {
            "type": rng.choice("ABCD"),
            "ts": start + dt.timedelta(seconds=rng.randrange(rows // 2)),
            "seq": seq,
            "key": rng.choice([None, "a", "b", "c", "d", "ü"]),
            "group": rng.choice([None, 1, 2]),
            "x": rng.choice([None, *range(6)]),
        }
        for seq in range(rows)
    ]
    rng.shuffle(events)
    return pa.Table.from_pylist(events, schema=SCHEMA)


def bag(table: pa.Table) -> list[str]:
    """The rows of a result without positions, in an order of their own."""
    shown = [name for name in table.column_names if name not in ("start", "end", "positions")]
    return sorted(repr(row) for row in table.select(shown).to_pylist())


def found_by_spark(df: Any, query: str, **options: Any) -> pa.Table:
    found: pa.Table = stretto.spark.match(df, query, **options).toArrow()
    return found


@pytest.mark.parametrize("seed", seeds(1, 2))
@pytest.mark.parametrize("name", QUERIES)
def test_same_matches_as_embedded(spark: Any, name: str, seed: int) -> None:
    query = QUERIES[name]
    table = random_events(seed)
    expected = stretto.match(query, table, time="ts", sequence="seq")
    df = spark.createDataFrame(table).repartition(3)
    found = found_by_spark(df, query, time="ts", sequence="seq")
    print(f"{name}: seed {seed}, {expected.num_rows} matches")
    assert expected.num_rows > 0
    assert found.column_names == [n for n in expected.column_names if n not in ("start", "end", "positions")]
    assert bag(found) == bag(expected)


@pytest.mark.parametrize("partitions", [None, 1, 2, 7])
def test_any_number_of_partitions(spark: Any, partitions: int | None) -> None:
    table = random_events(3)
    query = QUERIES["kleene"]
    found = found_by_spark(spark.createDataFrame(table), query, time="ts", sequence="seq", partitions=partitions)
    assert bag(found) == bag(stretto.match(query, table, time="ts", sequence="seq"))


def test_input_larger_than_a_batch(spark: Any) -> None:
    rows = 200_000  # several pushes a task, and many Arrow batches
    df = spark.range(rows).selectExpr(
        "id", "id % 1000 AS key", "timestamp_seconds(id) AS ts", "if((id div 1000) % 2 = 0, 'A', 'B') AS type"
    )
    query = "SELECT * FROM S WHERE A : B PARTITION BY [key]"
    assert stretto.spark.match(df, query, time="ts").count() == rows // 2


def test_many_keys(spark: Any) -> None:
    df = spark.range(60_000).selectExpr(
        "id % 20000 AS key", "id AS ts", "element_at(array('A', 'B', 'C'), int(id div 20000) + 1) AS type"
    )
    found = stretto.spark.match(df, "SELECT * FROM S WHERE A ; B ; C PARTITION BY [key]", time="ts")
    assert found.count() == 20_000
    assert found.select("key").distinct().count() == 20_000


def test_null_keys_are_in_no_partition(spark: Any) -> None:
    df = spark.createDataFrame(
        [("A", 1, None), ("B", 2, None), ("A", 3, "k"), ("B", 4, "k")], "type string, ts int, k string"
    )
    found = found_by_spark(df, "SELECT * FROM S WHERE A ; B PARTITION BY [k]", time="ts")
    assert found.select(["start_time", "end_time", "k"]).to_pylist() == [{"start_time": 3, "end_time": 4, "k": "k"}]


def test_nan_is_a_key(spark: Any) -> None:
    df = spark.createDataFrame([("A", 1, 1.5), ("B", 2, 1.5)], "type string, ts int, k double")
    nan = spark.createDataFrame([("A", 1, float("nan")), ("B", 2, float("nan"))], df.schema)
    query = "SELECT * FROM S WHERE A ; B PARTITION BY [k]"
    expected = stretto.match(query, df.union(nan).toArrow(), time="ts").num_rows
    assert stretto.spark.match(df.union(nan), query, time="ts").count() == expected


@pytest.mark.parametrize(
    ("kind", "times"),
    [
        ("timestamp", [dt.datetime(2024, 3, 31, hour) for hour in (3, 1, 2)]),
        ("timestamp_ntz", [dt.datetime(2024, 3, 31, hour) for hour in (3, 1, 2)]),
        ("date", [dt.date(2024, 3, day) for day in (3, 1, 2)]),
        ("decimal(10,2)", [Decimal("3.25"), Decimal("1.5"), Decimal("2")]),
        ("double", [3.5, 1.5, 2.5]),
        ("int", [3, 1, 2]),
        ("bigint", [3, 1, 2]),
    ],
)
def test_time_of_any_kind(spark: Any, kind: str, times: list[Any]) -> None:
    df = spark.createDataFrame(list(zip("CAB", times, strict=True)), f"type string, t {kind}")
    found = stretto.spark.match(df, "SELECT * FROM S WHERE A ; B ; C", time="t")
    assert found.schema["start_time"].dataType == df.schema["t"].dataType
    assert found.select("start_time", "end_time").collect() == df.selectExpr("min(t)", "max(t)").collect()


def test_session_time_zone_changes_nothing(spark: Any) -> None:
    table = random_events(4)
    query = QUERIES["plain"]
    expected = bag(stretto.match(query, table, time="ts", sequence="seq"))
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        found = found_by_spark(spark.createDataFrame(table), query, time="ts", sequence="seq")
        assert bag(found.cast(schema_in_utc(found.schema))) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def schema_in_utc(schema: pa.Schema) -> pa.Schema:
    def utc(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_timestamp(kind):
            return pa.timestamp("us", tz="UTC")
        if pa.types.is_list(kind):
            return pa.list_(utc(kind.value_type))
        if pa.types.is_struct(kind):
            return pa.struct([(field.name, utc(field.type)) for field in kind])
        return kind

    return pa.schema([(field.name, utc(field.type)) for field in schema])


def test_times_in_conditions_have_the_zone_that_their_column_has(spark: Any) -> None:
    """A TIMESTAMP is a moment, and a TIMESTAMP_NTZ what a clock shows, whatever the session's time zone is."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        df = spark.sql(
            "SELECT 'A' AS type, 1 AS ts, TIMESTAMP'2024-01-01 12:00:00' AS at, TIMESTAMP_NTZ'2024-01-01 12:00:00' AS wall"
        )
        query = "SELECT NONE FROM S WHERE A AS a FILTER a[{}]"
        for condition in ("at = '2024-01-01 12:00:00'", "at BETWEEN '2024-01-01' AND '2024-01-02'"):
            with pytest.raises(stretto.QueryError, match=r"has no time zone, and at .* has one"):
                stretto.spark.match(df, query.format(condition), time="ts")
        with pytest.raises(stretto.QueryError, match=r"has a time zone, and wall \(timestamp\[us\]\) has none"):
            stretto.spark.match(df, query.format("wall = '2024-01-01 12:00Z'"), time="ts")
        for condition in ("at = '2024-01-01 12:00+05:30'", "at = '2024-01-01 06:30Z'", "wall = '2024-01-01 12:00:00'"):
            assert stretto.spark.match(df, query.format(condition), time="ts").count() == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_columns_of_all_kinds_pass_through(spark: Any) -> None:
    df = spark.sql(
        """
        SELECT 'A' AS type, 1 AS ts, true AS b, 1.25BD AS d, array(1, 2) AS xs,
               named_struct('u', 1, 'v', 'w') AS s, map('k', 1) AS m, X'00FF' AS raw,
               CAST(7 AS tinyint) AS small, date'2024-01-01' AS day,
               `dotted.name` FROM VALUES (5) AS t(`dotted.name`)
        """
    )
    event = stretto.spark.match(df, "SELECT a FROM S WHERE A AS a", time="ts").collect()[0]["a"][0]
    assert event.asDict() == df.collect()[0].asDict()


def test_only_needed_columns_travel(spark: Any) -> None:
    df = spark.range(3).selectExpr("'A' AS type", "id AS ts", "'k' AS key", "id AS seen", "repeat('x', 100) AS wide")
    plan = stretto.spark.match(df, "SELECT a[seen] FROM S WHERE A AS a PARTITION BY [key]", time="ts")
    assert set(plan.columns) == {"start_time", "end_time", "key", "a"}
    assert "wide" not in plan._jdf.queryExecution().optimizedPlan().toString()


def test_interval_columns_are_refused_where_they_would_be_shown(spark: Any) -> None:
    df = spark.sql("SELECT 'A' AS type, 1 AS ts, INTERVAL '1' YEAR AS age")
    with pytest.raises(OptionError, match="column 'age' has a type that Arrow cannot carry"):
        stretto.spark.match(df, "SELECT * FROM S WHERE A", time="ts")
    assert stretto.spark.match(df, "SELECT NONE FROM S WHERE A", time="ts").count() == 1


def test_streams_in_a_dict(spark: Any) -> None:
    rng = random.Random(5)
    buys = [{"type": "BUY", "t": t, "price": rng.randrange(9)} for t in range(0, 100, 2)]
    news = [{"type": rng.choice(["GOOD", "BUY"]), "t": t, "text": f"n{t}"} for t in range(1, 100, 2)]
    tables = {"S1": pa.Table.from_pylist(buys), "S2": pa.Table.from_pylist(news)}
    frames = {name: spark.createDataFrame(table) for name, table in tables.items()}
    query = "SELECT * FROM S1, S2 WHERE S1>BUY AS b ; S2>BUY AS n WITHIN 5 seconds"
    expected = stretto.match(query, tables, time="t", time_unit="s")
    found = found_by_spark(frames, query, time="t", time_unit="s")
    assert expected.num_rows > 0
    assert bag(found) == bag(expected)
    assert found.schema.field("b").type.value_type.names == expected.schema.field("b").type.value_type.names
    with pytest.raises(DataError, match="no events for stream 'S2'"):
        stretto.spark.match({"S1": frames["S1"]}, query, time="t", time_unit="s")
    with pytest.raises(DataError, match="the query reads 2 streams"):
        stretto.spark.match(frames["S1"], query, time="t", time_unit="s")


def test_stream_column(spark: Any) -> None:
    table = pa.table({"type": ["A", "A", "B"], "t": [1, 2, 3], "from": ["S1", "S2", "S2"]})
    query = "SELECT * FROM S1, S2 WHERE S1>A ; B"
    expected = stretto.match(query, table, time="t", stream="from")
    found = found_by_spark(spark.createDataFrame(table), query, time="t", stream="from")
    assert expected.num_rows == 1
    assert bag(found) == bag(expected)


def test_compiled_query_brings_its_roles(spark: Any) -> None:
    table = pa.table({"kind": ["A", "B"], "t": [1, 2]})
    query = stretto.compile("SELECT * FROM S WHERE A ; B", schema=table.schema, type="kind", time="t")
    assert stretto.spark.match(spark.createDataFrame(table), query).count() == 1


def test_positions_output_has_no_events(spark: Any) -> None:
    df = spark.createDataFrame([("A", 1), ("B", 2)], "type string, ts int")
    found = stretto.spark.match(df, "SELECT * FROM S WHERE A ; B", time="ts", output="positions")
    assert [tuple(row) for row in found.collect()] == [(1, 2)]


def test_valuations(spark: Any) -> None:
    table = pa.table({"type": ["A", "A"], "t": [1, 2]})
    query = "SELECT * FROM S WHERE (A AS x ; A AS y) OR (A AS y ; A AS x)"
    expected = stretto.match(query, table, time="t", valuations=True)
    found = found_by_spark(spark.createDataFrame(table), query, time="t", valuations=True)
    assert bag(found) == bag(expected)


def test_no_rows(spark: Any) -> None:
    df = spark.createDataFrame([], "type string, ts timestamp, key string")
    assert stretto.spark.match(df, QUERIES["strict"], time="ts").count() == 0


def test_rows_can_be_left_unread(spark: Any) -> None:
    df = spark.range(100_000).selectExpr("'A' AS type", "id AS ts")
    assert len(stretto.spark.match(df, "SELECT * FROM S WHERE A", time="ts").take(3)) == 3


class TestMistakes:
    @pytest.fixture
    def df(self, spark: Any) -> Any:
        return spark.createDataFrame([("A", 1, 2.5, "k")], "type string, ts int, price double, key string")

    def test_unknown_attribute_at_call_time(self, df: Any) -> None:
        with pytest.raises(QueryError) as caught:
            stretto.spark.match(df, "SELECT * FROM S WHERE A AS a FILTER a[prize > 3]", time="ts")
        assert caught.value.column == 40 or "prize" in str(caught.value)
        assert "^^^^^" in str(caught.value)
        assert "did you mean 'price'?" in str(caught.value)

    def test_no_time(self, df: Any) -> None:
        with pytest.raises(OptionError, match="name the time column"):
            stretto.spark.match(df, "SELECT * FROM S WHERE A")

    @pytest.mark.parametrize("role", ["time", "sequence", "type", "stream"])
    def test_missing_column(self, df: Any, role: str) -> None:
        options: dict[str, Any] = {"time": "ts", role: "tss"}
        hint = "name the one that tells types, type='type' or" if role == "type" else r"did you mean 'ts'\?"
        with pytest.raises(DataError, match=rf"no column 'tss' \({role}\); {hint}"):
            stretto.spark.match(df, "SELECT * FROM S WHERE A", **options)

    def test_missing_key(self, df: Any) -> None:
        with pytest.raises(QueryError, match="did you mean 'key'"):
            stretto.spark.match(df, "SELECT * FROM S WHERE A PARTITION BY [kay]", time="ts")

    def test_not_a_dataframe(self) -> None:
        with pytest.raises(OptionError, match=r"df is a list, not a Spark DataFrame: use stretto\.match"):
            stretto.spark.match([], "SELECT * FROM S WHERE A", time="ts")

    def test_two_columns_of_one_name(self, df: Any) -> None:
        with pytest.raises(OptionError, match="2 columns named 'price'"):
            stretto.spark.match(df.select("*", "price"), "SELECT * FROM S WHERE A", time="ts")

    def test_partitions(self, df: Any) -> None:
        with pytest.raises(OptionError, match="partitions=0"):
            stretto.spark.match(df, "SELECT * FROM S WHERE A", time="ts", partitions=0)

    def test_null_time_is_named_when_spark_runs(self, df: Any) -> None:
        from pyspark.errors import PythonException

        nulls = df.selectExpr("type", "CAST(NULL AS int) AS ts")
        with pytest.raises(PythonException, match=r"DataError: column 'ts' \(time\) is NULL"):
            stretto.spark.match(nulls, "SELECT * FROM S WHERE A", time="ts").collect()


def test_what_travels_is_plain_data(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import cloudpickle

    df = spark.createDataFrame([("A", 1, "k")], "type string, ts int, key string")
    sent: list[Any] = []
    monkeypatch.setattr(type(df), "mapInArrow", lambda self, function, schema: sent.append(function) or self)
    stretto.spark.match(df, stretto.compile(QUERIES["strict"]), time="ts")
    pickled = cloudpickle.dumps(sent[0])
    strings: list[str] = []
    named = set()
    for operation, argument, _ in pickletools.genops(pickled):
        if isinstance(argument, str):
            strings.append(argument)
        if operation.name == "STACK_GLOBAL":
            named.add(tuple(strings[-2:]))
        assert operation.name not in ("GLOBAL", "INST", "OBJ", "NEWOBJ_EX")
    assert named == {("functools", "partial"), ("stretto.spark.batch.worker", "run_partition")}


def test_fields_of_structs_and_lists_of_matches(spark: Any) -> None:
    text = """PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [address.city] AND CASE WHEN a.address.n = 1 THEN 'x' END = 'x' }
        WITHIN 9 [t] RETURN b[].t, count(DISTINCT b[].address.n) AS n, min(b[].address.city) AS least, a.address.n"""
    found = stretto.spark.match(spark.createDataFrame(FIELDS), text, time="t").toArrow().to_pylist()
    own = stretto.match(text, FIELDS, time="t").drop_columns(["start", "end", "positions"]).to_pylist()
    assert len(own) == 3
    assert sorted(found, key=repr) == sorted(own, key=repr)


def test_few_bytes_are_not_packed_into_one_task(spark: Any) -> None:
    """Adaptive execution packs tasks by their bytes; matching may be much work for few of them."""
    from pyspark.sql import functions as F

    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    rows = spark.range(400).selectExpr(
        "if(id % 2 = 0, 'A', 'B') AS type", "id DIV 2 AS t", "concat('k', id DIV 2) AS key"
    )
    found = stretto.spark.match(rows, "SELECT * FROM S WHERE A ; B PARTITION BY [key] WITHIN 5 [t]", time="t")
    tasks = found.groupBy(F.spark_partition_id()).count().collect()
    assert [sum(row["count"] for row in tasks), len(tasks)] == [
        200,
        int(spark.conf.get("spark.sql.shuffle.partitions")),
    ]


def test_a_plan_shows_the_query(spark: Any) -> None:
    df = spark.createDataFrame([("A", 1), ("B", 2)], "type string, t int")
    found = stretto.spark.match(df, "SELECT * FROM S\n WHERE A ; B", time="t")
    found.collect()
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow stretto: SELECT * FROM S WHERE A ; B(" in plan


def test_jobs_of_our_own_have_a_description(spark: Any) -> None:
    from stretto.spark.compat import described

    context = spark.sparkContext
    context.setLocalProperty("spark.job.description", "a report")
    try:
        with described(spark, "stretto, looking at the events of A ; B"):
            told = context.getLocalProperty("spark.job.description")
        assert told == "a report: stretto, looking at the events of A ; B"
        assert context.getLocalProperty("spark.job.description") == "a report"
    finally:
        context.setLocalProperty("spark.job.description", None)
