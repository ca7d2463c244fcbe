"""Matching over batch DataFrames: hash by the keys, sort by time inside the partitions, one pass over Arrow.

A task's partition holds many keys, interleaved and ordered by time, and goes batch by batch through one
:class:`stretto.Matcher`: no Python code runs per key or per row, and memory is what the query's windows hold.
Queries that relate all events (no ``PARTITION BY``, or ``CONSUME BY ANY``, which forgets across partitions)
run in one task.

What travels to the workers is :func:`run_partition` by its name, with the query's text, the schema as Arrow
bytes and a few strings: nothing of the user's code is pickled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.compiling import Query, compile_query, roles
from stretto.errors import DataError, OptionError, suggestion
from stretto.events import Schema
from stretto.matches import Layout
from stretto.matching import CHUNK, STREAM_COLUMN, Matcher
from stretto.pattern.query import Consume
from stretto.spark.session import require_pyspark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["match", "run_partition"]

#: The columns for type, time and stream, and the unit of time.
Roles = tuple[str | None, str, str | None, str | None]

#: Rows of a result batch: a row holds the events of a match, so it is wider than an input row.
RESULT_ROWS = 1 << 12


def match(
    df: DataFrame | Mapping[str, DataFrame],
    query: str | Query,
    *,
    type: str | None = "type",
    time: str | None = None,
    sequence: str | None = None,
    stream: str | None = None,
    time_unit: str | None = None,
    output: str = "events",
    partitions: int | None = None,
    valuations: bool = False,
    language: str | None = None,
) -> DataFrame:
    """Find the complex events of ``query`` in a DataFrame.

    The call checks the query against the DataFrame's columns and returns at once; Spark runs it when the
    result is used. Rows in which an attribute of ``PARTITION BY`` is NULL are in no partition: they go.

    Parameters
    ----------
    df
        The events, in any order; for a query ``FROM`` several streams a dict of DataFrames by stream name.
    query
        A query's text, or a compiled :class:`stretto.Query`.
    type
        The column that holds the event type. ``None``: an event's type is the name of its stream.
    time
        The column that orders the events: integer, decimal, double, date or timestamp, never NULL. Needed,
        unless the query was compiled with one.
    sequence
        A column that orders events of the same time (a source's offset, a row number). Without one their
        order is not defined, and where a pattern depends on it two runs may differ.
    stream
        The column that names an event's stream, when one DataFrame holds several.
    time_unit
        What one unit of an integer ``time`` is (``s``, ``ms``, ``us``, ``ns``), for windows such as
        ``WITHIN 1 minute``.
    output
        ``"events"``: with the events that each selected variable holds. ``"positions"``: only times and
        partition attributes, which is cheaper; positions as such mean nothing in a DataFrame.
    partitions
        Into how many tasks the keys are hashed; ``None``: Spark decides (``spark.sql.shuffle.partitions`` and
        adaptive execution). Queries that must run in one task ignore it.
    valuations
        One row for each valuation in place of each complex event.
    language
        The query's language, where the text does not tell.

    Returns
    -------
    pyspark.sql.DataFrame
        One row a match: ``start_time``, ``end_time``, the partition attributes, and for each selected
        variable an array of its events (structs).

    Raises
    ------
    QueryError
        The query is wrong or does not fit the columns.
    DataError
        A column that was named is not there. A NULL time is found when Spark runs, and then the text of the
        ``PythonException`` that Spark raises holds the ``DataError``.
    OptionError
        The DataFrame is streaming, there is no time column, or PySpark is not installed.
    """
    require_pyspark()
    compiled = compile_query(query, language=language)
    if compiled.schema is not None:
        own = compiled.schema
        type, time, stream = own.type, time or own.time, stream or own.stream
        time_unit = time_unit or own.time_unit
    if time is None:
        raise OptionError("name the time column, time='…': on Spark the order in which rows arrive means nothing")
    if partitions is not None and partitions < 1:
        raise OptionError(f"partitions={partitions}: give a positive number, or None to let Spark decide")
    events, stream = _one_dataframe(df, compiled, stream)
    fields = _arrow_fields(events)
    for name, role in ((time, "time"), (sequence, "sequence"), (stream, "stream"), (type, "type")):
        if name is not None and name not in fields:
            hint = suggestion(name, fields, kind="column")
            raise DataError(f"the events have no column '{name}' ({role})" + (f"; {hint}" if hint else ""))

    # Bind to all columns, so that mistakes show now; then again to those that the query and its result need.
    chosen = roles(type, time, stream, None, time_unit)
    known = {name: kind for name, kind in fields.items() if kind is not None}
    layout = Layout(compiled.bind(Schema(known, **chosen)).bound, output=output, positions=False)
    wanted = {*layout.query.tested, *layout.columns}
    if (unreadable := [name for name in fields if name not in known]) and _shows_everything(compiled, output):
        raise OptionError(f"column '{unreadable[0]}' has a type that Arrow cannot carry: drop it, or cast it")
    columns = [name for name in known if name in wanted]
    bound = compiled.bind(Schema({name: known[name] for name in columns}, **chosen))
    result = Layout(bound.bound, output=output, positions=False).schema()

    task = partial(
        run_partition,
        text=compiled.text,
        schema=pa.schema([(name, known[name]) for name in columns]).serialize().to_pybytes(),
        roles=(type, time, stream, time_unit),
        output=output,
        valuations=valuations,
        language=compiled.language,
    )
    order = [time] if sequence is None or sequence == time else [time, sequence]
    ordered = _in_order(events, columns, bound, order, partitions)
    return ordered.mapInArrow(task, _spark_schema(result))


def run_partition(
    batches: Iterator[pa.RecordBatch],
    *,
    text: str,
    schema: bytes,
    roles: Roles,
    output: str,
    valuations: bool,
    language: str,
) -> Iterator[pa.RecordBatch]:
    """Match one task's rows, which come ordered by time; runs in Spark's Python workers."""
    matcher: Matcher | None = None
    query = _bound(text, schema, roles, language)
    time = roles[1]
    kinds = pa.ipc.read_schema(pa.py_buffer(schema))
    for table in _tables(batches, kinds):
        if nulls := table.column(time).null_count:
            raise DataError(f"column '{time}' (time) is NULL in {nulls} or more rows: drop them, or give them a time")
        if matcher is None:  # not before: many tasks of a small job have no rows
            matcher = Matcher(query, output=output, positions=False, valuations=valuations)
        for found in matcher.iter_push(table):
            yield from _pieces(found)
    if matcher is not None:
        yield from _pieces(matcher.finish())


@lru_cache(maxsize=16)
def _bound(text: str, schema: bytes, chosen: Roles, language: str) -> Query:
    """The query of a task; workers are reused, and so is what the query has compiled."""
    kinds = pa.ipc.read_schema(pa.py_buffer(schema))
    type, time, stream, time_unit = chosen
    return compile_query(text, kinds, type=type, time=time, stream=stream, time_unit=time_unit, language=language)


def _tables(batches: Iterator[pa.RecordBatch], kinds: pa.Schema) -> Iterator[pa.Table]:
    """Spark's batches (10,000 rows unless set otherwise) in pieces as large as the matcher likes them."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK:
            yield _as_bound(waiting, kinds)
            waiting, rows = [], 0
    if rows:
        yield _as_bound(waiting, kinds)


def _as_bound(batches: Sequence[pa.RecordBatch], kinds: pa.Schema) -> pa.Table:
    """Batches as a table with the types the query is bound to: Spark's times have the session's time zone."""
    table = pa.Table.from_batches(batches).rename_columns(kinds.names)
    return table if table.schema.types == kinds.types else table.cast(kinds)


def _pieces(table: pa.Table) -> Iterator[pa.RecordBatch]:
    return (batch for batch in table.to_batches(max_chunksize=RESULT_ROWS) if batch.num_rows)


def _one_dataframe(
    df: DataFrame | Mapping[str, DataFrame], query: Query, stream: str | None
) -> tuple[DataFrame, str | None]:
    """One DataFrame of all streams, and the column that tells them apart."""
    if not isinstance(df, Mapping):
        _check_dataframe(df, "df")
        if stream is None and len(query.streams) > 1:
            raise DataError(
                f"the query reads {len(query.streams)} streams ({', '.join(query.streams)}): give a dict of "
                "DataFrames by stream, or name the column that tells them apart with stream='…'"
            )
        return df, stream
    from pyspark.sql import functions as F

    column = stream or STREAM_COLUMN
    parts = []
    for name in query.streams:
        if name not in df:
            hint = suggestion(name, df, kind="stream")
            raise DataError(f"there are no events for stream '{name}'" + (f"; {hint}" if hint else ""))
        _check_dataframe(df[name], f"df['{name}']")
        parts.append(df[name].withColumn(column, F.lit(name)))
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts), column


def _check_dataframe(df: Any, what: str) -> None:
    for needed in ("isStreaming", "schema", "mapInArrow"):  # true of classic and Spark Connect DataFrames
        if not hasattr(df, needed):
            kind = df.__class__.__name__
            raise OptionError(f"{what} is a {kind}, not a Spark DataFrame: use stretto.match for other tables")
    if df.isStreaming:
        raise OptionError("streaming DataFrames are not supported yet")
    for name, times in Counter(df.columns).items():
        if times > 1:
            raise OptionError(f"{what} has {times} columns named '{name}': rename or drop all but one")


def _arrow_fields(df: DataFrame) -> dict[str, pa.DataType | None]:
    """The Arrow type of each column; ``None`` for types that Arrow cannot carry."""
    return {field.name: _arrow_type(field.dataType) for field in df.schema.fields}


def _arrow_type(kind: Any) -> pa.DataType | None:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        try:
            found: pa.DataType = to_arrow_type(kind, timezone="UTC")
        except TypeError:  # before PySpark 4.2
            found = to_arrow_type(kind)
    except (PySparkException, NotImplementedError):
        return None
    return found


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _shows_everything(query: Query, output: str) -> bool:
    """Whether the result holds whole events."""
    items = query.parsed.items
    return output == "events" and (items is None or any(item.attributes is None for item in items))


def _in_order(
    df: DataFrame, columns: Sequence[str], query: Query, order: Sequence[str], partitions: int | None
) -> DataFrame:
    """The columns that matter, each key in one partition, every partition ordered by time."""
    kept = list(dict.fromkeys([*columns, *order]))
    keys = [_column(name) for name in query.partition_by]
    rows = df.select(*map(_column, kept))
    for key in keys:
        rows = rows.filter(key.isNotNull())
    if not keys or query.consume is Consume.ANY:
        rows = rows.repartition(1)
    elif partitions is None:
        rows = rows.repartition(*keys)
    else:
        rows = rows.repartition(partitions, *keys)
    # mapInArrow looks columns up by name and takes a dot for a field: the worker knows them by place.
    plain = not any(character in name for name in columns for character in ".`")
    shown = [_column(name) if plain else _column(name).alias(f"_{i}") for i, name in enumerate(columns)]
    return rows.sortWithinPartitions(*map(_column, order)).select(*shown)


def _column(name: str) -> Column:
    """A top-level column by its literal name, dots and all."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")
