"""Snapshots of everything that is no plain matcher, kept as :mod:`tests.snapshots.kept` keeps those of matchers.

``python -m tests.snapshots.operators NAME [CASE …]`` writes those of this version into the folder ``NAME``: ``CASE.state``, and in
``CASE.json`` the rows that going on from it gives.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import stretto
from stretto.dataflow import Dataflow, Stream, fixpoint, stream
from stretto.dataflow.plan_json import to_json
from stretto.spark.dataflows.group_bucket import GroupBucket
from stretto.spark.dataflows.groups import INPUT, OUTPUT, Groups
from stretto.spark.streaming.bucket import Bucket
from stretto.spark.streaming.keeping import Settings
from stretto.spark.streaming.packing import write_table
from stretto.spark.streaming.runs import ManyPatterns, OneClause
from tests.snapshots.kept import CUT, FOLDER, expected_rows, watermark_at
from tests.snapshots.kept import stream as events

__all__ = ["CASES", "Case", "rows_after"]


@dataclass(frozen=True)
class Case:
    """Something with a state: how it is made, what it reads before its state is taken, and what afterwards."""

    make: Callable[[], Any]
    before: Callable[[Any], object]
    after: Callable[[Any], Iterator[pa.Table]]


def early() -> pa.Table:
    return _shuffled(events().slice(0, CUT))


def later() -> pa.Table:
    return _shuffled(events().slice(CUT))


def _shuffled(table: pa.Table) -> pa.Table:
    """Three events in a row come in reverse."""
    order = [
        at for first in range(0, table.num_rows, 3) for at in reversed(range(first, min(first + 3, table.num_rows)))
    ]
    return table.take(pa.array(order))


# -- automata ---------------------------------------------------------------------------------------------------------


def rises() -> stretto.AFA:
    """A, then greater and greater values of x, then D."""
    afa = stretto.AFA({"type": str, "x": int, "key": str}, register={"top": int}, window=8_000_000)
    afa.arc("q0", "up", when="e.type = 'A' AND e.x IS NOT NULL", then="top = e.x", id="begin")
    afa.arc("up", "up", when="e.x > r.top", then="top = e.x", id="rise")
    afa.arc("up", "end", when="e.type = 'D'", id="end")
    return afa.final("end")


def ticks(table: pa.Table) -> pa.Table:
    """The events with integer times, which windows of automata count."""
    return table.set_column(table.column_names.index("ts"), "ts", table.column("ts").cast(pa.int64()))


def automaton() -> Any:
    return stretto.Matcher(rises(), time="ts", late="drop")


def read_automaton(matcher: Any) -> None:
    table = ticks(early())
    matcher.push(table.slice(0, 30))
    matcher.add_arc("up", "end", when="e.type = 'C'", id="other")
    matcher.retire_arc("rise")
    matcher.push(table.slice(30))
    matcher.advance(table.column("ts")[20].as_py())


def go_on_with_automaton(matcher: Any) -> Iterator[pa.Table]:
    yield matcher.push(ticks(later()))
    yield matcher.finish()


def go_on(matcher: Any) -> Iterator[pa.Table]:
    yield matcher.push(later())
    yield matcher.finish()


# -- clauses of SQL ---------------------------------------------------------------------------------------------------

CLAUSE = """MATCH_RECOGNIZE (
    PARTITION BY key ORDER BY ts
    MEASURES FIRST(ts) AS first_time, A.x AS x, LAST(type) AS last_type, count(*) AS n, MATCH_NUMBER() AS number
    PATTERN (A B* C+) WITHIN INTERVAL '25' SECOND
    DEFINE A AS type <> 'D', B AS x >= A.x OR x IS NULL, C AS type <> A.type AND PREV(type) <> type
)"""


def clause() -> stretto.Matcher:
    return stretto.Matcher(CLAUSE, events().schema)


def clause_bucket() -> Bucket:
    run = OneClause(CLAUSE, events().schema.serialize().to_pybytes())
    return Bucket(run, Settings("ts", None, None, "drop", None, 5_000_000, 64))


def go_on_with_clause(matcher: stretto.Matcher) -> Iterator[pa.Table]:
    yield matcher.push(events().slice(CUT))
    yield matcher.finish()


# -- dataflows --------------------------------------------------------------------------------------------------------

LINKS = stream("links", {"src": str, "dst": str})

REACH: Stream = fixpoint(
    lambda r: LINKS.union(LINKS.join(r, on={"dst": "src"}).project(src="src", dst="dst_right")).distinct(), schema=LINKS
)


def links() -> pa.Table:
    """A link in each second, most of them for some seconds."""
    kinds = [("src", pa.string()), ("dst", pa.string()), *((name, pa.int64()) for name in ("vs", "ve", "ve_new"))]
    rows = [
        {"src": "abcd"[at % 4], "dst": "abcde"[at * at % 5], "vs": at, "ve": at + 3 + at % 7, "ve_new": None}
        for at in range(40)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def read_links(flow: Dataflow) -> None:
    flow.push("links", links().slice(0, 20), punctuation=15)
    flow.run(25)  # in the middle


def go_on_with_links(flow: Dataflow) -> Iterator[pa.Table]:
    flow.push("links", links().slice(20), punctuation=60)
    flow.run_until_idle()
    yield flow.history("reach")


def recognizing() -> Dataflow:
    one = stream("events", {"type": str, "x": int})
    found = one.recognize(
        stretto.compile("SELECT * FROM S WHERE A AS a ; B AS b WITHIN 9 EVENTS", {"type": "string", "x": "int64"})
    )
    return Dataflow(found=found)


def typed(first: int, last: int) -> list[dict[str, Any]]:
    return [{"type": "ABC"[at % 3], "x": at % 5, "vs": at, "ve": at + 4} for at in range(first, last)]


def read_typed(flow: Dataflow) -> None:
    flow.push("events", typed(0, 20), punctuation=18)
    flow.run_until_idle()


def go_on_with_typed(flow: Dataflow) -> Iterator[pa.Table]:
    flow.push("events", typed(20, 40), punctuation=60)
    flow.run_until_idle()
    yield flow.history("found")


# -- pattern sets -----------------------------------------------------------------------------------------------------

PATTERNS = pa.table(
    {
        "id": ["ab", "abc", "pair"],
        "query": [
            "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 6 seconds",
            "SELECT MAX * FROM S WHERE A ; B+ ; C PARTITION BY [key] WITHIN 9 seconds",
            "PATTERN SEQ(A a, (B|C) b) WHERE skip_till_any_match { [key] and b.x > 0 } WITHIN 8 seconds",
        ],
        "since": pa.nulls(3, pa.string()),
        "language": pa.nulls(3, pa.string()),
    }
)


def patterns() -> stretto.PatternSet:
    made = stretto.PatternSet(events().schema, time="ts", output="events", by=["key"])
    made.change(PATTERNS)
    return made


def read_patterns(made: stretto.PatternSet) -> None:
    made.push(events().slice(0, CUT))
    made.change([stretto.Change("ab", None, since=events().column("ts")[CUT + 20].as_py())])


def go_on_with_patterns(made: stretto.PatternSet) -> Iterator[pa.Table]:
    yield made.push(events().slice(CUT))
    yield made.finish()


#: Patterns of all languages and engines: some share a run and an automaton, some have their own, some wait for time to pass.
MIXED = {
    "ab": "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 6 seconds",
    "ab-1": "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x >= 1] PARTITION BY [key] WITHIN 6 seconds",
    "abc": "SELECT MAX * FROM S WHERE A ; B+ ; C PARTITION BY [key] WITHIN 9 EVENTS",
    "next": "SELECT a FROM S WHERE A AS a : B AS b PARTITION BY [key]",
    "gap": "SELECT * FROM S WHERE A AS a ; B AS b AFTER 1 second PARTITION BY [key] WITHIN 8 seconds",
    "missing": "SELECT * FROM S WHERE A AS a ; NOT B PARTITION BY [key] WITHIN 4 seconds",
    "trend": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [key] and a[i].x >= a[i-1].x } WITHIN 8 seconds",
    "after": "sequence by key with maxspan=9s [A where true] [B where x >= 0] until [D where x == 0]",
    "many": "SELECT * FROM S WHERE A+ ; D PARTITION BY [key]",
}


def mixed() -> stretto.PatternSet:
    made = stretto.PatternSet(events().schema, time="ts", by=["key"], budget=100, on_limit="disable")
    made.change(
        [stretto.Change(name, text, language="eql" if name == "after" else None) for name, text in MIXED.items()]
    )
    return made


def read_mixed(made: stretto.PatternSet) -> None:
    """One pattern is switched off, two change before the snapshot, and two are to change after it."""
    table = events()
    times = table.column("ts")
    made.change([stretto.Change("ab-1", MIXED["ab-1"].replace("1]", "2]"), since=times[20])])
    made.change([stretto.Change("new", MIXED["ab"], since=times[30])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stretto.StrettoWarning)
        made.push(table.slice(0, CUT))
    assert list(made.disabled) == ["many"]
    made.change(
        [stretto.Change("new", None, since=times[CUT + 20]), stretto.Change("many", MIXED["ab"], since=times[CUT + 30])]
    )


ADDING = {
    "all": "SELECT COUNT(*) AS n, SUM(b[x]) AS s FROM S WHERE A ; B+ AS b ; C PARTITION BY [key] WITHIN 20 seconds",
    "each": "SELECT COUNT(*) AS n, MIN(b[x]) AS least FROM S WHERE A ; B+ AS b PARTITION BY [key] WITHIN 9 seconds EVERY EVENT",
    "list": "SELECT * FROM S WHERE A ; B PARTITION BY [key] WITHIN 4 seconds",
    "window": "SELECT COUNT(*) AS n, MAX(a[x]) AS most FROM S WHERE A AS a ; B ; C PARTITION BY [key] "
    "WITHIN 9 seconds EVERY 3 seconds",
}


def adding() -> stretto.PatternSet:
    made = stretto.PatternSet(events().schema, time="ts", by=["key"], totals=True)
    made.change([stretto.Change(name, text) for name, text in ADDING.items()])
    return made


def read_adding(made: stretto.PatternSet) -> None:
    """One pattern is to end after the snapshot, with what it has added up."""
    made.push(events().slice(0, CUT))
    made.change(stretto.Change("all", ADDING["each"], since=events().column("ts")[CUT + 20]))


#: Patterns of which some matches stay: as events are read, and of those that are listed.
KEEPING = {
    "ab": "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 6 seconds",
    "first": "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [key] and b[i].x >= a.x } WITHIN 8 seconds KEEP SHORTEST",
    "last": "SELECT LAST * FROM S WHERE A ; B PARTITION BY [key] WITHIN 9 seconds KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
    "session": "SELECT * FROM S WHERE A+ GAP 4 seconds PARTITION BY [key] KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
}


def keeping() -> stretto.PatternSet:
    made = stretto.PatternSet(events().schema, time="ts", by=["key"], positions=True)
    made.change([stretto.Change(name, text) for name, text in KEEPING.items()])
    return made


def rising() -> stretto.AFA:
    """A, then greater and greater values of x among others that are ignored, then D, or what follows a C."""
    afa = stretto.AFA(
        {"type": str, "x": int, "key": str}, register={"top": int, "how": str}, window="60 seconds", partition_by="key"
    )
    afa.arc("q0", "up", when="e.type = 'A' AND e.x IS NOT NULL", then="top = e.x, how = 'flat'")
    afa.arc("up", "up", when="e.x > r.top AND e.type != 'D'", then="top = e.x, how = e.type")
    afa.ignore("up", when="e.x IS NULL OR e.x <= r.top")
    return afa.arc("up", "end", when="e.type = 'D' OR r.how = 'C'").final("end")


def automata() -> stretto.PatternSet:
    """Automata beside a query, one of which is to change after the snapshot."""
    made = stretto.PatternSet(events().schema, time="ts", by=["key"], positions=True)
    text = stretto.write_afa(rising())
    made.change([stretto.Change("rising", text, language="afa"), stretto.Change("ab", MIXED["ab"])])
    times = events().column("ts")
    made.change(
        [stretto.Change("later", rising(), since=times[20]), stretto.Change("coming", rising(), since=times[CUT + 5])]
    )
    return made


def clauses() -> stretto.PatternSet:
    """Clauses beside a query, one of which is to change after the snapshot."""
    made = stretto.PatternSet(events().schema, time="ts", by=["key"], positions=True, measures=True)
    made.change([stretto.Change("runs", RUNS), stretto.Change("ab", MIXED["ab"])])
    times = events().column("ts")
    soon = RUNS.replace("PATTERN (A B+)", "PATTERN (A B+ C) WITHIN INTERVAL '9' SECOND")
    made.change([stretto.Change("soon", soon, since=times[20]), stretto.Change("runs", soon, since=times[CUT + 30])])
    return made


RUNS = """MATCH_RECOGNIZE (
  PARTITION BY key ORDER BY ts MEASURES MATCH_NUMBER() AS number, sum(x) AS total, LAST(B.type) AS last_type
  PATTERN (A B+) DEFINE A AS x IS NOT NULL, B AS sum(x) < 9 AND type <> PREV(type)
)"""


# -- buckets on Spark -------------------------------------------------------------------------------------------------


def pattern_bucket() -> Bucket:
    run = ManyPatterns(
        events().schema.serialize().to_pybytes(),
        ("type", "ts", None, None),
        "events",
        False,
        ("key",),
        None,
        write_table(PATTERNS),
    )
    return Bucket(run, Settings("ts", None, None, "drop", None, 5_000_000, 64))


def read_bucket(bucket: Bucket) -> None:
    bucket.take(events().slice(0, CUT), None)
    list(bucket.advance(watermark_at(events(), CUT // 2)))


def go_on_with_bucket(bucket: Bucket) -> Iterator[pa.Table]:
    bucket.take(events().slice(CUT), watermark_at(events(), CUT // 2))
    yield from bucket.advance(watermark_at(events(), 2 * CUT - 1) + 1)


LINK = pa.schema([("net", pa.string()), *links().schema], metadata={INPUT: b"links"})


def group_bucket() -> GroupBucket:
    parts = (pa.schema([("net", pa.string())]), pa.schema([("vs", pa.int64())]), LINK.remove_metadata())
    keys, times, kinds = (one.serialize().to_pybytes() for one in parts)
    groups = Groups(to_json({OUTPUT: REACH}), keys, times, tuple(LINK.names), kinds, "vs")
    return GroupBucket(groups, Settings("vs", None, "s", "drop", None, 0, 8))


def grouped(table: pa.Table) -> list[tuple[int, int, bytes]]:
    net = pa.array(["xy"[at % 2] for at in range(table.num_rows)])
    return [(0, 0, write_table(table.add_column(0, "net", net).cast(LINK)))]


def read_groups(bucket: GroupBucket) -> None:
    bucket.receive(grouped(links().slice(0, 20)), None)
    list(bucket.advance(15_000_000))


def go_on_with_groups(bucket: GroupBucket) -> Iterator[pa.Table]:
    bucket.receive(grouped(links().slice(20)), 15_000_000)
    yield from bucket.advance(60_000_000)


#: A query whose conditions relate events, and that speculates.
TREND = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [key] and a[i].x >= a[i-1].x } WITHIN 8 seconds"


def disordered() -> stretto.Matcher:
    query = "SELECT a, b FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 20 seconds"
    return stretto.Matcher(stretto.compile(query, events(), time="ts"), time="ts", disorder="4 seconds")


def speculating() -> Any:
    return stretto.Matcher(stretto.compile(TREND, events(), time="ts"), time="ts", speculation=math.inf)


#: Counts and sums that speculate.
COUNTED = "SELECT COUNT(*), SUM(b[x]) FROM S WHERE A ; B+ AS b PARTITION BY [key] WITHIN 8 seconds EVERY 4 seconds"


def counting() -> Any:
    query = stretto.compile(COUNTED, events(), time="ts")
    return stretto.Matcher(query, time="ts", disorder="4 seconds", speculation=math.inf)


def cleanse() -> stretto.Cleanse:
    return stretto.Cleanse(events().schema, time="ts", disorder="4 seconds", speculation="1 second")


CASES = {
    "automaton": Case(automaton, read_automaton, go_on_with_automaton),
    "automaton-behind": Case(
        lambda: stretto.Matcher(rises(), time="ts", disorder=4_000_000, speculation=1_000_000),
        lambda matcher: matcher.push(ticks(early())),
        go_on_with_automaton,
    ),
    "clause": Case(clause, lambda matcher: matcher.push(events().slice(0, CUT)), go_on_with_clause),
    "clause-behind": Case(
        lambda: stretto.Matcher(CLAUSE, events().schema, disorder="4 seconds"),
        lambda matcher: matcher.push(early()),
        go_on,
    ),
    "clause-bucket": Case(clause_bucket, read_bucket, go_on_with_bucket),
    "disordered": Case(disordered, lambda matcher: matcher.push(early()), go_on),
    "speculating": Case(speculating, lambda matcher: matcher.push(early()), go_on),
    "counting": Case(counting, lambda matcher: matcher.push(early()), go_on),
    "cleanse": Case(cleanse, lambda operator: operator.push(early()), go_on),
    "reach": Case(lambda: Dataflow(reach=REACH), read_links, go_on_with_links),
    "recognize": Case(recognizing, read_typed, go_on_with_typed),
    "patterns": Case(patterns, read_patterns, go_on_with_patterns),
    "mixed-patterns": Case(mixed, read_mixed, go_on_with_patterns),
    "adding-patterns": Case(adding, read_adding, go_on_with_patterns),
    "automata-patterns": Case(automata, lambda made: made.push(events().slice(0, CUT)), go_on_with_patterns),
    "clauses-patterns": Case(clauses, lambda made: made.push(events().slice(0, CUT)), go_on_with_patterns),
    "keeping-patterns": Case(keeping, lambda made: made.push(events().slice(0, CUT)), go_on_with_patterns),
    "pattern-bucket": Case(pattern_bucket, read_bucket, go_on_with_bucket),
    "group-bucket": Case(group_bucket, read_groups, go_on_with_groups),
}


def rows_after(case: Case, state: bytes) -> list[Any]:
    """What a new operator gives that goes on from a state."""
    made = case.make()
    (made.load if hasattr(made, "dump") else made.restore)(state)
    return [row for table in case.after(made) for row in expected_rows(table)]


def main(folder: Path, names: list[str]) -> None:
    folder.mkdir()
    for name in names or CASES:
        made = CASES[name].make()
        CASES[name].before(made)
        state = made.dump() if hasattr(made, "dump") else made.snapshot()
        (folder / f"{name}.state").write_bytes(state)
        rows = [row for table in CASES[name].after(made) for row in expected_rows(table)]
        assert rows, name
        (folder / f"{name}.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main(FOLDER / sys.argv[1], sys.argv[2:])
