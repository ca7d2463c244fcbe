"""The SASE+ parser (see :mod:`stretto.languages.expressions.reading`)."""

from __future__ import annotations

import re

from stretto.errors import nearest
from stretto.languages.expressions.reading import SHARED, TOTALS, Language, mistakes_of
from stretto.query.sase import SaseQuery

SASE = Language(
    "stretto.languages.sase",
    {"query": "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { a.x = b[i].x } WITHIN 1 hour"},
    (*SHARED, TOTALS),
)

_FIRST_WORD = re.compile(r"(?:[\s\ufeff]|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+(?P<word>[^\W\d]\w*)")


def is_sase(text: str) -> bool:
    """Whether a text means to be SASE+: its first word is PATTERN, or looks like it more than like CEQL's SELECT.

    >>> is_sase("/* a trend */ pattern SEQ(A a)"), is_sase("Patern SEQ(A a)"), is_sase("SELECT * FROM S WHERE PATTERN")
    (True, True, False)
    """
    first = _FIRST_WORD.match(text)
    return first is not None and nearest(first["word"], ("SELECT", "PATTERN")) == "PATTERN"


def parse(text: str) -> SaseQuery:
    """Read a SASE+ query.

    Raises
    ------
    QueryError
        With the place, what was expected there and, where there is one, a suggestion.

    >>> parse("PATTERN SEQ(A a, ~(B b), C c) WITHIN 12 hours").window.seconds
    Decimal('43200')
    """
    from stretto.languages.sase.lowering import lower

    with mistakes_of(text):
        return lower(text, SASE.read(text))
