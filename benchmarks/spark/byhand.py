"""What one writes on Spark without pattern matching: joins of a table with itself, or a Python function for each key."""

from __future__ import annotations

from typing import Any

from benchmarks.spark.queries import STEPS

__all__ = ["collect_list", "count_sequences", "self_join"]


def self_join(spark: Any, events: Any, *, length: int, window: int) -> int:
    """A join for each further step: the same account, later than the step before, within the window of the first."""
    from pyspark.sql import functions as F

    joined = _step(events, 0)
    for number in range(1, length):
        later = F.col(f"t{number}") > F.col(f"t{number - 1}")
        inside = F.col(f"t{number}") <= F.col("t0") + window
        joined = joined.join(_step(events, number), "account").filter(later & inside)
    return int(joined.count())


def _step(events: Any, number: int) -> Any:
    kind, name = STEPS[number]
    return events.filter(f"type = '{kind}' AND name = '{name}'").selectExpr("account", f"millis AS t{number}")


def collect_list(spark: Any, events: Any, *, length: int, window: int) -> int:
    """All of an account's events in one sorted array, and a Python function that looks for sequences in it."""
    from pyspark.sql import functions as F

    steps = list(STEPS[:length])
    found = F.udf(lambda rows: count_sequences(rows, steps, window), "bigint", useArrow=True)
    # Only the events that a step can take: a user would filter as well.
    useful = events.filter(" OR ".join(f"(type = '{kind}' AND name = '{name}')" for kind, name in steps))
    grouped = useful.groupBy("account").agg(
        F.sort_array(F.collect_list(F.struct("millis", "type", "name"))).alias("rows")
    )
    return int(grouped.select(found("rows").alias("n")).agg(F.sum("n")).first()[0] or 0)


def count_sequences(rows: Any, steps: list[tuple[str, str]], window: int) -> int:
    """How many sequences there are, finding each (a user wants the matches, not their number)."""
    partial: list[list[tuple[int, ...]]] = [[] for _ in steps]
    found = 0
    for row in rows:
        now, kind, name = row["millis"], row["type"], row["name"]
        # From the last step to the first, so that no event is taken twice.
        for number in range(len(steps) - 1, -1, -1):
            if (kind, name) != steps[number]:
                continue
            if number == 0:
                partial[0].append((now,))
                continue
            partial[number - 1] = [times for times in partial[number - 1] if now - times[0] <= window]
            longer = [(*times, now) for times in partial[number - 1]]
            if number == len(steps) - 1:
                found += len(longer)
            else:
                partial[number] += longer
    return found
