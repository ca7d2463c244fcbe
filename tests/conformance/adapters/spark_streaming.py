"""``stretto.spark.match`` over streams: several vectors in one continuous query, each in micro-batches of its own events.

A query takes seconds to start and some for each vector: one vector in 17 is run unless all cases are asked for.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import stretto
from tests.conformance.adapters.spark_batch import TIES, asked, by_number, given, has_ties, one_in, roles, shown
from tests.conformance.vectors import Row, Vector, eql
from tests.conftest import SHARE
from tests.spark.streams import add_file, read_stream, run

#: How many vectors a query has, and one in how many is run.
TOGETHER, ONE_IN = 8, 1 if SHARE == "all" else 35

TIME = "streams take seconds: one in 17 is run"
ENDS = "what is kept may come when the stream ends, and this one does not"
SKIPS = {TIES: 1, ENDS: 17} | ({} if ONE_IN == 1 else {TIME: 424})

#: Behind all events and their windows, so that the watermark passes them: of a type and a key that nothing asks for.
LAST = {"type": "Z", "t": 1_000_000, "k": 99, "v": None, "n": 1_000_000, "sign": 1}


def why_not(vector: Vector) -> str:
    if vector.language != "afa" and vector.bound.parsed.keep is not None and vector.bound.window is None:
        return ENDS
    return TIES if has_ties(vector) else "" if vector.name in one_in(ONE_IN) else TIME


def all_found(these: Sequence[Vector], spark: Any, folder: Path) -> list[list[Row]]:
    frames = []
    for number, vector in enumerate(these):
        events, place = given(vector), folder / f"in-{number}"
        half = events.num_rows // 2
        add_file(place, events.slice(0, half), 0)
        last = pa.Table.from_pylist([{name: LAST[name] for name in events.column_names}], events.schema)
        add_file(place, pa.concat_tables([events.slice(half), last]), 1)
        query, options = asked(vector), {"time_unit": "s", "disorder": "100 seconds", "buckets": 1}
        if vector.language == "afa":
            options["speculation"] = math.inf
        else:
            # Else the counts of equal queries would have the same name in the progress.
            query = eql(query.text + " " * number) if vector.language == "eql" else query + " " * number
        matches = stretto.spark.match(read_stream(spark, place), query, **{**options, **roles(vector)})
        frames.append(shown(matches, vector, number))
    for first in range(0, len(frames), TOGETHER):
        together = functools.reduce(lambda one, other: one.unionAll(other), frames[first : first + TOGETHER])
        run(together, folder / f"checkpoint-{first}", folder / "out" / f"{first}")
    return by_number(spark.read.parquet(*map(str, (folder / "out").iterdir())).toArrow(), these)
