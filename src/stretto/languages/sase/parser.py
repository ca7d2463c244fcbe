"""The SASE+ parser (see :mod:`stretto.languages.reading`)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from stretto.errors import nearest
from stretto.languages.parts import Mistake
from stretto.languages.reading import make_parser, mistakes_of, read
from stretto.query.sase import SaseQuery

if TYPE_CHECKING:
    from lark import Lark, UnexpectedInput

    from stretto.languages.sase.parts import Draft

__all__ = ["is_sase", "parse"]

_FORM = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { a.x = b[i].x } WITHIN 1 hour"

_FIRST_WORD = re.compile(r"(?:[\s\ufeff]|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+(?P<word>[^\W\d]\w*)")


def is_sase(text: str) -> bool:
    """Whether a text means to be SASE+: its first word is PATTERN, or looks like it more than like CEQL's SELECT.

    >>> is_sase("/* a trend */ pattern SEQ(A a)"), is_sase("Patern SEQ(A a)"), is_sase("SELECT * FROM S WHERE PATTERN")
    (True, True, False)
    """
    first = _FIRST_WORD.match(text)
    return first is not None and nearest(first["word"], ("SELECT", "PATTERN")) == "PATTERN"


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from stretto.languages.sase.transformer import RESERVED, SaseTransformer

    return make_parser("stretto.languages.sase", SaseTransformer(), RESERVED)


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
        return lower(text, cast("Draft", read(text, _parser, _explain, _FORM)))


def _explain(text: str, error: UnexpectedInput) -> Mistake:
    from stretto.languages.sase.diagnostics import explain

    return explain(text, error)
