"""Formulas and the conditions of FILTER as they are read: with their place in the text and their measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from stretto.errors import Span
from stretto.languages.expressions.tokens import Mistake
from stretto.languages.expressions.transformer import shallow
from stretto.query import algebra as a
from stretto.query import predicate as p

LARGEST = 2_000_000
"""How many operators and atoms a formula may have when every OR of a FILTER is written out."""


@dataclass(frozen=True, slots=True)
class PatternPart:
    """A formula and what must be known of it.

    ``height`` is that of the tree, ``parens`` counts brackets around brackets; ``size`` is the number of
    nodes and ``copies`` how often FILTER … OR has written out the most copied atom. ``bound`` holds the
    variables that the formula binds, ``absent`` those of events that must not come; ``qualified`` are the
    atoms that name their stream.
    """

    pattern: a.Pattern
    span: Span
    height: int = 0
    parens: int = 0
    size: int = 1
    copies: int = 1
    bound: frozenset[str] = frozenset()
    qualified: tuple[a.Atom, ...] = ()
    absent: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a FILTER: ``X[P]``."""

    variable: str
    predicate: p.Predicate
    span: Span
    variable_span: Span
    height: int = 0
    parens: int = 0
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Joined:
    """Conditions of a FILTER that are joined: ``f AND g …``, or ``f OR g …``."""

    parts: tuple[Conditions, ...]
    every: bool
    span: Span
    height: int
    parens: int
    copies: int


Conditions = Condition | Joined

_Part = TypeVar("_Part", bound="PatternPart | Condition | Joined")


def bounded(part: _Part) -> _Part:
    """Refuse a part that is nested too deep or too large; else it stays the same."""
    if isinstance(part, PatternPart) and part.size > LARGEST:
        raise Mistake(
            f"written out, with OR in FILTER and repetitions, the formula has more than {LARGEST:,} parts", part.span
        )
    return shallow(part)


def alone(part: PatternPart, *, whole: bool = False) -> PatternPart:
    """Refuse what has a meaning beside other steps only; else the part stays the same.

    ``whole``: nothing stands beside it, so that NOT may stand at its ends.
    """
    if isinstance(part.pattern, a.After):
        raise Mistake(
            "AFTER says how long after the step before: A ; B AFTER 10 seconds", part.span, "put it behind a step"
        )
    ends = (part.pattern,) if isinstance(part.pattern, a.Not) else () if whole else sum(a.ends(part.pattern), ())
    if ends:
        raise Mistake(
            "NOT stands between two steps, or at an end of the whole formula",
            ends[0].span or part.span,
            "A ; NOT B ; C, or with a window A ; NOT B … WITHIN 10 minutes",
        )
    return part
