"""A query whose matches are counted and added up, which can be started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.engines.api import Startable, Starting
from stretto.engines.totals.compiled import TotalsCompiled

if TYPE_CHECKING:
    from stretto.engines.totals.runner import TotalsRunner


class TotalsProgram(TotalsCompiled, Startable["TotalsRunner"]):
    """A :class:`~stretto.engines.api.Program` whose rows are counts and sums."""

    def started(self, how: Starting) -> TotalsRunner:
        """A run from the beginning of a stream."""
        from stretto.engines.totals.runner import TotalsRunner  # with its kernels, when something runs

        return TotalsRunner(self, late=how.late, capacity=how.capacity, budget=how.budget)
