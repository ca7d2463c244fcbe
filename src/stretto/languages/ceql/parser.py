"""The CEQL parser (see :mod:`stretto.languages.reading`)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, cast

from stretto.languages.parts import Mistake
from stretto.languages.reading import make_parser, mistakes_of, read
from stretto.query.query import ParsedQuery

if TYPE_CHECKING:
    from lark import Lark, UnexpectedInput

    from stretto.languages.ceql.transformer import Draft

__all__ = ["parse"]


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from stretto.languages.ceql.transformer import RESERVED, CeqlTransformer

    return make_parser("stretto.languages.ceql", CeqlTransformer(), RESERVED)


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
        draft = cast("Draft", read(text, _parser, _explain, "SELECT * FROM stream WHERE formula"))
        return lower(text, draft.selection, draft.streams, draft.formula, draft.clauses)


def _explain(text: str, error: UnexpectedInput) -> Mistake:
    from stretto.languages.ceql.diagnostics import explain

    return explain(text, error)
