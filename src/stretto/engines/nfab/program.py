"""A query for the NFAb engine, which can be started."""

from __future__ import annotations

from typing import ClassVar

from stretto.budget import Budget
from stretto.engines.api import COMMON
from stretto.engines.nfab.compiled import Compiled
from stretto.engines.nfab.runner import NfabRunner


class NfabProgram(Compiled):
    """A :class:`~stretto.engines.api.Program`."""

    abilities: ClassVar[frozenset[str]] = COMMON | {
        "next",
        "negation",
        "closing",
        "relations",
        "events",
        "limit",
        "keep",
        "timeouts",
        "summary",
        "sets",
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
    ) -> NfabRunner:
        """A run from the beginning of a stream."""
        return NfabRunner(self, labels=labels, counts=counts, late=late, capacity=capacity)
