"""Continuous queries: Structured Streaming with the watermark as the punctuation.

::

    events --withWatermark--> bucket of the keys --pack (mapInArrow)--> groupBy(bucket).transformWithState
           --observe (metrics)--> unpack (mapInArrow) --> matches
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.errors import DataError, OptionError, hinted
from stretto.events import require
from stretto.matching.reorder.spans import span
from stretto.spark.columns import relevant
from stretto.spark.compat import needs, watermarked_behind
from stretto.spark.frames import column, spark_schema
from stretto.spark.kernels import ship
from stretto.spark.options import BUCKETS, Continuous, microseconds_of
from stretto.spark.prepared import Prepared
from stretto.spark.revised import Revised
from stretto.spark.starting import compared, lags_in, metrics_name
from stretto.spark.streaming.keeping import BY_BUCKET, FULLEST, LEVELS, Counts, Settings
from stretto.spark.streaming.packing import PACKED, late_column, pack, pack_changes, unpack, with_late
from stretto.times import ticks_per_second

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from stretto.spark.batch.worker import Roles
    from stretto.spark.streaming.state import Owner

log = logging.getLogger("stretto")

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_ENCRYPTION = "spark.io.encryption.enabled"
_DELAY = "spark.watermarkDelayMs"

#: The column of the watermark, where the time itself cannot carry one.
INSTANT = "__stretto_instant"
_BUCKET = "__stretto_bucket"

#: How far buckets are ahead of a watermark that stretto sets, in milliseconds. For Spark's own operators a row is late that lies at
#: the watermark of the micro-batch before. There a bucket still holds events, and what ends with them must be in time behind it.
_SPARE = 1


def with_watermark(
    df: DataFrame | Mapping[str, DataFrame], time: str, time_unit: str | None, delay: str | None
) -> DataFrame | Mapping[str, DataFrame]:
    """Every streaming branch with a watermark on its time.

    So the slowest of several streams holds the watermark, and none of its events is late for being slow.
    """
    if isinstance(df, Mapping):
        return {name: watermarked(branch, time, time_unit, delay) for name, branch in df.items()}
    return watermarked(df, time, time_unit, delay)


def watermarked(
    df: DataFrame, time: str, time_unit: str | None, delay: str | None, *, spare: int = _SPARE
) -> DataFrame:
    """A streaming DataFrame with a watermark on its time, so many milliseconds later than ``delay``; a batch DataFrame as it is."""
    if getattr(df, "isStreaming", False) is not True:
        return df
    needs("a continuous query", 4, 0)
    require(df.columns, time, "time")
    if lags_in(df):
        # A second watermark would hold the first one back for ever (starting.py); that of the events goes on to their matches.
        _instant(df, time, time_unit)  # raises
        return df
    marked = marked_columns(df)
    if marked:
        if delay is not None:
            raise OptionError(f"the events have a watermark on '{marked[0]}' already: leave out disorder={delay!r}")
        if marked != [time]:
            raise OptionError(
                f"the events have a watermark on '{marked[0]}', and the query's time is '{time}': use one column"
            )
        return df
    if delay is None:
        raise OptionError("a continuous query needs a watermark: disorder='10 seconds' says how late an event may be")
    delay = f"{microseconds_of(delay) // 1000 + spare} milliseconds"
    instant = _instant(df, time, time_unit)
    if instant is None:
        # withWatermark takes a name and reads dots as fields.
        if any(character in time for character in ".`"):
            return df.withColumn(INSTANT, column(time)).withWatermark(INSTANT, delay).drop(INSTANT)
        return df.withWatermark(time, delay)
    return df.withColumn(INSTANT, instant).withWatermark(INSTANT, delay).drop(INSTANT)


def marked_columns(df: DataFrame) -> list[str]:
    """The columns that have a watermark. Files keep the mark of what was written there, which is none for those who read them."""
    if not watermarked_behind(df, ""):
        return []
    return [field.name for field in df.schema.fields if _DELAY in (field.metadata or {})]


def changes_of(df: DataFrame, what: str, schema: pa.Schema, required: Sequence[str]) -> DataFrame:
    """Changes, of patterns or arcs, in the columns and types of a schema; columns that are not required may be missing."""
    from pyspark.sql import functions as F

    if marked := marked_columns(df):
        raise OptionError(
            f"the {what} have a watermark on '{marked[0]}', which would hold back that of the events: drop it"
        )
    for name in required:
        if name not in df.columns:
            raise DataError(hinted(f"the {what} have no column '{name}'", name, df.columns, kind="column"))
    return df.select(
        *(
            (column(one.name) if one.name in df.columns else F.lit(None)).cast(one.dataType).alias(one.name)
            for one in spark_schema(schema)
        )
    )


def _instant(df: DataFrame, time: str, unit: str | None) -> Column | None:
    """The time as a Spark timestamp; ``None``: it is one."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    kind, value = df.schema[time].dataType, column(time)
    if isinstance(kind, T.TimestampType):
        return None
    if isinstance(kind, T.TimestampNTZType):
        return F.timestamp_micros(F.timestamp_diff("MICROSECOND", F.lit("1970-01-01").cast("timestamp_ntz"), value))
    if isinstance(kind, T.DateType):
        return F.timestamp_seconds(F.unix_date(value) * 86_400)
    if isinstance(kind, T.ByteType | T.ShortType | T.IntegerType | T.LongType):
        if unit is None:
            raise OptionError(
                f"'{time}' is {kind.simpleString()}: say what one unit of it is with time_unit='s' (or 'ms', 'us', 'ns')"
            )
        long = value.cast("bigint")
        match unit:
            case "s":
                return F.timestamp_seconds(long)
            case "ms":
                return F.timestamp_millis(long)
            case "us":
                return F.timestamp_micros(long)
            case "ns":
                return F.timestamp_micros(F.floor(long / 1000))
        raise OptionError(f"time_unit={unit!r}: expected 's', 'ms', 'us' or 'ns'")
    raise OptionError(
        f"a continuous query needs a time of type timestamp, date or integer, and '{time}' is {kind.simpleString()}"
    )


@dataclass(frozen=True)
class Flow:
    """What flows in a continuous query, of one query or of many patterns."""

    events: DataFrame
    #: The columns that travel, and their Arrow types.
    columns: Mapping[str, pa.DataType]
    #: What keys are made of; none: all events are in one bucket.
    keys: tuple[Column, ...]
    #: What an event must fulfil to matter; ``None``: all do.
    useful: Column | None
    #: What runs, as plain data (:func:`stretto.spark.streaming.runs.run_of`).
    task: dict[str, Any]
    result: pa.Schema
    #: Changes of patterns: ``id``, ``query``, ``since``.
    changes: DataFrame | None = None
    #: Those of the keys that an event must have; ``None``: all of them.
    asked: tuple[Column, ...] | None = None
    #: How long after its end a result is known, in milliseconds; ``None``: nobody knows.
    lag: int | None = None


def match(call: Prepared, options: Continuous) -> DataFrame:
    """The matches of a checked call as a streaming DataFrame (append mode)."""
    keep = call.query.parsed.keep
    if keep is not None and keep.longest and call.query.window is None:
        raise OptionError(
            "KEEP LONGEST in a stream needs WITHIN: without one the longest match is known at the end, which does not come"
        )
    call = with_columns(call, options)
    alone = not call.keys
    if alone:
        log.warning("the query relates all events (%s): it runs in one ordered state, in one task", _why_alone(call))
    # What is late is counted, or shown, whether or not the query could use it; a retraction need not say what it takes back.
    useful = relevant(call.query) if options.late == "drop" and options.sign is None else None
    columns, task, result = signed(call.columns, options.sign), call.task, call.layout.schema()
    if options.speculation:
        run_ahead = ahead(call, options)
        task, result = run_ahead.plain, run_ahead.result
    keys = [(name, call.key_column(name)) for name in call.partition_by]
    for name, key in keys:
        if name not in call.asked_keys:  # in no match, as what is of no use
            useful = key.isNotNull() if useful is None else useful & key.isNotNull()
    asked = tuple(key for name, key in keys if name in call.asked_keys)
    lag = None if options.speculation else _lag(call)
    flow = Flow(call.events, columns, tuple(key for _, key in keys), useful, task, result, asked=asked, lag=lag)
    return run(flow, settings_of(call.events, call.roles, call.sequence, options, alone))


def _lag(call: Prepared) -> int | None:
    """How long after its end a match may be decided, in milliseconds; ``None``: nobody knows, or a row is no match."""
    parsed, window, time = call.query.parsed, call.query.bound.window, call.roles[1]
    if parsed.asked is not None or call.timeouts:
        return None
    if parsed.keep is None and parsed.last_negation is None:
        return 0
    if window is None or window.attribute != time:
        return None
    kind = call.columns[time]
    per_second = 1 if pa.types.is_date(kind) else ticks_per_second(kind, call.roles[3] or "us")
    return None if per_second is None else math.ceil(1000 * window.size / per_second)


def ahead(call: Prepared, options: Continuous) -> Revised:
    """The query as what answers ahead of what is certain."""
    asks = call.query.parsed.asked is not None
    if call.valuations and not asks:
        raise OptionError("valuations=True lists what is never taken back: leave out speculation=")
    own: dict[str, Any] = {} if options.sign is None else {"sign": options.sign}
    if call.valuations:
        own["valuations"] = True
    time, unit = call.roles[1], call.roles[3]
    return Revised(
        call.query.text,
        call.query.language,
        call.schema,
        call.roles,
        call.sequence,
        call.output,
        ticks_ahead(options, call.columns[time], time, unit),
        own,
        budget=call.budget,
        functions=call.functions,
    )


def ticks_ahead(options: Continuous, kind: pa.DataType, time: str, unit: str | None) -> int | float:
    """How far answers go ahead, in ticks of the time."""
    found = span(options.speculation, "speculation", kind, time, unit if pa.types.is_integer(kind) else None)
    return math.inf if found is None else found


def signed(columns: Mapping[str, pa.DataType], sign: str | None) -> Mapping[str, pa.DataType]:
    """The columns that travel, and behind them the sign."""
    return columns if sign is None else {**columns, sign: pa.int8()}


def run(flow: Flow, settings: Settings) -> DataFrame:
    """A flow as a streaming DataFrame of its results."""
    from stretto.spark.streaming.operator import owner_of
    from stretto.spark.streaming.runs import rehearse, run_of

    ship(flow.events.sparkSession, lambda: rehearse(run_of(flow.task)))
    schema, owner = pa.schema(list(flow.columns.items())), owner_of(flow.task, settings)
    packed = _bucketed(flow, settings, owner).mapInArrow(partial(pack, schema=schema.serialize().to_pybytes()), PACKED)
    if flow.changes is not None:
        packed = packed.union(flow.changes.mapInArrow(partial(pack_changes, buckets=settings.buckets), PACKED))
    return processed(packed, flow.task, settings, owner=owner, result=flow.result, late=schema, lag=flow.lag)


def processed(
    packed: DataFrame,
    task: dict[str, Any],
    settings: Settings,
    *,
    owner: Owner,
    result: pa.Schema,
    late: pa.Schema,
    lag: int | None = None,
) -> DataFrame:
    """Packed rows through the stateful operator, and its results unpacked; ``late``: the columns of late rows."""
    from pyspark.sql import functions as F

    from stretto.spark.streaming.operator import OUTPUT
    from stretto.spark.streaming.processor import Buckets, InPandas

    _use_rocksdb(packed)
    # Where Spark encrypts what it leaves on disks, nothing is left there in the clear.
    copies = packed.sparkSession.conf.get(_ENCRYPTION, "false") != "true"
    buckets, grouped = Buckets(task, settings, copies=copies), packed.groupBy("bucket")
    how = {"outputMode": "append", "timeMode": "EventTime"}
    if hasattr(grouped, "transformWithState"):
        made = grouped.transformWithState(buckets, OUTPUT, **how)
    else:
        made = grouped.transformWithStateInPandas(InPandas(buckets), OUTPUT, **how)
    names = [part.name for part in fields(Counts)]
    fullest = [F.max(level).alias(shown) for level, shown in FULLEST.items()]
    levels = F.collect_list(F.when(F.col("bucket").isNotNull(), F.struct(*LEVELS))).alias(BY_BUCKET)
    name = metrics_name(owner)
    counted = made.observe(name, *[F.sum(count).alias(count) for count in names], *fullest, levels)
    filled = counted.select("data", "late_data").filter("data IS NOT NULL OR late_data IS NOT NULL")
    aside = settings.late == "side"
    shown = partial(
        unpack,
        schema=result.serialize().to_pybytes(),
        late=late.serialize().to_pybytes() if aside else None,
        late_name=late_column(result),
    )
    columns = spark_schema(with_late(result, late) if aside else result)
    known = None if lag is None else lag + settings.behind
    if known is not None and known < 0 and result.names.count("end_time") == 1:  # a key may have this name as well
        _mark(columns, settings.delay // 1000)
    return compared(filled.mapInArrow(shown, columns), owner, name, known)


def _mark(columns: Any, delay: int) -> None:
    """Let Spark know that the watermark of the events, so far behind them (ms), is that of matches as well, on their ends.

    A second ``withWatermark`` would hold the first one back; but stateful operators ask for no more than the mark on a column.
    """
    from pyspark.sql import types as T

    for field in columns:
        if field.name == "end_time" and isinstance(field.dataType, T.TimestampType):
            field.metadata = {_DELAY: delay}


def with_columns(call: Prepared, options: Continuous) -> Prepared:
    """The call with the columns that order and tell events, which must travel as well."""
    from stretto.spark.frames import arrow_fields

    known = arrow_fields(call.events)
    if options.event_id is not None:
        require(known, options.event_id, "event_id")
    wanted = [name for name in (*call.order, options.event_id) if name is not None]
    if options.late == "side":  # late events are shown whole
        wanted += [name for name, kind in known.items() if kind is not None]
    columns = {name: kind for name, kind in known.items() if name in {*call.columns, *wanted} - {options.sign}}
    if len(columns) == len(call.columns):
        return call
    unreadable = [name for name, kind in columns.items() if kind is None]
    if unreadable:
        raise OptionError(f"column '{unreadable[0]}' has a type that Arrow cannot carry: drop it, or cast it")
    return call.widened(columns)


def settings_of(events: DataFrame, roles: Roles, sequence: str | None, options: Continuous, alone: bool) -> Settings:
    """How events are treated; ``alone``: they all go into one bucket."""
    _, time, _, time_unit = roles
    delays = [field.metadata[_DELAY] for field in events.schema.fields if _DELAY in (field.metadata or {})]
    delay = microseconds_of(options.disorder) if options.disorder else 1000 * int(max(delays, default=0))
    buckets = 1 if alone else options.buckets or BUCKETS
    follows, behind = behind_of([events], options.disorder)
    return Settings(
        time,
        sequence,
        time_unit,
        options.late,
        options.event_id,
        delay,
        buckets,
        options.sign,
        options.changes_now,
        behind,
        follows,
    )


def behind_of(events: Iterable[DataFrame], disorder: str | None) -> tuple[bool, int]:
    """Whether events are other queries' results, and how far the watermark of who reads them is behind Spark's (:class:`Settings`).

    Raises
    ------
    OptionError
        Nobody knows how late the results come, and ``disorder`` does not say it.
    """
    lags = [lag for df in events for lag in lags_in(df)]
    if not lags:
        return False, 0 if disorder is None else -_SPARE
    if disorder is None and None in lags:
        raise OptionError(
            "these events are results of another query, and how long after their time they are known is not told by that query: "
            "disorder='10 minutes' says it"
        )
    own = 0 if disorder is None else -(-microseconds_of(disorder) // 1000)
    return True, own + max(lag or 0 for lag in lags)


def _why_alone(call: Prepared) -> str:
    if call.query.language == "eql":
        return "no key that all events of the query call by one name"
    if call.query.language == "sase":
        return f"{call.query.strategy}" if call.query.partition_by else "no equivalence test"
    return "CONSUME BY ANY" if call.query.partition_by else "no PARTITION BY"


def _bucketed(flow: Flow, settings: Settings, owner: Owner) -> DataFrame:
    """The columns that matter, and the bucket. Rows without a key are in no partition, and are counted."""
    asked = flow.keys if flow.asked is None else flow.asked
    rows = observed(flow.events, metrics_name(owner) + ":in", asked, flow.useful)
    if flow.useful is not None:
        rows = rows.filter(flow.useful)
    shown = [column(name).alias(f"_{i}") for i, name in enumerate(flow.columns)]
    return rows.select(*shown, bucket_of(flow.keys, settings.buckets).alias(_BUCKET))


def observed(events: DataFrame, name: str, keys: Sequence[Column], useful: Column | None = None) -> DataFrame:
    """The rows that have a key; all are counted under a name."""
    from pyspark.sql import functions as F

    keyless = reduce(or_, [key.isNull() for key in keys], F.lit(False))
    counted = F.lit(True) if useful is None else F.coalesce(useful, F.lit(False))
    # Observing also keeps Spark from filtering below the watermark, which every event moves.
    return events.observe(
        name,
        F.count(F.lit(1)).alias("events"),
        F.count_if(keyless).alias("no_key"),
        F.count_if(~keyless & counted).alias("relevant"),
    ).filter(~keyless)


def bucket_of(keys: Sequence[Column], buckets: int) -> Column:
    """The bucket of a row's key."""
    from pyspark.sql import functions as F

    return F.lit(0).cast("bigint") if buckets == 1 else F.pmod(F.xxhash64(*keys), F.lit(buckets).cast("bigint"))


def _use_rocksdb(df: DataFrame) -> None:
    """``transformWithState`` keeps its state in RocksDB only; queries that exist keep the provider of their checkpoint."""
    conf = df.sparkSession.conf
    if conf.get(_PROVIDER, None) != _ROCKSDB:
        conf.set(_PROVIDER, _ROCKSDB)
        log.info("%s is now RocksDB, which continuous queries need", _PROVIDER)
