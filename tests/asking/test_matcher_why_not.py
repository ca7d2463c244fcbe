"""``Matcher.why_not``: what is under way in a stream, and what it waits for."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

import stretto
from stretto.query.afa import Emit, steps_left
from tests.cases import why_afa
from tests.conftest import cases
from tests.reference.afa import outputs

SHOP = [
    ("ORDER", 0, 1),
    ("ORDER", 30, 2),
    ("PAID", 45, 1),
    ("ORDER", 50, 3),
    ("SENT", 55, 1),
    ("PAID", 58, 3),
    ("NOTE", 60, 3),
]
EVENTS = [{"type": kind, "t": at, "id": id, "x": 9 + (kind == "SENT")} for kind, at, id in SHOP]
CEQL = "SELECT * FROM S WHERE ORDER AS o ; PAID AS p ; SENT AS s FILTER s[x > 5] PARTITION BY [id] WITHIN 100 [t]"
SASE = "PATTERN SEQ(ORDER o, PAID p, SENT s) WHERE skip_till_any_match { [id] AND s.x > p.x } WITHIN 100"
EQL = "sequence by id with maxspan=100s [ORDER where true] [PAID where true] [SENT where x > 5]"
PAST = (
    "What ended partial matches, and which events went on with none, a stream does not know: it keeps no past. "
    "stretto.why_not(query, events) looks at events."
)


def matcher(query: Any, **options: Any) -> stretto.Matcher:
    eql = isinstance(query, str) and query.startswith(("sequence", "sample", "join"))
    own = {"language": "eql", "time_unit": "s"} if eql else {"timeouts": True}
    return stretto.Matcher(query, time="t", **(own | options))


@pytest.mark.parametrize(
    ("query", "names", "sent", "paid"),
    [
        (CEQL, "ops", "SENT AS s with s[x > 5]", "PAID AS p"),
        (SASE, "ops", "SENT s with s.x > p.x", "PAID p"),
        (EQL, ["e1", "e2"], "[SENT] with e3[x > 5]", "[PAID]"),
    ],
    ids=["ceql", "sase", "eql"],
)
def test_what_it_waits_for(query: str, names: Any, sent: str, paid: str) -> None:
    asked = matcher(query)
    asked.push(EVENTS)
    answer = asked.why_not()
    first, second = names[:2]
    assert str(answer).splitlines() == [
        "2 partial matches are under way after 7 events. The furthest:",
        f"1. it waits for {sent}: none that fits has come; its window is open until 150",
        f"   {first}: row 3; {second}: row 5 (50 to 58)",
        f"2. it waits for {paid}: none that fits has come; its window is open until 130",
        f"   {first}: row 1 (30 to 30)",
        PAST,
    ]
    assert (answer.under_way, answer.matches, answer.looked_at) == (2, False, 7)
    assert answer.near_misses.select(["miss", "kind", "asked", "events"]).to_pylist() == [
        {
            "miss": 1,
            "kind": "absent",
            "asked": sent,
            "events": [{"variable": first, "rows": [3]}, {"variable": second, "rows": [5]}],
        },
        {"miss": 2, "kind": "absent", "asked": paid, "events": [{"variable": first, "rows": [1]}]},
    ]
    assert dict(answer.reasons[0].values) == {"expires": 150}
    assert [miss.events[first] for miss in asked.why_not(2).misses] == [(1,)]
    assert [miss.events[first] for miss in asked.why_not({"id": 3}, most=1).misses] == [(3,)]
    assert str(asked.why_not(1)).splitlines() == ["No partial match is under way after 7 events.", PAST]
    assert "under way after 7 events" in asked.why_not()._repr_html_()
    # What it waits for completes it.
    assert asked.push([{"type": "SENT", "t": 130, "id": 3, "x": 10}]).num_rows == 1
    assert asked.why_not(3).under_way == 0


def test_the_furthest_come_first() -> None:
    asked = matcher(CEQL)
    asked.push([{"type": "ORDER", "t": at, "id": at, "x": 1} for at in range(20)])
    asked.push([{"type": "PAID", "t": 20, "id": id, "x": 1} for id in (7, 12)])
    assert [miss.events for miss in asked.why_not().misses] == [
        {"o": (7,), "p": (20,)},
        {"o": (12,), "p": (21,)},
        {"o": (0,)},
    ]
    assert asked.why_not().under_way == 20
    assert len(asked.why_not(most=100).misses) == 20


@pytest.mark.parametrize(
    ("query", "events", "told"),
    [
        (
            "SELECT * FROM S WHERE A AS a ; B AS b ; NOT C WITHIN 5 [t]",
            "AB",
            "NOT C: none has come, and there is a match if none comes: its window is open until 5",
        ),
        (
            "PATTERN SEQ(A a, B{3,} b[], C? c, D d) WHERE skip_till_any_match { } WITHIN 9",
            "ABB",
            "it waits for the rest of B{3,} b[]: none that fits has come; its window is open until 9",
        ),
        (
            "PATTERN SEQ(A a, B{2,} b[], C? c, D d) WHERE skip_till_any_match { } WITHIN 9",
            "ABB",
            "it waits for C? c or D d: none that fits has come; its window is open until 9",
        ),
        (
            "PATTERN SEQ(A a, (B b, C c)+, D d) WHERE skip_till_any_match { } WITHIN 9",
            "AB",
            "it waits for the rest of (B b, C c)+ or D d: none that fits has come; its window is open until 9",
        ),
        (
            "SELECT * FROM S WHERE A AS a : B AS b ; C WITHIN 9 [t]",
            "AD",
            "it waits for B AS b: none that fits has come; its window is open until 9, unless A AS a : B AS b has ended it",
        ),
        (
            "SELECT * FROM S WHERE A AS a ; NOT D ; B AS b WITHIN 9 [t]",
            "AD",
            "it waits for B AS b: none that fits has come; its window is open until 9, unless NOT D has ended it",
        ),
        (
            "PATTERN SEQ(A a, B b) WHERE strict_contiguity { } WITHIN 9",
            "AD",
            "it waits for B b: none that fits has come; its window is open until 9, unless strict_contiguity has ended it",
        ),
        (
            "SELECT * FROM S WHERE (A AS a ; B AS b) OR (C AS c ; D AS d) WITHIN 9 [t]",
            "C",
            "it waits for D AS d: none that fits has come; its window is open until 9",
        ),
        (
            "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 4 EVENTS",
            "AD",
            "it waits for B AS b: none that fits has come; WITHIN 4 EVENTS is not over",
        ),
        (
            "sequence [A where true] [B where true]",
            "AD",
            "it waits for [B]: none that fits has come; no window ends it",
        ),
        (
            "sequence with maxspan=5s [A where true] [B where true] ![C where true]",
            "AB",
            "![C where true]: none has come, and there is a match if none comes: its window is open until 5",
        ),
    ],
    ids=["negation", "few", "option", "group", "contiguous", "denied", "strict", "or", "events", "endless", "missing"],
)
def test_in_words(query: str, events: str, told: str) -> None:
    asked = matcher(query)
    asked.push([{"type": kind, "t": at} for at, kind in enumerate(events)])
    assert [str(miss.reasons[0]) for miss in asked.why_not().misses] == [told]


def test_eql_leaves_out_what_has_ended() -> None:
    """A chain behind which an event came that must not, or that ends it, and one whose window is over."""
    for query, events, count in [
        ("sequence with maxspan=50s [A where true] ![D where true] [B where true]", "AD", 0),
        ("sequence with maxspan=50s [A where true] ![D where true] [B where true]", "ADA", 1),
        ("sequence with maxspan=50s [A where true] [B where true] until [D where true]", "AD", 0),
        ("sequence with maxspan=2s [A where true] [B where true]", "AXXX", 0),
        ("sequence with maxspan=3s [A where true] [B where true]", "AXXX", 1),
        ("sequence [A where true] [B where true] [C where true]", "ABA", 2),
        ("sequence [A where true] [B where true] [C where true]", "AAA", 1),
    ]:
        asked = matcher(query)
        asked.push([{"type": kind, "t": at} for at, kind in enumerate(events)])
        assert asked.why_not().under_way == count, (query, events)


def test_what_came_too_late() -> None:
    asked = matcher(CEQL, disorder=10, late="side")
    asked.push([*EVENTS, {"type": "PAID", "t": 31, "id": 2, "x": 1}, {"type": "PAID", "t": 32, "id": 2, "x": 1}])
    answer = asked.why_not()
    assert [miss.events for miss in answer.misses] == [{"o": (0,), "p": (2,)}, {"o": (1,)}]
    assert answer.notes == (
        "4 events wait to be sorted, and are in none.",
        "2 events came too late for disorder=10, and were left out; late_events() has 2: t is 31, 32.",
        PAST,
    )
    assert asked.late_events().num_rows == 2  # asking has taken none
    dropped = matcher(CEQL, late="drop")
    dropped.push([*EVENTS, {"type": "PAID", "t": 31, "id": 2, "x": 1}])
    assert dropped.why_not().notes == ("1 event came too late as events come in order, and was left out.", PAST)
    assert dropped.why_not().looked_at == 8
    shuffled = [EVENTS[at] for at in (1, 0, 2, 5, 3, 6, 4)]
    late = matcher(SASE, disorder=math.inf)
    late.push(shuffled)
    late.advance(61)
    assert [miss.events for miss in late.why_not().misses] == [{"o": (4,), "p": (3,)}, {"o": (0,)}]


def automaton(**options: Any) -> stretto.AFA:
    drops = stretto.AFA({"change": int, "k": str}, register={"falls": int}, start="start", **options)
    drops = drops.arc("start", "falling", when="e.change < 0", then="falls = 1")
    drops = drops.arc("falling", "falling", when="e.change < 0", then="falls = r.falls + 1")
    return drops.arc("falling", "rising", when="e.change > 0 AND r.falls > 2").final("rising")


def test_an_automaton() -> None:
    changes = [{"t": t, "k": "ab"[t % 2], "change": change} for t, change in enumerate([4, -1, -2, -5, -3, -1, -1])]
    asked = stretto.Matcher(automaton(window=10, partition_by=["k"]), time="t")
    asked.push(changes)
    answer = asked.why_not("b", most=2)
    waits = "it waits for the arc a2 (falling -> rising) when e.change > 0 AND r.falls > 2: it has not been taken"
    assert str(answer).splitlines() == [
        "3 partial matches are under way after 7 events. The furthest:",
        f"1. {waits}, falls is 3; it must be before 11".replace("falls is", "r.falls is"),
        "   falling: rows 1, 5 (1 to 5)",
        f"2. {waits}, r.falls is 2; it must be before 13",
        "   falling: rows 3, 5 (3 to 5)",
        PAST,
    ]
    assert dict(answer.reasons[0].values) == {"r.falls": 3, "before": 11}
    assert asked.why_not().under_way == 6
    # The event that it waits for makes these matches, and what is at its end is gone.
    found = asked.push([{"t": 11, "k": "b", "change": 1}])
    assert found.select(["start", "end"]).to_pylist() == []
    assert asked.why_not("b").under_way == 0
    assert asked.push([{"t": 11, "k": "a", "change": 1}]).select(["start", "end"]).to_pylist() == [
        {"start": 2, "end": 8}
    ]


def test_an_automaton_that_ignores_events() -> None:
    afa = stretto.AFA({"kind": str}, start="s", window=10)
    afa = afa.arc("s", "p", when="e.kind = 'a'").ignore("p").arc("p", "q", when="e.kind = 'b'")
    afa = afa.ignore("q").arc("q", "r", when="e.kind = 'c'").final("r")
    asked = stretto.Matcher(afa, time="t")
    asked.push([{"t": t, "kind": kind} for t, kind in enumerate("axbya")])
    assert [(str(miss.reasons[0]), miss.held()) for miss in asked.why_not(most=9).misses][::2] == [
        (
            "it waits for the arc a4 (q -> r) when e.kind = 'c': it has not been taken; it must be before 10",
            "q: rows 0, 2",
        ),
        ("it waits for the arc a2 (p -> q) when e.kind = 'b': it has not been taken; it must be before 14", "p: row 4"),
    ]


def test_automata_are_where_the_definition_has_them() -> None:
    """The state, first event and last event of each partial match are those of an output, if its state were final."""
    judged = 0
    for seed in range(200, 200 + cases(400, compiled=100)):
        one = why_afa.case(seed)
        afa, rows = one.afa, why_afa.read(one.afa, one.events)
        if not rows:
            continue
        asked = stretto.Matcher(afa, time="time")
        last = {row.key: at for at, row in enumerate(rows)}
        expected = set()
        try:
            asked.push(one.events)
            for state, steps in steps_left(afa).items():
                found = outputs(replace(afa, finals={state: Emit.EVERY}), rows) if steps else ()
                expected |= {(state, each.first) for each in found if each.last == last[each.partition]}
        except (stretto.DataError, stretto.LimitError):
            continue
        if isinstance(afa.window, int):
            expected = {each for each in expected if rows[each[1]].le + afa.window > rows[-1].le}
        answer = asked.why_not(most=1_000)
        told = {(state, own[0]) for miss in answer.misses for state, own in miss.events.items()}
        assert told == expected, f"seed {seed}: {one}\n{answer}"
        judged += bool(expected)
    assert judged > 0


LETTERS = {"a": "A", "b": "B", "c": "C", "e1": "A", "e2": "B", "e3": "C"}
QUERIES = [
    "SELECT * FROM S WHERE A AS a ; B+ AS b ; C AS c PARTITION BY [k] WITHIN 6 [t]",
    "SELECT * FROM S WHERE A AS a ; B AS b AFTER 1 [t] ; C AS c PARTITION BY [k] WITHIN 8 [t]",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match { [k] } WITHIN 6",
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { [k] AND c.v > a.v } WITHIN 6",
    "sequence by k with maxspan=6s [A where true] [B where true] [C where true]",
]


def test_what_it_waits_for_completes_it() -> None:
    """The events that are left, put behind the stream in the window, make a match that begins there; behind the window none does."""
    judged = 0
    for seed in range(cases(600, compiled=120)):
        rng = random.Random(seed)
        query = rng.choice(QUERIES)
        asked = matcher(query, schema={"type": "string", "t": "int64", "k": "int64", "v": "int64"})
        at, events = 0, []
        for _ in range(rng.randint(1, 10)):
            at += rng.choice([0, 1, 1, 2])
            events.append({"type": rng.choice("ABCD"), "t": at, "k": rng.randint(1, 2), "v": rng.randint(1, 4)})
        asked.push(events)
        kept = asked.snapshot()
        for miss in asked.why_not(most=100).misses:
            rows = [row for own in miss.events.values() for row in own]
            (reason,) = miss.reasons
            waits = LETTERS[reason.variables[0]]
            ends, key = dict(reason.values)["expires"], events[rows[0]]["k"]
            now = max(at, ends - 1)
            left = [{"type": one, "t": now, "k": key, "v": 9} for one in "ABC"["ABC".index(waits) :]]
            if "AFTER" in query:
                left = [{**one, "t": now + (one["type"] == "C")} for one in left]
            other = matcher(query, schema={"type": "string", "t": "int64", "k": "int64", "v": "int64"})
            whole = other.restore(kept).push(left)
            told = f"seed {seed}: {query}\n{events}\n{miss}"
            if now + 1 <= ends and "AFTER" not in query:
                full = [row["positions"] for row in whole.to_pylist() if row.get("reached") is None]
                assert any(set(rows) <= set(own) for own in full), told
                judged += 1
            other = matcher(query, schema={"type": "string", "t": "int64", "k": "int64", "v": "int64"})
            late = other.restore(kept).push([{**one, "t": ends + 1} for one in left])
            full = [row["positions"] for row in late.to_pylist() if row.get("reached") is None]
            assert all(rows[0] not in own for own in full), told
    assert judged > 3


def test_partial_matches_are_the_same() -> None:
    """The rows are those of ``partial_matches``, also after a snapshot."""
    for query in QUERIES[:4]:
        asked = matcher(query)
        rng = random.Random(5)
        asked.push([{"type": rng.choice("ABCD"), "t": at // 2, "k": rng.randint(1, 2), "v": 1} for at in range(40)])
        expected = sorted(row["positions"] for row in asked.partial_matches().to_pylist())
        for one in (asked, matcher(query).restore(asked.snapshot())):
            answer = one.why_not(most=100)
            assert (
                sorted(sorted(row for own in miss.events.values() for row in own) for miss in answer.misses) == expected
            )
            assert answer.under_way == len(expected) > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: stretto.Matcher(CEQL, time="t"),
            "made with timeouts=True; stretto.why_not(query, events) looks at events",
        ),
        (lambda: stretto.Matcher(SASE, time="t"), "if it is made with timeouts=True"),
        (lambda: matcher("sample by k [A where true] [B where true]"), "a sample or a join has none"),
        (
            lambda: stretto.Matcher("MATCH_RECOGNIZE (ORDER BY t PATTERN (A))"),
            "stretto.why_not(clause, rows) looks at events",
        ),
        (lambda: stretto.Matcher(SASE, time="t", speculation=math.inf), "give timeouts=True in its place"),
    ],
    ids=["ceql", "sase", "sample", "rows", "speculation"],
)
def test_refused(make: Any, message: str) -> None:
    with pytest.raises(stretto.OptionError) as caught:
        make().why_not()
    assert message in str(caught.value)


def test_keys_and_numbers_are_checked() -> None:
    asked = matcher(CEQL)
    assert str(asked.why_not()).splitlines()[0] == "No partial match is under way after 0 events."
    asked.push(EVENTS)
    with pytest.raises(stretto.OptionError, match=r"why_not\(most=0\): give a positive number"):
        asked.why_not(most=0)
    with pytest.raises(stretto.DataError, match=r"no column 'ids'.*did you mean 'id'"):
        asked.why_not({"ids": 1})
    with pytest.raises(stretto.OptionError, match="'x' is no int64"):
        asked.why_not("x")
    with pytest.raises(stretto.OptionError, match="the query has no partition attribute"):
        matcher("SELECT * FROM S WHERE A ; B WITHIN 4 [t]", schema={"type": "string", "t": "int64"}).why_not(3)
