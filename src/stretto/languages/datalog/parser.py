"""The Datalog parser (see :mod:`stretto.languages.expressions.reading`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stretto.languages.expressions.reading import Language, mistakes_of
from stretto.languages.expressions.tokens import Mistake

if TYPE_CHECKING:
    from stretto.languages.datalog.tree import Program

_DATALOG = Language(
    "stretto.languages.datalog",
    {"program": "reachable(X, Y) :- link(X, Y). reachable(X, Z) :- link(X, Y), reachable(Y, Z)."},
    shared=("values.lark",),
)


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
        found: Program = _DATALOG.read(text, "program")
        if not found.rules:
            raise Mistake("the program is empty", None, _DATALOG.forms["program"])
        return replace(found, text=text)
