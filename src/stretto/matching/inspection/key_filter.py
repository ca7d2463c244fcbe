"""Events of one key: which columns tell it, and which events have its values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import OptionError
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
