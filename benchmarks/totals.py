"""``python -m benchmarks.totals``: counts and sums over all matches, of which there are too many to list.

``A ; B+ ; C`` by key, in windows: of 64 events of a key 8 are A, 48 are B and 8 are C, in this order, so that a window of 64 ticks
has 8 · (2^48 − 1) · 8 matches for each key, and one of 8 ticks has 63. What it shows: events a second of the whole call, on one core,
for ``COUNT(*)`` and for all five functions; that windows of 2^54 matches cost what those of 63 do; what more panes in a window cost;
and listing, where there are few enough to list. A wrong count fails the run: counts of windows that do not overlap are compared with
an oracle in whole numbers.

Bias: towards the engine, keys come in turn, each window of a key has few starts, and every event is one that the query names.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import stretto

EVENTS = 10_240_000  # whole windows of all keys
KEYS = 1_000
PATTERN = "FROM S WHERE A ; B+ ; C PARTITION BY [k]"
COUNTS = "COUNT(*)"
ALL = "COUNT(*), SUM(B[x]) AS s, MIN(B[v]), MAX(B[v]), AVG(B[v])"


class Case(NamedTuple):
    """What is asked, the windows, and how long a row of A, B and C of a key is."""

    name: str
    items: str
    size: int
    slide: int
    row: int


CASES = [
    Case("2^54 matches a window", COUNTS, 64, 64, 64),
    Case("63 matches a window", COUNTS, 8, 8, 8),
    Case("2^54 matches a window", ALL, 64, 64, 64),
    Case("63 matches a window", ALL, 8, 8, 8),
    Case("4 panes", COUNTS, 64, 16, 64),
    Case("16 panes", COUNTS, 64, 4, 64),
    Case("64 panes", COUNTS, 64, 1, 64),
]


def stream(events: int, row: int) -> pa.Table:
    """Events of all keys in turn."""
    at = np.arange(events)
    place = at // KEYS % row
    kinds = np.where(place < row // 8, 0, np.where(place < row - row // 8, 1, 2)).astype(np.int8)
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(["A", "B", "C"])),
            "k": at % KEYS,
            "t": at // KEYS,
            "v": rng.integers(1, 100, events),
            "x": rng.random(events),
        }
    )


def counted(events: pa.Table, size: int) -> int:
    """How many matches lie in windows that do not overlap, in whole numbers."""
    whole = events.slice(0, events.num_rows // (KEYS * size) * KEYS * size)
    total, windows = 0, whole.num_rows // (KEYS * size)
    if windows:
        first = whole["type"].combine_chunks().indices.to_numpy()[: KEYS * size : KEYS].tolist()
        starts = runs = found = 0
        for kind in first:
            if kind == 0:
                starts += 1
            elif kind == 1:
                runs = 2 * runs + starts
            else:
                found += runs
        total = found * windows * KEYS
    return total


def measured(query: str, events: pa.Table) -> tuple[float, pa.Table]:
    """Processor seconds of a call whose kernels are there, and what it gives."""
    stretto.match(query, events.slice(0, 10 * KEYS), time="t")
    began = time.process_time()
    found = stretto.match(query, events, time="t")
    return time.process_time() - began, found


def text_of(case: Case) -> str:
    """The query of a case."""
    return f"SELECT {case.items} {PATTERN} WITHIN {case.size} [t] EVERY {case.slide} [t]"


def total(found: pa.Table) -> int:
    """All counts together, which are more than 64 bits hold."""
    counts = found["count"]
    high = pc.sum(pc.shift_right(counts, 32)).as_py() or 0
    low = pc.sum(pc.bit_wise_and(counts, (1 << 32) - 1)).as_py() or 0
    return (int(high) << 32) + int(low)


def main() -> int:
    """Run all cases; the kernels are compiled before they are timed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.totals", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="events of the stream")
    events = parser.parse_args().events
    streams = {row: stream(events, row) for row in (8, 64)}
    wrong = 0
    for case in CASES:
        given = streams[case.row]
        seconds, found = measured(text_of(case), given)
        told = ""
        if case.size == case.slide and events % (KEYS * case.size) == 0:
            right = counted(given, case.size)
            wrong += total(found) != right
            told = f", {right:,} matches expected, {total(found):,} counted"
        print(
            f"{case.items} · {case.name}, EVERY {case.slide}: {events / seconds / 1e6:.2f} M events/s, "
            f"{found.num_rows:,} rows{told}",
            flush=True,
        )
    few = streams[8].slice(0, max(1, events // 100))
    query = "SELECT * FROM S WHERE A ; B+ ; C PARTITION BY [k] WITHIN 7 [t]"
    seconds, listed = measured(query, few)
    print(
        f"listing: {few.num_rows / seconds / 1e6:.2f} M events/s, {listed.num_rows:,} matches of {few.num_rows:,} events"
    )
    for number in (1, 10, 50):
        some = streams[64].slice(0, max(1, events // 10))
        began = time.process_time()
        for one in range(number):
            query = f"SELECT COUNT(*) FROM S WHERE A ; B+ AS b ; C FILTER b[v > {one}] PARTITION BY [k] WITHIN 64 [t] EVERY 64 [t]"
            stretto.match(query, some, time="t")
        seconds = time.process_time() - began
        print(f"{number} queries, one after the other: {some.num_rows / seconds / 1e6:.2f} M events/s", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
