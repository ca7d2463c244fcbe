"""Counts and sums over a column that had only NULL at first, and then values of another type than was supposed."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pytest

import stretto
from tests.conftest import cases

ITEMS = "COUNT(*) AS n, COUNT(b[v]) AS known, SUM(b[v]) AS s, MIN(b[v]) AS least, MAX(b[v]) AS most"
QUERIES = [
    f"SELECT {ITEMS} FROM S WHERE A AS a ; B+ AS b",
    f"SELECT {ITEMS} FROM S WHERE A AS a ; B+ AS b PARTITION BY [k]",
    f"SELECT AVG(b[w]) AS mean, {ITEMS}, SUM(b[w + 1]) AS more FROM S WHERE A AS a ; B+ AS b PARTITION BY [k]",
    f"SELECT {ITEMS} FROM S WHERE A AS a ; B+ AS b GROUP BY a[w]",
    f"SELECT {ITEMS} FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 4 seconds EVERY EVENT",
    f"SELECT {ITEMS} FROM S WHERE A AS a ; B AS b WITHIN 3 EVENTS EVERY EVENT",
    f"SELECT {ITEMS} FROM S WHERE A AS a ; B+ AS b PARTITION BY [k] WITHIN 4 seconds EVERY 2 seconds",
    f"SELECT {ITEMS} FROM S WHERE A AS a ; B+ AS b WITHIN 4 seconds EVERY 2 seconds GROUP BY a[w]",
    "SELECT MAX(b[v]) AS most, SUM(b[w]) AS s FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 4 EVENTS EVERY 2 EVENTS",
]
SASE = [
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] and b[i].w >= b[i-1].w } WITHIN 6 seconds RETURN TOTAL "
    "COUNT(*) AS n, SUM(b[].v) AS s, MAX(b[].v) AS most",
]


def value(kind: str, draw: random.Random) -> Any:
    if draw.random() < 0.2:
        return None
    number = draw.randrange(-6, 7)
    return {"double": number / 2, "int": number, "decimal": Decimal(2 * number + 1) / 10 + 5}[kind]


def rows(query: str, pieces: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    matcher = stretto.Matcher(query, time="t", time_unit="s")
    found = [row for piece in pieces for row in matcher.push(piece).to_pylist()]
    return found + matcher.finish().to_pylist()


def by_text(found: list[dict[str, Any]]) -> list[str]:
    """Rows in any order; what came before the first value has NULL of another type."""
    return sorted(
        str({name: float(x) if isinstance(x, Decimal | int) else x for name, x in row.items()}) for row in found
    )


@pytest.mark.parametrize("query", [*QUERIES, *SASE])
@pytest.mark.parametrize("kind", ["double", "int", "decimal"])
def test_a_column_without_values_gets_a_type(query: str, kind: str) -> None:
    for seed in range(cases(60)):
        draw = random.Random(seed)
        size, first = draw.randrange(6, 14), draw.randrange(1, 6)
        events: list[dict[str, Any]] = [
            {
                "type": draw.choice("ABB"),
                "k": draw.choice("xy"),
                "w": draw.randrange(3),
                "t": at // draw.randrange(1, 3),
            }
            for at in range(size)
        ]
        events.sort(key=lambda one: one["t"])
        events = [one | {"v": value(kind, draw) if at >= first else None} for at, one in enumerate(events)]
        if all(one["v"] is None for one in events):
            events[-1]["v"] = {"double": 2.5, "int": 2, "decimal": Decimal("2.5")}[kind]
        cuts = sorted({0, first, *(draw.randrange(size) for _ in range(2)), size})
        pieces = [events[begin:end] for begin, end in zip(cuts, cuts[1:], strict=False)]
        assert by_text(rows(query, pieces)) == by_text(rows(query, [events])), seed


def test_values_that_a_condition_gave_in_their_place_stay() -> None:
    """Where what is added up is known of rows without the value, numbers of integers are none of doubles."""
    query = "SELECT SUM(b[coalesce(v, 1)]) AS s FROM S WHERE A ; B AS b"
    nothing = [{"type": "A", "v": None}, {"type": "B", "v": None}]
    matcher = stretto.Matcher(query)
    matcher.push(nothing)
    with pytest.raises(stretto.DataError, match="what is kept of them depends on it"):
        matcher.push([{"type": "B", "v": 1.5}])
    matcher.push([{"type": "B", "v": 4}])
    assert matcher.finish().to_pylist() == [{"s": 5}]


def test_more_matches_than_64_bits_count() -> None:
    query = "SELECT SUM(b[v]) AS s FROM S WHERE A+ ; B AS b"
    matcher = stretto.Matcher(query)
    matcher.push([{"type": "A", "v": None}] * 70)
    with pytest.raises(stretto.DataError, match="what is kept of them depends on it"):
        matcher.push([{"type": "B", "v": 1.5}])


def test_times_of_days() -> None:
    query = "SELECT MAX(b[v]) AS s FROM S WHERE A ; B AS b"
    matcher = stretto.Matcher(query)
    matcher.push([{"type": "A", "v": None}, {"type": "B", "v": None}])
    matcher.push([{"type": "B", "v": dt.date(2024, 5, 1)}])
    assert matcher.finish().to_pylist() == [{"s": dt.date(2024, 5, 1)}]
