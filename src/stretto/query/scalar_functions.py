"""The scalar functions: one table of names, arguments, results, and what they mean of single values, for all languages.

Those of all languages mean what Spark's do, those that SQL has besides what Trino's do, those of EQL what Elasticsearch's do. Where
an argument is NULL the result is NULL, but for ``coalesce``; so none of those that ``python`` is given is NULL. ``a || b`` is
``concat(a, b)``.

Whole columns are computed by :mod:`stretto.columns.functions`, numbers of several events by :mod:`stretto.engines.shared.scalar`.
"""

from __future__ import annotations

import calendar
import datetime as dt
import ipaddress
import math
import socket
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from stretto.errors import DataError

NUMBERS = ("int", "float", "decimal")
_ORDERED = (*NUMBERS, "string", "bool", "time")

DIGITS = 15  #: a double keeps so many

#: What ``trim`` takes away.
SPACES = " \t\n\v\f\r"

#: The units that ``date_trunc`` and ``extract`` know, by what they are called.
UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")

_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True)
class ScalarFunction:
    """A function: the kinds of its arguments by their place, which of them are constants, and what it gives."""

    takes: tuple[tuple[str, ...], ...]
    gives: str | pa.DataType | None  #: a kind, or a type; ``None``: that of the arguments
    python: Callable[..., Any]
    shown: str  #: the arguments
    optional: int = 0  #: how many of the last arguments may be left out
    more: bool = False  #: the last argument may come again, and comes twice at least
    constant: tuple[int, ...] = ()  #: the places of those that are constants
    real: bool = False  #: numbers are taken as doubles
    alike: bool = False  #: arguments are of one kind: all are doubles where one number is no integer
    whole: bool = False  #: an integer stays as it is

    @property
    def reads_strings(self) -> bool:
        """Whether it is computed of strings themselves, which kernels do not see."""
        return self.takes[0] == ("string",)

    def takes_count(self, count: int) -> bool:
        """Whether it takes so many arguments."""
        return max(len(self.takes) - self.optional, 2 * self.more) <= count and (self.more or count <= len(self.takes))


# ---- Functions of all languages


def rounded(number: float, digits: int = 0) -> float:
    """Round to a number of digits; a half, as near as a double comes to it, goes away from zero.

    Up to 15 digits that is what rounding the number as it is written gives.

    >>> rounded(2.675, 2), rounded(-2.5), rounded(1e300, 3)
    (2.68, -3.0, 1e+300)
    """
    power = float(10**digits)
    scaled = abs(number) * power
    if not scaled < 2.0**51:  # as fine as it is already, infinite, or NaN
        return number
    whole = math.floor(scaled)
    if abs(number) >= (2.0 * whole + 1.0) / (2.0 * power):
        whole += 1
    return math.copysign(whole / power, number)


def _whole(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda number: float(function(number)) if math.isfinite(number) else number


def _first(*values: Any) -> Any:
    return next((one for one in values if one is not None), None)


# ---- Functions of SQL


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


# ---- Functions of EQL, where ``folds`` says whether letters are equal to those of the other case


def _folded(folds: bool, *texts: str) -> tuple[str, ...]:
    return tuple(one.lower() for one in texts) if folds else texts


def _between(text: str, left: str, right: str, greedy: bool, folds: bool) -> str:
    """What stands between two texts: up to the first of the right one, or up to the last with ``greedy``; empty where one lacks."""
    own, first, last = _folded(folds, text, left, right)
    begin = own.find(first)
    if begin < 0:
        return ""
    begin += len(first)
    end = own.rfind(last, begin) if greedy else own.find(last, begin)
    return "" if end < 0 else text[begin:end]


def _index_of(text: str, part: str, start: int, folds: bool) -> int | None:
    own, sought = _folded(folds, text, part)
    found = own.find(sought, max(start, 0))
    return None if found < 0 else found


def _starts(text: str, part: str, folds: bool) -> bool:
    own, sought = _folded(folds, text, part)
    return own.startswith(sought)


def _ends(text: str, part: str, folds: bool) -> bool:
    own, sought = _folded(folds, text, part)
    return own.endswith(sought)


def _contains(text: str, part: str, folds: bool) -> bool:
    own, sought = _folded(folds, text, part)
    return sought in own


def _slice(text: str, start: int, end: int | None = None) -> str:
    return text[start:end]


def _string(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(text: str, base: int) -> float | None:
    try:
        return float(text) if base == 10 else float(int(text, base))
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=1024)
def _networks(texts: tuple[str, ...]) -> tuple[tuple[int, int, int], ...]:
    """Versions, masks and bits of networks."""
    found = [ipaddress.ip_network(one) for one in texts]
    return tuple((one.version, int(one.netmask), int(one.network_address)) for one in found)


def _cidr_match(text: str, *networks: str) -> bool:
    version, family = (6, socket.AF_INET6) if ":" in text else (4, socket.AF_INET)
    try:
        own = int.from_bytes(socket.inet_pton(family, text), "big")
    except (OSError, ValueError):
        return False
    return any(version == other and own & mask == bits for other, mask, bits in _networks(networks))


# ---- The table

_TIMES = (("time",),)
_STRING = (("string",),)
_INT, _TRUTH = ("int",), ("bool",)


def _field(read: Callable[[dt.date], int]) -> ScalarFunction:
    return ScalarFunction(_TIMES, "int", read, "t")


def _clock(name: str) -> ScalarFunction:
    return _field(lambda time: int(getattr(time, name, 0)))


_CASTS: dict[str, tuple[tuple[str, ...], str | pa.DataType, Callable[[Any], Any]]] = {
    "tinyint": ((*NUMBERS, "string", "bool"), "int", _to_whole("tinyint", 8)),
    "smallint": ((*NUMBERS, "string", "bool"), "int", _to_whole("smallint", 16)),
    "integer": ((*NUMBERS, "string", "bool"), "int", _to_whole("integer", 32)),
    "bigint": ((*NUMBERS, "string", "bool"), "int", _to_whole("bigint", 64)),
    "double": ((*NUMBERS, "string", "bool"), "float", _to_double),
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

#: Those of all languages.
COMMON: dict[str, ScalarFunction] = {
    "abs": ScalarFunction(((*NUMBERS, "duration"),), None, abs, "x", alike=True),
    "round": ScalarFunction((NUMBERS, _INT), None, rounded, "x[, digits]", optional=1, alike=True, whole=True),
    "floor": ScalarFunction((NUMBERS,), None, _whole(math.floor), "x", alike=True, whole=True),
    "ceil": ScalarFunction((NUMBERS,), None, _whole(math.ceil), "x", alike=True, whole=True),
    "upper": ScalarFunction(_STRING, "string", str.upper, "s"),
    "lower": ScalarFunction(_STRING, "string", str.lower, "s"),
    "length": ScalarFunction(_STRING, "int", len, "s"),
    "concat": ScalarFunction(_STRING, "string", lambda *texts: "".join(texts), "s, t, …", more=True),
    "coalesce": ScalarFunction(((*_ORDERED, "duration"),), None, _first, "x, y, …", more=True, alike=True),
}

#: Those that SQL has besides.
SQL: dict[str, ScalarFunction] = {
    "sqrt": ScalarFunction((NUMBERS,), "float", _real(math.sqrt), "x", real=True),
    "exp": ScalarFunction((NUMBERS,), "float", _real(math.exp), "x", real=True),
    "ln": ScalarFunction((NUMBERS,), "float", _real(_logarithm), "x", real=True),
    "power": ScalarFunction((NUMBERS, NUMBERS), "float", _real(_power), "x, y", real=True),
    "sign": ScalarFunction((NUMBERS,), None, _sign, "x", alike=True),
    "greatest": ScalarFunction((_ORDERED,), None, _greatest, "x, y, …", more=True, alike=True),
    "least": ScalarFunction((_ORDERED,), None, _least, "x, y, …", more=True, alike=True),
    "trim": ScalarFunction(_STRING, "string", lambda text: text.strip(SPACES), "s"),
    "ltrim": ScalarFunction(_STRING, "string", lambda text: text.lstrip(SPACES), "s"),
    "rtrim": ScalarFunction(_STRING, "string", lambda text: text.rstrip(SPACES), "s"),
    "reverse": ScalarFunction(_STRING, "string", lambda text: text[::-1], "s"),
    "replace": ScalarFunction(
        _STRING * 3, "string", lambda text, old, new="": text.replace(old, new), "s, 'old'[, 'new']", 1, constant=(1, 2)
    ),
    "substring": ScalarFunction((*_STRING, _INT, _INT), "string", _part, "s, start[, length]", 1, constant=(1, 2)),
    "starts_with": ScalarFunction(_STRING * 2, "bool", str.startswith, "s, 'start'", constant=(1,)),
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
    "date_trunc": ScalarFunction((*_STRING, *_TIMES), None, _truncated, "'unit', t", constant=(0,)),
    "add_months": ScalarFunction((*_TIMES, _INT), None, _later, "t, months", constant=(1,)),
    "months_between": ScalarFunction(_TIMES * 2, "int", _months, "t, u"),
    "from_unixtime": ScalarFunction((NUMBERS,), pa.timestamp("us", "UTC"), _from_unixtime, "x", real=True),
    "to_unixtime": ScalarFunction(_TIMES, "float", _to_unixtime, "t"),
}
SQL |= {f"cast_{name}": ScalarFunction((takes,), gives, cast, "x") for name, (takes, gives, cast) in _CASTS.items()}
SQL |= {
    f"try_cast_{name}": ScalarFunction((takes,), gives, _tried(cast), "x")
    for name, (takes, gives, cast) in _CASTS.items()
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

#: Those that EQL has besides.
EQL: dict[str, ScalarFunction] = {
    "between": ScalarFunction((*_STRING * 3, _TRUTH, _TRUTH), "string", _between, "s, left, right, greedy, folds"),
    "cidrMatch": ScalarFunction(_STRING * 2, "bool", _cidr_match, "s, network, …", more=True),
    "endsWith": ScalarFunction((*_STRING * 2, _TRUTH), "bool", _ends, "s, t, folds"),
    "indexOf": ScalarFunction((*_STRING * 2, _INT, _TRUTH), "int", _index_of, "s, t, start, folds"),
    "number": ScalarFunction((*_STRING, _INT), "float", _number, "s, base"),
    "subString": ScalarFunction((*_STRING, _INT, _INT), "string", _slice, "s, start, end", optional=1),
    "startsWith": ScalarFunction((*_STRING * 2, _TRUTH), "bool", _starts, "s, t, folds"),
    "string": ScalarFunction((("int", "float", "decimal", "string", "bool"),), "string", _string, "x"),
    "stringContains": ScalarFunction((*_STRING * 2, _TRUTH), "bool", _contains, "s, t, folds"),
}

#: All of them.
FUNCTIONS = COMMON | SQL | EQL
