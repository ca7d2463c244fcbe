"""What a stream holds, counted: the tables of ``Matcher.held`` and of ``Matcher.partial_matches(by=…)``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import OptionError, hinted


def check_most(call: str, most: int) -> None:
    """Raise an :class:`OptionError` for a number of rows that is none."""
    if most < 1:
        raise OptionError(f"{call}(most={most}): give a positive number")


def check_columns(call: str, by: Sequence[str], known: Collection[str]) -> None:
    """Raise an :class:`OptionError` for a column that is not known."""
    for name in by:
        if name not in known:
            raise OptionError(hinted(f"{call}(by=…): no column '{name}' to count by", name, known, kind="column"))


def counted(table: pa.Table, by: Sequence[str], count: str, least: Mapping[str, str]) -> pa.Table:
    """How many rows a table has by some columns, the most first, and the least values of other columns under new names.

    A new name that is one of the columns ends with a line.

    >>> table = pa.table({"k": ["a", "b", "b"], "t": [1, 3, 2]})
    >>> counted(table, ["k"], "events", {"t": "oldest"}).to_pylist()
    [{'k': 'b', 'events': 2, 'oldest': 2}, {'k': 'a', 'events': 1, 'oldest': 1}]
    """
    found = table.group_by([*by], use_threads=False).aggregate([([], "count_all"), *((name, "min") for name in least)])
    shown = found.select([*by, "count_all", *(f"{name}_min" for name in least)])
    order = pc.sort_indices(shown, sort_keys=[("count_all", "descending")])
    names = [f"{name}_" if name in by else name for name in (count, *least.values())]
    return shown.rename_columns([*by, *names]).take(order)


def summary(stats: Mapping[str, int], events: int, punctuation: Any, times: pa.ChunkedArray | None) -> pa.Table:
    """All that is held, as one row; ``times``: when what is held began, or was; ``None``: there is no time."""
    numbers = {"waiting": stats.get("waiting", 0), "events": events}
    numbers |= {"partitions": stats["partitions"], "bytes": stats["bytes"]}
    columns = {name: pa.array([number], pa.int64()) for name, number in numbers.items()}
    if times is not None:
        # A punctuation may be less than any time that a type of few bits, or without a sign, has.
        kind = pa.int64() if pa.types.is_integer(times.type) else times.type
        first = {"punctuation": pa.array([punctuation], kind)}
        columns = first | columns | {"oldest": pa.repeat(pc.min(times), 1)}
    return pa.table(columns)


def plain(table: pa.Table) -> pa.Table:
    """The same without dictionaries, of which pieces have their own."""
    kinds = [(own.name, own.type.value_type if pa.types.is_dictionary(own.type) else own.type) for own in table.schema]
    return table.cast(pa.schema(kinds))
