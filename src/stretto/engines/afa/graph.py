"""The automaton as data: states and arcs by number, which change while the operator runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.automata.afa import Afa, Arc, Emit, Kind
from stretto.engines.afa.code import AfaCode
from stretto.engines.afa.state import longer
from stretto.engines.afa.structure import (
    ARC_FIELDS,
    ARC_NEXT,
    ATOM,
    BASE,
    CONSUMES,
    EPSILON,
    FENCE,
    FINAL,
    FIRST_ARC,
    FIRST_EPSILON,
    FOREVER,
    IGNORES,
    KIND,
    QUIET,
    RETIRED,
    SINCE,
    STATE_FIELDS,
    TARGET,
    TRANSFER,
    Graph,
)

__all__ = ["GraphTables"]

I64 = NDArray[np.int64]

ALWAYS = -FOREVER

_KINDS = {Kind.CONSUME: CONSUMES, Kind.EPSILON: EPSILON, Kind.IGNORE: IGNORES}


class GraphTables:
    """States and arcs with their numbers, and the arrays that the kernel walks.

    A final state that gives no output at ignored events has a *quiet* twin with its arcs, which is not final: where no anchor
    stands for the ignored event, the match goes there.

    Parameters
    ----------
    afa
        The automaton.
    code
        Takes in the code of its arcs.
    """

    def __init__(self, afa: Afa, code: AfaCode) -> None:
        self.code = code
        self.numbers: dict[str, int] = {}
        self.finals: dict[str, Emit] = dict(afa.finals)
        self.states = np.zeros((1, STATE_FIELDS), np.int64)
        self.arcs = np.zeros((1, ARC_FIELDS), np.int64)
        #: By number: the arc, as it was given; and the numbers of the ids that may be retired.
        self.given: list[Arc | None] = [None]
        self.known: dict[str, int] = {}
        for name in afa.states:
            self.state(name)
        for arc in afa.arcs:
            self.link(self.add(arc))
        self.start = self.numbers[afa.start]

    def state(self, name: str) -> int:
        """The number of a state, which may be new."""
        if name not in self.numbers:
            number = self._new_state()
            self.numbers[name] = number
            self.states[number, QUIET] = self.states[number, BASE] = number
            if name in self.finals:
                self.make_final(name, self.finals[name])
        return self.numbers[name]

    def _new_state(self) -> int:
        number = self.states.shape[0]
        self.states = longer(self.states, number + 1)
        return number

    def make_final(self, name: str, emit: Emit) -> None:
        """Output comes at a state from now on."""
        self.finals[name] = emit
        number = self.state(name)
        if self.states[number, FINAL]:
            return
        self.states[number, FINAL] = 1 if emit is Emit.EVERY else 2
        if emit is Emit.ON_ENTER:
            quiet = self._new_state()
            self.states[quiet, BASE] = number
            self.states[quiet, QUIET] = self.states[number, QUIET] = quiet

    def add(self, arc: Arc) -> int:
        """An arc's number; it is not linked yet."""
        code = self.code.add(arc)
        self.state(arc.source)
        target = self.state(arc.target)
        number = self.arcs.shape[0]
        self.arcs = longer(self.arcs, number + 1)
        row = self.arcs[number]
        row[TARGET], row[ATOM], row[FENCE], row[TRANSFER] = target, code.atom, code.fence, code.transfer
        row[KIND] = _KINDS[arc.kind]
        row[SINCE] = ALWAYS if arc.since is None else arc.since
        row[RETIRED] = FOREVER if arc.until is None else arc.until
        self.given.append(arc)
        self.known[arc.id] = number
        return number

    def link(self, number: int) -> None:
        """Let computations take an arc."""
        arc = self.given[number]
        assert arc is not None
        state = self.numbers[arc.source]
        which = FIRST_EPSILON if self.arcs[number, KIND] == EPSILON else FIRST_ARC
        self.arcs[number, ARC_NEXT] = self.states[state, which]
        self.states[state, which] = number

    def arc(self, name: str) -> Arc:
        """An arc with the lifetime that it has now."""
        number = self.known[name]
        given = self.given[number]
        assert given is not None
        since, until = (int(one) for one in self.arcs[number, [SINCE, RETIRED]])
        return replace(given, since=None if since <= ALWAYS else since, until=None if until == FOREVER else until)

    def graph(self, **options: Any) -> Graph:
        """For the kernel."""
        return Graph(arcs=self.arcs, states=self.states, start=self.start, **options)
