"""Streams for tests: events cut into files, one file a micro-batch, read by a continuous query until nothing is left."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["add_file", "bag", "read_stream", "run", "run_together"]


def add_file(folder: Path, table: pa.Table, number: int) -> None:
    """Make ``table`` the micro-batch ``number``: files are read in the order of their modification times."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{number:05}.parquet"
    pq.write_table(table, draft)
    os.utime(draft, (1_600_000_000 + number, 1_600_000_000 + number))
    draft.rename(folder / f"{number:05}.parquet")


#: What Spark reads of files with some columns: to ask it takes a job.
_SCHEMAS: dict[pa.Schema, Any] = {}


def read_stream(spark: Any, folder: Path) -> Any:
    """The files as a streaming DataFrame, one a micro-batch; their columns are those of the first."""
    columns = pq.read_schema(min(folder.glob("*.parquet")))
    if columns not in _SCHEMAS:
        _SCHEMAS[columns] = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(_SCHEMAS[columns]).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(found: Any, checkpoint: Path, output: Path, write: Any = None) -> Any:
    """Read all that is there, with a checkpoint and a Parquet sink, or a writer; returns the ended query."""
    writer = found.writeStream.option("checkpointLocation", str(checkpoint)).outputMode("append")
    if write is None:
        writer = writer.format("parquet").option("path", str(output))
    else:
        writer = writer.foreachBatch(write)
    query = writer.trigger(availableNow=True).start()
    if not query.awaitTermination(900):
        query.stop()
        raise AssertionError("the query did not end within 900 seconds")
    return query


def run_together(streams: Mapping[str, Any], folder: Path) -> tuple[Any, dict[str, pa.Table]]:
    """Run streams as one continuous query, which takes a part of the time of one each; the ended query, and what each has given.

    Columns of the same name have the same type in all of them.
    """
    from pyspark.sql import functions as F

    named = [stream.withColumn("name of the stream", F.lit(name)) for name, stream in streams.items()]
    together = reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), named)
    query = run(together, folder / "checkpoint", folder / "out")
    rows = together.sparkSession.read.schema(together.schema).parquet(str(folder / "out")).toArrow()
    return query, {
        name: rows.filter(pc.equal(rows["name of the stream"], name)).select(stream.columns)
        for name, stream in streams.items()
    }


def bag(table: pa.Table, columns: Sequence[str] | None = None) -> list[str]:
    """The rows without positions, in an order of their own."""
    names = columns or [name for name in table.column_names if name not in ("start", "end", "positions")]
    return sorted(repr(row) for row in table.select(list(names)).to_pylist())
