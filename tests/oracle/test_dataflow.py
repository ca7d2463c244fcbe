"""The dataflow against the reference evaluator on random iterative queries, and pinned cases that once went wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import stretto
from stretto.dataflow import Dataflow, Stream, fixpoint, stream
from tests.cases import agree, dataflow
from tests.cases.dataflow.drawing import (
    Advance,
    Case,
    Change,
    Loop,
    Push,
    Restore,
    Run,
    Source,
    Step,
    Take,
    random_case,
    valid,
)
from tests.conftest import COMPILED, blocks, cases
from tests.reference.dataflow import Span, history

#: Of how many plans: conditions and values are compiled for each.
PLANS = 20 if COMPILED else None


@pytest.mark.parametrize("seeds", blocks(cases(3_000, compiled=100)), ids=str)
def test_many_seeds(seeds: range) -> None:
    assert sum(agree(dataflow, seeds, case=lambda seed: dataflow.case(seed, PLANS))) > 0


@pytest.mark.parametrize("seeds", blocks(cases(1_500, compiled=60)), ids=str)
def test_loops_in_loops(seeds: range) -> None:
    """Inner loops are evaluated for each state of the outer one, whether or not there is a limit."""
    found = Counter(agree(dataflow, seeds, case=dataflow.nested_case, check=dataflow.check_nested))
    assert found["right"] > found["none"], found


def test_large_groups() -> None:
    """So many rows in few groups that all that grows has to."""
    sources = (Source("s", {"a": "int", "b": "int"}), Source("t", {"a": "int", "f": "float"}))
    steps = (
        Step("by_a", "aggregate", ("t",), (["a"],), {"n": "count()", "s": "sum(f)", "m": "min(f)", "x": "avg(f)"}),
        Step("all", "aggregate", ("t",), ([],), {"m": "max(a)", "n": "count()"}),
        Step("once", "distinct", ("s",)),
        Loop(
            ("r",),
            ({"a": "int", "b": "int"},),
            (
                Step("both", "join", ("r", "s"), (), {"on": {"b": "a"}}),
                Step("after", "project", ("both",), ("a",), {"b": "b_right"}),
                Step("either", "union", ("s", "after")),
                Step("set", "distinct", ("either",)),
            ),
            ("set",),
        ),
        Step("rest", "difference", ("t", "r"), (), {"on": {"a": "b"}}),
    )
    for seed in range(4):
        assert dataflow.check(random_case(sources, steps, ("by_a", "all", "once", "rest", "r"), seed, 250), seed) > 10


def pairs_of(kind: str) -> Any:
    """A pattern: an ``a``, later a ``b``, within 6."""
    if kind == "query":
        return "SELECT * FROM S WHERE a AS x; b AS y WITHIN 6 [vs]"
    afa = stretto.AFA(events={"type": str, "v": int}, register={"n": int}, initial={"n": 0}, start="q0", window=6)
    afa.arc("q0", "q1", when="e.type = 'a'", then={"n": "e.v"}).ignore("q1")
    return afa.arc("q1", "q2", when="e.type = 'b'", then={"n": "r.n + e.v"}).final("q2")


@pytest.mark.parametrize("kind", ["query", "automaton"])
def test_a_matcher_in_the_plan(kind: str) -> None:
    """What it finds as a stream: in its windows, and in a loop behind it. No two events at once, as arrival would order them."""
    steps = (
        Step("found", "recognize", ("s",), (pairs_of(kind),)),
        Step("windowed", "window", ("found",), (3,)),
        Step("begin", "project", ("found",), (), {"a": "start_time", "b": "end_time"}),
        Loop(
            ("r",),
            ({"a": "int", "b": "int"},),
            (
                Step("both", "join", ("r", "begin"), (), {"on": {"b": "a"}}),
                Step("after", "project", ("both",), ("a",), {"b": "b_right"}),
                Step("all", "union", ("begin", "after")),
                Step("once", "distinct", ("all",)),
            ),
            ("once",),
        ),
    )
    source = Source("s", {"type": "str", "v": "int"})
    found = 0
    for seed in range(cases(50, compiled=6)):  # an automaton is compiled each time it is made
        case = apart(random_case((source,), steps, ("found", "windowed", "r"), seed))
        found += dataflow.check(case, seed)
    assert found > 5


def apart(case: Case) -> Case:
    """Without a second event at one time."""
    taken: set[tuple[str, int]] = set()
    actions = []
    for action in case.actions:
        if isinstance(action, Push):
            kept = []
            for one in action.changes:
                if one.ve_new is None and (action.source, one.vs) in taken:
                    continue
                taken.add((action.source, one.vs))
                kept.append(one)
            actions.append(replace(action, changes=tuple(kept)))
        else:
            actions.append(action)
    return valid(replace(case, actions=tuple(actions)))


LINKS = Source("links", {"a": "int", "b": "int"})
A_LINK = Push("links", (Change((1, 2), 0), Change((2, 1), 3)), 4)

PINNED = {
    "a loop around a loop: the outer one's punctuation goes through the inner one": Case(
        sources=(LINKS,),
        steps=(
            Loop(
                ("r",),
                ({"v": "int"},),
                (
                    Step("start", "project", ("links",), (), {"v": "a"}),
                    Step("over", "join", ("r", "links"), (), {"on": {"v": "a"}}),
                    Step("after", "project", ("over",), (), {"v": "b"}),
                    Step("both", "union", ("start", "after")),
                    Loop(("q",), ({"v": "int"},), (Step("once", "distinct", ("both",)),), ("once",)),
                ),
                ("q",),
            ),
        ),
        outputs=("r",),
        actions=(A_LINK, Run()),
    ),
    "a relation of a loop that is not recursive": Case(
        sources=(LINKS,),
        steps=(
            Loop(
                ("r", "q"),
                ({"v": "int"}, {"v": "int"}),
                (
                    Step("start", "project", ("links",), (), {"v": "a"}),
                    Step("over", "join", ("r", "links"), (), {"on": {"v": "a"}}),
                    Step("after", "project", ("over",), (), {"v": "b"}),
                    Step("both", "union", ("q", "after")),
                    Step("once", "distinct", ("both",)),
                ),
                ("once", "start"),
            ),
        ),
        outputs=("q", "r"),
        actions=(A_LINK, Run(3), Take("q"), Restore(), Advance(6)),
    ),
}


@pytest.mark.parametrize("case", PINNED.values(), ids=PINNED)
def test_pinned(case: Case) -> None:
    assert dataflow.check(case)


def closure(links: Stream) -> Stream:
    def step(reach: Stream) -> Stream:
        return links.union(links.join(reach, on={"b": "a"}).project("a", b="b_right"))

    return fixpoint(step, links, bound=50)


def test_probing_leaves_time_to_others() -> None:
    """It goes around for as long as anybody lets it run, and still two loops get to know how far they are."""
    flow = Dataflow(far=closure(closure(stream("links", {"a": int, "b": int}))), speculation="probing")
    flow.push("links", [{"a": 1, "b": 2, "vs": 1}, {"a": 2, "b": 3, "vs": 2}], punctuation=5)
    assert all(flow.run(10) == 10 for _ in range(50))
    assert flow.punctuation("far") == 5
    loops = flow.stats["loops"]
    assert all(loop["speculative"] > 20 for loop in loops.values()), loops


def test_what_cancels_out_does_not_grow_from_round_to_round() -> None:
    """Each node has two links to the next: 2ⁿ ways. What was taken back is not taken back again for each way."""
    flow = Dataflow(ways=closure(stream("links", {"a": int, "b": int})))
    for again in range(6):
        for node in range(8):
            link = {"a": node, "b": node + 1, "vs": 0, "ve": 100}
            batch = [link, link] if not again else [link | {"ve_new": 0}, link]
            flow.push("links", [{"ve_new": None} | one for one in batch])
            flow.run(2)
        flow.run_until_idle()
    assert max(flow.stats["held"].values()) < 40_000, flow.stats["held"]
    flow.finish()
    flow.run_until_idle()
    found = history(flow.output("ways"))
    assert found[0, 8] == [Span(0, 100, 2**8)]
