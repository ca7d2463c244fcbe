"""A query for the timed engine, which can be started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.engines.api import Startable, Starting
from stretto.engines.timed.compiled import Compiled

if TYPE_CHECKING:
    from stretto.engines.timed.runner import TimedRunner


class TimedProgram(Compiled, Startable["TimedRunner"]):
    """A :class:`~stretto.engines.api.Program`."""

    def started(self, how: Starting) -> TimedRunner:
        """A run from the beginning of a stream."""
        from stretto.engines.timed.runner import TimedRunner  # with its kernels, when something runs

        return TimedRunner(self, counts=how.counts, late=how.late, capacity=how.capacity, budget=how.budget)
