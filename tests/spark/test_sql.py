"""Queries in Spark SQL: the same matches as in this process, whoever arranges the rows, and errors that a reader can use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, OptionError, QueryError
from stretto.spark import register
from tests.conftest import seeds
from tests.spark.test_batch import QUERIES, bag, random_events

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("two_partitions")]


@pytest.fixture(scope="module")
def sql(spark: Any) -> Iterator[Any]:
    """A function that runs SQL, with the table ``events`` at hand in three partitions."""
    register(spark)
    spark.createDataFrame(random_events(1)).repartition(3).createOrReplaceTempView("events")
    yield spark.sql
    spark.catalog.dropTempView("events")


def expected(name: str) -> list[str]:
    found = stretto.match(QUERIES[name], random_events(1), time="ts", sequence="seq")
    assert found.num_rows
    return bag(found)


@pytest.mark.parametrize("name", QUERIES)
def test_the_query_arranges_the_rows(sql: Any, name: str) -> None:
    call = f"stretto_query(TABLE(events), '{QUERIES[name]}', time => 'ts', sequence => 'seq')"
    assert bag(sql(f"SELECT * FROM {call}").toArrow()) == expected(name)


def test_strict_contiguity_is_of_all_events_whatever_their_key(sql: Any) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE strict_contiguity { [key] } WITHIN 20 seconds"
    wanted = bag(stretto.match(query, random_events(1), time="ts", sequence="seq"))
    assert wanted
    call = f"stretto_query(TABLE(events), '{query}', time => 'ts', sequence => 'seq')"
    assert bag(sql(f"SELECT * FROM {call}").toArrow()) == wanted


@pytest.mark.parametrize("name", ["plain", "kleene", "contiguous", "strict", "max", "limit"])
def test_sql_arranges_the_rows(sql: Any, name: str) -> None:
    """By the key, and by more keys at once: the query's own PARTITION BY then tells them apart."""
    for partition in ("PARTITION BY key", "PARTITION BY pmod(hash(key), 2)", "WITH SINGLE PARTITION"):
        call = f"stretto_match(TABLE(events) {partition} ORDER BY (ts, seq), '{QUERIES[name]}')"
        assert bag(sql(f"SELECT * FROM {call}").toArrow()) == expected(name), partition


def test_a_partition_of_sql_is_a_stream(sql: Any) -> None:
    """Without PARTITION BY in the query, SQL's counts: the rows without a key are one partition then."""
    table = random_events(1)
    query = "SELECT * FROM S WHERE A : B ; C WITHIN 6 EVENTS"
    rows = []
    for key in table.column("key").unique():
        own = table.filter(
            pa.compute.equal(table.column("key"), key) if key.is_valid else table.column("key").is_null()
        )
        rows += bag(stretto.match(query, own, time="ts", sequence="seq"))
    found = sql(f"SELECT * FROM stretto_match(TABLE(events) PARTITION BY key ORDER BY (ts, seq), '{query}')")
    assert rows
    assert bag(found.toArrow()) == sorted(rows)


def test_counts_over_all_matches(sql: Any) -> None:
    """By key; the rows of all keys are SQL's to add up, unless one partition of SQL holds them."""
    query = "SELECT COUNT(*), SUM(B[x]) FROM S WHERE A ; B+ PARTITION BY [key] WITHIN 20 seconds"
    wanted = stretto.match(query, random_events(1), time="ts", sequence="seq")
    found = sql(f"SELECT * FROM stretto_query(TABLE(events), '{query}', time => 'ts', sequence => 'seq')")
    assert bag(found.toArrow()) == bag(wanted)
    everything = query.replace("WITHIN", "GROUP BY () WITHIN")
    with pytest.raises(Exception, match="counts and adds up for some of the keys at a time: group by all keys"):
        sql(f"SELECT * FROM stretto_query(TABLE(events), '{everything}', time => 'ts')").collect()
    found = sql(f"SELECT * FROM stretto_match(TABLE(events) WITH SINGLE PARTITION ORDER BY (ts, seq), '{everything}')")
    assert bag(found.toArrow()) == bag(stretto.match(everything, random_events(1), time="ts", sequence="seq"))


def test_inside_a_larger_statement(sql: Any) -> None:
    found = sql(
        """
        WITH late AS (SELECT * FROM events WHERE x > 2)
        SELECT m.key, count(*) AS number, max(m.b[0].x) AS x
        FROM stretto_query(query => 'SELECT b[x] FROM S WHERE A ; B AS b PARTITION BY [key] WITHIN 20 seconds',
                           events => TABLE(late), sequence => 'seq', time => 'ts', OUTPUT => 'events') AS m
        GROUP BY m.key
        """
    ).toArrow()
    table = random_events(1)
    own = stretto.match(
        "SELECT b[x] FROM S WHERE A ; B AS b PARTITION BY [key] WITHIN 20 seconds",
        table.filter(pa.compute.greater(table.column("x"), 2)), time="ts", sequence="seq",
    )  # fmt: skip
    assert own.num_rows
    counts = own.group_by("key").aggregate([("start", "count")]).to_pylist()
    assert {row["key"]: row["number"] for row in found.to_pylist()} == {
        row["key"]: row["start_count"] for row in counts
    }


def test_columns_fit_the_query(sql: Any) -> None:
    schema = sql(
        "SELECT * FROM stretto_query(TABLE(events), 'SELECT a[x], b FROM S WHERE A AS a ; B AS b PARTITION BY [group]')"
    ).schema
    assert schema.simpleString() == (
        "struct<start_time:timestamp,end_time:timestamp,group:int,a:array<struct<x:bigint>>,"
        "b:array<struct<type:string,ts:timestamp,seq:bigint,key:string,group:int,x:bigint>>>"
    )
    query = "SELECT * FROM S WHERE A ; B"
    found = sql(f"SELECT * FROM stretto_query(TABLE(events), '{query}', output => 'positions') LIMIT 1")
    assert found.columns == ["start_time", "end_time"]


def test_only_needed_columns_travel(sql: Any) -> None:
    call = "stretto_query(TABLE(events), 'SELECT a[x] FROM S WHERE A AS a PARTITION BY [key]')"
    plan = sql(f"SELECT * FROM {call}")._jdf.queryExecution().optimizedPlan().toString()
    sent = re.search(r"named_struct\((.*)\) AS", plan)
    assert sent
    assert re.findall(r"(\w+), \w+#", sent.group(1)) == ["type", "ts", "key", "x"]


def test_a_function_of_one_query(spark: Any, sql: Any) -> None:
    register(spark, "a_then_b", QUERIES["plain"], time="ts", sequence="seq")
    assert bag(sql("SELECT * FROM a_then_b(TABLE(events))").toArrow()) == expected("plain")
    short = sql("SELECT * FROM a_then_b(TABLE(events), output => 'positions')")
    assert short.columns == ["start_time", "end_time", "key"]
    assert short.count() == len(expected("plain"))
    compiled = stretto.compile("SELECT * FROM S WHERE A ; B", {"kind": "string", "t": "int64"}, type="kind", time="t")
    register(spark, "compiled", compiled)
    found = sql("SELECT * FROM compiled(TABLE(SELECT * FROM VALUES ('A', 1L), ('B', 2L) AS v(kind, t)))").collect()
    assert [(row.start_time, row.end_time) for row in found] == [(1, 2)]


def test_types_from_streams_and_odd_names(spark: Any, sql: Any) -> None:
    register(spark, "by_stream", "SELECT * FROM buys, sells WHERE buys ; sells PARTITION BY [`the.key`]", type=None)
    found = sql(
        """
        SELECT * FROM by_stream(
            TABLE(SELECT * FROM VALUES ('buys', 1, 'k`'), ('sells', 2, 'k`'), ('news', 3, 'k`') AS v(`from where`, t, `the.key`)),
            stream => 'from where', time => 't')
        """
    ).collect()
    assert [(row.start_time, row.end_time, row["the.key"]) for row in found] == [(1, 2, "k`")]
    table = "TABLE(SELECT * FROM VALUES (1), (2) AS v(t))"
    query = "SELECT * FROM S WHERE S ; S"
    assert sql(f"SELECT * FROM stretto_query({table}, '{query}', time => 't', type => NULL)").count() == 1


def test_larger_than_a_batch(sql: Any) -> None:
    """Many Arrow batches for a partition, many partitions in a batch."""
    rows = 100_000
    table = f"TABLE(SELECT id AS ts, id % 500 AS key, if((id div 500) % 2 = 0, 'A', 'B') AS type FROM range({rows}))"
    query = "SELECT * FROM S WHERE A : B PARTITION BY [key]"
    assert sql(f"SELECT * FROM stretto_query({table}, '{query}', time => 'ts')").count() == rows // 2
    one = f"stretto_match({table} WITH SINGLE PARTITION ORDER BY (ts), '{query}', time => 'ts')"
    assert sql(f"SELECT * FROM {one}").count() == rows // 2


class TestMistakes:
    """What a reader of SQL sees."""

    def planning(self, sql: Any, call: str) -> str:
        from pyspark.errors import AnalysisException

        with pytest.raises(AnalysisException) as caught:
            sql(f"SELECT * FROM {call}")
        return str(caught.value)

    def running(self, sql: Any, call: str) -> str:
        from pyspark.errors import PythonException

        with pytest.raises(PythonException) as caught:
            sql(f"SELECT * FROM {call}").collect()
        return str(caught.value)

    def test_the_caret_is_shown(self, sql: Any) -> None:
        shown = self.planning(sql, "stretto_query(TABLE(events), 'SELECT * FROM S WHERE A AS a FILTER a[y > 3]')")
        assert "QueryError: line 1, column 39: unknown attribute 'y'" in shown
        assert (
            "\n  SELECT * FROM S WHERE A AS a FILTER a[y > 3]\n                                        ^\nhint: "
            in shown
        )
        assert shown.count('File "') == 1  # not the way through the parser
        shown = self.planning(sql, "stretto_match(TABLE(events) PARTITION BY key ORDER BY (ts), 'SELECT * FRM S')")
        assert "SELECT * FRM S\n           ^^^" in shown

    @pytest.mark.parametrize(
        ("arguments", "message"),
        seeds(
            ("TABLE(events), 'SELECT * FROM S WHERE A', tyme => 'ts'", "has no argument 'tyme'; did you mean 'type'?"),
            ("TABLE(events), 'SELECT * FROM S WHERE A', time => 'tss'", "no column 'tss' (time); did you mean 'ts'?"),
            ("TABLE(events), 'SELECT * FROM S WHERE A', time => 3", "time => 3: give a string"),
            ("TABLE(events), 'SELECT * FROM S WHERE A', valuations => 'x'", "valuations => 'x': give TRUE or FALSE"),
            ("TABLE(events), 'SELECT * FROM S WHERE A', 'ts'", "takes events and query by place; name the others"),
            ("TABLE(events), concat('SELECT', uuid())", "query must be a constant"),
            ("TABLE(events)", "stretto_query needs a query"),
            ("'SELECT * FROM S WHERE A'", "stretto_query needs the events: stretto_query(TABLE(…), query)"),
            ("TABLE(SELECT x, type FROM events), 'SELECT * FROM S WHERE A'", "there is no timestamp: name it, time => '…'"),
            ("TABLE(SELECT *, ts AS t FROM events), 'SELECT * FROM S WHERE A'", "there are 2 timestamps (ts, t)"),
            ("TABLE(events), 'SELECT * FROM S WHERE A', output => 'event'", "output='event'"),
            ("TABLE(events), CAST(NULL AS STRING)", "query is NULL"),
        ),
    )  # fmt: skip
    def test_arguments(self, sql: Any, arguments: str, message: str) -> None:
        assert message in self.planning(sql, f"stretto_query({arguments})")

    def test_order_is_for_sql_to_say(self, sql: Any) -> None:
        arguments = "'SELECT * FROM S WHERE A', sequence => 'seq'"
        shown = self.planning(sql, f"stretto_match(TABLE(events) PARTITION BY key ORDER BY (ts), {arguments})")
        assert "takes the rows in the order of SQL: ORDER BY (time, seq)" in shown

    @pytest.mark.parametrize("order", seeds("", "ORDER BY (ts DESC)", "ORDER BY (seq)"))
    def test_rows_out_of_order(self, sql: Any, order: str) -> None:
        shown = self.running(
            sql, f"stretto_match(TABLE(events) PARTITION BY (key) {order}, 'SELECT * FROM S WHERE A ; B')"
        )
        assert "DataError: 'ts' decreases from " in shown
        assert "TABLE(…) PARTITION BY … ORDER BY (ts)" in shown

    def test_rows_of_one_stream_in_several_tasks(self, sql: Any) -> None:
        shown = self.running(sql, "stretto_match(TABLE(events), 'SELECT * FROM S WHERE A ; B')")
        # The first task cannot know of the others, and may be the first that fails: for the order of its own rows.
        several = "OptionError: stretto_match: the rows of TABLE(…) are in several tasks" in shown
        assert (
            several
            or "stretto_match takes the rows in the order of SQL: TABLE(…) PARTITION BY … ORDER BY (ts)" in shown
        )

    def test_null_time(self, sql: Any) -> None:
        table = "TABLE(SELECT type, CAST(NULL AS timestamp) AS ts FROM events)"
        shown = self.running(sql, f"stretto_query({table}, 'SELECT * FROM S WHERE A')")
        assert "DataError: column 'ts' (time) is NULL in 300 or more rows" in shown

    def test_two_arrangements(self, sql: Any) -> None:
        shown = self.planning(sql, "stretto_query(TABLE(events) PARTITION BY (key), 'SELECT * FROM S WHERE A')")
        assert "specified its own required partitioning" in shown

    def test_register(self, spark: Any) -> None:
        with pytest.raises(QueryError, match="line 1, column 16"):
            register(spark, "wrong", "SELECT * FROM S")
        with pytest.raises(OptionError, match=r"register\(\) has no option 'tme'; did you mean 'time'\?"):
            register(spark, tme="ts")
        with pytest.raises(OptionError, match="name='a-b'"):
            register(spark, "a-b", QUERIES["plain"])
        with pytest.raises(OptionError, match="needs the query of that function"):
            register(spark, "alone")
        with pytest.raises(OptionError, match="time=3: expected a string"):
            register(spark, "three", QUERIES["plain"], time=3)


class TestFitted:
    """Functions that are fitted to the columns of a table."""

    def test_as_sql_arranges(self, spark: Any, sql: Any) -> None:
        register(spark, "kleene", QUERIES["kleene"], like=spark.table("events"), time="ts")
        call = "kleene(TABLE(events) PARTITION BY key ORDER BY (ts, seq))"
        assert bag(sql(f"SELECT * FROM {call}").toArrow()) == expected("kleene")
        # Columns are found by name; those that the query does not need may be missing.
        call = "kleene(TABLE(SELECT x, seq, key, type, group, ts FROM events) PARTITION BY key ORDER BY (ts, seq))"
        assert bag(sql(f"SELECT * FROM {call}").toArrow()) == expected("kleene")

    def test_mistakes_show_at_once(self, spark: Any, sql: Any) -> None:
        columns = spark.table("events").schema
        with pytest.raises(QueryError, match="unknown attribute 'y'"):
            register(spark, "f", "SELECT * FROM S WHERE A AS a FILTER a[y > 3]", like=columns)
        with pytest.raises(DataError, match="no column 'tss' \\(time\\); did you mean 'ts'"):
            register(spark, "f", QUERIES["plain"], like=columns, time="tss")
        with pytest.raises(OptionError, match="takes the rows in the order of SQL"):
            register(spark, "f", QUERIES["plain"], like=columns, sequence="seq")

    def test_another_table(self, spark: Any, sql: Any) -> None:
        register(spark, "fits", QUERIES["plain"], like=spark.table("events"))
        shown = TestMistakes().running(
            sql, "fits(TABLE(SELECT type, ts, key FROM events) PARTITION BY key ORDER BY (ts))"
        )
        assert "DataError: the events have no column 'seq'" in shown
        table = "TABLE(SELECT type, ts, seq, 3 AS key, group, x FROM events)"
        shown = TestMistakes().running(sql, f"fits({table} PARTITION BY key ORDER BY (ts))")
        assert "DataError: column 'key' is int32, and the query was compiled for string" in shown
        assert "fits needs the events: fits(TABLE(…))" in TestMistakes().running(sql, "fits(3)")


def test_fields_inside_of_columns(spark: Any, sql: Any) -> None:
    rows = spark.createDataFrame(
        [("A", (1, "p"), 1), ("A", (2, "q"), 2), ("B", (2, "r"), 3), ("B", (1, "s"), 4), ("B", (2, "t"), 99)],
        "type string, card struct<id: int, `a b`: string>, t int",
    ).repartition(3)
    rows.createOrReplaceTempView("cards")
    text = "SELECT * FROM S WHERE A AS a ; B AS b FILTER b[`card.a b` != ''t''] PARTITION BY [card.id] WITHIN 10 [t]"
    found = sql(f"SELECT * FROM stretto_query(TABLE(cards), '{text}', time => 't')")
    assert sorted((row["card.id"], row.start_time, row.end_time) for row in found.collect()) == [(1, 1, 4), (2, 2, 3)]
    table = "TABLE(cards) PARTITION BY card.id ORDER BY (t)"
    found = sql(f"SELECT * FROM stretto_match({table}, '{text}', time => 't')")
    assert sorted((row["card.id"], row.start_time, row.end_time) for row in found.collect()) == [(1, 1, 4), (2, 2, 3)]
