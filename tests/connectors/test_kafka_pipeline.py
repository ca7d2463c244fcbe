"""A pipeline file from Kafka to Kafka, with a real broker."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from stretto.errors import OptionError
from stretto.pipelines import PipelineError, Update, load, run
from tests.connectors.test_kafka import event, messages, produce

pytestmark = [pytest.mark.spark]

PIPELINE = """
[source]
kind = "kafka"
servers = "{servers}"
topic = "{source}"
columns = {{ type = "string", ts = "bigint", price = "double" }}
derived = {{ place = "kafka.offset" }}

[events]
time = "ts"
time_unit = "s"
bad_records = "drop"

[[query]]
name = "rises"
text = "SELECT a[price], b[place] FROM S WHERE A AS a ; B AS b WITHIN 1 minute"

[[sink]]
name = "found"
kind = "kafka"
servers = ["{servers}"]
topic = "{target}"
key = "start_time"
options = {{ "kafka.linger.ms" = 5 }}
"""


def test_from_kafka_to_kafka(kafka_spark: Any, kafka: str, tmp_path: Path) -> None:
    source, target = f"in-{uuid.uuid4()}", f"out-{uuid.uuid4()}"
    produce(kafka_spark, kafka, source, [event("A", 1, 5.0), "nonsense", event("B", 2), event("B", 2)])
    file = tmp_path / "pipeline.toml"
    text = PIPELINE.format(servers=kafka, source=source, target=target)
    file.write_text(text, encoding="utf-8")
    told: list[Update] = []
    run(load(file), report=told.append)
    found = sorted(messages(kafka_spark, kafka, target), key=lambda match: match["b"][0]["place"])
    assert [(match["key"], match["a"], match["b"]) for match in found] == [
        ("1", [{"price": 5.0}], [{"place": 2}]),
        ("1", [{"price": 5.0}], [{"place": 3}]),
    ]
    assert {update.name: update.line for update in told if update.state == "done" and update.name != "Spark"} == {
        "bad records of events": "1 dropped",
        "rises": "2 matches to found",
    }
    file.write_text(text.replace('key = "start_time"', 'key = "strat_time"'), encoding="utf-8")
    with pytest.raises(PipelineError, match=r"line 23, column 7: .*the matches of query 'rises' have no such column"):
        run(load(file))
    file.write_text(text.replace('"kafka.linger.ms"', '"topic"'), encoding="utf-8")
    with pytest.raises(OptionError, match="the option 'topic' is set by topic="):
        run(load(file))
