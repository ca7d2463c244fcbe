"""What a stream holds, counted: the tables of ``Matcher.held`` and of ``Matcher.partial_matches(by=…)``.

Events of one key: which columns tell it, and which events have its values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import OptionError, hinted
from stretto.events import require


def named_keys(names: tuple[str, ...], key: Any, known: Collection[str]) -> dict[str, Any]:
    """The columns by which events are chosen, and their values, of a query with these partition attributes.

    >>> named_keys(("id",), 7, ["id", "x"]), named_keys((), {"x": 1}, ["id", "x"])
    ({'id': 7}, {'x': 1})
    """
    if key is None:
        return {}
    if not isinstance(key, Mapping):
        if len(names) != 1 or names[0] not in known:
            told = (
                f"the query is partitioned by {', '.join(names)}" if names else "the query has no partition attribute"
            )
            raise OptionError(f"key={key!r}: {told}; name columns and their values: key={{'column': {key!r}}}")
        key = {names[0]: key}
    for name in key:
        require(known, name, "key")
    return dict(key)


def has_key(column: pa.ChunkedArray, name: str, value: Any) -> pa.ChunkedArray:
    """Which events have a value of a key; of NULL those that have none."""
    if value is None:
        return pc.is_null(column)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return pc.fill_null(pc.equal(column.cast(kind), as_in(value, kind, f"key={{{name!r}: …}}")), False)


def as_in(given: Any, kind: pa.DataType, where: str) -> pa.Scalar:
    """A value as one of a column."""
    try:
        return pa.scalar(given).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError) as error:
        raise OptionError(f"{where} {given!r} is no {kind}, as the column is: {error}") from None


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
