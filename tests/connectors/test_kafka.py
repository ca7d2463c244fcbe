"""Kafka, for real: a broker on this machine, Spark's own connector."""

from __future__ import annotations

import json
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from stretto.errors import OptionError
from tests.connectors.test_files import run

pytestmark = [pytest.mark.spark]

SCHEMA = "type string, ts bigint, price double"


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4()}"


def produce(spark: Any, servers: str, topic: str, values: list[Any], partition: int | None = 0) -> None:
    """Messages in order, to one partition."""
    rows = [(None, None if value is None else value.encode(), partition) for value in values]
    df = spark.createDataFrame(rows, "key binary, value binary, partition int").coalesce(1)
    df.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def messages(spark: Any, servers: str, topic: str) -> list[dict[str, Any]]:
    """A topic's values, with the key and the id in the headers checked."""
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true"}
    found = []
    for row in spark.read.format("kafka").options(**options).load().collect():
        value = json.loads(row.value)
        assert [(header.key, bytes(header.value).decode()) for header in row.headers] == [
            ("match_id", value["match_id"])
        ]
        found.append(value | {"key": bytes(row.key).decode()})
    return found


def event(kind: str, ts: int, price: float = 1.0) -> str:
    return json.dumps({"type": kind, "ts": ts, "price": price})


def test_read(kafka_spark: Any, kafka: str, topic: str) -> None:
    from stretto.connectors import kafka as source

    produce(kafka_spark, kafka, topic, [event("A", 1), "nonsense", None, event("B", 2)])
    produce(kafka_spark, kafka, topic, [event("C", 3), '{"type":"D"}'], partition=1)
    events = source.read(
        kafka_spark,
        kafka,
        topic,
        schema=SCHEMA,
        time="ts",
        streaming=False,
        columns={"at": "kafka.timestamp", "place": "concat(kafka.partition, '/', kafka.offset)"},
    )
    good = sorted(events.good.collect(), key=lambda row: row.ts)
    assert [(row.type, row.ts, row.place) for row in good] == [("A", 1, "0/0"), ("B", 2, "0/3"), ("C", 3, "1/0")]
    assert [row.sequence for row in good] == [0, 3 << 16, 1]
    assert all(row["at"] is not None for row in good)
    assert events.roles == {"type": "type", "time": "ts", "sequence": "sequence"}
    bad = sorted(events.bad.collect(), key=lambda row: row.place)
    assert [(row.raw, row.place, row.source) for row in bad] == [
        ("nonsense", "partition 0, offset 1", topic),
        (None, "partition 0, offset 2", topic),
        ('{"type":"D"}', "partition 1, offset 1", topic),
    ]
    assert [row.reason for row in bad] == [
        "not one JSON object of type string, ts bigint, price double",
        "the value is NULL",
        "attribute 'ts' is missing or NULL",
    ]
    assert all(row.arrived is not None for row in bad)


def test_events_of_one_time_are_in_the_order_of_offsets(kafka_spark: Any, kafka: str, topic: str) -> None:
    from stretto import spark as on_spark
    from stretto.connectors import kafka as source

    produce(kafka_spark, kafka, topic, [event(kind, 5, number) for number, kind in enumerate("BABBA")])
    events = source.read(kafka_spark, kafka, topic, schema=SCHEMA, time="ts", streaming=False)
    found = on_spark.match(events.good, "SELECT * FROM S WHERE A AS a ; B AS b", **events.roles).collect()
    assert sorted((row.a[0].price, row.b[0].price) for row in found) == [(1.0, 2.0), (1.0, 3.0)]


def test_streaming_from_offsets(kafka_spark: Any, kafka: str, topic: str, tmp_path: Path) -> None:
    from stretto.connectors import files
    from stretto.connectors import kafka as source

    produce(kafka_spark, kafka, topic, [event("A", ts) for ts in range(6)])
    starting = {topic: {"0": 2, "1": 0}}
    events = source.read(
        kafka_spark, kafka, [topic], schema=SCHEMA, time="ts", starting=starting, options={"maxOffsetsPerTrigger": 3}
    )
    write = files.writer(tmp_path / "out")
    query = run(events.good, write, tmp_path / "checkpoint")
    counts = [progress.observedMetrics[events.metrics] for progress in query.recentProgress if progress.numInputRows]
    assert [(row.records, row.bad) for row in counts] == [(3, 0), (1, 0)]
    produce(kafka_spark, kafka, topic, ["", event("B", 6)])
    run(events.good, write, tmp_path / "checkpoint")
    assert sorted(row.ts for row in kafka_spark.read.parquet(str(tmp_path / "out")).collect()) == [2, 3, 4, 5, 6]


def test_messages_can_be_told_apart(kafka_spark: Any, kafka: str, topic: str) -> None:
    from stretto.connectors import kafka as sink

    rows = kafka_spark.createDataFrame([("u", 1), ("u", 1), ("v", 2)], "user string, n int").repartition(3)
    write = sink.writer(kafka, topic, "app", key="user")
    write(rows, 0)
    first = messages(kafka_spark, kafka, topic)
    assert sorted((value["key"], value["user"], value["n"]) for value in first) == [
        ("u", "u", 1),
        ("u", "u", 1),
        ("v", "v", 2),
    ]
    ids = {value["match_id"] for value in first}
    assert len(ids) == 3
    # The same batch again: the same ids. Another batch, or another query: other ones.
    write(rows, 0)
    again = messages(kafka_spark, kafka, topic)
    assert (len(again), {value["match_id"] for value in again}) == (6, ids)
    write(rows, 1)
    sink.writer(kafka, topic, "other")(rows, 0)
    last = messages(kafka_spark, kafka, topic)
    assert len({value["match_id"] for value in last}) == 9
    assert sum(value["key"] == value["match_id"] for value in last) == 3


def test_a_sink_that_fails_between_two(kafka_spark: Any, kafka: str, topic: str, tmp_path: Path) -> None:
    """Kafka has the batch, Delta not yet: after the restart each message is there, and each row once."""
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'stretto[delta]'")
    from stretto import connectors

    produce(kafka_spark, kafka, topic, [event("A", ts) for ts in range(4)])
    events = connectors.kafka.read(
        kafka_spark, kafka, topic, schema=SCHEMA, time="ts", options={"maxOffsetsPerTrigger": 2}
    )
    failed: set[int] = set()

    def failing(df: Any, batch_id: int) -> None:
        if batch_id not in failed:
            failed.add(batch_id)
            raise RuntimeError("injected")

    write = connectors.together(
        connectors.kafka.writer(kafka, f"{topic}-out", "app"),
        failing,
        connectors.delta.writer(tmp_path / "t", "app"),
    )
    for _ in range(2):
        with pytest.raises(Exception, match="injected"):
            run(events.good, write, tmp_path / "checkpoint")
    run(events.good, write, tmp_path / "checkpoint")
    rows = deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_table()
    assert sorted(rows["ts"].to_pylist()) == [0, 1, 2, 3]
    found = messages(kafka_spark, kafka, f"{topic}-out")
    assert len(found) == 8
    assert sorted({value["match_id"]: value["ts"] for value in found}.values()) == [0, 1, 2, 3]


def test_a_session_without_the_connector(spark: Any) -> None:
    """``ADD JAR`` reaches the thread that says it only: another one has no connector, whatever ran before."""
    from stretto.connectors import kafka as source

    errors: list[Exception] = []

    def reading() -> None:
        try:
            source.read(spark, "127.0.0.1:1", "t", schema=SCHEMA, time="ts")
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=reading)
    thread.start()
    thread.join()
    assert isinstance(errors[0], OptionError)
    assert f"spark.jars.packages={source.package()}" in str(errors[0])


def test_arguments(kafka_spark: Any) -> None:
    from stretto.connectors import kafka as source

    def read(**arguments: Any) -> None:
        source.read(kafka_spark, **({"servers": "h:1", "topic": "t", "schema": SCHEMA, "time": "ts"} | arguments))

    with pytest.raises(OptionError, match="topic: name at least one"):
        read(topic=[])
    with pytest.raises(OptionError, match="servers: name at least one"):
        read(servers="")
    with pytest.raises(OptionError, match=r"the option 'startingOffsets' is set by starting="):
        read(options={"startingOffsets": "latest"})
    with pytest.raises(OptionError, match="'erliest': expected 'earliest', 'latest'"):
        read(starting="erliest")
    with pytest.raises(OptionError, match="there is an attribute 'sequence'"):
        read(schema=f"{SCHEMA}, sequence int")
    with pytest.raises(OptionError, match="a stream has no end"):
        read(ending={"t": {"0": 1}})
    with pytest.raises(OptionError, match="value='avro'"):
        read(value="avro")
