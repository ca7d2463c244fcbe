"""Changes of patterns: what they look like, and the times from which they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.columns.measured import values_of
from stretto.errors import OptionError, hinted
from stretto.events import as_table
from stretto.languages.afa.builder import AFA, is_afa
from stretto.matching.compiled import Query
from stretto.query.afa import Afa
from stretto.times import check_clock, shown_time

FIELDS = ("id", "query", "since", "language")


@check_arguments
@dataclass(frozen=True)
class Change:
    """From an event time on a pattern is another query, or none.

    Parameters
    ----------
    id
        The pattern's name.
    query
        The query, or the :class:`stretto.AFA`, that it is from then on; ``None`` retires it.
    since
        The first event time at which the change holds: a value of the time column's type, or its text. ``None``: from the
        beginning of the stream.
    language
        The query's language, where the text does not tell; ``"afa"``: it is the text of an automaton (:func:`stretto.read_afa`).

    >>> import stretto
    >>> stretto.Change("login", "SELECT * FROM S WHERE FAIL+ ; LOGIN WITHIN 1 minute", since="2026-01-01T00:00:00Z").id
    'login'
    """

    id: str
    query: str | Query | AFA | Afa | None
    since: Any = None
    language: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise OptionError(f"a pattern's id is a text, not {self.id!r}")
        if self.query is not None and not (isinstance(self.query, str | Query) or is_afa(self.query)):
            raise OptionError(f"pattern '{self.id}': a query is a text or an AFA, not {self.query.__class__.__name__}")


def changes_of(given: Any) -> list[Change]:
    """Changes in any form: a :class:`Change` or dict, several of them, or a table with a row for each.

    Raises
    ------
    OptionError
        Something else, a name that is none of a change's, or an id that is missing.
    DataError
        What was given is no table of changes.
    """
    if isinstance(given, Change):
        return [given]
    if isinstance(given, Mapping) and not _is_columns(given):
        return [_from_mapping(given, "a change")]
    if isinstance(given, Mapping) or not isinstance(given, Iterable) or hasattr(given, "__arrow_c_stream__"):
        return list(_from_table(as_table(given)))
    if isinstance(given, str | bytes):
        raise OptionError("a change is a Change, a dict or a row of a table, not a text")
    found = []
    for number, one in enumerate(given):
        if isinstance(one, Change):
            found.append(one)
        elif isinstance(one, Mapping):
            found.append(_from_mapping(one, f"change {number}"))
        else:
            raise OptionError(f"change {number} is a {type(one).__name__}, neither a Change nor a dict")
    return found


def _is_columns(given: Mapping[Any, Any]) -> bool:
    return bool(given) and not any(
        value is None or (isinstance(value, str | Query) or is_afa(value)) for value in given.values()
    )


def _from_mapping(given: Mapping[Any, Any], what: str) -> Change:
    _check_names(given, what)
    return Change(given["id"], given["query"], given.get("since"), given.get("language"))


def _from_table(table: pa.Table) -> Iterator[Change]:
    _check_names(table.column_names, "the table of changes")
    missing = [None] * table.num_rows
    names, queries, languages = (
        table.column(name).to_pylist() if name in table.column_names else missing
        for name in ("id", "query", "language")
    )
    # A time stays an Arrow value: Python's times have no nanoseconds.
    times = table.column("since") if "since" in table.column_names else missing
    for row, (name, query, since, language) in enumerate(zip(names, queries, times, languages, strict=True)):
        if name is None:
            raise OptionError(f"the table of changes: id is NULL in row {row}")
        yield Change(name, query, since if since is not None and since.is_valid else None, language)


def _check_names(names: Iterable[Any], what: str) -> None:
    have = list(names)
    for name in have:
        if name not in FIELDS:
            raise OptionError(hinted(f"{what} has '{name}', which is none of {', '.join(FIELDS)}", name, FIELDS))
    for name in ("id", "query"):
        if name not in have:
            more = " (NULL retires a pattern)" if name == "query" else ""
            raise OptionError(f"{what} has no '{name}'{more}")


@dataclass(frozen=True)
class Instant:
    """A value of the time column, and the number that the engine has for it."""

    shown: pa.Scalar
    number: int | float

    def __str__(self) -> str:
        return str(shown_time(self.shown))

    @classmethod
    def numbered(cls, number: int | float, kind: pa.DataType) -> Instant:
        """The value of a time column for which the engine has ``number`` (:func:`values_of`, turned round)."""
        if pa.types.is_decimal(kind):
            shown = pa.scalar(Decimal(number).scaleb(-kind.scale), kind)
        elif pa.types.is_date32(kind):
            shown = pa.scalar(int(number) // 86_400, pa.int32()).cast(kind)
        else:
            shown = pa.scalar(number).cast(kind)
        return cls(shown, number)


def instant_of(value: Any, name: str, kind: pa.DataType, what: str) -> Instant:
    """A time that a caller gives, as the time column ``name`` has it.

    Parameters
    ----------
    value
        A value of the column's type, its text, or an Arrow scalar.
    name, kind
        The time column.
    what
        What is given, for messages.

    Raises
    ------
    OptionError
        It is no value of the column, or has a time zone where the column has none, or the reverse.
    """
    try:
        shown = _scalar(value, kind)
        number = values_of(pa.array([shown], kind), name, 0)[0].item()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        given = str(value) if isinstance(value, pa.Scalar) else repr(value)
        raise OptionError(f"{what} is {given}, which is no value of '{name}' ({kind}): {error}") from error
    return Instant(shown, number)


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """A value in a type, without loss. Arrow drops fractions, zones and times of day where it is told the type."""
    given = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    if not given.is_valid:
        raise ValueError("it is missing")
    check_clock(given, kind)
    if pa.types.is_string(given.type) or pa.types.is_large_string(given.type):
        return given.cast(kind)
    if _family(given.type) != _family(kind):
        raise ValueError(f"{_family(kind)} expected, not {_family(given.type)}")
    shown = given.cast(kind)
    if given == given and shown.cast(given.type) != given:  # NaN is refused by its name
        raise ValueError("it would have to be rounded")
    return shown


def _family(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "a number"
    if pa.types.is_timestamp(kind) and kind.tz:
        return "a time with a time zone"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "a time without a time zone"
    return str(kind)
