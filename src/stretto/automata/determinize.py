"""I/O-determinization on the fly, over event classes, with the selection strategies in the states.

CORE paper, sections 3 and 4.4. A *class* is the set of guards that an event satisfies (a bit vector). From a state, one
class and one mark lead to at most one state, so every complex event of a start position has exactly one run. States are
made when first reached, and cached.

A state is a tuple of sets of CEA states (bit masks), all reached by runs over the same events from the same start:

======== ================= =====================================================================================
strategy state             meaning
======== ================= =====================================================================================
ALL      (S,)              S: reached with exactly the marks of this run
STRICT   (S,)              the same, over the transitions that mark
MAX      (S, E, B)         B: reached with a strict superset of the marks
NEXT     (S, E, B)         B: reached with better marks: at the first difference, they have it
LAST     (S, E, B, U)      B: reached with better marks: at the last difference, they have it; U: reached with any marks
======== ================= =====================================================================================

E is reached with the same positions under any labels; it differs from S only when valuations are told apart. A CEA state
that a better run has reached as well is taken out of S: whatever that run can still become, the better one can become
with the same marks. A run whose S is empty dies. A run outputs when S holds a final state and B does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from stretto.automata.cea import CEA
from stretto.errors import LimitError
from stretto.query.query import Strategy

#: The mark of a transition that marks nothing (∘).
SKIP = 0

#: The mark of an event whose variables are not the same in all runs with these positions (only without valuations).
AMBIGUOUS = 1

State = tuple[int, ...]


@dataclass(frozen=True)
class _Arc:
    guard: int
    labels: frozenset[str]
    mark: int
    targets: int
    unless: int  #: the guards, as bits, of which an event must satisfy none

    def reads(self, vector: int) -> bool:
        """Whether it reads an event of a class."""
        return bool(vector >> self.guard & 1) if self.guard >= 0 else not vector & self.unless


class Determinizer:
    """The states and transitions seen so far of a determinized CEA.

    Parameters
    ----------
    cea
        The automaton.
    strategy
        Which complex events of an interval to keep.
    valuations
        Tell runs apart that mark the same positions with other variables.
    most
        Refuse to make more states than this.
    """

    def __init__(self, cea: CEA, strategy: Strategy, *, valuations: bool = False, most: int = 1 << 15) -> None:
        self.cea = cea
        self.strategy = strategy
        self.valuations = valuations
        self.most = most
        #: Label sets by mark; the first two are ∘ and "ambiguous".
        self.marks: list[frozenset[str]] = [frozenset(), frozenset()]
        self._mark_of: dict[frozenset[str], int] = {}
        self._arcs: list[list[_Arc]] = [[] for _ in range(cea.states)]
        #: By guard, the CEA states with a transition under it.
        self._asking = [0] * len(cea.guards)
        self._collect_arcs()
        self._busy = sum(1 << source for source, arcs in enumerate(self._arcs) if arcs)
        self._finals = sum(1 << state for state in cea.finals)
        self.states: list[State] = []
        self._ids: dict[State, int] = {}
        self._start()

    def _collect_arcs(self) -> None:
        grouped: dict[tuple[int, int, frozenset[str]], int] = {}
        for t in self.cea.transitions:
            key = (t.source, t.guard, t.labels)
            grouped[key] = grouped.get(key, 0) | 1 << t.target
        for (source, guard, labels), targets in grouped.items():
            if not labels and self.strategy is Strategy.STRICT:
                continue
            mark = SKIP
            if labels:
                mark = self._mark_of.setdefault(labels, len(self.marks))
                if mark == len(self.marks):
                    self.marks.append(labels)
            unless = self.cea.unless(guard)
            self._arcs[source].append(_Arc(guard, labels, mark, targets, sum(1 << one for one in unless)))
            for one in (guard,) if guard >= 0 else unless:
                self._asking[one] |= 1 << source

    def _start(self) -> None:
        first = 1  # the mask of CEA state 0
        match self.strategy:
            case Strategy.ALL | Strategy.STRICT:
                self.intern((first,))
            case Strategy.MAX | Strategy.NEXT:
                self.intern((first, first, 0))
            case Strategy.LAST:
                self.intern((first, first, 0, first))

    def intern(self, state: State) -> int:
        """The number of a state; 0 is the start."""
        number = self._ids.get(state)
        if number is None:
            if len(self.states) >= self.most:
                raise LimitError(
                    f"determinizing the query made more than {self.most:,} states; nested iterations and "
                    "disjunctions of overlapping conditions multiply them: simplify the pattern, or drop the strategy"
                )
            number = self._ids[state] = len(self.states)
            self.states.append(state)
        return number

    def may_have(self, state: State) -> bool:
        """Whether a state has as many sets as all have, of states that the CEA has."""
        return len(state) == len(self.states[0]) and all(0 <= one < 1 << len(self._arcs) for one in state)

    def is_final(self, state: int) -> bool:
        """Whether a run that enters the state outputs."""
        sets = self.states[state]
        if not sets[0] & self._finals:
            return False
        return len(sets) == 1 or not sets[2] & self._finals

    def step(self, state: int, vector: int) -> list[tuple[int, int]]:
        """The transitions of a state on events of a class: pairs (mark, state), marking ones first."""
        sets = self.states[state]
        moved = [self._move(mask, vector) for mask in sets]
        result = []
        for mark in sorted(m for m in moved[0] if m != SKIP):
            target = self._after(moved, mark)
            if target is not None:
                result.append((mark if self.valuations else self._label(sets[0], vector), target))
        if SKIP in moved[0]:
            target = self._after(moved, SKIP)
            if target is not None:
                result.append((SKIP, target))
        return result

    def _move(self, mask: int, vector: int) -> dict[int, int]:
        """The CEA states reached from a set, by mark. Without valuations all marks but ∘ are one, :data:`AMBIGUOUS`."""
        reached: dict[int, int] = {}
        while mask:
            low = mask & -mask
            mask ^= low
            for arc in self._arcs[low.bit_length() - 1]:
                if arc.reads(vector):
                    mark = arc.mark if self.valuations or arc.mark == SKIP else AMBIGUOUS
                    reached[mark] = reached.get(mark, 0) | arc.targets
        return reached

    def _after(self, moved: Sequence[dict[int, int]], mark: int) -> int | None:
        """The state after ``mark``, given where each of the sets can go; ``None`` when the run dies."""
        same = moved[0][mark]
        if len(moved) == 1:
            return self.intern((same,))
        skipped = [m.get(SKIP, 0) for m in moved]
        marked = [_union(targets for m, targets in one.items() if m != SKIP) for one in moved]
        equal, better, every = 1, 2, 3
        if mark != SKIP:
            alike = marked[equal]
            beaten = marked[better]
            if self.strategy is Strategy.NEXT:
                beaten |= skipped[better]
        else:
            alike = skipped[equal]
            beaten = skipped[better]
            if self.strategy is Strategy.LAST:
                beaten |= marked[every]
            else:
                beaten |= marked[better] | marked[equal]
        same &= ~beaten
        if not same:
            return None
        sets = (same, alike & ~beaten, beaten)
        if self.strategy is Strategy.LAST:
            return self.intern((*sets, marked[every] | skipped[every]))
        return self.intern(sets)

    def _label(self, mask: int, vector: int) -> int:
        """The mark that all marking transitions of a set agree on, or :data:`AMBIGUOUS`."""
        marks = set()
        while mask:
            low = mask & -mask
            mask ^= low
            for arc in self._arcs[low.bit_length() - 1]:
                if arc.mark != SKIP and arc.reads(vector):
                    marks.add(arc.mark)
        return marks.pop() if len(marks) == 1 else AMBIGUOUS

    def mixes(self, state: int, vector: int, variables: Set[str]) -> bool:
        """Whether a class of events is held in several ways by the runs of a state, one of which some variables are part of."""
        mask, found = self.states[state][0], set()
        while mask:
            low = mask & -mask
            mask ^= low
            found |= {arc.labels for arc in self._arcs[low.bit_length() - 1] if arc.mark != SKIP and arc.reads(vector)}
        return len(found) > 1 and any(labels & variables for labels in found)

    def goes_on(self, state: int) -> bool:
        """Whether any event can lead on from the state."""
        return bool(self.states[state][0] & self._busy)

    def asking(self, vector: int) -> int:
        """The CEA states that have a transition with a guard under which events of a class fall."""
        mask = 0
        while vector:
            low = vector & -vector
            vector ^= low
            mask |= self._asking[low.bit_length() - 1]
        return mask

    def is_idle(self, state: int, asking: int) -> bool:
        """Whether a class (see :meth:`asking`) moves the state as an event does that satisfies no guard at all."""
        return not any(mask & asking for mask in self.states[state])


def _union(masks: Iterable[int]) -> int:
    total = 0
    for mask in masks:
        total |= mask
    return total
