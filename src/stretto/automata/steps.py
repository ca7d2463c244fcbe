"""The steps of a CEL formula: what follows what, and how soon (a position automaton).

A step reads one event that satisfies its guard. An edge leads from a step to one that may come next, with what the two events ask
of each other: neighbours in the stream, at least and at most so far apart, no event of some guards between. So a run is a path
of events, and every gap is a question to two neighbours on it. A window inside the formula is opened by the edge that enters it.

:mod:`~stretto.automata.cea` builds the automaton of a formula without gaps, whose runs need no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from stretto.automata.cea import MOST_TRANSITIONS
from stretto.errors import LimitError
from stretto.query import algebra as a
from stretto.query.guard import Guard
from stretto.query.windows import Window

#: Windows and gaps in the unit of their clock; where no schema is known, as they are written.
Size = int | float | Window

_NOTHING: frozenset[Guard] = frozenset()

#: Windows inside a formula are bits of a word.
MOST_WINDOWS = 62


@dataclass(frozen=True)
class Step:
    """One event of a run, which ``labels`` hold; ``inside`` are the windows that it lies in.

    ``atom``: which type of the formula it is, in the order of :func:`~stretto.query.algebra.places`; one may be several steps.
    """

    guard: Guard
    labels: frozenset[str]
    inside: frozenset[int] = frozenset()
    atom: int = 0


@dataclass(frozen=True)
class Edge:
    """From the event of a step to the next one; ``opens`` are the windows that begin there."""

    source: int
    target: int
    contiguous: bool
    least: Size | None = None
    most: Size | None = None
    unless: frozenset[Guard] = _NOTHING
    opens: frozenset[int] = frozenset()

    @property
    def asked(self) -> str:
        """What the two events ask of each other, in words."""
        asked = ["next event"] if self.contiguous else []
        asked += [] if self.least is None else [f"at least {self.least} later"]
        asked += [] if self.most is None else [f"at most {self.most} later"]
        asked += [f"no {guard} between" for guard in sorted(self.unless, key=str)]
        return ", ".join(asked)

    def __str__(self) -> str:
        return f"{self.source} → {self.target}  {self.asked}".rstrip()


@dataclass(frozen=True)
class Steps:
    """The steps of a formula, those that may come first and last, and the sizes of the windows inside.

    ``before`` and ``behind`` are the guards of events that must not come before the first and behind the last one.
    """

    steps: tuple[Step, ...]
    edges: tuple[Edge, ...]
    first: frozenset[int]
    last: frozenset[int]
    windows: tuple[Size, ...]
    before: frozenset[Guard]
    behind: frozenset[Guard]

    def __str__(self) -> str:
        lines = [f"first {_listed(self.first)}, last {_listed(self.last)}"]
        for number, step in enumerate(self.steps):
            windows = "".join(f", in window {one} of {self.windows[one]}" for one in sorted(step.inside))
            labels = ", ".join(sorted(step.labels)) or "∘"
            lines.append(f"  {number}  {step.guard} / {{{labels}}}{windows}")
        lines += [f"  {edge}" + "".join(f", opens window {one}" for one in sorted(edge.opens)) for edge in self.edges]
        lines += [f"  no {one} before" for one in sorted(self.before, key=str)]
        lines += [f"  no {one} behind" for one in sorted(self.behind, key=str)]
        return "\n".join(lines)


def _listed(numbers: frozenset[int]) -> str:
    return f"{{{', '.join(map(str, sorted(numbers)))}}}"


def steps_of(pattern: a.Pattern, size: Callable[[Window], Size]) -> Steps:
    """Find the steps of a formula; ``size`` gives its windows and gaps in the unit of their clock.

    Raises
    ------
    LimitError
        There are too many edges, or windows.

    >>> from stretto.languages.ceql import parse
    >>> print(steps_of(parse("SELECT * FROM S WHERE A ; B+ GAP 3 [t]").pattern, lambda one: one.number))
    first {0}, last {1}
      0  A / {A}
      1  B / {B}
      1 → 1  at most 3 later
      0 → 1
    """
    builder = _Builder(size)
    whole = builder.of(pattern)
    steps = tuple(builder.steps)
    if len(builder.windows) > MOST_WINDOWS:
        raise LimitError(f"the formula has more than {MOST_WINDOWS} windows inside; simplify the pattern")
    edges = tuple(dict.fromkeys(builder.edges))
    before, behind = frozenset(builder.before), frozenset(builder.behind)
    return Steps(steps, edges, frozenset(whole.first), frozenset(whole.last), tuple(builder.windows), before, behind)


@dataclass(frozen=True)
class _Part:
    """A sub-formula: its first steps with the windows that they open, its last ones, and whether it may be missing.

    ``absent``: nothing is read, and events of these guards must not come; ``gap``: how long after the event before.
    """

    first: Mapping[int, frozenset[int]]
    last: frozenset[int]
    empty: bool = False
    absent: frozenset[Guard] | None = None
    gap: tuple[Size | None, Size | None] = (None, None)


#: Where the next part may go on, with what must not come until then.
_Tails = list[tuple[frozenset[Guard], frozenset[int]]]


@dataclass
class _Builder:
    """Bottom-up; the steps and edges of a sub-formula are ranges, because they are made in order."""

    size: Callable[[Window], Size]
    steps: list[Step] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    windows: list[Size] = field(default_factory=list)
    atoms: int = 0
    before: set[Guard] = field(default_factory=set)
    behind: set[Guard] = field(default_factory=set)

    def of(self, pattern: a.Pattern) -> _Part:
        """The part of a formula; without recursion."""
        done: list[_Part] = []
        todo: list[tuple[a.Pattern, tuple[int, int] | None]] = [(pattern, None)]
        while todo:
            node, begin = todo.pop()
            below = a.children(node)
            if begin is None and below:
                todo.append((node, (len(self.steps), len(self.edges))))
                todo.extend((child, None) for child in reversed(below))
                continue
            parts = done[len(done) - len(below) :]
            del done[len(done) - len(below) :]
            done.append(self._combine(node, parts, *(begin or (0, 0))))
        return done[0]

    def _combine(  # noqa: PLR0911 - an operator a case
        self, node: a.Pattern, parts: list[_Part], begin: int, edge: int
    ) -> _Part:
        match node:
            case a.Atom():
                self.steps.append(Step(Guard(node.type, node.stream), node.labels, atom=self.atoms))
                self.atoms += 1
                number = len(self.steps) - 1
                return _Part({number: frozenset()}, frozenset({number}))
            case a.As() | a.Filter() | a.Project():
                self.steps[begin:] = [_relabelled(node, one) for one in self.steps[begin:]]
                return parts[0]
            case a.Or():
                first = {step: opens for one in parts for step, opens in one.first.items()}
                return _Part(first, _all(one.last for one in parts), any(one.empty for one in parts))
            case a.Not():
                absent = frozenset(one.guard for one in self.steps[begin:])
                del self.steps[begin:]
                return _Part({}, frozenset(), absent=absent)
            case a.After(_, least, most):
                return replace(parts[0], gap=(self.size(least), None if most is None else self.size(most)))
            case a.Within(_, window):
                own = frozenset({len(self.windows)})
                self.windows.append(self.size(window))
                self.steps[begin:] = [replace(one, inside=one.inside | own) for one in self.steps[begin:]]
                first = {step: opens | own for step, opens in parts[0].first.items()}
                return replace(parts[0], first=first)
            case a.Sequence(_, contiguous):
                return self._sequence(parts, contiguous)
            case a.Plus(_, joint, gap):
                return self._repeated([parts[0]], 1, joint, gap, endless=True)
            case a.Repeat(_, least_times, most_times, joint, gap):
                copies = max(least_times, 1) if most_times is None else most_times
                self._bounded(copies * (len(self.edges) - edge + 1))
                chain = [parts[0], *self._copies(parts[0], begin, edge, copies - 1)]
                return self._repeated(chain, least_times, joint, gap, endless=most_times is None)
        raise AssertionError(node)

    def _bounded(self, edges: int) -> None:
        if edges > MOST_TRANSITIONS:
            raise LimitError(f"the automaton has more than {MOST_TRANSITIONS:,} transitions; simplify the pattern")

    def _joint(self, last: frozenset[int], part: _Part, edge: Edge) -> None:
        """From each of some steps to each first one of a part."""
        self._bounded(len(self.edges) + len(last) * len(part.first))
        for source in sorted(last):
            for target, opens in part.first.items():
                self.edges.append(replace(edge, source=source, target=target, opens=opens))

    def _sequence(self, parts: list[_Part], contiguous: tuple[bool, ...]) -> _Part:
        """One part after the other; a part that may be missing is passed by, and the joint before the next one counts."""
        low, high = 0, len(parts)
        while parts[low].absent is not None:
            self.before |= parts[low].absent or _NOTHING
            low += 1
        while parts[high - 1].absent is not None:
            high -= 1
            self.behind |= parts[high].absent or _NOTHING
        first, missing = dict(parts[low].first), parts[low].empty
        tails: _Tails = [(_NOTHING, parts[low].last)]
        for joint, part in zip(contiguous[low:], parts[low + 1 : high], strict=False):
            if part.absent is not None:
                tails = [(unless | part.absent, last) for unless, last in tails]
                continue
            for unless, last in tails:
                self._joint(last, part, Edge(0, 0, joint, *part.gap, unless))
            if missing:
                first |= part.first
            tails = [*(tails if part.empty else ()), (_NOTHING, part.last)]
            missing &= part.empty
        return _Part(first, _all(last for _, last in tails), missing)

    def _repeated(
        self, chain: list[_Part], least: int, contiguous: bool, gap: Window | None, *, endless: bool
    ) -> _Part:
        """Copies of one part, one after the other, of which ``least`` are needed; ``endless`` repeats the last one."""
        if chain[0].empty:
            least = 0
        edge = Edge(0, 0, contiguous, most=None if gap is None else self.size(gap))
        for one, following in zip(chain, [*chain[1:], *(chain[-1:] if endless else ())], strict=False):
            self._joint(one.last, following, edge)
        enough = _all(one.last for number, one in enumerate(chain, 1) if number >= least)
        return _Part(chain[0].first, enough, least == 0)

    def _copies(self, part: _Part, begin: int, edge: int, count: int) -> list[_Part]:
        """More of a part, which was built last, of the steps and edges from these numbers on; they share their windows."""
        steps, edges = self.steps[begin:], self.edges[edge:]
        copies = []
        for number in range(1, count + 1):
            apart = number * len(steps)
            self.steps += steps
            self.edges += [replace(one, source=one.source + apart, target=one.target + apart) for one in edges]
            first = {step + apart: opens for step, opens in part.first.items()}
            copies.append(replace(part, first=first, last=frozenset(step + apart for step in part.last)))
        return copies


def _all(parts: object) -> frozenset[int]:
    return frozenset().union(*parts)  # type: ignore[misc]


def _relabelled(node: a.As | a.Filter | a.Project, step: Step) -> Step:
    """What a node says of an event that its body holds."""
    if isinstance(node, a.Project):
        return replace(step, labels=step.labels & node.variables)
    if isinstance(node, a.As):
        return replace(step, labels=step.labels | {node.variable}) if step.labels else step
    return replace(step, guard=step.guard.and_also(node.predicate)) if node.variable in step.labels else step
