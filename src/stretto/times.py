"""Moments, which have a time zone, and what some clock shows, which has none: neither is taken for the other."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["check_clock"]


def check_clock(value: Any, kind: pa.DataType) -> None:
    """Whether a time that a caller gives is of the same sort as those of a column; Arrow takes the one for the other.

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
