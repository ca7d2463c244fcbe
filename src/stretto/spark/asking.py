"""``stretto.spark.why_not``: why a query has no match in some of the events of a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.asking.call import clause_of, keys_of, refuse_said, time_of_clause
from stretto.asking.call import why_not as ask
from stretto.errors import LimitError, OptionError
from stretto.events import require
from stretto.explaining.answer import Answer
from stretto.languages.afa.builder import AFA, is_afa
from stretto.languages.clauses import has_clause
from stretto.matching.compiled import Query, compile_query
from stretto.matching.inspection.state_tables import as_in, named_keys
from stretto.matching.sql.compiled import SqlQuery
from stretto.query.afa import Afa
from stretto.query.passes.bind_rows import bind
from stretto.spark.compat import to_arrow
from stretto.spark.frames import arrow_fields, check_dataframe, column, with_role_fields
from stretto.spark.sessions import require_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@check_arguments
def why_not(  # noqa: PLR0913 - the options that users have
    df: DataFrame,
    query: str | Query | SqlQuery | AFA | Afa,
    *,
    time: str | None = None,
    key: Any = None,
    between: tuple[Any, Any] | None = None,
    most: int = 3,
    rows: int = 1_000_000,
    type: str | None = "type",
    sequence: str | None = None,
    stream: str | None = None,
    time_unit: str | None = None,
    language: str | None = None,
) -> Answer:
    """Say why a query has no match among the events of a key and a time: :func:`stretto.why_not` over what Spark selects.

    Spark selects the rows of ``key`` and ``between``, which come into this process. What it answers counts them from 0, in the order
    of ``time``.

    Parameters
    ----------
    df
        A DataFrame that is no stream.
    query
        A query in CEQL, SASE+ or EQL; SQL that is one ``MATCH_RECOGNIZE`` clause over one table, whose rows are those of ``df``; or
        a :class:`stretto.AFA`.
    time
        The column that orders the events; a clause says it by itself, in ``ORDER BY``.
    key
        The value of the query's partition attribute, or a dict of columns and their values.
    between
        The first and the last time, as values that Spark compares with the column; ``None`` for one of them leaves that side open.
    most, type, sequence, stream, time_unit, language
        As :func:`stretto.why_not` has them.
    rows
        How many rows may come into this process.

    Returns
    -------
    Answer
        As of :func:`stretto.why_not`.

    Raises
    ------
    LimitError
        More rows than ``rows`` are selected.
    OptionError
        As of :func:`stretto.why_not`; the DataFrame is a stream; or there is no ``time``.

    Examples
    --------
    >>> from stretto import spark
    >>> events = spark.session().createDataFrame([("A", 1), ("B", 90)], "type string, t int")
    >>> print(spark.why_not(events, "SELECT * FROM S WHERE A ; B WITHIN 60 [t]", time="t"))
    No match in 2 events. The nearest miss:
    1. WITHIN 60 [t]: it lasts 89 of 't' (rows 0 to 1), 29 of 't' too long
       A: row 0; B: row 1 (1 to 90)
    """
    require_pyspark()
    from pyspark.sql import functions as F

    if most < 1:
        raise OptionError(f"most={most}: one near miss at least")
    check_dataframe(df, "df")
    if df.isStreaming:
        raise OptionError("a stream does not keep its past: ask of the table that it is written to, or read from")
    if rows < 1:
        raise OptionError(f"rows={rows}: one row at least")
    df = with_role_fields(df, (type, time, sequence, stream))
    asked = _asked(df, query, key, between, time, sequence, language)
    roles: dict[str, Any] = {
        "type": type,
        "time": time,
        "sequence": sequence,
        "stream": stream,
        "time_unit": time_unit,
    }
    if asked.clause or asked.automaton:
        what = "MATCH_RECOGNIZE" if asked.clause else "an automaton"
        refuse_said(what, {name: roles.pop(name) for name in ("stream", "time_unit")} | {"language": language})
    if asked.clause:
        refuse_said("MATCH_RECOGNIZE", {name: roles.pop(name) for name in ("time", "sequence")})
    kinds = arrow_fields(df)
    for name, value in asked.keys.items():
        df = df.filter(column(name).eqNullSafe(F.lit(_value(value, kinds.get(name), f"key={{{name!r}: …}}"))))
    if between is not None:
        first, last = between
        assert asked.order
        bounded = column(asked.order[0][0])
        df = df if first is None else df.filter(bounded >= F.lit(first))
        df = df if last is None else df.filter(bounded <= F.lit(last))
    table = to_arrow(df.limit(rows + 1))
    if table.num_rows > rows:
        raise LimitError(
            f"more than {rows:,} rows are selected\nhint: key= and between= select fewer; rows= allows more"
        )
    return ask(asked.query, table.sort_by(asked.order) if asked.order else table, most=most, **roles)


class _Asked(NamedTuple):
    """What is asked, the columns by which rows are selected and their values, and those that order them."""

    query: Any
    keys: dict[str, Any]
    order: list[tuple[str, str]]
    clause: bool = False
    automaton: bool = False


def _asked(
    df: DataFrame,
    query: str | Query | SqlQuery | AFA | Afa,
    key: Any,
    between: tuple[Any, Any] | None,
    time: str | None,
    sequence: str | None,
    language: str | None,
) -> _Asked:
    """What is asked of the rows of a DataFrame; the arguments are those of :func:`why_not`."""
    if isinstance(query, SqlQuery) or (isinstance(query, str) and has_clause(query)):
        known = {name: kind for name, kind in arrow_fields(df).items() if kind is not None}
        parsed = bind(clause_of(query), pa.schema(list(known.items()))).parsed
        time_of_clause(parsed, between)
        order = [(one.column, "descending" if one.descending else "ascending") for one in parsed.order_by]
        return _Asked(query, named_keys(parsed.partition_by, key, df.columns), order, clause=True)
    if time is None:
        raise OptionError("rows of a DataFrame have no order: name the column that orders the events, time='…'")
    for name, role in ((time, "time"), (sequence, "sequence")):
        if name is not None:
            require(df.columns, name, role)
    order = [(name, "ascending") for name in dict.fromkeys([time, sequence or time])]
    if is_afa(query):
        return _Asked(query, named_keys(query.frozen.partition_by, key, df.columns), order, automaton=True)
    compiled = compile_query(query, language=language)
    return _Asked(compiled, keys_of(compiled, key, df.columns), order)


def _value(given: Any, kind: pa.DataType | None, where: str) -> Any:
    """A value that Spark compares with a column; an :class:`OptionError` for one that is none of it."""
    if given is None or kind is None or pa.types.is_decimal(kind):
        return given
    found = as_in(given, kind, where)
    return given if pa.types.is_temporal(kind) else found.as_py()
