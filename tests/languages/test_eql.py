"""EQL: what texts mean, how they bind, and what calls take them."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from benchmarks.rules import schema_of
from stretto.errors import LimitError, OptionError, QueryError
from stretto.languages.eql import parse
from stretto.matching.compiled import compile_query
from tests.conftest import DATA

EVENTS = pa.table(
    {
        "category": ["process", "network", "process", "file", "process", "network", None],
        "t": [0, 1, 2, 3, 4, 5, 6],
        "host": ["a", "a", "b", "a", "a", "a", "a"],
        "name": ["cmd.exe", "10.1.2.3", "CMD.EXE", None, "p_s", "fe80::1", "x"],
        "size": [1, 2, 3, None, 5, -7, 0],
    }
)
ROLES: dict[str, Any] = {"type": "category", "time": "t", "time_unit": "s"}


def rows(text: str, events: pa.Table = EVENTS) -> list[list[int]]:
    """The positions of each match."""
    found = stretto.match(text, events, language="eql", output="positions", **ROLES)
    return [sorted(one) for one in found.column("positions").to_pylist()]


def selected(condition: str) -> list[int]:
    """The events of any category that fulfil a condition."""
    return [one for (one,) in rows(f"any where {condition}")]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ('name == "cmd.exe"', [0]),
        ('name : "cmd.exe"', [0, 2]),
        ('name : "C*.?XE"', [0, 2]),
        ('name : ("p?s", "x")', [4, 6]),
        ('name : "*"', [0, 1, 2, 4, 5, 6]),
        ('name like "c*"', [0]),
        ('name like~ ("c*", "fe80*")', [0, 2, 5]),
        ('name regex "cmd.*"', [0]),
        ('name regex "cmd"', []),
        ('name regex~ ("cmd.*", ".")', [0, 2, 6]),
        ('name in ("cmd.exe", "x")', [0, 6]),
        ('name in~ ("cmd.exe", "X")', [0, 2, 6]),
        ('name not in ("cmd.exe", "x")', [1, 2, 3, 4, 5]),
        ("name == null", [3]),
        ("name != null and size != 1", [1, 2, 4, 5, 6]),
        ('name != "cmd.exe"', [1, 2, 3, 4, 5, 6]),
        ('not name : "*.exe"', [1, 3, 4, 5, 6]),
        ("size > 1", [1, 2, 4]),
        ("not size > 1", [0, 3, 5, 6]),
        ("size <= 1", [0, 5, 6]),
        ("not (size > 1) or not not size < 0", [0, 3, 5, 6]),
        ("not (size > 1 and size < 5)", [0, 3, 4, 5, 6]),
        ("size / 2 == 1", [1, 2]),
        ("size / 2.0 == 1", [1]),
        ("divide(size, -2) == 3", [5]),
        ("modulo(size, 2) == -1", [5]),
        ("-size + 1 > 1", [5]),
        ('startsWith(name, "cmd")', [0]),
        ('startsWith~(name, "CMD")', [0, 2]),
        ('endsWith(name, ".exe", "s")', [0, 4]),
        ('stringContains~(name, "MD.E")', [0, 2]),
        ("startsWith~(name, name)", [0, 1, 2, 4, 5, 6]),
        ("endsWith(name, substring(name, -1))", [0, 1, 2, 4, 5, 6]),
        ("length(name) == 3", [4]),
        ('substring(name, -4) == ".exe"', [0]),
        ('substring(name, 1, 3) == "md"', [0]),
        ('indexOf(name, "m") == 1', [0]),
        ('indexOf~(name, "m", 1) == 1', [0, 2]),
        ('indexOf(name, "q") == null', [0, 1, 2, 3, 4, 5, 6]),
        ('between(name, "c", "e") == "md."', [0]),
        ('between~(name, "C", "E", true) == "md.ex"', [0]),
        ('between(name, "q", "e") == ""', [0, 1, 2, 4, 5, 6]),
        ('concat(host, ":", size) == "b:3"', [2]),
        ("concat(name, size) == null", [3]),
        ('string(size) : "?"', [0, 1, 2, 4, 6]),
        ('number("0x10", 16) + size == 17', [0]),
        ("number(string(size)) == 5", [4]),
        ("number(name) == null", [0, 1, 2, 3, 4, 5, 6]),
        ('cidrMatch(name, "10.0.0.0/8")', [1]),
        ('cidrMatch(name, "192.168.0.0/16", "fe80::/10")', [5]),
        ('not cidrMatch(name, "10.0.0.0/8")', [0, 2, 3, 4, 5, 6]),
        ('cidrMatch(name, "10.0.0.0/8") == true', [1]),
        ('true != stringContains(name, "e")', [1, 2, 3, 4, 6]),
        ('match(name, "p.s", "x")', [4, 6]),
        ('wildcard~(name, "CMD*")', [0, 2]),
        ('?nowhere == null and ?nowhere != "x" and size == 1', [0]),
        ("?nowhere > 1", []),
        ('`name` == "x" // a comment\n', [6]),
        ('name == """p_s""" /* or\n so */', [4]),
        ('name == ?"p_s"', [4]),
        (r'name == "\u{78}"', [6]),
        ("true", [0, 1, 2, 3, 4, 5, 6]),
        ("false or 1 == 2", []),
    ],
)
def test_conditions(condition: str, found: list[int]) -> None:
    assert selected(condition) == found


def test_categories() -> None:
    assert rows("process where true") == [[0], [2], [4]]
    assert rows('"process" where true') == rows("`process` where true") == rows("process where true")
    assert [one[0] for one in rows("any where true")] == list(range(7))


def test_a_struct_and_a_column_with_a_point() -> None:
    events = pa.table({"type": ["p", "p"], "process": [{"parent": {"name": "x"}}, None], "file.name": ["a", "b"]})
    found = stretto.match('p where process.parent.name == "x" and file.name == "a"', events, language="eql")
    assert found.column("positions").to_pylist() == [[0]]


def test_what_a_result_shows() -> None:
    found = stretto.match(
        "sequence by host with maxspan=2s [process where true] [network where true]", EVENTS, language="eql", **ROLES
    )
    assert found.column_names == ["start", "end", "positions", "start_time", "end_time", "host", "e1", "e2"]
    assert [one["e2"][0]["name"] for one in found.to_pylist()] == ["10.1.2.3", "fe80::1"]
    counts = stretto.match("process where true", EVENTS, language="eql", output="summary", **ROLES)
    assert counts.column("matches").to_pylist() == [1, 1, 1]


def test_pipes() -> None:
    assert rows("process where true | head 2") == [[0], [2]]
    assert rows("process where true | tail 2") == [[2], [4]]
    assert rows("process where true | tail 2 | head 1") == [[2]]
    assert rows("process where false | tail 2") == []
    pieces = stretto.iter_matches("process where true | head 1", EVENTS, language="eql", **ROLES)
    assert sum(one.num_rows for one in pieces) == 1
    with pytest.raises(OptionError, match="a stream has no end"):
        stretto.Matcher("process where true | head 2", EVENTS.schema, language="eql", **ROLES)


def test_pipes_that_read_events() -> None:
    """Fields without a number are of the first event; NULL comes first."""
    assert rows("any where true | sort size, name") == [[3], [5], [6], [0], [1], [2], [4]]
    assert rows("any where true | unique host, category") == [[0], [1], [2], [3], [6]]
    assert rows("any where true | filter size > 1 | head 2") == [[1], [2]]
    pairs = "sequence by host [process where true] [network where true]"
    assert rows(f"{pairs} | sort events[1].size") == [[4, 5], [0, 1]]
    assert rows(f'{pairs} | filter events[1].name : "10*" and size == events[0].size') == [[0, 1]]
    assert rows(
        "sample by host [network where true] [process where true] | filter name == null or events[1].size == 1"
    ) == [[0, 1]]
    assert rows("any where true | unique ?lost | filter ?lost == null and true") == [[0]]
    assert rows("process where true | filter false | sort size | unique size") == []
    pieces = list(
        stretto.iter_matches(
            "process where true | sort name | head 1", EVENTS, language="eql", output="positions", **ROLES
        )
    )
    assert [row for piece in pieces for row in piece.to_pylist()] == [
        {"start": 2, "end": 2, "positions": [2], "start_time": 2, "end_time": 2}
    ]
    with pytest.raises(
        OptionError, match="output='summary' counts matches, and the pipes of this query read their events"
    ):
        stretto.match("process where true | sort name", EVENTS, language="eql", output="summary", **ROLES)
    with pytest.raises(OptionError, match=r"the pipe '\| sort name' is of a whole result, and a stream has no end"):
        stretto.Matcher("process where true | sort name", EVENTS.schema, language="eql", **ROLES)
    with pytest.raises(QueryError, match=r"unique takes numbers, strings and times, and 'tags' is list<"):
        stretto.match("any where true | unique tags", [{"type": "a", "tags": ["x"]}], language="eql")


def test_pipes_that_read_structs_and_codes() -> None:
    events = pa.table(
        {
            "type": ["p", "p", "p"],
            "process": [{"parent": {"name": "x"}}, None, {"parent": {"name": "b"}}],
            "file.name": pa.array(["b", "a", "a"]).dictionary_encode(),
        }
    )
    for text, wanted in (
        ("sort process.parent.name", [1, 2, 0]),
        ("sort file.name, process.parent.name", [1, 2, 0]),
        ("unique file.name", [0, 1]),
    ):
        found = stretto.match(f"p where true | {text}", events, language="eql")
        assert found.column("positions").to_pylist() == [[one] for one in wanted], text


def test_limits() -> None:
    steps = " ".join(f"[any where size == {at}]" for at in range(64))
    with pytest.raises(LimitError, match="the steps have 64 different conditions, and 63 at most"):
        stretto.match(f"sequence {steps}", EVENTS, language="eql", **ROLES)
    with pytest.raises(QueryError, match="the sequence has 300 steps, and 256 at most"):
        stretto.compile("sequence " + "[any where true] with runs=100 " * 3, language="eql")
    deep = "process where " + "not " * 300 + "true"
    with pytest.raises(QueryError, match="nested more than 200 levels deep"):
        stretto.compile(deep, language="eql")
    with pytest.raises(QueryError, match="a query has 64 pipes at most"):
        stretto.compile("process where true" + " | head 5" * 65, language="eql")
    assert rows("process where true" + " | filter true | head 2" * 32) == [[0], [2]]
    long = stretto.match(
        "sequence " + "[any where true] with runs=100 " * 2, pa.table({"type": ["A"] * 250}), language="eql"
    )
    assert long.num_rows == 51


def test_several_tables_by_stream() -> None:
    parts = {name: EVENTS.filter(pa.compute.equal(EVENTS["category"], name)) for name in ("process", "network", "file")}
    asked = "sequence by host [process where true] [network where true]"
    found = stretto.match(asked, parts, language="eql", type=None, time="t")
    assert found.select(["start_time", "end_time"]).to_pylist() == [
        {"start_time": 0, "end_time": 1},
        {"start_time": 4, "end_time": 5},
    ]


def test_what_eql_does_not_do() -> None:
    asked = "sequence by host with maxspan=2s [process where true] [network where true]"
    for options, why in [
        ({"timeouts": True}, "EQL forgets those that a newer one takes the place of"),
        ({"valuations": True}, "valuations= are those of CEQL"),
    ]:
        with pytest.raises(OptionError, match=why):
            stretto.match(asked, EVENTS, language="eql", **ROLES, **options)
        with pytest.raises(OptionError, match=why):
            stretto.match(asked.replace("with maxspan=2s", ""), EVENTS, language="eql", **ROLES, **options)
    with pytest.raises(OptionError, match="takes no answer back"):
        stretto.Matcher(asked, EVENTS.schema, language="eql", speculation=math.inf, **ROLES)
    with pytest.raises(OptionError, match="an event completes one match of EQL at most"):
        stretto.match_sets(asked, EVENTS, language="eql", **ROLES)
    with pytest.raises(OptionError, match="no column names it"):
        stretto.match(asked, EVENTS, language="eql", **(ROLES | {"type": None}))
    with pytest.raises(QueryError, match="no time column is named"):
        stretto.match(asked, EVENTS, language="eql", type="category")


def test_many_rules_in_one_pass() -> None:
    rules = {
        "cmd": 'process where name : "cmd*"',
        "inside": 'network where cidrMatch(name, "10.0.0.0/8")',
        "small": "file where size == null or size < 0",
        "any": "any where size == 5",
        "steps": "sequence by host [process where true] [network where true]",
    }
    patterns = stretto.PatternSet(EVENTS.schema, type="category", time="t", language="eql")
    patterns.change([stretto.Change(name, text) for name, text in rules.items()])
    found = patterns.push(EVENTS).to_pylist()
    alone = [(name, one[0]) for name, text in rules.items() for one in rows(text)]
    assert sorted((one["pattern"], one["start_time"]) for one in found) == sorted(alone)


def test_a_join_is_idle_where_it_holds_nothing() -> None:
    """A set leaves out the state of what is idle when it is saved."""
    text = "join by host [process where true] [network where true]"
    matcher = stretto.Matcher(text, EVENTS.schema, language="eql", output="positions", **ROLES)
    idle = []
    for at in range(2):
        matcher.push(EVENTS.slice(at, 1))
        idle.append(matcher.idle)
    assert idle == [False, True]


def test_events_that_come_late() -> None:
    asked = "sequence by host [process where true] [network where true]"
    matcher = stretto.Matcher(asked, EVENTS.schema, language="eql", disorder=3, **ROLES)
    found = [*matcher.push(EVENTS.take([1, 0, 3, 2, 5, 4])).to_pylist(), *matcher.finish().to_pylist()]
    assert [(one["start_time"], one["end_time"]) for one in found] == [(0, 1), (4, 5)]


def test_explain_and_draw() -> None:
    asked = (
        'sequence by host with maxspan=1m [process where name : "c*"] ![file where true] [network where size > 1] '
        "until [any where size == 0]"
    )
    query = stretto.compile(asked, EVENTS.schema, language="eql", **ROLES)
    told = query.explain()
    for line in (
        "steps      process e1 by host",
        "no file not2 by host",
        "maxspan    60 seconds from the first event to the last",
        "until      any until by host ends the partial matches of its key",
        "engine     latest: ",
    ):
        assert line in told
    assert "style=dotted" in query.draw().source
    assert (
        "selection  sample: different events in any order"
        in stretto.compile("sample by host [process where true] [file where true]", language="eql").explain()
    )


@pytest.mark.parametrize(
    ("name", "modes"),
    [
        ("elastic_eql_event_rules", {"event": 823}),
        ("elastic_eql_sequence_rules", {"sequence": 217, "sample": 3}),
    ],
)
def test_public_rules(name: str, modes: dict[str, int]) -> None:
    """All parse, bind against the columns that they name, and are explained."""
    path = Path(DATA) / "rules" / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no rules at {path} (set STRETTO_DATA)")
    found: Counter[str] = Counter()
    for rule in json.loads(path.read_text(encoding="utf-8"))["cases"]:
        query = parse(rule["query"])
        bound = compile_query(rule["query"], schema_of(query), language="eql", type="event.category", time="@timestamp")
        category = query.stages[0].category
        engine = "tecs" if query.mode == "event" and category is not None else "latest"
        assert f"engine     {engine}:" in bound.explain(), rule["path"]
        found[query.mode] += 1
    assert found == modes


@pytest.mark.parametrize(
    "text",
    [
        "sample by host [process where true] [network where true]",
        "sequence with maxspan=9s ![file where true] [network where true]",
    ],
)
def test_what_a_new_matcher_would_not_know_is_not_idle(text: str) -> None:
    """A key that has its sample, and an event that must not come before a match, are remembered by nothing but the state."""
    matcher = stretto.Matcher(text, EVENTS.schema, language="eql", output="positions", **ROLES)
    matcher.push(EVENTS.slice(0, 4))
    assert not matcher.idle
    again = stretto.Matcher(text, EVENTS.schema, language="eql", output="positions", **ROLES)
    later = EVENTS.slice(4)
    assert again.push(later).num_rows > matcher.push(later).num_rows
