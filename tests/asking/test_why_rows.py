"""``stretto.why_not`` for ``MATCH_RECOGNIZE``: the words of its answers, near misses of one broken value, and what is refused."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.conftest import cases

PRICES = [9, 8, 7, 7, 5, 7, 8, 8, 9, None]
TICKER = pa.table(
    {
        "k": [day % 2 for day in range(10)],
        "day": pa.array([day * 60 for day in range(10)], pa.timestamp("s")),
        "price": PRICES,
    }
)


def told(body: str, events: Any = TICKER, **options: Any) -> list[str]:
    return str(stretto.why_not(f"SELECT * FROM t MATCH_RECOGNIZE ({body})", events, **options)).splitlines()


FALLS = "DEFINE down AS price < PREV(price), up AS price > PREV(price)"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (
            "ORDER BY day PATTERN (down+ up) DEFINE down AS price < PREV(price) - 3, up AS price > PREV(price)",
            [
                "No match in 10 rows. The nearest misses:",
                "1. DOWN AS price < (PREV(price) - 3) does not hold: price is 5, PREV(price) is 7 in row 4",
                "   DOWN: row 4; UP: row 5 (1970-01-01 00:04:00 to 1970-01-01 00:05:00)",
            ],
        ),
        (
            f"PARTITION BY k ORDER BY day PATTERN (down{{7}} up+) {FALLS}",
            [
                "No match in 10 rows. The nearest miss:",
                "1. DOWN{7}: it has 2 rows",
                "   DOWN: rows 2, 4; UP: rows 6, 8 (1970-01-01 00:02:00 to 1970-01-01 00:08:00)",
            ],
        ),
        (
            f"PARTITION BY k ORDER BY day PATTERN (^ down up) {FALLS}",
            [
                "No match in 10 rows. The nearest miss:",
                "1. ^: row 4 is not the first row of its partition, which is row 0",
                "   DOWN: row 4; UP: row 6 (1970-01-01 00:04:00 to 1970-01-01 00:06:00)",
            ],
        ),
        (
            f"PARTITION BY k ORDER BY day PATTERN (down up $) {FALLS}",
            [
                "No match in 10 rows. The nearest misses:",
                "1. DOWN AS price < PREV(price) does not hold: price is 8, PREV(price) is 5 in row 6",
                "   DOWN: row 6; UP: row 8 (1970-01-01 00:06:00 to 1970-01-01 00:08:00)",
                "2. $: row 6 is not the last row of its partition, which is row 8",
                "   DOWN: row 4; UP: row 6 (1970-01-01 00:04:00 to 1970-01-01 00:06:00)",
            ],
        ),
        (
            "PARTITION BY k ORDER BY day PATTERN (a b c d e f)",
            [
                "No match in 10 rows. The nearest miss:",
                "1. it waits for F: none comes; no partition has more than 5 rows",
                "   A: row 0; B: row 2; C: row 4; D: row 6; E: row 8 (1970-01-01 00:00:00 to 1970-01-01 00:08:00)",
            ],
        ),
        (
            "PATTERN (a b+ c) DEFINE c AS sum(b.price) > 100 AND c.price > 3",
            [
                "No match in 10 rows. The nearest miss:",
                "1. C AS sum(price OF B) > 100 does not hold: sum(price OF B) is 50 in row 8",
                "   A: row 0; B: rows 1, 2, 3, 4, 5, 6, 7; C: row 8",
            ],
        ),
        (
            "ORDER BY day PATTERN (a b c) WITHIN INTERVAL '1' MINUTE",
            [
                "No match in 10 rows. The nearest misses:",
                "1. WITHIN 60 seconds: it lasts 2 min (rows 0 to 2), 1 min too long",
                "   A: row 0; B: row 1; C: row 2 (1970-01-01 00:00:00 to 1970-01-01 00:02:00)",
            ],
        ),
    ],
)
def test_words(body: str, lines: list[str]) -> None:
    assert told(body)[: len(lines)] == lines


def test_what_does_match() -> None:
    assert told("PATTERN (a b)") == ["It does match in 10 rows: A: row 0; B: row 1"]
    assert told("PATTERN (a*?)") == ["It does match in 10 rows: the first match holds no variable"]
    assert told("PATTERN (a)", TICKER.slice(0, 0)) == [
        "No match in 0 rows. The nearest miss:",
        "1. it waits for A: there are no rows",
    ]


def test_a_key_and_a_time() -> None:
    body = "PARTITION BY k ORDER BY day PATTERN (a b) DEFINE b AS b.price < a.price - 1"
    assert told(body, key=0) == ["It does match in 5 rows: A: row 0; B: row 2"]
    assert told(body, key={"k": 1})[:2] == [
        "No match in 5 rows. The nearest misses:",
        "1. B AS B.price < (A.price - 1) does not hold: B.price is 7, A.price is 8 in row 3",
    ]
    early = None, dt.datetime(1970, 1, 1, 0, 1)
    assert told(body, between=early)[:2] == [
        "No match in 2 rows. The nearest miss:",
        "1. it waits for B: none comes; no partition has more than 1 row",
    ]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A))", {"between": (0, 1)}, "between= needs ORDER BY in the clause"),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A))",
            {"time": "day"},
            "time='day' says nothing about MATCH_RECOGNIZE; leave it out",
        ),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A))", {"key": 1}, "the query has no partition attribute"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)) AS m JOIN u ON true", {}, "runs"),
    ],
)
def test_what_is_refused(text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(stretto.StrettoError) as caught:
        stretto.why_not(text, TICKER, **options)
    assert message in str(caught.value)


def test_what_is_broken_is_named() -> None:
    """A fall and a rise, of which one value is broken: the answer names its row, and with the old value there the match appears."""
    head = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES s.t AS s PATTERN (s d d d d u)"
    text = f"{head} DEFINE d AS price < PREV(price) AND price < 40, u AS price > PREV(price))"
    for seed in range(cases(100, compiled=20)):
        choose = random.Random(seed)
        before = [choose.randint(40, 60) for _ in range(choose.randint(0, 4))]
        whole = [*before, 50, *(fall + choose.randint(0, 3) for fall in (36, 30, 24, 18)), 41]
        far = choose.randint(0, 2)
        at = len(whole) - 2 - far
        prices = list[int | None](whole)
        prices[at] = None if far and choose.random() < 0.5 else whole[at - 1] + choose.randint(0, 2)

        def rows(given: Sequence[int | None]) -> list[dict[str, int | None]]:
            return [{"k": 7, "t": place, "price": price} for place, price in enumerate(given)]

        assert stretto.sql(text, t=rows(whole)).num_rows == 1, seed
        assert not stretto.sql(text, t=rows(prices)).num_rows, seed
        answer = stretto.why_not(text, rows(prices), most=10)
        shown = f"seed {seed}: {prices}\n{answer}"
        assert {one.kind for miss in answer.misses for one in miss.reasons} == {"condition"}, shown
        assert any(
            {at} <= {row for one in miss.reasons for row in one.rows} <= {at, at + 1} for miss in answer.misses
        ), shown


@pytest.mark.parametrize("events", [pa.table({"x": [1, 2, 3]}), pa.table({"x": pa.array([], pa.int64())})])
def test_a_clause_that_reads_no_column(events: pa.Table) -> None:
    told = str(stretto.why_not("MATCH_RECOGNIZE (PATTERN (^ A B $))", events))
    if events.num_rows:
        assert "$: row 1 is not the last row of its partition, which is row 2\n   A: row 0; B: row 1" in told
    else:
        assert "it waits for A: there are no rows" in told


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("A B $ C", "$: rows of the pattern come behind it"),
        ("A ^ B C", "^: rows of the pattern come before it"),
        ("A B $", "$: row 1 is not the last row of its partition, which is row 2"),
    ],
)
def test_an_anchor_in_the_middle_of_a_pattern(pattern: str, reason: str) -> None:
    clause = f"MATCH_RECOGNIZE (ORDER BY x PATTERN ({pattern}) DEFINE A AS x = 1)"
    assert reason in str(stretto.why_not(clause, pa.table({"x": [1, 2, 3]})))
