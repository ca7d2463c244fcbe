"""SASE+ with options, groups, strategies of single steps and UNTIL, where the random cases do not look: results, refusals, sizes."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import stretto
from stretto.matching.compiled import compile_query
from tests.conftest import size
from tests.reference.sase import evaluate_sase

EVENTS = pa.table({"type": list("ABCABACC"), "t": range(8), "v": [1, 5, 2, 3, 4, 1, 9, 3], "k": [1] * 8})


def found(query: str, **options: object) -> list[list[int]]:
    return stretto.match(query, EVENTS, time="t", output="positions", **options).column("positions").to_pylist()


def test_what_return_takes_of_what_is_missing() -> None:
    query = (
        "PATTERN SEQ(A a, (B b, C c)*, C d) WHERE skip_till_next_match { } RETURN b.LEN, count(b[].v) AS n, b[1].v AS first, "
        "b[b.LEN].v AS last, sum(c[].v) AS total, avg(c[].v) AS mean, coalesce(min(c[].v), 0) + a.v AS least, d.v AS d"
    )
    rows = stretto.match(query, EVENTS, time="t").to_pylist()
    shown = [tuple(row.values())[5:] for row in rows]
    none = (0, 0, None, None, None, None)
    assert (*none, 1, 2) in shown
    assert (1, 1, 5, 5, 2, 2.0, 3, 9) in shown
    assert (2, 2, 5, 4, 11, 5.5, 3, 3) in shown


def test_a_sum_beyond_64_bits_names_the_match_also_where_others_lack_the_variable() -> None:
    events = {"type": list("CABC"), "v": [0, 0, 2**62, 0]}
    query = "PATTERN SEQ((A a, B+ b[])?, C c) WHERE skip_till_next_match { } RETURN sum(b[].v) * 4 AS x"
    with pytest.raises(stretto.DataError, match="ends at row 3"):
        stretto.match(query, events)


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, B? b, C c) WHERE skip_till_any_match { }",
        "PATTERN SEQ((A a, B? b)+, C c) WHERE skip_till_any_match { [k] }",
        "PATTERN SEQ((A a | B b)+, C c) WHERE skip_till_next_match, skip_till_any_match(c) { }",
        "PATTERN SEQ(A+ a[] UNTIL (C u) ONLY, B? b) WHERE skip_till_any_match { u.v > a[1].v }",
    ],
)
def test_other_ways_to_the_same_matches(query: str) -> None:
    listed = found(query)
    assert listed
    summary = stretto.match(query, EVENTS, time="t", output="summary")
    assert sum(summary.column("matches").to_pylist()) == len(listed)
    sets = list(stretto.match_sets(query, EVENTS, time="t"))
    assert sum(one.count for one in sets) == len(listed)


def test_each_match_comes_once_however_the_pattern_is_read() -> None:
    once = found("PATTERN SEQ((A a)+, C c) WHERE skip_till_any_match { }")
    for pattern in ("((A a)+)+", "((A a){1,2}){1,3}", "((A a)?, (A b)?)+"):
        matches = found(f"PATTERN SEQ({pattern}, C c) WHERE skip_till_any_match {{ }}")
        if "b" in pattern:
            # Each A is a or b, and a match may lack both.
            assert len(matches) == sum(2 ** (len(one) - 1) for one in once) + EVENTS["type"].to_pylist().count("C")
        else:
            assert sorted(matches) == sorted(once)


def test_non_overlap_prefers_the_later_component_also_where_a_group_comes_again() -> None:
    events = pa.table({"type": ["C", "B"]})
    text = "PATTERN SEQ(((B|C) a | C b){2}) WHERE strict_contiguity { } OUTPUT non_overlap"
    found = stretto.match(text, events).to_pylist()
    assert [(len(row["a"]), len(row["b"])) for row in found] == [(1, 1)]
    judged = evaluate_sase(compile_query(text, events.schema).bound, events)
    assert [match.bindings for match in judged] == [(("a", (1,)), ("b", (0,)))]


def test_a_group_five_hundred_times() -> None:
    rounds = size(500, 60)
    events = pa.table({"type": ["A", "B"] * rounds + ["C"]})
    query = f"PATTERN SEQ((A a, B b){{{rounds}}}, C c) WHERE skip_till_next_match {{ }} RETURN a.LEN AS n"
    assert stretto.match(query, events).column("n").to_pylist() == [rounds]
    with pytest.raises(stretto.LimitError, match="count in a smaller group"):
        stretto.match(query.replace(f"{{{rounds}}}", "{900000}"), events)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SEQ((A+ a[]){2,3}, C c)", "where one round of a\\[\\] ends and the next begins cannot be told"),
        ("SEQ((A+ a[] UNTIL (B b))+, C c)", "which round does it end"),
        ("SEQ(A a, ~(B n), C? c) WITHIN 5", "ends the pattern, and else it does not"),
        ("SEQ(((A a, B b)+, ~(C n)){2}, C c)", "depends on how the same events are read"),
        ("SEQ((A? a, B b)+, C c) WHERE skip_till_next_match { b[1].v > a[1].v }", "which comes first"),
        (
            "SEQ((A a, B b)+, C c) WHERE skip_till_next_match { b[i].v != a[i].v or c.v = 1 }",
            "c.v is not known yet when the events of a round are related",
        ),
        (
            "SEQ((A a, B b, C c)+) WHERE skip_till_next_match { b[i].v != a[i].v or c[1].v = 1 }",
            "c\\[1\\].v is not known yet when the events of a round are related",
        ),
        (
            "SEQ(A+ a[] UNTIL (B u), C c) WHERE skip_till_next_match { u.v > c.v }",
            "is not known when u ends a repetition",
        ),
        (
            "SEQ(A+ a[] UNTIL (B u) ONLY, C c) WHERE skip_till_next_match, strict_contiguity(c) { }",
            "has another strategy than its repetition",
        ),
    ],
)
def test_what_has_no_one_meaning(query: str, message: str) -> None:
    with pytest.raises(stretto.QueryError, match=message):
        found(f"PATTERN {query}")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SEQ(A a, B? b, (C c, D d)+) WHERE skip_till_any_match { [k] }", ""),
        ("SEQ(A{2,3} a[], (B b | C c){2}) WHERE skip_till_any_match, strict_contiguity(a[]) { a[i].v > 1 }", ""),
        ("SEQ((A a, B b)+) WHERE skip_till_any_match { a[i].v > 1 }", ""),
        ("SEQ(A a, B b) WHERE skip_till_next_match, skip_till_any_match(b) { }", ""),
        ("SEQ(A a, (B | C)? b) WHERE skip_till_any_match { b.v > a.v }", "a condition relates events: b.v > a.v"),
        ("SEQ(A a, B? b, C c) WHERE skip_till_any_match, skip_till_next_match(c) { }", "skip_till_next_match selects"),
        ("SEQ(A+ a[] UNTIL (B u)) WHERE skip_till_any_match { }", "UNTIL (B u) looks for events that are in no match"),
        (
            "SEQ(A a, (B b | C c)) WHERE skip_till_any_match, strict_contiguity(c) { }",
            "the steps to b and c, of which either may come next, have different strategies",
        ),
        (
            "SEQ((A a, B? b)+) WHERE skip_till_any_match { b[i].v > 1 }",
            "conditions on b[1] are not those on later b[i], and a round may lack it",
        ),
        ("SEQ((A a, B b){300}) WHERE skip_till_any_match { }", "the pattern has more than 500 events"),
    ],
)
def test_what_needs_no_runs(query: str, why: str) -> None:
    """It runs on the engine of constant time, or explain says why not; in a set of patterns it gives the same either way."""
    query = f"PATTERN {query}"
    engine = stretto.compile(query, EVENTS.schema, time="t").explain().partition("engine     ")[2]
    assert engine.startswith("nfab:" if why else "tecs:")
    assert why in engine.splitlines()[1]
    patterns = stretto.PatternSet(EVENTS.schema, time="t", output="positions", positions=True)
    patterns.change([stretto.Change("one", query)])
    rows = patterns.push(EVENTS).to_pylist() + patterns.finish().to_pylist()
    assert sorted(tuple(row["positions"]) for row in rows) == sorted(map(tuple, found(query)))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("SEQ((A a, B b)+) WITHIN 5", "without groups that repeat and UNTIL"),
        ("SEQ(A+ a[] UNTIL (B u)) WITHIN 5", "without groups that repeat and UNTIL"),
        ("SEQ(A a, B? b, C c) WHERE skip_till_next_match, strict_contiguity(c) { }", "under one strategy"),
        ("SEQ(A a, ~(D n), B? b, C c)", "~(D n) beside parts that may be missing"),
        ("SEQ(A a, B? b, C c) WHERE strict_contiguity { [k] }", "in the whole stream beside parts that may be missing"),
        (
            "SEQ(A a, B? b, C c) WHERE skip_till_next_match { c.v > b.v }",
            "b.v is asked of later events, and a match may lack b",
        ),
    ],
)
def test_what_cannot_answer_ahead(pattern: str, message: str) -> None:
    with pytest.raises(stretto.QueryError, match=re.escape(message)):
        stretto.Matcher(f"PATTERN {pattern}", EVENTS.schema, time="t", speculation=10)


def test_a_late_event_is_what_a_match_lacked() -> None:
    query = "PATTERN SEQ(A a, (B b | D d)?, C c) WHERE partition_contiguity { c.v > a.v } WITHIN 5"
    matcher = stretto.Matcher(query, EVENTS.schema, time="t", speculation=float("inf"), output="positions")
    row = {"k": 1}
    assert not matcher.push([{"type": "A", "t": 1, "v": 1, **row}]).num_rows
    [first] = matcher.push([{"type": "C", "t": 3, "v": 2, **row}]).to_pylist()
    assert (first["sign"], first["positions"]) == (1, [0, 1])
    changes = matcher.push([{"type": "B", "t": 2, "v": 9, **row}]).to_pylist()
    assert [(one["sign"], one["positions"]) for one in changes] == [(-1, [0, 1]), (1, [0, 1, 2])]


def test_explain_says_what_may_follow() -> None:
    query = "PATTERN SEQ(A a, (B b, C c)+, C? d) WHERE skip_till_next_match, strict_contiguity(c) { c.LEN > 1 and c[i].v > b[i].v }"
    text = stretto.compile(query, EVENTS.schema, time="t").explain()
    assert "then     b, d, the end" in text
    assert "the group of b, c  left     c.LEN > 1" in text
    assert "the step to c: selected events are neighbours in the stream" in text
    assert "a run for each that may follow c" in text
