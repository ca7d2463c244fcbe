"""``python -m benchmarks.totals``: counts and sums over all matches, of which there are too many to list.

``--endless 100000000`` pushes so many events through one matcher instead, and tells its memory, which must stay flat.

``A ; B+ ; C`` by key, in windows: of 64 events of a key 8 are A, 48 are B and 8 are C, in this order, so that a window of 64 ticks
has 8 · (2^48 − 1) · 8 matches for each key, and one of 8 ticks has 63. What it shows: events a second of the whole call, on one core,
for ``COUNT(*)`` and for all five functions; that windows of 2^54 matches cost what those of 63 do; what more panes in a window cost;
listing, where there are few enough to list; the best 10 and samples of 100 of each window, beside listing all and choosing; and 1,
10 and 50 queries that differ in a constant, one after the other and as a set of patterns in one pass. A wrong count fails the run:
counts of windows that do not overlap are compared with an oracle in whole numbers, the best with those of what is listed.

Where conditions relate events, ``A ; B+`` with rising values, runs become one and are added up on their lists: rows of one A and so
many B, of which each choice matches. Beside it stands the listing of the same, for rows that are short enough; both must have as many
matches.

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
from numpy.typing import NDArray

import stretto
from benchmarks.workers.resident import resident

EVENTS = 10_240_000  # whole windows of all keys
KEYS = 1_000
PATTERN = "FROM S WHERE A ; B+ ; C PARTITION BY [k]"
COUNTS = "COUNT(*)"
ALL = "COUNT(*), SUM(B[x]) AS s, MIN(B[v]), MAX(B[v]), AVG(B[v])"


#: Rows of rising values that are longer are not listed.
MOST_LISTED = 12


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


def endless(events: int) -> int:
    """What a matcher that adds up takes in memory over a stream without end; 1 where it grows behind the first tenth."""
    matcher: stretto.Matcher | None = None
    piece = 16 * 64 * KEYS  # whole windows
    given = stream(piece, 64)
    samples, seconds, rows = [], 0.0, 0
    for at in range(max(10, events // piece)):
        batch = given.set_column(2, "t", pc.add(given["t"], at * (piece // KEYS)))
        if matcher is None:
            matcher = stretto.Matcher(text_of(CASES[2]), schema=batch.schema, time="t")
        began = time.process_time()
        rows += matcher.push(batch).num_rows
        seconds += time.process_time() - began
        samples.append(resident())
    first, last = max(samples[: len(samples) // 10]), max(samples)
    print(
        f"{len(samples) * piece:,} events through one Matcher, {ALL}: "
        f"{len(samples) * piece / seconds / 1e6:.2f} M events/s, {rows:,} rows; "
        f"resident {first / 1e6:.0f} MB after a tenth, {last / 1e6:.0f} MB at most",
        flush=True,
    )
    return int(last > 1.1 * first)


def text_of(case: Case) -> str:
    """The query of a case."""
    return f"SELECT {case.items} {PATTERN} WITHIN {case.size} [t] EVERY {case.slide} [t]"


def best_listed(events: pa.Table, most: int) -> NDArray[np.int64]:
    """The best scores of each key and window of 8 ticks, of all matches that are listed."""
    listed = stretto.match(f"SELECT B[v] {PATTERN} WITHIN 7 [t]", events, time="t", budget=np.inf)
    held = listed["B"].combine_chunks()
    values = held.flatten().field("v").to_numpy()
    scores = np.add.reduceat(values, held.offsets.to_numpy()[:-1])
    key, window = listed["k"].to_numpy(), listed["start_time"].to_numpy() // 8
    order = np.lexsort((-scores, window, key))
    part = (key * (window.max() + 1) + window)[order]
    first = np.flatnonzero(np.diff(part, prepend=-1))
    rank = np.arange(part.size) - np.repeat(first, np.diff(first, append=part.size))
    found: NDArray[np.int64] = np.sort(scores[order][rank < most])
    return found


def chosen(streams: dict[int, pa.Table], events: int) -> int:
    """The best and samples beside listing and choosing; how many were wrong."""
    query = f"SELECT B[v] {PATTERN} WITHIN {{0}} [t] EVERY {{0}} [t] {{1}}"
    wrong = 0
    for row, share, what in ((64, 20, "2^54 matches a window"), (8, 20, "63 matches a window")):
        some = streams[row].slice(0, max(KEYS * 64, events // share))
        for choice in ("ORDER BY SUM(B[v]) DESC LIMIT 10", "SAMPLE 100"):
            seconds, found = measured(query.format(row, choice), some)
            print(
                f"{choice} · {what}: {some.num_rows / seconds / 1e6:.2f} M events/s, {found.num_rows:,} rows",
                flush=True,
            )
            if row == 8 and "LIMIT" in choice:
                held = found["B"].combine_chunks()
                scores = np.add.reduceat(held.flatten().field("v").to_numpy(), held.offsets.to_numpy()[:-1])
                best_listed(some.slice(0, 10 * KEYS), 10)
                began = time.process_time()
                right = best_listed(some, 10)
                seconds = time.process_time() - began
                wrong += not np.array_equal(np.sort(scores), right)
                print(f"… listed, and the best taken: {some.num_rows / seconds / 1e6:.2f} M events/s", flush=True)
    return wrong


def alike(events: pa.Table) -> int:
    """Queries that differ in a constant, one after the other and as a set of patterns; how many sets count other matches."""
    wrong = 0
    for number in (1, 10, 50):
        queries = {
            str(one): f"SELECT COUNT(*) FROM S WHERE A ; B+ AS b ; C FILTER b[v > {one}] "
            "PARTITION BY [k] WITHIN 64 [t] EVERY 64 [t]"
            for one in range(number)
        }
        for query in queries.values():
            stretto.match(query, events.slice(0, KEYS), time="t")
        in_one_pass(queries, events.slice(0, KEYS))
        began = time.process_time()
        right = sum(total(stretto.match(query, events, time="t")) for query in queries.values())
        apart = time.process_time() - began
        began = time.process_time()
        found = in_one_pass(queries, events)
        together = time.process_time() - began
        wrong += right != total(pa.table({"count": pc.map_lookup(found["totals"], "count", "first").cast(pa.int64())}))
        print(
            f"{number} queries: {events.num_rows / apart / 1e6:.2f} M events/s one after the other, "
            f"{events.num_rows / together / 1e6:.2f} in one pass",
            flush=True,
        )
    return wrong


def in_one_pass(queries: dict[str, str], events: pa.Table) -> pa.Table:
    """What a set of patterns gives."""
    patterns = stretto.PatternSet(events.schema, time="t", totals=True, output="positions")
    patterns.change([stretto.Change(name, query) for name, query in queries.items()])
    return pa.concat_tables([patterns.push(events), patterns.finish()])


def total(found: pa.Table) -> int:
    """All counts together, which are more than 64 bits hold."""
    counts = found["count"]
    high = pc.sum(pc.shift_right(counts, 32)).as_py() or 0
    low = pc.sum(pc.bit_wise_and(counts, (1 << 32) - 1)).as_py() or 0
    return (int(high) << 32) + int(low)


def rising(row: int, events: int) -> int:
    """Count and add up over matches whose events are related, and list them where a row has few; how many numbers are wrong."""
    at = np.arange(events - events % row)
    place = at % row
    kinds = pa.DictionaryArray.from_arrays(pa.array((place > 0).astype(np.int8)), pa.array(["A", "B"]))
    given = pa.table({"type": kinds, "t": at, "v": place, "k": at // row})
    pattern = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] and b[i].v > b[i-1].v } WITHIN 1000"
    right = given.num_rows // row * (2 ** (row - 1) - 1)
    items = "count(*), sum(b[].v), max(b[].v)"
    seconds, found = measured(f"{pattern} RETURN TOTAL {items} GROUP BY ()", given)
    wrong = int(found["count"][0].as_py() != right)
    told = f"rising, rows of {row}: {given.num_rows / seconds / 1e6:.3f} M events/s, {right:,} matches"
    if row <= MOST_LISTED:
        seconds, found = measured(pattern, given)
        wrong += found.num_rows != right
        told += f"; listing: {given.num_rows / seconds / 1e6:.3f} M events/s"
    print(told, flush=True)
    return wrong


def main() -> int:
    """Run all cases; the kernels are compiled before they are timed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.totals", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="events of the stream")
    parser.add_argument("--endless", type=int, default=0, help="only the memory of a stream of so many events")
    arguments = parser.parse_args()
    if arguments.endless:
        return endless(arguments.endless)
    events = arguments.events
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
    for row in (4, 8, 12, 40):
        wrong += rising(row, min(events // 10, 40_000 if row > MOST_LISTED else 800_000 // row))
    few = streams[8].slice(0, max(1, events // 100))
    query = "SELECT * FROM S WHERE A ; B+ ; C PARTITION BY [k] WITHIN 7 [t]"
    seconds, listed = measured(query, few)
    print(
        f"listing: {few.num_rows / seconds / 1e6:.2f} M events/s, {listed.num_rows:,} matches of {few.num_rows:,} events"
    )
    wrong += chosen(streams, events)
    wrong += alike(streams[64].slice(0, max(1, events // 10)))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
