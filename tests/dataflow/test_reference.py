"""The reference evaluator on examples that are worked out by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stretto.dataflow import Stream, fixpoint, fixpoints, stream
from stretto.errors import DataError, LimitError
from tests.reference.dataflow import FOREVER, Event, Span, before, evaluate, history, settled

#: The nodes of figure 2 as the bits of section 2: n1 is 1000, n2 is 0100, and so on.
N1, N2, N3, N4 = 8, 4, 2, 1


def reachability() -> Stream:
    """Figure 1: pairs of nodes with the nodes on the way."""
    sources = stream("sources", {"node": int})
    links = stream("links", {"src": int, "dst": int})
    unit = sources.project(begin="node", end="node", way="node")

    def step(reach: Stream) -> Stream:
        joined = links.join(unit.union(reach), on={"src": "end"})
        return joined.where("way % (2 * dst) < dst").project(begin="begin", end="dst", way="way + dst")

    return fixpoint(step, unit, bound=4)


SOURCES = [Event((N2,), 1), Event((N3,), 1)]
LINKS = [Event((N3, N1), 2), Event((N1, N2), 3), Event((N2, N3), 3), Event((N3, N4), 4)]


def test_section_2_at_times_1_to_4() -> None:
    found = evaluate({"reach": reachability()}, {"sources": SOURCES, "links": LINKS})["reach"]
    since = {row: spans[0].vs for row, spans in found.items()}
    assert since == {
        (N3, N1, 0b1010): 2,
        (N3, N2, 0b1110): 3,
        (N2, N3, 0b0110): 3,
        (N2, N1, 0b1110): 3,
        (N3, N4, 0b0011): 4,
        (N2, N4, 0b0111): 4,
    }
    assert {tuple(spans) for spans in found.values()} == {(Span(vs, FOREVER, 1),) for vs in (2, 3, 4)}


def test_section_2_with_expirations() -> None:
    events = {"sources": [((N3,), 1, 7)], "links": [((N3, N1), 2, 9), ((N1, N2), 3, 11)]}
    found = evaluate({"reach": reachability()}, events)["reach"]
    assert found == {(N3, N1, 0b1010): [Span(2, 7, 1)], (N3, N2, 0b1110): [Span(3, 7, 1)]}


def test_section_2_with_the_retraction_at_time_5() -> None:
    links = settled([*((row, vs, ve, None) for row, vs, ve in LINKS), ((N3, N1), 2, FOREVER, 5)])
    found = evaluate({"reach": reachability()}, {"sources": SOURCES, "links": links})["reach"]
    ended = {row: spans for row, spans in found.items() if spans[-1].ve != FOREVER}
    assert ended == {
        (N3, N1, 0b1010): [Span(2, 5, 1)],
        (N3, N2, 0b1110): [Span(3, 5, 1)],
        (N2, N1, 0b1110): [Span(3, 5, 1)],
    }


def patterns() -> Stream:
    """Figure 4: from where to where an automaton reads, and the state that it is in then."""
    symbols = stream("symbols", {"at": int, "symbol": str})
    arcs = stream("arcs", {"source": str, "symbol": str, "target": str})
    moves = symbols.join(arcs, on="symbol")
    seeds = symbols.project(begin="at", end="at - 1", state="'S'")

    def step(found: Stream) -> Stream:
        extended = moves.join(found, on={"source": "state"}, where="end = at - 1")
        return seeds.union(extended.project(begin="begin", end="at", state="target"))

    return fixpoint(step, {"begin": int, "end": int, "state": str}, bound=5)


ARCS = [Event((*arc,), 0) for arc in ("SAI", "IBI", "IAF")]


def test_figure_4() -> None:
    """Five partial and complete patterns, and four seeds of length 0."""
    symbols = [Event((at, symbol), at) for at, symbol in enumerate("ABBA", 1)]
    found = evaluate({"found": patterns()}, {"symbols": symbols, "arcs": ARCS})["found"]
    assert found == {
        (1, 0, "S"): [Span(1, FOREVER, 1)],
        (1, 1, "I"): [Span(1, FOREVER, 1)],
        (2, 1, "S"): [Span(2, FOREVER, 1)],
        (1, 2, "I"): [Span(2, FOREVER, 1)],
        (3, 2, "S"): [Span(3, FOREVER, 1)],
        (1, 3, "I"): [Span(3, FOREVER, 1)],
        (4, 3, "S"): [Span(4, FOREVER, 1)],
        (1, 4, "F"): [Span(4, FOREVER, 1)],
        (4, 4, "I"): [Span(4, FOREVER, 1)],
    }


def test_figure_4_in_windows() -> None:
    symbols = [Event((at, symbol), at, at + 3) for at, symbol in enumerate("ABBA", 1)]
    found = evaluate({"found": patterns()}, {"symbols": symbols, "arcs": ARCS})["found"]
    assert found[1, 3, "I"] == [Span(3, 4, 1)], "the three symbols live together at time 3 only"
    assert (1, 4, "F") not in found


def distances(bound: int | None = None) -> Stream:
    roads = stream("roads", {"src": str, "dst": str, "cost": int})

    def step(paths: Stream) -> Stream:
        longer = paths.join(roads, on={"dst": "src"}).project(src="src", dst="dst_right", cost="cost + cost_right")
        return roads.union(longer).aggregate(["src", "dst"], cost="min(cost)")

    return fixpoint(step, roads, bound=bound, name="paths")


def test_shortest_paths() -> None:
    roads = [(("a", "b", 3), 0, 20), (("b", "c", 4), 0, 20), (("c", "a", 1), 0, 20), (("a", "c", 5), 6, 9)]
    found = evaluate({"paths": distances()}, {"roads": roads})["paths"]
    at_5 = {row[:2]: row[2] for row, spans in found.items() if any(span.vs <= 5 < span.ve for span in spans)}
    assert at_5 == {
        ("a", "b"): 3, ("a", "c"): 7, ("a", "a"): 8,
        ("b", "b"): 8, ("b", "c"): 4, ("b", "a"): 5,
        ("c", "b"): 4, ("c", "c"): 8, ("c", "a"): 1,
    }  # fmt: skip
    assert found["a", "c", 7] == [Span(0, 6, 1), Span(9, 20, 1)]
    assert found["a", "c", 5] == [Span(6, 9, 1)]
    assert found["a", "a", 6] == [Span(6, 9, 1)]


def test_a_loop_without_end_is_a_limit_error() -> None:
    roads = {"roads": [(("a", "b", -1), 0, 5), (("b", "a", -1), 3, 9)]}
    with pytest.raises(LimitError, match="FFP paths: there are rows that went around the loop more than 7 times"):
        evaluate({"paths": distances(7)}, roads)
    with pytest.raises(LimitError, match="more than 50 times"):
        evaluate({"paths": distances()}, roads, levels=50)


def counted(bound: int) -> Stream:
    """How many ways lead from one node to another, with the number of links."""
    links = stream("links", {"src": str, "dst": str})
    one = links.project("src", "dst", n=1)
    return fixpoint(
        lambda ways: one.union(
            ways.join(links, on={"dst": "src"}).project(src="src", dst="dst_right", n="n + 1").where("n <= 3")
        ),
        one,
        bound=bound,
    )


def test_bags_count_derivations_and_the_bound_is_the_greatest_level() -> None:
    links = {"links": [((a, b), 0, 9) for a, b in ("ab", "ab", "bc", "ac", "cd")]}
    found = evaluate({"ways": counted(2)}, links)["ways"]
    assert found["a", "b", 1] == [Span(0, 9, 2)]
    assert found["a", "d", 3] == [Span(0, 9, 2)]
    assert found["a", "d", 2] == [Span(0, 9, 1)]
    with pytest.raises(LimitError, match="more than 1 times"):
        evaluate({"ways": counted(1)}, links)


def test_relations_that_are_defined_by_each_other() -> None:
    links = stream("links", {"src": int, "dst": int})
    start = stream("start", {"node": int})

    def steps(even: Stream, odd: Stream) -> tuple[Stream, Stream]:
        def after(nodes: Stream) -> Stream:
            return nodes.join(links, on={"node": "src"}).project(node="dst")

        return start.union(after(odd)).distinct(), after(even).distinct()

    even, odd = fixpoints(steps, {"even": start, "odd": start})
    events = {"start": [((0,), 0, 10)], "links": [((a, a + 1), 0, 10) for a in range(3)] + [((3, 1), 5, 10)]}
    found = evaluate({"even": even, "odd": odd}, events)
    assert found["even"] == {
        (0,): [Span(0, 10, 1)],
        (2,): [Span(0, 10, 1)],
        (1,): [Span(5, 10, 1)],
        (3,): [Span(5, 10, 1)],
    }
    assert found["odd"] == {(1,): [Span(0, 10, 1)], (3,): [Span(0, 10, 1)], (2,): [Span(5, 10, 1)]}


def test_a_loop_in_a_loop() -> None:
    """Along a-links as far as possible, then over one b-link, and again."""
    near = stream("near", {"src": int, "dst": int})
    far = stream("far", {"src": int, "dst": int})
    start = stream("start", {"node": int})

    def over(nodes: Stream, links: Stream) -> Stream:
        return nodes.join(links, on={"node": "src"}).project(node="dst")

    def outer(reached: Stream) -> Stream:
        begin = start.union(over(reached, far)).distinct()
        return fixpoint(lambda nodes: begin.union(over(nodes, near)).distinct(), start, name="inner")

    events = {
        "start": [((0,), 0, 9)],
        "near": [((0, 1), 0, 9), ((1, 0), 0, 9), ((5, 6), 2, 9)],
        "far": [((1, 5), 0, 9), ((6, 0), 0, 4)],
    }
    found = evaluate({"nodes": fixpoint(outer, start, name="outer")}, events)["nodes"]
    assert found == {(0,): [Span(0, 9, 1)], (1,): [Span(0, 9, 1)], (5,): [Span(0, 9, 1)], (6,): [Span(2, 9, 1)]}


def test_two_loops_one_after_the_other_with_a_difference_between() -> None:
    links = stream("links", {"src": int, "dst": int})
    nodes = stream("nodes", {"node": int})
    start = stream("start", {"node": int})
    reached = fixpoint(
        lambda r: start.union(r.join(links, on={"node": "src"}).project(node="dst")).distinct(), start, name="reached"
    )
    lonely = nodes.difference(reached)
    back = fixpoint(
        lambda r: lonely.union(r.join(links, on={"node": "dst"}).project(node="src")).distinct(), nodes, name="back"
    )
    events = {
        "nodes": [((n,), 0, 10) for n in range(4)],
        "start": [((0,), 0, 6)],
        "links": [((0, 1), 0, 10), ((2, 3), 0, 10), ((1, 2), 4, 10)],
    }
    found = evaluate({"lonely": lonely, "back": back}, events)
    assert found["lonely"] == {
        (0,): [Span(6, 10, 1)],
        (1,): [Span(6, 10, 1)],
        (2,): [Span(0, 4, 1), Span(6, 10, 1)],
        (3,): [Span(0, 4, 1), Span(6, 10, 1)],
    }
    assert found["back"] == found["lonely"]


def one(kind: type = int) -> Stream:
    return stream("s", {"k": str, "v": kind})


def rows_of(
    made: Stream, events: list[tuple[tuple[object, ...], int, int]]
) -> dict[tuple[object, ...], list[tuple[int, ...]]]:
    found = evaluate({"x": made}, {"s": events})["x"]
    return {row: [tuple(span) for span in spans] for row, spans in found.items()}


def test_bags_and_sets() -> None:
    events = [(("a", 1), 0, 5), (("a", 1), 3, 9), (("a", 2), 4, 5)]
    assert rows_of(one(), events) == {("a", 1): [(0, 3, 1), (3, 5, 2), (5, 9, 1)], ("a", 2): [(4, 5, 1)]}
    assert rows_of(one().distinct(), events) == {("a", 1): [(0, 9, 1)], ("a", 2): [(4, 5, 1)]}
    assert rows_of(one().project("k"), events) == {("a",): [(0, 3, 1), (3, 4, 2), (4, 5, 3), (5, 9, 1)]}
    assert rows_of(one().union(one().where("v > 1")), events)["a", 2] == [(4, 5, 2)]


def test_aggregates() -> None:
    made = one().aggregate("k", n="count()", all="sum(v)", mean="avg(v)", least="min(v)", most="max(v)")
    events = [(("a", 1), 0, 5), (("a", 1), 3, 9), (("b", 7), 1, 2)]
    assert rows_of(made, events) == {
        ("a", 1, 1, 1.0, 1, 1): [(0, 3, 1), (5, 9, 1)],
        ("a", 2, 2, 1.0, 1, 1): [(3, 5, 1)],
        ("b", 1, 7, 7.0, 7, 7): [(1, 2, 1)],
    }
    everything = one().aggregate(n="count()")
    assert rows_of(everything, events) == {(1,): [(0, 1, 1), (2, 3, 1), (5, 9, 1)], (2,): [(1, 2, 1), (3, 5, 1)]}


def test_sums_do_not_depend_on_the_order() -> None:
    made = one(float).aggregate(all="sum(v)", mean="avg(v)")
    events = [(("a", v), 0, 1) for v in (1e16, 0.1, -1e16, 0.2)]
    total = 0.1 + 0.2
    assert rows_of(made, events) == {(total, total / 4): [(0, 1, 1)]}
    assert rows_of(made, [(("a", v), 0, 1) for v in (1.7e308, 1.7e308, -1.7e308)]) == {
        (1.7e308, 1.7e308 / 3): [(0, 1, 1)]
    }


def test_integers_have_64_bits() -> None:
    events = [(("a", 2**62), 0, 5), (("a", 2**62), 3, 9)]
    with pytest.raises(DataError, match=r"Aggregate by k: all := sum\(v\): 'all' would be 9223372036854775808"):
        rows_of(one().aggregate("k", all="sum(v)"), events)
    with pytest.raises(DataError, match="'w' would be 9223372036854775808, which is beyond 64 bits"):
        rows_of(one().project(w="v * 2"), events)
    assert rows_of(one().aggregate("k", mean="avg(v)"), events) == {("a", 2.0**62): [(0, 9, 1)]}


def test_division_by_zero() -> None:
    events = [(("a", 0), 0, 5), (("a", 4), 0, 5)]
    with pytest.raises(DataError, match=r"'w' is NULL for .*'v': 0.*divides by zero"):
        rows_of(one().project(w="8 / v"), events)
    assert rows_of(one().where("8 / v > 1").project(w="8 / v"), events) == {(2.0,): [(0, 5, 1)]}
    assert rows_of(one().where("NOT (8 / v > 1)"), events) == {("a", 0): [(0, 5, 1)]}, "two values: not false"


def test_joins() -> None:
    other = stream("s", {"k": str, "v": int})
    events = [(("a", 1), 0, 5), (("a", 2), 3, 9), (("b", 3), 0, 9)]
    joined = one().join(other, on="k", where="v < v_right")
    assert joined.schema == {"k": pa.string(), "v": pa.int64(), "v_right": pa.int64()}
    assert rows_of(joined, events) == {("a", 1, 2): [(3, 5, 1)]}
    assert len(rows_of(one().join(other), events)) == 9


def test_difference() -> None:
    events = [(("a", 1), 0, 9), (("a", 1), 2, 9), (("a", 2), 3, 5)]
    big = one().where("v > 1").project("k")
    assert rows_of(one().difference(big, on="k"), events) == {("a", 1): [(0, 2, 1), (2, 3, 2), (5, 9, 2)]}


def test_windows() -> None:
    events = [(("a", 1), 1, 2), (("a", 2), 5, FOREVER), (("a", 3), 9, 9)]
    assert rows_of(one().window(4), events) == {("a", 1): [(1, 5, 1)], ("a", 2): [(5, 9, 1)]}
    assert rows_of(one().window(None), events) == {("a", 1): [(1, FOREVER, 1)], ("a", 2): [(5, FOREVER, 1)]}
    assert rows_of(one().window(5, every=5), events) == {("a", 1): [(5, 10, 1)], ("a", 2): [(5, 10, 1)]}
    assert rows_of(one().window(2, every=5), events) == {("a", 2): [(5, 10, 1)]}, "[1, 3) has no multiple of 5"
    assert rows_of(one().where("v = 1").window(None, every=3), events) == {("a", 1): [(3, FOREVER, 1)]}


def test_settled_and_history() -> None:
    changes = [("x", 1, 9, None), ("x", 1, 9, None), ("x", 1, 9, 5), ("x", 1, 5, 3), ("y", 2, FOREVER, None)]
    rows = [((name,), *rest) for name, *rest in changes]
    assert settled(rows) == [Event(("x",), 1, 9), Event(("x",), 1, 3), Event(("y",), 2)]
    ends = [None if change[2] == FOREVER else change[2] for change in changes]
    table = pa.table({
        "name": [change[0] for change in changes],
        "vs": pa.array([change[1] for change in changes], pa.timestamp("us")),
        "ve": pa.array(ends, pa.timestamp("us")),
        "ve_new": pa.array([change[3] for change in changes], pa.timestamp("us")),
    })  # fmt: skip
    found = history(table)
    assert found == {("x",): [Span(1, 3, 2), Span(3, 9, 1)], ("y",): [Span(2, FOREVER, 1)]}
    assert before(found, 3) == {("x",): [Span(1, 3, 2)], ("y",): [Span(2, 3, 1)]}
    assert before(found, 1) == {}
    assert history(table.slice(0, 0)) == {}


def test_retractions_of_what_is_not_there() -> None:
    with pytest.raises(DataError, match="names no event that is there"):
        settled([(("x",), 1, 9, None), (("x",), 1, 8, 4)])
    with pytest.raises(DataError, match="names no event that is there"):
        settled([(("x",), 1, 9, None), (("x",), 1, 9, 4), (("x",), 1, 9, 3)])
    with pytest.raises(DataError, match="does not make it shorter"):
        settled([(("x",), 1, 9, None), (("x",), 1, 9, 9)])
    with pytest.raises(DataError, match="before it begins"):
        settled([(("x",), 4, 3, None)])


def test_what_is_no_number_is_equal_to_itself_in_a_payload_and_comes_last() -> None:
    nan = float("nan")
    events = [(("a", nan), 0, 5), (("a", float("nan")), 0, 5), (("b", nan), 0, 5), (("b", 2.0), 0, 5)]
    made = one(float).aggregate("k", least="min(v)", most="max(v)")
    found = rows_of(one(float).distinct(), events)
    assert sorted(map(repr, found)) == ["('a', nan)", "('b', 2.0)", "('b', nan)"]
    assert sorted(map(repr, rows_of(made, events))) == ["('a', nan, nan)", "('b', 2.0, 2.0)"]
    assert len(rows_of(one(float).join(one(float), on="v"), events)) == 5


def test_without_events_nothing_happens() -> None:
    assert evaluate({"x": one().aggregate(n="count()")}, {}) == {"x": {}}
