"""A topic of Kafka, whose records are events in JSON. It is only read: no group is joined, and no offset is committed.

Nothing waits here for records to come; the client fetches ahead, as far as its bounds let it.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from stretto.column_types import type_named
from stretto.errors import DataError, OptionError, hinted
from stretto.events import first_deep_line
from stretto.studio.following import LONGEST_RECORD, SAID, SHOWN, readable
from stretto.studio.values import as_numbers
from stretto.views.text import cut

#: How an address begins.
KAFKA = "kafka://"
#: Where reading may begin.
STARTING = ("earliest", "latest")
#: Records that are taken from the client at once, and the seconds that this may wait for them.
_AT_ONCE, _SOON = 2_000, 0.05
#: Records of a partition that wait for those of others; no more are fetched then.
_MOST_HELD = 10_000
#: Seconds that a broker has to answer when a topic is opened, and when it is looked after while its records are read.
_PATIENCE, _GLANCE = 10.0, 0.5
#: Seconds after which the topic is looked after again: when all is well, and when the client tells of trouble.
_CALM, _TROUBLED = 10.0, 2.0

_SET = {
    "bootstrap.servers": "the address",
    "metadata.broker.list": "the address",
    "group.id": "the studio, which joins no group",
    "enable.auto.commit": "the studio, which commits no offset",
    "enable.partition.eof": "the studio",
    "auto.offset.reset": "--starting",
}


class Unreachable(DataError):
    """No broker answers. One may again."""


@dataclass(frozen=True)
class Topic:
    """A topic, and how it is read.

    >>> Topic.of("kafka://localhost:9092/events")
    Topic(servers='localhost:9092', name='events', starting='earliest', types={}, options={})
    """

    #: The brokers to ask first, with commas between them.
    servers: str
    name: str
    #: ``earliest``: the first records are the sample, and those of a stream begin with the first one. ``latest``: the last ones are,
    #: and a stream has what comes from then on.
    starting: str = "earliest"
    #: Types of columns that are not to be guessed, as Arrow names them.
    types: Mapping[str, str] = field(default_factory=dict)
    #: Further settings of the client, by librdkafka's names.
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, address: str, **more: Any) -> Topic:
        """The topic of an address.

        Raises
        ------
        OptionError
            It is none, or a setting is the studio's own.
        """
        found = re.fullmatch(rf"{KAFKA}([^/\s]+)/([A-Za-z0-9._-]+)", address)
        if found is None:
            raise OptionError(f"'{address}' is no topic: write {KAFKA}HOST:PORT/TOPIC")
        made = cls(found[1], found[2], **more)
        if made.starting not in STARTING:
            raise OptionError(f"starting {made.starting!r}: expected {' or '.join(map(repr, STARTING))}")
        for name in made.options:
            if name in _SET:
                raise OptionError(f"'{name}' is set by {_SET[name]}")
        return made

    @property
    def address(self) -> str:
        """How it is named."""
        return f"{KAFKA}{self.servers}/{self.name}"

    def client(self, tell: Callable[[Any], None]) -> Any:
        """A consumer of Kafka's, which calls ``tell`` with its troubles.

        Raises
        ------
        OptionError
            The package is not there, or a setting is wrong.
        """
        kafka = require_client()
        settings = {
            "log_level": 0,  # what it has to say is told
            **self.options,
            "bootstrap.servers": self.servers,
            "group.id": "stretto-studio",  # without which there is no consumer; nothing is asked of it
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",  # records that were deleted before they were read are told
            "error_cb": tell,
        }
        try:
            return kafka.Consumer(settings)
        except (kafka.KafkaException, TypeError, ValueError) as error:
            raise OptionError(f"Kafka's client refuses its settings: {_told(error)}") from error

    def sample(self, rows: int) -> Sample:
        """The first records that are there, or the last ones, of each partition its share of ``rows``.

        Raises
        ------
        DataError
            No broker answers, there is no such topic, or no record says what columns there are.
        """
        records = Records(self, rows, last=rows if self.starting == "latest" else None)
        until = monotonic() + _PATIENCE
        share = -(-rows // len(records.partitions))
        kept: list[Record] = []
        count: Counter[int] = Counter()
        try:
            while monotonic() < until and any(count[one] <= share for one in records.partitions - records.at_end):
                for record in records.more(count):
                    count[record.partition] += 1
                    if count[record.partition] <= share:
                        kept.append(record)
        finally:
            records.close()
        types = {name: type_named(kind) for name, kind in self.types.items()}
        schema = _columns([one.value for one in kept if one.value is not None], types)
        if not schema.names:
            there = f"none of {len(kept):,} records is a JSON object" if kept else "no record is there yet"
            raise DataError(f"{there}, so that nothing says which columns '{self.name}' has: --type NAME=TYPE does")
        reader = Reader(schema)
        events, _ = reader.read(kept)
        more = records.skipped or any(one > share for one in count.values())
        return Sample(events, more, reader.bad, reader.why)

    def follow(self, schema: pa.Schema, time: str) -> TopicSource:
        """The records as they come, from :attr:`starting` on, ordered by the column ``time`` as far as that can be known."""
        return TopicSource(self, schema, time)


@dataclass(frozen=True)
class Sample:
    """Events of a topic, whether there are more, and how many records are none, with the reason of the last one."""

    events: pa.Table
    more: bool
    bad: int
    why: str | None


@dataclass(frozen=True)
class Record:
    """A record: where it is from, and its value, or why it has none that can be read."""

    place: str
    value: bytes | None
    partition: int
    fault: str | None = None


def require_client() -> Any:
    """Kafka's client for Python.

    Raises
    ------
    OptionError
        It is not installed.
    """
    try:
        import confluent_kafka
    except ModuleNotFoundError as error:
        raise OptionError("this needs the package confluent-kafka: pip install 'stretto[kafka]'") from error
    return confluent_kafka


def options_of(path: Path) -> dict[str, str]:
    """Settings of the client in a file, ``NAME=VALUE`` a line, as Kafka's own programs take them.

    Raises
    ------
    OptionError
        It cannot be read, or a line is no setting.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"'{path}' cannot be read: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise OptionError(f"{path}, line {number}: write NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


class Records:
    """The records of a topic: those of a partition in order, those of several as the client has them.

    Parameters
    ----------
    topic
        The topic.
    most
        Of a partition with so many records that wait no more are fetched.
    last
        Begin so many records before the end, of all partitions together; ``None``: with the first ones.

    Raises
    ------
    DataError
        No broker answers, or there is no such topic.
    """

    def __init__(self, topic: Topic, most: int, last: int | None = None) -> None:
        self._topic, self._most = topic, most
        self._trouble: str | None = None
        self._paused: set[int] = set()
        self._looked = self._look_at = monotonic()
        self.partitions: set[int] = set()
        #: Whether there are records before those with which it began.
        self.skipped = False
        #: The partitions of which all that is there has been given.
        self.at_end: set[int] = set()
        #: Why nothing comes, where that is known.
        self.waiting: str | None = None
        self._client = topic.client(self._hear)
        try:
            self._assign(self._found(), last)
        except BaseException:
            self.close()
            raise
        self._look_at = monotonic() + _CALM

    def close(self) -> None:
        """Read no more."""
        self._client.close()

    def more(self, waiting: Mapping[int, int]) -> list[Record]:
        """The next records; none, where none has come. ``waiting``: how many of each partition are still waiting.

        Raises
        ------
        DataError
            The topic has gone, or records were deleted before they were read.
        """
        self._pace(waiting)
        found = []
        for message in self._client.consume(_AT_ONCE, timeout=_SOON):
            error = message.error()
            if error is None:
                found.append(_record(message))
                self.at_end.discard(message.partition())
            elif error.name() == "_PARTITION_EOF":
                self.at_end.add(message.partition())
            elif error.name() == "_AUTO_OFFSET_RESET":
                raise DataError(f"records of '{self._topic.name}' were deleted before they were read: begin again")
            else:
                self._hear(error)
        if monotonic() >= self._look_at:
            self._look()
        return found

    def _pace(self, waiting: Mapping[int, int]) -> None:
        """Fetch no more of partitions of which much waits, until it does not."""
        full = {number for number, count in waiting.items() if count >= self._most}
        if new := full - self._paused:
            self._client.pause([self._place(number) for number in new])
        if again := {number for number in self._paused - full if waiting.get(number, 0) <= self._most // 2}:
            self._client.resume([self._place(number) for number in again])
        self._paused = (self._paused | new) - again

    # -- the brokers ------------------------------------------------------------------------------------------------------

    def _hear(self, error: Any) -> None:
        """The client tells of trouble, which it goes on to mend by itself: soon it is asked whether a broker answers."""
        self._trouble = error.str()
        self._look_at = min(self._look_at, self._looked + _TROUBLED)

    def _look(self) -> None:
        """Ask a broker for the topic's partitions: whether one answers, and whether there are new ones."""
        wait = _CALM
        try:
            there = self._found(self._topic.name)
            if missing := self.partitions - there:
                raise DataError(f"partition {min(missing)} of '{self._topic.name}' has gone")
            self._assign(there - self.partitions, None)
            self.waiting = None
        except Unreachable as error:
            self.waiting, wait = f"{error}; it is asked again", _TROUBLED
        self._looked = monotonic()
        self._look_at = self._looked + wait

    def _found(self, *only: str) -> set[int]:
        """The partitions that a broker knows. ``only``: ask for the topic alone, for a moment, not for all topics."""
        name = self._topic.name
        try:
            topics = self._client.list_topics(*only, timeout=_GLANCE if only else _PATIENCE).topics
        except require_client().KafkaException as error:
            self._client.poll(0)  # so that it tells why
            reason = self._trouble or _told(error)
            raise Unreachable(f"no broker answers at {self._topic.servers} ({reason})") from error
        if name not in topics:
            raise DataError(hinted(f"there is no topic '{name}' at {self._topic.servers}", name, topics, kind="topic"))
        if topics[name].error is not None:
            raise DataError(f"topic '{name}': {topics[name].error.str()}")
        return set(topics[name].partitions)

    def _assign(self, numbers: set[int], last: int | None) -> None:
        if not numbers:
            return
        places = [self._place(number) for number in sorted(numbers)]
        for place in places:
            place.offset = require_client().OFFSET_BEGINNING
            if last is not None:
                low, high = self._client.get_watermark_offsets(place, timeout=_PATIENCE)
                place.offset = max(low, high - -(-last // len(places)))
                self.skipped |= place.offset > low
        self._client.incremental_assign(places)
        self.partitions |= numbers

    def _place(self, number: int) -> Any:
        return require_client().TopicPartition(self._topic.name, number)


class Reader:
    """Values of records as events with the columns of a schema. Records that are none are counted."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.bad = 0
        self.why: str | None = None

    def read(self, records: Sequence[Record]) -> tuple[pa.Table, list[Record]]:
        """The events of records in their order, and the records that they are."""
        whole = []
        for record in records:
            if record.value is None:
                self._refuse(record, record.fault)
            else:
                whole.append(record)
        values = [one.value for one in whole if one.value is not None]
        refused = set()

        def refuse(one: int, error: Exception) -> None:
            refused.add(one)
            self._refuse(whole[one], error)

        found = readable(range(len(values)), lambda part: _parsed(values[part.start : part.stop], self._schema), refuse)
        events = pa.concat_tables([self._schema.empty_table(), *found])
        return events, [one for number, one in enumerate(whole) if number not in refused]

    def _refuse(self, record: Record, why: object) -> None:
        self.bad += 1
        value = "" if record.value is None else f"{cut(record.value.decode(errors='replace').strip(), SHOWN)}: "
        self.why = f"{record.place}: {value}{why}"[:SAID]


class TopicSource:
    """The records of a topic as a source of events.

    Partitions are read at different paces. An event waits until no partition can have one that comes before it: each has come
    as far in time, or to its end. So partitions that have their events in order of time are one stream in order of time.
    """

    def __init__(self, topic: Topic, schema: pa.Schema, time: str) -> None:
        self._records = Records(topic, _MOST_HELD, last=0 if topic.starting == "latest" else None)
        self._reader = Reader(schema)
        self._time = time
        self._events = (
            schema.empty_table()
        )  # that wait; of each the partition, and how far in time this had come with it
        self._partitions = np.empty(0, np.int64)
        self._places = np.empty(0)
        self._reached: dict[int, float] = {}

    @property
    def bad(self) -> int:
        """How many records were passed over."""
        return self._reader.bad

    @property
    def why(self) -> str | None:
        """Why the last of them was."""
        return self._reader.why

    @property
    def waiting(self) -> str | None:
        """That no broker answers."""
        return self._records.waiting

    def more(self) -> pa.Table | None:
        """The next events; ``None``: no record has come."""
        found = self._records.more(Counter(self._partitions.tolist()))
        self._take(*self._reader.read(found))
        passed = self._passed()
        return passed if found or passed.num_rows else None

    def _take(self, events: pa.Table, records: list[Record]) -> None:
        if not records:
            return
        partitions = np.array([record.partition for record in records], np.int64)
        places = np.array(as_numbers(events.column(self._time)), np.float64)
        places[np.isinf(places)] = np.nan
        for number in np.unique(partitions).tolist():
            own = partitions == number
            reached = np.fmax.accumulate(np.append(self._reached.get(number, -np.inf), places[own]))
            places[own], self._reached[number] = reached[1:], reached[-1].item()
        self._events = pa.concat_tables([self._events, events])
        self._partitions = np.append(self._partitions, partitions)
        self._places = np.append(self._places, places)

    def _passed(self) -> pa.Table:
        """The events that wait for no other one, which wait no more."""
        behind = self._records.partitions - self._records.at_end
        bound = min((self._reached.get(number, -np.inf) for number in behind), default=np.inf)
        order = np.argsort(self._places, kind="stable")
        size = int(np.searchsorted(self._places[order], bound, side="right"))
        passed, rest = self._events.take(order[:size]), np.sort(order[size:])
        self._events = self._events.take(rest)
        self._partitions, self._places = self._partitions[rest], self._places[rest]
        return passed

    def close(self) -> None:
        """Read no more."""
        self._records.close()


def _record(message: Any) -> Record:
    partition, value, fault = message.partition(), message.value(), None
    if value is None:
        fault = "the value is NULL"
    elif (size := len(value)) > LONGEST_RECORD:
        value, fault = None, f"the value has {size:,} bytes, and {LONGEST_RECORD:,} are read at most"
    return Record(f"partition {partition}, offset {message.offset()}", value, partition, fault)


def _parsed(values: Sequence[bytes], schema: pa.Schema | None) -> pa.Table:
    """Each value as one event; ArrowInvalid, where one is no object of JSON. A frame around each tells where it ends."""
    text = b"".join(b'{"record":%b,"number":%d}\n' % (value, number) for number, value in enumerate(values))
    text.decode()  # which Arrow's reader does not look at
    if (deep := first_deep_line(b"\n".join(value.replace(b"\n", b" ") for value in values))) is not None:
        raise pa.ArrowInvalid(deep[1])
    given: dict[str, Any] = {}
    if schema is not None:
        framed = pa.schema([("record", pa.struct(list(schema))), ("number", pa.int64())])
        given = {"explicit_schema": framed, "unexpected_field_behavior": "ignore"}
    table = json.read_json(
        io.BytesIO(text),
        read_options=json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=json.ParseOptions(newlines_in_values=True, **given),
    )
    record = table.column(0).combine_chunks()
    if table.num_rows != len(values) or record.null_count or not pa.types.is_struct(record.type):
        raise pa.ArrowInvalid("it is not one object of JSON")
    return pa.Table.from_arrays(record.flatten(), names=[one.name for one in record.type])


def _columns(values: Sequence[bytes], types: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns that records have, with types that hold what all have; those of the first ones, where there are none."""
    found: dict[str, pa.DataType] = {}
    for piece in readable(
        range(len(values)), lambda part: _parsed(values[part.start : part.stop], None), lambda *_: None
    ):
        for name, column in zip(piece.column_names, piece.columns, strict=True):
            kind = _time_of(column)
            found[name] = _wider(found.get(name, kind), kind)
    return pa.schema(list({**found, **types}.items()))


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return one if one.tz else other
    try:
        both = [pa.schema([("x", kind)]) for kind in (one, other)]
        return pa.unify_schemas(both, promote_options="permissive").field("x").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return one


def _time_of(column: pa.ChunkedArray) -> pa.DataType:
    """The type of a column; of texts that are times, and of times, in microseconds, which the next ones may have."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_string(kind) and column.null_count < len(column):
        for time in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                pc.cast(column, time)
            except pa.ArrowInvalid:
                continue
            return time
    return kind


def _told(error: BaseException) -> str:
    """What an exception of the client says."""
    return error.args[0].str() if error.args and hasattr(error.args[0], "str") else str(error)
