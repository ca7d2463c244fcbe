"""A SASE+ query as a value: components, references to their events, and conditions over references.

SASE+ paper, section 2 (figure 1), and SEMANTICS (SASE+). A condition is an expression of
:mod:`stretto.query.predicate` whose attributes are *references*: ``a[i].price > avg(a[..i-1].price)`` is a comparison of two
``Attribute`` nodes with the names ``a[i].price`` and ``avg(a[..i-1].price)``, and :attr:`SaseQuery.references` says what each name
means. So typing and evaluation are those of conditions over one event: a run with the current event is such an event.

>>> str(Aggregate("avg", "a", Range.BEFORE, "price")), str(Element("a", Index.LAST, "volume")), str(Length("a"))
('avg(a[..i-1].price)', 'a[a.LEN].volume', 'a.LEN')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from stretto.errors import Span
from stretto.query import predicate as p
from stretto.query.query import Consume, Keep
from stretto.query.windows import Window

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


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Component:
    """``T a``, ``T+ a[]``, ``T{2,5} a[]``, ``~(T a)``; several types are alternatives: ``(T|U) a``."""

    types: tuple[str, ...]
    variable: str
    kleene: bool = False
    negated: bool = False
    least: int = 1  #: how many events a Kleene plus has at least
    most: int | None = None  #: … and at most; ``None``: any number
    span: Span | None = _span()
    type_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        types = self.types[0] if len(self.types) == 1 else f"({'|'.join(self.types)})"
        if self.negated:
            return f"~({types} {self.variable})"
        return f"{types}{self.sign} {self.variable}[]" if self.kleene else f"{types} {self.variable}"

    @property
    def sign(self) -> str:
        """How the repetition of a Kleene plus is written."""
        if self.least == 1 and self.most is None:
            return "+"
        return p.counted(self.least, self.most)


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
    variable_span: Span | None = field(default=None, repr=False)

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, p.Attribute) else NotImplemented

    __hash__ = p.Attribute.__hash__

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ReturnItem:
    """``avg(a[].price) AS mean``: a computed column of the result, over references that a whole match knows."""

    name: str
    value: p.Operand
    span: Span | None = _span()


@dataclass(frozen=True)
class SaseQuery:
    """A SASE+ query after parsing.

    ``equal`` are the attributes of the equivalence tests ``[a, b]``: equal on all events of a match, negated ones included.
    ``condition`` is the rest of WHERE. ``returns`` is ``None`` without a RETURN clause. The query reads one stream, which
    has no name: ``streams`` is ``("",)``.
    """

    text: str
    components: tuple[Component, ...]
    selection: Selection
    references: Mapping[str, Reference]
    condition: p.Predicate | None = None
    equal: tuple[str, ...] = ()
    window: Window | None = None
    returns: tuple[ReturnItem, ...] | None = None
    non_overlap: bool = False
    compressed: bool = False
    limit: int | None = None
    keep: Keep | None = None
    equal_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    language: str = "sase"
    any_stream: ClassVar[bool] = True  #: it reads whatever there is
    stream_spans: ClassVar[tuple[Span, ...]] = ()

    @property
    def strategy(self) -> Selection:
        return self.selection

    @property
    def last_negation(self) -> Component | None:
        """The negation at the end, which time completes."""
        return self.components[-1] if self.components[-1].negated else None

    @property
    def streams(self) -> tuple[str, ...]:
        return ("",)

    @property
    def partition_by(self) -> tuple[str, ...]:
        return self.equal

    @property
    def consume(self) -> Consume:
        return Consume.NONE

    @property
    def positive(self) -> tuple[Component, ...]:
        """The components that hold events."""
        return tuple(one for one in self.components if not one.negated)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that a result reports, in order."""
        return tuple(one.variable for one in self.positive)

    @property
    def conditions(self) -> tuple[p.Expression, ...]:
        """What it asks of events, and computes of them."""
        asked = () if self.condition is None else (self.condition,)
        return (*asked, *(item.value for item in self.returns or ()))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that its conditions and results name."""
        return tuple(one.attribute for one in self.references.values() if one.attribute is not None)

    @property
    def read(self) -> tuple[str, ...]:
        """All attributes that it names."""
        measured = () if self.window is None or self.window.attribute is None else (self.window.attribute,)
        return tuple(dict.fromkeys((*self.partition_by, *self.attributes, *measured)))

    @property
    def wanted(self) -> tuple[str, ...]:
        """The types of events that it names, but those that must not come."""
        return tuple(dict.fromkeys(name for one in self.positive for name in one.types))

    @property
    def shows_everything(self) -> bool:
        """Whether results show events with all their attributes."""
        return self.returns is None
