"""``python -m benchmarks.sets``: many patterns over one stream, in one set.

Stock events; patterns of three steps that differ in constants: ``x`` and ``y`` of a name each, ``z`` of a name above a price. What it
shows: events a second with 100, 1,000 and 3,000 patterns, how long these take to compile, and what a change of one costs while the
set runs. A wrong count of matches fails the run. Where so many prefixes are said, patterns share their first two steps with others.

Bias: towards the engine, patterns are of one shape and name what they want, and most events concern few of them; with 10 names, each
event concerns a seventh of all. Names are drawn evenly.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import stretto

SCHEMA = {"type": "string", "name": "string", "price": "double", "ts": "int64"}
EVENTS = 300_000


class Case(NamedTuple):
    """How many patterns over how many names, the window, how many matches there are, and how many different first two steps."""

    patterns: int
    names: int
    window: int
    expected: int
    prefixes: int | None = None  #: ``None``: each pattern has its own


CASES = [
    Case(100, 1_000, 2_000, 3_671),
    Case(1_000, 1_000, 2_000, 36_450),
    Case(3_000, 1_000, 2_000, 110_635),
    Case(1_000, 10, 6, 277_336),
    Case(1_000, 100, 200, 366_018, 1_000),
    Case(1_000, 100, 200, 367_458, 100),
    Case(1_000, 100, 200, 367_810, 10),
    Case(1_000, 100, 200, 352_926, 1),
]


def stream(events: int, names: int) -> pa.Table:
    """Stock events."""
    rng = np.random.default_rng(1)
    types = rng.choice(["BUY", "SELL"], events)
    name = np.array([f"S{number:04}" for number in range(names)])[rng.integers(0, names, events)]
    return pa.table({"type": types, "name": name, "price": rng.random(events) * 100, "ts": np.arange(events) + 1})


def changes(case: Case) -> list[stretto.Change]:
    """The patterns of a case."""
    rng = np.random.default_rng(2)
    found, beginnings = [], []
    for number in range(case.patterns):
        names = rng.integers(0, case.names, 3)
        beginnings.append(names[:2])
        names[:2] = beginnings[number % (case.prefixes or case.patterns)]
        first, second, third = (f"S{name:04}" for name in names)
        tests = f"x[name='{first}'] AND y[name='{second}'] AND z[name='{third}' AND price>{rng.random() * 100:.2f}]"
        text = f"SELECT * FROM S WHERE BUY AS x ; BUY AS y ; BUY AS z FILTER {tests} WITHIN {case.window} [ts]"
        found.append(stretto.Change(f"p{number:05}", text))
    return found


def measured(case: Case, events: pa.Table) -> tuple[float, float, int]:
    """Processor seconds to compile and to match, and how many matches there are."""
    patterns = stretto.PatternSet(SCHEMA, time="ts")
    given = changes(case)
    start = time.process_time()
    patterns.change(given)
    compiled = time.process_time()
    rows = sum(table.num_rows for table in patterns.iter_push(events))
    return compiled - start, time.process_time() - compiled, rows


#: So many patterns are added, replaced and retired, in turn, and so many events come between.
CHANGES, BETWEEN = 30, 100


def changing(case: Case, events: pa.Table) -> float:
    """Processor seconds that a change takes with the push in which it comes into force, beyond those of a push without a change."""
    *given, fresh = (change.query for change in changes(case._replace(patterns=case.patterns + 1)))
    patterns = stretto.PatternSet(SCHEMA, time="ts")
    patterns.change([stretto.Change(f"p{number}", query) for number, query in enumerate(given)])
    pieces = iter(events.slice(at, BETWEEN) for at in range(0, events.num_rows, BETWEEN))
    patterns.push(next(pieces))  # which makes the index of all
    spent = 0.0
    for number in range(CHANGES):
        name, query = [(f"new{number}", fresh), (f"p{number}", fresh), (f"p{number}", None)][number % 3]
        before, changed = next(pieces), next(pieces)
        start = time.process_time()
        patterns.push(before)
        between = time.process_time()
        patterns.change(stretto.Change(name, query, since=changed.column("ts")[0]))
        patterns.push(changed)
        spent += (time.process_time() - between) - (between - start)
    return spent / CHANGES


def main() -> int:
    """Run all cases, each twice: the first one compiles."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sets", description=__doc__)
    parser.add_argument(
        "--events", type=int, default=EVENTS, help="events of the stream; counts are checked for the default"
    )
    arguments = parser.parse_args()
    wrong = 0
    for case in CASES:
        events = stream(arguments.events, case.names)
        compiling, _, rows = measured(case, events)
        _, matching, again = measured(case, events)
        wrong += rows != again or (arguments.events == EVENTS and rows != case.expected)
        change = changing(case, events)
        rate = events.num_rows / matching
        prefixes = case.prefixes or case.patterns
        print(
            f"{case.patterns:,} patterns ({prefixes:,} prefixes), {case.names:,} names, window {case.window:,}: "
            f"compiled in {compiling:.2f} s, "
            f"a change {change * 1000:.1f} ms, {rate:,.0f} events/s, {rows:,} matches (expected {case.expected:,})",
            flush=True,
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
