"""How long a question may take: one bound for all queries of a call, behind which no query without a constraint is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import stretto
from stretto.asking import trying
from stretto.asking.afa_events import AfaTrial
from stretto.asking.row_events import RowTrial
from stretto.asking.trying import Trial

EVENTS = [{"type": kind, "t": at, "x": at % 4} for at, kind in enumerate("ABCABCABC")]
CEQL = "SELECT * FROM S WHERE A AS a ; B AS b FILTER b[x > 5] AND a[x < 0] WITHIN 1 [t]"
BOTH = "SELECT * FROM S WHERE (A AS a ; B AS b FILTER b[x > 5]) OR (A AS a ; C AS c FILTER c[x > 5])"
CLAUSE = "MATCH_RECOGNIZE (ORDER BY t PATTERN (A B) DEFINE A AS type = 'A' AND x < 0, B AS type = 'B' AND x > 5)"
SASE = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.x < 0 AND b.x > 5 } WITHIN 1"
EQL = "sequence [A where x < 0] [B where x > 5]"
AUTOMATON = (
    stretto.AFA({"type": str, "x": int})
    .arc("q0", "q1", when="e.type = 'A' AND e.x < 0")
    .arc("q1", "q2", when="e.type = 'B' AND e.x > 5")
    .final("q2")
)
NOTE = "Not all queries without a constraint were looked at: they may take 10 times as long as the query and 10 seconds"


@pytest.mark.parametrize(
    ("query", "trial", "options", "most"),
    [
        (CEQL, Trial, {"time": "t"}, 1),
        (BOTH, Trial, {}, 2),
        (SASE, Trial, {"time": "t"}, 1),
        (EQL, Trial, {"time": "t", "language": "eql"}, 1),
        (CLAUSE, RowTrial, {}, 1),
        (AUTOMATON, AfaTrial, {"time": "t"}, 1),
    ],
)
def test_a_question_has_one_bound(
    query: Any, trial: type, options: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = stretto.why_not(query, EVENTS, **options)
    assert whole.misses
    assert not whole.notes
    runs = counted(trial, monkeypatch)
    at_most(0.0, monkeypatch)
    answer = stretto.why_not(query, EVENTS, **options)
    # The query is run as it is, of which the answer speaks, and nothing else.
    assert len(runs) == most
    assert not answer.misses
    assert answer.match is None
    assert [note.startswith(NOTE) for note in answer.notes] == [True]


def test_what_was_found_before_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """However far it gets, nothing is said of what was not looked at."""
    whole, clock = stretto.why_not(CEQL, EVENTS, time="t"), Clock()
    monkeypatch.setattr(trying, "process_time", clock)
    runs, told = counted(Trial, monkeypatch, clock.goes_on), set()
    for seconds in range(30):
        at_most(float(seconds), monkeypatch)
        runs.clear()
        answer = stretto.why_not(CEQL, EVENTS, time="t")
        assert len(runs) <= seconds + 1
        assert bool(answer.notes) != (answer.misses == whole.misses), seconds
        assert not any(one.kind == "absent" for one in answer.reasons)
        told.add(bool(answer.notes))
    assert told == {True, False}


def test_counts_have_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    at_most(0.0, monkeypatch)
    steps = stretto.explain(CEQL, EVENTS, time="t").steps.to_pylist()
    assert [one["at_least"] for one in steps] == [["alone", "reached", "within"], ["alone", "reached"]]
    rows = stretto.explain(AUTOMATON, EVENTS, time="t").steps.to_pylist()
    assert [(one["state"], one["at_least"]) for one in rows if one["arc"] is None][-2:] == [("q1", False), ("q2", True)]


def test_a_count_that_is_given_up_early_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that was given up is none without a match: else a repetition would be told of one event."""
    events = [{"type": kind, "t": at} for at, kind in enumerate("AAAB")]
    query = "SELECT * FROM S WHERE A{5,6} AS a ; B AS b"
    whole = stretto.why_not(query, events, time="t")
    assert [str(one) for one in whole.reasons] == ["A{5,6}: it has 3 events"]
    some = Trial.some

    def slow(self: Any, asked: Any, each: int, *, quick: bool = False, **more: Any) -> Any:
        if quick:
            self.abandoned += 1
            return iter(())
        return some(self, asked, each, **more)

    monkeypatch.setattr(Trial, "some", slow)
    answer = stretto.why_not(query, events, time="t")
    assert answer.misses == whole.misses


class Clock:
    """A time that goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def goes_on(self) -> None:
        self.now += 1.0


def at_most(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "WHOLE", 0)
    monkeypatch.setattr(trying, "WHOLE_SECONDS", seconds)


def counted(trial: type, monkeypatch: pytest.MonkeyPatch, told: Callable[[], None] = lambda: None) -> list[Any]:
    """The queries that are run from now on."""
    runs, few = [], trial._few  # type: ignore[attr-defined]

    def noted(self: Any, query: Any, *rest: Any) -> Any:
        runs.append(query)
        told()
        return few(self, query, *rest)

    monkeypatch.setattr(trial, "_few", noted)
    return runs
