"""Sets of patterns: what they find, how they change, what they refuse, and what they share."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto import Change, PatternSet
from stretto.engines.afa.code import AfaCode
from stretto.engines.afa.state import AfaState
from stretto.engines.programs import NfabProgram
from stretto.matching.pattern_set import compile as compiling
from stretto.matching.pattern_set import compiled_pattern as parts
from stretto.matching.pattern_set import event_routing as handing
from stretto.matching.pattern_set import predicate_index as index
from stretto.matching.pattern_set import shared_predicates
from stretto.matching.pattern_set import shared_predicates as shared
from stretto.matching.pattern_set.afa_run import AfaRun
from tests.cases import agree
from tests.cases import patterns as changing
from tests.conftest import cases

SCHEMA = {"type": "string", "t": "int64", "k": "string", "v": "int64"}
AB = "SELECT * FROM S WHERE A AS x ; B AS y"
ABK = AB + " PARTITION BY [k]"


def new(**options: Any) -> PatternSet:
    return PatternSet(SCHEMA, **({"time": "t"} | options))


def event(kind: str, t: int, k: str | None = "p", v: int | None = 1) -> dict[str, Any]:
    return {"type": kind, "t": t, "k": k, "v": v}


def stream(rows: int, seed: int) -> pa.Table:
    print("seed", seed)
    rng = random.Random(seed)
    now = 0
    found = []
    for _ in range(rows):
        now += rng.choice([0, 0, 1, 2])
        found.append(event(rng.choice("ABCD"), now, rng.choice(["p", "q", None]), rng.choice([None, 0, 1, 2])))
    return pa.Table.from_pylist(found, schema=pa.schema([(n, pa.type_for_alias(k)) for n, k in SCHEMA.items()]))


def short(table: pa.Table) -> list[tuple[Any, ...]]:
    return [(row["pattern"], row["since"], row["start_time"], row["end_time"]) for row in table.to_pylist()]


# ---- What they find


def test_random_changes_cuts_and_snapshots() -> None:
    """Every version alone on the events of its time."""
    rows = sum(agree(changing, range(cases(300))))
    assert rows > cases(300) // 4


def test_random_crowds() -> None:
    """Many patterns that are much alike, which share automata and calls, with changes and snapshots."""
    rows = sum(agree(changing, range(41_000, 41_000 + cases(150)), case=changing.crowd))
    assert rows > cases(150)


def test_random_mixtures_of_all_languages() -> None:
    """Patterns on every engine, of which some wait for time to pass, beside each other."""
    rows = sum(agree(changing, range(80_000, 80_000 + cases(150)), case=changing.mixture))
    assert rows > cases(150)


def test_random_patterns_of_which_some_matches_stay() -> None:
    """Each comes when a matcher that is given events one by one has decided it, whatever the cuts; also through snapshots of all."""
    first, count = 140_000, cases(200)
    assert sum(agree(changing, range(first, first + count), case=changing.keeping)) > count
    for seed in range(first, first + count // 4):
        one = changing.one_by_one(changing.keeping(seed))
        saved = [more for action in one.actions for more in (action, ("snapshot",))]
        whole = list(map(repr, changing.found(changing.keeping(seed))))
        assert list(map(repr, changing.found(replace(one, actions=saved)))) == whole, f"seed {seed}"


def test_random_constants_of_conditions_between_events() -> None:
    """Patterns that differ in these only run the same code, each with its own."""
    rows = sum(agree(changing, range(120_000, 120_000 + cases(150)), case=changing.relating))
    assert rows > cases(150)


SESSION = "SELECT * FROM S WHERE A+ AS x GAP 5 [t] PARTITION BY [k] KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT"


def test_a_session_comes_at_the_first_event_or_punctuation_behind_its_gap() -> None:
    """By id among what is known there; one that is not decided when its pattern ends never comes."""
    patterns = new()
    patterns.change(
        [Change("session", SESSION), Change("a", "SELECT * FROM S WHERE D"), Change("z", "SELECT * FROM S WHERE D")]
    )
    assert patterns.push([event("A", 0), event("A", 3), event("A", 6), event("D", 11)]).column(
        "pattern"
    ).to_pylist() == ["a", "z"]
    assert patterns.expires == 11
    assert not patterns.idle
    assert short(patterns.push([event("D", 12), event("A", 20)])) == [
        ("a", None, 12, 12), ("session", None, 0, 6), ("z", None, 12, 12),
    ]  # fmt: skip
    assert patterns.advance(25).num_rows == 0
    assert short(patterns.advance(26)) == [("session", None, 20, 20)]
    assert patterns.idle
    patterns.push([event("A", 30), event("A", 31, "q")])
    patterns.change(Change("session", None, since=36))
    assert short(patterns.advance(50)) == [("session", None, 30, 30)]
    assert patterns.finish().num_rows == 0


def test_starts_that_may_still_have_a_match_hold_back_later_ones_until_their_window_has_passed() -> None:
    """Their times are known as long, also in a snapshot, though no partial match has them."""
    query = "PATTERN SEQ(A a, B b) WHERE strict_contiguity { a.v < b.v } WITHIN 9 AFTER MATCH SKIP PAST LAST EVENT"
    patterns = new()
    patterns.change([Change("it", query), Change("z", "SELECT * FROM S WHERE D")])
    assert not short(patterns.push([event("A", 1, v=5), event("A", 2), event("B", 3, v=2), event("C", 9)]))
    patterns = new().restore(patterns.snapshot())
    assert patterns.expires == 10
    assert short(patterns.push([event("D", 10), event("D", 11)])) == [
        ("z", None, 10, 10), ("it", None, 2, 3), ("z", None, 11, 11),
    ]  # fmt: skip


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every limit as small as can be: a group for each pattern, pieces of one event, few shared keys."""
    monkeypatch.setattr(handing, "CELLS", 1)
    monkeypatch.setattr(shared, "_SHARED", parts.Latest(32))
    monkeypatch.setattr(shared, "_SEGMENTS", parts.Latest(64))
    monkeypatch.setattr(shared_predicates, "MOST", 1)
    monkeypatch.setattr(shared, "PAIRS", 1)
    monkeypatch.setattr(shared, "GROWTH", 0)
    monkeypatch.setattr(shared, "EVENTS", 1)
    monkeypatch.setattr(index, "CLAUSES", 1)
    monkeypatch.setattr(index, "FEW", 1)
    monkeypatch.setattr(index, "ATOMS", 2)
    monkeypatch.setattr("stretto.matching.pattern_set.executor.CHUNK", 2)
    monkeypatch.setattr("stretto.matching.pattern_set.executor.PIECES", 1)


@pytest.mark.usefixtures("tiny")
def test_random_cases_with_tiny_limits() -> None:
    rows = sum(agree(changing, range(20_000, 20_000 + cases(100))))
    assert rows >= cases(100) // 4
    rows = sum(agree(changing, range(60_000, 60_000 + cases(50)), case=changing.crowd))
    assert rows > cases(50)
    rows = sum(agree(changing, range(90_000, 90_000 + cases(50)), case=changing.mixture))
    assert rows > cases(50)


NEVER_PAID = "SELECT * FROM S WHERE A AS x ; NOT B PARTITION BY [k] WITHIN 5 [t]"
RISING = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.v < b.v }"


def test_a_match_that_waits_comes_when_time_has_passed() -> None:
    patterns = new()
    patterns.change([Change("never", NEVER_PAID), Change("rising", RISING), Change("a", "SELECT * FROM S WHERE D")])
    assert patterns.push([event("A", 1), event("A", 2, "q"), event("B", 6, "q", 2)]).column("pattern").to_pylist() == [
        "rising", "rising",
    ]  # fmt: skip
    assert not patterns.idle
    assert patterns.expires == 6
    # By the event at which a match is known, then by id.
    assert short(patterns.push([event("D", 6), event("D", 7), event("A", 8)])) == [
        ("a", None, 6, 6), ("a", None, 7, 7), ("never", None, 1, 1),
    ]  # fmt: skip
    again = new().restore(patterns.snapshot())
    for one in (patterns, again):
        assert short(one.advance(13)) == []  # a B at 13 would still come in time
        assert short(one.advance(14)) == [("never", None, 8, 8)]
        assert short(one.push([event("A", 15), event("A", 16, "q")])) == []
        assert short(one.finish()) == [("never", None, 15, 15), ("never", None, 16, 16)]


def test_a_pattern_that_ends_gives_what_was_certain_before() -> None:
    changes = [Change("p", NEVER_PAID), Change("p", None, 10), Change("q", NEVER_PAID), Change("q", NEVER_PAID, 9)]
    rows = [event("A", 3), event("A", 5, "q")]
    right = [("p", None, 3, 3), ("q", None, 3, 3)]
    patterns = new()
    patterns.change(changes)
    patterns.push(rows)
    assert short(patterns.push([event("D", 30)])) == right  # that of 5 would be certain after 10 only
    patterns = new()
    patterns.change(changes)
    patterns.push(rows)
    assert short(patterns.advance(30)) == right


def test_errors_of_a_pattern_on_its_own_engine_name_it() -> None:
    patterns = new()
    patterns.change(
        [Change("p", AB), Change("sum", "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { sum(a[].v) > b.v }")]
    )
    with pytest.raises(stretto.DataError, match=r"pattern 'sum': integer overflow in sum.* at row 1"):
        patterns.push([event("A", 1, v=2**62), event("A", 2, v=2**62), event("B", 3)])
    with pytest.raises(stretto.EngineError, match="restore a snapshot"):
        patterns.push([event("A", 4)])
    patterns = new(budget=100)
    patterns.change(Change("many", "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[1].v <= b.v }"))
    with pytest.raises(stretto.LimitError, match=r"pattern 'many': the event \(t = 99\) completes 4,095 matches"):
        patterns.push([*(event("A", t) for t in range(12)), event("C", 98), event("B", 99)])


def related(number: int, since: int | None = None, window: str = "") -> Change:
    """Patterns with conditions between events that differ in constants only."""
    text = f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ b.v + {number} > a.v AND a.k = '{'pq'[number % 2]}' }} {window}"
    return Change(f"p{number}", text, since=since)


def test_patterns_with_conditions_between_events_run_in_one_call() -> None:
    patterns = new(capacity=1)
    patterns.change([related(number) for number in range(4)])
    rows = [event("A", 1), event("A", 2, "q", 2), event("B", 3), event("B", 4, v=9)]
    assert short(patterns.push(rows)) == [
        ("p2", None, 1, 3), ("p3", None, 2, 3),
        ("p0", None, 1, 4), ("p1", None, 2, 4), ("p2", None, 1, 4), ("p3", None, 2, 4),
    ]  # fmt: skip
    assert patterns.costs.column("seconds").null_count == 4
    assert patterns.costs.column("concerned").to_pylist() == [3, 3, 3, 3]
    assert patterns.stats["busy"] == 4
    assert patterns.held(by=["pattern"]).column("events").to_pylist() == [1, 1, 1, 1]
    # The slot that one leaves is that of the next one, to which what was there is nothing.
    patterns.change([Change("p2", None, 10), related(5, 10)])
    again = new().restore(patterns.snapshot())
    for one in (patterns, again):
        assert {row[0] for row in short(one.push([event("B", 10, v=9)]))} == {"p0", "p1", "p3"}
        assert {row[0] for row in short(one.push([event("A", 11, "q"), event("B", 12, v=9)]))} == {
            "p0",
            "p1",
            "p3",
            "p5",
        }
        assert one.stats["busy"] == 4


def test_an_overflow_names_the_pattern_and_what_it_asks() -> None:
    patterns = new()
    patterns.change([related(number) for number in (2, 3, 5)])
    with pytest.raises(stretto.DataError, match=r"pattern 'p3': integer overflow in .*b\.v \+ 3.* at row 2"):
        patterns.push([event("A", 1, "z"), event("A", 2, "q"), event("B", 3, v=2**63 - 3)])


def test_partial_matches_that_take_too_much_memory_are_those_of_one_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.engines.nfab.state.MOST_BYTES", 1 << 18)
    text = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match {{ sum(a[].v) < b.v AND a[1].k = '{}' AND a[i].k = '{}' }} WITHIN 5"
    rows = [*(event("A", 1, v=2**n) for n in range(14)), event("A", 20, "q"), event("B", 21, v=5)]
    for options in ({}, {"on_limit": "disable"}):
        patterns = new(capacity=1, **options)
        patterns.change([Change("calm", text.format("q", "q")), Change("wild", text.format("p", "p"))])
        if not options:
            with pytest.raises(stretto.LimitError, match="pattern 'wild': partial matches take more than"):
                patterns.push(rows)
            continue
        with pytest.warns(stretto.StrettoWarning, match="pattern 'wild': partial matches take more than"):
            found = patterns.push(rows)
        assert short(found) == [("calm", None, 20, 21)]
        assert patterns.stats["busy"] == 1
        for t in range(30, 3000, 10):
            assert short(patterns.push([event("A", t, "q"), event("B", t + 1, v=5)])) == [("calm", None, t, t + 1)]
        assert list(patterns.disabled) == ["wild"]


EXPLODING = {
    "together": "SELECT * FROM S WHERE A+ AS x ; B AS y",
    "keyed": "SELECT * FROM S WHERE A+ AS x ; B AS y PARTITION BY [k]",
    "limited": "SELECT * FROM S WHERE A+ AS x ; B AS y WITHIN 900 [t]",
    "alone": "SELECT * FROM S WHERE A+ AS x ; B AS y WITHIN 90 [v]",
    "nfab": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[1].v <= b.v }",
    "timed": "SELECT * FROM S WHERE A+ GAP 90 [t] ; B WITHIN 95 [t]",
    "waiting": "SELECT * FROM S WHERE A+ ; B ; NOT C WITHIN 95 [t]",
}


@pytest.mark.parametrize("name", EXPLODING)
@pytest.mark.parametrize("capacity", [1, 1 << 10])
def test_a_pattern_that_explodes_is_switched_off(name: str, capacity: int) -> None:
    """The others give what they give without it; also one whose matches are listed in the same call of the kernel."""
    calm = {"a": AB, "z": EXPLODING[name].replace("A+", "D+")}
    rows = [*(event("A", t) for t in range(40)), event("D", 40), event("B", 41), event("B", 42), event("B", 43)]
    right = new()
    right.change([Change(*one) for one in calm.items()])
    patterns = new(on_limit="disable", budget="1 MB", capacity=capacity)
    patterns.change([Change(*one) for one in (calm | {"m": EXPLODING[name]}).items()])
    with pytest.warns(stretto.StrettoWarning, match="pattern 'm': .* the pattern is switched off until another change"):
        found = patterns.push(rows)
    assert found.equals(right.push(rows))
    assert list(patterns.disabled) == ["m"]
    assert patterns.stats["disabled"] == 1
    again = new(on_limit="disable", budget="1 MB", capacity=capacity).restore(patterns.snapshot())
    assert again.disabled == patterns.disabled
    more = [event("A", 50), event("B", 51), event("B", 60)]
    expected = right.push(more)
    for one in (patterns, again):
        assert one.push(more).equals(expected)
        one.change(Change("m", AB, 100))
        assert "m" in one.push([event("A", 100), event("B", 101)]).column("pattern").to_pylist()
        assert one.disabled == {}


def test_a_share_is_a_quarter_of_the_budget() -> None:
    rows = [*(event("A", t) for t in range(25)), event("B", 30)]
    patterns = new(on_limit="disable", budget=100)
    patterns.change([Change("p", AB), Change("q", AB)])
    assert patterns.push(rows).num_rows == 50  # each its 25, which is a quarter
    assert patterns.disabled == {}
    with pytest.warns(stretto.StrettoWarning) as warned:
        assert patterns.push([event("A", 31), event("B", 32)]).num_rows == 0  # 26 each
    assert [str(one.message).split(":")[0] for one in warned] == ["pattern 'p'", "pattern 'q'"]
    patterns = new(on_limit="disable", budget=100)
    patterns.change([Change(name, AB) for name in "pqrst"])
    with pytest.raises(stretto.LimitError, match="all patterns together go over the budget of 100 rows"):
        patterns.push(rows)
    with pytest.raises(stretto.OptionError, match="on_limit='drop': expected 'error' or 'disable'"):
        new(on_limit="drop")


def test_what_a_set_does_not_take() -> None:
    patterns = new()
    for query, language, message in [
        (
            NEVER_PAID.replace("[t]", "[v]"),
            None,
            "a set of patterns waits for 't', while the window measures 'v': measure 't'",
        ),
        ("A where true | head 3", "eql", r"the pipe '\| head 3' is of a whole result"),
        (
            RISING + " WITHIN 5 [v] KEEP LONGEST",
            None,
            "a set of patterns waits for 't', while the window measures 'v'",
        ),
        (
            "PATTERN SEQ(A+ a[]) WHERE skip_till_any_match { } OUTPUT compressed",
            None,
            "OUTPUT compressed hands matches over as sets",
        ),
    ]:
        with pytest.raises(stretto.OptionError, match=f"pattern 'p': .*{message}"):
            patterns.change(Change("p", query, language=language))
    assert patterns.patterns.num_rows == 0


def test_sase_reads_all_streams() -> None:
    patterns = PatternSet(SCHEMA | {"stream": "string"}, time="t", stream="stream")
    patterns.change([Change("p", RISING), Change("q", AB)])
    rows = [event("A", 1) | {"stream": "S"}, event("B", 2, v=2) | {"stream": "T"}, event("B", 3) | {"stream": "S"}]
    assert short(patterns.push(rows)) == [("p", None, 1, 2), ("q", None, 1, 3)]


TEXTS = {
    "a": "SELECT * FROM S WHERE A AS x ; B+ AS y ; C AS z PARTITION BY [k] WITHIN 6 [t]",
    "b": "SELECT y[v] FROM S WHERE A AS x : B AS y WITHIN 9 EVENTS",
    "c": "SELECT MAX * FROM S WHERE (A OR D) AS x ; C AS y FILTER y[v > 0] PARTITION BY [k] WITHIN 4 EVENTS",
    "d": "SELECT x FROM S WHERE A AS x ; B AS y FILTER x[v < 2] WITHIN 5 [t] CONSUME BY ANY",
}


def test_any_cut_and_any_moment_of_giving_give_the_same_table() -> None:
    events = stream(400, 11)
    times = events.column("t").to_pylist()
    changes = [Change(name, text) for name, text in TEXTS.items()]
    changes += [Change("a", TEXTS["b"], 60), Change("b", None, 100), Change("b", TEXTS["b"], 130)]
    changes += [Change("e", TEXTS["a"], 77), Change("c", TEXTS["c"], 150), Change("e", None, 151)]

    def fed(size: int, early: int) -> pa.Table:
        """Batches of a size; each change is given so many events before the first that it concerns."""
        patterns = new(positions=True)
        todo = list(changes)
        tables = []
        for low in range(0, len(times), size):
            last = times[min(low + size + early, len(times)) - 1]
            due = [one for one in todo if one.since is None or one.since <= last]
            todo = [one for one in todo if one not in due]
            patterns.change(due)
            tables.append(patterns.push(events.slice(low, size)))
        return pa.concat_tables(tables)

    right = fed(len(times), 0)
    assert right.num_rows > 100
    keyed = [(row["end"], row["pattern"]) for row in right.to_pylist()]
    assert keyed == sorted(keyed)
    for size, early in [(1, 0), (1, 50), (7, 3), (64, 400), (399, 0)]:
        assert fed(size, early).equals(right), (size, early)


def test_matches_of_a_block_are_merged_in_order() -> None:
    """More matches than the output buffers hold, of several patterns, at the same events."""
    events = pa.table({"type": ["A"] * 9 + ["B"] * 3, "t": list(range(12)), "k": ["p"] * 12, "v": [1] * 12})
    texts = {"c": "SELECT * FROM S WHERE A+ AS x ; B AS y", "a": "SELECT * FROM S WHERE A AS x ; B AS y"}
    texts |= {"b": "SELECT * FROM S WHERE A+ AS x ; B+ AS y"}
    right = sorted(
        (row["end"], name, row["positions"])
        for name, text in texts.items()
        for row in stretto.match(text, events, time="t").to_pylist()
    )
    patterns = new(positions=True, capacity=1)
    patterns.change([Change(name, text) for name, text in texts.items()])
    tables = list(patterns.iter_push(events))
    assert len(tables) > 20
    shown = [(row["end"], row["pattern"], row["positions"]) for table in tables for row in table.to_pylist()]
    assert [one[:2] for one in shown] == [one[:2] for one in right]
    assert sorted(shown) == right


def test_columns_of_the_result() -> None:
    patterns = new(by=["k"], positions=True)
    patterns.change(Change("p1", "SELECT y[v], x FROM S WHERE A AS x ; B AS y PARTITION BY [k], [v]", since=1))
    found = patterns.push([event("A", 1), event("B", 2, v=2), event("B", 3)])
    assert found.schema == patterns.output_schema
    assert found.schema.names == [
        "pattern", "since", "start", "end", "positions", "start_time", "end_time", "k", "keys", "events",
    ]  # fmt: skip
    assert found.to_pylist() == [
        {
            "pattern": "p1",
            "since": 1,
            "start": 0,
            "end": 2,
            "positions": [0, 2],
            "start_time": 1,
            "end_time": 3,
            "k": "p",
            "keys": [("v", "1")],
            "events": [
                {"variable": "x", "event": event("A", 1)},
                {"variable": "y", "event": {"type": None, "t": None, "k": None, "v": 1}},
            ],
        }
    ]
    small = new(output="positions")
    assert small.output_schema.names == ["pattern", "since", "start_time", "end_time", "keys"]


def test_an_event_in_two_variables_is_shown_twice_and_events_come_in_order() -> None:
    patterns = new()
    patterns.change(Change("p", "SELECT * FROM S WHERE ((A AS x ; B AS y)+) AS all_ ; C AS z"))
    found = patterns.push([event("A", 1), event("B", 2), event("A", 3), event("B", 4), event("C", 5)]).to_pylist()
    shown = [[(entry["event"]["t"], entry["variable"]) for entry in row["events"]] for row in found]
    assert [(1, "all_"), (1, "x"), (2, "all_"), (2, "y"), (5, "z")] in shown
    assert [*((t, n) for t in (1, 2, 3, 4) for n in ("all_", "xy"[t % 2 == 0])), (5, "z")] in shown


def test_names_that_the_result_has_already() -> None:
    patterns = PatternSet({"type": "string", "since": "int64", "keys": "string", "pattern": "string"}, time="since", by=["keys", "pattern"])  # fmt: skip # noqa: E501
    assert patterns.output_schema.names == [
        "pattern", "since", "start_time", "end_time", "keys_", "pattern_", "keys", "events",
    ]  # fmt: skip
    patterns.change(Change("p", "SELECT * FROM S WHERE A PARTITION BY [pattern], [keys]"))
    row = patterns.push([{"type": "A", "since": 1, "keys": "k", "pattern": "q"}]).to_pylist()[0]
    assert (row["pattern"], row["pattern_"], row["keys_"], row["keys"]) == ("p", "q", "k", [])


def test_keys_of_every_type_as_text() -> None:
    values: dict[str, tuple[pa.DataType, Any, str]] = {
        "i": (pa.int16(), 3, "3"),
        "f": (pa.float64(), 0.5, "0.5"),
        "b": (pa.bool_(), True, "true"),
        "d": (pa.date32(), dt.date(2024, 2, 3), "2024-02-03"),
        "s": (pa.dictionary(pa.int8(), pa.string()), "é", "é"),
        "n": (pa.decimal128(6, 2), decimal.Decimal("1.50"), "1.50"),
        "x": (pa.binary(), b"\xff\x00", "ff00"),
        "w": (pa.timestamp("s"), dt.datetime(2024, 2, 3, 4), "2024-02-03 04:00:00"),
    }
    columns = {name: pa.array([value], kind) for name, (kind, value, _) in values.items()}
    events = pa.table({"type": ["A"], "t": [1]} | columns)
    patterns = PatternSet(events.schema, time="t")
    patterns.change(Change("p", "SELECT * FROM S WHERE A PARTITION BY " + ", ".join(f"[{name}]" for name in values)))
    row = patterns.push(events).to_pylist()[0]
    assert row["keys"] == [(name, text) for name, (_, _, text) in values.items()]
    assert row["events"][0]["event"]["s"] == "é"


def test_streams_and_types_from_streams() -> None:
    rows = [{"s": name, "t": t} for t, name in enumerate(["S1", "S3", "S2", "S1", "S2"])]
    patterns = PatternSet({"s": "string", "t": "int64"}, type=None, stream="s", time="t")
    texts = {"near": "SELECT * FROM S1, S2 WHERE S1 : S2", "any": "SELECT * FROM S1, S2, S3 WHERE S1 : S2"}
    texts |= {"one": "SELECT * FROM S3 WHERE S3", "far": "SELECT * FROM S1, S2 WHERE S1 ; S2"}
    patterns.change([Change(name, text) for name, text in texts.items()])
    assert short(patterns.push(rows)) == [
        ("one", None, 1, 1), ("far", None, 0, 2), ("near", None, 0, 2),
        ("any", None, 3, 4), ("far", None, 3, 4), ("far", None, 0, 4), ("near", None, 3, 4),
    ]  # fmt: skip
    plain = PatternSet({"t": "int64"}, type=None, time="t")
    plain.change([Change("s", "SELECT * FROM S WHERE S"), Change("u", "SELECT * FROM U WHERE U ; U")])
    assert [row[0] for row in short(plain.push([{"t": 1}, {"t": 2}]))] == ["s", "s", "u"]


def test_other_streams_do_not_move_a_window() -> None:
    """An attribute that a window measures must not decrease among the events of FROM; others do not count."""
    events = [
        {"s": s, "type": kind, "t": t, "v": v}
        for t, (s, kind, v) in enumerate([("S", "A", 5), ("T", "A", 99), ("S", "B", 6)])
    ]
    for cuts in ([events], [events[:1], events[1:2], events[2:]]):
        patterns = PatternSet({"s": "string", "type": "string", "t": "int64", "v": "int64"}, stream="s", time="t")
        patterns.change(Change("p", "SELECT * FROM S WHERE A ; B WITHIN 3 [v]"))
        assert [row for cut in cuts for row in short(patterns.push(cut))] == [("p", None, 0, 2)]
        with pytest.raises(stretto.DataError, match="'v' decreases from 6 to 4 at row 4"):
            patterns.push([events[1] | {"t": 7, "v": 1}, events[0] | {"t": 8, "v": 4}])


# ---- Changes


def test_a_replaced_pattern_begins_with_nothing() -> None:
    patterns = new()
    patterns.change([Change("p", AB), Change("p", AB, since=3)])
    rows = [event("A", 1), event("B", 2), event("B", 3), event("A", 3), event("B", 4)]
    assert short(patterns.push(rows)) == [("p", None, 1, 2), ("p", 3, 3, 4)]


def test_of_two_changes_at_one_time_the_later_given_holds() -> None:
    patterns = new()
    patterns.change([Change("p", None, 1), Change("p", AB, 1), Change("q", AB, 1)])
    patterns.change(Change("q", None, 1))
    assert short(patterns.push([event("A", 1), event("B", 2)])) == [("p", 1, 1, 2)]


def test_what_holds_when() -> None:
    patterns = new()
    patterns.change(
        [Change("p", AB), Change("q", ABK, 5), Change("p", None, 7), Change("q", AB, 9), Change("r", None, 3)]
    )
    assert patterns.patterns.to_pylist() == [
        {"id": "p", "query": AB, "since": None, "until": 7, "started": False},
        {"id": "q", "query": ABK, "since": 5, "until": 9, "started": False},
        {"id": "q", "query": AB, "since": 9, "until": None, "started": False},
    ]
    patterns.push([event("A", 8)])
    assert patterns.patterns.to_pylist() == [
        {"id": "q", "query": ABK, "since": 5, "until": 9, "started": True},
        {"id": "q", "query": AB, "since": 9, "until": None, "started": False},
    ]


def test_a_late_change_is_an_error_with_both_values() -> None:
    patterns = new()
    patterns.change(Change("p", AB))
    patterns.push([event("A", 5)])
    with pytest.raises(stretto.DataError) as caught:
        patterns.change([Change("q", AB, 6), Change("r", AB, 5)])
    assert str(caught.value) == (
        "pattern 'r': the change holds from 5 on, and an event of 5 has been read; give it earlier, or pass late='drop'"
    )
    with pytest.raises(stretto.DataError, match="holds from the beginning on, and an event of 5"):
        patterns.change(Change("r", AB))
    assert patterns.patterns.column("id").to_pylist() == ["p"], "nothing of what was refused"
    patterns.change(Change("p", AB))  # in force already
    patterns.change(
        Change("p", AB.replace("SELECT", "select").replace(" ; ", ";  /* then */ "))
    )  # the same in other words
    patterns.advance(9)
    with pytest.raises(stretto.DataError, match="holds from 8 on, and the stream has come to 9"):
        patterns.change(Change("p", None, 8))
    patterns.change(Change("p", None, 9))
    assert short(patterns.push([event("B", 9)])) == []


def test_late_changes_are_dropped_and_counted_on_request() -> None:
    patterns = new(late="drop")
    patterns.change(Change("p", AB))
    patterns.push([event("A", 5)])
    patterns.change([Change("q", AB, 5), Change("p", None, 2), Change("r", "SELECT * FROM S WHERE B", 6)])
    assert patterns.late_changes == 2
    assert short(patterns.push([event("B", 7)])) == [("p", None, 5, 7), ("r", 6, 7, 7)]


def test_a_wrong_change_changes_nothing() -> None:
    patterns = new(by=["k"])
    patterns.change(Change("p", ABK))
    good = Change("good", ABK)
    with pytest.raises(stretto.QueryError) as caught:
        patterns.change([good, Change("bad", "SELECT * FROM S WHERE A AS x FILTER x[w > 3] PARTITION BY [k]")])
    assert str(caught.value) == (
        "line 1, column 39: pattern 'bad': unknown attribute 'w'\n"
        "  SELECT * FROM S WHERE A AS x FILTER x[w > 3] PARTITION BY [k]\n"
        "                                        ^\n"
        "hint: known attributes: type, t, k, v"
    )  # fmt: skip
    with pytest.raises(stretto.QueryError, match="pattern 'bad': "):
        patterns.change([good, Change("bad", "SELECT FROM")])
    with pytest.raises(stretto.QueryError) as caught:
        patterns.change([good, Change("bad", AB + " PARTITION BY [v]")])
    assert str(caught.value) == (
        "pattern 'bad': the query is not partitioned by 'k', and every pattern of this set must be\n"
        "hint: PARTITION BY [k], [v]"
    )
    with pytest.raises(stretto.QueryError, match=r"by 'k', .*\nhint: sequence by k: the fields .* may not lack"):
        patterns.change([Change("bad", "sequence by ?k [A where true] [B where true]", language="eql")])
    with pytest.raises(stretto.OptionError, match=r"pattern 'bad': the query reads 2 streams \(S, T\)"):
        patterns.change([good, Change("bad", "SELECT * FROM S, T WHERE A PARTITION BY [k]")])
    with pytest.raises(stretto.OptionError, match="pattern 'bad': language='x' is not known"):
        patterns.change([good, Change("bad", ABK, language="x")])
    assert patterns.patterns.column("id").to_pylist() == ["p"]


def forms() -> Iterator[tuple[str, Any]]:
    rows: list[dict[str, Any]] = [{"id": "p", "query": AB, "since": 2}, {"id": "q", "query": None, "since": 4}]
    yield "changes", [Change(**row) for row in rows]
    yield "dicts", rows
    yield "generator", (row for row in rows)
    yield "table", pa.Table.from_pylist(rows)
    yield "columns", {name: [row[name] for row in rows] for name in rows[0]}
    pandas = pytest.importorskip("pandas")
    yield "pandas", pandas.DataFrame(rows)


def test_forms_of_changes() -> None:
    for name, given in forms():
        patterns = new()
        patterns.change(given)
        shown = patterns.patterns.to_pylist()
        assert shown == [{"id": "p", "query": AB, "since": 2, "until": None, "started": False}], name
    for one in (Change("p", AB), {"id": "p", "query": AB}, Change("p", stretto.compile(AB)), []):
        patterns = new()
        patterns.change(one)
        assert patterns.patterns.num_rows == (one != []), one


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"id": "p", "query": AB, "sinse": 3}, "a change has 'sinse', which is none of .*; did you mean 'since'?"),
        ([{"id": "p"}], r"change 0 has no 'query' \(NULL retires a pattern\)"),
        ({"id": ["p", None], "query": [AB, AB]}, "the table of changes: id is NULL in row 1"),
        ([AB], "change 0 is a str, neither a Change nor a dict"),
        (AB, "a change is a Change, a dict or a row of a table"),
        ({"id": "", "query": AB}, "a pattern's id is a text, not ''"),
        ({"id": "p", "query": AB, "since": 2.5}, r"pattern 'p': since is 2.5, which is no value of 't' \(int64\): "),
        ({"id": "p", "query": AB, "since": "soon"}, "pattern 'p': since is 'soon', which is no value of 't'"),
        ({"id": "p", "query": AB, "since": dt.date(2024, 1, 1)}, "a number expected, not a time without a time zone"),
        ({"id": "p", "query": AB, "since": 1 << 63}, "pattern 'p': since is 9223372036854775808"),
        ({"id": "p", "query": AB, "since": True}, "a number expected, not bool"),
    ],
)
def test_changes_that_are_none(given: Any, message: str) -> None:
    patterns = new()
    with pytest.raises(stretto.OptionError, match=message):
        patterns.change(given)
    assert patterns.patterns.num_rows == 0


UTC = dt.UTC
TIMES: dict[str, tuple[pa.DataType, list[Any], Any]] = {
    "zoned": (
        pa.timestamp("us", tz="Europe/Berlin"),
        [dt.datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in range(4)],
        "2024-01-01T03:00:00+01:00",
    ),
    "plain": (pa.timestamp("ns"), [dt.datetime(2024, 1, 1, hour) for hour in range(4)], dt.datetime(2024, 1, 1, 2)),
    "date": (pa.date32(), [dt.date(2024, 1, day) for day in range(1, 5)], dt.date(2024, 1, 3)),
    "midnight": (pa.date32(), [dt.date(2024, 1, day) for day in range(1, 5)], dt.datetime(2024, 1, 3)),
    "float": (pa.float64(), [-0.5, 0.0, 0.25, 1.0], 0.25),
    "decimal": (pa.decimal128(9, 2), [decimal.Decimal(n) / 4 for n in range(4)], "0.5"),
    "small": (pa.int8(), [-1, 0, 1, 2], np.int64(1)),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_of_every_type(name: str) -> None:
    kind, times, since = TIMES[name]
    events = pa.table({"type": ["A"] * 4, "t": pa.array(times, kind)})
    patterns = PatternSet(events.schema, time="t")
    patterns.change([Change("p", "SELECT * FROM S WHERE A"), Change("q", "SELECT * FROM S WHERE A", since)])
    patterns.advance(times[0])
    found = patterns.push(events.slice(0, 1))
    patterns = PatternSet(events.schema, time="t").restore(patterns.snapshot())
    found = pa.concat_tables([found, patterns.push(events.slice(1))])
    assert found.column("since").type == kind
    shown = pa.array(times, kind).to_pylist()
    assert short(found) == [
        ("p", None, shown[0], shown[0]), ("p", None, shown[1], shown[1]),
        ("p", None, shown[2], shown[2]), ("q", shown[2], shown[2], shown[2]),
        ("p", None, shown[3], shown[3]), ("q", shown[2], shown[3], shown[3]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "since", "message"),
    [
        (pa.timestamp("us", tz="UTC"), dt.datetime(2024, 1, 1), "a time with a time zone expected, not a time without"),
        (pa.timestamp("us"), dt.datetime(2024, 1, 1, tzinfo=UTC), "a time without a time zone expected"),
        (pa.timestamp("us", tz="UTC"), "2024-01-01T00:00:00", "expected a zone offset"),
        (pa.timestamp("s"), dt.datetime(2024, 1, 1, microsecond=5), "would lose data"),
        (pa.date32(), dt.datetime(2024, 1, 1, 12), "it would have to be rounded"),
        (pa.float64(), float("nan"), "NaN"),
        (pa.timestamp("us"), 5, "a time without a time zone expected, not a number"),
    ],
)
def test_times_that_do_not_fit(kind: pa.DataType, since: Any, message: str) -> None:
    patterns = PatternSet({"type": pa.string(), "t": kind}, time="t")
    with pytest.raises(stretto.OptionError, match=message):
        patterns.change(Change("p", AB, since))
    with pytest.raises(stretto.OptionError, match=message):
        patterns.advance(since)


# ---- Bad input


def test_options_that_there_are_not() -> None:
    for options, message in [
        ({"output": "all"}, "output='all'"),
        ({"late": "keep"}, "late='keep'"),
        ({"time": None}, "name the time column"),
        ({"time": "tt"}, r"time='tt': there is no such column \(did you mean 't'\?\)"),
        ({"time": "k"}, "time='k' is string, not a number"),
        ({"by": ["kk"]}, "by: there is no column 'kk'"),
        ({"stream": "s"}, "stream='s': there is no such column"),
    ]:
        with pytest.raises(stretto.OptionError, match=message):
            new(**options)
    assert new(by="k").output_schema.names[4] == "k"


def test_late_events() -> None:
    rows = [event("A", 5), event("B", 4), event("B", 6)]
    patterns = new()
    patterns.change(Change("p", AB))
    with pytest.raises(stretto.DataError, match="'t' is 4 at row 1, and the stream has come to 5"):
        patterns.push(rows)
    assert patterns.position == 0
    patterns.advance(6)
    with pytest.raises(stretto.DataError, match="'t' is 5 at row 0, and the stream has come to 6"):
        patterns.push(rows)
    lenient = new(late="drop", positions=True)
    lenient.change(Change("p", AB))
    found = lenient.push(rows).to_pylist()
    assert [(row["start"], row["end"], row["end_time"]) for row in found] == [(0, 1, 6)]
    assert (lenient.late, lenient.position) == (1, 2)
    assert lenient.push([event("B", 1)]).num_rows == 0
    assert lenient.late == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([event("A", 1) | {"t": None}], "'t' orders or windows the stream and is NULL at row 1"),
        ([event("A", 1, v=1 << 62)], r"pattern 'sum', 'total': .* at row 1: .*64 bits"),
        ([event("A", 1, v=7), event("A", 2, v=6)], "pattern 'window': 'v' decreases from 7 to 6 at row 2; "),
        ([event("A", 1, v=None)], "pattern 'window': 'v' orders or windows the stream and is NULL at row 1"),
        ([{"type": "A", "t": 1, "v": 1}], "the events have no column 'k'"),
        ([event("A", 1) | {"v": "one"}], "column 'v' is string"),
    ],
)
def test_bad_events_are_refused_as_a_whole(rows: list[dict[str, Any]], message: str) -> None:
    patterns = new()
    patterns.change(Change("key", ABK))
    overflow = "SELECT * FROM S WHERE A AS x FILTER x[v * 4 > 3]"
    patterns.change([Change("sum", overflow), Change("total", overflow), Change("window", AB + " WITHIN 3 [v]")])
    patterns.push([event("A", 0, v=0)])
    before = patterns.stats
    with pytest.raises(stretto.DataError, match=message):
        patterns.push(rows)
    assert patterns.stats == before
    assert short(patterns.push([event("B", 1, v=2)])) == [("key", None, 0, 1), ("window", None, 0, 1)]


def test_a_set_that_was_stopped_in_the_middle() -> None:
    patterns = new(capacity=1)
    patterns.change(Change("p", "SELECT * FROM S WHERE A+ ; B"))
    saved = patterns.snapshot()
    pieces = patterns.iter_push([*(event("A", t) for t in range(8)), event("B", 9)])
    next(pieces)
    for call in (lambda: patterns.push([event("A", 10)]), lambda: patterns.change([]), lambda: patterns.advance(20)):
        with pytest.raises(stretto.EngineError, match="restore a snapshot"):
            call()
    with pytest.raises(stretto.SnapshotError, match="middle of a batch"):
        patterns.snapshot()
    assert patterns.restore(saved).push([event("A", 1), event("B", 1)]).num_rows == 1
    assert patterns.finish().schema == patterns.output_schema
    with pytest.raises(stretto.OptionError, match="finished"):
        patterns.push([event("A", 9)])


# ---- Snapshots


def busy() -> PatternSet:
    patterns = new(by=["k"])
    patterns.change([Change("p", ABK), Change("q", ABK + " WITHIN 9 [t]", 2), Change("p", None, 50)])
    patterns.push([event("A", 1), event("A", 3, "q"), event("A", 4, "p")])
    return patterns


def test_a_snapshot_holds_patterns_times_and_state() -> None:
    patterns = busy()
    again = new(by=["k"]).restore(patterns.snapshot())
    assert again.patterns.equals(patterns.patterns)
    assert again.stats == {**patterns.stats, "bytes": again.stats["bytes"]}
    with pytest.raises(stretto.DataError, match="an event of 4 has been read"):
        again.change(Change("r", ABK, 4))
    rows = [event("B", 5), event("B", 13, "q")]
    assert short(again.push(rows)) == short(patterns.push(rows)) == [
        ("p", None, 4, 5), ("p", None, 1, 5), ("q", 2, 4, 5), ("p", None, 3, 13),
    ]  # fmt: skip


def test_a_snapshot_holds_what_may_not_decrease() -> None:
    patterns = new(late="drop")
    patterns.change(Change("p", AB + " WITHIN 3 [v]"))
    patterns.push([event("C", 1, v=7), event("C", 0), event("C", 2, v=8)])
    patterns.advance(9)
    patterns.change([Change("q", AB, 8), Change("q", AB, 9)])
    again = new().restore(patterns.snapshot())
    assert (again.late, again.late_changes, again.position) == (1, 1, 2)
    assert again.patterns.column("since").to_pylist() == [None, 9]
    with pytest.raises(stretto.DataError, match="'v' decreases from 8 to 7 at row 2"):
        again.push([event("C", 9, v=7)])
    with pytest.raises(stretto.DataError, match="the stream has come to 9"):
        again.push([event("C", 8, v=9)])
    with pytest.raises(stretto.DataError, match="the stream has come to 9"):
        again.change(Change("r", AB, 8))
    again.finish()
    with pytest.raises(stretto.OptionError, match="finished"):
        new().restore(again.snapshot()).push([event("C", 9, v=9)])


def test_a_snapshot_is_as_small_as_what_is_held() -> None:
    patterns = new()
    patterns.change([Change(f"p{number}", AB + f" FILTER x[v = {number}] WITHIN 1 [t]") for number in range(40)])
    patterns.push([event("C", t) for t in range(3000)])
    size = len(patterns.snapshot())
    assert size < 200 * 40, "texts, and nothing else"
    patterns.push([event("A", 5000, v=7)])
    assert patterns.stats["busy"] == 1
    assert len(patterns.snapshot()) < size + 5000
    patterns.push([event("C", 6000)])
    patterns.advance(7000)
    assert patterns.idle
    assert len(patterns.snapshot()) < size + 100
    assert patterns.stats["busy"] == 0


def test_damaged_and_foreign_snapshots_are_refused() -> None:
    saved = busy().snapshot()
    patterns = new(by=["k"])
    for at in range(0, len(saved), max(1, len(saved) // 200)):
        damaged = bytearray(saved)
        damaged[at] ^= 0x20
        with pytest.raises(stretto.SnapshotError):
            patterns.restore(bytes(damaged))
    for stop in (0, 7, 13, len(saved) // 2, len(saved) - 1):
        with pytest.raises(stretto.SnapshotError):
            patterns.restore(saved[:stop])
    newer = saved[:8] + b"\x03\x00" + saved[10:-4]
    with pytest.raises(stretto.SnapshotError, match="format version 3; this stretto reads version 2"):
        patterns.restore(newer + zlib.crc32(newer).to_bytes(4, "little"))
    matcher = stretto.Matcher(AB, SCHEMA, time="t")
    with pytest.raises(stretto.SnapshotError, match="of a Matcher"):
        patterns.restore(matcher.snapshot())
    with pytest.raises(stretto.SnapshotError, match="not a stretto snapshot"):
        matcher.restore(saved)
    for other, what in [
        (new(), "the options differ"),
        (new(by=["k"], output="positions"), "the options differ"),
        (new(by=["k"], valuations=True), "the options differ"),
        (new(by=["k"], time="v"), "the roles of columns differ"),
        (PatternSet(SCHEMA | {"v": "int32"}, time="t", by=["k"]), "the events' attributes differ"),
    ]:
        with pytest.raises(stretto.SnapshotError, match=what):
            other.restore(saved)
    assert patterns.patterns.num_rows == 0, "nothing of what was refused"
    assert patterns.restore(saved).patterns.num_rows == 2


def test_an_automaton_that_is_built_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = busy().snapshot()
    monkeypatch.setattr(compiling, "_PARTS", parts.Latest(8))
    monkeypatch.setattr(parts.CompiledQuery, "digest", property(lambda part: "other"))
    with pytest.raises(
        stretto.SnapshotError, match="the automaton of pattern 'p', as this version of stretto builds it"
    ):
        new(by=["k"]).restore(saved)


# ---- What they share


def test_conditions_are_evaluated_once_and_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """More patterns than bound queries are kept elsewhere, and as many sets as there may be buckets in a worker."""
    texts = [AB + f" FILTER x[v > {n % 5}] AND y[v < {n % 3}] WITHIN {n} [t]" for n in range(50)]
    changes = [Change(f"p{n:02d}", text) for n, text in enumerate(texts)]
    first = new()
    first.change(changes)
    events = stream(300, 3)
    first.push(events)
    assert (first.stats["patterns"], first.stats["conditions"], first.stats["asked"]) == (50, 8, 100)
    made = []
    monkeypatch.setattr(parts.CompiledQuery, "__init__", lambda *_, **__: made.append("part"))
    monkeypatch.setattr(shared.SharedConditions, "__init__", lambda *_, **__: made.append("shared"))
    second = new().restore(first.snapshot())
    second.change(changes)
    second.push(events.slice(299))
    assert made == []


def test_patterns_with_many_conditions_are_grouped() -> None:
    """Of patterns that run on their own groups hold like ones; what they find is what each finds alone."""
    names = [f"c{n}" for n in range(12)]
    rng = np.random.default_rng(4)
    columns: dict[str, Any] = {"type": rng.choice(["A", "B"], 500), "t": np.arange(500)}
    columns |= {name: rng.integers(0, 60, 500) for name in names}
    events = pa.table(columns)
    texts = {}
    for n in range(48):
        test = " AND ".join(f"{name} > {rng.integers(0, 20)}" for name in names[n % 4 : n % 4 + 3])
        texts[f"p{n:02d}"] = f"SELECT x FROM S WHERE A AS x : B AS y FILTER x[{test}] WITHIN 2 [t]"
    patterns = PatternSet(events.schema, time="t", positions=True)
    patterns.change([Change(name, text) for name, text in texts.items()])
    found = patterns.push(events)
    groups = patterns._running.timeline.in_force.conditions._groups
    assert 1 < len(groups) < 12
    members = [part for group in groups for part in group.parts]
    assert len(members) == len(set(members)) == 48
    right = [
        (row["end"], name, row["positions"])
        for name, text in texts.items()
        for row in stretto.match(text, events, time="t").to_pylist()
    ]
    assert sorted(right) == sorted((row["end"], row["pattern"], row["positions"]) for row in found.to_pylist())
    assert len(right) > 1000


def test_patterns_that_differ_in_constants_share_an_automaton() -> None:
    texts = [f"SELECT * FROM S WHERE A AS x ; B AS y FILTER x[v = {n % 7}] AND y[v > {n % 5}]" for n in range(60)]
    texts += [f"SELECT * FROM S WHERE A AS x ; B AS y ; C AS z FILTER x[v = {n}] WITHIN 9 [t]" for n in range(3)]
    patterns = new(positions=True)
    patterns.change([Change(f"p{n:02d}", text) for n, text in enumerate(texts)])
    events = stream(200, 5)
    found = [(row["end"], row["pattern"], row["positions"]) for row in patterns.push(events).to_pylist()]
    right = [
        (row["end"], f"p{n:02d}", row["positions"])
        for n, text in enumerate(texts)
        for row in stretto.match(text, events, time="t").to_pylist()
    ]
    assert sorted(found) == sorted(right)
    assert [one[:2] for one in found] == sorted(one[:2] for one in found)
    assert len(found) > 1000
    assert [len(joint.program.programs) for joint in patterns._running.joint.values()] == [1, 1]


RELATED = [
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ b.v + {n} > a.v * {m} AND b.v - a.v IN ({n}, {m}) }} WITHIN {m}",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match {{ avg(b[].v) * {n}.5 < a.v + {m}.25 AND b[i].t - a.t < {n} }}",
    "PATTERN SEQ(A a, ~(C n), B b) WHERE skip_till_any_match {{ n.v > a.v - {n} AND coalesce(b.k, 'k{m}') = a.k }} WITHIN {n}",
]


@pytest.mark.parametrize("shape", RELATED)
def test_conditions_between_events_that_differ_in_constants_share_their_code(shape: str) -> None:
    texts = [shape.format(n=number, m=2 * number + 3) for number in range(1, 6)]
    bound = [stretto.compile(text, schema=SCHEMA, time="t").program(valuations=False) for text in texts]
    programs = [one for one in bound if isinstance(one, NfabProgram)]
    assert len(programs) == len(texts)
    assert len({id(program.theta) for program in programs}) == 1
    words = [program.conditions.constants.words for program in programs]
    assert all(words)
    assert len(set(map(tuple, words))) == len(texts)


def test_types_of_constants_are_part_of_the_code() -> None:
    asked = ["a.v + 1", "a.v + 2", "a.v + 1.5", "a.v + 0.5"]
    texts = [f"PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ b.v < {one} }}" for one in asked]
    programs = [stretto.compile(text, schema=SCHEMA).program(valuations=False) for text in texts]
    codes = [program.theta for program in programs if isinstance(program, NfabProgram)]
    assert codes[0] is codes[1] is not codes[2]
    assert codes[2] is codes[3]


def test_automata_that_differ_in_constants_share_their_code() -> None:
    codes = []
    for number in range(1, 5):
        afa = stretto.AFA(SCHEMA, register={"n": "int64", "s": "string"})
        afa.arc("q0", "q1", when=f"e.v > {number} AND e.type = 'A'", then={"n": f"e.v * {number}", "s": f"'s{number}'"})
        afa.final("q2")
        afa.arc("q1", "q2", when=f"e.v + {number} > r.n OR r.s = 'x{number}'")
        code = AfaCode(afa.frozen.events, afa.frozen.register)
        for arc in afa.frozen.arcs:
            code.add(arc)
        codes.append(code)
    assert len({id(code.theta()) for code in codes}) == 1
    assert len({code.faults().tobytes() for code in codes}) == len(codes)


def led(number: int, since: int | None = None) -> Change:
    """Patterns that differ in their last step only."""
    text = f"SELECT * FROM S WHERE A AS x ; A+ AS u ; B AS y FILTER x[v > 0] AND y[v = {number} OR v = {number % 3}]"
    return Change(f"p{number}", f"{text} PARTITION BY [k] WITHIN 20 [t]", since=since)


def test_a_common_prefix_is_held_once() -> None:
    events = stream(300, 11)
    given = [*(led(number) for number in range(5)), *(led(number, since=100) for number in range(5, 9))]
    patterns = new(positions=True)
    patterns.change(given)
    found = []
    for at in range(0, 300, 60):
        found += patterns.push(events.slice(at, 60)).to_pylist()
        patterns = new(positions=True).restore(patterns.snapshot()) if at % 120 else patterns
    right = []
    for change in given:
        first = 0 if change.since is None else sum(time < change.since for time in events.column("t").to_pylist())
        for row in stretto.match(str(change.query), events.slice(first), time="t").to_pylist():
            right.append((row["end"] + first, change.id, [one + first for one in row["positions"]]))
    assert sorted(right) == sorted((row["end"], row["pattern"], row["positions"]) for row in found)
    assert len({name for _, name, _ in right}) > 6
    alone = new()
    alone.change(led(0))
    for at in range(0, 300, 60):
        alone.push(events.slice(at, 60))
    (joint,) = patterns._running.joint.values()
    assert [len(one.lookers) for one in joint._shared.values()] == [5, 4]
    assert patterns.stats["nodes"] <= 2 * alone.stats["nodes"]
    assert patterns.stats["busy"] == 9
    patterns.change([Change(f"p{number}", None, since=10_000) for number in range(1, 9)])
    patterns.advance(10_001)
    assert [len(one.lookers) for one in joint._shared.values()] == [1]


def test_what_patterns_with_a_common_prefix_cost() -> None:
    events = stream(200, 12)
    patterns = new()
    patterns.change([led(number) for number in range(4)])
    patterns.push(events)
    kinds = list(zip(events.column("type").to_pylist(), events.column("v").to_pylist(), strict=True))
    right = [sum(kind == "A" or (kind == "B" and v in (n, n % 3)) for kind, v in kinds) for n in range(4)]
    assert patterns.costs.column("concerned").to_pylist() == right


def test_one_of_several_with_a_common_prefix_is_switched_off() -> None:
    text = "SELECT * FROM S WHERE A+ AS x ; B AS y FILTER y[v >= {}]"
    patterns = new(budget=400, on_limit="disable")
    patterns.change([Change("all", text.format(0)), Change("few", text.format(5))])
    with pytest.warns(stretto.StrettoWarning, match="'all'"):
        found = patterns.push([*(event("A", at) for at in range(8)), event("B", 8, v=1)])
    assert found.num_rows == 0
    assert list(patterns.disabled) == ["all"]
    patterns.change(Change("few", text.format(6), since=20))
    found = patterns.push([event("A", 20), event("B", 21, v=6), event("B", 22, v=1)])
    assert short(found) == [("few", 20, 20, 21)]


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("A AS x ; A AS u ; A AS y", True),
        ("A+ AS x ; B AS y", True),
        ("A+ AS x ; A AS y", False),  # an event may end a match and lead on the others that have the same events
        ("A AS x ; B+ AS y", False),
        ("A AS x ; NOT B ; C AS y", True),
        ("(A AS x ; B AS y) OR C AS y", False),
    ],
)
def test_which_patterns_have_a_prefix(text: str, shares: bool) -> None:
    patterns = new()
    patterns.change([Change(f"p{n}", f"SELECT * FROM S WHERE {text} FILTER x[v > 1] AND y[v = {n}]") for n in (1, 2)])
    patterns.push([event("A", 1)])
    (joint,) = patterns._running.joint.values()
    assert [len(one.lookers) for one in joint._shared.values()] == [2] * shares


def test_tables_of_many_constants_do_not_grow_with_their_square(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text and each number is asked for by one pattern."""
    monkeypatch.setattr(index, "ATOMS", 16)
    monkeypatch.setattr(shared, "_SHARED", parts.Latest(32))
    monkeypatch.setattr(shared, "_SEGMENTS", parts.Latest(64))
    patterns = new()
    texts = (f"SELECT * FROM S WHERE A AS x ; B AS y FILTER x[k = 'k{n}'] AND y[v > {n}]" for n in range(300))
    patterns.change([Change(f"p{n}", text) for n, text in enumerate(texts)])
    found = patterns.push([event("A", 1, "k200"), event("A", 2, "k201"), event("B", 3, v=201)])
    assert short(found) == [("p200", None, 1, 3)]
    tables = [coder.truth for coder in patterns._running.timeline.in_force.conditions.segments[0].index._coders]
    assert sum(table.size for table in tables) < 3 * 2 * 16 * 600


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many patterns were indexed at a time."""
    found: list[int] = []

    class Counted(shared.Segment):
        def __init__(self, parts: Any, schema: Any) -> None:
            super().__init__(parts, schema)
            found.append(len(self.parts))

    monkeypatch.setattr(shared, "Segment", Counted)
    monkeypatch.setattr(shared, "_SHARED", parts.Latest(32))
    monkeypatch.setattr(shared, "_SEGMENTS", parts.Latest(64))
    return found


def numbered(number: int, since: int | None = None) -> Change:
    """A pattern that runs with others, or every tenth on its own, with constants of its own."""
    how = ":" if number % 10 == 0 else ";"
    text = f"SELECT * FROM S WHERE A AS x {how} B AS y FILTER x[k = 'k{number}'] AND y[v > {number}]"
    return Change(f"p{number}", text, since=since)


def test_a_change_costs_what_the_pattern_costs(indexed: list[int]) -> None:
    """One pattern that is added, replaced or retired has one indexed; many, one by one, each a few times."""
    patterns = new()
    patterns.change([numbered(n) for n in range(200)])
    patterns.push([event("A", 1)])
    assert indexed == [0, 200]
    patterns.change(numbered(201, since=2))
    patterns.push([event("A", 2, "k201"), event("A", 2, "k7")])
    assert indexed == [0, 200, 1]
    patterns.change([Change("p7", numbered(303).query, since=3), Change("p8", None, since=3)])
    found = patterns.push([event("A", 3, "k303"), event("A", 3, "k7"), event("B", 4, v=304)])
    assert short(found) == [("p201", 2, 2, 4), ("p7", 3, 3, 4)]
    assert indexed == [0, 200, 1, 2]
    for n in range(400):
        patterns.change([numbered(1000 + n, since=5 + n), Change(f"p{n}", None, since=5 + n)])
        patterns.push([event("A", 5 + n)])
    assert sum(indexed) < 200 + 400 * 4 * math.log(400, 4)
    segments = patterns._running.timeline.in_force.conditions.segments
    assert len(segments) <= 6
    assert sum(len(segment.parts) for segment in segments) < 2 * patterns.stats["patterns"]


def test_segments_become_one_where_many_events_are_read(indexed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "EVENTS", 2)
    patterns = new()
    patterns.change([numbered(n) for n in range(40)])
    patterns.push([event("A", 1)])
    patterns.change([numbered(41, since=2), Change("p3", None, since=2)])
    for at in range(2, 83):
        patterns.push([event("A", at, "k41")])
    assert indexed == [0, 40, 1]
    assert len(patterns.push([event("B", 90, v=42)])) == 81
    assert indexed == [0, 40, 1, 40]


def test_what_a_retired_pattern_read_events_need_not_have() -> None:
    patterns = new(output="positions")
    patterns.change(
        [Change("vk", AB + " FILTER x[v > 0] AND y[k = 'p']"), Change("ab", AB), Change("b", f"{AB} FILTER x[v > 0]")]
    )
    patterns.push([event("A", 1)])
    patterns.change([Change("vk", None, since=2), Change("b", None, since=2)])
    found = patterns.push([{"type": "A", "t": 2}, {"type": "B", "t": 3}])
    assert short(found) == [("ab", None, 2, 3), ("ab", None, 1, 3)]


def test_a_slot_is_taken_again() -> None:
    """What the pattern before has left there is nothing to the next one; memory does not grow with changes."""
    patterns = new(positions=True)
    for at in range(60):
        text = AB if at % 2 else "SELECT * FROM S WHERE A+ AS x ; A AS y ; B+ AS z"
        patterns.change(Change("p", text, 10 * at))
        found = patterns.push([event("A", 10 * at), event("A", 10 * at + 1), event("B", 10 * at + 2)])
        assert found.num_rows == (2 if at % 2 else 1)
        if at % 7 == 0:
            patterns = new(positions=True).restore(patterns.snapshot())
    assert patterns.stats["partitions"] == 2  # the pattern's, and that of its prefix


@pytest.mark.parametrize("count", [8, 9, 16, 17, 64, 65, 130])
def test_a_pattern_with_many_conditions(count: int) -> None:
    """Whatever number of bytes the truth of its conditions fills, beside another pattern and as a matcher finds it."""
    text = "SELECT * FROM S WHERE " + " ; ".join(f"T{i} AS x{i}" for i in range(count))
    rows = [event(f"T{i}", i) for i in range(count)]
    rows.insert(count // 2, event("none", count // 2))
    rows.append(event(f"T{count - 1}", count))
    patterns = new(output="positions", positions=True)
    patterns.change([Change("many", text), Change("few", "SELECT * FROM S WHERE T1 AS x ; T2 AS y")])
    found = [row["positions"] for row in patterns.push(rows).to_pylist() if row["pattern"] == "many"]
    single = stretto.Matcher(text, SCHEMA, time="t", output="positions").push(rows)
    assert found == single.column("positions").to_pylist()
    assert len(found) == 2


@pytest.mark.parametrize("keys", [20, 3000])
def test_keys_are_numbered_once_for_all_patterns(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few keys and more than are numbered together; idle ones are forgotten and come back."""
    monkeypatch.setattr(shared_predicates, "MOST", 200)
    monkeypatch.setattr("stretto.engines.shared.intake.SWEEP_AT_LEAST", 50)
    monkeypatch.setattr("stretto.matching.pattern_set.executor.CHUNK", 500)
    rng = np.random.default_rng(keys)
    rows = 4000
    phase = np.arange(rows) * 4 // rows  # other keys in every quarter
    names = (rng.integers(0, keys, rows) + keys * (phase % 2)).astype(str)
    columns = {"type": rng.choice(list("ABC"), rows), "t": np.arange(rows), "k": names, "v": rng.integers(0, 9, rows)}
    events = pa.table(columns)
    texts = {
        f"p{n}": f"SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > {n}] PARTITION BY [k] WITHIN {50 * n + 90} [t]"
        for n in range(4)
    }
    patterns = new(by=["k"], positions=True)
    patterns.change([Change(name, text) for name, text in texts.items()])
    found = pa.concat_tables([patterns.push(events.slice(low, 700)) for low in range(0, rows, 700)])
    right = [
        (row["end"], name, row["positions"], row["k"])
        for name, text in texts.items()
        for row in stretto.match(text, events, time="t").to_pylist()
    ]
    shown = [(row["end"], row["pattern"], row["positions"], row["k"]) for row in found.to_pylist()]
    assert sorted(right) == sorted(shown)
    assert len(right) > 20


def test_memory_is_what_windows_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.matching.pattern_set.executor.CHUNK", 1000)
    patterns = new()
    patterns.change([Change("a", AB + " WITHIN 50 [t]"), Change("b", ABK + " WITHIN 9 EVENTS"), Change("c", ABK, 10)])
    patterns.change(Change("c", None, 2000))
    held = []
    rows = 1500
    for low in range(0, 10 * rows, rows):
        times = pa.array(np.arange(low, low + rows))
        kinds = pa.array(np.array(["C", "C", "C", "A", "D"])[np.arange(rows) % 5])
        ones = np.ones(rows, np.int64)
        patterns.push(pa.table({"type": kinds, "t": times, "k": pa.array(ones.astype(str)), "v": pa.array(ones)}))
        held.append((patterns._running.history.rows, patterns.stats["bytes"]))
    assert max(kept for kept, _ in held) < 3 * rows
    assert max(size for _, size in held[5:]) <= 1.5 * max(size for _, size in held[:5])
    patterns.snapshot()
    assert patterns._running.history.rows < 200
    assert patterns.expires is not None
    assert not patterns.idle


# ---- Automata


def rising(**options: Any) -> stretto.AFA:
    """An A and the next B with a greater v, of other events between them only C."""
    made = stretto.AFA({"type": str, "v": int}, register={"n": int}, **options)
    made.arc("q0", "q1", when="e.type = 'A'", then="n = e.v").ignore("q1", when="e.type = 'C'")
    return made.arc("q1", "q2", when="e.type = 'B' AND e.v > r.n").final("q2")


BETWEEN = [event("A", 1, v=5), event("C", 2), event("B", 3, v=9), event("A", 4, v=5), event("D", 5), event("B", 6, v=9)]


def test_an_automaton_is_a_pattern_among_others() -> None:
    """As a value and as text, JSON or TOML, since and until a time, beside a query; all events of a match, without variables."""
    patterns = new(positions=True)
    toml = 'final = ["q1"]\narcs = [{ source = "q0", target = "q1", when = "e.type = \'D\'" }]'
    patterns.change(
        [
            Change("value", rising()),
            Change("text", stretto.write_afa(rising()), since=3, language="afa"),
            Change("toml", toml, language="afa"),
            Change("ab", AB + " WITHIN 2 [t]"),
            {"id": "value", "query": None, "since": 6},
        ]
    )
    found = patterns.push(BETWEEN).to_pylist()
    shown = [(row["pattern"], row["positions"], [entry["variable"] for entry in row["events"]]) for row in found]
    assert shown == [
        ("ab", [0, 2], ["x", "y"]), ("value", [0, 1, 2], [None] * 3), ("toml", [4], [None]), ("ab", [3, 5], ["x", "y"]),
    ]  # fmt: skip
    assert [entry["event"] for entry in found[1]["events"]] == BETWEEN[:3]
    assert patterns.patterns.column("query").to_pylist()[2] == toml
    assert patterns.costs.to_pylist()[1]["concerned"] == 4  # "text", from 3 on


def test_without_the_events_between_only_the_ends_are_kept() -> None:
    patterns = new(output="positions")
    patterns.change(Change("a", rising(window=1000)))
    assert short(patterns.push([event("A", 1, v=5), *(event("C", t) for t in range(2, 900))])) == []
    patterns.snapshot()  # it forgets what is not needed
    assert patterns._running.history.rows < 10
    assert short(patterns.push([event("B", 900, v=9)])) == [("a", None, 1, 900)]
    assert patterns.expires == 1899
    assert not patterns.idle
    patterns.advance(1900)
    assert patterns.idle
    assert patterns.expires is None


@pytest.mark.parametrize("ignore", [True, False])
def test_events_before_what_is_under_way_are_forgotten(ignore: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a window as well: what an automaton may still show begins with the oldest first event."""
    monkeypatch.setattr("stretto.engines.afa.stepping.SWEEP_AT_LEAST", 10)
    afa = stretto.AFA({"type": str, "k": str}, partition_by="k").arc("q0", "q1", when="e.type = 'A'")
    afa = afa.ignore("q1", when="e.type = 'C'") if ignore else afa.arc("q1", "q1", when="e.type = 'C'")
    afa.arc("q1", "q2", when="e.type = 'B'").final("q2")
    patterns = new()
    patterns.change(Change("a", afa))
    for t in range(0, 2_000, 20):
        patterns.push([event("C" if n else "D", t + n) for n in range(20)])
    assert short(patterns.push([event("A", 2_000), event("A", 2_001, "q"), event("C", 2_002)])) == []
    for t in range(2_003, 2_040):
        patterns.push([event("C", t), event("D", t, "q")])
    patterns.snapshot()
    assert patterns._running.history.rows < 50
    restored = new().restore(patterns.snapshot())
    for one in (patterns, restored):
        [row] = one.push([event("B", 2_050)]).to_pylist()
        assert [entry["event"]["t"] for entry in row["events"]] == [2_000, *range(2_002, 2_040), 2_050]


def test_an_automaton_in_a_set_keeps_no_event_behind_and_gives_output_in_few_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The window has 500 events, of which later ones go on from the last alone; output that is full grows."""
    drains: list[int] = []
    drain = AfaState.drain
    monkeypatch.setattr(AfaState, "drain", lambda state: (drains.append(1), drain(state))[1])
    afa = stretto.AFA({"type": str}, window=500)
    afa.arc("q0", "q1", when="e.type = 'A'").arc("q1", "q2", when="e.type = 'B'").final("q2")
    patterns = new(output="positions", capacity=1)
    patterns.change(Change("ab", afa))
    assert patterns.push([event("AB"[n % 2], n) for n in range(2_000)]).num_rows == 1_000
    [run] = patterns._running.own()
    assert isinstance(run, AfaRun)
    assert run.run.state.events.X.shape[0] < 16
    assert len(drains) < 12


def test_keys_and_strings_of_automata_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are forgotten between batches, and those of output that was not given are not."""
    monkeypatch.setattr("stretto.engines.afa.stepping.SWEEP_AT_LEAST", 0)
    afa = stretto.AFA({"type": str, "k": str}, register={"s": str}, partition_by="k", window=3)
    afa.arc("q0", "q1", when="e.type = 'A'", then="s = e.k").arc("q1", "q2", when="e.type = 'B' AND r.s = e.k").final(
        "q2"
    )
    rows = [event("AB"[n % 2], n // 4, f"k{n // 2}") for n in range(400)]
    events = pa.Table.from_pylist(rows, pa.schema([(name, pa.type_for_alias(kind)) for name, kind in SCHEMA.items()]))
    right = stretto.match(afa, events, time="t").to_pylist()
    assert len(right) == 200
    patterns = new(positions=True, capacity=1)
    patterns.change(Change("a", afa))
    found = [row for low in range(0, 400, 25) for row in patterns.push(events.slice(low, 25)).to_pylist()]
    assert [(row["start"], row["keys"]) for row in found] == [(row["start"], [("k", row["k"])]) for row in right]
    assert patterns.stats["partitions"] < 100
    matcher = stretto.Matcher(afa, time="t", disorder=1)
    pieces = [matcher.push(events.slice(low, 25)).to_pylist() for low in range(0, 400, 25)]
    given = [
        (row["start"], row["k"], row["register"]["s"])
        for piece in [*pieces, matcher.finish().to_pylist()]
        for row in piece
    ]
    assert given == [(row["start"], row["k"], row["register"]["s"]) for row in right]


@pytest.mark.parametrize(
    ("kind", "times", "window", "right"),
    [
        (pa.date32(), [dt.date(2024, 1, d) for d in (1, 3, 5)], dt.timedelta(days=3), 1),
        (pa.timestamp("ms", "UTC"), [dt.datetime(2024, 1, 1, 0, 0, s, tzinfo=dt.UTC) for s in (1, 3, 5)], "3 seconds", 1),
        (pa.int32(), [1, 3, 5], "3 seconds", 1),
        (pa.int64(), [1, 3, 5], 5, 2),
    ],
)  # fmt: skip
def test_windows_of_automata(kind: Any, times: Any, window: Any, right: int) -> None:
    afa = stretto.AFA({"type": str}, window=window).arc("q0", "q1", when="e.type = 'A'")
    afa = afa.ignore("q1", when="e.type = 'B'").final("q1", emit="every")
    patterns = PatternSet({"type": pa.string(), "t": kind}, time="t", time_unit="s", output="positions")
    patterns.change(Change("a", afa))
    events = pa.table({"type": ["A", "B", "B"], "t": pa.array(times, kind)})
    assert patterns.push(events).num_rows == right + 1
    patterns.advance(times[1])  # which is over: nothing happens
    assert patterns.push(events.slice(2)).num_rows == right - 1


def test_types_of_automata_and_of_events() -> None:
    """Encodings and widths may differ where no value is lost."""
    columns = {"type": pa.dictionary(pa.int8(), pa.string()), "t": pa.int64(), "v": pa.int64()}
    afa = stretto.AFA({"type": pa.string(), "v": pa.int32()}, register={"n": int})
    afa.arc("q0", "q1", when="e.type = 'A'", then="n = e.v").arc("q1", "q2", when="e.v > r.n").final("q2")
    patterns = PatternSet(columns, time="t", positions=True)
    patterns.change(Change("wide", afa))
    assert short(patterns.push([event("A", 1, v=3), event("B", 2, v=4)])) == [("wide", None, 1, 2)]
    with pytest.raises(stretto.DataError, match="pattern 'wide': column 'v' is int64, and the AFA has int32"):
        patterns.push([event("A", 3, v=1 << 40)])
    assert short(patterns.push([event("A", 3, v=3), event("B", 4, v=4)])) == [("wide", None, 3, 4)]


def test_what_is_wrong_with_an_automaton() -> None:
    def refused(what: str, afa: Any, **options: Any) -> None:
        patterns = new(**options)
        with pytest.raises(stretto.StrettoError, match=what):
            patterns.change([Change("fine", AB if not options else ABK), Change("it", afa)])
        assert patterns.patterns.num_rows == 0

    plain = stretto.AFA({"type": str}, window=3).arc("q0", "q1", when="e.type = 'A'").final("q1")
    refused("pattern 'it': the AFA has no arcs", stretto.AFA({"type": str}))
    other = stretto.AFA({"typ": str}).arc("q0", "q1", when="e.typ = 'A'").final("q1")
    refused("pattern 'it': the AFA reads 'typ', which no column is; did you mean 'type'", other)
    refused("column 'v' is int64, and the AFA has string", stretto.AFA({"v": str}).arc("q0", "q1").final("q1"))
    refused("not partitioned by 'k'", plain, by=["k"])
    own = stretto.AFA({"t": pa.int32()}).arc("q0", "q1").final("q1")
    refused("the time 't' as int32, and the events as int64", own)
    long = stretto.AFA({"type": str}, window="1 minute").arc("q0", "q1").final("q1")
    refused("a window of 0:01:00 over 't', which is int64", long)
    patterns = PatternSet({"type": "string", "t": "double"}, time="t")
    with pytest.raises(stretto.OptionError, match="orders events by integers, dates or timestamps"):
        patterns.change(Change("it", plain))
    with pytest.raises(stretto.QueryError, match="did you mean 'type'"):
        new().change(Change("it", '{"arcs": [{"source": "a", "target": "b", "when": "e.typ = 1"}]}', language="afa"))
    with pytest.raises(stretto.OptionError, match="pattern 'it': the automaton's text is no TOML"):
        new().change(Change("it", "SELECT", language="afa"))


def test_what_an_automaton_cannot_compute() -> None:
    sums = stretto.AFA({"type": str, "v": int}, register={"n": int})
    sums.arc("q0", "q1", when="e.type = 'A'", then="n = e.v").arc("q1", "q2", then="n = r.n + e.v").final("q2")
    patterns = new(output="positions")
    patterns.change(Change("sums", sums, since=2))
    patterns.push([event("A", 1), event("A", 2, v=1 << 62)])
    with pytest.raises(stretto.DataError, match=r"pattern 'sums': arc 'a1' .*an integer leaves 64 bits at row 2"):
        patterns.push([event("B", 3, v=1 << 62)])
    with pytest.raises(stretto.EngineError, match="stopped in the middle"):
        patterns.advance(9)


def test_an_automaton_that_explodes_is_switched_off() -> None:
    """Each A keeps all of those before it going, and tells all events between."""
    every = stretto.AFA({"type": str}, register={"n": int})
    every.arc("q0", "q1", when="e.type = 'A'").arc("q1", "q1", then="n = 2 * r.n").arc(
        "q1", "q1", then="n = 2 * r.n + 1"
    )
    changes = [Change("every", every.final("q1")), Change("ab", AB)]
    rows = [event("A", n) for n in range(14)] + [event("B", 14)]
    patterns = new(budget=2_000)
    patterns.change(changes)
    with pytest.raises(stretto.LimitError, match=r"(?s)pattern 'every': the event .*stricter fences"):
        patterns.push(rows)
    patterns = new(budget=2_000, on_limit="disable")
    patterns.change(changes)
    with pytest.warns(stretto.StrettoWarning, match="'every'.*switched off"):
        found = patterns.push(rows)
    assert {row["pattern"] for row in found.slice(found.num_rows - 14).to_pylist()} == {"ab"}
    assert list(patterns.disabled) == ["every"]


def test_python_functions_run_and_are_in_no_snapshot() -> None:
    afa = stretto.AFA({"v": int}).arc("q0", "q1", when=lambda e, r: e.v > 3).final("q1")
    patterns = new(output="positions")
    patterns.change([Change("f", afa), Change("ab", AB)])
    assert short(patterns.push([event("A", 1, v=4), event("B", 2)])) == [("ab", None, 1, 2), ("f", None, 1, 1)][::-1]
    with pytest.raises(stretto.SnapshotError, match="pattern 'f': its arc 'a0' has a Python function"):
        patterns.snapshot()
    patterns.change(Change("f", None, since=9))
    patterns.advance(10)
    other = new(output="positions").restore(patterns.snapshot())
    other.change(Change("f", afa, since=20))
    with pytest.raises(stretto.SnapshotError, match="pattern 'f'"):
        other.snapshot()


def test_snapshots_of_automata_say_what_they_keep() -> None:
    saved = []
    for positions in (False, True):
        patterns = new(output="positions", positions=positions)
        patterns.change(Change("a", rising()))
        patterns.push(BETWEEN[:2])
        saved.append(patterns.snapshot())
    with pytest.raises(stretto.SnapshotError, match="keep the events that output='events' and positions=True show"):
        new(output="positions", positions=True).restore(saved[0])
    again = new(output="positions", positions=True).restore(saved[1])
    assert again.push(BETWEEN[2:]).column("positions").to_pylist() == [[0, 1, 2]]
    assert again.stats["visited"] == 6
