"""What one writes on Spark without pattern matching."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.data import MILLISECONDS_APART
from benchmarks.spark import queries
from benchmarks.spark.outcome import Comparison
from benchmarks.spark.streams import Stream
from benchmarks.spark.suite.options import Options
from benchmarks.spark.suite.sides import entry, spark_sides

__all__ = ["selfjoin"]


def selfjoin(options: Options) -> Iterator[Comparison]:
    """Self-joins with time bounds, and collect_list with a Python function.

    Windows hold a hundred events of an account. Joins pair all steps of an account before they look at the times, so that they
    get dearer with fewer accounts.
    """
    for keys in (1_000, 100):
        window = 100 * keys * MILLISECONDS_APART
        for length in (3, 6):
            case = f"{length} steps, {keys:,} keys"
            if not options.wants(case):
                continue
            found = Comparison("selfjoin", case, of="match", to=("self-joins", "collect_list"))
            entries = [
                entry("match", "match", query=queries.sequence(length, window, keyed=True)),
                entry("self-joins", "self_join", length=length, window=window),
                entry("collect_list", "collect_list", length=length, window=window),
            ]
            found.sides = spark_sides(options, Stream(options.rows or 0, keys), entries)
            found.same_matches()
            yield found
