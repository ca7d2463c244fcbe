"""Counts and sums over all matches on Spark: by key in batch, of events and windows in streams."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import stretto
from stretto.errors import OptionError
from tests.spark.sessions import PARTITIONS
from tests.spark.streams import add_file, bag, read_stream, run_together
from tests.spark.test_batch import random_events

pytestmark = [pytest.mark.spark]

ITEMS = "COUNT(*), COUNT(b[x]) AS known, SUM(b[x]), MIN(b[x]), MAX(a[ts]) AS latest, CAST(SUM(b[x]) AS DOUBLE) AS real"
MATCHES = "FROM S WHERE A AS a ; B+ AS b PARTITION BY [key]"
SASE = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [key] } WITHIN 20 seconds RETURN TOTAL count(*), avg(b[].x) AS mean"
BEHIND = f"{SASE} EVERY EVENT".replace("b[])", "b[], ~(C c))").replace("20 seconds", "8 seconds")
RELATED = """PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [key] and b[i].x >= b[i-1].x } WITHIN 20 seconds
RETURN TOTAL count(*), avg(b[].x) AS mean, max(a.ts) AS latest"""

BATCHES = {
    "by key": f"SELECT {ITEMS}, AVG(b[x]) {MATCHES} WITHIN 20 seconds",
    "of events": f"SELECT {ITEMS}, AVG(b[x]) {MATCHES} WITHIN 20 seconds EVERY EVENT",
    "of windows": f"SELECT {ITEMS}, AVG(b[x]) {MATCHES} WITHIN 20 seconds EVERY 5 seconds",
    "more groups than keys": f"SELECT {ITEMS}, AVG(b[x]) {MATCHES} GROUP BY [key], a[group] WITHIN 20 seconds",
    "one group": f"SELECT {ITEMS} {MATCHES} GROUP BY () WITHIN 20 seconds",
    "other groups": f"SELECT {ITEMS} {MATCHES} GROUP BY a[group] WITHIN 20 seconds",
    "one group of windows": f"SELECT {ITEMS} {MATCHES} GROUP BY () WITHIN 20 seconds EVERY 5 seconds",
    "one group of events": f"SELECT {ITEMS} {MATCHES} GROUP BY () WITHIN 20 seconds EVERY EVENT",
    "no key": "SELECT COUNT(*), AVG(b[x]) FROM S WHERE A ; B AS b ; C",
    "no key, of events": "SELECT COUNT(*), AVG(b[x]) FROM S WHERE A ; B AS b WITHIN 8 EVENTS EVERY 4 EVENTS",
    "no match": "SELECT COUNT(*), SUM(b[x]), AVG(b[x]) FROM S WHERE A : B AS b FILTER b[x > 99]",
    "valuations": "SELECT COUNT(*), SUM(c[x]) FROM S WHERE A+ AS a ; A+ AS c PARTITION BY [key] WITHIN 10 seconds",
    "sase": SASE,
    "sase, conditions between events": RELATED,
    "sase, conditions between events, of windows": f"{RELATED} GROUP BY [key], a.group EVERY 5 seconds",
    "sase, negation": SASE.replace("A a,", "A a, ~(C c),"),
    "gaps": f"SELECT {ITEMS} FROM S WHERE A AS a ; B+ AS b GAP 5 seconds PARTITION BY [key] GROUP BY [key], a[group] "
    "WITHIN 20 seconds",
    "gaps, of windows": "SELECT COUNT(*) FROM S WHERE (A ; B AFTER 2 seconds) PARTITION BY [key] WITHIN 20 seconds EVERY 5 seconds",
    "nothing behind, of events": "SELECT COUNT(*) FROM S WHERE A ; B ; NOT C PARTITION BY [key] WITHIN 20 seconds EVERY EVENT",
    "sase, negation at the end, of events": BEHIND,
    "windows of the events of each key": f"SELECT {ITEMS}, AVG(b[x]) {MATCHES} WITHIN 9 EVENTS EVERY 4 EVENTS",
    "strict": "SELECT STRICT COUNT(*) FROM S WHERE A ; B+ PARTITION BY [key]",
}


@pytest.mark.parametrize("name", BATCHES)
def test_batch(spark: Any, name: str) -> None:
    table = random_events(3)
    options = {"time": "ts", "sequence": "seq", "valuations": name == "valuations"}
    expected = stretto.match(BATCHES[name], table, **options)
    df = spark.createDataFrame(table).repartition(3)
    found = stretto.spark.match(df, BATCHES[name], **options, slices=4).toArrow()
    shown = [one for one in expected.column_names if one not in ("start", "end")]
    assert found.column_names == shown
    assert expected.num_rows
    assert bag(found) == bag(expected)


def test_nothing_at_all_has_a_row(spark: Any) -> None:
    df = spark.createDataFrame(random_events(3)).filter("x > 99")
    for text in (
        f"SELECT COUNT(*), SUM(b[x]) {MATCHES} GROUP BY ()",
        "SELECT COUNT(*), SUM(b[x]) FROM S WHERE A ; B AS b",
    ):
        found = stretto.spark.match(df, text, time="ts").toArrow()
        assert found.to_pylist() == [{"count": 0, "sum_b_x": None}]
        assert found.schema.types == [pa.int64(), pa.int64()]


def test_what_several_tasks_add_up(spark: Any) -> None:
    """NaN makes the least value NaN, decimals are exact, and beyond 64 bits is an error."""
    df = spark.createDataFrame(
        [
            ("A", 1, "x", 1.5, "1.25", 1),
            ("A", 2, "y", float("nan"), "2.50", 2),
            ("A", 3, "z", None, None, None),
        ],
        "type string, t long, key string, f double, d string, n long",
    ).selectExpr("*", "CAST(d AS DECIMAL(10, 2)) AS money")
    table = df.toArrow()
    parts = "FROM S WHERE A AS a PARTITION BY [key] GROUP BY ()"
    text = f"SELECT MIN(a[f]), MAX(a[f]), SUM(a[f]), SUM(a[money]), MIN(a[money]), CAST(SUM(a[n]) AS DOUBLE) AS real {parts}"
    assert bag(stretto.spark.match(df, text, time="t").toArrow()) == bag(stretto.match(text, table, time="t"))
    for one in (2**60, -(2**60)):
        many = spark.range(8).selectExpr("'A' AS type", "id AS t", "string(id) AS key", f"{one} AS n")
        found = stretto.spark.match(many.limit(7), f"SELECT SUM(a[n]) {parts}", time="t")
        assert found.first()[0] == 7 * one
        found = stretto.spark.match(many.union(many.limit(1)), f"SELECT SUM(a[n]) {parts}", time="t", partitions=8)
        with pytest.raises(Exception, match="column 'sum_a_n': SUM of all matches leaves 64 bits"):
            found.collect()


def test_explain_says_that_spark_adds_up(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    df = spark.createDataFrame(random_events(3))
    text = stretto.spark.explain(df, f"SELECT COUNT(*) {MATCHES} GROUP BY ()", time="ts")
    assert text.endswith("\n           Spark adds up the rows of all tasks")
    assert "adds up the rows" not in stretto.spark.explain(df, f"SELECT COUNT(*) {MATCHES}", time="ts")
    with caplog.at_level(logging.WARNING, "stretto"):
        stretto.spark.match(df, "SELECT COUNT(*) FROM S WHERE A ; B WITHIN 8 EVENTS", time="ts")
    assert "needs all of them in one task. Add PARTITION BY, so that" in caplog.text


#: Queries of streams, and what must have passed before their rows come.
STREAMED = {
    "events": (f"SELECT {ITEMS}, AVG(b[x]) {MATCHES} WITHIN 20 seconds EVERY EVENT", "end_time"),
    "windows": (f"SELECT {ITEMS}, AVG(b[x]) {MATCHES} WITHIN 20 seconds EVERY 5 seconds", "window_end"),
    "events of runs": (f"{RELATED} EVERY EVENT", "end_time"),
    "windows of runs": (f"{RELATED} EVERY 5 seconds", "window_end"),
    "gaps": (
        f"SELECT {ITEMS} FROM S WHERE A AS a ; B+ AS b GAP 9 seconds PARTITION BY [key] WITHIN 20 seconds EVERY EVENT",
        "end_time",
    ),
    "negation at the end": (BEHIND, "decided"),
}
STREAM = random_events(4, 120).sort_by([("ts", "ascending"), ("seq", "ascending")])


@pytest.fixture(scope="module")
def given_by_streams(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """What the queries give, in one continuous query."""
    folder = tmp_path_factory.mktemp("streams")
    for number in range(3):
        add_file(folder / "in", STREAM.slice(40 * number, 40), number)
    options = {"time": "ts", "sequence": "seq", "disorder": "0 seconds"}
    streams = {
        name: stretto.spark.match(read_stream(spark, folder / "in"), text, **options)
        for name, (text, _) in STREAMED.items()
    }
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    _, given = run_together(streams, folder)
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    return given


@pytest.mark.parametrize("name", STREAMED)
def test_stream(given_by_streams: dict[str, pa.Table], name: str) -> None:
    (text, end), table, shown = STREAMED[name], STREAM, given_by_streams[name]
    expected = stretto.match(text, table, time="ts", sequence="seq")
    last = table.column("ts")[-1]  # events of the watermark's own time wait for a later one
    passed = pc.less_equal if end == "window_end" else pc.less
    if end == "decided":  # when the window of what begins with the event has passed
        ends = pc.add(expected.column("end_time"), pa.scalar(8, pa.duration("s")))
    else:
        ends = expected.column(end)
    known = expected.filter(passed(ends, last))
    assert known.num_rows > 4
    assert bag(shown) == bag(known)


def test_stream_ahead_of_what_is_certain(spark: Any, tmp_path: Path) -> None:
    """The rows of each key, which are revised when events come late, and when others come."""
    table = random_events(4, 60)
    for number in range(3):
        add_file(tmp_path / "in", table.take(pa.array(range(number, 60, 3))), number)
    options: dict[str, Any] = {"time": "ts", "sequence": "seq", "disorder": "1 hour", "speculation": math.inf}
    scopes = {"of all": "", "windows": " WITHIN 20 seconds EVERY 5 seconds"}
    texts = {name: f"SELECT {ITEMS}, AVG(b[x]) {MATCHES}{scope}" for name, scope in scopes.items()}
    streams = {
        name: stretto.spark.match(read_stream(spark, tmp_path / "in"), text, **options) for name, text in texts.items()
    }
    _, given = run_together(streams, tmp_path)
    for name, text in texts.items():
        assert -1 in given[name]["sign"].to_pylist(), name
        left = stretto.spark.current(spark.createDataFrame(given[name])).drop("match_id").toArrow()
        assert bag(left) == bag(stretto.match(text, table, time="ts", sequence="seq")), name


REFUSED = {
    "AVG": (f"SELECT AVG(b[x]) {MATCHES} GROUP BY ()", "write SUM and COUNT"),
    "windows of events": (
        f"SELECT COUNT(*) {MATCHES} GROUP BY a[group] WITHIN 8 EVENTS EVERY 4 EVENTS",
        "leave GROUP BY out, so that each key is a group",
    ),
}
REFUSED_IN_STREAMS = {
    "all of a stream": (f"SELECT COUNT(*) {MATCHES}", "which has no end: EVERY EVENT"),
    "other windows": (f"SELECT COUNT(*) {MATCHES} WITHIN 8 [seq] EVERY 4", "measure them by 'ts'"),
    "one group of windows": (
        f"SELECT COUNT(*) {MATCHES} GROUP BY () WITHIN 20 seconds EVERY 5 seconds",
        "group by all keys",
    ),
}


def test_what_is_refused(spark: Any, tmp_path: Path) -> None:
    table = random_events(5, 20)
    add_file(tmp_path / "in", table, 0)
    stream, df = read_stream(spark, tmp_path / "in"), spark.createDataFrame(table)
    for text, why in REFUSED.values():
        with pytest.raises(OptionError, match=why):
            stretto.spark.match(df, text, time="ts")
    for text, why in REFUSED_IN_STREAMS.values():
        with pytest.raises(OptionError, match=why):
            stretto.spark.match(stream, text, time="ts", disorder="0 seconds")
    for text, why in (REFUSED_IN_STREAMS["other windows"], REFUSED_IN_STREAMS["one group of windows"]):
        with pytest.raises(OptionError, match=why):
            stretto.spark.match(stream, text, time="ts", disorder="0 seconds", speculation="1 second")
