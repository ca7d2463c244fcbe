"""What goes wrong while an AFA runs: the error says where and what to do, and the matcher goes on as if it had not been."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import StrettoError
from tests.conftest import cases

Row = dict[str, Any]

#: A value that the transfer of :func:`summing` cannot multiply.
BAD = 1 << 40


def summing(**options: Any) -> stretto.AFA:
    """Sums of products of neighbours; two great ones overflow, and so does one alone."""
    afa = stretto.AFA({"x": int}, {"n": int}, window=20, **options)
    afa.arc("q0", "q1", when="e.x > 0", then="n = e.x * e.x").arc(
        "q1", "q2", when="e.x > 0", then="n = r.n + e.x * e.x"
    )
    return afa.final("q2")


def outputs(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """What is left of signed output, by times and register."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in table.to_pylist():
        found[row["start_time"], row["end_time"], row["register"]["n"]] += row["sign"]
    return found


@pytest.mark.parametrize("seed", range(cases(60)))
def test_behind_a_cleanse_only_bad_rows_are_left_out(seed: int) -> None:
    choose = random.Random(seed)
    times = [at + choose.randint(0, 6) for at in range(25)]
    events: list[Row] = [{"t": t, "s": at, "x": choose.choice([1, 2, 3, -1]), "sign": 1} for at, t in enumerate(times)]
    for event in choose.sample(events, 4):
        event["x"] = BAD
    log: list[Row] = []
    for event in events:
        log.append(event)
        if choose.random() < 0.2:
            old = choose.choice(log)
            log += [old | {"sign": -1}, old | {"x": choose.choice([5, 7]), "sign": 1}]
    alive: dict[int, Row] = {}
    kept = []
    for row in log:  # retractions name what is there
        there = alive.get(row["s"])
        if row["sign"] < 0:
            if there is None or there["x"] == BAD:
                continue
            del alive[row["s"]]
        elif there is not None:
            continue
        else:
            alive[row["s"]] = row
        kept.append(row)
    speculation = choose.choice([0, 2, 5, math.inf])
    options: dict[str, Any] = {"time": "t", "sequence": "s", "sign": "sign", "speculation": speculation}
    if choose.random() < 0.5:
        options["bound"] = 40  # nothing is late
    matcher = stretto.Matcher(summing(), **options)
    errors: list[StrettoError] = []
    found: Counter[tuple[Any, ...]] = Counter()

    def call(operation: Callable[[], pa.Table]) -> None:
        try:
            found.update(outputs(operation()))
        except StrettoError as error:
            errors.append(error)

    begin = 0
    while begin < len(kept):
        end = begin + choose.choice([1, 2, 7])
        call(lambda begin=begin, end=end: matcher.push(kept[begin:end]))  # type: ignore[misc]
        begin = end
    call(lambda: matcher.advance(100))
    call(matcher.finish)
    call(matcher.finish)  # gives what an error held back
    bad = [number for number, row in enumerate(kept) if row["x"] == BAD]
    words = " ".join(map(str, errors))
    assert all(f"at row {number}" in words or "more, the next" in words for number in bad)
    assert bool(bad) == bool(errors)
    assert all(isinstance(error, stretto.DataError) and "an integer leaves 64 bits" in str(error) for error in errors)
    final = [row for row in alive.values() if row["x"] != BAD]
    right = stretto.match(summing(), [{name: row[name] for name in "tsx"} for row in final], time="t", sequence="s")
    wanted = Counter((one["start_time"], one["end_time"], one["register"]["n"]) for one in right.to_pylist())
    assert +found == wanted
    assert not -found


def test_a_row_that_fails_behind_a_cleanse_is_named() -> None:
    matcher = stretto.Matcher(summing(), time="t", speculation=0)
    matcher.push([{"t": 3, "x": 2}, {"t": 2, "x": BAD}, {"t": 1, "x": 1}, {"t": 4, "x": BAD}])
    with pytest.raises(stretto.DataError) as error:
        matcher.advance(9)
    assert str(error.value).split("\n") == [
        "arc 'a1' (q1 -> q2): an integer leaves 64 bits at row 1 (and 1 more, the next: arc 'a1' (q1 -> q2): an integer leaves 64 "
        "bits at row 3)",
        "these rows were left out; all others were taken, and the next call gives their output",
    ]
    assert outputs(matcher.push([{"t": 9, "x": 3}])) == {(1, 3, 5): 1}
    assert matcher.punctuation == 9
    again = stretto.Matcher(summing(), time="t", speculation=0).restore(matcher.snapshot())
    assert outputs(again.finish()) == {(3, 9, 13): 1}


def test_of_a_revision_that_fails_neither_half_is_taken() -> None:
    for options in ({}, {"speculation": math.inf}):
        matcher = stretto.Matcher(summing(), time="t", sequence="s", sign="sign", **options)
        assert outputs(matcher.push([{"t": t, "s": 0, "x": 2, "sign": 1} for t in (1, 2)])) == {(1, 2, 8): 1}
        revision = [{"t": 2, "s": 0, "x": 2, "sign": -1}, {"t": 2, "s": 0, "x": BAD, "sign": 1}]
        with pytest.raises(stretto.DataError, match="an integer leaves 64 bits at row 3"):
            matcher.push(revision)
        assert outputs(matcher.push([{"t": 3, "s": 0, "x": 1, "sign": 1}])) == {(2, 3, 5): 1}
        assert outputs(matcher.push([{"t": 2, "s": 0, "x": 2, "sign": -1}])) == {
            (1, 2, 8): -1,
            (2, 3, 5): -1,
            (1, 3, 5): 1,
        }
