"""The sides of a comparison: each takes a Parquet file and gives a number of rows, on one core."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.compared import timed
from benchmarks.workers import core

__all__ = ["PEER_FOLDER", "work"]

#: Where ``pip install --target FOLDER pandas-match-recognize`` has put the peer, which wants other versions of pandas and numpy.
PEER_FOLDER = "STRETTO_PANDAS_MATCH_RECOGNIZE"


def _statement(job: dict[str, Any]) -> str:
    return f"SELECT * FROM events MATCH_RECOGNIZE ({job['clause']}\n)"


def _frame(job: dict[str, Any]) -> Any:
    import pandas as pd

    return pd.read_parquet(job["events"], columns=["k", "ts", "price"])


def _stretto(job: dict[str, Any]) -> Callable[[], int]:
    import pyarrow as pa

    import stretto

    pa.set_cpu_count(1)
    frame = _frame(job)
    return lambda: len(stretto.sql(_statement(job), progress=False, events=frame).to_pandas())


def _ceql(job: dict[str, Any]) -> Callable[[], int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import stretto

    pa.set_cpu_count(1)
    events = pq.read_table(job["events"])
    return lambda: stretto.match(job["ceql"], events, time="ts", output="positions", progress=False).num_rows


def _peer(job: dict[str, Any]) -> Callable[[], int]:
    if os.environ.get(PEER_FOLDER):
        sys.path.insert(0, os.environ[PEER_FOLDER])
    from pandas_match_recognize import match_recognize

    frame = _frame(job)
    return lambda: len(match_recognize(_statement(job) + ";", frame))


_SIDES: dict[str, Callable[[dict[str, Any]], Callable[[], int]]] = {"stretto": _stretto, "ceql": _ceql, "peer": _peer}


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Time a side."""
    return timed(job, _SIDES)


if __name__ == "__main__":
    core.main(work)
