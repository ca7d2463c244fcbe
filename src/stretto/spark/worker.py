"""What runs in Spark's Python workers: a task's rows, ordered by time, through one :class:`stretto.Matcher`.

Functions travel by name, with the query's text, the schema as Arrow bytes and a few strings: nothing is pickled by value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import pyarrow as pa

from stretto.compiling import Query, compile_query
from stretto.errors import DataError
from stretto.matching import CHUNK, Matcher

__all__ = ["Roles", "as_bound", "bound_query", "pieces", "run_partition"]

#: The columns for type, time and stream, and the unit of time.
Roles = tuple[str | None, str, str | None, str | None]

#: Rows of a result batch: a row holds the events of a match, so it is wider than an input row.
RESULT_ROWS = 1 << 12


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
    """Match one task's rows, which come ordered by time."""
    matcher: Matcher | None = None
    query = bound_query(text, schema, roles, language)
    time = roles[1]
    kinds = pa.ipc.read_schema(pa.py_buffer(schema))
    for table in _tables(batches, kinds):
        if nulls := table.column(time).null_count:
            raise DataError(f"column '{time}' (time) is NULL in {nulls} or more rows: drop them, or give them a time")
        if matcher is None:  # not before: many tasks of a small job have no rows
            matcher = Matcher(query, output=output, positions=False, valuations=valuations)
        for found in matcher.iter_push(table):
            yield from pieces(found)
    if matcher is not None:
        yield from pieces(matcher.finish())


@lru_cache(maxsize=16)
def bound_query(text: str, schema: bytes, chosen: Roles, language: str) -> Query:
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
            yield as_bound(waiting, kinds)
            waiting, rows = [], 0
    if rows:
        yield as_bound(waiting, kinds)


def as_bound(batches: Sequence[pa.RecordBatch], kinds: pa.Schema) -> pa.Table:
    """Batches as a table with the types the query is bound to: Spark's times have the session's time zone."""
    table = pa.Table.from_batches(batches).rename_columns(kinds.names)
    return table if table.schema.types == kinds.types else table.cast(kinds)


def pieces(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A result as batches of bounded size."""
    return (batch for batch in table.to_batches(max_chunksize=RESULT_ROWS) if batch.num_rows)
