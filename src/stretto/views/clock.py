"""Times of a column: as numbers that can be drawn, as short text, and the marks of an axis.

What is written under an axis.
"""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from stretto.times import ticks_per_second
from stretto.views.scene import Words
from stretto.views.text import short, width

_EDGE = 6  # pixels that are free at the borders of the picture, and between labels


def labels(marks: Iterable[Mark], x: Callable[[float], float], y: float, wide: float) -> Iterator[Words]:
    """Write the marks of an axis, but for those that would lie over the one before.

    Parameters
    ----------
    marks
        From left to right.
    x
        Where a value is.
    y, wide
        The base line of the labels, and the width of the picture.
    """
    free = float(_EDGE)
    for mark in marks:
        half = width(mark.label) / 2
        place = min(max(x(mark.value), half + _EDGE), wide - half - _EDGE)
        if place - half >= free:
            free = place + half + _EDGE
            yield Words(place, y, mark.label, "faint", "middle")


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY = 86_400

#: Distances of marks on an axis of time, in seconds, up to two weeks; behind them come months.
_STEPS = [Fraction(base, 10**power) for power in range(9, 0, -1) for base in (1, 2, 5)] + [
    Fraction(one)
    for one in (
        *(1, 2, 5, 10, 15, 30),
        *(60 * one for one in (1, 2, 5, 10, 15, 30)),
        *(3_600 * one for one in (1, 2, 3, 6, 12)),
        *(_DAY * one for one in (1, 2, 7, 14)),
    )
]
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200)


class Mark(NamedTuple):
    """A place on an axis, and what is written there."""

    value: float
    label: str


class Clock:
    """What the numbers of a column of this type mean: times of a zone, or mere numbers."""

    def __init__(self, kind: pa.DataType) -> None:
        self.per_second = ticks_per_second(kind)
        self.zone = getattr(kind, "tz", None) if self.per_second is not None else None

    @cached_property
    def _tz(self) -> dt.tzinfo:
        if self.zone is None:
            return dt.UTC
        try:
            found: dt.tzinfo = pa.lib.string_to_tzinfo(self.zone)
        except (ValueError, LookupError):  # a machine without this zone
            self.zone = "UTC"
            return dt.UTC
        return found

    def numbers(self, column: pa.Array | pa.ChunkedArray) -> list[Any]:
        """Read a column as numbers; ``None`` where it is NULL, or no finite number."""
        found: list[Any]
        if self.per_second is None:
            found = column.to_pylist()
            if not pa.types.is_integer(column.type):
                found = [None if one is None or not math.isfinite(one) else float(one) for one in found]
            return found
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        found = column.cast(pa.int64()).to_pylist()
        return found

    def moment(self, value: Any) -> dt.datetime | None:
        """Give what the clock of the zone shows; ``None`` where a calendar has no such day, or the column no times."""
        if self.per_second is None:
            return None
        try:
            return (_EPOCH + dt.timedelta(microseconds=math.floor(value / self.per_second * 10**6))).astimezone(
                self._tz
            )
        except (OverflowError, ValueError):
            return None

    def digits(self, values: Sequence[Any]) -> int:
        """Tell how exactly times must be written: −2 days, −1 minutes, 0 seconds, else digits behind the second."""
        if self.per_second is None:
            return 0
        moments = [(one, self.moment(one)) for one in values if one is not None]
        found = -2
        for value, moment in moments:
            if moment is None:
                continue
            nanos = math.floor(value / self.per_second * 10**9) % 10**9
            if nanos:
                found = max(found, 9 if nanos % 1_000 else 6 if nanos % 10**6 else 3)
            elif moment.second:
                found = max(found, 0)
            elif moment.hour or moment.minute:
                found = max(found, -1)
        return found

    def text(self, value: Any, digits: int, day: dt.date | None = None) -> str:
        """Write a time as exactly as ``digits`` says; without the date, where that is ``day``."""
        if value is None:
            return ""
        moment = self.moment(value)
        if moment is None:
            return short(value)
        if digits < -1:
            return f"{moment:%Y-%m-%d}"
        written = f"{moment:%H:%M}" if digits < 0 else f"{moment:%H:%M:%S}"
        if digits > 0:
            assert self.per_second is not None
            nanos = math.floor(value / self.per_second * 10**9) % 10**9
            written += f".{nanos:09d}"[: digits + 1]
        return written if moment.date() == day else f"{moment:%Y-%m-%d} {written}"

    # -- axes ---------------------------------------------------------------------------------------------------------

    def spread(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Widen a range a little, so that what is at its ends is seen."""
        if self.per_second is None:
            room = (high - low) / 50 or max(1, abs(low) / 10**9)
            room = room if math.isfinite(room) else high / 50 - low / 50
            return max(low - room, -sys.float_info.max), min(high + room, sys.float_info.max)
        room = max(1, math.ceil((high - low) / 50)) if high > low else max(1, math.ceil(self.per_second))
        return low - room, high + room

    def marks(self, low: Any, high: Any, most: int) -> list[Mark]:
        """Give at most so many marks between two numbers, at round places."""
        if self.per_second is None or self.moment(low) is None or self.moment(high) is None:
            return _of_numbers(low, high, most)
        fitting = (one for one in _STEPS if one * self.per_second >= 1 and (high - low) / self.per_second <= one * most)
        step = next(fitting, None)
        return self._of_months(low, high, most) if step is None else list(self._of_step(low, high, step))

    def _of_step(self, low: Any, high: Any, step: Fraction) -> Iterator[Mark]:
        assert self.per_second is not None
        first = self.moment(low)
        away = first.utcoffset() if first is not None else None
        offset = Fraction(0) if away is None else Fraction(away // dt.timedelta(microseconds=1), 10**6)
        at = math.ceil((low / self.per_second + offset) / step) * step - offset
        digits = (
            -2 if step >= _DAY else -1 if step >= 60 else 0 if step >= 1 else 3 if step >= Fraction(1, 1_000) else 9
        )
        day = None
        while at * self.per_second <= high:
            value = at * self.per_second
            moment = self.moment(value)
            yield Mark(int(value), self.text(value, digits, day))
            day = None if moment is None or step >= _DAY else moment.date()
            at += step

    def _of_months(self, low: Any, high: Any, most: int) -> list[Mark]:
        assert self.per_second is not None
        first, last = self.moment(low), self.moment(high)
        assert first is not None
        assert last is not None
        begin, end = (12 * one.year + one.month - 1 for one in (first, last))
        step = next((one for one in _MONTHS if (end - begin) / one <= most), _MONTHS[-1])
        found = []
        for month in range(-(-begin // step) * step, end + 1, step):
            year, rest = divmod(month, 12)
            moment = dt.datetime(year, rest + 1, 1, tzinfo=self._tz)
            value = math.floor((moment - _EPOCH) // dt.timedelta(microseconds=1) * self.per_second / 10**6)
            if low <= value <= high:
                found.append(Mark(value, f"{moment:%Y-%m}" if step < 12 else f"{moment:%Y}"))
        return found


def share(value: Any, low: Any, high: Any) -> float:
    """Where a number lies from ``low`` (0) to ``high`` (1); also where their distance is beyond the greatest double."""
    whole = float(high - low)
    return float(value - low) / whole if math.isfinite(whole) else (value / 4 - low / 4) / (high / 4 - low / 4)


def _of_numbers(low: Any, high: Any, most: int) -> list[Mark]:
    low, high = float(low), float(high)
    part = (high - low) / most
    part = part if math.isfinite(part) else high / most - low / most
    if not part > 0:
        return [Mark(low, short(low))]
    power = math.floor(math.log10(part))
    steps = [float(f"{base}e{power + more}") for more in (0, 1) for base in (1, 2, 5)]
    step = next(one for one in (*steps, 10 * steps[3]) if one >= part)
    found: list[Mark] = []
    at = math.ceil(low / step)
    while at * step <= high and len(found) <= most:
        found.append(Mark(at * step, f"{at * step:,.10g}"))
        at += 1
    return found
