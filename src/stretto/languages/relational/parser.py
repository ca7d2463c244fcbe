"""The parser of conditions and values over rows (see :mod:`stretto.languages.reading`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from stretto.languages.parts import Mistake
from stretto.languages.reading import make_parser, mistakes_of, read
from stretto.query import predicate as p
from stretto.query.typing import typed, typed_operand

if TYPE_CHECKING:
    from lark import Lark, UnexpectedInput

__all__ = ["read_condition", "read_value"]

#: What each kind of text looks like.
_FORMS = {"condition": "cost < 10 AND src != dst", "value": "cost + 1"}


@lru_cache(maxsize=len(_FORMS))
def _parser(start: str) -> Lark:
    from stretto.languages.relational.transformer import RESERVED, RelationalTransformer

    return make_parser("stretto.languages.relational", RelationalTransformer(), RESERVED, start=start)


def read_condition(text: str, row: Mapping[str, pa.DataType]) -> p.Predicate:
    """A condition over the columns of a row, checked against their types.

    Raises
    ------
    QueryError
        With the place, what was expected there and, where there is one, a suggestion.

    Examples
    --------
    >>> import pyarrow as pa
    >>> print(read_condition("cost BETWEEN 3 AND 4.5", {"cost": pa.float64()}))
    cost BETWEEN 3.0 AND 4.5
    """
    with mistakes_of(text, "condition"):
        return typed(cast(p.Predicate, _read(text, "condition")), row, text)


def read_value(text: str, row: Mapping[str, pa.DataType]) -> p.Operand:
    """A value computed from the columns of a row, checked against their types.

    Raises
    ------
    QueryError
        As :func:`read_condition`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> print(read_value("cost + 1", {"cost": pa.int64()}))
    (cost + 1)
    """
    with mistakes_of(text, "value"):
        found = cast(p.Operand, _read(text, "value"))
        if not isinstance(found, p.Operand):
            raise Mistake("a value is needed here, not a condition", None)
        return typed_operand(found, row, text)


def _read(text: str, what: str) -> Any:
    return read(text, partial(_parser, what), partial(_explain, what), _FORMS[what], what)


def _explain(what: str, text: str, error: UnexpectedInput) -> Mistake:
    from stretto.languages.relational.diagnostics import explain

    return explain(text, error, what)
