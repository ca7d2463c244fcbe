"""Looking at a DataFrame before it is matched: how large it is, how it lies along its time, which keys are frequent.

Times and keys are looked at in a sample of about 100,000 rows, which one Spark job over these columns brings to the caller.
Where slices begin is all that depends on it, never what a slice finds.

Slices that read their own part of the files: no shuffle, where files lie along the time.

Files that were written in the order of the stream, as most are, hold one stretch of time each. A slice then is a filter on
the time, which Parquet and ORC answer from the statistics of their row groups without reading the others. What is cut this way
costs one reading of the files and a sort in each task; a shuffle costs several times as much.

Whether files lie so is seen in a sample; a filter is exact, whatever the sample says. Plans can be looked into with classic
sessions only: with Spark Connect, slices are shuffled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.columns.measured import values_of
from stretto.errors import DataError
from stretto.spark.batch.slices import Cells, Number, Pieces, Slices, behind, place
from stretto.spark.batch.worker import CONTEXT, REACHES
from stretto.spark.compat import executed_plan, is_classic, optimized_plan, to_arrow
from stretto.spark.frames import column
from stretto.spark.prepared import Prepared

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


#: A sample has about so many rows; all rows of smaller DataFrames are taken.
SAMPLE = 100_000
_SEED = 0x57_4E_77_05  # no number that data are likely to be made with: Spark's rand() and sample() share a generator

#: DataFrames below this size, as Spark estimates it, run without being looked at first, and in few tasks.
SMALL = 1 << 20

#: A row has at least about so many bytes where Spark estimates sizes.
_LEAST_BYTES = 8

#: What Spark says where it knows nothing is in the exabytes.
_UNKNOWN = 1 << 60


@dataclass(frozen=True)
class Frequent:
    """Keys with one hash that hold many rows."""

    hash: int
    #: About which part of all rows.
    share: float
    cells: Cells


def plan_bytes(df: DataFrame) -> int | None:
    """Spark's estimate of a DataFrame's size, without a job; ``None``: not known, as always with Spark Connect."""
    if not is_classic(df):
        return None
    size = int(str(optimized_plan(df).stats().sizeInBytes()))
    return size if size < _UNKNOWN else None


def task_slots(df: DataFrame) -> int:
    """How many tasks run at a time."""
    from pyspark.sql import functions as F

    session = df.sparkSession
    if is_classic(df):
        return int(session.sparkContext.defaultParallelism)
    # What Spark Connect shows of it: how many partitions a range has.
    parts = session.range(1 << 16).select(F.spark_partition_id().alias("part")).agg(F.max("part"))
    return int(parts.collect()[0][0]) + 1


def tasks_for(df: DataFrame, asked: int | None) -> int | None:
    """Into how many tasks keys are hashed: so many as are ``asked`` for, or as ``spark.sql.shuffle.partitions`` says.

    Without a number, adaptive execution packs tasks by their bytes, which say nothing of the work of matching. Of few bytes there
    are no more tasks than run at a time. ``None``: the setting is no number, and Spark decides.
    """
    if asked is not None:
        return asked
    setting = str(df.sparkSession.conf.get("spark.sql.shuffle.partitions", "200"))
    if not setting.isdigit():
        return None
    size = plan_bytes(df)
    return min(int(setting), task_slots(df)) if size is not None and size < SMALL else int(setting)


def cells_along(df: DataFrame, time: str, cells: int) -> tuple[Cells, Pieces | None] | None:
    """At most ``cells`` cells with about as many rows each, and the parts of the files, if it is files that can be skipped.

    ``None``: there are no rows, or a time that the engine will refuse.
    """
    wanted = df.select(column(time))
    files = can_skip(df, time)
    sample, part = _sample(with_piece(wanted) if files else wanted, 8 * cells)
    found = _cells_of(sample.column(0), time, cells, part)
    return None if found is None else (found, pieces_of(sample) if files else None)


def _cells_of(times: pa.ChunkedArray, name: str, cells: int, part: float) -> Cells | None:
    if not len(times):
        return None
    try:
        return Cells.of_times(values_of(times.combine_chunks(), name, 0), cells, round(len(times) / part))
    except DataError:
        return None


def _sample(df: DataFrame, least: int) -> tuple[pa.Table, float]:
    """Some of a DataFrame's rows, all if they are few, and which part that is; ``least``: rows that are needed at any rate."""
    size = plan_bytes(df)
    rows = df.count() if size is None else size // _LEAST_BYTES
    wanted = max(SAMPLE, least)
    if rows <= wanted:
        return to_arrow(df), 1.0
    return to_arrow(df.sample(wanted / rows, _SEED)), wanted / rows


def count_cells(df: DataFrame, time: str, kind: pa.DataType, cells: Cells, measured: str | None) -> Cells | None:
    """The cells with exact counts, and with the extremes of the attribute ``measured``. Reads all rows.

    ``None``: there are no rows, or the attribute has no extremes in some cell.
    """
    from pyspark.sql import functions as F

    at = place(column(time), kind, cells.edges.tolist()).alias("cell")
    counts = [F.count(F.lit(1)).alias("rows")]
    wanted = [column(time)]
    if measured is not None:
        wanted.append(column(measured))
        counts += [F.min(column(measured)).alias("least"), F.max(column(measured)).alias("most")]
    table = to_arrow(df.select(*wanted).groupBy(at).agg(*counts)).sort_by("cell").combine_chunks()
    if not table.num_rows:
        return None
    numbers = [np.asarray(table.column(name).to_numpy()).astype(np.int64) for name in ("cell", "rows")]
    if measured is None:
        return cells.counted(*numbers)
    try:
        extremes: list[NDArray[Any]] = [values_of(table.column(name), measured, 0) for name in ("least", "most")]
    except DataError:
        return None
    return cells.counted(*numbers, *extremes)


def key_hash(keys: Sequence[str]) -> Column:
    """A number that equal keys share. NaN equals itself and −0.0 equals 0.0, here as in ``repartition``."""
    from pyspark.sql import functions as F

    return F.xxhash64(*map(column, keys))


def frequent(
    df: DataFrame, keys: Sequence[str], time: str, *, share: float, least: int, most: int, cells: int
) -> tuple[Frequent, ...]:
    """The keys that hold more than ``share`` of the rows, and at least ``least`` rows; at most ``most`` of them.

    Keys are told apart by their hash: two keys of one hash count as one, which costs time and changes no result.
    """
    sample, part = _sample(df.select(key_hash(keys).alias("key"), column(time)), 8 * cells)
    hashes, counts = np.unique(np.asarray(sample.column(0).to_numpy()), return_counts=True)
    enough = (counts > share * sample.num_rows) & (counts >= least * part)
    order = np.flatnonzero(enough)[np.argsort(-counts[enough], kind="stable")][:most]
    found = []
    for hashed, count in zip(hashes[order].tolist(), counts[order].tolist(), strict=True):
        mine = sample.filter(pa.array(np.asarray(sample.column(0).to_numpy()) == hashed))
        there = _cells_of(mine.column(1), time, cells, part)
        if there is not None:
            found.append(Frequent(hashed, count / sample.num_rows, there))
    return tuple(found)


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
