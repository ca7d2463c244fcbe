"""Random small tables: every type of column, with its odd values, NULLs and empty ones."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["DURATIONS", "NUMBERS", "TEXTS", "table_of"]

NUMBERS = (
    *("0", "1", "2", "3", "5", "10", "0.5", "1.5", "2.50", "1e3", "255", "256", "100000", "1e-9"),
    *("2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e308", "1e400"),
    *("0.1234567890123456789", "12345678901234567890123456789012345678", "99999999999999999999999999999999999999999"),
)
TEXTS = (
    *(
        "",
        "A",
        "B",
        "a",
        "x",
        "it''s",
        "é",
        "𝄞",
        "\u0130",
        "ß",
        "%",
        "_",
        "a%",
        "%b_",
        ".*",
        "(",
        "[a-",
        "a{2,}",
        "\\",
        "\\d+",
    ),
    *(
        "2020-01-01",
        "2020-01-01 00:00:00",
        "2020-01-01T00:00:00+02:00",
        "2020-02-30",
        "0001-01-01",
        "9999-12-31",
        "1 hour",
    ),
    *("10:00", "1", "1.5", "nan", "true", "null", "x" * 300, "\u0000", "a\nb", "1.2.3.4", "10.0.0.0/8"),
)
DURATIONS = (
    *(
        "1 s",
        "5 seconds",
        "10 minutes",
        "1 hour 30 minutes",
        "1.5 h",
        "1 ns",
        "0 s",
        "7 days",
        "1000000 weeks",
        "0.1 us",
    ),
    *("1 us", "3 ms", "99999999999999999999 s", "1e3 s"),
)

_INTEGERS = {
    **{getattr(pa, f"int{bits}")(): (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{getattr(pa, f"uint{bits}")(): (0, (1 << bits) - 1) for bits in (8, 32, 64)},
}
_FLOATS = (0.0, -0.0, 1.0, 2.5, -1.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), -float("inf"), 2.0**53)
_MOMENTS = (
    *(
        dt.datetime(2020, 1, 1),
        dt.datetime(2020, 1, 1, 0, 0, 1),
        dt.datetime(2020, 1, 1, 0, 1),
        dt.datetime(2020, 1, 2),
    ),
    *(dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1)),
)


#: Makes the cells of a column from a function that gives one; some are NULL.
Cells = Callable[[Callable[[], Any]], list[Any]]

#: Which part of the draws gives a column that goes with a constant.
_DRAWS = {"any": (0.0, 1.0), "": (0.0, 0.6), "NUMBER": (0.0, 0.5), "STRING": (0.58, 0.75), "DURATION": (0.75, 0.88)}


def table_of(rng: random.Random, types: Sequence[str], names: Mapping[str, str], texts: Sequence[str]) -> pa.Table:
    """A table with ``type``, ``t`` and columns of some names.

    Parameters
    ----------
    rng
        Decides.
    types
        What ``type`` mostly holds.
    names
        Of the columns, with the terminal of a constant for which the type is chosen more often than not; some are left out.
    texts
        What columns of strings hold beside odd ones.
    """
    size = rng.choice((0, 1, 2, 5, 10, 20, 40))
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    if rng.random() < 0.95:
        columns["type"] = _types(rng, size, types)
    if rng.random() < 0.95:
        columns["t"] = _times(rng, size)
    for name, constant in names.items():
        if name not in columns and rng.random() < 0.98:
            columns[name] = _column(rng, size, texts, constant if rng.random() < 0.85 else "any")
    table = pa.table(columns) if columns else pa.table({"x": pa.nulls(size)})
    if rng.random() < 0.2 and size > 2:
        cut = rng.randrange(size)
        table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    return table


def _types(rng: random.Random, size: int, types: Sequence[str]) -> pa.Array:
    values = [rng.choice(types) if rng.random() < 0.95 else rng.choice((None, "", "Z")) for _ in range(size)]
    draw = rng.random()
    if draw < 0.1:
        return pa.array(values, pa.string()).dictionary_encode()
    if draw < 0.15:
        return pa.array(values, pa.large_string())
    if draw < 0.18:
        return pa.nulls(size, rng.choice((pa.null(), pa.string())))
    if draw < 0.21:
        return _column(rng, size, types)
    return pa.array([value or types[0] for value in values] if draw < 0.9 else values, pa.string())


def _times(rng: random.Random, size: int) -> pa.Array:
    steps = [rng.choice((0, 1, 1, 2, 5, 100)) for _ in range(size)]
    ticks = [sum(steps[: number + 1]) for number in range(size)]
    if rng.random() < 0.15:
        rng.shuffle(ticks)
    if rng.random() < 0.05 and size:
        ticks[rng.randrange(size)] = rng.choice(((1 << 63) - 1, -(1 << 63), (1 << 62), -1))
    draw = rng.random()
    if draw < 0.5:
        return pa.array(ticks, pa.int64())
    if draw < 0.9:
        kind = rng.choice(
            (
                *(
                    pa.timestamp("s"),
                    pa.timestamp("ms"),
                    pa.timestamp("us"),
                    pa.timestamp("ns"),
                    pa.timestamp("us", "UTC"),
                ),
                *(pa.timestamp("ns", "Europe/Berlin"), pa.date32(), pa.date64(), pa.int32(), pa.uint64(), pa.float64()),
            )
        )
        small = [tick % 100_000 if abs(tick) > 1 << 31 else tick for tick in ticks]
        if kind == pa.date64():
            return pa.array([tick * 86_400_000 for tick in small], pa.int64()).cast(kind)
        return pa.array(small, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind, safe=False)
    return _column(rng, size, ("1", "2"))


def _column(
    rng: random.Random, size: int, texts: Sequence[str], constant: str = "any", *, nested: bool = True
) -> pa.Array:
    """A column of any type, or of one that goes with a constant."""
    empty = rng.choice((0.0, 0.0, 0.1, 0.5, 1.0 if rng.random() < 0.2 else 0.0))

    def cells(value: Callable[[], Any]) -> list[Any]:
        return [None if rng.random() < empty else value() for _ in range(size)]

    least, most = _DRAWS[constant]
    draw = rng.uniform(least, most)
    make = next(make for limit, make in _MADE if draw < limit)
    return (_truths if make is _nested and not nested else make)(rng, cells, texts)


def _integers(rng: random.Random, cells: Cells, _: Sequence[str]) -> pa.Array:
    kind = pa.int64() if rng.random() < 0.5 else rng.choice(list(_INTEGERS))
    least, most = _INTEGERS[kind]
    odd = rng.random() < 0.3
    return pa.array(
        cells(lambda: rng.choice((least, most, most - 1)) if odd and rng.random() < 0.3 else rng.randint(0, 9)), kind
    )


def _floats(rng: random.Random, cells: Cells, _: Sequence[str]) -> pa.Array:
    values = cells(lambda: rng.choice(_FLOATS) if rng.random() < 0.3 else rng.randint(0, 20) / 4)
    return pa.array(values, pa.float64()).cast(rng.choice((pa.float64(), pa.float64(), pa.float32())))


def _decimals(rng: random.Random, cells: Cells, _: Sequence[str]) -> pa.Array:
    number = pa.array(cells(lambda: Decimal(rng.randint(-9, 9))), pa.decimal128(10, 2))
    return number.cast(
        rng.choice((pa.decimal128(10, 2), pa.decimal128(38, 0), pa.decimal128(38, 37), pa.decimal256(50, 5))),
        safe=False,
    )


def _words(rng: random.Random, cells: Cells, texts: Sequence[str]) -> pa.Array:
    words = pa.array(cells(lambda: rng.choice(texts if texts and rng.random() < 0.7 else TEXTS)), pa.string())
    return rng.choice((words, words, words, words.dictionary_encode(), words.cast(pa.large_string())))


def _moments(rng: random.Random, cells: Cells, _: Sequence[str]) -> pa.Array:
    kind = rng.choice(
        (
            *(pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.timestamp("ms", "America/New_York")),
            *(pa.date32(), pa.date64(), pa.duration("us"), pa.duration("ns"), pa.time32("s"), pa.time64("us")),
        )
    )
    if pa.types.is_duration(kind):
        return pa.array(cells(lambda: rng.randint(-10, 1000)), pa.int64()).cast(kind)
    if pa.types.is_time(kind):
        return pa.array(cells(lambda: dt.time(rng.randrange(24), rng.randrange(60))), kind)
    return pa.array(cells(lambda: rng.choice(_MOMENTS)), pa.timestamp("us")).cast(kind, safe=False)


def _truths(rng: random.Random, cells: Cells, _: Sequence[str]) -> pa.Array:
    return pa.array(cells(lambda: rng.random() < 0.5), pa.bool_())


def _nested(rng: random.Random, cells: Cells, texts: Sequence[str]) -> pa.Array:
    """A column of what has no order, or no values at all."""
    size = len(cells(lambda: 0))
    match rng.randrange(5):
        case 0:
            return pa.nulls(size)
        case 1:
            return pa.array(cells(lambda: rng.choice((b"", b"a", b"\xff\x00"))), pa.binary())
        case 2:
            inside = pa.list_(rng.choice((pa.int64(), pa.string(), pa.float64())))
            return pa.array(cells(lambda: [] if rng.random() < 0.3 else [None]), inside)
        case 3:
            fields = [_column(rng, size, texts, nested=False) for _ in range(2)]
            return pa.StructArray.from_arrays(fields, names=["x", "name"])
    return pa.array(cells(lambda: [("a", 1)]), pa.map_(pa.string(), pa.int64()))


#: Below which draws a column is made how.
_MADE = (
    *((0.35, _integers), (0.5, _floats), (0.58, _decimals), (0.75, _words), (0.88, _moments), (0.92, _truths)),
    (math.inf, _nested),
)
