"""The parser of conditions and values over rows (see :mod:`stretto.languages.expressions.reading`)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from stretto.languages.expressions.reading import Language, mistakes_of
from stretto.languages.expressions.tokens import Mistake
from stretto.query import predicate as p
from stretto.query.typing import typed, typed_operand

_ROWS = Language("stretto.languages.relational", {"condition": "cost < 10 AND src != dst", "value": "cost + 1"})


def read_condition(text: str, row: Mapping[str, pa.DataType]) -> p.Predicate:
    """Read a condition over the columns of a row, and check it against their types.

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
        return typed(_ROWS.read(text, "condition"), row)


def read_value(text: str, row: Mapping[str, pa.DataType]) -> p.Operand:
    """Read a value computed from the columns of a row, and check it against their types.

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
        found = _ROWS.read(text, "value")
        if not isinstance(found, p.Operand):
            raise Mistake("a value is needed here, not a condition", None)
        return typed_operand(found, row)
