"""Gaps, windows inside, sessions, and what must not come at an end, as people ask for them: cuts, times, keys, what is kept."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.engines.limits import Patience, TooMany
from stretto.errors import LimitError
from tests.conftest import COMPILED

EVENTS = pa.table(
    {
        "type": list("ABCAABBCABAC"),
        "t": [0, 1, 4, 6, 6, 7, 12, 13, 13, 20, 21, 30],
        "k": list("xyxxyxyxyxyx"),
    }
)
WAITS = "SELECT * FROM S WHERE A ; NOT B ; NOT C PARTITION BY [k] WITHIN 5 [t]"


def rows(table: pa.Table) -> list[tuple[int, int]]:
    return [(row["start"], row["end"]) for row in table.to_pylist()]


def test_what_waits_comes_when_time_has_passed() -> None:
    matcher = stretto.Matcher(WAITS, time="t", output="positions")
    assert rows(matcher.push(EVENTS.slice(8, 1))) == []
    assert rows(matcher.advance(18)) == []  # an event at 18 would still come in time
    assert rows(matcher.advance(19)) == [(0, 0)]
    assert rows(matcher.push(EVENTS.slice(10, 1))) == []
    assert rows(matcher.push(EVENTS.slice(11))) == [(1, 1)]
    assert matcher.idle


def test_what_must_not_come_before_a_match_is_not_idle() -> None:
    matcher = stretto.Matcher("SELECT * FROM S WHERE NOT B ; A WITHIN 5 [t]", time="t", output="positions")
    matcher.push([{"type": "B", "t": 1}])
    assert not matcher.idle
    assert matcher.push([{"type": "A", "t": 6}]).num_rows == 0
    assert rows(matcher.push([{"type": "A", "t": 7}])) == [(2, 2)]
    assert matcher.idle


@pytest.mark.parametrize("seed", range(8))
def test_any_cut_gives_the_same_rows_in_the_same_order(seed: int) -> None:
    choose = random.Random(seed)
    for query in (WAITS, "SELECT * FROM S WHERE NOT C ; A ; B+ GAP 6 [t] ; NOT C WITHIN 9 [t]"):
        matcher = stretto.Matcher(query, EVENTS.schema, time="t", output="positions", capacity=1)
        found: list[Any] = []
        low = 0
        while low < EVENTS.num_rows:
            size = choose.choice([1, 2, 5])
            found += matcher.push(EVENTS.slice(low, size)).to_pylist()
            low += size
            if low < EVENTS.num_rows and choose.random() < 0.3:
                found += matcher.advance(EVENTS.column("t")[low - 1].as_py()).to_pylist()
            if choose.random() < 0.5:
                matcher = stretto.Matcher(query, EVENTS.schema, time="t", output="positions").restore(
                    matcher.snapshot()
                )
        found += matcher.finish().to_pylist()
        assert found == stretto.match(query, EVENTS, time="t", output="positions").to_pylist()


@pytest.mark.parametrize("query", [WAITS, "PATTERN SEQ(A a, ~(B b)) WHERE skip_till_any_match { [k] } WITHIN 5"])
def test_what_becomes_of_what_waits_at_the_end(query: str) -> None:
    events = EVENTS.slice(0, 11)
    everything = rows(stretto.match(query, events, time="t"))
    told = rows(stretto.match(query, events, time="t", at_end="drop"))
    assert everything == [*told, (10, 10)]
    pieces = stretto.iter_matches(query, events, time="t", at_end="drop")
    assert [row for piece in pieces for row in rows(piece)] == told
    matcher = stretto.Matcher(query, time="t", at_end="drop")
    assert rows(matcher.push(events)) + rows(matcher.finish()) == told
    with pytest.raises(stretto.OptionError, match="expected 'complete' or 'drop'"):
        stretto.match(query, events, time="t", at_end="keep")


def test_events_out_of_order_wait_for_the_punctuation() -> None:
    matcher = stretto.Matcher(WAITS, EVENTS.schema, time="t", output="positions", disorder=3)
    shuffled = EVENTS.take([1, 0, 2, 4, 3, 5, 7, 6, 8, 9, 10, 11])
    found = rows(matcher.push(shuffled)) + rows(matcher.finish())
    wanted = stretto.match(WAITS, EVENTS, time="t").column("start_time").to_pylist()
    assert [shuffled.column("t")[start].as_py() for start, _ in found] == wanted


def test_a_session_without_a_window_keeps_what_a_gap_reaches() -> None:
    matcher = stretto.Matcher("SELECT MAX * FROM S WHERE A+ GAP 2 [t]", time="t", output="positions", capacity=1)
    for first in range(0, 600, 50):
        events = {"type": ["A"] * 50, "t": [3 * at for at in range(first, first + 50)]}
        assert matcher.push(events).num_rows == 50
    assert matcher.stats["nodes"] < 100
    assert len(matcher.snapshot()) < 8_000


def test_what_a_neighbour_or_an_absence_rules_out_is_not_kept() -> None:
    for query in ("SELECT * FROM S WHERE A : B AFTER 1 [t]", "SELECT * FROM S WHERE A ; NOT C ; B AFTER 1 [t]"):
        matcher = stretto.Matcher(query, time="t", output="positions", capacity=1)
        for at in range(200):
            assert matcher.push({"type": ["A", "C"], "t": [2 * at, 2 * at + 1]}).num_rows == 0
        assert matcher.stats["nodes"] < 10


def test_keys_that_are_idle_are_forgotten() -> None:
    matcher = stretto.Matcher(
        "SELECT * FROM S WHERE NOT C ; A ; B AFTER 1 [t] ; NOT C PARTITION BY [k] WITHIN 9 [t]",
        time="t",
        output="positions",
    )
    for first in range(0, 4_000, 500):
        keys = [f"k{at}" for at in range(first, first + 500)]
        matcher.push({"type": ["A"] * 500, "t": list(range(first, first + 500)), "k": keys})
        matcher.advance(first + 500)
    assert matcher.stats["partitions"] < 1_100
    assert matcher.push({"type": ["B"], "t": [4_000], "k": ["k3999"]}).num_rows == 0
    assert rows(matcher.finish()) == [(3_999, 4_000)]


def test_keys_of_events_that_nothing_asks_for() -> None:
    for gap in ("1 [t]", "1 EVENTS"):
        matcher = stretto.Matcher(f"SELECT * FROM S WHERE A : B AFTER {gap} PARTITION BY [k] WITHIN 5 [t]", time="t")
        assert matcher.push({"type": ["D"] * 3, "t": [0, 1, 2], "k": ["x", "y", "z"]}).num_rows == 0
        assert matcher.advance(9).num_rows == 0


def test_the_longest_sessions_are_found_without_listing_their_parts() -> None:
    events = {"type": ["A"] * 120, "t": [at + 50 * (at // 40) for at in range(120)]}
    query = "SELECT NEXT * FROM S WHERE A+ GAP 9 [t]"
    assert stretto.match(query, events, time="t", output="positions").num_rows == 3 * 40 * 41 // 2
    found = stretto.match(
        f"{query} KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT", events, time="t", output="positions"
    )
    assert found.column("positions").to_pylist() == [list(range(low, low + 40)) for low in (0, 40, 80)]
    found = stretto.match(
        query.replace("NEXT ", "") + " KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT", events, time="t"
    )
    assert found.num_rows == 3


def test_strategies_limit_and_consumption() -> None:
    events = {"type": list("AAAB"), "t": [0, 1, 2, 3]}

    def positions(query: str) -> list[list[int]]:
        found: list[list[int]] = stretto.match(query, events, time="t").column("positions").to_pylist()
        return sorted(found)

    assert positions("SELECT MAX * FROM S WHERE A+ GAP 1 [t] ; B") == [[0, 1, 2, 3], [1, 2, 3], [2, 3]]
    assert positions("SELECT NEXT * FROM S WHERE A+ GAP 2 [t] ; B WITHIN 9 [t]") == [[0, 1, 2, 3], [1, 2, 3], [2, 3]]
    assert positions("SELECT * FROM S WHERE A+ GAP 1 [t] ; B LIMIT 1") == [[2, 3]]
    assert positions("SELECT * FROM S WHERE A ; A AFTER 1 [t] CONSUME BY ANY") == [[0, 1]]
    assert (
        stretto.match("SELECT * FROM S WHERE A+ GAP 1 [t] ; B", events, time="t", output="summary").to_pylist()[0][
            "matches"
        ]
        == 6
    )


def test_what_is_refused() -> None:
    with pytest.raises(stretto.QueryError, match="are measured by 't' and events: by one of them"):
        stretto.match("SELECT * FROM S WHERE A ; B AFTER 1 [t] ; C+ GAP 2 EVENTS", EVENTS, time="t")
    with pytest.raises(stretto.QueryError, match="the window measures the stream's time, and no time column is named"):
        stretto.match("SELECT * FROM S WHERE A ; B AFTER 1 second", EVENTS)
    with pytest.raises(stretto.OptionError, match="NOT B at the end completes them by time"):
        stretto.match("SELECT * FROM S WHERE A ; NOT B WITHIN 3 [t]", EVENTS, output="summary")
    with pytest.raises(stretto.QueryError, match="gaps and windows inside the formula are of events in order"):
        stretto.Matcher("SELECT * FROM S WHERE A ; B AFTER 1 [t]", EVENTS.schema, time="t", speculation=5)
    many = {"type": ["A"] * 14 + ["B"], "t": [0] * 14 + [1]}
    with pytest.raises(stretto.LimitError, match=r"row 14 \(t = 1\) completes [\d,]+ matches of one interval"):
        stretto.match("SELECT MAX * FROM S WHERE A ; A* GAP 1 [t] ; B", many, time="t")
    with pytest.raises(stretto.LimitError, match="over the budget"):
        stretto.match("SELECT * FROM S WHERE A+ GAP 1 [t]", many, time="t", budget=1_000)


def test_explain_and_the_picture() -> None:
    query = stretto.compile(
        "SELECT * FROM S WHERE NOT C ; A ; (B ; A) WITHIN 3 [t] ; B+ GAP 2 [t] WITHIN 9 [t]", EVENTS.schema
    )
    told = query.explain()
    assert "timed: the formula says how far apart events are" in told
    assert "not tecs: it knows of a partial match only when it began, and the formula says how far apart" in told
    assert "opens window 0" in told
    assert "at most 2 later" in told
    assert "no C before" in told
    assert 's3 -> s3 [label="at most 2 later"]' in str(query.draw())


#: 200 events A, and a B behind them, of one key.
MANY = pa.table({"type": ["A"] * 200 + ["B"], "t": range(201), "k": ["x"] * 201})


@pytest.mark.parametrize(
    ("query", "what"),
    [
        # 2^200 matches would wait for the end of their window, and none would: the last event spoils them all.
        (
            "* FROM S WHERE A+ ; NOT B PARTITION BY [k] WITHIN 500 [t]",
            "completes more than [0-9,]+ matches, which wait",
        ),
        ("* FROM S WHERE A ; A ; NOT C PARTITION BY [k] WITHIN 500 [t]", "completes matches that wait for the end"),
        ("LAST * FROM S WHERE A ; A* GAP 9 [t] ; B PARTITION BY [k]", "completes more than .* which must be compared"),
        (
            "* FROM S WHERE A+ GAP 3 [t] ; B PARTITION BY [k] KEEP LONGEST",
            r"meets \d+ open starts of matches, of which some may be kept",
        ),
    ],
)
def test_what_is_held_has_a_budget(query: str, what: str) -> None:
    """The error names the event, its key, the budget, and what has less."""
    message = rf"row (\d+) \(t = \1, k = 'x'\) {what}.* budget of 64 KiB\nhint: .* has fewer.*budget= allows more"
    with pytest.raises(stretto.LimitError, match=message):
        stretto.match(f"SELECT {query}", MANY, time="t", budget="64 KiB")
    matcher = stretto.Matcher(f"SELECT {query}", time="t", budget="64 KiB", capacity=1)
    with pytest.raises(stretto.LimitError, match=message):
        list(matcher.iter_push(MANY))


def paths(events: pa.Table, gap: int, window: int) -> dict[int, tuple[int, int]]:
    """By each B: the first start and the number of the sequences of A before it, at most a gap apart, in the window."""
    kinds, times = events.column("type").to_pylist(), events.column("t").to_pylist()
    found = {}
    for end, last in enumerate(times):
        if kinds[end] != "B":
            continue
        inside = [at for at in range(end) if kinds[at] == "A" and times[at] >= last - window]
        ways: dict[int, int] = {}
        for at in inside:
            ways[at] = 1 + sum(ways[one] for one in inside if one < at and times[at] - times[one] <= gap)
        if inside:
            found[end] = inside[0], sum(ways.values())
    return found


@pytest.mark.parametrize("batch", [1_000, 13])
def test_matches_are_counted_and_not_listed(batch: int) -> None:
    choose = random.Random(7)
    times = [0]
    for _ in range(400):
        times.append(times[-1] + choose.choice([0, 1, 1]))
    events = pa.table({"type": [choose.choice("AAAAB") for _ in times], "t": times})
    query = "SELECT * FROM S WHERE A+ GAP 3 [t] ; B WITHIN 40 [t]"
    matcher = stretto.Matcher(query, time="t", output="summary", capacity=1)
    found = [row for low in range(0, 401, batch) for row in matcher.push(events.slice(low, batch)).to_pylist()]
    right = paths(events, 3, 40)
    assert max(matches for _, matches in right.values()) > 1 << 40
    assert {row["end"]: (row["start"], row["matches"]) for row in found} == right


def test_a_budget_says_how_many() -> None:
    events = pa.table({"type": ["A"] * 40 + ["B"], "t": range(41)})
    query = "SELECT * FROM S WHERE A+ GAP 9 [t] ; B"
    number = paths(events, 9, 50)[40][1]
    message = rf"row 40 \(t = 40\) completes {number:,} matches \(counted, not listed\): .* budget of 99 rows"
    with pytest.raises(stretto.LimitError, match=message):
        stretto.match(query, events, time="t", budget=99)
    with pytest.raises(stretto.LimitError, match=r"completes at least [\d,]+ matches: .* budget of 99 rows"):
        stretto.match("SELECT * FROM S WHERE (A ; A+) WITHIN 30 [t] ; B", events, time="t", budget=99)


@pytest.mark.parametrize("limit", [1, 3, 150])
@pytest.mark.parametrize("what", ["A+ GAP 9 [t] ; B", "(A ; A+) WITHIN 30 [t] ; B", "A+ AS x ; A+ AS y GAP 9 [t] ; B"])
def test_a_limit_lists_no_more(what: str, limit: int) -> None:
    """Of 2^200 matches, or so, those of the latest starts."""
    found = stretto.match(f"SELECT * FROM S WHERE {what} LIMIT {limit}", MANY, time="t", output="positions")
    starts = found.column("start").to_pylist()
    assert len(set(map(tuple, found.column("positions").to_pylist()))) == limit
    assert starts == sorted(starts, reverse=True)
    sizes = [2 ** (199 - start) for start in range(195, 200)]  # how many matches begin there
    if what.startswith("A+ GAP"):
        wanted = [start for start, size in zip(range(199, 194, -1), reversed(sizes), strict=True) for _ in range(size)]
        assert starts[: len(wanted)] == wanted[:limit]


@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX"])
def test_a_limit_on_what_a_strategy_leaves(strategy: str) -> None:
    events = MANY.slice(188)
    query = f"SELECT {strategy} * FROM S WHERE A ; A* GAP 2 [t] ; B"
    whole = stretto.match(query, events, time="t", output="positions").to_pylist()
    for limit in (1, 2, 30):
        found = stretto.match(f"{query} LIMIT {limit}", events, time="t", output="positions").to_pylist()
        latest = sorted(whole, key=lambda row: -row["start"])[:limit]
        assert len(found) == len(latest)
        assert sorted(row["start"] for row in found) == sorted(row["start"] for row in latest)
        assert all(row in whole for row in found)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM S WHERE NOT C ; A+ GAP 9 [t] ; B WITHIN 500 [t]",  # all starts are behind the C
        "SELECT * FROM S WHERE (C ; A+) WITHIN 9 [t] ; B",  # a window that no path to the C keeps
        "SELECT * FROM S WHERE ((C ; A+) WITHIN 9 [t] ; A) WITHIN 120 [t] ; B",
        "SELECT STRICT * FROM S WHERE D ; A+ GAP 9 [t] ; B",  # no neighbours
    ],
)
def test_what_leads_nowhere_is_looked_at_once(query: str) -> None:
    """2^80 paths begin where no match may."""
    events = pa.table({"type": [*"DC", *["A"] * 80, "B"], "t": [0, 0, *range(10, 91)]})
    assert stretto.match(query, events, time="t").num_rows == 0


@pytest.mark.skipif(not COMPILED, reason="thirty million steps take minutes without JIT")
def test_paths_that_select_nothing_new_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 hot readings in a row there are some 2^39 sessions, and the last event alone is selected: 40 matches, by their starts."""
    monkeypatch.setattr(Patience, "PAUSES", 1)
    events = [{"type": "A", "t": t} for t in range(40)] + [{"type": "B", "t": 40}]
    with pytest.raises(
        LimitError, match=r"row 40 \(t = 40\) completes matches, .* not found in 16,777,216 steps\nhint: a SELECT of"
    ):
        stretto.match("SELECT b FROM S WHERE A+ GAP 5 [t] ; B AS b", events, time="t", output="positions")


def test_pauses_are_counted_from_one_match_to_the_next() -> None:
    patience = Patience(10, "completes matches, of which the next one was not found", "fewer are fewer")
    for found in range(3):
        for _ in range(Patience.PAUSES):
            patience.go_on(7, found)
    with pytest.raises(
        TooMany, match=rf"row 7 completes matches, .* in {10 * Patience.PAUSES} steps\nhint: fewer are fewer"
    ):
        patience.go_on(7, 2)
