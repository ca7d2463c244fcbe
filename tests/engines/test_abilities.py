"""Every cell of the table «what each engine can» (docs/engines.md) is so."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import StrettoError

#: What a query may ask for, as the page says it.
FEATURES = {
    "any": "`skip_till_any_match`, `;`",
    "next": "`skip_till_next_match`",
    "contiguity": "`strict_contiguity`, `partition_contiguity`, `:`",
    "negation": "negation between components",
    "closing": "negation at an end of the pattern",
    "gaps": "gaps between neighbours, windows inside: `AFTER`, `GAP`, `(…) WITHIN`",
    "relations": "conditions that relate events",
    "keys": "keys: `PARTITION BY`, `[k]`",
    "time": "windows of time",
    "events": "windows of events: `WITHIN n EVENTS`",
    "limit": "`LIMIT`",
    "choice": "the best matches and samples: `ORDER BY … LIMIT`, `SAMPLE`",
    "totals": "counts and sums over all matches: `COUNT(*)`, `RETURN TOTAL`",
    "keep": "`KEEP`, `AFTER MATCH SKIP`",
    "timeouts": "partial matches that time out: `timeouts=`",
    "return": "`RETURN`",
    "summary": 'counts of matches that are listed otherwise: `output="summary"`',
    "sets": "match sets: `match_sets`, `push_sets`",
    "disorder": "events out of order that are sorted: `disorder=`",
    "speculation": "answers ahead of what is certain, which are taken back: `speculation=`",
    "sign": "events that are taken back: `sign=`",
    "prime": "events that are read without what they complete: `prime`",
    "arcs": "arcs that change: `add_arc`, `retire_arc`",
    "patterns": "many patterns in one pass: `PatternSet`, `spark.match_patterns`",
    "snapshots": "snapshots",
    "spark": "`spark.match`, batch and streaming",
}


def table() -> dict[str, dict[str, str]]:
    """What the page says of each engine, by what is asked for."""
    page = Path(__file__).parent.parent.parent / "docs" / "engines.md"
    lines = page.read_text(encoding="utf-8").partition("What each can:")[2].strip().partition("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    engines = [name.lower() for name in head[1:]]
    return {row[0]: dict(zip(engines, row[1:], strict=True)) for row in rows}


TABLE = table()
ENGINES = ("tecs", "nfab", "timed", "afa", "totals")

SCHEMA = pa.schema(
    [("type", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("k", pa.string()), ("sign", pa.int8())]
)
EVENTS = pa.Table.from_pylist(
    [{"type": kind, "t": at, "v": at, "k": "x", "sign": 1} for kind, at in (("A", 1), ("B", 2), ("D", 30))], SCHEMA
)
AUTOMATON = (
    stretto.AFA({"type": str}, window=9)
    .arc("q0", "q1", when="e.type = 'A'", id="one")
    .arc("q1", "q2", when="e.type = 'B'")
    .final("q2")
)


def text_of(engine: str, feature: str) -> str:
    """A query that asks for something, and for what an engine is there for."""
    if feature == "gaps" or (engine == "timed" and feature not in ("next", "relations", "return", "keep")):
        more = {"keys": " PARTITION BY [k]", "limit": " LIMIT 3", "choice": " SAMPLE 3"}.get(feature, "")
        pattern = {"negation": "A ; NOT C ; B", "closing": "A ; B ; NOT C", "contiguity": "A : B"}.get(feature, "A ; B")
        if feature != "closing":
            pattern += " AFTER 0 [t]"
        window = "9 EVENTS" if feature == "events" else "9 [t]"
        items = "COUNT(*)" if feature == "totals" or engine == "totals" else "*"
        return f"SELECT {items} FROM S WHERE ({pattern}) WITHIN {window}{more}"
    if feature == "keep" and engine in (
        "tecs",
        "timed",
    ):  # which list where the choice cannot be made while events are read
        gap = " AFTER 0 [t]" * (engine == "timed")
        return f"SELECT LAST * FROM S WHERE A ; B{gap} WITHIN 9 [t] KEEP LONGEST"
    if engine in ("tecs", "totals") and feature == "negation":
        return f"SELECT {'COUNT(*)' if engine == 'totals' else '*'} FROM S WHERE A ; NOT C ; B WITHIN 9 [t]"
    strategy = {"next": "skip_till_next_match", "contiguity": "strict_contiguity"}.get(feature, "skip_till_any_match")
    pattern = {"negation": "A a, ~(C c), B b", "closing": "A a, B b, ~(C c)"}.get(feature, "A a, B b")
    asked = ["[k]"] if feature == "keys" else []
    if engine not in ("tecs", "totals") or feature == "relations":
        asked.append("a.v < b.v")
    window = "9 EVENTS" if feature == "events" else "9"
    more = {
        "limit": " LIMIT 3",
        "choice": " SAMPLE 3",
        "keep": " KEEP LONGEST",
        "return": " RETURN a.v + b.v AS s",
    }.get(feature, "")
    if engine == "totals" or feature == "totals":
        more = f" RETURN TOTAL count(*){more}"
    return f"PATTERN SEQ({pattern}) WHERE {strategy} {{ {' AND '.join(asked)} }} WITHIN {window}{more}"


def engine_of(thing: Any) -> str:
    """The folder of a run, or of what a program compiles."""
    modules = [kind.__module__.split(".")[2] for kind in type(thing).__mro__ if kind.__module__.count(".") > 2]
    return modules[0]


def used(engine: str, feature: str) -> tuple[str, int]:
    """The engine that runs, and how many rows it gives."""
    text = text_of(engine, feature)
    if engine == "tecs" and feature == "speculation":
        text = "SELECT * FROM S WHERE A; B"  # SASE+ runs as an automaton then
    what: Any = AUTOMATON if engine == "afa" and feature in ("arcs", "summary", "sets", "patterns") else text
    if feature == "spark":
        return engine, int(stretto.spark.match(object(), what, time="t") is not None)  # type: ignore[arg-type]
    if feature == "patterns":
        patterns = stretto.PatternSet(SCHEMA, time="t", totals=engine == "totals")
        patterns.change([stretto.Change("p", what)])
        rows = patterns.push(EVENTS).num_rows + patterns.finish().num_rows
        runs = patterns._running.timeline.in_force.versions[0].part.machine
        return engine_of(runs), rows
    options: dict[str, Any] = {"time": "t"}
    if (engine == "afa" and what is not AUTOMATON) or feature == "speculation":
        options["speculation"] = math.inf
    more: dict[str, dict[str, Any]] = {
        "summary": {"output": "summary"},
        "sets": {"sets": True},
        "sign": {"sign": "sign"},
        "timeouts": {"timeouts": True},
    }
    options |= more.get(feature, {})
    if feature == "disorder":
        options |= {"disorder": 3} | ({"speculation": 2} if engine == "afa" else {})
    schema = None if what is AUTOMATON or feature == "sign" else SCHEMA
    matcher = stretto.Matcher(what, schema, **options)
    events = EVENTS if feature != "disorder" else EVENTS.take([1, 0, 2])
    if feature == "prime":
        matcher.prime(events.slice(0, 1))
        events = events.slice(1)
    elif feature == "snapshots":
        matcher.push(events.slice(0, 1))
        matcher = stretto.Matcher(what, SCHEMA, **options).restore(matcher.snapshot())
        events = events.slice(1)
    elif feature == "arcs":
        matcher.push(events.slice(0, 0))
        matcher.add_arc("q1", "q2", when="e.type = 'B'", id="another")
    if feature == "sets":
        rows = sum(len(found) for found in matcher.push_sets(events))
    else:
        rows = matcher.push(events).num_rows + matcher.finish().num_rows
    run = matcher._executor.run
    return engine_of(getattr(run, "run", run)), rows


def test_the_page_has_these_rows() -> None:
    assert list(TABLE) == list(FEATURES.values())
    assert all(tuple(cells) == ENGINES and set(cells.values()) <= {"yes", "no"} for cells in TABLE.values())


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_cell(engine: str, feature: str) -> None:
    if TABLE[FEATURES[feature]][engine] == "yes":
        if feature == "spark":
            pytest.skip("tests/spark")
        assert used(engine, feature) == (engine, 1)
        return
    try:
        runs, _ = used(engine, feature)
    except StrettoError:
        return
    assert runs != engine  # another engine does it
