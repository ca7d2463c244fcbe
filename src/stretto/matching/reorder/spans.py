"""Spans of time that users give, in ticks of a time column."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.errors import OptionError, QueryError
from stretto.languages.afa import read_window
from stretto.times import MOST, ticks_in

#: What may become of late events.
LATE = ("error", "drop", "side")


def check_late(late: str, allowed: tuple[str, ...] = LATE) -> None:
    """Raise an :class:`OptionError` unless ``late`` says what becomes of late events."""
    if late not in allowed:
        raise OptionError(f"late={late!r}: expected {' or '.join(map(repr, allowed))}")


#: Spans beyond this cannot be added to times in 64 bits.
LONGEST = MOST - 1


def check_span(value: Any, what: str) -> int | float | dt.timedelta:
    """A span of time that a user gives, apart from the type of the time.

    Raises
    ------
    OptionError
        It is none, or below zero.

    Examples
    --------
    >>> check_span("5 seconds", "disorder"), check_span(3, "disorder")
    (datetime.timedelta(seconds=5), 3)
    """
    found = value
    if isinstance(value, str):
        try:
            found = read_window(value)
        except QueryError as error:
            raise _no_span(value, what) from error
    if isinstance(found, bool | np.bool_) or not isinstance(found, int | float | dt.timedelta) or found != found:
        raise _no_span(value, what)
    if found < dt.timedelta() if isinstance(found, dt.timedelta) else found < 0:
        raise OptionError(f"{what}={value!r}: a span of time is not negative")
    return found


def _no_span(value: Any, what: str) -> OptionError:
    return OptionError(
        f"{what}={value!r}: expected ticks of the time column, a text such as '5 seconds', or a timedelta"
    )


def span(value: Any, what: str, kind: pa.DataType, name: str, unit: str | None = None) -> int | float | None:
    """A span of time in ticks of a time column, which of decimals are ones; ``None``: without end.

    Raises
    ------
    OptionError
        A duration for times without a unit, less than a tick, or 2^62 ticks and more.

    Examples
    --------
    >>> span("5 seconds", "disorder", pa.timestamp("ms"), "t"), span(7, "disorder", pa.int64(), "t")
    (5000, 7)
    """
    found = check_span(value, what)
    if found == math.inf:
        return None
    real = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not isinstance(found, dt.timedelta):
        if isinstance(found, float) and not real:
            if not found.is_integer():
                raise OptionError(f"{what}={value!r}: '{name}' is {kind} and has whole ticks")
            found = int(found)
        return found if real else _fitting(int(found), value, what, name, kind)
    ticks = ticks_in(found, kind, unit)
    if ticks is None:
        raise OptionError(
            f"{what}={value!r}: '{name}' is {kind}, whose unit is not known: give the span in ticks, or time_unit='s'"
        )
    if real:
        return float(ticks)
    if ticks.denominator > 1 and pa.types.is_date32(kind):
        raise OptionError(f"{what}={value!r}: '{name}' counts days")
    if ticks.denominator > 1:
        own = kind.unit if pa.types.is_timestamp(kind) else "ms" if pa.types.is_date64(kind) else unit
        raise OptionError(f"{what}={value!r} is no whole number of '{name}' ticks ({own})")
    return _fitting(int(ticks), value, what, name, kind)


def _fitting(ticks: int, value: Any, what: str, name: str, kind: pa.DataType) -> int:
    if ticks > LONGEST:
        raise OptionError(
            f"{what}={value!r} is {ticks} units of '{name}' ({kind}), and at most 2^62 − 1 ({LONGEST}) fit; math.inf is without end"
        )
    return ticks
