"""``stretto.why_not(…, event=ROW)``: whether a row is in a match, and what is in the way of those that would hold it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.explaining.answer import Answer
from tests.conftest import size as sized

KINDS = ["A", "B", "C", "A", "B", "X", "B", "C"]
EVENTS = pa.table(
    {"type": KINDS, "t": range(8), "k": [1, 1, 2, 1, 2, 1, 1, 1], "x": [1, 5, 3, 2, 9, 0, 1, 4]},
)
CEQL = "SELECT * FROM S WHERE (A AS a ; B AS b ; C AS c) FILTER b[x > 3] PARTITION BY [k] WITHIN 5 [t]"


def ask(query: Any, event: int, events: Any = EVENTS, **options: Any) -> Answer:
    return stretto.why_not(query, events, event=event, **{"time": "t"} | options)


def told(query: Any, event: int, **options: Any) -> list[str]:
    return str(ask(query, event, **options)).splitlines()


def test_words() -> None:
    assert told(CEQL, 0) == [
        "Row 0 is in no match. The nearest misses:",
        "1. WITHIN 5 [t]: it lasts 7 of 't' (rows 0 to 7), 2 of 't' too long",
        "   a: row 0; b: row 1; c: row 7 (0 to 7)",
        "2. PARTITION BY [k]: k is 1 in rows 0, 1 and 2 in row 2",
        "   a: row 0; b: row 1; c: row 2 (0 to 2)",
    ]
    assert told(CEQL, 5) == ["Row 5 is in no match. The nearest miss:", "1. row 5: no step takes an event of type 'X'"]
    wider = CEQL.replace("5 [t]", "7 [t]")
    assert told(wider, 1) == ["Row 1 is in a match: a: row 0; b: row 1; c: row 7"]
    assert ask(wider, 1).match == {"a": (0,), "b": (1,), "c": (7,)}
    assert told(wider, 6)[1] == "1. b[x > 3] does not hold: x is 1 in row 6"


def test_what_comes_before_or_behind_is_not_there() -> None:
    tail = EVENTS.slice(6)
    assert told(CEQL, 0, events=tail) == [
        "Row 0 is in no match. The nearest miss:",
        "1. it waits for A AS a: none comes before row 0",
    ]
    assert told(CEQL, 3, events=EVENTS.slice(0, 4))[1].startswith("1. it waits for B AS b: none comes behind row 3")


def test_the_row_is_that_of_the_input() -> None:
    shuffled = EVENTS.take([7, 0, 6, 1, 5, 2, 4, 3])
    answer = ask(CEQL, 1, events=shuffled)
    assert (answer.event, answer.misses[0].events) == (1, {"a": (1,), "b": (3,), "c": (0,)})
    assert ask(CEQL, 1, events=shuffled, key=1).misses[0].events == {"a": (1,), "b": (3,), "c": (0,)}


def test_a_repetition_holds_it() -> None:
    query = "SELECT * FROM S WHERE A AS a ; B+ AS b ; C AS c FILTER b[x < 10] PARTITION BY [k]"
    answer = ask(query, 6)
    assert answer.match is not None
    assert 6 in answer.match["b"]
    assert [one.kind for one in ask(query, 4).reasons] == ["key"]


def test_what_is_chosen_is_the_reason() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [k] } OUTPUT non_overlap"
    assert told(query, 1) == ["Row 1 is in a match: a: row 0; b: row 1"]
    assert told("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.x < b.x } OUTPUT non_overlap", 4) == [
        "Row 4 is in a match: a: row 3; b: row 4"
    ]
    taken = "SELECT * FROM S WHERE A AS a ; B AS b CONSUME BY ANY"
    assert told(taken, 6) == [
        "Row 6 is in no match. The nearest miss:",
        "1. CONSUME BY ANY: other matches are chosen",
        "   a: row 3; b: row 6 (3 to 6)",
    ]
    clause = "MATCH_RECOGNIZE (ORDER BY t PATTERN (u v) DEFINE v AS x > 2)"
    rows = EVENTS.slice(0, 3)
    assert told(f"SELECT * FROM rows {clause}", 2, events=rows, time=None) == [
        "Row 2 is in no match. The nearest miss:",
        "1. AFTER MATCH SKIP PAST LAST ROW: other matches are chosen",
        "   U: row 1; V: row 2 (1 to 2)",
    ]
    ahead = clause.replace(" PATTERN", " AFTER MATCH SKIP TO NEXT ROW PATTERN")
    assert ask(f"SELECT * FROM rows {ahead}", 2, events=rows, time=None).matches


@pytest.mark.parametrize(
    "first", ["A??", "A{0,2}", "{- A? -}", "PERMUTE(A, A)*"], ids=["reluctant", "none there", "excluded", "permuted"]
)
def test_an_alternative_before_is_chosen(first: str) -> None:
    """Of alternatives the first one that matches is taken, also where it holds no row."""
    clause = (
        "SELECT * FROM rows MATCH_RECOGNIZE (ORDER BY t AFTER MATCH SKIP {} PATTERN ({}) DEFINE A AS x > 9, B AS x > 2)"
    )
    rows = EVENTS.slice(0, 3)
    for skip in ("TO NEXT ROW", "PAST LAST ROW"):
        assert told(clause.format(skip, f"{first} | B"), 2, events=rows, time=None)[:2] == [
            "Row 2 is in no match. The nearest miss:",
            f"1. PATTERN ({first} | B): other matches are chosen",
        ]
        assert ask(clause.format(skip, f"B | {first}"), 2, events=rows, time=None).match == {"B": (2,)}


def test_a_join_that_an_event_before_would_complete() -> None:
    """Without the last condition the join is complete before the event comes: what is asked before is in the way by itself."""
    query = "join by ?k [A where x == 7] [C where true] [A where x == 3] until [A where true]"
    rows = [
        {"type": "C", "t": 0, "k": 0},
        {"type": "A", "t": 11, "k": None, "x": 1},
        {"type": "A", "t": 13, "k": 1, "x": 3},
    ]
    assert told(query, 2, events=rows, time_unit="s", language="eql") == [
        "Row 2 is in no match. The nearest miss:",
        "1. e1[x = 7] does not hold: x is 1 in row 1",
        "   by k: k is 0 in row 0 and NULL in row 1 and 1 in row 2",
        "   until [A where true]: row 1 (A) came",
        "   e1: row 1; e2: row 0; e3: row 2 (0 to 13)",
    ]


def test_rows_and_automata() -> None:
    clause = (
        "SELECT * FROM rows MATCH_RECOGNIZE (PARTITION BY k ORDER BY t PATTERN (u v) DEFINE u AS x > 4, v AS x > 2)"
    )
    assert told(clause, 7, time=None) == [
        "Row 7 is in no match. The nearest miss:",
        "1. U AS x > 4 does not hold: x is 1 in row 6",
        "   U: row 6; V: row 7 (6 to 7)",
    ]
    afa = stretto.AFA({"k": int, "x": int}, start="s", window=3, partition_by=["k"])
    afa = afa.arc("s", "u", when="e.x > 4").arc("u", "f", when="e.x > 1").final("f")
    assert told(afa, 3) == ["Row 3 is in a match: u: row 1; f: row 3"]
    assert told(afa, 2)[:2] == [
        "Row 2 is in no match. The nearest miss:",
        "1. e.x > 4 of the arc a0 (s -> u) does not hold: e.x is 3 in row 2",
    ]


def test_one_event_of_many() -> None:
    """Of many partial matches around it those with the event are found, also where a window or a key is in the way."""
    size = sized(20_000, 2_000)
    events = pa.table(
        {
            "type": ["A", "B"] * (size // 2),
            "t": range(size),
            "k": [at // 2 % 50 for at in range(size)],
            "x": [9 if at == size // 2 + 1 else 0 for at in range(size)],
        }
    )
    query = "SELECT * FROM S WHERE (A AS a ; B AS b ; A AS c) FILTER b[x > 5] PARTITION BY [k] WITHIN 20 [t]"
    answer = ask(query, size // 2 + 1, events=events)
    assert [one.kind for miss in answer.misses for one in miss.reasons] == ["window", "key"]


def test_what_is_refused() -> None:
    for row in (-1, 8):
        with pytest.raises(stretto.OptionError, match=f"event={row}: there is no such row"):
            ask(CEQL, row)
    with pytest.raises(stretto.OptionError, match="event=2: there is no such row among those that are asked about"):
        ask(CEQL, 2, key=1)
