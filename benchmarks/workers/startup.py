"""A newcomer's first query: everything from the first import on."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.workers import core


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Import, match once, and say how long each took (pyarrow is imported before only to read the file)."""
    start = time.perf_counter()
    import pyarrow as pa

    with pa.OSFile(job["events"], "rb") as file:
        table = pa.ipc.open_file(file).read_all()
    read = time.perf_counter()
    import stretto

    imported = time.perf_counter()
    found = stretto.match(job["query"], table, output="positions")
    done = time.perf_counter()
    return {
        "seconds": [done - start],
        "read_seconds": read - start,
        "import_seconds": imported - read,
        "match_seconds": done - imported,
        "events": len(table),
        "matches": len(found),
    }


if __name__ == "__main__":
    core.main(work)
