"""``timeouts=``: what rows show, when they come, what is refused, and what it holds."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.cli import main
from stretto.errors import LimitError, OptionError

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { } WITHIN 5"
CEQL = "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 5 [t]"
NOON = dt.datetime(2024, 5, 1, 12)
LATER = NOON + dt.timedelta(hours=2)


def events(text: str, **columns: Any) -> pa.Table:
    """``"A@0 B@1"``: events with their times."""
    pairs = [one.split("@") for one in text.split()]
    return pa.table({"type": [kind for kind, _ in pairs], "t": [int(at) for _, at in pairs], **columns})


def timed_out(found: pa.Table) -> list[Any]:
    return [(row["start"], row["reached"], row["expired"]) for row in found.to_pylist() if row["reached"]]


@pytest.mark.parametrize(
    ("times", "window", "expired"),
    [
        (pa.array([1, 2, 9], pa.int8()), "5", 6),
        (pa.array([1, 2, 9], pa.uint32()), "5", 6),
        (pa.array([0.5, 1, 9]), "2.5", 3.0),
        (pa.array([Decimal("0.25"), Decimal("0.50"), Decimal("9.00")]), "2", Decimal("2.25")),
        (pa.array([NOON, NOON, LATER], pa.timestamp("ms", "UTC")), "1 hour", dt.datetime(2024, 5, 1, 13, tzinfo=dt.UTC)),
        (pa.array([NOON.date(), NOON.date(), dt.date(2024, 6, 1)]), "36 hours", NOON + dt.timedelta(days=1)),
    ],
    ids=lambda one: str(getattr(one, "type", "")),
)  # fmt: skip
def test_the_last_time_of_a_window_has_the_type_of_times(times: pa.Array, window: str, expired: Any) -> None:
    table = pa.table({"type": ["A", "B", "Z"], "t": times})
    query = f"PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match {{ }} WITHIN {window}"
    found = stretto.match(query, table, time="t", timeouts=True)
    assert timed_out(found) == [(0, "b", expired)]
    bound = stretto.compile(query, table.schema, time="t")
    assert found.schema == bound.output_schema(timeouts=True)
    assert "reached" not in bound.output_schema().names


def test_another_attribute_than_time_closes_windows() -> None:
    table = events("A@0 B@1 Z@2", way=[0, 10, 70])
    query = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { } WITHIN 50 [way]"
    assert timed_out(stretto.match(query, table, time="t", timeouts=True)) == [(0, "b", 50)]
    matcher = stretto.Matcher(query, time="t", timeouts=True)
    matcher.push(table.slice(0, 2))
    assert matcher.advance(1_000).num_rows == 0  # of the way it says nothing


def test_rows_have_the_events_so_far_and_no_values_of_return() -> None:
    table = events("A@0 B@1 A@2 B@3 C@4 A@5 Z@99", v=[1, 2, 3, 4, 5, 6, 7])
    found = stretto.match(QUERY, table, time="t", timeouts=True)
    assert [[event["v"] for event in found.column(name)[1].as_py()] for name in "abc"] == [[1], [2], [5]]
    assert [[event["v"] for event in found.column(name)[2].as_py()] for name in "abc"] == [[6], [], []]
    found = stretto.match(f"{QUERY} RETURN c.v - a.v AS up, 'x' AS reached", table, time="t", timeouts=True)
    assert found.select(["up", "reached", "reached_", "expired"]).to_pylist() == [
        {"up": 2, "reached": "x", "reached_": None, "expired": None},
        {"up": 4, "reached": "x", "reached_": None, "expired": None},
        {"up": None, "reached": None, "reached_": "a", "expired": 10},
    ]


def test_a_row_comes_before_the_match_of_the_event_that_closes_the_window() -> None:
    table = events("A@0 A@3 B@4 C@6")
    found = stretto.match(QUERY, table, time="t", timeouts=True, output="positions")
    assert [(row["start"], row["reached"]) for row in found.to_pylist()] == [(0, "b"), (1, None)]


def test_events_that_are_sorted() -> None:
    matcher = stretto.Matcher(QUERY, time="t", timeouts=True, disorder=3, late="side", output="positions")
    assert matcher.push(events("B@2 A@1 A@4")).num_rows == 0
    assert timed_out(matcher.push(events("Z@9"))) == []  # the punctuation is 6
    assert timed_out(matcher.push(events("B@7 Z@10"))) == [(1, "b", 6)]
    again = stretto.Matcher(QUERY, time="t", timeouts=True, disorder=3, late="side", output="positions")
    again.restore(matcher.snapshot())
    for one in (matcher, again):
        assert timed_out(one.advance(10)) == [(2, "b", 9)]
        assert one.finish().num_rows == 0


def test_late_events_that_are_dropped_close_nothing() -> None:
    matcher = stretto.Matcher(QUERY, time="t", timeouts=True, late="drop", output="positions")
    assert timed_out(matcher.push(events("A@10 A@12 B@3 Z@16"))) == [(0, "a", 15)]
    assert matcher.late == 1


def test_files_and_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(events("A@0 B@1 A@50 Z@99"), path, row_group_size=1)  # the last row can be in no match
    found = stretto.match(QUERY, str(path), time="t", timeouts=True)
    assert timed_out(found) == [(0, "b", 5), (2, "a", 55)]
    told = ["match", QUERY, str(path), "--time", "t", "--timeouts"]
    for more, shown in (
        (["--output", "positions"], "2 rows of matches and timeouts"),
        (["--json"], '"reached": "b"'),
        (["--json", "--disorder", "0"], '"reached": "b"'),
    ):
        with pytest.raises(SystemExit) as ended:
            main([*told, *more])
        assert not ended.value.code
        assert shown in capsys.readouterr().out


def test_types_that_a_later_batch_widens() -> None:
    query = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { b.v > a.v } WITHIN 5"
    matcher = stretto.Matcher(query, time="t", timeouts=True)
    matcher.push(events("A@0", v=[None]))
    matcher.push(events("A@1 B@2", v=[1, 2]))
    assert timed_out(matcher.push(events("Z@9", v=[1]))) == [(0, "a", 5), (1, "b", 6)]


@pytest.mark.parametrize(
    ("query", "options", "why"),
    [
        ("SELECT * FROM S WHERE A ; B", {}, "needs a window that closes: say WITHIN"),
        (f"{CEQL} LIMIT 1", {}, "LIMIT leaves matches out"),
        (f"{CEQL} CONSUME BY ANY", {}, "CONSUME BY leaves matches out"),
        (f"{CEQL} CONSUME BY PARTITION", {}, "CONSUME BY leaves matches out"),
        (f"{CEQL} KEEP LONGEST", {}, "KEEP and AFTER MATCH leaves matches out"),
        (CEQL, {"output": "summary"}, "counts matches, and timeouts= has rows of partial ones"),
        ("PATTERN SEQ(A a, B b)", {}, "needs a window that closes: say WITHIN"),
        (f"{QUERY} LIMIT 1", {}, "LIMIT leaves matches out"),
        (f"{QUERY} OUTPUT non_overlap", {}, "OUTPUT non_overlap leaves matches out"),
        (f"{QUERY} KEEP LONGEST", {}, "KEEP and AFTER MATCH leaves matches out"),
        (QUERY, {"output": "summary"}, "counts matches, and timeouts= has rows of partial ones"),
        (QUERY, {"speculation": math.inf}, "leave out speculation="),
        (QUERY, {"sets": True}, "sets have none"),
    ],
)
def test_what_is_refused(query: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        stretto.Matcher(query, {"type": "string", "t": "int64"}, time="t", timeouts=True, **options)


def test_what_calls_refuse() -> None:
    matcher = stretto.Matcher(QUERY, time="t", timeouts=True)
    with pytest.raises(OptionError, match="prime\\(\\) does not fit timeouts="):
        matcher.prime(events("A@0"))
    with pytest.raises(OptionError, match="is for queries in CEQL or SASE\\+"):
        stretto.match(stretto.AFA({"type": str}), events("A@0"), time="t", timeouts=True)
    with pytest.raises(OptionError, match="sets have none"):
        list(stretto.match_sets(QUERY, events("A@0"), time="t", timeouts=True))
    plain = stretto.Matcher(QUERY, time="t")
    plain.push(events("A@0"))
    with pytest.raises(stretto.SnapshotError):
        matcher.restore(plain.snapshot())


def test_explain_says_what_follows_partial_matches() -> None:
    schema = {"type": "string", "t": "int64", "v": "int64"}
    matcher = stretto.Matcher(QUERY, schema, time="t", timeouts=True)
    assert "of those of one first event that go on alike the furthest" in matcher.explain().splitlines()[-1]
    negated = "PATTERN SEQ(A a, ~(N n), B b) WHERE skip_till_next_match { } WITHIN 5"
    matcher = stretto.Matcher(negated, schema, time="t", timeouts=True)
    assert "each by itself, as a negation between components" in matcher.explain().splitlines()[-1]


@pytest.mark.parametrize("query", [QUERY, CEQL], ids=["sase", "ceql"])
def test_pieces_of_many_rows(query: str) -> None:
    count = 5_000
    table = pa.table({"type": ["A"] * count + ["Z"], "t": [*range(count), 10 * count]})
    pieces = list(stretto.iter_matches(query, table, time="t", timeouts=True, output="positions"))
    assert sum(piece.num_rows for piece in pieces) == count
    with pytest.raises(LimitError):
        stretto.match(query, table, time="t", timeouts=True, output="positions", budget=100)


def test_one_first_event_holds_one_partial_match_for_each_state() -> None:
    query = "PATTERN SEQ(A a, B b, C c, D d) WHERE skip_till_any_match { } WITHIN 1000"
    matcher = stretto.Matcher(query, time="t", timeouts=True, output="positions")
    table = pa.table({"type": ["A", *["B", "C"] * 150], "t": range(301)})
    matcher.push(table)
    partial: Any = matcher._executor.run.partial  # type: ignore[attr-defined]
    assert partial.runs <= 4
    assert timed_out(matcher.advance(2_000)) == [(0, "c", 1000)]


def test_what_is_held_does_not_grow_with_the_stream() -> None:
    query = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { [k] and b.s > a.s } WITHIN 20"
    matcher = stretto.Matcher(query, time="t", timeouts=True, output="positions")
    held = []
    for step in range(40):
        first = 200 * step
        rows = range(first, first + 200)
        table = pa.table(
            {
                "type": ["ABD"[at % 3] for at in rows],
                "t": rows,
                "k": [at // 6 for at in rows],
                "s": [str(at) for at in rows],
            }
        )
        matcher.push(table)
        matcher.snapshot()
        held.append(matcher.stats["bytes"])
    assert max(held[20:]) <= 1.5 * max(held[:20])
    partial: Any = matcher._executor.run.partial  # type: ignore[attr-defined]
    assert partial.state.count < 50
    assert partial.partitions < 50


# ---- CEQL


def test_ceql_says_what_sase_says_of_one_pattern() -> None:
    table = events("A@0 B@1 A@2 B@3 C@4 A@5 Z@99", v=[1, 2, 3, 4, 5, 6, 7])
    query = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match { } WITHIN 5"
    found, wanted = (stretto.match(one, table, time="t", timeouts=True) for one in (CEQL, query))
    assert found.schema == wanted.schema
    for told in (True, False):
        of_both = [[row for row in one.to_pylist() if (row["reached"] is None) == told] for one in (found, wanted)]
        assert sorted(map(repr, of_both[0])) == sorted(map(repr, of_both[1]))


def test_ceql_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(events("A@0 B@1 A@50 Z@99"), path, row_group_size=1)
    assert timed_out(stretto.match(CEQL, str(path), time="t", timeouts=True)) == [(0, "b", 5), (2, "a", 55)]
    with pytest.raises(SystemExit) as ended:
        main(["match", CEQL, str(path), "--time", "t", "--timeouts", "--json"])
    assert not ended.value.code
    assert '"reached": "b"' in capsys.readouterr().out


def test_ceql_that_is_sorted() -> None:
    matcher = stretto.Matcher(CEQL, time="t", timeouts=True, disorder=3, late="side", output="positions")
    assert matcher.push(events("B@2 A@1 A@4")).num_rows == 0
    assert timed_out(matcher.push(events("B@7 Z@10"))) == [(1, "b", 6)]
    again = stretto.Matcher(CEQL, time="t", timeouts=True, disorder=3, late="side", output="positions")
    again.restore(matcher.snapshot())
    for one in (matcher, again):
        assert timed_out(one.advance(10)) == [(2, "b", 9)]
        assert one.finish().num_rows == 0


@pytest.mark.parametrize("window", ["2 EVENTS", "5 [t]"])
@pytest.mark.parametrize("joint", [";", ":"])
def test_late_events_of_ceql_that_are_dropped_close_nothing(joint: str, window: str) -> None:
    query = f"SELECT * FROM S WHERE A {joint} B ; C WITHIN {window}"
    matcher = stretto.Matcher(query, time="t", timeouts=True, late="drop", output="positions")
    rows = matcher.push(events("A@10 B@11 Z@3 Z@12"))
    assert matcher.late == 1
    more = matcher.push(events("Z@16 Z@17"))
    told = [[(row["start"], row["reached"]) for row in one.to_pylist()] for one in (rows, more)]
    assert told == ([[(0, "B")], []] if "EVENTS" in window else [[], [(0, "B")]])


def test_streams_whose_keys_have_different_names() -> None:
    orders = pa.table({"type": ["NEW", "NEW"], "at": [1, 2], "id": [7, 8]})
    payments = pa.table({"type": ["PAID", "PING"], "at": [5, 90], "order_id": [7, 0]})
    query = """SELECT * FROM orders, payments WHERE orders>NEW AS new ; payments>PAID AS paid ; orders>SENT
    PARTITION BY orders[id] = payments[order_id] WITHIN 10 [at]"""
    found = stretto.match(query, {"orders": orders, "payments": payments}, time="at", timeouts=True)
    told = [(row["id"], row["reached"], row["expired"]) for row in found.to_pylist()]
    assert told == [(7, "paid", 11), (8, "new", 12)]


def test_valuations_beside_timeouts() -> None:
    query = "SELECT * FROM S WHERE A+ AS x ; A+ AS y ; B WITHIN 9 [t]"
    table = events("A@0 A@1 A@2 B@3 A@20 A@21 Z@99")
    found = stretto.match(query, table, time="t", timeouts=True, valuations=True, output="positions")
    assert timed_out(found) == [(2, "x", 11), (4, "y", 29), (5, "x", 30)]
    assert found.num_rows == 8


def test_explain_says_how_timeouts_of_ceql_are_found() -> None:
    matcher = stretto.Matcher(CEQL, {"type": "string", "t": "int64"}, time="t", timeouts=True)
    told = "found among the events of its window when that closes without a match"
    assert matcher.explain().splitlines()[-1] == f"timeouts   the furthest partial match of each first event, {told}"


def test_what_is_held_of_ceql_does_not_grow_with_the_stream() -> None:
    query = "SELECT * FROM S WHERE A ; B ; C PARTITION BY [k] WITHIN 20 [t]"
    matcher = stretto.Matcher(query, time="t", timeouts=True, output="positions")
    held = []
    for step in range(40):
        rows = range(200 * step, 200 * step + 200)
        table = pa.table({"type": ["ABD"[at % 3] for at in rows], "t": rows, "k": [at // 6 for at in rows]})
        matcher.push(table)
        matcher.snapshot()
        held.append(matcher.stats["bytes"])
    assert max(held[20:]) <= 1.5 * max(held[:20])
    partial: Any = matcher._executor.run.partial  # type: ignore[attr-defined]
    assert partial.nodes < 50
    assert partial.partitions < 50


def test_events_of_keys_without_a_first_event_are_not_held() -> None:
    query = "SELECT * FROM S WHERE A ; B ; C PARTITION BY [k] WITHIN 20 [t]"
    matcher = stretto.Matcher(query, time="t", timeouts=True, output="positions")
    matcher.push(pa.table({"type": ["B", "A", "B", "B"], "t": [0, 1, 2, 3], "k": [1, 2, 3, 2]}))
    partial: Any = matcher._executor.run.partial  # type: ignore[attr-defined]
    assert partial.live().tolist() == [1, 3]


def test_ways_to_compare_are_bounded() -> None:
    inside = "((A ; B+) WITHIN 900 [t] ; C) WITHIN 950 [t]"
    count = 60
    table = pa.table({"type": [*"AB" * count, "Z"], "t": [*range(2 * count), 9_999]})
    query = f"SELECT * FROM S WHERE (A ; {inside} ; D) WITHIN 1000 [t]"
    matcher = stretto.Matcher(query, time="t", timeouts=True, output="positions", capacity=1, budget="20 kB")
    with pytest.raises(
        LimitError,
        match=r"the event in row 0 \(t = 0\) begins more than .* partial matches, of which the furthest is sought",
    ):
        matcher.push(table)
    found = stretto.match(query, table, time="t", timeouts=True, output="positions")
    assert timed_out(found.slice(0, 1)) == [(0, "B", 1000)]


def test_of_runs_that_go_on_alike_from_different_components_the_one_that_is_ahead_then() -> None:
    query = "PATTERN SEQ((A? a, A b){1,2}, C+ c[]) WHERE skip_till_any_match { } WITHIN 5"
    found = stretto.match(query, events("A@0 A@1 A@2 Z@9"), time="t", timeouts=True)
    [row] = found.slice(0, 1).to_pylist()
    # At the first event that differs the later component: b, a, b and not a, b, b.
    assert [[event["t"] for event in row[name]] for name in "ab"] == [[1], [0, 2]]


def test_events_of_what_times_out_together_are_bounded() -> None:
    count = 200
    table = pa.table({"type": ["A"] * count + ["Z"], "t": [*range(count), 9_999]})
    query = "SELECT * FROM S WHERE A+ ; B WITHIN 1000 [t]"
    matcher = stretto.Matcher(query, time="t", timeouts=True, output="positions", capacity=1, budget="64 kB")
    with pytest.raises(
        LimitError, match=r"times out with others, whose partial matches have more than .* events: they go over"
    ):
        matcher.push(table)
    found = stretto.match(query, table, time="t", timeouts=True, output="positions")
    assert found.column("positions").to_pylist() == [list(range(first, count)) for first in range(count)]
