"""A thousand patterns that change every minute of event time, against states that only count."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import stretto
from benchmarks.data import MILLISECONDS_APART
from benchmarks.spark import process
from benchmarks.spark.outcome import Comparison
from benchmarks.spark.streams import FIRST_FILE, Stream, cache_folder
from benchmarks.spark.suite.options import Options
from benchmarks.spark.suite.streaming import differing, left_out, state_size, streaming_job, streaming_side, total

__all__ = ["patterns"]

PATTERNS, CHANGED, ACCOUNTS = 1_000, 10, 1_000
COLUMNS = ["type", "id", "name", "price", "account", "ts"]

#: Events of a minute, after which some patterns are replaced.
MINUTE = 60_000 // MILLISECONDS_APART

#: All changes go to all buckets; the events are of ten names.
BUCKETS = 8


def patterns(options: Options) -> Iterator[Comparison]:
    """Many patterns over a stream, some of which are replaced each minute, against states that only count."""
    rows = options.rows or 0
    batch_rows = min(options.batch_rows, max(rows // 10, 1))
    stream = Stream(rows, ACCOUNTS, batch_rows)
    found = Comparison("patterns", f"{PATTERNS:,} patterns, {CHANGED} replaced each minute", of="match")
    found.to, found.goal = ("count, packed", "count, packed, pandas", "count, frames"), 0.4
    given = changes(rows)
    folder = written(given, rows, batch_rows)
    job = streaming_job(options, stream, "", COLUMNS) | {"buckets": options.buckets or BUCKETS, "keys": "name"}
    result = process.run("stream", job | {"kind": "patterns", "changes": str(folder)})
    found.sides.append(streaming_side("match", stream, result))
    found.sides[0].matches = total(result, "matches")
    size = state_size(result, job["buckets"])
    for kind in ("packed", "packed, pandas", "frames"):
        counted = process.run("stream", job | {"kind": kind, "state_size": size})
        found.sides.append(streaming_side(f"count, {kind}", stream, counted))
    found.note = f"{len(given):,} changes; {job['buckets']} buckets with a state of {size:,} bytes"
    late = total(result, "late_changes") + total(result, "bad_changes")
    found.wrong = left_out(result) or (f"{late} changes do not count" if late else "")
    found.wrong = found.wrong or differing(one_pass(stream, given), found.sides[0].matches, "the stream")
    yield found


def changes(rows: int) -> list[stretto.Change]:
    """The patterns, and those that replace some of them, one minute after the other."""
    rng = np.random.default_rng(2)
    found = [stretto.Change(f"p{number:05}", _pattern(rng)) for number in range(PATTERNS)]
    for minute in range(1, -(-rows // MINUTE)):
        since = dt.datetime.fromtimestamp(60 * minute, dt.UTC)
        chosen = rng.choice(PATTERNS, CHANGED, replace=False)
        found += [stretto.Change(f"p{number:05}", _pattern(rng), since) for number in chosen]
    return found


def _pattern(rng: np.random.Generator) -> str:
    first, second, third = rng.integers(0, ACCOUNTS, 3)
    tests = (
        f"x[account = {first}] AND y[account = {second}] AND z[account = {third} AND price > {rng.random() * 50:.2f}]"
    )
    return f"SELECT * FROM S WHERE BUY AS x ; BUY AS y ; BUY AS z FILTER {tests} PARTITION BY [name] WITHIN 10 minutes"


def written(given: list[stretto.Change], rows: int, batch_rows: int) -> Path:
    """The changes as files, of which each comes a micro-batch before the events that it is about."""
    folder = cache_folder() / "changes" / f"p{PATTERNS}-c{CHANGED}-r{rows}-f{batch_rows}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files: list[list[dict[str, Any]]] = [[] for _ in range(max(1, -(-rows // batch_rows)))]
    for change in given:
        at = 0 if change.since is None else int(change.since.timestamp() * 1000) // MILLISECONDS_APART
        row = {"id": change.id, "query": change.query}
        files[max(0, at // batch_rows - 1)].append(row | ({} if at == 0 else {"since": change.since.isoformat()}))
    for number, one in enumerate(files):
        path = folder / f"{number:06}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in one), encoding="utf-8")
        os.utime(path, (FIRST_FILE + number, FIRST_FILE + number))
    return folder


def one_pass(stream: Stream, given: list[stretto.Change]) -> int:
    """The matches of one set over all events but the last, which the watermark does not pass."""
    events = pa.Table.from_batches(stream.batches()).select(COLUMNS)
    found = stretto.PatternSet(events.schema, time="ts", by=["name"], output="positions")
    found.change(given)
    return sum(piece.num_rows for piece in found.iter_push(events.slice(0, stream.rows - 1)))
