"""What the parser's callbacks hand to the lowering: sections as written, and operands whose variables are not looked up yet.

An operand is an attribute that only its place in the text tells from others: MEASURES stands before PATTERN, which says what is
a variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lark import Token

from stretto.errors import Span
from stretto.languages.expressions.tokens import Name
from stretto.languages.expressions.transformer import ExpressionPart
from stretto.query import predicate as p
from stretto.query.row_pattern import AfterMatch, Frame, OrderItem, RowPattern, RowsPerMatch
from stretto.query.windows import Window


@dataclass(frozen=True, eq=False)
class Path(p.Attribute):
    """``price``, ``A.price``: a column, perhaps behind a variable."""

    words: tuple[Name, ...] = ()


@dataclass(frozen=True, eq=False)
class Step(p.Attribute):
    """``FINAL LAST(argument, offset)``, ``PREV(argument)``."""

    word: str = ""  #: in capital letters
    argument: ExpressionPart | None = None
    offset: ExpressionPart | None = None
    semantics: Token | None = None


@dataclass(frozen=True, eq=False)
class Total(p.Attribute):
    """``FINAL sum(DISTINCT arguments)``; ``rows`` is the variable of ``count(A.*)``."""

    function: str = ""  #: in small letters
    arguments: tuple[ExpressionPart, ...] = ()
    rows: Name | None = None
    distinct: Token | None = None
    semantics: Token | None = None


@dataclass(frozen=True, eq=False)
class Classified(p.Attribute):
    """``CLASSIFIER(A)``, ``CLASSIFIER()``."""

    variable: Name | None = None


@dataclass(frozen=True, eq=False)
class Numbered(p.Attribute):
    """``MATCH_NUMBER()``."""


@dataclass(frozen=True)
class Months(p.Constant):
    """An interval of months, which are not equally long."""

    value: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """``expression AS name``: a measure, or the condition of a variable."""

    value: ExpressionPart
    name: Name


@dataclass(frozen=True, slots=True)
class Subset:
    """``S = (A, B)``."""

    name: Name
    members: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class SkipTo:
    """Where the next match may begin; the row of a variable, perhaps."""

    where: AfterMatch
    variable: Name | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the clause: what it is called, where it stands, and the field of :class:`Draft` that it fills."""

    title: str
    field: str
    value: Any
    span: Span


@dataclass(slots=True)
class Draft:
    """The sections of a clause."""

    seen: dict[str, Span] = field(default_factory=dict)
    partition_by: tuple[Name, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    measures: tuple[Item, ...] = ()
    rows: RowsPerMatch = RowsPerMatch.ONE
    after: SkipTo = SkipTo(AfterMatch.PAST)
    search: Token | None = None
    frame: Frame | None = None
    pattern: RowPattern | None = None
    within: Window | None = None
    subsets: tuple[Subset, ...] = ()
    define: tuple[Item, ...] = ()
    span: Span | None = None  #: of the first word
