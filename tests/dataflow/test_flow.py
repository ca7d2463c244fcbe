"""A running dataflow: what it takes and gives, and what it says of bad input."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import Dataflow, Stream, fixpoint, stream
from stretto.dataflow.operators import join, reduce
from stretto.dataflow.run import index
from stretto.errors import DataError, EngineError, OptionError, QueryError, SnapshotError, StrettoError
from tests.cases import agree
from tests.cases import dataflow as random_plans
from tests.conftest import cases
from tests.reference.dataflow import FOREVER, history

LINKS = {"src": int, "dst": int}
ROW = {"a": int, "b": float, "c": str, "d": bool, "e": pa.timestamp("s")}


def row(**other: Any) -> dict[str, Any]:
    return {"a": 1, "b": 2.5, "c": "x", "d": True, "e": dt.datetime(2024, 1, 1), "vs": 5} | other


def ticks(**options: Any) -> Dataflow:
    """An event at 5, and a punctuation at 3."""
    flow = Dataflow(out=stream("ticks", ROW, **options).where("a > 0"))
    flow.push("ticks", [row()], punctuation=3)
    return flow


def drained(flow: Dataflow, name: str = "out") -> list[dict[str, Any]]:
    flow.run_until_idle()
    rows: list[dict[str, Any]] = flow.output(name).to_pylist()
    return rows


# ---- What goes in and out


def test_payloads_of_every_type_come_out_as_they_went_in() -> None:
    given = [row(ve=9), row(a=-(2**62), b=float("-inf"), c="", d=False, e=dt.datetime(1969, 7, 20), vs=-4)]
    flow = Dataflow(out=stream("ticks", ROW))
    flow.push("ticks", given)
    found = flow_table = flow.output("out")
    assert not found.num_rows
    flow.run_until_idle()
    flow_table = flow.output("out")
    assert flow_table.schema.types == [
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.bool_(),
        pa.timestamp("s"),
        *[pa.int64()] * 3,
    ]
    assert flow_table.to_pylist() == [
        {**given[0], "ve": 9, "ve_new": None},
        {**given[1], "ve": None, "ve_new": None},
    ]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"src": [1], "dst": [2], "vs": [3]}),
        pa.table({"dst": pa.array([2], pa.int8()), "vs": pa.array([3], pa.int32()), "src": pa.array([1.0])}),
        pa.table({"src": [1], "dst": [2], "vs": [3], "ve": pa.array([None], pa.int64()), "ve_new": pa.nulls(1)}),
        [{"src": 1, "dst": 2, "vs": 3}],
        pa.chunked_array([[{"src": 1, "dst": 2, "vs": 3}]]).combine_chunks(),
    ],
    ids=["ints", "other numbers in another order", "nulls", "dicts", "structs"],
)
def test_anything_tabular_is_taken(table: Any) -> None:
    flow = Dataflow(out=stream("links", LINKS))
    try:
        flow.push("links", table)
    except DataError as error:
        pytest.skip(str(error))
    assert drained(flow) == [{"src": 1, "dst": 2, "vs": 3, "ve": None, "ve_new": None}]


def test_categories_are_strings() -> None:
    flow = Dataflow(out=stream("names", {"name": str}))
    flow.push("names", pa.table({"name": pa.array(["a", "b", "a"]).dictionary_encode(), "vs": [1, 2, 3]}))
    assert [one["name"] for one in drained(flow)] == ["a", "b", "a"]


def test_an_empty_batch_with_or_without_columns_is_none() -> None:
    flow = Dataflow(out=stream("links", LINKS))
    flow.push("links", [])
    flow.push("links", pa.table({"src": pa.nulls(0), "dst": pa.nulls(0), "vs": pa.nulls(0)}), punctuation=4)
    assert drained(flow) == []
    assert flow.punctuation("out") == 4
    assert flow.stats["events"] == 0


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_timestamps(unit: str, zone: str | None) -> None:
    kind = pa.timestamp(unit, zone)
    times = pa.array([0, 3600, 7200], pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
    times = times.cast(kind) if zone else times
    flow = Dataflow(out=stream("links", LINKS))
    flow.push(
        "links",
        pa.table({"src": [1, 2], "dst": [2, 3], "vs": times[:2], "ve": pa.array([times[2].as_py(), None], kind)}),
    )
    flow.run_until_idle()
    flow.advance(times[1].as_py())
    flow.run_until_idle()
    assert flow.punctuation("out") == times[1].as_py()
    found = flow.output("out")
    assert found.schema.types[2:] == [kind] * 3
    assert found.column("vs").to_pylist() == times[:2].to_pylist()
    assert found.column("ve").to_pylist() == [times[2].as_py(), None]
    flow.push("links", pa.table({"src": [2], "dst": [3], "vs": times[1:2], "ve_new": times[2:]}))
    flow.finish()
    assert drained(flow)[0]["ve_new"] == times[2].as_py()
    assert flow.punctuation("out") == FOREVER


def test_run_does_so_many_steps_and_says_how_many() -> None:
    flow = Dataflow(out=stream("links", LINKS).where("src > 0"))
    flow.push("links", [{"src": 1, "dst": 2, "vs": 3}], punctuation=4)
    assert flow.run(0) == 0
    assert flow.run(2) == 2
    rest = flow.run(1000)
    assert 0 < rest < 1000
    assert flow.run(1000) == 0
    assert flow.stats["steps"] == 2 + rest
    assert flow.stats["idle"]


def test_output_gives_what_came_since_the_last_call() -> None:
    flow = ticks()
    assert len(drained(flow)) == 1
    assert drained(flow) == []
    flow.push("ticks", [row(vs=8, ve=9)])
    assert [one["vs"] for one in drained(flow)] == [8]


def test_an_event_that_is_shortened_twice() -> None:
    flow = Dataflow(out=stream("links", LINKS))
    one = {"src": 1, "dst": 2, "vs": 3}
    flow.push("links", [{**one, "ve": None, "ve_new": None}, {**one, "ve": None, "ve_new": 20}])
    flow.push("links", [{**one, "ve": 20, "ve_new": 10}])
    flow.push("links", [{**one, "ve": 10, "ve_new": 3}, {**one, "ve": 5, "ve_new": None}])
    flow.run_until_idle()
    assert history(flow.output("out")) == {(1, 2): [(3, 5, 1)]}


def test_equal_events_are_counted() -> None:
    """Bags: of two equal events one retraction takes one."""
    flow = Dataflow(out=stream("links", LINKS), one=stream("links", LINKS).distinct())
    both = {"src": 1, "dst": 2, "vs": 3, "ve_new": None}
    flow.push("links", [both, both])
    flow.push("links", [{**both, "ve_new": 7}])
    flow.run_until_idle()
    assert history(flow.output("out")) == {(1, 2): [(3, 7, 2), (7, FOREVER, 1)]}
    assert history(flow.output("one")) == {(1, 2): [(3, FOREVER, 1)]}


def test_the_same_stream_under_two_names() -> None:
    made = stream("links", LINKS)
    flow = Dataflow(out=made, same=made)
    flow.push("links", [{"src": 1, "dst": 2, "vs": 3}])
    assert drained(flow) == drained(flow, "same") != []


# ---- Snapshots


def test_a_snapshot_is_a_state_and_the_dataflow_goes_on() -> None:
    flow = ticks()
    kept = flow.snapshot()
    assert flow.snapshot() == kept
    assert len(drained(flow)) == 1
    other = Dataflow(out=stream("ticks", ROW).where("a > 0"))
    other.restore(kept)
    other.push("ticks", [row(ve_new=6)])
    assert history(other_output(other))[(1, 2.5, "x", True, dt.datetime(2024, 1, 1))] == [(5, 6, 1)]


def other_output(flow: Dataflow) -> pa.Table:
    flow.run_until_idle()
    return flow.output("out")


def test_a_snapshot_that_does_not_fit_changes_nothing() -> None:
    flow = ticks()
    for wrong in (b"", b"stretto", flow.snapshot()[:-9], Dataflow(out=stream("ticks", ROW)).snapshot()):
        with pytest.raises(SnapshotError):
            flow.restore(wrong)
    assert len(drained(flow)) == 1


# ---- Every growth point


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays begin as small as they can be, so that each of them grows, and kernels stop and go on."""
    plain = index.Index.__init__
    monkeypatch.setattr(index.Index, "__init__", lambda self, width, keys, capacity=1: plain(self, width, keys, 1))
    monkeypatch.setattr(join, "CAPACITY", 1)
    monkeypatch.setattr(reduce, "MEMBERS", 1)
    monkeypatch.setattr(reduce, "CAPACITY", 1)


@pytest.mark.usefixtures("small")
def test_every_growth_point() -> None:
    agree(random_plans, range(300, 300 + cases(40, compiled=3)))  # each has its own selections and projections


@pytest.mark.usefixtures("small")
def test_an_event_that_is_cut_in_more_pieces_than_there_is_room_for() -> None:
    flow = Dataflow(out=stream("left", LINKS).difference(stream("right", LINKS), on="src"))
    flow.push("left", [{"src": 1, "dst": 1, "vs": 0}] * 5)
    flow.run_until_idle()
    flow.output("out")
    flow.push("right", [{"src": 1, "dst": 0, "vs": 2 * at, "ve": 2 * at + 1} for at in range(1, 100)])
    assert len(drained(flow)) > 5 * 99
    fresh = Dataflow(out=stream("left", LINKS).difference(stream("right", LINKS), on="src"))
    fresh.push("left", [{"src": 1, "dst": 1, "vs": 0}] * 5)
    fresh.push("right", [{"src": 1, "dst": 0, "vs": 2 * at, "ve": 2 * at + 1} for at in range(1, 100)])
    fresh.run_until_idle()
    spans = history(fresh.output("out"))[(1, 1)]
    assert [span.vs for span in spans] == [0, *range(3, 200, 2)]
    assert {span.copies for span in spans} == {5}


@pytest.mark.usefixtures("small")
def test_a_join_of_many_pairs() -> None:
    flow = Dataflow(out=stream("left", {"a": int}).join(stream("right", {"b": int})))
    flow.push("left", pa.table({"a": range(300), "vs": [0] * 300}))
    flow.push("right", pa.table({"b": range(40), "vs": [1] * 40}))
    flow.run_until_idle()
    assert flow.output("out").num_rows == 12_000


# ---- Bad input: each is refused with a reason, and nothing of the batch is taken

X = "(a=1, b=2.5, c='x', d=True, e=2024-01-01 00:00:00)"

REFUSED: dict[str, tuple[Callable[[Dataflow], Any], type[StrettoError], str]] = {
    "a punctuation that goes back, behind a batch": (
        lambda flow: flow.push("ticks", [row()], punctuation=2),
        DataError,
        "input 'ticks': the punctuation 2 goes back: the punctuation is 3",
    ),
    "a punctuation that goes back": (
        lambda flow: flow.advance(2, "ticks"),
        DataError,
        "input 'ticks': the punctuation 2 goes back: the punctuation is 3",
    ),
    "an event below the punctuation": (
        lambda flow: flow.push("ticks", [row(), row(vs=2)]),
        DataError,
        f"input 'ticks', row 1: the event {X} [2, ∞) comes too late: the punctuation is 3",
    ),
    "a retraction to below the punctuation": (
        lambda flow: flow.push("ticks", [row(), row(vs=1, ve=8, ve_new=2)]),
        DataError,
        f"input 'ticks', row 1: the event {X} [1, 8) comes too late: the punctuation is 3",
    ),
    "an end before the start": (
        lambda flow: flow.push("ticks", [row(), row(ve=4)]),
        DataError,
        f"input 'ticks', row 1: the event {X} [5, 4) ends (ve) before it begins (vs)",
    ),
    "an empty lifetime": (
        lambda flow: flow.push("ticks", [row(ve=5)]),
        DataError,
        f"input 'ticks', row 0: the event {X} [5, 5) is empty: ve = vs",
    ),
    "a retraction of what was never there": (
        lambda flow: flow.push("ticks", [row(), row(a=9, ve_new=6)]),
        DataError,
        f"input 'ticks', row 1: a retraction of {X.replace('1', '9', 1)} [5, ∞), which is not there: no such payload is alive",
    ),
    "a retraction of another end": (
        lambda flow: flow.push("ticks", [row(ve=9, ve_new=6)]),
        DataError,
        f"input 'ticks', row 0: a retraction of {X} [5, 9), which is not there: this payload lives in [5, ∞)",
    ),
    "a retraction of another start": (
        lambda flow: flow.push("ticks", [row(vs=4, ve_new=6)]),
        DataError,
        f"input 'ticks', row 0: a retraction of {X} [4, ∞), which is not there: this payload lives in [5, ∞)",
    ),
    "the same retraction twice": (
        lambda flow: flow.push("ticks", [row(ve_new=6), row(ve_new=6)]),
        DataError,
        f"input 'ticks', row 1: a retraction of {X} [5, ∞), which is not there any more: an earlier row of the batch retracts it",
    ),
    "a retraction to a later end": (
        lambda flow: flow.push("ticks", [row(ve=9, ve_new=12)]),
        DataError,
        f"input 'ticks', row 0: the event {X} [5, 9) is retracted to no earlier end: ve_new must be less than ve",
    ),
    "a retraction to before the start": (
        lambda flow: flow.push("ticks", [row(ve_new=4)]),
        DataError,
        f"input 'ticks', row 0: the event {X} [5, ∞) is retracted to before its start; ve_new = vs removes it",
    ),
    "a column that is missing": (
        lambda flow: flow.push("ticks", [{name: value for name, value in row().items() if name != "b"}]),
        DataError,
        "input 'ticks' needs the column 'b'; known columns: a, c, d, e, vs",
    ),
    "no start": (
        lambda flow: flow.push("ticks", [{name: value for name, value in row().items() if name != "vs"}]),
        DataError,
        "input 'ticks' needs the column 'vs'; known columns: a, b, c, d, e",
    ),
    "a column too many": (
        lambda flow: flow.push("ticks", [row(z=3)]),
        DataError,
        "input 'ticks' has no column 'z'; its columns: a, b, c, d, e, vs, ve, ve_new",
    ),
    "a string for an integer": (
        lambda flow: flow.push("ticks", [row(a="1")]),
        DataError,
        "input 'ticks': column 'a' is string, not int64",
    ),
    "a fraction for an integer": (
        lambda flow: flow.push("ticks", [row(a=1.5)]),
        DataError,
        "input 'ticks': column 'a' is double, not int64: Float value 1.500000 was truncated converting to int64",
    ),
    "an integer for a string": (
        lambda flow: flow.push("ticks", [row(c=3)]),
        DataError,
        "input 'ticks': column 'c' is int64, not string",
    ),
    "an integer for a truth value": (
        lambda flow: flow.push("ticks", [row(d=1)]),
        DataError,
        "input 'ticks': column 'd' is int64, not bool",
    ),
    "an integer for a time": (
        lambda flow: flow.push("ticks", [row(e=1)]),
        DataError,
        "input 'ticks': column 'e' is int64, not timestamp[s]",
    ),
    "NULL in the payload": (
        lambda flow: flow.push("ticks", [row(), row(a=None)]),
        DataError,
        "input 'ticks', row 1: 'a' is NULL; a payload has a value in every column",
    ),
    "NULL as a start": (
        lambda flow: flow.push("ticks", [row(), row(vs=None)]),
        DataError,
        "input 'ticks', row 1: 'vs' is NULL; every event has a start",
    ),
    "a start that is no time": (
        lambda flow: flow.push("ticks", [row(vs=1.5)]),
        DataError,
        "input 'ticks': column 'vs' is double; times are integers or timestamps",
    ),
    "another type of times": (
        lambda flow: flow.push("ticks", [row(vs=dt.datetime(2024, 1, 1))]),
        DataError,
        "input 'ticks': column 'vs' is timestamp[us], and times are int64 in this dataflow",
    ),
    "the least integer as a time": (
        lambda flow: flow.push("ticks", [row(vs=-(2**63))]),
        DataError,
        "input 'ticks': column 'vs' has the least or the greatest integer, which mean no time",
    ),
    "what is no table": (
        lambda flow: flow.push("ticks", 5),
        DataError,
        "cannot read events from int: give an Arrow, pandas, polars or DuckDB table, or dicts",
    ),
    "an unknown input": (
        lambda flow: flow.push("tick", [row()]),
        OptionError,
        "the dataflow has no input 'tick'; did you mean 'ticks'?",
    ),
    "a punctuation of an unknown input": (
        lambda flow: flow.advance(9, "tick"),
        OptionError,
        "the dataflow has no input 'tick'; did you mean 'ticks'?",
    ),
    "an unknown output": (
        lambda flow: flow.output("outt"),
        OptionError,
        "the dataflow has no output 'outt'; did you mean 'out'?",
    ),
    "the punctuation of an unknown output": (
        lambda flow: flow.punctuation("x"),
        OptionError,
        "the dataflow has no output 'x'; known outputs: out",
    ),
    "a punctuation that is no time": (
        lambda flow: flow.advance("soon"),
        OptionError,
        "a punctuation is an integer or a time, not 'soon'",
    ),
    "a truth value as a punctuation": (
        lambda flow: flow.advance(True),
        OptionError,
        "a punctuation is a time, not True",
    ),
    "a punctuation of another type": (
        lambda flow: flow.push("ticks", [row()], punctuation=dt.datetime(2024, 1, 1)),
        OptionError,
        "the punctuation is datetime.datetime(2024, 1, 1, 0, 0), and times are integers in this dataflow",
    ),
    "a punctuation that does not fit": (
        lambda flow: flow.push("ticks", [row()], punctuation=2**70),
        OptionError,
        "the punctuation 1180591620717411303424 does not fit into 64 bits",
    ),
    "less than no steps": (
        lambda flow: flow.run(-1),
        OptionError,
        "steps must be an integer from 0 on, not -1",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_reason_and_nothing_is_taken(what: str) -> None:
    wrong, kind, message = REFUSED[what]
    flow = ticks()
    before = flow.snapshot()
    with pytest.raises(kind) as caught:
        wrong(flow)
    assert str(caught.value) == message
    assert flow.stats["events"] == 1
    assert len(flow.snapshot()) >= len(before)  # strings of a refused batch may be known
    # It goes on: the event that is there can still be retracted, and others come.
    flow.push("ticks", [row(ve_new=6), row(vs=7, ve_new=None)])
    flow.finish()
    spans = history(other_output(flow))[(1, 2.5, "x", True, dt.datetime(2024, 1, 1))]
    assert spans == [(5, 6, 1), (7, FOREVER, 1)]
    assert flow.punctuation("out") == FOREVER


def test_after_the_end_nothing_comes() -> None:
    flow = ticks()
    flow.finish()
    flow.finish()
    with pytest.raises(DataError, match=r"row 0: .* comes too late: the input has ended"):
        flow.push("ticks", [row(vs=10**9)])
    with pytest.raises(DataError, match="the punctuation 9 goes back: the input has ended"):
        flow.advance(9)
    assert len(drained(flow)) == 1


def test_an_input_that_only_grows_takes_no_retraction() -> None:
    flow = ticks(insert_only=True)
    with pytest.raises(DataError) as caught:
        flow.push("ticks", [row(), row(ve_new=6)])
    assert str(caught.value) == "input 'ticks', row 1: a retraction, and the input was declared insert_only"
    assert len(drained(flow)) == 1


def test_one_punctuation_that_goes_back_moves_no_input() -> None:
    flow = Dataflow(out=stream("a", LINKS).union(stream("b", LINKS)))
    flow.advance(9, "b")
    with pytest.raises(DataError, match="input 'b': the punctuation 5 goes back: the punctuation is 9"):
        flow.advance(5)
    flow.advance(3, "a")
    flow.run_until_idle()
    assert flow.punctuation("out") == 3


def test_a_retraction_of_what_has_ended() -> None:
    """What ended by the punctuation is forgotten: its retraction comes too late, whatever it says."""
    flow = Dataflow(out=stream("links", LINKS))
    one = {"src": 1, "dst": 2, "vs": 3, "ve": 8}
    flow.push("links", [one], punctuation=10)
    with pytest.raises(DataError, match=r"\[3, 8\) comes too late: the punctuation is 10"):
        flow.push("links", [{**one, "ve_new": 5}])


def test_a_refused_batch_does_not_decide_what_times_are() -> None:
    flow = Dataflow(out=stream("links", LINKS))
    now = dt.datetime(2024, 1, 1)
    with pytest.raises(DataError, match="is empty"):
        flow.push("links", [{"src": 1, "dst": 2, "vs": now, "ve": now}])
    flow.push("links", [{"src": 1, "dst": 2, "vs": 1}])
    assert len(drained(flow)) == 1


def test_random_batches_with_one_wrong_row_are_refused_as_a_whole() -> None:
    """The rows before the wrong one are taken back: retractions of the right rows work afterwards."""
    for seed in range(cases(30)):
        choose = random.Random(seed)
        flow = Dataflow(out=stream("links", LINKS))
        there = [{"src": choose.randint(0, 2), "dst": 0, "vs": choose.randint(0, 3), "ve": 9} for _ in range(6)]
        flow.push("links", there)
        gone = choose.sample(there, 4)
        batch: list[dict[str, Any]] = [{**one, "ve_new": choose.randint(one["vs"], 8)} for one in gone]
        batch += [{"src": 5, "dst": 5, "vs": 1, "ve": 4, "ve_new": None}]
        choose.shuffle(batch)
        with pytest.raises(DataError, match=f"row {len(batch)}"):
            flow.push("links", [*batch, {"src": 7, "dst": 7, "vs": 0, "ve": 9, "ve_new": 3}])
        flow.push("links", batch)
        flow.finish()
        found = history(other_output(flow))
        fresh = Dataflow(out=stream("links", LINKS))
        fresh.push("links", [*({**one, "ve_new": None} for one in there), *batch])
        fresh.finish()
        assert found == history(other_output(fresh)), seed


# ---- Plans that are refused


def loop(body: Callable[[Stream], Any], **options: Any) -> Dataflow:
    return Dataflow(r=fixpoint(body, LINKS, name="reach", **options))


def automaton() -> stretto.AFA:
    return stretto.AFA(LINKS, window=5).arc("q0", "q1").final("q1")


def links() -> Stream:
    return stream("links", LINKS)


PLANS: dict[str, tuple[Callable[[], Any], str]] = {
    "a sum in a loop": (
        lambda: loop(lambda r: links().union(r.aggregate("src", dst="sum(dst)"))),
        "the loop 'reach' goes through Aggregate by src: dst := sum(dst): sum is not monotone, so the loop has no least fixed"
        " point; aggregate behind the loop",
    ),
    "a count in a loop": (
        lambda: loop(lambda r: links().union(r.aggregate("src", dst="count()"))),
        "the loop 'reach' goes through Aggregate by src: dst := count(*): count is not monotone, so the loop has no least fixed"
        " point; aggregate behind the loop",
    ),
    "negation of itself": (
        lambda: loop(lambda r: links().difference(r, on="src")),
        "the loop 'reach' goes through Difference src = src: what it takes away depends on its own result (negation is not"
        " stratified); subtract a stream from outside",
    ),
    "a matcher in a loop": (
        lambda: loop(lambda r: links().union(r.recognize(automaton()).project(src="1", dst="2"))),
        "the loop 'reach' goes through Recognize AFA: a matcher looks back in time; recognize before the loop or behind it",
    ),
    "a window in a loop": (
        lambda: loop(lambda r: links().union(r.where("src > 1").window(5)).distinct()),
        "a window applies to events of an input, and this stream comes from Recursion reach: window the inputs first",
    ),
    "a window over what is computed": (
        lambda: links().aggregate("src", many="count()").window(5),
        "a window applies to events of an input, and this stream comes from Aggregate by src: many := count(*): window the inputs"
        " first",
    ),
    "a loop that nothing feeds": (
        lambda: loop(lambda r: r.distinct()),
        "the loop 'reach' has no input from outside: nothing can ever be in it",
    ),
    "a loop with other columns": (
        lambda: loop(lambda r: links().project("src")),
        "the relation 'reach' and its query must have the same columns: (src: int64, dst: int64) and (src: int64) differ",
    ),
    "a query that gives nothing": (
        lambda: loop(lambda r: None),
        "the query of 'reach' must give a stream, not NoneType",
    ),
    "a bound that is none": (
        lambda: loop(lambda r: links(), bound=0),
        "bound must be a positive integer, not 0",
    ),
    "two inputs of one name": (
        lambda: Dataflow(x=links(), y=stream("links", {"src": int})),
        "two different inputs are named 'links'; define the stream once and use it twice",
    ),
    "an input without a name": (
        lambda: stream("", LINKS),
        "an input needs a name: stream('links', …), not ''",
    ),
    "no output": (Dataflow, "a dataflow needs an output: Dataflow(result=stream)"),
    "an output that is no stream": (lambda: Dataflow(x=5), "Dataflow(x=5): expected a stream, and got an int"),  # type: ignore[arg-type]
    "an unknown speculation": (
        lambda: Dataflow(x=links(), speculation="fast"),
        "speculation must be one of hybrid, probing, hwm, not 'fast'",
    ),
    "a list in a payload": (
        lambda: stream("x", {"a": pa.list_(pa.int64())}),
        "column 'a' is list<item: int64>: a payload has integers, floats, strings, truth values, times",
    ),
    "a lifetime in a payload": (
        lambda: stream("x", {"vs": int}),
        "column 'vs': events have their lifetimes beside the payload; leave it out",
    ),
    "a union of different rows": (
        lambda: links().union(stream("x", {"src": int, "dst": str})),
        "the streams of a union must have the same columns: (src: int64, dst: int64) and (src: int64, dst: string) differ",
    ),
    "a join on an unknown column": (
        lambda: links().join(links(), on="srcc"),
        "the stream has no column 'srcc'; did you mean 'src'?",
    ),
    "a join of different types": (
        lambda: links().join(stream("x", {"src": str}), on="src"),
        "'src' is int64 and 'src' is string: keys must have one type",
    ),
    "an unknown aggregate": (
        lambda: links().aggregate("src", x="median(dst)"),
        "'x' uses 'median', which is no aggregate; did you mean 'min'?",
    ),
}


@pytest.mark.parametrize("what", PLANS)
def test_plans_that_are_refused(what: str) -> None:
    wrong, message = PLANS[what]
    with pytest.raises(OptionError) as caught:
        wrong()
    assert str(caught.value) == message


def test_conditions_that_are_refused_show_the_place() -> None:
    with pytest.raises(QueryError) as caught:
        links().where("srcc > 1")
    assert str(caught.value).splitlines() == [
        "line 1, column 1: unknown attribute 'srcc'",
        "  srcc > 1",
        "  ^^^^",
        "hint: did you mean 'src'?",
    ]


def test_a_difference_with_a_stream_of_the_loop_on_the_left_is_fine() -> None:
    flow = loop(lambda r: links().union(r.project(src="dst", dst="src")).difference(stream("no", LINKS)).distinct())
    flow.push("links", [{"src": 1, "dst": 2, "vs": 0}])
    flow.push("no", [{"src": 2, "dst": 1, "vs": 4, "ve": 6}])
    flow.finish()
    flow.run_until_idle()
    assert history(flow.output("r")) == {
        (1, 2): [(0, FOREVER, 1)],
        (2, 1): [(0, 4, 1), (6, FOREVER, 1)],
    }


# ---- Values that cannot be computed

BIG = 2**62

STOPS: dict[str, tuple[Callable[[], Stream], list[dict[str, int]], str]] = {
    "an integer that overflows": (
        lambda: links().project(x="src * 4"),
        [{"src": BIG, "dst": 0, "vs": 1}],
        f"Project x := (src * 4): an integer leaves 64 bits; compute with floats (row src={BIG}, dst=0)",
    ),
    "a division by zero": (
        lambda: links().project(x="src / dst"),
        [{"src": 3, "dst": 0, "vs": 1}],
        "Project x := (src / dst): a value is divided by zero (row src=3, dst=0)",
    ),
    "a remainder by zero": (
        lambda: links().where("src > 2").project(x="src % dst"),
        [{"src": 3, "dst": 0, "vs": 1}],
        "Select src > 2 / Project x := (src % dst): a value is divided by zero (row src=3, dst=0)",
    ),
    "a condition that overflows": (
        lambda: links().where("src * 4 > 1"),
        [{"src": BIG, "dst": 0, "vs": 1}],
        f"Select (src * 4) > 1: an integer leaves 64 bits; compute with floats (row src={BIG}, dst=0)",
    ),
    "a sum that overflows": (
        lambda: links().aggregate(x="sum(src)"),
        [{"src": BIG, "dst": 0, "vs": 1}] * 2,
        "Aggregate: x := sum(src): a sum of integers leaves 64 bits; make them floats before: project(…, name='name * 1.0')",
    ),
}


@pytest.mark.parametrize("what", STOPS)
def test_a_value_that_cannot_be_computed_stops_the_dataflow_until_a_snapshot_is_restored(what: str) -> None:
    made, wrong, message = STOPS[what]
    flow = Dataflow(out=made())
    kept = flow.snapshot()
    flow.push("links", wrong)
    with pytest.raises(DataError) as caught:
        flow.run_until_idle()
    assert str(caught.value) == message
    with pytest.raises(EngineError) as after:
        flow.push("links", [{"src": 4, "dst": 2, "vs": 1}])
    assert str(after.value) == f"the dataflow has stopped ({message}); restore a snapshot, or make a new one"
    with pytest.raises(SnapshotError, match="the dataflow has stopped"):
        flow.snapshot()
    flow.restore(kept)
    flow.push("links", [{"src": 4, "dst": 2, "vs": 1}])
    assert len(drained(flow)) == 1


def test_a_division_by_zero_in_a_condition_is_no_row() -> None:
    """A comparison with NULL is false (SEMANTICS, streams)."""
    flow = Dataflow(out=links().where("src / dst > 1"))
    flow.push("links", [{"src": 3, "dst": 0, "vs": 1}, {"src": 3, "dst": 1, "vs": 1}])
    assert [one["dst"] for one in drained(flow)] == [1]


def test_sums_at_the_edge_of_64_bits() -> None:
    flow = Dataflow(out=links().aggregate(x="sum(src)", mean="avg(src)"))
    most = 2**63 - 1
    flow.push("links", [{"src": most - 1, "dst": 0, "vs": 0}, {"src": 1, "dst": 1, "vs": 0}])
    assert [(one["x"], one["mean"]) for one in drained(flow)] == [(most, 2.0**62)]
    flow.push("links", [{"src": -most - 1, "dst": 2, "vs": 5}])
    assert (-1, most / 3 - most / 3 - 1 / 3) in [(one["x"], one["mean"]) for one in drained(flow)]


def test_an_automaton_says_until_when_its_events_matter() -> None:
    flow = Dataflow(found=stream("letters", {"kind": str}, insert_only=True).recognize(letters()))
    assert flow.ends is None
    flow.push("letters", [{"kind": "a", "vs": 1}, {"kind": "b", "vs": 3}])
    flow.run_until_idle()
    assert flow.output("found").num_rows == 1
    assert flow.ends == 13
    flow.advance(13)
    flow.run_until_idle()
    flow.output("found")
    assert flow.ends == 11  # when the last match ends


def letters() -> stretto.AFA:
    """An a, and the b directly behind it."""
    afa = stretto.AFA({"kind": str}, window=10)
    return afa.arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").final("q2")
