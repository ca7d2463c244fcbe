"""A query for the timed engine, which can be started."""

from __future__ import annotations

from typing import ClassVar

from stretto.budget import Budget
from stretto.engines.api import COMMON
from stretto.engines.timed.compiled import Compiled
from stretto.engines.timed.runner import TimedRunner


class TimedProgram(Compiled):
    """A :class:`~stretto.engines.api.Program`."""

    abilities: ClassVar[frozenset[str]] = (COMMON - {"return"}) | {
        "negation",
        "closing",
        "gaps",
        "events",
        "limit",
        "keep",
        "timeouts",
        "summary",
        "prime",
        "patterns",
        "spark",
    }

    def start(
        self,
        *,
        labels: bool = True,
        counts: bool = False,
        late: str = "error",
        capacity: int = 1 << 12,
        budget: Budget | None = None,
    ) -> TimedRunner:
        """A run from the beginning of a stream."""
        return TimedRunner(self, counts=counts, late=late, capacity=capacity, budget=budget)
