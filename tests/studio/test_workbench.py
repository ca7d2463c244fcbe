"""What the studio's page is told: against ``stretto.match``, and within its bounds."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import stretto
from stretto.errors import OptionError
from stretto.studio import workbench
from stretto.studio.workbench import Roles, Workbench
from tests.conftest import cases

PAIRS = "SELECT * FROM S WHERE A AS a; B+ AS b WITHIN 4 [t]"


def bench_of(kinds: str, **more: list[object]) -> Workbench:
    """A workbench over events of these types, one a tick."""
    return Workbench(pa.table({"type": list(kinds), "t": list(range(len(kinds))), **more}), Roles(time="t"))


def test_the_columns() -> None:
    found = bench_of("ABA", v=[1.5, None, 2.5]).columns()
    assert found["columns"] == [
        {"name": "type", "type": "string", "values": ["A", "B"]},
        {"name": "t", "type": "int64", "values": []},
        {"name": "v", "type": "double", "values": []},
    ]
    assert (found["rows"], found["more"]) == (3, False)
    assert found["roles"] == {"type": "type", "time": "t", "stream": "", "time_unit": "", "language": ""}


def test_a_sample_of_a_file_is_its_first_events(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"type": ["A"] * 10, "t": [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]}), path, row_group_size=3)
    bench = Workbench.of_files(str(path), Roles(time="t"), rows=4)
    assert bench.columns()["more"]
    assert bench.page_of_events(0, 10) == {
        "offset": 0,
        "rows": [["A", 6], ["A", 7], ["A", 8], ["A", 9]],
        "at": [6, 7, 8, 9],
    }
    assert not Workbench.of_files(str(path), Roles(), rows=10).columns()["more"]


def test_without_a_column_of_types() -> None:
    bench = Workbench(pa.table({"v": [1, 2, 3]}), Roles())
    assert bench.columns()["roles"]["type"] == ""
    assert bench.run("SELECT * FROM S WHERE S AS s FILTER s[v > 1]")["count"] == 2
    with pytest.raises(stretto.DataError, match="no column 'kind'"):
        Workbench(pa.table({"v": [1]}), Roles(type="kind"))


def test_times_on_an_axis() -> None:
    times = [dt.datetime(1970, 1, 1, 0, 0, 2), dt.datetime(1970, 1, 1, 0, 0, 1)]
    for kind in ("s", "ms", "us", "ns"):
        events = pa.table({"type": ["A", "B"], "t": pa.array(times, pa.timestamp(kind))})
        assert Workbench(events, Roles(time="t")).page_of_events(0, 2)["at"] == [1000, 2000]
    days = pa.table({"t": pa.array([dt.date(1970, 1, 3)])})
    assert Workbench(days, Roles(time="t")).page_of_events(0, 2)["at"] == [2 * 86_400_000]
    with pytest.raises(stretto.DataError, match="'t' has NULLs"):
        Workbench(pa.table({"t": [1, None]}), Roles(time="t"))


def test_a_mistake_has_its_place() -> None:
    text = "SELECT *\nFROM S WHERE A AS a FILTER a[prize > 3]"
    found = bench_of("A", price=[1]).check(text)["error"]
    assert text[found["start"] : found["end"]] == "prize"
    assert (found["line"], found["column"], found["hint"]) == (2, 30, "did you mean 'price'?")
    told = {"error": None, "language": "ceql", "variables": ["a", "b"]}
    assert bench_of("A").check(PAIRS) == told | {"keys": []}
    assert "'#'" in bench_of("A").check("SELECT * FROM S WHERE A AS a FILTER a[`#` > 3]")["error"]["message"]


def test_the_column_of_numbers_is_no_attribute() -> None:
    with pytest.raises(stretto.QueryError, match="unknown attribute '#'"):
        bench_of("A").run("SELECT * FROM S WHERE A AS a FILTER a[`#` = 0]")


def test_a_statement_of_sql_is_refused_with_a_way_out() -> None:
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY t PATTERN (A) DEFINE A AS t > 1)"
    error = bench_of("A").check(text)["error"]
    assert error["message"] == "the studio does not run MATCH_RECOGNIZE"
    assert "stretto sql" in error["hint"]


def test_explained_and_drawn() -> None:
    bench = bench_of("AB")
    assert bench.explain(PAIRS)["text"].startswith("query")
    assert bench.draw(PAIRS)["dot"].startswith("digraph")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (PAIRS, None),
        ("PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { } WITHIN 4", None),
        ("sequence with maxspan=4s [A where true] [B where true]", "eql"),
    ],
)
def test_runs_and_steps_are_what_match_finds(text: str, language: str | None) -> None:
    for seed in range(cases(20)):
        rng = random.Random(seed)
        events = pa.table({"type": rng.choices("ABC", k=9), "t": sorted(rng.choices(range(12), k=9))})
        bench = Workbench(events, Roles(time="t", time_unit="s", language=language))
        wanted = stretto.match(text, events, time="t", time_unit="s", language=language).to_pylist()
        found = bench.run(text)
        assert [one["rows"] for one in found["matches"]] == [one["positions"] for one in wanted], seed
        for match in found["matches"]:
            assert sorted(row for rows in match["variables"].values() for row in rows) == match["rows"], seed
            for variable, rows in match["variables"].items():
                assert {found["events"][str(row)][1][0] for row in rows} <= {variable.upper(), "A", "B"}, seed
        steps = [bench.step(text, count) for count in range(10)]
        assert [one["rows"] for step in steps for one in step["matches"]] == [one["positions"] for one in wanted], seed
        if language is None:
            for step in steps:
                late = pa.table({"type": ["C"], "t": [1000]})
                seen = pa.concat_tables([events.slice(0, step["count"]), late])
                rows = stretto.match(text, seen, time="t", time_unit="s", timeouts=True).to_pylist()
                closed = stretto.match(text, events.slice(0, step["count"]), time="t", time_unit="s", timeouts=True)
                before = [one["positions"] for one in closed.to_pylist() if one["reached"]]
                still = [one["positions"] for one in rows if one["reached"] and one["positions"] not in before]
                assert [one["rows"] for one in step["partial"]] == still, seed


def test_partial_matches_that_are_not_followed() -> None:
    step = bench_of("A").step("SELECT * FROM S WHERE A; B", 1)
    assert step["partial"] == []
    assert "WITHIN a span of time" in step["refused"]
    refused = bench_of("AB").step(f"{PAIRS} LIMIT 1", 2)
    assert "LIMIT" in refused["refused"]
    assert refused["completed"] == 1


def test_a_step_of_a_query_that_consumes() -> None:
    step = bench_of("AABB").step("SELECT * FROM S WHERE A; B CONSUME BY ANY", 4)
    assert step["matches"] == []


def test_what_is_selected_in_part_has_its_values() -> None:
    found = bench_of("AB", v=[1, 2]).run("SELECT a[v] FROM S WHERE A AS a; B AS b")["matches"][0]
    assert (found["variables"], found["values"]["a"]) == ({}, [{"v": 1}])


def test_what_is_counted_over_all_matches_has_no_rows() -> None:
    found = bench_of("ABAB").run("SELECT COUNT(*) AS n FROM S WHERE A AS a; B AS b WITHIN 10 [t]")["matches"]
    assert [(one["rows"], one["values"]["n"]) for one in found] == [([], 3)]


def test_what_is_in_the_way() -> None:
    answer = bench_of("AB", v=[1, 2]).why_not("SELECT * FROM S WHERE A AS a; B AS b FILTER b[v > 3]")["text"]
    assert "b[v > 3] does not hold: v is 2 in row 1" in answer


def test_values_that_json_does_not_have() -> None:
    events = pa.table(
        {"type": ["A"], "i": [2**60], "f": [float("nan")], "b": [b"\x01"], "d": [dt.timedelta(1)], "#": ["x"]}
    )
    found = Workbench(events, Roles()).run("SELECT * FROM S WHERE A AS a")
    assert json.loads(json.dumps(found, allow_nan=False))["events"]["0"] == [
        0,
        ["A", str(2**60), "nan", "01", "1 day, 0:00:00", "x"],
    ]
    assert found["matches"][0]["variables"] == {"a": [0]}


# ---- Bounds


def test_a_run_stops_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "MOST_MATCHES", 50)
    bench = bench_of("A" * 40)
    found = bench.run("SELECT * FROM S WHERE A+")
    assert (found["count"], found["more"]) == (50, True)
    assert len(bench.page(0, 100)["matches"]) == 50
    assert not bench.run("SELECT * FROM S WHERE A")["more"]
    step = bench.step("SELECT * FROM S WHERE A+ AS a WITHIN 100 [t]", 4)
    assert (step["completed"], step["waiting"]) == (8, 0)
    with pytest.raises(stretto.LimitError):
        bench.step("SELECT * FROM S WHERE A+", 40)


def test_pages_are_bounded() -> None:
    bench = bench_of("A" * 900)
    assert len(bench.page_of_events(0, 10**9)["rows"]) == workbench.MOST_ROWS
    assert bench.page_of_events(10**12, 5)["rows"] == []
    assert bench.page_of_events(-3, -3)["rows"] == []
    bench.run("SELECT * FROM S WHERE A")
    assert [one["rows"] for one in bench.page(898, 10)["matches"]] == [[898], [899]]
    assert len(bench.page(0, 10**9)["matches"]) == workbench.MOST_ROWS


def test_texts_are_bounded() -> None:
    error = bench_of("A").check("SELECT " + " " * workbench.LONGEST)["error"]
    assert error["kind"] == "LimitError"
    nested = bench_of("A").check("SELECT * FROM S WHERE " + "(" * 20_000 + "A" + ")" * 20_000)["error"]
    assert nested["kind"] in ("LimitError", "QueryError")


def test_why_an_event_is_in_no_match() -> None:
    kinds, keys, times = "ABCABAB", [1, 1, 2, 1, 2, 2, 2], [1, 2, 3, 20, 21, 40, 41]
    for column, window in [
        (pa.array(times), "10 [t]"),
        (pa.array([float(one) for one in times]), "10 [t]"),
        (pa.array([one * 10**9 + 1 for one in times], pa.timestamp("ns")), "10 seconds"),
        (pa.array([one * 10**6 for one in times], pa.timestamp("us", "Europe/Berlin")), "10 seconds"),
        (pa.array(times), "2 EVENTS"),
    ]:
        bench = Workbench(pa.table({"type": list(kinds), "t": column, "k": keys}), Roles(time="t"))
        query = f"SELECT * FROM S WHERE A AS a; B AS b PARTITION BY [k] WITHIN {window}"
        assert bench.why_event(query, 1)["text"] == "Row 1 is in a match: a: row 0; b: row 1"
        told = bench.why_event(query, 3)["text"]
        assert told.startswith("Row 3 is in no match. The nearest miss:")
        assert "PARTITION BY [k]: k is 1 in row 3 and 2 in row 4" in told
    bench = bench_of("ABCB")
    other = bench.why_event("PATTERN SEQ(A a, B b) WHERE strict_contiguity { a.t < b.t }", 2)
    assert other["text"].splitlines()[1] == "1. row 2: no step takes an event of type 'C'"
    counted = bench.why_event("SELECT COUNT(*) AS n FROM S WHERE A AS a", 0)
    assert counted["text"] == "Row 0 is in a match: a: row 0"
    for row in (-1, 4):
        with pytest.raises(OptionError, match="there is no such row"):
            bench.why_event(PAIRS, row)


def test_a_step_behind_many_matches() -> None:
    """The budget is of what a step shows, not of all that was completed before it."""
    events = pa.table({"type": ["A", "B"] * 500, "t": range(1000)})
    bench = Workbench(events, Roles(time="t"))
    query = "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 60 [t]"
    assert bench.run(query)["more"]
    step = bench.step(query, 999)
    assert (step["refused"], step["waiting"], [one["rows"] for one in step["partial"]]) == (None, 1, [[998]])
