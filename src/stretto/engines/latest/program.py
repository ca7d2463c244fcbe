"""An EQL query for its engine, which can be started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.engines.api import Startable, Starting
from stretto.engines.latest.compiled import Compiled

if TYPE_CHECKING:
    from stretto.engines.latest.runner import LatestRunner


class LatestProgram(Compiled, Startable["LatestRunner"]):
    """A :class:`~stretto.engines.api.Program`."""

    def started(self, how: Starting) -> LatestRunner:
        """A run from the beginning of a stream."""
        from stretto.engines.latest.runner import LatestRunner  # with its kernels, when something runs

        return LatestRunner(self, counts=how.counts, late=how.late, capacity=how.capacity)
