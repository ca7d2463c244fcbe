"""What the events of a stream lack of what the patterns of a set ask for: one warning for all of them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto import Change, PatternSet
from stretto.matching.pattern_set import empty_result as lacking
from tests.conftest import cases

SCHEMA = {"type": "string", "t": "int64", "id": "string", "price": "int64"}
FOUND = Change("found", "SELECT * FROM S WHERE BUY ; SELL")


def events(count: int, **changed: Any) -> list[dict[str, Any]]:
    return [
        {"type": ("BUY", "SELL")[at % 2], "t": 10 * at, "id": "xy"[at // 2 % 2], "price": 7} | changed
        for at in range(count)
    ]


def told(changes: Sequence[Change], pieces: Sequence[Any], **options: Any) -> list[str]:
    """The warnings of a set."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        patterns = PatternSet(SCHEMA, time="t", **options)
        patterns.change(changes)
        for piece in pieces:
            patterns.push(piece)
    assert all(one.category is stretto.StrettoWarning and one.filename == __file__ for one in found)
    return [str(one.message) for one in found]


def lacks(changes: Sequence[Change], rows: Any, **options: Any) -> dict[str, list[str]]:
    patterns = PatternSet(SCHEMA, time="t", **options)
    patterns.change(changes)
    patterns.push(rows)
    return patterns.lacking


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM S WHERE BUYS ; SELL", "no event has the type 'BUYS' (did you mean 'BUY'?)"),
        ("SELECT * FROM S WHERE GONE ; SOLD", "no event has the type 'GONE'"),
        (
            "SELECT * FROM S WHERE BUY AS b ; SELL FILTER b[id = 'X']",
            "of 4 events of type 'BUY' none fulfils b[id = 'X'] (line 1, column 48): id is never 'X'; did you mean 'x'?",
        ),
        (
            "SELECT * FROM S WHERE BUY ; SELL PARTITION BY [id] WITHIN 9 [t]",
            "of 8 events of the types that the query names no 2 with the same 'id' are as near as WITHIN 9 [t] (line 1, column 59) "
            "asks: they last 10 of 't' at least",
        ),
        (
            "PATTERN SEQ(BUY a, SELL b) WHERE skip_till_next_match { a.price > b.price AND b.price > 8 } WITHIN 99",
            "of 4 events of type 'SELL' none fulfils b.price > 8 (line 1, column 79): price is always 7",
        ),
        (
            "MATCH_RECOGNIZE (ORDER BY t PATTERN (A B) DEFINE B AS price > PREV(price) AND id = 'z')",
            "of 8 rows none fulfils B AS price > PREV(price)",
        ),
    ],
)
def test_what_a_pattern_lacks(query: str, expected: str) -> None:
    found = lacks([FOUND, Change("p", query)], events(8))
    assert set(found) == {"p"}
    assert found["p"][0] == expected
    if "GONE" in query:
        assert found["p"][1:] == ["no event has the type 'SOLD'"]


def test_automata() -> None:
    text = (
        "partition_by = ['id']\nfinal = ['q1']\narcs = [{ source = 'q0', target = 'q1', when = \"e.type = 'SELLS'\" }]"
    )
    assert lacks([Change("afa", text, language="afa")], events(4)) == {
        "afa": [
            "of 4 events none fulfils e.type = 'SELLS' of the arc a0 (q0 -> q1): type is never 'SELLS'; did you mean 'SELL'?"
        ]
    }


def test_keys_that_are_null() -> None:
    assert lacks([Change("k", "SELECT * FROM S WHERE BUY ; SELL PARTITION BY [id]")], events(4, id=None)) == {
        "k": [
            "of 4 events of type 'BUY' or 'SELL' none has the key 'id' (line 1, column 48): it is NULL, and events without a key are "
            "in no match"
        ]
    }


def test_one_warning_for_a_thousand_patterns() -> None:
    changes = [
        Change(f"p{at:03}", f"SELECT * FROM S WHERE BUYS ; SELL AS s FILTER s[price > {at}]") for at in range(999)
    ]
    (one,) = told([*changes, FOUND], [events(4), events(4, t=40), events(40, t=80)], warn_after=6)
    assert one == (
        "after 8 events of the stream: no match of 999 of 1,000 patterns: 'p000', 'p001', 'p002' and 996 more: no event has the type "
        "'BUYS' (did you mean 'BUY'?)"
    )


def test_a_warning_names_eight_reasons() -> None:
    changes = [Change(f"p{at}", f"SELECT * FROM S WHERE GONE{at}") for at in range(10)]
    (one,) = told(changes, [events(4)], warn_after=4)
    assert one.startswith(
        "after 4 events of the stream: no match of 10 of 10 patterns: 'p0': no event has the type 'GONE0'; 'p1': "
    )
    assert one.endswith("'p7': no event has the type 'GONE7'; and 2 other reasons")


def test_when_it_is_told() -> None:
    changes = [FOUND, Change("far", "SELECT * FROM S WHERE BUYS")]
    assert told(changes, [events(4)]) == told(changes, [events(4)], warn_after=None) == []
    assert told([FOUND], [events(4)], warn_after=2) == []
    # A pattern that has a match by then is none of them, nor one that holds from a later event on.
    assert told([Change("late", "SELECT * FROM S WHERE BUYS", since=10)], [events(4)], warn_after=2) == []
    assert told(changes, [events(4), [{"type": "BUYS", "t": 40, "id": "x", "price": 1}]], warn_after=5) == []
    patterns = PatternSet(SCHEMA, time="t", warn_after=8)
    patterns.change(changes)
    patterns.push(events(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = PatternSet(SCHEMA, time="t", warn_after=8).restore(patterns.snapshot())
        other.push(events(9, t=99))
        assert other.lacking == {}
    with pytest.warns(
        stretto.StrettoWarning, match="after 13 events of the stream: no match of 1 of 2 patterns: 'far'"
    ):
        patterns.push(events(9, t=99))
    assert patterns.lacking == {"far": ["no event has the type 'BUYS' (did you mean 'BUY'?)"]}
    with pytest.raises(stretto.OptionError, match="warn_after=0: a number of events, or None for no warning"):
        PatternSet(SCHEMA, time="t", warn_after=0)


def test_events_behind_those_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types are known of all events, and the rest of the first ones."""
    monkeypatch.setattr(lacking, "MOST_KEPT", 4)
    changes = [
        Change("cheap", "SELECT * FROM S WHERE BUY AS b FILTER b[price < 7]"),
        Change("later", "SELECT * FROM S WHERE NOTE AS n FILTER n[price < 7]"),
        Change("none", "SELECT * FROM S WHERE GONE"),
    ]
    assert lacks(changes, [*events(6), {"type": "NOTE", "t": 60, "price": 9}]) == {
        "cheap": [
            "of the first 4: of 2 events of type 'BUY' none fulfils b[price < 7] (line 1, column 41): price is always 7"
        ],
        "none": ["no event has the type 'GONE'"],
    }


def test_patterns_that_are_looked_at_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lacking, "MOST_QUERIES", 2)
    monkeypatch.setattr(lacking, "MOST_OTHERS", 1)
    clause = "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS price = 1)"
    changes = [Change(f"c{at}", clause) for at in range(2)]
    changes += [Change(f"q{at}", "SELECT * FROM S WHERE BUY AS b FILTER b[price = 1]") for at in range(3)]
    changes += [Change(f"r{at}", "SELECT * FROM S WHERE GONE") for at in range(3)]
    assert list(lacks(changes, events(4))) == ["c0", "q0", "q1", "r0", "r1", "r2"]
    (one,) = told(changes, [events(4)], warn_after=4)
    assert one.startswith(
        "after 4 events of the stream: no match of 8 of 8 patterns; of 6 single events tell why: 'c0': "
    )


def test_a_column_of_types_that_no_pattern_reads() -> None:
    patterns = PatternSet(SCHEMA, time="t", output="positions")
    patterns.change([Change("clause", "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS price = 1)")])
    patterns.push([{"t": 1, "price": 2}])
    assert patterns.lacking == {"clause": ["of 1 row none fulfils A AS price = 1: price is always 2"]}


def test_a_type_that_is_no_text() -> None:
    schema = {"type": pa.dictionary(pa.int32(), pa.string()), "t": "int64"}
    patterns = PatternSet(schema, time="t")
    patterns.change([Change("a", "SELECT * FROM S WHERE A"), Change("b", "SELECT * FROM S WHERE AA")])
    patterns.push(pa.table({"type": pa.array(["A", None, "A"]).dictionary_encode(), "t": [1, 2, 3]}))
    assert patterns.lacking == {"b": ["no event has the type 'AA' (did you mean 'A'?)"]}


def test_results_are_those_of_a_set_that_does_not_look() -> None:
    """And what is told to have no match has none: its events are as it says."""
    named = 0
    for seed in range(cases(60, compiled=10)):
        rng = random.Random(seed)
        changes = []
        for at in range(6):
            steps = f"{rng.choice('ABC')} AS a ; {rng.choice('AB')} AS b"
            asked = f"a[price > {rng.randint(0, 9)}] AND b[id = '{rng.choice('xy')}']"
            near = f"WITHIN {rng.randint(1, 9)} [t]"
            changes.append(Change(f"p{at}", f"SELECT * FROM S WHERE {steps} FILTER {asked} PARTITION BY [id] {near}"))
        times = sorted(rng.randint(0, 60) for _ in range(rng.randint(1, 12)))
        rows = [
            {"type": rng.choice("AB"), "t": t, "id": rng.choice(["x", None]), "price": rng.randint(0, 9)} for t in times
        ]
        one, other = (PatternSet(SCHEMA, time="t", warn_after=most) for most in (10**6, None))
        found = []
        for patterns in (one, other):
            patterns.change(changes)
            found.append(pa.concat_tables([patterns.push(rows), patterns.finish()]))
        assert found[0].equals(found[1]), seed
        there = set(found[0].column("pattern").to_pylist())
        for name, said in one.lacking.items():
            named += 1
            query = next(change.query for change in changes if change.id == name)
            assert name not in there, seed
            assert stretto.match(query, rows, time="t").num_rows == 0, seed
            assert all("'C'" in text for text in said if text.startswith("no event has the type")), seed
    assert named > cases(60, compiled=10)
