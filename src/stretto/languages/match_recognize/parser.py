"""The parser of ``MATCH_RECOGNIZE ( … )`` (see :mod:`stretto.languages.expressions.reading`)."""

from __future__ import annotations

from stretto.languages.expressions.reading import Language, mistakes_of
from stretto.query.row_pattern import RowQuery

ROWS = Language(
    "stretto.languages.match_recognize",
    {"clause": "MATCH_RECOGNIZE (ORDER BY t PATTERN (A B+) DEFINE B AS price > PREV(price))"},
)


def parse(text: str, *, window: bool = False) -> RowQuery:
    """Read a ``MATCH_RECOGNIZE`` clause, from that word to its closing parenthesis.

    With ``window`` it may be the definition of a window with a pattern, behind that word: it has a frame.

    Raises
    ------
    QueryError
        With the place, what was expected there and, where there is one, a suggestion.

    >>> parsed = parse("MATCH_RECOGNIZE (ORDER BY t PATTERN (strt down+?) DEFINE down AS price < PREV(price))")
    >>> str(parsed.pattern), str(parsed.define["DOWN"])
    ('STRT DOWN+?', 'RUNNING LAST(price) < PREV(RUNNING LAST(price), 1)')
    """
    from stretto.languages.match_recognize.lowering import lower

    with mistakes_of(text, "clause"):
        return lower(text, ROWS.read(text, "clause"), window=window)
