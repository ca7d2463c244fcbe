"""What every source gives: events that can be read, records that cannot, and which column plays which role.

Payloads (JSON, CSV, text by a pattern) as columns, and what is wrong with those that are none.

Spark's ``from_json`` and ``from_csv`` read the first record of a payload and say nothing of what follows it. Here a
payload is read inside a frame that it must leave intact, so that text after a record shows as a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stretto.errors import DataError, OptionError, hinted
from stretto.spark.compat import needs
from stretto.spark.frames import column, or_raise

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


FORMATS = ("json", "csv", "text")

_PARSED = "__stretto_parsed"
_RECORD, _END, _CORRUPT = "__stretto_record", "__stretto_end", "__stretto_corrupt"


def required_of(schema: Any) -> list[str]:
    """The attributes that the schema says are never NULL."""
    return [field.name for field in schema.fields if not field.nullable]


def parse(
    rows: DataFrame,
    payload: str,
    schema: Any,
    how: str,
    *,
    options: Mapping[str, Any] | None = None,
    pattern: str | None = None,
) -> DataFrame:
    """``rows`` with the attributes of ``schema``, read from the column ``payload``, and with what is wrong.

    The column ``payload`` (binary or string) goes; the others stay.
    """
    from pyspark.sql import functions as F

    needs("reading records of text", 4, 0)
    if how not in FORMATS:
        raise OptionError(f"value={how!r}: expected one of {', '.join(map(repr, FORMATS))}")
    if pattern is not None and how != "text":
        raise OptionError(f"pattern= is for value='text', and the value is {how!r}")
    kept = [name for name in rows.columns if name != payload]
    for field in schema.fields:
        if field.name in kept:
            raise OptionError(f"schema: the name '{field.name}' is taken by the source's own columns; rename it")
    given = texts(options)

    text = column(payload).cast("string")
    readable = F.is_valid_utf8(text)
    parsed, fields, fault = _PARSERS[how](F.when(readable, text), schema, given, pattern)
    staged = rows.select(
        *map(column, kept),
        F.when(readable, text).otherwise(F.concat(F.lit("base64:"), F.base64(text.cast("binary")))).alias(RAW),
        F.when(text.isNull(), F.lit("the value is NULL"))
        .when(~readable, F.lit("the value is not UTF-8"))
        .when(F.trim(text, F.lit(" \t\r\n")) == "", F.lit("the value is empty"))
        .alias(FAULT),
        parsed.alias(_PARSED),
    )
    return staged.select(
        *map(column, kept),
        column(RAW),
        F.coalesce(column(FAULT), fault).alias(FAULT),
        *[field.alias(kind.name) for field, kind in zip(fields, schema.fields, strict=True)],
    )


def _json(text: Column, schema: Any, options: dict[str, str], _: str | None) -> tuple[Column, list[Column], Column]:
    """One JSON object. The frame is an object with the payload as the one element of an array, and a field after it."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    framed = F.concat(F.lit(f'{{"{_RECORD}":['), text, F.lit(f'],"{_END}":0}}'))
    frame = (
        T.StructType().add(_RECORD, T.ArrayType(_optional(schema))).add(_END, T.IntegerType()).add(_CORRUPT, "string")
    )
    parsed = F.from_json(framed, frame, {**options, "columnNameOfCorruptRecord": _CORRUPT})
    whole = column(_PARSED)
    records = whole[_RECORD]
    record = F.get(records, F.lit(0))
    intact = (whole[_END] == 0) & (F.size(records) == 1) & record.isNotNull() & whole[_CORRUPT].isNull()
    names = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
    fault = F.when(~F.coalesce(intact, F.lit(False)), F.lit(f"not one JSON object of {_short(names)}"))
    return parsed, [record[field.name] for field in schema.fields], fault


def _csv(text: Column, schema: Any, options: dict[str, str], _: str | None) -> tuple[Column, list[Column], Column]:
    """One CSV record. The frame is one more field at its end."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    lowered = {name.lower(): value for name, value in options.items()}
    separator = lowered.get("sep", lowered.get("delimiter", ","))
    # A quote inside quotes is doubled (RFC 4180); Spark's own default is a backslash.
    options = options if "escape" in lowered else {**options, "escape": '"'}
    framed = F.concat(F.regexp_replace(text, r"[\r\n]+\z", ""), F.lit(f"{separator}{_END}"))
    frame = T.StructType([*_optional(schema).fields]).add(_END, "string").add(_CORRUPT, "string")
    parsed = F.from_csv(framed, _ddl(frame), {**options, "columnNameOfCorruptRecord": _CORRUPT})
    whole = column(_PARSED)
    intact = (whole[_END] == _END) & whole[_CORRUPT].isNull()
    names = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
    fault = F.when(~F.coalesce(intact, F.lit(False)), F.lit(f"not one CSV record of {_short(names)}"))
    return parsed, [whole[field.name] for field in schema.fields], fault


def _text(
    text: Column, schema: Any, options: dict[str, str], pattern: str | None
) -> tuple[Column, list[Column], Column]:
    """Text as it is, or the groups of a pattern, in the order of the schema."""
    from pyspark.sql import functions as F

    if options:
        raise OptionError(f"value='text' has no options, and there is '{next(iter(options))}'")
    if pattern is None:
        if [field.dataType.simpleString() for field in schema.fields] != ["string"]:
            raise OptionError("value='text' without a pattern has one attribute, a string: schema='line string'")
        return text, [column(_PARSED)], F.lit(None).cast("string")
    _check_groups(pattern, len(schema.fields))
    found = F.when(
        F.rlike(text, F.lit(pattern)),
        F.array(
            *[F.nullif(F.regexp_extract(text, pattern, i + 1), F.lit("")) for i in range(len(schema.fields))],
        ),
    )
    values = [F.get(column(_PARSED), F.lit(i)).try_cast(field.dataType) for i, field in enumerate(schema.fields)]
    faults = [F.when(column(_PARSED).isNull(), F.lit("the text does not match the pattern"))]
    for i, (value, field) in enumerate(zip(values, schema.fields, strict=True)):
        kind = field.dataType.simpleString()
        wrong = F.get(column(_PARSED), F.lit(i)).isNotNull() & value.isNull()
        faults.append(F.when(wrong, F.lit(f"attribute '{field.name}' is not of type {kind}")))
    return found, values, F.coalesce(*faults)


_PARSERS = {"json": _json, "csv": _csv, "text": _text}


def _optional(schema: Any) -> Any:
    """The schema with every field nullable, as the parsers take it anyway."""
    from pyspark.sql import types as T

    return T.StructType([T.StructField(field.name, field.dataType, True) for field in schema.fields])


def _ddl(schema: Any) -> str:
    """A schema as the text that ``from_csv`` wants."""
    return ", ".join(
        "`" + field.name.replace("`", "``") + "` " + field.dataType.simpleString() for field in schema.fields
    )


def _check_groups(pattern: str, fields: int) -> None:
    """The number of groups, where the pattern reads in Python as in Java."""
    try:
        groups = re.compile(pattern).groups
    except re.error:
        return
    if groups != fields:
        raise OptionError(f"pattern: {groups} groups for the {fields} attributes of the schema")


def _short(names: str) -> str:
    return names if len(names) <= 200 else names[:199] + "…"


#: The columns that a source adds for each record; ``FAULT`` is NULL for a record that can be read.
FAULT, RAW, SOURCE, PLACE, ARRIVED = (f"__stretto_{name}" for name in ("reason", "raw", "source", "place", "arrived"))

#: Characters of a record that an error shows.
SHOWN = 300

_POLICIES = ("side", "error")


@dataclass(frozen=True)
class Events:
    """A source's records, apart by whether they can be read.

    ``good`` and ``bad`` read the source each for itself: where they are streaming, give each query its own checkpoint.
    """

    #: One row an event, with its attributes.
    good: DataFrame
    #: One row for each record that is no event: ``raw``, ``reason``, ``source``, ``place``, ``arrived``.
    bad: DataFrame
    #: The column of the event type; ``None``: there is none.
    type: str | None
    #: The column that orders the events.
    time: str
    #: The column that orders events of the same time; ``None``: their order is not defined.
    sequence: str | None
    #: The name under which a streaming query's progress counts ``records`` and ``bad`` ones
    #: (``observedMetrics``); ``None``: they are not counted while ``good`` is read.
    metrics: str | None
    #: The column that says +1 or −1 of each event; ``None``: events are never taken back.
    sign: str | None = None

    @property
    def roles(self) -> dict[str, str | None]:
        """The columns' roles as arguments of :func:`stretto.spark.match`."""
        roles = {"type": self.type, "time": self.time, "sequence": self.sequence}
        return roles if self.sign is None else roles | {"sign": self.sign}


def checked(
    df: DataFrame,
    *,
    time: str,
    type: str | None = "type",
    sequence: str | None = None,
    columns: Mapping[str, str] | None = None,
    required: Iterable[str] = (),
    bad_records: str = "side",
    name: str = "events",
) -> Events:
    """Any DataFrame as :class:`Events`: rows without a time, a type or another attribute that is needed go to the side.

    Parameters
    ----------
    df
        The rows; batch or streaming.
    time, type, sequence
        The columns that play these roles. A row in which one of them is NULL is no event.
    columns
        Attributes to add or to replace: name to Spark SQL expression, such as ``{"ts": "to_timestamp(at)"}``.
    required
        Further attributes that no event may lack.
    bad_records
        ``"side"``: they are in ``bad``. ``"error"``: reading ``good`` fails at the first one.
    name
        What ``bad`` calls the source, and part of the metrics' name.

    Raises
    ------
    DataError
        A column that was named is not there.
    OptionError
        ``bad_records`` is neither of the two.

    Examples
    --------
    >>> from stretto import connectors, spark
    >>> rows = spark.session().createDataFrame([("A", 1), ("B", None), (None, 3)], "type string, t int")
    >>> events = connectors.checked(rows, time="t")
    >>> events.good.collect(), sorted(row.reason for row in events.bad.collect())
    ([Row(type='A', t=1)], ["attribute 't' is missing or NULL", "attribute 'type' is missing or NULL"])
    """
    from pyspark.sql import functions as F

    shown = F.to_json(F.struct(*map(column, df.columns))) if df.columns else F.lit("")
    rows = df.select(
        *map(column, df.columns),
        F.lit(None).cast("string").alias(FAULT),
        shown.alias(RAW),
        F.lit(name).alias(SOURCE),
        F.lit(None).cast("string").alias(PLACE),
        F.lit(None).cast("timestamp").alias(ARRIVED),
    )
    return split(
        rows,
        attributes=df.columns,
        columns=columns,
        type=type,
        time=time,
        sequence=sequence,
        required=required,
        bad_records=bad_records,
        name=name,
        counted=df.isStreaming,
    )


def split(  # noqa: PLR0913 - the options of the source
    rows: DataFrame,
    *,
    attributes: Iterable[str],
    columns: Mapping[str, str] | None,
    type: str | None,
    time: str,
    sequence: str | None,
    required: Iterable[str],
    bad_records: str,
    name: str,
    counted: bool,
    sign: str | None = None,
) -> Events:
    """Records with their five columns of :data:`FAULT` and the rest, apart.

    ``counted``: the source's progress counts the records. A count keeps Spark from filtering before it, so columnar files
    that are read once go without.
    """
    from pyspark.sql import functions as F

    if bad_records not in _POLICIES:
        raise OptionError(f"bad_records={bad_records!r}: expected 'side' or 'error'")
    shown = list(dict.fromkeys([*attributes, *(columns or {})]))
    for attribute, expression in (columns or {}).items():
        rows = rows.withColumn(attribute, F.expr(expression))
    needed = list(dict.fromkeys(name for name in (time, type, sequence, *required) if name is not None))
    for attribute in needed:
        if attribute not in shown:
            role = {time: " (time)", type: " (type)", sequence: " (sequence)"}.get(attribute, "")
            told = f"{name}: the events have no column '{attribute}'{role}"
            raise DataError(hinted(told, attribute, shown, kind="column"))
    fault = F.coalesce(column(FAULT), *_missing(rows, needed, time))
    metrics = f"records:{name}" if counted and rows.isStreaming else None
    good = rows.withColumn(FAULT, fault)
    bad = good.filter(column(FAULT).isNotNull()).select(
        column(RAW).alias("raw"),
        column(FAULT).alias("reason"),
        column(SOURCE).alias("source"),
        column(PLACE).alias("place"),
        column(ARRIVED).alias("arrived"),
    )
    if metrics is not None:
        good = good.observe(metrics, F.count(F.lit(1)).alias("records"), F.count(column(FAULT)).alias("bad"))
    good = good.filter(_failing(name) if bad_records == "error" else column(FAULT).isNull())
    return Events(good.select(*map(column, shown)), bad, type, time, sequence, metrics, sign)


def _missing(rows: DataFrame, needed: Iterable[str], time: str) -> list[Column]:
    """For each attribute that an event must have: what is wrong when it has not."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    faults = [F.when(column(name).isNull(), F.lit(f"attribute '{name}' is missing or NULL")) for name in needed]
    if isinstance(rows.schema[time].dataType, T.FloatType | T.DoubleType):
        faults.append(F.when(F.isnan(column(time)), F.lit(f"attribute '{time}' (time) is not a number")))
    return faults


def _failing(name: str) -> Column:
    """Whether a record is an event; an error that names its file and place, and shows its text, where it is none."""
    from pyspark.sql import functions as F

    source = F.when(column(SOURCE) != name, column(SOURCE))
    place = F.concat_ws(", ", source, column(PLACE))
    where = F.when(place != "", F.concat(F.lit(" ("), place, F.lit(")"))).otherwise("")
    text = F.when(F.length(column(RAW)) > SHOWN, F.concat(F.left(column(RAW), F.lit(SHOWN - 1)), F.lit("…"))).otherwise(
        column(RAW)
    )
    fault = F.concat(F.lit(f"{name}: a record is no event"), where, F.lit(": "), column(FAULT), F.lit(": "), text)
    return or_raise(column(FAULT).isNull(), fault)


def as_struct(schema: Any) -> Any:
    """A schema in any of its forms (DDL text, ``StructType``, Arrow schema) as a ``StructType``."""
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, pa.Schema):
        return arrow_as_struct(schema)
    if not isinstance(schema, str):
        kind = schema.__class__.__name__
        raise OptionError(f"schema: expected a text such as 'type string, ts timestamp', not a {kind}")
    try:
        return StructType.fromDDL(schema)
    except PySparkException as error:
        raise OptionError(f"schema: {schema!r} cannot be read ({error.getMessage()})") from error


def arrow_as_struct(schema: Any) -> Any:
    """An Arrow schema as a ``StructType``; a time without a zone stays one."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


#: Options by which the sources find bad records.
_OURS = {"mode", "columnnameofcorruptrecord", "columnpruning", "enforceschema"}


def texts(options: Mapping[str, Any] | None, *, taken: Mapping[str, str] | None = None) -> dict[str, str]:
    """A source's options as Spark reads them; ``taken``: options that an argument sets.

    Raises
    ------
    OptionError
        An option is set by an argument, or by the source itself.
    """
    for name in options or {}:
        if argument := (taken or {}).get(name.lower()):
            raise OptionError(f"the option '{name}' is set by {argument}=")
        if name.lower() in _OURS:
            raise OptionError(f"the option '{name}' is set by the source, which tells bad records by it")
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in (options or {}).items()
    }
