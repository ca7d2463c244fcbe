"""Syntax errors of fences and transfers in words."""

from __future__ import annotations

from lark import UnexpectedInput

from stretto.errors import Span
from stretto.languages.diagnostics import (
    COMPARISONS,
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
        ("'='", "ASSIGN", "COMPARE"),
        ("a comparison", "COMPARE", "GT IN BETWEEN LIKE IS NOT"),
        ("an operator", "SLASH", "PLUS MINUS STAR PERCENT"),
        ("e.name, r.name or a constant", "VARIABLE", "QUOTED CALLED STRING NUMBER TRUE FALSE NULL MINUS LPAR NOT"),
        ("a field of the register", "FIELD", "QUOTED"),
        ("a number", "NUMBER", "MINUS"),
        ("an operator", "MINUS", "PLUS"),
        ("a name", "COLUMN", "QUOTED"),
        ("'.'", "DOT", ""),
        ("','", "COMMA", ""),
        ("a unit", "UNIT", ""),
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
    return (
        unterminated(text, span.start)
        or (duration(text, span, "window='{}' bounds a whole match; ") if "SLASH" in expected else None)
        or unexpected(text, span, expected, _GROUPS, _hint(text, span, expected), what=what)
    )


def _hint(text: str, span: Span, expected: frozenset[str]) -> str | None:
    word = text[span.start : span.end]
    if "ASSIGN" in expected:
        return "a transfer is field = value, …, or a row with a value for each field: (…, …)"
    if (word in COMPARISONS or word.upper() in _KEYWORDS) and "PLUS" in expected and "AND" not in expected:
        return "a value is needed here, not a condition"
    if "COMMA" in expected and "$END" in expected and (word == ";" or word.isidentifier()):
        return "assignments are separated by commas"
    if word in ("&", "|"):
        return f"write {'AND' if word == '&' else 'OR'}"
    if word == "!" and expected & {"NOT", "VARIABLE"}:
        return "write NOT"
    if word.upper() in _KEYWORDS:
        return f"'{word}' is a keyword; as a name it follows e. or r.: e.{word}" if "VARIABLE" in expected else None
    meant = keyword_like(word, [keyword for keyword in _KEYWORDS if keyword in expected])
    if meant is not None:
        return f"did you mean '{meant}'?"
    return chain_hint(word, expected) or closing_hint(text, span)
