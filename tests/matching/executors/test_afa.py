"""``stretto.Matcher(afa, …)``: what people see of the AFA operator."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, LimitError, OptionError, QueryError, SnapshotError


def pairs(window: int | None = 10) -> stretto.AFA:
    """An a, and the b directly behind it."""
    afa = stretto.AFA({"kind": str}, window=window)
    return afa.arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").final("q2")


def rows(*events: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"t": t, "kind": kind} for t, kind in events]


def signed(table: pa.Table) -> list[tuple[int, int, int]]:
    """Sign, first and last row of each output."""
    return [(one["sign"], one["start"], one["end"]) for one in table.to_pylist()]


# ---- Events


def test_an_event_between_takes_a_match_back() -> None:
    matcher = stretto.Matcher(pairs(), time="t")
    assert signed(matcher.push(rows((1, "a"), (3, "b")))) == [(1, 0, 1)]
    assert signed(matcher.push(rows((2, "z")))) == [(-1, 0, 1)]
    assert matcher.stats["out_of_order"] == 1


def test_a_retraction_joins_what_it_stood_between() -> None:
    matcher = stretto.Matcher(pairs(), time="t", sign="s")
    given = [{"t": 1, "kind": "a", "s": 1}, {"t": 2, "kind": "z", "s": 1}, {"t": 3, "kind": "b", "s": 1}]
    assert matcher.push(given).num_rows == 0
    assert signed(matcher.push([{"t": 2, "kind": "z", "s": -1}])) == [(1, 0, 2)]


def test_a_revision_gives_its_net_difference() -> None:
    matcher = stretto.Matcher(pairs(), time="t", sign="s", sequence="n")
    given = [{"t": 1, "kind": "a", "s": 1, "n": 0}, {"t": 2, "kind": "b", "s": 1, "n": 0}]
    assert signed(matcher.push(given)) == [(1, 0, 1)]
    again = [{"t": 2, "kind": "b", "s": -1, "n": 0}, {"t": 2, "kind": "b", "s": 1, "n": 0}]
    assert matcher.push(again).num_rows == 0
    other = [{"t": 2, "kind": "b", "s": -1, "n": 0}, {"t": 2, "kind": "c", "s": 1, "n": 0}]
    assert signed(matcher.push(other)) == [(-1, 0, 1)]


@pytest.mark.parametrize("options", [{}, {"speculation": 100}, {"speculation": 100, "hold": "results"}])
@pytest.mark.parametrize("late", ["error", "drop", "side"])
def test_a_punctuation_between_makes_two_steps_of_a_revision(late: str, options: dict[str, Any]) -> None:
    """The retraction is taken, whatever becomes of the insertion that comes too late: in one push as in separate calls."""
    event = {"t": 5, "n": 0, "kind": "b"}
    found = []
    for together in (True, False):
        matcher = stretto.Matcher(pairs(), time="t", sign="s", sequence="n", late=late, **options)
        first = [{"t": 1, "n": 0, "kind": "a", "s": 1}, event | {"s": 1}]
        matcher.advance(0)
        assert signed(matcher.push(first)) == [(1, 0, 1)]
        got = []
        try:
            if together:
                got += signed(matcher.push([event | {"s": -1}, event | {"s": 1}], punctuations=[(1, 6)]))
            else:
                got += signed(matcher.push([event | {"s": -1}]))
                got += signed(matcher.advance(6))
                got += signed(matcher.push([event | {"s": 1}]))
        except DataError:
            if late != "error":
                raise
        got += signed(matcher.push([]))
        if together and late == "error" and options == {"speculation": 100}:  # a Cleanse refuses such a push as a whole
            assert got == []
            continue
        found.append((got, matcher.late, matcher.punctuation))
    assert set(map(str, found)) == {str(([(-1, 0, 1)], int(late != "error"), 6))}


def test_an_event_that_ends_before_it_begins_is_in_no_output_and_stands_between_others() -> None:
    matcher = stretto.Matcher(pairs(), time="t", until="u")
    assert signed(matcher.push([{"t": 1, "kind": "a", "u": 9}, {"t": 3, "kind": "b", "u": 9}])) == [(1, 0, 1)]
    assert signed(matcher.push([{"t": 2, "kind": "z", "u": 0}])) == [(-1, 0, 1)]
    matcher = stretto.Matcher(pairs(), time="t", until="u")
    assert signed(matcher.push([{"t": 1, "kind": "a", "u": 9}, {"t": 3, "kind": "b", "u": 2}])) == []


@pytest.mark.parametrize("options", [{}, {"speculation": 1}])
def test_a_retraction_by_payload_need_not_know_when_the_event_ends(options: dict[str, Any]) -> None:
    matcher = stretto.Matcher(pairs(), time="t", until="u", sign="s", **options)
    given = [{"t": 1, "kind": "a", "u": 9, "s": 1}, {"t": 3, "kind": "b", "u": 9, "s": 1}]
    found = signed(matcher.push([*given, {"t": 3, "kind": "b", "u": 8, "s": 1}]))
    found += signed(matcher.push([{"t": 3, "kind": "b", "u": None, "s": -1}]))  # the latest of both
    found += signed(matcher.push([{"t": 1, "kind": "a", "u": 7, "s": -1}]))
    found += signed(matcher.finish())
    assert sum(sign for sign, _, _ in found) == 0
    assert matcher.late == 0


def test_idle_is_what_no_later_event_can_meet() -> None:
    matcher = stretto.Matcher(pairs(), time="t")
    assert matcher.idle
    assert matcher.ends is None
    matcher.push(rows((1, "a"), (3, "b")))
    assert not matcher.idle
    assert matcher.ends == 13
    matcher.advance(12)
    assert not matcher.idle
    matcher.advance(13)
    assert matcher.idle
    waiting = stretto.Matcher(pairs(), time="t", speculation=0)
    waiting.push(rows((1, "a")))
    assert not waiting.idle
    waiting.finish()
    assert waiting.idle


def test_lifetimes_end_matches() -> None:
    matcher = stretto.Matcher(pairs(window=2), time="t")
    found = matcher.push(rows((1, "a"), (2, "b"), (5, "a"), (7, "b")))
    assert signed(found) == [(1, 0, 1)]
    assert found.column("until").to_pylist() == [3]


def test_without_a_window_lifetimes_have_no_end() -> None:
    found = stretto.Matcher(pairs(window=None), time="t").push(rows((1, "a"), (10**9, "b")))
    assert found.column("until").to_pylist() == [None]


def test_timestamps_and_durations() -> None:
    afa = stretto.AFA({"kind": str, "key": str}, window=dt.timedelta(seconds=2), partition_by="key")
    afa.arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").final("q2")
    noon = dt.datetime(2024, 5, 1, 12)
    given = [
        {"t": noon, "kind": "a", "key": "x"},
        {"t": noon + dt.timedelta(milliseconds=1999), "kind": "b", "key": "x"},
        {"t": noon, "kind": "a", "key": "y"},
        {"t": noon + dt.timedelta(seconds=2), "kind": "b", "key": "y"},
        {"t": noon, "kind": "a", "key": None},
    ]
    found = stretto.Matcher(afa, time="t").push(given).to_pylist()
    assert [(one["key"], one["end_time"], one["until"]) for one in found] == [
        ("x", noon + dt.timedelta(milliseconds=1999), noon + dt.timedelta(seconds=2))
    ]


def test_numbered_streams_never_take_back() -> None:
    matcher = stretto.Matcher(pairs(), time="t", numbered="n")
    given = [{"t": 1, "kind": "a", "n": 1}, {"t": 3, "kind": "b", "n": 3}]
    assert matcher.push(given).num_rows == 0  # number 2 is still to come
    assert matcher.push([{"t": 2, "kind": "b", "n": 2}]).to_pylist()[0]["end"] == 2


def test_match_takes_any_order() -> None:
    found = stretto.match(pairs(), rows((3, "b"), (1, "a"), (9, "a")), time="t")
    assert found.select(["start", "end", "start_time"]).to_pylist() == [{"start": 1, "end": 0, "start_time": 1}]
    assert "sign" not in found.column_names


# ---- Punctuation and clean-up


def test_punctuation_in_and_out() -> None:
    matcher = stretto.Matcher(pairs(), time="t")
    matcher.push(rows((1, "a"), (3, "b")))
    assert matcher.punctuation is None
    assert matcher.advance(3).num_rows == 0
    assert matcher.punctuation == 3
    matcher.push(rows((3, "c")))  # at the punctuation's time: on time
    with pytest.raises(DataError, match="row 3 is late: its time is 2, and the punctuation stands at 3"):
        matcher.push(rows((2, "z")))
    with pytest.raises(DataError, match="the punctuation goes back from 3 to 2"):
        matcher.advance(2)
    assert signed(matcher.push(rows((4, "a"), (5, "b")))) == [(1, 3, 4)]


def test_late_rows_are_counted_or_handed_over() -> None:
    for policy in ("drop", "side"):
        matcher = stretto.Matcher(pairs(), time="t", late=policy, sign="s")
        matcher.push([{"t": 5, "kind": "a", "s": 1}])
        matcher.advance(5)
        matcher.push([{"t": 4, "kind": "a", "s": 1}, {"t": 6, "kind": "b", "s": 1}, {"t": 7, "kind": "z", "s": -1}])
        assert matcher.late == 2
        if policy == "side":
            assert matcher.late_events().column("t").to_pylist() == [4, 7]
            assert matcher.late_events().num_rows == 0


def test_punctuations_stand_between_rows() -> None:
    matcher = stretto.Matcher(pairs(), time="t", late="drop")
    given = rows((1, "a"), (2, "b"), (1, "z"), (5, "a"))
    found = matcher.push(given, punctuations=[(2, 2), (4, 5)])
    assert signed(found) == [(1, 0, 1)]
    assert (matcher.late, matcher.punctuation) == (1, 5)
    with pytest.raises(DataError, match="punctuation 0 stands at row 7"):
        matcher.push(rows((6, "a")), punctuations=[(7, 6)])


def test_the_state_stays_small() -> None:
    afa = stretto.AFA({"kind": str, "key": str}, {"seen": str}, window=50, partition_by="key")
    afa.arc("q0", "q1", when="e.kind != 'x'", then="seen = e.kind").arc("q1", "q2", when="e.kind = r.seen").final("q2")
    matcher = stretto.Matcher(afa, time="t")
    choose = np.random.default_rng(3)
    sizes = []
    for batch in range(120):
        times = batch * 100 + np.sort(choose.integers(0, 100, 200))
        kinds = [f"k{batch}-{n}" for n in choose.integers(0, 100, 200)]
        keys = [f"key{batch}-{n}" for n in choose.integers(0, 60, 200)]
        matcher.push(pa.table({"t": times, "kind": kinds, "key": keys}))
        matcher.advance(batch * 100)
        sizes.append(matcher.stats["bytes"])
    assert max(sizes[60:]) <= 1.1 * max(sizes[:60])
    assert matcher.stats["partitions"] < 120 * 60


# ---- Arcs that change


def test_arcs_come_and_go() -> None:
    matcher = stretto.Matcher(pairs(), time="t")
    matcher.push(rows((1, "a")))
    matcher.add_arc("q1", "q2", when="e.kind = 'c'", id="c")
    assert [(arc.id, arc.since, arc.until) for arc in matcher.arcs()] == [
        ("a0", None, None),
        ("a1", None, None),
        ("c", 2, None),
    ]
    assert signed(matcher.push(rows((2, "c"), (3, "a")))) == [(1, 0, 1)]
    matcher.retire_arc("a1")
    assert matcher.push(rows((4, "b"))).num_rows == 0
    with pytest.raises(OptionError, match="no arc 'a1' is in force"):
        matcher.retire_arc("a1")
    with pytest.raises(OptionError, match="there is an arc 'c' already"):
        matcher.add_arc("q1", "q2", id="c")


def test_explicit_lifetimes_change_the_past() -> None:
    matcher = stretto.Matcher(pairs(), time="t", dynamic="explicit")
    matcher.push(rows((1, "a"), (2, "c"), (5, "a"), (6, "c")))
    assert signed(matcher.add_arc("q1", "q2", when="e.kind = 'c'", id="c", since=5)) == [(1, 2, 3)]
    assert signed(matcher.retire_arc("c", at=6)) == [(-1, 2, 3)]
    matcher.advance_arcs(7)
    with pytest.raises(DataError, match="the change of arc 'd' is late"):
        matcher.add_arc("q1", "q2", id="d", since=6)


def test_arcs_as_a_stream() -> None:
    changes = [
        {"row": 2, "action": "retire", "id": "a1"},
        {"row": 2, "action": "add", "id": "a1", "source": "q1", "target": "q2", "when": "e.kind = 'c'"},
        {"row": 4, "action": "retire", "id": "a1"},
    ]
    events = rows((1, "a"), (2, "b"), (3, "a"), (4, "c"), (5, "a"), (6, "c"), (7, "b"))
    matcher = stretto.Matcher(pairs(), time="t")
    assert signed(matcher.push(events, arcs=changes)) == [(1, 0, 1), (1, 2, 3)]
    one_by_one = stretto.Matcher(pairs(), time="t")
    found = signed(one_by_one.push(events[:2]))
    one_by_one.retire_arc("a1")
    one_by_one.add_arc("q1", "q2", when="e.kind = 'c'", id="a1")
    found += signed(one_by_one.push(events[2:4]))
    one_by_one.retire_arc("a1")
    assert found + signed(one_by_one.push(events[4:])) == [(1, 0, 1), (1, 2, 3)]
    assert matcher.arcs() == one_by_one.arcs()


def test_recorded_lifetimes_replay() -> None:
    events = rows((1, "a"), (2, "b"), (3, "a"), (4, "c"), (6, "b"), (5, "a"), (7, "a"), (8, "c"))
    matcher = stretto.Matcher(pairs(), time="t")
    total = signed(matcher.push(events[:2]))
    matcher.retire_arc("a1")
    matcher.add_arc("q1", "q2", when="e.kind = 'c'", id="a1")
    total += signed(matcher.push(events[2:5]))
    matcher.retire_arc("a1")
    matcher.add_arc("q1", "q2", when="e.kind = 'b'", id="a1")
    total += signed(matcher.push(events[5:]))
    recorded = matcher.arcs(retired=True)
    assert len(recorded) == len(matcher.arcs()) + 2
    empty = stretto.AFA({"kind": str}, window=10).arc("q0", "q2", when="e.kind = '?'", id="none").final("q2")
    again = stretto.Matcher(empty, time="t", dynamic="explicit")
    for number, arc in enumerate(recorded):
        when = None if arc.when is None else str(arc.when)
        again.add_arc(arc.source, arc.target, when=when, id=f"{arc.id}-{number}", since=arc.since, until=arc.until)
    assert net(signed(again.push(events))) == net(total) == {(0, 1), (2, 3)}


def net(outputs: list[tuple[int, int, int]]) -> set[tuple[int, int]]:
    """What is left after retractions."""
    left: set[tuple[int, int]] = set()
    for sign, first, last in outputs:
        (left.add if sign > 0 else left.remove)((first, last))
    return left


ADD = {"action": "add", "id": "c", "source": "q1", "target": "q2"}
RETIRE = {"action": "retire", "id": "a0"}


def test_mistakes_in_a_stream_of_arcs() -> None:
    for change, message in (
        ({"action": "retire", "id": "x"}, r"change 1 of the arcs \('x'\): no arc 'x' is in force; known arcs: a1"),
        (
            {"action": "add", "id": "a1", "source": "q0", "target": "q1"},
            r"\('a1'\): there is an arc 'a1' in force already; ret",
        ),
        (
            {"action": "ad", "id": "a1"},
            r"\('a1'\), column 'action': 'ad', expected 'add' or 'retire'; did you mean 'add'\?",
        ),
        (
            {"action": "retire", "id": "a1", "row": 9},
            r"\('a1'\), column 'row': 9, where rows go up, from 0 to the 1 of the ba",
        ),
        (
            {"action": "retire", "id": "a1", "row": None},
            r"\('a1'\), column 'row': is NULL; rows go from 0 to the 1 of the",
        ),
        ({"action": None, "id": "a1"}, r"\('a1'\), column 'action': NULL, expected 'add' or 'retire'"),
        ({"action": "retire", "id": None}, "change 1 of the arcs has no id: the column 'id' is NULL"),
        (ADD | {"source": None}, r"\('c'\), column 'source': NULL, expected the name of a state"),
        (ADD | {"kind": "ignored"}, r"\('c'\): kind='ignored': expected 'consume', 'epsilon' or 'ignore'"),
        (
            ADD | {"kind": "ignore"},
            r"\('c'\): an ignorable arc stays in its state, and this one leads from 'q1' to 'q2'",
        ),
        (ADD | {"final": "often"}, r"\('c'\), column 'final': 'often', expected 'every', 'on_enter' or NULL"),
        (ADD | {"final": "on_enter"}, r"\('c'\), column 'final': the state 'q2' is final already, with emit='every'"),
        (
            {"action": "retire", "id": "a1", "final": "every"},
            r"\('a1'\), column 'final': an addition makes its target final",
        ),
        (
            ADD | {"until": 5},
            r"\('c'\), column 'until': an arc has an end of its own only with Matcher\(…, dynamic='explicit'",
        ),
        (ADD | {"since": 1}, r"\('c'\): since 1 concerns events that were seen"),
        (ADD | {"since": "soon"}, r"\('c'\), column 'since': 'soon' is no time of 't', which is int64"),
        (
            {"action": "retire", "id": "a1", "since": 5},
            r"\('a1'\), column 'since': a retirement says until when the arc is",
        ),
    ):
        matcher = stretto.Matcher(pairs(), time="t")
        with pytest.raises(DataError, match=message):
            matcher.push(rows((1, "a")), arcs=[RETIRE | {"row": 0}, {"row": 1} | change])
        if "concerns events" in message:  # which is known only when the rows before it have been taken
            assert matcher.stats["rows"] == 1
            continue
        assert signed(matcher.push(rows((1, "a"), (2, "b")))) == [(1, 0, 1)]
    for change, place, hint in (
        ({"when": "e.knd = 'c'"}, "column 'when': the event has no attribute 'knd'", "did you mean 'kind'?"),
        ({"then": "n = r.m"}, "column 'then': the register has no field 'm'", "known fields: n"),
        ({"when": "r.n >"}, "column 'when': the fence ends too early", None),
    ):
        afa = stretto.AFA({"kind": str}, {"n": int}).arc("q0", "q1", id="a0").arc("q1", "q2").final("q2")
        matcher = stretto.Matcher(afa, time="t")
        with pytest.raises(QueryError) as error:
            matcher.push(rows((1, "a")), arcs=[RETIRE, ADD | change])
        assert error.value.message.startswith(f"change 1 of the arcs ('c'), {place}")
        assert error.value.hint == hint
        assert error.value.text == next(iter(change.values()))
        assert error.value.column is not None
        assert matcher.stats["rows"] == 0
    with pytest.raises(DataError, match="the changes of arcs: cannot read events from int"):
        matcher.push(rows((1, "a")), arcs=3)
    with pytest.raises(
        DataError, match="the changes of arcs: column 'row' is double; it counts the rows before, as an integer"
    ):
        matcher.push(rows((1, "a")), arcs=[RETIRE | {"row": 0.5}])
    matcher = stretto.Matcher(pairs(), time="t")
    assert signed(matcher.push(rows((1, "a"), (2, "b")))) == [(1, 0, 1)]


def test_arcs_with_lifetimes_as_a_stream() -> None:
    """As one by one, between the rows of any pushes."""
    noon = dt.datetime(2024, 5, 1, 12)
    times = [noon + dt.timedelta(seconds=s) for s in (1, 2, 3, 5, 4, 6, 7, 8)]
    events = pa.table({"t": times, "kind": list("acbacabc")})
    changes = [
        {"row": 0, "action": "retire", "id": "a1"},
        {"row": 2, "action": "add", "id": "c", "when": "e.kind = 'c'", "since": times[1]},
        {"row": 5, "action": "retire", "id": "c", "until": times[4]},
        {
            "row": 5,
            "action": "add",
            "id": "b",
            "when": "e.kind = 'b'",
            "since": times[2],
            "until": times[-1],
            "final": "every",
        },
        {"row": 8, "action": "retire", "id": "b"},
    ]
    for one in changes:
        if one["action"] == "add":
            one |= {"source": "q1", "target": "q2" if one["id"] == "c" else "q3"}
    single = stretto.Matcher(pairs(window=None), time="t", dynamic="explicit")
    wanted = []
    for row in range(events.num_rows + 1):
        for one in changes:
            if one["row"] == row and one["action"] == "retire":
                wanted += signed(single.retire_arc(one["id"], at=one.get("until")))
            elif one["row"] == row:
                named = {name: one.get(name) for name in ("when", "id", "since", "until", "final")}
                wanted += signed(single.add_arc(one["source"], one["target"], **named))
        wanted += signed(single.push(events.slice(row, 1)))
    assert wanted == [(1, 0, 1), (1, 5, 6), (-1, 5, 6)]
    for size in (1, 3, 8):
        matcher = stretto.Matcher(pairs(window=None), events.schema, time="t", dynamic="explicit")
        found = []
        for begin in range(0, events.num_rows, size):
            end = min(begin + size, events.num_rows)
            here = [one for one in changes if begin <= one["row"] < end or one["row"] == end == events.num_rows]
            own = [one | {"row": one["row"] - begin} for one in here]
            found += signed(matcher.push(events.slice(begin, size), arcs=own or None))
        assert found == wanted
        assert matcher.arcs() == single.arcs()


def test_mistakes_in_lifetimes_as_a_stream() -> None:
    for change, message in (
        (
            ADD | {"since": 5, "until": 5},
            r"change 0 of the arcs \('c'\): the arc would never be valid: since 5, until 5",
        ),
        (
            ADD | {"since": 2},
            r"\('c'\): it is late, as it concerns events from 2 on, and the arcs' punctuation stands at 4",
        ),
        (
            RETIRE,
            r"\('a0'\): it is late, as it concerns events from the first on, and the arcs' punctuation stands at 4",
        ),
        (ADD | {"id": "a0", "since": 6}, r"\('a0'\): there is an arc 'a0' in force already"),
        (RETIRE | {"id": "c"}, r"\('c'\): no arc 'c' is in force; known arcs: a0, a1"),
    ):
        matcher = stretto.Matcher(pairs(), time="t", dynamic="explicit")
        matcher.push(rows((1, "a")))
        matcher.advance_arcs(4)
        with pytest.raises(DataError, match=message):
            matcher.push(rows((2, "b")), arcs=[change])
        assert [arc.id for arc in matcher.arcs()] == ["a0", "a1"]
        assert signed(matcher.push(rows((2, "b")))) == [(1, 0, 1)]
    matcher = stretto.Matcher(counting(), time="t", dynamic="explicit")
    grows = {
        "action": "add",
        "id": "g",
        "source": "q1",
        "target": "q4",
        "then": "n = r.n * 10000000000",
        "final": "every",
    }
    with pytest.raises(
        DataError, match=r"change 0 of the arcs \('g'\): arc 'g' \(q1 -> q4\): an integer leaves 64 bits at an ev"
    ):
        matcher.push([{"t": 1, "x": 2**30}, {"t": 2, "x": 1}, {"t": 3, "x": 1}], arcs=[{"row": 2} | grows])
    assert [arc.id for arc in matcher.arcs()] == ["a0", "a1"]
    assert len(signed(matcher.push([{"t": 3, "x": 1}]))) == 6
    assert "q4" not in matcher._executor.run.tables.finals


def test_arcs_that_are_valid_later_as_a_stream() -> None:
    later = ADD | {"when": "e.kind = 'c'", "since": 5, "row": 1, "target": "end", "final": "on_enter"}
    matcher = stretto.Matcher(pairs(), time="t")
    found = matcher.push(rows((1, "a"), (2, "c"), (3, "a"), (5, "c"), (4, "z"), (6, "a"), (7, "c")), arcs=[later])
    assert signed(found) == [(1, 2, 3), (-1, 2, 3), (1, 5, 6)]
    assert [(arc.id, arc.since) for arc in matcher.arcs()] == [("a0", None), ("a1", None), ("c", 5)]


def test_a_new_function_that_is_needed_at_once_waits_for_none_that_is_not() -> None:
    afa = stretto.AFA({"x": int}, {"n": int}).arc("q0", "q1", when="e.x > 0").final("q1")
    matcher = stretto.Matcher(afa, time="t")
    matcher.push([{"t": 1, "x": 1}])
    code = matcher._executor.run.code
    compilation, slow = code.compilation, threading.Event()

    def slowly() -> Any:
        compiled = compilation()
        return lambda: (slow.wait(1.0), compiled())[1]

    code.compilation = slowly
    matcher.add_arc("q1", "q2", when="e.x > r.n + 3", then="n = r.n + 7", id="later", since=10, final="every")
    code.compilation = compilation
    matcher.add_arc("q1", "q3", when="e.x > r.n * 5", then="n = r.n - 2", id="now", final="every")
    slow.set()
    found = matcher.push([{"t": 2, "x": 9}])
    assert [one["register"]["n"] for one in found.to_pylist()] == [-2, 0]


def test_an_event_is_found_by_its_payload_after_arcs_that_read_more_of_it() -> None:
    afa = stretto.AFA({"c": int, "s": str}, {"n": int}).arc("q0", "q1", when="e.s = 'x'").final("q1")
    matcher = stretto.Matcher(afa, time="t", sign="sign")
    event = {"t": 1, "c": 3, "s": "x"}
    assert signed(matcher.push([event | {"sign": 1}])) == [(1, 0, 0)]
    matcher.add_arc("q0", "q2", when="e.s >= 'x' OR e.c - e.c >= r.n", id="more", final="every")
    assert signed(matcher.push([event | {"sign": -1}])) == [(-1, 0, 0)]


def test_a_new_function_compiles_while_others_go_on() -> None:
    afa = stretto.AFA({"x": int}, {"n": int}).arc("q0", "q1", when="e.x > 0").final("q1")
    matcher = stretto.Matcher(afa, time="t")
    assert matcher.push([{"t": 1, "x": 1}]).num_rows == 1
    matcher.add_arc("q1", "q2", when="e.x > r.n + 3", then="n = r.n + 7", id="later", since=10, final="every")
    assert matcher.push([{"t": 5, "x": 9}]).num_rows == 1
    found = matcher.push([{"t": 10, "x": 9}])
    assert [one["register"]["n"] for one in found.to_pylist()] == [7, 0]
    with pytest.raises(OptionError, match="since=10 concerns events that were seen"):
        matcher.add_arc("q1", "q2", when="e.x > 3", id="k", since=10)


def test_an_arc_that_differs_in_constants_compiles_nothing() -> None:
    afa = (
        stretto.AFA({"x": int}, {"n": int}).arc("q0", "q1", then="n = e.x").arc("q1", "q2", when="r.n > 3").final("q2")
    )
    matcher = stretto.Matcher(afa, time="t")
    matcher.push([{"t": 1, "x": 5}])
    matcher.add_arc("q1", "q2", when="r.n > 4", id="b")
    code = matcher._executor.run.code
    before = code.version
    matcher.add_arc("q1", "q2", when="r.n > 100", id="c")
    matcher.retire_arc("a1")
    matcher.add_arc("q1", "q2", when="r.n > 3", id="a1")
    assert code.version == before


# ---- Mistakes


def counting(**options: Any) -> stretto.AFA:
    afa = stretto.AFA({"x": int}, {"n": int}, **options)
    return afa.arc("q0", "q1", then="n = e.x").arc("q1", "q1", then="n = r.n * e.x").final("q1")


def test_a_transfer_that_overflows() -> None:
    matcher = stretto.Matcher(counting(), time="t")
    given = [{"t": 1, "x": 2**40}, {"t": 2, "x": 2}, {"t": 3, "x": 2**40}, {"t": 4, "x": 3}]
    with pytest.raises(DataError, match=r"arc 'a1' \(q1 -> q1\): an integer leaves 64 bits at row 2"):
        matcher.push(given)
    # The rows before have been taken; their output comes with the next call.
    found = matcher.push([{"t": 3, "x": 1}])
    assert [one["register"]["n"] for one in found.to_pylist()] == [2**40, 2**41, 2, 2**41, 2, 1]
    assert matcher.stats["rows"] == 3


def test_null_does_not_fit_a_register() -> None:
    matcher = stretto.Matcher(counting(), time="t")
    with pytest.raises(DataError, match="a field of the register would be NULL at row 0"):
        matcher.push([{"t": 1, "x": None}])
    assert matcher.push([{"t": 1, "x": 1}]).num_rows == 1


def test_division_by_zero_is_no_condition_that_holds() -> None:
    afa = stretto.AFA({"x": int}, {"n": int}).arc("q0", "q1", when="10 / e.x > 1 AND e.x / r.n < 100").final("q1")
    assert stretto.Matcher(afa, time="t").push([{"t": 1, "x": 0}, {"t": 2, "x": 5}]).num_rows == 0


def test_a_python_function_that_raises() -> None:
    afa = stretto.AFA({"x": int}, {"n": int}).arc("q0", "q1", when=lambda e, r: 10 // e.x > 1).final("q1")
    matcher = stretto.Matcher(afa, time="t")
    with pytest.raises(DataError, match=r"arc 'a0' \(q0 -> q1\): its Python function raised an error at row 1"):
        matcher.push([{"t": 1, "x": 2}, {"t": 2, "x": 0}])
    assert signed(matcher.push([{"t": 2, "x": 1}])) == [(1, 0, 0), (1, 1, 1)]


def test_an_epsilon_cycle_that_grows() -> None:
    afa = stretto.AFA({"x": int}, {"n": int}).arc("q0", "q1", when="e.x > 0")
    afa.epsilon("q1", "q2", then="n = r.n + 1").epsilon("q2", "q1").final("q2")
    matcher = stretto.Matcher(afa, time="t")
    with pytest.raises(
        LimitError, match=r"its ε-cycle .*q1.*q2.* goes on without end at row 1.*\n*hint: a fence on one"
    ):
        matcher.push([{"t": 1, "x": 0}, {"t": 2, "x": 1}])
    assert matcher.push([{"t": 2, "x": 0}]).num_rows == 0


def test_two_events_in_one_place() -> None:
    matcher = stretto.Matcher(pairs(), time="t", sequence="n")
    matcher.push([{"t": 1, "n": 1, "kind": "a"}])
    with pytest.raises(DataError, match="another event with the time 1 and the sequence number 1"):
        matcher.push([{"t": 1, "n": 1, "kind": "b"}])


def test_a_retraction_of_the_unknown() -> None:
    matcher = stretto.Matcher(pairs(), time="t", sign="s")
    matcher.push([{"t": 1, "kind": "a", "s": 1}])
    with pytest.raises(DataError, match="row 1 retracts an event that is not there: no event has its time and payload"):
        matcher.push([{"t": 1, "kind": "b", "s": -1}])
    with pytest.raises(DataError, match=r"'s' \(sign\) is 2 at row 1; it is \+1 or"):
        matcher.push([{"t": 1, "kind": "b", "s": 2}])


def test_options_that_do_not_fit() -> None:
    for options, message in (
        ({}, "time='…'"),
        ({"time": "t", "late": "maybe"}, "late='maybe'"),
        ({"time": "t", "sequence": "n", "numbered": "m"}, "leave out sequence="),
        ({"time": "t", "ordered": True, "sign": "s"}, "leave out sign="),
        ({"time": "t", "timer": "kind"}, "timer='kind'"),
    ):
        with pytest.raises(OptionError, match=message):
            stretto.Matcher(pairs(), **options)
    with pytest.raises(DataError, match=r"the events have no column 't' \(time\)"):
        stretto.Matcher(pairs(), time="t").push([{"kind": "a"}])
    with pytest.raises(OptionError, match="a window of 0:02:00 over 't'"):
        stretto.Matcher(stretto.AFA({"kind": str}, window="2 minutes").arc("q0", "q1").final("q1"), time="t").push(
            rows((1, "a"))
        )


def test_after_the_end() -> None:
    matcher = stretto.Matcher(pairs(), time="t")
    matcher.push(rows((1, "a")))
    assert repr(matcher) == "<stretto.Matcher: 1 rows read, 1 partial matches>"
    assert matcher.finish().num_rows == 0
    for call in (
        lambda: matcher.push(rows((2, "b"))),
        lambda: matcher.advance(5),
        lambda: matcher.add_arc("q1", "q2", id="x"),
        lambda: matcher.retire_arc("a1"),
    ):
        with pytest.raises(OptionError, match="the matcher is finished"):
            call()


def test_a_punctuation_is_about_events() -> None:
    matcher = stretto.Matcher(counting(), time="t")
    with pytest.raises(OptionError, match=r"a punctuation is about events: leave out r\.n"):
        matcher.advance(3, where="e.x > r.n")


# ---- Provenance, timers, snapshots


def test_provenance_outlives_clean_up() -> None:
    afa = stretto.AFA({"kind": str}, window=100).arc("q0", "q1", when="e.kind = 'a'")
    afa.arc("q1", "q1", when="e.kind = 'm'").arc("q1", "q2", when="e.kind = 'b'").final("q2")
    matcher = stretto.Matcher(afa, time="t", provenance=True)
    matcher.push(rows((3, "m"), (1, "a"), (2, "m")))
    matcher.advance(3)
    matcher.advance(4)
    again = stretto.Matcher(afa, time="t", provenance=True).restore(matcher.snapshot())
    for one in (matcher, again):
        assert one.push(rows((5, "b"))).column("positions").to_pylist() == [[1, 2, 0, 3]]


def test_the_end_of_a_window() -> None:
    """Appendix E, figure 18: a trade of A, and none of B for 300 seconds."""
    afa = stretto.AFA({"t": int, "stock": str, "eow": bool}, {"deadline": int}, window=1000)
    afa.arc("q0", "q1", when="e.stock = 'A'", then="deadline = e.t + 300")
    afa.arc("q1", "q1", when="(e.eow OR e.stock != 'B') AND e.t < r.deadline")
    afa.arc("q1", "q2", when="e.t >= r.deadline").final("q2")
    matcher = stretto.Matcher(afa, time="t", timer="eow")
    given = [(1, "A"), (5, "C"), (20, "B"), (30, "A")]
    assert matcher.push([{"t": t, "stock": stock} for t, stock in given]).num_rows == 0
    assert matcher.advance(329).num_rows == 0
    assert signed(matcher.advance(330)) == [(1, 3, None)]
    assert matcher.advance(330).num_rows == 0


def test_snapshots_are_of_one_automaton() -> None:
    matcher = stretto.Matcher(pairs(), time="t")
    matcher.push(rows((1, "a")))
    kept = matcher.snapshot()
    restored = stretto.Matcher(pairs(), time="t").restore(kept)
    assert signed(restored.push(rows((2, "b")))) == [(1, 0, 1)]
    other = stretto.AFA({"kind": str}, {"n": int}, window=10)
    other.arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").final("q2")
    with pytest.raises(SnapshotError, match="register"):
        stretto.Matcher(other, time="t").restore(kept)
    with pytest.raises(SnapshotError, match="options"):
        stretto.Matcher(pairs(), time="t", bag=True).restore(kept)
    with pytest.raises(SnapshotError, match="damaged"):
        stretto.Matcher(pairs(), time="t").restore(kept[:-3] + b"xyz")
    with pytest.raises(SnapshotError, match="of an AFA"):
        stretto.Matcher("SELECT * FROM S WHERE A").restore(kept)


def test_a_null_string_is_retracted_after_a_snapshot() -> None:
    matcher = stretto.Matcher(pairs(), time="t", sign="s")
    matcher.push([{"t": 1, "kind": "x", "s": 1}, {"t": 2, "kind": None, "s": 1}, {"t": 2, "kind": "a", "s": 1}])
    again = stretto.Matcher(pairs(), time="t", sign="s").restore(matcher.snapshot())
    assert again.push([{"t": 2, "kind": None, "s": -1}, {"t": 3, "kind": "b", "s": 1}]).num_rows == 1


def test_later_arcs_with_functions_are_in_no_snapshot() -> None:
    matcher = stretto.Matcher(pairs(), time="t")
    matcher.push(rows((1, "a")))
    matcher.add_arc("q1", "q2", when=lambda e, r: True, id="f")
    with pytest.raises(SnapshotError, match="the arc 'f', which was added later, has a Python function"):
        matcher.snapshot()


def test_many_registers_of_one_start_are_found_again() -> None:
    """Each event doubles the computations, and the registers tell some thousands of them apart."""
    afa = stretto.AFA({"x": int}, {"n": int})
    afa.arc("q0", "q1", then="n = e.x").arc("q1", "q1", then="n = (r.n + e.x) % 5003").arc("q1", "q1").final("q1")
    values = [(i * i * i * 97 + 13) % 5003 for i in range(12)]
    found = stretto.match(afa, [{"t": t, "x": x} for t, x in enumerate(values)], time="t")
    sums = {values[0]}
    for value in values[1:]:
        sums |= {(one + value) % 5003 for one in sums}
    last = [one["register"]["n"] for one in found.to_pylist() if (one["start"], one["end"]) == (0, 11)]
    assert last == sorted(sums)
    assert len(last) > 500


def test_output_before_a_mistake_is_not_lost_by_a_change_of_arcs() -> None:
    matcher = stretto.Matcher(counting(), time="t", dynamic="explicit")
    with pytest.raises(DataError, match="an integer leaves 64 bits at row 2"):
        matcher.push([{"t": 1, "x": 2**40}, {"t": 2, "x": 2}, {"t": 3, "x": 2**40}])
    found = matcher.retire_arc("a1", at=2).to_pylist()
    assert [(one["sign"], one["register"]["n"]) for one in found] == [(1, 2**40), (1, 2**41), (1, 2), (-1, 2**41)]
    with pytest.raises(
        DataError, match=r"arc 'more' \(q1 -> q1\): an integer leaves 64 bits at an event that it would"
    ):
        matcher.add_arc("q1", "q1", id="more", then="n = r.n * 10000000", final="every")
    assert [arc.id for arc in matcher.arcs()] == ["a0", "a1"]
    assert matcher.push([{"t": 3, "x": 1}]).num_rows == 1


def test_a_state_in_which_matches_wait_does_not_become_final() -> None:
    matcher = stretto.Matcher(pairs(), time="t")
    matcher.push(rows((1, "a")))
    with pytest.raises(OptionError, match="the state 'q1' cannot become final: a partial match waits in it"):
        matcher.add_arc("q0", "q1", when="e.kind = 'c'", id="c", final="every")
    with pytest.raises(OptionError, match="final='often': expected 'every' or 'on_enter'"):
        matcher.add_arc("q0", "q9", when="e.kind = 'c'", id="c", final="often")
    assert [arc.id for arc in matcher.arcs()] == ["a0", "a1"]
    matcher.push(rows((2, "b"), (3, "z")))
    matcher.advance(3)
    matcher.add_arc("q0", "q1", when="e.kind = 'c'", id="c", final="on_enter")
    assert signed(matcher.push(rows((4, "c"), (5, "a"), (6, "b")))) == [(1, 3, 3), (1, 4, 4), (1, 4, 5)]
