"""Scalar operations of compiled conditions against Python's exact integers."""

from __future__ import annotations

import random

import numpy as np

from stretto.engines.shared.scalar import mean, quotient
from tests.conftest import cases

MOST, LEAST = 2**63 - 1, -(2**63)


def split(total: int) -> tuple[int, int]:
    """A sum as a word and its carry."""
    word = (total - LEAST) % 2**64 + LEAST
    return word, (total - word) >> 64


def sums(rng: random.Random, count: int) -> int:
    """A sum of ``count`` integers of 64 bits: of all sizes, with and without a rest, and at both ends."""
    size = rng.randrange(1, 64)
    near = rng.randrange(max(LEAST, -(2**size)), min(MOST, 2**size) + 1) * count
    chosen = rng.choice([near, near + rng.randrange(count), MOST * count - rng.randrange(99), LEAST * count, 0])
    return max(LEAST * count, min(MOST * count, chosen))


def test_means_are_rounded_once() -> None:
    rng = random.Random(5)
    for _ in range(cases(200_000)):
        count = rng.choice([1, 2, 3, 7, rng.randrange(1, 2 ** rng.randrange(1, 31)), 2**31 - 1])
        total = sums(rng, count)
        more = rng.choice([0, 1, -1, MOST, LEAST, rng.randrange(LEAST, MOST)]) if abs(total) < 2**62 * count else 0
        word, carry = split(total - more)
        assert mean(np.int64(word), np.int64(carry), np.int64(more), np.int64(count)) == total / count


def test_quotients_of_integers_go_towards_zero() -> None:
    rng = random.Random(6)
    faults = np.zeros((1, 1), np.int64)
    for _ in range(cases(2_000)):
        left, right = (
            rng.choice([rng.randrange(-9, 10), rng.randrange(LEAST, MOST + 1), MOST, LEAST]) for _ in range(2)
        )
        if right == 0 or (left, right) == (LEAST, -1):
            continue
        exact = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        assert quotient(np.int64(left), np.int64(right), faults) == exact
    assert faults[0, 0] == 0


def test_the_quotient_that_leaves_64_bits_is_a_fault() -> None:
    faults = np.zeros((1, 1), np.int64)
    assert quotient(np.int64(LEAST), np.int64(-1), faults) == 0
    assert faults[0, 0] == 1
