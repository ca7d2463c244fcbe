"""Syntax errors in words, for every language: what was found, what could have stood there, which keyword may be meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from lark import Token, UnexpectedInput, UnexpectedToken

from stretto.errors import Span, nearest
from stretto.languages.parts import Mistake
from stretto.times import SECONDS

__all__ = [
    "COMPARISONS",
    "Groups",
    "chain_hint",
    "closing_hint",
    "count_of",
    "duration",
    "expected_terminals",
    "groups",
    "keyword_like",
    "place",
    "unexpected",
    "unterminated",
    "word_at",
    "written_out",
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


_NUMBER_BEFORE = re.compile(r"(?<![\w.])\d[\d.]*\s*\Z")
_INTERVAL_BEFORE = re.compile(r"(?<!\w)interval\s*\Z", re.IGNORECASE)


def duration(text: str, span: Span, place: str = "WITHIN {} bounds a whole match; ") -> Mistake | None:
    """``5 minutes`` or ``INTERVAL '5 minutes'`` inside a condition, if that is what stands there.

    ``place`` says where the language has durations.
    """
    begin = max(0, span.start - 100)
    number = _NUMBER_BEFORE.search(text[begin : span.start])
    interval = _INTERVAL_BEFORE.search(text[begin : span.start])
    if number is not None and text[span.start : span.end].lower() in SECONDS:
        start, end = begin + number.start(), span.end
        shown = text[start:end]
    elif interval is not None and text.startswith("'", span.start):
        start, end = begin + interval.start(), max(span.end, text.find("'", span.end) + 1)
        shown = text[span.start : end].strip("'")
    else:
        return None
    return Mistake(
        "a condition takes no durations",
        Span(start, end),
        f"{place.format(shown)}a condition takes numbers, in the attribute's own unit",
    )


_COUNT = re.compile(r"\{\s*(?P<least>\d+)\s*(?:(?P<comma>,)\s*(?P<most>\d*)\s*)?\}")
_LONGEST_SKETCH = 4


def count_of(text: str, start: int) -> tuple[int, int | None] | None:
    """``{n}``, ``{n,m}`` or ``{n,}`` at a place: the least and the most, ``None`` for no end."""
    found = _COUNT.match(text, start)
    if found is None:
        return None
    least = int(found["least"])
    most = least if not found["comma"] else int(found["most"]) if found["most"] else None
    return least, most


def written_out(counts: tuple[int, int | None], step: Callable[[int], str], more: str, joint: str) -> list[str] | None:
    """The sequences that a count stands for, each written out; ``None`` where they are many.

    ``step(k)`` is the k-th step, and ``more`` what stands for one or more.
    """
    least, most = counts
    if not 0 < least <= _LONGEST_SKETCH or (most is not None and not least <= most <= _LONGEST_SKETCH):
        return None
    if most is None:
        return [joint.join([*(step(k) for k in range(1, least)), more])]
    return [joint.join(step(k) for k in range(1, length + 1)) for length in range(least, most + 1)]


def closing_hint(text: str, span: Span) -> str | None:
    """What to say about a closing bracket that closes none."""
    word = text[span.start : span.end]
    opening = _PAIRS.get(word)
    before = text[: span.start]
    if opening is not None and before.count(opening) <= before.count(word):
        return f"there is no '{opening}' for it to close"
    return None
