"""A query for the NFAb engine, which can be started."""

from __future__ import annotations

from stretto.engines.nfab.compiled import Compiled
from stretto.engines.nfab.runner import NfabRunner

__all__ = ["NfabProgram"]


class NfabProgram(Compiled):
    """A :class:`~stretto.engines.api.Program`."""

    abilities = frozenset(
        ["any", "next", "contiguity", "negation", "closing", "relations", "keys", "time", "events", "limit", "return", "summary", "sets", "disorder", "prime", "snapshots", "spark"]
    )

    def start(
        self, *, labels: bool = True, counts: bool = False, late: str = "error", capacity: int = 1 << 12
    ) -> NfabRunner:
        """A run from the beginning of a stream."""
        return NfabRunner(self, labels=labels, counts=counts, late=late, capacity=capacity)
