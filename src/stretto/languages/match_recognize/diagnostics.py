"""Syntax errors of ``MATCH_RECOGNIZE`` in words."""

from __future__ import annotations

import re

from lark import UnexpectedInput

from stretto.languages.expressions import diagnostics as d
from stretto.languages.expressions.tokens import Mistake

_SECTIONS = ("MEASURES", "PATTERN", "WITHIN", "SUBSET", "DEFINE")
_KEYWORDS = (*_SECTIONS, "MATCH_RECOGNIZE", "AS", "PERMUTE", *d.KEYWORDS)

_GROUPS = d.groups(
    d.COMPARISON,
    ("an operator", "SLASH", "PLUS MINUS STAR PERCENT CASTS"),
    (
        "a value",
        "TRUE",
        "VARIABLE QUOTED STRING NUMBER DURATION FALSE NULL MINUS LPAR NOT CASE SEMANTICS NAVIGATE AGGREGATE CLASSIFIER MATCH_NUMBER"
        " CAST EXTRACT IF CALLED TIMES INTERVAL DISTINCT STAR",
    ),
    ("a quantifier", "PLUS", "STAR QUESTION LBRACE"),
    ("a pattern", "PERMUTE", "VARIABLE QUOTED LPAR EXCLUDE CARET DOLLAR"),
    ("a name", "VARIABLE", "QUOTED"),
    ("PARTITION BY", "PARTITION_BY", ""),
    ("ORDER BY", "ORDER_BY", ""),
    ("MEASURES", "MEASURES", ""),
    ("ONE ROW or ALL ROWS PER MATCH", "ONE_ROW", "ALL_ROWS"),
    ("SHOW EMPTY MATCHES, OMIT EMPTY MATCHES or WITH UNMATCHED ROWS", "SHOW_EMPTY", "OMIT_EMPTY WITH_UNMATCHED"),
    ("AFTER MATCH", "AFTER_MATCH", "SEARCH FRAME"),
    ("UNBOUNDED FOLLOWING, CURRENT ROW or a number", "UNBOUNDED", "CURRENT_ROW NUMBER"),
    *d.words("FOLLOWING"),
    (
        "SKIP PAST LAST ROW, SKIP TO NEXT ROW or SKIP TO a variable",
        "SKIP_PAST",
        "SKIP_NEXT SKIP_FIRST SKIP_LAST SKIP_TO",
    ),
    d.NUMBER,
    d.SIGN,
    ("a unit", "UNIT", ""),
    ("a string", "STRING", "QUOTED"),
    *d.words("PATTERN WITHIN SUBSET DEFINE MATCH_RECOGNIZE NOT NULL IN BETWEEN LIKE AND OR AS"),
    ("DISTINCT FROM", "DISTINCT_FROM", ""),
    *d.words("FROM"),
    ("ASC or DESC", "DIRECTION", ""),
    ("NULLS FIRST or NULLS LAST", "NULLS", ""),
    ("'-}'", "EXCLUDED", ""),
    *d.signs("BAR DOT COMMA LPAR RPAR RBRACE"),
)


def explain(text: str, error: UnexpectedInput, what: str) -> Mistake:
    """Say in words what a parser's error means, with its place and a hint; ``what`` is what the text should be."""
    found = d.Unexpected.of(text, error, what)
    if found.expected == {"COMPARE"}:
        return Mistake(f"unexpected '{found.word}'; expected '='", found.span, "SUBSET S = (A, B)")
    return found.unterminated() or _arrow(found) or found.mistake(_GROUPS, _hint(found))


_IN_PATTERN = re.compile(r"\bPATTERN\s*\([^)]*\Z", re.IGNORECASE)


def _arrow(found: d.Unexpected) -> Mistake | None:
    """``PATTERN (A -> B)``, ``PATTERN (A, B)``: a sequence of another language."""
    if found.before(_IN_PATTERN) is None:
        return None
    told, hint = "variables stand one after the other", "write PATTERN (A B); (A X*? B) for any rows between"
    return Mistake(f"unexpected ','; {told}", found.span, hint) if found.word == "," else found.arrow(told, hint)


def _hint(found: d.Unexpected) -> str | None:
    word, expected = found.word.upper(), found.expected
    if "SKIP_PAST" in expected:
        return "AFTER MATCH SKIP PAST LAST ROW is what holds without the clause"
    if "AS" in expected and word in (",", ")", *_SECTIONS):
        return "a measure has a name: price AS first_price"
    if word in ("INITIAL", "SEEK"):
        return f"{word} belongs to a pattern in a WINDOW clause"
    return found.keyword(_KEYWORDS, "; a name of that kind stands in double quotes") or found.hint()
