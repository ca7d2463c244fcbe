"""The two ways to write a transfer, as the callbacks read them."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import Span
from stretto.languages.parts import ExpressionPart, Name

__all__ = ["Assignments", "Row"]


@dataclass(frozen=True, slots=True)
class Assignments:
    """``n = r.n + 1, low = e.price``."""

    pairs: tuple[tuple[Name, ExpressionPart], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """``(r.n + 1, e.price)``."""

    values: tuple[ExpressionPart, ...]
    span: Span
