"""SASE+'s syntax errors in words."""

from __future__ import annotations

import re

from lark import UnexpectedInput

from stretto.languages.expressions import diagnostics as d
from stretto.languages.expressions.tokens import Mistake
from stretto.query.sase import WRITTEN

_CLAUSES = ("WITHIN", "RETURN", "OUTPUT", "LIMIT", *d.ASKING)
_KEYWORDS = ("PATTERN", "SEQ", "UNTIL", "ONLY", "WHERE", *_CLAUSES, "KEEP", "AS", *d.KEYWORDS)

_GROUPS = d.groups(
    d.COMPARISON,
    d.OPERATOR,
    (
        "a reference or a constant",
        "TRUE",
        "VARIABLE QUOTED STRING NUMBER PERCENTAGE FALSE NULL MINUS LPAR LSQB NOT",
    ),
    ("an index (1, i, i-1, a.LEN)", "INTEGER", "VARIABLE MINUS DOTS"),
    ("a component", "TILDE", "TYPE QUOTED LPAR NOT NESTED"),
    *d.words("SEQ"),
    d.NUMBER,
    d.SIGN,
    ("an attribute", "COLUMN", "QUOTED"),
    ("a type", "TYPE", "QUOTED"),
    ("a strategy", "STRATEGY", "LBRACE"),
    ("'+'", "PLUS", "LBRACE STAR QUESTION"),
    ("a variable", "VARIABLE", ""),
    ("a unit", "UNIT", ""),
    ("all, non_overlap, verbose or compressed", "MODE", ""),
    ("a string", "STRING", "QUOTED"),
    *d.signs("LBRACE BAR DOT COMMA LSQB RSQB LPAR RPAR RBRACE"),
    *d.words("UNTIL ONLY NOT NULL IN BETWEEN LIKE AND OR AS PATTERN WHERE"),
    *d.words("OVER WITHIN RETURN OUTPUT LIMIT"),
    *d.CHOOSING,
    *d.ASKED,
)


def explain(text: str, error: UnexpectedInput, what: str) -> Mistake:
    """Say in words what a parser's error means, with its place and a hint; ``what`` is what the text should be."""
    found = d.Unexpected.of(text, error, what)
    return (
        found.unterminated()
        or _misspelt_before(found)
        or _arrow(found)
        or found.interval()
        or found.mistake(_GROUPS, _hint(found))
    )


def _arrow(found: d.Unexpected) -> Mistake | None:
    """``A a -> B b``: a sequence of another language."""
    if not {"COMMA", "RPAR"} <= found.expected or "AND" in found.expected:
        return None
    return found.arrow("components stand one after the other with ','", "write SEQ(A a, B b)")


_NUMBER_AND_WORD = re.compile(r"(?<![\w.])[\d.]++\s*+(?P<word>[^\W\d]\w*+)\s*\Z")


def _misspelt_before(found: d.Unexpected) -> Mistake | None:
    """A misspelt clause that was read as a unit: ``WITHIN 1000 RETRUN b.x``."""
    before = found.before(_NUMBER_AND_WORD)
    return found.misspelt(before, _CLAUSES) if before and {"NUMBER", "RETURN"} <= found.expected else None


def _hint(found: d.Unexpected) -> str | None:
    return (
        _pattern_hint(found)
        or _where_hint(found.word, found.expected)
        or found.keyword(_KEYWORDS, " and no variable" if "VARIABLE" in found.expected else None)
        or _space_hint(found)
        or found.hint()
    )


_LAST_WORD = re.compile(r"(?P<dot>\.\s*)?(?<!\w)(?P<word>\w+)\s*\Z")


def _pattern_hint(found: d.Unexpected) -> str | None:
    """What to say about components that are written otherwise."""
    word, expected = found.word, found.expected
    before = found.before(_LAST_WORD)
    if before is None:
        return None
    last = before["word"]
    if {"VARIABLE", "PLUS"} <= expected and word.upper() not in _KEYWORDS:
        if word == "|":
            return f"alternatives stand in parentheses: ({last}|…)"
        name = last[0].lower()
        return f"name it: {last} {name}"
    if {"COMMA", "LSQB", "RPAR"} <= expected and last.upper() == "AS":
        return "a variable follows its type without AS: Stock a"
    return None


def _where_hint(word: str, expected: frozenset[str]) -> str | None:
    """What to say about conditions that are not where they belong, or not joined."""
    if word == "," and "RBRACE" in expected:
        return "join conditions with AND"
    if "STRATEGY" in expected:
        return f"one of {', '.join(WRITTEN)}"
    if "LBRACE" in expected and "PLUS" not in expected:
        return "WHERE strategy { conditions }"
    if word == "*" and expected == {"VARIABLE", "DISTINCT"}:
        return "count(a[]) counts the events of a[], count(b) OVER 1 minute the latest that b could be"
    if {"FUNCTION", "NUMBER"} <= expected:
        return "scores are made of SUM and COUNT: ORDER BY sum(b[].volume) DESC, or count(b[]) for the longest"
    if word.upper() == "WHERE" and "WITHIN" in expected:
        return "WHERE stands once, right after PATTERN"
    return None


def _space_hint(found: d.Unexpected) -> str | None:
    """What to say about ``a.tag id``."""
    word, expected = found.word, found.expected
    before = found.before(_LAST_WORD)
    if before is None or before["dot"] is None or "COMPARE" not in expected or not word.isidentifier():
        return None
    return f"a name with a space stands in backticks: `{before['word']} {word}`"
