"""Times as numbers: units, ticks, and the greatest that fit.

A *tick* is one of the integers that a time column is kept as: the unit of a timestamp, a millisecond of a ``date64``, a day of a
``date32``; of a column of integers it is what the caller says. Moments, which have a time zone, and what some clock shows, which
has none, are not taken for each other.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.column_types import time_hint
from stretto.errors import DataError, OptionError

#: The units of timestamps, and of integers that are times: how many are in a second.
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

#: Seconds of a day.
DAY = 86_400

#: Units of durations as people write them, in seconds.
SECONDS = {
    unit: Decimal(size)
    for units, size in (
        ("ns nanosecond nanoseconds", "1e-9"),
        ("us µs μs microsecond microseconds", "1e-6"),
        ("ms millisecond milliseconds", "1e-3"),
        ("s sec secs second seconds", "1"),
        ("m min mins minute minutes", "60"),
        ("h hr hrs hour hours", "3600"),
        ("d day days", "86400"),
        ("w week weeks", "604800"),
    )
    for unit in units.split()
}

#: The greatest magnitude of a time and of a window: sums and differences of two of them fit into 64 bits.
MOST = 1 << 62

#: Later than every time that an event can have.
ALL_TIME = MOST - 1

#: The end of what has none, later than all times; and what is before them.
FOREVER = (1 << 63) - 1
BEFORE_ALL = -FOREVER


# ---- Units


def spoken(size: float) -> str:
    """A duration in the units in which one says it.

    >>> spoken(723), spoken(0.25), spoken(86_400)
    ('12 min 3 s', '0.25 s', '1 d')
    """
    if size < 60:
        return f"{size:g} s"
    parts, left = [], size
    for name, unit in (("d", 86_400), ("h", 3600), ("min", 60)):
        whole, left = divmod(left, unit)
        parts += [f"{whole:.0f} {name}"] if whole else []
    return " ".join([*parts, *([f"{left:g} s"] if left else [])])


def ticks_per_second(kind: pa.DataType, unit: str | None = None) -> Fraction | None:
    """Tell how many ticks of a time column are in a second; ``unit`` is that of numbers, and ``None``: not known.

    >>> ticks_per_second(pa.timestamp("ms")), ticks_per_second(pa.date32()), ticks_per_second(pa.int64())
    (Fraction(1000, 1), Fraction(1, 86400), None)
    """
    if pa.types.is_timestamp(kind):
        unit = kind.unit
    elif pa.types.is_date64(kind):
        unit = "ms"
    elif pa.types.is_date32(kind):
        return Fraction(1, DAY)
    return None if unit is None else Fraction(PER_SECOND[unit])


def ticks_in(duration: dt.timedelta, kind: pa.DataType, unit: str | None = None) -> Fraction | None:
    """Give a duration in ticks of a time column; ``None``: their unit is not known."""
    per_second = ticks_per_second(kind, unit)
    return None if per_second is None else per_second * (duration // dt.timedelta(microseconds=1)) / 10**6


def width(window: int | dt.timedelta | None, kind: pa.DataType, name: str) -> int | None:
    """Give a window in ticks.

    Raises
    ------
    OptionError
        A duration for integer times, less than a tick, not positive, or above 2^62 ticks.
    """
    if window is None:
        return None
    if isinstance(window, dt.timedelta):
        found = ticks_in(window, kind)
        if found is None:
            raise OptionError(
                f"a window of {window} over '{name}', which is {kind}: give the window in its unit, as an integer"
            )
        if found.denominator > 1 and pa.types.is_date32(kind):
            raise OptionError(f"a window of {window} over '{name}', which counts days")
        if found.denominator > 1:
            raise OptionError(f"a window of {window} is no whole number of '{name}' ticks ({kind.unit})")
        window = int(found)
    if window <= 0:
        raise OptionError(f"a window of {window}: an event must contribute for some time")
    if window > MOST:
        raise OptionError(
            f"the window is {window} units of '{name}' ({kind}), and the greatest is 2^62 ({MOST}); window=None: there is none"
        )
    return window


# ---- Columns


def ticks(column: pa.Array, name: str, first_row: int) -> I64:
    """Read a column of times as ticks.

    Raises
    ------
    DataError
        A NULL, a type that is no time, or a value beyond ±2^62; with its row.
    """
    if column.null_count:
        at = int(np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False))[0])
        raise DataError(f"'{name}' orders the stream and is NULL at row {first_row + at}")
    kind = column.type
    if not _is_time(kind):
        raise DataError(f"'{name}' is {kind}: a time is an integer, a date or a timestamp here{time_hint(name, kind)}")
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    try:
        values = np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid as error:
        raise DataError(f"'{name}' does not fit into 64 bits: {error}") from error
    beyond = (values > MOST) | (values < -MOST)
    if beyond.any():
        at = int(beyond.argmax())
        raise DataError(f"'{name}' is {values[at]} at row {first_row + at}: beyond ±2^62, where lifetimes overflow")
    return values


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def as_times(values: I64, kind: pa.DataType, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Write ticks as a column of times; NULL where ``missing``.

    Raises
    ------
    DataError
        The type does not hold one of them.
    """
    if pa.types.is_date32(kind):
        return pa.array(values.astype(np.int32), pa.int32(), mask=missing).cast(kind)
    try:
        return pa.array(values, pa.int64(), mask=missing).cast(kind)
    except pa.ArrowInvalid as error:
        raise DataError(f"a time leaves {kind}, the type of the time column: {error}; give times of 64 bits") from error


def shown_time(value: pa.Scalar) -> Any:
    """A value as errors show it: as Python has it, and as its number where Python's times have no such one.

    >>> shown_time(pa.scalar(1 << 60, pa.timestamp("us")))
    1152921504606846976
    """
    try:
        return value.as_py()
    except OverflowError:
        return value.value
    except ValueError:  # nanoseconds, which Python's times do not have
        return value


def tick_of(time: Any, kind: pa.DataType, name: str) -> int:
    """Read one time that a user gives, as ticks."""
    try:
        check_clock(time, kind)
    except ValueError as error:
        raise OptionError(f"{time!r} is no time of '{name}', which is {kind}; {error}") from error
    try:
        if isinstance(time, bool | float):
            raise TypeError
        if time is None or not _is_time(kind):
            raise TypeError
        found = pa.array([time], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
        which = f", which is {kind}" if _is_time(kind) else ""
        raise OptionError(f"{time!r} is no time of '{name}'{which}") from error
    try:
        return int(ticks(found, name, 0)[0])
    except DataError as error:
        raise OptionError(f"{time!r} is no time of '{name}': {error}") from error


# ---- Zones


def check_clock(value: Any, kind: pa.DataType) -> None:
    """Check that a time that a caller gives is of the same sort as those of a column; Arrow takes the one for the other.

    Raises
    ------
    ValueError
        Only one of the two has a time zone; the message says what to do.

    Examples
    --------
    >>> check_clock(dt.datetime(2024, 1, 1), pa.timestamp("us"))
    >>> check_clock(dt.datetime(2024, 1, 1), pa.timestamp("us", tz="Europe/Athens"))
    Traceback (most recent call last):
        ...
    ValueError: a time with a time zone expected, not a time without one: say which, as value.replace(tzinfo=datetime.UTC) does
    """
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return
    zoned = _has_zone(value)
    if zoned is None or zoned == bool(getattr(kind, "tz", None)):
        return
    if zoned:
        raise ValueError(
            "a time without a time zone expected, not one with a time zone: give what the column's clock shows, as "
            "value.astimezone(…).replace(tzinfo=None) does"
        )
    raise ValueError(
        "a time with a time zone expected, not a time without one: say which, as value.replace(tzinfo=datetime.UTC) does"
    )


def _has_zone(value: Any) -> bool | None:
    """Whether a time has a zone; ``None``: it is no time, or a text that may tell."""
    if isinstance(value, pa.Scalar):
        if pa.types.is_timestamp(value.type):
            return bool(value.type.tz)
        return False if pa.types.is_date(value.type) else None
    if isinstance(value, dt.datetime):
        return value.tzinfo is not None
    return False if isinstance(value, dt.date | np.datetime64) else None
