"""The command line: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import gzip
import io
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, feather
from pyarrow import parquet as pq

import stretto
from stretto.cli import main

QUERY = "SELECT * FROM S WHERE A AS x; B AS y FILTER y[v > 1]"
EVENTS = pa.table({"type": ["A", "B", "B", "C"], "v": [1, 1, 3, 4], "name": ["é", "日本", None, "d"]})
MATCH = stretto.match(QUERY, EVENTS).to_pylist()[0]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command in a folder of its own: exit code, standard output, standard error."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    pq.write_table(EVENTS, "events.parquet")
    Path("query.ceql").write_text(f"-- pairs\n{QUERY}\n", encoding="utf-8")

    def command(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        code = ended.value.code
        return (code if isinstance(code, int) else 0), shown.out, shown.err

    return command


# ---- match


def test_a_table_in_the_terminal(run: Run) -> None:
    code, out, err = run("match", "query.ceql", "events.parquet")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [cell.strip() for cell in lines[0].split("  ") if cell] == [
        "start",
        "end",
        "positions",
        "x type v name",
        "y type v name",
    ]
    assert [cell.strip() for cell in lines[1].split("  ") if cell.strip()] == ["0", "2", "0, 2", "A 1 é", "B 3"]
    assert lines[-1] == "1 match"


def test_a_type_that_no_event_has(run: Run) -> None:
    code, out, err = run("match", "SELECT * FROM S WHERE b", "events.parquet")
    assert (code, out) == (0, "0 matches\n")
    assert err == (
        "warning: no event has the type 'b' (did you mean 'B'?), which the query names: 'type' has 'A', 'B', 'C'\n"
    )


def test_a_query_of_eql(run: Run) -> None:
    text = "sequence [A where true] [B where true]"
    code, out, _ = run("match", text, "events.parquet", "--language", "eql", "--json", "--output", "positions")
    assert code == 0
    assert [json.loads(line)["positions"] for line in out.splitlines()] == [
        list(one)
        for one in stretto.match(text, EVENTS, language="eql", output="positions").column("positions").to_pylist()
    ]
    assert out
    Path("rule.eql").write_text(text, encoding="utf-8")
    assert run("match", "rule.eql", "events.parquet", "--language", "eql", "--json", "--output", "positions") == (
        0,
        out,
        "",
    )
    code, out, _ = run("explain", text, "--language", "eql")
    assert (code, out) == (0, stretto.compile(text, language="eql").explain() + "\n")
    code, _, err = run("match", text, "events.parquet")
    assert code == 2
    assert "one of EQL needs --language eql" in err


def test_a_query_inline(run: Run) -> None:
    code, out, _ = run("match", QUERY, "events.parquet", "--json")
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [MATCH]


def test_counts_and_sums_are_rows(run: Run) -> None:
    code, out, _ = run("match", "SELECT COUNT(*), SUM(b[v]) FROM S WHERE A; B+ AS b; C", "events.parquet")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [["count", "sum_b_v"], ["3", "8"], ["1", "row"]]


def test_a_file_whose_name_begins_as_a_query(run: Run) -> None:
    for name, query in (("pattern.sase", "PATTERN SEQ(A a)"), ("select.ceql", QUERY)):
        Path(name).write_text(query, encoding="utf-8")
        code, out, _ = run("match", name, "events.parquet", "--json")
        assert code == 0
        assert out


def test_a_misspelt_first_word_names_the_language(run: Run) -> None:
    code, _, err = run("match", "PATERN SEQ(A a)", "events.parquet")
    assert code == 3
    assert "hint: did you mean 'PATTERN'?" in err


def test_a_file_as_a_disordered_stream(run: Run) -> None:
    rows = [("A", 1), ("B", 3), ("C", 2), ("B", 4), ("A", 9), ("B", 2)]
    pq.write_table(pa.table({"type": [kind for kind, _ in rows], "t": [at for _, at in rows]}), "log.parquet")
    query = "PATTERN SEQ(A a, ~(C n), B b) WHERE skip_till_next_match { } WITHIN 10"
    shown = ("log.parquet", "--time", "t", "--output", "positions", "--json")
    code, out, err = run("match", query, *shown, "--disorder", "5", "--late", "drop")
    assert (code, err) == (0, "1 late event left out\n")
    assert [json.loads(line)["positions"] for line in out.splitlines()] == []
    code, out, err = run("match", query, *shown, "--speculation", "inf")
    assert (code, err) == (0, "")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["sign"], one["positions"]) for one in found] == [(1, [0, 1]), (-1, [0, 1])]
    code, out, _ = run("match", query, *shown[:-1], "--speculation", "inf")
    assert out.splitlines()[-1] == "2 changes of matches"
    ordered = "SELECT * FROM S WHERE A; C"
    code, out, _ = run("match", ordered, *shown, "--disorder", "7")
    assert [json.loads(line)["positions"] for line in out.splitlines()] == [[0, 2]]
    for arguments, words in [
        (("--disorder", "speculate"), "error: disorder='speculate': expected ticks of the time column"),
        (("--disorder", "soon"), "error: disorder='soon': expected ticks of the time column"),
        (("--disorder", "5 s"), "error: disorder='5 s': 't' is int64, whose unit is not known"),
        (("--late", "drop"), "error: --late is for streams: give --disorder as well"),
        (("--disorder", "1", "--engine", "spark"), "error: --disorder reads a stream in this process"),
    ]:
        code, _, err = run("match", ordered, *shown, *arguments)
        assert (code, err[: len(words)]) == (2, words)
    code, _, err = run("match", "SELECT MAX * FROM S WHERE A; C", *shown, "--speculation", "inf")
    assert code != 0
    assert "SELECT MAX chooses among matches" in err
    code, _, err = run("match", ordered, *shown, "--disorder", "1")
    assert code == 1
    assert "row 2 is late: its time is 2, and the punctuation stands at 2" not in err
    assert "row 5 is late: its time is 2, and the punctuation stands at 8" in err


def test_folders_patterns_and_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, key in enumerate(("x", "y")):
        Path(f"log/k={key}").mkdir(parents=True)
        pq.write_table(EVENTS.slice(2 * number, 2), f"log/k={key}/e.parquet")
    for data in ("log", "log/*/e.parquet", "log/k=?/*"):
        code, out, err = run("match", QUERY, data, "--json", "--output", "positions")
        assert (code, err, json.loads(out)) == (0, "", {"start": 0, "end": 2, "positions": [0, 2]})
    code, out, _ = run("match", f"{QUERY} PARTITION BY [k]", "log", "--json")
    assert (code, out) == (0, "")
    csv.write_csv(EVENTS, "e.csv")
    write_json("e.jsonl")
    for name, told in (("e.csv", ()), ("e.jsonl", ("--format", "jsonl")), ("events.parquet", ("--format", "parquet"))):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(name).read_bytes())))
        code, out, err = run("match", QUERY, "-", "--json", "--output", "positions", *told)
        assert (code, err, json.loads(out)) == (0, "", {"start": 0, "end": 2, "positions": [0, 2]})


def test_types_of_columns(run: Run) -> None:
    query = "SELECT * FROM S WHERE A; B PARTITION BY [k]"
    Path("zeros.csv").write_text("type,k\nA,7\nB,007\n", encoding="utf-8")
    assert run("match", query, "zeros.csv")[:2] == (0, "0 matches\n")
    code, out, _ = run("match", query, "zeros.csv", "--type", "k=int64", "--json")
    assert (code, json.loads(out)["k"]) == (0, 7)
    Path("ones.csv").write_text("kind,k\nA,7\nB,7\n", encoding="utf-8")
    code, out, _ = run("match", query, "ones.csv", "--type", "kind", "--type", "k=string", "--json")
    assert (code, json.loads(out)["k"]) == (0, "7")
    for told, words in [
        ("k=strng", "error: --type k=strng: 'strng' is not an Arrow type; did you mean 'string'?"),
        ("key=string", "error: there is no column 'key' to give a type; known columns: type, k"),
    ]:
        code, _, err = run("match", query, "zeros.csv", "--type", told)
        assert (code, err.strip()) == (2, words)
    code, _, err = run("match", query, "zeros.csv", "--type", "k=string", "--engine", "spark")
    assert (code, "are read in this process" in err) == (2, True)


def test_markup_in_values_is_shown_as_it_is(run: Run) -> None:
    pq.write_table(pa.table({"type": ["A"], "text": ["[bold]x[/] [/y]"]}), "markup.parquet")
    code, out, _ = run("match", "SELECT * FROM S WHERE A", "markup.parquet")
    assert code == 0
    assert "[bold]x[/] [/y]" in out


def test_no_match_is_no_failure(run: Run) -> None:
    code, out, _ = run("match", "SELECT * FROM S WHERE A; NEVER", "events.parquet")
    assert (code, out) == (0, "0 matches\n")
    code, out, _ = run("match", "SELECT * FROM S WHERE A; NEVER", "events.parquet", "--json")
    assert (code, out) == (0, "")


def test_rows_bounds_what_is_shown(run: Run) -> None:
    pq.write_table(pa.table({"type": ["A"] * 30}), "many.parquet")
    for arguments, shown, last in [
        ((), 20, "30 matches, 20 shown"),
        (("--rows", "3"), 3, "30 matches, 3 shown"),
        (("--rows", "0"), 30, "30 matches"),
    ]:
        code, out, _ = run("match", "SELECT * FROM S WHERE A", "many.parquet", "--output", "positions", *arguments)
        assert code == 0
        assert len(out.splitlines()) == shown + 2
        assert out.splitlines()[-1] == last


def write_json(path: str) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in EVENTS.to_pylist()), encoding="utf-8")


def write_gzip(path: str) -> None:
    csv.write_csv(EVENTS, "plain.csv")
    Path(path).write_bytes(gzip.compress(Path("plain.csv").read_bytes()))


FORMS: dict[str, Callable[[str], Any]] = {
    "e.parquet": lambda path: pq.write_table(EVENTS, path),
    "e.csv": lambda path: csv.write_csv(EVENTS, path),
    "e.csv.gz": write_gzip,
    "e.CSV": lambda path: csv.write_csv(EVENTS, path),
    "e.json": write_json,
    "e.jsonl": write_json,
    "e.arrow": lambda path: feather.write_feather(EVENTS, path),
}


@pytest.mark.parametrize("name", FORMS)
def test_files_of_events(run: Run, name: str) -> None:
    FORMS[name](name)
    code, out, _ = run("match", "query.ceql", name, "--json", "--output", "positions")
    assert (code, json.loads(out)) == (0, {"start": 0, "end": 2, "positions": [0, 2]})


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("m.parquet", lambda path: pq.read_table(path).to_pylist()),
        ("m.arrow", lambda path: pa.ipc.open_file(path).read_all().to_pylist()),
        ("m.jsonl", lambda path: [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]),
    ],
)
def test_files_of_matches(run: Run, name: str, read: Callable[[str], Any]) -> None:
    code, out, err = run("match", "query.ceql", "events.parquet", "--out", name)
    assert (code, out, err) == (0, "", f"1 match written to {name}\n")
    assert read(name) == [MATCH]
    code, _, err = run("match", "SELECT * FROM S WHERE B ; A", "events.parquet", "--out", name)
    assert (code, err) == (0, f"0 matches written to {name}\n")
    assert read(name) == []


def test_matches_as_csv_have_nested_columns_as_json(run: Run) -> None:
    code, _, _ = run("match", "query.ceql", "events.parquet", "--out", "m.csv")
    assert code == 0
    row = csv.read_csv("m.csv").to_pylist()[0]
    assert (row["start"], row["end"]) == (0, 2)
    assert json.loads(row["positions"]) == [0, 2]
    assert json.loads(row["x"]) == [{"type": "A", "v": 1, "name": "é"}]


def test_options_reach_the_engine(run: Run) -> None:
    rows = [("A", 1, 5, 0), ("B", 0, 9, 0), ("B", 3, 7, 1)]
    names = ["kind", "n", "t", "s"]
    table = pa.table([pa.array(list(column)) for column in zip(*rows, strict=True)], names=names)
    pq.write_table(table.take([2, 1, 0]), "roles.parquet")
    code, out, err = run(
        "match", "SELECT NONE FROM S WHERE A; B WITHIN 3 seconds", "roles.parquet", "--json",
        *("--type", "kind", "--time", "t", "--sequence", "n", "--time-unit", "s"),
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert json.loads(out) == {"start": 2, "end": 0, "positions": [], "start_time": 5, "end_time": 7}
    code, out, err = run("match", "SELECT NONE FROM S WHERE S; S LIMIT 1", "roles.parquet", "--json", "--type", "")
    assert (code, err) == (0, "")
    assert [json.loads(line)["end"] for line in out.splitlines()] == [1, 2]


# ---- explain


def test_why_a_query_has_no_match(run: Run) -> None:
    query = "SELECT * FROM S WHERE A ; B AS y FILTER y[v > 3] PARTITION BY [k]"
    pq.write_table(
        EVENTS.append_column("k", pa.array([1, 1, 1, 2])).append_column("t", pa.array([0, 1, 2, 3])), "keys.parquet"
    )
    code, out, err = run("why-not", query, "keys.parquet", "--most", "1")
    assert (code, err) == (0, "")
    assert (
        out
        == "No match in 4 events. The nearest miss:\n1. y[v > 3] does not hold: v is 3 in row 2\n   A: row 0; y: row 2\n"
    )
    for chosen in (("--key", "1"), ("--key", "k=1"), ("--time", "t", "--between", "-", "2")):
        assert run("why-not", query, "keys.parquet", *chosen)[1].startswith("No match in 3 events.")
    assert run("why-not", QUERY, "events.parquet")[1] == "It does match in 4 events: x: row 0; y: row 2\n"
    assert run("why-not", QUERY, "events.parquet", "--event", "2")[1] == "Row 2 is in a match: x: row 0; y: row 2\n"
    assert run("why-not", QUERY, "events.parquet", "--event", "9")[0] == 2
    pq.write_table(pa.table({"type": ["A", "N", "B"], "t": [1, 9, 3], "v": [1, 1, 9]}), "came.parquet")
    shown = run("why-not", QUERY, "came.parquet", "--time", "t", "--disorder", "2")[1].splitlines()
    assert shown[1] == "1. disorder=2: row 2 (t is 3) came behind row 1 (t is 9)"
    assert run("why-not", QUERY, "events.parquet", "--key", "1")[0] == 2
    clause = "SELECT * FROM events MATCH_RECOGNIZE (PATTERN (x) DEFINE x AS v > 9)"
    shown = run("why-not", clause, "events.parquet", "--most", "1")[1].splitlines()
    assert shown[:2] == [
        "No match in 4 rows. The nearest miss:",
        "1. X AS v > 9 does not hold: v is 4 in row 3",
    ]
    assert run("why-not", clause, "events.parquet", "--time", "t")[0] == 2


def test_explain(run: Run) -> None:
    code, out, err = run("explain", "query.ceql")
    assert (code, err) == (0, "")
    assert out == stretto.compile(Path("query.ceql").read_text("utf-8")).explain() + "\n"
    code, out, _ = run("explain", QUERY, "events.parquet")
    assert code == 0
    assert out == stretto.compile(QUERY, EVENTS.schema).explain() + "\n"


def test_explain_counts(run: Run) -> None:
    code, out, err = run("explain", QUERY, "events.parquet", "--counts")
    assert (code, err) == (0, "")
    assert out == f"{stretto.explain(QUERY, EVENTS)}\n"
    assert out.endswith(
        "counts     of 4 events\n           1. A AS x: 1 event\n           2. B AS y: 2 events; by itself: 1; up to here: 1\n"
    )
    assert run("explain", QUERY, "--counts")[2] == (
        "error: --counts needs events: stretto explain QUERY DATA --counts\n"
    )
    sql = "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS v > 1)"
    assert run("explain", sql, "events.parquet", "--counts")[2] == (
        "error: --counts is for CEQL, SASE+, EQL and automata, and this is SQL with MATCH_RECOGNIZE\n"
    )


AUTOMATON = """
window = 5
final = ["there"]
arcs = [{ source = "q0", target = "there", when = "e.v > 1" }, { source = "q0", target = "gone", when = "e.v > 100" }]
"""


def test_explain_counts_of_an_automaton(run: Run) -> None:
    Path("afa.toml").write_text(AUTOMATON, "utf-8")
    code, out, err = run("explain", "afa.toml", "events.parquet", "--language", "afa", "--time", "v", "--counts")
    assert (code, err) == (0, "")
    afa = stretto.read_afa(AUTOMATON, {"v": EVENTS.schema.field("v").type})
    assert out == f"{stretto.explain(afa, EVENTS, time='v')}\n"
    above = sum(v > 1 for v in EVENTS["v"].to_pylist())
    assert f"there (final): {above} events\n" in out
    assert "           gone: 0 events\n" in out
    code, out, _ = run("explain", "afa.toml", "events.parquet", "--language", "afa", "--draw", "afa.dot")
    assert (code, "counts " in out) == (0, False)
    assert '  "gone";' in Path("afa.dot").read_text("utf-8")
    run("explain", "afa.toml", "events.parquet", "--language", "afa", "--time", "v", "--counts", "--draw", "afa.dot")
    assert '"gone" [label="gone\\n0 events", color=gray60' in Path("afa.dot").read_text("utf-8")
    assert run("explain", AUTOMATON, "--language", "afa")[2].startswith(
        "error: the automaton's text does not say the events' attributes: "
    )


def test_explain_draws(run: Run) -> None:
    code, _, err = run("explain", QUERY, "--draw", "q.dot")
    assert (code, err) == (0, "automaton drawn to q.dot\n")
    assert Path("q.dot").read_text("utf-8") == str(stretto.compile(QUERY).draw())
    code, _, err = run("explain", QUERY, "events.parquet", "--counts", "--draw", "counts.dot")
    assert (code, err) == (0, "automaton drawn to counts.dot\n")
    assert 's0_1 [label="B AS y\\n2 events\\nby itself: 1\\nup to here: 1"' in Path("counts.dot").read_text("utf-8")


def test_no_match_is_told_on_stderr(run: Run) -> None:
    code, _, err = run("match", "SELECT * FROM S WHERE A ; B AS y FILTER y[v > 1000]", "events.parquet")
    assert code == 0
    assert err.startswith(
        "warning: no match: of 2 events of type 'B' none fulfils y[v > 1000] (line 1, column 43): v is from "
    )


def test_explain_without_graphviz(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    code, _, err = run("explain", QUERY, "--draw", "q.svg")
    assert code == 2
    assert "needs Graphviz's program 'dot'" in err
    assert not Path("q.svg").exists()
    code, _, err = run("explain", QUERY, "--draw", "q.bmp")
    assert (code, err) == (2, "error: cannot draw to 'q.bmp': end it in .dot, .svg, .png or .pdf\n")


# ---- DATA by stream

FALLS = "PATTERN SEQ(Day a, Day b, Tip t) WHERE skip_till_next_match { b.close < a.close }"
DAYS = pa.table({"day": [1, 2, 4, 5], "close": [9, 8, 8, 3]})
TIPS = pa.table({"day": [3, 6], "who": ["x", "y"]})
BY_STREAM = ("Day=days.parquet", "Tip=tips.csv", "--type", "", "--time", "day")


@pytest.fixture
def streams(run: Run) -> Run:
    """The command, where the files of two streams are."""
    pq.write_table(DAYS, "days.parquet")
    csv.write_csv(TIPS, "tips.csv")
    return run


def test_streams_by_name(streams: Run) -> None:
    code, out, err = streams("match", FALLS, *BY_STREAM, "--json", "--output", "positions")
    assert (code, err) == (0, "")
    expected = stretto.match(FALLS, {"Day": DAYS, "Tip": TIPS}, type=None, time="day", output="positions").to_pylist()
    assert [json.loads(line) for line in out.splitlines()] == expected
    assert [one["positions"] for one in expected] == [[0, 1, 4], [2, 3, 5], [1, 3, 5]]
    asked = (*BY_STREAM[:1], "Tip=tips*.csv", *BY_STREAM[2:])  # a pattern
    assert streams("match", FALLS, *asked, "--json", "--output", "positions")[1] == out
    query = "SELECT * FROM Day, Tip WHERE Day ; Tip"
    code, out, _ = streams("match", query, *BY_STREAM, "--json", "--output", "positions")
    found = {tuple(json.loads(line)["positions"]) for line in out.splitlines()}
    assert found == {(0, 4), (1, 4), (0, 5), (1, 5), (2, 5), (3, 5)}


def test_a_stream_with_a_name_alone(streams: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = "PATTERN SEQ(Day a, Day b) WHERE strict_contiguity { b.close < a.close }"
    shown = ("--type", "", "--time", "day", "--json", "--output", "positions")
    for given in ("Day=days.parquet", "Day=-"):
        stdin = io.TextIOWrapper(io.BytesIO(Path("days.parquet").read_bytes()))
        monkeypatch.setattr(sys, "stdin", stdin)
        code, out, err = streams("match", twice, given, *shown, "--format", "parquet")
        assert (code, err) == (0, "")
        assert [json.loads(line)["positions"] for line in out.splitlines()] == [[0, 1], [2, 3]]
    pq.write_table(DAYS.take([0, 3, 1, 2]), "late.parquet")  # day 5 comes second
    code, out, err = streams("match", twice, "Day=late.parquet", *shown, "--disorder", "1", "--late", "drop")
    assert (code, err) == (0, "1 late event left out\n")
    assert [json.loads(line)["positions"] for line in out.splitlines()] == [[0, 3], [1, 3]]
    code, out, _ = streams("match", twice, "days.parquet", "days.parquet", *shown[2:], "--stream", "who")
    assert code == 2


def test_files_without_names(run: Run) -> None:
    code, out, _ = run("match", QUERY, "events.parquet", "events.parquet", "--json", "--output", "positions")
    assert code == 0
    both = stretto.match(QUERY, pa.concat_tables([EVENTS, EVENTS]), output="positions")["positions"].to_pylist()
    assert [json.loads(line)["positions"] for line in out.splitlines()] == both
    assert len(both) == 3
    Path("v=1").mkdir()
    pq.write_table(EVENTS.drop_columns(["v"]), "v=1/events.parquet")  # a path, and no stream 'v'
    assert run("match", "SELECT * FROM S WHERE A ; C", "v=1", "--json")[0] == 0
    assert run("match", "SELECT * FROM S WHERE A ; C", "v=1/events.parquet", "--json")[0] == 0


def test_streams_by_name_are_explained_and_asked(streams: Run) -> None:
    given = {"Day": DAYS, "Tip": TIPS}
    code, out, err = streams("explain", FALLS, *BY_STREAM, "--counts")
    assert (code, err) == (0, "")
    assert out == f"{stretto.explain(FALLS, given, type=None, time='day')}\n"
    assert "1. Day a: 4 events\n" in out
    code, out, err = streams("explain", FALLS.replace("close", "clse"), *BY_STREAM)
    assert (code, "unknown attribute 'clse'" in err) == (3, True)
    never = FALLS.replace("{", "{ b.close > 8 AND")
    code, out, err = streams("why-not", never, *BY_STREAM)
    assert (code, err) == (0, "")
    assert out == f"{stretto.why_not(never, given, type=None, time='day')}\n"
    assert "b.close > 8 does not hold: b.close is 8" in out


def test_rules_over_streams_by_name(streams: Run) -> None:
    Path("rules.toml").write_text(f'[[rule]]\nid = "falls"\nquery = "{FALLS}"\n', "utf-8")
    code, out, err = streams("rules", "match", "rules.toml", *BY_STREAM, "--json")
    assert (code, err) == (0, "")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["start_time"], one["end_time"]) for one in found] == [(1, 3), (4, 6), (2, 6)]
    pq.write_table(DAYS.take([1, 0, 3, 2]), "days.parquet")  # in no order
    assert streams("rules", "match", "rules.toml", *BY_STREAM, "--json")[1] == out


CLAUSE = "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (x) DEFINE x AS close > 9)"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["match", FALLS, "Day=days.parquet", "Day=days.parquet"],
            "there is a stream 'Day' already; one stream of many",
        ),
        (
            ["match", FALLS, "Day=days.parquet", "tips.csv"],
            "'tips.csv' has no name, and 'Day=days.parquet' has one: give",
        ),
        (["match", FALLS, "Day=dys.parquet"], "no such file: dys.parquet; did you mean 'days.parquet'?"),
        (["match", FALLS, "Day="], "Day=: give a name and files"),
        (["match", FALLS, "=days.parquet"], "=days.parquet: give a name and files"),
        (["match", FALLS, "Day=-", "Tip=-"], "'-', the standard input, is one stream or all of DATA"),
        (["match", FALLS, "-", "days.parquet"], "'-', the standard input, is one stream or all of DATA"),
        (["match", FALLS, *BY_STREAM[:2], "--type", ""], "several streams are merged by time"),
        (["match", FALLS, *BY_STREAM, "--disorder", "5"], "--disorder reads rows in the order in which they came"),
        (["match", FALLS, "days.parquet", "--type", "", "--time", "day"], "in the shell NAME=FILES"),
        (["match", "SELECT * FROM Day WHERE Day", "Dy=days.parquet", "--type", ""], "did you mean 'Dy'?"),
        (
            ["why-not", CLAUSE, "Day=days.parquet"],
            "MATCH_RECOGNIZE reads one table, and 'Day=days.parquet' is a stream",
        ),
        (["explain", CLAUSE, "Day=days.parquet"], "a SQL statement names its tables: --table Day=days.parquet"),
        (["explain", AUTOMATON, "D=days.parquet", "--language", "afa"], "an automaton reads one table, and"),
        (["rules", "match", "rules.toml", "Day=days.parquet", "Day=tips.csv"], "there is a stream 'Day' already"),
        (["studio", "Day=days.parquet"], "the studio opens a file or a folder, and 'Day=days.parquet' is a stream"),
    ],
    ids=lambda value: " ".join(value)[:70] if isinstance(value, list) else "",
)
def test_mistakes_of_streams_by_name(streams: Run, arguments: list[str], text: str) -> None:
    Path("rules.toml").write_text(f'[[rule]]\nid = "falls"\nquery = "{FALLS}"\n', "utf-8")
    code, out, err = streams(*arguments)
    assert (code, out) == (1 if "merged" in text or "mean 'Dy'" in text else 2, "")
    assert text in err


# ---- How it ends


@pytest.mark.parametrize("command", ["match", "explain"])
def test_a_wrong_query_ends_with_3(run: Run, command: str) -> None:
    code, out, err = run(command, "SELECT * FORM S WHERE A", "events.parquet")
    assert (code, out) == (3, "")
    assert err.splitlines() == [
        "query error: line 1, column 10: unexpected 'FORM'; expected FROM",
        "  SELECT * FORM S WHERE A",
        "           ^^^^",
        "hint: did you mean 'FROM'?",
    ]


def test_a_query_that_does_not_fit_the_events_ends_with_3(run: Run) -> None:
    code, out, err = run("match", "SELECT * FROM S WHERE A FILTER A[val > 1]", "events.parquet")
    assert (code, out) == (3, "")
    assert "column 34: unknown attribute 'val'" in err


def test_a_wrong_query_is_told_before_the_events_are_read(run: Run) -> None:
    assert run("match", "SELECT * FROM S WHERE", "nothing.parquet")[0] == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["match", "query.ceql", "nothing.csv"], "no such file: nothing.csv"),
        (["match", "query.ceql", "event.parquet"], "no such file: event.parquet; did you mean 'events.parquet'?"),
        (["match", "query.ceql", "no*.csv"], "no file is named like 'no*.csv'"),
        (["match", "nothing.ceql", "events.parquet"], "'nothing.ceql' is neither a file nor a query"),
        (["match", "query.ceql", "query.ceql"], "cannot read 'query.ceql': end it in .parquet, .csv"),
        (["match", "events.parquet", "events.parquet"], "'events.parquet' holds events: the query comes first"),
        (["match", "query.ceql", "events.parquet", "--out", "m.xls"], "cannot write 'm.xls'"),
        (["match", "query.ceql", "events.parquet", "--out", "no/such/m.csv"], "no/such/m.csv"),
        (["match", "query.ceql", "events.parquet", "--time", "tme"], "time='tme': there is no such column"),
        (["match", "query.ceql", "events.parquet", "--time-unit", "h"], "time_unit='h'"),
        (["match", "query.ceql", "events.parquet", "--rows", "-1"], "--rows"),
        (["match", "query.ceql", "events.parquet", "--engine", "flink"], "'flink' is not one of"),
        (["match", "query.ceql", "events.parquet", "--nonsense"], "--nonsense"),
        (["match", "query.ceql"], "DATA"),
        (["mach"], "mach"),
        (["explain", "query.ceql", "nothing.csv"], "no such file: nothing.csv"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_ends_with_2(run: Run, arguments: list[str], text: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert text in err


def test_wrong_events_end_with_1(run: Run) -> None:
    code, out, err = run("match", "SELECT * FROM S WHERE A; B WITHIN 3 [v]", "events.parquet")
    assert (code, err) == (0, "")
    pq.write_table(EVENTS.take([2, 1, 0]), "falling.parquet")
    code, out, err = run("match", "SELECT * FROM S WHERE A; B WITHIN 3 [v]", "falling.parquet")
    assert (code, out) == (1, "")
    assert err.startswith("error: 'v' decreases from 3 to 1 at row 1")
    Path("broken.parquet").write_bytes(b"PAR1 no more")
    code, _, err = run("match", QUERY, "broken.parquet")
    assert code == 1
    assert err.startswith("error: broken.parquet: ")
    Path("broken.csv").write_text("type,v\nA,1,2\n")
    code, _, err = run("match", QUERY, "broken.csv")
    assert code == 1
    assert err.startswith("error: broken.csv, line 2: ")
    Path("broken.json").write_text('{"type": "A"\n')
    assert run("match", QUERY, "broken.json")[0] == 1


def test_version_and_help(run: Run) -> None:
    assert run("--version") == (0, f"stretto {stretto.__version__}\n", "")
    code, out, _ = run("--help")
    assert code == 0
    assert all(name in out for name in ("match", "explain", "demo", "--version"))
    code, out, _ = run("match", "--help")
    assert code == 0
    assert all(name in out for name in ("QUERY", "DATA", "--out", "--engine", "--type", "--time-unit", "--json"))
    assert "  DATA   " in out
    assert "<str>" not in out
    assert "list[" not in out + run("rules", "match", "--help")[1] + run("compile", "--help")[1]


def test_the_demo_without_its_flights(run: Run) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")
    code, out, err = run("demo", "--flights", "none.parquet")
    assert (code, out) == (2, "")
    assert err.startswith(
        "error: there are no flights at none.parquet: run the demo in a clone of stretto's repository, or name"
    )


def test_as_a_program(tmp_path: Path) -> None:
    """Installed as ``stretto``, in a process of its own, into a pipe that is closed early."""
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    program = Path(sys.executable).parent / "stretto"
    if not program.exists():
        pytest.skip("stretto is not installed as a program beside this Python")
    done = subprocess.run(
        [program, "match", QUERY, tmp_path / "events.parquet", "--json"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == MATCH
    done = subprocess.run([program, "match", "SELECT", "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


@pytest.mark.spark
def test_match_on_spark(tmp_path: Path) -> None:
    """In a process of its own: the session that the command starts is not the one of other tests."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")
    pq.write_table(EVENTS.append_column("t", pa.array([1, 2, 3, 4])), tmp_path / "events.parquet")
    arguments = ["match", QUERY, str(tmp_path / "events.parquet"), "--engine", "spark", "--time", "t", "--json"]
    code = "import sys; from stretto.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 2 and "Java" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["start_time"], found["end_time"]) == (1, 3)
    assert [event["v"] for event in found["y"]] == [3]


# ---- sql


STATEMENT = """SELECT name, n FROM events MATCH_RECOGNIZE (
    ORDER BY v MEASURES LAST(name) AS name, count(*) AS n PATTERN (A B+) DEFINE B AS v > PREV(v)
) AS m"""


def test_a_statement(run: Run) -> None:
    Path("query.sql").write_text(STATEMENT, encoding="utf-8")
    for statement in ("query.sql", STATEMENT, STATEMENT.replace("name, n", "*")):
        code, out, _ = run("sql", statement, "--table", "events=events.parquet", "--json")
        assert (code, json.loads(out)) == (0, {"name": "d", "n": 3})
    code, out, err = run("sql", "query.sql", "--table", "events=events.parquet", "--out", "found.csv")
    assert (code, out, err) == (0, "", "1 row written to found.csv\n")
    assert csv.read_csv("found.csv").to_pylist() == [{"name": "d", "n": 3}]
    code, out, _ = run("sql", "query.sql", "--table", "events=events.parquet")
    assert out.splitlines()[-1] == "1 row"


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        ((STATEMENT.replace("v >", "w >"), "--table", "events=events.parquet"), 3, "unknown column 'w'"),
        ((STATEMENT, "--table", "other=events.parquet"), 3, "Table with name events does not exist"),
        ((STATEMENT, "--table", "events.parquet"), 2, "--table events.parquet: give a name and files"),
        ((STATEMENT, "--table", "a=e.csv", "--table", "a=f.csv"), 2, "there is a table 'a' already"),
        (
            ("SELECT * FROM e MATCH_RECOGNIZE (ORDER BY v MEASURES v AS w PATTERN (A) DEFINE A AS v > 1)",),
            3,
            "or --table e=FILES in the shell",
        ),
        (("missing.sql",), 2, "'missing.sql' is neither a file nor a statement"),
        (("events.parquet",), 2, "'events.parquet' holds rows: the statement comes first"),
    ],
)
def test_mistakes_of_statements(run: Run, arguments: tuple[str, ...], code: int, error: str) -> None:
    found, _, err = run("sql", *arguments)
    assert found == code
    assert error in err


def test_a_plain_installation(tmp_path: Path) -> None:
    """Without Spark and DuckDB, queries and rules run, and statements of SQL say what they need."""
    code = (
        "import sys\n"
        "for name in ('pyspark', 'duckdb', 'matplotlib', 'deltalake'): sys.modules[name] = None\n"
        "from stretto.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    rule = '[events]\ntime = "v"\n[[rule]]\nid = "b"\nquery = "SELECT * FROM S WHERE B"\n'
    (tmp_path / "rules.toml").write_text(rule, encoding="utf-8")

    def command(*arguments: str) -> tuple[int, str, str]:
        line = [sys.executable, "-c", code, *arguments]
        found = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "Traceback" not in found.stderr, found.stderr
        return found.returncode, found.stdout, found.stderr

    code_of, out, _ = command("match", QUERY, "events.parquet", "--json")
    assert (code_of, len(out.splitlines())) == (0, 1)
    code_of, out, _ = command("rules", "match", "rules.toml", "events.parquet", "--json")
    assert (code_of, len(out.splitlines())) == (0, 2)
    statement = "SELECT count(*) FROM e MATCH_RECOGNIZE (ORDER BY v PATTERN (A)) JOIN e ON TRUE"
    code_of, _, err = command("sql", statement, "--table", "e=events.parquet")
    assert code_of == 2
    assert "pip install 'stretto[sql]'" in err


# ---- studio


def test_the_studio_says_what_is_wrong(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("studio", "none.parquet") == (2, "", "error: no such file or folder: none.parquet\n")
    code, _, err = run("studio", "query.ceql", "--no-browser")
    assert (code, err) == (2, "error: 'query.ceql' is no file of events in the folder\n")
    monkeypatch.setattr("stretto.studio.page.STATIC", Path("nothing"))
    code, _, err = run("studio", "events.parquet", "--no-browser")
    assert code == 2
    assert err.startswith("error: this installation lacks files of the studio's page: index.html, studio.js, ")
    monkeypatch.delitem(sys.modules, "stretto.studio.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = run("studio", "events.parquet", "--no-browser")
    assert (code, err) == (2, "error: this needs the package uvicorn: pip install 'stretto[studio]'\n")


def test_the_studio_tells_a_port_that_is_taken(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, err = run("studio", "events.parquet", "--no-browser", "--port", port)
    assert code == 2
    assert err.startswith(f"error: port {port} cannot be used:")


def test_a_clause_over_files(run: Run) -> None:
    Path("ticks.csv").write_text("x,price\n1,9\n2,7\n3,8\n4,6\n")
    clause = "MATCH_RECOGNIZE (ORDER BY x MEASURES LAST(x) AS until PATTERN (A F) DEFINE F AS price < PREV(price))"
    for text in (clause, f"SELECT * FROM ticks {clause}"):
        code, out, _ = run("match", text, "ticks.csv", "--json")
        assert (code, [json.loads(line) for line in out.splitlines()]) == (0, [{"until": 2}, {"until": 4}])
    assert run("match", clause, "ticks.csv")[1].splitlines()[-1] == "2 rows"
    for options, told in (
        (("--time", "x"), "time='x' is for queries in CEQL"),
        (("--disorder", "5"), "a clause of MATCH_RECOGNIZE runs over files in this process: leave out"),
    ):
        code, _, err = run("match", clause, "ticks.csv", *options)
        assert code != 0
        assert told in err


def test_numbers_of_a_clause_count_the_unit_that_is_given(run: Run) -> None:
    times = pa.table({"t": [0, 100, 400], "x": [1, 2, 3]})
    pq.write_table(times, "times.parquet")
    clause = "MATCH_RECOGNIZE (ORDER BY t MEASURES B.t AS t PATTERN (A B) DEFINE B AS B.t - A.t > INTERVAL '2' MINUTE)"
    assert run("match", clause, "times.parquet", "--time-unit", "s", "--json")[1] == '{"t": 400}\n'
    sql = [f"SELECT * FROM e {clause}", "--table", "e=times.parquet"]
    assert run("sql", *sql, "--time-unit", "s", "--json")[1] == '{"t": 400}\n'
    assert run("explain", *sql, "--time-unit", "s")[0] == 0
    code, _, err = run("sql", *sql)
    assert code == 3
    assert "give stretto.sql time_unit='s'" in err
