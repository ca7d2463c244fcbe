"""The tokens of SQL text, with their places, as far as names, strings and brackets go; no keyword is reserved here.

>>> [token.text for token in tokens('SELECT "a b", 1.5 -- why\\nFROM t')]
['SELECT', '"a b"', ',', '1.5', 'FROM', 't']
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stretto.errors import QueryError, Span

_SHARED = r"""
    (?P<space> \s+ | --[^\n]* | /\*.*?\*/ )
  | (?P<name> `(?:[^`]|``)*` {quoted} | [^\W\d][\w$]* )
  | (?P<string> {string} )
  | (?P<number> \d[\w.]* )
  | (?P<open> ["'`] | /\* )
  | (?P<symbol> . )
"""

#: Standard SQL and DuckDB: quotes are doubled inside; ``E'…'`` has backslashes, ``$$…$$`` has none.
_STANDARD = re.compile(
    r"(?P<escaped> [eE]'(?:\\.|''|[^'\\])*' ) | (?P<dollars> \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ ) |"
    + _SHARED.replace("{quoted}", r'| "(?:[^"]|"")*"').replace("{string}", r"'(?:[^']|'')*'"),
    re.VERBOSE | re.DOTALL,
)
#: Spark: both quotes are of strings, with backslashes; or, in a clause of ours, the double ones are of names, which ends them alike.
_SPARK = re.compile(
    _SHARED.replace("{quoted}", "").replace("{string}", r"""'(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" """),
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text; ``kind`` is ``name``, ``string``, ``number`` or ``symbol``."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends in the text."""
        return self.start + len(self.text)

    def says(self, *words: str) -> bool:
        """Whether it is one of some words, in any case and without quotes, or one of some symbols."""
        return self.kind in ("name", "symbol") and self.text.upper() in words

    @property
    def name(self) -> str:
        """A name without its quotes."""
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote) if quote in '"`' else self.text


def tokens(text: str, *, spark: bool = False, whole: bool = True) -> list[Token]:
    """The tokens of a text; ``spark``: as Spark SQL has strings; not ``whole``: those before a quote or comment that is not closed.

    Raises
    ------
    QueryError
        A quote or a comment is not closed.
    """
    found = []
    for one in (_SPARK if spark else _STANDARD).finditer(text):
        kind = str(one.lastgroup)
        if kind == "open" and not whole:
            break
        if kind == "open":
            what = "comment" if one[0] == "/*" else "quote"
            hint = "*/" if what == "comment" else one[0]
            raise QueryError(
                f"this {what} is not closed", text=text, span=Span(*one.span()), hint=f"it ends with {hint}"
            )
        if kind != "space":
            kind = "string" if kind in ("escaped", "dollars", "tag") else kind
            found.append(Token(kind, one[0], one.start()))
    return found
