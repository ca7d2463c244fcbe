"""What the parser's callbacks hand to the lowering: components, the WHERE clause and the others, as written."""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.errors import Span
from stretto.languages.expressions.tokens import Name
from stretto.languages.expressions.totals import Item as TotalItem
from stretto.languages.expressions.totals import Order
from stretto.languages.expressions.transformer import ExpressionPart
from stretto.query.query import Keep
from stretto.query.sase import Part, Selection
from stretto.query.windows import Window


@dataclass(frozen=True, slots=True)
class Argument:
    """``a`` or ``b[]`` in ``skip_till_any_match(a, b[])``."""

    name: Name
    span: Span
    kleene: bool


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy, and the variables for which it is said."""

    selection: Selection
    arguments: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Where:
    """The WHERE clause; without one the strategy is skip till next match."""

    strategies: tuple[Strategy, ...] = ()
    body: ExpressionPart | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """An item of RETURN; ``name`` is that after AS."""

    value: ExpressionPart
    name: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Output:
    """The OUTPUT clause."""

    non_overlap: bool = False
    compressed: bool = False


@dataclass(slots=True)
class Clauses:
    """The clauses after WHERE, each at most once; ``seen`` says which there were and at what place."""

    window: Window | None = None
    items: tuple[Item, ...] | None = None
    totals: tuple[TotalItem, ...] | None = None
    output: Output = Output()
    limit: int | None = None
    extent: bool | None = None
    skip: Keep | None = None
    group_by: tuple[tuple[Name | None, Name], ...] | None = None
    every: Window | None = None
    order: Order | None = None
    sample: tuple[int, int] | None = None
    seen: dict[str, Span] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draft:
    """A query of which all clauses are read, its references not yet looked up."""

    parts: tuple[Part, ...]
    where: Where
    clauses: Clauses
