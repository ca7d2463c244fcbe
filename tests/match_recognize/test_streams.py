"""Clauses over streams: when matches come, what is late, what is held, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.engines.rows.runner import RowRun
from stretto.errors import DataError, LimitError, OptionError, QueryError, SnapshotError
from stretto.frame import Section

START = dt.datetime(2026, 1, 1)


def matcher(clause: str, **options: Any) -> stretto.Matcher:
    return stretto.Matcher(f"MATCH_RECOGNIZE ({clause})", **options)


def by_row(clause: str, values: list[Any]) -> list[list[dict[str, Any]]]:
    """What each row gives, and the end."""
    running = matcher(clause, schema={"t": int, "x": int}, capacity=1)
    given = [running.push([{"t": t, "x": x}]).to_pylist() for t, x in enumerate(values)]
    return [*given, running.finish().to_pylist()]


MEASURES = "ORDER BY t MEASURES FIRST(t) AS a, LAST(t) AS b"


@pytest.mark.parametrize(
    ("pattern", "when"),
    [
        ("(A B) DEFINE A AS x = 1, B AS x = 2", [0, 1, 0, 0, 0, 0]),  # its length is fixed
        ("(A B+?) DEFINE A AS x = 1, B AS x = 2", [0, 1, 0, 0, 0, 0]),  # it ends as soon as it can
        ("(A B+) DEFINE A AS x = 1, B AS x = 2", [0, 0, 0, 1, 0, 0]),  # it takes all it can
        ("(A B{1,2}) DEFINE A AS x = 1, B AS x = 2", [0, 0, 1, 0, 0, 0]),
        ("(A B+ $) DEFINE A AS x = 1 OR x = 3, B AS x = 2", [0, 0, 0, 0, 0, 1]),  # whether it ends the end says
        ("(A) DEFINE A AS NEXT(x) = 2", [0, 1, 1, 0, 1, 0]),  # a condition reads the row behind
        ("(A+) DEFINE A AS x = 2 AND NEXT(x) = 2", [0, 0, 0, 1, 0, 0]),
    ],
)
def test_a_match_comes_when_no_row_to_come_can_change_it(pattern: str, when: list[int]) -> None:
    found = by_row(f"{MEASURES} PATTERN {pattern}", [1, 2, 2, 3, 2])
    assert [len(rows) for rows in found] == when


def test_a_measure_that_reads_ahead_waits_for_its_row() -> None:
    clause = "ORDER BY t MEASURES NEXT(x, 2) AS n PATTERN (A) DEFINE A AS x > 1"
    assert by_row(clause, [1, 2, 5, 7]) == [[], [], [], [{"n": 7}], [{"n": None}, {"n": None}]]


def test_rows_in_no_match_come_when_that_is_certain() -> None:
    clause = (
        "ORDER BY t MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH WITH UNMATCHED ROWS "
        "PATTERN (A B C) DEFINE A AS x = 1, B AS x = 2, C AS x = 3"
    )
    found = by_row(clause, [0, 1, 2, 1, 2, 3])
    shown = [[(row["t"], row["c"]) for row in rows] for rows in found]
    assert shown == [[(0, None)], [], [], [(1, None), (2, None)], [], [(3, "A"), (4, "B"), (5, "C")], []]


def test_an_empty_match_needs_its_row() -> None:
    assert [len(rows) for rows in by_row("ORDER BY t MEASURES MATCH_NUMBER() AS n PATTERN (A??)", [1, 1])] == [1, 1, 0]


def test_time_closes_a_window() -> None:
    clause = "PARTITION BY k ORDER BY ts MEASURES count(*) AS n PATTERN (A+) WITHIN INTERVAL '3' SECOND"
    running = matcher(clause)

    def row(key: str, second: int) -> dict[str, Any]:
        return {"k": key, "ts": START + dt.timedelta(seconds=second)}

    assert running.push([row("p", 0), row("p", 2), row("q", 2), row("q", 9)]).to_pylist() == [{"k": "q", "n": 1}]
    assert running.advance(START + dt.timedelta(seconds=2)).num_rows == 0
    assert running.advance(START + dt.timedelta(seconds=3)).to_pylist() == [{"k": "p", "n": 2}]
    with pytest.raises(DataError, match="row 4 is late"):
        running.push([row("p", 2)])
    assert running.push([row("p", 3)]).num_rows == 0
    assert running.finish().to_pylist() == [{"k": "p", "n": 1}, {"k": "q", "n": 1}]


def test_rows_out_of_order_are_sorted_by_the_whole_order() -> None:
    clause = (
        f"ORDER BY t, x DESC {MEASURES.removeprefix('ORDER BY t')}, array_agg(x) AS x PATTERN (A+) DEFINE A AS x > 0"
    )
    rows = [{"t": t, "x": x} for t, x in [(2, 1), (1, 1), (2, 3), (1, 2), (3, 0), (9, 0)]]
    running = matcher(clause, disorder=2)
    given = pa.concat_tables([running.push([row]) for row in rows])
    assert given.to_pylist() == [{"a": 1, "b": 2, "x": [2, 1, 3, 1]}]
    assert running.stats["waiting"] == 1


def test_what_is_late() -> None:
    clause = f"{MEASURES}, count(*) AS n PATTERN (A+ B) DEFINE A AS x = 1, B AS x = 2"
    rows = [{"t": t, "x": x} for t, x in [(5, 1), (3, 1), (6, 2)]]
    with pytest.raises(DataError, match=r"row 1 is late: t = 3.*disorder="):
        matcher(clause).push(rows)
    ahead = matcher(clause)
    ahead.push([rows[0]])
    ahead.advance(7)
    with pytest.raises(DataError, match=r"row 1 is late: t = 6, and advance\(\) has passed that time; .*late='drop'"):
        ahead.push([rows[2]])
    running = matcher(clause, late="drop")
    assert running.push(rows).to_pylist() == [{"a": 5, "b": 6, "n": 2}]
    assert (running.late, running.position) == (1, 3)
    aside = matcher(clause, disorder=1, late="side")
    aside.push(rows)
    assert aside.late_events().to_pylist() == [{"t": 3, "x": 1}]
    assert aside.finish().to_pylist() == [{"a": 5, "b": 6, "n": 2}]


def test_a_late_row_leaves_the_matcher_as_it_was() -> None:
    running = matcher(f"{MEASURES} PATTERN (A B)")
    running.push([{"t": 4}])
    for _ in range(2):
        with pytest.raises(DataError, match="row 1 is late"):
            running.push([{"t": 5}, {"t": 3}][::1][1:])
    assert running.push([{"t": 5}]).to_pylist() == [{"a": 4, "b": 5}]


def test_strings_and_decimals_of_several_rows() -> None:
    clause = (
        "PARTITION BY k ORDER BY t MEASURES LAST(t) AS b PATTERN (A B* C) "
        "DEFINE B AS s <> A.s, C AS s = A.s AND d > LAST(A.d)"
    )
    rows = [{"k": at % 3, "t": at, "s": f"name {at * at % 17}", "d": Decimal(at * 7 % 11) / 4} for at in range(300)]
    wanted = sorted(stretto.sql(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", t=rows).to_pylist(), key=str)
    running = matcher(clause, capacity=1)
    given = [running.push(rows[at : at + 7]) for at in range(0, 300, 7)]
    found = pa.concat_tables([*given, running.finish()])
    assert wanted
    assert sorted(found.to_pylist(), key=str) == wanted


def test_which_string_is_greater_is_refused_with_its_place() -> None:
    with pytest.raises(QueryError, match=r"line 1, column 74(.|\n)*numbers and times only"):
        matcher("ORDER BY t MEASURES t AS m PATTERN (A B+ C) DEFINE B AS s > A.s", schema={"t": int, "s": str})


def test_what_is_behind_is_not_held() -> None:
    running = matcher(
        f"PARTITION BY k {MEASURES} PATTERN (A B) DEFINE B AS x > PREV(x)", schema={"k": int, "t": int, "x": int}
    )
    most = 0
    for first in range(0, 40_000, 2_000):
        rows = pa.table({"k": [at % 10 for at in range(2_000)], "t": range(first, first + 2_000), "x": [0] * 2_000})
        assert running.push(rows).num_rows == 0
        most = max(most, running.stats["held"])
    assert most < 10_000
    assert len(running.snapshot()) < 4_000


def test_partitions_that_time_has_passed_are_forgotten() -> None:
    running = matcher(f"PARTITION BY k {MEASURES} PATTERN (A B) DEFINE A AS x = 1", capacity=1)
    for t in range(50):
        running.push([{"k": f"k{t}", "t": t, "x": 0}])
        running.advance(t + 1)
    running.snapshot()
    assert running.stats["partitions"] == 0
    assert running.idle
    assert running.push([{"k": "k1", "t": 50, "x": 1}, {"k": "k1", "t": 51, "x": 0}]).to_pylist() == [
        {"k": "k1", "a": 50, "b": 51}
    ]


def test_numbers_of_matches_are_kept() -> None:
    running = matcher("PARTITION BY k ORDER BY t MEASURES MATCH_NUMBER() AS n PATTERN (A)", capacity=1)
    assert [running.push([{"k": 1, "t": t}]).to_pylist()[0]["n"] for t in range(3)] == [1, 2, 3]
    running.advance(3)
    again = matcher("PARTITION BY k ORDER BY t MEASURES MATCH_NUMBER() AS n PATTERN (A)").restore(running.snapshot())
    assert again.push([{"k": 1, "t": 3}]).to_pylist() == [{"k": 1, "n": 4}]


def test_a_snapshot_of_another_automaton_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    running = matcher(f"{MEASURES} PATTERN (A B+)", schema={"t": int})
    running.push([{"t": 0}])
    taken = running.snapshot()
    monkeypatch.setattr(RowRun, "digest", "of another version")
    with pytest.raises(SnapshotError, match="automaton and conditions differ"):
        matcher(f"{MEASURES} PATTERN (A B+)").restore(taken)


def test_what_failed_is_checked_where_it_is_restored() -> None:
    """Each word of what failed as another number: the snapshot is refused, or what goes on from it works."""
    define = "B AS s <> A.s, C AS s = LAST(B.s) AND s = A.s, D AS x < 10 + A.x, E AS x > 9 * A.x AND s = A.s"
    clause = f"ORDER BY t MEASURES FIRST(t) AS a PATTERN (A (B{{3}} C | D* E)) DEFINE {define}"
    rows = pa.table({"t": range(12), "x": [1.0] * 12, "s": list("abcdefabcdef")})
    running = matcher(clause, schema=rows.schema, capacity=2)
    running.push(rows.slice(0, 8))
    snapshot = running.snapshot()
    failed = Section.of_bytes(snapshot, snapshot[:8]).arrays["run.failed"]
    refused = 0
    for place in range(failed.size):
        for number in (1 << 40, -(1 << 40)):
            section = Section.of_bytes(snapshot, snapshot[:8])
            section.arrays["run.failed"] = np.where(np.arange(failed.size) == place, number, failed)
            restored = matcher(clause, schema=rows.schema, capacity=2)
            try:
                restored.restore(section.to_bytes(snapshot[:8]))
            except SnapshotError:
                refused += 1
                continue
            restored.push(rows.slice(8))
            restored.snapshot()
            restored.finish()
    assert refused >= 6  # a row, a position and the match's first row


@pytest.mark.parametrize("reached", [1e308, -1e308, 2.0**63, float("inf"), 7.5])
def test_a_time_of_a_double_may_be_any_number(reached: float) -> None:
    """A time beyond 64 bits is one that no row to come is before, also behind a snapshot; NaN is no time."""
    clause, schema = "ORDER BY x MEASURES FIRST(x) AS a PATTERN (A B) DEFINE B AS x > A.x", {"x": float}
    running = matcher(clause, schema=schema)
    assert running.push([{"x": -1.5e308}]).num_rows == 0
    assert running.advance(reached).num_rows == 0
    restored = matcher(clause, schema=schema).restore(running.snapshot())
    for late in (running, restored):
        with pytest.raises(DataError, match=r"advance\(\) has passed that time"):
            late.push([{"x": -1.2e308}])
    assert restored.push([{"x": max(reached, 1e308)}]).to_pylist() == [{"a": -1.5e308}]
    with pytest.raises(OptionError, match="NaN is before and behind no time"):
        restored.advance(float("nan"))


def test_a_disorder_of_large_doubles_goes_through_a_snapshot() -> None:
    clause, schema = "ORDER BY x MEASURES FIRST(x) AS a, LAST(x) AS b PATTERN (A B) DEFINE B AS x > A.x", {"x": float}
    running = matcher(clause, schema=schema, disorder=1)
    assert running.push([{"x": 3.0}, {"x": 1e308}]).num_rows == 0
    restored = matcher(clause, schema=schema, disorder=1).restore(running.snapshot())
    assert restored.finish().to_pylist() == running.finish().to_pylist()


def test_snapshots_belong_to_a_clause_and_options() -> None:
    running = matcher(f"{MEASURES} PATTERN (A B+)", schema={"t": int})
    running.push([{"t": 0}, {"t": 1}])
    taken = running.snapshot()
    assert matcher(f"{MEASURES} PATTERN (A B+)").restore(taken).finish().to_pylist() == [{"a": 0, "b": 1}]
    with pytest.raises(SnapshotError, match="another query"):
        matcher(f"{MEASURES} PATTERN (A B*)").restore(taken)
    with pytest.raises(SnapshotError, match="late= was 'error', is 'drop'"):
        matcher(f"{MEASURES} PATTERN (A B+)", late="drop").restore(taken)
    with pytest.raises(SnapshotError, match="other types"):
        matcher(f"{MEASURES} PATTERN (A B+)", schema={"t": float}).restore(taken)
    with pytest.raises(SnapshotError, match="checksum"):
        matcher(f"{MEASURES} PATTERN (A B+)").restore(taken[:-9] + b"123456789")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speculation": 1}, "speculation=1 is for queries in CEQL or SASE"),
        ({"time": "t"}, "time='t' is for"),
        ({"output": "positions"}, "output='positions' is for"),
        ({"late": "side"}, "late='side': expected 'error' or 'drop'"),
        ({"disorder": -1}, "not negative"),
    ],
)
def test_options_that_are_not_of_clauses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        matcher(f"{MEASURES} PATTERN (A)", **options)


def test_disorder_needs_an_order_that_is_a_time() -> None:
    with pytest.raises(OptionError, match="let ORDER BY begin with it"):
        matcher("ORDER BY t DESC PATTERN (A)", disorder=1)
    with pytest.raises(OptionError, match="and 's' is string"):
        matcher("ORDER BY s MEASURES s AS m PATTERN (A)", disorder=1, schema={"s": str})
    with pytest.raises(OptionError, match="and 's' is string"):
        matcher("ORDER BY s MEASURES s AS m PATTERN (A)", schema={"s": str}).advance("b")


def test_statements() -> None:
    clause = f"MATCH_RECOGNIZE ({MEASURES} PATTERN (A B))"
    running = stretto.Matcher(f"SELECT * FROM ticks {clause}")
    assert running.push([{"t": 0}, {"t": 1}]).to_pylist() == [{"a": 0, "b": 1}]
    with pytest.raises(QueryError, match="runs over events"):
        stretto.Matcher(f"SELECT a FROM ticks {clause} WHERE a > 1")
    with pytest.raises(OptionError, match="MATCH_RECOGNIZE clause"):
        _ = running.query


def test_a_call_that_gives_too_much_says_so() -> None:
    running = matcher(f"{MEASURES} PATTERN (A)", budget=10)
    with pytest.raises(LimitError, match="more than 10 rows"):
        running.push([{"t": t} for t in range(20)])


def test_a_clause_whose_rows_have_no_columns_is_refused() -> None:
    with pytest.raises(QueryError, match="have no columns"):
        matcher("ORDER BY t PATTERN (A)", schema={"t": int})


def test_after_the_end() -> None:
    running = matcher(f"{MEASURES} PATTERN (A+)")
    running.push([{"t": 0}])
    assert running.finish().to_pylist() == [{"a": 0, "b": 0}]
    with pytest.raises(OptionError, match="finished"):
        running.push([{"t": 1}])


@pytest.mark.parametrize(
    ("condition", "digest"),
    [
        ("sqrt(LAST(a.x)) > FIRST(a.x)", "6138f08582be15eb"),
        ("abs(FIRST(a.x)) < x", "a16f6453647242ac"),
        ("abs(FIRST(a.n)) < n", "8f390e7b23752495"),
        ("sign(FIRST(a.x)) = 1.0", "615e15d981a799a2"),
        ("sign(FIRST(a.n)) = 1", "b5588299274bdde0"),
        ("exp(FIRST(a.x)) > ln(x)", "71f8a810c1e627d4"),
        ("floor(FIRST(a.x)) <= ceil(x)", "4d13874ecfc584c7"),
        ("round(FIRST(a.x), 2) > x", "a45d9d8ae428bdf5"),
        ("power(FIRST(a.x), 2) > x", "1e9ef82852d74cd1"),
        ("stddev_samp(a.x) > 1.0", "9cb870e04c388c69"),
        ("greatest(FIRST(a.x), x) > least(FIRST(a.x), 1.5)", "c8c88fef5af34717"),
        ("greatest(FIRST(a.n), n) > least(FIRST(a.n), 2)", "78585eaf2cf2376e"),
        ("coalesce(FIRST(a.n), 1) = n or n / FIRST(a.n) > 2 and not (n % FIRST(a.n) = 1)", "37284181f984f9a6"),
        ("n > FIRST(a.x) * 2.0 - x / FIRST(a.x) % 3.0", "3b850c82b5438a80"),
        ("-FIRST(a.n) <> n and -FIRST(a.x) <> x", "289270ebc0e41874"),
        ("avg(a.x) >= 2 and count(*) < 5 and match_number() > 1", "e8da208d007503da"),
        ("FIRST(a.n) <= n and FIRST(a.x) <= x and FIRST(a.x) = x + 1", "2ab7712d3f3460bd"),
    ],
)
def test_states_of_every_step_fit_those_of_before(condition: str, digest: str) -> None:
    """What a state depends on is the program by the numbers that its steps had when states were first written."""
    clause = f"MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS k PATTERN (a b+) DEFINE a AS x > 1, b AS {condition})"
    matcher = stretto.Matcher(clause, {"t": "int64", "x": "double", "n": "int64", "s": "string"})
    assert matcher._executor.run.digest == digest  # type: ignore[attr-defined]
