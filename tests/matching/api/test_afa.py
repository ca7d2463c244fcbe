"""``stretto.match`` of an AFA."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.matching.api import match as calls

EVENTS = [{"t": 3, "kind": "b"}, {"t": 1, "kind": "a"}]


@pytest.fixture
def afa() -> stretto.AFA:
    built = stretto.AFA({"kind": str}, window=10)
    return built.arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").final("q2")


def test_rows_are_those_of_the_input(afa: stretto.AFA) -> None:
    expected = [{"start": 1, "end": 0, "start_time": 1, "end_time": 3, "until": 11, "register": {}}]
    assert stretto.match(afa, EVENTS, time="t").to_pylist() == expected
    assert stretto.match(afa.frozen, EVENTS, time="t").to_pylist() == expected


@pytest.mark.parametrize(
    "option",
    [{"output": "positions"}, {"valuations": True}, {"time_unit": "s"}, {"language": "sase"}, {"type": "kind"}],
)
def test_options_of_queries_are_refused(afa: stretto.AFA, option: dict[str, Any]) -> None:
    with pytest.raises(stretto.OptionError, match=f"{next(iter(option))}=.* is for queries in CEQL or SASE"):
        stretto.match(afa, EVENTS, time="t", **option)


def test_unknown_options_are_refused(afa: stretto.AFA) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'late'"):
        stretto.match(afa, EVENTS, time="t", late="drop")
    with pytest.raises(TypeError, match="unexpected keyword argument 'bag'"):
        stretto.match("SELECT * FROM S WHERE b", EVENTS, type="kind", bag=True)


def test_pieces_are_the_whole(afa: stretto.AFA, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CHUNK", 3)
    events = [{"t": at * 7 % 20, "kind": "ab"[at % 2]} for at in range(20)]
    pieces = list(stretto.iter_matches(afa, events, time="t", provenance=True))
    whole = stretto.match(afa, events, time="t", provenance=True)
    assert len(pieces) == 7
    assert pa.concat_tables(pieces) == whole
    for row in whole.to_pylist():
        assert row["positions"] == [row["start"], row["end"]]
        assert events[row["start"]]["t"] + 1 == events[row["end"]]["t"] == row["end_time"]
    with pytest.raises(stretto.OptionError, match="output='positions' is for queries"):
        stretto.iter_matches(afa, events, time="t", output="positions")
    with pytest.raises(stretto.OptionError, match="an AFA needs the column that orders the stream"):
        next(stretto.iter_matches(afa, events))


def test_mistakes_name_rows_of_the_input() -> None:
    afa = stretto.AFA({"x": int}, {"n": int}).arc("q0", "q1", then="n = e.x * e.x").final("q1")
    with pytest.raises(stretto.DataError, match="an integer leaves 64 bits at row 0"):
        stretto.match(afa, [{"t": 9, "x": 2**40}, {"t": 1, "x": 1}], time="t")


def test_what_takes_queries_says_what_takes_an_afa(afa: stretto.AFA) -> None:
    for call in (stretto.compile, lambda one: stretto.compile(one.frozen)):
        with pytest.raises(stretto.OptionError, match=r"an AFA is no query: give it as it is to stretto\.match\(afa"):
            call(afa)
    with pytest.raises(stretto.OptionError, match=r"an AFA is no query: give it as it is to stretto\.match\(afa"):
        stretto.match_sets(afa, EVENTS)  # type: ignore[arg-type]


def test_an_empty_graph_is_for_arcs_to_come() -> None:
    empty = stretto.AFA({"kind": str}, window=10)
    with pytest.raises(stretto.OptionError, match="the AFA has no arcs, so that nothing can match"):
        stretto.match(empty, EVENTS, time="t")
    assert "there are no arcs yet" in empty.explain()
    matcher = stretto.Matcher(empty, time="t")
    matcher.add_arc("q0", "q1", when="e.kind = 'a'", id="a")
    matcher.add_arc("q1", "q2", when="e.kind = 'b'", id="b", final="every")
    assert matcher.push(EVENTS).column("sign").to_pylist() == [1]
    again = stretto.Matcher(empty, time="t").restore(matcher.snapshot())
    assert again.push([{"t": 4, "kind": "a"}, {"t": 5, "kind": "b"}]).column("start").to_pylist() == [2]


def test_time_is_needed(afa: stretto.AFA) -> None:
    with pytest.raises(stretto.OptionError, match="needs the column that orders the stream"):
        stretto.match(afa, EVENTS)


def test_an_arc_that_was_retired_for_all_events_may_come_back(afa: stretto.AFA) -> None:
    matcher = stretto.Matcher(afa, time="t", dynamic="explicit")
    matcher.push(EVENTS)
    assert matcher.retire_arc("a0").column("sign").to_pylist() == [-1]
    assert [arc.id for arc in matcher.arcs()] == ["a1"]
    with pytest.raises(stretto.OptionError, match="no arc 'a0' is in force; known arcs: a1"):
        matcher.retire_arc("a0")
    assert matcher.add_arc("q0", "q1", when="e.kind = 'a'", id="a0").column("sign").to_pylist() == [1]
    assert sorted(arc.id for arc in matcher.arcs()) == ["a0", "a1"]


def test_a_wrong_time_before_the_first_batch_decides_nothing(afa: stretto.AFA) -> None:
    matcher = stretto.Matcher(afa, time="t")
    for wrong in (1.5, True):
        with pytest.raises(stretto.OptionError, match=f"{wrong} is no time of 't', which is int64"):
            matcher.advance(wrong)
    matcher.advance(1)
    with pytest.raises(stretto.OptionError, match=r"2\.5 is no time of 't'"):
        matcher.advance(2.5)
    assert matcher.punctuation == 1
    assert matcher.push(EVENTS).num_rows == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"then": {"n": "1"}}, "column 'then' is struct<n: string>; it holds texts"),
        ({"finals": "every"}, "have a column 'finals', which says nothing; did you mean 'final'?"),
    ],
)
def test_changes_of_arcs_have_known_columns(afa: stretto.AFA, change: dict[str, Any], message: str) -> None:
    matcher = stretto.Matcher(afa, time="t")
    new = {"row": 0, "action": "add", "id": "x", "source": "q0", "target": "q1", **change}
    with pytest.raises(stretto.DataError, match=message):
        matcher.push(EVENTS, arcs=[new])
    assert matcher.push(EVENTS).num_rows == 1


def test_a_snapshot_names_the_option_that_differs(afa: stretto.AFA) -> None:
    saved = stretto.Matcher(afa, time="t").snapshot()
    with pytest.raises(stretto.SnapshotError, match="other options: bag is False there, True here"):
        stretto.Matcher(afa, time="t", bag=True).restore(saved)


@pytest.fixture
def waiting() -> stretto.AFA:
    """An ``a`` without a ``b`` in the 5 ticks after it."""
    built = stretto.AFA({"t": int, "kind": str, "eow": bool}, register={"due": int}, window=50)
    over, denied = "e.eow AND e.t > r.due", "e.kind = 'b' AND e.t <= r.due"
    built.arc("q0", "q1", when="e.kind = 'a'", then="due = e.t + 5").arc("q1", "q2", when=over)
    return built.ignore("q1", when=f"NOT ({over}) AND NOT ({denied})").final("q2")


def test_the_end_of_a_window_has_no_row(waiting: stretto.AFA) -> None:
    matcher = stretto.Matcher(waiting, time="t", timer="eow", provenance=True)
    matcher.push([{"t": 0, "kind": "a"}, {"t": 1, "kind": "c"}])
    matcher.advance(3)
    found = matcher.advance(10)
    assert found.select(["start", "end", "positions"]).to_pylist() == [{"start": 0, "end": None, "positions": [0, 1]}]


def test_a_timer_needs_punctuations_of_their_own(waiting: stretto.AFA) -> None:
    matcher = stretto.Matcher(waiting, time="t", timer="eow")
    with pytest.raises(stretto.OptionError, match=r"give them by advance\(\)"):
        matcher.push([{"t": 0, "kind": "a"}], punctuations=[(1, 10)])
    assert matcher.stats["rows"] == 0
