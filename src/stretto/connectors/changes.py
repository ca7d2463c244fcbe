"""Change feeds as events with a sign: what a table's log says of its rows, as insertions (+1) and retractions (−1).

An update is a retraction of the row before it and an insertion of the row after it, in one micro-batch. Only columns are computed, so
a batch and a stream are read in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from stretto.connectors.records import ARRIVED, FAULT, PLACE, RAW, SOURCE, Events, as_struct, parse, required_of, split
from stretto.errors import DataError, OptionError, hinted
from stretto.spark.frames import column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The column that says +1 or −1.
SIGN = "sign"

_META, _ENVELOPE = "kafka", "debezium"

#: What a feed adds to the table's columns.
ADDED = (SIGN, _META, _ENVELOPE)

_KEY, _VALUE, _SIDE = "__stretto_key", "__stretto_value", "__stretto_side"
_KIND = "_change_type"

_SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}

#: What is wrong with an envelope, by its operation and what it lacks.
_UNREADABLE = {"t": "a truncation names no row that it takes back", "m": "a message, and no change of a row"}


def delta(
    df: DataFrame,
    *,
    time: str,
    type: str | None = "type",
    sequence: str | None = None,
    columns: Mapping[str, str] | None = None,
    required: Iterable[str] = (),
    bad_records: str = "side",
    name: str = "changes",
) -> Events:
    """Delta's change data feed as events with a sign.

    Parameters
    ----------
    df
        The feed, batch or streaming: the table's columns with ``_change_type`` and ``_commit_version``, as
        ``spark.read.format("delta").option("readChangeFeed", "true")`` gives it, or ``DeltaTable.load_cdf`` of ``deltalake``.
    time, type, sequence, columns, required, bad_records, name
        As for :func:`stretto.connectors.checked`. A ``sequence`` must stay with an event when it is corrected: the table's key.
        Expressions may read ``_commit_version``.

    Returns
    -------
    Events
        ``good`` has the table's columns and ``sign``.

    Raises
    ------
    DataError
        A column that was named, or one of the feed's own, is not there.
    OptionError
        The table has a column ``sign``, or ``bad_records`` is neither of the two.
    """
    from pyspark.sql import functions as F

    attributes = [one for one in df.columns if one not in (_KIND, "_commit_version", "_commit_timestamp")]
    for own in (_KIND, "_commit_version"):
        if own not in df.columns:
            raise DataError(hinted(f"{name}: a change data feed has a column '{own}'", own, df.columns, kind="column"))
    _not_taken(attributes)
    sign = F.lit(None).cast("int")
    for kind, value in _SIGNS.items():
        sign = F.when(column(_KIND) == kind, F.lit(value)).otherwise(sign)
    kind = F.coalesce(column(_KIND), F.lit("NULL"))
    rows = df.select(
        *map(column, attributes),
        sign.alias(SIGN),
        *[column(one) for one in df.columns if one not in attributes],
        F.when(sign.isNull(), F.concat(F.lit(f"{_KIND} is no kind of change: "), kind)).alias(FAULT),
        F.to_json(F.struct(*map(column, df.columns))).alias(RAW),
        F.lit(name).alias(SOURCE),
        F.concat(F.lit("version "), F.col("_commit_version").cast("string")).alias(PLACE),
        (F.col("_commit_timestamp") if "_commit_timestamp" in df.columns else F.lit(None))
        .cast("timestamp")
        .alias(ARRIVED),
    )
    return split(
        rows,
        attributes=[*attributes, SIGN],
        columns=columns,
        type=type,
        time=time,
        sequence=sequence,
        required=required,
        bad_records=bad_records,
        name=name,
        counted=True,
        sign=SIGN,
    )


def debezium(  # noqa: PLR0913 - the options of the source
    df: DataFrame,
    *,
    schema: Any,
    time: str,
    type: str | None = "type",
    sequence: str | None = None,
    columns: Mapping[str, str] | None = None,
    required: Iterable[str] = (),
    key: str = "key",
    value: str = "value",
    value_options: Mapping[str, Any] | None = None,
    bad_records: str = "side",
    name: str = "changes",
) -> Events:
    """Debezium's records as events with a sign; ``connectors.kafka.read(…, value="debezium")`` reads a topic of them.

    A record is a key and an envelope in JSON, with ``before``, ``after`` and ``op`` (with Kafka Connect's ``schema`` and ``payload``
    around them or without). ``c`` and ``r`` insert, ``d`` takes back, ``u`` does both. A record is bad that has no key, is no
    envelope, or lacks a row that its operation needs: databases log rows before an update where told (PostgreSQL: ``REPLICA
    IDENTITY FULL``). Bad are truncations and messages, too, and tombstones, the records without a value by which Kafka compacts
    a topic: they are shown, and never make reading fail.

    Parameters
    ----------
    df
        The records, batch or streaming, as Spark's Kafka source gives them, or with a column for the key and one for the value.
    schema
        The table's columns: DDL text, a ``StructType`` or an Arrow schema.
    time, type, sequence, columns, required, bad_records, name
        As for :func:`stretto.connectors.checked`. A ``sequence`` must stay with an event when it is corrected: the table's key.
        Expressions may read ``debezium.op``, ``debezium.ts_ms`` and as fields of ``kafka`` the other columns of ``df``.
    key, value
        The columns of the key and of the envelope, string or binary.
    value_options
        Options of Spark's ``from_json``.

    Returns
    -------
    Events
        ``good`` has the table's columns and ``sign``.

    Raises
    ------
    DataError
        A column that was named is not there.
    OptionError
        The table has a column ``sign``, or an argument is wrong.
    """
    struct = as_struct(schema)
    _not_taken(struct.names)
    for one, role in ((key, "key"), (value, "value")):
        if one not in df.columns:
            raise DataError(
                hinted(f"{name}: the records have no column '{one}' ({role})", one, df.columns, kind="column")
            )
    tombstone = column(_VALUE).isNull() & column(_KEY).isNotNull()
    rows = _records(df, key, value, name)
    if bad_records == "error":
        rows = rows.filter(~tombstone)
    rows = _sides(_enveloped(rows, struct, value_options), struct)
    return split(
        rows,
        attributes=[*struct.names, SIGN],
        columns=columns,
        type=type,
        time=time,
        sequence=sequence,
        required=[*required, *required_of(struct)],
        bad_records=bad_records,
        name=name,
        counted=True,
        sign=SIGN,
    )


def _not_taken(names: Iterable[str]) -> None:
    for own in ADDED:
        if own in names:
            raise OptionError(f"the table has a column '{own}', which the feed adds: rename it before")


def _records(df: DataFrame, key: str, value: str, name: str) -> DataFrame:
    """Key, value, all else as one struct, and where a record is from."""
    from pyspark.sql import functions as F

    def known(own: str, otherwise: Column) -> Column:
        return column(own) if own in df.columns else otherwise

    nothing = F.lit(None).cast("string")
    place = F.concat(
        F.lit("partition "), known("partition", nothing).cast("string"), F.lit(", offset "), known("offset", nothing)
    )
    return df.select(
        column(key).alias(_KEY),
        column(value).alias(_VALUE),
        F.struct(*[column(one) for one in df.columns if one != value]).alias(_META),
        known("topic", F.lit(name)).alias(SOURCE),
        place.alias(PLACE),
        known("timestamp", nothing).cast("timestamp").alias(ARRIVED),
    )


def _enveloped(rows: DataFrame, struct: Any, options: Mapping[str, Any] | None) -> DataFrame:
    """The records with ``before``, ``after``, ``op`` and ``ts_ms``, and with what is wrong."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    row = T.StructType([T.StructField(field.name, field.dataType) for field in struct.fields])
    envelope = T.StructType().add("before", row).add("after", row).add("op", "string").add("ts_ms", T.LongType())
    both = T.StructType([*envelope.fields, T.StructField("payload", envelope)])
    parsed = parse(rows, _VALUE, both, "json", options=options)
    bare = parsed.select(
        *[one for one in parsed.columns if one not in both.names],
        *[F.coalesce(F.col(own), F.col(f"payload.{own}")).alias(own) for own in envelope.names],
    )
    tombstone = (F.col(FAULT) == "the value is NULL") & F.col(_KEY).isNotNull()
    op, before, after = F.col("op"), F.col("before").isNull(), F.col("after").isNull()
    fault = (
        F.when(tombstone, F.lit("a tombstone: the deletion before it says all"))
        .when(F.col(_KEY).isNull(), F.lit("the record has no key"))
        .when(F.col(FAULT).isNotNull(), F.col(FAULT))
        .when(op.isin("c", "r", "u") & after, F.concat(F.lit("the row after is missing, and op is "), op))
        .when(op.isin("u", "d") & before, F.concat(F.lit("the row before is missing, and op is "), op))
        .when(op.isin("c", "r", "u", "d"), F.lit(None))
    )
    for other, told in _UNREADABLE.items():
        fault = fault.when(op == other, F.lit(told))
    return bare.withColumn(
        FAULT, fault.otherwise(F.concat(F.lit("op is no change of a row: "), F.coalesce(op, F.lit("NULL"))))
    )


def _sides(rows: DataFrame, struct: Any) -> DataFrame:
    """A row for each side of a change: what it takes back, and what it gives."""
    from pyspark.sql import functions as F

    op = F.col("op")
    old = F.when(op.isin("u", "d"), F.struct(F.lit(-1).alias(SIGN), F.col("before").alias("row")))
    new = F.when(op.isin("c", "r", "u"), F.struct(F.lit(1).alias(SIGN), F.col("after").alias("row")))
    # A record that is wrong has one side, for it to be shown once.
    sides = F.when(F.col(FAULT).isNotNull(), F.array(F.lit(None))).otherwise(F.array_compact(F.array(old, new)))
    kept = [one for one in rows.columns if one not in ("before", "after", "op", "ts_ms", _KEY)]
    found = rows.select(*map(column, kept), F.struct("op", "ts_ms").alias(_ENVELOPE), F.explode(sides).alias(_SIDE))
    side = column(_SIDE)
    shown = [side["row"][own].alias(own) for own in struct.names]
    return found.select(*map(column, kept), column(_ENVELOPE), side[SIGN].alias(SIGN), *shown)
