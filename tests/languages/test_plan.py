"""The plan of a query: what the same query in another language is lowered to, too."""

from __future__ import annotations

import pyarrow as pa
import pytest

import stretto
from stretto.query.algebra import Pattern
from stretto.query.plan import PatternPlan

COLUMNS = {"type": pa.string(), "x": pa.int64(), "y": pa.int64(), "k": pa.string(), "t": pa.int64()}


def plan(text: str, language: str | None = None) -> PatternPlan:
    return stretto.compile(text, COLUMNS, time="t", time_unit="s", language=language).bound.plan


def formula(text: str, language: str | None = None) -> Pattern:
    return plan(text, language).formula


@pytest.mark.parametrize(
    ("ceql", "sase", "told"),
    [
        (
            "A AS a ; B AS b FILTER a[x > 5]",
            "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.x > 5 }",
            "(A a[x > 5] ; B b)",
        ),
        ("A AS a ; (B OR C) AS b", "PATTERN SEQ(A a, (B|C) b) WHERE skip_till_any_match { }", "(A a ; B|C b)"),
        ("A AS a ; B+ AS b", "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { }", "(A a ; (B b+))"),
        (
            "A AS a ; B? AS b ; C AS c",
            "PATTERN SEQ(A a, B? b, C c) WHERE skip_till_any_match { }",
            "(A a ; (B b?) ; C c)",
        ),
        ("A AS a ; B{2,3} AS b", "PATTERN SEQ(A a, B{2,3} b[]) WHERE skip_till_any_match { }", "(A a ; (B b{2,3}))"),
        (
            "A AS a ; NOT (C AS c) ; B AS b",
            "PATTERN SEQ(A a, ~(C c), B b) WHERE skip_till_any_match { }",
            "(A a ; NOT C c ; B b)",
        ),
        (
            "A AS a ; (B AS b ; C AS c)+",
            "PATTERN SEQ(A a, (B b, C c)+) WHERE skip_till_any_match { }",
            "(A a ; ((B b ; C c)+))",
        ),
        (
            "A AS a ; (B AS b OR (C AS c ; D AS d))",
            "PATTERN SEQ(A a, (B b | (C c, D d))) WHERE skip_till_any_match { }",
            "(A a ; (B b OR (C c ; D d)))",
        ),
        ("A AS a : B AS b", "PATTERN SEQ(A a, B b) WHERE partition_contiguity { }", "(A a : B b)"),
    ],
)
def test_ceql_and_sase_are_lowered_to_one_formula(ceql: str, sase: str, told: str) -> None:
    assert str(formula(f"SELECT * FROM S WHERE {ceql}")) == str(formula(sase)) == told


def test_the_same_sequence_has_the_same_positions_in_three_languages() -> None:
    ceql = plan("SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x > 5] AND b[y = 2] PARTITION BY [k] WITHIN 10 seconds")
    sase = plan("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [k] AND a.x > 5 AND b.y = 2 } WITHIN 10 seconds")
    eql = plan("sequence by k with maxspan=10s [A where x > 5] [B where y == 2]", "eql")
    assert str(ceql) == str(sase)
    assert ceql.digest == sase.digest
    assert [(one.types, [str(asked.condition) for asked in one.asked], one.keys) for one in eql.positions] == [
        (one.types, [str(asked.condition) for asked in one.asked], one.keys) for one in sase.positions
    ]
    assert (eql.window, eql.partition_by, eql.least) == (sase.window, sase.partition_by, sase.least)
    assert eql.selection != sase.selection
    assert eql.digest != sase.digest


@pytest.mark.parametrize(
    "other",
    [
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { a.x > 6 AND b[i].x > b[i-1].x } WITHIN 10 seconds",
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { a.x > 5 AND b[i].x < b[i-1].x } WITHIN 10 seconds",
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { a.x > 5 AND b[i].x > b[i-1].x } WITHIN 11 seconds",
        "PATTERN SEQ(A a, B* b[]) WHERE skip_till_any_match { a.x > 5 AND b[i].x > b[i-1].x } WITHIN 10 seconds",
        "PATTERN SEQ(A a, C+ b[]) WHERE skip_till_any_match { a.x > 5 AND b[i].x > b[i-1].x } WITHIN 10 seconds",
        "PATTERN SEQ(A a, B+ b[] UNTIL (C c)) WHERE skip_till_any_match { a.x > 5 AND b[i].x > b[i-1].x } WITHIN 10 seconds",
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { a.x > 5 AND b[i].x > b[i-1].x } WITHIN 10 seconds",
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] AND a.x > 5 AND b[i].x > b[i-1].x } WITHIN 10 seconds",
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { a.x > 5 AND b[i].x > b[i-1].x } WITHIN 10 seconds LIMIT 1",
    ],
)
def test_whatever_differs_makes_another_digest(other: str) -> None:
    query = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { a.x > 5 AND b[i].x > b[i-1].x } WITHIN 10 seconds"
    assert plan(query).digest == plan(f"{query}  ").digest
    assert plan(query).digest != plan(other).digest


def test_a_plan_prints_what_relates_events_beside_its_formula() -> None:
    asked = "[k] AND b[1].x = 1 AND b[i].x > 3 AND b[i].y > a.y"
    text = f"PATTERN SEQ(A a, B{{2,}} b[]) WHERE skip_till_any_match {{ {asked} }} WITHIN 10 seconds LIMIT 2"
    assert str(plan(text)).splitlines() == [
        "(A a BY k ; (B b[[1].x = 1 AND [i].x > 3] BY k{2,}))",
        "window: 10 [t]",
        "partition: k",
        "between: b[i].y > a.y",
        "selection: skip_till_any_match",
        "then: LIMIT 2",
    ]


def test_what_is_asked_of_the_first_event_is_not_asked_together_with_what_further_ones_are_asked() -> None:
    events = [{"type": "A", "x": 1, "t": 0}, {"type": "A", "x": 2, "t": 5}]
    with pytest.warns(stretto.StrettoWarning) as told:
        stretto.match(
            "PATTERN SEQ(A{2,} a[]) WHERE skip_till_any_match { a[1].x = 1 AND a[i].x = 2 } WITHIN 3", events, time="t"
        )
    assert [str(one.message) for one in told] == [
        "no match: of 2 events of the types that the query names no 2 are as near as WITHIN 3 (line 1, column 87) asks: "
        "they last 5 of 't' at least"
    ]
    with pytest.warns(stretto.StrettoWarning) as told:
        stretto.match("PATTERN SEQ(A{2,} a[]) WHERE skip_till_any_match { a[1].x < a[i].x } WITHIN 3", events, time="t")
    assert not any("fulfils" in str(one.message) for one in told)
