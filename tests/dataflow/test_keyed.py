"""A plan for every group by itself: one dataflow with keys gives what a dataflow for each group gives."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import Dataflow, Stream, datalog, plan, stream
from stretto.dataflow.stream import GROUPS, keyed
from stretto.errors import DataError, OptionError, QueryError
from tests.cases import dataflow as random_plans
from tests.cases.dataflow.drawing import built, final_events
from tests.cases.datalog import SOURCES, program_of, rows_of
from tests.conftest import cases
from tests.reference.dataflow import EVER, Event, evaluate

KEY = {"key of groups": pa.string(), "other": pa.int64()}
GIVEN = [("x", 1), ("x", 2), ("y", 1)]


def agree(outputs: dict[str, Stream], events: Mapping[str, list[Event]], choose: random.Random) -> int:
    """Rows of the groups, by the reference; they are the same in both ways."""
    parts: dict[tuple[Any, ...], dict[str, list[Event]]] = {key: defaultdict(list) for key in GIVEN}
    whole: dict[str, list[Event]] = defaultdict(list)
    for name, some in events.items():
        for event in some:
            for key in choose.sample(GIVEN, choose.randint(1, 2)):
                parts[key][name].append(event)
                whole[name].append(event._replace(row=(*event.row, *key)))
    whole[GROUPS] = [Event(key, EVER) for key in GIVEN]
    found = evaluate(keyed(outputs, KEY), whole, levels=40)
    wanted: dict[str, Any] = {name: {} for name in outputs}
    for key, part in parts.items():
        for name, history in evaluate(outputs, part, levels=40).items():
            wanted[name] |= {(*row, *key): spans for row, spans in history.items()}
    assert found == wanted
    return sum(map(len, found.values()))


@pytest.mark.parametrize("seed", range(cases(60)))
def test_random_plans_by_groups(seed: int) -> None:
    case = random_plans.case(seed)
    agree(built(case), final_events(case), random.Random(seed))


@pytest.mark.parametrize("seed", range(cases(60)))
def test_random_programs_with_facts_by_groups(seed: int) -> None:
    choose = random.Random(seed)
    try:
        relations = datalog(program_of(seed), SOURCES)
    except (QueryError, OptionError):
        return
    events: dict[str, list[Event]] = defaultdict(list)
    for at in range(8):
        name, *row = rows_of(choose)
        events[name].append(Event(tuple(row), at, at + choose.randint(1, 9)))
    try:
        agree(relations, events, choose)
    except DataError as error:  # a value that has no place in its column
        assert "by zero" in str(error) or "64" in str(error)  # noqa: PT017


def test_an_output_of_constant_rows_is_in_every_group() -> None:
    facts = Stream(plan.Constant({"n": pa.int64()}, ((1,), (2,))))
    made = keyed({"facts": facts}, {"k": pa.string()})["facts"]
    assert list(made.schema) == ["n", "k"]
    found = evaluate({"facts": made}, {GROUPS: [Event(("x",), EVER), Event(("y",), EVER)]})["facts"]
    assert sorted(found) == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]


EVENTS = stream("events", {"type": str, "user": str, "cost": int})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a[cost], b[cost] FROM events WHERE A AS a ; B AS b WITHIN 3 EVENTS",
        "SELECT STRICT a, b FROM events WHERE A AS a ; B AS b PARTITION BY [user] WITHIN 50 [vs]",
        "SELECT b FROM events WHERE A AS a ; B AS b WITHIN 5 [vs] CONSUME BY ANY",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [user] AND a.cost < b.cost } WITHIN 10 RETURN a.cost AS x, b.cost AS y",
        "PATTERN SEQ(A a, B b) WHERE strict_contiguity { a.cost < b.cost } RETURN a.cost AS x, b.cost AS y",
        "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [user] AND a.cost < b.cost } RETURN a.cost AS x, b.cost AS y",
        stretto.AFA({"type": str, "cost": int}, {"top": int}, window=20)
        .arc("q0", "q1", "e.type = 'A'", "top = e.cost")
        .arc("q1", "q2", "e.type = 'B' AND e.cost > r.top")
        .final("q2"),
    ],
)
def test_matchers_by_groups(query: Any) -> None:
    choose = random.Random(7)
    events = [
        {
            "type": choose.choice("AB"),
            "user": choose.choice("uv"),
            "cost": choose.randint(0, 9),
            "vs": at,
            "k": choose.choice("xyz"),
        }
        for at in range(80)
    ]
    made = EVENTS.recognize(query)
    found = run(keyed({"out": made}, {"k": pa.string()})["out"], events)
    wanted = []
    for key in "xyz":
        part = [{name: one for name, one in event.items() if name != "k"} for event in events if event["k"] == key]
        wanted += [{**row, "k": key} for row in run(made, part)]
    assert len(found) > 3
    assert sorted(map(str, map(sorted, map(dict.items, found)))) == sorted(
        map(str, map(sorted, map(dict.items, wanted)))
    )


def run(made: Stream, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    flow = Dataflow(out=made)
    flow.push("events", pa.Table.from_pylist(events))
    flow.finish()
    flow.run_until_idle()
    rows: list[dict[str, Any]] = flow.output("out").to_pylist()
    return rows


def test_matchers_that_go_over_partitions_are_refused() -> None:
    for query, reason in (
        ("SELECT * FROM events WHERE A ; B PARTITION BY [user] CONSUME BY ANY", "CONSUME BY ANY goes over partitions"),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity { [user] }", "strict contiguity counts all events"),
    ):
        with pytest.raises(OptionError, match=reason):
            keyed({"out": EVENTS.recognize(query)}, {"k": pa.string()})
