"""Plans as JSON text: what is read is the plan that was written, and what cannot travel is refused with the reason."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import Dataflow, Stream, datalog, fixpoint, fixpoints, plan, stream
from stretto.dataflow.plan_json import from_json, to_json
from stretto.errors import OptionError, QueryError
from stretto.query import predicate as p
from tests.cases import dataflow as random_plans
from tests.cases.dataflow.drawing import built
from tests.cases.datalog import SOURCES, program_of
from tests.conftest import cases

LINKS = stream("links", {"src": str, "dst": str})
ROADS = stream("roads", {"src": str, "dst": str, "cost": int, "share": float, "open": bool}, insert_only=True)


def reach(links: Stream) -> Stream:
    return fixpoint(
        lambda r: links.union(links.join(r, on={"dst": "src"}).project(src="src", dst="dst_right")).distinct(),
        schema=links.schema,
    )


def shape(outputs: dict[str, Stream]) -> list[str]:
    """What makes two plans the same, as snapshots see it."""
    return Dataflow(**outputs)._graph.identity


def travels(**outputs: Stream) -> dict[str, Stream]:
    text = to_json(outputs)
    again = from_json(text)
    assert to_json(again) == text
    assert shape(again) == shape(outputs)
    return again


def test_every_operator_and_the_loops_travel() -> None:
    odd = stream("odd one", {"a b": str, "in": int, "at": pa.timestamp("us", "UTC"), "day": pa.date32()})
    shorter = ROADS.where("cost < 10 AND NOT (src = 'it''s' OR open = TRUE)").project(
        "src", "dst", far="cost * 2 + 0.5", n=1
    )
    travels(
        windowed=ROADS.window(10, every=5).where("share >= 0.1"),
        forever=ROADS.window(None),
        shorter=shorter,
        joined=ROADS.join(LINKS, on={"dst": "src"}, where="cost + 1 > 2 AND dst_right LIKE 'a%'"),
        crossed=LINKS.join(LINKS, suffix="_2"),
        grouped=ROADS.aggregate(["src", "open"], n="count()", s="sum(cost)", a="avg(share)", least="min(cost)"),
        without=LINKS.difference(ROADS, on=["src"]),
        reach=reach(LINKS),
        of_reach=reach(reach(LINKS).distinct()),
        odd=odd.where(
            "`a b` IN ('x', '`') AND `in` BETWEEN -1 AND 3 AND at < '2024-01-02T03:04:05Z' AND day != '2024-01-02'"
        ),
    )


def test_relations_that_are_defined_together_travel_also_if_one_of_them_is_not_asked_for() -> None:
    even, odd = fixpoints(
        lambda even, odd: (
            LINKS.union(LINKS.join(odd, on={"dst": "src"}).project(src="src", dst="dst_right")).distinct(),
            LINKS.join(even, on={"dst": "src"}).project(src="src", dst="dst_right").distinct(),
        ),
        {"even": LINKS, "odd": LINKS},
        bound=7,
    )
    travels(even=even, odd=odd)
    again = travels(even=even)["even"].node
    assert isinstance(again, plan.Fixpoint)
    assert (again.loop.name, again.loop.bound, len(again.loop.bodies)) == ("even, odd", 7, 2)


def test_what_is_used_twice_is_one_node_afterwards() -> None:
    twice = LINKS.distinct()
    again = from_json(to_json({"a": twice, "b": twice}))
    assert again["a"].node is again["b"].node


def test_constants_travel_exactly() -> None:
    rows = (
        (1, 0.1, "it's", True, dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
        (-(2**63), float("inf"), "", False, dt.datetime(1, 1, 1)),
    )
    row = {"i": pa.int64(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_(), "t": pa.timestamp("us")}
    again = travels(made=Stream(plan.Constant(row, rows)))["made"].node
    assert isinstance(again, plan.Constant)
    assert repr(again.rows) == repr(rows)
    text = Stream(plan.Project({"z": pa.string()}, LINKS.node, (("z", p.Constant("src")),)))
    assert travels(text=text)["text"].node.values == (("z", p.Constant("src")),)  # type: ignore[attr-defined]


def test_matchers_travel_as_text() -> None:
    events = stream("events", {"type": str, "user": str, "cost": int})
    for pattern in (
        "SELECT * FROM events WHERE A AS a ; B FILTER a[cost > 3] PARTITION BY [user] WITHIN 10 s",
        stretto.compile("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [user] AND a.cost < b.cost } WITHIN 10"),
    ):
        found = events.where("cost > 0").recognize(pattern, time_unit="s")
        travels(found=found.window(5))


@pytest.mark.parametrize("seed", range(cases(40)))
def test_random_plans_travel(seed: int) -> None:
    travels(**built(random_plans.case(seed)))


@pytest.mark.parametrize("seed", range(cases(40)))
def test_random_programs_travel(seed: int) -> None:
    try:
        relations = datalog(program_of(seed), SOURCES)
        shape(relations)
    except (QueryError, OptionError):
        return
    travels(**relations)


def test_a_program_that_ends_for_a_reason_of_its_own_ends_afterwards() -> None:
    text = "e(1). e(Y) :- e(X), X < 10, Y = X + 1."
    again = travels(**datalog(text, {}))
    flow = Dataflow(**again)
    flow.run_until_idle()
    assert flow.output("e").num_rows == 10


def test_what_cannot_travel_is_refused() -> None:
    @stretto.function
    def double_of(x: float) -> float:
        return 2 * x

    with pytest.raises(OptionError, match="the function 'double_of' is known to this process only"):
        to_json({"x": ROADS.where("double_of(share) > 1")})
    node = stream("events", {"type": str, "cost": int}).recognize("SELECT * FROM events WHERE A").node
    assert isinstance(node, plan.Recognize)
    odd = Stream(plan.Recognize(node.schema, node.input, node.pattern, {"types": {"A"}}))
    with pytest.raises(OptionError, match=r"the option types=\{'A'\} does not travel"):
        to_json({"x": odd})


def test_an_afa_travels() -> None:
    machine = stretto.AFA({"cost": int}, {"n": int}, window=5)
    machine.arc("q0", "q1", then="n = e.cost").arc("q1", "end", when="e.cost > r.n").final("end")
    events = stream("events", {"cost": int})
    made = from_json(to_json({"x": events.recognize(machine, bag=True)}))["x"].node
    assert isinstance(made, plan.Recognize)
    assert (made.pattern, made.options) == (machine.frozen, {"bag": True})
    machine.arc("end", "end", when=lambda e, r: e.cost > 3)
    with pytest.raises(OptionError, match="Recognize AFA: the arc 'a2' has a Python function, which does not travel"):
        to_json({"x": events.recognize(machine)})


def damaged(change: Any) -> str:
    written = json.loads(to_json({"x": LINKS.where("src = dst").join(LINKS, on="src")}))
    change(written)
    return json.dumps(written)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no plan of stretto"),
        ("[]", "no plan of stretto"),
        (damaged(lambda w: w.update(version=2)), "version 2, and this stretto reads version 1"),
        (damaged(lambda w: w.pop("loops")), "the plan is damaged: KeyError: 'loops'"),
        (damaged(lambda w: w["nodes"][0].update(op="sauce")), "there is no operator 'sauce'"),
        (damaged(lambda w: w["nodes"][1].update(inputs=[7])), "node 1 reads node 7"),
        (damaged(lambda w: w["nodes"][2].update(on=[["src", "cost"]])), "damaged: KeyError: 'cost'"),
        (damaged(lambda w: w["nodes"][0]["columns"].update(src="binary")), "'binary' is no type of a payload"),
    ],
)
def test_damaged_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        from_json(text)


def test_a_condition_that_does_not_fit_is_refused_with_the_place() -> None:
    with pytest.raises(QueryError, match="did you mean 'src'"):
        from_json(damaged(lambda w: w["nodes"][1].update(condition="scr = dst")))
