"""The exact texts of ``explain`` and ``draw`` for dataflows."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import Dataflow, Stream, datalog, fixpoint, stream
from stretto.dataflow.explain import drawn, explained
from tests.cases import dataflow as random_plans
from tests.cases.dataflow.drawing import built
from tests.conftest import cases


def figure_1() -> dict[str, Stream]:
    """Nodes that can be reached from sources (figure 1, without the bit vector: rows are told apart instead)."""
    links = stream("links", {"n1": int, "n2": int})
    seeds = stream("sources", {"node": int}).project(source="node", node="node")
    return {
        "reach": fixpoint(
            lambda reach: (
                links.join(seeds.union(reach), on={"n1": "node"})
                .where("source != n2")
                .project("source", node="n2")
                .distinct()
            ),
            schema=seeds,
            name="reach",
        )
    }


def figure_4() -> dict[str, Stream]:
    """An automaton that comes as data (figure 4)."""
    symbols = stream("symbols", {"id": int, "symbol": str}, insert_only=True)
    arcs = stream("transitions", {"source": str, "target": str, "symbol": str})
    moves = symbols.join(arcs, on="symbol").project("source", "target", last="id")
    seeds = symbols.project(first="id", last="id - 1", state="'S'")
    reach = fixpoint(
        lambda reach: seeds.union(
            moves.join(reach, on={"source": "state"}, where="last = last_right + 1").project(
                "first", "last", state="target"
            )
        ),
        schema=seeds,
        bound=1000,
        name="patterns",
    )
    return {"patterns": reach, "complete": reach.where("state = 'F'").project("first", "last")}


def rules() -> dict[str, Stream]:
    """Relations that recur together, a selection, negation, an aggregate, and facts."""
    return datalog(
        """
        odd(X, Y) :- link(X, Y).
        even(X, Z) :- odd(X, Y), link(Y, Z).
        odd(X, Z) :- even(X, Y), link(Y, Z).
        path(X, Y, min<C>) :- road(X, Y, C).
        path(X, Z, min<C>) :- road(X, Y, C1), C1 >= 0, path(Y, Z, C2), C = C1 + C2.
        near(X, count<Y>) :- path(X, Y, C), C < 10, not even(X, Y), not closed(Y).
        closed('say "no"').
        """,
        {"link": {"src": str, "dst": str}, "road": {"src": str, "dst": str, "cost": int}},
    )


def windows() -> dict[str, Stream]:
    """No loop at all."""
    trades = stream("trades", {"symbol": str, "price": float, "at": pa.timestamp("us")})
    last = trades.where("price > 10 OR symbol IN ('a', 'b', 'c')").window(60, every=10)
    return {
        "prices_of_the_last_minute": last.aggregate("symbol", most="max(price)", mean="avg(price)", trades="count()"),
        "quiet": trades.project("symbol").distinct().difference(last, on="symbol"),
    }


FIGURE_1_TEXT = """\
inputs     links (n1 int64, n2 int64)
           sources (node int64)
loop       reach: ends, as each row goes around once (distinct) and no operator computes new values
           rows go around level by level, so that what is taken back is gone before anything follows from it anew
reach      (source int64, node int64)
           ↻ FFP reach
             ↻ Distinct
               ↻ Project source, node := n2
                 ↻ Select source != n2
                   ↻ Join n1 = node
                     Source links
                     ↻ Union
                       Project source := node, node
                         Source sources
                       ↻ Recursion reach"""

FIGURE_1_DOT = r"""
digraph plan {
  rankdir=BT;
  node [shape=box, fontname="Helvetica", fontsize=11, height=0.3];
  edge [fontname="Helvetica", fontsize=9, arrowsize=0.7];
  n0 [shape=plaintext, label="links"];
  n1 [shape=plaintext, label="sources"];
  n2 [label="Project\nsource := node, node"];
  n4 [label="Union\n"];
  n5 [label="Join\nn1 = node"];
  n6 [label="Select\nsource != n2"];
  n7 [label="Project\nsource, node := n2"];
  n8 [label="Distinct\n"];
  n9 [shape=doubleoctagon, label="FFP\nreach"];
  n1 -> n2 [label="  node"];
  n2 -> n4 [label="  source, node"];
  n9 -> n4 [style=dashed, constraint=false, label="  source, node"];
  n0 -> n5 [label="  n1, n2"];
  n4 -> n5 [style=dashed, label="  source, node"];
  n5 -> n6 [style=dashed, label="  n1, n2, source, node"];
  n6 -> n7 [style=dashed, label="  n1, n2, source, node"];
  n7 -> n8 [style=dashed, label="  source, node"];
  n8 -> n9 [style=dashed, label="  source, node"];
  o0 [shape=plaintext, label="reach"];
  n9 -> o0 [label="  source, node"];
  { rank=min; n0; n1; }
  { rank=max; o0; }
}
"""

FIGURE_4_TEXT = """\
inputs     symbols (id int64, symbol string); insertions only
           transitions (source string, target string, symbol string)
loop       patterns: at most 1000 times around; more is an error
           rows go around at once, in batches as they come
patterns   (first int64, last int64, state string)
           ↻ FFP patterns [1], multicast to 2
             ↻ Union
               Project first := id, last := (id - 1), state := 'S'
                 Source symbols, multicast to 2
               ↻ Project first, last, state := target
                 ↻ Join source = state AND last = (last_right + 1)
                   Project source, target, last := id
                     Join symbol = symbol
                       Source symbols, multicast to 2
                       Source transitions
                   ↻ Recursion patterns
complete   (first int64, last int64)
           Project first, last
             Select state = 'F'
               ↻ FFP patterns [1], as above"""

FIGURE_4_DOT = r"""
digraph plan {
  rankdir=BT;
  node [shape=box, fontname="Helvetica", fontsize=11, height=0.3];
  edge [fontname="Helvetica", fontsize=9, arrowsize=0.7];
  n0 [shape=plaintext, label="symbols"];
  mn0 [label="Multicast"];
  n0 -> mn0 [label="  id, symbol"];
  n1 [label="Project\nfirst := id, last := (id - 1),\nstate := 'S'"];
  n2 [shape=plaintext, label="transitions"];
  n3 [label="Join\nsymbol = symbol"];
  n4 [label="Project\nsource, target, last := id"];
  n6 [label="Join\nsource = state AND last = (last_right + 1)"];
  n7 [label="Project\nfirst, last, state := target"];
  n8 [label="Union\n"];
  n9 [shape=doubleoctagon, label="FFP\npatterns"];
  n10 [label="Select\nstate = 'F'"];
  n11 [label="Project\nfirst, last"];
  mn0 -> n1 [label="  id, symbol"];
  mn0 -> n3 [label="  id, symbol"];
  n2 -> n3 [label="  source, target, symbol"];
  n3 -> n4 [label="  id, symbol, source, target"];
  n4 -> n6 [label="  source, target, last"];
  n9 -> n6 [style=dashed, constraint=false, label="  first, last, state"];
  n6 -> n7 [style=dashed, label="  source, target, last, first, last_right, state"];
  n1 -> n8 [label="  first, last, state"];
  n7 -> n8 [style=dashed, label="  first, last, state"];
  n8 -> n9 [style=dashed, label="  first, last, state"];
  n9 -> n10 [label="  first, last, state"];
  n10 -> n11 [label="  first, last, state"];
  o0 [shape=plaintext, label="patterns"];
  n9 -> o0 [label="  first, last, state"];
  o1 [shape=plaintext, label="complete"];
  n11 -> o1 [label="  first, last"];
  { rank=min; n0; n2; }
  { rank=max; o0; o1; }
}
"""

RULES_TEXT = """\
inputs     link (src string, dst string)
           road (src string, dst string, cost int64)
loop       odd, even: ends, as each row is derived once, and no rule computes new values
           rows go around level by level, so that what is taken back is gone before anything follows from it anew
loop       path: ends, as each row is derived once, and min<C> is never less than the value that it is computed from
           rows go around level by level, so that what is taken back is gone before anything follows from it anew
odd        (x string, y string)
           ↻ FFP odd
             ↻ Distinct
               ↻ Union
                 Project x := src, y := dst
                   Source link, multicast to 3
                 ↻ Project x, y := dst
                   ↻ Join z = src
                     ↻ Recursion even
                     Source link, multicast to 3
even       (x string, z string)
           ↻ FFP even [1], multicast to 2
             ↻ Distinct
               ↻ Project x, z := dst
                 ↻ Join y = src
                   ↻ Recursion odd
                   Source link, multicast to 3
path       (x string, y string, c int64)
           ↻ FFP path [2], multicast to 2
             ↻ Aggregate by x, y: c := min(c)
               ↻ Union
                 Project x := src, y := dst, c := cost
                   Source road, multicast to 2
                 ↻ Project x := src, y, c := (cost + c)
                   ↻ Join dst = x
                     Select cost >= 0
                       Source road, multicast to 2
                     ↻ Recursion path
near       (x string, count_y int64)
           Aggregate by x: count_y := count(*)
             Project x, y
               Distinct
                 Difference y = column_1
                   Difference x = x AND y = z
                     Select c < 10
                       ↻ FFP path [2], as above
                     ↻ FFP even [1], as above
                   Constant ('say "no"'), multicast to 2
closed     (column_1 string)
           Constant ('say "no"'), multicast to 2"""

RULES_DOT = r"""
digraph plan {
  rankdir=BT;
  node [shape=box, fontname="Helvetica", fontsize=11, height=0.3];
  edge [fontname="Helvetica", fontsize=9, arrowsize=0.7];
  n0 [shape=plaintext, label="link"];
  mn0 [label="Multicast"];
  n0 -> mn0 [label="  src, dst"];
  n1 [label="Project\nx := src, y := dst"];
  n3 [label="Join\nz = src"];
  n4 [label="Project\nx, y := dst"];
  n5 [label="Union\n"];
  n6 [label="Distinct\n"];
  n7 [shape=doubleoctagon, label="FFP\nodd"];
  n9 [label="Join\ny = src"];
  n10 [label="Project\nx, z := dst"];
  n11 [label="Distinct\n"];
  n12 [shape=doubleoctagon, label="FFP\neven"];
  n13 [shape=plaintext, label="road"];
  mn13 [label="Multicast"];
  n13 -> mn13 [label="  src, dst, cost"];
  n14 [label="Project\nx := src, y := dst, c := cost"];
  n15 [label="Select\ncost >= 0"];
  n17 [label="Join\ndst = x"];
  n18 [label="Project\nx := src, y, c := (cost + c)"];
  n19 [label="Union\n"];
  n20 [label="Aggregate\nby x, y: c := min(c)"];
  n21 [shape=doubleoctagon, label="FFP\npath"];
  n22 [label="Select\nc < 10"];
  n23 [label="Difference\nx = x AND y = z"];
  n24 [shape=plaintext, label="Constant\n('say \"no\"')"];
  mn24 [label="Multicast"];
  n24 -> mn24 [label="  column_1"];
  n25 [label="Difference\ny = column_1"];
  n26 [label="Distinct\n"];
  n27 [label="Project\nx, y"];
  n28 [label="Aggregate\nby x: count_y := count(*)"];
  mn0 -> n1 [label="  src, dst"];
  n12 -> n3 [style=dashed, constraint=false, label="  x, z"];
  mn0 -> n3 [label="  src, dst"];
  n3 -> n4 [style=dashed, label="  x, z, dst"];
  n1 -> n5 [label="  x, y"];
  n4 -> n5 [style=dashed, label="  x, y"];
  n5 -> n6 [style=dashed, label="  x, y"];
  n6 -> n7 [style=dashed, label="  x, y"];
  n7 -> n9 [style=dashed, constraint=false, label="  x, y"];
  mn0 -> n9 [label="  src, dst"];
  n9 -> n10 [style=dashed, label="  x, y, dst"];
  n10 -> n11 [style=dashed, label="  x, z"];
  n11 -> n12 [style=dashed, label="  x, z"];
  mn13 -> n14 [label="  src, dst, cost"];
  mn13 -> n15 [label="  src, dst, cost"];
  n15 -> n17 [label="  src, dst, cost"];
  n21 -> n17 [style=dashed, constraint=false, label="  x, y, c"];
  n17 -> n18 [style=dashed, label="  src, dst, cost, y, c"];
  n14 -> n19 [label="  x, y, c"];
  n18 -> n19 [style=dashed, label="  x, y, c"];
  n19 -> n20 [style=dashed, label="  x, y, c"];
  n20 -> n21 [style=dashed, label="  x, y, c"];
  n21 -> n22 [label="  x, y, c"];
  n22 -> n23 [label="  x, y, c"];
  n12 -> n23 [label="  x, z"];
  n23 -> n25 [label="  x, y, c"];
  mn24 -> n25 [label="  column_1"];
  n25 -> n26 [label="  x, y, c"];
  n26 -> n27 [label="  x, y, c"];
  n27 -> n28 [label="  x, y"];
  o0 [shape=plaintext, label="odd"];
  n7 -> o0 [label="  x, y"];
  o1 [shape=plaintext, label="even"];
  n12 -> o1 [label="  x, z"];
  o2 [shape=plaintext, label="path"];
  n21 -> o2 [label="  x, y, c"];
  o3 [shape=plaintext, label="near"];
  n28 -> o3 [label="  x, count_y"];
  o4 [shape=plaintext, label="closed"];
  mn24 -> o4 [label="  column_1"];
  { rank=min; n0; n13; n24; }
  { rank=max; o0; o1; o2; o3; o4; }
}
"""

WINDOWS_TEXT = """\
inputs     trades (symbol string, price double, at timestamp[us])
prices_of_the_last_minute
           (symbol string, most double, mean double, trades int64)
           Aggregate by symbol: most := max(price), mean := avg(price), trades := count(*)
             AlterLifetime 60 every 10 [1], multicast to 2
               Select price > 10.0 OR symbol IN ('a', 'b', 'c')
                 Source trades, multicast to 2
quiet      (symbol string)
           Difference symbol = symbol
             Distinct
               Project symbol
                 Source trades, multicast to 2
             AlterLifetime 60 every 10 [1], as above"""

WINDOWS_DOT = r"""
digraph plan {
  rankdir=BT;
  node [shape=box, fontname="Helvetica", fontsize=11, height=0.3];
  edge [fontname="Helvetica", fontsize=9, arrowsize=0.7];
  n0 [shape=plaintext, label="trades"];
  mn0 [label="Multicast"];
  n0 -> mn0 [label="  symbol, price, at"];
  n1 [label="Select\nprice > 10.0 OR symbol IN ('a', 'b', 'c')"];
  n2 [label="AlterLifetime\n60 every 10"];
  mn2 [label="Multicast"];
  n2 -> mn2 [label="  symbol, price, at"];
  n3 [label="Aggregate\nby symbol: most := max(price),\nmean := avg(price), trades := count(*)"];
  n4 [label="Project\nsymbol"];
  n5 [label="Distinct\n"];
  n6 [label="Difference\nsymbol = symbol"];
  mn0 -> n1 [label="  symbol, price, at"];
  n1 -> n2 [label="  symbol, price, at"];
  mn2 -> n3 [label="  symbol, price, at"];
  mn0 -> n4 [label="  symbol, price, at"];
  n4 -> n5 [label="  symbol"];
  n5 -> n6 [label="  symbol"];
  mn2 -> n6 [label="  symbol, price, at"];
  o0 [shape=plaintext, label="prices_of_the_last_minute"];
  n3 -> o0 [label="  symbol, most, mean, trades"];
  o1 [shape=plaintext, label="quiet"];
  n6 -> o1 [label="  symbol"];
  { rank=min; n0; }
  { rank=max; o0; o1; }
}
"""

PLANS = [
    (figure_1, FIGURE_1_TEXT, FIGURE_1_DOT),
    (figure_4, FIGURE_4_TEXT, FIGURE_4_DOT),
    (rules, RULES_TEXT, RULES_DOT),
    (windows, WINDOWS_TEXT, WINDOWS_DOT),
]


@pytest.mark.parametrize(("plan", "text", "dot"), PLANS)
def test_plans(plan: Callable[[], dict[str, Stream]], text: str, dot: str) -> None:
    assert explained(plan()) == text
    assert f"\n{drawn(plan())}" == dot


def test_a_dataflow_explains_and_draws_itself() -> None:
    outputs = figure_1()
    flow = Dataflow(**outputs)
    assert flow.explain() == FIGURE_1_TEXT
    assert f"\n{flow.draw()}" == FIGURE_1_DOT


def test_random_plans() -> None:
    for seed in range(cases(60)):
        outputs = built(random_plans.case(seed))
        lines = explained(outputs).splitlines()
        assert all(any(line.startswith(name) for line in lines) for name in outputs), seed
        dot = drawn(outputs).source
        declared = set(re.findall(r"^  (\w+) \[", dot, re.MULTILINE)) - {"node", "edge"}
        ends = {end for arrow in re.findall(r"^  (\w+) -> (\w+) ", dot, re.MULTILINE) for end in arrow}
        assert ends == declared, seed


def test_a_plan_that_is_refused_is_not_explained() -> None:
    links = stream("links", {"src": int, "dst": int})
    endless = fixpoint(lambda r: links.union(r.project("src", dst="dst + 1")).distinct(), schema=links)
    with pytest.raises(stretto.StrettoError, match="may not come to an end"):
        explained({"endless": endless})


def test_deep_plans() -> None:
    made = stream("links", {"src": int, "dst": int})
    for number in range(3000):
        made = made.where(f"src != {number}")
    assert explained({"deep": made}).count("Select") == drawn({"deep": made}).source.count("Select") == 3000
