"""``Matcher.partial_matches``: what is under way."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.conftest import cases

QUERIES = [
    "SELECT * FROM S WHERE A AS a ; B+ AS b ; C AS c PARTITION BY [k] WITHIN 6 [t]",
    "SELECT * FROM S WHERE A AS a : B AS b ; (C OR D) AS c WITHIN 5 [t]",
    "SELECT a, c FROM S WHERE A AS a ; B AS b AFTER 1 [t] ; C AS c WITHIN 8 [t]",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match { [k] and b[i].v > a.v } WITHIN 6",
    "PATTERN SEQ(A a, B? b, C c) WHERE skip_till_next_match { c.v > a.v } WITHIN 4",
]
FAR = 10_000


def stream(rng: random.Random, length: int) -> list[dict[str, Any]]:
    at, found = 0, []
    for _ in range(length):
        at += rng.choice([0, 1, 1, 2])
        found.append({"type": rng.choice("ABCD"), "t": at, "k": rng.randint(1, 2), "v": rng.randint(1, 4)})
    return found


def test_they_are_what_would_time_out() -> None:
    """After each batch: the rows that a copy gives when time goes on without any event."""
    shown = 0
    for seed in range(cases(400, compiled=40)):
        rng = random.Random(seed)
        text = rng.choice(QUERIES)
        events = stream(rng, rng.randint(1, 14))
        schema = {"type": "string", "t": "int64", "k": "int64", "v": "int64"}
        matcher, other = (stretto.Matcher(text, schema, time="t", timeouts=True) for _ in range(2))
        while events:
            size = rng.randint(1, 4)
            matcher.push(events[:size])
            del events[:size]
            expected = other.restore(matcher.snapshot()).advance(FAR)
            found = matcher.partial_matches()
            assert found.schema == expected.schema, f"seed {seed}"
            assert found.to_pylist() == expected.to_pylist(), f"seed {seed}: {text}"
            assert found.to_pylist() == matcher.partial_matches().to_pylist(), f"seed {seed}: asked again"
            few = matcher.partial_matches(2).to_pylist()
            assert few == found.to_pylist()[:2], f"seed {seed}"
            check_counts(matcher, found.to_pylist(), seed)
            shown += found.num_rows
    assert shown > 10


def check_counts(matcher: stretto.Matcher, rows: list[dict[str, Any]], seed: int) -> None:
    """How many there are by how far they got and by key, by counting rows."""
    for by in (["reached"], ["k", "reached"] if "k" in matcher.partial_matches().schema.names else ["reached"]):
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        expected = {
            (*key, len(own), min(row["start_time"] for row in own), min(row["expired"] for row in own))
            for key, own in groups.items()
        }
        found = [tuple(row.values()) for row in matcher.partial_matches(by=by).to_pylist()]
        assert len(found) == len(expected), f"seed {seed}"
        assert set(found) == expected, f"seed {seed}"
        most = [row[len(by)] for row in found]
        assert most == sorted(most, reverse=True), f"seed {seed}"


def test_asking_changes_nothing() -> None:
    events = stream(random.Random(7), 60)
    for text in QUERIES:
        asked, other = (stretto.Matcher(text, time="t", timeouts=True) for _ in range(2))
        for event in events:
            assert asked.push([event]).to_pylist() == other.push([event]).to_pylist()
            asked.partial_matches(3)
        assert asked.advance(FAR).to_pylist() == other.advance(FAR).to_pylist()


def test_windows_that_count_events_and_matches_that_wait() -> None:
    matcher = stretto.Matcher("SELECT * FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 3 EVENTS", timeouts=True)
    matcher.push([{"type": one} for one in "ABA"])
    assert [(row["positions"], row["reached"]) for row in matcher.partial_matches().to_pylist()] == [
        ([0, 1], "b"),
        ([2], "a"),
    ]
    waits = stretto.Matcher("SELECT * FROM S WHERE A AS a ; B AS b ; NOT C WITHIN 5 [t]", time="t", timeouts=True)
    waits.push([{"type": "A", "t": 1}, {"type": "B", "t": 2}])
    assert [(row["positions"], row["reached"]) for row in waits.partial_matches().to_pylist()] == [([0, 1], "b")]


def test_events_out_of_order() -> None:
    matcher = stretto.Matcher(QUERIES[0], time="t", timeouts=True, disorder=2)
    matcher.push([{"type": "B", "t": 3, "k": 1}, {"type": "A", "t": 2, "k": 1}, {"type": "D", "t": 6, "k": 1}])
    assert [row["positions"] for row in matcher.partial_matches().to_pylist()] == [[0, 1]]
    assert str(stretto.show(matcher.partial_matches(), width=100)).endswith("1 row")


def test_a_new_matcher_has_none() -> None:
    assert stretto.Matcher(QUERIES[0], time="t", timeouts=True).partial_matches().num_rows == 0


@pytest.mark.parametrize(
    ("matcher", "most", "message"),
    [
        (lambda: stretto.Matcher(QUERIES[0], time="t"), 5, "make it with timeouts=True"),
        (lambda: stretto.Matcher(QUERIES[0], time="t", timeouts=True), 0, r"most=0\): give a positive number"),
        (lambda: stretto.Matcher(QUERIES[4], time="t", speculation=math.inf), 5, "matcher.stats counts what is held"),
        (
            lambda: stretto.Matcher(stretto.AFA({"type": str}).arc("q0", "q1").final("q1"), time="t"),
            5,
            "matcher.stats counts",
        ),
        (
            lambda: stretto.Matcher("sequence [A where true] [B where true]", time="t", language="eql"),
            5,
            r"not there for EQL: why_not\(\) shows",
        ),
        (lambda: stretto.Matcher("MATCH_RECOGNIZE (ORDER BY t PATTERN (A))"), 5, "matcher.stats counts what is held"),
    ],
    ids=["without timeouts", "none", "speculation", "afa", "eql", "rows"],
)
def test_refused(matcher: Any, most: int, message: str) -> None:
    with pytest.raises(stretto.OptionError, match=message):
        matcher().partial_matches(most)


def test_the_table_is_one_of_arrow() -> None:
    matcher = stretto.Matcher(QUERIES[0], time="t", timeouts=True)
    pushed = matcher.push([{"type": "A", "t": 1, "k": 1}])
    assert isinstance(matcher.partial_matches(), pa.Table)
    assert matcher.partial_matches().schema == pushed.schema


def test_counts_by_a_column() -> None:
    matcher = stretto.Matcher("SELECT * FROM S WHERE A ; B ; C PARTITION BY [k] WITHIN 9 [t]", time="t", timeouts=True)
    assert matcher.partial_matches(by="k").num_rows == 0
    rows = [("A", 1), ("A", 2), ("B", 2), ("A", 2), ("A", 3), ("A", 2)]
    matcher.push([{"type": kind, "k": key, "t": at} for at, (kind, key) in enumerate(rows)])
    assert matcher.partial_matches(2, by="k").to_pylist() == [
        {"k": 2, "partial_matches": 3, "oldest": 1, "expires": 10},
        {"k": 1, "partial_matches": 1, "oldest": 0, "expires": 9},
    ]
    assert matcher.partial_matches(by=["k", "reached"]).to_pylist()[0] == {
        "k": 2,
        "reached": "A",
        "partial_matches": 2,
        "oldest": 3,
        "expires": 12,
    }
    assert matcher.partial_matches(1).num_rows == 1
    with pytest.raises(stretto.OptionError, match=r"no column 'reach' to count by.*did you mean 'reached'"):
        matcher.partial_matches(by="reach")
    with pytest.raises(stretto.OptionError, match="give a positive number"):
        matcher.partial_matches(0, by="k")
    plain = stretto.Matcher("SELECT * FROM S WHERE A ; B WITHIN 9 [t]", time="t")
    with pytest.raises(stretto.OptionError, match="make it with timeouts=True"):
        plain.partial_matches(by="reached")
    few = stretto.Matcher("SELECT * FROM S WHERE A ; B WITHIN 99 [t]", time="t", timeouts=True, budget=3)
    few.push([{"type": "A", "t": at} for at in range(4)])
    with pytest.raises(stretto.LimitError):
        few.partial_matches(by="reached")
