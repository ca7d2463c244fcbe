"""``stretto.why_not(…, disorder=…)``: events that came too late, as a matcher leaves them out. A failure names its seed."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import stretto
from tests.conftest import cases

EVENTS: list[dict[str, Any]] = [
    {"type": "A", "t": 1, "x": 5},
    {"type": "N", "t": 9, "x": 1},
    {"type": "B", "t": 3, "x": 4},
    {"type": "N", "t": 12, "x": 0},
]
CEQL = "SELECT * FROM S WHERE A AS a ; B AS b FILTER b[x > 3] WITHIN 5 [t]"
SASE = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.x > 3 } WITHIN 5"
CLAUSE = (
    "MATCH_RECOGNIZE (ORDER BY t MEASURES v.x AS x PATTERN (u v) DEFINE u AS type = 'A', v AS type = 'B' AND x > 3)"
)
AUTOMATON = (
    stretto.AFA({"type": str, "x": int}, start="s", window=5)
    .arc("s", "u", when="e.type = 'A'")
    .arc("u", "f", when="e.type = 'B' AND e.x > 3")
    .final("f")
)


def ask(query: Any, events: Any = EVENTS, **options: Any) -> stretto.Answer:
    time = {} if query is CLAUSE else {"time": "t"}
    return stretto.why_not(query, events, **time, **options)


def test_words() -> None:
    assert str(ask(CEQL, disorder=2)).splitlines() == [
        "No match in 3 events. The nearest misses:",
        "1. disorder=2: row 2 (t is 3) came behind row 1 (t is 9)",
        "   a: row 0; b: row 2",
        "2. it waits for B AS b: no event has the type 'B'",
        "   a: row 0 (1 to 1)",
        "1 event came too late for disorder=2: row 2",
    ]
    assert ask(CEQL).matches
    assert ask(CEQL, disorder=6).matches
    assert len(ask(CEQL, disorder=2, most=1).misses) == 1


@pytest.mark.parametrize("query", [CEQL, SASE, CLAUSE, AUTOMATON])
def test_every_language(query: Any) -> None:
    reason = ask(query, disorder=2).reasons[0]
    assert (reason.kind, reason.rows, reason.values) == ("late", (2,), (("t", 3),))


def test_what_more_is_in_the_way_is_told_of_a_late_event() -> None:
    assert [one.kind for one in ask(CEQL, disorder=2, event=2).reasons] == ["late"]
    high = CEQL.replace("> 3", "> 30")
    assert [one.kind for one in ask(high, disorder=2, event=2).reasons] == ["late", "condition"]
    assert [one.kind for one in ask(high, disorder=2).reasons] == ["absent"]
    assert ask(high, disorder=2).notes == ("1 event came too late for disorder=2: row 2",)


def test_what_is_refused() -> None:
    with pytest.raises(stretto.OptionError, match="disorder= is about the column of time"):
        stretto.why_not(CEQL, EVENTS, disorder=2)
    with pytest.raises(stretto.OptionError, match="one table of all streams"):
        ask(CEQL, {"S": "events.parquet"}, disorder=2)
    with pytest.raises(stretto.OptionError, match="disorder"):
        ask(CEQL, disorder="some")


def test_a_matcher_finds_what_the_answer_says() -> None:
    """With the disorder of the answer a matcher finds nothing, or something; with any, what a late event keeps from it."""
    kinds = set[str]()
    count = cases(400, compiled=40)
    for seed in range(count):
        choose = random.Random(seed)
        events = [
            {"type": choose.choice("AABBN"), "t": max(0, 2 * at - choose.randint(0, 12)), "x": choose.randint(3, 6)}
            for at in range(choose.randint(4, 8))
        ]
        disorder = choose.randint(0, 3)
        for query in (CEQL, SASE, CLAUSE, AUTOMATON):
            answer = ask(query, events, disorder=disorder)
            told = f"seed {seed}: {query} {events} {disorder}\n{answer}"
            assert answer.matches == found(query, events, disorder), told
            if not answer.matches and answer.reasons[0].kind == "late":
                assert found(query, events, math.inf), told
            kinds |= {one.kind for miss in answer.misses for one in miss.reasons}
    assert count < 40 or "late" in kinds


def found(query: Any, events: Any, disorder: Any) -> bool:
    """Whether a matcher that leaves out what is late finds anything."""
    time = {} if query is CLAUSE else {"time": "t"}
    matcher = stretto.Matcher(query, disorder=disorder, late="drop", **time)
    rows = [*matcher.push(events).to_pylist(), *matcher.finish().to_pylist()]
    return bool(sum(row.get("sign", 1) for row in rows))
