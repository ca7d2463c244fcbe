"""The paper's streams (section 6.1): ticks of one stock, a millisecond apart, with ignorable events and events that come late."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.data import data_folder

__all__ = ["Stream", "late", "quotes", "ticks", "yahoo", "yahoo_path"]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

YEARS = ("1996", "2009")  #: of Yahoo's prices, the last one included


@dataclass(frozen=True)
class Stream:
    """Events as they arrive, and the punctuations between them.

    The table has ``t`` (milliseconds: the event's place in the order of time), ``number`` (the same, as a sequence number), ``price``
    and ``change``.
    """

    table: pa.Table
    punctuations: tuple[tuple[int, int], ...] = ()

    @property
    def events(self) -> int:
        """How many events there are."""
        return int(self.table.num_rows)

    def punctuated(self, every: int) -> Stream:
        """With a punctuation every so many rows: the least time that is yet to come, the best that a source could know."""
        times = self.table["t"].to_numpy()
        to_come = np.minimum.accumulate(times[::-1])[::-1]
        rows = range(every, len(times), every)
        return Stream(self.table, tuple((row, int(to_come[row])) for row in rows))

    def batches(self, size: int) -> list[tuple[pa.Table, list[tuple[int, int]]]]:
        """Parts of so many rows with their punctuations; rows of these count from the part's beginning."""
        found = []
        at = 0
        for begin in range(0, self.events, size):
            part = self.table.slice(begin, size).combine_chunks()
            pairs = []
            while at < len(self.punctuations) and self.punctuations[at][0] <= begin + part.num_rows:
                row, time = self.punctuations[at]
                pairs.append((row - begin, time))
                at += 1
            found.append((part, pairs))
        return found


@lru_cache(maxsize=8)
def ticks(events: int, *, up: float, mean: float, deviation: float, seed: int) -> F64:
    """Price changes: up with probability ``up``, of a size from a normal distribution cut off at 0."""
    draw = np.random.default_rng(seed)
    sizes = draw.normal(mean, deviation, events)
    while (wrong := np.flatnonzero(sizes <= 0)).size:
        sizes[wrong] = draw.normal(mean, deviation, wrong.size)
    return np.where(draw.random(events) < up, sizes, -sizes)


def yahoo_path() -> Path | None:
    """The file of Yahoo's daily prices in the data folder, if it is there."""
    return next(iter(sorted(data_folder().glob("yhoo_daily*.csv.gz"))), None)


def yahoo(events: int, path: Path) -> F64:
    """The changes of Yahoo's opening prices from 1996 to 2009, again and again; days without a change are left out."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    prices = [float(row["open"]) for row in rows if YEARS[0] <= row["date"][:4] <= YEARS[1]]
    changes = np.diff(np.array(prices))
    return np.resize(changes[changes != 0], events)


def quotes(changes: F64, *, ignorable: float = 0, seed: int = 0) -> Stream:
    """Events in order. Of ``ignorable`` percent the price stays as it is, so that no arc of a query takes them."""
    changes = changes.copy()
    if ignorable:
        changes[np.random.default_rng(seed + 1000).random(changes.size) < ignorable / 100] = 0.0
    time = np.arange(changes.size)
    return Stream(pa.table({"t": time, "number": time, "price": np.cumsum(changes), "change": changes}))


def late(stream: Stream, share: float, most: int, *, seed: int = 0) -> Stream:
    """The events as they arrive when ``share`` percent of them come late by 1 to ``most`` events."""
    draw = np.random.default_rng(seed + 2000)
    count = stream.events
    moved = draw.random(count) < share / 100
    place = np.arange(count) + np.where(moved, draw.integers(1, most + 1, count) + 0.5, 0.0)
    return Stream(stream.table.take(pa.array(np.argsort(place, kind="stable"))).combine_chunks())
