"""What comes in: the schema of a stream with the roles of its columns, and events in any form as Arrow batches."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.arguments import check_arguments
from stretto.column_types import (
    DEEPEST,
    all_fields,
    family,
    field_types,
    is_too_deep,
    type_named,
    with_fields,
    without_views,
)
from stretto.errors import DataError, OptionError, hinted

#: A text in JSON, which the end of a line ends, too.
_JSON_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)

#: Where batches tell the types: who has said so, and what to do where a later batch contradicts (:func:`conform`).
BEFORE = ("batches before had", "; say what the columns are before the first batch, with schema=…")


@check_arguments
@dataclass(frozen=True)
class Schema:
    """The attributes of a stream's events, and which of them play a role.

    Parameters
    ----------
    attributes
        Name and Arrow type of each attribute (column), in order.
    type
        The attribute that holds the event type; ``None`` when there is none, and then each event's type is the name of its
        stream.
    time
        The attribute that orders the stream; ``None``: arrival order.
    stream
        The attribute that names the event's stream; ``None`` when there is one stream.
    types
        The event types that can occur, where that is known; a query that names another is refused.
    time_unit
        What one unit of an integer time attribute is, for windows and conditions with durations such as ``1 minute``: ``s``, ``ms``,
        ``us`` or ``ns``.

    A field inside of a struct plays a role by its path, ``type="event.category"``; it is an attribute then.

    >>> Schema.of({"type": pa.string(), "price": pa.float64()}).attributes["price"]
    DataType(double)
    """

    attributes: Mapping[str, pa.DataType]
    type: str | None = "type"
    time: str | None = None
    stream: str | None = None
    types: frozenset[str] | None = None
    time_unit: str | None = None
    streams: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        plain = {name: without_views(kind) for name, kind in self.attributes.items()}
        plain |= field_types(plain, (self.type, self.time, self.stream))
        if plain != self.attributes:
            object.__setattr__(self, "attributes", plain)

    @cached_property
    def whole(self) -> Schema:
        """The same with an attribute for each field inside of structs."""
        found = all_fields(self.attributes)
        return replace(self, attributes={**self.attributes, **found}) if found else self

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two schemas the same, hashable."""
        roles = (self.type, self.time, self.stream, self.types, self.time_unit, self.streams)
        return (tuple(self.attributes.items()), *roles)

    @classmethod
    def of(cls, source: Any, **roles: Any) -> Schema:
        """A schema from a ``Schema``, a ``pyarrow.Schema``, a mapping of names to types, or events.

        >>> import stretto
        >>> stretto.Schema.of({"type": "string", "x": "int64"}).attributes["x"]
        DataType(int64)
        """
        if isinstance(source, Schema):
            return source
        if isinstance(source, pa.Schema):
            _named_once(source.names)
            found: Mapping[str, pa.DataType] = dict(zip(source.names, source.types, strict=True))
        elif isinstance(source, Mapping) and all(isinstance(v, pa.DataType | str | type) for v in source.values()):
            found = {str(name): _data_type(name, value) for name, value in source.items()}
        else:
            arrow = getattr(source, "schema", None)
            if not isinstance(arrow, pa.Schema):
                arrow = as_table(source).schema
            _named_once(arrow.names)
            found = dict(zip(arrow.names, arrow.types, strict=True))
        return cls(found, **roles)


_PYTHON_TYPES: dict[type, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    bytes: pa.binary(),
}


def _data_type(name: str, value: pa.DataType | str | type) -> pa.DataType:
    if isinstance(value, pa.DataType):
        return value
    if isinstance(value, type):
        if value in _PYTHON_TYPES:
            return _PYTHON_TYPES[value]
    else:
        try:
            return type_named(value)
        except ValueError:
            pass
    raise OptionError(f"attribute '{name}': {value!r} is not an Arrow type (try 'int64', 'double', 'string')")


def as_table(events: Any) -> pa.Table:
    """Events in any form as one Arrow table, without a copy where the form allows it.

    Takes anything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` (pyarrow, pandas, polars, DuckDB, …), a list of
    dicts (missing keys are NULL), or a dict of columns.

    Raises
    ------
    DataError
        What was given is not a table of events, a column's values have no common type, or two columns one name.
    """
    _refuse_plans(events)
    try:
        table = _as_table(events)
    except RecursionError as error:
        raise DataError(
            f"the events have lists or dicts nested more than {DEEPEST} deep: leave that column out, or keep it as text"
        ) from error
    _named_once(table.column_names)
    refuse_deep(table.schema)
    for i, own in enumerate(table.schema):
        plain = without_views(own.type)
        if plain != own.type:
            table = table.set_column(i, own.with_type(plain), table.column(i).cast(plain))
        elif pa.types.is_dictionary(plain) and _has_nulls(table.column(i)):
            values = table.column(i).cast(plain.value_type).dictionary_encode().cast(plain)
            table = table.set_column(i, own, values)
    return table


def _has_nulls(column: pa.ChunkedArray) -> bool:
    """Whether a dictionary has NULL among its values, which Arrow does not join with others."""
    return any(chunk.dictionary.null_count for chunk in column.chunks)


def _refuse_plans(events: Any) -> None:
    """Raise a :class:`DataError` for what stands for events that are not computed yet, with the way to them."""
    for own in map(type, events.values()) if isinstance(events, Mapping) else (type(events),):
        _refuse_plan(own)


def _refuse_plan(own: type) -> None:
    if own.__name__ == "LazyFrame" and own.__module__.partition(".")[0] == "polars":
        raise DataError("a polars LazyFrame is a plan and has no events yet: give lazy_frame.collect()")
    if own.__name__ == "DataFrame" and own.__module__.startswith("pyspark.sql."):
        raise DataError(
            "a Spark DataFrame is matched on Spark: stretto.spark.match(df, query, time='…'); to have its events in this process, "
            "give df.toArrow()"
        )


def refuse_deep(schema: pa.Schema) -> None:
    """Raise a :class:`DataError` where lists and structs are nested without an end that anybody could mean."""
    for own in schema:
        if pa.types.is_nested(own.type) and is_too_deep(own.type):
            raise DataError(
                f"column '{own.name}' has lists or structs nested more than {DEEPEST} deep: leave it out, or keep it as text"
            )


def first_deep_line(text: bytes) -> tuple[int, str] | None:
    """The number, from 0, of the first line whose object in JSON has values deeper than types may be, and what is wrong with it.

    Arrow would look for their type for seconds. O(bytes); only lines with more brackets than that depth are looked at by themselves.
    """
    signs, most = np.frombuffer(text, np.uint8), DEEPEST + 1
    ends, opened = np.flatnonzero(signs == ord("\n")), np.flatnonzero(_is(signs, b"{["))
    line_of = np.searchsorted(ends, opened)
    for line in np.unique(line_of[most:][line_of[most:] == line_of[:-most]]).tolist():
        begin, end = ends[line - 1] + 1 if line else 0, ends[line] if line < ends.size else len(text)
        outside = np.frombuffer(_JSON_TEXT.sub(b"", text[begin:end]), np.uint8)
        depth = int(np.cumsum(_is(outside, b"{[") - _is(outside, b"}]").astype(np.int64)).max(initial=0)) - 1
        if depth > DEEPEST:
            return line, (
                f"lists or objects lie {depth:,} deep inside of each other, and at most {DEEPEST} are taken: leave that column "
                "out, or keep it as text"
            )
    return None


def _is(signs: NDArray[np.uint8], brackets: bytes) -> NDArray[np.bool_]:
    """Which signs are one of two brackets: those of lists and of objects differ by one bit."""
    found: NDArray[np.bool_] = (signs | 0x20) == brackets[0]
    return found


def _named_once(names: list[str]) -> None:
    """Raise a :class:`DataError` when two columns have one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"two columns are named '{name}'; rename or drop one of them")
        seen.add(name)


def _as_table(events: Any) -> pa.Table:
    try:
        if isinstance(events, pa.Table):
            return events
        if isinstance(events, pa.RecordBatch):
            return pa.Table.from_batches([events])
        if hasattr(events, "__arrow_c_stream__"):
            return pa.table(events)
        if hasattr(events, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(events)])
        if hasattr(events, "to_arrow_table"):
            return events.to_arrow_table()
        if isinstance(events, Mapping):
            if any(isinstance(one, pa.Table | pa.RecordBatch) for one in events.values()):
                raise DataError(
                    "tables by stream are not read here: give one table, with a column that names the stream, stream='…'"
                )
            for name, values in events.items():
                if not isinstance(name, str):
                    raise DataError(
                        f"a column of the events is named {name!r}: give columns by name, {{'name': [values]}}"
                    )
                if isinstance(values, str | bytes) or not isinstance(values, Iterable):
                    raise DataError(
                        f"column '{name}' of the events is a {type(values).__name__}, and no list of values: give columns by name, "
                        "{'name': [values]}, or tables by stream"
                    )
            return pa.table(dict(events))
        if isinstance(events, Iterable) and not isinstance(events, str | bytes):
            return _from_rows(list(events))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"the events do not make a table: {error}") from error
    raise DataError(
        f"cannot read events from {type(events).__name__}: give an Arrow, pandas, polars or DuckDB table, or dicts"
    )


def _from_rows(rows: list[Any]) -> pa.Table:
    names: dict[str, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"event {number} is a {type(row).__name__}, not a dict")
        names.update(dict.fromkeys(row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if any(map(_leads_deep, values)):
            raise RecursionError  # Arrow would look for a type of it for minutes
        try:
            columns[str(name)] = _from_values(values)
        except OverflowError as error:
            raise DataError(f"attribute '{name}' has an integer that does not fit into 64 bits") from error
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataError(f"attribute '{name}' has values of different types: {error}") from error
        if pa.types.is_timestamp(columns[str(name)].type):
            _one_clock(values, name)
    return pa.table(columns)


def _leads_deep(value: Any) -> bool:
    """Whether the first values inside of lists and dicts lead deeper than types may."""
    depth = 0
    while isinstance(value, list | tuple | dict) and value and depth <= DEEPEST:
        value, depth = next(iter(value.values() if isinstance(value, dict) else value)), depth + 1
    return depth > DEEPEST


def _from_values(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except OverflowError:
        return pa.array(values, pa.uint64())


def _one_clock(values: list[Any], name: Any) -> None:
    """Arrow would drop the zones of times that stand beside others without one."""
    if len({value.tzinfo is None for value in values if isinstance(value, dt.datetime)}) > 1:
        raise DataError(
            f"attribute '{name}' has times with a time zone and times without one: give all with one, or all without"
        )


def conform(
    table: pa.Table,
    names: Iterable[str],
    attributes: Mapping[str, pa.DataType],
    declared: str = "the query was compiled for",
    hint: str = "",
) -> pa.Table:
    """The named columns of a table, with the types that a schema says.

    Encodings of the same values are changed (strings, dictionaries), and so are numbers and times of another width where no value is
    lost; columns that are NULL throughout take any type. ``declared`` is who says so, in an error, and ``hint`` what to do.

    Raises
    ------
    DataError
        A column is missing, or its values are of another kind.
    """
    columns = {}
    names = list(names)
    table = with_fields(table, names)
    for name in dict.fromkeys(names):
        require(table, name, "attribute")
        column, wanted = table.column(name), attributes[name]
        if column.type != wanted:
            try:
                column = _converted(column, wanted, name, declared)
            except DataError as error:
                raise DataError(f"{error}{hint}") from error
        columns[name] = column
    return pa.table(columns)


def _converted(column: pa.ChunkedArray, wanted: pa.DataType, name: str, declared: str) -> pa.ChunkedArray:
    wrong = DataError(f"column '{name}' is {column.type}, and {declared} {wanted}")
    if family(column.type) not in ("null", family(wanted)):
        raise wrong
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_dictionary(wanted):
            return column.cast(wanted.value_type).dictionary_encode().cast(wanted)
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{wrong}: {error}") from error


def require(known: pa.Table | Collection[str], name: str, role: str) -> None:
    """Raise a :class:`DataError` unless a table, or columns by name, have the one that plays ``role``."""
    names = known.column_names if isinstance(known, pa.Table) else known
    if name not in names:
        told = f"the events have no column '{name}' ({role})"
        if role == "type":
            raise DataError(f"{told}; {without_types(known)}")
        raise DataError(hinted(told, name, names, kind="column"))


#: Columns that may tell the types of events: how many are named, how many texts they have at most, and how many of these are named.
_NAMED, _FEW, _SHOWN = 3, 50, 3

#: How many events are looked at for such columns.
_LOOKED_AT = 10_000


def without_types(known: pa.Table | Mapping[str, pa.DataType] | Collection[str]) -> str:
    """What to do where no column has the name of that which tells types: the columns of few texts, and ``type=None``.

    >>> print(without_types(pa.table({"event": ["login", "logout", "login"], "user": ["ann", "bob", "cy"]})))
    name the one that tells types, type='event' ('login', 'logout'), or give type=None: every event's type is the name of its stream
    """
    texts: dict[str, list[str]] = {}
    if isinstance(known, pa.Table):
        for one, column in zip(known.column_names, known.slice(0, _LOOKED_AT).columns, strict=True):
            if _is_text(column.type):
                values = pc.unique(column.cast(pa.string()).drop_null()).to_pylist()
                if 0 < len(values) <= min(_FEW, max(1, column.length() - 1)):
                    texts[one] = values
    elif isinstance(known, Mapping):
        texts = {one: [] for one, kind in known.items() if isinstance(kind, pa.DataType) and _is_text(kind)}
    chosen = sorted(texts, key=lambda one: (len(texts[one]) == 1, len(texts[one])))[:_NAMED]
    told = [f"type='{one}'" + (f" ({_some(texts[one])})" if texts[one] else "") for one in chosen]
    names = known.column_names if isinstance(known, pa.Table) else list(known)
    which = " or ".join(told) if told else f"type='…' (known columns: {', '.join(map(str, names))})"
    return f"name the one that tells types, {which}, or give type=None: every event's type is the name of its stream"


def _some(values: Sequence[str]) -> str:
    return ", ".join([*map(repr, values[:_SHOWN]), *(["…"] if len(values) > _SHOWN else [])])


def _is_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain))
