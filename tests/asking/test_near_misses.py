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
