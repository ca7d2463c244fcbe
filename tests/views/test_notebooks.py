"""What queries, automata, matchers, sets and dataflows show in a notebook."""

from __future__ import annotations

import math
import shutil
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import stretto
from stretto import dataflow as df
from stretto.explaining.notebook import running

EVIL = "</pre><script>alert(1)</script>"
CEQL = f"SELECT * FROM S WHERE A AS x; B FILTER x[name = '{EVIL}'] PARTITION BY [k]"
SCHEMA = {"type": "string", "name": "string", "k": "int64", "t": "int64"}
SASE = f"PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ [k] and a.name = '{EVIL}' }} WITHIN 5"
SQL = f"SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY t PATTERN (A B) DEFINE A AS name = '{EVIL}')"
EVENTS = [{"type": "A", "name": EVIL, "k": 1, "t": 1}, {"type": "A", "name": "a", "k": 1, "t": 2}]


def automaton() -> stretto.AFA:
    afa = stretto.AFA({"name": str}, window=10)
    return afa.arc("q0", "q1", when=f"e.name = '{EVIL}'").arc("q1", "q2").final("q2")


def matcher(query: Any, **options: Any) -> stretto.Matcher:
    made = stretto.Matcher(query, **options)
    made.push(EVENTS)
    return made


def patterns() -> stretto.PatternSet:
    made = stretto.PatternSet(SCHEMA, time="t")
    made.change([stretto.Change(EVIL, CEQL)])
    made.push(EVENTS)
    return made


def flow() -> df.Dataflow:
    made = df.Dataflow(result=df.stream("events", {"name": str}).where(f"name = '{EVIL}'"))
    made.push("events", [{"name": EVIL, "vs": 1, "ve": 2}])
    return made


SHOWN = {
    "query": lambda: stretto.compile(CEQL),
    "bound": lambda: stretto.compile(CEQL, SCHEMA),
    "sase": lambda: stretto.compile(SASE, SCHEMA, time="t"),
    "sase without a schema": lambda: stretto.compile(SASE),
    "sql": lambda: stretto.compile_sql(SQL),
    "afa": automaton,
    "afa without arcs": lambda: stretto.AFA({"name": str}),
    "matcher": lambda: matcher(CEQL, time="t"),
    "matcher of an afa": lambda: matcher(automaton(), time="t"),
    "matcher that goes ahead": lambda: matcher(SASE, time="t", speculation=math.inf),
    "new matcher": lambda: stretto.Matcher(CEQL, time="t"),
    "patterns": patterns,
    "dataflow": flow,
}


@pytest.mark.parametrize("graphviz", [True, False], ids=["drawn", "text"])
@pytest.mark.parametrize("make", SHOWN.values(), ids=SHOWN)
def test_nothing_of_users_is_markup(make: Any, graphviz: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not graphviz:
        monkeypatch.setattr(shutil, "which", lambda name: None)
    elif shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    html = make()._repr_html_()
    assert "<script" not in html
    ET.fromstring(f"<div>{html.replace('<br>', '')}</div>")


def test_a_matcher_tells_what_it_holds() -> None:
    html = matcher(CEQL, time="t")._repr_html_()
    assert "events: 2\n" in html
    assert "<summary>how it runs</summary>" in html
    assert "partition  by k" in html


def test_a_set_shows_its_patterns() -> None:
    html = patterns()._repr_html_()
    assert "patterns: 1\n" in html
    assert "&lt;script&gt;" in html
    assert repr(patterns()) == "<stretto.PatternSet: 1 patterns, 2 rows read>"


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_pictures_are_dark_where_the_reader_is() -> None:
    svg = stretto.compile(CEQL).draw().svg()
    assert svg.count("prefers-color-scheme: dark") == 1
    assert 'class="graph stretto-graph"' in svg


def test_counts_in_words() -> None:
    told = running({"rows": 1_000, "idle": True, "held": {"0 join": 3}, "loops": {}}, punctuation=None, read="2 rows")
    assert told == [("read", "2 rows"), ("counts", "rows: 1,000"), ("held", "0 join: 3")]
