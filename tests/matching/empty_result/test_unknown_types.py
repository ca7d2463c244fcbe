"""Types that a query names and no event has: a warning where the result is empty."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pyarrow as pa
import pytest

import stretto
import stretto.matching.empty_result.queries

EVENTS = pa.table({"type": ["trip", "stop", None], "t": [1, 2, 3]})
ANY_MATCH = "WHERE skip_till_any_match { }"


def told(query: str, events: Any = EVENTS, **options: Any) -> str:
    with pytest.warns(stretto.StrettoWarning) as caught:
        assert stretto.match(query, events, **options).num_rows == 0
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return str(caught[0].message)


def silent(query: str, events: Any = EVENTS, **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stretto.match(query, events, **options)


def test_the_nearest_type_is_named() -> None:
    expected = "no event has the type 'TRIPS' (did you mean 'trip'?), which the query names: 'type' has 'trip', 'stop'"
    assert told("SELECT * FROM S WHERE TRIPS+") == expected
    assert told("SELECT * FROM S WHERE trip ; TRIPS", output="positions") == expected
    assert (
        told("SELECT * FROM S WHERE trip ; TRIPS", EVENTS.set_column(0, "type", EVENTS["type"].dictionary_encode()))
        == expected
    )
    assert told(f"PATTERN SEQ(trip a, TRIPS b) {ANY_MATCH}") == expected
    with pytest.warns(stretto.StrettoWarning, match="no event has the type 'TRIPS'"):
        assert list(stretto.match_sets(f"PATTERN SEQ(TRIPS a) {ANY_MATCH}", EVENTS)) == []
    with pytest.warns(stretto.StrettoWarning, match="no event has the type 'TRIPS'"):
        assert sum(piece.num_rows for piece in stretto.iter_matches("SELECT * FROM S WHERE TRIPS", EVENTS)) == 0
    assert (
        told("SELECT * FROM S WHERE ANY")
        == "no event has the type 'ANY', which the query names: 'type' has 'trip', 'stop'"
    )
    assert told("SELECT * FROM S WHERE A", pa.table({"type": pa.nulls(2)})).endswith("'type' has NULL only")


def test_several_types() -> None:
    assert told("SELECT * FROM S WHERE trip ; TRIPS OR SOLD") == (
        "no event has the type 'SOLD' or 'TRIPS' (did you mean 'trip'?), which the query names: 'type' has 'trip', 'stop'"
    )
    many = told(f"SELECT * FROM S WHERE {' ; '.join(f'T{at}9' for at in range(9))}")
    assert many.startswith("no event has the type 'T09' or 'T19' or ")
    assert " or 'T79' or …, which the query names: " in many


def test_a_type_that_is_the_stream() -> None:
    assert told("SELECT * FROM S WHERE trip", type=None) == (
        "no event has the type 'trip', which the query names: with type=None it is the name of the event's stream ('S'); type='…' "
        "names the column that holds it"
    )
    silent("SELECT * FROM S WHERE S", type=None)


def test_nothing_is_said_of_other_empty_results(monkeypatch: pytest.MonkeyPatch) -> None:
    silent("SELECT * FROM S WHERE stop ; trip")
    silent("SELECT * FROM S WHERE A", EVENTS.slice(0, 0))
    silent(f"PATTERN SEQ(stop a, ~(ERROR e), trip b) {ANY_MATCH}")
    silent("SELECT * FROM S WHERE A OR trip")  # it has rows
    matcher = stretto.Matcher("SELECT * FROM S WHERE A")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matcher.push(EVENTS)
        matcher.finish()
    # Nor is the column read again where there are rows.
    monkeypatch.setattr(stretto.matching.empty_result.queries, "distinct", None)
    assert stretto.match("SELECT * FROM S WHERE trip", EVENTS).num_rows == 1


def test_no_component_can_match_without_types_and_streams() -> None:
    query = f"PATTERN SEQ(trip a) {ANY_MATCH}"
    message = (
        "type=None: an event's type is the name of its stream, and no column names it, so that no component of the pattern can ever "
        "match; name the column of types with type='…', that of streams with stream='…', or give a dict of tables by "
        "stream (in the shell NAME=FILES)"
    )
    for call in (
        lambda: stretto.match(query, EVENTS, type=None),
        lambda: stretto.Matcher(query, type=None).push(EVENTS),
        lambda: stretto.Matcher(query, type=None, time="t", speculation=math.inf).push(EVENTS),
        lambda: stretto.compile(query, EVENTS, type=None),
    ):
        with pytest.raises(stretto.OptionError) as caught:
            call()
        assert str(caught.value) == message
