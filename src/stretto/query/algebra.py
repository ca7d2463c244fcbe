"""Complex event logic (CEL) as values: what a CEQL query's WHERE clause means before any machine is built.

The grammar of the CORE paper (section 2.2), with contiguous sequencing and iteration, options and counts added::

    φ ::= R | φ AS X | φ FILTER X[P] | φ OR φ | φ ; φ | φ : φ | φ + | φ :+ | φ ? | φ {n,m} | φ :{n,m} | φ ; NOT R ; φ | π_L(φ)
        | φ ; φ AFTER x WITHIN y | φ + GAP x | (φ) WITHIN x

Every node is immutable, compares by value (source spans aside) and prints as CEQL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field, replace
from itertools import takewhile

from stretto.errors import Span
from stretto.query.predicate import Predicate, counted
from stretto.query.windows import Window

RESERVED = frozenset({"SELECT", "FROM", "WHERE", "FILTER", "PARTITION", "WITHIN", "CONSUME", "AS", "OR", "AND", "NOT"})
"""The words that name no type, stream or variable unless they are quoted."""


def quote(name: str) -> str:
    """Write a name as CEQL does: bare where it can be, else in backticks."""
    bare = name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit()
    return name if bare and name.upper() not in RESERVED else "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Atom:
    """``R`` or ``S>R``: one event of type ``type`` (of stream ``stream``). Binds the variable ``type``."""

    type: str
    stream: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def labels(self) -> frozenset[str]:
        """The variables that hold the event: its type, and the qualified type where it is written so."""
        return frozenset({self.type} if self.stream is None else {self.type, f"{self.stream}>{self.type}"})

    def __str__(self) -> str:
        return quote(self.type) if self.stream is None else f"{quote(self.stream)}>{quote(self.type)}"


@dataclass(frozen=True)
class As:
    """``φ AS X``: X holds every event that φ holds."""

    body: Pattern
    variable: str
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_closed(self.body)} AS {quote(self.variable)}"


@dataclass(frozen=True)
class Filter:
    """``φ FILTER X[P]``: every event that X holds satisfies P."""

    body: Pattern
    variable: str
    predicate: Predicate
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        # Hundreds of filters stand on each other in a long query: a loop, not a recursion.
        conditions: list[str] = []
        node: Pattern = self
        while isinstance(node, Filter):
            # A qualified type is quoted part by part; it reads back as the same variable.
            stream, _, kind = node.variable.partition(">")
            name = f"{quote(stream)}>{quote(kind)}" if stream and kind else quote(node.variable)
            conditions.append(f"{name}[{node.predicate}]")
            node = node.body
        return f"({node} FILTER {' AND '.join(reversed(conditions))})"


@dataclass(frozen=True)
class Or:
    """``φ₁ OR φ₂ …``: the union."""

    alternatives: tuple[Pattern, ...]

    def __str__(self) -> str:
        return "(" + " OR ".join(str(part) for part in self.alternatives) + ")"


@dataclass(frozen=True)
class Sequence:
    """``φ₁ ; φ₂ : φ₃ …``: one after the other; ``contiguous[i]`` says that nothing lies between parts i and i+1."""

    parts: tuple[Pattern, ...]
    contiguous: tuple[bool, ...]

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.contiguous) + 1 or len(self.parts) < 2:
            raise ValueError("a sequence has at least two parts, and one joint between each two")

    def __str__(self) -> str:
        text = _closed(self.parts[0])
        for joint, part in zip(self.contiguous, self.parts[1:], strict=True):
            text += (" : " if joint else " ; ") + _closed(part)
        return f"({text})"


@dataclass(frozen=True)
class Plus:
    """``φ+`` (events may lie between iterations) or ``φ:+`` (none may); ``φ+ GAP x``: neighbours are at most x apart."""

    body: Pattern
    contiguous: bool = False
    gap: Window | None = None

    def __str__(self) -> str:
        return f"{_closed(self.body)}{':+' if self.contiguous else '+'}{_gap(self.gap)}"


@dataclass(frozen=True)
class Repeat:
    """``φ{n,m}``: φ at least ``least`` times and at most ``most`` (``None``: any number); ``φ?``, ``φ*``; contiguous ``φ:{n,m}``.

    It abbreviates ``φ ; … ; φ``, or the ``OR`` of several of these; with ``least`` 0 the part may be missing from its sequence.
    """

    body: Pattern
    least: int
    most: int | None
    contiguous: bool = False
    gap: Window | None = None

    def __str__(self) -> str:
        joint = ":" if self.contiguous else ""
        match self.least, self.most:
            case 0, 1:
                sign = "?"
            case 0, None:
                sign = f"{joint}*"
            case least, most:
                sign = joint + counted(least, most)
        return _closed(self.body) + sign + _gap(self.gap)


@dataclass(frozen=True)
class Not:
    """``φ ; NOT ρ ; ψ``: a part of a sequence that says that no event of ρ lies strictly between φ and ψ. It binds nothing.

    At an end of the whole formula, ``φ ; NOT ρ``: none in what the window leaves before the first event, or behind the last.
    """

    body: Pattern
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"NOT {_closed(self.body)}"


@dataclass(frozen=True)
class After:
    """``φ AFTER x WITHIN y``: a part of a sequence that begins at least x and at most y after the last event before it."""

    body: Pattern
    least: Window
    most: Window | None = None

    def __str__(self) -> str:
        most = "" if self.most is None else f" WITHIN {self.most}"
        return f"{_closed(self.body)} AFTER {self.least}{most}"


@dataclass(frozen=True)
class Within:
    """``(φ) WITHIN x``: the matches of φ that last at most x."""

    body: Pattern
    window: Window

    def __str__(self) -> str:
        return f"({self.body} WITHIN {self.window})"


@dataclass(frozen=True)
class Project:
    """``π_L(φ)``: only the variables in L keep their events; the interval stays."""

    body: Pattern
    variables: frozenset[str]

    def __str__(self) -> str:
        return f"π{{{', '.join(sorted(self.variables))}}}({self.body})"


Pattern = Atom | As | Filter | Or | Sequence | Plus | Repeat | Not | After | Within | Project


def _closed(pattern: Pattern) -> str:
    """A sub-pattern with the brackets it needs as an operand of a postfix operator or a sequence."""
    text = str(pattern)
    return f"({text})" if isinstance(pattern, As | Plus | Repeat) else text


def _gap(gap: Window | None) -> str:
    return "" if gap is None else f" GAP {gap}"


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """Give the direct sub-patterns, left to right."""
    match pattern:
        case Atom():
            return ()
        case Or(alternatives):
            return alternatives
        case Sequence(parts, _):
            return parts
        case _:
            return (pattern.body,)


def walk(pattern: Pattern, *, absent: bool = True) -> Iterator[Pattern]:
    """Go through all nodes, parents first, left to right; without recursion, so that depth is no matter.

    With ``absent=False`` what must not happen is left out.
    """
    stack = [pattern]
    while stack:
        node = stack.pop()
        if absent or not isinstance(node, Not):
            yield node
            stack.extend(reversed(children(node)))


def fold(pattern: Pattern, visit: Callable[[Pattern], Pattern], *, rebuild: bool = True) -> Pattern:
    """Rewrite bottom-up, without recursion: ``visit`` gets each node after its children were rewritten.

    With ``rebuild=False`` nodes are only visited, children first, and stay the same objects.
    """
    done: list[Pattern] = []
    todo: list[tuple[Pattern, bool]] = [(pattern, False)]
    while todo:
        node, ready = todo.pop()
        below = children(node)
        if not ready and below:
            todo.append((node, True))
            todo.extend((child, False) for child in reversed(below))
            continue
        if below:
            parts = tuple(done[-len(below) :])
            del done[-len(below) :]
            if rebuild and any(new is not old for new, old in zip(parts, below, strict=True)):
                node = _with_children(node, parts)
        done.append(visit(node))
    return done[0]


def _with_children(node: Pattern, parts: tuple[Pattern, ...]) -> Pattern:
    match node:
        case Or():
            return Or(parts)
        case Sequence(_, contiguous):
            return Sequence(parts, contiguous)
        case As() | Filter() | Plus() | Repeat() | Not() | After() | Within() | Project():
            return replace(node, body=parts[0])
        case Atom():
            return node


def variables(pattern: Pattern) -> dict[str, Span | None]:
    """Find the variables that the pattern can bind, in order of writing, each with its first place in the text."""
    found: dict[str, Span | None] = {}
    for node in walk(pattern, absent=False):
        if isinstance(node, Atom):
            for label in sorted(node.labels):
                found.setdefault(label, node.span)
        elif isinstance(node, As):
            found.setdefault(node.variable, node.span)
    return found


def reported(pattern: Pattern) -> list[str]:
    """Find what ``SELECT *`` reports: the named variables, and the types of atoms that no name covers."""
    named = {node.variable for node in walk(pattern, absent=False) if isinstance(node, As)}
    bare = set()
    covered: list[tuple[Pattern, bool]] = [(pattern, False)]
    while covered:
        node, inside = covered.pop()
        if isinstance(node, Atom):
            if not inside:
                bare.add(node.type)
            continue
        if not isinstance(node, Not):
            inside = inside or isinstance(node, As)
            covered.extend((child, inside) for child in children(node))
    return [name for name in variables(pattern) if name in named or name in bare]


@dataclass(frozen=True)
class Place:
    """Where a type stands in a pattern."""

    number: int  #: how many types may stand before it, what is repeated once; alternatives begin at the same place
    name: str  #: the innermost variable that holds its events: a name, or the type itself


def places(pattern: Pattern) -> list[Place]:
    """Find the place of each type, in the order of the text; without recursion.

    >>> one, two = Atom("A"), As(Plus(Atom("B")), "x")
    >>> [(place.number, place.name) for place in places(Sequence((Or((Sequence((one, one), (False,)), two)), one), (False,)))]
    [(0, 'A'), (1, 'A'), (0, 'x'), (2, 'A')]
    """
    widths: dict[int, int] = {}

    def visit(node: Pattern) -> Pattern:
        below = [widths[id(child)] for child in children(node)]
        match node:
            case Atom():
                widths[id(node)] = 1
            case Not():
                widths[id(node)] = 0
            case Sequence():
                widths[id(node)] = sum(below)
            case _:
                widths[id(node)] = max(below)
        return node

    fold(pattern, visit, rebuild=False)
    found: list[Place] = []
    todo: list[tuple[Pattern, int, str | None]] = [(pattern, 0, None)]
    while todo:
        node, number, name = todo.pop()
        if isinstance(node, Atom):
            found.append(Place(number, name or node.type))
            continue
        name = node.variable if isinstance(node, As) else name
        below = []
        for child in children(node):
            below.append((child, number, name))
            number += widths[id(child)] if isinstance(node, Sequence) else 0
        todo += reversed(below)
    return found


def is_one_event(pattern: Pattern) -> bool:
    """Whether every match of a pattern is a single event."""
    pattern = unnamed(pattern)
    return isinstance(pattern, Atom) or (isinstance(pattern, Or) and all(map(is_one_event, pattern.alternatives)))


def holding_several(pattern: Pattern) -> set[str]:
    """The variables that may hold several events of a match.

    >>> one, two = Atom("A"), As(Plus(Atom("B")), "x")
    >>> sorted(holding_several(Sequence((one, two), (False,))))
    ['B', 'x']
    """
    most: dict[int, tuple[float, dict[str, float]]] = {}  # events, and of these those of each variable

    def visit(node: Pattern) -> Pattern:
        below = [most[id(child)] for child in children(node)]
        match node:
            case Atom():
                found = (1.0, dict.fromkeys(node.labels, 1.0))
            case Not():
                found = (0.0, {})
            case Sequence():
                found = (sum(every for every, _ in below), _joined([own for _, own in below], operator.add))
            case Plus() | Repeat():
                times = math.inf if isinstance(node, Plus) or node.most is None else float(node.most)
                every, own = below[0]
                found = (every * times, {name: count * times for name, count in own.items() if count})
            case As(_, name):
                found = (below[0][0], {**below[0][1], name: below[0][0]})
            case _:
                found = (max(every for every, _ in below), _joined([own for _, own in below], max))
        most[id(node)] = found
        return node

    fold(pattern, visit, rebuild=False)
    return {name for name, count in most[id(pattern)][1].items() if count > 1}


def _joined(counts: list[dict[str, float]], both: Callable[[float, float], float]) -> dict[str, float]:
    """Numbers by variable of several sub-patterns as one."""
    found: dict[str, float] = {}
    for one in counts:
        for name, count in one.items():
            found[name] = both(found.get(name, 0.0), count)
    return found


def unnamed(pattern: Pattern) -> Pattern:
    """What a pattern is without the names and conditions that stand behind it."""
    while isinstance(pattern, As | Filter):
        pattern = pattern.body
    return pattern


def ends(pattern: Pattern) -> tuple[tuple[Not, ...], tuple[Not, ...]]:
    """What must not come before the first step of a whole pattern, and what after the last."""
    while isinstance(pattern, Project | As | Filter | Or):
        # FILTER … OR has made copies of the whole, of which one says it all.
        pattern = pattern.alternatives[0] if isinstance(pattern, Or) else pattern.body
    found: list[tuple[Not, ...]] = []
    for parts in (pattern.parts, pattern.parts[::-1]) if isinstance(pattern, Sequence) else ():
        found.append(tuple(takewhile(lambda part: isinstance(part, Not), parts)))  # type: ignore[arg-type]
    return (found[0], found[1][::-1]) if found else ((), ())


def spans_of(pattern: Pattern) -> Iterator[Window]:
    """The windows and gaps inside a pattern."""
    for node in walk(pattern):
        match node:
            case Plus(gap=gap) | Repeat(gap=gap):
                found: tuple[Window | None, ...] = (gap,)
            case After(_, least, most):
                found = (least, most)
            case Within(_, window):
                found = (window,)
            case _:
                continue
        yield from (one for one in found if one is not None)


def is_timed(pattern: Pattern) -> bool:
    """Whether a pattern has windows or gaps inside."""
    return next(spans_of(pattern), None) is not None


def is_contiguous(node: Pattern) -> bool:
    """Whether a node says that two events are neighbours."""
    match node:
        case Sequence(_, contiguous):
            return any(contiguous)
        case Plus(_, contiguous) | Repeat(_, _, _, contiguous):
            return contiguous
        case _:
            return False


def least_events(pattern: Pattern) -> int:
    """How many events each match of a pattern has at least."""
    least: dict[int, int] = {}

    def visit(node: Pattern) -> Pattern:
        below = [least[id(child)] for child in children(node)]
        match node:
            case Atom():
                found = 1
            case Not():
                found = 0
            case Or():
                found = min(below)
            case Sequence():
                found = sum(below)
            case Repeat(_, times):
                found = times * below[0]
            case _:
                found = below[0]
        least[id(node)] = found
        return node

    fold(pattern, visit, rebuild=False)
    return least[id(pattern)]


def skipping_loops(pattern: Pattern, chosen: Set[str] | None) -> list[str]:
    """The iterations that skip and whose events are selected; ``chosen``: the selected variables, ``None``: all."""
    found: dict[str, None] = {}
    stack: list[tuple[Pattern, frozenset[str]]] = [(pattern, frozenset())]
    while stack:
        node, names = stack.pop()
        if isinstance(node, As):
            names |= {node.variable}
        if isinstance(node, Plus | Repeat) and not node.contiguous and getattr(node, "most", None) is None:
            inside = {one.variable for one in walk(node) if isinstance(one, As)}
            inside |= {one.type for one in walk(node) if isinstance(one, Atom)}
            if chosen is None or (names | inside) & chosen:
                found[str(node)] = None
                continue
        stack.extend((child, names) for child in reversed(children(node)))
    return list(found)


def nullable(pattern: Pattern) -> bool:
    """Whether a pattern may hold nothing at all, so that a sequence does without it.

    >>> one = Atom("A")
    >>> nullable(Repeat(one, 0, 1)), nullable(Sequence((Repeat(one, 0, 1), one), (False,)))
    (True, False)
    """
    empty: dict[int, bool] = {}

    def visit(node: Pattern) -> Pattern:
        below = [empty[id(child)] for child in children(node)]
        match node:
            case Atom():
                found = False
            case Or():
                found = any(below)
            case Repeat(_, 0, _) | Not():
                found = True
            case _:
                found = all(below)
        empty[id(node)] = found
        return node

    fold(pattern, visit, rebuild=False)
    return empty[id(pattern)]
