"""What engines compile queries to, as programs that can be started; a runner is imported, with its kernels, when something runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.engines.api import Startable, Starting
from stretto.engines.latest import compiled as latest
from stretto.engines.nfab import compiled as nfab
from stretto.engines.tecs import compiled as tecs
from stretto.engines.timed import compiled as timed
from stretto.engines.totals import plan as totals

if TYPE_CHECKING:
    from stretto.engines.latest.runner import LatestRunner
    from stretto.engines.nfab.runner import NfabRunner
    from stretto.engines.tecs.runner import Runner
    from stretto.engines.timed.runner import TimedRunner
    from stretto.engines.totals.runner import TotalsRunner


class Program(tecs.Compiled, Startable["Runner"]):
    """A query for the tECS engine."""

    def started(self, how: Starting) -> Runner:
        """A run from the beginning of a stream."""
        from stretto.engines.tecs.runner import Runner

        return Runner(
            self, labels=how.labels, counts=how.counts, late=how.late, capacity=how.capacity, operator=how.operator
        )


class NfabProgram(nfab.Compiled, Startable["NfabRunner"]):
    """A query for the NFAb engine."""

    def started(self, how: Starting) -> NfabRunner:
        """A run from the beginning of a stream."""
        from stretto.engines.nfab.runner import NfabRunner

        return NfabRunner(
            self, labels=how.labels, counts=how.counts, late=how.late, capacity=how.capacity, operator=how.operator
        )


class TimedProgram(timed.Compiled, Startable["TimedRunner"]):
    """A query for the timed engine."""

    def started(self, how: Starting) -> TimedRunner:
        """A run from the beginning of a stream."""
        from stretto.engines.timed.runner import TimedRunner

        return TimedRunner(
            self, counts=how.counts, late=how.late, capacity=how.capacity, budget=how.budget, operator=how.operator
        )


class LatestProgram(latest.Compiled, Startable["LatestRunner"]):
    """A query of EQL for its engine."""

    def started(self, how: Starting) -> LatestRunner:
        """A run from the beginning of a stream."""
        from stretto.engines.latest.runner import LatestRunner

        return LatestRunner(self, counts=how.counts, late=how.late, capacity=how.capacity)


class TotalsProgram(totals.TotalsCompiled, Startable["TotalsRunner"]):
    """A query whose matches are counted and added up: its rows are counts and sums."""

    def started(self, how: Starting) -> TotalsRunner:
        """A run from the beginning of a stream."""
        from stretto.engines.totals.runner import TotalsRunner

        return TotalsRunner(self, late=how.late, capacity=how.capacity, budget=how.budget)
