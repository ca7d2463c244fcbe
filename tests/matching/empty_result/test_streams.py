"""Warnings of a matcher: what none of a stream's first events had."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.matching.empty_result import streams as dry_stream
from tests.conftest import cases

SCHEMA = {"type": "string", "id": "string", "price": "int64", "t": "int64"}
QUERY = "SELECT * FROM S WHERE BUY AS b ; SELL AS s FILTER s[price > 50] PARTITION BY [id] WITHIN 9 [t]"


def events(count: int, **changed: Any) -> list[dict[str, Any]]:
    return [{"type": ("BUY", "SELL")[at % 2], "id": "x", "price": 7, "t": at} | changed for at in range(count)]


def told(query: str, pieces: list[Any], **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        matcher = stretto.Matcher(query, **{"schema": SCHEMA, "time": "t"} | options)
        for piece in pieces:
            matcher.push(piece)
    assert all(one.category is stretto.StrettoWarning and one.filename == __file__ for one in found)
    return [str(one.message) for one in found]


def test_a_condition_once() -> None:
    expected = (
        "after 10 events of the stream: "
        "of 5 events of type 'SELL' none fulfils s[price > 50] (line 1, column 53): price is always 7"
    )
    every = events(40)
    assert told(QUERY, [every], warn_after=10) == [expected]
    assert told(QUERY, [every[at : at + 3] for at in range(0, 40, 3)], warn_after=10) == [expected]
    assert told(QUERY, [every[:9]], warn_after=10) == []
    assert told(QUERY, [every], warn_after=None) == told(QUERY, [every]) == []
    assert told(QUERY, [every], warn_after=10, schema=None) == [expected]
    assert told(QUERY, [every], warn_after=10, disorder=3) == [expected]


def test_types_and_keys() -> None:
    query = "SELECT * FROM S WHERE BUY ; (SELLS OR SOLD) ; NOT GONE ; BUY PARTITION BY [id]"
    assert told(query, [events(12)], warn_after=12) == [
        "after 12 events of the stream: no event has the type 'SELLS' (did you mean 'SELL'?) or 'SOLD'"
    ]
    null = told("SELECT * FROM S WHERE BUY ; SELL PARTITION BY [id]", [events(12, id=None)], warn_after=12)
    assert null == [
        "after 12 events of the stream: of 12 events of type 'BUY' or 'SELL' none has the key 'id' (line 1, column 48): it is NULL, "
        "and events without a key are in no match"
    ]
    sase = "PATTERN SEQ(BUY a, SELL b) WHERE skip_till_any_match { a.price > 8 } WITHIN 9"
    assert told(sase, [events(12)], warn_after=12) == [
        "after 12 events of the stream: of 6 events of type 'BUY' none fulfils a.price > 8 (line 1, column 56): price is always 7"
    ]


def test_nothing_where_everything_was_met() -> None:
    good = [*events(8), {"type": "SELL", "id": "x", "price": 51, "t": 9}, *[one | {"t": 10} for one in events(8)]]
    assert told(QUERY, [good], warn_after=12) == []
    assert told(QUERY, [good], warn_after=8) != []
    assert told("SELECT * FROM S WHERE BUY? ; SELL", [events(4, type="SELL")], warn_after=4) == []


def test_it_looks_no_longer_than_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    plain = dry_stream.Lacking._look

    def noted(self: dry_stream.Lacking, piece: pa.Table) -> None:
        looked.append(piece.num_rows)
        plain(self, piece)

    monkeypatch.setattr(dry_stream.Lacking, "_look", noted)
    some = pa.Table.from_pylist(events(3_000, price=60))
    told(QUERY, [some.slice(at, 100) for at in range(0, 3_000, 100)], schema=None)
    assert looked == [1_100]
    looked.clear()
    told(QUERY, [pa.Table.from_pylist(events(3_000))], warn_after=2_500, schema=None)
    assert looked == [2_500]


def test_a_matcher_that_goes_on_does_not_warn() -> None:
    first = stretto.Matcher(QUERY, SCHEMA, time="t", warn_after=10)
    first.push(events(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = stretto.Matcher(QUERY, SCHEMA, time="t", warn_after=10).restore(first.snapshot())
        second.push([one | {"t": 99} for one in events(20)])


def test_types_that_become_wider_end_it() -> None:
    query = "SELECT * FROM S WHERE BUY AS b ; SELL FILTER b[price > 8.5]"
    pieces: list[Any] = [
        [{"type": "BUY", "price": None}],
        [{"type": "BUY", "price": 7}, {"type": "SELL", "price": None}] * 3,
    ]
    assert told(query, [*pieces, [{"type": "BUY", "price": 8}] * 9], schema=None, time=None, warn_after=9) == []
    (one,) = told(query, [pieces[1], pieces[1]], schema=None, time=None, warn_after=9)
    assert "price is always 7" in one


def test_results_are_those_of_a_matcher_that_does_not_look() -> None:
    for seed in range(cases(60, compiled=10)):
        rng = random.Random(seed)
        stream = [
            {
                "type": rng.choice(["BUY", "SELL", "NOTE"]),
                "id": rng.choice(["x", None]),
                "price": rng.choice([7, 60, None]),
                "t": t,
            }
            for t in range(rng.randint(1, 40))
        ]
        one, other = (stretto.Matcher(QUERY, SCHEMA, time="t", warn_after=most) for most in (rng.randint(1, 30), None))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while stream:
                piece, stream = stream[: (size := rng.randint(1, 9))], stream[size:]
                assert one.push(piece).equals(other.push(piece)), seed


def test_what_is_refused() -> None:
    with pytest.raises(stretto.OptionError, match="warn_after=0: a number of events, or None for no warning"):
        stretto.Matcher(QUERY, SCHEMA, time="t", warn_after=0)
    afa = stretto.AFA({"t": int}).arc("q0", "q1").final("q1")
    with pytest.raises(stretto.OptionError, match="warn_after=5 is for queries in CEQL or SASE"):
        stretto.Matcher(afa, time="t", warn_after=5)
