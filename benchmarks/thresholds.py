"""``python -m benchmarks.thresholds``: moving aggregates, ``count(*) OVER w >= n`` by key, beside DuckDB's windows and a deque.

Events of random keys, half a tick apart; compared is how many events reach the threshold, and the run fails where a side finds
what it must not. Processor seconds of the whole call, the least of two whose kernels are there; DuckDB sorts by key and time on all
its threads; the deque, of Python's own objects that are there already, has a tenth of the events. ``--batches 1000`` pushes the same
into a matcher, so many at a time.

Bias: towards DuckDB, which gives a number where stretto gives the matches; towards stretto, events lie in the order of time.
"""

from __future__ import annotations

import argparse
import collections
import resource
import sys
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import stretto

EVENTS, KEYS = 10_000_000, 100_000
CASES: list[tuple[str, float]] = [("count(*)", 18), ("count(DISTINCT u)", 18), ("sum(x)", 1_000), ("max(d)", 0.999)]


def stream(events: int, keys: int) -> pa.Table:
    """Events of random keys."""
    rng = np.random.default_rng(1)
    columns = {"t": np.cumsum(rng.integers(0, 2, events)), "k": rng.integers(0, keys, events)}
    columns |= {"u": rng.integers(0, 1_000, events), "x": rng.integers(0, 100, events), "d": rng.random(events)}
    return pa.table({"type": pa.array(["F"] * events).dictionary_encode()} | columns)


def measured(call: Callable[[], int], times: int = 2) -> tuple[float, int]:
    """Processor seconds, the least, and the result."""
    least, found = float("inf"), 0
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_SELF)
        found = call()
        after = resource.getrusage(resource.RUSAGE_SELF)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least, found


def asked(aggregate: str, window: int, least: float) -> str:
    """The query."""
    return f"SELECT * FROM S WHERE F AS f FILTER f[{aggregate} OVER {window} [t] >= {least}] PARTITION BY [k]"


def pushed(query: str, events: pa.Table, size: int) -> int:
    """How many matches a matcher gives of events that come so many at a time."""
    matcher = stretto.Matcher(query, events.schema, time="t", output="positions", warn_after=None)
    return sum(matcher.push(batch).num_rows for batch in events.to_batches(max_chunksize=size))


def deques(events: pa.Table, window: int, least: float) -> int:
    """The same count with a deque for each key."""
    found, open_events = 0, collections.defaultdict[int, collections.deque[int]](collections.deque)
    for time, key in zip(events["t"].to_pylist(), events["k"].to_pylist(), strict=True):
        own = open_events[key]
        own.append(time)
        while own[0] < time - window:
            own.popleft()
        found += len(own) >= least
    return found


def main() -> int:
    """Measure, and compare what is found; 1 where it differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--batches", type=int, default=0)
    given = parser.parse_args()
    events, window = stream(given.events, given.keys), 6 * given.keys  # some twelve events of each key
    wrong = 0
    import duckdb

    connection = duckdb.connect()
    connection.register("events", events)
    for aggregate, least in CASES:
        query = asked(aggregate, window, least)
        pushed(query, events.slice(0, 1_000), 500)
        seconds, found = measured(
            lambda query=query: stretto.match(query, events, time="t", output="positions").num_rows
        )
        told = f"{aggregate:<18} {found:>9,} events   stretto {seconds:6.2f} s, {given.events / seconds / 1e6:.1f} M/s"
        if given.batches:
            seconds, again = measured(lambda query=query: pushed(query, events, given.batches), 1)
            wrong += again != found
            told += f"; in batches of {given.batches:,} {given.events / seconds / 1e6:.1f} M/s"
        over = f"over (partition by k order by t range between {window} preceding and current row)"
        # Of events of one time DuckDB counts those behind as well: numbers of rows tell them apart.
        text = f"select count(*) from (select {aggregate} {over} as value from events) where value >= {least}"
        seconds, other = measured(lambda text=text: connection.execute(text).fetchone()[0], 1)
        print(f"{told}; DuckDB {seconds:6.2f} s ({other:,}, with those of the same time that come later)", flush=True)
        wrong += not found <= other
    some = events.slice(0, max(1, given.events // 10))
    seconds, other = measured(lambda: deques(some, window, CASES[0][1]), 1)
    found = stretto.match(asked(CASES[0][0], window, CASES[0][1]), some, time="t", output="positions").num_rows
    print(f"deque              {other:>9,} events   {some.num_rows / seconds / 1e6:.2f} M/s")
    return int(bool(wrong + (found != other)))


if __name__ == "__main__":
    sys.exit(main())
