"""Looking at a DataFrame before it is matched: how large it is, how it lies along its time, which keys are frequent.

Each function but the first two runs one Spark job over the columns it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stretto.engines.tecs.windows import values_of
from stretto.errors import DataError
from stretto.spark.borders import place
from stretto.spark.frames import column
from stretto.spark.slices import Cells

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Frequent", "cells_along", "count_cells", "frequent", "key_hash", "plan_bytes", "task_slots"]

#: Times and keys are looked at in full up to so many bytes, as Spark estimates them, and beyond that in a sample.
IN_FULL = 1 << 22
SAMPLE = 0.1
_SEED = 0x57_4E_77_05  # any number that data are unlikely to be made with


@dataclass(frozen=True)
class Frequent:
    """Keys with one hash that hold many rows."""

    hash: int
    #: About which part of all rows.
    share: float
    #: One of the keys, for people.
    example: str
    cells: Cells


def plan_bytes(df: DataFrame) -> int | None:
    """Spark's estimate of a DataFrame's size, without a job; ``None``: the client does not tell (Spark Connect)."""
    if not hasattr(df, "_jdf"):
        return None
    return int(str(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def task_slots(df: DataFrame) -> int:
    """How many tasks run at a time."""
    from pyspark.sql import functions as F

    session = df.sparkSession
    if hasattr(df, "_jdf"):
        return int(session.sparkContext.defaultParallelism)
    # What Spark Connect shows of it: how many partitions a range has.
    parts = session.range(1 << 16).select(F.spark_partition_id().alias("part")).agg(F.max("part"))
    return int(parts.collect()[0][0]) + 1


def cells_along(df: DataFrame, time: str, cells: int, *, full: bool) -> Cells | None:
    """Cells with about as many rows each; ``None``: there are no rows, or a time that the engine will refuse.

    ``full``: look at all rows, whatever it costs.
    """
    looked_at, part = _sample(df.select(column(time)), full)
    found = looked_at.agg(*_measured(time, cells)).toArrow()
    return _cells_of(found.column(0)[0].as_py(), found.column(1)[0].values, time, part)


def _measured(time: str, cells: int) -> list[Column]:
    from pyspark.sql import functions as F

    probabilities = [(k + 0.5) / cells for k in range(cells)]
    return [F.count(F.lit(1)), F.percentile_approx(column(time), probabilities, max(10_000, 4 * cells))]


def _cells_of(rows: int, quantiles: pa.Array | None, time: str, part: float) -> Cells | None:
    if not rows or quantiles is None or not len(quantiles):
        return None
    try:
        return Cells.of_quantiles(values_of(quantiles, time, 0), round(rows / part))
    except DataError:
        return None


def _sample(df: DataFrame, full: bool) -> tuple[DataFrame, float]:
    """All rows of a small DataFrame, some of a large one, and which part that is."""
    size = plan_bytes(df)
    if full or (size is not None and size <= IN_FULL):
        return df, 1.0
    return df.sample(SAMPLE, _SEED), SAMPLE


def count_cells(df: DataFrame, time: str, kind: pa.DataType, cells: Cells, measured: str | None) -> Cells | None:
    """The cells with exact counts, and with the extremes of the attribute ``measured``.

    ``None``: that has no extremes in some cell.
    """
    from pyspark.sql import functions as F

    at = place(column(time), kind, cells.edges.tolist()).alias("cell")
    counts = [F.count(F.lit(1)).alias("rows")]
    wanted = [column(time)]
    if measured is not None:
        wanted.append(column(measured))
        counts += [F.min(column(measured)).alias("least"), F.max(column(measured)).alias("most")]
    table = df.select(*wanted).groupBy(at).agg(*counts).toArrow().sort_by("cell").combine_chunks()
    if not table.num_rows:
        return None
    numbers = [np.asarray(table.column(name).to_numpy()).astype(np.int64) for name in ("cell", "rows")]
    if measured is None:
        return cells.counted(*numbers)
    try:
        extremes: list[Any] = [values_of(table.column(name), measured, 0) for name in ("least", "most")]
    except DataError:
        return None
    return cells.counted(*numbers, *extremes)


def key_hash(keys: Sequence[str]) -> Column:
    """A number that equal keys share. NaN equals itself and −0.0 equals 0.0, here as in ``repartition``."""
    from pyspark.sql import functions as F

    return F.xxhash64(*map(column, keys))


def frequent(
    df: DataFrame, keys: Sequence[str], time: str, *, share: float, least: int, most: int, cells: int, full: bool
) -> tuple[Frequent, ...]:
    """The keys that hold more than ``share`` of the rows, and at least ``least`` rows; at most ``most`` of them.

    Keys are told apart by their hash: two keys of one hash count as one, which costs time and changes no result.
    """
    from pyspark.sql import functions as F

    looked_at, part = _sample(df.select(key_hash(keys).alias("key")), full)
    top = F.call_function("approx_top_k", F.col("key"), F.lit(most), F.lit(max(10_000, 4 * most)))
    rows, tops = looked_at.agg(F.count(F.lit(1)), top).collect()[0]
    heavy = [one for one in tops or () if one["count"] > share * rows and one["count"] >= least * part]
    shares = {one.item: one["count"] / rows for one in heavy}
    if not shares:
        return ()
    wanted = df.select(
        key_hash(keys).alias("key"), F.to_json(F.struct(*map(column, keys))).alias("example"), column(time)
    )
    looked_at, part = _sample(wanted, full)
    found = looked_at.filter(F.col("key").isin(list(shares))).groupBy("key")
    table = found.agg(*_measured(time, cells), F.min("example")).toArrow()
    kept = []
    for number in range(table.num_rows):
        hashed, count, quantiles, example = (table.column(i)[number] for i in range(4))
        there = _cells_of(count.as_py(), quantiles.values, time, part)
        if there is not None:
            kept.append(Frequent(hashed.as_py(), shares[hashed.as_py()], example.as_py(), there))
    return tuple(sorted(kept, key=lambda one: (-one.share, one.hash)))
