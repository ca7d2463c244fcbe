"""``stretto.spark.sql``: Spark SQL with ``MATCH_RECOGNIZE`` over the tables and views of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.errors import DataError, QueryError
from stretto.languages.sql import Clause, Rewritten, Statement, read_statement
from stretto.matching.reorder.spans import check_late
from stretto.matching.sql.compiled import SqlQuery
from stretto.matching.sql.row_pattern_table import recognize
from stretto.matching.sql.run import bound_to
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import BoundRows, RowsPerMatch
from stretto.spark.batch.rows import explained, recognized
from stretto.spark.frames import arrow_fields, check_dataframe, column, with_fields
from stretto.spark.kernels import ship
from stretto.spark.sessions import require_pyspark
from stretto.spark.streaming.rows import explained as explained_stream
from stretto.spark.streaming.rows import recognized as recognized_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@check_arguments
def sql(session: SparkSession, text: str, /, *, late: str = "drop") -> DataFrame:
    """Run a statement of Spark SQL in which tables may be followed by ``MATCH_RECOGNIZE ( … )``.

    Spark runs the SQL around the clauses, and what they read. Each clause is a part of the plan: one shuffle by its ``PARTITION BY``,
    a sort, and a pass in Python workers, to which only the columns travel that are read. A clause without ``PARTITION BY`` runs in
    one task.

    Parameters
    ----------
    session
        The session, classic or Spark Connect, whose tables and views the statement reads.
    text
        One statement. Clauses may stand in subqueries, WITH queries, joins and unions, and behind each other's results. A clause may
        read a streaming table with a watermark on the column with which its ORDER BY begins (``docs/streaming.md``).
    late
        What becomes of rows of a streaming table that are before the watermark: ``"drop"``, which counts them, or ``"error"``.

    Returns
    -------
    pyspark.sql.DataFrame
        The rows of the statement, as of :func:`stretto.sql`; Spark computes them when they are used. Over a streaming table it is a
        streaming DataFrame (append mode), to which each match comes when it is final.

    Raises
    ------
    QueryError
        The statement is wrong, with the place in it, in a clause or around it.
    DataError
        A clause reads or shows a column of a type that Arrow does not have.
    OptionError
        A clause reads a streaming table without a watermark, or in another order; or PySpark is not installed.

    Examples
    --------
    >>> from stretto import spark
    >>> session = spark.session()
    >>> session.createDataFrame([(1, 10), (2, 8), (3, 9)], "t int, price int").createOrReplaceTempView("ticks")
    >>> clause = "ORDER BY t MEASURES a.price AS top, d.price AS low PATTERN (a d) DEFINE d AS price < PREV(price)"
    >>> spark.sql(session, f"SELECT top, low FROM ticks MATCH_RECOGNIZE ({clause})").collect()
    [Row(top=10, low=8)]
    """
    require_pyspark()
    check_late(late, ("drop", "error"))
    statement = read_statement(text, spark=True)
    frames, _ = _clauses(session, statement, late)
    if frames:
        ship(session)
    return _run(session, statement, statement.rest(_names(frames)), frames)


@check_arguments
def compile_sql(session: SparkSession, text: str, /) -> SqlQuery:
    """Read a statement, check it against the tables and views of a session, and run nothing.

    Returns
    -------
    stretto.SqlQuery
        The statement as a value: ``explain()`` says what its clauses mean and how Spark runs them, ``draw()`` shows their automata.

    Raises
    ------
    QueryError, DataError, OptionError
        As of :func:`sql`.

    Examples
    --------
    >>> from stretto import spark
    >>> session = spark.session()
    >>> session.createDataFrame([(1, 10), (2, 8)], "t int, price int").createOrReplaceTempView("ticks")
    >>> statement = "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY t MEASURES d.t AS t PATTERN (a d) DEFINE d AS price < PREV(price))"
    >>> print(spark.compile_sql(session, statement).explain().splitlines()[-1])
    around     Spark runs: SELECT * FROM matched_1
    """
    require_pyspark()
    statement = read_statement(text, spark=True)
    frames, bound = _clauses(session, statement)
    _run(session, statement, statement.rest(_names(frames)), frames)
    streamed = {id(bound[clause]) for clause in frames if frames[clause].isStreaming}
    return SqlQuery(
        statement, bound, "Spark", lambda one: explained_stream(one) if id(one) in streamed else explained(one)
    )


def _clauses(
    session: SparkSession, statement: Statement, late: str = "drop"
) -> tuple[dict[Clause, DataFrame], dict[Clause, BoundRows]]:
    """The rows of the clauses of a statement, which Spark has not computed yet, and how they are bound."""
    frames: dict[Clause, DataFrame] = {}
    bound: dict[Clause, BoundRows] = {}
    for clause in statement.clauses:
        operand = _run(session, statement, statement.operand(clause, _names(frames)), frames)
        frames[clause], bound[clause] = _clause(statement, clause, operand, late)
    return frames, bound


def _clause(statement: Statement, clause: Clause, operand: DataFrame, late: str) -> tuple[DataFrame, BoundRows]:
    """The rows of a clause over those of its operand."""
    check_dataframe(operand, "the table before MATCH_RECOGNIZE")
    fields = arrow_fields(operand)
    known = pa.schema([(name, kind) for name, kind in fields.items() if kind is not None])
    with statement.placing(clause):
        bound = bound_to(clause.parsed, known)
        one_row = bound.parsed.rows is RowsPerMatch.ONE
        names = list(bound.read) if one_row else bound.schema.names
        if names == known.names and (lost := [name for name in fields if fields[name] is None]):
            raise DataError(f"ALL ROWS PER MATCH shows all columns, and Arrow has no type for {', '.join(lost)}")
        bound = bind(clause.parsed, pa.schema([bound.columns.field(name) for name in names]))
        recognize(bound, bound.schema.empty_table())  # what cannot run is said now, and not by a worker
    rows = with_fields(operand, bound.read)
    if operand.isStreaming:
        return recognized_stream(rows, bound, late=late), bound
    return recognized(rows.select(*map(column, dict.fromkeys((*names, *bound.read)))), bound), bound


def _names(frames: Mapping[Clause, DataFrame]) -> dict[Clause, str]:
    return {clause: f"matched_{number}" for number, clause in enumerate(frames)}


def _run(
    session: SparkSession, statement: Statement, asked: Rewritten, frames: Mapping[Clause, DataFrame]
) -> DataFrame:
    """A query in which DataFrames stand for the results of clauses; Spark makes views of them while it reads the text."""
    names = _names(frames)
    read = {part.span for part in asked.parts if not part.verbatim}
    given = {names[clause]: frame for clause, frame in frames.items() if clause.whole in read}
    with _told(statement):
        if not given:
            return session.sql(str(asked))
        parts = [
            f"{{{part.text}}}"
            if part.text in given and not part.verbatim
            else part.text.replace("{", "{{").replace("}", "}}")
            for part in asked.parts
        ]
        found = session.sql("".join(parts), **given)
        _ = found.schema  # Spark Connect looks at the text not before
        return found


#: What PySpark calls the view of a DataFrame; in Spark's messages, the place in the text that it was given, and what stands there.
_VIEW = re.compile(r"`?_pyspark_[0-9a-f]{32}`?")
_PLACE = re.compile(r" ?[(;] ?line \d+,? pos \d+.*")
_NEAR = re.compile(r" near '([^']+)'")


@contextmanager
def _told(statement: Statement) -> Iterator[None]:
    """Spark's mistakes in a text as ours, in the user's words and at the place in the user's text."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:  # of the parser, too
        message = _VIEW.sub("MATCH_RECOGNIZE", _PLACE.sub("", str(error).strip().partition("\n")[0]))
        parts = [one.fragment() for one in error.getQueryContext() or ()] + [one[1] for one in _NEAR.finditer(message)]
        span = next(filter(None, map(statement.place, filter(None, parts))), None)
        raise QueryError(message, text=statement.text, span=span) from error
