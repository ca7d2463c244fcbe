"""The reference evaluator of counts and sums, on cases by hand."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.reference.totals import Overflow, Undecided, best_of, total_rows

NAN = math.nan
#: A at 0, B at 1, 2 and 4, C at 6: seven choices of B.
EVENTS = pa.table(
    {
        "type": ["A", "B", "B", "B", "C"],
        "t": [0, 1, 2, 4, 6],
        "k": ["x", "x", "x", "x", "x"],
        "v": [10, 1, None, 3, 7],
        "w": [1.0, 0.5, NAN, 2.0, None],
        "d": pa.array([Decimal("1.10"), Decimal("0.05"), None, Decimal("2.00"), None], pa.decimal128(9, 2)),
    }
)
WHERE = "FROM S WHERE A AS a; B+ AS b; C AS c"


def rows(text: str, events: pa.Table = EVENTS, *, valuations: bool = False) -> list[dict[str, Any]]:
    return total_rows(stretto.compile(text, events.schema, time="t").bound, events, valuations=valuations)


def test_counts_and_sums() -> None:
    text = f"SELECT COUNT(*), COUNT(b), COUNT(b[v]), SUM(b[v]), SUM(b[d]), AVG(b[v]), MIN(b[v]), MAX(b[t]) {WHERE}"
    assert rows(text) == [
        {
            "count": 7,
            "count_b": 12,
            "count_b_v": 8,
            "sum_b_v": 16,
            "sum_b_d": Decimal("8.20"),
            "avg_b_v": 2.0,
            "min_b_v": 1,
            "max_b_t": 4,
        }
    ]


def test_both_languages() -> None:
    pattern = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match { b[1].t < 4 and b[i].t < 4 }"
    assert rows(f"{pattern} RETURN TOTAL count(*), sum(b[].v)") == [{"count": 3, "sum_b_v": 2}]
    assert rows(f"SELECT COUNT(*), SUM(b[v]) {WHERE} FILTER b[t < 4]") == [{"count": 3, "sum_b_v": 2}]


def test_nothing() -> None:
    nothing = {"count": 0, "sum_a_v": None, "avg_a_w": None, "max_a_d": None}
    assert rows("SELECT COUNT(*), SUM(a[v]), AVG(a[w]), MAX(a[d]) FROM S WHERE A AS a; A") == [nothing]
    assert rows("SELECT COUNT(*) FROM S WHERE A; A PARTITION BY [k]") == []
    assert rows("SELECT COUNT(*) FROM S WHERE A; A EVERY EVENT") == []


def test_nan() -> None:
    (row,) = rows(f"SELECT SUM(b[w]) AS s, MIN(b[w]) AS l, MAX(a[w]) AS m, COUNT(b[w]) AS n {WHERE}")
    assert math.isnan(row["s"])
    assert math.isnan(row["l"])
    assert (row["m"], row["n"]) == (1.0, 12)


def test_every_event() -> None:
    found = rows("SELECT COUNT(*), SUM(b[v]) FROM S WHERE A; B+ AS b EVERY EVENT")
    assert found == [
        {"start": 0, "end": 1, "count": 1, "sum_b_v": 1},
        {"start": 0, "end": 2, "count": 2, "sum_b_v": 1},
        {"start": 0, "end": 3, "count": 4, "sum_b_v": 14},
    ]


def test_windows_have_what_lies_wholly_inside() -> None:
    found = rows("SELECT COUNT(*) FROM S WHERE B; B WITHIN 3 [t] EVERY 2")
    assert found == [
        {"window_start": 0, "window_end": 3, "count": 1},
        {"window_start": 2, "window_end": 5, "count": 1},
    ]
    assert rows("SELECT COUNT(*) FROM S WHERE B; B WITHIN 3 [t] EVERY 5") == [
        {"window_start": 0, "window_end": 3, "count": 1}
    ]


def test_windows_begin_before_the_first_event() -> None:
    found = rows("SELECT COUNT(*) FROM S WHERE A WITHIN 3 EVENTS EVERY 1 EVENTS")
    assert [row["window_start"] for row in found] == [-2, -1, 0]


def test_groups() -> None:
    found = rows("SELECT COUNT(*) FROM S WHERE B+ AS b; C AS c GROUP BY c[w], c[k]")
    assert found == [{"c_w": None, "c_k": "x", "count": 7}]
    found = rows("SELECT COUNT(*), SUM(a[v]) FROM S WHERE (A OR B) AS a; C GROUP BY a[w]")
    assert [(row["a_w"] if row["a_w"] == row["a_w"] else "nan", row["sum_a_v"]) for row in found] == [
        (1.0, 10),
        (0.5, 1),
        ("nan", None),
        (2.0, 3),
    ]


def test_each_complex_event_once() -> None:
    """Three events are split in two ways."""
    three = EVENTS.slice(1, 3)
    text = "SELECT COUNT(*) FROM S WHERE B+ AS x; B+ AS y STRICT".replace(" STRICT", "").replace(
        "SELECT", "SELECT STRICT"
    )
    assert rows(text, three) == [{"count": 3}]
    assert rows(text, three, valuations=True) == [{"count": 4}]
    with pytest.raises(Undecided):
        rows(text.replace("COUNT(*)", "COUNT(x)"), three)
    assert rows(text.replace("COUNT(*)", "COUNT(x)"), three, valuations=True) == [{"count_x": 5}]


def test_distinct() -> None:
    assert rows(f"SELECT COUNT(DISTINCT a, c) {WHERE}") == [{"count": 1}]


def test_beyond_64_bits() -> None:
    text = f"SELECT SUM(b[v * 2305843009213693952]) AS s {WHERE}"
    with pytest.raises(Overflow):
        rows(text)
    real = text.replace("SUM(b[v * 2305843009213693952])", "CAST(SUM(b[v * 2305843009213693952]) AS DOUBLE)")
    assert rows(real) == [{"s": 16 * 2.0**61}]


def test_the_best() -> None:
    query = stretto.compile(f"SELECT * {WHERE} ORDER BY SUM(b[v]) - COUNT(b) DESC LIMIT 3", EVENTS.schema).bound
    (part,) = best_of(query, EVENTS)
    assert [match.positions for match in part.matches] == [(0, 1, 3, 4), (0, 3, 4), (0, 1, 2, 3, 4)]
