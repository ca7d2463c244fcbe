"""Dataflows over batch DataFrames: in every group what a dataflow of its own gives, whatever the partitions and buckets."""

from __future__ import annotations

import datetime as dt
import random
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from stretto import spark as on_spark
from stretto.dataflow import Dataflow, Stream, datalog, fixpoint, stream
from stretto.errors import DataError, OptionError

pytestmark = [pytest.mark.spark]

Rows = list[dict[str, Any]]

LINKS = stream("links", {"src": str, "dst": str})
SOURCES = stream("sources", {"at": str})


def reach() -> Stream:
    """Which nodes are reached from the sources."""
    return fixpoint(
        lambda r: SOURCES.project(node="at").union(LINKS.join(r, on={"src": "node"}).project(node="dst")).distinct(),
        schema={"node": str},
    )


def network(seed: int, groups: int = 7) -> dict[str, Rows]:
    """Links and sources of several networks: insertions and retractions, in no order."""
    choose = random.Random(seed)
    links: Rows = []
    for _ in range(40 * groups):
        start = choose.randint(0, 90)
        ve = None if choose.random() < 0.3 else start + choose.randint(1, 40)
        row = {
            "network": f"n{choose.randint(1, groups)}",
            "src": choose.choice("abcdefgh"),
            "dst": choose.choice("abcdefgh"),
        }
        links.append({**row, "since": start, "until": ve, "to": None})
        for _ in range(choose.choice([0, 0, 1, 2])):  # a chain of retractions of one event
            now = start + choose.randint(0, 30)
            if ve is None or now < ve:
                links.append({**row, "since": start, "until": ve, "to": now})
                ve = now
                if ve == start:
                    break
    sources = [{"network": f"n{n}", "at": choose.choice("abc"), "since": n} for n in range(groups)]
    choose.shuffle(links)
    return {"links": links, "sources": sources}


def embedded(made: Stream, tables: Mapping[str, Rows], key: str) -> Rows:
    """What a dataflow for each group gives."""
    found: Rows = []
    for value in sorted({row[key] for rows in tables.values() for row in rows if row[key] is not None}):
        flow = Dataflow(result=made)
        for name, rows in tables.items():
            part = [row for row in rows if row[key] == value]
            # What is taken back comes after what there was, and ends ever earlier.
            part.sort(
                key=lambda row: (row.get("to") is not None, -(2**62 if row.get("until") is None else row["until"]))
            )
            names = {"since": "vs", "until": "ve", "to": "ve_new"}
            flow.push(
                name, [{names.get(a, a): b for a, b in row.items() if a != key} for row in part] or _none(made, name)
            )
        flow.finish()
        flow.run_until_idle()
        found += [{key: value, **row} for row in flow.history("result").to_pylist()]
    return found


def _none(made: Stream, name: str) -> pa.Table:
    from stretto.dataflow.cycles import ordered
    from stretto.dataflow.plan import Source

    row = next(node.schema for node in ordered([made.node]) if isinstance(node, Source) and node.name == name)
    return pa.schema([*row.items(), ("vs", pa.int64())]).empty_table()


def bag(rows: Any) -> list[str]:
    plain = [row.asDict() if hasattr(row, "asDict") else row for row in rows]
    return sorted(str(sorted(row.items(), key=lambda pair: pair[0])) for row in plain)


def frames(spark: Any, tables: Mapping[str, Rows], partitions: int = 3) -> dict[str, Any]:
    kinds = {"network": "string", "since": "long", "until": "long", "to": "long"}
    made = {}
    for name, rows in tables.items():
        schema = ", ".join(f"`{column}` {kinds.get(column, 'string')}" for column in rows[0])
        made[name] = spark.createDataFrame([tuple(row.values()) for row in rows], schema).repartition(partitions)
    return made


@pytest.mark.parametrize("buckets", [1, 3, None])
def test_every_group_has_its_own_fixed_point(spark: Any, buckets: int | None) -> None:
    tables = network(1)
    found = on_spark.dataflow(
        frames(spark, tables), reach(), by="network", vs="since", ve="until", ve_new="to", buckets=buckets
    )
    assert found.columns == ["network", "node", "vs", "ve"]
    rows = found.collect()
    assert bag(rows) == bag(embedded(reach(), tables, "network"))
    assert len(rows) > 50


def test_without_a_key_the_plan_runs_over_everything(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    tables = {name: [row for row in rows if row.get("to") is None] for name, rows in network(2).items()}
    whole = {name: [{**row, "network": "all"} for row in rows] for name, rows in tables.items()}
    found = on_spark.dataflow(frames(spark, tables), reach(), vs="since", ve="until")
    assert "runs in one task" in caplog.text
    assert found.columns == ["node", "vs", "ve"]
    wanted = [
        {name: one for name, one in row.items() if name != "network"} for row in embedded(reach(), whole, "network")
    ]
    assert bag(found.collect()) == bag(wanted)


def test_facts_of_a_program_are_in_every_group_and_keys_of_other_types_come_back(spark: Any) -> None:
    made = datalog("start(1). r(Y) :- start(X), e(X, Y). r(Y) :- r(X), e(X, Y). r(9).", {"e": {"x": int, "y": int}})[
        "r"
    ]
    at = dt.datetime(2024, 1, 2)
    rows = [
        (1, dt.date(2024, 1, 1), 2, at),
        (2, dt.date(2024, 1, 1), 3, at),
        (2, dt.date(2024, 1, 2), 3, at),
        (1, None, 7, at),
    ]
    events = spark.createDataFrame(rows, "x int, day date, y long, vs timestamp_ntz")
    shown = on_spark.dataflow(events, made, by=["day"])
    assert dict(shown.dtypes) == {"day": "date", "y": "bigint", "vs": "timestamp_ntz", "ve": "timestamp_ntz"}
    found: dict[dt.date, set[int]] = defaultdict(set)
    for row in shown.collect():
        found[row.day].add(row.y)
        assert row.ve is None
    assert found == {dt.date(2024, 1, 1): {2, 3, 9}, dt.date(2024, 1, 2): {9}}


def test_a_key_that_the_plan_has_is_a_column_once(spark: Any) -> None:
    costs = stream("costs", {"k": int, "cost": int})
    events = spark.createDataFrame([(1, 5, 0), (1, 6, 0), (2, 7, 0)], "k int, cost int, vs long")
    found = on_spark.dataflow({"costs": events}, costs.aggregate("k", total="sum(cost)"), by="k")
    assert found.columns == ["k", "total", "vs", "ve"]
    assert bag(found.collect()) == bag([{"k": k, "total": t, "vs": 0, "ve": None} for k, t in ((1, 11), (2, 7))])
    with pytest.raises(
        OptionError, match=r"the result has a column 'k', which is not the key of this name: rename\(\) it"
    ):
        on_spark.dataflow(events, costs.project("cost", k="k + 1"), by="k")


def test_sources_whose_keys_have_other_widths_meet(spark: Any) -> None:
    left, right = stream("left", {"a": int}), stream("right", {"b": int})
    one = spark.createDataFrame([(k, k, 0) for k in range(20)], "k int, a int, vs int")
    two = spark.createDataFrame([(k, -k, 3, 9) for k in range(20)], "k long, b long, vs long, ve long")
    found = on_spark.dataflow({"left": one, "right": two}, left.join(right), by="k").collect()
    assert bag(found) == bag([{"k": k, "a": k, "b": -k, "vs": 3, "ve": 9} for k in range(20)])


def test_a_matcher_by_groups(spark: Any) -> None:
    events = stream("events", {"type": str, "cost": int})
    made = events.recognize(
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.cost < b.cost } WITHIN 10 RETURN b.cost AS most"
    )
    rows = [("A", 1, 0, "x"), ("B", 5, 1, "y"), ("A", 3, 2, "y"), ("B", 4, 3, "x"), ("B", 6, 4, "y")]
    found = on_spark.dataflow(
        spark.createDataFrame(rows, "type string, cost int, vs long, k string"), made, by="k"
    ).collect()
    assert sorted((row.k, row.most, row.vs) for row in found) == [("x", 4, 3), ("y", 6, 4)]


def test_mistakes_are_errors_of_the_call(spark: Any) -> None:
    links = spark.createDataFrame([("n", "a", "b", 0)], "network string, src string, dst string, since long")
    sources = links.selectExpr("network", "src AS at", "since")
    good = {"links": links, "sources": sources}

    def call(df: Any = good, made: Any = None, **options: Any) -> None:
        on_spark.dataflow(df, made or reach(), **{"by": "network", "vs": "since"} | options)

    with pytest.raises(DataError, match=r"the source '\w+' has no column 'netwrok' \(by\); did you mean 'network'"):
        call(by="netwrok")
    with pytest.raises(DataError, match=r"the source '\w+' has no column 'sinse' \(vs\); did you mean 'since'"):
        call(vs="sinse")
    with pytest.raises(DataError, match="no source has a column 'until' \\(ve\\)"):
        call(ve="until")
    with pytest.raises(DataError, match="the plan reads 2 sources \\(sources, links\\): give a dict"):
        call(links)
    with pytest.raises(DataError, match="there are no events for the source 'sources'"):
        call({"links": links})
    with pytest.raises(DataError, match="the plan reads no source 'link'; did you mean 'links'"):
        call({**good, "link": links})
    with pytest.raises(DataError, match="source 'links': column 'src' is int32, and the plan has string"):
        call({**good, "links": links.withColumn("src", links.since.cast("int"))})
    with pytest.raises(DataError, match="'since' of 'sources' is int64, while 'since' of 'links' is timestamp"):
        call({**good, "links": links.selectExpr("network", "src", "dst", "timestamp_seconds(since) AS since")})
    with pytest.raises(DataError, match="the key 'network' is decimal"):
        call({name: df.withColumn("network", df.since.cast("decimal(5,1)")) for name, df in good.items()})
    with pytest.raises(OptionError, match="by=\\('network', 'network'\\): a column is named twice"):
        call(by=["network", "network"])
    with pytest.raises(OptionError, match=r"dataflow\(stream='reach'\): expected a stream, and got a str"):
        call(made="reach")
    with pytest.raises(OptionError, match="buckets=0"):
        call(buckets=0)
    with pytest.raises(OptionError, match="df\\['links'\\] is a Table, not a Spark DataFrame"):
        call({**good, "links": pa.table({"src": ["a"]})})


def test_what_is_wrong_in_the_rows_is_an_error_when_spark_runs(spark: Any) -> None:
    from pyspark.errors import PythonException

    costs = stream("costs", {"cost": int})
    for rows, message in (
        ([(1, None, 9, "x")], "source 'costs': column 'at' \\(vs\\) is NULL in 1 or more rows"),
        ([(None, 3, 9, "x")], "input 'costs', row 0: 'cost' is NULL"),
        ([(1, 3, 2, "x")], "\\(cost=1, k='x'\\) \\[3, 2\\) ends \\(ve\\) before it begins"),
    ):
        events = spark.createDataFrame(rows, "cost int, at long, ve long, k string")
        found = on_spark.dataflow(events, costs.distinct(), by="k", vs="at")
        with pytest.raises(PythonException, match=message):
            found.collect()
