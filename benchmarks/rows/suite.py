"""Runs the cases: the clause, its peer and CEQL in turn, each in a process of its own on one core; a wrong count fails."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.runner import WorkerError, run_worker

__all__ = ["CASES", "Row", "prices", "run"]

CASES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))


@dataclass
class Row:
    """What was measured for one case on one stream."""

    case: str
    stream: str
    rows: int
    expected: int | None
    sides: dict[str, dict[str, Any]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def processor(self, side: str) -> float | None:
        """Seconds of the processor in the fastest run of a side; ``None``: it was not run."""
        found = self.sides.get(side, {})
        return min(found["processor"]) if "processor" in found else None

    def ratio(self, side: str) -> float | None:
        """How many times as long as the clause another side takes."""
        own, other = self.processor("stretto"), self.processor(side)
        return None if own is None or other is None else other / own

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio_to_the_peer": self.ratio("peer"), "ratio_to_ceql": self.ratio("ceql")}


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
        row = Row(name, stream, size["rows"], case["expected"].get(stream))
        sides = ["stretto", *(["peer"] if case.get("peer", True) else []), *(["ceql"] if "ceql" in case else [])]
        for side in sides:
            try:
                row.sides[side] = run_worker(
                    "benchmarks.rows.sides", {**case, "side": side, "events": str(events), "repeat": repeat}
                )
            except WorkerError as error:
                row.wrong.append(f"{side} failed: {error}")
        for side, found in row.sides.items():
            if "count" in found and found["count"] != row.expected:
                row.wrong.append(f"{side} finds {found['count']:,}, expected {row.expected}")
        yield row
