"""Syntax errors in words: what was found, what could have stood there, and which keyword may be meant."""

from __future__ import annotations

import re
from collections.abc import Collection

from lark import Token, UnexpectedInput, UnexpectedToken

from stretto.errors import Span, nearest
from stretto.languages.ceql.parts import Mistake

__all__ = ["explain"]

MOST_EXPECTED = 6
"""How many of the things that could have stood there are listed."""

_KEYWORDS = (
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "FILTER",
        "PARTITION",
        "WITHIN",
        "CONSUME",
        "LIMIT",
        "BY",
        "AS",
        "OR",
        "AND",
    ),
    *("NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE"),
)
_STRATEGIES = ("ALL", "NEXT", "LAST", "MAX", "STRICT")
_CLAUSES = ("FILTER", "PARTITION", "WITHIN", "CONSUME", "LIMIT")

# What could have stood there, in the order in which it is listed: the label, the terminals that call for it,
# and those that it stands for besides.
_GROUPS: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = tuple(
    (label, frozenset(anchors.split()), frozenset(besides.split()))
    for label, anchors, besides in (
        ("a strategy (ALL, NEXT, LAST, MAX, STRICT)", "STRATEGY", ""),
        ("a comparison", "COMPARE", "GT IN BETWEEN LIKE IS NOT"),
        ("an operator", "SLASH", "PLUS MINUS STAR PERCENT"),
        ("an attribute or a constant", "ATTRIBUTE", "QUOTED STRING NUMBER TRUE FALSE NULL MINUS LPAR NOT"),
        ("a number", "NUMBER", "MINUS"),
        ("an operator", "MINUS", "PLUS"),
        ("'*'", "STAR", ""),
        ("';'", "SEMICOLON", "COLON NAME QUOTED LPAR"),
        ("an attribute", "COLUMN", "QUOTED"),
        ("'+'", "PLUS", "COLON_PLUS"),
        ("','", "COMMA", ""),
        ("AS", "AS", ""),
        ("a name", "NAME", "QUOTED LPAR NOT"),
        ("a unit", "UNIT", ""),
        ("ANY, PARTITION or NONE", "MODE", ""),
        ("'['", "LSQB", ""),
        ("']'", "RSQB", ""),
        ("')'", "RPAR", ""),
        ("'('", "LPAR", ""),
        ("a string", "STRING", ""),
        *(
            (word, word, "")
            for word in ("NOT", "NULL", "IN", "BETWEEN", "LIKE", "AND", "OR", "SELECT", "FROM", "WHERE", "BY")
        ),
        ("FILTER", "FILTER", ""),
        ("WITHIN", "WITHIN", ""),
        ("PARTITION BY", "PARTITION", ""),
        ("CONSUME BY", "CONSUME", ""),
        ("LIMIT", "LIMIT", ""),
        ("the end", "$END", ""),
    )
)


def explain(text: str, error: UnexpectedInput) -> Mistake:
    """A parser's error as a mistake with its place and a hint."""
    expected = _expected(error)
    start = _start(text, error)
    span = _span_of_word(text, start)
    return (
        _unterminated(text, start)
        or _misspelt_before(text, start, expected)
        or _missing_clause(text, span, expected)
        or _unexpected(text, span, expected)
    )


def _expected(error: UnexpectedInput) -> frozenset[str]:
    """The terminals that could have stood there."""
    parser = getattr(error, "interactive_parser", None)
    if parser is not None:
        return frozenset(parser.accepts())
    if isinstance(error, UnexpectedToken):
        return frozenset(error.expected)
    return frozenset(getattr(error, "allowed", None) or ())


def _start(text: str, error: UnexpectedInput) -> int:
    token = getattr(error, "token", None)
    if isinstance(token, Token) and token.type == "$END":
        return len(text.rstrip())
    position = error.pos_in_stream
    return len(text) if position is None or position < 0 else position


_ANY_WORD = re.compile(r"\w+|==|!=|<>|<=|>=|:\+|\S")


def _span_of_word(text: str, start: int) -> Span:
    word = _ANY_WORD.match(text, start)
    return Span(start, word.end() if word else start)


# ---- The kinds of mistakes


_OPENINGS = {
    "'": "a string that is not closed",
    "’": "a string that is not closed",
    "‘": "a string that is not closed",
    '"': "a quoted name that is not closed",
    "`": "a quoted name that is not closed",
}


def _unterminated(text: str, start: int) -> Mistake | None:
    """A string, quoted name or comment that runs on to the end."""
    if text.startswith("*", start) and text.startswith("/", start - 1) and "*/" not in text[start:]:
        return Mistake("a comment that is not closed", Span(start - 1, start + 1), "close it with */")
    if text.startswith("/*", start) and "*/" not in text[start + 2 :]:
        return Mistake("a comment that is not closed", Span(start, start + 2), "close it with */")
    opening = text[start : start + 1]
    if opening not in _OPENINGS:
        return None
    closing = "’" if opening == "‘" else opening
    rest = text[start + 1 :].replace(closing * 2, "")
    if closing in rest:
        return None
    return Mistake(_OPENINGS[opening], Span(start, start + 1), f"close it with {closing}")


_WORD_BEFORE = re.compile(r"(?:(?<!\w)(?P<left>\w+)|[)+\"`])\s*(?<!\w)(?P<word>[^\W\d]\w*)\s*\Z")
_LOOK_BACK = 300


def _misspelt_before(text: str, start: int, expected: Collection[str]) -> Mistake | None:
    """A misspelt keyword that was read as a variable, since AS may be missing: ``A FITLER A[x > 1]``."""
    begin = max(0, start - _LOOK_BACK)
    before = _WORD_BEFORE.search(text[begin:start])
    if before is None or before["word"].upper() in _KEYWORDS:
        return None
    left = (before["left"] or "").upper()
    candidates: tuple[str, ...] = ()
    if "SEMICOLON" in expected and left not in _KEYWORDS:
        candidates = (*_CLAUSES, "OR", "AS")
    elif "FROM" in expected and left == "SELECT":
        candidates = _STRATEGIES
    meant = _keyword_like(before["word"], candidates)
    if meant is None:
        return None
    span = Span(begin + before.start("word"), begin + before.end("word"))
    return Mistake(f"unexpected '{before['word']}'", span, f"did you mean '{_full(meant)}'?")


def _missing_clause(text: str, span: Span, expected: Collection[str]) -> Mistake | None:
    """SELECT, FROM or WHERE that is not there: another keyword, or the end, stands in its place."""
    missing = next((keyword for keyword in ("SELECT", "FROM", "WHERE") if keyword in expected), None)
    if missing is None:
        return None
    word = text[span.start : span.end]
    if word and word.upper() not in _KEYWORDS:
        return None
    return Mistake(f"a query needs a {missing} clause", span, "SELECT * FROM stream WHERE formula")


def _unexpected(text: str, span: Span, expected: frozenset[str]) -> Mistake:
    word = text[span.start : span.end]
    found = f"unexpected '{word}'" if word else "the query ends too early"
    listed = _listing(expected)
    hint = _keyword_hint(word, expected) or _bracket_hint(text, span, expected)
    return Mistake(f"{found}; expected {listed}" if listed else found, span, hint)


def _keyword_hint(word: str, expected: frozenset[str]) -> str | None:
    """What to say about a word that looks like a keyword, or is one."""
    if word.upper() in _KEYWORDS:
        if "STRATEGY" in expected:
            return "SELECT * reports every variable, SELECT NONE reports none"
        if word.upper() == "NOT" and "NAME" in expected:
            return "CEQL has no negated steps; NOT stands inside brackets: x[NOT (price > 3)]"
        return f"'{word}' is a keyword; as a name it needs quotes: \"{word}\"" if expected & _NAMES else None
    keywords = [keyword for keyword in _KEYWORDS if keyword in expected]
    meant = _keyword_like(word, keywords + list(_STRATEGIES if "STRATEGY" in expected else ()))
    if meant is not None:
        return f"did you mean '{_full(meant)}'?"
    return f"write [{word}]" if expected == {"LSQB"} and word.isidentifier() else None


_NAMES = {"NAME", "ATTRIBUTE"}
_FORMULA_SIGNS = {";", ":", "+", ":+"}
_COMPARISONS = {"=", "==", "!=", "<>", "<", "<=", ">", ">="}


def _bracket_hint(text: str, span: Span, expected: frozenset[str]) -> str | None:
    """What to say about a sign that some bracket keeps out."""
    word = text[span.start : span.end]
    if word in _FORMULA_SIGNS and "AND" in expected and "COMPARE" not in expected and "SLASH" not in expected:
        return "FILTER takes everything to its left; put it in parentheses: (A FILTER A[p]); B"
    if word in _COMPARISONS and "AND" in expected:
        return "comparisons do not chain; join them with AND"
    opening = {")": "(", "]": "["}.get(word)
    before = text[: span.start]
    if opening is not None and before.count(opening) <= before.count(word):
        return f"there is no '{opening}' for it to close"
    return None


def _keyword_like(word: str, keywords: Collection[str]) -> str | None:
    """The keyword that a word of two letters or more resembles."""
    if len(word) < 2 or not word.isidentifier():
        return None
    return nearest(word, keywords)


def _full(keyword: str) -> str:
    return f"{keyword} BY" if keyword in {"PARTITION", "CONSUME"} else keyword


def _listing(expected: frozenset[str]) -> str:
    """``';', '+', AS or the end``: at most six."""
    labels: list[str] = []
    rest = set(expected)
    for label, anchors, besides in _GROUPS:
        if rest & anchors:
            labels.append(label)
            rest -= anchors | besides
    if len(labels) > MOST_EXPECTED:
        last = [labels.pop()] if labels[-1] == "the end" else []
        labels = labels[: MOST_EXPECTED - len(last)] + last
    if len(labels) < 2:
        return "".join(labels)
    return f"{', '.join(labels[:-1])} or {labels[-1]}"
