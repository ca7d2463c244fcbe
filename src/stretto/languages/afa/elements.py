"""Patterns for AFAs: elements that each consume an event, joined as regular expressions are, with register updates at each.

A pattern becomes arcs by Glushkov's construction: one state for each element as it is written out, and no ε-arcs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any

from stretto.arguments import check_arguments
from stretto.errors import LimitError, OptionError

#: Arcs that a pattern may have: a repetition is written out, and each of its elements may follow many others.
MOST_ARCS = 10_000


class Steps(ABC):
    """A pattern: one element, or several that are joined.

    ``a >> b`` is a and then b, ``a | b`` either; ``a.plus()`` is one or more, ``a.star()`` any number, ``a.optional()`` one or
    none, ``a.times(2)`` two, ``a.times(2, 4)`` two to four, ``a.times(2, None)`` two or more. Events follow each other without
    gaps; :meth:`stretto.AFA.pattern` says how to let some pass.

    >>> import stretto
    >>> a, b = stretto.element("e.x = 1"), stretto.element("e.x = 2")
    >>> print((a | b).times(2, None) >> a.optional())
    ((e.x = 1) | (e.x = 2)){2,} >> (e.x = 1)?
    """

    def __rshift__(self, other: Steps) -> Steps:
        return _Sequence((*_parts(self, _Sequence), *_parts(_checked(other), _Sequence)))

    def __or__(self, other: Steps) -> Steps:
        return _Either((*_parts(self, _Either), *_parts(_checked(other), _Either)))

    def plus(self) -> Steps:
        """Repeat the pattern once or more."""
        return _Repeat(self, 1, None)

    def star(self) -> Steps:
        """Repeat the pattern any number of times."""
        return _Repeat(self, 0, None)

    def optional(self) -> Steps:
        """Take the pattern once or not at all."""
        return _Repeat(self, 0, 1)

    def times(self, least: int, most: int | EllipsisType | None = ...) -> Steps:
        """Repeat the pattern ``least`` times; or up to ``most``, where ``None`` is any number.

        Raises
        ------
        OptionError
            They are no numbers of times.
        """
        upper = least if isinstance(most, EllipsisType) else most
        for bound in (least, upper):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int) or bound < 0):
                raise OptionError(f"times({least!r}, {upper!r}): a number of times is an integer from 0 on")
        if upper is not None and (upper < least or upper == 0):
            raise OptionError(f"times({least}, {upper}): no such number of times")
        return _Repeat(self, least, upper)

    @abstractmethod
    def link(self, into: _Links) -> _Ends:
        """Add the positions and arcs of this pattern."""


@dataclass(frozen=True)
class Step(Steps):
    """An element: what an event must satisfy, and what it does to the register. See :func:`element`."""

    when: str | Callable[[Any, Any], Any] | None = None
    then: str | Mapping[str, Any] | Callable[[Any, Any], Any] | None = None
    name: str | None = None

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        shown = "TRUE" if self.when is None else self.when if isinstance(self.when, str) else self.when.__name__
        return f"({shown})"

    def link(self, into: _Links) -> _Ends:
        return _Ends(False, (at := (into.position(self),)), at)


@dataclass(frozen=True)
class _Sequence(Steps):
    steps: tuple[Steps, ...]

    def __str__(self) -> str:
        return " >> ".join(f"({step})" if isinstance(step, _Either) else str(step) for step in self.steps)

    def link(self, into: _Links) -> _Ends:
        found = _Ends(True, (), ())
        for step in self.steps:
            after = step.link(into)
            into.follow(found.last, after.first)
            found = _Ends(
                found.empty and after.empty,
                found.first + after.first if found.empty else found.first,
                found.last + after.last if after.empty else after.last,
            )
        return found


@dataclass(frozen=True)
class _Either(Steps):
    choices: tuple[Steps, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.choices))

    def link(self, into: _Links) -> _Ends:
        ends = [one.link(into) for one in self.choices]
        return _Ends(
            any(one.empty for one in ends),
            tuple(at for one in ends for at in one.first),
            tuple(at for one in ends for at in one.last),
        )


@dataclass(frozen=True)
class _Repeat(Steps):
    step: Steps
    least: int
    most: int | None

    def __str__(self) -> str:
        signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
        most = "" if self.most is None else str(self.most)
        count = str(self.least) if self.least == self.most else f"{self.least},{most}"
        inner = f"({self.step})" if isinstance(self.step, _Sequence | _Either) else str(self.step)
        return inner + signs.get((self.least, self.most), f"{{{count}}}")

    def link(self, into: _Links) -> _Ends:
        """Copies in a row, the first ``least`` of them needed; each is reached from the one before only, so in one way."""
        copies = max(self.least, 1) if self.most is None else self.most
        ends: list[_Ends] = []
        for _ in range(copies):
            ends.append(self.step.link(into))
            if len(ends) > 1:
                into.follow(ends[-2].last, ends[-1].first)
        if self.most is None:
            into.follow(ends[-1].last, ends[-1].first)
        # What may be empty may be so every time.
        least = 0 if ends[0].empty else self.least
        last = tuple(at for one in ends[max(least, 1) - 1 :] for at in one.last)
        return _Ends(least == 0, ends[0].first, last)


def _parts(steps: Steps, kind: type[_Sequence] | type[_Either]) -> tuple[Steps, ...]:
    if isinstance(steps, _Sequence) and kind is _Sequence:
        return steps.steps
    if isinstance(steps, _Either) and kind is _Either:
        return steps.choices
    return (steps,)


def _checked(other: Any) -> Steps:
    if not isinstance(other, Steps):
        raise OptionError(f"a pattern is joined with another one, not with {type(other).__name__}: stretto.element(…)")
    return other


@check_arguments
def element(
    when: str | Callable[[Any, Any], Any] | None = None,
    then: str | Mapping[str, Any] | Callable[[Any, Any], Any] | None = None,
    *,
    name: str | None = None,
) -> Step:
    """Make a pattern of one event, to be joined with others (:class:`Steps`) and given to :meth:`stretto.AFA.pattern`.

    Parameters
    ----------
    when, then
        What the event must satisfy, and what it does to the register: as for :meth:`stretto.AFA.arc`.
    name
        What its state is called.

    Examples
    --------
    Two V-patterns after a drop, with the number of downticks:

    >>> import stretto
    >>> drop = stretto.element("e.change < -0.25", name="drop")
    >>> down = stretto.element("e.change < 0", then="downs = r.downs + 1", name="down")
    >>> up = stretto.element("e.change > 0", name="up")
    >>> v = down.plus() >> up.plus()
    >>> afa = stretto.AFA({"change": float}, {"downs": int}).pattern(drop >> v.times(2))
    >>> afa.frozen.states
    ('q0', 'drop', 'down', 'up', 'down2', 'up2')
    """
    if name is not None and (not isinstance(name, str) or not name):
        raise OptionError(f"an element's name is a text, not {name!r}")
    return Step(when, then, name)


# ---- Glushkov's construction


@dataclass(frozen=True)
class _Ends:
    """Whether a pattern may be empty, and the positions at which it can begin and end."""

    empty: bool
    first: tuple[int, ...]
    last: tuple[int, ...]


@dataclass
class _Links:
    """Positions, and which may follow which."""

    steps: list[Step] = field(default_factory=list)
    arcs: dict[tuple[int | None, int], None] = field(default_factory=dict)

    def position(self, step: Step) -> int:
        self.steps.append(step)
        self._check()
        return len(self.steps) - 1

    def follow(self, last: tuple[int | None, ...], first: tuple[int, ...]) -> None:
        for source in last:
            for target in first:
                self.arcs[source, target] = None
                self._check()

    def _check(self) -> None:
        if max(len(self.arcs), len(self.steps)) > MOST_ARCS:
            raise LimitError(f"the pattern becomes more than {MOST_ARCS:,} arcs: count in the register instead")


@dataclass(frozen=True)
class Linked:
    """A pattern as positions with their elements, arcs between positions (``None`` is the start), and last positions."""

    steps: tuple[Step, ...]
    arcs: tuple[tuple[int | None, int], ...]
    last: tuple[int, ...]


def positions_of(pattern: Steps) -> Linked:
    """Find the positions of a pattern and how they follow each other.

    Raises
    ------
    LimitError
        There are more than 10,000 arcs.

    >>> linked = positions_of(element("e.x = 1").plus() >> element("e.x = 2").optional())
    >>> linked.arcs, linked.last
    (((None, 0), (0, 0), (0, 1)), (0, 1))
    """
    into = _Links()
    ends = pattern.link(into)
    into.follow((None,), ends.first)
    arcs = sorted(into.arcs, key=lambda arc: (-1 if arc[0] is None else arc[0], arc[1]))
    return Linked(tuple(into.steps), tuple(arcs), tuple(sorted(set(ends.last))))
