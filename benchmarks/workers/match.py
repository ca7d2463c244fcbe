"""``stretto.match`` over one table: Arrow in, Arrow out, warm."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.workers import core, resident


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One untimed run, then as many timed ones as fit the budget, at least three and at most ``repeat``."""
    import stretto

    pa.set_cpu_count(1)
    with pa.OSFile(job["events"], "rb") as file:
        table = pa.ipc.open_file(file).read_all()
    found = stretto.match(job["query"], table, output="positions")
    before = resident.resident()
    resident.reset_peak()
    seconds: list[float] = []
    begin = time.perf_counter()
    while len(seconds) < 3 or (len(seconds) < job["repeat"] and time.perf_counter() - begin < job["budget"]):
        start = time.perf_counter()
        found = stretto.match(job["query"], table, output="positions")
        seconds.append(time.perf_counter() - start)
    ends = found["end"]
    compared = pc.less(ends, job["compare_rows"])
    return {
        "seconds": seconds,
        "events": len(table),
        "matches": len(found),
        "triggers": pc.count_distinct(ends).as_py(),
        "matches_compared": len(found.filter(compared)),
        "triggers_compared": pc.count_distinct(ends.filter(compared)).as_py(),
        "resident_before": before,
        "resident_peak": resident.peak(),
    }


if __name__ == "__main__":
    core.main(work)
