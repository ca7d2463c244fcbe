"""``stretto.why_not``: the words of its answers, what it is asked with, and what it refuses."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import stretto

TRADES = pa.table(
    {
        "type": ["BUY", "SELL", "NOTE", "BUY", "SELL", "NOTE"],
        "price": [10, 12, None, 97, None, 3],
        "id": ["a", "a", "a", "b", "c", "c"],
        "time": pa.array([0, 60, 61, 100, 900, 1000], pa.timestamp("s")),
    }
)
SKIPPING = "skip_till_next_match"


def told(query: str, events: Any = TRADES, **options: Any) -> list[str]:
    return str(stretto.why_not(query, events, **{"time": "time"} | options)).splitlines()


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        (
            "SELECT * FROM S WHERE BUY AS b ; SELL AS s FILTER s[price > 100]",
            [
                "No match in 6 events. The nearest misses:",
                "1. s[price > 100] does not hold: price is 12 in row 1",
                "   b: row 0; s: row 1 (1970-01-01 00:00:00 to 1970-01-01 00:01:00)",
                "2. s[price > 100] does not hold: price is NULL in row 4",
                "   b: row 3; s: row 4 (1970-01-01 00:01:40 to 1970-01-01 00:15:00)",
            ],
        ),
        (
            "SELECT * FROM S WHERE BUY ; NOT NOTE ; BUY",
            [
                "No match in 6 events. The nearest miss:",
                "1. NOT NOTE: row 2 (NOTE) came",
                "   BUY: rows 0, 3 (1970-01-01 00:00:00 to 1970-01-01 00:01:40)",
            ],
        ),
        (
            "SELECT STRICT NONE FROM S WHERE BUY ; SELL",
            [
                "No match in 6 events. The nearest miss:",
                "1. SELECT STRICT: no variable is selected, and a match must hold every event of its interval",
                "   BUY: row 0; SELL: row 1 (1970-01-01 00:00:00 to 1970-01-01 00:01:00)",
            ],
        ),
        (
            "SELECT * FROM S WHERE SELL : BUY",
            [
                "No match in 6 events. The nearest miss:",
                "1. SELL : BUY: row 2 (NOTE) lies between",
                "   SELL: row 1; BUY: row 3 (1970-01-01 00:01:00 to 1970-01-01 00:01:40)",
            ],
        ),
        (
            "SELECT * FROM S WHERE BUY ; BUY ; SELL WITHIN 10 minutes",
            [
                "No match in 6 events. The nearest miss:",
                "1. WITHIN 600 seconds: it lasts 15 min (rows 0 to 4), 5 min too long",
                "   BUY: rows 0, 3; SELL: row 4 (1970-01-01 00:00:00 to 1970-01-01 00:15:00)",
            ],
        ),
        (
            "SELECT * FROM S WHERE BUY ; BUY PARTITION BY [id]",
            [
                "No match in 6 events. The nearest miss:",
                "1. PARTITION BY [id]: id is 'a' in row 0 and 'b' in row 3",
                "   BUY: rows 0, 3 (1970-01-01 00:00:00 to 1970-01-01 00:01:40)",
            ],
        ),
        (
            "SELECT * FROM S WHERE NOTE AS n ; SELLS AS s",
            [
                "No match in 6 events. The nearest miss:",
                "1. it waits for SELLS AS s: no event has the type 'SELLS'; did you mean 'SELL'?",
                "   n: row 2 (1970-01-01 00:01:01 to 1970-01-01 00:01:01)",
            ],
        ),
        (
            "SELECT * FROM S WHERE NOTE{2} ; SELL",
            [
                "No match in 6 events. The nearest miss:",
                "1. NOTE{2}: it has 1 event",
                "   NOTE: row 2; SELL: row 4 (1970-01-01 00:01:01 to 1970-01-01 00:15:00)",
            ],
        ),
        (
            "SELECT * FROM S WHERE SELL ; BUY ; SELL ; BUY",
            [
                "No match in 6 events. The nearest miss:",
                "1. it waits for BUY: none comes behind row 4, and the events end with row 5",
                "   SELL: rows 1, 4; BUY: row 3 (1970-01-01 00:01:00 to 1970-01-01 00:15:00)",
            ],
        ),
        (
            "SELECT * FROM S WHERE (SELL ; BUY) WITHIN 5 seconds ; NOTE",
            [
                "No match in 6 events. The nearest miss:",
                "1. WITHIN 5 seconds: 40 s between rows 1 and 3, 35 s too much",
                "   SELL: row 1; BUY: row 3; NOTE: row 5 (1970-01-01 00:01:00 to 1970-01-01 00:16:40)",
            ],
        ),
        (
            f"PATTERN SEQ(BUY a, SELL b) WHERE {SKIPPING} {{ [id] AND b.price > a.price * 2 }}",
            [
                "No match in 6 events. The nearest miss:",
                "1. b.price > (a.price * 2) does not hold: b.price is 12, a.price is 10 in rows 1, 0",
                "   a: row 0; b: row 1 (1970-01-01 00:00:00 to 1970-01-01 00:01:00)",
            ],
        ),
        (
            "PATTERN SEQ(SELL a, BUY b) WHERE strict_contiguity { }",
            [
                "No match in 6 events. The nearest miss:",
                "1. strict_contiguity: row 2 (NOTE) lies between",
                "   a: row 1; b: row 3 (1970-01-01 00:01:00 to 1970-01-01 00:01:40)",
            ],
        ),
        (
            f"PATTERN SEQ(BUY a, ~(NOTE n), BUY b) WHERE {SKIPPING} {{ n.id = a.id }}",
            [
                "No match in 6 events. The nearest miss:",
                "1. ~(NOTE n): row 2 (NOTE) came",
                "   a: row 0; b: row 3 (1970-01-01 00:00:00 to 1970-01-01 00:01:40)",
            ],
        ),
        (
            f"PATTERN SEQ(BUY{{2}} b[] UNTIL (NOTE n), SELL c) WHERE {SKIPPING} {{ }}",
            [
                "No match in 6 events. The nearest misses:",
                "1. BUY{2} b[]: it has 1 event",
                "   b: row 0; c: row 1 (1970-01-01 00:00:00 to 1970-01-01 00:01:00)",
                "2. UNTIL (NOTE n): row 2 (NOTE) came",
                "   b: rows 0, 3; c: row 4 (1970-01-01 00:00:00 to 1970-01-01 00:15:00)",
                "3. BUY{2} b[]: it has 1 event",
                "   b: row 3; c: row 4 (1970-01-01 00:01:40 to 1970-01-01 00:15:00)",
            ],
        ),
    ],
)
def test_words(query: str, lines: list[str]) -> None:
    assert told(query) == lines


def test_words_of_eql() -> None:
    query = "sequence by id with maxspan=30s [BUY where true] [SELL where price > 5] until [NOTE where price == null]"
    assert told(query, language="eql") == [
        "No match in 6 events. The nearest miss:",
        "1. maxspan=30 seconds: it lasts 1 min (rows 0 to 1), 30 s too long",
        "   e1: row 0; e2: row 1 (1970-01-01 00:00:00 to 1970-01-01 00:01:00)",
    ]
    assert told("sequence [SELL where true] [BUY where true] until [NOTE where true]", language="eql")[1:] == [
        "1. until [NOTE where true]: row 2 (NOTE) came",
        "   e1: row 1; e2: row 3 (1970-01-01 00:01:00 to 1970-01-01 00:01:40)",
    ]
    assert told("sample by id [BUY where true] [BUY where price > 50]", language="eql")[1] == (
        "1. by id: id is 'a' in row 0 and 'b' in row 3"
    )


def test_what_does_match() -> None:
    answer = stretto.why_not("SELECT * FROM S WHERE BUY AS b ; SELL", TRADES)
    assert answer.matches
    assert (answer.reasons, answer.near_misses.num_rows) == ((), 0)
    assert str(answer) == "It does match in 6 events: b: row 0; SELL: row 1"


def test_values_of_an_answer() -> None:
    answer = stretto.why_not("SELECT * FROM S WHERE BUY AS b ; SELL AS s FILTER s[price > 100]", TRADES, most=1)
    (reason,) = answer.reasons
    assert (reason.kind, reason.rows, reason.values, reason.variables) == ("condition", (1,), (("price", 12),), ("s",))
    assert answer.query[reason.span.start : reason.span.end] == "price > 100" if reason.span else False
    assert answer.near_misses.to_pylist() == [
        {
            "miss": 1,
            "kind": "condition",
            "asked": "s[price > 100]",
            "found": "price is 12 in row 1",
            "rows": [1],
            "events": [{"variable": "b", "rows": [0]}, {"variable": "s", "rows": [1]}],
        }
    ]


def test_html_is_escaped() -> None:
    events = [{"type": "A", "x": "<b>"}]
    shown = stretto.why_not("SELECT * FROM S WHERE A AS a FILTER a[x = '<i>']", events)._repr_html_()
    assert "<i>" not in shown
    assert "&lt;b&gt;" in shown


def test_a_key_and_a_time() -> None:
    query = "SELECT * FROM S WHERE BUY ; NOTE PARTITION BY [id]"
    assert stretto.why_not(query, TRADES, time="time").matches
    assert told(query, key="b")[1] == "1. it waits for NOTE: no event has the type 'NOTE'"
    assert told(query, key={"id": "b"}) == told(query, key="b")
    early = dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 1)
    assert told(query, between=early)[0] == "No match in 2 events. The nearest miss:"
    assert told(query, between=(None, early[1])) == told(query, between=early)
    assert told(query, key="x") == [
        "No match in 0 events. The nearest miss:",
        "1. it waits for BUY: there are no events",
    ]


def test_rows_are_those_of_the_input() -> None:
    late = TRADES.take([5, 4, 3, 2, 1, 0])
    assert told("SELECT * FROM S WHERE SELL : BUY", late)[1] == "1. SELL : BUY: row 3 (NOTE) lies between"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": 3}, "the query has no partition attribute; name columns and their values: key={'column': 3}"),
        ({"key": {"ids": 3}}, "ids"),
        ({"key": {"price": "x"}}, "key={'price': …} 'x' is no int64, as the column is"),
        ({"between": (0, 1), "time": None}, "between= needs the column of time: time='…'"),
        ({"between": ("x", None)}, "between= 'x' is no timestamp[s], as the column is"),
        ({"most": 0}, "most=0: one near miss at least"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((stretto.OptionError, stretto.DataError)) as caught:
        stretto.why_not("SELECT * FROM S WHERE BUY ; SELLS", TRADES, **{"time": "time"} | options)
    assert message in str(caught.value)


def test_an_event_of_another_key_ends_nothing() -> None:
    events = [{"type": "C", "t": 2, "k": 0}, {"type": "A", "t": 3, "k": 1}, {"type": "C", "t": 5, "k": 0}]
    query = "PATTERN SEQ(C+ a[] UNTIL (A u) ONLY, C c) WHERE skip_till_next_match { [k] }"
    assert told(query, events, time="t")[-2:] == [
        "2. UNTIL (A u) ONLY: no event that ends it comes behind",
        "   a: row 0; c: row 2 (2 to 5)",
    ]


def test_a_key_of_strict_contiguity_is_refused() -> None:
    with pytest.raises(stretto.OptionError, match="strict_contiguity counts the events of all keys"):
        stretto.why_not("PATTERN SEQ(BUY a, NOTE b) WHERE strict_contiguity { [id] }", TRADES, key="a")


def test_a_text_that_is_no_query_is_refused() -> None:
    with pytest.raises(stretto.QueryError, match="the query ends too early"):
        stretto.why_not("SELECT * FROM S WHERE", TRADES)
