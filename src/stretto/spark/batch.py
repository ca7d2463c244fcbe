"""Matching over batch DataFrames: hash by the keys, sort by time inside the partitions, one pass over Arrow.

A task's partition holds many keys, interleaved and ordered by time, and goes batch by batch through one
:class:`stretto.Matcher`: no Python code runs per key or per row, and memory is what the query's windows hold.
Queries that relate all events (no ``PARTITION BY``, or ``CONSUME BY ANY``, which forgets across partitions)
run in one task.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from stretto.pattern.query import Consume
from stretto.spark.frames import column, spark_schema
from stretto.spark.worker import run_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from stretto.spark.call import Prepared

__all__ = ["match"]


def match(call: Prepared, *, partitions: int | None) -> DataFrame:
    """The matches of a checked call as a DataFrame; ``partitions`` as in :func:`stretto.spark.match`."""
    ordered = _in_order(call, partitions)
    return ordered.mapInArrow(partial(run_partition, **call.task), spark_schema(call.layout.schema()))


def _in_order(call: Prepared, partitions: int | None) -> DataFrame:
    """The columns that matter, each key in one partition, every partition ordered by time."""
    kept = list(dict.fromkeys([*call.columns, *call.order]))
    keys = [column(name) for name in call.query.partition_by]
    rows = call.events.select(*map(column, kept))
    for key in keys:
        rows = rows.filter(key.isNotNull())
    if not keys or call.query.consume is Consume.ANY:
        rows = rows.repartition(1)
    elif partitions is None:
        rows = rows.repartition(*keys)
    else:
        rows = rows.repartition(partitions, *keys)
    # mapInArrow looks columns up by name and takes a dot for a field: the worker knows them by place.
    plain = not any(character in name for name in call.columns for character in ".`")
    shown = [column(name) if plain else column(name).alias(f"_{i}") for i, name in enumerate(call.columns)]
    return rows.sortWithinPartitions(*map(column, call.order)).select(*shown)
