"""Rules as files: what is read and what is wrong, their tests, their alerts, and those that come too soon."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.cli import main
from stretto.errors import DataError, LimitError, OptionError
from stretto.pipelines import PipelineError, load
from stretto.pipelines import run as run_pipeline
from tests.pipelines.conftest import ruled

GUESSED = """
[events]
time = "t"
columns = { user = "string", code = "bigint" }

[[rule]]
id = "guessed"
title = "A login after three failures"
severity = "high"
tags = ["attack.t1110"]
query = '''
SELECT * FROM S WHERE FAILED{3,} AS tries ; LOGIN AS login PARTITION BY [user] WITHIN 60 [t]
'''
every = 100

[[rule.test]]
name = "three failures"
events = [
  {type = "FAILED", t = 1, user = "ann"}, {type = "FAILED", t = 2, user = "ann"},
  {type = "FAILED", t = 3, user = "ann"}, {type = "LOGIN", t = 9, user = "ann"},
]

[[rule.test]]
name = "of two users"
matches = false
events = [
  {type = "FAILED", t = 1, user = "ann"}, {type = "FAILED", t = 2, user = "bob"},
  {type = "FAILED", t = 3, user = "ann"}, {type = "LOGIN", t = 9, user = "ann"},
]
"""
LEFT = """
[[rule]]
id = "left"
severity = "low"
query = "SELECT * FROM S WHERE LOGIN AS a ; LOGOUT AS b PARTITION BY [user]"
"""
EVENTS = pa.table(
    {
        "type": ["FAILED", "FAILED", "FAILED", "LOGIN", "LOGIN", "FAILED", "LOGIN"],
        "t": [1, 2, 3, 4, 5, 6, 108],
        "user": ["ann", "ann", "ann", "ann", "bob", "ann", "ann"],
    }
)

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Write files into a folder of rules."""

    def written(**files: str) -> Path:
        (tmp_path / "rules").mkdir(exist_ok=True)
        for name, text in files.items():
            (tmp_path / "rules" / f"{name}.toml").write_text(text, encoding="utf-8")
        return tmp_path / "rules"

    return written


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    shown = capsys.readouterr()
    return (ended.value.code if isinstance(ended.value.code, int) else 0), shown.out, shown.err


# ---- what is read


def test_rules_of_several_files(folder: Folder) -> None:
    rules = stretto.read_rules(folder(auth=GUESSED, left=LEFT))
    assert repr(rules) == "<stretto.RuleSet: 2 rules>"
    assert [(one.id, one.given.severity, one.query.language) for one in rules.rules] == [
        ("guessed", "high", "ceql"),
        ("left", "low", "ceql"),
    ]
    assert rules.events is not None
    assert (rules.events.time, dict(rules.columns)) == ("t", {"user": pa.string(), "code": pa.int64()})
    assert len(stretto.read_rules(folder() / "left.toml").rules) == 1
    (folder() / "left.toml").rename(folder() / "LEFT.TOML")
    assert repr(stretto.read_rules(folder())) == "<stretto.RuleSet: 2 rules>"


WRONG = {
    "a query": (
        """[[rule]]\nid = "x"\nquery = "SELECT * FROM S WHERE A AS a ; B FILTER a[v = ]"\n""",
        "line 3, column 56: rule 'x': unexpected ']'; expected an attribute or a constant",
    ),
    "a key": (
        """[[rule]]\nid = "x"\nquery = "SELECT * FROM S WHERE A"\ntitel = "X"\n""",
        "line 4, column 1: [[rule]] has no key 'titel'",
    ),
    "a key of a test": (
        """[[rule]]\nid = "x"\nquery = "SELECT * FROM S WHERE A"\n[[rule.test]]\nevent = []\n""",
        "line 5, column 1: [[rule]] test[0] has no key 'event'",
    ),
    "no id": ("""[[rule]]\nquery = "SELECT * FROM S WHERE A"\n""", "line 1, column 3: [[rule]] needs 'id'"),
    "a severity": (
        """[[rule]]\nid = "x"\nquery = "SELECT * FROM S WHERE A"\nseverity = "hihg"\n""",
        """line 4, column 12: [[rule]] severity = "hihg": expected 'info', 'low', 'medium', 'high' or 'critical'""",
    ),
    "no TOML": ("[[rule", "line 1, column 7: not TOML: Expected ']]' at the end of an array declaration"),
    "a table": ("[rules]\n", "line 1, column 2: a rule file has no table 'rules'"),
    "a type": ("""[events]\ntime = "t"\ncolumns = { a = "strnig" }\n""", "line 3, column 17: 'strnig'"),
}


VALUES = {
    "every": (["0", "-1", "true", "nan", '"often"', '"0 seconds"', "[1]"], "a span of time such as"),
    "since": (['"soon"', "true", "nan", "[1]", '""'], "a time such as"),
    "until": (['"2026-31-01"'], "a time such as"),
    "matches": (["-1", "1.5", '"yes"'], "true, false, or how many alerts"),
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, (values, _) in VALUES.items() for value in values])
def test_a_value_that_a_key_cannot_have(folder: Folder, key: str, value: str) -> None:
    test = "[[rule.test]]\nevents = [{}]\n" if key == "matches" else ""
    wrong = f'[[rule]]\nid = "x"\nquery = "SELECT * FROM S WHERE A"\n{test}{key} = {value}\n'
    rules = stretto.read_rules(folder(left=LEFT, wrong=wrong))
    assert [one.id for one in rules.rules] == ["left"]
    (problem,) = rules.problems
    assert (problem.line, problem.column) == (6 if test else 4, len(key) + 4)
    assert f"{key} = {'[…]' if '[' in value else value}: expected {VALUES[key][1]}" in problem.message


@pytest.mark.parametrize(
    ("every", "alerts"), [("2", 3), ("2.0", 3), ("2.5", 2), ("inf", 1), ('"inf"', 1), ('"4 seconds"', 2), ('" 3 "', 2)]
)
@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(9, 2)])
def test_spans(folder: Folder, every: str, alerts: int, kind: pa.DataType) -> None:
    text = f'[[rule]]\nid = "x"\nquery = "SELECT * FROM S WHERE A"\nevery = {every}\nsince = -1\n'
    events = pa.table({"type": ["A"] * 5, "t": pa.array([0, 1, 2, 4.5, 5]).cast(kind)})
    found = stretto.read_rules(folder(a=text)).match(events, time="t", time_unit="s")
    assert found.report.select(["alerts", "suppressed", "error"]).to_pylist() == [
        {"alerts": alerts, "suppressed": 5 - alerts, "error": None}
    ]


def test_a_span_beyond_64_bits_is_told_in_full(folder: Folder) -> None:
    text = LEFT.replace("[[rule]]", "[[rule]]\nevery = 99999999999999999999")
    with pytest.warns(stretto.StrettoWarning, match=r"rule 'left' .*a.toml, line 4\) does not run: every=999"):
        (row,) = stretto.read_rules(folder(a=text)).match(EVENTS, time="t").report.to_pylist()
    assert row["error"].startswith("every=99999999999999999999 is 99999999999999999999 units of 't'")


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_and_the_others_stay(folder: Folder, name: str) -> None:
    text, told = WRONG[name]
    rules = stretto.read_rules(folder(left=LEFT, wrong=text))
    assert [one.id for one in rules.rules] == ["left"]
    assert len(rules.problems) == 1
    assert told in str(rules.problems[0])
    assert repr(rules) == "<stretto.RuleSet: 1 rule, 1 problem>"


@pytest.mark.parametrize("name", ["a folder", "a link to nothing", "nothing", "comments"])
def test_a_file_without_rules_is_told_and_the_others_stay(folder: Folder, name: str) -> None:
    """Such as one that vanishes while the folder is read, or that is written just now; a stream keeps the rules it had from it."""
    path = folder(left=LEFT) / "auth.toml"
    match name:
        case "a folder":
            path.mkdir()
        case "a link to nothing":
            path.symlink_to("gone.toml")
        case _:
            path.write_text("# later\n" if name == "comments" else "")
    rules = stretto.read_rules(path.parent)
    assert [one.id for one in rules.rules] == ["left"]
    assert [one.file for one in rules.problems] == [str(path)]
    assert rules.doubtful == {str(path)}
    told = {"a folder": "is a folder", "a link to nothing": "no such file"}.get(name, "there is no [[rule]] in it")
    assert told in str(rules.problems[0])


def test_two_rules_with_one_id(folder: Folder) -> None:
    rules = stretto.read_rules(folder(a=LEFT, b=LEFT.replace("low", "high")))
    assert [(one.given.severity, Path(one.file).name) for one in rules.rules] == [("low", "a.toml")]
    (problem,) = rules.problems
    assert (
        f"b.toml, line 3, column 6: there is a rule 'left' already, in {folder() / 'a.toml'}, line 3: that one"
        in str(problem)
    )


def test_two_tables_of_events(folder: Folder) -> None:
    rules = stretto.read_rules(folder(a=GUESSED, b='[events]\ntime = "u"\n'))
    assert rules.events is not None
    assert rules.events.time == "t"
    assert f"there is an [events] in {folder() / 'a.toml'} already" in str(rules.problems[0])


def test_a_folder_without_rules(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="has no rules: a rule is a"):
        stretto.read_rules(tmp_path)
    with pytest.raises(OptionError, match="no such file"):
        stretto.read_rules(tmp_path / "none.toml")


# ---- rules in a table

PAIRS = "SELECT * FROM S WHERE LOGIN AS a ; LOGIN AS b"
TABLE = [
    {"id": "pairs", "title": "Again", "severity": "high", "tags": "a, b", "query": PAIRS, "every": 50, "since": 2},
    {"id": "off", "query": PAIRS, "enabled": False},
    {"id": "wrong", "query": "SELECT * FROM S WHERE LOGIN AS a ; ; LOGIN"},
    {"query": PAIRS},
    {"id": "pairs", "query": PAIRS},
    {"id": "hot", "query": PAIRS, "severity": "hot", "since": 3},
]
TOLD = [
    "row 2, query, line 1, column 36: rule 'wrong': unexpected ';'; expected a name",
    "row 3: the rule needs 'id'",
    "row 4: there is a rule 'pairs' already, in row 0: that one stays",
    """row 5: severity = "hot": expected 'info', 'low', 'medium', 'high' or 'critical'""",
]


def as_file(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A table of rules as a file."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    table = pa.Table.from_pylist([dict.fromkeys(TABLE[0] | TABLE[1]) | row for row in rows])
    {".csv": pacsv.write_csv, ".parquet": pq.write_table}[path.suffix](table, path)
    return path


@pytest.mark.parametrize("kind", ["rows", "pandas", "rules.csv", "rules.jsonl", "rules.parquet", "folder"])
def test_rules_of_a_table(tmp_path: Path, kind: str) -> None:
    given: Any = TABLE
    if kind == "pandas":
        given = pytest.importorskip("pandas").DataFrame(TABLE)
    elif "." in kind:
        given = as_file(tmp_path / kind, TABLE)
    elif kind == "folder":
        given = as_file(tmp_path / "part.parquet", TABLE).parent
    rules = stretto.read_rules(given)
    name = "the table of rules" if kind in ("rows", "pandas") else str(given)
    assert [str(one).splitlines()[0] for one in rules.problems] == [f"{name}, {told}" for told in TOLD]
    assert [(one.id, one.given.enabled, one.where) for one in rules.rules] == [
        ("pairs", True, "row 0"),
        ("off", False, "row 1"),
    ]
    assert rules.rules[0].given.tags == ["a", "b"]
    assert rules.unread == {"wrong", "hot"}
    assert rules.doubtful == {name}
    alerts = rules.match(EVENTS, time="t")
    assert alerts.matches.select(["rule", "severity", "title", "start_time", "end_time"]).to_pylist() == [
        {"rule": "pairs", "severity": "high", "title": "Again", "start_time": start, "end_time": end}
        for start, end in ((4, 5), (5, 108))
    ]
    assert alerts.report.column("suppressed").to_pylist() == [1]


def test_a_table_without_what_rules_have(tmp_path: Path) -> None:
    with pytest.raises(
        OptionError, match="the table of rules has no column 'query', which rules have; did you mean 'qery'"
    ):
        stretto.read_rules([{"id": "x", "qery": PAIRS}])
    with pytest.raises(OptionError, match="no such file"):
        stretto.read_rules(tmp_path / "none.csv")
    with pytest.raises(DataError):
        stretto.read_rules(3)
    rules = stretto.read_rules([{"id": "x", "query": PAIRS, "owner": "me", "titel": "X", "test": "[]"}])
    assert [(one.message, one.hint) for one in rules.problems] == [
        (
            "rules have no column 'owner'",
            "known columns: id, query, language, title, description, severity, tags, every, …",
        ),
        ("rules have no column 'titel'", "did you mean 'title'?"),
        ("rules have no column 'test'", "tests are in rule files: [[rule.test]]"),
    ]
    assert (len(rules.rules), rules.doubtful) == (1, frozenset())


def test_the_command_with_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = str(as_file(tmp_path / "rules.csv", TABLE[:3]))
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    code, out, err = run(capsys, "rules", "test", where)
    assert (code, out) == (
        1,
        "without a test: pairs, off\n0 of 0 tests passed, of 0 rules; 1 mistake in what was read\n",
    )
    assert err.startswith(f"{where}, {TOLD[0]}\n")
    code, out, _ = run(capsys, "rules", "match", where, str(tmp_path / "events.parquet"), "--time", "t", "--json")
    assert (code, len(out.splitlines())) == (1, 2)
    assert run(capsys, "rules", "explain", where, "pairs")[1].startswith(f"pairs, high: Again\n{where}, row 0\n")


# ---- times of rules


@pytest.mark.parametrize("times", [("2", "9"), ("2.0", "9.0")])
def test_a_rule_holds_from_a_time_to_another(folder: Folder, times: tuple[str, str]) -> None:
    """It sees the events between, as a pattern of a set does."""
    since, until = times
    text = f'[events]\ntime = "t"\n[[rule]]\nid = "x"\nquery = "{PAIRS.replace("LOGIN AS a", "FAILED AS a")}"\nsince = {since}\n'
    open_ended = stretto.read_rules(folder(a=text)).match(EVENTS)
    times_of = open_ended.matches.select(["start_time", "end_time"]).to_pylist()
    assert {tuple(row.values()) for row in times_of} == {
        *((start, end) for end in (4, 5, 108) for start in (2, 3)),
        (6, 108),
    }
    found = stretto.read_rules(folder(a=f"{text}until = {until}\n")).match(EVENTS).matches
    assert found.column("end_time").to_pylist() == [4, 4, 5, 5]
    tested = '[[rule.test]]\nevents = [{type = "FAILED", t = 1}, {type = "LOGIN", t = 200}]\n'
    assert stretto.read_rules(folder(a=f"{text}until = {until}\n{tested}")).test().column("passed").to_pylist() == [
        True
    ]


def test_times_of_rules_that_are_wrong(folder: Folder) -> None:
    rule = f'[[rule]]\nid = "%s"\nquery = "{PAIRS}"\nsince = %s\n'
    wrong = {"a": "true", "b": '"7.5"', "c": "9\nuntil = 3", "d": "2026-01-01T00:00:00Z"}
    rules = stretto.read_rules(folder(a='[events]\ntime = "t"\n' + "".join(rule % one for one in wrong.items())))
    late = "rule 'c': it holds until 3, which is not after its since, 9"
    assert [(problem.line, problem.message.partition(";")[0]) for problem in rules.problems] == [
        (6, '[[rule]] since = true: expected a time such as "2026-01-31T00:00:00Z", or a number'),
        (15, late),
    ]
    with pytest.warns(stretto.StrettoWarning) as warned:
        told = {row["rule"]: row["error"] for row in rules.match(EVENTS).report.to_pylist()}
    assert len(warned) == 2
    assert "since is '7.5', which is no value of 't' (int64)" in told["b"]
    assert "no value of 't' (int64)" in told["d"]


# ---- tests


def test_tests_of_rules(folder: Folder) -> None:
    failing = GUESSED.replace("matches = false", "matches = 2")
    found = stretto.read_rules(folder(a=failing, left=LEFT)).test()
    assert found.to_pylist() == [
        {"rule": "guessed", "test": "three failures", "passed": True, "expected": "some", "found": 1, "why": None},
        {"rule": "guessed", "test": "of two users", "passed": False, "expected": "2", "found": 0, "why": None},
    ]


def test_a_test_without_a_column_that_the_query_reads(folder: Folder) -> None:
    rules = stretto.read_rules(folder(a=GUESSED.replace("columns =", "#").replace('user = "ann"', 'usr = "ann"')))
    (first, _) = rules.test().to_pylist()
    assert (first["passed"], first["found"]) == (False, None)
    assert "unknown attribute 'user'" in first["why"]


def test_an_event_of_a_test_that_is_not_of_its_type_fails_the_test_alone(folder: Folder) -> None:
    text = GUESSED.replace("t = 1,", 't = 1, code = "one",', 1)
    (first, second) = stretto.read_rules(folder(a=text)).test().to_pylist()
    assert (first["passed"], first["found"], second["passed"]) == (False, None, True)
    assert first["why"].startswith("'code' of its events is not int64, as [events] says: Failed to parse string: 'one'")


@pytest.mark.parametrize("matches", ["true", "false", "0"])
def test_a_test_without_events_tells_nothing(folder: Folder, matches: str) -> None:
    rules = stretto.read_rules(folder(a=LEFT + f"[[rule.test]]\nmatches = {matches}\nevents = []\n"))
    (row,) = rules.test().to_pylist()
    assert (row["passed"], row["found"], row["why"]) == (False, None, "it has no events")


SELECT = "SELECT * FROM S WHERE LOGIN AS a ; LOGOUT AS b"
CLAUSE_OF = "MATCH_RECOGNIZE (%s PATTERN (A B) %s DEFINE B AS x > 3 AND y = 'a')"

#: Rules that no set takes, whatever the events: keys of the rule, where that shows, and what is told.
REFUSED: dict[str, tuple[str, int, str]] = {
    "KEEP": (
        f'every = 9\nquery = "{SELECT} KEEP LONGEST"',
        5,
        "those of this pattern may overlap: AFTER MATCH SKIP PAST",
    ),
    "the best": (f'query = "{SELECT} ORDER BY SUM(b[x]) DESC LIMIT 3"', 5, "ORDER BY … LIMIT and SAMPLE choose"),
    "a sample": (f'query = "{SELECT} SAMPLE 3"', 5, "ORDER BY … LIMIT and SAMPLE choose"),
    "totals": (f'query = "{SELECT.replace("*", "COUNT(*)")}"', 5, "it counts and adds up"),
    "groups": (f'query = "{SELECT.replace("*", "b[u], SUM(b[x])")} GROUP BY b[u]"', 5, "it counts and adds up"),
    "compressed": (
        'query = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [k] } OUTPUT compressed"',
        5,
        "hands matches over as sets",
    ),
    "pipes": (
        'language = "eql"\nquery = "sequence by u [A where true] [B where true] | head 3"',
        6,
        "the pipe '| head 3'",
    ),
    "another measure": (f'query = "{SELECT} ; NOT LOGIN WITHIN 9 [z]"', 5, "the window measures 'z'"),
    "a declared type": (f'query = "{SELECT} FILTER a[user > 3]"', 5, "cannot compare user (string) with a number"),
    "a function": (f'query = "{SELECT} FILTER a[nofun(x) = 3]"', 5, "unknown function 'nofun'"),
    "all rows": (
        f'query = "{CLAUSE_OF % ("ALL ROWS PER MATCH", "")}"',
        5,
        "a set of patterns gives one row for each match",
    ),
    "an order": (
        f'query = "{CLAUSE_OF % ("ORDER BY t, z", "")}"',
        5,
        "a set of patterns reads events in the order of 't'",
    ),
    "overlaps": (
        f'every = 9\nquery = "{CLAUSE_OF % ("AFTER MATCH SKIP TO NEXT ROW", "")}"',
        5,
        "those of this pattern may overlap",
    ),
    "an arc": (
        'language = \'afa\'\nquery = \'arcs = [{ source = "a", target = "b", when = "e.x >" }]\'',
        6,
        "ends too early",
    ),
    "no arcs": ("language = 'afa'\nquery = 'arcs = []'", 6, "the AFA has no arcs"),
    "a window": (
        'language = \'afa\'\nquery = \'window = "1 fortnite"\narcs = [{ source = "a", target = "b" }]\''.replace(
            "'", '"""'
        ),
        6,
        "fortnite",
    ),
    "until": (f'query = "{SELECT}"\nsince = 5\nuntil = 3', 7, "it holds until 3, which is not after its since, 5"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_rule_that_no_set_takes_is_a_problem_of_its_file(
    folder: Folder, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where it is switched off; the others run, and commands end with 1."""
    keys, line, told = REFUSED[name]
    text = f'[events]\ntime = "t"\ncolumns = {{user = "string"}}\n[[rule]]\n{keys}\nid = "x"\n'
    path = folder(wrong=text, left=LEFT)
    rules = stretto.read_rules(path)
    assert [one.id for one in rules.rules] == ["left"]
    assert rules.unread == {"x"}
    [problem] = rules.problems
    assert (Path(problem.file).name, problem.line) == ("wrong.toml", line)
    assert problem.message.startswith("rule 'x': ")
    assert told in problem.message
    assert stretto.read_rules(folder(wrong=text + "enabled = false\n")).problems
    if name in ("KEEP", "until"):
        pq.write_table(EVENTS, tmp_path / "events.parquet")
        for command in (["test", str(path)], ["match", str(path), str(tmp_path / "events.parquet")]):
            code, _, err = run(capsys, "rules", *command)
            assert (code, told in err) == (1, True)


TAKEN = [
    "SELECT * FROM S WHERE A AS a FILTER a[CASE name WHEN 'a' THEN v END < 2]",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [k] AND a.v > 3 } RETURN a.ts + 1 second AS later",
    "SELECT * FROM S WHERE A AS a FILTER a[x > 3 AND x = y AND y = 'a']",  # of which some types are none, and no error is of all
    "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x > 3 AND z > '2024-01-01'] AND b[lower(n) LIKE 'a%'] PARTITION BY [k]",
    "SELECT * FROM S WHERE A ; B AFTER 5 [z] WITHIN 9 [z]",
    "SELECT * FROM S, R WHERE A ; B WITHIN 10 minutes",
    "SELECT * FROM S WHERE A ; B WITHIN 1 minute KEEP LONGEST AFTER MATCH SKIP TO NEXT EVENT",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] AND a.x < b[i].x } AFTER MATCH SKIP PAST LAST EVENT",
    "SELECT a[x + 1.5 * y] FROM S WHERE A AS a ; NOT B WITHIN 5 minutes".replace("a[x + 1.5 * y]", "a[x]"),
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [k] AND avg(a[..i-1].x) < a[i].x AND b.f AND b.d = 'x' }",
    CLAUSE_OF
    % ("PARTITION BY k ORDER BY t MEASURES sum(x) AS s, A.w + INTERVAL '1' HOUR AS w", "WITHIN INTERVAL '1' HOUR"),
    (CLAUSE_OF % ("", "")).replace("x > 3", "a > 1 AND b = 'c' AND c + d > 3 AND e LIKE 'x%'"),
]


@pytest.mark.parametrize("query", TAKEN)
@pytest.mark.parametrize("events", ["", '[events]\ntime = "t"\n', '[events]\ntime = "t"\ncolumns = {t = "bigint"}\n'])
def test_what_depends_on_the_events_is_no_problem_of_a_file(folder: Folder, query: str, events: str) -> None:
    """Who matches may name a time, its unit, and streams, and columns have the types that they have."""
    every = "" if "MATCH_RECOGNIZE" in query else 'every = "1 minute"\n'
    text = f'{events}[[rule]]\nid = \'x\'\nquery = """{query}"""\n{every}'
    if "NOT B" in query or "z > '" in query:
        text = text.replace("bigint", "timestamp")
    assert stretto.read_rules(folder(a=text)).problems == ()


def test_tests_suppress_repeats(folder: Folder) -> None:
    again = '{type = "LOGIN", t = 50, user = "ann"}]'
    more = GUESSED.replace('t = 9, user = "ann"},\n]', 't = 9, user = "ann"},\n' + again, 1)
    text = more.replace('name = "three failures"', 'name = "three failures"\nmatches = 1')
    assert stretto.read_rules(folder(a=text)).test().column("passed").to_pylist()[0]
    text = text.replace("every = 100", "every = 41").replace("matches = 1", "matches = 2")
    assert stretto.read_rules(folder(a=text)).test().column("passed").to_pylist()[0]


# ---- alerts


def test_alerts_and_report(folder: Folder) -> None:
    unknown = '[[rule]]\nid = "country"\nquery = "SELECT * FROM S WHERE LOGIN AS a FILTER a[country = \'x\']"\n'
    off = LEFT.replace("left", "off").replace("severity", "enabled = false\nseverity")
    rules = stretto.read_rules(folder(a=GUESSED, b=LEFT, c=unknown, d=off))
    with pytest.warns(stretto.StrettoWarning) as warned:
        alerts = rules.match(EVENTS.take([4, 0, 1, 2, 3, 5, 6]))
    assert [
        part in str(one.message) for one, part in zip(warned, ["'country' (", "no match of 1 of 3"], strict=True)
    ] == [
        True,
        True,
    ]
    assert alerts.matches.select(["rule", "severity", "title", "start_time", "end_time", "keys"]).to_pylist() == [
        {
            "rule": "guessed",
            "severity": "high",
            "title": "A login after three failures",
            "start_time": 1,
            "end_time": 4,
            "keys": [("user", "ann")],
        },
    ]
    rows = {row.pop("rule"): row for row in alerts.report.to_pylist()}
    cost = {"suppressed": 0, "undecided": 0, "seconds": None, "error": None}
    assert rows["guessed"] == {"severity": "high", "alerts": 1, "concerned": 7, "lacks": [], **cost}
    lacks = ["no event has the type 'LOGOUT'"]
    assert rows["left"] == {"severity": "low", "alerts": 0, "concerned": 3, "lacks": lacks, **cost}
    assert rows["country"]["concerned"] is None
    assert "unknown attribute 'country'" in rows["country"]["error"]
    assert rows.keys() == {"guessed", "left", "country"}


def test_a_rule_that_explodes(folder: Folder) -> None:
    more = '[[rule]]\nid = "many"\nquery = "SELECT * FROM S WHERE FAILED+ ; LOGIN"\n'
    rules = stretto.read_rules(folder(a=GUESSED, b=more))
    with pytest.raises(LimitError, match=r'; on_limit="disable" \(--on-limit disable\) switches such a rule off'):
        rules.match(EVENTS, budget=12)
    with pytest.warns(stretto.StrettoWarning, match="pattern 'many': the event .* is switched off"):
        alerts = rules.match(EVENTS, budget=12, on_limit="disable")
    assert alerts.matches.column("rule").to_pylist() == ["guessed"]
    errors = {row["rule"]: row["error"] for row in alerts.report.to_pylist()}
    assert errors["guessed"] is None
    assert "goes over the budget of 3 rows" in errors["many"]


def test_events_in_pieces(folder: Folder, tmp_path: Path) -> None:
    """Files, an iterator of batches and a reader of them give what a table gives; what is missing is named by its role."""
    rules = stretto.read_rules(folder(a=GUESSED, b=LEFT))
    wanted = rules.match(EVENTS)
    (tmp_path / "events").mkdir()
    for number in range(EVENTS.num_rows):
        pq.write_table(EVENTS.slice(number, 1), tmp_path / f"events/{number}.parquet")
    pq.write_table(EVENTS.take([4, 0, 1, 2, 3, 5, 6]), tmp_path / "not in order.parquet")
    pieces = EVENTS.to_batches(max_chunksize=2)
    for given in (
        tmp_path / "events",
        tmp_path / "not in order.parquet",
        iter(pieces),
        EVENTS.to_reader(max_chunksize=2),
    ):
        found = rules.match(given)
        assert found.matches.equals(wanted.matches)
        assert found.report.equals(wanted.report)
    for given in (tmp_path / "events", iter(pieces)):
        with pytest.raises(DataError, match=r"the events have no column 'tt' \(time\); did you mean 't'"):
            rules.match(given, time="tt")
    with pytest.raises(DataError, match="events come in the order of time"):
        rules.match(iter(pieces[::-1]))
    with pytest.raises(OptionError, match="an iterator gives one table at least"):
        rules.match(iter([]))


def test_rules_on_every_engine(folder: Folder) -> None:
    more = """
[[rule]]
id = "no-login"
query = "SELECT * FROM S WHERE FAILED AS tried ; NOT LOGIN PARTITION BY [user] WITHIN 10 [t]"

[[rule]]
id = "slower"
query = "PATTERN SEQ(FAILED a, LOGIN b) WHERE skip_till_next_match { [user] AND a.t + 1 < b.t }"

[[rule]]
id = "chain"
language = "eql"
query = "sequence by user with maxspan=5s [FAILED where true] [LOGIN where true]"
"""
    alerts = stretto.read_rules(folder(a=GUESSED, b=more)).match(EVENTS, time_unit="s")
    assert [one["error"] for one in alerts.report.to_pylist()] == [None] * 4
    costs = {one["rule"]: (one["concerned"], (one["seconds"] or 0) > 0) for one in alerts.report.to_pylist()}
    assert costs == {"guessed": (7, False), "no-login": (7, True), "slower": (7, False), "chain": (7, True)}
    found = [tuple(row.values()) for row in alerts.matches.select(["rule", "start_time", "end_time"]).to_pylist()]
    assert found[:5] == [("chain", 3, 4), ("guessed", 1, 4), ("slower", 1, 4), ("slower", 2, 4), ("no-login", 6, 6)]
    assert sorted(found[5:]) == [("slower", 3, 108), ("slower", 6, 108)]


AUTOMATON = """
[events]
time = "t"
time_unit = "s"

[[rule]]
id = "retries"
language = "afa"
every = 50
query = '''
partition_by = ["user"]
window = "1 minute"
register = { tries = "int64" }
final = ["in"]
arcs = [
  { source = "q0", target = "out", when = "e.type = 'FAILED'", then = "tries = 1" },
  { source = "out", target = "out", when = "e.type = 'FAILED'", then = "tries = r.tries + 1" },
  { source = "out", target = "in", when = "e.type = 'LOGIN' AND r.tries > 2" },
]
'''

[[rule.test]]
matches = 1
events = [
  {type = "LOGIN", t = 9, user = "ann"}, {type = "FAILED", t = 1, user = "ann"}, {type = "FAILED", t = 2, user = "ann"},
  {type = "FAILED", t = 3, user = "bob"}, {type = "FAILED", t = 4, user = "ann"}, {type = "FAILED", t = 5, user = "ann"},
]

[[rule.test]]
name = "a minute"
matches = false
events = [
  {type = "FAILED", t = 1, user = "ann"}, {type = "FAILED", t = 2, user = "ann"}, {type = "FAILED", t = 3, user = "ann"},
  {type = "LOGIN", t = 61, user = "ann"},
]

[[rule.test]]
name = "no user"
events = [{type = "FAILED", t = 1}]
"""


def test_a_rule_that_is_an_automaton(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """Tested, matched beside others, without repeats; what is wrong with its text is told, here or where it meets events."""
    wrong = """
[[rule]]
id = "form"
language = "afa"
query = "arks = []"

[[rule]]
id = "arc"
language = "afa"
query = '{"final": ["b"], "start": "a", "arcs": [{"source": "a", "target": "b", "when": "e.usr = 1"}]}'
"""
    path = folder(a=AUTOMATON, b=LEFT, c=wrong)
    rules = stretto.read_rules(path)
    [problem] = rules.problems
    assert "rule 'form': the automaton's text has the key 'arks'; did you mean 'arcs'?" in str(problem)
    tests = rules.test(["retries"]).to_pylist()
    assert [(row["passed"], row["found"]) for row in tests] == [(True, 1), (True, 0), (False, None)]
    assert "user" in tests[-1]["why"]
    with pytest.warns(stretto.StrettoWarning, match="rule 'arc' .* does not run"):
        alerts = rules.match(EVENTS)
    told = {row["rule"]: row for row in alerts.report.to_pylist()}
    assert told["retries"]["error"] is None
    assert told["retries"]["concerned"] == EVENTS.num_rows
    assert "the event has no attribute 'usr'" in told["arc"]["error"]
    afa = stretto.AFA(EVENTS.schema, register={"tries": int}, window=60, partition_by="user")
    afa.arc("q0", "out", when="e.type = 'FAILED'", then="tries = 1").final("in")
    afa.arc("out", "out", when="e.type = 'FAILED'", then="tries = r.tries + 1")
    afa.arc("out", "in", when="e.type = 'LOGIN' AND r.tries > 2")
    alone = stretto.match(afa, EVENTS, time="t").to_pylist()
    mine = [row for row in alerts.matches.to_pylist() if row["rule"] == "retries"]
    assert alone
    assert mine[0]["start_time"] == alone[0]["start_time"]
    assert len(mine) + told["retries"]["suppressed"] == len(alone)
    code, shown, _ = run(capsys, "rules", "explain", str(path), "retries")
    assert (code, 'register = { tries = "int64" }' in shown) == (0, True)


CLAUSE = """
[[rule]]
id = "burst"
language = "sql"
every = 50
query = '''
SELECT * FROM events MATCH_RECOGNIZE (
  PARTITION BY user ORDER BY t PATTERN (F{2,} L) DEFINE F AS type = 'FAILED', L AS type = 'LOGIN'
)
'''

[[rule.test]]
matches = 1
events = [
  {type = "LOGIN", t = 9, user = "ann"}, {type = "FAILED", t = 1, user = "ann"}, {type = "FAILED", t = 2, user = "ann"},
]

[[rule.test]]
matches = false
events = [{type = "FAILED", t = 1, user = "ann"}, {type = "FAILED", t = 2, user = "bob"}, {type = "LOGIN", t = 9, user = "ann"}]

[[rule]]
id = "by-its-text"
query = "MATCH_RECOGNIZE (ORDER BY t PATTERN (F) DEFINE F AS usr = 1)"
"""


def test_rules_that_are_clauses(folder: Folder, capsys: Any) -> None:
    wrong = """
[[rule]]
id = "form"
language = "sql"
query = "MATCH_RECOGNIZE (PATTERN (A)"
"""
    path = folder(a=CLAUSE, b=GUESSED, c=wrong)
    rules = stretto.read_rules(path)
    [problem] = rules.problems
    assert "c.toml, line 5" in str(problem)
    assert "rule 'form': the clause ends too early" in str(problem)
    assert [row["passed"] for row in rules.test(["burst"]).to_pylist()] == [True, True]
    with pytest.warns(stretto.StrettoWarning, match="rule 'by-its-text' .* does not run: .* unknown column 'usr'"):
        alerts = rules.match(EVENTS)
    told = {row["rule"]: row for row in alerts.report.to_pylist()}
    assert "unknown column 'usr'" in told["by-its-text"]["error"]
    alone = stretto.sql(
        rules.chosen(["burst"])[0].query.text.replace("PATTERN", "MEASURES FIRST(t) AS low PATTERN"), events=EVENTS
    )
    mine = [row for row in alerts.matches.to_pylist() if row["rule"] == "burst"]
    assert mine
    assert (mine[0]["keys"], mine[0]["start_time"]) == ([("user", alone["user"][0].as_py())], alone["low"][0].as_py())
    assert told["burst"]["alerts"] + told["burst"]["suppressed"] == alone.num_rows
    code, shown, _ = run(capsys, "rules", "explain", str(path), "burst")
    assert (code, "F{2,} L" in shown) == (0, True)


BURSTS = """
[events]
time = "t"

[[rule]]
id = "burst"
query = "SELECT * FROM S WHERE FAILED+ AS f GAP 10 [t] PARTITION BY [user] KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT"

[[rule.test]]
matches = 1
events = [
  {type = "FAILED", t = 1, user = "ann"}, {type = "FAILED", t = 9, user = "ann"}, {type = "FAILED", t = 18, user = "ann"},
  {type = "END", t = 29},
]

[[rule.test]]
matches = 2
events = [{type = "FAILED", t = 1, user = "ann"}, {type = "FAILED", t = 2, user = "bob"}, {type = "END", t = 29}]

[[rule]]
id = "twice"
query = "PATTERN SEQ(FAILED a, FAILED b) WHERE skip_till_next_match { [user] AND a.t < b.t } WITHIN 5 [t] KEEP SHORTEST"
"""


def test_rules_of_which_some_matches_stay(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """One alert a burst, with tests; what is not decided where events end goes on in the next round; repeats go by the ends."""
    path = folder(a=BURSTS)
    assert run(capsys, "rules", "test", str(path), "burst") == (0, "2 of 2 tests passed, of 1 rule\n", "")
    rules = stretto.read_rules(path)
    times = [(1, "a"), (3, "b"), (8, "a"), (12, "b"), (18, "a"), (40, "a"), (51, "a"), (52, "a")]
    failed = [{"type": "FAILED", "t": t, "user": user} for t, user in times]
    with pytest.warns(stretto.StrettoWarning, match=r"not decided .*: 1 match of 1 rule \('burst' 1\)"):
        alerts = rules.match(failed, time="t")

    def short(found: pa.Table) -> list[tuple[Any, ...]]:
        return [(row["rule"], row["keys"][0][1], row["start_time"], row["end_time"]) for row in found.to_pylist()]

    bursts = [("burst", "a", 1, 18), ("burst", "b", 3, 12), ("burst", "a", 40, 40), ("burst", "a", 51, 52)]
    twice = ("twice", "a", 51, 52)
    assert short(alerts.matches) == [*bursts[:3], twice]
    assert {row["rule"]: row["undecided"] for row in alerts.report.to_pylist()} == {"burst": 1, "twice": 0}
    assert short(rules.match(failed, time="t", at_end="complete").matches) == [*bursts[:3], twice, bursts[3]]
    rounds: list[tuple[Any, ...]] = []
    state = b""
    for begin in range(0, len(failed), 3):
        found = rules.match(failed[begin : begin + 3], time="t", state=state)
        assert found.state is not None
        state = found.state
        rounds += short(found.matches)
    assert rounds == [*bursts[:3], twice]
    every = folder(a=BURSTS.replace('id = "burst"', 'id = "burst"\nevery = 25'))
    given = short(stretto.read_rules(every).match(failed, time="t", at_end="complete").matches)
    assert [row for row in given if row != twice] == [*bursts[:2], bursts[3]]


@pytest.mark.parametrize("every", [None, 100, 104, 105])
def test_repeats_of_a_key(folder: Folder, every: int | None) -> None:
    """Ann has a match at 4, and with a longer window two more at 108, from each of the first attempts that suffice."""
    text = GUESSED.replace("WITHIN 60", "WITHIN 600").replace("every = 100\n", f"every = {every}\n" if every else "")
    alerts = stretto.read_rules(folder(a=text)).match(EVENTS)
    alone = stretto.match(stretto.read_rules(folder()).rules[0].query, EVENTS, time="t")
    times = alone.column("end_time").to_pylist()
    assert (times.count(4), times.count(108)) == (1, 5)
    assert alerts.report.column("alerts").to_pylist() == [{None: 6, 100: 2, 104: 2, 105: 1}[every]]
    assert alerts.report.column("suppressed").to_pylist() == [{None: 0, 100: 4, 104: 4, 105: 5}[every]]


def test_an_empty_table_and_one_without_a_time(folder: Folder) -> None:
    rules = stretto.read_rules(folder(a=GUESSED))
    assert rules.match(EVENTS.slice(0, 0)).matches.num_rows == 0
    with pytest.raises(DataError, match="'t'"):
        rules.match(EVENTS.drop_columns(["t"]))
    with pytest.raises(OptionError, match="no column is the time of events"):
        stretto.read_rules(folder() / "b.toml" if folder(b=LEFT) else "").match(EVENTS)


# ---- the command


def test_the_command(folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    where = str(folder(a=GUESSED, b=LEFT))
    assert run(capsys, "rules", "test", where) == (0, "without a test: left\n2 of 2 tests passed, of 1 rule\n", "")
    code, out, err = run(capsys, "rules", "match", where, str(tmp_path / "events.parquet"), "--json")
    assert (code, len(out.splitlines())) == (0, 1)
    assert err == "warning: no match of 1 of 2 rules: 'left': no event has the type 'LOGOUT'\n"
    code, out, _ = run(capsys, "rules", "match", where, str(tmp_path / "events.parquet"), "--report")
    assert (code, out.splitlines()[-1]) == (0, "2 rules")
    many = '[[rule]]\nid = "many"\nquery = "SELECT * FROM S WHERE FAILED+ ; LOGIN"\n'
    limited = ("--budget", "12", "--on-limit", "disable", "--json")
    code, out, err = run(capsys, "rules", "match", str(folder(c=many)), str(tmp_path / "events.parquet"), *limited)
    assert (code, len(out.splitlines())) == (0, 1)
    assert "pattern 'many'" in err
    assert "is switched off" in err
    assert run(capsys, "rules", "match", where, str(tmp_path / "events.parquet"), *limited[:2])[0] == 1
    (folder() / "c.toml").unlink()
    code, out, _ = run(capsys, "rules", "explain", where, "left")
    assert code == 0
    assert out.startswith(f"left, low: no title\n{folder() / 'b.toml'}, line 3\n")
    assert "LOGOUT" in out
    code, out, _ = run(capsys, "rules", "explain", where)
    assert [line.split("│")[1].strip() for line in out.splitlines()[3:-1]] == ["guessed", "left"]
    code, _, err = run(capsys, "rules", "explain", where, "lef")
    assert (code, err) == (2, "error: there is no rule 'lef'; did you mean 'left'?\n")


def test_the_command_fails_with_a_test_or_a_file(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    where = str(folder(a=GUESSED.replace("matches = false", "matches = true")))
    assert run(capsys, "rules", "test", where)[:2] == (
        1,
        "guessed: of two users: expected some, found 0\n1 of 2 tests passed, of 1 rule\n",
    )
    wrong = str(folder(a=GUESSED, b="[[rule]]\n"))
    assert run(capsys, "rules", "explain", wrong)[0] == 1
    code, out, err = run(capsys, "rules", "test", wrong)
    assert (code, out) == (1, "2 of 2 tests passed, of 1 rule; 2 mistakes in what was read\n")
    assert "[[rule]] needs 'id'" in err


# ---- in pipelines

PIPELINE = ruled("rules")


def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    """A pipeline beside its rules and events."""
    monkeypatch.chdir(tmp_path)
    Path("events").mkdir(exist_ok=True)
    pq.write_table(EVENTS, "events/1.parquet")
    Path("pipeline.toml").write_text(text, encoding="utf-8")
    return Path("pipeline.toml")


@pytest.mark.spark
def test_alerts_on_spark(spark: Any, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this process; a rule that cannot be read and one that is not partitioned are told, and the others run."""
    longer = GUESSED.replace("WITHIN 60", "WITHIN 600")
    retries = AUTOMATON[AUTOMATON.index("[[rule]]") : AUTOMATON.index("[[rule.test]]")].replace('"1 minute"', "600")
    folder(
        a=longer, b=LEFT, e=retries, c="[[rule]]\n", d='[[rule]]\nid = "any"\nquery = "SELECT * FROM S WHERE LOGIN"\n'
    )
    here = stretto.read_rules(folder()).match(EVENTS)
    plan = load(pipeline(tmp_path, monkeypatch, PIPELINE))
    with pytest.warns(stretto.StrettoWarning) as told:
        run_pipeline(plan)
    assert [any(part in str(one.message) for one in told) for part in ("needs 'id'", "rule 'any' does not run")] == [
        True,
        True,
    ]
    found = pq.read_table("out").sort_by([("end_time", "ascending"), ("rule", "ascending")])
    assert found.column_names[:5] == ["rule", "severity", "title", "start_time", "end_time"]
    assert found.column("rule").to_pylist() == ["guessed", "retries", "guessed"]
    names = ["rule", "severity", "title", "start_time", "end_time"]
    assert found.select(names).to_pylist() == [
        row for row in here.matches.select(names).to_pylist() if row["rule"] != "any"
    ]
    assert found.column("user").to_pylist() == ["ann"] * 3
    assert found.column("measures").to_pylist() == [None] * 3


def test_rules_of_a_pipeline_that_are_wrong(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(a=GUESSED)
    for pieces, why in (
        (('"rules"', '"rulez"'), r"rules 'alerts': no such file"),
        (
            ('by = ["user"]', 'text = "x"'),
            r"\[\[rules\]\] has no key 'text'\n(.*\n)*hint: 'text' is a key of \[query\]",
        ),
        (("[[rules]]", "[[query]]"), r"\[\[query\]\] has no key 'by'\n(.*\n)*hint: 'by' is a key of \[rules\]"),
        (('by = ["user"]', 'by = ["t", "usr"]'), "line 12, column 12: rules 'alerts': by: there is no column 'usr'"),
        (('path = "rules"', ""), r"\[\[rules\]\] needs 'path'"),
        (
            (PIPELINE[PIPELINE.index("[[rules]]") : PIPELINE.index("[[sink]]")], ""),
            r"no table \[\[query\]\] and no table \[\[rules\]\]",
        ),
        (
            ("[[sink]]", '[[query]]\nname = "Alerts"\ntext = "SELECT * FROM S WHERE A"\n[[sink]]'),
            'name = "alerts": line 15 has this name',
        ),
        (
            ("[source]\n", '[[source]]\nname = "b"\nkind = "parquet"\npath = "events"\n\n[[source]]\nname = "a"\n'),
            "rules read one source, and there are 2",
        ),
    ):
        path = pipeline(tmp_path, monkeypatch, PIPELINE.replace(*pieces))
        with pytest.raises(PipelineError, match=why):
            load(path)


def test_check_tells_of_rules(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As far as the columns are known: here those of a Parquet file, and none of derived ones."""
    wrong = '[[rule]]\nid = "wrong"\nquery = "SELECT * FROM S WHERE LOGIN AS x FILTER x[usr > 1] PARTITION BY [user]"\n'
    folder(a=GUESSED, b=wrong, c="[[rule]]\n")
    told = "warning: rules 'alerts': rule 'wrong' does not run: line 1, column 43: unknown attribute 'usr'"
    for text, knows in ((PIPELINE, True), (PIPELINE.replace("[events]", '[source.derived]\nx = "1"\n[events]'), False)):
        code, out, err = run(capsys, "run", "--check", str(pipeline(tmp_path, monkeypatch, text)))
        told_of = f"{3 if knows else 2} mistakes in its rules"
        well = f"pipeline.toml is well formed: 1 source, 1 folder of rules, 1 sink, batch; {told_of}\n"
        assert (code, out) == (1, well)
        assert "c.toml, line 1, column 3: [[rule]] needs 'id'" in err
        assert (told in err) == knows
    folder(a=GUESSED, b=LEFT, c=LEFT.replace("left", "stays"))
    code, out, err = run(capsys, "run", "--check", str(pipeline(tmp_path, monkeypatch, PIPELINE)))
    assert (code, out) == (0, "pipeline.toml is well formed: 1 source, 1 folder of rules, 1 sink, batch\n")
    for name in "bc":
        (folder() / f"{name}.toml").unlink()
    folder(a=wrong)
    code, _, err = run(capsys, "run", "--check", str(pipeline(tmp_path, monkeypatch, PIPELINE)))
    assert (code, err.splitlines()[-1]) == (2, "error: rules 'alerts': none of them can run")


def streaming(text: str) -> str:
    """The pipeline as a stream."""
    events = 'columns = {type = "string", t = "timestamp", user = "string"}\npath = "events"'
    late = 'time = "t"\ndisorder = "1 second"'
    text = text.replace('by = ["user"]', 'by = ["user"]\nbuckets = 2')
    return '[pipeline]\nmode = "streaming"\ncheckpoint = "c"\n' + text.replace('path = "events"', events).replace(
        'time = "t"', late
    )


def arrive(number: int, *events: tuple[str, int]) -> None:
    """Events of Ann, by type and second, as a file that comes as the one of this number."""
    kinds, seconds = zip(*events, strict=True)
    times = pa.array([1_000_000 * t for t in seconds], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"type": kinds, "t": times, "user": ["ann"] * len(kinds)}), f"events/{number}.parquet")
    os.utime(f"events/{number}.parquet", (1_600_000_000 + number,) * 2)


def found_in_seconds() -> list[tuple[Any, ...]]:
    rows = pq.read_table("out", partitioning=None).to_pylist()
    return sorted(
        (row["rule"], row["severity"], *(int(row[name].timestamp()) for name in ("start_time", "end_time")))
        for row in rows
    )


TRIED = """
[[rule]]
id = "tried"
query = "SELECT * FROM S WHERE FAILED AS a ; LOGIN AS b PARTITION BY [user]"
every = "30 seconds"
"""


@pytest.mark.spark
def test_alerts_of_a_stream(spark: Any, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this process over the same events, repeats left out, however many micro-batches there are."""
    waiting = """
[[rule]]
id = "no-logout"
query = "SELECT * FROM S WHERE LOGIN AS a ; NOT LOGOUT PARTITION BY [user] WITHIN 5 seconds"
every = "20 seconds"
"""
    folder(a=GUESSED.replace("[t]", "seconds").replace("every = 100", 'every = "10 seconds"'), b=TRIED, c=waiting)
    path = pipeline(tmp_path, monkeypatch, streaming(PIPELINE))
    first = [(kind, t) for t, kind in enumerate(["FAILED", "FAILED", "FAILED", "LOGIN", "LOGIN"], 1)]
    arrive(1, *first)
    run_pipeline(load(path), once=True)
    second = [("LOGIN", 13), ("LOGIN", 14), ("LOGIN", 23), ("LOGOUT", 26), ("LOGIN", 34), ("END", 1000)]
    arrive(2, *second)
    told: list[Any] = []
    run_pipeline(load(path), once=True, report=told.append)
    rows = [{"type": kind, "t": dt.datetime.fromtimestamp(t, dt.UTC), "user": "ann"} for kind, t in first + second]
    here = stretto.read_rules(folder()).match(rows)
    names = ["rule", "severity", "start_time", "end_time"]
    wanted = [tuple(row.values()) for row in here.matches.select(names).to_pylist()]
    assert found_in_seconds() == sorted(
        (rule, how, int(a.timestamp()), int(b.timestamp())) for rule, how, a, b in wanted
    )
    assert [one[:1] + one[3:] for one in found_in_seconds()] == [
        *[("guessed", t) for t in (4, 14, 34)],
        *[("no-logout", t) for t in (4, 34)],
        *[("tried", t) for t in (4, 34)],
    ]
    assert "suppressed" in told[-1].line


@pytest.mark.spark
def test_rules_of_a_stream_change(spark: Any, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change holds from the watermark on; a rule whose query stays goes on; what is wrong leaves what was there."""
    monkeypatch.setattr("stretto.pipelines.streams.RELOAD", 0.1)
    guessed = GUESSED.replace("[t]", "seconds").replace("every = 100\n", "")
    folder(a=guessed, b=LEFT)
    path = pipeline(tmp_path, monkeypatch, streaming(PIPELINE))
    arrive(1, ("FAILED", 1), ("FAILED", 2), ("FAILED", 3), ("LOGIN", 5), ("X", 10))
    run_pipeline(load(path), once=True)
    assert found_in_seconds() == [("guessed", "high", 1, 5)]

    # The query of "guessed" is the same, so that it goes on; "tried" is new; "left" cannot be read.
    folder(a=guessed.replace('"high"', '"critical"'), b=LEFT.replace("LOGOUT", "LOGOUT ;;"), c=TRIED)
    arrive(2, ("LOGIN", 20), ("LOGOUT", 21), ("FAILED", 22), ("LOGIN", 23), ("X", 40))
    told: list[Any] = []
    with pytest.warns(
        stretto.StrettoWarning, match="1 rule is wrong; where there was one that is right, it goes on\n.*b.toml"
    ):
        run_pipeline(load(path), once=True, report=told.append)
    assert "1 wrong rules" in told[-1].line
    second = {("guessed", "critical", start, end) for start, end in ((1, 20), (1, 23), (2, 23))}
    second |= {("left", "low", 5, 21), ("left", "low", 20, 21), ("tried", "medium", 22, 23)}
    assert set(found_in_seconds()) == {("guessed", "high", 1, 5)} | second

    # While it runs: "left" goes with its file, and "tried" is another query from the watermark, 39 s, on.
    changed: list[str] = []

    def change(update: Any) -> None:
        if update.line.startswith("batch") and not changed:
            changed.append(update.line)
            (folder() / "b.toml").unlink()
            folder(c=TRIED.replace("FAILED AS a ;", "").replace('"30 seconds"', "1"))
        if update.line == "rules: 1 replaced, 1 retired":
            arrive(4, ("LOGOUT", 60), ("LOGIN", 61), ("X", 100))
        if update.state == "running" and changed and any(row[3] == 61 for row in found_in_seconds()):
            raise KeyboardInterrupt

    arrive(3, ("X", 50))
    with pytest.warns(stretto.StrettoWarning, match="1 rule is wrong"):
        run_pipeline(load(path), report=change)
    third = {("guessed", "critical", start, 61) for start in (1, 2)}
    assert {row for row in found_in_seconds() if row[3] >= 50} == third | {("tried", "medium", 61, 61)}


@pytest.mark.spark
def test_automata_of_a_stream_change(
    spark: Any, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose text stays goes on, register and all; one with another text begins anew at the watermark; others run beside it."""
    waits = '  { source = "out", kind = "ignore", when = "e.type = \'X\'" },\n]'
    retries = AUTOMATON[AUTOMATON.index("[[rule]]") : AUTOMATON.index("[[rule.test]]")].replace("\n]", "\n" + waits)
    retries = retries.replace("every = 50\n", "")
    folder(a=retries, b=LEFT)
    path = pipeline(tmp_path, monkeypatch, streaming(PIPELINE))
    first = [("FAILED", 1), ("FAILED", 2), ("X", 10)]
    arrive(1, *first)
    run_pipeline(load(path), once=True)
    assert not Path("out").exists() or not found_in_seconds()

    wrong = retries.replace("retries", "wrong").replace("e.type = 'LOGIN'", "e.usr = 'x'")
    folder(a=retries.replace("language", 'severity = "critical"\nlanguage'), c=wrong)
    second = [("FAILED", 20), ("LOGIN", 21), ("LOGOUT", 22), ("FAILED", 23), ("FAILED", 24), ("X", 40)]
    arrive(2, *second)
    with pytest.warns(stretto.StrettoWarning, match="'wrong' does not run: .*the event has no attribute 'usr'"):
        run_pipeline(load(path), once=True)
    alerts = {("retries", "critical", 1, 21), ("left", "low", 21, 22)}
    assert set(found_in_seconds()) == alerts
    rows = [{"type": kind, "t": dt.datetime.fromtimestamp(t, dt.UTC), "user": "ann"} for kind, t in first + second]
    with pytest.warns(stretto.StrettoWarning, match="rule 'wrong' .* does not run"):
        matches = stretto.read_rules(folder()).match(rows, time="t").matches
    here = matches.select(["rule", "severity", "start_time", "end_time"])
    assert {
        (*row[:2], *(int(t.timestamp()) for t in row[2:])) for row in map(tuple, map(dict.values, here.to_pylist()))
    } == alerts

    # From the watermark, 39 s, on two failures suffice: those at 23 and 24 are forgotten. A file that is empty loses no rule.
    (folder() / "c.toml").unlink()
    folder(a=retries.replace("r.tries > 2", "r.tries > 1"), b="")
    arrive(3, ("LOGIN", 50), ("FAILED", 51), ("FAILED", 52), ("LOGIN", 53), ("LOGOUT", 54), ("X", 100))
    with pytest.warns(stretto.StrettoWarning, match=r"b.toml: there is no \[\[rule\]\] in it"):
        run_pipeline(load(path), once=True)
    alerts |= {("retries", "medium", 51, 53), *(("left", "low", start, 54) for start in (21, 50, 53))}
    assert set(found_in_seconds()) == alerts


@pytest.mark.spark
def test_a_table_of_rules_with_times_in_pipelines(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batch those of this process; in a stream what the table says when it changes, and what was planned is taken back."""
    query = "SELECT * FROM S WHERE FAILED AS a ; LOGIN AS b PARTITION BY [user]"
    rules = [
        {"id": "early", "query": query, "until": "1970-01-01T00:00:10Z"},
        {"id": "late", "query": query, "since": "1970-01-01 00:00:03+00:00", "severity": "low"},
    ]
    text = PIPELINE.replace('"rules"', '"rules.csv"')
    path = pipeline(tmp_path, monkeypatch, streaming(text))
    as_file(Path("rules.csv"), rules)
    arrive(1, ("FAILED", 1), ("FAILED", 3), ("LOGIN", 5), ("X", 8))
    run_pipeline(load(path), once=True)
    first = {("early", "medium", 1, 5), ("early", "medium", 3, 5), ("late", "low", 3, 5)}
    assert set(found_in_seconds()) == first

    # "early" goes on until a later time, and "late" ends at one that has passed.
    as_file(
        Path("rules.csv"), [rules[0] | {"until": "1970-01-01T00:00:21Z"}, rules[1] | {"until": "1970-01-01T00:00:04Z"}]
    )
    arrive(2, ("LOGIN", 20), ("LOGIN", 21), ("X", 30))
    told: list[Any] = []
    run_pipeline(load(path), once=True, report=told.append)
    second = {("early", "medium", 1, 20), ("early", "medium", 3, 20)}
    assert set(found_in_seconds()) == first | second

    # The whole in batch, and what is wrong with the table.
    as_file(
        Path("rules.csv"),
        [*rules, {"id": "wrong", "query": "x"}, {"id": "never", "query": query, "since": "7"}],
    )
    Path("batch").mkdir()
    batch = Path("batch/pipeline.toml")
    batch.write_text(text.replace('"events"', '"../events"').replace('"rules.csv"', '"../rules.csv"'), encoding="utf-8")
    with pytest.warns(stretto.StrettoWarning) as warned:
        run_pipeline(load(batch))
    for part in ("rules.csv, row 2, query", "rule 'never' does not run: since is '7'"):
        assert any(part in str(one.message) for one in warned)
    here = stretto.read_rules(rules).match(Path("events"), time="t").matches
    monkeypatch.chdir("batch")
    wanted = [(row["rule"], row["severity"], row["start_time"], row["end_time"]) for row in here.to_pylist()]
    assert found_in_seconds() == sorted(
        (rule, how, int(a.timestamp()), int(b.timestamp())) for rule, how, a, b in wanted
    )
    assert len(wanted) == 5


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_rule_that_explodes_in_a_pipeline(
    spark: Any, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """It is switched off and told, and the others go on."""
    many = '[[rule]]\nid = "many"\nquery = "SELECT * FROM S WHERE FAILED+ AS a PARTITION BY [user]"\n'
    folder(a=many, b=TRIED)
    text = PIPELINE.replace("[[sink]]", 'on_limit = "disable"\nbudget = 400\n\n[[sink]]', 1)
    path = pipeline(tmp_path, monkeypatch, streaming(text) if mode == "streaming" else text)
    arrive(1, *[("FAILED", t) for t in range(1, 11)], ("LOGIN", 31), ("END", 1000))
    told: list[Any] = []
    with pytest.warns(stretto.StrettoWarning, match="1 .*switched off"):
        run_pipeline(load(path), once=mode == "streaming", report=told.append)
    rows = pq.read_table("out", partitioning=None).to_pylist()
    (off,) = [row for row in rows if row["disabled"] is not None]
    assert (off["rule"], off["start_time"]) == ("many", None)
    assert "goes over the budget" in off["disabled"]
    assert {row["rule"] for row in rows if row["disabled"] is None} >= {"tried"}


def test_rules_of_all_languages(folder: Folder) -> None:
    """Each gives what it gives alone; what waits for time to pass comes when the events end."""
    sase = "PATTERN SEQ(FAILED a, LOGIN b) WHERE skip_till_next_match { [user] and b.t > a.t + 1 } WITHIN 60 [t]"
    left = "PATTERN SEQ(LOGIN a, ~(LOGOUT b)) WHERE skip_till_next_match { [user] } WITHIN 60 [t]"
    eql = "sequence by user with maxspan=60s [FAILED where true] [LOGIN where true]"
    queries = {"sase": sase, "left": left, "eql": eql, "event": "LOGIN where user == 'bob'".replace("'", '"')}
    text = '[events]\ntime = "t"\ntime_unit = "s"\n'
    for name, query in queries.items():
        language = "eql" if name in ("eql", "event") else "sase"
        text += f'[[rule]]\nid = "{name}"\nlanguage = "{language}"\nquery = \'{query}\'\n'
    rules = stretto.read_rules(folder(a=text))
    assert not rules.problems
    alerts = rules.match(EVENTS, at_end="complete")
    assert alerts.report.column("error").to_pylist() == [None] * 4
    for rule in rules.rules:
        alone = stretto.match(rule.query, EVENTS, time="t", time_unit="s")
        mine = alerts.matches.filter(pc.equal(alerts.matches.column("rule"), rule.id))
        times = ["start_time", "end_time"]
        assert mine.num_rows
        assert sorted(map(str, mine.select(times).to_pylist())) == sorted(map(str, alone.select(times).to_pylist()))


def test_the_rules_of_examples() -> None:
    rules = stretto.read_rules(Path(__file__).parents[2] / "examples" / "rules")
    tested = rules.test().to_pylist()
    assert [(row["rule"], row["passed"]) for row in tested] == [("spraying", True)] * 2 + [("scanning", True)] * 2
