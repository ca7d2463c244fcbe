"""Counts and sums over the matches of NFAb: what 64 bits hold, what it keeps, what it refuses, over streams and beside listing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.match_ops.aggregate import AddedRun
from stretto.errors import LimitError, OptionError
from tests.cases import agree, totals
from tests.conftest import size

RISING = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { b[i].v >= b[i-1].v }"


def events(kinds: str, **columns: Any) -> pa.Table:
    """Events one unit apart, of types of one letter."""
    columns = {"v": [1] * len(kinds), "k": ["x"] * len(kinds)} | columns
    return pa.table({"type": list(kinds), "t": range(len(kinds)), **columns})


def rows(query: str, given: pa.Table, **options: Any) -> list[dict[str, Any]]:
    return stretto.match(query, given, time="t", **options).to_pylist()


def test_counts_are_exact_up_to_the_last_bit() -> None:
    query = f"{RISING} RETURN TOTAL count(*) EVERY EVENT"
    assert rows(query, events("A" + "B" * 63))[-1]["count"] == 2**62
    with pytest.raises(
        IntegerOverflow, match=r"COUNT\(\*\) of all matches leaves 64 bits at row 64: write CAST\(COUNT"
    ):
        rows(query, events("AA" + "B" * 64))


def test_an_error_names_the_event_and_its_key() -> None:
    query = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] and b[i].v >= b[i-1].v } RETURN TOTAL count(*)"
    with pytest.raises(IntegerOverflow, match="of k = 'x' leaves 64 bits at row 64"):
        rows(query, events("A" + "B" * 70))


def test_floating_counts_go_on() -> None:
    query = f"{RISING} RETURN TOTAL CAST(count(*) AS DOUBLE) AS n, avg(b[].v) AS mean"
    assert rows(query, events("A" + "B" * 100)) == [{"n": pytest.approx(2.0**100), "mean": 1.0}]


def test_what_has_left_the_window_may_be_beyond() -> None:
    query = f"{RISING} WITHIN 70 RETURN TOTAL count(*) EVERY EVENT"
    given = events("A" + "X" * 70 + "BBB" + "A" + "B")
    assert [row["count"] for row in rows(query, given)] == [2] or rows(query, given)[-1]["count"] == 1


def test_runs_whose_strings_are_forgotten_keep_their_groups() -> None:
    count = size(12_000, 6_000)
    names = [f"n{at}" for at in range(count)]
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.v <= b.v } WITHIN 2 RETURN TOTAL count(*) GROUP BY a.k EVERY EVENT"
    given = events("AB" * (count // 2), k=names)
    matcher = stretto.Matcher(query, given.schema, time="t")
    found = pa.concat_tables([matcher.push(given.slice(at, 500)) for at in range(0, count, 500)])
    assert found["a_k"].to_pylist() == names[::2]
    run = matcher._executor.run
    assert isinstance(run, AddedRun)


def test_memory_is_that_of_the_window() -> None:
    query = f"{RISING} WITHIN 8 RETURN TOTAL count(*), sum(b[].v) EVERY 4"
    matcher, sizes = stretto.Matcher(query, events("A").schema, time="t"), []
    for at in range(4):
        given = events("ABBB" * size(20_000, 2_500))
        given = given.set_column(1, "t", pa.array(np.arange(given.num_rows) + at * given.num_rows))
        matcher.push(given)
        sizes.append(matcher.stats["bytes"])
    assert sizes[-1] <= 2 * sizes[0]


def test_numbers_go_over_the_budget_by_name() -> None:
    query = f"{RISING} WITHIN 4000 RETURN TOTAL count(*) EVERY 1"
    with pytest.raises(LimitError, match="counts of partial matches go over the budget of 1 MiB"):
        rows(query, events("AB" * 20), budget="1 MiB")


def test_groups_of_types_that_conditions_do_not_compare() -> None:
    given = events("AB", k=pa.array([b"x", b"y"], pa.binary()))
    with pytest.raises(OptionError, match=r"GROUP BY a\.k compares binary between events"):
        rows("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.v <= b.v } RETURN TOTAL count(*) GROUP BY a.k", given)
    listed = "PATTERN SEQ(A a, ~(C c), B b) WHERE skip_till_any_match { a.v <= b.v } RETURN TOTAL count(*) GROUP BY a.k"
    assert rows(listed, given) == [{"a_k": b"x", "count": 1}]


def test_patterns_of_a_set_are_refused_by_name() -> None:
    patterns = stretto.PatternSet(events("A").schema, time="t", totals=True)
    with pytest.raises(OptionError, match="are those of one automaton beside other patterns"):
        patterns.change(stretto.Change("p", f"{RISING} RETURN TOTAL count(*) EVERY EVENT"))


def test_explain_names_the_engine_and_how() -> None:
    schema = events("A").schema
    told = str(stretto.compile(f"{RISING} RETURN TOTAL count(*) GROUP BY a.v", schema).explain())
    assert "nfab: the lists of runs that it merges have what the matches in them add up to" in told
    assert "not totals: a condition relates events" in told
    told = str(stretto.compile("PATTERN SEQ(A a, ~(C c), B b) RETURN TOTAL count(*)", schema).explain())
    assert "nfab: negations are decided match by match, of which each is added up and forgotten" in told


def test_what_is_asked_needs_no_listing() -> None:
    """There are 2^50 matches, of which listing would not come back."""
    query = f"{RISING} RETURN TOTAL count(*), sum(b[].v), min(b[].v), max(b[].v)"
    given = events("A" + "B" * 50, v=[0, *range(50)])
    (row,) = rows(query, given)
    assert row == {"count": 2**50 - 1, "sum_b_v": 2**49 * (50 * 49 // 2), "min_b_v": 0, "max_b_v": 49}


def test_snapshots_with_events_without_a_key() -> None:
    """Strict contiguity reads events that have no key: no match holds them, and a snapshot with them is restored."""
    query = "PATTERN SEQ(A a, B b) WHERE strict_contiguity { [k] } WITHIN 8 [t] RETURN TOTAL COUNT(*) AS n EVERY EVENT"
    given = events("ABAB", k=[None, "x", "x", "x"])
    matcher = stretto.Matcher(query, schema=given.schema, time="t")
    found = []
    for at in range(given.num_rows):
        found += matcher.push(given.slice(at, 1)).to_pylist()
        matcher = stretto.Matcher(query, schema=given.schema, time="t").restore(matcher.snapshot())
    found += matcher.finish().to_pylist()
    assert found == stretto.match(query, given, time="t").to_pylist()
    assert len(found) == 1
    agree(totals, [57_000_538, 57_000_673])  # samples of such matches
