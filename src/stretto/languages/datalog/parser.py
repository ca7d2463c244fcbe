"""The Datalog parser (see :mod:`stretto.languages.reading`)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from stretto.languages.parts import Mistake
from stretto.languages.reading import make_parser, mistakes_of, read

if TYPE_CHECKING:
    from lark import Lark, UnexpectedInput

    from stretto.languages.datalog.tree import Program

__all__ = ["read_program"]

_FORM = "reachable(X, Y) :- link(X, Y). reachable(X, Z) :- link(X, Y), reachable(Y, Z)."


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from stretto.languages.datalog.transformer import DatalogTransformer

    return make_parser("stretto.languages.datalog", DatalogTransformer(), {}, start="program", shared=False)


def read_program(text: str) -> Program:
    """Read a Datalog program; what its names mean is not looked at.

    Raises
    ------
    QueryError
        With the place, what was expected there and, where there is one, a suggestion.

    Examples
    --------
    >>> print(read_program("shortest(X, Y, min<C>) :- path(X, Y, C), not closed(X, _), C < 10 % 7."))
    shortest(X, Y, min<C>) :- path(X, Y, C), not closed(X, _), C < 10 % 7.
    """
    with mistakes_of(text, "program"):
        found = cast("Program", read(text, _parser, _explain, _FORM, "program"))
        if not found.rules:
            raise Mistake("the program is empty", None, _FORM)
        return replace(found, text=text)


def _explain(text: str, error: UnexpectedInput) -> Mistake:
    from stretto.languages.datalog.diagnostics import explain

    return explain(text, error)
