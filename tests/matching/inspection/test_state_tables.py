"""``Matcher.held``: how much is held, by key, by type and by state."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.conftest import cases

QUERY = "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 6 [t]"


def stream(rng: random.Random, length: int) -> list[dict[str, Any]]:
    at, found = 0, []
    for _ in range(length):
        at += rng.choice([0, 1, 1, 2])
        found.append({"type": rng.choice("ABC"), "t": at, "k": rng.choice(["x", "y"])})
    return found


@pytest.mark.parametrize("disorder", [None, 3])
def test_events_in_the_window_by_key(disorder: int | None) -> None:
    """First events whose windows are open, by loops over the events."""
    for seed in range(cases(100, compiled=20)):
        rng = random.Random(seed)
        events = stream(rng, rng.randint(1, 30))
        matcher = stretto.Matcher(QUERY, time="t", disorder=disorder)
        cut = rng.randint(0, len(events))
        for piece in (events[:cut], events[cut:]):
            matcher.push(piece)
        last = events[-1]["t"]
        read = [one for one in events if disorder is None or one["t"] < last - disorder]
        # Without a punctuation, time passes with events of the query's types.
        passed = [one["t"] for one in read if disorder is not None or one["type"] != "C"]
        until = passed[-1] if passed else 0
        open_ = [one for one in read if one["type"] == "A" and until - one["t"] <= 6]
        found = matcher.held(by="k").to_pylist()
        counts = Counter(one["k"] for one in open_)
        assert {row["k"]: row["events"] for row in found} == counts, (seed, disorder, events)
        assert {row["k"]: row["oldest"] for row in found} == {
            key: min(one["t"] for one in open_ if one["k"] == key) for key in counts
        }, seed
        assert [row["events"] for row in found] == sorted(counts.values(), reverse=True), seed
        (whole,) = matcher.held().to_pylist()
        assert (whole["events"], whole["waiting"]) == (len(open_), len(events) - len(read)), seed
        assert whole["oldest"] == min((one["t"] for one in open_), default=None), seed
        assert whole["punctuation"] == (None if disorder is None else last - disorder), seed
        assert whole["bytes"] == matcher.stats["bytes"], seed


def automaton(**options: Any) -> stretto.AFA:
    """As in a row, then a B."""
    afa = stretto.AFA({"type": str, "k": str}, partition_by=["k"], **options).arc("q0", "q1", when="e.type = 'A'")
    return afa.arc("q1", "q1", when="e.type = 'A'").arc("q1", "q2", when="e.type = 'B'").final("q2", emit="on_enter")


def test_partial_matches_of_an_automaton_by_state_and_key() -> None:
    """Those of all events, none of which is final, by loops over their first and last events."""
    for seed in range(cases(100, compiled=20)):
        rng = random.Random(seed)
        events = stream(rng, rng.randint(1, 25))
        matcher = stretto.Matcher(automaton(window=5), time="t")
        for begin in range(0, len(events), 7):
            matcher.push(events[begin : begin + 7])
        expected: dict[tuple[str, str], list[int]] = {}
        for key in "xy":
            own = [one for one in events if one["k"] == key]
            for first in range(len(own)):
                for last in range(first, len(own)):
                    text = "".join(one["type"] for one in own[first : last + 1])
                    if own[last]["t"] - own[first]["t"] >= 5 or text.rstrip("B").strip("A") or text.count("B") > 1:
                        break
                    if text[0] == "A":
                        expected.setdefault((key, "q2" if text[-1] == "B" else "q1"), []).append(own[first]["t"])
        found = matcher.held(by=["k", "state"]).to_pylist()
        assert {(row["k"], row["state"]): (row["partial_matches"], row["oldest"]) for row in found} == {
            place: (len(times), min(times)) for place, times in expected.items()
        }, (seed, events)
        (whole,) = matcher.held().to_pylist()
        assert whole["oldest"] == min((min(times) for times in expected.values()), default=None), seed
        assert sum(row["partial_matches"] for row in found) == matcher.stats["partial_matches"], seed


def test_a_state_after_an_ignored_event_and_one_of_a_key_that_is_called_so() -> None:
    afa = stretto.AFA({"x": int, "state": str}, partition_by=["state"], window=100).arc("q0", "q1", when="e.x = 1")
    afa = afa.ignore("q1", when="e.x = 0").arc("q1", "q2", when="e.x = 2").final("q1", emit="on_enter").final("q2")
    matcher = stretto.Matcher(afa, time="t", ignore=False)
    matcher.push([{"t": at, "x": x, "state": "here"} for at, x in enumerate([1, 0, 0])])
    assert matcher.held(by=["state", "state_"]).to_pylist() == [
        {"state": "here", "state_": "q1", "partial_matches": 3, "oldest": 0}
    ]


def test_other_times_types_and_names() -> None:
    began = dt.datetime(2026, 3, 2, 9)
    schema = pa.schema(
        [("type", pa.dictionary(pa.int32(), pa.string())), ("t", pa.timestamp("ns")), ("events", pa.int64())]
    )
    query = "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [events] WITHIN 1 minute"
    matcher = stretto.Matcher(query, schema, time="t")
    assert matcher.held(by="events").num_rows == 0
    for second in (0, 1, 2):  # a dictionary each
        matcher.push(
            pa.Table.from_pylist([{"type": "A", "t": began + dt.timedelta(seconds=second), "events": 7}], schema)
        )
    (row,) = matcher.held(by=["type", "events"]).to_pylist()
    assert (row["type"], row["events"], row["events_"]) == ("A", 7, 3)
    assert matcher.held()["oldest"].type == pa.timestamp("ns")
    assert matcher.held()["oldest"].cast(pa.timestamp("us"))[0].as_py() == began
    plain = stretto.Matcher("SELECT * FROM S WHERE A ; B", {"type": "string"}, output="positions")
    plain.push([{"type": "A"}, {"type": "A"}])
    assert plain.held().select(["waiting", "events"]).to_pylist() == [{"waiting": 0, "events": 2}]
    assert stretto.Matcher(QUERY, time="t").held().num_columns == 0
    eql = "sequence by k with maxspan=9s [A where true] [B where true]"
    latest = stretto.Matcher(
        eql, {"type": "string", "k": "string", "t": "int64"}, language="eql", time="t", time_unit="s"
    )
    latest.push([{"type": "A", "k": "x", "t": 1}, {"type": "A", "k": "x", "t": 2}])
    assert latest.held(by="type").to_pylist() == [{"type": "A", "events": 1, "oldest": 2}]


def test_a_query_that_speculates_has_states() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] } WITHIN 10"
    matcher = stretto.Matcher(
        query, {"type": "string", "k": "string", "t": "int64"}, time="t", speculation=float("inf")
    )
    matcher.push([{"type": "A", "k": "x", "t": 1}, {"type": "A", "k": "x", "t": 2}])
    held = matcher.held(by="k").to_pylist()
    assert held == [{"k": "x", "partial_matches": matcher.stats["partial_matches"], "oldest": 1}]


def test_what_is_refused() -> None:
    matcher = stretto.Matcher(QUERY, {"type": "string", "k": "string", "t": "int64"}, time="t")
    with pytest.raises(stretto.OptionError, match=r"held\(by=…\): no column 'K' to count by; did you mean 'k'"):
        matcher.held(by="K")
    with pytest.raises(stretto.OptionError, match=r"held\(most=0\): give a positive number"):
        matcher.held(0)
    with pytest.raises(stretto.OptionError, match="no column 'stat' to count by; did you mean 'state'"):
        stretto.Matcher(automaton(), time="t").held(by="stat")
    with pytest.raises(stretto.OptionError, match="no column 'variabel' to count by; did you mean 'variable'"):
        stretto.Matcher(CLAUSE, {"type": "string", "t": "int64", "k": "string"}).held(by="variabel")
    with pytest.raises(stretto.OptionError, match="no column 'patern' to count by; did you mean 'pattern'"):
        stretto.PatternSet({"type": "string", "t": "int64"}, time="t").held(by="patern")


# ---- Clauses of SQL

CLAUSE = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY t PATTERN (A A B+ C) DEFINE A AS type = 'A', B AS type = 'B', C AS type = 'C')"


@pytest.mark.parametrize("disorder", [None, 3])
def test_rows_of_a_clause_by_key_and_variable(disorder: int | None) -> None:
    """What is left of each key is the longest end of its rows that a match may go on with, by regular expressions."""
    for seed in range(cases(60, compiled=20)):
        rng = random.Random(seed)
        events = stream(rng, rng.randint(1, 30))
        matcher = stretto.Matcher(CLAUSE, disorder=disorder)
        cut = rng.randint(0, len(events))
        for piece in (events[:cut], events[cut:]):
            matcher.push(piece)
        last = events[-1]["t"]
        read = [one for one in events if disorder is None or one["t"] < last - disorder]
        expected: Counter[tuple[str, str]] = Counter()
        times = []
        for key in "xy":
            own = [one for one in read if one["k"] == key]
            under_way = re.search("(AAB*|A)$", "".join(one["type"] for one in own))
            for one in own[under_way.start() :] if under_way else ():
                expected[key, one["type"]] += 1
                times.append(one["t"])
        found = matcher.held(by=["k", "variable"]).to_pylist()
        assert {(row["k"], row["variable"]): row["events"] for row in found} == expected, (seed, disorder, events)
        if disorder is not None or len(read) > 0:
            (whole,) = matcher.held().to_pylist()
            assert (whole["events"], whole["oldest"]) == (sum(expected.values()), min(times, default=None)), seed
            assert whole["waiting"] == len(events) - len(read), seed


# ---- Sets of patterns


def test_events_of_patterns_are_those_of_their_matchers() -> None:
    """Patterns that run together, that share what they have in common, and on their own, after a time that all have reached."""
    sase = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ [k] AND a.t < b.t - {} }} WITHIN 6"
    for seed in range(cases(40, compiled=10)):
        rng = random.Random(seed)
        events = stream(rng, rng.randint(1, 30))
        queries = {
            "ab": QUERY,
            "ac": QUERY.replace("B AS b", "C AS c"),
            "bc": "SELECT * FROM S WHERE B ; C PARTITION BY [k] WITHIN 4 [t]",
            "all": "SELECT * FROM S WHERE A ; A",
            "sase": sase.format(rng.randint(0, 3)),
        }
        patterns = stretto.PatternSet({"type": "string", "t": "int64", "k": "string"}, time="t")
        patterns.change([stretto.Change(name, query) for name, query in queries.items()])
        patterns.push(events)
        patterns.advance(events[-1]["t"])
        found = patterns.held(by=["pattern", "k"]).to_pylist()
        for name, query in queries.items():
            matcher = stretto.Matcher(query, {"type": "string", "t": "int64", "k": "string"}, time="t")
            matcher.push(events)
            matcher.advance(events[-1]["t"])
            expected = matcher.held(by="k").to_pylist()
            mine = [{key: row[key] for key in ("k", "events", "oldest")} for row in found if row["pattern"] == name]
            assert sorted(mine, key=str) == sorted(expected, key=str), (seed, name, events)
        assert [row["events"] for row in found] == sorted((row["events"] for row in found), reverse=True), seed
        by_pattern = {row["pattern"]: row["events"] for row in patterns.held(by="pattern").to_pylist()}
        sums = Counter(dict.fromkeys(by_pattern, 0))
        for row in found:
            sums[row["pattern"]] += row["events"]
        assert by_pattern == sums, seed
        (whole,) = patterns.held().to_pylist()
        assert whole["events"] == sum(row["events"] for row in patterns.held(by="t").to_pylist()), seed
        assert whole["events"] <= sum(by_pattern.values()), seed
        assert patterns.snapshot() == patterns.snapshot(), seed


def test_a_set_without_events_and_names_that_are_taken() -> None:
    schema = {"type": "string", "t": "int64", "pattern": "string"}
    patterns = stretto.PatternSet(schema, time="t")
    assert patterns.held(by="pattern").num_rows == 0
    patterns.change([stretto.Change("ab", "SELECT * FROM S WHERE A AS a ; B AS b")])
    patterns.push([{"type": "A", "t": 1, "pattern": "here"}])
    assert patterns.held(by=["pattern", "pattern_"]).to_pylist() == [
        {"pattern": "here", "pattern_": "ab", "events": 1, "oldest": 1}
    ]
    assert patterns.held().select(["punctuation", "waiting", "events", "oldest"]).to_pylist() == [
        {"punctuation": None, "waiting": 0, "events": 1, "oldest": 1}
    ]
