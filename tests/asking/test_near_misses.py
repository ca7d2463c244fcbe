"""A match of which one thing is broken: the answer names it; when that is undone, the match is there (``tests/cases/near.py``)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import stretto
from tests.cases import agree, near
from tests.conftest import cases


def test_what_is_broken_is_named() -> None:
    found = agree(near, range(cases(300, compiled=60)))
    assert sum(map(bool, found)) > len(found) // 2


def rows(kinds: str, **columns: list[Any]) -> list[dict[str, Any]]:
    more = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [{"type": kind, **own} for kind, own in zip(kinds, more or [{}] * len(kinds), strict=True)]


@pytest.mark.parametrize(
    ("formula", "kinds", "told"),
    [
        ("E AS a : E AS b", "EZE", "E AS a : E AS b: row 1 (Z) lies between"),
        ("B AS a ; C AS c : B AS b", "BCZB", "C AS c : B AS b: row 2 (Z) lies between"),
        ("A ; NOT N ; B ; C", "ANBNC", "NOT N: row 1 (N) came"),
        ("C{3} AS a ; C{2} AS b", "CZCC", "C{3}: it has 1 event"),
    ],
)
def test_events_of_one_type_in_several_steps_are_told_apart(formula: str, kinds: str, told: str) -> None:
    answer = stretto.why_not(f"SELECT * FROM S WHERE {formula}", rows(kinds))
    assert [str(one) for one in answer.reasons] == [told]


@pytest.mark.parametrize(
    ("absent", "told"),
    [
        ("B AS n FILTER n[t > 1]", "row 2 (B) came"),
        ("(B AS n FILTER n[t > 1]) OR C AS m", "row 2 (B), row 3 (C) came"),
        ("(B AS n OR C AS m) FILTER n[t > 9]", "row 3 (C) came"),
        ("((B AS n OR C) AS m) FILTER m[t < 2] OR m[t = 3]", "row 1 (B), row 3 (C) came"),
    ],
)
def test_the_events_that_must_not_come_are_those_of_the_condition(absent: str, told: str) -> None:
    answer = stretto.why_not(f"SELECT * FROM S WHERE A ; NOT ({absent}) ; D", rows("ABBCD", t=[*range(5)]))
    assert answer.misses[0].reasons[0].kind == "negation"
    assert [str(one).removeprefix(f"{one.text}: ") for one in answer.reasons] == [told]


TAIL = " WITHIN 10 [t]"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT * FROM S WHERE A{5,} AS a ; B AS b", "A{5,}: it has 3 events"),
        ("SELECT * FROM S WHERE A{5} AS a ; B AS b", "A{5}: it has 3 events"),
        ("SELECT * FROM S WHERE A{5,6} AS a ; B AS b", "A{5,6}: it has 3 events"),
        ("SELECT * FROM S WHERE (A : A){3,} AS a ; B AS b", "(A : A){3,}: it comes once"),
        ("PATTERN SEQ(A{5,} a[], B b) WHERE skip_till_next_match { a[1].t >= 0 }", "A{5,} a[]: it has 3 events"),
        ("PATTERN SEQ(A{5,6} a[], B b) WHERE skip_till_any_match { a[1].t >= 0 }", "A{5,6} a[]: it has 3 events"),
        ("PATTERN SEQ(A{1,2} a[], B b) WHERE strict_contiguity { b.t - a[1].t >= 3 }", "A{1,2} a[]: it has 3 events"),
        ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a.LEN >= 5 }", "a.LEN is 3"),
        ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { 4 < count(a[]) }", "count(a[]) is 3"),
        ("PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { a.LEN = 5 }", "a.LEN is 3"),
    ],
)
def test_the_nearest_repetition_has_the_most_events(query: str, told: str) -> None:
    answer = stretto.why_not(query + TAIL, rows("AAAB", t=[*range(4)]), time="t")
    assert any(str(one).endswith(told) for one in answer.reasons), str(answer)
    repeated = 2 if "once" in told else 3
    assert len(answer.misses[0].events["a"]) == repeated


@pytest.mark.parametrize(("count", "held"), [("{4,5}", 3), ("{2,3}", 1), ("{5,6}", 7)])
def test_too_few_or_too_many(count: str, held: int) -> None:
    """Of ``C A⁴ B``, ``C A³ B``, … the one that misses a count by least; what is contiguous may have too many."""
    kinds = {"{4,5}": "CABCAAABCAAAAAAAB", "{2,3}": "CABCAAAAAAAB", "{5,6}": "CABCAAAAAAABCAAB"}[count]
    query = f"SELECT * FROM S WHERE C : A:{count} AS a : B"
    clause = f"PATTERN (C A{count} B) DEFINE A AS type = 'A', B AS type = 'B', C AS type = 'C'"
    events = rows(kinds, t=[*range(len(kinds))])
    asked = (
        stretto.why_not(query, events),
        stretto.why_not(f"SELECT * FROM e MATCH_RECOGNIZE (ORDER BY t {clause})", events),
    )
    for answer, name in zip(asked, "aA", strict=True):
        miss = next(one for one in answer.misses if one.reasons[0].kind == "count")
        assert len(miss.events[name]) == held, str(answer)


def test_the_longest_of_many_bursts() -> None:
    """Bursts of one, two, … 29 events, of which the longest is neither the first nor the last one."""
    lengths = [*range(1, 30), *range(28, 0, -1)]
    kinds = "".join("A" * size + "B" for size in lengths)
    query = "SELECT * FROM S WHERE A:{40,} AS a : B AS b"
    answer = stretto.why_not(query, rows(kinds))
    assert [str(one) for one in answer.reasons] == ["A:{40,}: it has 29 events"]
    clause = "PATTERN (A{40,} B) DEFINE A AS type = 'A', B AS type = 'B'"
    answer = stretto.why_not(
        f"SELECT * FROM e MATCH_RECOGNIZE (ORDER BY t {clause})", rows(kinds, t=[*range(len(kinds))])
    )
    assert [str(one) for one in answer.reasons] == ["A{40,}: it has 29 rows"]


def test_runs_of_eql_get_as_far_as_they_can() -> None:
    query = "sequence with maxspan=10s [A where true] with runs=5 [B where true]"
    answer = stretto.why_not(query, rows("AABAAAB", t=[*range(7)]), time="t", time_unit="s", language="eql")
    assert answer.matches
    answer = stretto.why_not(query, rows("AABAAB", t=[*range(6)]), time="t", time_unit="s", language="eql")
    assert sum(map(len, answer.misses[0].events.values())) == 4


def test_a_gap_is_measured_between_the_steps_that_it_is_about() -> None:
    query = "SELECT * FROM S WHERE (D AS a ; E AS b ; D AS c AFTER 5 [t]) PARTITION BY [k]"
    answer = stretto.why_not(query, rows("DED", t=[0, 1, 3], k=["a"] * 3), time="t")
    assert [str(one) for one in answer.reasons] == ["AFTER 5 [t]: 2 of 't' between rows 1 and 2, 3 of 't' too little"]
    assert answer.misses[0].events == {"a": (0,), "b": (1,), "c": (2,)}


def test_a_negation_names_no_event_at_another_place() -> None:
    query = "sequence with maxspan=9s [A where true] ![N where true] [B where true] [C where true]"
    answer = stretto.why_not(query, rows("ANBNC", t=[*range(5)]), time="t", time_unit="s", language="eql")
    assert [one.rows for one in answer.reasons] == [(1,)]


def test_an_inequation_of_eql_is_written_as_such() -> None:
    query = "sequence [A where x != 1 or x > 5] [B where true]"
    answer = stretto.why_not(query, rows("AB", x=[1, 1], t=[0, 1]), time="t", time_unit="s", language="eql")
    assert [one.text for one in answer.reasons] == ["e1[x != 1 OR x > 5]"]


def test_an_event_behind_one_that_a_strategy_would_take() -> None:
    query = "PATTERN SEQ(A a, B b, C c) WHERE partition_contiguity { [k] and c.x >= a.x }"
    events = rows("ABCC", x=[7, 0, 2, 9], k=["a", "a", "a", "b"])
    answer = stretto.why_not(query, events, event=3)
    assert [one.kind for one in answer.reasons] == ["key", "strategy"]
    assert [one.rows for one in answer.reasons] == [(0, 1, 3), (2,)]


CLAUSE = (
    "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY t PATTERN (A B C+) {} DEFINE A AS k = 'A', B AS k = 'B', C AS k = 'C')"
)


def test_a_row_deep_in_a_repetition() -> None:
    answer = stretto.why_not(CLAUSE.format(""), rows("-----", k=list("ABQQQ"), t=[*range(5)]), event=3)
    assert [one.text for one in answer.reasons] == ["C AS k = 'C'"]
    assert answer.misses[0].events["C"][:2] == (2, 3)


def test_the_least_that_a_window_must_be_longer() -> None:
    events = {"k": list("ABCC"), "t": [dt.datetime(2026, 1, 1, 0, 0, at) for at in (0, 1, 40, 41)]}
    answer = stretto.why_not(CLAUSE.format("WITHIN INTERVAL '30' SECOND"), rows("----", **events))
    assert [dict(one.values)["lasts"] for one in answer.reasons] == [40.0]
