"""The functions of SQL: whole columns against what they mean of single values, on random ones and at their edges."""

from __future__ import annotations

import datetime as dt
import math
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stretto.columns.vectorized import computed
from stretto.errors import DataError, QueryError
from stretto.query import predicate as p
from stretto.query.evaluate import value
from stretto.query.scalar_functions import SQL, TYPES
from stretto.query.typing import type_of_operand, typed_operand
from tests.conftest import cases

NAN, INF = math.nan, math.inf
ROWS = cases(2_000)

TEXTS = [
    "",
    " a ",
    "\tü\n",
    "abcabc",
    "ß𝄞x",
    "12",
    " 12 ",
    "-7.5",
    "1e3",
    "true",
    "F",
    "2020-02-30",
    "2020-02-29",
    "0",
    "nan",
    "1_0",
]
TEXTS += ["2020-01-31 10:11:12.5", "x" * 20, "9223372036854775808", "+5"]

POOLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [0, 1, -1, 7, -300, 40_000, 2**31, -(2**63), 2**63 - 1]),
    "float": (
        pa.float64(),
        [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 1e300, -3e9, 2.0**63, NAN, INF, -INF],
    ),
    "decimal": (
        pa.decimal128(9, 2),
        [Decimal("0.50"), Decimal("-2.50"), Decimal("9.99"), Decimal("0.00"), Decimal("1.49")],
    ),
    "string": (pa.string(), TEXTS),
    "bool": (pa.bool_(), [True, False]),
    "time": (pa.timestamp("us"), []),
}


def moment(rng: random.Random) -> dt.datetime:
    day = rng.choice([rng.randint(1, 28), 28, 29, 30, 31])
    try:
        date = dt.datetime(rng.choice([1, 1969, 1970, 2000, 2020, 2023, 9999]), rng.randint(1, 12), day)
    except ValueError:
        date = dt.datetime(2024, 2, 29)
    clock = rng.choice([0, 0, 1, 86_399_999_999, rng.randrange(86_400_000_000)])
    return date + dt.timedelta(microseconds=clock)


def column(rng: random.Random, kind: str, clock: pa.DataType) -> pa.Array:
    if kind != "time":
        own, pool = POOLS[kind]
        return pa.array([rng.choice([*pool, None]) for _ in range(ROWS)], own)
    times = [rng.choice([moment(rng), moment(rng), None]) for _ in range(ROWS)]
    if pa.types.is_date(clock):
        return pa.array([None if one is None else one.date() for one in times], clock)
    if clock.tz:
        times = [None if one is None else one.replace(tzinfo=dt.UTC) for one in times]
    return pa.array(times, pa.timestamp("us", clock.tz)).cast(clock, safe=False)


CONSTANTS: dict[str, list[Any]] = {
    "date_trunc": ["second", "minute", "hour", "day", "week", "month", "quarter", "year"],
    "replace": ["a", "ü", "", "bc"],
    "substring": [0, 1, 2, -1, -3, 7, 100],
    "starts_with": ["a", "", "ß"],
    "add_months": [0, 1, -1, 13, -25],
}
CLOCKS = [pa.timestamp("us"), pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.date32()]


def shown(found: Any) -> str:
    if isinstance(found, dt.date):
        return found.isoformat()
    return f"{found:.12g}" if isinstance(found, float) else repr(found)


def outcome(operand: p.Operand, row: dict[str, Any]) -> Any:
    try:
        return value(operand, row)
    except DataError as error:
        return type(error).__name__


@pytest.mark.parametrize("name", SQL)
def test_columns_are_what_values_mean(name: str) -> None:
    known = SQL[name]
    rng = random.Random(name)
    kinds = [kind for kind in known.takes[0] if kind in POOLS] if 0 not in known.constant else ["string"]
    for kind in kinds:
        for clock in CLOCKS if ("time",) in known.takes or kind == "time" else CLOCKS[:1]:
            count = len(known.takes) - rng.randint(0, known.optional) + (rng.randint(1, 2) if known.more else 0)
            arguments: list[p.Operand] = []
            columns: dict[str, pa.Array] = {}
            for place in range(count):
                if place in known.constant:
                    arguments.append(p.Constant(rng.choice(CONSTANTS[name])))
                else:
                    own = kind if known.more or kind in known.takes[min(place, len(known.takes) - 1)] else "time"
                    columns[f"c{place}"] = column(rng, own, clock)
                    arguments.append(p.Attribute(f"c{place}"))
            table = pa.RecordBatch.from_pydict(columns)
            types = dict(zip(table.schema.names, table.schema.types, strict=True))
            operand = typed_operand(p.Function(name, tuple(arguments)), types)
            expected = [outcome(operand, row) for row in table.to_pylist()]
            wrong = [at for at, one in enumerate(expected) if one == "DataError"]
            if wrong:
                with pytest.raises(DataError):
                    computed(operand, table, type_of_operand(operand, types))
                table = table.filter(pa.array([one != "DataError" for one in expected]))
                expected = [one for one in expected if one != "DataError"]
            found = computed(operand, table, type_of_operand(operand, types))
            given = found.to_pylist()
            for row, one, other in zip(table.to_pylist(), given, expected, strict=True):
                assert shown(one) == shown(other), (operand, row)


def test_the_documentation_has_all_functions_and_types() -> None:
    text = (Path(__file__).parents[2] / "docs" / "match_recognize.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"`(\w+)\(", text))
    assert {name for name in SQL if "cast_" not in name} <= shown
    (types,) = re.findall(r"`CAST` knows ([^.]*) and usual", text)
    assert set(re.findall(r"`(\w+)`", types)) == set(TYPES.values())


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        ("date_trunc", ("'hours'", "t"), "date_trunc knows no 'hours'"),
        ("year", ("x",), "'year' does not take x (int64)"),
        ("year", (), "year(t) does not take 0 arguments"),
        ("replace", ("s", "s"), "takes a constant there"),
        ("add_months", ("z", 1), "months are counted without a zone, or in UTC, not in Europe/Berlin"),
        ("greatest", ("x", "s"), "'greatest' takes values of one type"),
    ],
)
def test_what_is_refused(function: str, arguments: tuple[Any, ...], message: str) -> None:
    types = {"x": pa.int64(), "s": pa.string(), "t": pa.timestamp("us"), "z": pa.timestamp("us", "Europe/Berlin")}
    operands = tuple(
        p.Attribute(one) if one in types else p.Constant(one.strip("'") if isinstance(one, str) else one)
        for one in arguments
    )
    with pytest.raises(QueryError) as raised:
        typed_operand(p.Function(function, operands), types)
    assert message in str(raised.value)
