"""A Kafka in this process, in the place of the package ``confluent_kafka``: what the studio asks of a client, and no more."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class KafkaException(Exception):
    """What the client raises."""


class Fault:
    """An error of the client's."""

    def __init__(self, name: str, said: str = "") -> None:
        self._name, self._said = name, said

    def name(self) -> str:
        return self._name

    def str(self) -> str:
        return self._said


class Place:
    """A partition, and an offset in it."""

    def __init__(self, topic: str, partition: int, offset: int = -1001) -> None:
        self.topic, self.partition, self.offset = topic, partition, offset


class Message:
    """A record, or that there is none."""

    def __init__(self, partition: int, offset: int, value: bytes | None, error: Fault | None = None) -> None:
        self.partition, self.offset = lambda: partition, lambda: offset
        self.value, self.error = lambda: value, lambda: error


class FakeKafka:
    """Topics: of each partition its records. ``draw`` says how they come to a client."""

    OFFSET_BEGINNING = -2
    KafkaException = KafkaException
    TopicPartition = Place

    def __init__(self, seed: int = 0, **topics: dict[int, list[bytes | None]]) -> None:
        self.topics = topics
        self.draw = random.Random(seed)
        self.up = True
        self.deleted = 0  # offsets before it are gone
        self.clients: list[Client] = []

    def Consumer(self, settings: dict[str, Any]) -> Client:
        """The client's class."""
        if wrong := [name for name in settings if name.startswith("no.")]:
            raise KafkaException(Fault("_INVALID_ARG", f'No such configuration property: "{wrong[0]}"'))
        self.clients.append(Client(self, settings))
        return self.clients[-1]


class Client:
    """A consumer."""

    def __init__(self, kafka: FakeKafka, settings: dict[str, Any]) -> None:
        self.kafka, self.settings = kafka, settings
        self.at: dict[int, int] = {}
        self.ended: set[int] = set()
        self.paused: set[int] = set()
        self.closed = False
        self.topic = ""

    @property
    def tell(self) -> Callable[[Fault], None]:
        found: Callable[[Fault], None] = self.settings["error_cb"]
        return found

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        if not self.kafka.up:
            raise KafkaException(Fault("_TRANSPORT", "Broker transport failure"))
        found = {
            name: SimpleNamespace(error=None, partitions=dict.fromkeys(parts))
            for name, parts in self.kafka.topics.items()
            if topic in (None, name)
        }
        if topic is not None and topic not in found:
            found[topic] = SimpleNamespace(error=Fault("UNKNOWN", "Unknown topic or partition"), partitions={})
        return SimpleNamespace(topics=found)

    def get_watermark_offsets(self, place: Place, timeout: float) -> tuple[int, int]:
        return self.kafka.deleted, len(self.kafka.topics[place.topic][place.partition])

    def incremental_assign(self, places: list[Place]) -> None:
        for place in places:
            self.topic = place.topic
            self.at[place.partition] = self.kafka.deleted if place.offset == -2 else place.offset

    def pause(self, places: list[Place]) -> None:
        self.paused |= {one.partition for one in places}

    def resume(self, places: list[Place]) -> None:
        self.paused -= {one.partition for one in places}

    def poll(self, timeout: float) -> None:
        if not self.kafka.up:
            self.tell(Fault("_TRANSPORT", "Connection refused"))

    def consume(self, most: int, timeout: float) -> list[Message]:
        """Some of what is there, of partitions as the draw says."""
        if not self.kafka.up:
            self.tell(Fault("_ALL_BROKERS_DOWN", "1/1 brokers are down"))
            return []
        found: list[Message] = []
        for _ in range(self.kafka.draw.randint(0, min(most, 8))):
            number = self.kafka.draw.choice(list(self.at))
            records, at = self.kafka.topics.get(self.topic, {}).get(number, []), self.at[number]
            if number in self.paused:
                continue
            if at < self.kafka.deleted:
                return [*found, Message(number, at, None, Fault("_AUTO_OFFSET_RESET", "out of range"))]
            if at < len(records):
                found.append(Message(number, at, records[at]))
                self.at[number] += 1
                self.ended.discard(number)
            elif number not in self.ended:
                self.ended.add(number)
                found.append(Message(number, at, None, Fault("_PARTITION_EOF")))
        return found

    def close(self) -> None:
        self.closed = True
