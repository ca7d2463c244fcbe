"""Flink SQL's MATCH_RECOGNIZE, parallelism 1, against one Spark task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.data import PIECE
from benchmarks.peers.flink import launch
from benchmarks.peers.launch import PeerUnavailableError
from benchmarks.spark import queries
from benchmarks.spark.outcome import Comparison, Side
from benchmarks.spark.streams import Stream, cache_folder
from benchmarks.spark.suite.options import KEYS, START_ROWS, Options
from benchmarks.spark.suite.sides import embedded, entry, spark_sides

__all__ = ["flink"]

#: The window of the three steps, in seconds; a hundred events a second.
FLINK_WINDOW = 10


@dataclass(frozen=True)
class _FlinkCase:
    name: str
    query: str
    statement: str
    goal: float
    job: str = "match"
    note: str = ""


def _flink_cases() -> list[_FlinkCase]:
    # Flink's window is exclusive, CEQL's inclusive; times are whole milliseconds.
    steps = queries.sequence(3, 1000 * FLINK_WINDOW - 1, consume="ANY", limit=1)
    v_shape = queries.v_shape_clause
    flink_v_shape = queries.flink(v_shape("rt"))
    return [
        _FlinkCase("v-shape", queries.V_SHAPE, flink_v_shape, 20, note="how prices move is a column for both"),
        _FlinkCase("v-shape in SQL", v_shape("millis"), flink_v_shape, 20, job="sql", note="the same clause for both"),
        _FlinkCase(
            "v-shape of prices in SQL",
            queries.v_shape_of_prices_clause("millis"),
            queries.flink(queries.v_shape_of_prices_clause("rt")),
            20,
            job="sql",
            note="the same clause for both, which compares prices with those of the match so far",
        ),
        _FlinkCase(
            "v-shape of prices",
            queries.V_SHAPE,
            queries.flink(queries.v_shape_of_prices_clause("rt")),
            20,
            job="match_of_prices",
            note="Flink compares prices in the pattern; here Spark's lag() finds how they move, then stretto matches",
        ),
        _FlinkCase(
            "three steps",
            steps,
            queries.flink_three_steps(FLINK_WINDOW),
            100,
            note="rows between are all but the next step: the cheapest pattern for Flink",
        ),
        _FlinkCase(
            "three steps, anything between",
            steps,
            queries.flink_three_steps(FLINK_WINDOW, anything_between=True),
            100,
            note="rows between are any rows, taken reluctantly",
        ),
    ]


def flink(options: Options) -> Iterator[Comparison]:
    """MATCH_RECOGNIZE in Flink SQL, parallelism 1, against one Spark task."""
    peer, trouble = _flink_peer(options)
    # Flink reads a folder's files in any order, which as a stream would make events late: it gets one file.
    rows = min(options.rows or 0, options.peer_rows, PIECE)
    stream = Stream(rows, KEYS)
    for case in [case for case in _flink_cases() if options.wants(case.name)]:
        found = Comparison("flink", case.name, of="Spark, 1 task", goal=case.goal, note=trouble or case.note)
        spark = entry("Spark, 1 task", case.job, query=case.query)
        found.sides = spark_sides(options, stream, [spark], cores=1)
        if case.job in ("match", "sql"):
            found.sides.append(embedded(stream, case.query, options.repeat))
        if peer is not None:
            found.to = ("Flink, batch", "Flink, streaming")
            try:
                found.sides += [
                    _flink_side(peer, case, stream, mode, options.repeat) for mode in ("batch", "streaming")
                ]
            except PeerUnavailableError as error:
                found.wrong = str(error)
        found.same_matches()
        if (options.rows or 0) > rows:
            # Where a job's fixed cost of a second or two weighs less.
            found.sides.insert(1, _longer(options, spark))
            found.of = found.sides[1].name
        yield found


def _flink_peer(options: Options) -> tuple[launch.Flink | None, str]:
    """Flink, or why there is none."""
    if not options.peer:
        return None, "without Flink"
    try:
        return launch.prepare(cache_folder()), ""
    except PeerUnavailableError as error:
        return None, f"Flink is not available: {error}"


def _longer(options: Options, spark: dict[str, Any]) -> Side:
    """The same on the whole stream, of which Flink reads the beginning."""
    side = spark_sides(options, Stream(options.rows or 0, KEYS), [spark], cores=1)[0]
    side.name, side.note = "Spark, 1 task, long", "more rows than Flink reads"
    return side


def _flink_side(peer: launch.Flink, case: _FlinkCase, stream: Stream, mode: str, repeat: int) -> Side:
    folders = {"all": stream.folder(), "start": replace(stream, rows=START_ROWS).folder()}
    runs = ["all", "start", *["all"] * repeat]
    result = peer.run(case.statement, folders, mode, runs)
    first, start, *timed = result["runs"]
    return Side(
        f"Flink, {mode}",
        stream.rows,
        [run["seconds"] for run in timed],
        matches=timed[-1]["matches"],
        start=start["seconds"],
        resident_peak=result["resident_peak"],
        raw={"warm_up": first["seconds"], "setup": result["setup"]},
    )
