"""An automaton for the AFA operator, which can be started."""

from __future__ import annotations

from stretto.engines.afa.compiled import Compiled
from stretto.engines.afa.runner import AfaRunner
from stretto.engines.api import Startable, Starting


class AfaProgram(Compiled, Startable[AfaRunner]):
    """A :class:`~stretto.engines.api.Program`."""

    room = 1 << 10

    def started(self, how: Starting) -> AfaRunner:
        """A run from the beginning of a stream; it tells what rows hold as the automaton selects them, and counts nothing."""
        run = AfaRunner(self, late=how.late, capacity=how.capacity)
        if how.budget is not None:
            run.budget = how.budget
        run.code.theta()  # so that it is known what a stream needs before its first event
        return run
