"""The sides that several benchmarks have: Spark jobs in one session, and the query in one process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.spark import process
from benchmarks.spark.outcome import Comparison, Side
from benchmarks.spark.streams import Stream
from benchmarks.spark.suite.options import START_ROWS, WARM_ROWS, Options

__all__ = ["check_embedded", "embedded", "entry", "spark_sides"]


def entry(name: str, job: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "job": job, "options": options}


def spark_sides(
    options: Options, stream: Stream, entries: list[dict[str, Any]], *, cores: int | None = None
) -> list[Side]:
    """The entries over a stream in one session, in turn."""
    warm = replace(stream, rows=min(stream.rows, WARM_ROWS))
    job = {
        "cores": cores or options.cores,
        "driver_memory": options.driver_memory,
        "events": str(stream.folder()),
        "warm": str(warm.folder()),
        "start": str(replace(stream, rows=START_ROWS).folder()),
        "repeat": options.repeat,
        "sides": entries,
    }
    results = process.run("batch", job)
    return [
        Side(
            name,
            stream.rows,
            result["seconds"],
            matches=result["matches"],
            start=result["start"],
            resident_peak=result["resident_peak"],
            raw={"warm_up": result["warm_up"]},
            processor=result["processor"],
        )
        for name, result in results.items()
    ]


def embedded(stream: Stream, query: str, repeat: int) -> Side:
    """The query without Spark."""
    warm = replace(stream, rows=min(stream.rows, WARM_ROWS))
    job = {"events": str(stream.folder()), "warm": str(warm.folder()), "query": query, "repeat": repeat}
    result = process.run("embedded", job)
    return Side(
        "in one process",
        result["events"],
        result["seconds"],
        matches=result["matches"],
        resident_peak=result["resident_peak"],
        note="no Spark, one core",
    )


def check_embedded(found: Comparison, stream: Stream, query: str) -> None:
    """Compare the matches with those of one ordered pass over the files."""
    found.sides.append(embedded(stream, query, 1))
    found.same_matches()
