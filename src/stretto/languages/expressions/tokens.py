"""Tokens, and what the callbacks of all languages make of them first: names, numbers, strings, and mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from stretto.errors import Span

if TYPE_CHECKING:
    from lark import Token

LONGEST_NUMBER = 400
"""Digits of a number, and its largest power of ten."""


class Mistake(Exception):
    """A mistake in the query, before its text is at hand: the callbacks see tokens only."""

    def __init__(self, message: str, span: Span | None, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written; ``bare`` when it has no quotes, so that it may be a word of the language instead."""

    text: str
    span: Span
    bare: bool = False


def unique(names: Iterable[Name], kind: str, where: str) -> None:
    """Refuse a name that a list has twice."""
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            raise Mistake(f"{where} lists the {kind} '{name.text}' twice", name.span)
        seen.add(name.text)


# ---- Tokens


def reserve(reserved: Mapping[str, frozenset[str]], token: Token) -> Token:
    """Make a reserved word a keyword wherever it stands, by the kind of place (a terminal of the grammar); the lexer calls this."""
    word = token.upper()
    if word in reserved[token.type]:
        token.type = word
    return token


def at(token: Token) -> Span:
    """Tell where a token stands."""
    assert token.start_pos is not None
    assert token.end_pos is not None
    return Span(token.start_pos, token.end_pos)


def at_end(parts: Sequence[object]) -> Span:
    """Tell where the token stands that ends a rule's parts."""
    closing: Any = parts[-1]
    return at(closing)


def find(tokens: Sequence[object], kind: str) -> Token | None:
    """Find the first token of a kind among a rule's parts."""
    from lark import Token

    return next((token for token in tokens if isinstance(token, Token) and token.type == kind), None)


def name_of(word: Token) -> Name:
    """Read a name, without its quotes if it has any."""
    if word.type != "QUOTED":
        return Name(str(word), at(word), bare=True)
    quote = word[0]
    if len(word) == 2:
        raise Mistake("a name cannot be empty", at(word))
    return Name(word[1:-1].replace(quote * 2, quote), at(word))


def unquoted(token: str) -> str:
    """Give the text of a string token."""
    closing = token[-1]
    return token[1:-1].replace(closing * 2, closing)


def number_of(token: Token) -> int | Decimal:
    """Read a number exactly as it is written."""
    digits, _, power = token.lower().partition("e")
    if len(digits) > LONGEST_NUMBER or len(power) > 5 or abs(int(power or 0)) > LONGEST_NUMBER:
        raise Mistake(f"a number of more than {LONGEST_NUMBER} digits", at(token))
    return exact(token)


def exact(written: str) -> int | Decimal:
    """Give a number that is not too long exactly as it is written."""
    return int(written) if written.isdigit() else Decimal(str(written))
