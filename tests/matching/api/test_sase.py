"""SASE+ through the public surface: matches, results, streams, mistakes."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import stretto
from stretto.cli import main
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.programs import NfabProgram
from stretto.engines.shared.values import Op
from stretto.errors import DataError, EngineError, OptionError
from stretto.frame import Section
from stretto.query.passes.bind_sase import BoundSase
from tests.cases import sase
from tests.cases.sase import SaseCase, text_of
from tests.conftest import COMPILED, cases
from tests.reference.sase import evaluate_sase, returned

STRATEGIES = ("strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match")


def positions(query: str, events: Any, **options: Any) -> list[list[int]]:
    """The positions of all matches, by the event that completes them; those of one event in an order of their own."""
    found = stretto.match(query, events, output="positions", **options)
    lists: list[list[int]] = found.column("positions").to_pylist()
    return sorted(lists, key=lambda held: (held[-1], held))


def stream(text: str) -> list[dict[str, Any]]:
    """``Ax3`` is an event of type A with k = 'x' and t = 3."""
    return [{"type": word[0], "k": word[1], "t": int(word[2:])} for word in text.split()]


# ---- The paper's queries, as printed

QUERY_1 = """
PATTERN SEQ(Shelf a, ~(Register b), Exit c)
WHERE skip_till_next_match(a, b, c) {
  a.tag_id = b.tag_id
  and a.tag_id = c.tag_id
  /* equivalently, [tag_id] */ }
WITHIN 12 hours
"""
QUERY_2 = """
PATTERN SEQ(Alert a, Shipment+ b[])
WHERE skip_till_any_match(a, b[ ]) {
  a.type = 'contaminated'
  and b[1].from = a.site
  and b[i].from = b[i-1].to }
WITHIN 3 hours
"""
QUERY_3 = """
PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) {
  [symbol]
  and a[1].volume > 1000
  and a[i].price > avg(a[i-1].price)
  and b.volume < 80%*a[a.LEN].volume }
WITHIN 1 hour
"""
STOCKS = pa.table(
    {
        "type": ["Stock"] * 8,
        "symbol": ["GOOG"] * 8,
        "price": [100, 120, 120, 121, 120, 125, 120, 120],
        "volume": [1010, 990, 1005, 999, 999, 750, 950, 700],
        "t": range(8),
    }
)


@pytest.mark.parametrize(
    "query",
    [QUERY_1, "PATTERN SEQ(Shelf a, ~(Register b), Exit c) WHERE skip_till_next_match { [tag_id] } WITHIN 12 h"],
)
def test_query_1(query: str) -> None:
    rows = [
        ("Shelf", 1, 0), ("Shelf", 2, 10), ("Shelf", 3, 20), ("Register", 2, 100), ("Exit", 2, 200), ("Exit", 1, 300),
        ("Exit", 3, 20 + 12 * 3600 + 1),
    ]  # fmt: skip
    events = [dict(zip(("type", "tag_id", "t"), row, strict=True)) for row in rows]
    assert positions(query, events, time="t", time_unit="s") == [[0, 5]]
    events[-1]["t"] -= 1  # type: ignore[operator]
    assert positions(query, events, time="t", time_unit="s") == [[0, 5], [2, 6]]


def test_query_2() -> None:
    rows = [
        ("Shipment", 0, "X", "Y", None), ("Alert", 1, None, None, "X"), ("Shipment", 2, "Y", "Q", None),
        ("Shipment", 3, "X", "Y", None), ("Shipment", 4, "Y", "Z", None), ("Shipment", 5, "X", "W", None),
        ("Shipment", 6, "Y", "V", None), ("Shipment", 7, "Z", "X", None),
    ]  # fmt: skip
    events = [dict(zip(("kind", "t", "from", "to", "site"), row, strict=True)) for row in rows]
    for event in events:
        event["type"] = "contaminated" if event["kind"] == "Alert" else None
    found = positions(QUERY_2, events, type="kind", time="t", time_unit="s")
    assert sorted(found) == [[1, 3], [1, 3, 4], [1, 3, 4, 7], [1, 3, 6], [1, 5]]


def test_query_3() -> None:
    found = stretto.match(QUERY_3, STOCKS, time="t", time_unit="s")
    rows = found.to_pylist()
    assert sorted(row["positions"] for row in rows) == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 6, 7], [2, 3, 5]]
    assert [row["end"] for row in rows] == [5, 5, 7]
    assert found.column_names == ["start", "end", "positions", "start_time", "end_time", "symbol", "a", "b"]
    short = next(row for row in rows if row["start"] == 2)
    assert [event["t"] for event in short["a"]] == [2, 3]
    assert short["b"] == [STOCKS.slice(5, 1).to_pylist()[0]]
    # Another symbol in between changes nothing, but for the rows.
    other = STOCKS.set_column(1, "symbol", pa.array(["MSFT"] * 8))
    both = pa.concat_tables([part for i in range(8) for part in (other.slice(i, 1), STOCKS.slice(i, 1))])
    found = stretto.match(QUERY_3, both, time="t", time_unit="s", output="positions")
    assert found.num_rows == 6
    assert all(len({p % 2 for p in row}) == 1 for row in found.column("positions").to_pylist())


# ---- Strategies

CALLS = {
    "type": ["RING", "TALK", "RING", "RING", "TALK", "HOLD", "TALK", "TALK"],
    "line": ["z", "z", "x", "y", "x", "y", "y", "y"],
}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    list(
        zip(
            STRATEGIES,
            (
                [[0, 1]],
                [[0, 1], [2, 4]],
                [[0, 1], [2, 4], [3, 6]],
                [[0, 1], [2, 4], [3, 6], [3, 7]],
            ),
            strict=True,
        )
    ),
)
def test_strategies(strategy: str, expected: list[list[int]]) -> None:
    assert positions(f"PATTERN SEQ(RING r, TALK t) WHERE {strategy} {{ [line] }}", CALLS) == expected


@pytest.mark.parametrize(
    ("strategy", "expected"),
    list(
        zip(
            STRATEGIES,
            (
                [[0, 1]],
                [[0, 1], [0, 1, 3]],
                [[0, 1], [0, 1, 3], [0, 1, 3, 5]],
                [[0, 1], [0, 1, 3], [0, 1, 3, 5], [0, 1, 5], [0, 3], [0, 3, 5], [0, 5]],
            ),
            strict=True,
        )
    ),
)
def test_a_kleene_plus_at_the_end(strategy: str, expected: list[list[int]]) -> None:
    events = {"type": list("ABABCB"), "k": list("xxyxxx")}
    assert sorted(positions(f"PATTERN SEQ(A a, B+ b[]) WHERE {strategy} {{ [k] }}", events)) == expected


def test_without_where_and_seq() -> None:
    events = {"type": list("AACBB")}
    assert positions("PATTERN (A a, B b)", events) == [[0, 3], [1, 3]]
    assert positions("pattern seq(A a, B b) where SKIP_TILL_NEXT_MATCH { };", events) == [[0, 3], [1, 3]]


def test_alternatives_and_one_component() -> None:
    events = {"type": list("ADBC")}
    assert positions("PATTERN SEQ((A|B)+ a[], C c)", events) == [[0, 2, 3], [2, 3]]
    assert positions("PATTERN SEQ((A|D) a)", events) == [[0], [1]]


def test_a_condition_on_further_events_and_on_the_first() -> None:
    events = {"type": list("AAAB"), "x": [3, 7, 9, 8]}
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{ {} }}"
    assert sorted(positions(query.format("a[i].x > 8"), events)) == [[0, 2, 3], [1, 2, 3], [2, 3]]
    assert positions(query.format("a[1].x > 8"), events) == [[2, 3]]
    assert positions(query.format("a[i].x > b.x"), events) == [[2, 3]]
    assert positions(query.format("a.LEN > 2"), events) == [[0, 1, 2, 3]]


# ---- Negation


START = "PATTERN SEQ(~(C c), A a, B b) WHERE skip_till_next_match { [k] } WITHIN 10"
END = "PATTERN SEQ(A a, B b, ~(C c)) WHERE skip_till_next_match { [k] } WITHIN 10"


def test_a_match_waits_until_its_negation_is_over() -> None:
    matcher = stretto.Matcher(END, time="t", output="positions")
    assert matcher.push(stream("Ax0 Bx3")).num_rows == 0
    assert matcher.push(stream("Dx10")).num_rows == 0
    assert matcher.advance(10).num_rows == 0
    assert matcher.expires == 10
    assert matcher.advance(11).to_pylist() == [
        {"start": 0, "end": 1, "positions": [0, 1], "start_time": 0, "end_time": 3, "k": "x"}
    ]
    assert matcher.finish().num_rows == 0

    matcher = stretto.Matcher(END, time="t", output="positions")
    assert matcher.push(stream("Ax0 Bx3 Ay4 By5")).num_rows == 0
    assert matcher.push(stream("Cx10")).num_rows == 0
    # The first event after that, of whatever type, lets the other one out.
    assert matcher.push(stream("Dz15")).column("positions").to_pylist() == [[2, 3]]

    matcher = stretto.Matcher(END, time="t", output="positions")
    matcher.push(stream("Ax0 Bx3"))
    assert matcher.finish().column("positions").to_pylist() == [[0, 1]]
    with pytest.raises(stretto.OptionError, match="finished"):
        matcher.push(stream("Ax20"))


def test_a_waiting_match_is_in_a_snapshot_with_its_events() -> None:
    matcher = stretto.Matcher(END, time="t")
    matcher.push(stream("Ax0 Bx3"))
    later = stretto.Matcher(END, matcher.query.schema).restore(matcher.snapshot())
    found = later.push(stream("Dx11")).to_pylist()
    assert [(row["a"], row["b"]) for row in found] == [(stream("Ax0"), stream("Bx3"))]


# ---- RETURN

VALUES = pa.table(
    {
        "type": list("AAAB"),
        "k": pa.array(["x"] * 4).dictionary_encode(),
        "v": pa.array([4, None, 1, 7], pa.int32()),
        "u": pa.array([4, 2, 1, 7], pa.uint8()),
        "w": [0.5, 2.5, None, 1.0],
        "f": pa.array([0.5, 2.5, 1.5, 1.0], pa.float32()),
        "d": [Decimal("0.10"), None, Decimal("-0.30"), Decimal("2.00")],
        "ts": pa.array([5, 3, 9, 11], pa.timestamp("ms", tz="UTC")),
        "day": pa.array([dt.date(2024, 1, day) for day in (5, 3, 9, 11)]),
        "flag": [True, None, False, True],
        "name": ["p", "q", "r", "ß"],
    }
)


def returned_row(items: str) -> dict[str, Any]:
    """What RETURN gives for the match that holds all four events."""
    found = stretto.match(f"PATTERN SEQ(A+ a[], B b) RETURN {items}", VALUES)
    row = next(row for row in found.to_pylist() if row["start"] == 0)
    return {name: row[name] for name in found.column_names if name not in ("start", "end", "positions")}


def test_names_of_returned_columns() -> None:
    items = "b.name, a[1].v, a[a.LEN].v, a.LEN, count(a[]), count(a[].v), sum(a[].v), b.name AS `the name`"
    assert returned_row(items) == {
        "b_name": "ß", "a_1_v": 4, "a_last_v": 1, "a_len": 3, "count_a": 3, "count_a_v": 2, "sum_a_v": 5, "the name": "ß",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("item", "value", "kind"),
    [
        ("b.v", 7, pa.int32()),
        ("b.d", Decimal("2.00"), pa.decimal128(3, 2)),
        ("b.flag", True, pa.bool_()),
        ("a[1].day", dt.date(2024, 1, 5), pa.date32()),
        ("sum(a[].v)", 5, pa.int64()),
        ("avg(a[].v)", 2.5, pa.float64()),
        ("min(a[].v)", 1, pa.int32()),
        ("max(a[].v)", 4, pa.int32()),
        ("sum(a[].u)", 7, pa.int64()),
        ("max(a[].u)", 4, pa.uint8()),
        ("sum(a[].w)", 3.0, pa.float64()),
        ("avg(a[].w)", 1.5, pa.float64()),
        ("max(a[].w)", 2.5, pa.float64()),
        ("sum(a[].f)", 4.5, pa.float64()),
        ("min(a[].f)", 0.5, pa.float32()),
        ("sum(a[].d)", 0.1 - 0.3, pa.float64()),
        ("avg(a[].d)", (0.1 - 0.3) / 2, pa.float64()),
        ("min(a[].d)", Decimal("-0.30"), pa.decimal128(3, 2)),
        ("max(a[].d)", Decimal("0.10"), pa.decimal128(3, 2)),
        ("min(a[].ts)", dt.datetime(1970, 1, 1, 0, 0, 0, 3000, dt.UTC), pa.timestamp("ms", tz="UTC")),
        ("max(a[].ts)", dt.datetime(1970, 1, 1, 0, 0, 0, 9000, dt.UTC), pa.timestamp("ms", tz="UTC")),
        ("min(a[].day)", dt.date(2024, 1, 3), pa.date32()),
        ("max(a[].day)", dt.date(2024, 1, 9), pa.date32()),
        ("count(a[].flag)", 2, pa.int64()),
        ("b.v - a[1].v", 3, pa.int64()),
        ("b.v / 2", 3.5, pa.float64()),
        ("-b.v % 4", -3, pa.int64()),
        ("sum(a[].v) / a.LEN", 5 / 3, pa.float64()),
        ("b.v / 0", None, pa.float64()),
        ("b.v % 0", None, pa.int64()),
        ("b.v + a[1].d", 7.1, pa.float64()),
        ("b.d * 3", 6.0, pa.float64()),
        ("'rise'", "rise", pa.string()),
        ("5", 5, pa.int64()),
        ("TRUE", True, pa.bool_()),
    ],
)
def test_returned_values_and_their_types(item: str, value: Any, kind: pa.DataType) -> None:
    query = f"PATTERN SEQ(A+ a[], B b) RETURN {item} AS r"
    assert stretto.compile(query, VALUES).output_schema().field("r").type == kind
    assert returned_row(f"{item} AS r") == {"r": value}


def test_aggregates_of_nothing_and_of_nan() -> None:
    events = pa.table({"type": ["A", "A"], "v": pa.array([None, None], pa.int64()), "w": [math.nan, 1.0]})
    items = "sum(a[].v), avg(a[].v), min(a[].v), max(a[].v), count(a[].v), min(a[].w), max(a[].w), sum(a[].w)"
    rows = stretto.match(f"PATTERN SEQ(A+ a[]) RETURN {items}", events).to_pylist()
    row = next(row for row in rows if row["start"] == 0 and row["end"] == 1)
    assert row["positions"] == [0, 1]
    assert [row[f"{name}_a_v"] for name in ("sum", "avg", "min", "max", "count")] == [None, None, None, None, 0]
    assert all(math.isnan(row[f"{name}_a_w"]) for name in ("min", "max", "sum"))


def test_names_that_are_taken() -> None:
    events = {"type": ["A"], "k": [1], "t": [3]}
    query = (
        "PATTERN SEQ(A a) WHERE skip_till_next_match { [k] } RETURN a.t AS start, 'x' AS k, 2 AS start_time, 3 AS type"
    )
    assert stretto.match(query, events, time="t").to_pylist() == [
        {"start": 0, "end": 0, "positions": [0], "start_time": 3, "end_time": 3, "k": 1,
         "start_": 3, "k_": "x", "start_time_": 2, "type": 3}
    ]  # fmt: skip
    found = stretto.match("PATTERN SEQ(A start, B `k`)".replace("`", ""), {"type": ["A", "B"], "k": [1, 2]})
    assert found.column_names == ["start", "end", "positions", "start_", "k"]


def test_returned_columns_are_those_of_the_definition() -> None:
    """On random cases that have RETURN, in one table and batch by batch."""
    checked = 0
    for seed in range(cases(1_000, compiled=250)):
        case = sase.case(seed)
        if case.query.returns is None or case.query.limit is not None:
            continue
        rows = case.events.to_pylist()
        expected = []
        for match in evaluate_sase(case.bound, case.events):
            values = list(returned(case.bound, match, rows).values())
            expected.append(repr((match.start, match.end, sorted(match.positions), values)))
        query = stretto.compile(text_of(case.query), case.schema)
        names = [item.name for item in case.query.returns]
        for found in (stretto.match(query, case.events), _pushed(query, case)):
            shown = [
                repr((row["start"], row["end"], row["positions"], [row[name] for name in names]))
                for row in found.to_pylist()
            ]
            assert sorted(shown) == sorted(expected), f"seed {seed}: {text_of(case.query)}"
        checked += len(expected)
    assert checked > cases(1_000, compiled=250) // 5


def _pushed(query: stretto.Query, case: SaseCase) -> pa.Table:
    matcher = stretto.Matcher(query, capacity=1)
    parts = [matcher.push(case.events.slice(i, 2)) for i in range(0, case.events.num_rows, 2)]
    return pa.concat_tables([*parts, matcher.finish()])


# ---- Forms of output


def test_output_of_positions_and_summaries() -> None:
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [k] } RETURN a.LEN AS n"
    events = {"type": list("AACBB"), "k": [1] * 5, "t": [0, 1, 2, 3, 4]}
    assert stretto.match(query, events, time="t", output="positions").column_names == [
        "start", "end", "positions", "start_time", "end_time", "k",
    ]  # fmt: skip
    assert stretto.match(query, events, time="t", output="summary").to_pylist() == [
        {"start": 0, "end": 3, "start_time": 0, "end_time": 3, "k": 1, "matches": 2},
        {"start": 0, "end": 4, "start_time": 0, "end_time": 4, "k": 1, "matches": 2},
    ]


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "skip_till_any_match"])
def test_limit_takes_the_latest_starts(strategy: str) -> None:
    events = {"type": list("AAABB")}
    query = f"PATTERN SEQ(A a, B b) WHERE {strategy} {{ }} LIMIT 2"
    expected = [[1, 3], [2, 3], [1, 4], [2, 4]] if "any" in strategy else [[1, 3], [2, 3]]
    assert sorted(positions(query, events)) == sorted(expected)


def test_non_overlap() -> None:
    events = {"type": list("AABABB")}
    assert positions("PATTERN SEQ(A a, B b)", events) == [[0, 2], [1, 2], [3, 4]]
    assert positions("PATTERN SEQ(A a, B b) OUTPUT non_overlap", events) == [[0, 2], [3, 4]]
    # Of one start the shortest, and each partition by itself.
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [k] } OUTPUT non_overlap"
    keyed = {"type": list("AAABBABB"), "k": list("xxyxyxxx")}
    assert positions(query, keyed) == [[0, 3], [2, 4], [5, 6]]


def test_one_row_for_each_way_of_holding_the_same_events() -> None:
    query = "PATTERN SEQ(A+ a[], A+ b[]) WHERE {} {{ }} RETURN a.LEN AS n, b.LEN AS m"
    for strategy in ("skip_till_next_match", "skip_till_any_match"):
        rows = stretto.match(query.format(strategy), {"type": list("AAA")}).to_pylist()
        held = sorted((row["positions"], row["n"], row["m"]) for row in rows)
        assert held.count(([0, 1, 2], 1, 2)) == 1
        assert held.count(([0, 1, 2], 2, 1)) == 1


# ---- Events


def test_unsorted_events_and_rows_as_given() -> None:
    table = pa.table({"type": ["B", "A", "C", "A"], "t": [9, 3, 1, 5], "v": [1, 2, 3, 4]})
    found = stretto.match("PATTERN SEQ(A+ a[], B b) RETURN a[1].v AS first, b.v AS last", table, time="t").to_pylist()
    rows = sorted((row["start"], row["end"], row["positions"], row["first"], row["last"]) for row in found)
    assert rows == [(1, 0, [0, 1, 3], 2, 1), (3, 0, [0, 3], 4, 1)]


def test_a_sequence_orders_events_of_one_time() -> None:
    table = pa.table({"type": ["B", "A"], "t": [1, 1], "n": [2, 1]})
    assert positions("PATTERN SEQ(A a, B b) WITHIN 0", table, time="t", sequence="n") == [[0, 1]]
    assert positions("PATTERN SEQ(A a, B b) WITHIN 0", table, time="t") == []


def test_windows_of_nothing() -> None:
    assert positions("PATTERN SEQ(A a, B b) WITHIN 0", stream("Ax5 Bx5 Ax5 Bx6"), time="t") == [[0, 1]]
    assert positions("PATTERN SEQ(A a, B b) WITHIN 0 EVENTS", stream("Ax5 Bx5")) == []
    assert positions("PATTERN SEQ(A a) WITHIN 0 EVENTS", stream("Ax5 Bx5 Ax5")) == [[0], [2]]


@pytest.mark.parametrize(
    ("window", "options", "expected"),
    [
        ("WITHIN 3", {"time": "t"}, 1),
        ("WITHIN 4", {"time": "t"}, 2),
        ("WITHIN 3 seconds", {"time": "t", "time_unit": "s"}, 1),
        ("WITHIN 3 seconds", {"time": "t", "time_unit": "ms"}, 2),
        ("WITHIN 3 [t]", {}, 1),
        ("WITHIN 1 EVENTS", {}, 1),
        ("WITHIN 3 EVENTS", {}, 2),
        ("", {}, 2),
    ],
)
def test_windows(window: str, options: dict[str, Any], expected: int) -> None:
    assert len(positions(f"PATTERN SEQ(A a, B b) {window}", stream("Ax0 Cx1 Ax3 Bx4"), **options)) == expected


def test_late_events_are_dropped_and_count_for_nothing() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [k] }"
    matcher = stretto.Matcher(query, time="t", late="drop", output="positions")
    found = matcher.push(stream("Ax5 Ay6 Cx4 Bx7 By2 By8")).column("positions").to_pylist()
    assert found == [[0, 3], [1, 5]]
    assert matcher.late == 2
    with pytest.raises(stretto.DataError, match="'t' decreases from 6 to 4 at row 2"):
        stretto.Matcher(query, time="t").push(stream("Ax5 Ay6 Cx4"))


def test_several_tables() -> None:
    tables = {
        "orders": pa.table({"type": ["NEW", "OLD"], "t": [1, 2], "n": [7, 7]}),
        "payments": pa.table({"type": ["PAID", "PAID"], "t": [3, 9], "n": [7, 8]}),
    }
    where = "WHERE skip_till_next_match { [n] }"
    assert positions(f"PATTERN SEQ(NEW o, PAID p) {where}", tables, time="t") == [[0, 2]]
    assert positions(f"PATTERN SEQ(orders o, payments p) {where}", tables, type=None, time="t") == [[0, 2], [1, 2]]
    # What tECS might run needs its streams told apart.
    any_match = where.replace("next", "any")
    assert sorted(positions(f"PATTERN SEQ(orders o, payments p) {any_match}", tables, type=None, time="t")) == [
        [0, 2], [1, 2],
    ]  # fmt: skip
    with pytest.raises(stretto.DataError, match="several streams are merged by time"):
        stretto.match("PATTERN SEQ(orders o)", tables, type=None)


def test_composition() -> None:
    ticks = pa.table({"type": ["S"] * 9, "k": ["x"] * 9, "v": [10, 11, 12, 9, 10, 13, 14, 8, 7], "t": range(9)})
    rises = stretto.match(
        """PATTERN SEQ(S+ a[], S b)
        WHERE partition_contiguity { [k] and a[i].v > a[i-1].v and a.LEN >= 3 and b.v < a[a.LEN].v }
        RETURN 'rise' AS type, a[1].v AS low, a[a.LEN].v AS high OUTPUT non_overlap""",
        ticks,
        time="t",
    )
    assert rises.select(["start", "end", "type", "low", "high"]).to_pylist() == [
        {"start": 0, "end": 3, "type": "rise", "low": 10, "high": 12},
        {"start": 4, "end": 7, "type": "rise", "low": 10, "high": 14},
    ]
    query = "PATTERN SEQ(rise x, rise y) WHERE skip_till_next_match { [k] and y.high > x.high } WITHIN 10 RETURN y.high"
    assert stretto.match(query, rises, time="end_time").select(["start_time", "end_time", "y_high"]).to_pylist() == [
        {"start_time": 3, "end_time": 7, "y_high": 14}
    ]


def test_priming_reads_events_without_what_they_complete() -> None:
    matcher = stretto.Matcher("PATTERN SEQ(A+ a[], B b)", output="positions")
    matcher.prime([{"type": "A"}, {"type": "B"}, {"type": "A"}])
    assert sorted(matcher.push([{"type": "B"}]).column("positions").to_pylist()) == [[0, 2, 3], [2, 3]]
    # A match that was completed before is not put out when its time comes.
    for begin, expected in (("Ax0 Bx3", 0), ("Ax0", 1)):
        matcher = stretto.Matcher(END, time="t")
        matcher.prime(stream(begin))
        rest = stream("Dx20") if expected == 0 else stream("Bx3 Dx20")
        assert matcher.push(rest).num_rows == expected


def test_nothing_comes_of_nothing() -> None:
    assert stretto.match("PATTERN SEQ(A a, B b)", []).num_rows == 0
    assert stretto.match("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [k] } WITHIN 5", [], time="t").num_rows == 0
    empty = STOCKS.slice(0, 0)
    found = stretto.match(
        f"{QUERY_3} RETURN sum(a[].volume), min(a[].price), 5 AS five", empty, time="t", time_unit="s"
    )
    assert found.num_rows == 0
    assert found.column_names[-3:] == ["sum_a_volume", "min_a_price", "five"]
    with pytest.raises(stretto.DataError, match="give an empty table with columns"):
        stretto.match("PATTERN SEQ(A a) WHERE skip_till_next_match { a.v > 1 }", [])


# ---- Values


def test_division_by_zero_is_null() -> None:
    events = {"type": list("AB"), "v": [0, 5]}
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ {} }}"
    for condition in ("b.v / a.v > 0", "b.v / a.v <= 0", "b.v % a.v = 0", "b.v / a.v != 1"):
        assert positions(query.format(condition), events) == []
        assert positions(query.format(f"not ({condition})"), events) == [[0, 1]]
    assert positions(query.format("b.v / a.v IS NULL"), events) == [[0, 1]]


def test_null_and_nan() -> None:
    events = pa.table({"type": list("AB"), "v": pa.array([None, 5]), "w": [math.nan, math.nan]})
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ {} }}"
    for condition in ("b.v > a.v", "b.v != a.v", "b.v + a.v > 0", "a.w = b.w", "a.w < b.w", "a.w >= b.w"):
        assert positions(query.format(condition), events) == []
    for condition in ("a.w != b.w", "[w]", "not (a.w = b.w)", "a.v IS NULL", "not b.v > a.v"):
        assert positions(query.format(condition), events) == [[0, 1]]


def test_decimals_between_events_are_doubles() -> None:
    events = {"type": list("AB"), "d": [Decimal("0.1"), Decimal("0.3")]}
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ {} }}"
    assert positions(query.format("b.d > a.d and b.d = 0.3 and a.d + 0.0 = 0.1"), events) == [[0, 1]]
    assert positions(query.format("b.d - a.d - a.d > 0.09 and b.d / a.d > 2.9"), events) == [[0, 1]]


def test_large_integers_beside_floats_compare_exactly() -> None:
    events = pa.table({"type": list("AB"), "v": [2**53 + 1, 0], "w": [0.0, 2.0**53]})
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ {} }}"
    assert positions(query.format("a.v > b.w"), events) == [[0, 1]]
    assert positions(query.format("a.v = b.w"), events) == []


@pytest.mark.parametrize(
    ("condition", "row"),
    [
        ("sum(a[..i].v) > 0", 1),
        ("b.v < sum(a[].v)", 1),
        ("a[1].v * 4 > b.v", 2),
        ("-a[1].v - a[1].v - b.v < 0", 2),
        ("a[i].v + a[i-1].v > 0", 1),
    ],
)
def test_integer_overflow_names_the_row(condition: str, row: int) -> None:
    events = {"type": list("AAB"), "v": [2**62, 2**62, 2]}
    query = f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{ {condition} }}"
    with pytest.raises(
        stretto.DataError, match=rf"^integer overflow in .* at row {row}: compute with floats$"
    ) as caught:
        stretto.match(query, events)
    shown, asked = ("".join(c for c in one if c not in "() ") for one in (str(caught.value), condition))
    assert shown.startswith(f"integeroverflowin{asked}atrow")


@pytest.mark.parametrize(
    ("returned", "types", "row", "message"),
    [
        (
            "sum(a[].v)",
            "ABAABBAAB",
            4,
            "sum(a[].v) leaves 64 bits in the match that ends at row {}: compute with floats",
        ),
        (
            "b.v, a[1].v * 4 AS x",
            "ABACBBAAB",
            4,
            "integer overflow in (a[1].v * 4) in the match that ends at row {}: 4611686018427387904 * 4 is beyond 64 bits; "
            "compute with floats",
        ),
    ],
)
def test_overflow_in_return_names_the_first_match(returned: str, types: str, row: int, message: str) -> None:
    events: dict[str, list[Any]] = {
        "type": list(types),
        "v": [1, 2, 2**62, 2**62, 5, 6, 2**62, 2**62, 9],
        "t": list(range(9)),
    }
    query = f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{ b.v > 0 }} RETURN {returned}"
    with pytest.raises(stretto.DataError) as caught:
        stretto.match(query, events)
    assert str(caught.value) == message.format(row)
    # The row is that of the input as it was given, also where it had to be sorted.
    first = {name: [*values[1:], values[0]] for name, values in events.items()}
    with pytest.raises(stretto.DataError) as caught:
        stretto.match(query, first, time="t")
    assert str(caught.value) == message.format(row - 1)


def test_sums_up_to_the_last_integer_of_64_bits() -> None:
    most, least = 2**63 - 1, -(2**63)
    query = "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { a[1].v <= 0 } RETURN sum(a[].v) AS s"
    for values in ([0, most], [least, 0], [-1, least + 1], [0, 2**62, 2**62 - 1], [-(2**62), -(2**62)], [-5, most]):
        events = {"type": [*"A" * len(values), "B"], "v": [*values, 1]}
        assert stretto.match(query, events).column("s").to_pylist()[-1] == sum(values)
    for values in ([-2, least + 1], [least, -1], [0, 2**62, 2**62], [least, least]):
        with pytest.raises(stretto.DataError, match=r"sum\(a\[\]\.v\) leaves 64 bits"):
            stretto.match(query, {"type": [*"A" * len(values), "B"], "v": [*values, 1]})
    unsigned = pa.table({"type": ["A", "B"], "v": pa.array([2**63, 1], pa.uint64())})
    with pytest.raises(stretto.DataError, match="leaves 64 bits in the match that ends at row 1"):
        stretto.match("PATTERN SEQ(A+ a[], B b) RETURN sum(a[].v) AS s", unsigned)


AVERAGES = (
    "a[i].v >= avg(a[..i-1].v)",
    "avg(a[..i].v) < {}",
    "b.v < avg(a[].v)",
    "a.LEN > 1 and avg(a[].v) != {}",
    "avg(a[].v) = a[1].v",
)


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match", "strict_contiguity"])
@pytest.mark.parametrize("condition", AVERAGES)
def test_averages_are_those_of_the_definition_beyond_64_bits(condition: str, strategy: str) -> None:
    """Of integers whose sums leave 64 bits, and come back: in conditions and in RETURN, whole and in batches of two."""
    rng = random.Random(condition + strategy)
    most, least = 2**63 - 1, -(2**63)
    numbers = [most, most, most - 1, 2**62, 2**53 + 1, 2**53 - 1, 3, 0, None, -1, -(2**62), least + 1, least, least]
    events_of = {"type": pa.string(), "v": pa.int64()}
    compared = rng.choice([3, 2**53 + 1, 2**62, -(2**62)])
    text = f"PATTERN SEQ(A+ a[], B b) WHERE {strategy} {{ {condition.format(compared)} }} WITHIN 7 EVENTS RETURN avg(a[].v) AS m"
    query = stretto.compile(text, events_of)
    assert isinstance(query.bound, BoundSase)
    checked = 0
    for _ in range(40):
        rows = [{"type": rng.choice("AAAB"), "v": rng.choice(numbers)} for _ in range(12)]
        table = pa.Table.from_pylist(rows, schema=pa.schema(events_of))
        expected = sorted(
            (sorted(match.positions), repr(returned(query.bound, match, rows)["m"]))
            for match in evaluate_sase(query.bound, table)
        )
        matcher = stretto.Matcher(query, capacity=1)
        pushed = pa.concat_tables([matcher.push(table.slice(at, 2)) for at in range(0, 12, 2)])
        for found in (stretto.match(query, table), pushed):
            assert sorted((row["positions"], repr(row["m"])) for row in found.to_pylist()) == expected
        checked += len(expected)
    assert checked > 5


def test_averages_of_three_integers_near_2_to_the_62() -> None:
    events = {"type": list("AAAB"), "v": [2**62 + 1, 2**62 + 3, 2**62 + 5, 0]}
    query = "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity {{ {} }} RETURN avg(a[].v) AS m, a.LEN AS n"
    for condition in ("avg(a[].v) > 5", "a[1].v = 4611686018427387905"):
        rows = stretto.match(query.format(condition), events).to_pylist()
        assert [(row["m"], row["n"]) for row in rows if row["n"] == 3] == [(float(2**62), 3)]
    unsigned = {"type": list("AAB"), "v": pa.array([2**64 - 1, 2**64 - 1, 0], pa.uint64())}
    assert stretto.match(query.format("b.v = 0"), pa.table(unsigned)).column("m").to_pylist()[-1] == float(2**64)
    # A sum is still asked for: it leaves 64 bits at row 1, whatever else is.
    for condition in ("avg(a[].v) > 5 and sum(a[].v) > 5", "sum(a[..i-1].v) > 5 and avg(a[..i].v) > 5"):
        with pytest.raises(stretto.DataError, match=r"integer overflow in .* at row 1"):
            stretto.match(query.format(condition), events)
    with pytest.raises(stretto.DataError, match=r"sum\(a\[\]\.v\) leaves 64 bits"):
        stretto.match(query.format("avg(a[].v) > 5") + ", sum(a[].v) AS s", events)


def test_runs_with_the_same_sum_modulo_2_to_the_64_are_not_merged() -> None:
    """Without the carry in the masks, a[1] … of sums s and s + 2^64 would become one run."""
    quarter = 2**62
    rows = [("A", quarter)] * 4 + [("C", 0), ("A", 0), ("A", 0), ("A", 0), ("A", 0), ("B", 0)]
    events = {"type": [kind for kind, _ in rows], "v": [v for _, v in rows]}
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { avg(a[].v) > 1 and a.LEN = 4 }"
    found = stretto.match(query, events, output="positions").column("positions").to_pylist()
    assert [0, 1, 2, 3, 9] in found
    assert [5, 6, 7, 8, 9] not in found
    assert len(found) == 70 - 1


def test_states_without_carries_are_read() -> None:
    """As snapshots had them before averages had carries."""
    schema = {"type": "string", "v": "int64"}
    text = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { max(a[].v) > b.v and b.v = avg(a[].v) and a.LEN > 1 }"
    query = stretto.compile(text, schema)
    assert isinstance(query.bound, BoundSase)
    program = NfabProgram(query.bound)
    slots = program.conditions.values.slots
    [carry] = [number for number, slot in enumerate(slots, 1) if slot.op is Op.CARRY]
    assert 1 < carry < len(slots)
    first = pa.table({"type": list("AAAA"), "v": pa.array([1, 5, 3, None], pa.int64())}).to_batches()[0]
    second = pa.table({"type": list("AB"), "v": [3, 3]}).to_batches()[0]
    runner = NfabRunner(program)
    assert not list(runner.advance(first))
    section = Section()
    runner.save(section)
    arrays = section.arrays
    V = arrays["runs.V"].reshape(-1, len(slots) + 1)
    known = V[:, 0]
    below = known & ((1 << carry) - 1)
    V[:, 0] = below | (known >> (carry + 1) << carry)
    arrays["runs.V"] = np.delete(V, carry, axis=1).ravel()
    restored = NfabRunner(program)
    restored.load(section)
    wanted = [one.position.tolist() for one in runner.advance(second)]
    assert wanted
    assert [one.position.tolist() for one in restored.advance(second)] == wanted


@pytest.mark.parametrize(
    ("condition", "row", "what"),
    [
        ("a.v * 4 > 3", 72, r"\(v \* 4\)"),
        # Beside conditions between events it counts where these do not decide: at the B after that A.
        ("(a.v * 4 > 3 or b.v > a.v)", 74, r"\(a.v \* 4\) > 3 OR b.v > a.v"),
        ("a.v * 4 > 3 and b.v + 1 > a.v", 72, r"\(v \* 4\)"),
    ],
)
@pytest.mark.parametrize("cut", [0, 1, 5, 70])
def test_overflow_on_one_event_names_its_row(condition: str, row: int, what: str, cut: int) -> None:
    table = pa.table({"type": list("AXBX") * 25, "v": [1] * 72 + [2**62] * 28, "t": range(100)})
    query = f"PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ {condition} }}"
    with pytest.raises(
        stretto.DataError, match=f"integer overflow in {what} at row {row - cut}: .*compute with floats"
    ):
        stretto.match(query, table.slice(cut))
    with pytest.raises(stretto.DataError, match=f"{what} at row {99 - row}: "):
        stretto.match(query, table.take(list(range(99, -1, -1))), time="t")
    matcher = stretto.Matcher(query)
    matcher.push(table.slice(0, cut))
    with pytest.raises(stretto.DataError, match=f"{what} at row {row}: "):
        matcher.push(table.slice(cut))


@pytest.mark.parametrize(
    ("conditions", "values"),
    [
        ("a.LEN > 1 and b.v * 4 > 3", [1, 2**62, 1, 5]),
        ("a.LEN > 1 and b.w > 1 and b.v * 4 > 3", [1, 2**62, 1, 5]),
        ("avg(a[].v) > 7 and b.v * 4 > 3", [1, 2**62, 99, 5]),
        ("a[a.LEN].v * 4 > 3 and b.v > a[1].v", [2**62, 1, 1, 2**62 + 5]),
    ],
)
def test_what_leaves_a_kleene_plus_and_what_begins_behind_it_guard_each_other(
    conditions: str, values: list[int]
) -> None:
    """The first B begins nothing, whatever its product is; where it does, that is an error."""
    query = f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{ {conditions} }}"
    table = pa.table({"type": list("ABAB"), "v": values, "w": [2] * 4})
    bound = stretto.compile(query, table.schema).bound
    assert isinstance(bound, BoundSase)
    expected = [[*match.positions] for match in evaluate_sase(bound, table)]
    assert expected
    assert sorted(stretto.match(query, table)["positions"].to_pylist()) == expected
    with pytest.raises(DataError, match=r"integer overflow in .* at row 3: compute with floats"):
        stretto.match(query, pa.table({"type": list("AAAB"), "v": [2**62] * 3 + [2**62 + 1], "w": [2] * 4}))


def test_overflow_on_one_event_is_found_before_anything_is_read() -> None:
    matcher = stretto.Matcher("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.v * 4 > 3 }", output="positions")
    matcher.push([{"type": "A", "v": 1}])
    with pytest.raises(stretto.DataError, match=r"integer overflow in \(v \* 4\) at row 2: "):
        matcher.push([{"type": "B", "v": 0}, {"type": "A", "v": 2**62}])
    assert matcher.push([{"type": "B", "v": 0}]).num_rows == 1


def test_strings_are_in_the_order_of_code_points_across_batches() -> None:
    query = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { b[1].s > a.s and b[i].s > b[i-1].s }"
    rng = random.Random(1)
    words = ["", "a", "aa", "b", "zz", "é", "ß", "日本", "\U0001f600", "\ue000"]
    for _ in range(30):
        events = [{"type": rng.choice("ABBB"), "s": rng.choice([*words, None])} for _ in range(12)]
        expected = positions(query, pa.Table.from_pylist(events))
        schema = {"type": "string", "s": "string"}
        matcher = stretto.Matcher(query, schema, output="positions", capacity=1)
        found = [row for event in events for row in matcher.push([event]).column("positions").to_pylist()]
        found.sort(key=lambda held: (held[-1], held))
        assert found == expected
        for held in found:
            assert all(events[i]["s"] < events[j]["s"] for i, j in zip(held, held[1:], strict=False))


def test_dictionaries_and_large_strings() -> None:
    plain = pa.table({"type": list("ABAB"), "k": list("xyxx"), "s": list("pqrs")})
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] and b.s > a.s and a.s != 'q' } RETURN b.s, a.s AS t"
    expected = stretto.match(query, plain).to_pylist()
    assert sorted(row["positions"] for row in expected) == [[0, 3], [2, 3]]
    kinds: list[Callable[[pa.Array], pa.Array]] = [
        lambda column: column.combine_chunks().dictionary_encode(),
        lambda column: column.cast(pa.large_string()),
    ]
    for convert in kinds:
        other = pa.table({name: convert(plain.column(name)) for name in plain.column_names})
        assert stretto.match(query, other).to_pylist() == expected
    # Dictionaries that differ from batch to batch.
    matcher = stretto.Matcher(
        query, pa.schema([(name, pa.dictionary(pa.int32(), pa.string())) for name in ("type", "k", "s")])
    )
    encoded = [
        pa.table(
            {name: plain.slice(i, 1).column(name).combine_chunks().dictionary_encode() for name in ("type", "k", "s")}
        )
        for i in range(4)
    ]
    found = [row for part in encoded for row in matcher.push(part).to_pylist()]
    assert [row["positions"] for row in found] == [row["positions"] for row in expected]


# ---- Mistakes


def test_an_unknown_attribute_is_shown_where_it_is() -> None:
    query = "PATTERN SEQ(A+ a[], B b)\nWHERE skip_till_next_match { [k] and a[i].pricee > avg(a[..i-1].price) }"
    with pytest.raises(stretto.QueryError) as caught:
        stretto.match(query, {"type": ["A"], "k": [1], "price": [2]})
    assert str(caught.value).splitlines() == [
        "line 2, column 38: unknown attribute 'pricee'",
        "  WHERE skip_till_next_match { [k] and a[i].pricee > avg(a[..i-1].price) }",
        "                                       ^^^^^^^^^^^",
        "hint: did you mean 'price'?",
    ]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [kk] }", "unknown attribute 'kk'"),
        ("PATTERN SEQ(A a, ~(C c))", "needs a time until which it holds"),
        ("PATTERN SEQ(A a, ~(C c)) WITHIN 5 EVENTS", "needs a time until which it holds"),
        ("PATTERN SEQ(A a, ~(C c)) WITHIN 5 LIMIT 1", "LIMIT chooses among"),
        ("PATTERN SEQ(A a, ~(C c)) WITHIN 5 OUTPUT non_overlap", "OUTPUT non_overlap chooses among"),
        ("PATTERN SEQ(A a) WHERE skip_till_next_match { a.k > 'x' }", "cannot compare"),
        ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { avg(a[].s) > 1 }", "avg needs numbers"),
        ("PATTERN SEQ(A+ a[], B+ b[]) WHERE skip_till_next_match { a[i].k < b[i].k }", "in one comparison"),
        ("PATTERN SEQ(A a, B b) RETURN a.k, a.k", "RETURN has the name 'a_k' twice"),
    ],
)
def test_what_is_refused(query: str, message: str) -> None:
    with pytest.raises(stretto.QueryError, match=message):
        stretto.match(query, pa.table({"type": ["A"], "k": [1], "t": [1], "s": ["x"]}), time="t")


# ---- Command line

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command in a folder with a query and events: exit code, standard output, standard error."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    pq.write_table(STOCKS, "stocks.parquet")
    Path("trend.sase").write_text(f"-- a trend\n{QUERY_3}", encoding="utf-8")

    def command(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        code = ended.value.code
        return (code if isinstance(code, int) else 0), shown.out, shown.err

    return command


def test_the_command_matches(run: Run) -> None:
    options = ("--time", "t", "--time-unit", "s", "--output", "positions", "--json")
    code, out, err = run("match", "trend.sase", "stocks.parquet", *options)
    assert (code, err) == (0, "")
    found = [json.loads(line)["positions"] for line in out.splitlines()]
    assert sorted(found) == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 6, 7], [2, 3, 5]]
    code, out, _ = run("match", "trend.sase", "stocks.parquet", *options[:4], "--json", "--output", "summary")
    assert [json.loads(line)["matches"] for line in out.splitlines()] == [2, 1]


def test_the_command_explains_and_draws(run: Run) -> None:
    code, out, err = run("explain", "trend.sase")
    assert (code, err) == (0, "")
    assert "schema     none yet" in out
    code, out, _ = run("explain", "trend.sase", "stocks.parquet", "--time", "t", "--time-unit", "s", "--draw", "a.dot")
    assert code == 0
    assert "engine     nfab: a run for each partial match" in out
    assert "not tecs: a condition relates events" in out
    assert Path("a.dot").read_text(encoding="utf-8").startswith("digraph NFAb {")


def test_the_command_shows_mistakes(run: Run) -> None:
    Path("wrong.sase").write_text("PATTERN SEQ(Stock a) WHERE skip_till_next_match { a.prize > 1 }", encoding="utf-8")
    code, out, err = run("match", "wrong.sase", "stocks.parquet")
    assert (code, out) == (3, "")
    assert "did you mean 'price'?" in err


# ---- Many patterns


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] } WITHIN 10",
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { [k] } WITHIN 10",
        "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { b.k > a.k }",
    ],
)
def test_many_patterns_take_what_every_engine_runs(query: str) -> None:
    patterns = stretto.PatternSet({"type": "string", "k": "string", "t": "int64"}, time="t")
    patterns.change(stretto.Change("it", query))
    found = patterns.push(stream("Ax1 Bx2 By3 Bx4")).to_pylist()
    expected = stretto.match(query, stream("Ax1 Bx2 By3 Bx4"), time="t")
    assert found
    assert sorted((row["start_time"], row["end_time"], len(row["events"])) for row in found) == sorted(
        (row["start_time"], row["end_time"], len(row["positions"])) for row in expected.to_pylist()
    )


# -- corners that once were wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])
def test_variables_with_the_names_of_types(strategy: str) -> None:
    events = {"type": ["A", "B"], "n": [1, 2]}
    (row,) = stretto.match(f"PATTERN SEQ(A B, B A) WHERE {strategy} {{ }}", events).to_pylist()
    assert ([e["n"] for e in row["B"]], [e["n"] for e in row["A"]]) == ([1], [2])
    (row,) = stretto.match(f"PATTERN SEQ(A+ B[], B b) WHERE {strategy} {{ }} RETURN B.LEN", events).to_pylist()
    assert row["B_len"] == 1


def test_decimals_are_the_nearest_doubles() -> None:
    numbers = pa.array([Decimal("0.3")] * 2, pa.decimal128(5, 2))
    events = pa.table({"type": ["A", "B"], "d": numbers, "w": [0.3, 0.3]})
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[1].d = b.w } RETURN sum(a[].d) AS s, 1.5 AS x"
    assert [(row["s"], row["x"]) for row in stretto.match(query, events).to_pylist()] == [(0.3, 1.5)]


def test_numbers_beyond_signed_64_bits() -> None:
    events = pa.table({"type": ["A", "B"], "v": pa.array([2**63 + 5, 2**63 + 7], pa.uint64())})
    with pytest.raises(DataError, match=r"'v' is 9223372036854775813 at row 0: .* signed 64 bits"):
        stretto.match("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.v > a.v }", events)
    small = pa.table({"type": ["A", "B"], "v": pa.array([5, 7], pa.uint64())})
    assert stretto.match("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.v > a.v }", small).num_rows == 1


def test_sums_add_from_left_to_right() -> None:
    values = [0.1, 0.2, 0.3, 1e16, -1e16, 0.1, 0.7, 0.6]
    expected = 0.0
    for value in values:
        expected += value
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[1].n = 0 } RETURN sum(a[].v) AS s"
    events = [{"type": "A", "v": v, "n": n} for n, v in enumerate(values)] + [{"type": "B"}]
    assert stretto.match(query, events).column("s").to_pylist() == [expected]


def test_summaries_of_a_negation_at_the_end() -> None:
    with pytest.raises(OptionError, match="completes them by time"):
        stretto.match("PATTERN SEQ(A a, ~(B b)) WITHIN 5", [{"type": "A", "t": 1}], time="t", output="summary")


@pytest.mark.skipif(not COMPILED, reason="nine million steps take minutes without JIT")
def test_much_work_for_few_matches_pauses_and_goes_on() -> None:
    """The kernel comes back to Python after some eight million steps, and then goes on where it was."""
    count = 4_300
    events = [{"type": "A", "n": n} for n in range(count)] + [{"type": "B", "n": 10}]
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.n > a.n }"
    found = stretto.match(query, events, output="positions").column("positions").to_pylist()
    assert sorted(found) == [[n, count] for n in range(10)]


@pytest.mark.parametrize(
    ("condition", "runs"), [("b.n > 3", 1), ("b.n > a[1].n", 12), ("b.n > a.LEN", 12), ("b.n > max(a[].n)", 12)]
)
def test_merging_keeps_runs_few(condition: str, runs: int) -> None:
    """Apart, twelve events make 4,095 runs; merged, as many as there are values that are still asked."""
    events = pa.table({"type": ["A"] * 12, "n": [(n * 5) % 12 for n in range(12)]})
    text = f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match {{ {condition} }}"
    bound = stretto.compile(text, events.schema).bound
    assert isinstance(bound, BoundSase)
    for merges, expected in ((False, 4_095), (True, runs)):
        runner = NfabRunner(NfabProgram(bound, merges=merges))
        assert not list(runner.advance(events.to_batches()[0]))
        assert runner.runs == expected


def test_a_matcher_that_failed_inside_a_batch_says_so() -> None:
    matcher = stretto.Matcher("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.v > a.v + 1 }")
    matcher.push({"type": ["A"], "v": [2**63 - 1]})
    saved = matcher.snapshot()
    with pytest.raises(DataError, match=r"integer overflow in .* at row 1"):
        matcher.push({"type": ["B"], "v": [3]})
    with pytest.raises(EngineError, match="stopped in the middle of a batch"):
        matcher.push({"type": ["B"], "v": [3]})
    matcher.restore(saved)
    assert matcher.push({"type": ["A"], "v": [1]}).num_rows == 0
