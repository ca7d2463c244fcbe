"""Texts for other engines, made of parts of the user's text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stretto.errors import Span


class Part(NamedTuple):
    """A piece of a text for another engine, and what of the user's text it stands for."""

    text: str
    span: Span
    verbatim: bool = False


@dataclass(frozen=True)
class Rewritten:
    """A text for another engine, in parts."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "".join(part.text for part in self.parts)

    def place(self, offset: int) -> Span:
        """The place in the user's text: of a character, or of the clause whose result is named there."""
        begin = 0
        for text, span, verbatim in self.parts:
            if offset < begin + len(text):
                return Span(span.start + offset - begin, span.start + offset - begin + 1) if verbatim else span
            begin += len(text)
        end = self.parts[-1].span.end
        return Span(max(0, end - 1), end)
