"""One Matcher: every method works on every combination of query, disorder and speculation, or is refused with the reason."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import OptionError
from tests.conftest import cases

SASE = "PATTERN SEQ(A a, ~(C n), B b) WHERE skip_till_next_match { a.k = b.k } WITHIN 6"
SCHEMA = pa.schema([("type", pa.string()), ("t", pa.int64()), ("k", pa.int64())])


def automaton() -> stretto.AFA:
    afa = stretto.AFA({"type": str}, window=6)
    return afa.arc("q0", "q1", when="e.type = 'A'", id="one").arc("q1", "q2", when="e.type = 'B'").final("q2")


MATCHERS: dict[str, Callable[[], stretto.Matcher]] = {
    "in order": lambda: stretto.Matcher("SELECT * FROM S WHERE A; B", SCHEMA, time="t"),
    "sorted": lambda: stretto.Matcher("SELECT * FROM S WHERE A; B", SCHEMA, time="t", disorder=2),
    "SASE+": lambda: stretto.Matcher(SASE, SCHEMA, time="t"),
    "SASE+, sorted": lambda: stretto.Matcher(SASE, SCHEMA, time="t", speculation=0),
    "SASE+, at once": lambda: stretto.Matcher(SASE, SCHEMA, time="t", speculation=math.inf),
    "SASE+, between": lambda: stretto.Matcher(SASE, SCHEMA, time="t", speculation=1, disorder=2),
    "sets": lambda: stretto.Matcher(SASE.replace("~(C n), ", ""), SCHEMA, time="t", sets=True),
    "AFA": lambda: stretto.Matcher(automaton(), time="t"),
    "AFA, in order": lambda: stretto.Matcher(automaton(), time="t", ordered=True),
    "AFA, sorted": lambda: stretto.Matcher(automaton(), time="t", disorder=2),
    "AFA, between": lambda: stretto.Matcher(automaton(), time="t", speculation=1, disorder=2),
    "AFA, results wait": lambda: stretto.Matcher(automaton(), time="t", speculation=1, hold="results"),
}

EVENTS = pa.Table.from_pylist([{"type": kind, "t": at, "k": 1} for kind, at in (("A", 1), ("B", 2), ("C", 9))], SCHEMA)
ARCS = [{"row": 0, "action": "add", "id": "two", "source": "q1", "target": "q2", "when": "e.type = 'C'"}]

CALLS: dict[str, Callable[[stretto.Matcher], Any]] = {
    "push": lambda one: one.push(EVENTS),
    "push, arcs": lambda one: one.push(EVENTS, arcs=ARCS),
    "push, punctuations": lambda one: one.push(EVENTS, punctuations=[(2, 2)]),
    "iter_push": lambda one: list(one.iter_push(EVENTS)),
    "push_sets": lambda one: list(one.push_sets(EVENTS)),
    "prime": lambda one: one.prime(EVENTS),
    "advance": lambda one: one.advance(1),
    "advance, where": lambda one: one.advance(1, where="e.type = 'A'"),
    "finish": lambda one: one.finish(),
    "snapshot": lambda one: one.restore(one.snapshot()),
    "add_arc": lambda one: one.add_arc("q1", "q2", when="e.type = 'C'", id="two"),
    "add_arc without id": lambda one: one.add_arc("q1", "q2"),
    "retire_arc": lambda one: one.retire_arc("one"),
    "advance_arcs": lambda one: one.advance_arcs(0),
    "arcs": lambda one: one.arcs(),
    "late_events": lambda one: one.late_events(),
    "explain": lambda one: one.explain(),
    "afa": lambda one: one.afa,
    "query": lambda one: one.query,
    "what it is": lambda one: [one.idle, one.expires, one.ends, one.stats, one.position, one.late, one.punctuation],
}


#: What no matcher refuses.
ALWAYS = ("advance", "finish", "snapshot", "explain", "what it is", "late_events")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", MATCHERS)
def test_every_call_on_every_matcher(kind: str, call: str) -> None:
    """Nothing fails but by a refusal, before events and after."""
    for before in (False, True):
        matcher = MATCHERS[kind]()
        if before:
            list(matcher.push_sets(EVENTS) if kind == "sets" else matcher.iter_push(EVENTS))
        refused = late = ""
        try:
            CALLS[call](matcher)
        except OptionError as error:
            refused = str(error)
        except stretto.DataError as error:
            late = str(error)  # as the same events are a second time
        assert not (refused and call in ALWAYS), refused
        assert not late or before or call == "push, punctuations", late
        assert not refused or len(refused) > 20


@pytest.mark.parametrize("seed", range(cases(30)))
@pytest.mark.parametrize("speculation", [0, 2, math.inf])
@pytest.mark.parametrize("disorder", [None, 4])
def test_a_query_comes_to_the_same_whatever_it_speculates(seed: int, speculation: float, disorder: int | None) -> None:
    choose = random.Random(seed)
    events = [{"type": choose.choice("ABC"), "t": at, "k": choose.randint(1, 2)} for at in range(25)]
    arrived = sorted(events, key=lambda one: (one["t"] + choose.choice([0, 0, 2, 4]), one["k"]))
    wanted = Counter(
        (row["start_time"], row["end_time"])
        for row in stretto.match(SASE, pa.Table.from_pylist(events, SCHEMA), time="t").to_pylist()
    )
    options: dict[str, Any] = {"time": "t", "speculation": speculation, "disorder": disorder}
    matcher = stretto.Matcher(SASE, SCHEMA, **options)
    found: Counter[tuple[int, int]] = Counter()
    begin, taken_back = 0, 0
    while begin < len(arrived):
        end = begin + choose.randint(1, 6)
        for row in matcher.push(pa.Table.from_pylist(arrived[begin:end], SCHEMA)).to_pylist():
            found[row["start_time"], row["end_time"]] += row.get("sign", 1)
            taken_back += row.get("sign", 1) < 0
        if choose.random() < 0.3:
            matcher = stretto.Matcher(SASE, SCHEMA, **options).restore(matcher.snapshot())
        begin = end
    for row in matcher.finish().to_pylist():
        found[row["start_time"], row["end_time"]] += row.get("sign", 1)
        taken_back += row.get("sign", 1) < 0
        assert row["a"][0]["type"] == "A"
    assert +found == wanted
    assert speculation or not taken_back


def test_what_does_not_go_together_is_refused() -> None:
    for options, words in (
        ({"speculation": 1, "sign": "s"}, r"speculation=math.inf, and no disorder="),
        ({"speculation": 1, "sets": True}, "sets=True is for matches that are not taken back"),
        ({"speculation": 1, "output": "summary"}, "which late events change: list them"),
        ({"hold": "events"}, "hold='events' is for AFAs, and this is a query"),
    ):
        with pytest.raises(OptionError, match=words):
            stretto.Matcher(SASE, SCHEMA, time="t", **options)
    for options, words in (
        ({"hold": "results"}, "needs speculation="),
        ({"hold": "nothing", "speculation": 1}, "expected 'events' or 'results'"),
        ({"sets": True}, "is for queries in CEQL or SASE"),
    ):
        with pytest.raises(OptionError, match=words):
            stretto.Matcher(automaton(), time="t", **options)
