"""Times as Spark sees them: numbers of the engine as literals of a column's type, and where a time lies between borders.

Columns are compared as they are; a cast could round.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from stretto.times import DAY

if TYPE_CHECKING:
    from pyspark.sql import Column

_INT64 = 1 << 63
_WIDE = Context(prec=80)


def comparable(kind: pa.DataType) -> bool:
    """Whether times of a type can be compared with literals exactly."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date32(kind)
        or (types.is_timestamp(kind) and kind.unit == "us")
    )


def place(time: Column, kind: pa.DataType, borders: Sequence[int | float | None]) -> Column:
    """How many of the ascending ``borders`` a time is at or behind. ``None`` is before all times; NULL is before all borders.

    A tree of comparisons: its depth, and the work for a row, is the logarithm of their number.
    """
    columns = [None if border is None else _literal(kind, border) for border in borders]
    passed = sum(one is None for one in columns)
    return _search(time, [one for one in columns if one is not None], passed)


def behind(time: Column, kind: pa.DataType, border: int | float) -> Column:
    """Whether a time is at or behind a border; NULL is neither that nor before it."""
    from pyspark.sql import functions as F

    literal = _literal(kind, border)
    return F.lit(True) if literal is None else time >= literal


def _search(time: Column, borders: Sequence[Column], passed: int) -> Column:
    from pyspark.sql import functions as F

    if not borders:
        return F.lit(passed)
    half = len(borders) // 2
    behind = _search(time, borders[half + 1 :], passed + half + 1)
    return F.when(time >= borders[half], behind).otherwise(_search(time, borders[:half], passed))


def _literal(kind: pa.DataType, value: int | float) -> Column | None:
    """The literal of a time; ``None`` where it is before all times of the type. Between two times: the one before."""
    from pyspark.sql import functions as F

    if isinstance(value, float):
        return F.lit(value)
    if value < -_INT64:
        return None
    if pa.types.is_date32(kind):
        days = value // DAY
        return F.date_from_unix_date(F.lit(days)) if days >= -(1 << 31) else None
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            return F.timestamp_micros(F.lit(value).cast("bigint"))
        days, micros = divmod(value, DAY * 10**6)
        seconds = Decimal(micros).scaleb(-6, _WIDE)
        since = F.make_dt_interval(F.lit(days), F.lit(0), F.lit(0), F.lit(seconds))
        return F.lit("1970-01-01").cast("timestamp_ntz") + since
    if pa.types.is_decimal(kind):
        if value <= -(10**kind.precision):
            return None
        exact = Decimal(value).scaleb(-kind.scale, _WIDE)
        return F.lit(f"{exact:f}").cast(f"decimal({kind.precision},{kind.scale})")
    return F.lit(value).cast("bigint")
