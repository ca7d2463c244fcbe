"""Matching over batch DataFrames: rows to tasks, sorted by time inside them, one pass over Arrow.

A task's partition holds many keys, interleaved and ordered by time, and goes batch by batch through one
:class:`stretto.Matcher`: no Python code runs per key or per row, and memory is what the query's windows hold.
Which rows go to which task is decided in :mod:`stretto.spark.batch.plan`: hashed by the keys, cut into time slices, or all to one.

Slices of files that lie along the time read their own part of them (:mod:`stretto.spark.batch.survey`). Other
time slices and hashed keys go through one shuffle by one number: hashed keys have the first numbers, the slices of each
key that is cut have numbers of their own. A row goes to the slice that owns it and to those that read it as context.

Counts and sums over all matches, whose keys went to several tasks: Spark makes one row of theirs.

Each task adds up over its own keys. Where ``GROUP BY`` puts keys together that may be in several tasks, numbers and sums are added
up, and of the least and greatest values the least and greatest are taken. Means are not made of means: they are refused by then.
"""

from __future__ import annotations

import logging
import math
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from stretto.frame import arrow_bytes
from stretto.matching.compiled import Query
from stretto.query.eql import EqlQuery, Mode
from stretto.query.passes.bind_totals import BoundTotal
from stretto.query.query import Consume
from stretto.query.totals import Extent, Function
from stretto.spark.batch import plan as plans
from stretto.spark.batch.plan import Plan
from stretto.spark.batch.slices import Slices, place
from stretto.spark.batch.survey import in_slices, key_hash, side_by_side
from stretto.spark.batch.worker import CONTEXT, MARK_BITS, REACHES, run_partition
from stretto.spark.columns import in_streams
from stretto.spark.compat import described, in_short, named, repartition_by_number, to_arrow
from stretto.spark.frames import column, spark_schema
from stretto.spark.kernels import ship
from stretto.spark.prepared import Prepared

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_MOST = 2**63 - 1


def added_up(found: DataFrame, call: Prepared) -> DataFrame:
    """The rows of a call, of those that its tasks give: the same where each row is about keys of one task.

    The one row of a whole table without groups is always there, also where no task had an event.
    """
    totals = call.totals
    if totals is None or not (call.adds_up or (totals.scope.extent is Extent.TABLE and not totals.scope.groups)):
        return found
    shown = list(call.result)
    first = len(shown) - len(totals.items)
    items = zip(totals.items, shown[first:], strict=True)
    return found.groupBy(*(column(one.name) for one in shown[:first])).agg(*(_item(*one) for one in items))


def _item(item: BoundTotal, shown: pa.Field) -> Column:
    """An item of several tasks, which is a column of each."""
    from pyspark.sql import functions as F

    own = column(shown.name)
    kind = spark_schema(pa.schema([shown])).fields[0].dataType
    match item.function:
        case Function.COUNT | Function.SUM:
            made = _sum(item, own, shown.type)
            made = F.coalesce(made, F.lit(0)) if item.function is Function.COUNT else made
        case Function.MIN | Function.MAX:
            made = (F.min if item.function is Function.MIN else F.max)(own)
            if pa.types.is_floating(shown.type):  # NaN is the greatest to Spark
                made = F.when(F.max(F.isnan(own)), F.lit(math.nan)).otherwise(made)
        case _:
            made = F.first(own)  # there is one task
    return made.cast(kind).alias(shown.name)


def _sum(item: BoundTotal, own: Column, kind: pa.DataType) -> Column:
    """A sum; of numbers that are exact an error, when Spark runs, where 64 bits do not hold it."""
    from pyspark.sql import functions as F

    if pa.types.is_floating(kind) or pa.types.is_duration(kind):
        return F.sum(own)
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    # Spark adds up in 64 bits, and where it is not told to be exact leaves them silently.
    found = F.sum(own.cast(f"decimal(38, {scale})"))
    most = F.lit(Decimal(_MOST).scaleb(-scale))
    beyond = F.raise_error(
        F.lit(
            f"column '{item.name}': {item.function} of all matches leaves 64 bits; write CAST({item.function}(…) AS DOUBLE), "
            "which counts in floating point, or a narrower WITHIN"
        )
    )
    return F.when(found > most, beyond).when(found < -most - F.lit(Decimal(1).scaleb(-scale)), beyond).otherwise(found)


log = logging.getLogger("stretto")


def match(call: Prepared, *, partitions: int | None, slices: int | None) -> DataFrame:
    """The matches of a checked call as a DataFrame; ``partitions`` and ``slices`` as in :func:`stretto.spark.match`."""
    with described(call.events.sparkSession, f"stretto, looking at the events of {in_short(call.query.text)}"):
        plan = plans.make(call, partitions=partitions, slices=slices)
        latest = _latest(call) if call.drops or call.times_out else None
    _warn(call, plan)
    worker = named(
        partial(run_partition, **call.task, marked=plan.cuts, completes=call.completes, latest=latest), call.query.text
    )
    ship(call.events.sparkSession, call.start)
    kind = spark_schema(call.layout.schema())
    if plan.scans and plan.slices is not None:
        return side_by_side([rows.mapInArrow(worker, kind) for rows in in_slices(call, plan.rows, plan.slices)])
    ordered = _cut(call, plan) if plan.cuts else _whole(call, plan)
    return added_up(ordered.mapInArrow(worker, kind), call)


def _latest(call: Prepared) -> bytes | None:
    """The latest time of all events of the stream, also without a key, and whether or not they can matter, as a table of one row.

    ``None``: there are no events.
    """
    from pyspark.sql import functions as F

    time = call.roles[1]
    rows, member = call.events, in_streams(call.query)
    if member is not True:
        rows = rows.filter(F.lit(False) if member is False else member)
    return latest_of(rows, time, call.columns[time])


def latest_of(rows: DataFrame, time: str, kind: pa.DataType) -> bytes | None:
    """The latest time of some rows, as a table of one row; ``None``: there are none."""
    from pyspark.sql import functions as F

    found = to_arrow(rows.agg(F.max(column(time)).alias(time))).cast(pa.schema([(time, kind)]))
    return None if found.column(0).null_count else arrow_bytes(found).to_pybytes()


def _warn(call: Prepared, plan: Plan) -> None:
    """Say what keeps a query from scaling."""
    if call.query.window is None and plan.keyed:
        log.warning(
            "the query has no WITHIN: each key is one ordered pass in one task, its partial matches are kept until no event "
            "can complete them, and a frequent key cannot be cut in time. Add WITHIN if a match has a longest duration"
        )
    elif plan.bound and not plan.keyed:
        log.warning(
            "the query runs in one task, on one core whatever the cluster has: %s. %s, so that Spark can run its parts side "
            "by side",
            plan.bound,
            _advice(call.query),
        )


def _advice_for_eql(query: Query) -> str:
    assert isinstance(query.parsed, EqlQuery)
    if query.parsed.mode in (Mode.SAMPLE, Mode.JOIN):
        return "Add by with one field for all events"
    return "Add with maxspan" if query.partition_by else "Add by with one field for all events, or with maxspan"


def _advice(query: Query) -> str:
    """What would let a query scale that runs in one task."""
    if query.parsed.asked is not None:
        return _advice_for_asked(query)
    if query.language == "eql":
        return _advice_for_eql(query)
    if query.language == "sase":
        return (
            "Add an equivalence test [attribute], or WITHIN where there is none"
            if not query.partition_by
            else "Add WITHIN"
        )
    keys = "" if query.partition_by else "Add PARTITION BY, or "
    if query.window is None:
        found = keys + "add WITHIN" if query.consume is Consume.NONE else keys + "leave out CONSUME BY and add WITHIN"
    elif query.consume is Consume.ANY and query.partition_by:
        found = "let it CONSUME BY PARTITION"
    elif query.consume is not Consume.NONE:
        found = keys + "leave out CONSUME BY"
    elif query.limit is not None:
        found = keys + "ask for output='positions' or 'summary'"
    else:
        found = keys + "measure the window by the time"
    return found[0].upper() + found[1:]


def _advice_for_asked(query: Query) -> str:
    """What would let a query scale whose matches of a key must be in one task."""
    if query.language == "sase":
        return (
            "Choose another strategy than strict contiguity"
            if query.partition_by
            else "Add an equivalence test [attribute]"
        )
    return "Let it CONSUME BY PARTITION" if query.partition_by else "Add PARTITION BY"


def _whole(call: Prepared, plan: Plan) -> DataFrame:
    """Each key in one partition, or all rows in one; every partition ordered by time."""
    rows = plan.rows
    if not plan.keyed:
        rows = rows.repartition(1)
    else:
        keys = [column(name) for name in call.keys]
        rows = rows.repartition(*keys) if plan.tasks is None else rows.repartition(plan.tasks, *keys)
    # mapInArrow looks columns up by name and takes a dot for a field: the worker knows them by place.
    plain = not any(character in name for name in call.columns for character in ".`")
    shown = [column(name) if plain else column(name).alias(f"_{i}") for i, name in enumerate(call.columns)]
    return rows.sortWithinPartitions(*map(column, call.order)).select(*shown)


def _cut(call: Prepared, plan: Plan) -> DataFrame:
    """Each slice in a partition, ordered by time, with a column of marks behind the others."""
    from pyspark.sql import functions as F

    kind = call.columns[call.roles[1]]
    if plan.slices is not None:
        tasks = plan.slices.count
        own, last = _ids(call, plan.slices, kind, 0)
        reaches = F.col("_task") >= _first_reaching(plan.slices)
    else:
        assert plan.tasks is not None
        tasks = plan.tasks
        key = key_hash(call.keys)
        own = last = F.pmod(key, F.lit(tasks)).cast("int")
        for heavy in plan.heavy:
            first_own, first_last = _ids(call, heavy.slices, kind, tasks)
            mine = key == F.lit(heavy.hash).cast("bigint")
            own, last = F.when(mine, first_own).otherwise(own), F.when(mine, first_last).otherwise(last)
            tasks += heavy.slices.count
        reaches = F.lit(False)
    names = list(dict.fromkeys([*call.columns, *call.order]))
    renamed = {name: f"_{i}" for i, name in enumerate(names)}
    rows = plan.rows.select(
        *(column(name).alias(short) for name, short in renamed.items()), own.alias("_own"), last.alias("_last")
    )
    rows = rows.withColumn("_task", F.explode(F.sequence("_own", F.greatest("_own", "_last"))))
    is_context = F.when(F.col("_task") > F.col("_own"), F.lit(CONTEXT)).otherwise(F.lit(0))
    mark = is_context + F.when(reaches, F.lit(REACHES)).otherwise(F.lit(0))
    # One number for both: every column makes the shuffle wider.
    place_and_mark = (F.col("_task") * F.lit(1 << MARK_BITS) + mark).alias("_mark")
    rows = rows.select(*renamed.values(), place_and_mark)
    rows = repartition_by_number(rows, tasks, F.shiftright("_mark", MARK_BITS))
    order = [renamed[name] for name in call.order]
    return rows.sortWithinPartitions(*order).select(*(renamed[name] for name in call.columns), "_mark")


def _ids(call: Prepared, slices: Slices, kind: pa.DataType, first: int) -> tuple[Column, Column]:
    """The slice that owns a row, and the last one that reads it, numbered from ``first`` on; the latter may be less."""
    time = column(call.roles[1])
    return place(time, kind, slices.begins) + first, place(time, kind, slices.lows) + first


def _first_reaching(slices: Slices) -> int:
    """The first slice whose context does not begin with the stream."""
    return 1 + sum(low is None for low in slices.lows)
