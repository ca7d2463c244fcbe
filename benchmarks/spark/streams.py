"""Generated stock events as folders of Parquet files, in stream order: made once, kept in the cache folder.

The folder is the user's cache directory, or what the environment variable ``STRETTO_BENCHMARK_CACHE`` names. A stream depends
on nothing but its parameters: every piece of it comes from its own random state.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from platformdirs import user_cache_path
from pyarrow import parquet

from benchmarks.data import PIECE, stock_batches

__all__ = ["Stream", "cache_folder"]

#: How an event's price moves against the one before it in the same account; the first of an account moves nowhere.
MOVES = ("SAME", "DOWN", "UP")


def cache_folder() -> Path:
    """Where streams and the peers' environments are kept, outside of the checkout."""
    named = os.environ.get("STRETTO_BENCHMARK_CACHE")
    return Path(named) if named else user_cache_path("stretto-benchmarks")


#: The first file's time of change, in seconds since 1970; each further file is a second younger.
FIRST_FILE = 1_600_000_000


@dataclass(frozen=True)
class Stream:
    """A stream of ``rows`` events of ``keys`` accounts, in files of ``file_rows`` events.

    Columns: ``type`` (BUY, SELL), ``id`` (position), ``name`` (ten stocks), ``volume``, ``price``, ``millis`` (time in
    milliseconds, a hundred events a second), ``account`` (the key), ``ts`` (the time as a timestamp) and ``move`` (SAME,
    DOWN or UP: how the price moved since the account's last event).

    ``late`` of the events come up to ``behind`` events later than their times say.
    """

    rows: int
    keys: int
    file_rows: int = PIECE
    late: float = 0.0
    behind: int = 0

    def folder(self) -> Path:
        """The folder of the files; written on the first call."""
        path = cache_folder() / "streams" / self._name
        if not path.exists():
            draft = path.with_name(f"{path.name}.{os.getpid()}")
            draft.mkdir(parents=True)
            try:
                self._write(draft)
                draft.rename(path)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return path

    @property
    def _name(self) -> str:
        disorder = f"-l{self.late:g}-b{self.behind}" if self.late else ""
        return f"stocks-r{self.rows}-k{self.keys}-f{self.file_rows}{disorder}"

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The events, piece by piece."""
        last = np.full(self.keys, np.nan)
        for batch in stock_batches(self.rows, keys=self.keys):
            millis = batch.column("stock_time")
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns["millis"] = columns.pop("stock_time")
            columns["ts"] = pc.multiply(millis, 1000).cast(pa.timestamp("us", tz="UTC"))
            columns["move"] = _moves(batch.column("account").to_numpy(), batch.column("price").to_numpy(), last)
            yield pa.RecordBatch.from_pydict(columns)

    def arriving(self) -> Iterator[pa.RecordBatch]:
        """The events in the order in which they come, piece by piece."""
        if not self.late:
            yield from self.batches()
            return
        random = np.random.default_rng(5)
        places = np.arange(self.rows)
        places += (random.random(self.rows) < self.late) * random.integers(1, self.behind + 1, self.rows)
        events = pa.Table.from_batches(self.batches())
        yield from events.take(pa.array(np.argsort(places, kind="stable"))).combine_chunks().to_batches()

    def _write(self, folder: Path) -> None:
        # Names and times in order: Spark's streaming reader goes by the files' times.
        number = 0
        for batch in self.arriving():
            for start in range(0, batch.num_rows, self.file_rows):
                path = folder / f"part-{number:06}.parquet"
                parquet.write_table(pa.Table.from_batches([batch.slice(start, self.file_rows)]), path)
                os.utime(path, (FIRST_FILE + number, FIRST_FILE + number))
                number += 1


def _moves(accounts: NDArray[np.int64], prices: NDArray[np.float64], last: NDArray[np.float64]) -> pa.Array:
    """How each price moved within its account; ``last`` holds the accounts' latest prices before and after."""
    order = np.argsort(accounts, kind="stable")
    keys, values = accounts[order], prices[order]
    first = np.ones(keys.size, np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    before = np.empty_like(values)
    before[1:] = values[:-1]
    before[first] = last[keys[first]]
    final = np.append(first[1:], True)
    last[keys[final]] = values[final]
    codes = np.empty(keys.size, np.int8)
    codes[order] = np.where(values < before, 1, np.where(values > before, 2, 0))
    return pa.array(MOVES).take(pa.array(codes))
