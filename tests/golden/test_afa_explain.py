"""The exact texts of ``explain`` and ``draw`` for AFAs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.explaining.afa import draw_afa, explain_afa


def q1() -> stretto.AFA:
    """Figure 3 of the AFA paper, with k = 2."""
    return (
        stretto.AFA({"change": float}, {"r1": int, "r2": int}, window=2000)
        .arc("q0", "q1", when="e.change < -0.25")
        .arc("q1", "q1", when="e.change < 0", then="r1 = r.r1 + 1")
        .arc("q1", "q2", when="e.change < 0", then="r1 = r.r1 + 1")
        .arc("q2", "q2", when="e.change > 0 AND r.r1 > 1", then="r1 = r.r1 - 1")
        .arc("q2", "q1", when="e.change > 0 AND r.r1 = 1 AND r.r2 < 1", then="(0, r.r2 + 1)")
        .arc("q2", "q3", when="e.change > 0 AND r.r1 = 1 AND r.r2 = 1", then="(0, r.r2 + 1)")
        .final("q3")
    )


def shoulders() -> stretto.AFA:
    """Head and shoulders, as in figure 14: shoulder, neck, head, neck, shoulder."""
    up, down = (
        stretto.element("e.price > r.last", "last = e.price"),
        stretto.element("e.price < r.last", "last = e.price"),
    )
    top = stretto.element("e.price > r.last", "last = e.price, top = e.price", name="shoulder")
    head = stretto.element("e.price > r.top", "last = e.price", name="head")
    pattern = up.plus() >> top >> down.plus() >> up.star() >> head >> down.plus()
    return stretto.AFA(
        {"symbol": str, "price": float}, {"last": float, "top": float}, window="1 hour", partition_by="symbol"
    ).pattern(pattern, emit="on_enter", ignore="e.price = r.last")


def falls(e: Any, r: Any) -> Any:
    return e.x < r.n


def corners() -> stretto.AFA:
    """Every kind of arc, names that need quotes, and functions."""
    afa = stretto.AFA({"x": int, "a b": str}, {"n": int, "tag": str, "at": pa.timestamp("us")}, start='the "start"')
    return (
        afa.arc('the "start"', "q1", when=falls, then={"tag": "e.`a b`"}, id="in")
        .epsilon("q1", "q2", when="r.n > 3", then={"n": 0})
        .epsilon("q1", "q3")
        .ignore("q2", when="e.x BETWEEN 1000000 AND 1000000000 AND e.`a b` IN ('abc', 'def', 'ghi') OR e.x IS NULL")
        .arc("q2", "q1")
        .final("q2")
        .final("q3", emit="on_enter")
    )


# ---- texts

Q1_TEXT = """\
events     change double
register   r1 int64 = 0, r2 int64 = 0
partition  none: one stream
window     an event contributes for 2000 ticks of the time attribute
states     q0 (start)
             a0  -> q1  when e.change < -0.25
           q1
             a1  -> q1  when e.change < 0.0  then r1 = r.r1 + 1
             a2  -> q2  when e.change < 0.0  then r1 = r.r1 + 1
           q2
             a3  -> q2  when e.change > 0.0 AND r.r1 > 1  then r1 = r.r1 - 1
             a4  -> q1  when e.change > 0.0 AND r.r1 = 1 AND r.r2 < 1  then r1 = 0, r2 = r.r2 + 1
             a5  -> q3  when e.change > 0.0 AND r.r1 = 1 AND r.r2 = 1  then r1 = 0, r2 = r.r2 + 1
           q3 (final: output at every event that leads to it or is ignored in it)"""

Q1_DOT = r"""
digraph AFA {
  rankdir=LR;
  node [shape=circle, fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=10];
  "" [shape=none, width=0];
  "" -> "q0";
  label="each event contributes for 2000 ticks of the time attribute"; fontname="Helvetica"; fontsize=10;
  "q0";
  "q1";
  "q2";
  "q3" [shape=doublecircle];
  "q0" -> "q1" [label="a0: e.change < -0.25"];
  "q1" -> "q1" [label="a1: e.change < 0.0 /\nr1 = r.r1 + 1"];
  "q1" -> "q2" [label="a2: e.change < 0.0 /\nr1 = r.r1 + 1"];
  "q2" -> "q2" [label="a3: e.change > 0.0 AND r.r1 > 1 /\nr1 = r.r1 - 1"];
  "q2" -> "q1" [label="a4: e.change > 0.0 AND r.r1 = 1 AND r.r2 < 1 /\nr1 = 0, r2 = r.r2 + 1"];
  "q2" -> "q3" [label="a5: e.change > 0.0 AND r.r1 = 1 AND r.r2 = 1 /\nr1 = 0, r2 = r.r2 + 1"];
}
"""

SHOULDERS_TEXT = """\
events     symbol string, price double
register   last double = 0.0, top double = 0.0
partition  by symbol; events where one of them is NULL are in no partition
window     an event contributes for 1:00:00
states     q0 (start)
             a0  -> q1  when e.price > r.last  then last = e.price
           q1
             a1  -> q1  when e.price > r.last  then last = e.price
             a2  -> shoulder  when e.price > r.last  then last = e.price, top = e.price
             a11  ignores  when e.price = r.last
           shoulder
             a3  -> q2  when e.price < r.last  then last = e.price
             a12  ignores  when e.price = r.last
           q2
             a4  -> q2  when e.price < r.last  then last = e.price
             a5  -> q3  when e.price > r.last  then last = e.price
             a6  -> head  when e.price > r.top  then last = e.price
             a13  ignores  when e.price = r.last
           q3
             a7  -> q3  when e.price > r.last  then last = e.price
             a8  -> head  when e.price > r.top  then last = e.price
             a14  ignores  when e.price = r.last
           head
             a9  -> q4  when e.price < r.last  then last = e.price
             a15  ignores  when e.price = r.last
           q4 (final: output at every event that leads to it)
             a10  -> q4  when e.price < r.last  then last = e.price
             a16  ignores  when e.price = r.last"""

SHOULDERS_DOT = r"""
digraph AFA {
  rankdir=LR;
  node [shape=circle, fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=10];
  "" [shape=none, width=0];
  "" -> "q0";
  label="by symbol; each event contributes for 1:00:00"; fontname="Helvetica"; fontsize=10;
  "q0";
  "q1";
  "shoulder";
  "q2";
  "q3";
  "head";
  "q4" [shape=doublecircle];
  "q0" -> "q1" [label="a0: e.price > r.last /\nlast = e.price"];
  "q1" -> "q1" [label="a1: e.price > r.last /\nlast = e.price"];
  "q1" -> "shoulder" [label="a2: e.price > r.last /\nlast = e.price, top = e.price"];
  "shoulder" -> "q2" [label="a3: e.price < r.last /\nlast = e.price"];
  "q2" -> "q2" [label="a4: e.price < r.last /\nlast = e.price"];
  "q2" -> "q3" [label="a5: e.price > r.last /\nlast = e.price"];
  "q2" -> "head" [label="a6: e.price > r.top /\nlast = e.price"];
  "q3" -> "q3" [label="a7: e.price > r.last /\nlast = e.price"];
  "q3" -> "head" [label="a8: e.price > r.top /\nlast = e.price"];
  "head" -> "q4" [label="a9: e.price < r.last /\nlast = e.price"];
  "q4" -> "q4" [label="a10: e.price < r.last /\nlast = e.price"];
  "q1" -> "q1" [style=dashed, headport=s, tailport=s, label="a11: e.price = r.last"];
  "shoulder" -> "shoulder" [style=dashed, headport=s, tailport=s, label="a12: e.price = r.last"];
  "q2" -> "q2" [style=dashed, headport=s, tailport=s, label="a13: e.price = r.last"];
  "q3" -> "q3" [style=dashed, headport=s, tailport=s, label="a14: e.price = r.last"];
  "head" -> "head" [style=dashed, headport=s, tailport=s, label="a15: e.price = r.last"];
  "q4" -> "q4" [style=dashed, headport=s, tailport=s, label="a16: e.price = r.last"];
}
"""

CORNERS_TEXT = """\
events     x int64, a b string
register   n int64 = 0, tag string = '', at timestamp[us] = '1970-01-01 00:00:00'
partition  none: one stream
window     none: an event contributes for ever
states     the "start" (start)
             in  -> q1  when falls  then tag = e.`a b`
           q1
             a1  -> q2  ε  when r.n > 3  then n = 0
             a2  -> q3  ε  always
           q2 (final: output at every event that leads to it or is ignored in it)
             a3  ignores  when e.x BETWEEN 1000000 AND 1000000000 AND e.`a b` IN ('abc', 'def', 'ghi') OR e.x IS NULL
             a4  -> q1  always
           q3 (final: output at every event that leads to it)"""

CORNERS_DOT = r"""
digraph AFA {
  rankdir=LR;
  node [shape=circle, fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=10];
  "" [shape=none, width=0];
  "" -> "the \"start\"";
  "the \"start\"";
  "q1";
  "q2" [shape=doublecircle];
  "q3" [shape=doublecircle];
  "the \"start\"" -> "q1" [label="in: falls /\ntag = e.`a b`"];
  "q1" -> "q2" [style=dotted, label="a1: ε, r.n > 3 /\nn = 0"];
  "q1" -> "q3" [style=dotted, label="a2: ε, true"];
  "q2" -> "q2" [style=dashed, headport=s, tailport=s, label="a3: e.x BETWEEN 1000000 AND 1000000000 AND e.`a b` IN ('abc', '…"];
  "q2" -> "q1" [label="a4: true"];
}
"""


@pytest.mark.parametrize(
    ("build", "text", "dot"),
    [(q1, Q1_TEXT, Q1_DOT), (shoulders, SHOULDERS_TEXT, SHOULDERS_DOT), (corners, CORNERS_TEXT, CORNERS_DOT)],
)
def test_texts_and_drawings(build: Callable[[], stretto.AFA], text: str, dot: str) -> None:
    afa = build()
    assert afa.explain() == text
    assert str(afa.draw()) == dot.removeprefix("\n")


def test_the_time_in_which_an_arc_is_valid() -> None:
    afa = stretto.AFA({"x": int}).arc("q0", "q1").arc("q1", "q0").arc("q1", "q2").final("q2").frozen
    first, second, third = afa.arcs
    afa = replace(afa, arcs=(replace(first, since=3), replace(second, until=7), replace(third, since=3, until=7)))
    assert explain_afa(afa).splitlines()[4:] == [
        "states     q0 (start)",
        "             a0  -> q1  always  valid [3, ∞)",
        "           q1",
        "             a1  -> q0  always  valid [−∞, 7)",
        "             a2  -> q2  always  valid [3, 7)",
        "           q2 (final: output at every event that leads to it or is ignored in it)",
    ]
    assert [line for line in draw_afa(afa).source.splitlines() if "label" in line] == [
        '  "q0" -> "q1" [label="a0: true\\n[3, ∞)"];',
        '  "q1" -> "q0" [label="a1: true\\n[−∞, 7)"];',
        '  "q1" -> "q2" [label="a2: true\\n[3, 7)"];',
    ]


def test_nothing_to_say() -> None:
    afa = stretto.AFA({}).arc("q0", "q1").final("q1")
    assert afa.explain().splitlines()[:2] == ["events     no attribute is read", "register   none"]


def test_what_may_not_be_meant_is_noted() -> None:
    afa = stretto.AFA({"x": int}).arc("q0", "q1").arc("q0", "trap").arc("trap", "pit").arc("far", "q1").final("q1")
    assert afa.explain().splitlines()[-2:] == [
        "note       no computation reaches far",
        "           no arc leads on from trap, pit to a final state, so that what gets there is held for nothing",
    ]
    assert "note" not in q1().explain()
