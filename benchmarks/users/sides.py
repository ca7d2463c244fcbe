"""The sides of a comparison: each takes a Parquet file and gives a number, on one core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.compared import timed
from benchmarks.workers import core

__all__ = ["SIDES", "work"]

WINDOW = 600_000


def _stretto(job: dict[str, Any]) -> Callable[[], int]:
    import stretto

    pa.set_cpu_count(1)

    def run() -> int:
        found = stretto.match(job["query"], job["events"], output=job["output"])
        return pc.count_distinct(found["k"]).as_py() if job["counted"] == "keys" else found.num_rows

    return run


def _chdb(job: dict[str, Any]) -> Callable[[], int]:
    import chdb

    text = job["chdb"].format(events=job["events"]) + " SETTINGS max_threads = 1"
    return lambda: int(str(chdb.query(text, "CSV")).strip())


def _duckdb(job: dict[str, Any]) -> Callable[[], int]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    return lambda: int(connection.execute(job["duckdb"].format(events=job["events"])).fetchall()[0][0])


def _polars(job: dict[str, Any]) -> Callable[[], int]:
    return {"funnel": _polars_funnel, "pairs": _polars_pairs}[job["polars"]](job["events"])


def _polars_funnel(events: str) -> Callable[[], int]:
    import polars as pl

    def last(kind: str, value: str) -> pl.Expr:
        """Of the last event of a type so far, by key; an event itself takes part in nothing that it completes."""
        return pl.when(pl.col("type") == kind).then(pl.col(value)).forward_fill().over("k")

    def run() -> int:
        rows = pl.scan_parquet(events).filter(pl.col("type").is_in(["view", "cart", "buy"])).select("k", "ts", "type")
        rows = rows.with_columns(began=last("view", "ts")).with_columns(began=last("cart", "began"))
        found = rows.filter((pl.col("type") == "buy") & (pl.col("ts") - pl.col("began") <= WINDOW))
        return int(found.select(pl.col("k").n_unique()).collect().item())

    return run


def _polars_pairs(events: str) -> Callable[[], int]:
    import polars as pl

    def run() -> int:
        rows = pl.scan_parquet(events)
        carts = rows.filter(pl.col("type") == "cart").select("k", "ts")
        buys = rows.filter(pl.col("type") == "buy").select("k", bought="ts")
        apart = pl.col("bought") - pl.col("ts")
        return carts.join(buys, on="k").filter((apart > 0) & (apart <= WINDOW)).collect().height

    return run


SIDES: dict[str, Callable[[dict[str, Any]], Callable[[], int]]] = {
    "stretto": _stretto,
    "chdb": _chdb,
    "duckdb": _duckdb,
    "polars": _polars,
}


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Time a side."""
    return timed(job, SIDES)


if __name__ == "__main__":
    core.main(work)
