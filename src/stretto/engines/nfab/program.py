"""A query for the NFAb engine, which can be started."""

from __future__ import annotations

from stretto.engines.api import Startable, Starting
from stretto.engines.nfab.compiled import Compiled
from stretto.engines.nfab.runner import NfabRunner


class NfabProgram(Compiled, Startable[NfabRunner]):
    """A :class:`~stretto.engines.api.Program`."""

    def started(self, how: Starting) -> NfabRunner:
        """A run from the beginning of a stream."""
        return NfabRunner(self, labels=how.labels, counts=how.counts, late=how.late, capacity=how.capacity)
