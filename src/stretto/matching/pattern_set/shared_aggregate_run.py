"""Patterns that count and add up over all of their matches, several in one run.

Those that hold from one time on, and whose automata, windows, groups and keys are the same, differ only in what they ask of events
and in what they add up. They are one part to the index of conditions, and an event goes once through the automaton of them all.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from stretto.automata.cea import CEA
from stretto.engines.programs import TotalsProgram
from stretto.engines.tecs.compiled import moves_of
from stretto.engines.totals.several import SeveralProgram
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern, CompiledQuery, Living
from stretto.matching.pattern_set.prefix_sharing import excluding
from stretto.query.totals import Extent

#: So many patterns have one run at the most,
MOST = 64

#: and they tell apart at most so many kinds of events, each of which is looked at once in every state of the automaton.
KINDS = 1 << 10


class CompiledAggregates(CompiledPattern):
    """Patterns that have one run.

    Parameters
    ----------
    parts
        The patterns; equal ones may be there more than once.
    """

    parts: Sequence[CompiledQuery]
    machine: SeveralProgram
    lister: SeveralProgram

    def __init__(self, parts: Sequence[CompiledQuery]) -> None:
        first = parts[0]
        self.parts, self.query = parts, first.query
        programs = [one.machine for one in parts if isinstance(one.machine, TotalsProgram)]
        self.machine = self.lister = SeveralProgram(programs, [one.conditions for one in parts])
        self.conditions = self.machine.conditions
        self.partition_by, self.source, self.totals = first.partition_by, first.source, first.totals
        self.tested = frozenset(name for one in parts for name in one.tested)
        self.selected = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes of a match's last event that tell its key."""
        return tuple(dict.fromkeys(name for one in self.parts for name in one.keys))

    @property
    def skips(self) -> bool:
        """Whether an event that satisfies none of its guards changes nothing."""
        return True

    def classes(self, truth: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The classes of kinds of events, of which each condition holds or not; 0: none does."""
        return self.machine.classifier.interned(truth)

    @property
    def asking(self) -> int:
        """How many conditions the patterns have."""
        return sum(one.asking for one in self.parts)

    @property
    def digest(self) -> str:
        """What a saved state belongs to."""
        return self.machine.digest


_SEVERAL: Living[tuple[CompiledQuery, ...], CompiledAggregates] = Living()


def several(parts: Sequence[CompiledQuery]) -> CompiledAggregates:
    """The part of some patterns that have one run."""
    return _SEVERAL.get(tuple(parts), lambda: CompiledAggregates(parts))


def terms(part: CompiledPattern) -> Hashable | None:
    """What patterns that can have one run have in common; ``None``: this one has a run of its own.

    It has where rows are about events, where events say what the groups are, where matches end partial ones, where a window does not
    measure the time, and where two variables may hold the same event, so that an engine must look whether that is decided.
    """
    if not isinstance(part, CompiledQuery) or not isinstance(part.machine, TotalsProgram):
        return None
    program = part.machine
    query, scope, window = program.query, program.totals.scope, program.query.window
    if (
        scope.extent is Extent.EVENT
        or program.asked.parts
        or part.moves
        or program.consumes
        or not (part.skips and program.skips)
        or (window is not None and window.attribute != query.schema.time)
    ):
        return None
    # Where no event can be of two variables, it is no matter which of them are added up.
    if program.valuations or not _mixes(part, program.whole):
        moves = moves_of(program.whole)
    elif not _mixes(part, program.cea):
        moves = moves_of(program.cea)
    else:
        return None
    measured = None if window is None else (window.attribute, window.size)
    parsed = query.parsed
    how = parsed.strategy, program.valuations, parsed.language
    return moves, how, scope, measured, query.partition_by, parsed.streams, parsed.implied, program.asked.prefix


def _mixes(part: CompiledQuery, cea: CEA) -> bool:
    """Whether an event may fulfil what leads on with one set of labels and with another one."""
    asks = {(one.guard, one.labels) for one in cea.transitions if one.labels}
    return any(
        one[1] != other[1]
        and (min(one[0], other[0]) < 0 or not excluding(part.conditions[one[0]], part.conditions[other[0]]))
        for one in asks
        for other in asks
    )
