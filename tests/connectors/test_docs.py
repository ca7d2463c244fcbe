"""Every Python block of docs/connectors.md runs, in order; those about Kafka where there is one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark]

PAGE = Path(__file__).parents[2] / "docs" / "connectors.md"


def run_blocks(mark: str, names: dict[str, Any]) -> None:
    blocks = re.findall(rf"^```python{mark}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)


def test_blocks(spark: Any) -> None:
    pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'stretto[delta]'")
    run_blocks("", {})


def test_kafka_blocks(kafka_spark: Any, kafka: str) -> None:
    from stretto import connectors, spark

    def produce(topic: str, *values: tuple[str, str]) -> None:
        df = kafka_spark.createDataFrame(
            [(key, value, 0) for key, value in values], "key string, value string, partition int"
        )
        writer = df.coalesce(1).write.format("kafka").option("kafka.bootstrap.servers", kafka)
        writer.option("topic", topic).save()

    transfer = '{"type":"TRANSFER","amount":900}'
    produce("logins", ("a1", '{"type":"LOGIN"}'), ("a1", "hello"), ("a1", transfer), ("a2", transfer))
    produce("access-log", ("", "GET / 200 1.5"), ("", "?"))
    run_blocks(" kafka", {"connectors": connectors, "spark": spark, "session": kafka_spark, "servers": kafka})
