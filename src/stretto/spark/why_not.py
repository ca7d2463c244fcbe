"""``stretto.spark.why_not``: why a query has no match in some of the events of a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.asking.answer import Answer
from stretto.asking.call import keys_of
from stretto.asking.call import why_not as ask
from stretto.errors import LimitError, OptionError
from stretto.events import require
from stretto.languages.sql import has_clause
from stretto.matching.compiled import Query, compile_query
from stretto.spark.compat import to_arrow
from stretto.spark.frames import check_dataframe, column
from stretto.spark.session import require_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def why_not(  # noqa: PLR0913 - the options that users have
    df: DataFrame,
    query: str | Query,
    *,
    time: str,
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
        A query in CEQL, SASE+ or EQL.
    time
        The column that orders the events.
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
        As of :func:`stretto.why_not`; or the DataFrame is a stream.
    """
    require_pyspark()
    from pyspark.sql import functions as F

    if most < 1:
        raise OptionError(f"most={most}: one near miss at least")
    if not isinstance(query, str | Query) or (isinstance(query, str) and has_clause(query)):
        raise OptionError(
            "over a DataFrame why_not answers for CEQL, SASE+ and EQL: give stretto.why_not the rows of a key and a time, as a table"
        )
    check_dataframe(df, "df")
    if df.isStreaming:
        raise OptionError("a stream does not keep its past: ask of the table that it is written to, or read from")
    if rows < 1:
        raise OptionError(f"rows={rows}: one row at least")
    compiled = compile_query(query, language=language)
    require(df.columns, time, "time")
    for name, value in keys_of(compiled, key, df.columns).items():
        df = df.filter(column(name).eqNullSafe(F.lit(value)))
    if between is not None:
        first, last = between
        df = df if first is None else df.filter(column(time) >= F.lit(first))
        df = df if last is None else df.filter(column(time) <= F.lit(last))
    table = to_arrow(df.limit(rows + 1))
    if table.num_rows > rows:
        raise LimitError(
            f"more than {rows:,} rows are selected\nhint: key= and between= select fewer; rows= allows more"
        )
    by = [(name, "ascending") for name in dict.fromkeys([time, sequence or time])]
    return ask(
        compiled,
        table.sort_by(by),
        most=most,
        type=type,
        time=time,
        sequence=sequence,
        stream=stream,
        time_unit=time_unit,
    )
