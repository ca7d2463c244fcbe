"""The query in one process, on one core, without Spark: the same Parquet files through a ``stretto.Matcher`` or ``stretto.sql``."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from functools import partial
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


def run_clause(folder: str, clause: str) -> tuple[int, int]:
    """Rows that a ``MATCH_RECOGNIZE`` clause gives over a folder, and how many it reads."""
    import stretto

    columns = [name for name in (*COLUMNS, "millis") if name in clause]
    events = parquet.read_table(folder, columns=columns, use_threads=False)
    return stretto.sql(f"SELECT * FROM events {clause}", progress=False, events=events).num_rows, events.num_rows


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One untimed run over ``warm``, then ``repeat`` over ``events``."""
    pa.set_cpu_count(1)
    read: Callable[[str], tuple[int, int]]
    if job["query"].startswith("MATCH_RECOGNIZE"):
        read = partial(run_clause, clause=job["query"])
    else:
        read = partial(run, query=job["query"], time=job.get("time", "millis"), but_last=job.get("but_last", 0))
    read(job["warm"])
    resident.reset_peak()
    seconds = []
    matches = rows = 0
    for _ in range(job["repeat"]):
        start = clock.perf_counter()
        matches, rows = read(job["events"])
        seconds.append(clock.perf_counter() - start)
    return {"seconds": seconds, "matches": matches, "events": rows, "resident_peak": resident.peak()}


if __name__ == "__main__":
    core.main(work)
