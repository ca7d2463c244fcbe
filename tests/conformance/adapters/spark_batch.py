"""``stretto.spark.match`` over DataFrames: many vectors in one job, one in three of them unless all cases are asked for."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import stretto
from tests.conformance.vectors import Row, Vector, vectors
from tests.conftest import SHARE

TIES, TIME = "outputs of automata tell events by their times", "a plan takes half a second: one in three is run"
ONE_IN = 1 if SHARE == "all" else 6
SKIPS = {TIES: 1} | ({} if ONE_IN == 1 else {TIME: 376})


def why_not(vector: Vector) -> str:
    return TIES if has_ties(vector) else "" if vector.name in one_in(ONE_IN) else TIME


def has_ties(vector: Vector) -> bool:
    """Whether events of an automaton have the same time: then its outputs do not tell which they are of."""
    times = [row["t"] for row in vector.table.to_pylist() if row["sign"] > 0]
    return vector.language == "afa" and len(set(times)) < len(times)


@functools.cache
def one_in(count: int) -> frozenset[str]:
    """Every so many-th vector of those that run on Spark."""
    return frozenset([one.name for one in vectors() if not has_ties(one)][::count])


def all_found(these: Sequence[Vector], spark: Any, folder: Path) -> list[list[Row]]:
    frames = []
    for number, vector in enumerate(these):
        df = spark.createDataFrame(given(vector))
        frames.append(shown(stretto.spark.match(df, asked(vector), **roles(vector)), vector, number))
    return by_number(functools.reduce(lambda one, other: one.unionAll(other), frames).toArrow(), these)


def given(vector: Vector) -> pa.Table:
    """The events as Spark gets them: a retraction shows the event as it was, so an automaton's have no number."""
    if vector.language != "afa":
        return vector.events
    return vector.table.drop_columns(["n"] if vector.signed else ["n", "sign"])


def asked(vector: Vector) -> Any:
    return vector.automaton if vector.language == "afa" else vector.query


def roles(vector: Vector) -> dict[str, Any]:
    """On Spark a column orders the stream: what has no time is in the order of arrival."""
    if vector.language == "afa":
        return {"time": "t", "sign": "sign" if vector.signed else None}
    if vector.language == "eql":
        return {"time": "t", "sequence": "n", "time_unit": "s"}
    return {"time": vector.time, "sequence": "n"} if vector.time else {"time": "n"}


def shown(matches: Any, vector: Vector, number: int) -> Any:
    """Matches as rows that are alike for all queries: the vector's number, start, end, positions or register, and sign."""
    from pyspark.sql import functions as F

    sign = F.col("sign").cast("int") if "sign" in matches.columns else F.lit(1)
    if vector.language == "afa":  # the events by their times
        held = F.to_json("register") if "register" in matches.columns else F.lit("{}")
        return matches.select(
            F.lit(number).alias("number"), *_places(["start_time", "end_time"]), held.alias("held"), sign.alias("sign")
        )
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
        *_places(places),
        F.to_json(positions).alias("held"),
        sign.alias("sign"),
    )


def _places(two: Sequence[Any]) -> list[Any]:
    from pyspark.sql import functions as F

    columns = [F.col(one) if isinstance(one, str) else one for one in two]
    return [column.cast("bigint").alias(name) for column, name in zip(columns, ("start", "end"), strict=True)]


def by_number(table: pa.Table, these: Sequence[Vector]) -> list[list[Row]]:
    """The rows of each vector that are given and not taken back."""
    found: list[Counter[Row]] = [Counter() for _ in these]
    for row in table.to_pylist():
        vector, held = these[row["number"]], json.loads(row["held"])
        start, end = row["start"], row["end"]
        if vector.language == "afa":
            arrived = {one["t"]: one["n"] for one in reversed(vector.table.to_pylist())}
            if end not in arrived:  # what a stream has behind all others
                continue
            start, end, held = arrived[start], arrived[end], held.values()
        found[row["number"]][start, end, tuple(held)] += row["sign"]
    return [list(one.elements()) for one in found]
