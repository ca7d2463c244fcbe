"""``stretto.explain``: how far a query gets in some events, its words, and what it refuses."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import stretto
import stretto.asking.trying
from stretto.asking.counts import StepCounts
from stretto.asking.explanation import Explanation
from stretto.explaining.dot import Drawing, Stage, draw_stages
from tests.asking.test_why_not import SKIPPING, TRADES
from tests.conftest import cases


def counted(query: str, events: Any = TRADES, **options: Any) -> list[str]:
    """The lines of counts."""
    found = stretto.explain(query, events, **{"time": "time"} | options)
    lines = str(found).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("counts"))
    assert [line[11:] for line in lines[len(lines) - len(found.warnings) :]] == [*found.warnings]
    return [line[11:] for line in lines[at : len(lines) - len(found.warnings)]]


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        (
            "SELECT * FROM S WHERE BUY AS b ; SELL AS s FILTER s[price > 10] WITHIN 30 seconds",
            ["1. BUY AS b: 2 events", "2. SELL AS s: 2 events; by itself: 1; up to here: 1; in the window: 0"],
        ),
        (
            "SELECT * FROM S WHERE (BUY AS b ; NOT NOTE ; SELL AS s) OR NOTE PARTITION BY [id]",
            [
                "alternative 1",
                "1. BUY AS b: 2 events",
                "2. SELL AS s: 2 events; up to here: 1",
                "alternative 2",
                "1. NOTE: 2 events",
            ],
        ),
        (
            "SELECT * FROM S WHERE BUY ; BUY? ; SELL{2} ; NOT NOTE WITHIN 1 minute",
            [
                "1. BUY: 2 events",
                "2. BUY?: 2 events; up to here: 2; in the window: 2",
                "3. SELL{2}: 2 events; by itself: 1; in the window: 0",
            ],
        ),
        (
            f"PATTERN SEQ(BUY a, SELL b) WHERE {SKIPPING} {{ [id] AND b.price > a.price * 2 }}",
            ["1. BUY a: 2 events", "2. SELL b: 2 events; up to here: 0"],
        ),
        (
            "PATTERN SEQ(BUYS a, SELL b) WHERE skip_till_any_match { }",
            ["1. BUYS a: 0 events", "2. SELL b: 2 events; up to here: 0"],
        ),
        (
            "PATTERN SEQ(BUY+ b[] UNTIL (NOTE n) ONLY, SELL c) WHERE skip_till_any_match { }",
            [
                "1. BUY+ b[] UNTIL (NOTE n) ONLY: 2 events; by itself: at least 2",
                "2. SELL c: 2 events; up to here: at least 1",
            ],
        ),
    ],
)
def test_words(query: str, lines: list[str]) -> None:
    assert counted(query) == ["of 6 events", *lines]


def test_words_of_eql() -> None:
    query = "sequence by id with maxspan=30s [BUY where true] [SELL where price > 5] until [NOTE where price == null]"
    assert counted(query, language="eql") == [
        "of 6 events",
        "1. [BUY]: 2 events",
        "2. [SELL]: 2 events; by itself: 1; up to here: 1; in the window: 0",
    ]


def test_the_text_of_a_query_comes_first() -> None:
    query = stretto.compile("SELECT * FROM S WHERE BUY ; SELL", TRADES.schema, time="time")
    found = stretto.explain(query, TRADES)
    assert isinstance(found, Explanation)
    assert str(found).startswith(f"{query.explain()}\ncounts     of 6 events\n")
    assert found.looked_at == 6


def test_values() -> None:
    found = stretto.explain("SELECT * FROM S WHERE BUY ; BUY? ; NOT SELL ; NOTE WITHIN 9 seconds", TRADES, time="time")
    assert found.steps.to_pylist() == [
        {"alternative": 1, "step": "BUY", "events": 2, "alone": 2, "reached": 2, "within": 2, "at_least": []},
        {"alternative": 1, "step": "BUY?", "events": 2, "alone": None, "reached": 2, "within": 2, "at_least": []},
        {"alternative": 1, "step": "NOTE", "events": 2, "alone": 2, "reached": 0, "within": 0, "at_least": []},
    ]


def test_what_no_event_has_stands_below() -> None:
    query = "SELECT * FROM S WHERE BUY AS b ; SELL AS s FILTER s[price > 100] PARTITION BY [id]"
    found = stretto.explain(query, TRADES, time="time")
    assert found.warnings == (
        "of 2 events of type 'SELL' none fulfils s[price > 100] (line 1, column 53): price is always 12",
    )
    assert str(found).splitlines()[-1] == f"warnings   {found.warnings[0]}"
    assert stretto.explain("SELECT * FROM S WHERE BUY", TRADES, time="time").warnings == ()


def test_a_key_and_a_time() -> None:
    query = "SELECT * FROM S WHERE BUY ; SELL PARTITION BY [id]"
    assert counted(query, key="a") == ["of 3 events", "1. BUY: 1 event", "2. SELL: 1 event; up to here: 1"]
    late = TRADES["time"][1].as_py(), None
    assert counted(query, between=late) == ["of 5 events", "1. BUY: 1 event", "2. SELL: 2 events; up to here: 0"]
    null = TRADES.set_column(2, "id", pa.nulls(6, pa.string()))
    assert counted(query, null)[1] == "1. BUY: 2 events; up to here: 0"


def test_types_that_are_streams() -> None:
    query = "SELECT * FROM BUY WHERE BUY ; BUY"
    expected = ["1. BUY: 2 events", "2. BUY: 2 events; up to here: 1"]
    assert counted(query, TRADES.rename_columns({"type": "kind"}), type=None, stream="kind")[1:] == expected
    assert counted("SELECT * FROM S WHERE S ; A", [{"x": 1}, {"x": 2}], type=None, time=None) == [
        "of 2 events",
        "1. S: 2 events",
        "2. A: 0 events; up to here: 0",
    ]
    assert counted(query, [], time=None) == ["of 0 events", "1. BUY: 0 events", "2. BUY: 0 events; up to here: 0"]


def test_numbers_by_brute_force() -> None:
    """Of sequences with a condition, a key and a window, by loops over the events."""
    query = "SELECT * FROM S WHERE A ; B AS b ; C AS c FILTER b[x > 2] PARTITION BY [k] WITHIN 6 [t]"
    for seed in range(cases(200, compiled=50)):
        choose = random.Random(seed)
        events: list[dict[str, Any]] = [
            {"type": choose.choice("ABCD"), "k": choose.choice([0, 1, None]), "x": choose.choice([1, 3, None]), "t": at}
            for at in range(choose.randint(1, 25))
        ]
        by = [[one for one in events if one["type"] == step] for step in "ABC"]
        good = [one for one in by[1] if one["x"] == 3]
        chosen = [by[0], good, by[2]]
        expected = []
        for steps in (1, 2, 3):
            ends: tuple[set[int], set[int]] = set(), set()
            for match in product(*chosen[:steps]):
                times = [one["t"] for one in match]
                if times == sorted(set(times)) and len({one["k"] for one in match}) == 1 and match[0]["k"] is not None:
                    ends[0].add(times[-1])
                    if times[-1] - times[0] <= 6:
                        ends[1].add(times[-1])
            expected.append((len(by[steps - 1]), len(chosen[steps - 1]), len(ends[0]), len(ends[1])))
        found = stretto.explain(query, pa.Table.from_pylist(events, SCHEMA), time="t").counts
        assert isinstance(found, StepCounts)
        told = [
            (one.events, one.alone.value, one.reached.value, one.within.value)
            for one in found.steps
            if one.alone is not None and one.reached is not None and one.within is not None
        ]
        assert told == expected, f"seed {seed}"


SCHEMA = pa.schema([("type", pa.string()), ("k", pa.int64()), ("x", pa.int64()), ("t", pa.int64())])


def test_what_is_too_much_is_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretto.asking.trying, "MOST_BYTES", 1)
    rows = 3 * stretto.asking.trying.FIRST
    events = pa.table({"type": ["A"] * rows, "time": range(rows)})
    query = "SELECT * FROM S WHERE A"
    assert counted(query, events) == [f"of {rows:,} events", f"1. A: {rows:,} events; by itself: at least 1,024"]
    assert stretto.explain(query, events).steps["at_least"].to_pylist() == [["alone", "reached", "within"]]


def test_html_is_escaped() -> None:
    shown = stretto.explain("SELECT * FROM S WHERE A AS a FILTER a[x = '<i>']", [{"type": "A", "x": "b"}])._repr_html_()
    assert "<i>" not in shown
    assert "&lt;i&gt;" in shown


def test_what_is_refused() -> None:
    afa = stretto.AFA({"type": str}).arc("q0", "q1", when="e.type = 'a'").final("q1")
    with pytest.raises(stretto.OptionError, match="an AFA needs the column that orders the stream"):
        stretto.explain(afa, TRADES)
    with pytest.raises(stretto.OptionError, match="stream='s' says nothing about an automaton"):
        stretto.explain(afa, TRADES, time="time", stream="s")
    with pytest.raises(stretto.OptionError, match="this is SQL with MATCH_RECOGNIZE: "):
        stretto.explain("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS x > 1)", TRADES)
    with pytest.raises(stretto.OptionError, match="the query has no partition attribute"):
        stretto.explain("SELECT * FROM S WHERE BUY", TRADES, key=3)


def test_the_picture() -> None:
    query = "SELECT * FROM S WHERE (BUY AS b ; (SELL OR NOTE) AS s FILTER s[price > 100]) OR NOTE PARTITION BY [id] WITHIN 9 days"
    assert str(stretto.explain(query, TRADES, time="time").draw()).splitlines() == [
        "digraph counts {",
        "  rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="Helvetica", fontsize=11];',
        "  start [shape=point, width=0.08];",
        '  label="of 6 events; by id; within 9 d"; fontname="Helvetica"; fontsize=10;',
        '  s0_0 [label="BUY AS b\\n2 events", penwidth=1.2];',
        "  start -> s0_0 [penwidth=1.2];",
        '  s0_1 [label="(SELL OR NOTE) AS s\\n4 events\\nby itself: 0\\nup to here: 0\\nin the window: 0", '
        'style="rounded,dashed", peripheries=2];',
        '  s0_0 -> s0_1 [style="dashed"];',
        '  s1_0 [label="NOTE\\n2 events", penwidth=1.2, peripheries=2];',
        "  start -> s1_0 [penwidth=1.2];",
        "}",
    ]


def test_the_picture_of_odd_names_and_many_events() -> None:
    drawn = draw_stages([[Stage(('a "b" \\', "1,000,000 events"), 1_000_000), Stage(("x" * 99,), None)]], [])
    assert 's0_0 [label="a \\"b\\" \\\\\\n1,000,000 events", penwidth=4.0];' in str(drawn)
    assert f's0_1 [label="{"x" * 59}…", penwidth=1.0, peripheries=2];' in str(drawn)
    if Drawing.can_draw():
        assert "1,000,000 events" in drawn.svg()


FALLS = [
    {"t": at, "k": key, "x": x} for at, (key, x) in enumerate([("a", -5), ("a", -1), ("b", 9), ("a", 1), ("a", 3)])
]


def falls() -> stretto.AFA:
    """Two falls or more of one key, then a rise; a state where no event leads to."""
    afa = stretto.AFA({"k": str, "x": int}, register={"n": int}, start="start", partition_by=["k"], window=100)
    afa = afa.arc("start", "low", when="e.x < -3").arc("low", "low", when="e.x < 0", then="n = r.n + 1")
    afa = afa.ignore("low", when="e.x = 1").arc("low", "up", when="e.x > 2 AND r.n > 0")
    return afa.epsilon("up", "end", when="r.n > 7").final("up").final("end")


def test_an_automaton() -> None:
    found = stretto.explain(falls(), FALLS, time="t")
    assert str(found).startswith(f"{falls().explain()}\ncounts     of 5 events\n")
    assert [line[11:] for line in str(found).splitlines()[-9:]] == [
        "start",
        "  a0 -> low when e.x < -3: 1 event",
        "low: 2 events",
        "  a1 -> low when e.x < 0: 1 event",
        "  a2 ignores when e.x = 1: 1 event",
        "  a3 -> up when e.x > 2 AND r.n > 0: 1 event",
        "up (final): 1 event",
        "  a4 ε -> end when r.n > 7",
        "end (final): 0 events",
    ]
    assert found.steps.to_pylist()[1:4] == [
        {"state": "start", "arc": "a0", "target": "low", "events": 1, "at_least": False},
        {"state": "low", "arc": None, "target": None, "events": 2, "at_least": False},
        {"state": "low", "arc": "a1", "target": "low", "events": 1, "at_least": False},
    ]
    assert found.steps["events"].to_pylist() == [None, 1, 2, 1, 1, 1, 1, None, 0]
    assert stretto.explain(falls(), FALLS, time="t", key="b").steps["events"].to_pylist() == [None, *[0] * 6, None, 0]
    assert stretto.explain(falls(), FALLS, time="t", between=(0, 2)).looked_at == 3


def test_the_picture_of_an_automaton() -> None:
    drawn = str(stretto.explain(falls(), FALLS, time="t").draw()).splitlines()
    assert drawn[6] == (
        '  label="of 5 events; by k; each event contributes for 100 ticks of the time attribute"; fontname="Helvetica"; '
        "fontsize=10;"
    )
    assert drawn[7:-1] == [
        '  "start";',
        '  "low" [label="low\\n2 events", penwidth=1.2];',
        '  "up" [shape=doublecircle, label="up\\n1 event", penwidth=1.0];',
        '  "end" [shape=doublecircle, label="end\\n0 events", color=gray60, fontcolor=gray40];',
        '  "start" -> "low" [label="a0: e.x < -3\\n1 event", penwidth=1.0];',
        '  "low" -> "low" [label="a1: e.x < 0 /\\nn = r.n + 1\\n1 event", penwidth=1.0];',
        '  "low" -> "low" [style=dashed, headport=s, tailport=s, label="a2: e.x = 1\\n1 event", penwidth=1.0];',
        '  "low" -> "up" [label="a3: e.x > 2 AND r.n > 0\\n1 event", penwidth=1.0];',
        '  "up" -> "end" [style=dotted, label="a4: ε, r.n > 7"];',
    ]


def test_what_is_too_much_of_an_automaton_is_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretto.asking.afa_events, "MOST_BYTES", 1)
    rows = 3 * stretto.asking.trying.FIRST
    events = pa.table({"x": [1] * rows, "t": range(rows)})
    found = stretto.explain(
        stretto.AFA({"x": int}, window=2).arc("q0", "q1", when="e.x = 1").final("q1"), events, time="t"
    )
    assert found.steps["at_least"].to_pylist() == [False, True, True]
    assert "q1 (final): at least " in str(found)
    assert f"of {rows:,} events" in str(found)
