"""The EQL parser (see :mod:`stretto.languages.expressions.reading`)."""

from __future__ import annotations

from stretto.languages.expressions.reading import Language, mistakes_of
from stretto.query.eql import EqlQuery

EQL = Language(
    "stretto.languages.eql",
    {
        "query": 'process where process.name == "cmd.exe", or sequence by host.id [process where true] [network where true]'
    },
    shared=(),
)


def parse(text: str) -> EqlQuery:
    """Read an EQL query.

    Raises
    ------
    QueryError
        With the place, what was expected there and, where there is one, a suggestion.

    >>> parse("sequence by user with maxspan=5m [login where not ok] with runs=3 [login where ok]").variables
    ('e1', 'e2', 'e3', 'e4')
    """
    from stretto.languages.eql.lowering import lower

    with mistakes_of(text):
        return lower(text, EQL.read(text))
