"""Snapshots that earlier versions of stretto wrote, kept to show that later ones read them.

``python -m tests.snapshots.kept NAME [CASE …]`` writes those of this version into the folder ``NAME``. A folder is never
changed once it is there, and may hold some of the cases only; a version that cannot read an older format must say so in
``test_kept.py``.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import stretto
from stretto.spark.streaming.bucket import Bucket
from stretto.spark.streaming.keeping import Settings
from stretto.spark.streaming.runs import OneQuery

__all__ = ["CASES", "FOLDER", "MATCHERS", "bucket_of", "expected_rows", "matcher_of", "stream"]

FOLDER = Path(__file__).parent

CASES = {
    "window": "SELECT * FROM S WHERE A AS a ; B+ AS b ; C AS c WITHIN 6 seconds",
    "keyed": "SELECT a, b FROM S WHERE A AS a ; B AS b FILTER b[x > 1] PARTITION BY [key] WITHIN 20 seconds",
    "counted": "SELECT MAX * FROM S WHERE A ; B+ ; C PARTITION BY [key] WITHIN 9 EVENTS",
    "consume": "SELECT * FROM S WHERE A ; B ; C PARTITION BY [key] CONSUME BY PARTITION",
    "contiguous": "SELECT * FROM S WHERE A : B PARTITION BY [key], [x]",
    "gaps": "SELECT * FROM S WHERE NOT D ; A+ GAP 4 seconds ; (B ; C WITHIN 6 seconds) PARTITION BY [key] WITHIN 15 seconds",
    "behind": "SELECT * FROM S WHERE A ; B AFTER 1 second ; NOT C PARTITION BY [key] WITHIN 4 seconds",
    "trend": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i].x >= a[i-1].x and b.key >= a[1].key } WITHIN 8 seconds",
    "absence": "PATTERN SEQ(A a, ~(D d), (B|C)+ b[]) WHERE skip_till_next_match { [key] and b[i].x >= a.x } WITHIN 20 seconds",
    "strict": "PATTERN SEQ((A|B)+ a[], (C|D) c) WHERE strict_contiguity { [key] and c.x != avg(a[].x) }",
    "sequence": "sequence by key with maxspan=9s ![D where x == 2] [A where x >= 0] [any where x != 2] ![C where x == 1] "
    "[B where true] until [D where x == 0]",
    "waiting": "sequence with maxspan=3s [A where true] by key [B where true] by key ![C where true] by key",
    "sample": "sample by ?key, x [A where true] [B where true] [any where true]",
    "join": "join by key [A where x >= 0] [B where true] [any where x == 2] until [D where x == 0]",
    "totals": "SELECT COUNT(*), SUM(b[x]) AS s, MIN(b[x]), AVG(b[x]) FROM S WHERE A ; B+ AS b ; C PARTITION BY [key] "
    "WITHIN 20 seconds EVERY 5 seconds",
    "totals-events": "SELECT MAX COUNT(*), SUM(b[x]) AS s FROM S WHERE A AS a ; B+ AS b ; C GROUP BY a[key] WITHIN 6 seconds "
    "EVERY EVENT",
    "best": "SELECT * FROM S WHERE A ; B+ AS b ; C PARTITION BY [key] WITHIN 20 seconds EVERY 5 seconds "
    "ORDER BY SUM(b[x]) DESC LIMIT 2",
    "some": "SELECT * FROM S WHERE A ; B+ AS b ; C PARTITION BY [key] WITHIN 20 seconds EVERY EVENT SAMPLE 2 SEED 3",
    "late": "SELECT * FROM S WHERE A AS a ; B+ AS b GAP 3 seconds ; NOT D ; C PARTITION BY [key] WITHIN 6 seconds",
    "late-sase": "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { [key] and b.x >= a.x } WITHIN 6 seconds",
}

#: Those with rows of partial matches that timed out, of which only matchers are kept.
TIMEOUTS = frozenset({"late", "late-sase"})

#: Those of which no state of a continuous query is kept.
MATCHERS = TIMEOUTS | {"totals", "totals-events", "best", "some"}

#: Those of EQL.
EQL = frozenset({"sequence", "waiting", "sample", "join"})

CUT = 60


@cache
def stream() -> pa.Table:
    """The events of all cases; the snapshot is taken after :data:`CUT` of them."""
    rng = random.Random(20261121)
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    rows = [
        {
            "type": rng.choice("ABCD"),
            "ts": start + dt.timedelta(milliseconds=500 * i),
            "key": rng.choice(["p", "q", "ü", None]),
            "x": rng.choice([None, 0, 1, 2]),
        }
        for i in range(2 * CUT)
    ]
    kinds = [("type", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("key", pa.string()), ("x", pa.int64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


@cache
def query_of(name: str) -> stretto.Query:
    """The query of a case."""
    return stretto.compile(CASES[name], stream(), time="ts", language="eql" if name in EQL else None)


def matcher_of(name: str) -> stretto.Matcher:
    """A new matcher of a case."""
    return stretto.Matcher(query_of(name), time="ts", timeouts=name in TIMEOUTS)


def bucket_of(name: str) -> Bucket:
    """A new bucket of a case."""
    settings = Settings("ts", None, None, "drop", None, 5_000_000, 64)
    return Bucket(OneQuery(query_of(name)), settings)


def expected_rows(table: pa.Table) -> list[Any]:
    """Rows as JSON has them."""
    rows: list[Any] = json.loads(json.dumps(table.to_pylist(), default=str))
    return rows


def main(folder: Path, names: list[str]) -> None:
    folder.mkdir()
    table = stream()
    for name in names or CASES:
        matcher = matcher_of(name)
        matcher.push(table.slice(0, CUT))
        (folder / f"{name}.matcher").write_bytes(matcher.snapshot())
        (folder / f"{name}.json").write_text(json.dumps(expected_rows(matcher.push(table.slice(CUT))), indent=1))
        if name in MATCHERS:
            continue
        bucket = bucket_of(name)
        bucket.take(table.slice(0, CUT), None)
        list(bucket.advance(watermark_at(table, CUT // 2)))
        (folder / f"{name}.bucket").write_bytes(bucket.dump())


def watermark_at(table: pa.Table, row: int) -> int:
    micros: int = table.column("ts").cast(pa.int64())[row].as_py()
    return micros


if __name__ == "__main__":
    main(FOLDER / sys.argv[1], sys.argv[2:])
