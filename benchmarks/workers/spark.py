"""``stretto.spark.match`` over a Parquet file, against ``mapInArrow`` passes that only count rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from benchmarks.workers import core

ROWS = "rows long"


def count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What every pass through Python costs at least."""
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": pa.array([rows])})


def timed(action: Callable[[], Any], repeat: int) -> tuple[list[float], Any]:
    """Seconds of ``repeat`` runs after an untimed one, and what the last one gave."""
    action()
    seconds = []
    result = None
    for _ in range(repeat):
        start = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - start)
    return seconds, result


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Match, and three passes that count: over all columns, over the query's, and over the query's in order."""
    from pyspark.sql import functions as F

    import stretto.spark

    spark = stretto.spark.session("benchmarks")
    events = spark.read.parquet(job["events"])
    needed = events.select(*job["columns"])
    keyed = needed.repartition(job["partition"]) if job["partition"] else needed.coalesce(1)
    passes = {
        "count_all_seconds": events,
        "count_needed_seconds": needed,
        "count_ordered_seconds": keyed.sortWithinPartitions(job["time"]),
    }

    def counted(frame: Any) -> int:
        return int(frame.mapInArrow(count_rows, ROWS).agg(F.sum("rows")).first()[0])

    def matched() -> int:
        return int(stretto.spark.match(events, job["query"], time=job["time"], output="positions").count())

    result: dict[str, Any] = {"events": 0}
    for name, frame in passes.items():
        result[name], result["events"] = timed(lambda frame=frame: counted(frame), job["repeat"])
    result["seconds"], result["matches"] = timed(matched, job["repeat"])
    spark.stop()
    return result


if __name__ == "__main__":
    core.main(work, one_core=False)
