"""Where the randomness of a case comes from: a plain seed, for hundreds of thousands of cases, or Hypothesis, which shrinks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

__all__ = ["Choices", "Drawn", "Seeded"]

T = TypeVar("T")


class Choices(Protocol):
    """Where randomness comes from."""

    def one_of(self, options: Sequence[T]) -> T: ...
    def integer(self, low: int, high: int) -> int: ...
    def chance(self, percent: int) -> bool: ...


class Seeded:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def one_of(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def chance(self, percent: int) -> bool:
        return self._random.randrange(100) < percent


class Drawn:
    """Choices from Hypothesis."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self._draw = draw

    def one_of(self, options: Sequence[T]) -> T:
        chosen: T = self._draw(st.sampled_from(options))
        return chosen

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def chance(self, percent: int) -> bool:
        # Shrinks to False.
        return self.integer(0, 99) >= 100 - percent
