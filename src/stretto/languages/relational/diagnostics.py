"""Syntax errors of conditions and values over rows in words."""

from __future__ import annotations

from lark import UnexpectedInput

from stretto.languages.diagnostics import (
    chain_hint,
    closing_hint,
    duration,
    expected_terminals,
    groups,
    keyword_like,
    place,
    unexpected,
    unterminated,
)
from stretto.languages.parts import Mistake

__all__ = ["explain"]

_KEYWORDS = ("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE")

_GROUPS = groups(
    (
        ("a comparison", "COMPARE", "GT IN BETWEEN LIKE IS NOT"),
        ("an operator", "SLASH", "PLUS MINUS STAR PERCENT"),
        ("a column or a constant", "VARIABLE", "QUOTED CALLED STRING NUMBER TRUE FALSE NULL MINUS LPAR NOT"),
        ("a number", "NUMBER", "MINUS"),
        ("an operator", "MINUS", "PLUS"),
        ("','", "COMMA", ""),
        ("')'", "RPAR", ""),
        ("'('", "LPAR", ""),
        ("a string", "STRING", ""),
        *((word, word, "") for word in ("NOT", "NULL", "IN", "BETWEEN", "LIKE", "AND", "OR")),
        ("the end", "$END", ""),
    )
)


def explain(text: str, error: UnexpectedInput, what: str) -> Mistake:
    """A parser's error as a mistake with its place and a hint; ``what`` is what the text should be."""
    expected = expected_terminals(error)
    span = place(text, error)
    word = text[span.start : span.end]
    hint = chain_hint(word, expected) or closing_hint(text, span)
    if word in ("&", "|"):
        hint = f"write {'AND' if word == '&' else 'OR'}"
    elif word == "!" and expected & {"NOT", "VARIABLE"}:
        hint = "write NOT"
    elif word == ".":
        hint = "columns have no table before them; those that two sides share get a suffix in a join"
    elif word.upper() in _KEYWORDS:
        hint = f"'{word}' is a keyword; as a name it is written `{word}`" if "VARIABLE" in expected else None
    elif (meant := keyword_like(word, [keyword for keyword in _KEYWORDS if keyword in expected])) is not None:
        hint = f"did you mean '{meant}'?"
    return (
        unterminated(text, span.start)
        or (duration(text, span, "") if "SLASH" in expected else None)
        or unexpected(text, span, expected, _GROUPS, hint, what=what)
    )
