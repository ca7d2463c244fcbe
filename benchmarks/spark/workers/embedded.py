"""The query in one process, without Spark: the same Parquet files through one ``stretto.Matcher``, on one core."""

from __future__ import annotations

import time as clock
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from benchmarks.workers import core, resident

COLUMNS = ["type", "name", "price", "move", "account", "volume"]


def run(folder: str, query: str, time: str = "millis", but_last: int = 0) -> tuple[int, int]:
    """Matches and rows of a folder but for its last rows, file by file, each read and pushed."""
    import stretto

    matcher = stretto.Matcher(query, time=time, output="positions")
    matches = rows = 0
    paths = sorted(Path(folder).glob("*.parquet"))
    left = sum(parquet.read_metadata(path).num_rows for path in paths) - but_last
    columns = [name for name in COLUMNS if name == "type" or name in query]
    for path in paths:
        table = parquet.read_table(path, columns=[*columns, time], use_threads=False)
        table = table.slice(0, max(left, 0))
        left -= table.num_rows
        rows += table.num_rows
        for found in matcher.iter_push(table):
            matches += found.num_rows
    return matches + matcher.finish().num_rows, rows


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One untimed run over ``warm``, then ``repeat`` over ``events``."""
    pa.set_cpu_count(1)
    how = (job["query"], job.get("time", "millis"), job.get("but_last", 0))
    run(job["warm"], *how)
    resident.reset_peak()
    seconds = []
    matches = rows = 0
    for _ in range(job["repeat"]):
        start = clock.perf_counter()
        matches, rows = run(job["events"], *how)
        seconds.append(clock.perf_counter() - start)
    return {"seconds": seconds, "matches": matches, "events": rows, "resident_peak": resident.peak()}


if __name__ == "__main__":
    core.main(work)
