"""Kafka topics as events, and matches as Kafka messages (needs Spark's Kafka connector, :func:`package`).

What is ordered: Kafka orders the records of one partition, by offset. The sequence that :func:`read` makes by itself is
the offset, then the partition: events of the same time are in Kafka's order within a partition, and in an order that has
no meaning, but is the same in every run, across partitions. So produce the events of one key with that key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from stretto.connectors.changes import debezium
from stretto.connectors.records import ARRIVED, PLACE, SOURCE, Events, as_struct, parse, required_of, split, texts
from stretto.connectors.sinks import MATCH_ID, Writer, with_match_id
from stretto.errors import DataError, OptionError, hinted
from stretto.spark.frames import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The column that orders events of the same time, unless another one is named.
SEQUENCE = "sequence"

_META = "kafka"
_VALUE = "__stretto_value"
#: A sequence is the offset with the partition in the low bits: what both must fit.
_PARTITION_BITS = 16
_MAX_OFFSET = 1 << (63 - _PARTITION_BITS)

_SET_BY_ARGUMENTS = {
    "kafka.bootstrap.servers": "servers",
    "subscribe": "topic",
    "subscribepattern": "topic",
    "assign": "topic",
    "topic": "topic",
    "startingoffsets": "starting",
    "endingoffsets": "ending",
}


def package(version: str | None = None) -> str:
    """The Maven coordinates of Spark's Kafka connector, for ``spark.jars.packages``.

    Parameters
    ----------
    version
        The version of Spark; ``None``: the one that is installed.

    >>> package("4.1.1")
    'org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1'
    """
    if version is None:
        import pyspark

        version = pyspark.__version__
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"


def read(  # noqa: PLR0913 - the options of the source
    spark: SparkSession,
    servers: str | Iterable[str],
    topic: str | Iterable[str],
    *,
    schema: Any,
    time: str,
    type: str | None = "type",
    sequence: str | None = None,
    columns: Mapping[str, str] | None = None,
    required: Iterable[str] = (),
    value: str = "json",
    value_options: Mapping[str, Any] | None = None,
    pattern: str | None = None,
    streaming: bool = True,
    starting: str | Mapping[str, Mapping[str, int]] = "earliest",
    ending: str | Mapping[str, Mapping[str, int]] = "latest",
    options: Mapping[str, Any] | None = None,
    bad_records: str = "side",
    name: str | None = None,
) -> Events:
    """The records of one or more topics as events.

    Parameters
    ----------
    spark
        A session that has the connector.
    servers
        The brokers to ask first: ``"host:9092"``, or several.
    topic
        A topic, or several.
    schema
        The attributes in a record's value: DDL text (``"type string, ts timestamp"``), a ``StructType`` or an Arrow
        schema. Attributes that are ``NOT NULL`` are required.
    time, type
        The attributes that play these roles; always required.
    sequence
        The attribute that orders events of the same time. ``None``: a column ``sequence``, made of the record's
        offset and partition (see the top of this module), but of envelopes none.
    columns
        Attributes to add or to replace: name to Spark SQL expression. The record's metadata are fields of
        ``kafka``: ``{"ts": "kafka.timestamp", "user": "cast(kafka.key AS string)"}``; there are ``key`` (binary),
        ``topic``, ``partition``, ``offset``, ``timestamp``, ``timestampType`` and ``headers``.
    required
        Further attributes that no event may lack.
    value
        What a value is: ``"json"`` (one object), ``"csv"`` (one record), ``"text"``, or ``"debezium"``: an envelope with the rows
        of ``schema`` before and after a change (:func:`stretto.connectors.changes.debezium`).
    value_options
        Options of Spark's ``from_json`` or ``from_csv``, such as ``{"timestampFormat": "…"}``.
    pattern
        With ``value="text"``: a regular expression (Java's) whose groups are the schema's attributes, in order.
    streaming
        A streaming DataFrame; ``False``: what is there now.
    starting, ending
        ``"earliest"``, ``"latest"``, or the offsets by topic and partition: ``{"topic": {"0": 23}}``. ``ending`` is
        for ``streaming=False``.
    options
        Options of Spark's Kafka source: ``{"maxOffsetsPerTrigger": 100_000, "kafka.security.protocol": "SSL"}``.
    bad_records
        ``"side"``: records that are no event are in ``Events.bad``. ``"error"``: reading fails at the first one.
    name
        Names the source in ``Events.metrics``; ``None``: the topics.

    Raises
    ------
    OptionError
        The session lacks the connector, or an argument is wrong.
    DataError
        A column that plays a role is not there.
    """
    topics = [topic] if isinstance(topic, str) else list(topic)
    if not topics or not all(topics):
        raise OptionError("topic: name at least one")
    struct = as_struct(schema)
    given = {
        **texts(options, taken=_SET_BY_ARGUMENTS),
        "kafka.bootstrap.servers": _servers(servers),
        "subscribe": ",".join(topics),
        "startingOffsets": _offsets(starting),
        "includeHeaders": "true",
    }
    if streaming:
        if ending != "latest":
            raise OptionError("ending= is for streaming=False: a stream has no end")
        source = _load(spark.readStream.format("kafka").options(**given))
    else:
        source = _load(spark.read.format("kafka").options(**given, endingOffsets=_offsets(ending)))
    if value == "debezium":
        if pattern is not None:
            raise OptionError("pattern= is for value='text', and the value is 'debezium'")
        return debezium(
            source,
            schema=struct,
            time=time,
            type=type,
            sequence=sequence,
            columns=columns,
            required=required,
            value_options=value_options,
            bad_records=bad_records,
            name=name or ",".join(topics),
        )
    rows, own = parse(_records(source), _VALUE, struct, value, options=value_options, pattern=pattern), {}
    if sequence is None:
        sequence, own = SEQUENCE, {SEQUENCE: _sequence()}
        if SEQUENCE in {*struct.names, *(columns or {})}:
            raise OptionError(f"there is an attribute '{SEQUENCE}': name it, or another one, with sequence='…'")
    return split(
        rows,
        attributes=struct.names,
        columns={**(columns or {}), **own},
        type=type,
        time=time,
        sequence=sequence,
        required=[*required, *required_of(struct)],
        bad_records=bad_records,
        name=name or ",".join(topics),
        counted=True,
    )


def _records(source: DataFrame) -> DataFrame:
    """Kafka's columns: the value, the metadata as one struct, and where a record is from."""
    from pyspark.sql import functions as F

    place = F.concat(F.lit("partition "), F.col("partition"), F.lit(", offset "), F.col("offset"))
    return source.select(
        F.col("value").alias(_VALUE),
        F.struct(*[name for name in source.columns if name != "value"]).alias(_META),
        F.col("topic").alias(SOURCE),
        place.alias(PLACE),
        F.col("timestamp").alias(ARRIVED),
    )


def _sequence() -> str:
    """Offset, then partition, as one number; NULL where they do not fit, and then the record is bad."""
    fits = f"{_META}.offset < {_MAX_OFFSET} AND {_META}.partition < {1 << _PARTITION_BITS}"
    return f"CASE WHEN {fits} THEN shiftleft({_META}.offset, {_PARTITION_BITS}) + {_META}.partition END"


def _load(reader: Any) -> DataFrame:
    from pyspark.errors import AnalysisException

    try:
        source: DataFrame = reader.load()
    except AnalysisException as error:
        if "KAFKA" not in (error.getCondition() or "") and "kafka" not in str(error):
            raise
        raise OptionError(
            "the Spark session has no Kafka connector (or was given to another Python thread): start it with "
            f"spark.jars.packages={package()}"
        ) from error
    return source


def writer(
    servers: str | Iterable[str],
    topic: str,
    app_id: str,
    *,
    key: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Writer:
    """Matches as JSON messages, **at least once**, each with an id by which a consumer can drop repetitions.

    Spark's Kafka sink has no transactions: a batch that failed halfway is written again as a whole, and messages that
    had arrived are there twice. Every message has a ``match_id``, in its value and as a header: the same for the same
    match of the same batch, another one for every other match. A consumer that keeps the first message of an id sees
    each match exactly once; so does a compacted topic in the end, when ``key`` is left out.

    Parameters
    ----------
    servers
        The brokers to ask first.
    topic
        Where to write to.
    app_id
        Names the query; part of the id. Take another one with another checkpoint.
    key
        The column whose value, as text, is the message's key: messages of one key are in one partition, in order.
        ``None``: the key is the ``match_id``.
    options
        Options of Spark's Kafka sink (``kafka.…``).

    Returns
    -------
    Writer
        A function for ``foreachBatch``.
    """
    given = {**texts(options, taken=_SET_BY_ARGUMENTS), "kafka.bootstrap.servers": _servers(servers), "topic": topic}

    def write(df: DataFrame, batch_id: int) -> None:
        from pyspark.sql import functions as F

        if key is not None and key not in df.columns:
            raise DataError(hinted(f"the matches have no column '{key}' (key)", key, df.columns, kind="column"))
        named = with_match_id(df, batch_id, app_id)
        messages = named.select(
            column(key or MATCH_ID).cast("string").alias("key"),
            F.to_json(F.struct(*map(column, named.columns))).alias("value"),
            F.array(F.struct(F.lit(MATCH_ID).alias("key"), column(MATCH_ID).cast("binary").alias("value"))).alias(
                "headers"
            ),
        )
        messages.write.format("kafka").options(**given).option("includeHeaders", "true").save()

    return write


def _servers(servers: str | Iterable[str]) -> str:
    found = servers if isinstance(servers, str) else ",".join(servers)
    if not found.strip():
        raise OptionError("servers: name at least one, such as 'localhost:9092'")
    return found


def _offsets(given: str | Mapping[str, Mapping[str, int]]) -> str:
    if isinstance(given, str):
        if given not in ("earliest", "latest") and not given.lstrip().startswith("{"):
            raise OptionError(f"{given!r}: expected 'earliest', 'latest', or offsets by topic and partition")
        return given
    return json.dumps({topic: {str(part): offset for part, offset in parts.items()} for topic, parts in given.items()})
