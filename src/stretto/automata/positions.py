"""The ways through a pattern: which component may come first, which one after which, and where a match may end.

Glushkov's position automaton of the pattern, as an expression over its components, made deterministic: where a group is counted, the
positions of a component in its copies are one *place*, so that each way through the pattern is one path and gives each match once.
A step knows which negations lie between its two events, and whether it leaves a group that repeats.

>>> c, d = (Component((name.upper(),), name, again=True) for name in "cd")
>>> found = places((Component(("A",), "a"), Group((c, d), 0, None)))
>>> found.component, [[step.place for step in steps] for steps in found.follow], found.final
([0, 1, 2], [[1], [2], [1]], [True, False, True])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from stretto.errors import LimitError, QueryError
from stretto.query.sase import Component, Group, Part, components_of

#: Places and steps of an automaton, and positions of a pattern before they become places.
MOST = 1 << 14

#: The negations that a step passes.
Passed = frozenset[int]
#: … in the ways that there are; none: there is no way.
Ways = frozenset[Passed]

_FREE: Ways = frozenset([frozenset()])


@dataclass(frozen=True)
class Step:
    """A step to the place of the next event; ``passed`` are the negations that lie between."""

    place: int
    passed: Passed = frozenset()


@dataclass
class Places:
    """The automaton. ``first`` and ``follow`` are steps; ``ends`` says what negations lie behind a place that may be the last."""

    component: list[int] = field(default_factory=list)
    first: list[Step] = field(default_factory=list)
    follow: list[list[Step]] = field(default_factory=list)
    ends: list[Passed | None] = field(default_factory=list)

    @property
    def final(self) -> list[bool]:
        """By place: whether a match may end there."""
        return [one is not None for one in self.ends]

    @property
    def linear(self) -> bool:
        """Whether each place is followed by the next one."""
        last = len(self.component) - 1
        return [one.place for one in self.first] == [0] and all(
            [one.place for one in steps] == ([at + 1] if at < last else []) and self.final[at] == (at == last)
            for at, steps in enumerate(self.follow)
        )


@dataclass
class _Fragment:
    """A part of the pattern: the positions at which it may begin and end, with the negations before and behind them."""

    first: dict[int, Ways]
    last: dict[int, Ways]
    empty: Ways  #: the ways through it without an event


class _Builder:
    """Positions of a pattern, and what follows each."""

    def __init__(self, components: Sequence[Component]) -> None:
        positive = [one for one in components if not one.negated]
        negated = [one for one in components if one.negated]
        self.numbers = {one.variable: number for number, one in enumerate(positive)}
        self.negations = {one.variable: number for number, one in enumerate(negated)}
        self.label: list[int] = []
        self.follow: list[dict[int, Ways]] = []
        self.steps = 0

    def part(self, part: Part) -> _Fragment:
        if isinstance(part, Component):
            if part.negated:
                return _Fragment({}, {}, frozenset([frozenset([self.negations[part.variable]])]))
            self._count()
            at = len(self.label)
            self.label.append(self.numbers[part.variable])
            self.follow.append({})
            return _Fragment({at: _FREE}, {at: _FREE}, frozenset() if part.least else _FREE)
        copies = max(part.least, 1) if part.most is None else part.most
        found = self._body(part)
        for number in range(copies - 1, 0, -1):  # from the last copy on: X, (X, (X)?)?
            if number == copies - 1 and part.most is None:
                self._join(found.last, found.first)
            if number >= part.least:
                found.empty |= _FREE
            found = self._sequence(self._body(part), found)
        if copies == 1 and part.most is None:
            self._join(found.last, found.first)
        if not part.least:
            found.empty |= _FREE
        return found

    def _body(self, group: Group) -> _Fragment:
        parts = [self.part(one) for one in group.parts]
        if not group.choice:
            found = parts[0]
            for one in parts[1:]:
                found = self._sequence(found, one)
            return found
        first = {at: ways for one in parts for at, ways in one.first.items()}
        last = {at: ways for one in parts for at, ways in one.last.items()}
        return _Fragment(first, last, frozenset[Passed]().union(*(one.empty for one in parts)))

    def _sequence(self, one: _Fragment, other: _Fragment) -> _Fragment:
        self._join(one.last, other.first)
        first = dict(one.first)
        for at, ways in other.first.items():
            _add(first, at, _together(one.empty, ways))
        last = dict(other.last)
        for at, ways in one.last.items():
            _add(last, at, _together(ways, other.empty))
        return _Fragment(first, last, _together(one.empty, other.empty))

    def _join(self, last: dict[int, Ways], first: dict[int, Ways]) -> None:
        for before, ways in last.items():
            for after, more in first.items():
                self._count()
                _add(self.follow[before], after, _together(ways, more))

    def _count(self) -> None:
        self.steps += 1
        if self.steps > 8 * MOST:
            raise LimitError(
                f"the pattern has more than {8 * MOST:,} steps: count in a smaller group, or repeat less often"
            )


def _together(one: Ways, other: Ways) -> Ways:
    return frozenset(a | b for a in one for b in other)


def _add(found: dict[int, Ways], at: int, ways: Ways) -> None:
    if ways:
        found[at] = found.get(at, frozenset()) | ways


def places(parts: Sequence[Part]) -> Places:
    """Make the automaton of a pattern.

    Raises
    ------
    QueryError
        Whether a negated event may come depends on how the same events are read.
    LimitError
        There are too many places.
    """
    texts = list(components_of(parts))
    builder = _Builder(texts)
    whole = builder.part(Group(tuple(parts)))
    labels = builder.label
    found = Places()
    known: dict[frozenset[int], int] = {}
    sets: list[frozenset[int]] = []

    def steps(follow: Iterable[tuple[int, Ways]]) -> Iterator[Step]:
        """Steps by component, in the order of the pattern."""
        by_label: dict[int, dict[int, Ways]] = {}
        for at, ways in follow:
            _add(by_label.setdefault(labels[at], {}), at, ways)
        for label in sorted(by_label):
            targets = by_label[label]
            key = frozenset(targets)
            if key not in known:
                if len(known) > MOST:
                    raise LimitError(
                        f"the pattern has more than {MOST:,} places: count in a smaller group, or repeat less often"
                    )
                known[key] = len(known)
                sets.append(key)
                found.component.append(label)
            yield Step(known[key], _one(frozenset[Passed]().union(*targets.values()), texts))

    found.first = list(steps(whole.first.items()))
    for positions in sets:  # which grow
        found.follow.append(list(steps(pair for one in sorted(positions) for pair in builder.follow[one].items())))
        ends: Ways = frozenset[Passed]().union(*(whole.last.get(one, frozenset()) for one in positions))
        found.ends.append(_one(ends, texts) if ends else None)
    return found


def _one(ways: Ways, components: Sequence[Component]) -> Passed:
    """The negations of a step, which must be the same in whatever way the pattern is read."""
    if len(ways) > 1:
        union = frozenset[int]().union(*ways)
        least = frozenset.intersection(*ways)
        negated = [one for one in components if one.negated]
        name = negated[min(union - least)]
        raise QueryError(
            f"whether {name} must not come depends on how the same events are read",
            span=name.span,
            hint="leave it out of the group, or ask two queries",
        )
    return next(iter(ways))
