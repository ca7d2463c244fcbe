"""Watching continuous queries: their counts in Spark's own progress, a line for notebooks, and log lines for what is dropped."""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.errors import OptionError
from stretto.spark.options import METRICS
from stretto.spark.sessions import require_pyspark
from stretto.spark.streaming.keeping import BY_BUCKET, FULLEST, LEVELS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery, StreamingQueryListener

log = logging.getLogger("stretto")

#: Classes of events that take no part, and why.
DROPPED = {
    "late": "behind the watermark",
    "duplicates": "with an id that is known",
    "no_key": "without a partition attribute (NULL)",
    "no_time": "without a time (NULL)",
}

CHANGES = {
    "late_changes": "they should hold from a time that the watermark has passed",
    "bad_changes": "their queries are wrong",
}


#: Counts that are not summed.
_GREATEST = frozenset(FULLEST.values())


@check_arguments
def metrics(progress: Any) -> dict[str, float]:
    """A query's counts in one progress report of Spark, summed over the stretto queries in it.

    ``events`` (in), ``relevant`` (with a key, and of use to the query), ``late``, ``duplicates``, ``no_key``, ``no_time``
    (these four take no part), ``late_changes`` and ``bad_changes`` (of patterns or arcs), ``released`` (given to the matcher),
    ``matches``, ``timeouts`` (rows of what timed out), ``revisions`` (matches taken back), ``suppressed`` (matches of patterns that
    came too soon after another), ``disabled`` (how often a pattern was switched off, bucket by bucket), ``waited_ms`` (over all
    matches, how far the stream had come behind their last events), ``kernel_ms`` (milliseconds in matching) and ``state_written``
    (bytes, to Spark's store) are of this micro-batch; ``held`` (events the watermark has not passed), ``keys``, ``partial_matches``
    (nodes of the structure that holds them) and ``state_bytes`` are levels after it, of the buckets that it touched;
    ``fullest_held``, ``fullest_keys``, ``fullest_partial_matches`` and ``fullest_state_bytes`` are the greatest of one bucket.
    ``final`` is the watermark in seconds since 1970: nothing before it changes any more.

    Parameters
    ----------
    progress
        A ``StreamingQueryProgress``, or the dict or JSON text of one.

    Examples
    --------
    >>> from stretto import spark
    >>> counts = {"stretto:0a:in": {"events": 1000}, "stretto:0a": {"matches": 3, "late": 2}, "another": {"events": 5}}
    >>> found = spark.metrics({"batchId": 7, "observedMetrics": counts})
    >>> found["events"], found["matches"], found["late"]
    (1000, 3, 2)
    """
    found: dict[str, float] = {}
    for name, row in _observed(progress).items():
        if name.partition(":")[0] == METRICS:
            for key, value in _pairs(row):
                if key == BY_BUCKET:
                    continue
                both = found.get(key, 0), value or 0
                found[key] = max(both) if key in _GREATEST else sum(both)
    if found and (watermark := _watermark(progress)):
        found["final"] = dt.datetime.fromisoformat(watermark).timestamp()
    return found


@check_arguments
def buckets(progress: Any) -> pa.Table:
    """How full the buckets are that a micro-batch touched, in one progress report of Spark: a row for each, the fullest first.

    Parameters
    ----------
    progress
        A ``StreamingQueryProgress``, or the dict or JSON text of one.

    Returns
    -------
    pyarrow.Table
        ``bucket`` (its number), ``held``, ``keys``, ``partial_matches`` and ``state_bytes``, as :func:`metrics` has them (int64);
        ``oldest`` (timestamp): the oldest event that is held or that partial matches of a query may hold, ``watermark``
        (timestamp), and ``age`` (duration): how far the one is behind the other. NULL where that is not known.

    Examples
    --------
    >>> from stretto import spark
    >>> spark.buckets({"batchId": 7, "observedMetrics": {}}).num_rows
    0
    """
    told = _watermark(progress)
    watermark = None if told is None else dt.datetime.fromisoformat(told)
    rows = []
    for name, row in _observed(progress).items():
        if name.partition(":")[0] == METRICS:
            for level in next((value or () for key, value in _pairs(row) if key == BY_BUCKET), ()):
                found = dict(_pairs(level))
                oldest = None if found["oldest"] is None else _EPOCH + dt.timedelta(microseconds=found["oldest"])
                age = None if oldest is None or watermark is None else watermark - oldest
                rows.append(found | {"oldest": oldest, "watermark": watermark, "age": age})
    rows.sort(key=lambda one: -one["state_bytes"])
    return pa.Table.from_pylist(rows, _BUCKETS)


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_BUCKETS = pa.schema(
    [
        *((name, pa.int64()) for name in LEVELS[:-1]),
        ("oldest", pa.timestamp("us", "UTC")),
        ("watermark", pa.timestamp("us", "UTC")),
        ("age", pa.duration("us")),
    ]
)


def _watermark(progress: Any) -> str | None:
    return (_field(progress, "eventTime") or {}).get("watermark")


def _observed(progress: Any) -> Mapping[str, Any]:
    return _field(progress, "observedMetrics") or {}


def _field(progress: Any, name: str) -> Any:
    """A field of a progress report; of a dict or a text ``None`` where it has none."""
    if isinstance(progress, str):
        try:
            progress = json.loads(progress)
        except json.JSONDecodeError as error:
            raise OptionError(f"the progress report is no JSON: {error}") from error
    if isinstance(progress, Mapping):
        return progress.get(name)
    if not isinstance(getattr(progress, "batchId", None), int):
        raise OptionError(
            f"a progress report is a StreamingQueryProgress, a dict or JSON, and this is {type(progress).__name__}: "
            "query.lastProgress is one"
        )
    return getattr(progress, name)


def _pairs(row: Any) -> list[tuple[str, Any]]:
    """Names and values of an observation; Spark Connect gives the values as a list, with the schema beside it."""
    found: Mapping[str, Any] = row if isinstance(row, Mapping) else row.asDict(True)
    if set(found) == {"values", "schema"}:
        names = [field["name"] for field in found["schema"]["fields"]]
        return list(zip(names, found["values"], strict=True))
    return list(found.items())


@check_arguments
def progress_line(progress: Any) -> str:
    """One line that says how a query stands after a micro-batch; empty when the report has no counts of stretto.

    What the report does not count is left out.

    Parameters
    ----------
    progress
        A ``StreamingQueryProgress``, or the dict or JSON text of one.

    Examples
    --------
    >>> from stretto import spark
    >>> counts = {"events": 1000, "matches": 3, "late": 2, "held": 4, "keys": 5, "state_bytes": 2**20, "kernel_ms": 2}
    >>> spark.progress_line({"batchId": 7, "observedMetrics": {"stretto:0a": counts}})
    'batch 7: 1,000 events, 3 matches, 2 late, 4 held, 5 keys, 1.0 MiB state, 2 ms matching'
    """
    found = metrics(progress)
    if not found:
        return ""
    count = {name: f"{int(value):,}" for name, value in found.items()}
    parts = [f"{count[name]} {name}" for name in ("events", "matches") if name in count]
    parts += [f"{count[name]} {label}" for name, label in _DROPPED_SHORT.items() if found.get(name)]
    if found.get("timeouts"):
        parts.append(f"{count['timeouts']} timed out")
    for name, label in (("suppressed", "suppressed"), ("disabled", "switched off")):
        if found.get(name):
            parts.append(f"{count[name]} {label}")
    if found.get("revisions"):
        parts.append(f"{count['revisions']} taken back")
    lasting = found.get("matches", 0) - found.get("revisions", 0)
    if found.get("waited_ms") and lasting > 0:
        parts.append(f"{found['waited_ms'] / lasting / 1000:.1f} s behind their events")
    parts += [f"{count[name]} {name}" for name in ("held", "keys") if name in count]
    if "state_bytes" in found:
        most = found.get("fullest_state_bytes")
        fullest = f" ({most / 2**20:.1f} MiB in the fullest bucket)" if most else ""
        parts.append(f"{found['state_bytes'] / 2**20:.1f} MiB state{fullest}")
    if "kernel_ms" in found:
        parts.append(f"{found['kernel_ms']:.0f} ms matching")
    return f"batch {_batch(progress)}: " + ", ".join(parts)


_DROPPED_SHORT = {"late": "late", "duplicates": "duplicates", "no_key": "without key", "no_time": "without time"}


def _batch(progress: Any) -> Any:
    return _field(progress, "batchId")


@check_arguments
def status(query: StreamingQuery) -> str:
    """The line of a query's last micro-batch, or what it waits for.

    Examples
    --------
    >>> from stretto import spark
    >>> query = spark.session().readStream.format("rate").load().writeStream.format("noop").start()
    >>> isinstance(spark.status(query), str)  # such as 'Initializing sources': no batch has ended yet
    True
    >>> query.stop()
    """
    last = query.lastProgress
    line = progress_line(last) if last is not None else ""
    return line or str(query.status.get("message", ""))


@check_arguments
def watch(spark: SparkSession, *, most: int = 0) -> StreamingQueryListener:
    """Log a line for every micro-batch of stretto's queries (info), and one for each class of dropped events (warning).

    The logger is ``stretto``. ``most``: below it a line for each of so many buckets, the fullest of those that it touched
    (:func:`buckets`). Returns the listener, for :func:`unwatch`.

    Examples
    --------
    >>> from stretto import spark
    >>> listener = spark.watch(spark.session(), most=3)
    >>> spark.unwatch(spark.session(), listener)
    """
    require_pyspark()
    from stretto.spark.streaming.listener import Listener

    listener = Listener(partial(report, most=most))
    spark.streams.addListener(listener)
    return listener


@check_arguments
def unwatch(spark: SparkSession, listener: StreamingQueryListener) -> None:
    """Take a listener of :func:`watch` off.

    Examples
    --------
    >>> from stretto import spark
    >>> spark.unwatch(spark.session(), spark.watch(spark.session()))
    """
    spark.streams.removeListener(listener)


def report(progress: Any, *, most: int = 0) -> None:
    """Log what a progress report says, and of so many buckets how full they are."""
    found = metrics(progress)
    if not found:
        return
    log.info("%s", progress_line(progress))
    for one in buckets(progress).slice(0, most).to_pylist():
        age = "" if one["age"] is None else f", the oldest event {one['age']} behind the watermark"
        told = f"{one['state_bytes'] / 2**20:.1f} MiB state, {one['partial_matches']:,} partial matches, {one['held']:,} held"
        log.info("batch %s, bucket %d: %s%s", _batch(progress), one["bucket"], told, age)
    for name, why in DROPPED.items():
        if number := int(found.get(name, 0)):
            log.warning("batch %s: %d events take no part: %s", _batch(progress), number, why)
    if number := int(found.get("disabled", 0)):
        log.warning("batch %s: %d times a pattern was switched off: it went over its limit", _batch(progress), number)
    for name, why in CHANGES.items():
        if number := int(found.get(name, 0)):
            log.warning("batch %s: %d changes of patterns do not count: %s", _batch(progress), number, why)
