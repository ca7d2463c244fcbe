"""``stretto.spark.match`` over streams: several vectors in one continuous query, each in micro-batches of its own events.

A query takes seconds to start and some for each vector: one vector in 17 is run unless all cases are asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import stretto
from tests.conformance.adapters.spark_batch import AUTOMATON, by_number, one_in, roles, shown
from tests.conformance.vectors import Row, Vector
from tests.conftest import SHARE
from tests.spark.streams import add_file, read_stream, run

#: How many vectors a query has, and one in how many is run.
TOGETHER, ONE_IN = 8, 1 if SHARE == "all" else 17

TIME = "streams take seconds: one in 17 is run"
SKIPS = {AUTOMATON: 14} | ({} if ONE_IN == 1 else {TIME: 63})

#: Behind all events and their windows, so that the watermark passes them: of a type and a key that nothing asks for.
LAST = {"type": "Z", "t": 1_000_000, "k": 99, "v": None, "n": 1_000_000}


def why_not(vector: Vector) -> str:
    return AUTOMATON if vector.language == "afa" else "" if vector.name in one_in(ONE_IN) else TIME


def all_found(these: Sequence[Vector], spark: Any, folder: Path) -> list[list[Row]]:
    frames = []
    for number, vector in enumerate(these):
        events, place = vector.events, folder / f"in-{number}"
        half = events.num_rows // 2
        add_file(place, events.slice(0, half), 0)
        add_file(place, pa.concat_tables([events.slice(half), pa.Table.from_pylist([LAST], events.schema)]), 1)
        query = vector.query + " " * number  # else the counts of equal queries would have the same name in the progress
        matches = stretto.spark.match(
            read_stream(spark, place), query, time_unit="s", disorder="100 seconds", buckets=1, **roles(vector)
        )
        frames.append(shown(matches, vector, number))
    for first in range(0, len(frames), TOGETHER):
        together = functools.reduce(lambda one, other: one.unionAll(other), frames[first : first + TOGETHER])
        run(together, folder / f"checkpoint-{first}", folder / "out" / f"{first}")
    return by_number(spark.read.parquet(*map(str, (folder / "out").iterdir())).toArrow(), len(these))
