"""A Kafka of this folder's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stretto.errors import OptionError


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The address of a real broker; skips, with the reason, where its artifacts cannot be had."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")
    from examples.kafka.broker import Broker

    try:
        broker = Broker().__enter__()
    except OptionError as error:
        pytest.skip(f"no Kafka: {error}")
    yield broker.servers
    broker.stop()


@pytest.fixture(scope="session")
def kafka_jars() -> list[Path]:
    """The jars of Spark's Kafka connector; skips, with the reason, where they cannot be had."""
    from examples.kafka.broker import connector

    try:
        return connector()
    except OptionError as error:
        pytest.skip(f"no Kafka connector: {error}")


@pytest.fixture
def kafka_spark(spark: Any, kafka_jars: list[Path]) -> Any:
    """The session, with the connector: ``ADD JAR`` serves the thread that says it."""
    for jar in kafka_jars:
        spark.sql(f"ADD JAR '{jar}'")
    return spark
