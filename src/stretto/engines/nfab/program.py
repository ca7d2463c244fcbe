"""A query for the NFAb engine, which can be started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.engines.api import Startable, Starting
from stretto.engines.nfab.compiled import Compiled

if TYPE_CHECKING:
    from stretto.engines.nfab.runner import NfabRunner


class NfabProgram(Compiled, Startable["NfabRunner"]):
    """A :class:`~stretto.engines.api.Program`."""

    def started(self, how: Starting) -> NfabRunner:
        """A run from the beginning of a stream."""
        from stretto.engines.nfab.runner import NfabRunner  # with its kernels, when something runs

        return NfabRunner(self, labels=how.labels, counts=how.counts, late=how.late, capacity=how.capacity)
