"""An EQL query for its engine, which can be started."""

from __future__ import annotations

from typing import ClassVar

from stretto.budget import Budget
from stretto.engines.api import COMMON
from stretto.engines.latest.compiled import Compiled
from stretto.engines.latest.runner import LatestRunner


class LatestProgram(Compiled):
    """A :class:`~stretto.engines.api.Program`."""

    abilities: ClassVar[frozenset[str]] = (COMMON - {"any", "contiguity", "return"}) | {
        "negation",
        "closing",
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
    ) -> LatestRunner:
        """A run from the beginning of a stream."""
        return LatestRunner(self, counts=counts, late=late, capacity=capacity)
