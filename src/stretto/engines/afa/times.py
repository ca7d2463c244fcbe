"""Times as ticks: integers in the unit of the time attribute (days for dates)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.column_types import time_hint
from stretto.columns.vectorized import ticks_of
from stretto.errors import DataError, OptionError
from stretto.times import check_clock

__all__ = ["as_times", "tick_of", "ticks", "width"]

I64 = NDArray[np.int64]

#: Times beyond this cannot be added to a window in 64 bits.
MOST = 1 << 62


def ticks(column: pa.Array, name: str, first_row: int) -> I64:
    """A column of times.

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
    types = pa.types
    return bool(types.is_integer(kind) or types.is_timestamp(kind) or types.is_date(kind))


def as_times(values: I64, kind: pa.DataType, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Ticks as a column of times; NULL where ``missing``."""
    if pa.types.is_date32(kind):
        return pa.array(values.astype(np.int32), pa.int32(), mask=missing).cast(kind)
    return pa.array(values, pa.int64(), mask=missing).cast(kind)


def tick_of(time: Any, kind: pa.DataType, name: str) -> int:
    """One time that a user gives."""
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


def width(window: int | dt.timedelta | None, kind: pa.DataType, name: str) -> int | None:
    """A window in ticks.

    Raises
    ------
    OptionError
        A duration for integer times, less than a tick, not positive, or above 2^62 ticks.
    """
    if window is None:
        return None
    if isinstance(window, dt.timedelta):
        micros = window // dt.timedelta(microseconds=1)
        if pa.types.is_timestamp(kind):
            per = int(ticks_of(kind))
        elif pa.types.is_date64(kind):
            per = 10**3
        elif pa.types.is_date32(kind):
            found, rest = divmod(micros, 86_400 * 10**6)
            if rest:
                raise OptionError(f"a window of {window} over '{name}', which counts days")
            return _fitting(found, kind, name)
        else:
            raise OptionError(
                f"a window of {window} over '{name}', which is {kind}: give the window in its unit, as an integer"
            )
        found, rest = divmod(micros * per, 10**6)
        if rest:
            raise OptionError(f"a window of {window} is no whole number of '{name}' ticks ({kind.unit})")
        return _fitting(found, kind, name)
    return _fitting(window, kind, name)


def _fitting(window: int, kind: pa.DataType, name: str) -> int:
    if window <= 0:
        raise OptionError(f"a window of {window}: an event must contribute for some time")
    if window > MOST:
        raise OptionError(
            f"the window is {window} units of '{name}' ({kind}), and the greatest is 2^62 ({MOST}); window=None: there is none"
        )
    return window
