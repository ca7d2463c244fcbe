"""Small cases of the AFA operator that random ones led to; what is right was worked out by hand or by the reference evaluator.

Those that fit there are in ``tests/conformance/found.toml``.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import stretto

Signed = list[tuple[int, int, int]]


def ignoring(**options: Any) -> Any:
    """Everything begins a match, and everything can be ignored in it."""
    return stretto.AFA({}, **options).arc("q0", "q1").ignore("q1").final("q1")


def pushed(matcher: Any, **columns: Any) -> Signed:
    """Sign, start and end of what a push gives; columns hold one value a row."""
    kinds = {"sign": pa.int8()}
    arrays = {name: pa.array(values, kinds.get(name)) for name, values in columns.items()}
    found = matcher.push(pa.table(arrays))
    return [(row["sign"], row["start"], row["end"]) for row in found.to_pylist()]


def matcher_of(afa: Any, *columns: str, **options: Any) -> Any:
    kinds = {"sign": pa.int8()}
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in ("time", *columns)])
    return stretto.Matcher(afa, schema, time="time", capacity=1, **options)


@pytest.mark.parametrize("ignore", [True, False])
def test_a_gap_of_numbers_in_an_ignored_stretch(ignore: bool) -> None:
    matcher = matcher_of(ignoring(), "number", numbered="number", ignore=ignore)
    assert pushed(matcher, time=[0], number=[10]) == [(1, 0, 0)]
    assert pushed(matcher, time=[1], number=[11]) == [(1, 0, 1), (1, 1, 1)]
    assert pushed(matcher, time=[3], number=[13]) == [(1, 2, 2)]
    assert pushed(matcher, time=[2], number=[12]) == [
        (1, 0, 3), (1, 1, 3), (1, 3, 3), (1, 0, 2), (1, 1, 2), (1, 3, 2),
    ]  # fmt: skip


@pytest.mark.parametrize("ignore", [True, False])
def test_a_retraction_opens_a_gap_in_an_ignored_stretch(ignore: bool) -> None:
    matcher = matcher_of(ignoring(), "number", "sign", numbered="number", sign="sign", ignore=ignore)
    for time, number in ((2, 11), (1, 10), (0, 9)):
        found = pushed(matcher, time=[time], number=[number], sign=[1])
    assert found == [(1, 2, 2), (1, 2, 1), (1, 2, 0)]
    assert sorted(pushed(matcher, time=[1], number=[10], sign=[-1])) == [
        (-1, 1, 0), (-1, 1, 1), (-1, 2, 0), (-1, 2, 1),
    ]  # fmt: skip


def test_steps_of_one_push_stay_apart() -> None:
    """Outputs with the same ends, of two steps: in the order of the steps, although the registers' order is another."""
    afa = stretto.AFA({"a": int}, {"s": str, "b": bool}).arc("q0", "q1", when="e.a <= 1").arc("q1", "q2")
    matcher = matcher_of(afa.arc("q0", "q1", then="b = true").final("q2"), "a", "sign", sign="sign")
    rows = {"time": [1, 0, 0, 0], "a": [0, None, None, 1], "sign": [1, 1, -1, 1]}
    table = pa.table(
        {name: pa.array(values, pa.int8() if name == "sign" else pa.int64()) for name, values in rows.items()}
    )
    found = [(row["sign"], row["start"], row["end"], row["register"]["b"]) for row in matcher.push(table).to_pylist()]
    assert found == [(1, 1, 0, True), (1, 1, 0, False)]


def test_lifetimes_that_are_all_unbounded() -> None:
    schema = pa.schema([("time", pa.timestamp("us")), ("until", pa.timestamp("us"))])
    matcher = stretto.Matcher(ignoring(), schema, time="time", until="until")
    row = {"time": dt.datetime(2020, 1, 1), "until": None}
    found = matcher.push(pa.Table.from_pylist([row], schema)).to_pylist()
    assert [(one["start"], one["until"]) for one in found] == [(0, None)]


def test_an_arc_with_new_conditions_on_what_is_computed() -> None:
    afa = stretto.AFA({"a": int, "s": str}, {"s": str}).arc("q0", "q1", when="r.s = e.s or e.s >= e.s").final("q1")
    schema = pa.schema([("time", pa.int64()), ("a", pa.int64()), ("s", pa.string())])
    matcher = stretto.Matcher(afa, schema, time="time", dynamic="explicit")
    matcher.push(pa.table({"time": [1, 2], "a": [5, 6], "s": ["x", "y"]}))
    found = matcher.add_arc("q1", "q1", when="e.a + 1 >= e.a", id="more", since=2)
    assert [(row["start"], row["end"]) for row in found.to_pylist()] == [(0, 1)]


def test_the_punctuation_counts_as_a_time_that_was_seen() -> None:
    """Section 2.3: an arc is retired after t_curr, the greatest of all times and punctuations."""
    matcher = matcher_of(stretto.AFA({}).arc("q0", "q1", id="only").final("q1"))
    matcher.advance(16)
    matcher.retire_arc("only")
    assert pushed(matcher, time=[16]) == [(1, 0, 0)]
    assert pushed(matcher, time=[17]) == []
