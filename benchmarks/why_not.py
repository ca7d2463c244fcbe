"""``python -m benchmarks.why_not``: what it costs to ask why a query has no match, beside the match that found none.

A million events of 1,000 keys and seven types; each query asks something that the events nearly have: a condition that none
fulfils, a window that is too short, an event that must not come, a type that none has. What it shows: processor time of ``why_not``
over that of ``match``, the two in turn, the least of each. An answer that does not name what is in the way fails the run.

Bias: keys and types are evenly spread, so that each prefix of a query is found early. Where every event matters, ``match`` takes
longest and the ratio is least.
"""

from __future__ import annotations

import argparse
import sys
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import stretto

EVENTS, KEYS, TIMES = 1_000_000, 1_000, 10


class Case(NamedTuple):
    """A query without a match, its language, and the kinds of reasons of which the nearest miss has one."""

    name: str
    language: str
    query: Any
    kinds: frozenset[str]


def _ceql(
    name: str, formula: str, kind: str, window: str = "WITHIN 60 minutes", keys: str = "PARTITION BY [k] "
) -> Case:
    return Case(f"CEQL, {name}", "ceql", f"SELECT * FROM S WHERE {formula} {keys}{window}", frozenset(kind.split()))


def _sase(name: str, parts: str, mode: str, condition: str, kind: str, window: str = "WITHIN 3600") -> Case:
    query = f"PATTERN SEQ({parts}) WHERE {mode} {{ {condition} }} {window}"
    return Case(f"SASE+, {name}", "sase", query, frozenset(kind.split()))


def _eql(name: str, steps: str, kind: str, options: str = "by k with maxspan=60m") -> Case:
    return Case(f"EQL, {name}", "eql", f"sequence {options} {steps}", frozenset(kind.split()))


def _rows(name: str, pattern: str, define: str, kind: str, keys: str = "PARTITION BY k ") -> Case:
    body = f"{keys}ORDER BY t MEASURES MATCH_NUMBER() AS m PATTERN ({pattern}) DEFINE {define}"
    return Case(f"MATCH_RECOGNIZE, {name}", "sql", f"SELECT * FROM t MATCH_RECOGNIZE ({body})", frozenset(kind.split()))


def _afa(name: str, window: int, rises: str, ends: str, kind: str) -> Case:
    """A low value, falls that are counted, a rise, and an end."""
    found = stretto.AFA({"k": int, "x": int}, register={"n": int}, start="start", window=window, partition_by=["k"])
    found = found.arc("start", "low", when="e.x < 6").arc("low", "low", when="e.x < 50", then="n = r.n + 1")
    found = found.arc("low", "high", when=rises).arc("high", "end", when=ends).final("end")
    return Case(f"automaton, {name}", "afa", found, frozenset(kind.split()))


CASES = [
    _ceql("condition", "(A AS a ; B AS b) FILTER b[x > 1000]", "condition"),
    _ceql(
        "condition of the first",
        "(A AS a ; B AS b ; C AS c) FILTER a[x > 1000] AND b[x > 10] AND c[x > 10]",
        "condition",
    ),
    _ceql("three conditions", "(A AS a ; B AS b ; C AS c) FILTER a[x > 90] AND b[x > 90] AND c[x > 1000]", "condition"),
    _ceql("repetition", "(A AS a ; B+ AS b ; C AS c) FILTER b[x > 90] AND c[x > 1000]", "condition"),
    _ceql(
        "repetition without a window", "(A AS a ; B+ AS b ; C AS c) FILTER b[x > 90] AND c[x > 1000]", "condition", ""
    ),
    _ceql("window", "(A AS a ; B AS b ; C AS c) FILTER a[x > 50]", "window", "WITHIN 1 second"),
    _ceql("type", "(A AS a ; B AS b ; Z AS z) FILTER b[x > 50]", "absent"),
    _ceql(
        "negation",
        "(A AS a ; NOT (N OR B OR D) ; C AS c ; NOT (N OR D) ; E AS e) FILTER a[x = 9] AND c[x = 9] AND e[x = 9]",
        "negation condition",
    ),
    _ceql("contiguity", "(A AS a : B AS b : C AS c) FILTER a[x = 9] AND b[x = 9] AND c[x = 9]", "contiguity condition"),
    _ceql(
        "gap",
        "A AS a ; B AS b AFTER 50 minutes WITHIN 55 minutes ; C AS c",
        "gap window condition",
        "WITHIN 40 minutes",
    ),
    _ceql(
        "without keys",
        "(A AS a ; B AS b ; C AS c) FILTER a[x > 99] AND c[x > 1000]",
        "condition",
        "WITHIN 5 minutes",
        "",
    ),
    _sase("condition", "A a, B b, C c", "skip_till_any_match", "[k] AND c.x > 1000", "condition"),
    _sase("condition between events", "A a, B b", "skip_till_any_match", "[k] AND b.x > a.x + 1000", "condition"),
    _sase("next", "A a, B b, C c", "skip_till_next_match", "[k] AND b.x > a.x AND c.x > b.x + 1000", "condition"),
    _sase(
        "repetition",
        "A a, B+ b[], C c",
        "skip_till_next_match",
        "[k] AND b[i].x > b[i-1].x AND c.x > 1000",
        "condition",
    ),
    _sase("window", "A a, B b, C c", "skip_till_next_match", "[k] AND a.x > 50", "window", "WITHIN 1"),
    _sase("negation", "A a, ~(B n), C c", "skip_till_any_match", "[k] AND c.x > 1000 AND n.x > a.x", "condition"),
    _sase("contiguity", "A a, B b", "partition_contiguity", "[k] AND b.x > a.x + 1000", "condition strategy"),
    _eql("condition", "[A where true] [B where x > 1000]", "condition"),
    _eql("three steps", "[A where x > 50] [B where x > 50] [C where x > 1000]", "condition"),
    _eql("window", "[A where x > 50] [B where x > 50] [C where x > 50]", "window", "by k with maxspan=1s"),
    _eql("until", "[A where x > 50] [B where x > 1000] until [C where true]", "condition"),
    _eql("absent", "[A where x > 50] ![B where x > 0] [C where x > 1000]", "condition"),
    _rows("condition", "a b c", "a AS x > 50, b AS x > PREV(x), c AS x > 1000", "condition"),
    _rows("condition between rows", "a b+ c", "a AS x > 50, b AS x > PREV(x), c AS x > a.x + 1000", "condition"),
    _rows("sum", "a b+ c", "b AS x > PREV(x), c AS sum(b.x) > 5000", "condition"),
    _rows("repetition", "a d{8} u{8}", "d AS x < PREV(x), u AS x > PREV(x)", "condition count"),
    _rows("without keys", "a d{12} u{8}", "d AS x < PREV(x), u AS x > PREV(x)", "condition count", ""),
    _afa("condition", 500, "e.x > 90", "e.x > 1000 AND r.n > 0", "condition"),
    _afa("register", 500, "e.x > 90", "e.x > 60 AND r.n > 1000", "condition"),
    _afa("window", 1, "e.x > 90", "e.x > 60 AND r.n > 0", "window"),
]


def stream(events: int) -> pa.Table:
    """Events of all keys in any order, a second apart from each other every ten."""
    rng = np.random.default_rng(1)
    kinds = pa.array(["A", "B", "C", "D", "E", "N", "M"])
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 7, events).astype(np.int8)), kinds).cast(
                pa.string()
            ),
            "k": rng.integers(0, KEYS, events),
            "t": np.arange(events) // 10,
            "x": rng.integers(1, 101, events),
        }
    )


def options_of(case: Case) -> dict[str, Any]:
    """What ``match`` and ``why_not`` are told beside the query."""
    if case.language in ("sql", "afa"):
        return {"time": "t"} if case.language == "afa" else {}
    return {"time": "t", "time_unit": "s", "language": case.language}


def measured(case: Case, events: pa.Table, repeat: int) -> tuple[float, float, str]:
    """Seconds of the processor of ``match`` and of ``why_not``, the least of each, and what is wrong with the answer."""
    options = options_of(case)
    matched, asked = [], []
    for _ in range(repeat + 1):
        began = process_time()
        if case.language == "sql":
            found = stretto.sql(case.query, t=events).num_rows
        else:
            found = stretto.match(case.query, events, **options).num_rows
        between = process_time()
        answer = stretto.why_not(case.query, events, **options)
        matched.append(between - began)
        asked.append(process_time() - between)
    kinds = {one.kind for one in answer.reasons}
    wrong = (
        f"{found} matches" if found else "" if kinds & case.kinds else f"named {', '.join(sorted(kinds)) or 'nothing'}"
    )
    return min(matched[1:]), min(asked[1:]), wrong


def main(arguments: list[str] | None = None) -> int:
    """Measure; 1 when an answer is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.why_not", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of cases (default: all)")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--repeat", type=int, default=3, help="timed runs, behind one that is not")
    parser.add_argument("--show", action="store_true", help="print the answers as well")
    chosen = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    events, failed = stream(chosen.events), False
    for case in CASES:
        if chosen.names and not any(name in case.name for name in chosen.names):
            continue
        matched, asked, wrong = measured(case, events, chosen.repeat)
        failed = failed or bool(wrong)
        told = f"match {1e3 * matched:7.0f} ms, why_not {1e3 * asked:7.0f} ms, {asked / matched:5.1f} times"
        print(f"{case.name:32} {told}{'  WRONG: ' + wrong if wrong else ''}", flush=True)
        if chosen.show:
            print(stretto.why_not(case.query, events, **options_of(case)), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
