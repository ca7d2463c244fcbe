"""One ``stretto.Matcher`` over a long generated stream, batch by batch, with its memory after each batch."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

from benchmarks.data import stock_batches
from benchmarks.workers import core, resident


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Push every batch; only the pushes are timed, not the making of the batches."""
    import stretto

    pa.set_cpu_count(1)
    matcher: Any = None
    seconds = 0.0
    matches = 0
    samples: list[int] = []
    for batch in stock_batches(job["rows"]):
        if matcher is None:
            matcher = stretto.Matcher(job["query"], schema=batch.schema, output="positions")
        start = time.perf_counter()
        found = matcher.push(batch)
        seconds += time.perf_counter() - start
        matches += len(found)
        samples.append(resident.resident())
    matches += len(matcher.finish())
    return {
        "seconds": [seconds],
        "events": job["rows"],
        "matches": matches,
        "resident_samples": samples,
        "snapshot_bytes": None,
    }


if __name__ == "__main__":
    core.main(work)
