"""Batch jobs over a folder of Parquet files, timed in one session: matching, counting, and what one writes by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from benchmarks.spark import byhand, counting
from benchmarks.spark.memory import Watch
from benchmarks.workers import core

__all__ = ["JOBS"]

#: A job takes a session, the events, and what its entry says; it returns a number of matches (or of rows, where it counts).
Job = Callable[..., int]


def match(spark: Any, events: Any, *, query: str, **options: Any) -> int:
    """``stretto.spark.match``, to the last row of the result."""
    import stretto.spark

    return int(stretto.spark.match(events, query, time="millis", output="positions", **options).count())


def count_same_plan(spark: Any, events: Any, *, query: str, **options: Any) -> int:
    """The plan of :func:`match` with a function that counts the rows it is given."""
    import stretto.spark

    with counting.same_plan(events):
        counted = stretto.spark.match(events, query, time="millis", output="positions", **options)
    return int(counted.groupBy().sum("rows").first()[0] or 0)


def sql(spark: Any, events: Any, *, query: str) -> int:
    """``stretto.spark.sql`` with a clause over the events, to the last row of the result."""
    return int(_rows_of_clause(spark, events, query).count())


def count_sql(spark: Any, events: Any, *, query: str) -> int:
    """The plan of :func:`sql` with a function that counts the rows it is given."""
    with counting.same_plan(events):
        counted = _rows_of_clause(spark, events, query)
    return int(counted.groupBy().sum("rows").first()[0] or 0)


def _rows_of_clause(spark: Any, events: Any, clause: str) -> Any:
    import stretto.spark

    events.createOrReplaceTempView("events")
    return stretto.spark.sql(spark, f"SELECT * FROM events {clause}")


def match_of_prices(spark: Any, events: Any, *, query: str, **options: Any) -> int:
    """:func:`match` where how prices move is not known before: Spark's ``lag`` finds it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    before = F.lag("price").over(Window.partitionBy("account").orderBy("millis"))
    moved = F.when(F.col("price") < before, "DOWN").when(F.col("price") > before, "UP").otherwise("SAME")
    return match(spark, events.withColumn("move", moved), query=query, **options)


JOBS: dict[str, Job] = {
    "match": match,
    "count_same_plan": count_same_plan,
    "sql": sql,
    "count_sql": count_sql,
    "match_of_prices": match_of_prices,
    "self_join": byhand.self_join,
    "collect_list": byhand.collect_list,
}


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Each entry of ``sides`` over ``warm`` (untimed), then in turn over ``events``, ``repeat`` times."""
    import stretto.spark

    pa.set_cpu_count(1)
    spark = stretto.spark.session("benchmarks", cores=job["cores"], driver__memory=job["driver_memory"])
    sides = {side["name"]: side for side in job["sides"]}
    actions = {name: partial(JOBS[side["job"]], spark, **side.get("options", {})) for name, side in sides.items()}
    found: dict[str, Any] = {name: {"seconds": [], "processor": [], "setup": 0.0} for name in sides}
    for name, action in actions.items():
        start = time.perf_counter()
        action(spark.read.parquet(job["warm"]))
        found[name]["warm_up"] = time.perf_counter() - start
        start = time.perf_counter()
        action(spark.read.parquet(job["start"]))
        found[name]["start"] = time.perf_counter() - start
    for _ in range(job["repeat"]):
        for name, action in actions.items():
            with Watch() as watch:
                start = time.perf_counter()
                found[name]["matches"] = action(spark.read.parquet(job["events"]))
                found[name]["seconds"].append(time.perf_counter() - start)
            found[name]["processor"].append(watch.processor)
            found[name]["resident_peak"] = max(watch.peak, found[name].get("resident_peak", 0))
    spark.stop()
    return found


if __name__ == "__main__":
    core.main(work, one_core=False)
