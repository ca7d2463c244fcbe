"""Runs the cases: the engine and its peers in turn, each in a process of its own on one core; a wrong count fails."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.compared import Row, compare

__all__ = ["CASES", "PEERS", "clicks", "run"]

CASES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))
PEERS = ("chdb", "duckdb", "polars")
KINDS = ("view", "cart", "buy", "search", "login")
SHARES = (0.5, 0.2, 0.1, 0.15, 0.05)


def clicks(rows: int, keys: int, apart: int) -> pa.Table:
    """A shop's log: five types of events, plain strings, an event every ``apart`` milliseconds, keys evenly spread."""
    random = np.random.default_rng([20240601, rows, keys])
    kinds = pa.array(random.choice(len(KINDS), rows, p=SHARES).astype(np.int32))
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(kinds, pa.array(KINDS)).cast(pa.string()),
            "k": random.integers(0, keys, rows),
            "ts": np.arange(rows) * apart,
            "value": np.round(random.random(rows) * 100, 2),
        }
    )


def run(folder: Path, stream: str, names: list[str], *, output: str = "events", repeat: int = 2) -> Iterator[Row]:
    """All cases on one stream, or those that are named."""
    events = folder / f"{stream}.parquet"
    size = CASES["streams"][stream]
    pq.write_table(clicks(**size), events, row_group_size=1 << 20)
    for name, case in CASES["cases"].items():
        if names and name not in names:
            continue
        jobs = (
            {**case, "side": side, "events": str(events), "output": output, "repeat": repeat}
            for side in ("stretto", *PEERS)
            if side == "stretto" or side in case
        )
        row = Row(name, stream, size["rows"], case["expected"].get(stream))
        yield compare(row, "benchmarks.users.sides", jobs, case["counted"])
