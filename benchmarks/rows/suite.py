"""Runs the cases: the clause, its peer and CEQL in turn, each in a process of its own on one core; a wrong count fails."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.compared import Row, compare

__all__ = ["CASES", "prices", "run"]

CASES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))


def prices(rows: int, keys: int) -> pa.Table:
    """A random walk of whole prices for each key, one key behind the other, and how each price moved."""
    random = np.random.default_rng([20260101, rows, keys])
    ts = np.arange(rows)
    k = ts * keys // rows
    price = np.cumsum(random.integers(-3, 4, rows)) + 1_000_000
    move = np.sign(np.diff(price, prepend=price[:1])).astype(np.int64)
    move[np.flatnonzero(np.diff(k, prepend=-1))] = 0  # the first of a key has none before it
    kinds = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["T"]))
    return pa.table({"type": kinds, "k": k, "ts": ts, "price": price, "move": move})


def run(folder: Path, stream: str, names: list[str], *, repeat: int = 3) -> Iterator[Row]:
    """All cases on one stream, or those that are named."""
    events = folder / f"{stream}.parquet"
    size = CASES["streams"][stream]
    pq.write_table(prices(**size), events)
    for name, case in CASES["cases"].items():
        if names and name not in names:
            continue
        sides = ["stretto", *(["peer"] if case.get("peer", True) else []), *(["ceql"] if "ceql" in case else [])]
        jobs = ({**case, "side": side, "events": str(events), "repeat": repeat} for side in sides)
        row = Row(name, stream, size["rows"], case["expected"].get(stream))
        yield compare(row, "benchmarks.rows.sides", jobs, "matches")
