"""The machines of several programs as one, for a kernel that runs them all in one call.

States are numbered together; classes are those of each program, so that the table is as wide as the program with the most
needs it. Where a program's automaton begins is said by each event that is for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.automata.determinize import State
from stretto.columns.classes import Classifier
from stretto.engines.tecs.compiled import Compiled, Table
from stretto.query.passes.bind import BoundQuery


class Joint:
    """A machine that grows by programs, states and classes.

    Parameters
    ----------
    query
        What all programs have in common: the window, the keys, what an output forgets.
    valuations
        As in :class:`~stretto.engines.tecs.compiled.Compiled`, of all programs.
    """

    def __init__(self, query: BoundQuery, *, valuations: bool) -> None:
        self.query = query
        self.valuations = valuations
        self.skips = True
        self._table = Table()
        self.machine = self._table.machine
        self.programs: list[Compiled] = []
        self._number: dict[Compiled, int] = {}
        #: By state: the number of its program, and its number there.
        self.states: list[tuple[int, int]] = []
        self._state: dict[tuple[int, int], int] = {}

    def number(self, program: Compiled) -> int:
        """The number of a program."""
        found = self._number.setdefault(program, len(self.programs))
        if found == len(self.programs):
            self.programs.append(program)
        return found

    def initial(self, program: int) -> int:
        """Where the automaton of a program begins."""
        return self._intern(program, 0)

    def intern(self, program: int, state: State) -> int:
        """The number of a state, which is given as the program's determinizer has it."""
        return self._intern(program, self.programs[program].intern(state))

    def _intern(self, program: int, local: int) -> int:
        number = self._state.setdefault((program, local), len(self.states))
        if number == len(self.states):
            self.states.append((program, local))
            determinizer = self.programs[program].determinizer
            self._table.add_state(final=determinizer.is_final(local), ends=not determinizer.goes_on(local))
            self.machine = self._table.machine
        return number

    def widen(self, classes: NDArray[np.int32]) -> None:
        """Make room for the classes of some events."""
        self._table.widen(int(classes.max(initial=0)) + 1)
        self.machine = self._table.machine

    def determinize(self, state: int, cls: int) -> None:
        """Add the transitions of a state on a class of its program."""
        program, local = self.states[state]
        steps = self.programs[program].step(local, cls)
        self._table.set(state, cls, [(mark, self._intern(program, target)) for mark, target in steps])
        self.machine = self._table.machine

    @property
    def classifier(self) -> Classifier:
        """Events come with their classes."""
        raise NotImplementedError

    def shape(self, unknown: frozenset[str]) -> Any:
        """A state is taken over pattern by pattern, by the text of its query."""
        raise NotImplementedError
