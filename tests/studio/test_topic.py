"""Topics of Kafka: what is read of them, in which order, and what is told of the rest. The broker is one in this process."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.cli import main
from stretto.errors import DataError, OptionError
from stretto.studio import topic as topics
from stretto.studio.replay import Replay
from stretto.studio.topic import Topic, TopicSource, options_of
from stretto.studio.workbench import Roles, Workbench
from stretto.studio.worker import Calls, Live
from tests.conftest import cases
from tests.studio.fake_kafka import FakeKafka, Fault

QUERY = "SELECT * FROM S WHERE A AS a; B AS b WITHIN 5 [t]"
SCHEMA = pa.schema({"type": pa.string(), "t": pa.int64()})


def event(kind: str, t: int | None, **more: Any) -> bytes:
    return json.dumps({"type": kind, "t": t} | more).encode()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which goes on when a test says so."""
    now = [1000.0]
    monkeypatch.setattr(topics, "monotonic", lambda: now[0])
    return now


def fake(monkeypatch: pytest.MonkeyPatch, seed: int = 0, **parts: dict[int, list[bytes | None]]) -> FakeKafka:
    made = FakeKafka(seed, **parts)
    monkeypatch.setitem(sys.modules, "confluent_kafka", made)
    return made


def all_of(source: TopicSource, empty: int = 60) -> pa.Table:
    """What comes until nothing has for a while."""
    pieces, nothing = [SCHEMA.empty_table()], 0
    while nothing < empty:
        found = source.more()
        nothing = nothing + 1 if found is None else 0
        pieces += [] if found is None else [found]
    return pa.concat_tables(pieces)


# ---- What is read


def test_partitions_in_order_of_time_are_one_stream_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "_MOST_HELD", 3)
    for seed in range(cases(40)):
        draw = random.Random(seed)
        parts: dict[int, list[bytes | None]] = {number: [] for number in range(draw.randint(1, 4))}
        times = sorted(draw.randint(0, 20) for _ in range(draw.randint(0, 40)))
        for at in times:
            parts[draw.choice(list(parts))].append(event("A", at))
        kafka = fake(monkeypatch, seed, events=parts)
        source = Topic.of("kafka://b:1/events").follow(SCHEMA, "t")
        assert all_of(source).column("t").to_pylist() == times, seed
        client = kafka.clients[0]
        assert client.settings["enable.auto.commit"] is False
        late = [draw.randint(15, 30) for _ in range(5)]
        for at in late:
            parts[draw.choice(list(parts))].append(event("B", at))
        assert sorted(all_of(source).column("t").to_pylist()) == sorted(late), seed
        assert (source.bad, source.why, source.waiting) == (0, None, None)
        source.close()
        assert client.closed


def test_records_that_are_no_events_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    good = event("A", 1, more=[{"x": 1}])
    wrongs = {
        b"{": "offset 0: {: JSON parse error",
        b"": "JSON parse error",
        b"null": "it is not one object of JSON",
        b"[1]": "changed from object to array",
        b'{"type": "A", "t": "x"}': "offset 0: {",
        b'{"type": "A"} {"type": "B"}': "JSON parse error",
        b'{"type": "A\xff"}': "can't decode byte",
        b'{"x": ' + b"[\n" * 5_000 + b"]" * 5_000 + b"}": "lists or objects lie 5,000 deep inside of each other",
        b'{"type": "' + b"x" * 300_000 + b'"}': "the value has 300,012 bytes, and 262,144 are read at most",
        None: "partition 0, offset 0: the value is NULL",
    }
    for wrong, why in wrongs.items():
        fake(monkeypatch, events={0: [wrong, good, b'{\n"type": "B"\n}', good]})
        source = Topic.of("kafka://b:1/events").follow(SCHEMA, "t")
        assert [tuple(one.values()) for one in all_of(source).to_pylist()] == [("A", 1), ("B", None), ("A", 1)], wrong
        assert source.bad == 1, wrong
        assert why in str(source.why), (wrong, source.why)
        assert len(str(source.why)) <= 300


def test_a_sample_says_which_columns_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[bytes | None] = [
        event("A", 1, at="2024-01-01T00:00:00Z", day="2024-01-01", x=1, who=None),
        b"nonsense",
        event("B", 2, at="2024-01-01T00:00:00.250Z", day="2024-01-02", x=1.5, who={"id": "é"}),
        event("C", 3, x="no number"),
    ]
    fake(monkeypatch, events={0: rows})
    found = Topic.of("kafka://b:1/events").sample(100)
    assert found.events.schema.field("at").type == pa.timestamp("us", "UTC")
    assert {one.name: str(one.type) for one in found.events.schema if one.name in ("day", "x", "who", "t")} == {
        "t": "int64",
        "day": "timestamp[us]",
        "x": "double",
        "who": "struct<id: string>",
    }
    assert (found.events.column("type").to_pylist(), found.bad, found.more) == (["A", "B"], 2, False)
    assert "no number" in str(found.why)
    found = Topic.of("kafka://b:1/events", types={"x": "string", "t": "int32", "new": "date32[day]"}).sample(100)
    assert [str(found.events.schema.field(name).type) for name in ("x", "t", "new")] == [
        "string",
        "int32",
        "date32[day]",
    ]
    assert found.events.column("type").to_pylist() == ["C"]


def test_a_sample_has_the_first_records_or_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(cases(20)):
        parts: dict[int, list[bytes | None]] = {n: [event("A", 10 * i + n) for i in range(9)] for n in range(2)}
        fake(monkeypatch, seed, events=parts)
        first = Topic.of("kafka://b:1/events").sample(6)
        assert sorted(first.events.column("t").to_pylist()) == [0, 1, 10, 11, 20, 21]
        last = Topic.of("kafka://b:1/events", starting="latest")
        assert sorted(last.sample(6).events.column("t").to_pylist()) == [60, 61, 70, 71, 80, 81]
        assert (first.more, last.sample(6).more, last.sample(18).more) == (True, True, False)
        source = last.follow(SCHEMA, "t")
        parts[1].append(event("A", 99))
        assert all_of(source).column("t").to_pylist() == [99]


def test_a_topic_without_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, events={0: []}, odd={0: [b"x", b"[]", b"{}"]})
    with pytest.raises(
        DataError, match=r"no record is there yet, so that nothing says which columns 'events' has: --type"
    ):
        Topic.of("kafka://b:1/events").sample(10)
    with pytest.raises(DataError, match="none of 3 records is a JSON object"):
        Topic.of("kafka://b:1/odd").sample(10)
    found = Topic.of("kafka://b:1/events", types={"type": "string", "t": "int64"}).sample(10)
    assert found.events.equals(SCHEMA.empty_table())


def test_what_is_no_topic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kafka = fake(monkeypatch, events={0: []})
    for wrong in ("kafka://", "kafka://b:1", "kafka://b:1/", "kafka://b:1/a/b", "kafka:/b:1/a", "kafka://b 1/a"):
        with pytest.raises(OptionError, match="is no topic: write kafka://HOST:PORT/TOPIC"):
            Topic.of(wrong)
    assert Topic.of("kafka://a:1,b:2/x").servers == "a:1,b:2"
    with pytest.raises(OptionError, match="expected 'earliest' or 'latest'"):
        Topic.of("kafka://b:1/events", starting="now")
    with pytest.raises(OptionError, match=r"'group\.id' is set by the studio, which joins no group"):
        Topic.of("kafka://b:1/events", options={"group.id": "x"})
    with pytest.raises(OptionError, match=r'refuses its settings: No such configuration property: "no\.such"'):
        Topic.of("kafka://b:1/events", options={"no.such": "x"}).sample(1)
    with pytest.raises(DataError, match=r"there is no topic 'event' at b:1; did you mean 'events'\?"):
        Topic.of("kafka://b:1/event").sample(1)
    kafka.up = False
    with pytest.raises(DataError, match=r"no broker answers at b:1 \(Connection refused\)"):
        Topic.of("kafka://b:1/events").sample(1)
    assert all(client.closed for client in kafka.clients)
    (tmp_path / "o").write_text("# ours\n\nsecurity.protocol = SSL\nssl.key.password=a=b\n")
    assert options_of(tmp_path / "o") == {"security.protocol": "SSL", "ssl.key.password": "a=b"}
    (tmp_path / "o").write_text("a=b\nsecurity\n")
    with pytest.raises(OptionError, match="line 2: write NAME=VALUE"):
        options_of(tmp_path / "o")
    with pytest.raises(OptionError, match="cannot be read"):
        options_of(tmp_path / "none")


# ---- Brokers that go and come


def test_a_broker_that_is_gone_and_comes_back(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    parts: dict[int, list[bytes | None]] = {0: [event("A", 1)]}
    kafka = fake(monkeypatch, events=parts)
    source = Topic.of("kafka://b:1/events").follow(SCHEMA, "t")
    assert all_of(source).num_rows == 1
    kafka.up = False
    assert source.more() is None
    clock[0] += 2.5
    assert source.more() is None
    assert source.waiting == "no broker answers at b:1 (Connection refused); it is asked again"
    kafka.up = True
    parts[0].append(event("B", 2))
    parts[1] = [event("C", 3)]  # a partition that is new
    clock[0] += 2.5
    assert all_of(source).column("t").to_pylist() == [2, 3]
    assert source.waiting is None
    kafka.clients[0].tell(Fault("_TRANSPORT", "an idle connection was closed"))  # which is none of our business
    clock[0] += 2.5
    assert (source.more(), source.waiting) == (None, None)


def test_what_ends_a_stream(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    kafka = fake(monkeypatch, events={0: [event("A", at) for at in range(9)]})
    source = Topic.of("kafka://b:1/events").follow(SCHEMA, "t")
    kafka.deleted = 5
    with pytest.raises(DataError, match="records of 'events' were deleted before they were read"):
        all_of(source)
    for left, why in [
        ({"other": {0: []}}, "topic 'events': Unknown"),
        ({"events": {}}, "partition 0 of 'events' has gone"),
    ]:
        kafka = fake(monkeypatch, events={0: []})
        source = Topic.of("kafka://b:1/events").follow(SCHEMA, "t")
        kafka.topics = left
        clock[0] += 11
        with pytest.raises(DataError, match=why):
            source.more()


# ---- The studio


def test_patterns_change_while_records_come(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: dict[int, list[bytes | None]] = {0: [event("A", 1), event("A", None)], 1: [b"x"]}
    fake(monkeypatch, events=parts)
    bench = Workbench(SCHEMA.empty_table(), Roles(time="t"))
    stream = Live(bench, Topic.of("kafka://b:1/events").follow(SCHEMA, "t"))
    replay = Replay(bench, stream)
    replay.put("p", QUERY)

    def read_all() -> dict[str, Any]:
        for _ in range(40):
            state = replay.read(1e300, 0)
        return state

    said = read_all()["live"]
    assert (said["untimed"], said["bad"], said["broken"]) == (1, 1, None)
    replay.put("q", "SELECT * FROM S WHERE B AS b")
    parts[1] += [event("B", 2), event("B", 1)]
    state = read_all()
    assert sorted((one["values"]["pattern"], one["rows"]) for one in state["matches"]) == [("p", [0, 1]), ("q", [1])]
    assert state["live"]["late"] == 1
    stream.close()
    assert replay.read(1e300, 0)["ended"]


def test_the_calls_of_a_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(monkeypatch, events={0: [event("A", 1), b"x", event("B", 2), event("B", None)]})
    topic = {"servers": "b:1", "name": "events"}
    calls, into = Calls(), str(tmp_path / "sample.arrow")
    passed = calls.sample(topic, 10, "t", into)
    assert (passed["bad"], passed["untimed"], passed["more"]) == (1, 1, False)
    roles = {"type": "type", "time": "t", "time_unit": "s"}
    assert calls.open(into, roles, 10, topic=topic)["rows"] == 2
    assert calls.bench.run(QUERY)["count"] == 1
    state = calls.begin_replay({"p": QUERY}, live=True)
    for _ in range(40):
        state = calls.replay.read(1e300, 0)
    assert (state["count"], state["live"]["untimed"], state["live"]["bad"]) == (1, 1, 1)
    assert 'topic = "events"' in calls.written("pipeline", QUERY, "kafka://b:1/events")
    with pytest.raises(OptionError, match="save the query as a pipeline"):
        calls.written("python", QUERY, "kafka://b:1/events")
    calls.open(into, {"type": "type"}, 10, topic=topic)
    with pytest.raises(OptionError, match="needs a column of time"):
        calls.begin_replay({"p": QUERY}, live=True)


def test_a_pipeline_goes_on_with_a_topic(tmp_path: Path) -> None:
    pipelines = pytest.importorskip("stretto.pipelines")
    from stretto.studio.saving import written

    topic = Topic.of("kafka://a:1,b:2/shop.events", starting="latest")
    with pytest.raises(OptionError, match="choose the unit of 't'"):
        written("pipeline", QUERY, Roles(time="t"), topic.address, SCHEMA, topic)
    roles = Roles(time="t", time_unit="s")
    (tmp_path / "p.toml").write_text(written("pipeline", QUERY, roles, topic.address, SCHEMA, topic))
    plan = pipelines.load(tmp_path / "p.toml")
    (source,) = plan.sources
    assert (source.servers, source.topic, source.starting) == (["a:1,b:2"], ["shop.events"], "latest")
    assert plan.pipeline.mode == "streaming"
    assert stretto.compile(plan.queries[0].text).language == "ceql"


def test_the_command_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: str) -> str:
        with pytest.raises(SystemExit):
            main(["studio", *arguments])
        return " ".join(capsys.readouterr().err.split())

    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    assert "this needs the package confluent-kafka: pip install 'stretto[kafka]'" in said("kafka://b:1/events")
    fake(monkeypatch)
    assert "is no topic: write kafka://HOST:PORT/TOPIC" in said("kafka://b:1")
    assert "--starting and --options are of a topic" in said(str(tmp_path), "--starting", "latest")
