"""What the callbacks hand to each other beside the parts that all languages have."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import Span
from stretto.languages.parts import ExpressionPart, Name
from stretto.query import predicate as p

__all__ = ["Assignments", "Field", "Row"]


@dataclass(frozen=True, eq=False)
class Field(p.Attribute):
    """``e.price`` or ``r.count``: the attribute of its name, equal to a plain one, but printed as it is written.

    >>> str(Field("e.price")), str(Field("r.in"))
    ('e.price', 'r.`in`')
    """

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, p.Attribute) else NotImplemented

    __hash__ = p.Attribute.__hash__

    def __str__(self) -> str:
        side, _, own = self.name.partition(".")
        return f"{side}.{p.Attribute(own)}"


@dataclass(frozen=True, slots=True)
class Assignments:
    """``n = r.n + 1, low = e.price``."""

    pairs: tuple[tuple[Name, ExpressionPart], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """``(r.n + 1, e.price)``."""

    values: tuple[ExpressionPart, ...]
    span: Span
