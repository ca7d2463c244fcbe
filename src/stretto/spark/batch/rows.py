"""``MATCH_RECOGNIZE`` over a batch: the partitions of a clause, sorted, in tasks.

A task has many partitions, one behind the other, and matches as many whole ones at a time as make a piece of the usual size.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from stretto.column_types import with_fields
from stretto.languages.match_recognize import parse
from stretto.matching.sql.row_pattern_table import recognize
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import BoundRows, OrderItem
from stretto.spark.batch.survey import tasks_for
from stretto.spark.batch.worker import pieces, whole_tables
from stretto.spark.compat import named
from stretto.spark.frames import column, spark_schema
from stretto.spark.workers import worker_task

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

log = logging.getLogger("stretto")


def recognized(rows: DataFrame, bound: BoundRows) -> DataFrame:
    """What a clause gives over a DataFrame with the columns to which it is bound, and those of its keys and order.

    The plan is one shuffle, a sort, and a pass.
    """
    keys = [column(name) for name in bound.parsed.partition_by]
    if not keys:
        log.warning(
            "MATCH_RECOGNIZE without PARTITION BY runs in one task, on one core whatever the cluster has. Add PARTITION BY, so that "
            "Spark can run its parts side by side"
        )
    # mapInArrow takes a dot in a name for a field: the worker knows columns by place.
    shown = [column(name).alias(f"_{i}") for i, name in enumerate(bound.schema.names)]
    order = [_ordered(item) for item in bound.parsed.order_by]
    tasks = tasks_for(rows, None) if keys else 1
    rows = rows.repartition(*keys) if tasks is None else rows.repartition(tasks, *keys)
    if keys or order:
        rows = rows.sortWithinPartitions(*keys, *order)
    worker = partial(run_partitions, text=bound.parsed.text, schema=bound.schema.serialize().to_pybytes())
    worker = named(worker, bound.parsed.text)
    return rows.select(*shown).mapInArrow(worker, spark_schema(bound.output))


def explained(bound: BoundRows) -> str:
    """How Spark runs a clause, in words."""
    keys, order = bound.parsed.partition_by, tuple(one.column for one in bound.parsed.order_by)
    shuffle = (
        f"one shuffle by {', '.join(keys)}"
        if keys
        else "one task for all rows: without PARTITION BY nothing runs side by side"
    )
    sort = f", sorted by {', '.join((*keys, *order))}" if keys or order else ""
    travel = ", ".join(bound.schema.names) or "no columns"
    return f"{shuffle}{sort}, then mapInArrow in Python workers\nto the workers travel {travel}"


def _ordered(item: OrderItem) -> Column:
    own = column(item.column)
    if item.descending:
        return own.desc_nulls_first() if item.nulls_first else own.desc_nulls_last()
    return own.asc_nulls_first() if item.nulls_first else own.asc_nulls_last()


@worker_task
def run_partitions(batches: Iterator[pa.RecordBatch], *, text: str, schema: bytes) -> Iterator[pa.RecordBatch]:
    """Match a task's rows, which come sorted by the keys of the clause and then by its order."""
    bound = _bound(text, schema)
    for table in whole_partitions(whole_tables(batches, bound.schema), bound.parsed.partition_by):
        yield from pieces(recognize(bound, table))


@lru_cache(maxsize=16)
def _bound(text: str, schema: bytes) -> BoundRows:
    return bind(parse(text, window=True), pa.ipc.read_schema(pa.py_buffer(schema)))


def whole_partitions(tables: Iterable[pa.Table], keys: Sequence[str]) -> Iterator[pa.Table]:
    """Tables cut anew where a key ends, so that none holds a part of a partition only."""
    held: list[pa.Table] = []
    for table in tables:
        before = [held[-1].slice(held[-1].num_rows - 1)] if held else []
        last = _last_border(with_fields(pa.concat_tables([*before, table]), keys).select(list(keys)))
        if last:
            cut = last - len(before)
            yield pa.concat_tables([*held, table.slice(0, cut)])
            held = [table.slice(cut)]
        else:
            held.append(table)
    if held:
        yield pa.concat_tables(held)


def _last_border(keys: pa.Table) -> int:
    """The last row that has another key than the one before it; 0: there is none."""
    if keys.num_rows < 2 or not keys.num_columns:
        return 0
    borders = reduce(pc.or_, (_differs(one.slice(0, len(one) - 1), one.slice(1)) for one in keys.columns))
    found = pc.indices_nonzero(borders)
    return found[-1].as_py() + 1 if len(found) else 0


def _differs(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where values differ, as keys do: a NULL is like another NULL, and a NaN like another NaN."""
    differs = pc.fill_null(pc.not_equal(one, other), False)
    if pa.types.is_floating(one.type):
        both = pc.and_(pc.is_nan(one), pc.is_nan(other))
        differs = pc.and_not(differs, pc.fill_null(both, False))
    return pc.or_(differs, pc.xor(pc.is_null(one), pc.is_null(other)))
