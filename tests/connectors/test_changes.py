"""Change feeds as signed events: each change is there, in a batch and in a stream; what is wrong is counted and shown."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto import connectors
from stretto.connectors import changes
from stretto.errors import DataError, OptionError
from tests.spark.streams import read_stream

pytestmark = [pytest.mark.spark]

SCHEMA = "type string, n int NOT NULL, t int, price double"


def row(kind: str | None, n: int, t: int | None, price: float) -> dict[str, Any]:
    return {"type": kind, "n": n, "t": t, "price": price}


def record(op: str | None, before: Any = None, after: Any = None, *, wrapped: bool = False) -> str:
    envelope = {"before": before, "after": after, "source": {"table": "trades"}, "op": op, "ts_ms": 7}
    return json.dumps({"schema": {"type": "struct"}, "payload": envelope} if wrapped else envelope)


VERSION = {"change": "_commit_version"}

SELL, BUY, LATER = row("SELL", 1, 10, 80.0), row("BUY", 2, 20, 85.0), row("BUY", 2, 9, 85.0)

#: Keys and values as a topic holds them.
RECORDS: list[tuple[str | None, str | None]] = [
    ("1", record("r", None, SELL)),
    ("2", record("c", None, BUY, wrapped=True)),
    ("2", record("u", BUY, LATER)),
    ("1", record("d", SELL)),
    ("1", None),  # a tombstone
    (None, record("c", None, SELL)),
    ("2", record("u", None, BUY)),
    ("2", record("d", None, BUY)),
    ("2", record("c", SELL)),
    ("2", record("t")),
    ("2", record("m", wrapped=True)),
    ("2", record(None, SELL, BUY)),
    ("2", record("c", None, {**BUY, "price": "cheap"})),
    ("2", '{"before": null, "after'),
    ("2", record("u", {**BUY, "t": None}, BUY)),  # the row before had no time, and was no event
    (None, None),
]

GOOD = [(10, 1, 1), (20, 1, 2), (20, -1, 2), (9, 1, 2), (10, -1, 1), (20, 1, 2)]

BAD = {
    4: "a tombstone: the deletion before it says all",
    5: "the record has no key",
    6: "the row before is missing, and op is u",
    7: "the row before is missing, and op is d",
    8: "the row after is missing, and op is c",
    9: "a truncation names no row that it takes back",
    10: "a message, and no change of a row",
    11: "op is no change of a row: NULL",
    12: "not one JSON object of before struct<",
    13: "not one JSON object of before struct<",
    14: "attribute 't' is missing or NULL",
    15: "the record has no key",
}


@pytest.fixture(params=["batch", "stream"])
def topic(spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """The records as Kafka's source gives them."""
    rows = [(key, value, "trades", 0, at, None) for at, (key, value) in enumerate(RECORDS)]
    kinds = "key string, value string, topic string, partition int, offset bigint, timestamp timestamp"
    df = spark.createDataFrame(rows, kinds)
    df = df.withColumn("key", df.key.cast("binary")).withColumn("value", df.value.cast("binary"))
    df.coalesce(1).write.parquet(str(tmp_path / "in"))
    return spark.read.parquet(str(tmp_path / "in")) if request.param == "batch" else read_stream(spark, tmp_path / "in")


def rows_of(df: Any, name: str) -> tuple[list[Any], dict[str, Any]]:
    """All rows, and what is counted."""
    if not df.isStreaming:
        return df.collect(), {}
    query = df.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    counts = next((p.observedMetrics for p in query.recentProgress if p.observedMetrics), {})
    return df.sparkSession.table(name).collect(), {key: value.asDict() for key, value in counts.items()}


def test_debezium(topic: Any) -> None:
    events = changes.debezium(
        topic, schema=SCHEMA, time="t", sequence="n", columns={"at": "debezium.ts_ms", "change": "kafka.offset"}
    )
    assert events.roles == {"type": "type", "time": "t", "sequence": "n", "sign": "sign"}
    assert events.good.columns == ["type", "n", "t", "price", "sign", "at", "change"]
    good, counts = rows_of(events.good, "good")
    ordered = sorted(good, key=lambda one: (one.change, one.sign))
    assert [(one.t, one.sign, one.n) for one in ordered] == GOOD
    assert [one.change for one in ordered] == [0, 1, 2, 2, 3, 14]
    bad, _ = rows_of(events.bad, "bad")
    told = {int(one.place.rsplit(" ", 1)[1]): one for one in bad}
    assert sorted(told) == sorted(BAD)
    assert len(bad) == len(BAD)
    for at, reason in BAD.items():
        assert told[at].reason.startswith(reason), at
        assert told[at].raw == RECORDS[at][1]
        assert told[at].source == "trades"
    if counts:
        assert counts == {"records:changes": {"records": len(GOOD) + len(BAD), "bad": len(BAD)}}


def test_what_the_changes_come_to(topic: Any) -> None:
    """A corrected time makes another match; Spark, and a matcher in this process, take the signs."""
    events = changes.debezium(topic.where("offset < 3"), schema=SCHEMA, time="t", sequence="n")
    text = "PATTERN SEQ(BUY b, SELL s) WHERE skip_till_next_match { s.price < b.price } WITHIN 60"
    ahead = {"time_unit": "s", "disorder": "1 hour", "speculation": math.inf} if topic.isStreaming else {}
    found, _ = rows_of(stretto.spark.match(events.good, text, **events.roles, **ahead), "matched")
    assert [(one.start_time, one.end_time) for one in found] == [(9, 10)]
    numbered = changes.debezium(
        topic.where("offset < 3"), schema=SCHEMA, time="t", sequence="n", columns={"change": "kafka.offset"}
    )
    good, _ = rows_of(numbered.good, "corrected")
    rows = [one.asDict() for one in sorted(good, key=lambda one: (one.change, one.sign))]
    kinds = pa.schema([("type", pa.string()), ("n", pa.int32()), ("t", pa.int32()), ("price", pa.float64())])
    roles = {key: value for key, value in events.roles.items() if key != "type"}
    matcher = stretto.Matcher(text, kinds, **roles, speculation=math.inf)
    given = [matcher.push([{k: v for k, v in one.items() if k != "change"}]).to_pylist() for one in rows]
    assert [(one["sign"], one["start_time"], one["end_time"]) for step in given for one in step] == [(1, 9, 10)]


def test_errors_are_errors_and_tombstones_are_none(spark: Any) -> None:
    def feed(*numbers: int) -> Any:
        df = spark.createDataFrame([RECORDS[at] for at in numbers], "key string, value string")
        return changes.debezium(df, schema=SCHEMA, time="t", bad_records="error")

    assert [one.sign for one in feed(0, 3, 4).good.collect()] == [1, -1]
    with pytest.raises(Exception, match="changes: a record is no event: the record has no key: "):
        feed(0, 5).good.collect()


def test_deltas_feed(spark: Any, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    path = str(tmp_path / "trades")
    first = pa.table({"type": ["SELL", "BUY", None], "n": [1, 2, 3], "t": [10, 20, 30]})
    deltalake.write_deltalake(path, first, configuration={"delta.enableChangeDataFeed": "true"})
    table = deltalake.DeltaTable(path)
    table.update({"t": "9"}, predicate="n = 2")
    table.delete("n = 1")
    feed = pa.table(deltalake.DeltaTable(path).load_cdf(starting_version=0).read_all())
    df = spark.createDataFrame(pa.Table.from_pylist(feed.to_pylist()))
    more = df.limit(1).selectExpr(*[f"'no' AS {c}" if c == "_change_type" else c for c in df.columns])
    df.union(more).write.parquet(str(tmp_path / "feed"))
    for read in (spark.read.parquet, lambda path: read_stream(spark, Path(path))):
        events = changes.delta(read(str(tmp_path / "feed")), time="t", sequence="n", columns=VERSION)
        good, _ = rows_of(events.good, "delta_good")
        found = sorted((one.change, one.sign, one.n, one.t) for one in good)
        assert found == [(0, 1, 1, 10), (0, 1, 2, 20), (1, -1, 2, 20), (1, 1, 2, 9), (2, -1, 1, 10)]
        bad, _ = rows_of(events.bad, "delta_bad")
        reasons = ["_change_type is no kind of change: no", "attribute 'type' is missing or NULL"]
        assert sorted(one.reason for one in bad) == reasons
        assert {one.place for one in bad if "type'" in one.reason} == {"version 0"}


@pytest.mark.parametrize("kept", ["true", "false"])
def test_a_delta_table_as_a_stream_of_changes(spark: Any, tmp_path: Path, kept: str) -> None:
    """Whether the table keeps change data or not: without, rows that were only moved cancel each other."""
    deltalake = pytest.importorskip("deltalake")
    path = str(tmp_path / "trades")
    day = dt.date(2024, 1, 2)
    first = pa.table({"type": ["SELL", "BUY", "BUY", None], "n": [1, 2, 4, 3], "t": [10, 20, 40, 30], "day": [day] * 4})
    setting = {"delta.enableChangeDataFeed": kept}
    deltalake.write_deltalake(path, first, configuration=setting, partition_by=["day"])
    events = connectors.delta.read(spark, path, time="t", sequence="n", columns=VERSION, streaming=True, changes=True)
    query = events.good.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    assert query.start().awaitTermination(300)
    table = deltalake.DeltaTable(path)
    table.update({"t": "9"}, predicate="n = 2")
    table.delete("n = 1")
    deltalake.write_deltalake(path, first.slice(0, 1).set_column(1, "n", pa.array([5])), mode="append")
    deltalake.DeltaTable(path).optimize.compact()
    assert query.start().awaitTermination(300)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert {row.day for row in rows} == {day}
    ordered = sorted((row.change, row.sign, row.n, row.t) for row in rows)
    net: Counter[tuple[int, int]] = Counter()
    for _, sign, n, t in ordered:
        net[n, t] += sign
        assert net[n, t] in (0, 1)
    assert +net == Counter([(2, 9), (4, 40), (5, 10)])
    if kept == "true":
        assert ordered[3:] == [(1, -1, 2, 20), (1, 1, 2, 9), (2, -1, 1, 10), (3, 1, 5, 10)]
    with pytest.raises(OptionError, match="changes= is for streaming=True"):
        connectors.delta.read(spark, path, time="t", changes=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": "sign int, t int"}, "the table has a column 'sign', which the feed adds"),
        ({"key": "kay"}, "the records have no column 'kay' \\(key\\); did you mean 'key'"),
        ({"time": "tt"}, "no column 'tt' \\(time\\)"),
        ({"bad_records": "lose"}, "expected 'side' or 'error'"),
    ],
)
def test_mistakes(spark: Any, options: dict[str, Any], message: str) -> None:
    df = spark.createDataFrame([("1", "{}")], "key string, value string")
    with pytest.raises((DataError, OptionError), match=message):
        changes.debezium(df, **({"schema": SCHEMA, "time": "t"} | options))
    with pytest.raises(DataError, match="a change data feed has a column '_change_type'"):
        connectors.changes.delta(df, time="value")
