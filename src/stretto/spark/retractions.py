"""What a signed stream of matches comes to: the matches that hold, and an id that a match and what takes it back share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.arguments import check_arguments
from stretto.errors import OptionError
from stretto.events import require
from stretto.spark.frames import column, repeated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ID = "match_id"

#: How often a match holds, less how often it did.
CHANGE = "change"

_SIGN = "sign"


@check_arguments
def with_match_id(matches: DataFrame) -> DataFrame:
    """Matches with a column ``match_id`` in front, which a match has in common with the row that takes it back.

    It is a SHA-256 of all that the match shows but its sign, the same in every run, batch or streaming. Matches that show the same
    have the same id: let them show a column that tells events apart.

    Raises
    ------
    OptionError
        There is a column ``match_id`` already.

    Examples
    --------
    >>> from stretto import spark
    >>> matches = spark.session().createDataFrame([(1, 1, 5), (-1, 1, 5), (1, 2, 6)], "sign int, start_time int, end_time int")
    >>> ids = [row.match_id for row in spark.with_match_id(matches).collect()]
    >>> len(ids[0]), ids[0] == ids[1], ids[0] == ids[2]
    (64, True, False)
    """
    from pyspark.sql import functions as F

    if ID in matches.columns:
        raise OptionError(f"the matches have a column '{ID}' already: rename it")
    shown = [column(name) for name in matches.columns if name != _SIGN]
    times = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS", "ignoreNullFields": "false"}
    identity = F.sha2(F.to_json(F.struct(*shown), times | {"timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}), 256)
    return matches.select(identity.alias(ID), *map(column, matches.columns))


def changes(matches: DataFrame) -> DataFrame:
    """What signed matches change: ``match_id``, ``change``, and what the match shows; without those that come to nothing."""
    from pyspark.sql import functions as F

    require(matches.columns, _SIGN, "sign")
    named = matches if ID in matches.columns else with_match_id(matches)
    shown = [name for name in named.columns if name not in (_SIGN, ID)]
    total = F.sum(column(_SIGN).cast("bigint")).alias(CHANGE)
    # Any of the rows will do: they show the same.
    summed = named.groupBy(ID).agg(total, *(F.any_value(column(name)).alias(f"_{at}") for at, name in enumerate(shown)))
    kept = summed.filter(column(CHANGE) != 0)
    return kept.select(ID, CHANGE, *(F.col(f"_{at}").alias(name) for at, name in enumerate(shown)))


@check_arguments
def current(matches: DataFrame) -> DataFrame:
    """The matches that hold: those of a signed DataFrame that are given and not taken back.

    Parameters
    ----------
    matches
        A batch with a column ``sign``, such as what a stream with ``speculation=`` has written. For a table that is kept while the
        stream runs, see :mod:`stretto.connectors.current`.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns but for the sign, with ``match_id`` in front.

    Raises
    ------
    DataError
        There is no column ``sign``. When Spark runs, a match is taken back that was not given.
    OptionError
        The DataFrame is a stream.

    Examples
    --------
    >>> from stretto import spark
    >>> matches = spark.session().createDataFrame([(1, 1, 5), (-1, 1, 5), (1, 2, 6)], "sign int, start_time int, end_time int")
    >>> spark.current(matches).drop("match_id").collect()
    [Row(start_time=2, end_time=6)]
    """
    from pyspark.sql import functions as F

    if matches.isStreaming:
        raise OptionError(
            "what holds of a stream changes with it: keep a table, writeStream.foreachBatch(connectors.current.writer(…))"
        )
    return repeated(changes(matches), CHANGE, F.concat(F.lit("a match is taken back that does not hold: "), column(ID)))
