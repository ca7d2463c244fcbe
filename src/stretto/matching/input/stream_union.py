"""The tables of several streams as one, and the types that its columns have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import or_
from typing import Any

import pyarrow as pa

from stretto.column_types import unified
from stretto.errors import DataError, hinted, warn
from stretto.events import Schema, as_table
from stretto.matching.compiled import Query
from stretto.matching.input.derived_columns import Derived
from stretto.matching.input.files import are_files_of_stream, open_files
from stretto.matching.input.ordered_input import Streams, ordered
from stretto.query.predicate import attributes

#: The name of the column that tells streams apart when several tables are given.
STREAM_COLUMN = "stream"


def one_table(
    query: Query, events: Any, type: str | None, time: str | None, sequence: str | None, stream: str | None
) -> tuple[pa.Table, str | None]:
    """One table of all streams, with the fields of structs that are read, and the column that tells them apart."""
    read = {*query.parsed.read, *filter(None, (type, time, sequence, stream))}
    if not are_streams(events, query):
        table = Derived(tuple(read), query.parsed.joined, stream).added_to(as_table(events))
        if stream is None and len(query.streams) > 1:
            raise DataError(
                f"the query reads {len(query.streams)} streams ({', '.join(query.streams)}): give a dict of tables by "
                "stream (in the shell NAME=FILES), or name the column that tells them apart with stream='…'"
            )
        return table, stream
    made = Derived(tuple(read), query.parsed.joined)
    tables = {name: as_table(value) for name, value in events.items()}
    tables = {name: made.of_stream(name).added_to(one) if one.num_columns else one for name, one in tables.items()}
    names = streams_of(query, tables)
    for name in names:
        if name not in tables:
            raise DataError(hinted(f"there are no events for stream '{name}'", name, tables, kind="stream"))
    if len(names) > 1 and time is None:
        raise DataError("several streams are merged by time: name the time column with time='…'")
    if len(names) == 1 and not query.parsed.any_stream:
        return tables[names[0]], stream
    column = stream or STREAM_COLUMN
    return _as_one({name: tables[name] for name in names}, column, read), column


def _as_one(tables: Mapping[str, pa.Table], column: str, read: set[str]) -> pa.Table:
    """The tables of streams one after the other, with a column that names the stream."""
    parts = {}
    for name, table in tables.items():
        plain = table.drop_columns([column]) if column in table.column_names else table
        parts[name] = plain.append_column(column, pa.array([name] * table.num_rows, pa.string()))
    return pa.concat_tables(_with_one_type(parts, read), promote_options="default")


def files_by_stream(events: Mapping[str, Any], column: str, read: set[str]) -> Streams:
    """Tables or files of several streams as events that are read piece by piece, with a column that names the stream.

    Raises
    ------
    DataError
        A column that is ``read`` has values of different sorts.
    """
    import pyarrow.dataset as ds

    sources = {
        name: open_files(one if are_files_of_stream(one) else ds.dataset(as_table(one))).deriving(Derived(tuple(read)))
        for name, one in events.items()
    }
    empty = {name: one.schema.empty_table() for name, one in sources.items()}
    return Streams(sources, _as_one(empty, column, read).schema, column)


def streams_of(query: Query, given: Iterable[str]) -> tuple[str, ...]:
    """The streams that a query reads; some languages read whatever there is."""
    return tuple(given) if query.parsed.any_stream else query.streams


def _with_one_type(tables: Mapping[str, pa.Table], read: set[str]) -> list[pa.Table]:
    """The tables of streams with one type for each column; one without that nobody reads is left out, with a warning.

    Raises
    ------
    DataError
        The query reads a column whose values are of different sorts.
    """
    found = dict(tables)
    for name in dict.fromkeys(name for table in tables.values() for name in table.column_names):
        kinds = {
            stream: table.schema.field(name).type for stream, table in tables.items() if name in table.column_names
        }
        if len(set(kinds.values())) == 1:
            continue
        kind = unified(kinds.values())
        try:
            if kind is None:
                raise pa.ArrowInvalid("")
            casts = {stream: found[stream].column(name).cast(kind) for stream in kinds}
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            told = f"column '{name}' is " + ", and ".join(
                f"{own} in stream '{stream}'" for stream, own in kinds.items()
            )
            why = f": {error}" if str(error) else ""
            if name in read:
                raise DataError(f"{told}, and the query reads it{why}; make them one type, or rename one") from error
            warn(f"{told}: it is left out{why}; make them one type, or rename one")
            found = {one: table.drop_columns([name]) if one in kinds else table for one, table in found.items()}
            continue
        for stream, values in casts.items():
            at = found[stream].column_names.index(name)
            found[stream] = found[stream].set_column(at, name, values)
    return list(found.values())


def with_types_of_nulls(table: pa.Table, schema: Schema) -> pa.Table:
    """Columns that are NULL throughout with the types that the query gives them."""
    for at, own in enumerate(table.schema):
        kind = schema.attributes[own.name]
        if pa.types.is_null(own.type) and own.type != kind:
            table = table.set_column(at, own.with_type(kind), pa.nulls(table.num_rows, kind))
    return table


def nothing(query: Query, type: str | None, time: str | None, stream: str | None) -> pa.Table:
    """No events, with the columns that the query and the caller name."""
    texts = [name for name in (type, stream, *query.partition_by, *query.parsed.attributes) if name]
    numbers = [time] if time else []
    if query.window is not None and query.window.attribute:
        numbers.append(query.window.attribute)
    if any(map(attributes, query.parsed.conditions)):
        raise DataError("there are no events, so that their attributes are not known: give an empty table with columns")
    kinds = dict.fromkeys(texts, pa.string()) | dict.fromkeys(numbers, pa.timestamp("us"))
    return pa.schema(list(kinds.items())).empty_table()


def merged(
    query: Query,
    events: Mapping[str, Any],
    type: str | None,
    time: str | None,
    sequence: str | None,
    stream: str | None,
    needed: Iterable[str] | None,
    before: Iterable[str],
) -> tuple[pa.Table, str | None]:
    """The next events of several streams as one table, merged by time, and the column that tells them apart.

    A stream that the query reads, or that there was ``before``, without events may be left out. Of the ``needed`` columns those that
    only it may have are NULL then; ``None``: the columns are not known yet.

    Raises
    ------
    DataError
        As :func:`one_table`; or a stream is unknown, and perhaps another one was meant.
    """
    names = streams_of(query, dict.fromkeys([*before, *events]))
    without = [name for name in names if name not in events]
    if without and (unknown := [name for name in events if name not in names]):
        raise DataError(
            hinted(f"the query does not read the stream '{unknown[0]}'", unknown[0], without, kind="stream")
        )
    table, column = one_table(query, {**{name: [] for name in names}, **events}, type, time, sequence, stream)
    if needed is None or query.schema is None:
        if without and table.num_rows:
            raise DataError(
                f"the first events tell the columns, and there are none of stream '{without[0]}': give an empty table with its "
                "columns, or a schema="
            )
    elif without or not all(as_table(events[name]).num_rows for name in names):
        for name in dict.fromkeys(needed):
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows, query.schema.attributes[name]))
    return (ordered(table, time, sequence)[0] if table.num_rows else table), column


def are_streams(events: Any, query: Query, before: Iterable[str] = ()) -> bool:
    """Whether events are tables by stream, of which some may be empty, and whose names are those of FROM or known from ``before``."""
    if not isinstance(events, Mapping) or not events:
        return False
    tables = [_is_table(value) for value in events.values()]
    empty = [isinstance(value, list) and not value for value in events.values()]
    named = any(tables) or all(name in events for name in query.streams) or events.keys() <= {*query.streams, *before}
    return named and all(map(or_, tables, empty))


def are_tables(events: Any) -> bool:
    """Whether events are a dict of tables or files by stream, and no dict of columns."""
    return (
        isinstance(events, Mapping)
        and bool(events)
        and all(are_files_of_stream(one) or _is_table(one) for one in events.values())
    )


def _is_table(value: Any) -> bool:
    if isinstance(value, pa.Table | pa.RecordBatch) or hasattr(value, "__arrow_c_stream__"):
        return not isinstance(value, pa.ChunkedArray) and (hasattr(value, "columns") or hasattr(value, "schema"))
    return isinstance(value, list) and all(isinstance(row, Mapping) for row in value) and bool(value)
