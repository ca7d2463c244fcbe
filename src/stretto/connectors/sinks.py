"""What the sinks share: writers for ``foreachBatch``, several of them as one, ids that name a match for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stretto.errors import OptionError
from stretto.spark.frames import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Writes a batch of rows; called again with the same batch and number, it leaves what one call leaves.
Writer = Callable[["DataFrame", int], None]

MATCH_ID = "match_id"


def together(*writers: Writer) -> Writer:
    """Several writers as one: each batch is computed once and written by all, in order.

    When one of them fails, so does the batch. Spark gives it again after a restart, and the writers that had written it
    already know.

    Raises
    ------
    OptionError
        There is no writer.

    Examples
    --------
    >>> from stretto import connectors, spark
    >>> seen = []
    >>> write = connectors.together(*[lambda df, batch_id: seen.append((batch_id, df.count()))] * 2)
    >>> write(spark.session().range(3), 7)
    >>> seen
    [(7, 3), (7, 3)]
    """
    if not writers:
        raise OptionError("together: give at least one writer")

    def write(df: DataFrame, batch_id: int) -> None:
        with kept(df) as rows:
            for writer in writers:
                writer(rows, batch_id)

    return write


@contextmanager
def kept(df: DataFrame) -> Iterator[DataFrame]:
    """The rows, computed once for all that is done with them here: a second time would run the whole query again."""
    if df.storageLevel.useMemory or df.storageLevel.useDisk:
        yield df
        return
    df.persist()
    try:
        yield df
    finally:
        df.unpersist()


def with_match_id(df: DataFrame, batch_id: int, app_id: str) -> DataFrame:
    """The rows with a column ``match_id`` in front, the same whenever the same batch is computed again.

    It is a SHA-256 of ``app_id``, the batch's number and the row; rows of a batch that are equal are numbered, so that
    they stay apart.

    Parameters
    ----------
    df
        The rows of a batch.
    batch_id
        The number that ``foreachBatch`` gives.
    app_id
        Names the query.

    Raises
    ------
    OptionError
        The rows have a column ``match_id`` already.

    Examples
    --------
    >>> from stretto import connectors, spark
    >>> matches = spark.session().createDataFrame([(1, 5), (1, 5)], "start_time int, end_time int")
    >>> rows = [connectors.with_match_id(matches, 7, "trades").collect() for _ in range(2)]
    >>> len({row.match_id for row in rows[0]}), {*rows[0]} == {*rows[1]}
    (2, True)
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if MATCH_ID in df.columns:
        raise OptionError(f"the matches have a column '{MATCH_ID}' already: rename it")
    content = F.to_json(F.struct(*map(column, df.columns)))
    digest = "__stretto_digest"
    numbered = df.withColumn(digest, F.sha2(F.concat_ws("\n", F.lit(app_id), F.lit(str(batch_id)), content), 256))
    number = F.row_number().over(Window.partitionBy(digest).orderBy(digest))
    identity = F.sha2(F.concat_ws("\n", column(digest), number.cast("string")), 256)
    return numbered.select(identity.alias(MATCH_ID), *map(column, df.columns))


def query_id(df: DataFrame) -> str | None:
    """The id of the streaming query whose batch this is: it lasts as long as the checkpoint.

    ``None``: it is no query's batch, or the session is Spark Connect's, where a batch does not tell.
    """
    session: Any = df.sparkSession
    if getattr(session, "_jvm", None) is None:
        return None
    found: str | None = session.sparkContext.getLocalProperty("sql.streaming.queryId")
    return found
