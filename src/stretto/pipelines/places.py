"""Where in a TOML file the keys and values stand.

``tomllib`` gives values without their places. :func:`find_places` runs over a text that ``tomllib`` has accepted and notes, for
each key, array item and table, where it stands; so it need not judge what is right, only tell where things begin and end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stretto.errors import Span

#: The way to a value: keys of tables and indexes of arrays.
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """Where a key and its value stand. A table made by a header has no value of its own; an item of an array no key."""

    key: Span | None
    value: Span | None

    @property
    def span(self) -> Span | None:
        """The value, or else the key."""
        return self.value or self.key


def find_places(text: str) -> Mapping[Path, Place]:
    """The places of all keys, items and tables of a valid TOML document, by their paths.

    Parameters
    ----------
    text
        The document, with ``\\n`` as its line ends.

    >>> text = "[source]\\npath = 'a.csv'\\n"
    >>> place = find_places(text)["source", "path"]
    >>> text[place.key.start : place.key.end], text[place.value.start : place.value.end]
    ('path', "'a.csv'")
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.places


_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
#: A string as it is written, multi-line forms first. A multi-line string may end in quotes of its own.
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:""?(?!"))?' + r"|'''.*?'''(?:''?(?!'))?" + r'|"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: dict[Path, Place] = {}
        #: How many tables an array of tables has so far.
        self.tables: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self.blank() and self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)

    def blank(self) -> bool:
        """Go over white space, line ends and comments."""
        self.at = self.end_of(_BLANK)
        return True

    def end_of(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        return self.at if found is None else found.end()

    def header(self) -> Path:
        """``[a.b]`` or ``[[a.b]]``: the path of the table that it opens."""
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        path: Path = ()
        parts = self.key()
        for number, (name, span) in enumerate(parts):
            path = (*path, name)
            self.places.setdefault(path, Place(span, None))
            if array and number == len(parts) - 1:
                self.tables[path] = self.tables.get(path, 0) + 1
            if path in self.tables:  # the last table of the array is meant
                path = (*path, self.tables[path] - 1)
                self.places.setdefault(path, Place(span, None))
        self.at += 2 if array else 1
        return path

    def pair(self, table: Path) -> None:
        """``a.b = value``."""
        path, spans = table, self.key()
        for name, span in spans:
            path = (*path, name)
            self.places.setdefault(path, Place(span, None))
        self.at = self.end_of(_SPACE) + 1  # the equals sign
        self.at = self.end_of(_SPACE)
        self.places[path] = Place(spans[-1][1], self.value(path))

    def key(self) -> list[tuple[str, Span]]:
        """The parts of a dotted key."""
        parts = []
        while True:
            self.at = begin = self.end_of(_SPACE)
            if self.text[begin] in "\"'":
                self.at = self.end_of(_STRING)
                name = _decoded(self.text, Span(begin, self.at))
            else:
                self.at = self.end_of(_BARE)
                name = self.text[begin : self.at]
            parts.append((name, Span(begin, self.at)))
            self.at = self.end_of(_SPACE)
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def value(self, path: Path) -> Span:
        begin = self.at
        first = self.text[begin]
        if first in "\"'":
            self.at = self.end_of(_STRING)
        elif first == "[":
            self.array(path)
        elif first == "{":
            self.inline_table(path)
        else:
            self.at = begin + len(self.text[begin : self.end_of(_SCALAR)].rstrip())
        return Span(begin, self.at)

    def array(self, path: Path) -> None:
        self.at += 1
        number = 0
        while self.blank() and self.text[self.at] != "]":
            item = (*path, number)
            self.places[item] = Place(None, self.value(item))
            number += 1
            self.comma()
        self.at += 1

    def inline_table(self, path: Path) -> None:
        self.at += 1
        while self.blank() and self.text[self.at] != "}":
            self.pair(path)
            self.comma()
        self.at += 1

    def comma(self) -> None:
        self.blank()
        if self.text[self.at] == ",":
            self.at += 1


_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\"}
_HEX = {"x": 2, "u": 4, "U": 8}


def _decoded(text: str, span: Span) -> str:
    return "".join(character for character, _ in _characters(text, span))


def offsets(text: str, span: Span) -> tuple[str, list[int]]:
    """A string's value, and where in ``text`` each of its characters stands; and, last, where the string ends.

    Parameters
    ----------
    text
        The document.
    span
        The string as it is written, quotes included.

    >>> offsets('x = "a\\\\tb"', Span(4, 10))
    ('a\\tb', [5, 6, 8, 9])
    """
    characters = list(_characters(text, span))
    width = 3 if text[span.start : span.start + 3] in ('"""', "'''") and span.end - span.start >= 6 else 1
    return "".join(c for c, _ in characters), [at for _, at in characters] + [span.end - width]


def _characters(text: str, span: Span) -> list[tuple[str, int]]:
    """The characters of a string as it is written, with their places."""
    quote = text[span.start]
    long = text[span.start : span.start + 3] == quote * 3 and span.end - span.start >= 6
    width = 3 if long else 1
    at, end = span.start + width, span.end - width
    if long and text[at] == "\n":  # right behind the quotes: not part of the value
        at += 1
    if quote == "'":
        return [(text[i], i) for i in range(at, end)]
    found = []
    while at < end:
        begin = at
        at += 1
        if text[begin] != "\\":
            found.append((text[begin], begin))
            continue
        kind = text[at]
        if kind in " \t\n":  # a line that goes on
            while at < end and text[at] in " \t\n":
                at += 1
        elif kind in _HEX:
            found.append((chr(int(text[at + 1 : at + 1 + _HEX[kind]], 16)), begin))
            at += 1 + _HEX[kind]
        else:
            found.append((_ESCAPES[kind], begin))
            at += 1
    return found
