"""A query for the tECS engine, which can be started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.engines.api import Startable, Starting
from stretto.engines.tecs.compiled import Compiled

if TYPE_CHECKING:
    from stretto.engines.tecs.runner import Runner


class Program(Compiled, Startable["Runner"]):
    """A :class:`~stretto.engines.api.Program`."""

    def started(self, how: Starting) -> Runner:
        """A run from the beginning of a stream."""
        from stretto.engines.tecs.runner import Runner  # with its kernels, when something runs

        return Runner(self, labels=how.labels, counts=how.counts, late=how.late, capacity=how.capacity)
