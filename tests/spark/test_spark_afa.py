"""Automata, answers ahead of what is certain, and corrected input, on Spark."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, OptionError, QueryError
from tests.conftest import SHARE
from tests.spark.streams import add_file, read_stream, run
from tests.spark.test_bucket import cut, events
from tests.spark.test_revising_bucket import CHANGES, SASE, afa, expected, net, revised

ROLES = {"time": "ts", "sequence": "seq"}
END = {"type": "Z", "ts": 10_000, "seq": 10_000, "key": "z", "x": 0}


def table_of(seed: int, rows: int = 60) -> pa.Table:
    return events(random.Random(seed), rows, "seconds")


def with_corrections(table: pa.Table, rng: random.Random) -> tuple[list[pa.Table], pa.Table]:
    """Micro-batches in which events are taken back or come anew, and what stays."""
    sign = pa.field("sign", pa.int64())
    parts, stays = [], []
    for part in cut(rng, table):
        rows = []
        for row in part.to_pylist():
            rows.append(row | {"sign": 1})
            draw = rng.random()
            if draw < 0.2:
                rows.append(row | {"sign": -1})
            if draw < 0.1:
                stays.append(row | {"type": rng.choice("ABC")})
                rows.append(stays[-1] | {"sign": 1})
            elif draw >= 0.2:
                stays.append(row)
        parts.append(pa.Table.from_pylist(rows, table.schema.append(sign)))
    return parts, pa.Table.from_pylist(stays, table.schema)


def test_batches(spark: Any) -> None:
    table = table_of(1)
    df = spark.createDataFrame(table)
    shown = stretto.spark.explain(df, afa(), **ROLES)
    assert "tasks      hashed by key, in the order of time; an automaton is not cut in time" in shown
    rows = stretto.spark.match(df, afa(), **ROLES, partitions=2)
    assert rows.columns == ["start_time", "end_time", "until", "key", "register"]
    found = [rows.toArrow()]
    found.append(stretto.spark.match(df, stretto.write_afa(afa()), language="afa", **ROLES).toArrow())
    df.createOrReplaceTempView("rows_of_afa")
    stretto.spark.register(spark)
    text = stretto.write_afa(afa()).replace('"', '\\"')
    for call in (
        "stretto_query(TABLE(rows_of_afa),",
        "stretto_match(TABLE(rows_of_afa) PARTITION BY key ORDER BY (ts, seq),",
    ):
        order = ", sequence => 'seq'" if "query" in call else ""
        sql = f"SELECT * FROM {call} \"{text}\", language => 'afa', time => 'ts'{order})"
        found.append(spark.sql(sql).toArrow())
    wanted = expected(revised("afa", table, 0), table)
    assert wanted
    assert all(net([one]) == wanted for one in found)

    parts, stays = with_corrections(table, random.Random(2))
    given = spark.createDataFrame(pa.concat_tables(parts))
    whole = stretto.spark.match(given, afa(), **ROLES, sign="sign").toArrow()
    assert net([whole]) == expected(revised("afa", stays, 0), stays)
    query = "SELECT * FROM S WHERE A AS a : B AS b PARTITION BY [key]"
    whole = stretto.spark.match(given, query, **ROLES, sign="sign").toArrow()
    assert net([whole]) == net([stretto.match(query, stays, time="ts").drop_columns(["start", "end", "positions"])])
    alone = given.where("sign < 0")
    with pytest.raises(Exception, match=r"a retraction of an event that is not there: .*seq"):
        stretto.spark.match(alone, afa(), **ROLES, sign="sign").collect()

    changed = stretto.Matcher(afa(), time="ts", sequence="seq", dynamic="explicit")
    changed.push(table.schema.empty_table(), arcs=CHANGES)
    lasting = stretto.spark.match(df, afa(), **ROLES, arcs=spark.createDataFrame(CHANGES)).toArrow()
    assert net([lasting]) == net([changed.push(table).drop_columns(["start", "end"])])


def stream(spark: Any, folder: Path, parts: list[pa.Table]) -> Any:
    """Micro-batches, and at last an event behind all others."""
    end = pa.Table.from_pylist([END | ({"sign": 1} if "sign" in parts[0].column_names else {})], parts[0].schema)
    for number, part in enumerate([*parts, end]):
        add_file(folder, part, number)
    return read_stream(spark, folder)


def test_streams(spark: Any, tmp_path: Path) -> None:
    """An automaton and a SASE+ query that answer ahead, over corrected input, and an automaton whose arcs change."""
    table = table_of(4, 24)
    parts, stays = with_corrections(table, random.Random(5))
    options = {**ROLES, "time_unit": "s", "disorder": "100 seconds", "buckets": 2}
    given = stream(spark, tmp_path / "signed", parts)
    ahead = stretto.spark.match(given, afa(), **options, sign="sign", speculation=math.inf)
    assert ahead.columns[0] == "sign"
    text = stretto.spark.explain(given, SASE, **options, sign="sign", speculation=math.inf)
    assert "engine     afa: answers go ahead of what is certain" in text
    queries = {"afa": ahead}
    if SHARE == "all":
        queries["sase"] = stretto.spark.match(given, SASE, **options, sign="sign", speculation=math.inf)
    add_file(tmp_path / "arcs", CHANGES, 0)
    arcs = read_stream(spark, tmp_path / "arcs")
    plain = stream(spark, tmp_path / "plain", [table.slice(0, 12), table.slice(12)])
    queries["arcs"] = stretto.spark.match(plain, afa(), **options, arcs=arcs, speculation="3 seconds")
    found = {}
    for name, matches in queries.items():
        query = run(matches, tmp_path / f"checkpoint-{name}", tmp_path / f"out-{name}")
        found[name] = spark.read.parquet(str(tmp_path / f"out-{name}")).toArrow()
        counts = [stretto.spark.metrics(progress) for progress in query.recentProgress]
        assert sum(one["matches"] for one in counts) == found[name].num_rows
        assert sum(one["revisions"] for one in counts) == found[name].column("sign").to_pylist().count(-1)
    for name in queries.keys() - {"arcs"}:
        assert net([found[name]]) == expected(revised(name, stays, 0), stays), name
    changed = stretto.Matcher(afa(), time="ts", sequence="seq", dynamic="explicit")
    changed.push(table.schema.empty_table(), arcs=CHANGES)
    assert net([found["arcs"]]) == net([changed.push(table).drop_columns(["start", "end"])])


def test_what_cannot_be(spark: Any, tmp_path: Path) -> None:
    table = table_of(1, 5)
    add_file(tmp_path / "in", table, 0)
    df, given = spark.createDataFrame(table), read_stream(spark, tmp_path / "in")
    add_file(tmp_path / "arcs", CHANGES, 0)
    arcs = read_stream(spark, tmp_path / "arcs")
    options = {**ROLES, "time_unit": "s", "disorder": "1 second", "speculation": math.inf}
    lambdas = stretto.AFA({"x": int}).arc("q0", "q1", when=lambda e, r: e.x > 3).final("q1")
    ceql = "SELECT * FROM S WHERE A ; B PARTITION BY [key] LIMIT 3"
    for call, fault, message in (
        (
            lambda: stretto.spark.match(df, lambdas, time="ts"),
            OptionError,
            "arc 'a0': the function lambda .* is known to this process only",
        ),
        (lambda: stretto.spark.match(df, afa()), OptionError, "needs the column that orders the stream"),
        (lambda: stretto.spark.match(df, afa(), time="tt"), DataError, "no column 'tt' .time."),
        (lambda: stretto.spark.match(df, afa(), time="ts", sign="type"), DataError, "'type' .sign. is string"),
        (
            lambda: stretto.spark.match(df, afa(), time="ts", output="summary"),
            OptionError,
            "is for queries in CEQL or SASE",
        ),
        (lambda: stretto.spark.match(df, afa(), time="ts", slices=2), OptionError, "is for queries in CEQL or SASE"),
        (lambda: stretto.spark.match(df, ceql, time="ts", bag=True), OptionError, "is for AFAs, and this is a query"),
        (lambda: stretto.spark.match({"S": df}, afa(), time="ts"), OptionError, "reads one DataFrame"),
        (lambda: stretto.spark.match(df.drop("x"), afa(), time="ts"), DataError, "no column 'x'"),
        (lambda: stretto.spark.match(df.withColumn("x", df.key), afa(), time="ts"), DataError, "'x' is string"),
        (
            lambda: stretto.spark.match(given, ceql, **options),
            QueryError,
            "LIMIT chooses among matches, which late events add and take back",
        ),
        (
            lambda: stretto.spark.match(given, SASE, **options | {"speculation": 3, "sequence": None}, sign="seq"),
            OptionError,
            "do not wait",
        ),
        (lambda: stretto.spark.match(given, afa(), **options, event_id="x", sign="x"), OptionError, "the same id"),
        (lambda: stretto.spark.match(given, afa(), **options | {"speculation": "x"}), OptionError, "expected ticks"),
        (lambda: stretto.spark.match(df, afa(), time="ts", arcs=arcs), OptionError, "the arcs are a stream"),
        (lambda: stretto.spark.match(df, afa(), time="ts", arcs=df), DataError, "the arcs have no column 'action'"),
        (
            lambda: stretto.spark.match(df, afa(), time="ts", arcs=[1]),
            OptionError,
            "expected a DataFrame of Spark or None, and got a list",
        ),
    ):
        with pytest.raises(fault, match=message):
            call()
