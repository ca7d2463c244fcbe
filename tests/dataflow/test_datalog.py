"""Datalog as dataflows: at every time, what naive evaluation of the program gives for the sources' snapshots."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import Dataflow, constant, datalog, stream
from stretto.errors import LimitError, OptionError
from tests.cases import agree
from tests.cases import datalog as programs
from tests.conftest import blocks, cases
from tests.reference.dataflow import EVER, Event, Span, evaluate, history
from tests.reference.dataflow import FOREVER as LAST

#: Every program has kernels of its own, which take seconds to compile.


@pytest.mark.parametrize("seeds", blocks(cases(600, compiled=12), most=12), ids=str)
def test_random_programs(seeds: range) -> None:
    agree(programs, seeds)


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


# ---- Programs by hand


def run(text: str, sources: dict[str, dict[str, type]], events: dict[str, list[dict[str, Any]]], **options: Any) -> Any:
    """The histories of all relations."""
    flow = Dataflow(**datalog(text, sources, **options))
    for name, rows in events.items():
        flow.push(name, [{"vs": 0, "ve": None, "ve_new": None} | row for row in rows])
    flow.finish()
    flow.run_until_idle()
    return {name: history(flow.output(name)) for name in flow._outputs}


def always(*rows: tuple[Any, ...]) -> dict[tuple[Any, ...], list[Span]]:
    return {row: [Span(0, LAST, 1)] for row in rows}


def test_an_automaton_that_comes_as_data() -> None:
    """Figure 4: AB*A on ABBA, with the seeds eight outputs."""
    text = """
    patterns(B, L, 'S') :- symbol(B, _), L = B - 1.
    patterns(B, T, Q) :- symbol(T, A), transition(R, Q, A), patterns(B, P, R), P = T - 1.
    complete(B, T) :- patterns(B, T, 'F').
    """
    sources: dict[str, dict[str, type]] = {
        "symbol": {"id": int, "symbol": str},
        "transition": {"source": str, "target": str, "symbol": str},
    }
    arcs = [("S", "M", "A"), ("M", "M", "B"), ("M", "F", "A")]
    found = run(
        text,
        sources,
        {
            "symbol": [{"id": at, "symbol": one} for at, one in enumerate("ABBA", 1)],
            "transition": [dict(zip(sources["transition"], arc, strict=True)) for arc in arcs],
        },
    )
    seeds = [(1, 0, "S"), (2, 1, "S"), (3, 2, "S"), (4, 3, "S")]
    assert found["patterns"] == always(*seeds, (1, 1, "M"), (1, 2, "M"), (1, 3, "M"), (1, 4, "F"), (4, 4, "M"))
    assert found["complete"] == always((1, 4))


def test_costs_that_change() -> None:
    text = """
    route(X, Y, min<C>) :- road(X, Y, C).
    route(X, Z, min<C>) :- road(X, Y, C1), C1 >= 0, route(Y, Z, C2), C = C1 + C2.
    """
    roads = [("a", "b", 1, 0, 9), ("b", "c", 1, 3, None), ("a", "c", 5, 0, None), ("c", "a", 1, 0, None)]
    events = [{"src": a, "dst": b, "cost": c, "vs": vs, "ve": ve} for a, b, c, vs, ve in roads]
    found = run(text, {"road": {"src": str, "dst": str, "cost": int}}, {"road": events})["route"]
    assert {row: spans for row, spans in found.items() if row[:2] == ("a", "c")} == {
        ("a", "c", 5): [Span(0, 3, 1), Span(9, LAST, 1)],
        ("a", "c", 2): [Span(3, 9, 1)],
    }
    assert {row: spans for row, spans in found.items() if row[:2] == ("a", "a")} == {
        ("a", "a", 6): [Span(0, 3, 1), Span(9, LAST, 1)],
        ("a", "a", 3): [Span(3, 9, 1)],
    }


def test_each_solution_counts_once() -> None:
    text = """
    some(X, count<*>, sum<C>) :- road(X, _, C).
    each(X, count<*>, sum<C>, avg<C>) :- road(X, Y, C).
    two(sum<C>) :- road(_, Y, C). two(sum<C>) :- road(X, 'b', C).
    """
    roads = [("a", "b", 5), ("a", "c", 5), ("a", "c", 5), ("a", "d", 1)]
    events = [{"src": a, "dst": b, "cost": c} for a, b, c in roads]
    found = run(text, {"road": {"src": str, "dst": str, "cost": int}}, {"road": events})
    assert found == {"some": always(("a", 2, 6)), "each": always(("a", 3, 11, 11 / 3)), "two": always((16,))}


def test_a_bound_that_is_passed() -> None:
    text = "hops(X, Y, 1) :- e(X, Y). hops(X, Z, N + 1) :- hops(X, Y, N), e(Y, Z)."
    sources = {"e": {"src": int, "dst": int}}
    line = [{"src": at, "dst": at + 1} for at in range(4)]
    found = run(text, sources, {"e": line}, bound=4)
    assert (0, 4, 4) in found["hops"]
    with pytest.raises(LimitError, match="'hops' goes around more than 4 times"):
        run(text, sources, {"e": [*line, {"src": 4, "dst": 0}]}, bound=4)


@stretto.function
def is_near(a, b):  # type: ignore[no-untyped-def]
    return abs(a - b) < 1.5


def test_functions_constants_and_empty_bodies() -> None:
    text = """
    near(X, Y) :- x(X, A), x(Y, B), is_near(A, B), X != Y.
    flag(on, true) :- near(_, _).
    off(1) :- not x(_, _).
    three(X) :- X = 1 + 2.
    same(X) :- Y = 2.0, x(X, Y).
    both(X) :- x(X, A), y(A).
    """
    sources = {"x": {"id": int, "size": float}, "y": {"size": int}}
    x = [{"id": 1, "size": 1.0}, {"id": 2, "size": 2.0}, {"id": 3, "size": 9.0}]
    found = run(text, sources, {"x": x, "y": [{"size": 9}, {"size": 2}]})
    assert found == {
        "near": always((1, 2), (2, 1)),
        "flag": always(("on", True)),
        "off": {(1,): [Span(EVER, 0, 1)]},
        "three": {(3,): [Span(EVER, LAST, 1)]},
        "same": always((2,)),
        "both": always((2,), (3,)),
    }


def test_times_and_streams_as_sources() -> None:
    visits = stream("visits", {"who": str, "at": pa.timestamp("us")})
    relations = datalog(
        "early(W, min<T>) :- visit(W, T), T < '2024-01-03'. on(W) :- visit(W, '2024-01-02').",
        {"visit": visits.where("who != 'c'")},
    )
    flow = Dataflow(**relations)
    days = [("a", 2), ("a", 1), ("b", 3), ("c", 2)]
    flow.push("visits", [{"who": who, "at": dt.datetime(2024, 1, day), "vs": 0} for who, day in days])
    flow.finish()
    flow.run_until_idle()
    assert history(flow.output("early")) == always(("a", dt.datetime(2024, 1, 1)))
    assert history(flow.output("on")) == always(("a",))


def test_programs_one_after_the_other() -> None:
    first = datalog("r(X, Y) :- e(X, Y). r(X, Z) :- r(X, Y), e(Y, Z).", {"e": {"src": int, "dst": int}})
    second = datalog("circle(X) :- r(X, X).", first)
    flow = Dataflow(**second)
    flow.push(
        "e", [{"src": 1, "dst": 2, "vs": 0}, {"src": 2, "dst": 1, "vs": 5, "ve": 7}, {"src": 2, "dst": 3, "vs": 0}]
    )
    flow.finish()
    flow.run_until_idle()
    assert history(flow.output("circle")) == {(1,): [Span(5, 7, 1)], (2,): [Span(5, 7, 1)]}


def test_constants() -> None:
    kinds = constant(
        pa.table({"id": pa.array([1, 2], pa.int8()), "kind": ["a", "b"], "size": pa.array([1, 2], pa.float32())})
    )
    assert repr(kinds) == "Stream(id: int64, kind: string, size: double)"
    links = stream("links", {"id": int})
    flow = Dataflow(named=links.join(kinds, on="id").project("kind", size="size * 2"), kinds=kinds)
    flow.push("links", [{"id": 2, "vs": 3, "ve": 5}, {"id": 4, "vs": 3}])
    flow.finish()
    flow.run_until_idle()
    assert history(flow.output("named")) == {("b", 4.0): [Span(3, 5, 1)]}
    assert history(flow.output("kinds")) == {
        (1, "a", 1.0): [Span(EVER, LAST, 1)],
        (2, "b", 2.0): [Span(EVER, LAST, 1)],
    }
    with pytest.raises(OptionError, match="column 'id' has NULL"):
        constant([{"id": 1}, {"id": None}])
    with pytest.raises(OptionError, match="leave it out"):
        constant([{"id": 1, "vs": 3}])
