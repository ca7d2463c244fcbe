"""A query for the tECS engine, which can be started."""

from __future__ import annotations

from typing import ClassVar

from stretto.budget import Budget
from stretto.engines.api import COMMON
from stretto.engines.tecs.compiled import Compiled
from stretto.engines.tecs.runner import Runner


class Program(Compiled):
    """A :class:`~stretto.engines.api.Program`."""

    abilities: ClassVar[frozenset[str]] = COMMON | {
        "negation",
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
    ) -> Runner:
        """A run from the beginning of a stream."""
        return Runner(self, labels=labels, counts=counts, late=late, capacity=capacity)
