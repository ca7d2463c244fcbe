"""Rows of weighted intervals: what is combined, and weights that would leave 64 bits."""

from __future__ import annotations

import random

import numpy as np
import pytest

from stretto.dataflow.operators.join import Joiner
from stretto.dataflow.run.rows import NEVER, combined
from stretto.errors import LimitError
from tests.conftest import cases


def row(vs: int, ve: int, weight: int, *payload: int) -> list[int]:
    return [vs, ve, weight, 0, *payload]


def history(rows: np.ndarray, since: int = NEVER) -> dict[tuple[int, ...], int]:
    """How often each payload occurs at each time from ``since`` on, times being few."""
    found: dict[tuple[int, ...], int] = {}
    for vs, ve, weight, level, *payload in rows.tolist():
        for time in range(max(vs, since, 0), ve):
            key = (time, level, *payload)
            found[key] = found.get(key, 0) + weight
    return {key: weight for key, weight in found.items() if weight}


@pytest.mark.parametrize("seed", range(cases(300)))
def test_combined_rows_say_the_same_in_fewer_words(seed: int) -> None:
    rng = random.Random(seed)
    since = rng.choice([NEVER, 0, 3, 7])
    rows = np.array(
        [
            row(start := rng.randrange(8), start + rng.randrange(1, 5), rng.choice([-2, -1, 1, 1]), rng.randrange(2), 5)
            for _ in range(rng.randrange(1, 12))
        ],
        np.int64,
    )
    before = history(rows, since)
    made = combined(rows.copy(), since)
    assert history(made, since) == before
    assert len(made) <= len(rows)
    assert len({tuple(one) for one in np.delete(made, 2, axis=1).tolist()}) == len(made)
    assert (made[:, 1] > max(since, 0)).all() or since == NEVER


def test_a_weight_beyond_31_bits_is_refused() -> None:
    many = np.array([row(0, 9, 1 << 30, 7), row(0, 9, 1 << 30, 7)], np.int64)
    with pytest.raises(LimitError, match="2\\^31 times or more"):
        combined(many)


def test_weights_multiply_in_a_join_until_they_are_refused() -> None:
    key = np.array([4], np.int64)
    join = Joiner("Join a = a", (5, 5), (key, key), np.zeros(0, np.int64))
    join.receive(0, np.array([row(0, 9, 1 << 16, 7)], np.int64))
    found = join.receive(1, np.array([row(3, 12, -(1 << 14), 7)], np.int64))
    assert found.tolist() == [[3, 9, -(1 << 30), 0, 7]]
    with pytest.raises(LimitError):
        join.receive(1, np.array([row(3, 12, 1 << 15, 7)], np.int64))
