"""Syntax errors in words, for every language: what was found, what could have stood there, which keyword may be meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from lark import Token, UnexpectedInput, UnexpectedToken

from stretto.errors import Span, nearest
from stretto.languages.parts import Mistake

__all__ = [
    "COMPARISONS",
    "Groups",
    "chain_hint",
    "closing_hint",
    "expected_terminals",
    "groups",
    "keyword_like",
    "place",
    "unexpected",
    "unterminated",
    "word_at",
]

MOST_EXPECTED = 6
"""How many of the things that could have stood there are listed."""

COMPARISONS = frozenset({"=", "==", "!=", "<>", "<", "<=", ">", ">="})

#: What could have stood there, in the order in which it is listed: the label, the terminals that call for it, and those
#: that it stands for besides.
Groups = Sequence[tuple[str, frozenset[str], frozenset[str]]]


def groups(rows: Iterable[tuple[str, str, str]]) -> Groups:
    """Groups with their terminals as words of a string."""
    return tuple((label, frozenset(anchors.split()), frozenset(besides.split())) for label, anchors, besides in rows)


# ---- The parser's error


def expected_terminals(error: UnexpectedInput) -> frozenset[str]:
    """The terminals that could have stood there."""
    parser = getattr(error, "interactive_parser", None)
    if parser is not None:
        return frozenset(parser.accepts())
    if isinstance(error, UnexpectedToken):
        return frozenset(error.expected)
    return frozenset(getattr(error, "allowed", None) or ())


def place(text: str, error: UnexpectedInput) -> Span:
    """The word, or the end, that the parser could not take."""
    token = getattr(error, "token", None)
    if isinstance(token, Token) and token.type == "$END":
        return word_at(text, len(text.rstrip()))
    position = error.pos_in_stream
    return word_at(text, len(text) if position is None or position < 0 else position)


_ANY_WORD = re.compile(r"\w+|==|!=|<>|<=|>=|:\+|\S")


def word_at(text: str, start: int) -> Span:
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


def unterminated(text: str, start: int) -> Mistake | None:
    """A string, quoted name or comment that runs on to the end."""
    if start and text.startswith("*", start) and text.startswith("/", start - 1) and "*/" not in text[start:]:
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


def unexpected(
    text: str, span: Span, expected: frozenset[str], known: Groups, hint: str | None, *, what: str = "query"
) -> Mistake:
    """What was found, and what could have stood there."""
    word = text[span.start : span.end]
    found = f"unexpected '{word}'" if word else f"the {what} ends too early"
    listed = _listing(expected, known)
    return Mistake(f"{found}; expected {listed}" if listed else found, span, hint)


def _listing(expected: frozenset[str], known: Groups) -> str:
    """``';', '+', AS or the end``: at most six."""
    labels: list[str] = []
    rest = set(expected)
    for label, anchors, besides in known:
        if rest & anchors:
            labels.append(label)
            rest -= anchors | besides
    if len(labels) > MOST_EXPECTED:
        last = [labels.pop()] if labels[-1] == "the end" else []
        labels = labels[: MOST_EXPECTED - len(last)] + last
    if len(labels) < 2:
        return "".join(labels)
    return f"{', '.join(labels[:-1])} or {labels[-1]}"


# ---- Hints


def keyword_like(word: str, keywords: Collection[str]) -> str | None:
    """The keyword that a word of two letters or more resembles."""
    if len(word) < 2 or not word.isidentifier():
        return None
    return nearest(word, keywords)


def chain_hint(word: str, expected: Collection[str]) -> str | None:
    """What to say about ``1 < x < 3``."""
    return "comparisons do not chain; join them with AND" if word in COMPARISONS and "AND" in expected else None


_PAIRS = {")": "(", "]": "[", "}": "{"}


def closing_hint(text: str, span: Span) -> str | None:
    """What to say about a closing bracket that closes none."""
    word = text[span.start : span.end]
    opening = _PAIRS.get(word)
    before = text[: span.start]
    if opening is not None and before.count(opening) <= before.count(word):
        return f"there is no '{opening}' for it to close"
    return None
