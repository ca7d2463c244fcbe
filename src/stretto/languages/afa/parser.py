"""The parser of fences, transfers and windows (see :mod:`stretto.languages.expressions.reading`)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stretto.errors import QueryError
from stretto.languages.afa import scope as c
from stretto.languages.expressions.reading import Language, mistakes_of
from stretto.languages.expressions.tokens import Mistake
from stretto.query import predicate as p
from stretto.query.typing import kind_of

if TYPE_CHECKING:
    from stretto.query.windows import Window

AFA = Language(
    "stretto.languages.afa",
    {
        "fence": "e.price > 3 AND r.count < 10",
        "value": "r.count + 1",
        "transfer": "count = r.count + 1, last = e.price",
        "window": "10 seconds",
    },
)


def read_fence(text: str, scope: c.Scope, *, epsilon: bool = False) -> p.Predicate:
    """Read a condition over ``e.`` and ``r.`` names, and check it against their types.

    Parameters
    ----------
    text
        As the user wrote it.
    scope
        What it may read.
    epsilon
        Whether it belongs to an ε-arc, which reads no event.

    Raises
    ------
    QueryError
        With the place, what was expected there and, where there is one, a suggestion.

    Examples
    --------
    >>> import pyarrow as pa
    >>> scope = c.Scope({"price": pa.float64()}, {})
    >>> print(read_fence("e.price BETWEEN 3 AND 4.5", scope))
    e.price BETWEEN 3.0 AND 4.5
    """
    with mistakes_of(text, "fence"):
        return c.fence(AFA.read(text, "fence"), scope, epsilon=epsilon)


def read_transfer(given: str | Mapping[str, Any], scope: c.Scope, *, epsilon: bool = False) -> tuple[p.Operand, ...]:
    """The register's new fields, in order; those that are not assigned keep their value.

    Parameters
    ----------
    given
        Assignments or a row as one text; or fields with their expressions, or with plain values.
    scope, epsilon
        As for :func:`read_fence`.

    Raises
    ------
    QueryError
        With the place: also where a value does not fit its field.

    Examples
    --------
    >>> import pyarrow as pa
    >>> scope = c.Scope({"price": pa.float64()}, {"n": pa.int64(), "low": pa.float64()})
    >>> print(*read_transfer({"low": "e.price"}, scope))
    r.n e.price
    >>> print(*read_transfer("(r.n + 1, 0.5)", scope))
    (r.n + 1) 0.5
    """
    if isinstance(given, str):
        with mistakes_of(given, "transfer"):
            return c.transfer(AFA.read(given, "transfer"), scope, epsilon=epsilon)
    values: dict[str, p.Operand] = {}
    for field, value in given.items():
        kind = c.kind_of_field(field, scope)
        if isinstance(value, str):
            try:
                with mistakes_of(value, "value"):
                    values[field] = c.fitting(AFA.read(value, "value"), field, kind, scope, epsilon=epsilon)
            except QueryError as error:
                raise _as_string(error, value, field, kind) from None
        else:
            values[field] = c.fitting(c.constant(value, field), field, kind, scope, epsilon=epsilon)
    return c.row(values, scope)


def _as_string(error: QueryError, value: str, field: str, kind: Any) -> QueryError:
    """The error, with another hint where the value of a field may be meant as a string as it stands."""
    if kind_of(kind) != "string" or re.search(r"'|\b[er]\.", value) or (error.hint or "").startswith("did you mean"):
        return error
    hint = f"{value!r} is read as an expression; for the string itself write {field!r}: \"'{value}'\""
    return QueryError(error.message, text=error.text, span=error.span, hint=hint)


def read_window(text: str) -> int | dt.timedelta:
    """Read a window: a duration with its unit, or a number of the time attribute's own unit.

    Raises
    ------
    QueryError
        It is no time, or finer than a microsecond.

    Examples
    --------
    >>> read_window("1 minute 30 seconds"), read_window("500")
    (datetime.timedelta(seconds=90), 500)
    """
    with mistakes_of(text, "window"):
        window: Window = AFA.read(text, "window")
        if window.events is not None:
            raise Mistake("an AFA's window is a time, not a number of events", window.span, "write 10 seconds, or 10")
        if window.seconds is None:
            if not isinstance(window.number, int):
                raise Mistake("a window in ticks of the time attribute is an integer", window.span)
            return window.number
        micros = window.seconds * 10**6
        if micros != int(micros):
            raise Mistake("a window is not finer than a microsecond", window.span, "give it in ticks, as an integer")
        try:
            return dt.timedelta(microseconds=int(micros))
        except OverflowError:
            raise Mistake("the window is too long", window.span, "leave it out") from None
