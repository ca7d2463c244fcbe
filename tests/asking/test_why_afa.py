"""``stretto.why_not`` for automata: the words of its answers, near misses of one broken value, and what is refused."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.conftest import cases

EVENTS = [
    {"t": at * 60, "k": key, "x": x}
    for at, (key, x) in enumerate([("a", -5), ("a", -1), ("b", 9), ("a", 3), ("a", -2), ("a", 3), ("b", -6), ("b", 1)])
]


def automaton(**options: Any) -> stretto.AFA:
    """A fall, falls that it counts, and what the test adds."""
    found = stretto.AFA({"k": str, "x": int}, register={"falls": int}, start="start", **options)
    found = found.arc("start", "falling", when="e.x < -3")
    return found.arc("falling", "falling", when="e.x < 0", then="falls = r.falls + 1")


def told(afa: stretto.AFA, events: Any = EVENTS, **options: Any) -> list[str]:
    return str(stretto.why_not(afa, events, **{"time": "t"} | options)).splitlines()


def test_words_of_a_fence() -> None:
    afa = automaton(partition_by=["k"]).arc("falling", "up", when="e.x > 4 AND r.falls > 0").final("up")
    assert told(afa) == [
        "No match in 8 events. The nearest misses:",
        "1. e.x > 4 of the arc a2 (falling -> up) does not hold: e.x is 3 in row 3",
        "   falling: rows 0, 1; up: row 3 (0 to 180)",
        "2. partition_by k: k is 'a' in row 0 and 'b' in row 2",
        "   falling: rows 0, 1; up: row 2 (0 to 120)",
    ]
    (reason,) = stretto.why_not(afa, EVENTS, time="t").reasons
    assert (reason.kind, reason.rows, reason.values) == ("condition", (3,), (("e.x", 3),))


def test_words_of_a_register() -> None:
    afa = automaton(partition_by=["k"]).arc("falling", "up", when="e.x > 2").epsilon("up", "end", when="r.falls > 7")
    assert (
        told(afa.final("end"), most=1)[1]
        == "1. r.falls > 7 of the arc a3 (up -> end) does not hold: r.falls is 1 in row 3"
    )


def test_words_of_a_function() -> None:
    afa = automaton(partition_by=["k"]).arc("falling", "up", when=lambda e, r: e.x > r.falls + 7).final("up")
    line = told(afa, key="b", most=1)[1]
    assert line.endswith("of the arc a2 (falling -> up) does not hold: e.x is 1, r.falls is 0 in row 7")


def test_words_of_a_window() -> None:
    afa = automaton(partition_by=["k"], window=60).arc("falling", "up", when="e.x > 2 AND r.falls > 0").final("up")
    assert told(afa) == [
        "No match in 8 events. The nearest miss:",
        "1. window=60: it lasts 180 (rows 0 to 3), and must last less than the window",
        "   falling: rows 0, 1; up: row 3 (0 to 180)",
    ]
    began = dt.datetime(2024, 1, 1)
    timed = [{**event, "t": began + dt.timedelta(seconds=event["t"])} for event in EVENTS]
    line = told(
        automaton(partition_by=["k"], window="1 minute").arc("falling", "up", when="e.x > 2").final("up"), timed
    )[1]
    assert line == "1. window=0:01:00: it lasts 3 min (rows 0 to 3), and must last less than the window"


def test_words_of_events_that_do_not_come() -> None:
    afa = automaton().arc("falling", "up").arc("up", "higher").final("higher")
    assert told(afa, EVENTS[:2]) == [
        "No match in 2 events. The nearest miss:",
        "1. it waits for the arc a3 (up -> higher): none comes behind row 1; the events end with row 1",
        "   falling: row 0; up: row 1 (0 to 60)",
    ]
    assert told(afa, EVENTS)[0] == "It does match in 8 events: falling: row 0; up: row 1; higher: row 2"
    nothing = pa.Table.from_pylist(EVENTS).slice(0, 0)
    assert told(afa, nothing)[1] == "1. it waits for the arc a0 (start -> falling): there are no events"


def test_a_key_and_a_time() -> None:
    afa = automaton(partition_by=["k"]).arc("falling", "up", when="e.x > 0").final("up")
    assert told(afa, key="b") == ["It does match in 3 events: falling: row 6; up: row 7"]
    assert told(afa, key="b", between=(None, 360))[0] == "No match in 2 events. The nearest miss:"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": None}, "an AFA needs the column that orders the stream: time='…'"),
        ({"time_unit": "s"}, "time_unit='s' says nothing about an automaton"),
        ({"key": 1}, "the query has no partition attribute"),
        ({"most": 0}, "most=0: one near miss at least"),
        ({"sequence": "n"}, "n"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    afa = automaton().final("falling")
    with pytest.raises(stretto.StrettoError) as caught:
        told(afa, **options)
    assert message in str(caught.value)


def test_what_is_broken_is_named() -> None:
    """Falls and a rise, one of which is broken: the answer names the arc and the row, and with the old value the output appears."""
    afa = stretto.AFA({"x": int}, register={"n": int}, start="s", window=100)
    afa = (
        afa.arc("s", "low", when="e.x = 0")
        .arc("low", "low", when="e.x < 0", then="n = r.n + 1")
        .ignore("low", "e.x > 50")
    )
    afa = afa.arc("low", "high", when="e.x > 10 AND e.x < 20 AND r.n > 2").final("high")
    for seed in range(cases(100, compiled=20)):
        choose = random.Random(seed)
        whole = [0, *(-choose.randint(1, 9) for _ in range(3)), choose.randint(11, 19)]
        for _ in range(choose.randint(0, 3)):
            whole.insert(choose.randint(1, len(whole) - 1), choose.randint(51, 60))
        at = choose.choice([at for at, x in enumerate(whole) if x <= 50])
        values = list(whole)
        values[at] = choose.randint(25, 40)

        def rows(given: list[int]) -> list[dict[str, int]]:
            return [{"t": place, "x": x} for place, x in enumerate(given)]

        assert stretto.match(afa, rows(whole), time="t").num_rows, seed
        answer = stretto.why_not(afa, rows(values), time="t")
        shown = f"seed {seed}: {whole} {values}\n{answer}"
        assert not answer.matches, shown
        assert any(at in one.rows for miss in answer.misses for one in miss.reasons), shown
