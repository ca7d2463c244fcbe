"""Streams for tests: events cut into files, one file a micro-batch, read by a continuous query until nothing is left."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["add_file", "bag", "read_stream", "run"]


def add_file(folder: Path, table: pa.Table, number: int) -> None:
    """Make ``table`` the micro-batch ``number``: files are read in the order of their modification times."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{number:05}.parquet"
    pq.write_table(table, draft)
    os.utime(draft, (1_600_000_000 + number, 1_600_000_000 + number))
    draft.rename(folder / f"{number:05}.parquet")


def read_stream(spark: Any, folder: Path) -> Any:
    """The files as a streaming DataFrame, one a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


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


def bag(table: pa.Table, columns: Sequence[str] | None = None) -> list[str]:
    """The rows without positions, in an order of their own."""
    names = columns or [name for name in table.column_names if name not in ("start", "end", "positions")]
    return sorted(repr(row) for row in table.select(list(names)).to_pylist())
