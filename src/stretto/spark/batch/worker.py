"""What runs in Spark's Python workers: a task's rows, ordered by time, through one :class:`stretto.Matcher`.

Functions travel by name, with the query's text, the schema as Arrow bytes and a few strings: nothing is pickled by value.

Slices in a worker: rows that are read as context, before the rows whose matches are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from stretto.columns.measured import values_of
from stretto.errors import DataError
from stretto.frame import arrow_table
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import Query, compile_query
from stretto.matching.output.match_table import CHUNK
from stretto.matching.output.memory_budget import meter_of_task
from stretto.query.functions import Paths, import_functions
from stretto.query.passes.bind import AnyBound
from stretto.spark.workers import worker_task

# The lowest bits of the column that tells context from a slice's own rows; the others are the slice's number.
MARK_BITS = 2
CONTEXT = 1  #: the row is context
REACHES = 2  #: the context of the row's slice is known to reach beyond the window; it does not begin with the stream


class Context:
    """Takes a slice's rows, which come in the order of time, apart; context comes first.

    Where a window does not measure the time, contexts were planned from counts of an earlier reading. If the events are no
    longer the same, matches could be missed: that is seen here, and an error.
    """

    def __init__(self, query: AnyBound) -> None:
        window = query.window
        self.window = window if window is not None and window.attribute != query.schema.time else None
        self.rows = 0
        self.first: int | float | None = None
        self.checked = False

    def split(self, table: pa.Table, marks: pa.ChunkedArray) -> tuple[pa.Table, pa.Table]:
        """The context and the own rows of the next rows of a slice.

        Raises
        ------
        DataError
            The context does not reach as far back as planned.
        """
        bits = np.asarray(marks.to_numpy())
        count = int(np.count_nonzero(bits & CONTEXT))
        context, own = table.slice(0, count), table.slice(count)
        if self.window is not None and not self.checked:
            self._note(context)
            if own.num_rows:
                self.checked = True
                if bits[count] & REACHES and not self._reaches(own):
                    raise DataError(
                        "the events are not the same as when slices were planned, and matches could be missed: write the "
                        "events (or cache() them) before they are matched, or pass slices=1"
                    )
        return context, own

    def _note(self, context: pa.Table) -> None:
        assert self.window is not None
        if context.num_rows and not self.rows and self.window.attribute is not None:
            self.first = self._value(context)
        self.rows += context.num_rows

    def _reaches(self, own: pa.Table) -> bool:
        window = self.window
        assert window is not None
        if window.attribute is None:
            return self.rows >= window.size
        return self.first is not None and self._value(own) - self.first > window.size

    def _value(self, table: pa.Table) -> int | float:
        """The window's attribute in the first row."""
        assert self.window is not None
        assert self.window.attribute is not None
        found: int | float = values_of(table.slice(0, 1).column(self.window.attribute), self.window.attribute, 0)[
            0
        ].item()
        return found


#: The columns for type, time and stream, and the unit of time.
Roles = tuple[str | None, str, str | None, str | None]

#: Rows of a result batch: at least so many, as a row may hold the events of a match, and more where rows are narrow: each
#: batch costs Spark something.
RESULT_ROWS = 1 << 12
_MOST_ROWS = 1 << 16
_RESULT_BYTES = 1 << 21


@worker_task
def run_partition(  # noqa: PLR0913 - what a task must know
    batches: Iterator[pa.RecordBatch],
    *,
    text: str,
    schema: bytes,
    roles: Roles,
    output: str,
    valuations: bool,
    language: str,
    budget: int | float | str | None = None,
    functions: Paths = (),
    timeouts: bool = False,
    marked: bool = False,
    completes: bool = True,
    latest: bytes | None = None,
) -> Iterator[pa.RecordBatch]:
    """Match one task's rows, which come ordered by time. ``marked``: the last column tells what is context.

    ``completes``: the end completes what waits. ``latest``: the latest time of all tasks, up to which windows are closed before.
    """
    matcher: Matcher | None = None
    query = bound_query(text, schema, roles, language, functions)
    time = roles[1]
    kinds = pa.ipc.read_schema(pa.py_buffer(schema))
    context = Context(query.bound) if marked else None
    for table, marks in _tables(batches, kinds, marked):
        check_times(table, time)
        if matcher is None:  # not before: many tasks of a small job have no rows
            matcher = matcher_of(query, output, valuations, budget, timeouts=timeouts)
        own = table
        if context is not None and marks is not None:
            before, own = context.split(table, marks)
            if before.num_rows:
                matcher.prime(before)
        for found in matcher.iter_push(own):
            yield from pieces(found)
    if matcher is None:
        return
    if latest is not None:
        yield from pieces(matcher.advance(arrow_table(latest).column(0)[0].as_py()))
    if completes:
        yield from pieces(matcher.finish())


@lru_cache(maxsize=16)
def bound_query(text: str, schema: bytes, chosen: Roles, language: str, functions: Paths = ()) -> Query:
    """The query of a task; workers are reused, and so is what the query has compiled."""
    import_functions(functions)
    kinds = pa.ipc.read_schema(pa.py_buffer(schema))
    type, time, stream, time_unit = chosen
    return compile_query(text, kinds, type=type, time=time, stream=stream, time_unit=time_unit, language=language)


def matcher_of(
    query: Query, output: str, valuations: bool, budget: int | float | str | None, *, timeouts: bool = False
) -> Matcher:
    """A matcher at the beginning of a task's rows."""
    meter = meter_of_task(budget)
    return Matcher(
        query, output=output, positions=False, valuations=valuations, timeouts=timeouts, budget=meter, warn_after=None
    )


def check_times(table: pa.Table, time: str) -> None:
    """Raise a :class:`DataError` where an event has no time."""
    if nulls := table.column(time).null_count:
        raise DataError(f"column '{time}' (time) is NULL in {nulls} or more rows: drop them, or give them a time")


def _tables(
    batches: Iterator[pa.RecordBatch], kinds: pa.Schema, marked: bool
) -> Iterator[tuple[pa.Table, pa.ChunkedArray | None]]:
    """Spark's batches (10,000 rows unless set otherwise) in pieces as large as the matcher likes them, and their marks."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK:
            yield _bound_and_marks(waiting, kinds, marked)
            waiting, rows = [], 0
    if rows:
        yield _bound_and_marks(waiting, kinds, marked)


def whole_tables(batches: Iterator[pa.RecordBatch], kinds: pa.Schema) -> Iterator[pa.Table]:
    """Do what :func:`_tables` does, of events that have no marks."""
    return (table for table, _ in _tables(batches, kinds, False))


def _bound_and_marks(
    batches: Sequence[pa.RecordBatch], kinds: pa.Schema, marked: bool
) -> tuple[pa.Table, pa.ChunkedArray | None]:
    if not marked:
        return as_bound(batches, kinds), None
    columns = range(len(kinds))
    return as_bound([b.select(columns) for b in batches], kinds), pa.chunked_array([b.column(-1) for b in batches])


def as_bound(batches: Sequence[pa.RecordBatch], kinds: pa.Schema) -> pa.Table:
    """Batches as a table with the types the query is bound to: Spark's times have the session's time zone."""
    table = pa.Table.from_batches(batches).rename_columns(kinds.names)
    return table if table.schema.types == kinds.types else table.cast(kinds)


def pieces(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A result as batches of bounded size."""
    width = max(1, table.nbytes // max(1, table.num_rows))
    rows = min(_MOST_ROWS, max(RESULT_ROWS, _RESULT_BYTES // width))
    return (batch for batch in table.to_batches(max_chunksize=rows) if batch.num_rows)
