"""Values of events as JSON: what a page can show without a loss."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: The greatest integer up to which numbers of JavaScript are exact.
_EXACT = 2**53


def as_value(value: Any) -> Any:
    """A value of Arrow as one of JSON: times in ISO form; what JSON or JavaScript does not have, as text.

    >>> as_value([1, 2**60, float("nan"), b"ab"])
    [1, '1152921504606846976', 'nan', '6162']
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -_EXACT <= value <= _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(name): as_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_value(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return str(value)


def as_numbers(column: pa.ChunkedArray) -> list[float | int | None]:
    """The places of a column's values on an axis: numbers as they are, times as milliseconds since 1970."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        ticks = pc.cast(column, pa.int64()).to_pylist()
        in_milliseconds = {"s": 1e-3, "ms": 1, "us": 1e3, "ns": 1e6}[kind.unit]
        return [None if tick is None else tick / in_milliseconds for tick in ticks]
    if pa.types.is_date(kind):
        days = pc.cast(pc.cast(column, pa.date32()), pa.int32()).to_pylist()
        return [None if day is None else day * 86_400_000 for day in days]
    found: list[float | int | None] = pc.cast(column, pa.float64(), safe=False).to_pylist()
    return found
