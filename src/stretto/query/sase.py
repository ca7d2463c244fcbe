"""A SASE+ query as a value: components, references to their events, and conditions over references.

SASE+ paper, section 2 (figure 1), and SEMANTICS (SASE+). A condition is an expression of
:mod:`stretto.query.predicate` whose attributes are *references*: ``a[i].price > avg(a[..i-1].price)`` is a comparison of two
``Attribute`` nodes with the names ``a[i].price`` and ``avg(a[..i-1].price)``, and :attr:`SaseQuery.references` says what each name
means. So typing and evaluation are those of conditions over one event: a run with the current event is such an event.

>>> str(Aggregate("avg", "a", Range.BEFORE, "price")), str(Element("a", Index.LAST, "volume")), str(Length("a"))
('avg(a[..i-1].price)', 'a[a.LEN].volume', 'a.LEN')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Self

from stretto.errors import OptionError, Span
from stretto.query import predicate as p
from stretto.query.moving import MovingAggregate
from stretto.query.query import AnyQuery
from stretto.query.totals import Totals, attributes

#: Aggregates over the events of a Kleene plus; NULLs are left out, and all but ``count`` of nothing are NULL.
FUNCTIONS = ("count", "sum", "avg", "min", "max")

#: What goes over several events in RETURN only: their list, and how many different values they have.
LIST, DISTINCT = "", "count distinct"


class Selection(StrEnum):
    """Event selection strategies (section 2)."""

    STRICT = "strict_contiguity"
    PARTITION = "partition_contiguity"
    NEXT = "skip_till_next_match"
    ANY = "skip_till_any_match"
    LATEST = "latest"  #: EQL's: the latest partial match goes on, and the ones before it are forgotten


#: Those that a text of SASE+ may name.
WRITTEN = tuple(one for one in Selection if one is not Selection.LATEST)


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Component:
    """``T a``, ``T? a``, ``T+ a[]``, ``T* a[]``, ``T{2,5} a[]``, ``~(T a)``; several types are alternatives: ``(T|U) a``."""

    types: tuple[str, ...]
    variable: str
    kleene: bool = False
    negated: bool = False
    least: int = 1  #: how many events a Kleene plus has at least; 0: it may be missing, as may one event
    most: int | None = None  #: … and at most; ``None``: any number
    again: bool = False  #: it stands in a group that repeats
    until: Component | None = None  #: the event that ends a Kleene plus …
    only: bool = False  #: … without which it is not complete
    span: Span | None = _span()
    place: Span | None = _span()  #: of the variable
    type_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        types = self.types[0] if len(self.types) == 1 else f"({'|'.join(self.types)})"
        if self.negated:
            return f"~({types} {self.variable})"
        if not self.kleene:
            return f"{types}{'' if self.least else '?'} {self.variable}"
        end = "" if self.until is None else f" UNTIL ({self.until}){' ONLY' * self.only}"
        return f"{types}{self.sign} {self.variable}[]{end}"

    @property
    def sign(self) -> str:
        """How the repetition of a Kleene plus is written."""
        if self.most is None and self.least < 2:
            return "+" if self.least else "*"
        return p.counted(self.least, self.most)

    @property
    def many(self) -> bool:
        """Whether it may hold several events."""
        return self.kleene or self.again


@dataclass(frozen=True)
class Group:
    """``(A a, B b)+``: parts one after the other, so often; with ``choice`` one of them, ``(A a | B b)``."""

    parts: tuple[Part, ...]
    least: int = 1
    most: int | None = 1
    choice: bool = False
    span: Span | None = _span()

    def __str__(self) -> str:
        signs = {(0, 1): "?", (0, None): "*", (1, None): "+", (1, 1): ""}
        sign = signs.get((self.least, self.most))
        inside = (" | " if self.choice else ", ").join(map(str, self.parts))
        return f"({inside}){p.counted(self.least, self.most) if sign is None else sign}"


Part = Component | Group


def counting(components: Iterable[Component], fewest: int = 2) -> list[p.Comparison]:
    """The conditions that ``A{n,m} a[]`` stands for, being ``A+ a[]``: ``a.LEN >= n``, and ``count(a[..i]) <= m`` of each event.

    ``n`` is said from ``fewest`` on.
    """
    found = []
    for one in components:
        if one.again:
            continue  # counted in each round
        length, so_far = Length(one.variable), Aggregate("count", one.variable, Range.UP_TO, None)
        for sign, reference, bound in (
            (">=", length, one.least if one.least >= fewest else None),
            ("<=", so_far, one.most),
        ):
            if bound is not None:
                counted = Referred(str(reference), reference=reference)
                found.append(p.Comparison(sign, counted, p.Constant(bound)))
    return found


def components_of(parts: Iterable[Part]) -> Iterator[Component]:
    """All components of some parts, in the order of the text."""
    for part in parts:
        if isinstance(part, Component):
            yield part
        else:
            yield from components_of(part.parts)


def places(parts: Sequence[Part]) -> dict[str, int]:
    """Find how many components may stand before that of each variable, what is repeated once; alternatives begin at the same place.

    >>> a, b, c, d = (Component(("T",), name) for name in "abcd")
    >>> places([Group((Group((a, b)), c), choice=True), d])
    {'a': 0, 'b': 1, 'c': 0, 'd': 2}
    """
    found: dict[str, int] = {}
    _place(parts, 0, False, found)
    return found


def _place(parts: Sequence[Part], first: int, choice: bool, found: dict[str, int]) -> int:
    """Place what is in some parts from a number on; how many may stand in them."""
    widths = [0]
    for part in parts:
        begin = first if choice else first + sum(widths)
        if isinstance(part, Group):
            widths.append(_place(part.parts, begin, part.choice, found))
        elif not part.negated:
            found[part.variable] = begin
            widths.append(1)
    return max(widths) if choice else sum(widths)


def may_lack(part: Part) -> bool:
    """Whether a part may hold no event."""
    if isinstance(part, Component):
        return part.negated or not part.least
    return not part.least or (any if part.choice else all)(map(may_lack, part.parts))


def optional(parts: Iterable[Part], inside: bool = False) -> Iterator[str]:
    """The variables that a match may lack."""
    for part in parts:
        if isinstance(part, Component):
            if (inside or not part.least) and not part.negated:
                yield part.variable
        else:
            yield from optional(part.parts, inside or not part.least or part.choice)


class Index(StrEnum):
    """Which event of a component."""

    ONLY = ""  #: ``b.x``: the event of a component without Kleene plus
    FIRST = "[1]"  #: ``a[1].x``
    EACH = "[i]"  #: ``a[i].x``
    BEFORE = "[i-1]"  #: ``a[i-1].x``
    LAST = "[LEN]"  #: ``a[a.LEN].x``


class Range(StrEnum):
    """Over which events of a Kleene plus an aggregate goes."""

    BEFORE = "[..i-1]"  #: those before the i-th; ``avg(a[i-1].x)`` is short for ``avg(a[..i-1].x)``
    UP_TO = "[..i]"  #: those up to the i-th
    ALL = "[]"  #: all of a match


@dataclass(frozen=True)
class Element:
    """An attribute of one event."""

    variable: str
    index: Index
    attribute: str

    def __str__(self) -> str:
        index = f"[{self.variable}.LEN]" if self.index is Index.LAST else str(self.index)
        shown = f"`{self.attribute}`" if self.attribute.upper() == "LEN" else p.Attribute(self.attribute)
        return f"{self.variable}{index}.{shown}"


@dataclass(frozen=True)
class MovingElement(Element):
    """``count(DISTINCT b.x) OVER 1 minute``: a moving aggregate of a component without Kleene plus, as an attribute of its event."""

    aggregate: MovingAggregate = field(kw_only=True)

    def __str__(self) -> str:
        own, argument = self.aggregate, self.aggregate.argument
        shown = self.variable if argument is None else f"{self.variable}.{argument}"
        return f"{own.function}({'DISTINCT ' * own.distinct}{shown}) OVER {own.window}"


@dataclass(frozen=True)
class Length:
    """``a.LEN``: how many events a Kleene plus has taken."""

    variable: str
    attribute: ClassVar[None] = None

    def __str__(self) -> str:
        return f"{self.variable}.LEN"


@dataclass(frozen=True)
class Aggregate:
    """``avg(a[..i-1].price)``; ``count(a[])`` has no attribute."""

    function: str
    variable: str
    range: Range
    attribute: str | None

    def __str__(self) -> str:
        attribute = "" if self.attribute is None else f".{p.Attribute(self.attribute)}"
        if self.function in (LIST, DISTINCT):
            shown = f"{self.variable}{self.range}{attribute}"
            return shown if self.function == LIST else f"count(DISTINCT {shown})"
        return f"{self.function}({self.variable}{self.range}{attribute})"


Reference = Element | Length | Aggregate


class Kept(StrEnum):
    """What a run remembers of a component's events, as a value of its vector V (section 5.2.1), whichever machine keeps it."""

    FIRST = "first"  #: an attribute of the first event
    LAST = "last"  #: … of the last one so far
    LENGTH = "len"  #: how many there are
    COUNT = "count"  #: how many know an attribute
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    EVERY = "every"  #: whether a condition holds for all, where the events themselves are not kept
    SAME = "same"  #: whether an attribute is the same in all, where they are not


def kept(one: Reference) -> tuple[Kept, ...]:
    """Say what a run remembers so that a reference can be read once its events have gone by.

    >>> kept(Element("a", Index.BEFORE, "price")), kept(Aggregate("avg", "a", Range.ALL, "price"))
    ((<Kept.LAST: 'last'>,), (<Kept.SUM: 'sum'>, <Kept.COUNT: 'count'>))
    """
    match one:
        case Element(_, index):
            return (Kept.FIRST if index in (Index.ONLY, Index.FIRST) else Kept.LAST,)
        case Length() | Aggregate(attribute=None):
            return (Kept.LENGTH,)
        case Aggregate("avg"):
            return (Kept.SUM, Kept.COUNT)
        case Aggregate(function):
            return (Kept(function),)


@dataclass(frozen=True, eq=False)
class Referred(p.Attribute):
    """A reference inside an expression: the attribute of its name, equal to a plain one, but printed without backticks.

    >>> str(p.Comparison(">", Referred("a[i].price"), Referred("a[1].price")))
    'a[i].price > a[1].price'
    """

    reference: Reference | None = field(default=None, repr=False)
    variable_span: Span | None = field(default=None, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, p.Attribute) else NotImplemented

    __hash__ = p.Attribute.__hash__

    def __str__(self) -> str:
        return self.name


def are_paired(moving: Sequence[Reference], parts: Iterable[Part]) -> bool:
    """Whether references to several variables are about one round of a group: ``d[i].x > c[i].x``, ``c[i].x > d[i-1].x``.

    Each variable holds one event of a round, and what the round before holds has not been replaced by what this one does.

    >>> group = Group((Component(("C",), "c", again=True), Component(("D",), "d", again=True)), 1, None)
    >>> c, before = Element("c", Index.EACH, "x"), Element("c", Index.BEFORE, "x")
    >>> [are_paired([one, Element("d", Index.EACH, "x")], [group]) for one in (c, before)]
    [True, False]
    """
    rounds = dict(_rounds(parts, None))
    order = list(rounds)
    elements = [one for one in moving if isinstance(one, Element)]
    shared = {rounds.get(one.variable) for one in elements}
    if len(elements) < len(moving) or len({one.variable for one in elements}) < 2 or len(shared) > 1 or None in shared:
        return False
    now = [order.index(one.variable) for one in elements if one.index is Index.EACH]
    return bool(now) and all(order.index(one.variable) >= max(now) for one in elements if one.index is Index.BEFORE)


def _rounds(parts: Iterable[Part], group: int | None) -> Iterator[tuple[str, int]]:
    """The variables that hold one event in each round of a group, each with the group that they are in."""
    for part in parts:
        if isinstance(part, Component):
            if group is not None and not part.kleene and part.least and not part.negated:
                yield part.variable, group
        elif part.most != 1:
            yield from _rounds(part.parts, None if part.choice else id(part))
        else:
            yield from _rounds(part.parts, None if part.choice or not part.least else group)


@dataclass(frozen=True)
class ReturnItem:
    """``avg(a[].price) AS mean``: a computed column of the result, over references that a whole match knows."""

    name: str
    value: p.Operand
    span: Span | None = _span()


@dataclass(frozen=True)
class SaseQuery(AnyQuery):
    """A SASE+ query after parsing.

    ``pattern`` is said where the components are not just one after the other, each of them there; ``steps`` and ``loops`` are the
    strategies of single steps and of single repetitions, by variable. ``partition_by`` are the attributes of the equivalence tests
    ``[a, b]``, which negated events have equal as well. ``condition`` is the rest of WHERE. ``returns`` is ``None``
    without a RETURN clause. The query reads one stream, which has no name: ``streams`` is ``("",)``.
    """

    components: tuple[Component, ...]
    selection: Selection
    references: Mapping[str, Reference]
    condition: p.Predicate | None = None
    returns: tuple[ReturnItem, ...] | None = field(default=None, kw_only=True)
    pattern: tuple[Part, ...] | None = field(default=None, kw_only=True)
    steps: Mapping[str, Selection] = field(default_factory=dict, kw_only=True)
    loops: Mapping[str, Selection] = field(default_factory=dict, kw_only=True)
    language: str = field(default="sase", kw_only=True)
    streams: ClassVar[tuple[str, ...]] = ("",)
    words: ClassVar[Mapping[str, str]] = {"partition_by": "key"}
    fewer: ClassVar[str] = (
        "LIMIT n or skip_till_next_match has fewer; "
        "output='summary' counts them, stretto.match_sets() hands them over unlisted"
    )

    def by_groups(self, keys: Iterable[str]) -> Self:
        if self.selection is not Selection.STRICT:
            return super().by_groups(keys)
        if self.partition_by:
            raise OptionError(
                "strict contiguity counts all events of the stream, and by groups there are only those of the group; "
                "write partition_contiguity"
            )
        return replace(super().by_groups(keys), selection=Selection.PARTITION)

    @property
    def equality(self) -> str:
        return "equalities" if self.implied else "equivalence test"

    @property
    def skipping_loops(self) -> list[str]:
        many = self.selection is Selection.ANY and not self.non_overlap and not self.compressed
        return [str(one) for one in self.positive if one.kleene] if many else []

    @property
    def strategy(self) -> Selection:
        return self.selection

    @property
    def parts(self) -> tuple[Part, ...]:
        """The components of the pattern and the groups around them."""
        return self.components if self.pattern is None else self.pattern

    @property
    def plain(self) -> bool:
        """Whether its components come one after the other, each of them, under one strategy."""
        return self.pattern is None and not self.steps and not self.loops and not self.endings

    @property
    def endings(self) -> tuple[Component, ...]:
        """The events that end a repetition."""
        return tuple(one.until for one in self.components if one.until is not None)

    @cached_property
    def optional(self) -> frozenset[str]:
        """The variables that a match may lack."""
        return frozenset(optional(self.parts))

    @property
    def last_negation(self) -> Component | None:
        """The negation at the end, which time completes."""
        return self.components[-1] if self.components[-1].negated else None

    @property
    def positive(self) -> tuple[Component, ...]:
        """The components that hold events."""
        return tuple(one for one in self.components if not one.negated)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that a result reports, in order."""
        return () if isinstance(self.asked, Totals) else tuple(one.variable for one in self.positive)

    @property
    def conditions(self) -> tuple[p.Expression, ...]:
        """What it asks of events, and computes of them."""
        asked = () if self.condition is None else (self.condition,)
        return (*asked, *(item.value for item in self.returns or ()))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that its conditions and results name."""
        used = (one.attribute for one in self.references.values() if one.attribute is not None)
        return (*used, *attributes(self.asked))

    @property
    def wanted(self) -> tuple[str, ...]:
        """The types of events that it names, but those that must not come."""
        return tuple(dict.fromkeys(name for one in self.positive for name in one.types))

    @property
    def shows_everything(self) -> bool:
        """Whether results show events with all their attributes."""
        return self.returns is None and not isinstance(self.asked, Totals)
