"""The CEQL parser: an LALR parser with a contextual lexer, whose callbacks build the values directly.

It needs no recursion, so that neither a long formula nor a deeply nested one can exhaust the stack; how deep
the values may be nested is bounded in :mod:`~stretto.languages.ceql.parts`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from stretto.errors import QueryError
from stretto.languages.ceql.parts import Mistake
from stretto.pattern.query import ParsedQuery

if TYPE_CHECKING:
    from lark import Lark

    from stretto.languages.ceql.transformer import Draft

__all__ = ["LONGEST", "parse"]

LONGEST = 1_000_000
"""Characters that a query may have."""


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    from stretto.languages.ceql.transformer import RESERVED, CeqlTransformer, reserve

    grammar = files("stretto.languages.ceql").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        start="query",
        parser="lalr",
        lexer="contextual",
        transformer=CeqlTransformer(),
        lexer_callbacks=dict.fromkeys(RESERVED, reserve),
        maybe_placeholders=False,
    )


def parse(text: str) -> ParsedQuery:
    """Read a CEQL query.

    Raises
    ------
    QueryError
        With the place, what was expected there and, where there is one, a suggestion.

    >>> parse("SELECT a FROM S WHERE A AS a; B").items[0].variable
    'a'
    """
    if len(text) > LONGEST:
        raise QueryError(f"the query has {len(text):,} characters; at most {LONGEST:,} are allowed")
    from stretto.languages.ceql.lowering import lower

    try:
        draft = _read(text)
        return lower(text, draft.selection, draft.streams, draft.formula, draft.clauses)
    except Mistake as mistake:
        raise QueryError(mistake.message, text=text, span=mistake.span, hint=mistake.hint) from None


def _read(text: str) -> Draft:
    """The clauses of a query, with the formula's scopes checked but not yet those of SELECT and FROM."""
    from lark import UnexpectedInput

    from stretto.languages.ceql.diagnostics import explain

    if not text.strip("\ufeff \t\r\n"):
        raise Mistake("the query is empty", None, "SELECT * FROM stream WHERE formula")
    try:
        return cast("Draft", _parser().parse(text))
    except UnexpectedInput as error:
        raise explain(text, error) from None
