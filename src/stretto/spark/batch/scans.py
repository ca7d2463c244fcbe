"""Slices that read their own part of the files: no shuffle, where files lie along the time.

Files that were written in the order of the stream, as most are, hold one stretch of time each. A slice then is a filter on
the time, which Parquet and ORC answer from the statistics of their row groups without reading the others. What is cut this way
costs one reading of the files and a sort in each task; a shuffle costs several times as much.

Whether files lie so is seen in a sample; a filter is exact, whatever the sample says. Plans can be looked into with classic
sessions only: with Spark Connect, slices are shuffled.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from stretto.columns.measured import values_of
from stretto.errors import DataError
from stretto.spark.batch.borders import behind
from stretto.spark.batch.context import CONTEXT, REACHES
from stretto.spark.batch.slices import Number, Pieces, Slices
from stretto.spark.compat import executed_plan, is_classic, optimized_plan, to_arrow
from stretto.spark.frames import column
from stretto.spark.prepared import Prepared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Formats that keep the extremes of their parts.
FORMATS = ("Parquet", "ORC")

#: What may lie between the files and the events: conditions and columns.
NARROW = ("Filter", "Project")

PIECE = "_piece"


def can_skip(df: DataFrame, time: str) -> bool:
    """Whether a DataFrame is read from files, with nothing but conditions and columns between, and its time is one of theirs."""
    if not is_classic(df):
        return False
    plan = optimized_plan(df.select(column(time)))
    wanted = plan.output().head().exprId()
    while plan.children().size() == 1 and str(plan.nodeName()) in NARROW:
        plan = plan.children().head()
    if str(plan.nodeName()) != "LogicalRelation" or not hasattr(plan.relation(), "fileFormat"):
        return False
    names = plan.output()
    is_column = any(names.apply(i).exprId().equals(wanted) for i in range(names.size()))
    return is_column and str(plan.relation().fileFormat().toString()) in FORMATS


def with_piece(df: DataFrame) -> DataFrame:
    """A DataFrame of files with a number for the part of a file that a row is from."""
    from pyspark.sql import functions as F

    return df.withColumn(PIECE, F.xxhash64(F.input_file_name(), F.input_file_block_start()))


def pieces_of(sample: pa.Table) -> Pieces | None:
    """From when to when each part of the files reaches, by a sample of times and parts; ``None``: a time is NULL or the like."""
    table = pa.TableGroupBy(sample.rename_columns(["time", "piece"]), "piece").aggregate(
        [("time", "min"), ("time", "max"), ("time", "count")]
    )
    try:
        least, most = (values_of(table.column(f"time_{end}").combine_chunks(), "time", 0) for end in ("min", "max"))
    except DataError:
        return None
    return Pieces(least, most, np.asarray(table.column("time_count").to_numpy()))


def skips(df: DataFrame, time: str, kind: pa.DataType, before: Number) -> bool:
    """Whether files are skipped indeed: a filter for times before ``before``, where hardly any are, reads next to nothing.

    Old Parquet files keep no extremes of their times (INT96). A Spark job over the files' footers, or, if they do not
    help, over the column for the time.
    """
    found = df.select(column(time)).filter(~behind(column(time), kind, before))
    rows = to_arrow(found).num_rows
    leaves = executed_plan(found).collectLeaves()
    read = leaves.head().metrics().get("numOutputRows")
    return bool(leaves.size() == 1 and read.isDefined() and int(read.get().value()) <= rows)


def in_slices(call: Prepared, rows: DataFrame, slices: Slices) -> list[DataFrame]:
    """The rows of each slice, in one partition and ordered by time, with a column of marks behind the others."""
    ends: list[Number | None] = [*slices.begins, None]
    begins: list[Number | None] = [None, *slices.begins]
    lows: list[Number | None] = [None, *slices.lows]
    return [_slice(call, rows, *borders) for borders in zip(lows, begins, ends, strict=True)]


def _slice(call: Prepared, rows: DataFrame, low: Number | None, begin: Number | None, end: Number | None) -> DataFrame:
    """The rows from ``low`` up to ``end``, and as context those before ``begin``; ``None``: no border there."""
    from pyspark.sql import functions as F

    time, kind = column(call.roles[1]), call.columns[call.roles[1]]
    mark = F.lit(0)
    if begin is None:
        # The worker says what is wrong with a time that is NULL.
        wanted = F.lit(True) if end is None else ~behind(time, kind, end) | time.isNull()
    else:
        wanted = F.lit(True) if low is None else behind(time, kind, low)
        if end is not None:
            wanted &= ~behind(time, kind, end)
        mark = F.when(behind(time, kind, begin), F.lit(0)).otherwise(F.lit(CONTEXT))
        mark += F.lit(0 if low is None else REACHES)
    names = {name: f"_{i}" for i, name in enumerate(dict.fromkeys([*call.columns, *call.order]))}
    found = rows.filter(wanted).select(
        *(column(name).alias(short) for name, short in names.items()), mark.alias("_mark")
    )
    ordered = found.coalesce(1).sortWithinPartitions(*(names[name] for name in call.order))
    return ordered.select(*(names[name] for name in call.columns), "_mark")


def side_by_side(parts: list[DataFrame]) -> DataFrame:
    """All rows of DataFrames with one partition each, as many partitions as DataFrames."""
    from pyspark.sql import functions as F

    first = parts[0]
    # Spark puts a union of single partitions into one partition, unless one of them is not single.
    none = first.sparkSession.range(0, 0, 1, 2).select(
        *(F.lit(None).cast(field.dataType).alias(field.name) for field in first.schema.fields)
    )
    return reduce(lambda left, right: left.unionAll(right), [*parts, none])
