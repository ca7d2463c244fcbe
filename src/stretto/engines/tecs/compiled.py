"""A query compiled for the tECS engine: immutable to the caller, with caches that only grow.

A program holds the automaton, the event classes and the transition table; a :class:`~stretto.engines.tecs.state.State`
holds what a stream has left behind. One program serves any number of states.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.automata.cea import CEA, build
from stretto.automata.determinize import SKIP, Determinizer, State
from stretto.automata.shortcut import Unmarked
from stretto.columns.classes import Classifier
from stretto.engines.tecs.kernels import DEAD, EDGES, KEEP, UNKNOWN, Machine
from stretto.engines.tecs.labels import Arcs, arcs_of
from stretto.query.passes.bind import BoundQuery
from stretto.query.query import Strategy
from stretto.query.totals import undecided


class Compiled:
    """The machine of a bound query.

    Parameters
    ----------
    query
        What to find.
    valuations
        Report every valuation (CORE, section 2.2) in place of every complex event.
    told
        The variables of which it matters what they hold: all runs of a complex event must agree on them.
    """

    def __init__(self, query: BoundQuery, *, valuations: bool = False, told: frozenset[str] = frozenset()) -> None:
        self.query = query
        self.valuations = valuations
        self.cea: CEA = self._built()
        self.determinizer = Determinizer(self.cea, query.parsed.strategy, valuations=valuations)
        #: Whether events that satisfy no guard can be left out.
        self.skips = self.cea.waits and query.parsed.strategy is not Strategy.STRICT
        self._lock = threading.Lock()
        self._table = Table()
        #: By state: the table's entry for classes that do not concern it, once known.
        self._idle = np.full(1, UNKNOWN, np.int32)
        self._known = 0
        self._arcs: Arcs | None = None
        self._truth = np.zeros((0, 0), np.bool_)
        self.machine = self._table.machine
        self.relevant: NDArray[np.bool_] = np.zeros(1, np.bool_)
        self.told = told
        #: What its kernel does with the graph of an event's matches (:attr:`~stretto.engines.api.Operator.inside`).
        self.inside = frozenset({"choosing"})

    revises = False

    def _built(self) -> CEA:
        """The automaton of the query."""
        return build(self.query.pattern)

    @cached_property
    def classifier(self) -> Classifier:
        """What gives events their class; made when it is first asked for, which a pattern beside others may never do."""
        only = self.query.parsed.streams[0]
        return Classifier(self.cea.guards, self.query.schema, default_type=only, default_stream=only)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that conditions, windows and keys read."""
        return self.query.tested

    @property
    def marks(self) -> Sequence[frozenset[str]]:
        """The variables of each mark in raw matches."""
        found = self.determinizer.marks
        return Unmarked(found) if self.query.parsed.language == "sase" else found

    @cached_property
    def alike(self) -> Hashable:
        """What the machine is, whatever its guards ask. One of several alike will do for all, for whoever tells the guards."""
        parsed = self.query.parsed
        return moves_of(self.cea), parsed.strategy, self.valuations, parsed.language

    @cached_property
    def digest(self) -> str:
        """What the automaton is, in short: states are exchanged between programs of the same digest only."""
        return hashlib.sha256(str(self.cea).encode()).hexdigest()

    def shape(self, unknown: frozenset[str]) -> Any:
        """What a state depends on, apart from the literals of conditions."""
        moves = [(one.source, one.guard, sorted(one.labels), one.target) for one in self.cea.transitions]
        forbidden = [sorted(them) for them in self.cea.forbidden]
        return [
            self.cea.states,
            moves,
            sorted(self.cea.finals),
            len(self.cea.guards),
            *([forbidden] if forbidden else []),
        ]

    def refresh(self) -> None:
        """Make room in the transition table for all classes and states known by now."""
        with self._lock:
            self._make_room()

    def _make_room(self) -> None:
        states, classes = len(self.determinizer.states), len(self.classifier.vectors)
        self._table.widen(classes)
        while self._known < states:
            determinizer = self.determinizer
            self._table.add_state(final=determinizer.is_final(self._known), ends=not determinizer.goes_on(self._known))
            self._known += 1
        self.machine = self._table.machine
        if self._idle.size < self.machine.kind.size:
            idle = np.full(self.machine.kind.size, UNKNOWN, np.int32)
            idle[: self._idle.size] = self._idle
            self._idle = idle
        if self.relevant.size < classes:
            vectors = self.classifier.vectors
            self.relevant = np.array([not self.skips or vectors[c] != 0 for c in range(classes)], np.bool_)

    def determinize(self, state: int, cls: int) -> None:
        """Add the transitions of a state on a class to the table.

        The states that the class does not concern are filled in beside it: in a long query those are nearly all, and asking
        for each on its own would cost a call of the kernel.

        Raises
        ------
        QueryError
            In runs of one complex event, an event of the class belongs to a variable that is added up, and to none or another.
        """
        with self._lock:
            vector = self.classifier.vectors[cls]
            # Before the table knows the step, so that whoever takes it later is told as well: the table lives as long as the query.
            if not self.valuations and self.determinizer.mixes(state, vector, self.told):
                raise undecided(name.lstrip("\0") for name in self.told)
            steps = self.determinizer.step(state, vector)
            self._make_room()
            self._table.set(state, cls, steps)
            self.machine = self._table.machine
            asking = self.determinizer.asking(vector)
            column = self.machine.table[:, cls]
            unknown = (column[: self._known] == UNKNOWN) & (self._idle[: self._known] != UNKNOWN)
            for other in np.flatnonzero(unknown):
                if self.determinizer.is_idle(int(other), asking):
                    column[other] = self._idle[other]
            if self.determinizer.is_idle(state, asking):
                self._idle[state] = column[state]

    def step(self, state: int, cls: int) -> list[tuple[int, int]]:
        """The transitions of a state on a class: pairs (mark, state)."""
        with self._lock:
            return self.determinizer.step(state, self.classifier.vectors[cls])

    def intern(self, state: State) -> int:
        """The number of a state of the determinizer, as a snapshot names it.

        Raises
        ------
        ValueError
            The automaton has no such state.
        """
        with self._lock:
            if not self.determinizer.may_have(state):
                raise ValueError(f"the automaton has no state {state}")
            return self.determinizer.intern(state)

    def visited(self, classes: NDArray[np.int32], member: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """The rows of a batch that can change something, by their classes; ``member``: those in the stream (``None``: all)."""
        if not self.skips:
            return np.arange(classes.size) if member is None else np.flatnonzero(member)
        relevant = self.relevant[classes]
        if member is not None:
            relevant &= member
        return np.flatnonzero(relevant)

    def begins(self, classes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which events may begin a match, by their classes."""
        for one in np.unique(classes):
            if self.machine.table[0, one] == UNKNOWN:
                self.determinize(0, int(one))
        beginning: NDArray[np.bool_] = self.machine.table[0] >= EDGES
        return beginning[classes]

    def arcs(self) -> Arcs:
        """The CEA's transitions as arrays."""
        if self._arcs is None:
            self._arcs = arcs_of(self.cea, self.determinizer)
        return self._arcs

    def truth(self) -> NDArray[np.bool_]:
        """Which guards hold on which classes, and behind them where none of those holds that must not: [class, guard]."""
        vectors = self.classifier.vectors
        if self._truth.shape[0] < len(vectors):
            guards, forbidden = range(len(self.cea.guards)), self.cea.forbidden
            held = np.array([[bool(vector >> g & 1) for g in guards] for vector in vectors], np.bool_)
            spared = [~held[:, sorted(them)].any(axis=1) for them in forbidden]
            self._truth = np.column_stack([held, *spared])
        return self._truth


def moves_of(cea: CEA) -> Hashable:
    """An automaton, whatever its guards ask."""
    return cea.states, cea.transitions, cea.finals, len(cea.guards), cea.forbidden


class Table:
    """A transition table that grows by states and by classes."""

    def __init__(self) -> None:
        self._states = 0
        self._used = 0
        self.machine = Machine(
            table=np.full((1, 1), UNKNOWN, np.int32), edges=np.zeros(16, np.int32), kind=np.zeros(1, np.uint8)
        )

    def add_state(self, *, final: bool, ends: bool) -> None:
        """Add the next state; ``ends``: nothing leads on from it."""
        kind = self.machine.kind
        if self._states == kind.size:
            self._make_room(self._states + 1, 1)
            kind = self.machine.kind
        kind[self._states] = final | ends << 1
        self._states += 1

    def widen(self, classes: int) -> None:
        """Make room for so many classes."""
        self._make_room(self._states, classes)

    def _make_room(self, states: int, classes: int) -> None:
        table, kind = self.machine.table, self.machine.kind
        if states > table.shape[0] or classes > table.shape[1]:
            wider = np.full((_room(states, table.shape[0]), _room(classes, table.shape[1])), UNKNOWN, np.int32)
            wider[: table.shape[0], : table.shape[1]] = table
            table, kind = wider, np.resize(kind, wider.shape[0])
        self.machine = Machine(table, self.machine.edges, kind)

    def set(self, state: int, cls: int, steps: list[tuple[int, int]]) -> None:
        """Enter the transitions of a state on a class: pairs (mark, state), of states that are there."""
        self.machine.table[state, cls] = self._code(state, steps)

    def _code(self, state: int, steps: list[tuple[int, int]]) -> int:
        if not steps:
            return DEAD
        if steps == [(SKIP, state)] and not self.machine.kind[state] & 1:
            return KEEP
        edges = self.machine.edges
        size = 1 + 2 * len(steps)
        if self._used + size > edges.size:
            edges = np.resize(edges, 2 * edges.size + size)
            self.machine = Machine(self.machine.table, edges, self.machine.kind)
        at = self._used
        edges[at] = len(steps)
        edges[at + 1 : at + size] = np.array(steps, np.int32).ravel()
        self._used += size
        return at + EDGES


def _room(wanted: int, have: int) -> int:
    """A size of at least ``wanted`` that doubles, so that growing is cheap on average."""
    return have if wanted <= have else max(wanted, 2 * have)
