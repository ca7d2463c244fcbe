"""A query for the tECS engine, which can be started."""

from __future__ import annotations

from stretto.engines.tecs.compiled import Compiled
from stretto.engines.tecs.runner import Runner

__all__ = ["Program"]


class Program(Compiled):
    """A :class:`~stretto.engines.api.Program`."""

    abilities = frozenset(
        ["any", "contiguity", "keys", "time", "events", "limit", "return", "summary", "disorder", "prime", "patterns", "snapshots", "spark"]
    )

    def start(
        self, *, labels: bool = True, counts: bool = False, late: str = "error", capacity: int = 1 << 12
    ) -> Runner:
        """A run from the beginning of a stream."""
        return Runner(self, labels=labels, counts=counts, late=late, capacity=capacity)
