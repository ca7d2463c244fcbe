"""Sums of floats are exact until they are rounded, once: whatever the order, and whatever was taken away meanwhile."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from stretto.dataflow import Dataflow, stream
from stretto.dataflow.run.exact import MOST_PARTS, add, add_times, rounded
from tests.conftest import cases


def total(weighted: list[tuple[float, int]]) -> float:
    parts = np.zeros(MOST_PARTS)
    count = 0
    for value, times in weighted:
        count = add_times(value, times, parts, count)
    return float(rounded(parts, count))


def value(choose: random.Random) -> float:
    """Floats of all sizes, many of them with few bits, so that sums are often half way between two floats."""
    kind = choose.random()
    if kind < 0.3:
        return choose.choice((1.0, -1.0)) * 2.0 ** choose.randint(-60, 60)
    if kind < 0.5:
        return choose.uniform(-1, 1) * 10.0 ** choose.randint(-300, 250)
    if kind < 0.6:
        return choose.choice((5e-324, -5e-324, 2.0**-1022, 0.0, -0.0))
    return choose.choice((0.1, 0.2, 0.3, 1e16, -1e16, 1.5, 3e100, 1 / 3))


def exact(weighted: list[tuple[float, int]]) -> float:
    """The sum as a fraction, rounded once."""
    return float(sum((Fraction(one) * times for one, times in weighted), Fraction(0)))


def test_sums_as_fsum() -> None:
    for seed in range(cases(2000)):
        choose = random.Random(seed)
        values = [value(choose) for _ in range(choose.randint(0, 40))]
        parts = np.zeros(MOST_PARTS)
        count = 0
        for one in values:
            count = add(one, parts, count)
        assert rounded(parts, count) == math.fsum(values), seed


def test_weights_and_cancellations() -> None:
    for seed in range(cases(2000)):
        choose = random.Random(seed)
        weighted = [
            (value(choose), choose.choice((1, -1, 2, 3, -7, 1000, 2**40))) for _ in range(choose.randint(1, 20))
        ]
        weighted = [(one, times) for one, times in weighted if abs(one) < 1e250 and (one == 0 or abs(one) > 1e-250)]
        gone = choose.sample(weighted, len(weighted) // 2)
        weighted += [(one, -times) for one, times in gone]
        choose.shuffle(weighted)
        assert total(weighted) == exact(weighted), seed


def test_what_is_taken_back_leaves_nothing() -> None:
    for seed in range(cases(500)):
        choose = random.Random(seed)
        weighted = [(value(choose), choose.randint(1, 5)) for _ in range(10)]
        gone = [(one, -times) for one, times in weighted]
        both = weighted + gone
        choose.shuffle(both)
        assert total(both) == 0.0, seed


def test_the_order_does_not_matter() -> None:
    values = [1e100, 1.0, -1e100, 1e-30, 0.1, -0.1]
    found = {total([(one, 1) for one in order]) for order in itertools.permutations(values)}
    assert found == {1.0}


@pytest.mark.parametrize(
    ("values", "right"),
    [
        ([2.0**53, 1.0], 2.0**53),  # half way: to even
        ([2.0**53, 1.0, 1e-300], 2.0**53 + 2),  # and a little more
        ([2.0**53 + 2, 1.0], 2.0**53 + 4),
        ([2.0**53 + 2, 1.0, -1e-300], 2.0**53 + 2),
        ([5e-324, 5e-324], 1e-323),
        ([], 0.0),
    ],
)
def test_rounded_once(values: list[float], right: float) -> None:
    assert total([(one, 1) for one in values]) == right


def test_many_times_a_great_value() -> None:
    assert total([(1e290, 3), (1e290, -2)]) == 1e290
    assert total([(1e300, 2), (-1e300, 1), (7.0, 1)]) == math.fsum([1e300, 1e300, -1e300, 7.0])


def test_sums_of_a_dataflow_do_not_depend_on_order_batches_or_what_came_and_went() -> None:
    for seed in range(cases(20)):
        choose = random.Random(seed)
        values = [value(choose) for _ in range(15)]
        values = [one for one in values if abs(one) < 1e250]
        kept = [choose.random() < 0.6 for _ in values]
        found = set()
        for _ in range(3):
            flow = Dataflow(out=stream("s", {"x": float}).aggregate(total="sum(x)", mean="avg(x)"))
            order = list(range(len(values)))
            choose.shuffle(order)
            for at in order:
                flow.push("s", [{"x": values[at], "vs": 0}])
                if choose.random() < 0.3:
                    flow.run_until_idle()
            choose.shuffle(order)
            gone = [{"x": values[at], "vs": 0, "ve_new": 5} for at in order if not kept[at]]
            if gone:
                flow.push("s", gone)
            flow.run_until_idle()
            rows = flow.history("out").to_pylist()
            found.add(tuple(sorted((row["vs"], row["ve"] or math.inf, row["total"], row["mean"]) for row in rows)))
        assert len(found) == 1, seed
        alive = [one for one, there in zip(values, kept, strict=True) if there]
        last = max(found.pop())
        if alive:
            assert last[2] == math.fsum(alive), seed
            assert last[3] == math.fsum(alive) / len(alive), seed
