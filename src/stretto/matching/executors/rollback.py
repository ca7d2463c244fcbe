"""Going back to before a row that makes a computation overflow: a state of a while ago, and what was read since.

Whether a sum over the events of a match leaves 64 bits shows when the match is listed, and then the row that completes it has been
read. It is left out by going back. A copy of the state for each row would cost more than the row where many partial matches live, so
one is taken only when reading has taken some times as long as copying; going back repeats what was read since, without its output.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")

#: A state is copied again when reading has taken so many times as long as copying it did.
SHARE = 4


class Retries(Generic[S]):
    """The last copy of a state, and the operations since.

    Parameters
    ----------
    copied
        Gives a copy of the state.
    put_back
        Takes such a copy over, which belongs to it then.
    """

    def __init__(self, copied: Callable[[], S], put_back: Callable[[S], None]) -> None:
        self._copied, self._put_back = copied, put_back
        self._state: S | None = None
        self._since: list[Callable[[], None]] = []
        self._copying = self._reading = self._began = 0.0

    def before(self) -> None:
        """The next operation begins."""
        if self._state is None or self._reading >= SHARE * self._copying:
            self._copy()
        self._began = clock.perf_counter()

    def after(self, again: Callable[[], None]) -> None:
        """It is done; ``again`` repeats it without giving anything."""
        self._since.append(again)
        now = clock.perf_counter()
        self._reading, self._began = self._reading + now - self._began, now

    def back(self) -> None:
        """It has failed: go back to before it."""
        assert self._state is not None
        self._put_back(self._state)
        for again in self._since:
            again()
        self._copy()

    def _copy(self) -> None:
        began = clock.perf_counter()
        self._state, self._since = self._copied(), []
        self._copying, self._reading = clock.perf_counter() - began, 0.0
