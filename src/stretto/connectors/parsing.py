"""Payloads (JSON, CSV, text by a pattern) as columns, and what is wrong with those that are none.

Spark's ``from_json`` and ``from_csv`` read the first record of a payload and say nothing of what follows it. Here a
payload is read inside a frame that it must leave intact, so that text after a record shows as a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stretto.connectors.records import FAULT, RAW, texts
from stretto.errors import OptionError
from stretto.spark.compat import needs
from stretto.spark.frames import column

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
