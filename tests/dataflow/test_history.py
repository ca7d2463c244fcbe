"""Canonical histories: the sum stays, and lifetimes are as long as they can be."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stretto.dataflow import Dataflow, stream
from stretto.dataflow.run import events, history
from stretto.dataflow.run.events import Outputs
from stretto.dataflow.run.history import settled
from stretto.dataflow.run.rows import each
from stretto.errors import DataError, LimitError
from tests.conftest import cases

Rows = list[list[int]]


def copies(rows: Rows) -> Counter[tuple[int, ...]]:
    """How often each payload occurs at each time."""
    found: Counter[tuple[int, ...]] = Counter()
    for vs, ve, weight, _, *payload in rows:
        for time in range(vs, ve):
            found[*payload, time] += weight
    return Counter({key: count for key, count in found.items() if count})


def random_changes(choose: random.Random) -> Rows:
    rows = []
    for _ in range(choose.randint(0, 12)):
        vs, weight = choose.randint(0, 10), choose.randint(1, 3)
        ve = choose.randint(vs + 1, 12)
        payload = [choose.randint(0, 1), choose.randint(0, 1)]
        rows.append([vs, ve, weight, choose.randint(0, 2), *payload])
        if choose.random() < 0.5:
            rows.append([choose.randint(vs, ve - 1), ve, -choose.randint(1, weight), 0, *payload])
    choose.shuffle(rows)
    return rows


def check(seed: int) -> None:
    rows = random_changes(random.Random(seed))
    found: Rows = settled(np.array(rows, np.int64).reshape(-1, 6)).tolist()
    assert copies(found) == copies(rows), seed
    assert all(weight == 1 and vs < ve and level == 0 for vs, ve, weight, level, *_ in found), seed
    assert not any(a[4:] == b[4:] and a[1] == b[0] for a in found for b in found), seed


def test_sums_of_random_changes() -> None:
    for seed in range(cases(400)):
        check(seed)


def test_payloads_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_hashed", lambda changes: np.zeros(len(changes), np.uint64))
    for seed in range(cases(200)):
        check(seed)


def test_taking_back_what_is_not_there() -> None:
    with pytest.raises(ValueError, match="more is taken back than there was"):
        settled(np.array([[0, 5, 1, 0, 7], [3, 9, -1, 0, 7]]))


def test_the_history_of_an_output() -> None:
    roads = stream("roads", {"cost": int})
    flow = Dataflow(least=roads.aggregate(least="min(cost)"))
    for cost, at in ((5, 0), (3, 4), (4, 2)):
        flow.push("roads", [{"cost": cost, "vs": at, "ve": at + 6}])
        flow.run_until_idle()
    assert flow.history("least").sort_by("vs").to_pylist() == [
        {"least": 5, "vs": 0, "ve": 2},
        {"least": 4, "vs": 2, "ve": 4},
        {"least": 3, "vs": 4, "ve": 10},
    ]
    assert flow.history("least").num_rows == 0
    flow.push("roads", [{"cost": 1, "vs": 5, "ve": 7}])
    flow.run_until_idle()
    with pytest.raises(DataError, match="output 'least': the history has begun before"):
        flow.history("least")


def _outputs(rows: np.ndarray) -> np.ndarray:
    return Outputs(rows.shape[1], grows=False).events(rows)


@pytest.mark.parametrize("width", [5, 12])
@pytest.mark.parametrize(
    ("what", "sign"), [(settled, 1), (_outputs, 1), (_outputs, -1)], ids=["history", "insertions", "retractions"]
)
def test_copies_take_no_more_memory_than_is_asked_for(
    what: Callable[[np.ndarray], Any], sign: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that occur often become rows of their own: what they take on the way is told before, and refused where it is not there."""
    asked = []

    def noted(rows: np.ndarray, times: np.ndarray, words: int) -> np.ndarray:
        asked.append(8 * int(times.sum()) * words)
        return each(rows, times, words)

    monkeypatch.setattr(history, "each", noted)
    monkeypatch.setattr(events, "each", noted)

    def many(weight: int) -> np.ndarray:
        return np.array([[1, 9, sign * weight, 0, *range(width - 4)]], np.int64)

    what(many(2))  # what is compiled at the first call takes memory, too
    asked.clear()
    tracemalloc.start()
    try:
        what(many(20_000))
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert asked[0] / 2 < taken < asked[0] + (1 << 18)
    monkeypatch.setattr("stretto.dataflow.run.rows.available", lambda: 128 << 20)
    with pytest.raises(LimitError, match="distinct\\(\\) keeps each row once"):
        what(many(-(-(66 << 20) // (asked[0] // 20_000))))
