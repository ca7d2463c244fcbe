"""``python -m benchmarks.sets``: many patterns over one stream, in one set.

Stock events; patterns of three steps that differ in constants: ``x`` and ``y`` of a name each, ``z`` of a name above a price. What it
shows: events a second with 100, 1,000 and 3,000 patterns, how long these take to compile, and what a change of one costs while the
set runs. A wrong count of matches fails the run. Where so many prefixes are said, patterns share their first two steps with others.
Where conditions are between events, patterns are in SASE+, all of one name, and what is told first is how long the first events take:
then the code of conditions is compiled, where it is not on disk.

``--kinds`` takes fifty patterns of each kind in place of these, and tells the processor time of a set of them as a part of what they
take one by one, in a matcher each. A set is to be no slower: 1.00 or less. Other counts of rows than one by one fail the run.

Bias: towards the engine, patterns are of one shape and name what they want, and most events concern few of them; with 10 names, each
event concerns a seventh of all. Names are drawn evenly.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import stretto

SCHEMA = {"type": "string", "name": "string", "price": "double", "ts": "int64"}
EVENTS = 300_000


class Case(NamedTuple):
    """How many patterns over how many names, the window, how many matches there are, how many different first two steps, and
    whether conditions are between events."""

    patterns: int
    names: int
    window: int
    expected: int
    prefixes: int | None = None  #: ``None``: each pattern has its own
    between: bool = False


CASES = [
    Case(100, 1_000, 2_000, 3_671),
    Case(1_000, 1_000, 2_000, 36_450),
    Case(3_000, 1_000, 2_000, 110_635),
    Case(1_000, 10, 6, 277_336),
    Case(1_000, 100, 200, 366_018, 1_000),
    Case(1_000, 100, 200, 367_458, 100),
    Case(1_000, 100, 200, 367_810, 10),
    Case(1_000, 100, 200, 352_926, 1),
    Case(1_000, 1_000, 5_000, 305_229, between=True),
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
        if case.between:
            found.append(stretto.Change(f"p{number:05}", related(f"S{names[2]:04}", case.window, rng)))
            continue
        first, second, third = (f"S{name:04}" for name in names)
        tests = f"x[name='{first}'] AND y[name='{second}'] AND z[name='{third}' AND price>{rng.random() * 100:.2f}]"
        text = f"SELECT * FROM S WHERE BUY AS x ; BUY AS y ; BUY AS z FILTER {tests} WITHIN {case.window} [ts]"
        found.append(stretto.Change(f"p{number:05}", text))
    return found


def related(name: str, window: int, rng: np.random.Generator) -> str:
    """A pattern whose conditions are between events of one name."""
    named = " AND ".join(f"{one}.name = '{name}'" for one in ("a", "b[i]", "c"))
    each = f"b[i].price > a.price * {1 + rng.random():.3f} AND b[i].ts - b[i-1].ts > {rng.integers(0, 500)}"
    asked = f"{each} AND avg(b[].price) < c.price + {rng.random() * 100:.2f}"
    return f"PATTERN SEQ(BUY a, BUY+ b[], SELL c) WHERE skip_till_next_match {{ {named} AND {asked} }} WITHIN {window}"


#: So many events are the first ones.
FIRST = 2_000


class Measured(NamedTuple):
    """Processor seconds to compile, of the first events and of the others, and how many matches there are."""

    compiling: float
    beginning: float
    matching: float
    rows: int


def measured(case: Case, events: pa.Table) -> Measured:
    """What a set of the patterns takes."""
    patterns = stretto.PatternSet(SCHEMA, time="ts")
    given = changes(case)
    times = [time.process_time()]
    patterns.change(given)
    times.append(time.process_time())
    rows = 0
    for piece in (events.slice(0, FIRST), events.slice(FIRST)):
        rows += sum(table.num_rows for table in patterns.iter_push(piece))
        times.append(time.process_time())
    return Measured(*np.diff(times).tolist(), rows)


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


# ---- A set and its patterns one by one

#: Columns of the events of kinds; there are so many types, and so many patterns of a kind.
COLUMNS = {"type": "string", "k": "int64", "x": "double", "d": "int64", "t": "int64"}
TYPES, EACH = 60, 50

#: So many times a set and its patterns are run, in turn; the fastest counts.
TIMES = 3

#: The queries of a kind: ``{i}`` is another type, or number, for each pattern. Those of ``DENSE`` concern most of four types' events.
KINDS = {
    "few listed": "SELECT * FROM S WHERE T0 AS a ; T1 AS b ; T{i} AS c FILTER b[x > {i}] WITHIN 200 [t]",
    "many listed": "SELECT * FROM S WHERE T0 AS a ; T1+ AS b ; T{i} AS c WITHIN 300 [t]",
    "with keys": "SELECT * FROM S WHERE T0 AS a ; T{i} AS c PARTITION BY [k] WITHIN 4000 [t]",
    "timeouts": "SELECT * FROM S WHERE T0 AS a ; T{i} AS b ; NOT T1 WITHIN 100 [t]",
    "EVERY EVENT": "SELECT COUNT(*), SUM(b[x]) FROM S WHERE T0 AS a ; T1+ AS b ; T{i} AS c WITHIN 200 [t] EVERY EVENT",
    "EVERY d": "SELECT COUNT(*), SUM(b[x]) FROM S WHERE T0 AS a ; T1+ AS b ; T{i} AS c WITHIN 200 [t] EVERY 200",
    "EVERY d, keys": (
        "SELECT COUNT(*), SUM(b[x]) FROM S WHERE T0 AS a ; T1+ AS b ; T{i} AS c PARTITION BY [k] WITHIN 4000 [t] EVERY 4000"
    ),
    "GROUP BY": "SELECT COUNT(*), SUM(c[x]) FROM S WHERE T0 AS a ; T1 AS b ; T{i} AS c WITHIN 200 [t] GROUP BY b[k]",
    "SASE+": "PATTERN SEQ(T0 a, T1 b, T{i} c) WHERE skip_till_any_match {{ a.k = c.k AND b.x > {i} }} WITHIN 600",
    "EQL": "sequence by k with maxspan=4000s [T0 where x > {i}] [T1 where x < 90] [T{i} where true]",
    "clauses": (
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY t MEASURES A.t AS s, C.t AS e PATTERN (A B* C) "
        "DEFINE A AS type = 'T0', B AS x > {i}, C AS type = 'T{i}')"
    ),
    "AFA": "T0 T{i}",
}
DENSE = {
    "few listed": (
        "SELECT * FROM S WHERE T0 AS a ; T1 AS b ; T2 AS c FILTER a[x > 95] AND b[x > {i}] AND c[x > 95] WITHIN 100 [t]"
    ),
    "many listed": "SELECT * FROM S WHERE T0 AS a ; T1+ AS b ; T2 AS c FILTER b[x > 9{i}] WITHIN 30 [t]",
    "EVERY EVENT": (
        "SELECT COUNT(*), SUM(b[x]) FROM S WHERE T0 AS a ; T1+ AS b ; T2 AS c FILTER b[x > {i}] WITHIN 100 [t] EVERY EVENT"
    ),
    "GROUP BY": (
        "SELECT COUNT(*), SUM(b[x]) FROM S WHERE T0 AS a ; T1 AS b ; T2 AS c FILTER b[x > {i}] WITHIN 100 [t] GROUP BY b[k]"
    ),
    "SASE+, many listed": (
        "PATTERN SEQ(T0 a, T1+ b[], T2 c) WHERE skip_till_next_match {{ [k] AND b[i].x > {i} }} WITHIN 1000"
    ),
    "AFA": "T0 T2 {i}",
}


def events_of(count: int, types: int) -> pa.Table:
    """Events of so many types, drawn evenly."""
    rng = np.random.default_rng(7)
    names = np.array([f"T{number}" for number in range(types)])[rng.integers(0, types, count)]
    columns = {
        "type": names,
        "k": rng.integers(0, 50, count),
        "x": rng.random(count) * 100,
        "d": rng.integers(0, 8, count),
    }
    return pa.table(columns | {"t": np.arange(count)})


def automaton(text: str) -> stretto.AFA:
    """An automaton: from an event of the first type to one of the second, over events with ``x`` above a number."""
    first, last, *least = text.split()
    afa = stretto.AFA(COLUMNS, register={"n": "int64"}, window=50)
    afa.arc("q0", "q1", when=f"e.type = '{first}'", then="n = e.k")
    afa.arc("q1", "q1", when=f"e.x > {''.join(least) or 50}")
    return afa.arc("q1", "q2", when=f"e.type = '{last}'").final("q2")


def queries_of(kind: str, text: str) -> list[Any]:
    """The patterns of a kind."""
    texts = [text.format(i=number) for number in range(2, 2 + EACH)]
    return [automaton(one) for one in texts] if kind == "AFA" else texts


def of_set(kind: str, queries: list[Any], events: pa.Table) -> int:
    """How many rows a set of the patterns gives; it is asked for what rows say one by one, and for no more."""
    asked: dict[str, Any] = {"output": "positions", "positions": True}
    if "EVERY" in kind or "GROUP" in kind:
        asked["totals"] = True
    if kind == "clauses":
        asked["measures"] = True
    if kind in ("with keys", "EVERY d, keys", "EQL", "SASE+, many listed"):
        asked["by"] = "k"
    patterns = stretto.PatternSet(COLUMNS, time="t", time_unit="s", **asked)
    language = "eql" if kind == "EQL" else None
    patterns.change([stretto.Change(f"p{n:02}", one, language=language) for n, one in enumerate(queries)])
    return sum(one.num_rows for one in patterns.iter_push(events)) + patterns.finish().num_rows


def of_matchers(kind: str, queries: list[Any], events: pa.Table) -> int:
    """How many rows matchers of the patterns give, one after the other."""
    options: dict[str, Any] = {"time": "t", "time_unit": "s", "output": "positions"}
    if kind in ("AFA", "clauses"):
        options = {"time": "t", "provenance": True} if kind == "AFA" else {}
    elif kind == "EQL":
        options["language"] = "eql"

    def tables() -> Iterator[pa.Table]:
        for query in queries:
            matcher = stretto.Matcher(query, COLUMNS, **options)
            yield from matcher.iter_push(events)
            yield matcher.finish()

    return sum(one.num_rows for one in tables())


def kinds(count: int) -> int:
    """Compare all kinds; how many give other rows in a set."""
    wrong = 0
    for title, types, texts in (("", TYPES, KINDS), ("dense: ", 4, DENSE)):
        events = events_of(count, types)
        for kind, text in texts.items():
            queries = queries_of(kind, text)
            calls = [partial(of_set, kind, queries, events), partial(of_matchers, kind, queries, events)]
            rows, least = [0, 0], [np.inf, np.inf]
            for at in [0, 1] * TIMES:
                start = time.process_time()
                rows[at] = calls[at]()
                least[at] = min(least[at], time.process_time() - start)
            wrong += rows[0] != rows[1]
            print(
                f"{title}{kind}, {EACH} patterns, {count:,} events: set / one by one {least[0] / least[1]:.2f} "
                f"({least[0]:.2f} s, {least[1]:.2f} s), {rows[0]:,} rows (expected {rows[1]:,})",
                flush=True,
            )
    return wrong


def main() -> int:
    """Run all cases, each twice: the first one compiles."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sets", description=__doc__)
    parser.add_argument(
        "--events", type=int, default=EVENTS, help="events of the stream; counts are checked for the default"
    )
    parser.add_argument("--kinds", action="store_true", help="compare sets of each kind with their patterns one by one")
    arguments = parser.parse_args()
    if arguments.kinds:
        return int(kinds(arguments.events) > 0)
    wrong = 0
    for case in CASES:
        events = stream(arguments.events, case.names)
        first, again = measured(case, events), measured(case, events)
        wrong += first.rows != again.rows or (arguments.events == EVENTS and first.rows != case.expected)
        change = changing(case, events)
        rate = events.num_rows / (again.beginning + again.matching)
        kind = "conditions between events" if case.between else f"{case.prefixes or case.patterns:,} prefixes"
        print(
            f"{case.patterns:,} patterns ({kind}), {case.names:,} names, window {case.window:,}: "
            f"compiled in {first.compiling:.2f} s, first events in {first.beginning:.2f} s, "
            f"a change {change * 1000:.1f} ms, {rate:,.0f} events/s, {first.rows:,} matches (expected {case.expected:,})",
            flush=True,
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
