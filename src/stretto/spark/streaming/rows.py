"""``MATCH_RECOGNIZE`` over a streaming DataFrame: rows in buckets of their keys, which the watermark releases in order."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from stretto.errors import OptionError
from stretto.query.row_pattern import BoundRows
from stretto.spark.compat import needs
from stretto.spark.frames import column
from stretto.spark.options import Continuous
from stretto.spark.streaming.query import Flow, marked_columns, run, settings_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("stretto")


def explained(bound: BoundRows) -> str:
    """How Spark runs a clause over a stream, in words."""
    keys = ", ".join(bound.parsed.partition_by)
    buckets = f"buckets of {keys}" if keys else "one bucket: without PARTITION BY nothing runs side by side"
    travel = ", ".join(bound.schema.names) or "no columns"
    return f"{buckets}, whose rows wait for the watermark; matches come when they are final\nto the workers travel {travel}"


def recognized(rows: DataFrame, bound: BoundRows, *, late: str = "drop") -> DataFrame:
    """What a clause gives over a streaming DataFrame (append mode); of its columns those travel to which the clause is bound.

    Raises
    ------
    OptionError
        ORDER BY does not begin with the column of the watermark, upwards.
    """
    needs("MATCH_RECOGNIZE over a stream", 4, 0)
    query = bound.parsed
    marked = marked_columns(rows)
    if not marked:
        raise OptionError(
            "MATCH_RECOGNIZE reads a streaming table without a watermark: before the table is made a view, "
            "df.withWatermark('ts', '10 seconds') says how late a row may be, on the column with which ORDER BY begins. What a "
            "clause gives has none, so that no other clause reads it"
        )
    if not query.order_by or query.order_by[0].column != marked[0] or query.order_by[0].descending:
        raise OptionError(
            f"MATCH_RECOGNIZE reads a stream in the order of its watermark, which is on '{marked[0]}': let ORDER BY begin with it, "
            "upwards"
        )
    keys = query.partition_by
    if not keys:
        log.warning("MATCH_RECOGNIZE without PARTITION BY runs in one ordered state, in one task. Add PARTITION BY")
    kinds = dict(zip(bound.schema.names, bound.schema.types, strict=True))
    task = {"clause": query.text, "schema": bound.schema.serialize().to_pybytes()}
    hashed = tuple(column(name) for name in keys)
    flow = Flow(rows, kinds, hashed, None, task, bound.output, asked=())  # NULL is a key like others
    roles = (None, marked[0], None, None)
    return run(flow, settings_of(rows, roles, None, Continuous(late=late), alone=not keys))
