"""The functions that SQL has besides those of all languages (:mod:`stretto.query.builtins`), as ``MATCH_RECOGNIZE`` reads them.

They mean what Trino's do. They are computed of columns before a kernel runs (:mod:`stretto.columns.sql_functions`); here is what they
mean of single values, of which none is NULL.
"""

from __future__ import annotations

import calendar
import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa

from stretto.errors import DataError

_NUMBERS = ("int", "float", "decimal")
_ORDERED = (*_NUMBERS, "string", "bool", "time")

#: What ``trim`` takes away.
SPACES = " \t\n\v\f\r"

#: The units that ``date_trunc`` and ``extract`` know, by what they are called.
UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")

_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True)
class SqlFunction:
    """A function: the kinds of its arguments by their place, which of them are constants, and what it gives."""

    takes: tuple[tuple[str, ...], ...]
    gives: str | pa.DataType | None  #: a kind, or a type; ``None``: that of the arguments, which are of one kind
    python: Callable[..., Any]
    shown: str
    optional: int = 0  #: how many of the last arguments may be left out
    more: bool = False  #: the last argument may come again
    constant: tuple[int, ...] = ()  #: the places of those that are constants
    real: bool = False  #: numbers are taken as doubles


def _real(compute: Callable[..., float]) -> Callable[..., float]:
    """What a function of doubles gives, where Python's has an error."""

    def found(*given: float) -> float:
        try:
            return float(compute(*given))
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return found


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        odd = exponent == int(exponent) and int(exponent) % 2
        return math.copysign(math.inf, base) if odd else math.inf
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and int(exponent) % 2 else math.inf


def _logarithm(number: float) -> float:
    return -math.inf if number == 0 else math.log(number)


def _sign(number: Any) -> Any:
    if isinstance(number, float):
        return number if math.isnan(number) or number == 0 else math.copysign(1.0, number)
    return (number > 0) - (number < 0)


def greater(first: Any, second: Any) -> bool:
    """Whether a value is greater than another one, where NaN is greater than other numbers."""
    if isinstance(second, float) and math.isnan(second):
        return False
    return bool(isinstance(first, float) and math.isnan(first)) or bool(first > second)


def _greatest(*given: Any) -> Any:
    found = given[0]
    for one in given[1:]:
        found = one if greater(one, found) else found
    return found


def _least(*given: Any) -> Any:
    found = given[0]
    for one in given[1:]:
        found = one if greater(found, one) else found
    return found


def _part(text: str, start: int, length: int | None = None) -> str:
    """Characters are counted from 1, or from the end where the number is negative."""
    begin = start - 1 if start > 0 else len(text) + start
    if start == 0 or begin < 0 or (length is not None and length <= 0):
        return ""
    return text[begin:] if length is None else text[begin : begin + length]


def _truncated(unit: str, time: dt.date) -> dt.date:
    day = dt.date(time.year, time.month, time.day)
    if unit == "week":
        day -= dt.timedelta(days=day.weekday())
    elif unit in ("month", "quarter", "year"):
        month = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}[unit]
        day = day.replace(month=month, day=1)
    if not isinstance(time, dt.datetime):
        return day
    kept = UNITS[: UNITS.index("day")][::-1]  # hour, minute, second
    fields = {name: getattr(time, name) for name in kept[: kept.index(unit) + 1]} if unit in kept else {}
    return dt.datetime(day.year, day.month, day.day, **fields, tzinfo=time.tzinfo)


def _later(time: dt.date, months: int) -> dt.date:
    """The same day of another month, or its last one."""
    year, month = divmod(time.year * 12 + time.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise DataError(f"{months} months from {time} there is no date")
    return time.replace(year=year, month=month + 1, day=min(time.day, calendar.monthrange(year, month + 1)[1]))


def _months(first: dt.date, second: dt.date) -> int:
    """How many whole months lie between: the most by which the first one is not later than the second one; or less than none."""
    if second < first:
        return -_months(second, first)
    found = (second.year - first.year) * 12 + second.month - first.month
    return found - (found > 0 and _later(first, found) > second)


def _from_unixtime(seconds: float) -> dt.datetime:
    try:
        return _EPOCH.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=round(seconds * 1e6))
    except (OverflowError, ValueError) as error:
        raise DataError(f"from_unixtime: {seconds} seconds are no time") from error


def _to_unixtime(time: dt.date) -> float:
    moment = time if isinstance(time, dt.datetime) else dt.datetime(time.year, time.month, time.day)
    return (moment - _EPOCH.replace(tzinfo=moment.tzinfo and dt.UTC)) / dt.timedelta(seconds=1)


# ---- Casts


def _to_whole(name: str, bits: int) -> Callable[[Any], int]:
    def cast(given: Any) -> int:
        try:
            text = given.strip() if isinstance(given, str) else given
            if isinstance(text, str):
                found = int(text) if text.isascii() and "_" not in text else int("-")
            else:
                found = (
                    int(Decimal(text).quantize(Decimal(1), ROUND_HALF_UP)) if not isinstance(text, int) else int(text)
                )
        except (ValueError, ArithmeticError) as error:
            raise uncast(given, name) from error
        if not -(1 << (bits - 1)) <= found < 1 << (bits - 1):
            raise uncast(given, name)
        return found

    return cast


def uncast(given: Any, name: str) -> DataError:
    """The error about a value that has no place in a type."""
    return DataError(f"{given!r} is no {name}; TRY_CAST gives NULL there")


def _to_double(given: Any) -> float:
    try:
        if isinstance(given, str) and "_" in given:
            raise ValueError(given)
        return float(given)
    except ValueError as error:
        raise uncast(given, "double") from error


TRUTHS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _to_boolean(given: Any) -> bool:
    if not isinstance(given, str):
        return bool(given)
    if given.lower() not in TRUTHS:
        raise uncast(given, "boolean")
    return TRUTHS[given.lower()]


def _to_varchar(given: Any) -> str:
    return str(given).lower() if isinstance(given, bool) else str(given)


def _to_date(given: Any) -> dt.date:
    if isinstance(given, str):
        try:
            return dt.datetime.strptime(given.strip(), "%Y-%m-%d").date()
        except ValueError as error:
            raise uncast(given, "date") from error
    return given.date() if isinstance(given, dt.datetime) else given


def _to_timestamp(given: Any) -> dt.datetime:
    if isinstance(given, str):
        try:
            found = dt.datetime.fromisoformat(given.strip())
        except ValueError as error:
            raise uncast(given, "timestamp") from error
        if found.tzinfo is not None:
            raise uncast(given, "timestamp")
        return found
    return (
        given.replace(tzinfo=None)
        if isinstance(given, dt.datetime)
        else dt.datetime(given.year, given.month, given.day)
    )


def _tried(cast: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def found(given: Any) -> Any:
        try:
            return cast(given)
        except DataError:
            return None

    return found


_TIMES = (("time",),)
_STRING = (("string",),)


def _field(read: Callable[[dt.date], int]) -> SqlFunction:
    return SqlFunction(_TIMES, "int", read, "t")


def _clock(name: str) -> SqlFunction:
    return _field(lambda time: int(getattr(time, name, 0)))


_CASTS: dict[str, tuple[tuple[str, ...], str | pa.DataType, Callable[[Any], Any]]] = {
    "tinyint": ((*_NUMBERS, "string", "bool"), "int", _to_whole("tinyint", 8)),
    "smallint": ((*_NUMBERS, "string", "bool"), "int", _to_whole("smallint", 16)),
    "integer": ((*_NUMBERS, "string", "bool"), "int", _to_whole("integer", 32)),
    "bigint": ((*_NUMBERS, "string", "bool"), "int", _to_whole("bigint", 64)),
    "double": ((*_NUMBERS, "string", "bool"), "float", _to_double),
    "boolean": (("int", "bool", "string"), "bool", _to_boolean),
    "varchar": (("int", "bool", "string"), "string", _to_varchar),
    "date": (("string", "time"), pa.date32(), _to_date),
    "timestamp": (("string", "time"), pa.timestamp("us"), _to_timestamp),
}

#: Other names of the types of CAST.
TYPES = {name: name for name in _CASTS} | {
    "int": "integer",
    "long": "bigint",
    "real": "double",
    "float": "double",
    "double precision": "double",
    "string": "varchar",
    "text": "varchar",
    "bool": "boolean",
}

SQL: dict[str, SqlFunction] = {
    "sqrt": SqlFunction((_NUMBERS,), "float", _real(math.sqrt), "x", real=True),
    "exp": SqlFunction((_NUMBERS,), "float", _real(math.exp), "x", real=True),
    "ln": SqlFunction((_NUMBERS,), "float", _real(_logarithm), "x", real=True),
    "power": SqlFunction((_NUMBERS, _NUMBERS), "float", _real(_power), "x, y", real=True),
    "sign": SqlFunction((_NUMBERS,), None, _sign, "x"),
    "greatest": SqlFunction((_ORDERED,), None, _greatest, "x, y, …", more=True),
    "least": SqlFunction((_ORDERED,), None, _least, "x, y, …", more=True),
    "trim": SqlFunction(_STRING, "string", lambda text: text.strip(SPACES), "s"),
    "ltrim": SqlFunction(_STRING, "string", lambda text: text.lstrip(SPACES), "s"),
    "rtrim": SqlFunction(_STRING, "string", lambda text: text.rstrip(SPACES), "s"),
    "reverse": SqlFunction(_STRING, "string", lambda text: text[::-1], "s"),
    "replace": SqlFunction(
        _STRING * 3, "string", lambda text, old, new="": text.replace(old, new), "s, 'old'[, 'new']", 1, constant=(1, 2)
    ),
    "substring": SqlFunction((*_STRING, ("int",), ("int",)), "string", _part, "s, start[, length]", 1, constant=(1, 2)),
    "starts_with": SqlFunction(_STRING * 2, "bool", str.startswith, "s, 'start'", constant=(1,)),
    "year": _field(lambda time: time.year),
    "quarter": _field(lambda time: (time.month + 2) // 3),
    "month": _field(lambda time: time.month),
    "week": _field(lambda time: time.isocalendar().week),
    "day": _field(lambda time: time.day),
    "day_of_week": _field(lambda time: time.isoweekday()),
    "day_of_year": _field(lambda time: time.timetuple().tm_yday),
    "hour": _clock("hour"),
    "minute": _clock("minute"),
    "second": _clock("second"),
    "date_trunc": SqlFunction((*_STRING, *_TIMES), None, _truncated, "'unit', t", constant=(0,)),
    "add_months": SqlFunction((*_TIMES, ("int",)), None, _later, "t, months", constant=(1,)),
    "months_between": SqlFunction(_TIMES * 2, "int", _months, "t, u"),
    "from_unixtime": SqlFunction((_NUMBERS,), pa.timestamp("us", "UTC"), _from_unixtime, "x", real=True),
    "to_unixtime": SqlFunction(_TIMES, "float", _to_unixtime, "t"),
}
SQL |= {f"cast_{name}": SqlFunction((takes,), gives, cast, "x") for name, (takes, gives, cast) in _CASTS.items()}
SQL |= {
    f"try_cast_{name}": SqlFunction((takes,), gives, _tried(cast), "x") for name, (takes, gives, cast) in _CASTS.items()
}

#: Other names, of these and of those of all languages.
OTHER_NAMES = {
    "pow": "power",
    "ceiling": "ceil",
    "substr": "substring",
    "startswith": "starts_with",
    "day_of_month": "day",
    "dow": "day_of_week",
    "doy": "day_of_year",
    "week_of_year": "week",
    "char_length": "length",
    "character_length": "length",
    "ucase": "upper",
    "lcase": "lower",
    "ifnull": "coalesce",
    "nvl": "coalesce",
}
