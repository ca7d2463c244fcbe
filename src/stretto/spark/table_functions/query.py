"""Queries in Spark SQL: table functions over ``TABLE(…)``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stretto.arguments import check_arguments
from stretto.errors import OptionError, suggestion
from stretto.matching.compiled import Query, compile_query
from stretto.spark.compat import needs
from stretto.spark.kernels import ship
from stretto.spark.sessions import require_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@check_arguments
def register(
    spark: SparkSession,
    name: str | None = None,
    query: str | Query | None = None,
    *,
    like: DataFrame | StructType | None = None,
    **options: Any,
) -> None:
    """Make queries callable in Spark SQL, in this Spark session.

    ``register(spark)`` makes two functions, which take the query's text::

        SELECT * FROM stretto_query(TABLE(events), 'SELECT … PARTITION BY [name]', time => 'ts')
        SELECT * FROM stretto_match(TABLE(events) PARTITION BY name ORDER BY (ts), 'SELECT …', time => 'ts')

    ``stretto_query`` partitions and orders the rows as the query says. ``stretto_match`` takes them as SQL arranges
    them: each SQL partition is a stream of its own. ``register(spark, name, query)`` makes a function of one query::

        SELECT * FROM name(TABLE(events))

    The result has the columns of :func:`stretto.spark.match`. Named arguments in SQL are ``type``, ``time``, ``sequence``,
    ``stream``, ``time_unit``, ``output``, ``valuations`` and ``language``, with the meaning they have there; ``type =>
    NULL`` is ``type=None``. Where no ``time`` is named it is the table's only timestamp. Queries may call the functions that
    are registered by then (:func:`stretto.function`), if the workers can import them.

    Parameters
    ----------
    spark
        The session, classic or Spark Connect.
    name
        Of the function, with a ``query``.
    query
        A query's text, or a compiled :class:`stretto.Query`.
    like
        A DataFrame with the columns of the tables that the function will get, or its schema. The function is fitted to
        them: mistakes show now, no Python runs when SQL is planned, and rows are taken as SQL arranges them, as by
        ``stretto_match``: ``name(TABLE(events) PARTITION BY name ORDER BY (ts))``.
    options
        Defaults for the named arguments; with ``like``, all that there will be.

    Raises
    ------
    QueryError
        The query is wrong. What does not fit a table is found when SQL is planned: the text of Spark's
        ``AnalysisException`` then holds the error.
    DataError
        A column that an option names is not there; likewise.
    OptionError
        An option that is not known, a name that SQL cannot have, or no name for a query.

    Examples
    --------
    >>> from stretto import spark
    >>> session = spark.session()
    >>> events = session.createDataFrame([("A", 1), ("B", 2)], "type string, t int")
    >>> events.createOrReplaceTempView("events")
    >>> spark.register(session, "pairs", "SELECT * FROM S WHERE A ; B", like=events, time="t")
    >>> session.sql("SELECT start_time, end_time FROM pairs(TABLE(events) WITH SINGLE PARTITION ORDER BY (t))").collect()
    [Row(start_time=1, end_time=2)]
    """
    require_pyspark()
    needs("a query as a table function of SQL", 4, 1)
    ship(spark)
    from stretto.spark.table_functions import table_function

    for key, value in options.items():
        if key not in table_function.OPTIONS:
            hint = suggestion(key, table_function.OPTIONS, kind="option")
            raise OptionError(f"register() has no option '{key}'; {hint}")
        kind = table_function.OPTIONS[key][1]
        if value is not None and not isinstance(value, kind):
            raise OptionError(f"{key}={value!r}: expected {'True or False' if kind is bool else 'a string'}")
    if query is None:
        if name is not None or like is not None:
            raise OptionError(f"register(spark, {name!r}) needs the query of that function")
        for generic, arranged in (("stretto_match", False), ("stretto_query", True)):
            _register(spark, generic, table_function.handler(generic, arranged=arranged, query=None, options=options))
        return
    if name is None or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise OptionError(f"name={name!r}: give the function a name of letters, digits and underscores")
    compiled = compile_query(query, language=options.get("language"))
    if compiled.schema is not None:
        own = compiled.schema
        roles = {"type": own.type, "time": own.time, "stream": own.stream, "time_unit": own.time_unit}
        options = roles | options
    options["language"] = compiled.language
    if like is None:
        made = table_function.handler(name, arranged=True, query=compiled.text, options=options)
        _register(spark, name, made)
    else:
        columns = getattr(like, "schema", like)
        _register(spark, name, *table_function.fitted(name, compiled.text, columns, options))


def _register(spark: SparkSession, name: str, made: type, columns: StructType | None = None) -> None:
    from pyspark.util import PythonEvalType

    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect.functions import udtf
    else:
        from pyspark.sql.functions import udtf
    function = udtf(made, returnType=columns, useArrow=False)
    # Now to the form that takes Arrow batches; made as such, it would not be allowed to have ``analyze``.
    function.evalType = PythonEvalType.SQL_ARROW_UDTF
    spark.udtf.register(name, function)
