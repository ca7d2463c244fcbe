"""An automaton for the AFA operator, which can be started."""

from __future__ import annotations

from typing import ClassVar

from stretto.budget import Budget
from stretto.engines.afa.compiled import Compiled
from stretto.engines.afa.runner import AfaRunner
from stretto.engines.api import COMMON


class AfaProgram(Compiled):
    """A :class:`~stretto.engines.api.Program`."""

    abilities: ClassVar[frozenset[str]] = COMMON | {
        "next",
        "negation",
        "relations",
        "speculation",
        "sign",
        "arcs",
        "spark",
    }

    def start(
        self,
        *,
        labels: bool = True,
        counts: bool = False,
        late: str = "error",
        capacity: int = 1 << 10,
        budget: Budget | None = None,
    ) -> AfaRunner:
        """A run from the beginning of a stream; it tells what rows hold as the automaton selects them, and counts nothing."""
        return AfaRunner(self, late=late, capacity=capacity)
