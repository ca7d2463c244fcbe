"""The CEQL parser (see :mod:`stretto.languages.expressions.reading`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.languages.ceql.constants import Known, shape_of
from stretto.languages.expressions.reading import SHARED, TOTALS, Language, mistakes_of
from stretto.query.query import ParsedQuery

if TYPE_CHECKING:
    from stretto.languages.ceql.transformer import Draft

CEQL = Language("stretto.languages.ceql", {"query": "SELECT * FROM stream WHERE formula"}, (*SHARED, TOTALS))


def parse(text: str) -> ParsedQuery:
    """Read a CEQL query.

    Raises
    ------
    QueryError
        With the place, what was expected there and, where there is one, a suggestion.

    >>> parse("SELECT a FROM S WHERE A AS a; B").items[0].variable
    'a'
    """
    from stretto.languages.ceql.lowering import lower

    with mistakes_of(text):
        shape = shape_of(text)
        query = _KNOWN.find(shape, text)
        if query is None:
            draft: Draft = CEQL.read(text)
            query = lower(text, draft.selection, draft.streams, draft.formula, draft.clauses)
            _KNOWN.add(shape, query)
        return query


#: Sets have thousands of queries that are much alike.
_KNOWN = Known()
