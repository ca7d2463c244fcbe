"""A replay: patterns that change on the way find what they would in the events for which they hold."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import LimitError, OptionError, QueryError
from stretto.studio import replay as replaying
from stretto.studio.replay import Replay
from stretto.studio.workbench import Roles, Workbench
from tests.conftest import cases

QUERIES = [
    "SELECT * FROM S WHERE A AS a; B+ AS b WITHIN 4 [t]",
    "SELECT * FROM S WHERE B AS x; A AS y WITHIN 6 [t]",
    "PATTERN SEQ(A a, ~(B n), A c) WITHIN 5",
    "PATTERN SEQ(A a, ~(B n)) WITHIN 3",
]


def bench_of(kinds: str, times: list[int] | None = None) -> Workbench:
    table = pa.table({"type": list(kinds), "t": times or list(range(len(kinds)))})
    return Workbench(table, Roles(time="t"))


def test_patterns_that_change_find_what_they_do_in_their_events() -> None:
    for seed in range(cases(60)):
        draw = random.Random(seed)
        size = draw.randint(1, 14)
        times = sorted(draw.randint(0, 12) for _ in range(size))
        bench = bench_of("".join(draw.choices("AB", k=size)), times)
        replay = Replay(bench)
        # Of each version: its pattern, its query, and from and until which time it holds.
        versions: list[list[Any]] = []
        in_force: dict[str, list[Any]] = {}
        state: dict[str, Any] = replay.state()
        while not state["ended"]:
            name, text = draw.choice("pq"), draw.choice([*QUERIES, ""])
            later = [one for one in times[state["read"] :] if not state["read"] or one > times[state["read"] - 1]]
            if not later:
                with pytest.raises(OptionError, match="no event comes any more"):
                    replay.put(name, text)
            elif in_force.get(name, [None, None])[1] != text:
                replay.put(name, text)
                since = later[0] if state["read"] else -1
                if name in in_force:
                    in_force.pop(name)[3] = since
                if text:
                    in_force[name] = [name, text, since, 1000]
                    versions.append(in_force[name])
            if draw.random() < 0.5:
                state = replay.read(float(draw.randint(0, 13)), 0)
            else:
                state = replay.read(-1.0, draw.randint(1, 3))
            assert not state["late"]
        expected = []
        for name, text, since, until in versions:
            rows = [row for row, at in enumerate(times) if since <= at < until]
            own = bench.events.take(pa.array(rows, pa.int64()))
            if not rows:
                continue
            for match in stretto.match(text, own, time="t").to_pylist():
                expected.append((name, [rows[row] for row in match["positions"]]))
        found = [(one["values"]["pattern"], one["rows"]) for one in state["matches"]]
        # What still waits for time to pass when its pattern is taken out is no match (docs/patterns.md).
        if any(text == QUERIES[3] and until < 1000 for _, text, _, until in versions):
            assert all(found.count(one) <= expected.count(one) for one in found), seed
        else:
            assert sorted(found) == sorted(expected), seed
        assert state["count"] == len(found), seed
        assert {one["name"]: one["text"] for one in state["patterns"] if one["text"]} == {
            name: one[1] for name, one in in_force.items()
        }, seed


def test_events_of_one_time_are_not_cut_apart() -> None:
    """A pattern that is put in between two events of one time holds from the next time on."""
    replay = Replay(bench_of("ABAB", [1, 1, 2, 2]))
    assert replay.read(-1.0, 1)["read"] == 1
    replay.put("p", "SELECT * FROM S WHERE A AS a; B AS b")
    found = replay.read(9.0, 0)
    assert [(one["rows"], one["variables"], one["values"]) for one in found["matches"]] == [
        ([2, 3], {"a": [2], "b": [3]}, {"pattern": "p", "since": 2})
    ]
    assert found["events"] == {"2": [2.0, ["A", 2]], "3": [2.0, ["B", 2]]}
    assert (found["at"], found["ended"], found["late"]) == (2.0, True, False)


def test_the_last_matches_are_kept_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of("A" * 300)
    replay = Replay(bench)
    replay.put("one", "SELECT * FROM S WHERE A AS a")
    replay.put("two", "SELECT * FROM S WHERE A AS a; A AS b WITHIN 1 [t]")
    found = replay.read(299.0, 0)
    assert (found["count"], len(found["matches"])) == (599, replaying.MOST_KEPT)
    assert {one["name"]: one["count"] for one in found["patterns"]} == {"one": 300, "two": 299}
    assert found["matches"][0]["rows"] in ([299], [298, 299])
    monkeypatch.setattr(replaying, "_SECONDS", 0.0)
    slow = Replay(bench)
    assert (slow.read(299.0, 0)["read"], slow.read(299.0, 0)["late"]) == (0, True)


def test_a_pattern_that_finds_too_much_stops_alone() -> None:
    replay = Replay(bench_of("A" * 250 + "B"))
    replay.put("all", "SELECT * FROM S WHERE A+ AS a")
    replay.put("b", "SELECT * FROM S WHERE B AS b")
    found = replay.read(300.0, 0)
    stopped = {one["name"]: one["stopped"] for one in found["patterns"]}
    assert "budget" in stopped["all"]
    assert stopped["b"] is None
    assert found["matches"][0]["rows"] == [250]


def test_what_no_replay_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="needs a column of time"):
        Replay(Workbench(pa.table({"type": ["A"]}), Roles()))
    replay = Replay(bench_of("AB"))
    with pytest.raises(QueryError, match="unknown attribute 'u'") as wrong:
        replay.put("p", "SELECT * FROM S WHERE A AS a FILTER a[u > 1]")
    assert wrong.value.span is not None
    with pytest.raises(OptionError, match="ORDER BY"):
        replay.put("p", "PATTERN SEQ(A a, B b) WITHIN 5 ORDER BY sum(b.t) LIMIT 1")
    for name in ("", " ", "x" * 101):
        with pytest.raises(OptionError, match="needs a name"):
            replay.put(name, QUERIES[0])
    monkeypatch.setattr(replaying, "MOST_PATTERNS", 1)
    replay.put("p", QUERIES[0])
    replay.put("p", QUERIES[1])
    with pytest.raises(LimitError, match="the most"):
        replay.put("q", QUERIES[0])
    replay.put("p", "")
    assert replay.put("q", QUERIES[0])["patterns"][0]["name"] == "q"
    monkeypatch.setattr(replaying, "LONGEST", 5)
    with pytest.raises(LimitError, match="characters"):
        replay.put("q", QUERIES[0])
    monkeypatch.undo()
    nothing = pa.table({"type": pa.array([], pa.string()), "t": pa.array([], pa.int64())})
    empty = Replay(Workbench(nothing, Roles(time="t")))
    assert empty.read(0.0, 1)["ended"]
    with pytest.raises(OptionError, match="no event comes any more"):
        empty.put("p", QUERIES[0])
