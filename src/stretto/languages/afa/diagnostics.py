"""Syntax errors of fences and transfers in words."""

from __future__ import annotations

from lark import UnexpectedInput

from stretto.languages.expressions import diagnostics as d
from stretto.languages.expressions.tokens import Mistake

_GROUPS = d.groups(
    ("'='", "ASSIGN", "COMPARE"),
    d.COMPARISON,
    d.OPERATOR,
    ("e.name, r.name or a constant", "VARIABLE", "QUOTED CALLED STRING NUMBER TRUE FALSE NULL MINUS LPAR NOT"),
    ("a field of the register", "FIELD", "QUOTED"),
    d.NUMBER,
    d.SIGN,
    ("a name", "COLUMN", "QUOTED"),
    *d.signs("DOT COMMA"),
    ("a unit", "UNIT", ""),
    *d.signs("RPAR LPAR"),
    ("a string", "STRING", ""),
    *d.words("NOT NULL IN BETWEEN LIKE AND OR"),
)


def explain(text: str, error: UnexpectedInput, what: str) -> Mistake:
    """Say in words what a parser's error means, with its place and a hint; ``what`` is what the text should be."""
    found = d.Unexpected.of(text, error, what)
    return found.unterminated() or found.interval() or found.mistake(_GROUPS, _hint(found))


def _hint(found: d.Unexpected) -> str | None:
    word, expected = found.word, found.expected
    if "ASSIGN" in expected:
        return "a transfer is field = value, …, or a row with a value for each field: (…, …)"
    if (word in d.COMPARISONS or word.upper() in d.KEYWORDS) and "PLUS" in expected and "AND" not in expected:
        return "a value is needed here, not a condition"
    if "COMMA" in expected and "$END" in expected and (word == ";" or word.isidentifier()):
        return "assignments are separated by commas"
    hint = found.foreign()
    if hint is None:
        hint = found.keyword(d.KEYWORDS, "; as a name it follows e. or r.: e.{}" if "VARIABLE" in expected else None)
    return hint or found.hint()
