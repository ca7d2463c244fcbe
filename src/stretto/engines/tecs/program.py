"""A query for the tECS engine, which can be started."""

from __future__ import annotations

from typing import ClassVar

from stretto.engines.api import COMMON, Startable, Starting
from stretto.engines.tecs.compiled import Compiled
from stretto.engines.tecs.runner import Runner


class Program(Compiled, Startable[Runner]):
    """A :class:`~stretto.engines.api.Program`."""

    abilities: ClassVar[frozenset[str]] = COMMON | {
        "negation",
        "events",
        "limit",
        "choice",
        "keep",
        "timeouts",
        "summary",
        "prime",
        "patterns",
        "spark",
    }

    def started(self, how: Starting) -> Runner:
        """A run from the beginning of a stream."""
        return Runner(self, labels=how.labels, counts=how.counts, late=how.late, capacity=how.capacity)
