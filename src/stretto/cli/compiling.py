"""What makes the kernels of each engine run once, so that they are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import stretto
from stretto.columns.segments import Segments

#: Events that make every kernel run once.
EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B"],
        "v": pa.array([1, 2, 3, 4], pa.int64()),
        "k": ["x", "x", "y", "y"],
        "ts": pa.array([1, 2, 3, 4], pa.int64()),
    }
)

#: More of them, with many keys and other types of columns, so that stores grow and are swept.
MANY = pa.table(
    {
        "type": pa.array(["A", "B", "B", "C"] * 1024).dictionary_encode(),
        "v": pa.array([n * 31 % 97 for n in range(4096)], pa.int64()),
        "k": pa.array([f"key {n // 4}" for n in range(4096)], pa.large_string()),
        "ts": pa.array(range(4096), pa.int64()),
        "x": pa.array([None if n % 7 == 0 else n / 8 for n in range(4096)], pa.float64()),
        "d": pa.array(["north", "south"] * 2048).dictionary_encode(),
    }
)


def _run(query: Any, **options: Any) -> None:
    """Run a query over :data:`MANY` events, with a snapshot half-way."""
    half = MANY.num_rows // 2
    first, matcher = (stretto.Matcher(query, MANY.schema, time="ts", **options) for _ in range(2))
    first.push(MANY.slice(0, half))
    matcher.restore(first.snapshot())
    matcher.held()
    matcher.push(MANY.slice(half))
    matcher.advance(5000)
    matcher.finish()


def _tecs() -> None:
    for text in (
        "SELECT * FROM S WHERE A ; B",
        "SELECT MAX * FROM S WHERE A AS a ; B FILTER a[v > 0] PARTITION BY [k] WITHIN 10 [ts]",
        "SELECT * FROM S WHERE A AS a ; B+ AS b PARTITION BY [v] WITHIN 2 EVENTS CONSUME BY PARTITION LIMIT 1",
    ):
        for output in ("events", "positions", "summary"):
            stretto.match(text, EVENTS, time="ts", output=output)
    stretto.match("SELECT STRICT * FROM S WHERE A ; B KEEP LONGEST", EVENTS)
    for tested in ("v > 0 AND v < 1000000007", "x > 0.5 AND d = 'north'", "k = 'key 3'", "type LIKE 'A%'"):
        _run(f"SELECT * FROM S WHERE A AS a ; B AS b FILTER a[{tested}] PARTITION BY [k] WITHIN 10 [ts]")
    _run("SELECT * FROM S WHERE A AS a ; B AS b", disorder=5)
    patterns = stretto.PatternSet(EVENTS.schema, time="ts")
    for at, keys in enumerate(("", " PARTITION BY [k]")):
        text = f"SELECT * FROM S WHERE A AS a ; B+ AS b FILTER a[v > 0]{keys}"
        patterns.change([stretto.Change(f"{at}", text), stretto.Change(f"alone {at}", text.replace(";", ":"))])
        patterns.change(stretto.Change(f"{at}", None, since=3))
    patterns.push(EVENTS)
    stretto.PatternSet(EVENTS.schema, time="ts").restore(patterns.snapshot())
    _segments()


def _segments() -> None:
    """What RETURN and MEASURES compute of the events of a variable."""
    one = np.ones(1)
    known = one > 0
    held = Segments.of(known, np.array([0, 1]), np.zeros(1, np.int64))
    held.counts(known)
    held.extreme(pa.array(one), greatest=True)
    held.real_sums(one, known)
    held.squares(one, known)


def _tecs_choosing() -> None:
    for choice in ("ORDER BY SUM(A[v]) LIMIT 1", "ORDER BY CAST(SUM(A[v]) AS DOUBLE) LIMIT 1", "SAMPLE 1"):
        stretto.match(f"SELECT * FROM S WHERE A ; B {choice}", EVENTS)


def _nfab() -> None:
    for text in (
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] and b[i].v > a.v } WITHIN 10 RETURN sum(b[].v) AS s",
        "PATTERN SEQ(A a, ~(C c), B d) WHERE skip_till_next_match { a.v < d.v } WITHIN 10",
    ):
        stretto.match(text, EVENTS, time="ts")
        matcher = stretto.Matcher(text, time="ts")
        matcher.push(EVENTS)
        matcher.advance(20)
        matcher.finish()
    _run("PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { [k] and b[i].v > a.v and a.x < 9.5 } WITHIN 10")


def _nfab_choosing() -> None:
    for choice in ("ORDER BY SUM(b.v) LIMIT 1", "ORDER BY CAST(SUM(b.v) AS DOUBLE) LIMIT 1", "SAMPLE 1"):
        stretto.match(f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ a.v < b.v }} {choice}", EVENTS)


def _nfab_totals() -> None:
    stretto.match("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.v < b.v } RETURN TOTAL count(*)", EVENTS)


def _timeouts() -> None:
    for query in (
        "PATTERN SEQ(A a, B+ b[], ~(C c), D d) WHERE skip_till_any_match { [k] and b[i].v > a.v } WITHIN 10",
        "SELECT * FROM S WHERE A ; B+ GAP 5 [ts] ; NOT C ; D PARTITION BY [k] WITHIN 2 [ts]",
    ):
        stretto.match(query, EVENTS, time="ts", timeouts=True)


def _timed() -> None:
    query = "SELECT * FROM S WHERE NOT C ; A ; B+ GAP 5 [ts] ; NOT C PARTITION BY [v] WITHIN 10 [ts]"
    matcher = stretto.Matcher(query, time="ts")
    matcher.push(EVENTS)
    stretto.Matcher(query, time="ts").restore(matcher.snapshot()).finish()
    gaps = "FROM S WHERE A AS a ; B+ AS b GAP 5 [ts] ; NOT C PARTITION BY [k] WITHIN 10 [ts]"
    for asked in (
        f"SELECT * {gaps}",
        f"SELECT * {gaps} ORDER BY SUM(b[v]) LIMIT 1",
        f"SELECT COUNT(*), SUM(b[v]) {gaps}",
    ):
        _run(asked)


def _greedy() -> None:
    for end in (
        "WITHIN 10 [ts] KEEP LONGEST AFTER MATCH SKIP TO LAST b",
        "KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
    ):
        _run(f"SELECT * FROM S WHERE A ; B+ AS b GAP 5 [ts] PARTITION BY [k] {end}")


def _moving() -> None:
    for aggregate in ("count(DISTINCT d)", "sum(v)", "min(v)", "sum(x)"):
        _run(f"SELECT * FROM S WHERE A AS a FILTER a[{aggregate} OVER 9 [ts] > 3] PARTITION BY [k]")


def _afa() -> None:
    afa: Any = stretto.AFA(events={"type": str, "v": int}, register={"n": int}, initial={"n": 0}, start="q0", window=6)
    afa.arc("q0", "q1", when="e.type = 'A'", then={"n": "e.v"}).ignore("q1")
    afa.arc("q1", "q2", when="e.type = 'B'", then={"n": "r.n + e.v"}).final("q2")
    stretto.match(afa, EVENTS, time="ts")
    matcher = stretto.Matcher(afa, time="ts")
    matcher.push(EVENTS.slice(2))
    matcher.push(EVENTS.slice(0, 2))
    matcher.advance(5)
    matcher.finish()
    _run(afa, provenance=True)


def _dataflow() -> None:
    from stretto.dataflow import Dataflow, stream

    link = stream("link", {"src": int, "dst": int})
    two = link.join(link, on={"dst": "src"}, suffix="_right")
    flow = Dataflow(
        out=two.where("src > 0").aggregate(["src"], most="max(dst_right)", number="count()", sum="sum(dst)")
    )
    flow.push("link", [{"src": 1, "dst": 2, "vs": 1}, {"src": 2, "dst": 3, "vs": 2}])
    flow.run_until_idle()


def _rows() -> None:
    from stretto.languages.match_recognize import parse
    from stretto.matching.sql.row_pattern_table import recognize
    from stretto.query.passes.bind_rows import bind

    rows = EVENTS.append_column("x", EVENTS["v"].cast(pa.float64()))
    rows = rows.append_column("at", EVENTS["ts"].cast(pa.timestamp("us")))
    measures = "count(v) AS n, sum(v) AS s, avg(x) AS a, min(v) AS least, stddev(x) AS d"
    for rest in (
        "PATTERN (A B+) DEFINE B AS v > PREV(v)",
        "ALL ROWS PER MATCH PATTERN (A B+) DEFINE B AS v > PREV(v)",
        "PATTERN (A{65}? | (A | B)+ C) DEFINE A AS v > 0, C AS v > FIRST(A.v) AND avg(A.x) > 9",
        "PATTERN (A B+) WITHIN INTERVAL '1' SECOND DEFINE B AS v > PREV(v)",
    ):
        clause = f"MATCH_RECOGNIZE (PARTITION BY type ORDER BY at MEASURES {measures} {rest})"
        recognize(bind(parse(clause), rows.schema), rows, capacity=1)
        matcher = stretto.Matcher(clause)
        matcher.push(rows)
        matcher.finish()


def _latest() -> None:
    sequence = "sequence by k with maxspan=10s [A where true] ![D where true] [B where true] ![C where true] until [C where v > 9]"
    roles: dict[str, Any] = {"language": "eql", "time": "ts", "time_unit": "s"}
    matcher = stretto.Matcher(sequence, EVENTS.schema, **roles)
    matcher.push(EVENTS)
    matcher.advance(20)
    stretto.Matcher(sequence, EVENTS.schema, **roles).restore(matcher.snapshot()).finish()
    _run(sequence, language="eql", time_unit="s")
    stretto.match("join by k [A where true] [B where true]", EVENTS, **roles)
    stretto.match("sample by k [A where true] [B where true]", EVENTS, **roles)


def _totals() -> None:
    items = "COUNT(*), SUM(B[v]), MIN(B[v]), AVG(B[v])"
    for rest in (
        "GROUP BY A[k]",
        "PARTITION BY [k] WITHIN 2 EVENTS EVERY EVENT",
        "PARTITION BY [k] WITHIN 4 [ts] EVERY 2 [ts]",
    ):
        query = f"SELECT {items} FROM S WHERE A; B+ {rest}"
        matcher = stretto.Matcher(query, EVENTS.schema, time="ts")
        matcher.push(EVENTS)
        snapshot = matcher.snapshot()
        matcher.advance(20)
        stretto.Matcher(query, EVENTS.schema, time="ts").restore(snapshot).finish()
        if "PARTITION" in rest:  # else sums leave 64 bits
            _run(query)


class Work(NamedTuple):
    """What makes an engine's kernels run once, so that they are compiled."""

    seconds: int  #: of a processor, about, which tells how far one has got
    run: Callable[[], None]


#: The work of each engine, that which takes longest first.
WORK = {
    "nfab-choosing": Work(24, _nfab_choosing),
    "timeouts": Work(24, _timeouts),
    "afa": Work(17, _afa),
    "nfab": Work(15, _nfab),
    "tecs-choosing": Work(13, _tecs_choosing),
    "rows": Work(11, _rows),
    "totals": Work(10, _totals),
    "nfab-totals": Work(10, _nfab_totals),
    "dataflow": Work(10, _dataflow),
    "tecs": Work(9, _tecs),
    "timed": Work(7, _timed),
    "greedy": Work(5, _greedy),
    "latest": Work(3, _latest),
    "moving": Work(3, _moving),
}
