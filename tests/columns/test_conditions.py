"""Conditions over columns against the scalar evaluation, and event classes against guards evaluated row by row."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stretto.columns.classes import Classifier
from stretto.columns.vectorized import mask
from stretto.errors import DataError, QueryError
from stretto.events import Schema
from stretto.languages.ceql import parse
from stretto.query.algebra import Filter
from stretto.query.evaluate import holds
from stretto.query.guard import Guard
from stretto.query.predicate import Predicate
from stretto.query.typing import typed
from tests.conftest import cases

UTC = dt.UTC
DAY = dt.datetime(2020, 2, 3, 4, 5, 6)

COLUMNS: dict[str, tuple[list[pa.DataType], list[Any]]] = {
    "i": ([pa.int64(), pa.int32(), pa.int8()], [0, 1, -1, 2, 3, 100, -128, None]),
    "j": ([pa.int64()], [0, 1, -7, 2**53, 2**53 + 1, 2**31, -(2**62), None]),
    "u": ([pa.uint8(), pa.uint32()], [0, 1, 2, 200, None]),
    "f": ([pa.float64(), pa.float32()], [0.0, -0.0, 1.0, 1.5, -2.25, math.inf, -math.inf, math.nan, None]),
    "d": ([pa.decimal128(10, 2)], [Decimal("1.50"), Decimal("-3.00"), Decimal("0.00"), None]),
    "s": (
        [pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string())],
        ["", "a", "ab", "b%", "a_b", "é", "😀x", "line\nbreak", "A", None],
    ),
    "b": ([pa.bool_()], [True, False, None]),
    "ts": ([pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us")], [DAY, DAY + dt.timedelta(1), None]),
    "tz": ([pa.timestamp("ms", "UTC")], [DAY.replace(tzinfo=UTC), None]),
    "day": ([pa.date32()], [DAY.date(), dt.date(1969, 12, 31), None]),
}

CONDITIONS = (
    """
i = 1|i != 1|i < 2|i >= 2.5|2 > i|i BETWEEN 0 AND 2|i IN (1, 3, 100)|i IS NULL|NOT i = 1|i + 1 > u|i * i = 1|i / u > 0.5
i % 2 = 1|-i = 1|i % u = 0|j = 9007199254740993|j > 9007199254740992|j + 1 > 0|u = 200|u < -1|u > 300|f = 0|f != 0|f > 1
f <= 1.5|f < f|f = f|f > i|f / 0 > 1|f BETWEEN -3 AND 1.5|f IN (1.5, 0)|d = 1.5|d > 1|d < i|d >= -3.00|d + 1 > 2|d IS NOT NULL
s = 'a'|s != 'a'|s < 'b'|s >= 'é'|s LIKE 'a%'|s LIKE '%_b'|s LIKE '_'|s LIKE '%e%k'|s IN ('a', '😀x', '')|s NOT IN ('a')
s NOT LIKE '%a%'|s IS NULL|s = 'ab' OR s = 'A'|b|NOT b|b = FALSE|b != TRUE|ts = '2020-02-03 04:05:06'|ts > '2020-02-03'
tz <= '2020-02-03T04:05:06+00:00'|tz = '2020-02-03 05:05:06+01:00'|day = '2020-02-03'|day < '2020-01-01'|ts IS NULL
i > 0 AND s = 'a'|i > 0 OR b|NOT (i > 0 OR f > 0)|i < u AND f < 1|s < 'z' AND NOT s = 'a'|TRUE|i = 1 OR i = 2 OR i = 3
""".replace("\n", "|")
    .strip("|")
    .split("|")
)


def condition(text: str) -> Predicate:
    pattern = parse(f"SELECT * FROM S WHERE A FILTER A[{text}]").pattern
    assert isinstance(pattern, Filter)
    return pattern.predicate


def random_table(rng: random.Random, rows: int) -> pa.Table:
    return pa.table(
        {
            name: pa.array([rng.choice(values) for _ in range(rows)], rng.choice(kinds))
            for name, (kinds, values) in COLUMNS.items()
        }
    )


@pytest.mark.parametrize("text", CONDITIONS)
def test_mask_agrees_with_holds(text: str) -> None:
    for seed in range(4):
        table = random_table(random.Random(seed), 40).slice(3)
        predicate = typed(condition(text), dict(zip(table.column_names, table.schema.types, strict=True)), text)
        expected = [holds(predicate, row) for row in table.to_pylist()]
        for batch in (table, table.combine_chunks().to_batches()[0]):
            assert mask(predicate, batch).tolist() == expected, (text, seed, table.schema)


@pytest.mark.parametrize("seed", range(cases(150)))
def test_classes_agree_with_guards(seed: int) -> None:
    rng = random.Random(seed)
    table = random_table(rng, 60).append_column(
        "type", pa.array([rng.choice(["A", "B", "C", None]) for _ in range(60)])
    )
    schema = Schema.of(table)
    guards = []
    for _ in range(rng.randint(1, 6)):
        chosen = rng.sample(CONDITIONS, rng.randint(0, 3))
        guards.append(Guard(rng.choice("AB"), None, tuple(typed(condition(t), schema.attributes, t) for t in chosen)))
    classifier = Classifier(guards, schema)
    for low, high in ((0, 0), (0, 7), (7, 60), (13, 50)):
        part = table.slice(low, high - low)
        found = [classifier.vectors[c] for c in classifier.classify(part)]
        expected = [
            sum(
                1 << n
                for n, g in enumerate(guards)
                if row["type"] == g.type and all(holds(c, row) for c in g.conditions)
            )
            for row in part.to_pylist()
        ]
        assert found == expected, seed
    assert classifier.vectors[0] == 0


def test_many_conditions_make_many_kinds_of_events() -> None:
    """More kinds of events than a table can hold, or 62 bits can number, are told apart all the same."""
    schema = Schema({"type": pa.string(), **{f"x{n}": pa.int64() for n in range(64)}})
    rng = np.random.default_rng(0)
    table = pa.table({"type": ["A"] * 50, **{f"x{n}": rng.integers(0, 2, 50) for n in range(64)}})

    def guard(count: int) -> list[Guard]:
        texts = [f"x{n} = 1" for n in range(count)]
        return [Guard("A", None, (typed(condition(t), schema.attributes, t),)) for t in texts]

    for count in (40, 64):
        classifier = Classifier(guard(count), schema)
        found = [classifier.vectors[c] for c in classifier.classify(table)]
        assert found == [sum(row[f"x{n}"] << n for n in range(count)) for row in table.to_pylist()]


def test_overflow_is_an_error() -> None:
    table = pa.table({"i": [2**62, 1]})
    predicate = typed(condition("i * 4 > 0"), {"i": pa.int64()}, "")
    with pytest.raises(DataError, match="overflow"):
        mask(predicate, table)


def test_another_type_than_the_schema_says() -> None:
    classifier = Classifier([Guard("A")], Schema({"type": pa.string()}))
    with pytest.raises(DataError, match="column 'type' is int64"):
        classifier.classify(pa.table({"type": [1]}))
    with pytest.raises(DataError, match="no column 'type'; did you mean 'typ'"):
        classifier.classify(pa.table({"typ": ["A"]}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i > 'x'", r"cannot compare i \(int64\) with a string"),
        ("s > 3", r"cannot compare s \(string\) with a number"),
        ("s + 1 > 3", "needs numbers"),
        ("i LIKE 'a'", "LIKE needs a string"),
        ("ts > 'soon'", "'soon' is no time"),
        ("day = '2020-01-01 10:00:00'", "is no date"),
        ("b > TRUE", "not ordered"),
        ("ii = 1", "unknown attribute 'ii'"),
        ("i IN (1, 'a')", "cannot compare"),
    ],
)
def test_wrong_types(text: str, message: str) -> None:
    kinds = {name: kinds[0] for name, (kinds, _) in COLUMNS.items()}
    with pytest.raises(QueryError, match=message):
        typed(condition(text), kinds, text)
