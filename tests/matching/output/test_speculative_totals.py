"""Counts, sums, the best matches and samples ahead of what is certain: cases by hand (random ones: ``tests/oracle``)."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, OptionError, SnapshotError

SCHEMA = pa.schema([("type", pa.string()), ("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
WINDOWS = "SELECT COUNT(*), SUM(b[v]) FROM S WHERE A ; B AS b WITHIN 10 [t] EVERY 10"


def event(kind: str, at: int, *, k: int = 1, v: int = 1) -> dict[str, Any]:
    return {"type": kind, "t": at, "k": k, "v": v}


def matcher(query: str = WINDOWS, **options: Any) -> stretto.Matcher:
    return stretto.Matcher(query, **({"schema": SCHEMA, "time": "t", "speculation": math.inf} | options))


def rows(found: pa.Table) -> list[tuple[Any, ...]]:
    """Signs and values, without times."""
    return [tuple(row[name] for name in row if not name.endswith("_time")) for row in found.to_pylist()]


def test_a_window_is_told_at_once_and_taken_back() -> None:
    made = matcher(disorder=4)
    assert rows(made.push([event("A", 1), event("B", 4, v=5)])) == [(1, 0, 10, 1, 5)]
    assert rows(made.push([event("B", 3, v=7)])) == [(-1, 0, 10, 1, 5), (1, 0, 10, 2, 12)]
    assert rows(made.push([event("A", 13), event("B", 14)])) == [(1, 10, 20, 1, 1)]
    assert rows(made.push([event("A", 30)])) == []  # both windows are certain, and were given
    assert not made.idle
    assert made.stats["waiting"] == 1
    assert made.finish().num_rows == 0
    assert made.finish().num_rows == 0


def test_the_rows_of_events_of_a_table_and_the_best() -> None:
    made = matcher("SELECT MAX(b[v]) FROM S WHERE A ; B AS b WITHIN 10 [t] EVERY EVENT")
    assert rows(made.push([event("A", 2), event("B", 4, v=5)])) == [(1, 0, 1, 5)]
    assert rows(made.push([event("B", 3, v=9)])) == [(1, 0, 2, 9)]
    assert rows(made.push([event("A", 1)])) == [(-1, 0, 2, 9), (-1, 0, 1, 5), (1, 3, 2, 9), (1, 3, 1, 5)]
    made = matcher("SELECT COUNT(*), MIN(b[v]) FROM S WHERE A ; B AS b PARTITION BY [k] GROUP BY ()")
    assert rows(made.push([])) == [(1, 0, None)]
    assert rows(made.push([event("A", 1), event("B", 2, v=5)])) == [(-1, 0, None), (1, 1, 5)]
    assert rows(made.push([event("B", 0)])) == []
    made = matcher("SELECT b[v] FROM S WHERE A ; B AS b ORDER BY SUM(b[v]) DESC LIMIT 1", output="positions")
    assert rows(made.push([event("A", 1), event("B", 4, v=5)])) == [(1, 0, 1, [1])]
    assert rows(made.push([event("B", 3, v=7)])) == [(-1, 0, 1, [1]), (1, 0, 2, [2])]


def test_how_far_answers_go_ahead() -> None:
    made = matcher(speculation=3)
    assert made.push([event("A", 1), event("B", 2)]).num_rows == 0  # no punctuation yet
    assert rows(made.advance(0)) == [(1, 0, 10, 1, 1)]
    made.push([event("B", 3), event("B", 5)])
    assert rows(made.advance(2)) == [(-1, 0, 10, 1, 1), (1, 0, 10, 2, 2)]
    assert rows(made.finish()) == [(-1, 0, 10, 2, 2), (1, 0, 10, 3, 3)]


def test_what_only_time_decides() -> None:
    """A match that nothing may follow holds as long as nothing has come; where the end does not complete it, when time has passed."""
    query = "SELECT COUNT(*) FROM S WHERE A ; NOT B WITHIN 5 [t] EVERY EVENT"
    made = matcher(query)
    assert rows(made.push([event("A", 1)])) == [(1, 0, 0, 1)]
    assert rows(made.push([event("B", 6)])) == [(-1, 0, 0, 1)]
    made = matcher(query, at_end="drop")
    assert made.push([event("A", 1)]).num_rows == 0
    assert rows(made.push([event("C", 7)])) == [(1, 0, 0, 1)]
    assert rows(made.push([event("B", 6)])) == [(-1, 0, 0, 1)]
    windows = matcher(at_end="drop")
    assert windows.push([event("A", 1), event("B", 2)]).num_rows == 0
    assert rows(windows.push([event("C", 10)])) == [(1, 0, 10, 1, 1)]


def test_a_sum_beyond_64_bits_is_an_error_until_an_event_says_otherwise() -> None:
    made = matcher("SELECT SUM(b[v]) AS s FROM S WHERE A ; NOT C ; B AS b")
    made.push([event("A", 1), event("B", 4, v=1 << 62)])
    for _ in range(2):
        with pytest.raises(DataError, match=r"SUM\(b\[v\]\) of all matches leaves 64 bits at row 2"):
            made.push([event("B", 5, v=1 << 62)] if made.position == 2 else [])
    assert rows(made.push([event("C", 2)])) == [(-1, 1 << 62), (1, None)]


def test_a_row_that_cannot_be_computed_is_left_out_and_told_when_it_is_certain() -> None:
    made = matcher("SELECT COUNT(*) FROM S WHERE A ; B AS b FILTER b[v * 4 > 0]")
    assert rows(made.push([event("A", 1), event("B", 4, v=1 << 62), event("B", 5)])) == [(1, 1)]
    with pytest.raises(DataError, match="row 1"):
        made.advance(6)
    assert rows(made.push([event("B", 7)])) == [(-1, 1), (1, 2)]
    assert made.finish().num_rows == 0


def test_wider_types_come_later() -> None:
    made = stretto.Matcher("SELECT MAX(b[v]) AS s FROM S WHERE A ; B AS b", time="t", speculation=math.inf)
    narrow = pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.int8())])
    assert rows(made.push(pa.Table.from_pylist([event("A", 1), event("B", 4, v=5)], narrow))) == [(1, 5)]
    found = made.push([{"type": "B", "t": 5, "v": 1 << 40}])
    assert found.schema.field("s").type == pa.int64()
    assert rows(found) == [(-1, 5), (1, 1 << 40)]


def test_late_events_and_those_of_a_failed_call() -> None:
    made = matcher(disorder=2, late="side")
    made.push([event("A", 1), event("B", 9)])
    assert made.push([event("B", 3)]).num_rows == 0
    assert made.late == 1
    assert made.late_events().column("t").to_pylist() == [3]
    strict = matcher(disorder=2)
    strict.push([event("A", 1), event("B", 9)])
    with pytest.raises(DataError, match="row 3 is late"):
        strict.push([event("A", 8), event("B", 3)])
    assert strict.push([]).num_rows == 0  # nothing of it was taken
    strict.finish()
    with pytest.raises(OptionError, match="finished"):
        strict.advance(20)


def test_snapshots_go_on_and_know_whose_they_are() -> None:
    made = matcher(disorder=4)
    made.push([event("A", 1), event("B", 4)])
    saved = made.snapshot()
    for _ in range(2):
        again = matcher(disorder=4).restore(saved)
        assert rows(again.push([event("B", 3)])) == [(-1, 0, 10, 1, 1), (1, 0, 10, 2, 2)]
    with pytest.raises(SnapshotError, match="speculation="):
        matcher(disorder=4, speculation=0).restore(saved)
    with pytest.raises(SnapshotError, match="counts or chooses"):
        matcher(disorder=4).restore(matcher(disorder=4, speculation=0).snapshot())
    with pytest.raises(SnapshotError, match="another query"):
        matcher(WINDOWS + "0", disorder=4).restore(saved)
    fresh = matcher().restore(matcher().snapshot())
    assert rows(fresh.push([event("A", 1), event("B", 2)])) == [(1, 0, 10, 1, 1)]


def test_what_it_is() -> None:
    made = matcher()
    assert made.idle
    assert made.ends is None
    assert made.explain().splitlines()[-1].startswith("ahead      rows say what the events so far come to")
    made.push([event("A", 1), event("B", 2)])
    assert made.advance(5).num_rows == 0
    assert made.expires == 10
    assert made.ends == 11
    assert made.held().num_rows == 1
    assert made.advance(10).num_rows == 0
    assert made.idle
    assert made.ends is None
    named = matcher("SELECT COUNT(*) AS sign FROM S WHERE A ; B").push([event("A", 1), event("B", 2)])
    assert named.to_pylist() == [{"sign": 1, "sign_": 1}]


def test_what_is_refused() -> None:
    for options, words in (
        ({"sign": "v"}, "have no retractions"),
        ({"time": None}, "name the column that orders the stream"),
        ({"timeouts": True}, "this query counts complete ones"),
        ({"output": "summary"}, "leave it out"),
    ):
        with pytest.raises(OptionError, match=words):
            matcher(**options)
    with pytest.raises(OptionError, match="takes back what it gives"):
        matcher().prime([event("A", 1)])
