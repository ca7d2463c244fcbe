"""What a studio in a process of its own has in the place of Kafka's client: a topic whose records are the lines of a file.

Where the file, which ``FAKE_KAFKA`` names, is not there, no broker answers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.studio import fake_kafka
from tests.studio.fake_kafka import Client, FakeKafka, KafkaException
from tests.studio.fake_kafka import Place as TopicPartition

__all__ = ["OFFSET_BEGINNING", "Consumer", "KafkaException", "TopicPartition"]

OFFSET_BEGINNING = FakeKafka.OFFSET_BEGINNING
PATH = Path(os.environ["FAKE_KAFKA"])


class Lines(FakeKafka):
    """Topic ``events``."""

    def __getattribute__(self, name: str) -> Any:
        """What it is now."""
        if name == "up":
            return PATH.exists()
        if name == "topics":
            return {"events": {0: list(PATH.read_bytes().splitlines())}}
        return super().__getattribute__(name)


def Consumer(settings: dict[str, Any]) -> Client:
    """A consumer of it."""
    return fake_kafka.Client(Lines(), settings)
