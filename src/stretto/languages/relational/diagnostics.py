"""Syntax errors of conditions and values over rows in words."""

from __future__ import annotations

from lark import UnexpectedInput

from stretto.languages.expressions import diagnostics as d
from stretto.languages.expressions.tokens import Mistake

_GROUPS = d.groups(
    d.COMPARISON,
    d.OPERATOR,
    ("a column or a constant", "VARIABLE", "QUOTED CALLED STRING NUMBER TRUE FALSE NULL MINUS LPAR NOT"),
    d.NUMBER,
    d.SIGN,
    *d.signs("COMMA RPAR LPAR"),
    ("a string", "STRING", ""),
    *d.words("NOT NULL IN BETWEEN LIKE AND OR"),
)


def explain(text: str, error: UnexpectedInput, what: str) -> Mistake:
    """Say in words what a parser's error means, with its place and a hint; ``what`` is what the text should be."""
    found = d.Unexpected.of(text, error, what)
    hint = found.foreign()
    if found.word == ".":
        hint = "columns have no table before them; those that two sides share get a suffix in a join"
    if hint is None:
        hint = found.keyword(d.KEYWORDS, "; as a name it is written `{}`" if "VARIABLE" in found.expected else None)
    return found.unterminated() or found.interval() or found.mistake(_GROUPS, hint or found.hint())
