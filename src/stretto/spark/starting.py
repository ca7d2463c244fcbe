"""A continuous query is compared with its checkpoint when it starts, before Spark reads anything.

A streaming DataFrame does not know its checkpoint; ``DataStreamWriter.start`` does. Spark asks nobody there: a query runs its first
Python code in a micro-batch, and without new data there is none. So DataFrames of the class that :func:`stretto.spark.match` gives
back get a ``writeStream`` whose ``start`` and ``toTable`` compare, if the DataFrame's plan has a query of stretto in it, wherever it
came to be there. All other queries are started as ever.

Whose a checkpoint is, is written in a folder of its own in it (:data:`OWNER`) before its first micro-batch, through Spark, and so in
a session of any kind and on any file system. Of a checkpoint without one the state tells: the header of bucket 0, which Spark's
sources ``state-metadata`` and ``statestore`` read. What is started past Python (a declarative pipeline) is compared in its first
micro-batch, which fails before it is committed: every task hands bucket 0 a row, events or not.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, wraps
from itertools import count
from typing import TYPE_CHECKING, Any

from stretto.errors import OptionError, SnapshotError
from stretto.spark.compat import described, may_be_there, plan_bytes, watermarked_behind
from stretto.spark.options import METRICS
from stretto.spark.streaming import STATE
from stretto.spark.streaming.state import Owner, header_of, header_size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("stretto")

#: The folder in a checkpoint that says whose it is: for each operator a line of JSON, as the header of its states has it.
OWNER = "stretto"

#: How much of a state is read for its header at first.
_START = 1 << 16

_CHECKPOINT = "checkpointlocation"
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"

#: The owners of states by their digests.
_OWNERS: dict[str, Owner] = {}

#: By the names of queries in plans, how far Spark's watermark may have passed the end of a result when it comes, in milliseconds;
#: less than 0: it has not. ``None``: nobody knows.
_LAGS: dict[str, int | None] = {}
_NUMBERS = count()


def metrics_name(owner: Owner) -> str:
    """A name under which counts of a query are in Spark's progress, and which tells the query in a plan.

    It is another one at each call: Spark takes a name for one place in a plan, which may hold two equal queries.
    """
    return f"{METRICS}:{owner.digest}:{next(_NUMBERS)}"


def compared(found: DataFrame, owner: Owner, name: str, lag: int | None) -> DataFrame:
    """The DataFrame of a continuous query of a name in the plan, which from now on is compared with its checkpoint when it starts."""
    _OWNERS[owner.digest], _LAGS[name] = owner, lag
    _compare_at_start(type(found))
    return found


def _compare_at_start(frames: type) -> None:
    """Let the writers of a class of DataFrames compare; once."""
    home = next(one for one in frames.__mro__ if "writeStream" in vars(one))
    plain = vars(home)["writeStream"].fget
    if hasattr(plain, "__wrapped__"):
        return

    @wraps(plain)
    def write_stream(self: Any) -> Any:
        writer = plain(self)
        if owners := [_OWNERS[digest] for digest in dict.fromkeys(_named_in(self).values()) if digest in _OWNERS]:
            writer.__class__ = _comparing(writer.__class__)
            writer.stretto_start = (self, owners, {})
        return writer

    home.writeStream = property(write_stream)  # type: ignore[attr-defined]


def _named_in(df: Any) -> dict[str, str]:
    """The names that queries of stretto have in a DataFrame's plan, in its order, with the digests of their owners."""
    names = re.findall(rb"\b(%s:([0-9a-f]{16}):[0-9]+)" % METRICS.encode(), plan_bytes(df))
    return {name.decode(): digest.decode() for name, digest in names}


def lags_in(df: Any) -> list[int | None]:
    """Of each query of stretto in a DataFrame's plan, how late its results come (:data:`_LAGS`); none where there is no query."""
    return [_LAGS[name] for name in _named_in(df) if name in _LAGS]


_SECOND_WATERMARK = (
    "withWatermark stands behind a continuous query of stretto: nothing would ever come. Spark's watermark is the least of all in a "
    "plan, that of results begins with the first result, and results wait for it. Leave it out: where disorder= is given, matches "
    "that are known when they end have the watermark of the events on end_time, for windows and joins; another "
    "stretto.spark.match, dropDuplicates and inner joins need none. Write other results to a table or topic, and start a second "
    "query that reads it and has the watermark; or work on them in foreachBatch"
)


@cache
def _comparing(writers: type) -> type:
    """A class of writers that compare, and else are as they were."""

    class Comparing(writers):  # type: ignore[misc]
        def option(self, key: str, value: Any) -> Any:
            self.stretto_start[2][key.lower()] = value
            return super().option(key, value)

        def options(self, **options: Any) -> Any:
            self.stretto_start[2].update((key.lower(), value) for key, value in options.items())
            return super().options(**options)

        def queryName(self, queryName: str) -> Any:
            self.stretto_start[2]["queryname"] = queryName
            return super().queryName(queryName)

        def start(self, *args: Any, **options: Any) -> Any:
            self._compare(args[4] if len(args) > 4 else None, options)
            return super().start(*args, **options)

        def toTable(self, *args: Any, **options: Any) -> Any:
            self._compare(args[4] if len(args) > 4 else None, options)
            return super().toTable(*args, **options)

        def _compare(self, name: str | None, options: dict[str, Any]) -> None:
            frame, owners, known = self.stretto_start
            session = frame.sparkSession
            if watermarked_behind(frame, METRICS + ":"):
                raise OptionError(_SECOND_WATERMARK)
            given = known | {key.lower(): value for key, value in options.items() if value is not None}
            place = given.get(_CHECKPOINT)
            if place is None:
                # Spark's default is a folder of the query's name, and a new one for a query without a name.
                place, name = session.conf.get(_CHECKPOINTS, None), name or given.get("queryname")
                place = f"{place}/{name}" if place and name else None
            if place is not None:
                with described(session, "stretto, comparing the query with its checkpoint"):
                    compare(session, str(place), owners)

    Comparing.__name__ = Comparing.__qualname__ = writers.__name__
    return Comparing


def compare(session: SparkSession, checkpoint: str, owners: Sequence[Owner]) -> None:
    """Compare what is about to start with what a checkpoint was made by; one in which nothing is committed becomes the owners'.

    Raises
    ------
    SnapshotError
        The checkpoint holds the state of another query, of other columns or other settings.
    """
    own = [json.dumps(owner.header) for owner in owners]
    place = f"{checkpoint.rstrip('/')}/{OWNER}"
    known = _lines(session, place)
    if _lines(session, f"{checkpoint.rstrip('/')}/commits"):
        headers = [json.loads(line) for line in known] if known else _headers(session, checkpoint)
        for number, header in enumerate(headers):
            _check(header, owners, number)
    if known != own:
        _write(session, place, own)


def _check(header: Mapping[str, Any], owners: Sequence[Owner], number: int) -> None:
    """Raise unless a state with this header is one of the owners'; ``number``: of the operator, which picks the error."""
    faults = []
    for owner in owners:
        try:
            return owner.check(header)
        except SnapshotError as fault:
            faults.append(fault)
    raise faults[min(number, len(faults) - 1)]


def _lines(session: SparkSession, place: str) -> list[str]:
    """The lines of the files in a folder; none where there is no folder."""
    from pyspark.errors import AnalysisException

    if not may_be_there(session, place):  # of what is not there Spark logs a trace
        return []
    try:
        # Spark reads a path as a pattern.
        return [row[0] for row in session.read.text(re.sub(r"[][{}*?\\]", r"\\\g<0>", place)).collect()]
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return []


def _write(session: SparkSession, place: str, lines: Sequence[str]) -> None:
    from pyspark.sql import functions as F

    rows = session.range(0, 1, 1, 1).select(F.explode(F.array(*map(F.lit, lines))))
    rows.write.mode("overwrite").text(place)


def _headers(session: SparkSession, checkpoint: str) -> Iterator[dict[str, Any]]:
    """The headers of the states in a checkpoint, one for each operator of stretto, as far as Spark can read them."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        known = session.read.format("state-metadata").load(checkpoint)
        rows = known.select("operatorId", "operatorProperties").sort("operatorId").collect()
        for operator in [row[0] for row in rows if f'"{STATE}"' in (row[1] or "")]:
            start = _start_of_state(session, checkpoint, operator, _START)
            if start is not None and header_size(start) > len(start):
                start = _start_of_state(session, checkpoint, operator, header_size(start))
            if start is not None:
                yield header_of(start)
    except (PySparkException, Py4JError) as error:
        # Spark does not read the state where a space is in the path. The first micro-batch compares as well.
        log.warning("checkpoint %s: it is compared with the query at the first events: %s", checkpoint, error)


def _start_of_state(session: SparkSession, checkpoint: str, operator: int, size: int) -> bytes | None:
    """The first bytes of the state of bucket 0; ``None``: it has none."""
    states = session.read.format("statestore").option("operatorId", operator).option("stateVarName", STATE)
    found = states.load(checkpoint).where("key.bucket = 0").selectExpr(f"substring(value.state, 1, {size})").collect()
    return bytes(found[0][0]) if found else None
