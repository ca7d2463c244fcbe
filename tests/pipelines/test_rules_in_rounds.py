"""Rules over events that come in rounds: what is not decided is left out, counted, and carried on."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.cli import main
from stretto.errors import DataError, OptionError, SnapshotError
from stretto.pipelines import PipelineError, load
from stretto.pipelines import run as run_pipeline
from tests.pipelines.conftest import ruled

SILENT = "SELECT * FROM S WHERE login ; NOT logout PARTITION BY [user] WITHIN 60 seconds"

#: Rules on every engine of a set, some of which wait for time to pass or for a further row.
RULES = [
    {"id": "silent", "query": SILENT},
    {"id": "silent-once", "query": SILENT, "every": "100 seconds"},
    {
        "id": "left",
        "query": "PATTERN SEQ(login a, ~(logout b)) WHERE skip_till_next_match { [user] } WITHIN 60 seconds",
    },
    {
        "id": "stays",
        "language": "eql",
        "query": "sequence by user with maxspan=60s [login where true] ![logout where true]",
    },
    {"id": "pair", "query": "SELECT * FROM S WHERE login ; logout PARTITION BY [user] WITHIN 60 seconds"},
    {
        "id": "pair-once",
        "query": "SELECT * FROM S WHERE login ; logout PARTITION BY [user] WITHIN 60 seconds",
        "every": "50 seconds",
    },
    {
        "id": "gap",
        "query": "SELECT * FROM S WHERE login ; logout AFTER 5 seconds WITHIN 30 seconds PARTITION BY [user]",
    },
    {
        "id": "clause",
        "query": "MATCH_RECOGNIZE (PARTITION BY user PATTERN (A B+) DEFINE A AS type = 'login', B AS type = 'x')",
    },
    {
        "id": "short",
        "query": "MATCH_RECOGNIZE (PARTITION BY user ORDER BY t PATTERN (A B+) WITHIN INTERVAL '20' SECOND "
        "DEFINE A AS type = 'login', B AS type = 'x')",
    },
]


def log(*events: tuple[str, int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(("type", "t", "user"), one, strict=True)) for one in events], schema=COLUMNS)


ROLES: Any = {"time": "t"}

COLUMNS = pa.schema([("type", pa.string()), ("t", pa.timestamp("s")), ("user", pa.string())])


def rows(table: pa.Table) -> list[str]:
    """Rule, first and last second, and keys of each alert."""
    times = [table.column(name).cast(pa.int64()) for name in ("start_time", "end_time")]
    return sorted(map(str, zip(*map(pa.ChunkedArray.to_pylist, [table["rule"], *times, table["keys"]]), strict=True)))


def test_no_alert_of_what_is_not_decided() -> None:
    """A file that ends five minutes after the login."""
    rules = stretto.read_rules(RULES[:1])
    events = log(("login", 0, "ann"), ("x", 5, "ann"))
    told = r"not decided where the events end: 1 match of 1 rule \('silent' 1\), and left out; state="
    with pytest.warns(stretto.StrettoWarning, match=told):
        found = rules.match(events, **ROLES)
    assert found.matches.num_rows == 0
    assert found.report.select(["alerts", "undecided"]).to_pylist() == [{"alerts": 0, "undecided": 1}]
    assert found.state is None
    whole = rules.match(events, **ROLES, at_end="complete")
    assert whole.report.select(["alerts", "undecided"]).to_pylist() == [{"alerts": 1, "undecided": 0}]
    # Time moves for all: an event of another user decides it.
    later = rules.match(pa.concat_tables([events, log(("x", 61, None))]), **ROLES)
    assert later.report.select(["alerts", "undecided"]).to_pylist() == [{"alerts": 1, "undecided": 0}]
    with pytest.raises(OptionError, match="at_end='open': expected 'complete' or 'drop'"):
        rules.match(events, **ROLES, at_end="open")


def test_the_next_round_goes_on() -> None:
    rules = stretto.read_rules(RULES[:1])
    first = rules.match(log(("login", 0, "ann"), ("login", 2, "bob")), **ROLES, state=b"")
    assert first.report.column("undecided").to_pylist() == [2]
    second = rules.match(log(("logout", 30, "bob"), ("x", 70, "eve")), **ROLES, state=first.state)
    assert rows(second.matches) == ["('silent', 0, 0, [('user', 'ann')])"]
    assert second.report.column("undecided").to_pylist() == [0]
    with pytest.raises(
        DataError, match="round begin at 1970-01-01 00:01:09, and those before have come to 1970-01-01 00:01:10"
    ):
        rules.match(log(("logout", 69, "bob")), **ROLES, state=second.state)


@pytest.mark.parametrize("seed", range(6))
def test_rounds_give_what_one_pass_gives(seed: int) -> None:
    """Whatever the cuts; and what is not decided is what the end would complete."""
    print(f"seed {seed}")
    draw = random.Random(seed)
    rules = stretto.read_rules(RULES)
    assert not rules.problems
    time, events = 0, []
    for _ in range(60):
        time += draw.choice([0, 1, 3, 10, 40])
        events.append((draw.choice(["login", "logout", "x", "x"]), time, draw.choice(["ann", "bob", None])))
    table = log(*events)
    # Two events of one time may be in two rounds.
    cuts = sorted(draw.sample(range(1, 60), draw.randint(1, 6)))
    found, state = [], b""
    for low, high in zip([0, *cuts], [*cuts, 60], strict=True):
        one = rules.match(table.slice(low, high - low), **ROLES, state=state)
        assert one.state is not None
        found.append(one.matches)
        state = one.state
        with warnings.catch_warnings(action="ignore"):
            whole = rules.match(table.slice(0, high), **ROLES)
            complete = rules.match(table.slice(0, high), **ROLES, at_end="complete")
        assert rows(pa.concat_tables(found)) == rows(whole.matches)
        undecided = {row["rule"]: row["undecided"] for row in one.report.to_pylist()}
        assert undecided == {row["rule"]: row["undecided"] for row in whole.report.to_pylist()}
        for before, after in zip(whole.report.to_pylist(), complete.report.to_pylist(), strict=True):
            more = after["alerts"] + after["suppressed"] - before["alerts"] - before["suppressed"]
            assert before["undecided"] == more, before["rule"]


def test_rules_change_between_rounds() -> None:
    """One whose query is the same goes on, another query begins anew, a rule that is gone gives no more, and a wrong one goes on."""
    first = stretto.read_rules([RULES[0], RULES[4], {"id": "other", "query": RULES[4]["query"]}])
    state = first.match(log(("login", 0, "ann")), **ROLES, state=b"").state
    title = RULES[0] | {"title": "Still there", "severity": "high"}
    other = {"id": "other", "query": "SELECT * FROM S WHERE login ; logout PARTITION BY [user]"}
    now = stretto.read_rules([title, other])
    found = now.match(log(("logout", 61, "ann")), **ROLES, state=state)
    shown = found.matches.select(["rule", "title", "severity"]).to_pylist()
    assert shown == [{"rule": "silent", "title": "Still there", "severity": "high"}]
    assert found.report.column("rule").to_pylist() == ["silent", "other"]
    wrong = stretto.read_rules([RULES[0], {"id": "pair", "query": "SELECT * FROM S WHERE login ; ;"}])
    found = wrong.match(log(("logout", 61, "ann")), **ROLES, state=state)
    assert rows(found.matches) == ["('silent', 0, 0, [('user', 'ann')])"]
    found = wrong.match(log(("logout", 30, "ann")), **ROLES, state=state)
    assert rows(found.matches) == ["('pair', 0, 30, [('user', 'ann')])"]
    # One that is gone and comes again knows nothing of what was before.
    state = now.match(log(("x", 1, "ann")), **ROLES, state=state).state
    found = first.match(log(("logout", 2, "ann")), **ROLES, state=state)
    assert found.matches.num_rows == 0


TIMES = pa.schema([("start_time", pa.int64()), ("end_time", pa.int64())])

#: Rules, and the same in other words.
WORDS = {
    "ceql": ("SELECT * FROM S WHERE login ; logout", "select  *  from S where login;logout -- in order"),
    "sase": (
        "PATTERN SEQ(login a, logout b) WHERE skip_till_any_match { a.user = b.user }",
        "pattern seq(login a,logout b)\nwhere skip_till_any_match {a.user=b.user}",
    ),
    "eql": (
        'sequence [login where user == "ann"] [logout where true]',
        'sequence\n  [login where user=="ann"] // whoever\n  [logout where true]',
    ),
    "clause": (
        "MATCH_RECOGNIZE (ORDER BY t PATTERN (A B) DEFINE A AS type = 'login', B AS type = 'logout')",
        "match_recognize (order by t  pattern (A B) define A as type='login', B as type = 'logout')",
    ),
    "afa": (
        "final = ['q2']\narcs = [{ source = 'q0', target = 'q1', when = \"e.type = 'login'\" }, "
        "{ source = 'q1', target = 'q2', when = \"e.type = 'logout' and NOT e.user IS NULL\" }]",
        "# two arcs\nfinal = ['q2']\narcs = [ { source='q0', target='q1', when=\"(e.type='login')\" },"
        "{ source = 'q1', target = 'q2', when = \"e.type = 'logout'   AND not e.user is null\" } ]",
    ),
}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("every", [None, "100 seconds"])
def test_a_rule_in_other_words_goes_on(name: str, every: str | None) -> None:
    """What a rule means is compared, not its white space, its comments or the case of its keywords; and again in the third round."""

    def rules(text: str) -> stretto.RuleSet:
        given = {"id": name, "query": text} | ({"language": name} if name in ("eql", "afa") else {})
        found = stretto.read_rules([given | ({"every": every} if every else {})])
        assert not found.problems
        return found

    text, other = WORDS[name]
    first = rules(text).match(log(("login", 0, "ann")), **ROLES, state=b"")
    second = rules(other).match(log(("logout", 5, "ann"), ("login", 6, "ann")), **ROLES, state=first.state)
    assert second.matches.select(["start_time", "end_time"]).cast(TIMES).to_pylist() == [
        {"start_time": 0, "end_time": 5}
    ]
    for again in (other, text):
        third = rules(again).match(log(("logout", 7, "ann")), **ROLES, state=second.state)
        count = third.matches.num_rows + third.report.column("suppressed").to_pylist()[0]
        assert count == (2 if name in ("ceql", "sase") else 1), again  # these list every pair
    # Another meaning begins anew.
    changed = rules(text.replace("logout", "logoff")).match(log(("logoff", 5, "ann")), **ROLES, state=first.state)
    assert changed.matches.num_rows == 0


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    shown = capsys.readouterr()
    return (ended.value.code if isinstance(ended.value.code, int) else 0), shown.out, shown.err


def test_the_command_in_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules.toml").write_text(f'[events]\ntime = "t"\n[[rule]]\nid = "silent"\nquery = "{SILENT}"\n')
    for number, events in enumerate([log(("login", 0, "ann"), ("login", 30, "bob")), log(("x", 61, "eve"))]):
        pq.write_table(events, tmp_path / f"{number}.parquet")
    rules, first, second, state = (str(tmp_path / name) for name in ("rules.toml", "0.parquet", "1.parquet", "state"))
    code, out, err = command(capsys, "rules", "match", rules, first, "--json")
    assert (code, out) == (0, "")
    assert "not decided where the events end: 2 matches of 1 rule ('silent' 2)" in err
    code, out, err = command(capsys, "rules", "match", rules, first, "--json", "--at-end", "complete")
    assert (code, len(out.splitlines()), err) == (0, 2, "")
    code, out, err = command(capsys, "rules", "match", rules, first, "--json", "--state", state)
    assert (code, out) == (0, "")
    assert err == f"not decided where the events end: 2 matches of 1 rule ('silent' 2); {state} carries them on\n"
    before = Path(state).read_bytes()
    code, out, err = command(capsys, "rules", "match", rules, second, "--json", "--state", state)
    assert (code, len(out.splitlines())) == (0, 1)
    assert "1 match of 1 rule ('silent' 1)" in err
    code, _, err = command(capsys, "rules", "match", rules, first, "--state", state)
    assert (code, "nothing is read twice" in err) == (1, True)
    # Alerts that cannot be written stay to be given: the state is as it was.
    Path(state).write_bytes(before)
    assert command(capsys, "rules", "match", rules, second, "--out", str(tmp_path / "no" / "x.csv"), "--state", state)[
        0
    ]
    assert Path(state).read_bytes() == before
    Path(state).write_bytes(before[:-9] + b"x" + before[-8:])
    code, _, err = command(capsys, "rules", "match", rules, second, "--state", state)
    assert (code, err.startswith("error: state '"), "checksum" in err) == (1, True, True)
    assert not list(tmp_path.glob(".state*"))


def test_a_state_that_does_not_fit(tmp_path: Path) -> None:
    rules = stretto.read_rules(RULES[:1])
    state = tmp_path / "state"
    rules.match(log(("login", 0, "ann")), **ROLES, state=state)
    with pytest.raises(OptionError, match="at_end='complete' says that no events will come"):
        rules.match(log(("x", 61, "ann")), **ROLES, state=state, at_end="complete")
    with pytest.raises(SnapshotError, match="these bytes are not a stretto snapshot"):
        rules.match(log(("x", 61, "ann")), **ROLES, state=stretto.Matcher(SILENT).snapshot())
    with pytest.raises(DataError, match="'user'"):
        rules.match(log(("x", 61, "ann")).drop_columns("user"), **ROLES, state=state)
    narrow = log(("x", 61, "ann")).cast(
        pa.schema([("type", pa.string()), ("t", pa.timestamp("ms")), ("user", pa.string())])
    )
    assert rules.match(narrow, **ROLES, state=state).matches.num_rows == 1
    assert rules.match(log(), **ROLES, state=state).matches.num_rows == 0


PIPELINE = ruled("rules.toml")


@pytest.mark.spark
def test_a_batch_pipeline_leaves_out_what_is_not_decided(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of all events decides, also for the keys of other tasks, and of events without a key."""
    monkeypatch.chdir(tmp_path)
    Path("events").mkdir()
    pq.write_table(
        log(("login", 0, "ann"), ("login", 30, "bob"), ("login", 40, "eve"), ("x", 61, None)), "events/1.parquet"
    )
    Path("rules.toml").write_text(f'[[rule]]\nid = "silent"\nquery = "{SILENT}"\n')
    Path("pipeline.toml").write_text(PIPELINE)
    told = r"rules 'alerts': not decided where the events end: 2 matches of 1 rule \('silent' 2\), and left out"
    with pytest.warns(stretto.StrettoWarning, match=told):
        run_pipeline(load("pipeline.toml"))
    found = pq.read_table("out")
    assert found.select(["rule", "user"]).to_pylist() == [{"rule": "silent", "user": "ann"}]
    assert "undecided" not in found.column_names
    complete = PIPELINE.replace('by = ["user"]', 'by = ["user"]\nat_end = "complete"').replace('"out"', '"whole"')
    Path("pipeline.toml").write_text(complete)
    run_pipeline(load("pipeline.toml"))
    assert sorted(pq.read_table("whole").column("user").to_pylist()) == ["ann", "bob", "eve"]
    Path("pipeline.toml").write_text(f'[pipeline]\nmode = "streaming"\ncheckpoint = "c"\n{complete}')
    with pytest.raises(PipelineError, match='at_end is for mode = "batch"'):
        load("pipeline.toml")
