"""The scalar functions over whole columns, with Arrow and NumPy: exactly the meaning of :mod:`stretto.query.scalar_functions`.

A function that has nothing here is computed in Python, once of each combination of values that occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import INT64
from stretto.columns.arrays import valid_of
from stretto.columns.operands import (
    Column,
    as_array,
    as_int,
    beyond_where,
    column_of,
    where_either,
    where_known,
)
from stretto.errors import DataError
from stretto.query.scalar_functions import FUNCTIONS, SPACES, SQL, uncast
from stretto.times import DAY, PER_SECOND


def applied(name: str, sides: list[Any], rows: int) -> Any:
    """A function of columns and constants, at least one column among them; ``None``: it is NULL throughout.

    Raises
    ------
    DataError
        A value has no place in the type that it is cast to, or a time is out of range.
    """
    if name == "coalesce":
        return _coalesced([side for side in sides if side is not None], rows)
    if None in sides:
        return None
    if name in _COLUMNS:
        return _COLUMNS[name](*sides)
    arrays = [as_array(side) if isinstance(side, Column) else side for side in sides]
    found = column_of(_ARRAYS[name](*arrays) if name in _ARRAYS else _by_values(name, arrays))
    beyond = reduce(where_either, map(beyond_where, sides))
    return replace(found, beyond=where_known(beyond, found.valid))


# ---- Of columns


def _absolute(own: Column) -> Column:
    if own.kind == "float":
        return Column("float", np.abs(own.data), own.valid, beyond=own.beyond)
    data, beyond = as_int(own)
    least = data == INT64[0]
    with np.errstate(over="ignore"):
        found = np.abs(data)
    beyond = where_either(where_either(own.beyond, beyond), least if least.any() else None)
    return Column("int", found, own.valid, beyond=where_known(beyond, own.valid))


def _rounded(own: Column, digits: int = 0) -> Column:
    """Do what :func:`~stretto.query.builtins.rounded` does."""
    power = float(10**digits)
    with np.errstate(all="ignore"):
        size = np.abs(own.data)
        scaled = size * power
        whole = np.floor(scaled)
        whole += size >= (2.0 * whole + 1.0) / (2.0 * power)
        found = np.where(scaled < 2.0**51, np.copysign(whole / power, own.data), own.data)
    return Column("float", found, own.valid, beyond=own.beyond)


def _of_reals(compute: Callable[[Any], Any]) -> Callable[[Column], Column]:
    return lambda own: Column("float", compute(own.data), own.valid, beyond=own.beyond)


def _cased(ascii_only: Callable[[pa.Array], pa.Array], python: Callable[[str], str]) -> Callable[[Column], Column]:
    """Letters in the other case: Arrow changes a letter at a time, where ß has two great ones."""

    def compute(own: Column) -> Column:
        if pc.all(pc.string_is_ascii(own.data)).as_py() is not False:
            return replace(own, data=ascii_only(own.data))
        coded = own.data.dictionary_encode()
        texts = pa.array([None if one is None else python(one) for one in coded.dictionary.to_pylist()], own.data.type)
        return replace(own, data=texts.take(coded.indices))

    return compute


def _concatenated(*sides: Any) -> Column:
    kinds = {side.data.type for side in sides if isinstance(side, Column)}
    kind = kinds.pop() if len(kinds) == 1 else pa.large_string()
    texts = [side.data.cast(kind) if isinstance(side, Column) else pa.scalar(side, kind) for side in sides]
    joined = pc.binary_join_element_wise(*texts, pa.scalar("", kind))
    return Column("string", joined, valid_of(joined))


def _coalesced(sides: list[Any], rows: int) -> Any:
    """The first that is not NULL, row by row."""
    if not sides or not isinstance(sides[0], Column):
        return sides[0] if sides else None
    first = sides[0]
    if first.valid is None:
        return first
    other = _coalesced(sides[1:], rows)
    if other is None:
        return first
    if first.kind == "string":
        kind = other.data.type if isinstance(other, Column) else first.data.type
        kind = kind if kind == first.data.type else pa.large_string()
        second = other.data.cast(kind) if isinstance(other, Column) else pa.scalar(other, kind)
        joined = pc.coalesce(first.data.cast(kind), second)
        return Column("string", joined, valid_of(joined))
    beyond = where_known(first.beyond, first.valid)
    if first.kind == "int":
        (one, before), (two, after) = as_int(first), as_int(other)
        beyond = where_known(where_either(beyond, before), first.valid)
        after = None if after is None else np.broadcast_to(after, rows)
    else:
        one, two = first.data, other.data if isinstance(other, Column) else other
        after = None
    after = where_either(after, beyond_where(other))
    beyond = where_either(beyond, None if after is None else after & ~first.valid)
    valid = None if not isinstance(other, Column) or other.valid is None else first.valid | other.valid
    return Column(
        first.kind, np.where(first.valid, one, two), valid, first.type if first.kind == "time" else None, beyond
    )


_COLUMNS: dict[str, Callable[..., Column]] = {
    "abs": _absolute,
    "round": _rounded,
    "floor": _of_reals(np.floor),
    "ceil": _of_reals(np.ceil),
    "upper": _cased(pc.ascii_upper, str.upper),
    "lower": _cased(pc.ascii_lower, str.lower),
    "length": lambda own: Column(
        "int", np.asarray(pc.fill_null(pc.utf8_length(own.data), 0).to_numpy(zero_copy_only=False), np.int64), own.valid
    ),
    "concat": _concatenated,
}


# ---- Of arrays, NULL where an argument is


_GIVES = {"string": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


def _by_values(name: str, sides: Sequence[Any]) -> pa.Array:
    """Compute a function of at least one column, once of each combination of values that occurs."""
    coded = [one.dictionary_encode(null_encoding="encode") for one in sides if isinstance(one, pa.Array)]
    code = np.zeros(len(coded[0]), np.int64)
    for one in coded:
        code = code * max(1, len(one.dictionary)) + one.indices.to_numpy(zero_copy_only=False)
    alone = len(coded) == 1
    cells, rows = (np.arange(len(coded[0].dictionary)), code) if alone else np.unique(code, return_inverse=True)
    given: list[list[Any]] = []
    for one in reversed(coded):
        size = max(1, len(one.dictionary))
        given.append(one.dictionary.take(pa.array(cells % size)).to_pylist())
        cells = cells // size
    lists = [given.pop() if isinstance(side, pa.Array) else [side] * len(cells) for side in sides]
    known = FUNCTIONS[name]
    values = [None if None in some else known.python(*some) for some in zip(*lists, strict=True)]
    kind = _GIVES.get(known.gives, known.gives) if known.gives else coded[0].dictionary.type
    return pa.array(values, kind).take(pa.array(rows))


def _reals(function: Callable[..., NDArray[np.float64]]) -> Callable[..., pa.Array]:
    def found(*sides: Any) -> pa.Array:
        valid = reduce(pc.and_, (one.is_valid() for one in sides if isinstance(one, pa.Array)))
        with np.errstate(all="ignore"):
            data = function(*(_numbers(one) if isinstance(one, pa.Array) else np.float64(one) for one in sides))
        return pa.array(data, pa.float64(), mask=~_bits(valid))

    return found


def _numbers(array: pa.Array) -> NDArray[Any]:
    return np.asarray(pc.fill_null(array, pa.scalar(0).cast(array.type)).to_numpy(zero_copy_only=False))


def _bits(array: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def _sign(own: pa.Array) -> pa.Array:
    if pa.types.is_integer(own.type):
        return pc.sign(own).cast(pa.int64())
    return pc.if_else(pc.equal(own, 0.0), own, pc.sign(own))


def _chosen(better: Callable[[Any, Any], Any], *sides: Any) -> pa.Array:
    """The greatest, or the least, of each row; NaN is greater than other numbers, and of NULL it is NULL."""
    rows = next(len(one) for one in sides if isinstance(one, pa.Array))
    kind = next(one.type for one in sides if isinstance(one, pa.Array))
    columns = [one if isinstance(one, pa.Array) else pa.repeat(pa.scalar(one, kind), rows) for one in sides]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        columns = [one.cast(pa.large_string()) for one in columns]
    found = columns[0]
    for one in columns[1:]:
        found = pc.if_else(better(one, found), one, found)
    return found


def _is_greater(first: pa.Array, second: pa.Array) -> pa.Array:
    if not pa.types.is_floating(first.type):
        return pc.greater(first, second)
    return pc.or_(pc.and_(pc.is_nan(first), pc.invert(pc.is_nan(second))), pc.greater(first, second))


def _part(own: pa.Array, start: int, length: int | None = None) -> pa.Array:
    begin = start - 1 if start > 0 else start
    if start == 0 or (length is not None and length <= 0):
        return pc.if_else(own.is_valid(), "", own)
    end = None if length is None or (begin < 0 and begin + length >= 0) else begin + length
    found = pc.utf8_slice_codeunits(own, begin, end)
    return pc.if_else(pc.less(pc.utf8_length(own), -begin), "", found) if begin < 0 else found


def _field(read: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    return lambda own: read(own).cast(pa.int64())


def _clock(read: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    """A field of a clock, which a date does not have."""

    def found(own: pa.Array) -> pa.Array:
        if pa.types.is_date(own.type):
            return pc.if_else(own.is_valid(), pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64()))
        return read(own).cast(pa.int64())

    return found


def _truncated(unit: str, own: pa.Array) -> pa.Array:
    if pa.types.is_date(own.type):
        if unit in ("second", "minute", "hour"):
            return own
        return pc.floor_temporal(own.cast(pa.timestamp("s")), unit=unit).cast(own.type)
    return pc.floor_temporal(own, unit=unit)


# ---- Months


def _days(own: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The days, and the ticks of the day, of times without a zone, and how many ticks a day has."""
    if pa.types.is_date(own.type):
        return _numbers(own.cast(pa.date32()).cast(pa.int32())).astype(np.int64), np.zeros(len(own), np.int64), 1
    per_day = PER_SECOND[own.type.unit] * DAY
    ticks = _numbers(own.cast(pa.int64()))
    return *np.divmod(ticks, per_day), per_day


def _months_of(days: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Months since 1970, and the day of the month from 0."""
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    return months.astype(np.int64), days - months.astype("datetime64[D]").astype(np.int64)


def _moved(days: NDArray[np.int64], months: Any) -> NDArray[np.int64]:
    """The same day of another month, or its last one."""
    month, day = _months_of(days)
    begin, end = (
        one.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        for one in (month + months, month + months + 1)
    )
    found: NDArray[np.int64] = begin + np.minimum(day, end - begin - 1)
    return found


_FIRST, _LAST = -719162, 2932896  #: the days of the years 1 to 9999


def _later(own: pa.Array, months: int) -> pa.Array:
    days, ticks, per_day = _days(own)
    moved = _moved(days, months)
    outside = _bits(own.is_valid()) & ((moved < _FIRST) | (moved > _LAST))
    if outside.any():
        raise DataError(f"{months} months from {own[int(outside.argmax())].as_py()} there is no date")
    if pa.types.is_date(own.type):
        return pa.array(moved, pa.int32(), mask=_bits(own.is_null())).cast(pa.date32()).cast(own.type)
    return pa.array(moved * per_day + ticks, pa.int64(), mask=_bits(own.is_null())).cast(own.type)


def _months(first: Any, second: Any) -> pa.Array:
    kind = pa.timestamp("us")
    rows = next(len(one) for one in (first, second) if isinstance(one, pa.Array))
    columns = [one if isinstance(one, pa.Array) else pa.repeat(pa.scalar(one), rows) for one in (first, second)]
    one, two = (_without_zone(side).cast(kind, safe=False) for side in columns)
    valid = _bits(pc.and_(one.is_valid(), two.is_valid()))
    early, late = (_numbers(side.cast(pa.int64())) for side in (one, two))
    back = late < early
    early, late = np.where(back, late, early), np.where(back, early, late)
    (day, tick), (to_day, to_tick) = (np.divmod(side, DAY * 10**6) for side in (early, late))
    found = _months_of(to_day)[0] - _months_of(day)[0]
    moved = _moved(day, found)
    found = found - ((found > 0) & ((moved > to_day) | ((moved == to_day) & (tick > to_tick))))
    return pa.array(np.where(back, -found, found), pa.int64(), mask=~valid)


def _without_zone(own: pa.Array) -> pa.Array:
    return own.cast(pa.timestamp(own.type.unit)) if pa.types.is_timestamp(own.type) and own.type.tz else own


def _from_unixtime(own: pa.Array) -> pa.Array:
    seconds = _numbers(own) * 1e6
    wrong = _bits(own.is_valid()) & ~(np.abs(seconds) < 2.5e17)
    if wrong.any():
        raise DataError(f"from_unixtime: {own[int(wrong.argmax())].as_py()} seconds are no time")
    ticks = np.rint(np.where(wrong | _bits(own.is_null()), 0.0, seconds)).astype(np.int64)
    return pa.array(ticks, pa.int64(), mask=_bits(own.is_null())).cast(pa.timestamp("us", "UTC"))


def _to_unixtime(own: pa.Array) -> pa.Array:
    days, ticks, per_day = _days(own)
    per_second = max(1, per_day // DAY)
    seconds = (days * per_day + ticks) / per_second if per_day > 1 else days * float(DAY)
    return pa.array(seconds, pa.float64(), mask=_bits(own.is_null()))


# ---- Casts


def _cast(name: str, kind: pa.DataType, tries: bool, own: pa.Array) -> pa.Array:
    if pa.types.is_string(own.type) or pa.types.is_large_string(own.type):
        return _by_values(f"{'try_' * tries}cast_{name}", [own])
    if name in _BITS:
        return _whole(own, name, tries)
    if kind == pa.string():
        return pc.if_else(own, "true", "false") if pa.types.is_boolean(own.type) else own.cast(kind)
    if pa.types.is_temporal(kind):
        return _without_zone_of_clock(own).cast(kind, safe=False)
    if kind == pa.bool_():
        return own if pa.types.is_boolean(own.type) else pc.not_equal(own, 0)
    return own.cast(pa.int64()).cast(kind, safe=False) if pa.types.is_boolean(own.type) else own.cast(kind, safe=False)


def _without_zone_of_clock(own: pa.Array) -> pa.Array:
    return pc.local_timestamp(own) if pa.types.is_timestamp(own.type) and own.type.tz else own


_BITS = {"tinyint": 8, "smallint": 16, "integer": 32, "bigint": 64}


def _whole(own: pa.Array, name: str, tries: bool) -> pa.Array:
    """Integers; of other numbers the next one, a half away from zero."""
    bound = 1 << (_BITS[name] - 1)
    if pa.types.is_floating(own.type):
        data = _numbers(own)
        with np.errstate(invalid="ignore"):
            near = np.trunc(data) + np.sign(data) * (np.abs(data - np.trunc(data)) >= 0.5)
            wrong = _bits(own.is_valid()) & ~((near >= -float(bound)) & (near < float(bound)))
        whole = pa.array(np.where(wrong, 0, near).astype(np.int64), mask=_bits(own.is_null()))
    elif pa.types.is_decimal(own.type):
        rounded = pc.round(own.cast(pa.decimal256(76, own.type.scale)), round_mode="half_towards_infinity")
        low, high = (
            (pa.scalar(one).cast(rounded.type) for one in (-(2**63), 2**63 - 1)) if own.type.scale < 50 else (0, 0)
        )
        wrong = _bits(pc.fill_null(pc.or_(pc.less(rounded, low), pc.greater(rounded, high)), False))
        whole = pc.if_else(pa.array(wrong), pa.scalar(None, rounded.type), rounded).cast(pa.int64())
        inside = _numbers(whole)
        wrong |= (inside < -bound) | (inside > bound - 1)
    else:
        whole = own.cast(pa.int64(), safe=own.type == pa.uint64())
        data = _numbers(whole)
        wrong = _bits(own.is_valid()) & ((data < -bound) | (data > bound - 1))
    if not wrong.any():
        return whole
    if not tries:
        raise uncast(own[int(wrong.argmax())].as_py(), name)
    return pc.if_else(pa.array(wrong), pa.scalar(None, pa.int64()), whole)


_KINDS = {"double": pa.float64(), "boolean": pa.bool_(), "varchar": pa.string()} | dict.fromkeys(_BITS, pa.int64())
_KINDS |= {name: SQL[f"cast_{name}"].gives for name in ("date", "timestamp")}

_ARRAYS: dict[str, Callable[..., pa.Array]] = {
    "sqrt": _reals(np.sqrt),
    "exp": _reals(np.exp),
    "ln": _reals(np.log),
    "power": _reals(np.power),
    "sign": _sign,
    "greatest": partial(_chosen, _is_greater),
    "least": partial(_chosen, lambda one, found: _is_greater(found, one)),
    "trim": partial(pc.utf8_trim, characters=SPACES),
    "ltrim": partial(pc.utf8_ltrim, characters=SPACES),
    "rtrim": partial(pc.utf8_rtrim, characters=SPACES),
    "reverse": pc.utf8_reverse,
    "replace": lambda own, old, new="": pc.replace_substring(own, old, new),
    "substring": _part,
    "starts_with": pc.starts_with,
    "year": _field(pc.year),
    "quarter": _field(pc.quarter),
    "month": _field(pc.month),
    "week": _field(pc.iso_week),
    "day": _field(pc.day),
    "day_of_week": _field(partial(pc.day_of_week, count_from_zero=False)),
    "day_of_year": _field(pc.day_of_year),
    "hour": _clock(pc.hour),
    "minute": _clock(pc.minute),
    "second": _clock(pc.second),
    "date_trunc": _truncated,
    "add_months": _later,
    "months_between": _months,
    "from_unixtime": _from_unixtime,
    "to_unixtime": _to_unixtime,
}
_ARRAYS |= {
    f"{'try_' * tries}cast_{name}": partial(_cast, name, kind, tries)
    for name, kind in _KINDS.items()
    for tries in (False, True)
}
