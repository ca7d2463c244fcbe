"""Arrow tables in single rows: how batches of events travel to a state and results travel back.

``transformWithState`` has no Arrow form: it hands over rows as Python objects or pandas frames. So each task of the stage
before it packs its events into one row for each bucket, which holds them as Arrow IPC bytes, and a stage after it unpacks
the results. Spark shuffles a few wide rows in place of many, and no Python object is made for an event or a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from stretto.frame import arrow_bytes, arrow_table
from stretto.spark.batch.worker import as_bound, pieces
from stretto.spark.workers import worker_task

#: Rows that a task gathers before it packs them.
GATHERED = 1 << 18

#: A packed row: the bucket, where the events come from and in which order (for ties in time), and the events.
PACKED = "bucket bigint, source int, number int, data binary"


@worker_task
def pack(batches: Iterator[pa.RecordBatch], *, schema: bytes) -> Iterator[pa.RecordBatch]:
    """Events as packed rows; the last column of the input is the bucket. The metadata of the schema goes along.

    Bucket 0 gets a row in any case, an empty one if need be, also of a task without events: its state tells whether the checkpoint
    belongs to the query, and a micro-batch whose events are all of no use to a wrong query must not be committed by it.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    source = context.partitionId() if context is not None else 0
    kinds = pa.ipc.read_schema(pa.py_buffer(schema))
    number = -1
    for number, gathered in enumerate(_gathered(batches)):
        buckets = gathered[0].schema.names[-1]
        bucket = np.concatenate([b.column(buckets).to_numpy(zero_copy_only=False) for b in gathered])
        events = as_bound([b.drop_columns([buckets]) for b in gathered], kinds).replace_schema_metadata(kinds.metadata)
        yield _packed(events, bucket, source, number)
    if number < 0:
        yield _rows([0], source, 0, [b""])


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= GATHERED:
            yield waiting
            waiting, rows = [], 0
    if waiting:
        yield waiting


def _packed(events: pa.Table, bucket: np.ndarray, source: int, number: int) -> pa.RecordBatch:
    """One row for each bucket that has events, and one for bucket 0."""
    present, first, counts = np.unique(bucket, return_index=True, return_counts=True)
    if present.size > 1:
        order = np.argsort(bucket, kind="stable")
        events = events.take(pa.array(order))
        first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    events = events.combine_chunks()
    data = [write_table(events.slice(int(at), int(count))) for at, count in zip(first, counts, strict=True)]
    if present[0] != 0:
        present = np.concatenate(([0], present))
        data.insert(0, b"")
    return _rows(present, source, number, data)


def _rows(buckets: Iterable[int], source: int, number: int, data: Sequence[bytes]) -> pa.RecordBatch:
    """Packed rows of one source and number."""
    return pa.record_batch(
        {
            "bucket": pa.array(buckets, pa.int64()),
            "source": pa.array([source] * len(data), pa.int32()),
            "number": pa.array([number] * len(data), pa.int32()),
            "data": pa.array(data, pa.binary()),
        }
    )


@worker_task
def unpack(
    batches: Iterator[pa.RecordBatch], *, schema: bytes, late: bytes | None, late_name: str
) -> Iterator[pa.RecordBatch]:
    """The tables in the rows, one after the other: the first column holds matches, the second late events.

    Late events are shown in a column of structs beside those of the matches, if ``late`` (their schema) is given.
    """
    found = pa.ipc.read_schema(pa.py_buffer(schema))
    aside = None if late is None else pa.ipc.read_schema(pa.py_buffer(late))
    for batch in batches:
        for matches, events in zip(batch.column(0), batch.column(1), strict=True):
            if matches.is_valid:
                table = arrow_table(matches.as_buffer()).cast(found)
                yield from pieces(table if aside is None else _with_nulls(table, with_late(found, aside)))
            if events.is_valid and aside is not None:
                table = arrow_table(events.as_buffer())
                table = (table if table.num_columns == len(aside) else _with_nulls(table, aside)).cast(aside)
                structs = pa.table({late_name: table.to_struct_array()})
                yield from pieces(_with_nulls(structs, with_late(found, aside)))


def late_column(found: pa.Schema) -> str:
    """The name of the column of late events: ``late``, with underscores behind it if a result column has that name."""
    name = "late"
    while name in found.names:
        name += "_"
    return name


def with_late(found: pa.Schema, late: pa.Schema) -> pa.Schema:
    """The schema of matches and late events together."""
    return found.append(pa.field(late_column(found), pa.struct(list(late))))


def _with_nulls(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns that it lacks, NULL throughout."""
    columns = [
        table.column(field.name) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def write_table(table: pa.Table | pa.RecordBatch) -> bytes:
    """A table as Arrow IPC bytes, as rows of Spark take them."""
    written: bytes = arrow_bytes(table).to_pybytes()
    return written


class Arrived(NamedTuple):
    """What a micro-batch has for a bucket; ``None``: nothing of the kind."""

    events: pa.Table | None
    changes: pa.Table | None


def arrived(rows: Sequence[tuple[int, int, bytes]]) -> Arrived:
    """The packed rows of a bucket as tables, in an order that does not depend on the shuffle."""
    tables: tuple[list[pa.Table], list[pa.Table]] = ([], [])
    for source, _, data in sorted(rows, key=lambda row: row[:2]):
        if data:
            tables[source < 0].append(arrow_table(data))
    return Arrived(*(pa.concat_tables(parts) if parts else None for parts in tables))


@worker_task
def pack_changes(batches: Iterator[pa.RecordBatch], *, buckets: int) -> Iterator[pa.RecordBatch]:
    """Changes of patterns as packed rows, one for each bucket: all keys must know them. Their sources are negative."""
    from pyspark import TaskContext

    context = TaskContext.get()
    source = -1 - (context.partitionId() if context is not None else 0)
    for number, batch in enumerate(batches):
        if batch.num_rows:
            yield _rows(range(buckets), source, number, [write_table(batch)] * buckets)
