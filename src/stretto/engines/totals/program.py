"""A query whose matches are counted and added up, which can be started."""

from __future__ import annotations

from stretto.engines.api import Startable, Starting
from stretto.engines.totals.compiled import TotalsCompiled
from stretto.engines.totals.runner import TotalsRunner


class TotalsProgram(TotalsCompiled, Startable[TotalsRunner]):
    """A :class:`~stretto.engines.api.Program` whose rows are counts and sums."""

    def started(self, how: Starting) -> TotalsRunner:
        """A run from the beginning of a stream."""
        return TotalsRunner(self, late=how.late, capacity=how.capacity, budget=how.budget)
