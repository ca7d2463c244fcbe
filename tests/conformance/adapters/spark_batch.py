"""``stretto.spark.match`` over DataFrames: many vectors in one job, one in three of them unless all cases are asked for."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import stretto
from tests.conformance.vectors import Row, Vector, vectors
from tests.conftest import SHARE

AUTOMATON, TIME = "it is an automaton", "a plan takes half a second: one in three is run"
ONE_IN = 1 if SHARE == "all" else 3
SKIPS = {AUTOMATON: 14} | ({} if ONE_IN == 1 else {TIME: 44})


def why_not(vector: Vector) -> str:
    return AUTOMATON if vector.language == "afa" else "" if vector.name in one_in(ONE_IN) else TIME


@functools.cache
def one_in(count: int) -> frozenset[str]:
    """Every so many-th vector of those that run on Spark."""
    return frozenset([one.name for one in vectors() if one.language != "afa"][::count])


def all_found(these: Sequence[Vector], spark: Any, folder: Path) -> list[list[Row]]:
    frames = []
    for number, vector in enumerate(these):
        df = spark.createDataFrame(vector.events)
        frames.append(shown(stretto.spark.match(df, vector.query, **roles(vector)), vector, number))
    return by_number(functools.reduce(lambda one, other: one.unionAll(other), frames).toArrow(), len(these))


def roles(vector: Vector) -> dict[str, Any]:
    """On Spark a column orders the stream: what has no time is in the order of arrival."""
    return {"time": vector.time, "sequence": "n"} if vector.time else {"time": "n"}


def shown(matches: Any, vector: Vector, number: int) -> Any:
    """Matches as rows that are alike for all queries: the vector's number, start, end, and positions."""
    from pyspark.sql import functions as F

    lists = [field.name for field in matches.schema if field.dataType.typeName() == "array"]
    held = [F.transform(F.col(f"`{name}`"), lambda event: F.struct(event["t"], event["n"])) for name in lists]
    if held:
        events = F.array_sort(F.flatten(F.array(*held)))  # in the order of the stream
        positions = F.array_sort(F.array_distinct(F.transform(events, lambda event: event["n"])))
        places = [F.element_at(events, 1)["n"], F.element_at(events, -1)["n"]]
    else:
        positions, places = F.array().cast("array<bigint>"), []
    if not vector.time:
        places = [F.col("start_time"), F.col("end_time")]
    return matches.select(
        F.lit(number).alias("number"),
        places[0].cast("bigint").alias("start"),
        places[1].cast("bigint").alias("end"),
        positions.alias("positions"),
    )


def by_number(table: pa.Table, count: int) -> list[list[Row]]:
    """The rows of each vector."""
    found: list[list[Row]] = [[] for _ in range(count)]
    for row in table.to_pylist():
        found[row["number"]].append((row["start"], row["end"], tuple(row["positions"])))
    return found
