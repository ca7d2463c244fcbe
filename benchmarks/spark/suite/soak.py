"""One continuous query for a long time: whether memory and state stay flat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.spark import process
from benchmarks.spark.outcome import Comparison, Side
from benchmarks.spark.suite.options import Options
from benchmarks.spark.suite.streaming import left_out, streaming_query, total, warm

__all__ = ["soak"]


def soak(options: Options) -> Iterator[Comparison]:
    """One continuous query for a long time: memory and state by micro-batch."""
    keys = options.keys[0] if len(options.keys) == 1 else 100_000
    query = streaming_query("sequence", keys)
    job = {
        "kind": "soak",
        "query": query,
        "keys": keys,
        "buckets": options.buckets,
        "cores": options.cores,
        "driver_memory": options.driver_memory,
        "batch_rows": options.batch_rows,
        "seconds": 60 * options.minutes,
        "check_rows": options.rows or 0,
    }
    result = process.run("stream", job)
    batches = result["batches"]
    timed = warm(batches)
    side = Side(
        "match",
        sum(batch["rows"] for batch in timed),
        [sum(batch["seconds"] for batch in timed)],
        matches=total(result, "matches"),
        resident_peak=result["resident_peak"],
        note=f"{len(timed)} batches, {keys:,} keys, events of {sum(b['rows'] for b in batches) / 360_000:,.1f} hours",
        raw=result,
    )
    levels = {
        "memory of Python": [batch["memory"]["python"] for batch in timed if "memory" in batch],
        "memory of Java": [batch["memory"]["java"] for batch in timed if "memory" in batch],
        "state": [int(batch["metrics"].get("state_bytes", 0)) for batch in timed],
        "state store's files": [batch.get("state_files", 0) for batch in timed],
    }
    wrong = _trouble(result)
    yield Comparison("soak", f"{options.minutes:g} minutes", [side], wrong=wrong)
    for name, values in levels.items():
        early, late = _settled(values)
        found = Comparison("soak", name, of=f"{name}, end over start", goal=1.1, at_most=True)
        found.value = late / early if early else None
        found.note = f"{early / 2**20:,.1f} MiB after a fifth of the batches, {late / 2**20:,.1f} MiB at the end (medians of a fifth)"
        yield found


def _settled(values: list[int]) -> tuple[float, float]:
    """The medians of the second and of the last fifth."""
    fifth = max(len(values) // 5, 1)

    def middle(part: list[int]) -> float:
        return float(sorted(part)[len(part) // 2]) if part else 0.0

    return middle(values[fifth : 2 * fifth]), middle(values[-fifth:])


def _trouble(result: dict[str, Any]) -> str:
    """What is wrong: events that took no part, or other matches than those of the batch call over the first events."""
    if trouble := left_out(result):
        return trouble
    first = result["checked_batches"]
    if not first:
        return "too few micro-batches to compare their matches: run longer, or with smaller --batch-rows"
    # The watermark passes a batch's events, but for the last one, in the batch after it.
    seen = int(sum(batch["metrics"].get("matches", 0) for batch in result["batches"][: first + 1]))
    if seen != result["expected"]:
        return f"the first {first} batches give {seen:,} matches, the batch call {result['expected']:,}"
    return ""
