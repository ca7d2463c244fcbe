"""Counts and sums of values of every type: a matcher gives what ``match`` gives, typed the same, at any cut and ahead."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import stretto

DAY = dt.datetime(2024, 5, 1)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "decimals": (pa.decimal128(10, 2), [Decimal("0.10"), Decimal("-3.25"), None, Decimal("99999999.99")]),
    "durations": (pa.duration("ms"), [dt.timedelta(seconds=3), dt.timedelta(days=-2), None, dt.timedelta(0)]),
    "bytes": (pa.uint8(), [0, 255, None, 7]),
    "unsigned": (pa.uint64(), [0, 1 << 40, None, (1 << 62) - 1]),
    "integers": (pa.int64(), [-(1 << 60), 1 << 60, None, 0]),
    "dates": (pa.date32(), [dt.date(2024, 5, 1), dt.date(1969, 12, 31), None, dt.date(2024, 2, 29)]),
    "milliseconds of dates": (pa.date64(), [dt.date(2024, 5, 1), dt.date(1969, 12, 31), None, dt.date(2024, 2, 29)]),
    "timestamps": (pa.timestamp("ns", "UTC"), [DAY, DAY + dt.timedelta(microseconds=1), None, dt.datetime(1960, 1, 1)]),
    "doubles": (pa.float64(), [0.5, math.nan, None, -1e300]),
    "finite doubles": (pa.float64(), [0.5, 2.0, None, -8.0]),
    "singles": (pa.float32(), [0.5, math.inf, None, -2.0]),
    "NULL": (pa.int16(), [None]),
}


def events(kind: str) -> pa.Table:
    choose = random.Random(kind)
    value, drawn = VALUES[kind]
    rows = [{"type": choose.choice("AAB"), "t": at // 2, "k": choose.choice([1, 2, None])} for at in range(24)]
    values = pa.array([choose.choice(drawn) for _ in rows], value)
    return pa.Table.from_pylist(rows).append_column("v", values).append_column("n", pa.array(range(24), pa.int64()))


def query(kind: str, scope: str) -> str:
    value = VALUES[kind][0]
    summed = not pa.types.is_date(value) and not pa.types.is_timestamp(value)
    items = ["COUNT(*)", "COUNT(a[v])", "MIN(a[v])", "MAX(b[v])"]
    # Beyond 64 bits is an error, and in which order parts are added up is not said.
    items += ["SUM(a[v])"] if summed and kind not in ("integers", "unsigned") else []
    items += ["AVG(b[v])"] if summed and not pa.types.is_duration(value) else []
    items += ["CAST(SUM(a[v]) AS DOUBLE) AS real"] if summed and not pa.types.is_duration(value) else []
    return f"SELECT {', '.join(items)} FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 8 [t]{scope}"


def shown(table: pa.Table) -> list[str]:
    rows = [{name: _rounded(value) for name, value in row.items()} for row in table.to_pylist()]
    return sorted(map(repr, rows))


def _rounded(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value


@pytest.mark.parametrize("scope", ["", " EVERY EVENT", " EVERY 3"])
@pytest.mark.parametrize("kind", VALUES)
def test_a_matcher_gives_what_match_gives(kind: str, scope: str) -> None:
    table = events(kind)
    text = query(kind, scope)
    expected = stretto.match(text, table, time="t")
    assert expected.num_rows
    compiled = stretto.compile(text, table.schema, time="t")
    for size in (1, 5):
        matcher, found = stretto.Matcher(compiled), []
        for at in range(0, table.num_rows, size):
            found.append(matcher.push(table.slice(at, size)))
            matcher = stretto.Matcher(compiled).restore(matcher.snapshot())
        whole = pa.concat_tables([*found, matcher.finish()])
        assert whole.schema == expected.schema
        assert shown(whole) == shown(expected)
    options: dict[str, Any] = {"speculation": math.inf, "sequence": "n"}
    matcher, left = stretto.Matcher(compiled, **options), []
    order = random.Random(1).sample(range(table.num_rows), table.num_rows)
    for at in order:
        step = matcher.push(table.slice(at, 1))
        assert step.drop_columns(["sign"]).schema == expected.schema
        for row in step.to_pylist():
            sign, one = row.pop("sign"), repr(row)
            left.append(one) if sign > 0 else left.remove(one)
        matcher = stretto.Matcher(compiled, **options).restore(matcher.snapshot())
    assert matcher.finish().num_rows == 0
    assert len(left) == expected.num_rows
    if not scope:
        assert sorted(left) == sorted(map(repr, expected.to_pylist())) or pa.types.is_floating(VALUES[kind][0])
