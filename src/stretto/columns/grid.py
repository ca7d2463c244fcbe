"""Constants on the *grid* of a column: the integers for integers, the ticks of a timestamp, the last digit of a decimal.

``x < 2.5`` over integers is ``x <= 2``, so that no comparison rounds, and none converts a column.
"""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import Any

import pyarrow as pa

from stretto.times import DAY, PER_SECOND


def ticks_of(kind: pa.DataType) -> Fraction:
    """Ticks of a timestamp or date in a second."""
    return Fraction(PER_SECOND[kind.unit]) if pa.types.is_timestamp(kind) else Fraction(1, DAY)


def on_grid(constant: Any, kind: pa.DataType) -> Fraction | float:
    """Put a constant in units of an integer, decimal or time column; a float when it is not finite."""
    if isinstance(constant, float) and not math.isfinite(constant):
        return constant
    if isinstance(constant, dt.date):
        return _microseconds(constant) * ticks_of(kind) / 10**6
    if pa.types.is_decimal(kind):
        return Fraction(constant) * Fraction(10) ** int(kind.scale)
    return Fraction(constant)


def _microseconds(time: dt.date) -> int:
    """Since 1970, in UTC where the time has a zone."""
    if not isinstance(time, dt.datetime):
        return (time - dt.date(1970, 1, 1)).days * DAY * 10**6
    zero = dt.datetime(1970, 1, 1, tzinfo=time.tzinfo and dt.UTC)
    return (time - zero) // dt.timedelta(microseconds=1)


def snapped(op: str, constant: Fraction | float, low: int, high: int) -> tuple[str, int] | bool:
    """``x op constant`` for the integers x in [low, high] as a comparison with one of them, or its constant truth.

    >>> from fractions import Fraction
    >>> snapped("<", Fraction(5, 2), 0, 9), snapped("=", Fraction(5, 2), 0, 9), snapped("<", Fraction(10), 0, 9)
    (('<=', 2), False, True)
    """
    if constant != constant:
        return op == "!="
    if constant > high or constant < low:
        above = constant > high
        return op == "!=" or (op[0] == "<" if above else op[0] == ">")
    whole = math.floor(constant)
    if whole == constant:
        return op, whole
    match op:
        case "=" | "!=":
            return op == "!="
        case "<" | "<=":
            return "<=", whole
        case _:
            return ">", whole


def snapped_real(op: str, constant: int | float) -> tuple[str, float]:
    """``x op constant`` for floats x as a comparison with a float; an integer that is none lies between two."""
    try:
        near = float(constant)
    except OverflowError:
        near = math.inf if constant > 0 else -math.inf
    if near == constant or near != near:
        return op, near
    if op in ("=", "!="):
        return op, math.nan
    below = near if near < constant else math.nextafter(near, -math.inf)
    return ("<=", below) if op[0] == "<" else (">", below)
