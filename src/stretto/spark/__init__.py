"""stretto on Spark: the same queries over DataFrames (needs ``pip install 'stretto[spark]'``).

::

    from stretto import spark

    matches = spark.match(df, "SELECT * FROM S WHERE A ; B PARTITION BY [user]", time="ts")
"""

from importlib import import_module
from typing import TYPE_CHECKING

from stretto.spark.compat import worker_files

if TYPE_CHECKING:
    from stretto.spark.asking import why_not
    from stretto.spark.batch.explain import explain
    from stretto.spark.call import match
    from stretto.spark.dataflows.run import dataflow
    from stretto.spark.frames import read
    from stretto.spark.patterns import match_patterns
    from stretto.spark.revised import current, with_match_id
    from stretto.spark.sessions import session
    from stretto.spark.statement import compile_sql, sql
    from stretto.spark.streaming.progress import buckets, metrics, progress_line, status, unwatch, watch
    from stretto.spark.table_functions.query import register

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

#: Where what is public lies, in this package. It is imported when it is first used: a task needs a part of it.
_HOMES = {
    "batch.explain": ["explain"],
    "call": ["match"],
    "revised": ["current", "with_match_id"],
    "dataflows.run": ["dataflow"],
    "frames": ["read"],
    "patterns": ["match_patterns"],
    "sessions": ["session"],
    "statement": ["compile_sql", "sql"],
    "streaming.progress": ["buckets", "metrics", "progress_line", "status", "unwatch", "watch"],
    "table_functions.query": ["register"],
    "asking": ["why_not"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

if worker_files() is not None:
    from stretto.spark.kernels import receive

    receive()


def __getattr__(name: str) -> object:
    """What is public is imported when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'stretto.spark' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(f"stretto.spark.{_HOME[name]}"), name)
    return found


def __dir__() -> list[str]:
    """What is public, and no module that happens to be imported."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
