"""Flink SQL's MATCH_RECOGNIZE, parallelism 1, against the operator on V-patterns: from a Parquet file to the number of matches."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import stretto
from benchmarks.papers.afa import queries, streams
from benchmarks.papers.afa.sides import BATCH
from benchmarks.peers.flink import launch
from benchmarks.peers.launch import PeerUnavailableError
from benchmarks.spark.streams import cache_folder

if TYPE_CHECKING:
    from benchmarks.papers.afa.suite import Row, Suite

__all__ = ["rows", "statements"]

#: Rows of a run that tells what a job costs without data.
START = 1000

TABLE = """
CREATE TABLE {name} (
  t BIGINT, number BIGINT, price DOUBLE, `change` DOUBLE,
  rt AS TO_TIMESTAMP_LTZ(t, 3),
  WATERMARK FOR rt AS rt
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')
"""

_STATEMENT = """SELECT COUNT(*) FROM {{events}} MATCH_RECOGNIZE (
  ORDER BY rt
  MEASURES S.rt AS start_time, {last}.rt AS end_time
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN ({pattern}) WITHIN INTERVAL '{seconds}' SECOND
  DEFINE
    S AS S.`change` < -0.25,
    {define}
)"""

_BALANCED = """D{n} AS D{n}.`change` < 0,
    U{n} AS U{n}.`change` > 0 AND COUNT(U{n}.t) < COUNT(D{n}.t),
    E{n} AS E{n}.`change` > 0 AND COUNT(U{n}.t) + 1 = COUNT(D{n}.t)"""


def _balanced(k: int, seconds: int) -> str:
    """Q1: k times D+ and as many upticks, of which E is the last.

    Quantifiers are reluctant as Flink takes nothing optional behind a greedy one; no row can be taken in two ways, so they find
    the same.
    """
    pattern = " ".join(["S", *(f"D{n}+? U{n}*? E{n}" for n in range(1, k + 1))])
    define = ",\n    ".join(_BALANCED.format(n=n) for n in range(1, k + 1))
    return _STATEMENT.format(last=f"E{k}", pattern=pattern, seconds=seconds, define=define)


def statements(seconds: int) -> dict[str, str]:
    """By query."""
    plain = _STATEMENT.format(
        last="U", pattern="S D+ U", seconds=seconds, define="D AS D.`change` < 0,\n    U AS U.`change` > 0"
    )
    return {"V": plain, "Q1, k = 1": _balanced(1, seconds), "Q1": _balanced(2, seconds)}


def rows(suite: Suite) -> Iterator[Row]:
    """Both sides of each query; Flink in both of its modes, of which the faster one counts."""
    raw = suite.raw("flink")
    window = raw["window"]
    table = streams.quotes(suite.changes(raw["up"], suite.plan.flink)).table
    try:
        peer = launch.prepare(cache_folder())
    except PeerUnavailableError as error:
        suite.skipped.append(f"flink: {error}")
        return
    afas = {
        "V": queries.v(window),
        "Q1, k = 1": queries.q1(window, k=1),
        "Q1": queries.q1(window, k=2),
    }
    with tempfile.TemporaryDirectory(prefix="stretto-afa-") as folder:
        path = Path(folder) / "all" / "part-0.parquet"
        for name, rows in (("all", table.num_rows), ("start", START)):
            (Path(folder) / name).mkdir()
            pq.write_table(table.slice(0, rows), Path(folder) / name / path.name)
        for query, statement in statements(window // 1000).items():
            suite.say(f"flink: {query}")
            yield from _compared(suite, peer, query, afas[query], statement, path)


def _compared(
    suite: Suite, peer: launch.Flink, query: str, afa: stretto.AFA, statement: str, path: Path
) -> Iterator[Row]:
    found = [suite.row("flink", query, f"stretto, {name}", suite.plan.flink) for name in ("ordered", "AFA")]
    for row, ordered in zip(found, (True, False), strict=True):
        for _ in range(1 + suite.plan.repeat):
            seconds, row.net = _from_file(afa, path, suite.raw("flink")["window"], ordered)
            row.seconds.append(seconds)
        row.rows = row.net
        row.extra["first"] = row.seconds.pop(0)
    for mode in ("batch", "streaming"):
        row = suite.row("flink", query, f"Flink, {mode}", suite.plan.flink)
        try:
            with all_cores():
                folders = {name: path.parent.parent / name for name in ("all", "start")}
                result = peer.run(statement, folders, mode, ["all", "start", "all"], table=TABLE)
            row.extra["first"], row.extra["start"], *row.seconds = [run["seconds"] for run in result["runs"]]
            row.rows = row.net = result["runs"][-1]["matches"]
        except PeerUnavailableError as error:
            row.net, row.wrong = -1, str(error)
        found.append(row)
    suite.same(found, found[0].net, f"{found[0].side} finds")
    yield from found


@contextmanager
def all_cores() -> Iterator[None]:
    """Flink is not bound to the core of this process."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    if cores:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        if cores:
            os.sched_setaffinity(0, cores)


def _from_file(afa: stretto.AFA, path: Path, window: int, ordered: bool) -> tuple[float, int]:
    """Seconds by the clock on the wall, and matches."""
    start = time.perf_counter()
    file = pq.ParquetFile(path)
    matcher = stretto.Matcher(afa, file.schema_arrow, time="t", ordered=ordered)
    found = row = 0
    for batch in file.iter_batches(BATCH, columns=["t", "price", "change"]):
        end = row + batch.num_rows
        pairs = [] if ordered else [(at - row, at) for at in range(row + (-row % window or window), end + 1, window)]
        found += matcher.push(pa.Table.from_batches([batch]), punctuations=pairs).num_rows
        row = end
    return time.perf_counter() - start, found
