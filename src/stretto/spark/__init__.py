"""stretto on Spark: the same queries over DataFrames (needs ``pip install 'stretto[spark]'``).

::

    from stretto import spark

    matches = spark.match(df, "SELECT * FROM S WHERE A ; B PARTITION BY [user]", time="ts")
"""

from stretto.spark.batch.explain import explain
from stretto.spark.call import match
from stretto.spark.current import current, with_match_id
from stretto.spark.dataflow.run import dataflow
from stretto.spark.files import read
from stretto.spark.kernels import receive
from stretto.spark.patterns import match_patterns
from stretto.spark.session import session
from stretto.spark.statement import compile_sql, sql
from stretto.spark.streaming.progress import buckets, metrics, progress_line, status, unwatch, watch
from stretto.spark.table_functions.query import register
from stretto.spark.why_not import why_not

__all__ = [
    "buckets",
    "compile_sql",
    "current",
    "dataflow",
    "explain",
    "match",
    "match_patterns",
    "metrics",
    "progress_line",
    "read",
    "register",
    "session",
    "sql",
    "status",
    "unwatch",
    "watch",
    "why_not",
    "with_match_id",
]

receive()


def __dir__() -> list[str]:
    """What is public, and no module that happens to be imported."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
