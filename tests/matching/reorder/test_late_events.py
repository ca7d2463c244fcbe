"""Late events are handed over whole: with all columns that they had, whichever of them a query, a clause or an automaton reads."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import stretto

ROWS = [
    {"type": "A", "t": 10, "k": "u", "x": 1, "note": "one"},
    {"type": "Z", "t": 20, "k": "u", "x": 2, "note": "two"},
    {"type": "B", "t": 3, "k": "u", "x": 3, "note": "three"},
]
CEQL = "SELECT a[t] FROM S WHERE A AS a ; B PARTITION BY [k] WITHIN 5 [t]"
SASE = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [k] } WITHIN 5"
EQL = "sequence by k with maxspan=5s [A where true] [B where true]"
ROW_PATTERN = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES A.t AS a PATTERN (A B) DEFINE A AS type = 'A', B AS type = 'B')"
AFA = stretto.AFA({"type": str}, window=10).arc("q0", "q1", when="e.type = 'A'").final("q1")

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "ceql": (CEQL, {}),
    "ceql, positions": (CEQL, {"output": "positions"}),
    "ceql, summary": (CEQL, {"output": "summary"}),
    "ceql, kept": (CEQL + " KEEP LONGEST", {}),
    "ceql, timeouts": (CEQL, {"timeouts": True}),
    "ceql, ahead": (CEQL, {"speculation": math.inf}),
    "totals": (CEQL.replace("a[t]", "COUNT(*)"), {}),
    "totals, ahead": (CEQL.replace("a[t]", "COUNT(*)"), {"speculation": math.inf}),
    "sase": (SASE, {"output": "positions"}),
    "sase, ahead": (SASE, {"speculation": 4, "output": "positions"}),
    "sase, far ahead": (SASE + " RETURN a.t AS at", {"speculation": math.inf}),
    "sase, totals": (SASE + " RETURN TOTAL count(*)", {}),
    "eql": (EQL, {"language": "eql", "time_unit": "s", "output": "positions"}),
    "rows": (ROW_PATTERN, {"time": None}),
    "afa": (AFA, {}),
    "afa, ahead": (AFA, {"speculation": 3}),
    "afa, certain": (AFA, {"speculation": 0}),
}


@pytest.mark.parametrize("name", CASES)
def test_late_events_come_whole(name: str) -> None:
    query, options = CASES[name]
    events = pa.Table.from_pylist(ROWS)
    given = {"time": "t", "disorder": 2, "late": "side"} | options
    matcher = stretto.Matcher(query, events.schema, **given)
    matcher.push(events)
    restored = stretto.Matcher(query, events.schema, **given)
    restored.restore(matcher.snapshot())
    for each in (matcher, restored):
        assert each.late_events().to_pylist() == [ROWS[2]]
        assert each.late_events().num_rows == 0
        assert each.late == 1
    # A column that comes later is there as well, and one that is gone is NULL.
    without = {name: value for name, value in ROWS[2].items() if name != "note"}
    for column, value in (("new", 1.5), ("new", "a text")):
        matcher.push([without | {column: value}])
    late = matcher.late_events().to_pylist()
    assert [row["new"] for row in late] == ["1.5", "a text"]
    assert [row.get("note") for row in late] == [None, None]
    assert [row["x"] for row in late] == [3, 3]


def test_a_retraction_of_what_is_not_there_comes_whole() -> None:
    columns = {"t": pa.int64(), "type": pa.string(), "sign": pa.int8(), "note": pa.string()}
    for waits in ({}, {"speculation": 3}):
        matcher = stretto.Matcher(AFA, pa.schema(list(columns.items())), time="t", sign="sign", late="side", **waits)
        row = {"t": 5, "type": "A", "sign": -1, "note": "never came"}
        matcher.push(pa.Table.from_pylist([row], pa.schema(list(columns.items()))))
        matcher.advance(20)
        assert matcher.late_events().to_pylist() == [row]
