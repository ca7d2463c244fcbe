"""Topics of Kafka, for real: a broker on this machine, Kafka's own client, and the studio's server between them and a page."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from stretto.errors import OptionError
from stretto.studio import server, topic
from stretto.studio.folder import Folder
from stretto.studio.server import Studio, application
from stretto.studio.topic import Topic, TopicSource

HOST = "127.0.0.1:8765"
QUERY = "SELECT * FROM S WHERE A AS a; B AS b WITHIN 5 [t]"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Any]:
    """A broker of this module's own, which it ends and starts again."""
    pytest.importorskip("confluent_kafka", reason="Kafka's client is not installed: pip install 'stretto[kafka]'")
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")
    from examples.kafka.broker import Broker

    try:
        broker = Broker().__enter__()
    except OptionError as error:
        pytest.skip(f"no Kafka: {error}")
    yield broker
    broker.stop()


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4()}"


def produce(servers: str, name: str, events: list[tuple[int, bytes | None]], **settings: Any) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers} | settings)
    for partition, value in events:
        producer.produce(name, value, partition=partition)
    assert producer.flush(60) == 0


def event(kind: str, t: int) -> bytes:
    return json.dumps({"type": kind, "t": t}).encode()


def times(source: TopicSource, count: int, seconds: float = 60) -> list[int]:
    """The times of the next events, so many."""
    found: list[int] = []
    until = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < until:
        passed = source.more()
        found += [] if passed is None else passed.column("t").to_pylist()
    return found


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_all_partitions_in_order(kafka: Any, name: str, compression: str) -> None:
    events = [(t % 2, event("A", t)) for t in range(500)]
    produce(
        kafka.servers,
        name,
        [*events[:250], (0, b"nonsense"), (1, None), *events[250:]],
        **{"compression.type": compression},
    )
    opened = Topic(kafka.servers, name)
    sample = opened.sample(1000)
    assert (sorted(sample.events.column("t").to_pylist()), sample.bad, sample.more) == ([*range(500)], 2, False)
    source = opened.follow(sample.events.schema, "t")
    assert (times(source, 500), source.bad) == ([*range(500)], 2)
    produce(kafka.servers, name, [(1, event("B", 500))])
    assert times(source, 1) == [500]
    source.close()
    last = Topic(kafka.servers, name, starting="latest")
    assert len(last.sample(10).events) == 10
    source = last.follow(sample.events.schema, "t")
    produce(kafka.servers, name, [(0, event("B", 501))])
    assert times(source, 1) == [501]
    source.close()


def test_a_partition_that_is_ahead_waits_for_the_others(kafka: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetching stops and goes on many times, and no record is lost or given twice."""
    monkeypatch.setattr(topic, "_MOST_HELD", 100)
    count = 20_000
    produce(kafka.servers, name, [(int(t >= count // 2), event("A", t)) for t in range(count)])
    opened = Topic(kafka.servers, name)
    source = opened.follow(opened.sample(10).events.schema, "t")
    assert times(source, count) == [*range(count)]
    source.close()


def test_a_broker_that_is_killed_and_comes_back(kafka: Any, name: str) -> None:
    produce(kafka.servers, name, [(0, event("A", 1)), (1, event("A", 2))])
    opened = Topic(kafka.servers, name)
    source = opened.follow(opened.sample(10).events.schema, "t")
    assert times(source, 2) == [1, 2]
    command = kafka._process.args
    kafka._process.kill()
    kafka._process.wait()
    until = time.monotonic() + 60
    while source.waiting is None and time.monotonic() < until:
        assert source.more() is None
    assert f"no broker answers at {kafka.servers}" in str(source.waiting)
    kafka._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kafka._wait()
    produce(kafka.servers, name, [(0, event("B", 3))])
    assert times(source, 1) == [3]
    until = time.monotonic() + 60
    while source.waiting is not None and time.monotonic() < until:
        assert source.more() is None
    assert source.waiting is None
    source.close()


def test_nothing_is_committed(kafka: Any, name: str) -> None:
    from confluent_kafka.admin import AdminClient

    produce(kafka.servers, name, [(0, event("A", 1))])
    opened = Topic(kafka.servers, name)
    source = opened.follow(opened.sample(10).events.schema, "t")
    assert times(source, 1) == [1]
    groups = AdminClient({"bootstrap.servers": kafka.servers}).list_consumer_groups().result(60)
    assert [one.group_id for one in groups.valid] == []
    source.close()


def test_the_studio_follows_a_topic(kafka: Any, name: str, tmp_path: Path) -> None:
    produce(kafka.servers, name, [(0, event("A", 1)), (0, b"x"), (1, event("B", 2))])
    made = Topic(kafka.servers, name)
    studio = Studio(Folder(tmp_path), made.address, {"time": "t"}, topic=made)
    headers = {server.HEADER: studio.token}
    with TestClient(application(studio, frozenset({HOST})), base_url=f"http://{HOST}", headers=headers) as client:

        def ask(call: str, **arguments: Any) -> Any:
            answer = client.post(f"/api/{call}", json=arguments)
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert client.get("/api/begin").json()["files"] == [made.address]
        found = ask("open", data=made.address, roles={"type": "type", "time": "t"})
        assert (found["rows"], found["passed"]["bad"]) == (2, 1)
        assert ask("run", text=QUERY, opened=found["opened"])["count"] == 1
        begun = ask("begin_replay", patterns={"p": QUERY}, live=True, disorder="", opened=found["opened"])
        produce(kafka.servers, name, [(0, event("B", 3))])
        until = time.monotonic() + 60
        while True:
            asked = {"up_to": 1e300, "more": 0, "replay": begun["replay"], "opened": found["opened"]}
            state = ask("read_on", **asked)
            if state["count"] == 2 or time.monotonic() > until:
                break
        assert [one["rows"] for one in state["matches"]] == [[0, 2], [0, 1]]
        answer = client.post("/api/open", json={"data": f"{made.address}2", "roles": {}})
        assert (answer.status_code, "no file of events" in answer.text) == (422, True)
