"""Counts and sums over all matches, whose keys went to several tasks: Spark makes one row of theirs.

Each task adds up over its own keys. Where ``GROUP BY`` puts keys together that may be in several tasks, numbers and sums are added
up, and of the least and greatest values the least and greatest are taken. Means are not made of means: they are refused by then.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from stretto.query.passes.bind_totals import BoundTotal
from stretto.query.totals import Extent, Function
from stretto.spark.frames import column, spark_schema
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
