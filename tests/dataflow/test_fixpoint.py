"""The flying fixed point: how a loop finds out how far it has got (FFP paper, sections 3.4, 3.5, 5.3 and 6)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from stretto.dataflow import Dataflow, Stream, fixpoint, fixpoints, stream
from stretto.dataflow.run.fixpoint import FixpointVertex
from stretto.dataflow.run.vertex import External, Speculative
from stretto.errors import EngineError, LimitError, OptionError
from tests.conftest import cases
from tests.reference.dataflow import FOREVER, Event, evaluate, history

MODES = ("hybrid", "probing", "hwm")
LINKS = {"src": int, "dst": int}


def links() -> Stream:
    return stream("links", LINKS)


def reach(
    made: Stream | None = None, *, distinct: bool = True, bound: int | None = None, other: Stream | None = None
) -> Stream:
    made = links() if made is None else made
    other = made if other is None else other

    def once(r: Stream) -> Stream:
        longer = made.union(other.join(r, on={"dst": "src"}).project("src", dst="dst_right"))
        return longer.distinct() if distinct else longer

    return fixpoint(once, LINKS, bound=bound, name="reach")


def link(src: int, dst: int, vs: int, ve: int | None = None, ve_new: int | None = None) -> dict[str, int | None]:
    return {"src": src, "dst": dst, "vs": vs, "ve": ve, "ve_new": ve_new}


def loop(flow: Dataflow, name: str = "reach") -> tuple[int, int, bool]:
    """How many speculative punctuations were sent, how many became definite, and whether one is under way."""
    found = flow.stats["loops"][name]
    return found["speculative"], found["definite"], found["in_flight"]


def rest(flow: Dataflow, punctuation: Any = None) -> Any:
    """Let it come to rest, and say how far its output is."""
    if punctuation is not None:
        flow.advance(punctuation)
    flow.run_until_idle()
    return flow.punctuation("reach")


def in_flight(flow: Dataflow) -> int:
    """How many speculative punctuations are in the loop: in queues, lodged at operators, or back at a fixed point."""
    graph = flow._graph
    queued = sum(isinstance(one, Speculative) for vertex in graph.vertices for queue in vertex.queues for one in queue)
    lodged = sum(len(vertex.guessed) for vertex in graph.vertices)
    return queued + lodged + sum(len(flying.back) for flying in graph.flying)


# ---- Promotion and recirculation


@pytest.mark.parametrize("mode", MODES)
def test_what_holds_becomes_definite(mode: str) -> None:
    flow = Dataflow(speculation=mode, reach=reach())
    flow.push("links", [link(1, 2, 3), link(2, 1, 5)])
    assert rest(flow) is None
    assert rest(flow, 10) == {"hybrid": 10, "probing": 10, "hwm": 6}[mode]
    assert len(history(flow.output("reach"))) == 4
    flow.finish()
    assert rest(flow) == FOREVER
    assert not loop(flow)[2]


@pytest.mark.parametrize("mode", MODES)
def test_at_most_one_speculative_punctuation_is_under_way(mode: str) -> None:
    """Whatever comes in while it goes around; in a loop with one path there is never a second copy."""
    choose = random.Random(4)
    flow = Dataflow(speculation=mode, reach=reach(other=stream("other", LINKS)))
    most = 0
    for time in range(0, 60, 3):
        for name in ("links", "other"):
            flow.push(name, [link(choose.randint(0, 4), choose.randint(0, 4), time + choose.randint(0, 5), time + 9)])
        flow.advance(time, choose.choice(["links", "other"]))
        for _ in range(choose.randint(1, 80)):
            flow.run(1)
            most = max(most, in_flight(flow))
            assert in_flight(flow) <= 1
            assert (in_flight(flow) == 1) == loop(flow)[2]
    assert most == 1
    flow.finish()
    flow.run_until_idle()
    assert in_flight(flow) == 0


def test_a_high_water_mark_goes_around_again_until_it_holds() -> None:
    """F3.b: not converged while rows from before it still go around; no definite punctuation then."""
    flow = Dataflow(speculation="hwm", reach=reach(distinct=False, bound=20))
    flow.push("links", [link(at, at + 1, 3) for at in range(12)], punctuation=100)
    before = 0
    while flow.run(1):
        speculative, definite, _ = loop(flow)
        if definite == 0:
            before = speculative
    assert before >= 3  # sent more than once before it was promoted
    assert loop(flow)[1] == 1
    assert flow.punctuation("reach") == 4  # hwm + 1: what begins at 3 is certain


def test_probing_lowers_the_guess_to_the_earliest_event_under_way() -> None:
    """d = min(s, eet)."""
    flow = Dataflow(speculation="probing", reach=reach(distinct=False, bound=20))
    flow.push("links", [link(at, at + 1, 3) for at in range(12)], punctuation=100)
    seen = set()
    while flow.punctuation("reach") != 100:
        assert flow.run(1)
        seen.add(flow.punctuation("reach"))
    assert seen == {None, 3, 100}


# ---- Lodging and lowering


def test_a_high_water_mark_lodges_where_the_inputs_are_not_so_far() -> None:
    flow = Dataflow(speculation="hwm", reach=reach(other=stream("other", LINKS)))
    flow.push("links", [link(1, 2, 7)], punctuation=20)
    flow.push("other", [link(1, 2, 1)], punctuation=2)
    assert rest(flow) is None
    assert loop(flow) == (1, 0, True)
    assert [vertex.label.split()[0] for vertex in flow._graph.vertices if vertex.guessed] == ["Join"]
    assert rest(flow, 20) == 8
    assert in_flight(flow) == 0


@pytest.mark.parametrize("mode", ["hybrid", "probing"])
def test_other_guesses_never_lodge(mode: str) -> None:
    flow = Dataflow(speculation=mode, reach=reach(other=stream("other", LINKS)))
    flow.push("links", [link(1, 2, 7)], punctuation=20)
    flow.push("other", [link(1, 2, 1)], punctuation=2)
    assert rest(flow) == 2
    assert in_flight(flow) == 0
    assert not loop(flow)[2]


def test_early_events_hold_back_high_water_marks_only() -> None:
    """Section 5.2: an event far ahead makes the guess lodge for long; probing and hybrid go on."""
    found = {}
    for mode in MODES:
        flow = Dataflow(speculation=mode, reach=reach())
        flow.push("links", [link(1, 2, 1), link(2, 3, 50)])
        found[mode] = [rest(flow, time) for time in (10, 20, 30, 40, 60)]
    assert found["hybrid"] == found["probing"] == [10, 20, 30, 40, 60]
    assert found["hwm"] == [None, None, None, None, 51]


# ---- Lulls, and nothing to do


def test_lulls() -> None:
    """Punctuations without data: hybrid and probing go on, a high-water mark does not before the end."""
    found = {}
    for mode in MODES:
        flow = Dataflow(speculation=mode, reach=reach())
        flow.push("links", [link(1, 2, 1)])
        found[mode] = [rest(flow, time) for time in range(10, 60, 10)]
        flow.finish()
        assert rest(flow) == FOREVER
    assert found["hybrid"] == found["probing"] == [10, 20, 30, 40, 50]
    assert found["hwm"] == [2] * 5


def test_hybrid_sends_nothing_without_external_progress() -> None:
    """One a punctuation where nothing else happens, at most two where there is data; none while idle."""
    flow = Dataflow(reach=reach())
    for time in range(20):
        flow.push("links", [link(time % 5, (time + 1) % 5, time, time + 30)])
        rest(flow)
        flow.run(50)
    assert loop(flow) == (0, 0, False)
    for time in range(20, 40):
        rest(flow, time)
    assert loop(flow) == (20, 20, False)
    assert flow.run(50) == 0
    for time in range(40, 60):
        flow.push("links", [link(time % 5, (time + 1) % 5, time, time + 30)], punctuation=time + 1)
        rest(flow)
    speculative, definite, flying = loop(flow)
    assert speculative <= 2 * definite
    assert definite >= 40
    assert not flying


def test_probing_goes_on_as_long_as_it_is_let_run() -> None:
    """run() lets it probe without end, as in the paper; run_until_idle() stops when probing tells nothing new."""
    flow = Dataflow(speculation="probing", reach=reach())
    flow.push("links", [link(1, 2, 1)], punctuation=5)
    assert rest(flow) == 5
    speculative, definite, _ = loop(flow)
    assert flow.run(300) == 300
    assert loop(flow)[0] > speculative + 20
    assert loop(flow)[1] == definite
    flow.run_until_idle()
    assert not loop(flow)[2]
    flow.finish()
    assert rest(flow) == FOREVER
    assert flow.run(300) == 0


# ---- External progress


def test_external_progress_is_that_of_all_inputs() -> None:
    flow = Dataflow(reach=reach(other=stream("other", LINKS)))
    flow.push("links", [link(1, 2, 1)], punctuation=9)
    assert rest(flow) is None  # other has said nothing
    assert loop(flow)[0] == 0
    flow.advance(4, "other")
    assert rest(flow) == 4
    flow.advance(12, "other")
    assert rest(flow) == 9
    assert loop(flow)[1] == 2


def test_external_progress_passes_the_loop_to_the_fixed_point_and_ends_there() -> None:
    flow = Dataflow(reach=reach())
    flow.advance(5)
    seen = []
    while flow.run(1):
        for vertex in flow._graph.vertices:
            waiting = [one for queue in vertex.queues for one in queue if isinstance(one, External)]
            if waiting:
                seen.append(vertex.label.split()[0])
    assert seen[-1] == "FFP"
    assert {"Union", "Distinct", "FFP"} <= set(seen)


# ---- Free running


def random_links(choose: random.Random, *, retract: bool) -> tuple[list[dict[str, Any]], list[Event]]:
    """Events and retractions in an order in which they may arrive, and what they come to."""
    pushed, final = [], []
    for _ in range(25):
        vs = choose.randint(0, 20)
        ve = choose.choice([None, vs + choose.randint(1, 15)])
        one = link(choose.randint(0, 5), choose.randint(0, 5), vs, ve)
        at = choose.random()
        pushed.append((at, one))
        end = FOREVER if ve is None else ve
        if retract and choose.random() < 0.4:
            new = choose.randint(vs, min(end, 40) - 1)
            pushed.append((at + choose.random(), {**one, "ve_new": new}))
            end = new
        if end > vs:
            final.append(Event((one["src"], one["dst"]), vs, end))
    pushed.sort(key=lambda item: item[0])
    return [one for _, one in pushed], final


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("plan", ["distinct", "paths", "nested", "mutual", "least"])
def test_free_running(mode: str, plan: str) -> None:
    """Input between any two steps, in any order, with retractions: the result is that of the inputs, whatever was under way."""
    for seed in range(cases(8)):
        choose = random.Random(seed)
        events, final = random_links(choose, retract=True)
        if plan == "paths":  # few rows go around, and always come to an end
            events = [{**one, "dst": one["dst"] + 6} if one["dst"] <= one["src"] else one for one in events]
            final = [Event((s, d + 6) if d <= s else (s, d), vs, ve) for (s, d), vs, ve in final]
        query = PLANS[plan]()
        flow = Dataflow(speculation=mode, reach=query)
        tables = []
        for one in events:
            flow.push("links", [one])
            flow.run(choose.randint(0, 4))
            if choose.random() < 0.2:
                tables.append(flow.output("reach"))
        flow.finish()
        flow.run_until_idle()
        tables.append(flow.output("reach"))
        assert history(pa.concat_tables(tables)) == evaluate({"reach": query}, {"links": final})["reach"], (seed, mode)
        assert flow.punctuation("reach") == FOREVER
        assert in_flight(flow) == 0


def nested() -> Stream:
    """Pairs that reach each other, over links that the inner loop makes of pairs of the outer one."""
    made = links()

    def outer(r: Stream) -> Stream:
        inner = fixpoint(
            lambda s: made.union(r).union(made.join(s, on={"dst": "src"}).project("src", dst="dst_right")).distinct(),
            LINKS,
            name="inner",
        )
        return inner.project(src="dst", dst="src").join(inner, on=["src", "dst"]).distinct()

    return fixpoint(outer, LINKS, name="outer")


def mutual() -> Stream:
    """Pairs at an even distance, by way of those at an odd one."""
    made = links()

    def both(odd: Stream, even: Stream) -> tuple[Stream, Stream]:
        return (
            made.union(made.join(even, on={"dst": "src"}).project("src", dst="dst_right")).distinct(),
            made.join(odd, on={"dst": "src"}).project("src", dst="dst_right").distinct(),
        )

    return fixpoints(both, {"odd": LINKS, "even": LINKS})[1]


def least() -> Stream:
    """The least node that can be reached from each node."""
    made = links()

    def once(r: Stream) -> Stream:
        return made.union(made.join(r, on={"dst": "src"}).project("src", dst="dst_right")).aggregate(
            "src", dst="min(dst)"
        )

    return fixpoint(once, LINKS, name="least")


PLANS: dict[str, Callable[[], Stream]] = {
    "distinct": reach,
    "paths": lambda: reach(distinct=False, bound=12),
    "nested": nested,
    "mutual": mutual,
    "least": least,
}


@pytest.mark.parametrize("mode", MODES)
def test_every_definite_punctuation_while_running_holds(mode: str) -> None:
    """At every step what lies before the output's punctuation is what the inputs come to in the end."""
    choose = random.Random(11)
    flow = Dataflow(speculation=mode, reach=reach(other=stream("other", LINKS)))
    given: dict[str, list[Event]] = {"links": [], "other": []}
    promised: list[tuple[int, int]] = []
    tables: list[pa.Table] = []
    for time in range(0, 40, 2):
        for name, events in given.items():
            one = link(choose.randint(0, 4), choose.randint(0, 4), time + choose.randint(0, 3), time + 8)
            flow.push(name, [one])
            events.append(Event((one["src"], one["dst"]), one["vs"] or 0, time + 8))
            if choose.random() < 0.7:
                flow.advance(time + choose.randint(1, 2), name)
        for _ in range(choose.randint(1, 100)):
            flow.run(1)
            found = flow.punctuation("reach")
            if found is not None and (not promised or found > promised[-1][1]):
                tables.append(flow.output("reach"))
                promised.append((len(tables), found))
    flow.finish()
    flow.run_until_idle()
    assert len(promised) > (1 if mode == "hwm" else 3)
    right = evaluate({"reach": reach(other=stream("other", LINKS))}, given)["reach"]
    for count, time in promised:
        now = history(pa.concat_tables(tables[:count]))
        assert clipped(now, time) == clipped(right, time)


def clipped(found: Any, time: int) -> set[tuple[Any, int, int, int]]:
    """What is the case before a time."""
    return {(row, vs, min(ve, time), n) for row, spans in found.items() for vs, ve, n in spans if vs < time}


# ---- Several loops


def test_loops_one_after_the_other_speculate_by_themselves() -> None:
    second = (
        fixpoint(lambda r: first.union(r.project(src="dst", dst="src")).distinct(), LINKS, name="both ways")
        if (first := reach())
        else None
    )
    assert second is not None
    flow = Dataflow(reach=first, ways=second)
    flow.push("links", [link(1, 2, 1), link(2, 3, 2)], punctuation=5)
    assert rest(flow) == 5
    assert flow.punctuation("ways") == 5
    assert set(flow.stats["loops"]) == {"reach", "both ways"}
    assert set(history(flow.output("ways"))) == {(1, 2), (2, 1), (2, 3), (3, 2), (1, 3), (3, 1)}


def test_relations_that_are_defined_together_share_one_speculation() -> None:
    flow = Dataflow(reach=mutual())
    flow.push("links", [link(1, 2, 1), link(2, 3, 2)], punctuation=5)
    assert rest(flow) == 5
    assert sum(isinstance(vertex, FixpointVertex) for vertex in flow._graph.vertices) == 2
    assert loop(flow, "odd, even") == (1, 1, False)


def test_a_loop_inside_of_another_is_one_with_it() -> None:
    flow = Dataflow(reach=nested())
    flow.push("links", [link(1, 2, 1), link(2, 3, 2), link(3, 1, 4, 9)], punctuation=5)
    assert rest(flow) == 5
    assert len(flow.stats["loops"]) == 1
    assert (2, 1) in history(flow.output("reach"))


def limits(made: Stream, **events: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What a query of pairs comes to, if all of these hold at all times; the reference says the same."""
    flow = Dataflow(found=made)
    for name, pairs in events.items():
        flow.push(name, [link(a, b, 0) for a, b in pairs])
    flow.finish()
    flow.run_until_idle()
    found = history(flow.output("found"))
    right = evaluate({"found": made}, {name: [Event(one, 0) for one in pairs] for name, pairs in events.items()})
    assert found == right["found"]
    return sorted(row for row, spans in found.items() for _ in range(spans[0].copies))


def test_a_loop_inside_of_another_has_its_limit_for_each_of_its_states() -> None:
    """Where values decide what follows from them, it matters when an inner loop reads the outer one."""
    x, y = stream("x", LINKS), stream("y", LINKS)

    def longest(r: Stream, a: Stream) -> Stream:
        pairs = r.join(a.rename(src="far", dst="near"), on={"src": "near"})
        return x.union(pairs.project(src="dst", dst="far")).aggregate("src", dst="max(dst)")

    nested = fixpoint(lambda r: y.union(fixpoint(lambda a: longest(r, a), LINKS, bound=20)), LINKS, bound=20)
    flat = fixpoints(lambda r, a: (y.union(a), longest(r, a)), {"r": LINKS, "a": LINKS}, bound=20)[0]
    wanted = [(1, 2), (2, 3), (3, 3), (3, 3)]
    assert limits(nested, x=[(1, 2)], y=[(2, 3), (3, 3)]) == wanted
    assert limits(flat, x=[(1, 2)], y=[(2, 3), (3, 3)]) == wanted


def test_a_bound_counts_the_turns_of_its_own_loop() -> None:
    """Three chains of three short links each, and a long link from each to the next: 11 links one after the other."""
    begin, short, long = stream("begin", {"v": int}), stream("short", LINKS), stream("long", LINKS)

    def over(nodes: Stream, made: Stream) -> Stream:
        return nodes.join(made, on={"v": "src"}).project(v="dst")

    def stations(inner: int, outer: int) -> Stream:
        def turn(r: Stream) -> Stream:
            near = fixpoint(lambda a: r.union(over(a, short)).distinct(), {"v": int}, bound=inner)
            return begin.union(over(near, long)).distinct()

        return fixpoint(turn, {"v": int}, bound=outer)

    def run(made: Stream) -> list[int]:
        flow = Dataflow(found=made)
        flow.push("begin", [{"v": 0, "vs": 0}])
        flow.push("short", [link(at, at + 1, 0) for at in range(11) if at not in (3, 7)])
        flow.push("long", [link(3, 4, 0), link(7, 8, 0)])
        flow.run_until_idle()
        return sorted(row[0] for row in history(flow.output("found")))

    assert run(stations(3, 2)) == [0, 4, 8]
    for bounds in ((2, 2), (3, 1)):
        with pytest.raises(LimitError, match="times, which is its bound"):
            run(stations(*bounds))


# ---- Beyond strong convergence


@pytest.mark.parametrize("mode", MODES)
def test_a_cycle_with_distinct_comes_to_an_end_when_it_is_cut(mode: str) -> None:
    """Section 6: an event and its retraction would follow each other around for ever."""
    flow = Dataflow(speculation=mode, reach=reach())
    ring = [link(at, (at + 1) % 4, 0) for at in range(4)]
    flow.push("links", [link(9, 0, 0), *ring])
    rest(flow)
    assert len(history(flow.output("reach"))) == 20
    # All of the ring hangs on itself when the one link into it is gone: and then the ring is cut.
    flow.push("links", [{**link(9, 0, 0), "ve_new": 5}, {**ring[3], "ve_new": 7}])
    flow.finish()
    assert rest(flow) == FOREVER
    flow.output("reach")
    steps = flow.stats["steps"]
    assert steps < 400
    fresh = Dataflow(reach=reach())
    fresh.push("links", [link(9, 0, 0, 5), *ring[:3], link(3, 0, 0, 7)])
    fresh.finish()
    rest(fresh)
    spans = history(fresh.output("reach"))
    assert spans[(9, 0)] == [(0, 5, 1)]
    assert spans[(0, 0)] == [(0, 7, 1)]
    assert spans[(0, 3)] == [(0, FOREVER, 1)]


def test_a_ring_that_nothing_supports_goes() -> None:
    """Rows that only derive each other are no fixed point: the least one has none of them."""
    seeds = stream("seeds", {"node": int})
    made = links()
    reached = fixpoint(
        lambda r: seeds.union(made.join(r, on={"src": "node"}).project(node="dst")).distinct(),
        {"node": int},
        name="reach",
    )
    flow = Dataflow(reach=reached)
    flow.push("seeds", [{"node": 0, "vs": 0, "ve_new": None}])
    flow.push("links", [link(0, 1, 0), link(1, 2, 0), link(2, 1, 0)])
    flow.run_until_idle()
    flow.push("seeds", [{"node": 0, "vs": 0, "ve_new": 6}])
    flow.finish()
    rest(flow)
    assert history(flow.output("reach")) == {(node,): [(0, 6, 1)] for node in (0, 1, 2)}


def test_a_loop_without_distinct_is_refused_unless_it_is_bounded() -> None:
    with pytest.raises(OptionError) as caught:
        Dataflow(reach=reach(distinct=False))
    assert str(caught.value) == (
        "the loop 'reach' may not come to an end: rows that are derived again go around again (it has a cycle without"
        " distinct); state how often anything may go around: bound=…"
    )


def test_values_that_are_computed_in_a_loop_need_a_bound() -> None:
    costs = stream("costs", {"src": int, "dst": int, "cost": int})

    def once(r: Stream) -> Stream:
        longer = costs.join(r, on={"dst": "src"}).project("src", dst="dst_right", cost="cost + cost_right")
        return costs.union(longer).distinct()

    with pytest.raises(
        OptionError, match=r"'route' may not come to an end: 'cost' is computed in it \(\(?cost \+ cost_right"
    ):
        Dataflow(route=fixpoint(once, costs, name="route"))
    Dataflow(route=fixpoint(once, costs, bound=5, name="route"))


@pytest.mark.parametrize("mode", MODES)
def test_a_query_that_diverges_hits_its_bound_and_the_dataflow_says_so_afterwards(mode: str) -> None:
    flow = Dataflow(speculation=mode, reach=reach(distinct=False, bound=6))
    flow.push("links", [link(1, 2, 1), link(2, 3, 1)], punctuation=2)
    assert flow.run(4) == 4
    kept = flow.snapshot()
    flow.run_until_idle()
    flow.push("links", [link(3, 1, 4)])
    with pytest.raises(LimitError, match="'reach' goes around more than 6 times, which is its bound"):
        flow.run_until_idle()
    for refused in (
        lambda: flow.push("links", [link(5, 6, 5)]),
        lambda: flow.advance(9),
        flow.finish,
        lambda: flow.run(1),
        flow.run_until_idle,
    ):
        with pytest.raises(EngineError, match=r"the dataflow has stopped \(.*'reach' goes around more than 6 times"):
            refused()
    # What was certain stays certain, and can be asked for.
    assert flow.punctuation("reach") == 2
    flow.restore(kept)
    assert rest(flow) == 2
    assert set(history(flow.output("reach"))) == {(1, 2), (2, 3), (1, 3)}
    flow.push("links", [link(3, 4, 4)])
    flow.finish()
    assert rest(flow) == FOREVER
    assert set(history(flow.output("reach"))) == {(3, 4), (2, 4), (1, 4)}


def test_costs_that_get_ever_better_hit_the_bound() -> None:
    """A cycle of negative cost has no least route."""
    costs = stream("costs", {"src": int, "dst": int, "cost": int})

    def once(r: Stream) -> Stream:
        longer = costs.join(r, on={"dst": "src"}).project("src", dst="dst_right", cost="cost + cost_right")
        return costs.union(longer).aggregate(["src", "dst"], cost="min(cost)")

    flow = Dataflow(reach=fixpoint(once, costs, bound=30, name="route"))
    flow.push("costs", [{"src": 1, "dst": 2, "cost": 3, "vs": 0}, {"src": 2, "dst": 1, "cost": -2, "vs": 0}])
    rest(flow)  # around the cycle it gets no cheaper
    flow.push("costs", [{"src": 2, "dst": 1, "cost": -4, "vs": 5}])
    with pytest.raises(LimitError, match="'route' goes around more than 30 times"):
        rest(flow)


def test_a_bound_that_is_reached_but_not_passed() -> None:
    """A chain of n links goes around n − 1 times."""
    for bound, fits in ((4, True), (3, False)):
        flow = Dataflow(reach=reach(distinct=False, bound=bound))
        flow.push("links", [link(at, at + 1, 0) for at in range(5)], punctuation=1)
        if fits:
            assert rest(flow) == 1
        else:
            with pytest.raises(LimitError):
                rest(flow)


# ---- Snapshots in flight


@pytest.mark.parametrize("mode", MODES)
def test_a_snapshot_while_a_speculative_punctuation_is_under_way(mode: str) -> None:
    flow = Dataflow(speculation=mode, reach=reach())
    flow.push("links", [link(at, (at + 1) % 5, at) for at in range(5)], punctuation=3)
    taken = 0
    while flow.run(1) and taken < 6:
        if not loop(flow)[2]:
            continue
        taken += 1
        other = Dataflow(speculation=mode, reach=reach())
        other.restore(flow.snapshot())
        assert other.stats == flow.stats
        other.push("links", [link(7, 0, 9)])
        other.finish()
        other.run_until_idle()
        # From where it was: all that is there now, with what had come out before.
        assert other.punctuation("reach") == FOREVER
        assert in_flight(other) == 0
        assert len(history(other.output("reach"))) == 30
    assert taken
