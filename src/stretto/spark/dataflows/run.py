"""``stretto.spark.dataflow``: a plan of stretto's dataflow over DataFrames, for every group of rows by itself.

::

    each source --bucket of the key--> pack (mapInArrow) --union, shuffle by bucket--> one plan a bucket --> DataFrame
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.dataflow import Stream, plan
from stretto.dataflow.cycles import ordered_with_loops
from stretto.dataflow.node import payload_type
from stretto.dataflow.plan_json import travelling
from stretto.dataflow.stream import carries
from stretto.errors import DataError, OptionError, hinted
from stretto.query.typing import kind_of
from stretto.spark.compat import named
from stretto.spark.dataflows.groups import INPUT, OUTPUT, Groups, run_groups
from stretto.spark.frames import arrow_fields, check_dataframe, column, spark_schema
from stretto.spark.kernels import ship
from stretto.spark.options import BUCKETS, Continuous
from stretto.spark.sessions import require_pyspark
from stretto.spark.starting import metrics_name
from stretto.spark.streaming.keeping import Settings
from stretto.spark.streaming.packing import PACKED, pack
from stretto.spark.streaming.query import behind_of, bucket_of, marked_columns, observed, processed, watermarked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

log = logging.getLogger("stretto")

#: The time of a row, where it is not its start.
_MOMENT = "__stretto_moment"


@check_arguments
def dataflow(
    df: DataFrame | Mapping[str, DataFrame],
    stream: Stream,
    *,
    by: str | Sequence[str] = (),
    vs: str = "vs",
    ve: str | None = None,
    ve_new: str | None = None,
    buckets: int | None = None,
    time_unit: str | None = None,
    disorder: str | dt.timedelta | None = None,
    late: str = "drop",
) -> DataFrame:
    """What a stream of a dataflow comes to, over DataFrames, batch or streaming, and for every group of rows by itself.

    The plan runs as if each group had a dataflow of its own: nothing is joined, counted or reached across groups. In fact many groups
    share one, in which the key goes along with the rows.

    Parameters
    ----------
    df
        The events: for each source of the plan a DataFrame, by its name; or the DataFrame of the only one.
    stream
        What is wanted: a stream of :mod:`stretto.dataflow`, such as a ``fixpoint``, or a relation of ``datalog``.
    by
        The columns of the key, which every DataFrame has. The plan need not know them. Rows in which one is NULL are in no group.
        Without a key, the whole plan runs in one task, on one core.
    vs
        The column of the starts of lifetimes: integer or timestamp, in all DataFrames the same type.
    ve
        The column of their ends (NULL: without end). A DataFrame that lacks it has events without end. ``None``: ``ve``, where it is.
    ve_new
        The column that makes a row a retraction, where it is not NULL: the event with this payload, ``vs`` and ``ve`` ends there.
        ``None``: ``ve_new``, where it is.
    buckets
        Into how many buckets keys are hashed; each has one dataflow, and in a batch a task takes one bucket after the other.
        ``None``: 64. A checkpoint is bound to it.
    time_unit
        Streaming: what one unit of an integer time is (``s``, ``ms``, ``us``, ``ns``).
    disorder
        Streaming: how much later than the latest row one may still arrive, such as ``"10 seconds"``, or a timedelta; Spark's
        watermark, which is so far behind, is the punctuation of all sources. A row's time is its start, that of a retraction the end
        that it gives. ``None``: the rows have a watermark on ``vs`` already.
    late
        Streaming: what becomes of rows behind the watermark, and of retractions of what is not there. ``"drop"`` counts them (see
        :func:`stretto.spark.metrics`), ``"error"`` ends the query, ``"side"`` shows them in a column ``late`` of the result, in
        rows of their own.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns of the key, those of the stream, ``vs`` and ``ve``: the canonical history in the end, with lifetimes as long as
        they can be. Of streams: the changes of the result, in append mode, with a column ``ve_new``: NULL for an insertion, else the
        row with this payload, ``vs`` and ``ve`` ends there now (at ``vs``: it is gone). What comes of a row comes in its
        micro-batch, and may be revised later.

    Raises
    ------
    DataError
        A column or a source is missing, or has another type than the plan has. What is wrong in the rows is found when Spark runs,
        and then the text of the ``PythonException`` that Spark raises holds the error.
    OptionError
        The plan cannot travel, or not run by groups; an option does not fit.

    Examples
    --------
    >>> from stretto import spark
    >>> from stretto.dataflow import stream
    >>> rows = [("x", 1, 5, 1, 4), ("x", 2, 9, 2, 3), ("y", 3, 9, 1, 2)]
    >>> link = spark.session().createDataFrame(rows, "k string, src long, cost long, vs long, ve long")
    >>> cheap = stream("link", {"src": int, "cost": int}).where("cost < 9")
    >>> spark.dataflow(link, cheap, by="k").collect()
    [Row(k='x', src=1, cost=5, vs=1, ve=4)]
    """
    require_pyspark()
    options = Continuous.of(disorder, late, buckets=buckets)
    keys = (by,) if isinstance(by, str) else tuple(by)
    call = _prepared(df, stream, keys, {"vs": vs, "ve": ve, "ve_new": ve_new})
    if not keys:
        log.warning(
            "the plan runs in one task, on one core whatever the cluster has: name the columns of a key with by='…', if nothing is "
            "to be joined across groups"
        )
    options = replace(options, buckets=(buckets or BUCKETS) if keys else 1)
    ship(next(iter(call.sources.values())).events.sparkSession, call.groups.start)
    return _streaming(call, options, time_unit) if call.streams else _batch(call, options)


@dataclass(frozen=True)
class Source:
    """A DataFrame with what its columns are in the plan."""

    events: DataFrame
    #: For each column that travels its name in the DataFrame.
    columns: Mapping[str, str]
    #: The columns that travel, with their types, and the input's name.
    schema: pa.Schema
    #: Those of the key.
    keys: tuple[str, ...]

    @property
    def key_columns(self) -> list[Column]:
        """The key's columns in the types of the plan: keys of different integer types would have different hashes."""
        kinds = spark_schema(self.schema)
        return [column(self.columns[own]).cast(kinds[own].dataType) for own in self.keys]

    @property
    def shown(self) -> list[Column]:
        """The columns that travel, by number."""
        return [column(name).alias(f"_{at}") for at, name in enumerate(self.columns.values())]


@dataclass(frozen=True)
class Prepared:
    """A call of :func:`dataflow`, checked."""

    sources: Mapping[str, Source]
    groups: Groups
    streams: bool


# -- checking ---------------------------------------------------------------------------------------------------------


def _prepared(
    df: DataFrame | Mapping[str, DataFrame], stream: Stream, by: tuple[str, ...], times: Mapping[str, str | None]
) -> Prepared:
    nodes = ordered_with_loops([stream.node])
    wanted = {node.name: node for node in nodes if isinstance(node, plan.Source)}
    frames = _frames(df, wanted)
    kinds = {name: arrow_fields(frame) for name, frame in frames.items()}
    lifetimes = _lifetimes(kinds, times)
    time = _time(kinds, lifetimes)
    inner = _key_names(by, {name for node in nodes for name in node.schema})
    key_kinds = {own: _key_kind(kinds, name) for name, own in inner.items()}
    sources = {}
    for name, node in wanted.items():
        columns = {own: outer for outer, own in inner.items()}
        columns |= {own: own for own in node.schema} | lifetimes[name]
        _check_types(name, node, kinds[name])
        row = {**key_kinds, **node.schema, **dict.fromkeys(lifetimes[name], time)}
        schema = pa.schema([(own, row[own]) for own in columns], metadata={INPUT: name.encode()})
        sources[name] = Source(frames[name], columns, schema, tuple(key_kinds))
    streams = _streams(frames)
    result = _result(
        stream, {name: _outer_kind(kinds, name, key_kinds[own]) for name, own in inner.items()}, inner, time, streams
    )
    text, functions = travelling({OUTPUT: stream})
    travels = Groups(
        text,
        _bytes(pa.schema(list(key_kinds.items()))),
        _bytes(pa.schema([("vs", time)])),
        tuple(own for own, _ in result),
        _bytes(pa.schema([field for _, field in result])),
        str(times["vs"]),
        functions,
    )
    travels.start()  # what cannot run shows here
    if streams and travels.names_groups:
        raise OptionError(
            "the plan has constant rows that are in every group, from the first time on, and the groups of a stream are not known "
            "before: give the rows as a source, or run without by"
        )
    return Prepared(sources, travels, streams)


def _bytes(schema: pa.Schema) -> bytes:
    found: bytes = schema.serialize().to_pybytes()
    return found


def _frames(df: DataFrame | Mapping[str, DataFrame], wanted: Mapping[str, plan.Source]) -> dict[str, DataFrame]:
    """The DataFrame of each source."""
    if not wanted:
        raise OptionError("the plan reads no source: there is nothing to run over DataFrames; use Dataflow")
    if not isinstance(df, Mapping):
        if len(wanted) > 1:
            raise DataError(
                f"the plan reads {len(wanted)} sources ({', '.join(wanted)}): give a dict of DataFrames by source"
            )
        df = {next(iter(wanted)): df}
    for name in df:
        if name not in wanted:
            raise DataError(hinted(f"the plan reads no source '{name}'", name, wanted, kind="source"))
    for name in wanted:
        if name not in df:
            raise DataError(f"there are no events for the source '{name}'")
        check_dataframe(df[name], f"df['{name}']")
    return {name: df[name] for name in wanted}


def _streams(frames: Mapping[str, DataFrame]) -> bool:
    """Whether the sources are streams: all or none."""
    found = {bool(frame.isStreaming): name for name, frame in frames.items()}
    if len(found) > 1:
        raise OptionError(
            f"the source '{found[True]}' is a stream and '{found[False]}' is none, which Spark cannot unite: read both as streams"
        )
    return True in found


Kinds = Mapping[str, Mapping[str, pa.DataType | None]]


def _column(kinds: Kinds, source: str, name: str, role: str) -> pa.DataType:
    """The type of a column that must be there."""
    known = kinds[source]
    if name not in known:
        raise DataError(hinted(f"the source '{source}' has no column '{name}' ({role})", name, known, kind="column"))
    kind = known[name]
    if kind is None:
        raise OptionError(f"source '{source}': column '{name}' has a type that Arrow cannot carry: cast it")
    return kind


def _lifetimes(kinds: Kinds, times: Mapping[str, str | None]) -> dict[str, dict[str, str]]:
    """For each source its columns of times: their names here, and in the DataFrame."""
    found: dict[str, dict[str, str]] = {source: {} for source in kinds}
    for role, name in times.items():
        for source in kinds:
            if role == "vs":
                _column(kinds, source, str(name), "vs")
            if (name or role) in kinds[source]:
                found[source][role] = name or role
        if name is not None and not any(role in one for one in found.values()):
            raise DataError(
                hinted(
                    f"no source has a column '{name}' ({role})",
                    name,
                    {column for one in kinds.values() for column in one},
                    kind="column",
                )
            )
    return found


def _time(kinds: Kinds, lifetimes: Mapping[str, Mapping[str, str]]) -> pa.DataType:
    """The type of all times."""
    first: tuple[str, pa.DataType] | None = None
    for source, columns in lifetimes.items():
        for role, name in columns.items():
            kind = _column(kinds, source, name, role)
            if pa.types.is_integer(kind):
                kind = pa.int64()
            elif not pa.types.is_timestamp(kind):
                raise DataError(
                    f"source '{source}': column '{name}' ({role}) is {kind}; times are integers or timestamps"
                )
            where = f"'{name}' of '{source}' is {kind}"
            if first is None:
                first = where, kind
            elif first[1] != kind:
                raise DataError(f"times have one type in a dataflow, and {first[0]}, while {where}: cast one")
    assert first is not None
    return first[1]


def _key_names(by: tuple[str, ...], taken: set[str]) -> dict[str, str]:
    """What the columns of the key are called in the plan: as outside, unless the plan has the name."""
    if len(set(by)) < len(by):
        raise OptionError(f"by={by!r}: a column is named twice")
    found: dict[str, str] = {}
    for name in by:
        own = name
        while own in taken or own in found.values() or own in ("vs", "ve", "ve_new"):
            own += "_"
        found[name] = own
    return found


def _key_kind(kinds: Kinds, name: str) -> pa.DataType:
    """The type of a key's column in the plan."""
    found = {source: _column(kinds, source, name, "by") for source in kinds}
    first, *others = found.items()
    for source, kind in others:
        if kind_of(kind) != kind_of(first[1]):
            raise DataError(f"the key '{name}' is {first[1]} in '{first[0]}' and {kind} in '{source}': cast one")
    kind = payload_type(first[1])
    if kind is None:
        raise DataError(
            f"the key '{name}' is {first[1]}; keys are integers, floats, strings, truth values or timestamps: cast it"
        )
    return kind


def _outer_kind(kinds: Kinds, name: str, kind: pa.DataType) -> pa.DataType:
    """The type of a key's column in the result: that of the sources, if it is one."""
    found = [one[name] for one in kinds.values()]
    return found[0] if all(one == found[0] for one in found) else kind


def _check_types(source: str, node: plan.Source, known: Mapping[str, pa.DataType | None]) -> None:
    for name, kind in node.schema.items():
        own = _column({source: known}, source, name, "the plan reads it")
        fits = kind_of(own) == kind_of(kind) or (kind_of(kind) == "float" and kind_of(own) in ("int", "decimal"))
        if not fits or (pa.types.is_timestamp(kind) and getattr(own, "tz", None) is None) != (
            pa.types.is_timestamp(kind) and kind.tz is None
        ):
            raise DataError(f"source '{source}': column '{name}' is {own}, and the plan has {kind}: cast it")


def _result(
    stream: Stream, keys: Mapping[str, pa.DataType], inner: Mapping[str, str], time: pa.DataType, streams: bool
) -> list[tuple[str, pa.Field]]:
    """The result's columns: their names in the plan, and what they are outside."""
    found = [(inner[name], pa.field(name, kind)) for name, kind in keys.items()]
    for name, kind in stream.schema.items():
        if name not in keys:
            found.append((name, pa.field(name, kind)))
        elif not carries(stream.node, name, name):
            raise OptionError(f"the result has a column '{name}', which is not the key of this name: rename() it")
    return found + [(name, pa.field(name, time)) for name in ("vs", "ve", *(["ve_new"] if streams else []))]


# -- batch ------------------------------------------------------------------------------------------------------------


def _batch(call: Prepared, options: Continuous) -> DataFrame:
    from pyspark.sql import functions as F

    parts = []
    for one in call.sources.values():
        keyless = reduce(or_, [key.isNull() for key in one.key_columns], F.lit(False))
        parts.append(_packed(one, one.events.filter(~keyless), options))
    packed = reduce(lambda left, right: left.union(right), parts)
    together = packed.repartition("bucket") if options.buckets != 1 else packed.repartition(1)
    ordered = together.sortWithinPartitions("bucket", "source", "number")
    worker = named(partial(run_groups, task=asdict(call.groups)), "a dataflow")
    return ordered.mapInArrow(worker, spark_schema(call.groups.schema))


def _packed(source: Source, rows: DataFrame, options: Continuous) -> DataFrame:
    """Rows in the columns that travel, packed by bucket."""
    assert options.buckets is not None
    bucket = bucket_of(source.key_columns, options.buckets)
    return rows.select(*source.shown, bucket.alias("__stretto_bucket")).mapInArrow(
        partial(pack, schema=_bytes(source.schema)), PACKED
    )


# -- streaming --------------------------------------------------------------------------------------------------------


def _streaming(call: Prepared, options: Continuous, time_unit: str | None) -> DataFrame:
    from stretto.spark.streaming.operator import owner_of

    assert options.buckets is not None
    follows, behind = behind_of((one.events for one in call.sources.values()), options.disorder)
    settings = Settings(
        call.groups.vs, None, time_unit, options.late, None, 0, options.buckets, behind=behind, follows=follows
    )
    task = asdict(call.groups)
    owner = owner_of(task, settings)
    name = metrics_name(owner)
    parts = []
    late: list[pa.Field] = [pa.field("source", pa.string())]
    for number, (source, one) in enumerate(call.sources.items()):
        marked = _marked(one, time_unit, options.disorder)
        rows = observed(marked, f"{name}:in:{number}", one.key_columns)
        parts.append(_packed(one, rows, options))
        late.append(pa.field(source, pa.struct(list(one.schema))))
    packed = reduce(lambda left, right: left.union(right), parts)
    return processed(packed, task, settings, owner=owner, result=call.groups.schema, late=pa.schema(late))


def _marked(source: Source, time_unit: str | None, delay: str | None) -> DataFrame:
    """The rows with a watermark on their times: retractions come with the end that they give."""
    from pyspark.sql import functions as F

    events, vs, ve_new = source.events, source.columns["vs"], source.columns.get("ve_new")
    if ve_new is None or marked_columns(events):
        return watermarked(events, vs, time_unit, delay)
    return watermarked(events.withColumn(_MOMENT, F.coalesce(column(ve_new), column(vs))), _MOMENT, time_unit, delay)
