"""KEEP and AFTER MATCH: when matches come, what goes with them, and what does not."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.engines.api import Matches
from stretto.engines.match_ops.after_match_skip import KeptProgram
from stretto.frame import Section

ATTACK = "SELECT * FROM L WHERE FAILED+ AS fails ; OK AS ok PARTITION BY [ip] WITHIN 60 [t] "


def events(*rows: tuple[str, str, int]) -> list[dict[str, Any]]:
    return [{"type": kind, "ip": ip, "t": t} for kind, ip, t in rows]


def held(table: Any) -> list[list[int]]:
    return table.column("positions").to_pylist() if table.num_columns else []


def test_four_attacks_are_four_rows() -> None:
    rows = [("FAILED", ip, 0) for ip in "xy"]
    for attack in range(4):
        rows += [("FAILED", "x", 20 * attack + second) for second in range(10)] + [("OK", "x", 20 * attack + 10)]
    found = stretto.match(ATTACK + "AFTER MATCH SKIP PAST LAST EVENT", events(*rows), time="t")
    assert [len(fails) for fails in found.column("fails").to_pylist()] == [11, 10, 10, 10]


def test_the_shortest_comes_with_its_last_event_and_the_longest_when_its_window_has_passed() -> None:
    rows = events(("OK", "x", 0), ("FAILED", "x", 1), ("FAILED", "y", 2), ("FAILED", "x", 3), ("OK", "x", 4))
    short = stretto.Matcher(ATTACK + "AFTER MATCH SKIP PAST LAST EVENT", time="t")
    assert held(short.push(rows)) == [[1, 3, 4]]
    assert short.finish().num_rows == 0
    long = stretto.Matcher(ATTACK + "KEEP LONGEST", time="t")
    assert held(long.push(rows)) == []
    assert long.expires == 61
    assert held(long.advance(61)) == []
    assert held(long.advance(62)) == [[1, 3, 4]]
    assert held(long.push(events(("FAILED", "z", 64)))) == [[3, 4]]
    assert long.finish().num_rows == 0


def test_an_earlier_start_holds_back() -> None:
    """A start of the same key that may still have a match comes first, and may take what is waiting."""
    text = "SELECT * FROM S WHERE (A ; C) OR (B ; D) WITHIN 10 [t] AFTER MATCH SKIP PAST LAST EVENT"
    rows = [{"type": kind, "t": t} for kind, t in (("A", 0), ("B", 1), ("D", 2))]
    matcher = stretto.Matcher(text, time="t")
    assert held(matcher.push(rows)) == []
    snapshot = matcher.snapshot()
    assert held(matcher.push([{"type": "C", "t": 3}])) == [[0, 3]]
    assert held(matcher.finish()) == []
    matcher.restore(snapshot)
    assert held(matcher.advance(11)) == [[1, 2]]


def test_events_that_are_sorted() -> None:
    rows = events(("FAILED", "x", 1), ("OK", "x", 4), ("FAILED", "x", 2))
    matcher = stretto.Matcher(ATTACK + "KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT", time="t", disorder=5)
    assert held(matcher.push(rows)) == []
    assert held(matcher.push(events(("FAILED", "x", 90)))) == [[0, 1, 2]]


def test_keys_that_never_come_again_are_forgotten_but_not_their_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.engines.shared.intake.SWEEP_AT_LEAST", 4)
    rows = [(kind, f"{n:03}", n) for n in range(60) for kind in ("FAILED", "FAILED", "OK")]
    text = ATTACK.replace("60", "5") + "KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT"
    whole = stretto.match(text, events(*rows), time="t")
    assert held(whole) == [[at, at + 1, at + 2] for at in range(0, 180, 3)]
    matcher = stretto.Matcher(text, time="t", output="positions")
    found = [row for row in events(*rows) for row in held(matcher.push([row]))]
    assert found + held(matcher.finish()) == held(whole)
    assert matcher.stats["partitions"] < 20


def test_what_lists_too_much_is_refused() -> None:
    text = "PATTERN SEQ((A|B)+ a[], (B|C) b) WHERE skip_till_any_match { } KEEP LONGEST"
    rows = [{"type": kind} for kind in "AB" * 12 + "C"]
    with pytest.raises(
        stretto.LimitError, match=r"row \d+ completes [\d,]+ matches, of which KEEP and AFTER MATCH look at"
    ):
        stretto.match(text, rows, budget="1 MB")
    told = text.replace("(B|C)", "C").replace(
        "(A|B)", "A"
    )  # the type of an event tells its variable: one for each interval
    assert held(stretto.match(told, rows)) == [[*range(at, 24, 2), 24] for at in range(0, 24, 2)]


def test_what_waits_has_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.budget.SMALL", 1 << 14)
    monkeypatch.setattr("stretto.memory.available", lambda: 1 << 16)
    rows = [{"type": kind} for kind in "A" * 200 + "B"]
    with pytest.raises(
        stretto.LimitError, match=r"row \d+ meets \d+ open starts of matches, of which some may be kept"
    ):
        stretto.match("SELECT * FROM S WHERE A+ ; B KEEP LONGEST", rows)
    with pytest.raises(stretto.LimitError, match="row 200 completes matches of which some may be kept, which take"):
        stretto.match("SELECT LAST * FROM S WHERE A+ ; B KEEP LONGEST", rows)


def test_sessions_come_when_their_gap_has_passed() -> None:
    """Events of other keys and punctuations move time; nothing but the open sessions is held."""
    text = "SELECT * FROM S WHERE V+ GAP 5 [t] PARTITION BY [k] KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT"
    matcher = stretto.Matcher(text, time="t")
    given = []
    for key, t in (("a", 0), ("a", 3), ("a", 6), ("b", 4 + 4), ("b", 11), ("b", 12), ("a", 21), ("c", 40)):
        given.append((t, held(matcher.push([{"type": "V", "k": key, "t": t}]))))
    assert given[5] == (12, [[0, 1, 2]])
    assert given[6] == (21, [[3, 4, 5]])
    assert given[7] == (40, [[6]])
    assert [rows for _, rows in given[:5]] == [[]] * 5
    assert held(matcher.advance(45)) == []
    assert held(matcher.advance(46)) == [[7]]
    assert matcher.idle


@pytest.mark.parametrize(
    "text",
    [
        "V+ GAP 5 [t] KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
        "V{3,} WITHIN 90 [t] KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
        "V:+ KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
        "V ; V KEEP SHORTEST AFTER MATCH SKIP PAST LAST EVENT",
    ],
)
def test_one_start_is_open_however_long_the_loop(text: str) -> None:
    """What an event costs is what starts are open; their nodes are those of the match that is open."""
    matcher = stretto.Matcher(f"SELECT * FROM S WHERE {text}", time="t", output="positions")
    rows = 0
    for low in range(0, 600, 50):
        rows += matcher.push([{"type": "V", "t": t} for t in range(low, low + 50)]).num_rows
        snapshot = matcher.snapshot()
        matcher = stretto.Matcher(f"SELECT * FROM S WHERE {text}", time="t", output="positions").restore(snapshot)
        assert matcher.stats["nodes"] <= 3 * (low + 50)
    rows += matcher.finish().num_rows
    assert rows == {"V+ G": 1, "V{3,": 7, "V:+ ": 1, "V ; ": 300}[text[:4]]


def test_snapshots_of_before_go_on() -> None:
    """What listed the matches of a start goes on to list them."""
    text = "SELECT * FROM S WHERE A+ AS a ; B AS b WITHIN 9 [t] KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT"
    rows = pa.table({"type": list("AABAxxxxxxB"), "t": range(11)})
    program: Any = stretto.compile(text, rows, time="t").program()
    before = KeptProgram(program.machine, program.keep, program.order).start(capacity=1)
    assert before.program.digest == program.digest
    section, run = Section(), program.start(capacity=1)
    assert not list(before.advance(rows.slice(0, 4).to_batches()[0]))
    before.save(section)
    run.load(section)
    found = Matches.joined([*run.advance(rows.slice(4).to_batches()[0]), *run.finish()])
    assert (found.start.tolist(), found.end.tolist()) == ([0, 3], [2, 10])
    assert found.position.tolist() == [0, 1, 2, 3, 10]
    assert ["".join(sorted(program.marks[mark])) for mark in found.mark] == ["Aa", "Aa", "Bb", "Aa", "Bb"]


def test_wider_types_and_matches_taken_anew() -> None:
    rows = events(("FAILED", "x", 1), ("OK", "x", 2))
    matcher = stretto.Matcher(ATTACK.replace("OK AS ok", "(OK AS ok FILTER ok[v > 0])") + "KEEP LONGEST", time="t")
    assert held(matcher.push([row | {"v": 1} for row in rows])) == []
    assert held(matcher.push([row | {"v": 1.5, "t": 70} for row in rows])) == [[0, 1]]
    text = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { sum(a[].v) + b.v > 0 } WITHIN 9 KEEP LONGEST"
    sorting = stretto.Matcher(text, time="t", disorder=2)
    rows = [
        {"type": kind, "t": t, "v": v} for kind, t, v in (("A", 1, 1), ("B", 2, 2), ("A", 40, 1), ("B", 41, 2**63 - 1))
    ]
    assert held(sorting.push(rows)) == [[0, 1]]
    with pytest.raises(stretto.DataError, match="overflow"):
        sorting.push([{"type": "B", "t": 90, "v": 2}])
    assert held(sorting.finish()) == []


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        ("LIMIT 1", {}, "LIMIT chooses among matches, and so does KEEP"),
        ("CONSUME BY ANY", {}, "CONSUME BY chooses among matches, and so does KEEP"),
        ("", {"valuations": True}, "leave out valuations="),
        ("", {"output": "summary"}, "count the rows"),
    ],
)
def test_what_does_not_go_with_it(more: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(stretto.StrettoError, match=message):
        stretto.match(f"SELECT * FROM S WHERE A ; B KEEP LONGEST {more}", [{"type": "A"}], **options)


def test_who_does_not_carry_it() -> None:
    text = "SELECT * FROM S WHERE A ; B WITHIN 5 [t] KEEP LONGEST"
    row = [{"type": "A", "t": 1}]
    with pytest.raises(stretto.OptionError, match="prime"):
        stretto.Matcher(text, row, time="t").prime(row)
    with pytest.raises(stretto.StrettoError, match="KEEP chooses among matches, which late events add and take back"):
        stretto.Matcher(text, row, time="t", speculation=math.inf).push(row)
    sase = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { } KEEP LONGEST"
    with pytest.raises(stretto.OptionError, match="KEEP and AFTER MATCH leave one match"):
        list(stretto.match_sets(sase, row))
    with pytest.raises(stretto.QueryError, match="OUTPUT chooses among matches"):
        stretto.compile(f"{sase} OUTPUT non_overlap")


def test_explain_says_when_they_come() -> None:
    shown = stretto.compile(
        "SELECT * FROM S WHERE A+ ; B WITHIN 5 EVENTS KEEP LONGEST AFTER MATCH SKIP TO LAST A"
    ).explain()
    assert "for each start the match that ends last; the next one begins at its last A, or later" in shown
    assert "a match comes when the window of its start has passed" in shown
    assert "warning" not in shown
