"""A row pattern as an ordered position automaton: which occurrence of a variable may take the next row, the preferred one first.

Each occurrence of a variable, where quantifiers with bounds and ``PERMUTE`` are written out, is a *position*. What may
come after a position is an ordered list of positions, in which :data:`ACCEPT` says where the match would rather end than
go on. Anchors are gone: ``^`` holds before the first row of a partition only, so that there are two lists of what may
come first; ``$`` holds behind the last row only, where nothing but an end is possible, so that a position only knows
whether it may be the last one there.

The lists are what a depth-first walk through the parts without rows meets, in order of preference (ISO/IEC 19075-5); a
part that it has been at already is not entered again, so that ``(A*)*`` ends, and a round that need not be leads nowhere
where it takes no row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from stretto.errors import LimitError
from stretto.query import row_pattern as r

ACCEPT = -1  #: in a list of followers: the match may end here

MOST_POSITIONS = 10_000
MOST_EDGES = 1_000_000
MOST_STEPS = 200_000  #: parts without rows, written out


@dataclass(frozen=True)
class RowAutomaton:
    """Positions, by number, in the order of the pattern that was written out."""

    variables: tuple[str, ...]  #: the primary variables, by number
    variable: NDArray[np.int64]  #: of each position: the number of its variable
    excluded: NDArray[np.bool_]  #: of each position: it stands in ``{- -}``
    followers: tuple[tuple[int, ...], ...]  #: of each position, where it is not the last row's
    ends: NDArray[np.bool_]  #: of each position: it may take the last row of a match that ends with the partition
    first: tuple[int, ...]  #: what may come first at the first row of a partition
    later: tuple[int, ...]  #: … and at the others

    @property
    def edges(self) -> int:
        """How many followers all positions have."""
        return sum(map(len, (*self.followers, self.first, self.later)))


def build(query: r.RowQuery) -> RowAutomaton:
    """Build the automaton of a clause's pattern.

    Raises
    ------
    LimitError
        The pattern, written out, has too many positions or edges.

    >>> pattern = r.Concatenation((r.Variable("A"), r.Quantified(r.Variable("B"), 0, None)))
    >>> found = build(r.RowQuery("", pattern, {}))
    >>> found.later, found.followers
    ((0,), ((1, -1), (1, -1)))
    """
    steps = _Steps(query.variables)
    start = steps.add(query.pattern, steps.accept, excluded=False)
    return steps.closed(start)


class _Steps:
    """The pattern as steps, built from its end: a step takes a row, or leads to others in order, or asks where it is."""

    def __init__(self, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self.numbers = {name: number for number, name in enumerate(variables)}
        #: Of each step: where it leads; of one that takes a row, to what comes after.
        self.to: list[list[int]] = []
        self.takes: dict[int, tuple[int, bool]] = {}  #: variable and exclusion of a step that takes a row
        self.asks: dict[int, bool] = {}  #: of an anchor: whether it asks for the start
        self.begins: set[int] = set()  #: where rounds begin that need not be
        self.begin_of: dict[int, int] = {}  #: of their ends
        self.accept = self.step([])

    def step(self, to: list[int]) -> int:
        if len(self.to) > MOST_STEPS:
            raise _too_large(f"{MOST_STEPS:,} steps")
        self.to.append(to)
        return len(self.to) - 1

    def add(self, pattern: r.RowPattern, after: int, *, excluded: bool) -> int:
        """Add a part, behind which ``after`` comes; give its first step."""
        match pattern:
            case r.Variable(name):
                if len(self.takes) >= MOST_POSITIONS:
                    raise _too_large(f"{MOST_POSITIONS:,} variables")
                found = self.step([after])
                self.takes[found] = self.numbers[name], excluded
                return found
            case r.Empty():
                return after
            case r.Anchor(start):
                found = self.step([after])
                self.asks[found] = start
                return found
            case r.Concatenation(parts):
                for part in reversed(parts):
                    after = self.add(part, after, excluded=excluded)
                return after
            case r.Alternation(parts):
                return self.either(reversed(parts), after, excluded=excluded)
            case r.Permutation(parts):
                orders = permutations(reversed(parts))  # the last order comes first
                return self.either(map(r.Concatenation, orders), after, excluded=excluded)
            case r.Quantified():
                return self.repeated(pattern, after, excluded=excluded)
            case r.Excluded(part):
                return self.add(part, after, excluded=True)

    def either(self, parts: Iterable[r.RowPattern], after: int, *, excluded: bool) -> int:
        """Any of some parts, which come from the last, the least preferred, to the first, as parts of a concatenation do."""
        return self.step([self.add(part, after, excluded=excluded) for part in parts][::-1])

    def repeated(self, pattern: r.Quantified, after: int, *, excluded: bool) -> int:
        """The rounds that must be, then those that may be; a part without rows is as good once as often."""
        least, most = pattern.least, pattern.most
        if not any(isinstance(one, r.Variable) for one in r.parts_of(pattern.part)):
            least, most = min(least, 1), 1 if most is None else min(most, 1)
        found = after
        if most is None:
            found = self.step([])
            body = self.round(pattern, found, excluded=excluded)
            self.to[found] = [after, body] if pattern.reluctant else [body, after]
        else:
            for _ in range(most - least):
                body = self.round(pattern, found, excluded=excluded)
                found = self.step([after, body] if pattern.reluctant else [body, after])
        for _ in range(least):
            found = self.add(pattern.part, found, excluded=excluded)
        return found

    def round(self, pattern: r.Quantified, after: int, *, excluded: bool) -> int:
        """A round that need not be: steps say where it begins and ends, so that one that takes no row leads nowhere."""
        end = self.step([after])
        begin = self.step([self.add(pattern.part, end, excluded=excluded)])
        self.begins.add(begin)
        self.begin_of[end] = begin
        return begin

    def closed(self, start: int) -> RowAutomaton:
        """Leave out the steps that take no row."""
        taking = sorted(self.takes, reverse=True)  # the pattern was added from its end
        number = {step: position for position, step in enumerate(taking)}
        first = self.reached(start, number, starts=True)
        later = self.reached(start, number)
        edges = len(first) + len(later)
        followers = []
        for step in taking:
            followers.append(self.reached(self.to[step][0], number))
            edges += len(followers[-1])
            if edges > MOST_EDGES:
                raise _too_large(f"{MOST_EDGES:,} edges")
        return RowAutomaton(
            self.variables,
            np.array([self.takes[step][0] for step in taking], np.int64),
            np.array([self.takes[step][1] for step in taking], np.bool_),
            tuple(followers),
            np.array([ACCEPT in self.reached(self.to[step][0], number, ends=True) for step in taking], np.bool_),
            first,
            later,
        )

    def reached(
        self, start: int, number: dict[int, int], *, starts: bool = False, ends: bool = False
    ) -> tuple[int, ...]:
        """What comes next, by preference. Behind an end that is always possible nothing is asked for.

        A step counts as another one inside of rounds that have begun without a row: those of them that enclose it, at most.
        """
        found: dict[int, None] = {}
        seen: set[tuple[int, frozenset[int]]] = set()
        stack: list[tuple[int, frozenset[int]]] = [(start, frozenset())]
        while stack:
            here = stack.pop()
            step, begun = here
            if here in seen or self.begin_of.get(step) in begun:
                continue
            seen.add(here)
            if step == self.accept:
                found[ACCEPT] = None
                break
            if step in number:
                found.setdefault(number[step])
            elif step not in self.asks or (starts if self.asks[step] else ends):  # else an anchor that does not hold
                within = begun | {step} if step in self.begins else begun
                stack.extend((one, within) for one in reversed(self.to[step]))
        return tuple(found)


def _too_large(what: str) -> LimitError:
    return LimitError(
        f"the pattern, written out, has more than {what}: a quantifier {{n,m}} is written out m times, "
        "PERMUTE of n parts in n! orders; ask for fewer, or count in DEFINE (count(A.*) < n)"
    )
