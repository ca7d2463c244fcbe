"""Punctuations with conditions (AFA paper, appendix F): what they free is never missed."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, OptionError
from stretto.languages.afa import Scope, read_fence
from stretto.query import predicate as p
from stretto.query.evaluate import holds
from stretto.query.guard import implies
from tests.cases import afa
from tests.cases.afa.driving import Drive, built
from tests.conftest import cases
from tests.reference.afa import Insert

COUNT = cases(150, compiled=400)

CONDITIONS = {
    "a": ["e.a = 0", "e.a <= 1", "e.a >= 1", "e.a IN (0, 2)", "e.a > 2"],
    "c": ["e.c >= 0", "e.c < 0", "e.c != 1"],
    "b": ["e.b"],
    "s": ["e.s = 'x'", "e.s LIKE 'x%'"],
}


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    found: list[dict[str, object]] = table.to_pylist()
    return found


def freed_by_conditions(seed: int) -> int:
    """Two matchers over one log, one with punctuations that know what is still to come: they give the same; what it saves."""
    case = afa.case(seed)
    steps = tuple(step for step in case.steps if isinstance(step, Insert))
    case = replace(case, steps=steps, late="error", dynamic="default")
    choose = random.Random(seed)
    fences = [way.when for way in case.automaton.ways if way.when and "r." not in way.when and "e." in way.when]
    texts = [text for name in case.automaton.events for text in CONDITIONS.get(name, [])]
    texts = [*fences, *choose.sample(texts, min(2, len(texts)))]
    if not texts:
        return 0
    drive = Drive(case, built(case.automaton), ignore=choose.random() < 0.5)
    plain, told = drive.matcher(), drive.matcher()
    scope = Scope(drive.afa.frozen.events, {})
    saved, times = 0, dict[str, int]()
    for at, step in enumerate(steps):
        try:
            expected = rows_of(plain.push(drive.table([step])))
        except DataError:
            return saved
        assert rows_of(told.push(drive.table([step]))) == expected, f"seed {seed}, step {at}"
        for text in texts:
            condition = read_fence(text, scope)
            assert condition is not None
            coming = [one.row for one in steps[at + 1 :]]
            satisfying = [row.le for row in coming if holds(condition, {f"e.{k}": v for k, v in row.payload.items()})]
            time = min(satisfying, default=max((row.le for row in coming), default=step.row.le) + 1)
            times[text] = max(time, times.get(text, time))
            assert told.advance(drive.time(times[text]), where=text).num_rows == 0
        saved += plain.stats["partial_matches"] - told.stats["partial_matches"]
    return saved


def test_what_conditions_free_is_never_missed() -> None:
    saved = sum(freed_by_conditions(seed) for seed in range(COUNT))
    assert saved > COUNT // 2


def three_floors() -> stretto.AFA:
    afa = stretto.AFA({"floor": int, "heat": int}, window=1000)
    afa.arc("q0", "q1", when="e.floor = 3 AND e.heat > 95")
    return afa.arc("q1", "q2", when="e.floor = 3 AND e.heat > 96").final("q2")


def test_the_papers_floors() -> None:
    matcher = stretto.Matcher(three_floors(), time="t")
    matcher.push([{"t": t, "floor": 3, "heat": 96} for t in range(0, 20, 2)])
    before = matcher.stats["partial_matches"]
    assert matcher.advance(15, where="e.floor <= 3").num_rows == 0
    assert matcher.punctuation is None
    after = matcher.stats["partial_matches"]
    assert (before, after) == (10, 3)  # those that end at 14 (the cover of 15) and behind
    # An event of another floor may still come anywhere, and parts what it comes between.
    matcher.push([{"t": 5, "floor": 4, "heat": 100}])
    with pytest.raises(
        DataError, match=r"row 11 is late: its time is 5, and the punctuation of floor <= 3 stands at 15"
    ):
        matcher.push([{"t": 5, "floor": 3, "heat": 100}])


def test_matches_over_what_was_freed_are_taken_back() -> None:
    afa = stretto.AFA({"kind": str}, window=100)
    afa.arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").arc("q2", "q3", when="e.kind = 'c'")
    matcher = stretto.Matcher(afa.final("q3"), time="t")
    found = matcher.push([{"t": t, "kind": kind} for t, kind in ((0, "a"), (10, "b"), (20, "c"), (30, "z"))])
    assert found.num_rows == 1
    for kind in "abc":
        matcher.advance(29, where=f"e.kind = '{kind}'")
    assert matcher.stats["partial_matches"] == 1  # the final one
    taken = matcher.push([{"t": 5, "kind": "z"}])
    assert taken.column("sign").to_pylist() == [-1]


def test_no_retractions_beside_conditions() -> None:
    matcher = stretto.Matcher(three_floors(), time="t", sign="sign")
    with pytest.raises(OptionError, match="without retractions"):
        matcher.advance(3, where="e.floor = 1")


def test_implication_is_sound() -> None:
    """On random conditions over a small domain."""
    choose = random.Random(5)
    x, y = p.Attribute("x"), p.Attribute("y")

    def leaf() -> p.Predicate:
        side = choose.choice([x, y])
        constant = p.Constant(choose.randrange(4))
        kind = choose.randrange(5)
        if kind == 0:
            return p.In(side, tuple(p.Constant(choose.randrange(4)) for _ in range(2)))
        if kind == 1:
            return p.Between(side, p.Constant(choose.randrange(3)), p.Constant(choose.randrange(4)))
        if kind == 2:
            return p.Not(p.Comparison("=", side, constant))
        if kind == 3:
            return p.Not(p.IsNull(side))
        return p.Comparison(choose.choice(["=", "!=", "<", "<=", ">", ">="]), side, constant)

    def condition() -> p.Predicate:
        kind = choose.randrange(4)
        if kind == 0:
            return p.And((leaf(), leaf()))
        if kind == 1:
            return p.Or((leaf(), leaf()))
        return leaf()

    domain = [{"x": a, "y": b} for a in (None, 0, 1, 2, 3) for b in (None, 0, 1, 2, 3)]
    found, count = 0, cases(20_000)
    for _ in range(count):
        given, wanted = condition(), condition()
        if implies(given, wanted):
            found += 1
            assert all(holds(wanted, event) for event in domain if holds(given, event)), f"{given} -> {wanted}"
    assert found > count // 20
