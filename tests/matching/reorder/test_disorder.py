"""``Matcher(query, disorder=…)``: events in any order give the rows of the sorted stream, as soon as they are certain."""

from __future__ import annotations

import datetime as dt
import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.columns.measured import values_of
from stretto.errors import DataError, OptionError, SnapshotError, StrettoError
from stretto.matching.executors import in_order as matching
from tests.cases import sase
from tests.cases.ceql import case
from tests.conftest import cases

Row = dict[str, Any]
CEQL = "SELECT * FROM S WHERE A AS x; B AS y WITHIN 10 [t]"
SASE = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.k = b.k } WITHIN 10"


def ceql_cases() -> Iterator[tuple[int, stretto.Query, pa.Table]]:
    for seed in range(cases(120)):
        one = case(seed)
        if one.time is not None and not one.valuations:
            yield seed, stretto.compile(one.query, one.events.schema, time=one.time, stream=one.stream), one.events


def sase_cases() -> Iterator[tuple[int, stretto.Query, pa.Table]]:
    for seed in range(cases(120)):
        one = sase.case(seed)
        if one.schema.time is not None:
            yield seed, stretto.compile(one.query.text, one.schema), one.events


def shuffled(events: pa.Table, time: str, bound: int, choose: random.Random) -> pa.Table:
    """Events in an order of arrival in which none comes later than the bound."""
    times = values_of(events.column(time), time, 0)
    order = np.argsort([one + choose.randint(0, bound) for one in times.tolist()], kind="stable")
    return events.take(pa.array(order))


def fed(
    make: Callable[[], stretto.Matcher], events: pa.Table, choose: random.Random, *, saves: bool = False
) -> list[Row]:
    rows: list[Row] = []
    matcher, begin = make(), 0
    while begin < events.num_rows:
        end = begin + choose.choice([0, 1, 1, 2, 5, events.num_rows])
        rows += matcher.push(events.slice(begin, end - begin)).to_pylist()
        if saves:
            matcher = make().restore(matcher.snapshot())
        begin = end
    rows += matcher.finish().to_pylist()
    assert matcher.position == events.num_rows
    assert matcher.late == 0
    return rows


@pytest.mark.parametrize("which", [ceql_cases, sase_cases])
def test_events_out_of_order_give_the_rows_of_match(which: Any) -> None:
    """Whatever the split, with snapshots; the rows of the input as they were pushed."""
    found = moved = 0
    for seed, query, events in which():
        choose = random.Random(seed)
        time = query.schema.time
        for bound in (0, choose.choice([1, 2, 5]), 1000):
            arriving = shuffled(events, time, bound, choose)
            moved += not arriving.equals(events)
            for output in ("events", "positions"):
                try:
                    right = stretto.match(query, arriving, time=time, output=output).to_pylist()
                except StrettoError:
                    continue
                found += len(right)
                capacity = choose.choice([1, 64])

                def make(query: Any = query, bound: int = bound, output: str = output, capacity: int = capacity) -> Any:
                    return stretto.Matcher(query, disorder=bound, output=output, capacity=capacity)

                for saves in (False, True):
                    got = fed(make, arriving, choose, saves=saves)
                    assert list(map(repr, got)) == list(map(repr, right)), (
                        seed,
                        bound,
                        query.text,
                        arriving.to_pylist(),
                    )
    assert found > cases(120) // 6
    assert moved > cases(120) // 12


def pairs(*times: int) -> list[Row]:
    """A and B by turns."""
    return [{"type": "AB"[i % 2], "t": time} for i, time in enumerate(times)]


def test_late_events_are_refused_counted_or_handed_over() -> None:
    events = pairs(1, 20, 5, 14, 30)
    matcher = stretto.Matcher(CEQL, time="t", disorder=10)
    with pytest.raises(DataError, match="row 2 is late: its time is 5, and the punctuation stands at 10"):
        matcher.push(events)
    assert matcher.position == 0
    assert matcher.push(events[:2]).num_rows == 0  # nothing of the batch was read
    for late in ("drop", "side"):
        matcher = stretto.Matcher(CEQL, time="t", disorder=10, late=late)
        matcher.push(events)
        assert matcher.late == matcher.stats["late"] == 1
        assert matcher.late_events().to_pylist() == ([{"type": "A", "t": 5}] if late == "side" else [])
        assert matcher.late_events().num_rows == 0
        assert matcher.punctuation == 20


def test_results_come_when_they_are_certain() -> None:
    matcher = stretto.Matcher(CEQL, time="t", disorder=3, output="positions")
    assert matcher.push(pairs(4, 6)).num_rows == 0
    assert matcher.stats["waiting"] == 2
    assert not matcher.idle
    assert matcher.push([{"type": "C", "t": 9}]).num_rows == 0  # an event at 6 is on time
    assert matcher.push([{"type": "C", "t": 10}]).column("end").to_pylist() == [1]
    assert matcher.push([{"type": "B", "t": 8}]).num_rows == 0
    assert matcher.advance(9).select(["start", "end"]).to_pylist() == [{"start": 0, "end": 4}]
    assert matcher.advance(2).num_rows == 0  # says nothing new
    assert matcher.finish().num_rows == 0
    with pytest.raises(OptionError, match="finished"):
        matcher.push([])


def test_without_end_only_punctuations_tell() -> None:
    matcher = stretto.Matcher(CEQL, time="t", disorder=math.inf, output="positions")
    assert matcher.push(pairs(100, 200, 1, 2)).num_rows == 0
    assert matcher.advance(50).select(["start", "end"]).to_pylist() == [{"start": 2, "end": 3}]
    with pytest.raises(DataError, match="goes back from 50 to 40"):
        matcher.advance(40)


def test_equal_times_are_ordered_by_sequence() -> None:
    events = [{"type": "B", "t": 1, "n": 2}, {"type": "A", "t": 1, "n": 1}]
    assert not fed(lambda: stretto.Matcher(CEQL, time="t", disorder=1), pa.Table.from_pylist(events), random.Random(0))
    matcher = stretto.Matcher(CEQL, time="t", disorder=1, sequence="n")
    matcher.push(events)
    assert matcher.finish().select(["start", "end"]).to_pylist() == [{"start": 1, "end": 0}]


@pytest.mark.parametrize("disorder", ["2 seconds", dt.timedelta(seconds=2), 2_000_000])
def test_durations(disorder: Any) -> None:
    zero = dt.datetime(2024, 1, 1)
    events = [{"type": kind, "t": zero + dt.timedelta(seconds=at)} for kind, at in [("B", 2), ("A", 1), ("A", 5)]]
    matcher = stretto.Matcher("SELECT * FROM S WHERE A; B", time="t", disorder=disorder, output="positions")
    assert matcher.push(events).column("positions").to_pylist() == [[0, 1]]
    assert matcher.punctuation == zero + dt.timedelta(seconds=3)


def test_a_negation_at_the_end_is_decided_by_the_punctuation() -> None:
    text = "PATTERN SEQ(A a, ~(B b)) WHERE skip_till_next_match { } WITHIN 5"
    matcher = stretto.Matcher(text, time="t", disorder=2, output="positions")
    assert matcher.push([{"type": "A", "t": 1}, {"type": "C", "t": 7}]).num_rows == 0
    assert matcher.push([{"type": "C", "t": 9}]).column("positions").to_pylist() == [[0]]


def test_a_row_that_overflows_is_named_as_it_was_pushed_and_left_out() -> None:
    text = "SELECT * FROM S WHERE A AS x FILTER x[v + 1 > 0]"
    events = [{"type": "A", "t": 3, "v": 1}, {"type": "A", "t": 2, "v": 2**63 - 1}]
    matcher = stretto.Matcher(text, time="t", disorder=5)
    matcher.push(events)
    with pytest.raises(
        DataError, match=r"at row 1: .*\nthe row was left out; all others were taken, and the next call gives"
    ):
        matcher.advance(4)
    with pytest.raises(SnapshotError, match=r"its matches were not given yet: push\(\[\]\) gives them"):
        matcher.snapshot()
    assert matcher.push([]).column("start").to_pylist() == [0]
    assert matcher.snapshot()
    assert matcher.finish().num_rows == 0


@pytest.mark.parametrize("seed", range(cases(40)))
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { sum(a[..i].v) > 0 AND a[1].v * 4 > b.v } WITHIN 10",
        "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.k = b.k } WITHIN 10 RETURN a.v * b.v AS product",
        "PATTERN SEQ(A a, ~(B b)) WHERE skip_till_next_match { a.v + 1 > b.v } WITHIN 5",
    ],
)
def test_only_rows_that_overflow_are_left_out(text: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "NAMED", 99)
    choose = random.Random(seed)
    events = [
        {
            "type": choose.choice("AB"),
            "t": at + choose.randint(0, 4),
            "k": choose.choice("xy"),
            "v": choose.randint(1, 9),
        }
        for at in range(30)
    ]
    for event in choose.sample(events, 3):
        event["v"] = 2**63 - 1
    matcher = stretto.Matcher(text, time="t", disorder=5, output="positions")
    refused, found, begin = [], [], 0

    def call(operation: Callable[[], pa.Table]) -> None:
        try:
            found.extend(operation().to_pylist())
        except DataError as error:
            message = str(error).split("; all others")[0]
            refused.extend(
                int(row) for row in re.findall(r"\d+", " ".join(re.findall(r"(?:at|with) rows? ([\d, ]+)", message)))
            )

    while begin < len(events):
        end = begin + choose.choice([1, 4, 30])
        call(lambda begin=begin, end=end: matcher.push(events[begin:end]))  # type: ignore[misc]
        begin = end
    call(matcher.finish)
    call(matcher.finish)
    left = [number for number in range(len(events)) if number not in refused]
    right = stretto.match(text, [events[number] for number in left], time="t", output="positions").to_pylist()
    for row in right:
        row |= {
            "start": left[row["start"]],
            "end": left[row["end"]],
            "positions": [left[one] for one in row["positions"]],
        }
        row["positions"].sort()
    for row in found:
        row["positions"].sort()
    assert found == right


def test_a_long_stream_keeps_little() -> None:
    rows = 100_000
    choose = np.random.default_rng(3)
    time = np.arange(rows)
    order = np.argsort(time + choose.integers(0, 50, rows), kind="stable")
    events = pa.table({"type": pa.array(np.array(["A", "B", "C"])[choose.integers(0, 3, rows)]), "t": time}).take(order)
    matcher = stretto.Matcher(CEQL, time="t", disorder=50, output="positions")
    tables = [matcher.push(events.slice(at, 5_000)) for at in range(0, rows, 5_000)]
    assert matcher.stats["waiting"] <= 51
    assert len(matcher._executor.arrivals or []) < 6_000
    assert pa.concat_tables([*tables, matcher.finish()]).equals(
        stretto.match(CEQL, events, time="t", output="positions")
    )


def test_what_cannot_be_sorted_is_refused() -> None:
    for options, words in [
        ({"disorder": 5}, "disorder= sorts events by time"),
        ({"disorder": "soon", "time": "t"}, "expected ticks of the time column"),
        ({"disorder": -1, "time": "t"}, "not negative"),
        ({"sequence": "n", "time": "t"}, "give disorder= as well"),
        ({"late": "side", "time": "t"}, "'error' or 'drop'"),
        ({"late": "later", "time": "t", "disorder": 1}, "'side'"),
    ]:
        with pytest.raises(OptionError, match=words):
            stretto.Matcher(CEQL, **options)
    with pytest.raises(OptionError, match="sets of matches"):
        stretto.Matcher(SASE, time="t", disorder=1, sets=True)
    matcher = stretto.Matcher(CEQL, time="t", disorder=1)
    with pytest.raises(OptionError, match=r"prime\(\)"):
        matcher.prime([{"type": "A", "t": 1}])
    with pytest.raises(OptionError, match="unit is not known"):
        stretto.Matcher(CEQL, time="t", disorder="1 second").push([{"type": "A", "t": 1}])
    with pytest.raises(DataError, match="no column 'm'"):
        stretto.Matcher(CEQL, time="t", disorder=1, sequence="m").push([{"type": "A", "t": 1}])
    query = stretto.compile(CEQL, pa.schema([("type", pa.string()), ("t", pa.int64())]))
    with pytest.raises(OptionError, match="sorts events by time"):
        stretto.Matcher(query, disorder=1)


def test_snapshots_belong_to_a_disorder() -> None:
    matcher = stretto.Matcher(CEQL, time="t", disorder=3)
    matcher.push(pairs(4, 6))
    for other in (None, 4):
        with pytest.raises(SnapshotError, match=rf"disorder= was '3', is {other and str(other)!r}"):
            stretto.Matcher(CEQL, time="t", disorder=other).restore(matcher.snapshot())
