"""Runs the cases: the engine and its peers in turn, each in a process of its own on one core; a wrong count fails."""

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

__all__ = ["CASES", "Row", "clicks", "run"]

CASES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))
PEERS = ("chdb", "duckdb", "polars")
KINDS = ("view", "cart", "buy", "search", "login")
SHARES = (0.5, 0.2, 0.1, 0.15, 0.05)


@dataclass
class Row:
    """What was measured for one case on one stream."""

    case: str
    stream: str
    events: int
    expected: int | None
    sides: dict[str, dict[str, Any]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def processor(self, side: str) -> float | None:
        """Seconds of the processor in the fastest run of a side; ``None``: it was not run."""
        return min(self.sides[side]["processor"]) if "processor" in self.sides.get(side, {}) else None

    @property
    def ratio(self) -> float | None:
        """How many times faster than the fastest peer."""
        own, others = self.processor("stretto"), [self.processor(peer) for peer in PEERS]
        best = min((one for one in others if one is not None), default=None)
        return None if own is None or best is None else best / own

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio_to_the_fastest_peer": self.ratio}


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
        row = Row(name, stream, size["rows"], case["expected"].get(stream))
        for side in ("stretto", *PEERS):
            if side == "stretto" or side in case:
                job = {**case, "side": side, "events": str(events), "output": output, "repeat": repeat}
                try:
                    row.sides[side] = run_worker("benchmarks.users.sides", job)
                except WorkerError as error:
                    row.wrong.append(f"{side} failed: {error}")
        _check(row, case["counted"])
        yield row


def _check(row: Row, counted: str) -> None:
    """All sides give the expected number."""
    for side, found in row.sides.items():
        if "count" in found:
            if row.expected is None:
                row.wrong.append(f"no expected count; {side} finds {found['count']:,} {counted}")
            elif found["count"] != row.expected:
                row.wrong.append(f"{side} finds {found['count']:,} {counted}, expected {row.expected:,}")
