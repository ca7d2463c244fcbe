"""Many patterns on Spark: the rows of a ``PatternSet`` in this process, in batch, streaming, and while the patterns change."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, OptionError, QueryError
from tests.conftest import seeds
from tests.spark.streams import add_file, bag, read_stream, run

pytestmark = [pytest.mark.spark]

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("seq", pa.int64()),
        ("key", pa.string()),
        ("x", pa.int64()),
    ]
)


def at(seconds: float) -> dt.datetime:
    return START + dt.timedelta(seconds=seconds)


def random_events(seed: int, rows: int = 240) -> pa.Table:
    """Events in order of time but for 2 s, three a second, and one at the end that the others are far behind."""
    rng = random.Random(seed)
    events = [
        {
            "type": rng.choice("ABCD"),
            "ts": at(i // 3 + rng.randrange(3)),
            "seq": i,
            "key": rng.choice(["a", "b", "c"]),
            "x": rng.choice([None, *range(6)]),
        }
        for i in range(rows)
    ]
    events.append({"type": "Z", "ts": at(10_000), "seq": rows, "key": "a", "x": None})
    return pa.Table.from_pylist(events, schema=SCHEMA)


CHANGES = [
    stretto.Change("ab", "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 5 seconds"),
    stretto.Change("bb", "SELECT b FROM S WHERE B+ AS b FILTER b[x > 3] PARTITION BY [key] WITHIN 2 seconds", at(10)),
    stretto.Change("ab", "SELECT * FROM S WHERE A ; C AS c PARTITION BY [key], [x]", at(30)),
    stretto.Change("bb", None, at(40)),
    stretto.Change("ca", "SELECT * FROM S WHERE C : A PARTITION BY [key]", at(55)),
]

#: An A and the next C with a greater x, of the same key; of other events between them only those without x and B.
STEEP = stretto.AFA({"type": str, "x": int, "key": str}, register={"low": int}, window="8 seconds", partition_by="key")
STEEP.arc("q0", "q1", when="e.type = 'A' AND e.x IS NOT NULL", then="low = e.x")
STEEP.ignore("q1", when="e.type = 'B' OR e.x IS NULL").arc("q1", "q2", when="e.type = 'C' AND e.x > r.low").final("q2")

#: Patterns on other engines than tECS; a match of the second one waits until time has passed.
OTHERS = [
    stretto.Change(
        "rising", "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [key] AND a.x < b.x } WITHIN 9 seconds"
    ),
    stretto.Change("never", "SELECT * FROM S WHERE A AS a ; NOT B PARTITION BY [key] WITHIN 3 seconds", at(5)),
    stretto.Change(
        "chain", "sequence by key with maxspan=5s [A where true] [B where x > 2] ![C where true]", language="eql"
    ),
    stretto.Change(
        "session",
        "SELECT * FROM S WHERE A+ GAP 2 seconds PARTITION BY [key] KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
    ),
    stretto.Change(
        "first",
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [key] AND a.x < b[i].x } WITHIN 5 seconds KEEP SHORTEST",
        at(4),
    ),
    stretto.Change("steep", stretto.write_afa(STEEP), at(2), language="afa"),
    stretto.Change(
        "climb",
        "MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts MEASURES FIRST(x) AS low, count(*) AS n "
        "PATTERN (A B+) WITHIN INTERVAL '6' SECOND DEFINE A AS type = 'A', B AS x > PREV(x))",
        at(3),
    ),
]


def expected(events: pa.Table, changes: list[stretto.Change], **options: Any) -> list[str]:
    patterns = stretto.PatternSet(events.schema, time="ts", **options)
    patterns.change(changes)
    pushed = patterns.push(events.sort_by([("ts", "ascending"), ("seq", "ascending")]))
    found = pa.concat_tables([pushed, patterns.finish()])
    assert {row["pattern"] for row in found.to_pylist()} == {change.id for change in changes if change.query}
    return bag(found)


def test_batch(spark: Any) -> None:
    events = random_events(1)
    nine = " OR ".join(f"({kind} AS a FILTER a[x = {x}])" for kind in "ABC" for x in range(3))
    changes = [*CHANGES, *OTHERS, stretto.Change("nine", f"SELECT * FROM S WHERE {nine} PARTITION BY [key]")]
    for by in (["key"], []):
        found = stretto.spark.match_patterns(spark.createDataFrame(events), changes, by=by, time="ts", sequence="seq")
        assert bag(found.toArrow()) == expected(events, changes, by=by)


def test_batch_of_patterns_that_add_up(spark: Any) -> None:
    events = random_events(3)
    query = "SELECT COUNT(*) AS n, MAX(b[x]) AS most FROM S WHERE A ; B+ AS b PARTITION BY [key] WITHIN 4 seconds"
    changes = [
        *CHANGES,
        stretto.Change("each", f"{query} EVERY EVENT"),
        stretto.Change("window", f"{query} EVERY 2 seconds"),
        stretto.Change("part", query, at(20)),
        stretto.Change("part", None, at(50)),
    ]
    df = spark.createDataFrame(events)
    options: dict[str, Any] = {"by": ["key"], "time": "ts", "totals": True}
    found = stretto.spark.match_patterns(df, changes, sequence="seq", **options)
    assert bag(found.toArrow()) == expected(events, changes, by=["key"], totals=True)
    stream = spark.readStream.format("rate").load().selectExpr("'A' AS type", "timestamp AS ts", "'k' AS key", "1 AS x")
    with pytest.raises(OptionError, match="pattern 'part': its row comes when the stream ends"):
        stretto.spark.match_patterns(stream, changes, disorder="1 second", **options)


@pytest.mark.usefixtures("two_partitions")
def test_patterns_add_up_in_a_stream(spark: Any, tmp_path: Path) -> None:
    """Windows come when the watermark has passed them, of patterns that end and begin as well."""
    events = random_events(5)
    query = "SELECT COUNT(*) AS n, MAX(b[x]) AS most FROM S WHERE A ; B+ AS b PARTITION BY [key] WITHIN 4 seconds"
    changes = [
        *CHANGES[:1],
        stretto.Change("each", f"{query} EVERY EVENT"),
        stretto.Change("window", f"{query} EVERY 2 seconds"),
        stretto.Change("window", f"{query} EVERY 3 seconds", at(30.5)),
        stretto.Change("window", None, at(50.5)),
    ]
    in_files(tmp_path / "in", events, 3)
    options: dict[str, Any] = {"by": ["key"], "time": "ts", "totals": True}
    stream = read_stream(spark, tmp_path / "in")
    found = stretto.spark.match_patterns(stream, changes, sequence="seq", disorder="4 seconds", buckets=2, **options)
    run(found, tmp_path / "checkpoint", tmp_path / "out")
    shown = spark.read.schema(found.schema).parquet(str(tmp_path / "out")).toArrow()
    assert bag(shown) == expected(events, changes, by=["key"], totals=True)


def test_batch_with_queries_by_id_and_a_table(spark: Any) -> None:
    events = random_events(2)
    first = {change.id: change.query for change in CHANGES[:2]} | {"steep": STEEP}
    changes = [stretto.Change(name, query) for name, query in first.items()]
    df = spark.createDataFrame(events)
    options: dict[str, Any] = {"by": ["key"], "time": "ts", "sequence": "seq", "output": "positions"}
    found = stretto.spark.match_patterns(df, first, **options)
    assert "events" not in found.columns
    assert bag(found.toArrow()) == expected(events, changes, by=["key"], output="positions")
    changes = changes[:2]
    table = spark.createDataFrame(
        [(c.id, c.query, "2024-01-01 00:00:10") for c in changes], "id string, query string, since string"
    )
    later = [stretto.Change(c.id, c.query, at(10)) for c in changes]
    found = stretto.spark.match_patterns(df, table, **options)
    assert bag(found.toArrow()) == expected(events, later, by=["key"], output="positions")
    called = (
        stretto.AFA({"x": int, "key": str}, partition_by="key").arc("q0", "q1", when=lambda e, r: e.x > 3).final("q1")
    )
    with pytest.raises(
        OptionError, match="pattern 'f': the AFA has a Python function, and patterns go to workers as texts"
    ):
        stretto.spark.match_patterns(df, {"f": called}, **options)


def test_batch_with_clauses_and_queries_in_eql(spark: Any) -> None:
    """Measures are shown where that is asked for; a compiled query says its language itself."""
    events = random_events(6)
    chain = stretto.compile("sequence by key with maxspan=5s [A where true] [B where x > 2]", language="eql")
    patterns: dict[str, Any] = {"climb": OTHERS[-1].query, "chain": chain}
    options: dict[str, Any] = {"by": ["key"], "time": "ts", "measures": True}
    found = stretto.spark.match_patterns(spark.createDataFrame(events), patterns, sequence="seq", **options).toArrow()
    changes = [stretto.Change(name, query) for name, query in patterns.items()]
    options.pop("time")
    assert bag(found) == expected(events, changes, **options)
    measured = [row["measures"] for row in found.to_pylist() if row["pattern"] == "climb"]
    assert {name for row in measured for name, _ in row} == {"low", "n"}


def changes_table(changes: list[stretto.Change]) -> pa.Table:
    rows = [{"id": one.id, "query": one.query, "since": one.since, "language": one.language} for one in changes]
    kinds = pa.schema(
        {"id": pa.string(), "query": pa.string(), "since": pa.timestamp("us", tz="UTC"), "language": pa.string()}
    )
    return pa.Table.from_pylist(rows, schema=kinds)


def in_files(folder: Path, table: pa.Table, count: int) -> None:
    size = -(-(table.num_rows - 1) // count)
    for number in range(count):
        add_file(folder, table.slice(0, table.num_rows - 1).slice(size * number, size), number)
    add_file(folder, table.slice(table.num_rows - 1), count)


@pytest.mark.parametrize("given", seeds("late", "early"))
def test_patterns_change_while_a_query_runs(spark: Any, tmp_path: Path, given: str) -> None:
    """When a change comes does not matter, as long as it comes in time; across restarts."""
    events = random_events(3)
    in_files(tmp_path / "events", events, 3)
    if given == "early":
        add_file(tmp_path / "changes", changes_table([*CHANGES, *OTHERS]), 0)
    else:  # one a micro-batch; events are 80 s, and a micro-batch some 27 s
        add_file(tmp_path / "changes", changes_table([*CHANGES[:3], *OTHERS]), 0)
        add_file(tmp_path / "changes", changes_table(CHANGES[3:4]), 1)
        add_file(tmp_path / "changes", changes_table(CHANGES[4:]), 2)
    found = stretto.spark.match_patterns(
        read_stream(spark, tmp_path / "events"),
        read_stream(spark, tmp_path / "changes"),
        by=["key"],
        time="ts",
        sequence="seq",
        disorder="3 seconds",
        buckets=2,
    )
    query = run(found, tmp_path / "checkpoint", tmp_path / "out")
    counts = [stretto.spark.metrics(progress) for progress in query.recentProgress]
    assert sum(count["late_changes"] + count["bad_changes"] + count["late"] for count in counts) == 0
    shown = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert bag(shown) == expected(events, [*CHANGES, *OTHERS], by=["key"])


def test_changes_that_come_too_late_or_are_wrong_are_counted(spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    events = random_events(4)
    in_files(tmp_path / "events", events, 2)
    wrong = stretto.Change("oops", "SELECT * FROM S WHERE A FILTER A[prize > 1] PARTITION BY [key]", at(0))
    add_file(tmp_path / "changes", changes_table([CHANGES[0], wrong]), 0)
    add_file(tmp_path / "changes", changes_table([stretto.Change("x", CHANGES[0].query, at(1))]), 2)
    options: dict[str, Any] = {"by": ["key"], "time": "ts", "sequence": "seq", "disorder": "3 seconds", "buckets": 3}

    def found(late: str) -> Any:
        frames = [read_stream(spark, tmp_path / name) for name in ("events", "changes")]
        return stretto.spark.match_patterns(*frames, late=late, **options)

    query = run(found("drop"), tmp_path / "checkpoint", tmp_path / "out")
    counts = [stretto.spark.metrics(progress) for progress in query.recentProgress]
    assert sum(count["bad_changes"] for count in counts) == 1
    assert sum(count["late_changes"] for count in counts) == 1
    shown = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert bag(shown) == expected(events, CHANGES[:1], by=["key"])
    with pytest.raises(StreamingQueryException, match=r"a change of patterns is wrong: .*unknown attribute 'prize'"):
        run(found("error"), tmp_path / "checkpoint2", tmp_path / "out2")


class TestMistakes:
    @pytest.fixture
    def df(self, spark: Any) -> Any:
        return spark.createDataFrame(random_events(5, 3))

    def test_at_the_call(self, spark: Any, df: Any) -> None:
        good = {"ab": CHANGES[0].query}
        with pytest.raises(QueryError, match=r"pattern 'p': .*prize"):
            stretto.spark.match_patterns(df, {"p": "SELECT * FROM S WHERE A AS a FILTER a[prize > 1]"}, time="ts")
        with pytest.raises(QueryError, match="not partitioned by 'x'"):
            stretto.spark.match_patterns(df, good, time="ts", by=["x"])
        with pytest.raises(DataError, match=r"no column 'tss' \(time\); did you mean 'ts'"):
            stretto.spark.match_patterns(df, good, time="tss")
        with pytest.raises(OptionError, match="there are no patterns"):
            stretto.spark.match_patterns(df, {}, time="ts")
        with pytest.raises(
            OptionError,
            match=r"a dict of strings or compiled queries or AFAs by name or a list of stretto\.Change objects, and got a list",
        ):
            stretto.spark.match_patterns(df, ["SELECT"], time="ts")
        with pytest.raises(DataError, match="the patterns have no column 'query'"):
            stretto.spark.match_patterns(df, spark.createDataFrame([("a",)], "id string"), time="ts")

    def test_streams(self, spark: Any, df: Any) -> None:
        rate = spark.readStream.format("rate").load()
        changes = rate.selectExpr("'p' AS id", "'q' AS query", "timestamp AS since")
        with pytest.raises(OptionError, match="the patterns are a stream, and the events are not"):
            stretto.spark.match_patterns(df, changes, time="ts")
        with pytest.raises(OptionError, match="a watermark on 'since', which would hold back"):
            stretto.spark.match_patterns(df, changes.withWatermark("since", "1 second"), time="ts")
