"""Datalog as dataflows: at every time, what naive evaluation of the program gives for the sources' snapshots."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from stretto.dataflow import Dataflow, datalog
from stretto.dataflow.reference import EVER, Event, Span, evaluate, history
from stretto.dataflow.reference import FOREVER as LAST
from stretto.errors import QueryError
from stretto.languages.datalog import read_program
from tests.conftest import cases
from tests.datalog_cases import SOURCES, Unstratified, meaning_of, program_of, rows_of

FOREVER = 1 << 63
HORIZON = 6


def events_of(choose: random.Random) -> list[tuple[Any, ...]]:
    """Rows of sources, each with its start and end."""
    found = []
    for _ in range(choose.randint(0, 25)):
        start = choose.randrange(HORIZON)
        end = choose.choice((FOREVER, start + 1, choose.randint(start + 1, HORIZON + 1)))
        found.append((rows_of(choose), start, end))
    return found


def pushed(flow: Dataflow, events: list[tuple[Any, ...]], choose: random.Random, read: set[str]) -> None:
    """The events, out of order and in batches; some are first given with another end."""
    changes: list[tuple[str, dict[str, Any]]] = []
    late: list[tuple[str, dict[str, Any]]] = []
    for (name, *values), start, end in events:
        if name not in read:
            continue
        row = dict(zip(SOURCES[name], values, strict=True)) | {"vs": start, "ve": None if end == FOREVER else end}
        if end != FOREVER and choose.random() < 0.4:
            changes.append((name, row | {"ve": None, "ve_new": None}))
            late.append((name, row | {"ve": None, "ve_new": end}))
        else:
            changes.append((name, row | {"ve_new": None}))
        if choose.random() < 0.2:  # one that never was
            changes.append((name, row | {"ve_new": None}))
            late.append((name, row | {"ve_new": start}))
    choose.shuffle(changes)
    choose.shuffle(late)
    for name, row in changes + late:
        flow.push(name, [row])
        if choose.random() < 0.5:
            flow.run(choose.randint(1, 20))
    flow.finish()
    flow.run_until_idle()


def snapshots(flow: Dataflow, name: str) -> list[Counter[tuple[Any, ...]]]:
    """An output at each time."""
    found: list[Counter[tuple[Any, ...]]] = [Counter() for _ in range(HORIZON + 2)]
    for row in flow.output(name).to_pylist():
        start, end, cut = row.pop("vs"), row.pop("ve"), row.pop("ve_new")
        last = FOREVER if end is None else end
        for time in range(HORIZON + 2):
            if start <= time < last and (cut is None or time >= cut):
                found[time][tuple(row.values())] += 1 if cut is None else -1
    return found


def check(seed: int) -> str:
    """One random case; what became of it."""
    text = program_of(seed)
    program = read_program(text)
    choose = random.Random(seed)
    events = events_of(choose)
    given = [
        {name: {row[1:] for row, start, end in events if row[0] == name and start <= time < end} for name in SOURCES}
        for time in range(HORIZON + 2)
    ]
    try:
        right = [meaning_of(program, one) for one in given]
    except Unstratified:
        with pytest.raises(QueryError, match="depends on its own"):
            datalog(text, SOURCES)
        return "unstratified"
    try:
        relations = datalog(text, SOURCES)
    except QueryError as error:
        if re.search("may not end|no rule gives column|inside its recursion", str(error)):
            return "refused"
        raise
    flow = Dataflow(**relations)
    pushed(flow, events, choose, set(flow._graph.inputs))
    for name in relations:
        found = snapshots(flow, name)
        for time in range(HORIZON + 2):
            assert +found[time] == Counter(right[time][name]), (name, time)
        assert flow.punctuation(name) == FOREVER - 1
    return "compared"


@pytest.mark.parametrize("first", range(0, cases(400), 10))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 10):
        try:
            check(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}:\n{program_of(seed)}\n{error}") from error


def test_facts_have_always_been_there() -> None:
    text = "kind(1, 'a'). kind(2, 'b'). kind(1, 'a'). named(K, count<I>) :- link(I, J), kind(I, K). all(count<K>) :- kind(_, K)."
    sources = {"link": {"src": int, "dst": int}}
    flow = Dataflow(**datalog(text, sources))
    flow.push("link", [{"src": 1, "dst": 2, "vs": 5}, {"src": 1, "dst": 3, "vs": 7}, {"src": 3, "dst": 3, "vs": 7}])
    flow.finish()
    flow.run_until_idle()
    assert flow.output("kind").select(["column_1", "column_2", "vs", "ve"]).to_pylist() == [
        {"column_1": 1, "column_2": "a", "vs": EVER, "ve": None},
        {"column_1": 2, "column_2": "b", "vs": EVER, "ve": None},
    ]
    found = history(flow.output("named"))
    assert found == {("a", 1): [Span(5, 7, 1)], ("a", 2): [Span(7, LAST, 1)]}
    assert history(flow.output("all")) == {(2,): [Span(EVER, LAST, 1)]}
    given = {"link": [Event((1, 2), 5), Event((1, 3), 7), Event((3, 3), 7)]}
    assert evaluate(datalog(text, sources), given) == {
        "kind": {(1, "a"): [Span(EVER, LAST, 1)], (2, "b"): [Span(EVER, LAST, 1)]},
        "named": found,
        "all": {(2,): [Span(EVER, LAST, 1)]},
    }


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_facts_with_timestamps(unit: str) -> None:
    flow = Dataflow(**datalog("p(1). p(X) :- q(X).", {"q": {"x": int}}))
    time = pa.array([dt.datetime(2024, 1, 1)], pa.timestamp(unit))
    flow.push("q", pa.table({"x": [2], "vs": time}))
    flow.finish()
    flow.run_until_idle()
    found = flow.output("p").sort_by("x")
    assert found.schema.field("vs").type == pa.timestamp(unit)
    assert found.column("vs").to_pylist()[0].year == (1677 if unit == "ns" else 1)


def test_a_recursion_over_facts_alone() -> None:
    flow = Dataflow(**datalog("e(1, 2). e(2, 1). r(X, Y) :- e(X, Y). r(X, Z) :- r(X, Y), e(Y, Z).", {}))
    flow.run_until_idle()
    assert set(history(flow.output("r"))) == {(1, 1), (1, 2), (2, 1), (2, 2)}
    assert flow.punctuation("r") == LAST
