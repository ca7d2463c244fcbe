"""Syntax errors in words, for every language: what was found, what could have stood there, which keyword may be meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lark import Token, UnexpectedInput, UnexpectedToken

from stretto.errors import Span, nearest
from stretto.languages.expressions.tokens import Mistake
from stretto.query import predicate as p

MOST_EXPECTED = 6
"""How many of the things that could have stood there are listed."""

COMPARISONS = frozenset({"=", "==", "!=", "<>", "<", "<=", ">", ">="})

#: Keywords that BY follows.
WITH_BY = ("PARTITION", "CONSUME", "GROUP", "ORDER")

#: The clauses that ask something of all matches together.
ASKING = ("GROUP", "EVERY", "ORDER", "SAMPLE")

#: The words of conditions.
KEYWORDS = tuple(sorted(p.WORDS))

_LOOK_BACK = 300

# ---- What could have stood there

#: The label, the terminals that call for it, and those that it stands for besides, each as words of a string.
Row = tuple[str, str, str]

#: The same with sets, in the order in which it is listed.
Groups = Sequence[tuple[str, frozenset[str], frozenset[str]]]

COMPARISON: Row = ("a comparison", "COMPARE", "GT IN BETWEEN LIKE IS NOT")
OPERATOR: Row = ("an operator", "SLASH", "PLUS MINUS STAR PERCENT")
SIGN: Row = ("an operator", "MINUS", "PLUS")
NUMBER: Row = ("a number", "NUMBER", "MINUS")
CHOOSING: tuple[Row, ...] = (
    ("KEEP", "KEEP", ""),
    ("AFTER MATCH", "AFTER_MATCH", ""),
    ("LONGEST, SHORTEST, or SKIP and where to", "CHOICE", ""),
)

ASKED: tuple[Row, ...] = (
    ("GROUP BY", "GROUP", ""),
    ("EVERY", "EVERY", ""),
    ("ORDER BY", "ORDER", ""),
    ("SAMPLE", "SAMPLE", ""),
    ("a function (COUNT, SUM, AVG, MIN, MAX)", "FUNCTION", "CAST"),
    ("ASC or DESC", "ASC", "DESC"),
    ("SEED", "SEED", ""),
    ("EVENT", "EVENT", ""),
)

_SIGNS = {"LBRACE": "{", "RBRACE": "}", "LSQB": "[", "RSQB": "]", "LPAR": "(", "RPAR": ")", "LESS": "<", "MORE": ">"}
_SIGNS |= {"BAR": "|", "DOT": ".", "COMMA": ",", "STAR": "*", "IMPLIES": ":-"}


def words(names: str) -> tuple[Row, ...]:
    """Make rows of keywords, each by itself."""
    return tuple((name, name, "") for name in names.split())


def signs(names: str) -> tuple[Row, ...]:
    """Make rows of signs in quotes, each by itself."""
    return tuple((f"'{_SIGNS[name]}'", name, "") for name in names.split())


def groups(*rows: Row) -> Groups:
    """Put rows in the order in which they are listed; the end comes last."""
    ended = (*rows, ("the end", "$END", "SEMICOLON"))
    return tuple((label, frozenset(anchors.split()), frozenset(besides.split())) for label, anchors, besides in ended)


# ---- The parser's error

_ANY_WORD = re.compile(r"\w+|==|!=|<>|<=|>=|:\+|\S")
_ARROW = re.compile(r"-->|->|=>|→|>>|~>|\|>|\b(?:THEN|FOLLOWED(?:\s+|_)?BY)\b", re.IGNORECASE)
_ARROW_BEFORE = re.compile(r"(?<!\w)(?P<word>THEN|FOLLOWED(?:_?BY)?|NEXT)\s*\Z", re.IGNORECASE)
_INTERVAL_BEFORE = re.compile(r"(?<!\w)(?P<interval>interval\s*)\Z", re.IGNORECASE)
_PAIRS = {")": "(", "]": "[", "}": "{"}
_OPENINGS = {
    "'": "a string that is not closed",
    "’": "a string that is not closed",
    "‘": "a string that is not closed",
    '"': "a quoted name that is not closed",
    "`": "a quoted name that is not closed",
}


@dataclass(frozen=True, slots=True)
class Unexpected:
    """A word, or an end, that the parser could not take, and the terminals that could have stood there.

    ``what`` is what the text should be.
    """

    text: str
    span: Span
    expected: frozenset[str]
    what: str

    @classmethod
    def of(cls, text: str, error: UnexpectedInput, what: str) -> Unexpected:
        """Take what a parser's error says."""
        parser = getattr(error, "interactive_parser", None)
        if parser is not None:
            expected = parser.accepts()
        elif isinstance(error, UnexpectedToken):
            expected = error.expected
        else:
            expected = getattr(error, "allowed", None) or ()
        token = getattr(error, "token", None)
        start = error.pos_in_stream
        if isinstance(token, Token) and token.type == "$END":
            start = len(text.rstrip())
        elif start is None or start < 0:
            start = len(text)
        word = _ANY_WORD.match(text, start)
        return cls(text, Span(start, word.end() if word else start), frozenset(expected), what)

    @property
    def word(self) -> str:
        """The word itself."""
        return self.text[self.span.start : self.span.end]

    def before(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Search what stands before the word, as far as one looks back."""
        return pattern.search(self.text[max(0, self.span.start - _LOOK_BACK) : self.span.start])

    def place(self, found: re.Match[str], group: str) -> Span:
        """Tell where a group of what stands before is in the text."""
        begin = max(0, self.span.start - _LOOK_BACK)
        return Span(begin + found.start(group), begin + found.end(group))

    # -- kinds of mistakes --------------------------------------------------------------------------------------------

    def mistake(self, known: Groups, hint: str | None) -> Mistake:
        """Say what was found, and what could have stood there."""
        found = f"unexpected '{self.word}'" if self.word else f"the {self.what} ends too early"
        listed = _listing(self.expected, known)
        return Mistake(f"{found}; expected {listed}" if listed else found, self.span, hint)

    def unterminated(self) -> Mistake | None:
        """Find a string, quoted name or comment that runs on to the end."""
        text, start = self.text, self.span.start
        if start and text.startswith("*", start) and text.startswith("/", start - 1) and "*/" not in text[start:]:
            return Mistake("a comment that is not closed", Span(start - 1, start + 1), "close it with */")
        if text.startswith("/*", start) and "*/" not in text[start + 2 :]:
            return Mistake("a comment that is not closed", Span(start, start + 2), "close it with */")
        opening = text[start : start + 1]
        closing = "’" if opening == "‘" else opening
        if opening not in _OPENINGS or closing in text[start + 1 :].replace(closing * 2, ""):
            return None
        return Mistake(_OPENINGS[opening], Span(start, start + 1), f"close it with {closing}")

    def arrow(self, one: str, hint: str) -> Mistake | None:
        """Find ``A -> B``, or another sign or word that stands for "then" elsewhere; ``one`` says what is written in its place."""
        start = self.span.start
        found = _ARROW.match(self.text, start) or (_ARROW.match(self.text, start - 1) if start else None)
        before = self.before(_ARROW_BEFORE)
        if found is not None and found.end() >= self.span.end:
            place = Span(found.start(), found.end())
        elif before is not None:  # which was read as the name of a variable
            place = self.place(before, "word")
            place = place | self.span if self.word.upper() == "BY" else place
        else:
            return None
        return Mistake(f"unexpected '{self.text[place.start : place.end]}'; {one}", place, hint)

    def interval(self) -> Mistake | None:
        """Find ``INTERVAL '5 minutes'``."""
        before = self.before(_INTERVAL_BEFORE)
        if before is None or not self.word.startswith("'"):
            return None
        start, end = self.place(before, "interval").start, max(self.span.end, self.text.find("'", self.span.end) + 1)
        shown = self.text[self.span.start : end].strip("'")
        return Mistake("a duration is written without INTERVAL", Span(start, end), f"write {shown}")

    def misspelt(self, before: re.Match[str], keywords: Collection[str]) -> Mistake | None:
        """Find a keyword that was read as another word: what stands before, in the group ``word``."""
        hint = did_you_mean(before["word"], keywords)
        if hint is None:
            return None
        return Mistake(f"unexpected '{before['word']}'", self.place(before, "word"), hint)

    # -- hints --------------------------------------------------------------------------------------------------------

    def hint(self) -> str | None:
        """Say something about ``1 < x < 3``, and about a closing bracket that closes none."""
        if self.word in COMPARISONS and "AND" in self.expected:
            return "comparisons do not chain; join them with AND"
        opening = _PAIRS.get(self.word)
        before = self.text[: self.span.start]
        if opening is not None and before.count(opening) <= before.count(self.word):
            return f"there is no '{opening}' for it to close"
        return None

    def keyword(self, keywords: Iterable[str], instead: str | None, also: Iterable[str] = ()) -> str | None:
        """Say something about a keyword that is written otherwise as a name, or about a word like one that could stand there.

        ``also`` are words that could stand there, too.
        """
        if self.word.upper() in keywords:
            return None if instead is None else f"'{self.word}' is a keyword{instead.format(self.word)}"
        return did_you_mean(self.word, [*(keyword for keyword in keywords if keyword in self.expected), *also])

    def foreign(self) -> str | None:
        """Say what to write for the signs of other languages."""
        if self.word == "!" and self.expected & {"NOT", "VARIABLE"}:
            return "write NOT"
        return {"&": "write AND", "|": "write OR"}.get(self.word)


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


def keyword_like(word: str, keywords: Collection[str]) -> str | None:
    """Find the keyword that a word of two letters or more resembles."""
    return nearest(word, keywords) if len(word) > 1 and word.isidentifier() else None


def did_you_mean(word: str, keywords: Collection[str]) -> str | None:
    """Ask whether a keyword was meant that a word resembles."""
    meant = keyword_like(word, keywords)
    return None if meant is None else f"did you mean '{meant}{' BY' * (meant in WITH_BY)}'?"
