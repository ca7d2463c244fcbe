"""Partition keys as numbers, against a Python dict."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stretto.columns.keys import KeyTable
from stretto.frame import Section
from tests.conftest import cases, size

KINDS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), None]),
    (pa.int8(), [0, 1, -128, None]),
    (pa.uint64(), [0, 2**64 - 1, 2**63, None]),
    (pa.float64(), [0.5, 0.0, -1e300, None]),
    (pa.bool_(), [True, False, None]),
    (pa.date32(), [dt.date(1960, 1, 1), dt.date(2020, 1, 1), None]),
    (pa.timestamp("us", "UTC"), [0, 5, -5, None]),
    (pa.string(), ["", "a", "aa", "ab", "a\0", "😀é", "x" * 40, "x" * 39 + "y", None]),
    (pa.large_string(), ["", "a", "ß", None]),
    (pa.string_view(), ["", "a long string that is not kept inline", None]),
    (pa.dictionary(pa.int8(), pa.string()), ["", "a", "b", None]),
    (pa.binary(), [b"", b"a", b"\0", None]),
    (pa.decimal128(20, 3), [Decimal("1.500"), Decimal("-2.000"), None]),
]


def copied(table: KeyTable) -> KeyTable:
    """The table that is read from what this one writes."""
    section, made = Section(), KeyTable(table.types)
    table.save(section)
    made.load(Section.of_bytes(section.to_bytes()))
    return made


def naive(rows: list[tuple[Any, ...]], known: dict[tuple[Any, ...], int]) -> list[int]:
    return [-1 if None in row else known.setdefault(row, len(known)) for row in rows]


@pytest.mark.parametrize("seed", range(cases(60)))
def test_against_a_dict(seed: int) -> None:
    rng = random.Random(seed)
    chosen = [rng.choice(KINDS) for _ in range(rng.choice([1, 1, 2, 3]))]
    table = KeyTable([kind for kind, _ in chosen])
    known: dict[tuple[Any, ...], int] = {}
    for _ in range(4):
        size = rng.randint(0, 40)
        columns = [pa.array([rng.choice(values) for _ in range(size)], kind) for kind, values in chosen]
        low = rng.randint(0, size)
        columns = [column.slice(low) for column in columns]
        rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
        if rng.random() < 0.5:
            assert table.ids(columns).tolist() == naive(rows, known)
        else:
            asked = np.flatnonzero(np.array([rng.random() < 0.5 for _ in rows], bool))
            assert table.ids(columns, asked).tolist() == naive([rows[i] for i in asked], known)
        assert len(table) == len(known)
        if rng.random() < 0.3:
            table = copied(table)
        if rng.random() < 0.3:
            alive = np.array([rng.random() < 0.6 for _ in known], bool)
            renamed = table.keep(alive)
            known = {key: int(renamed[number]) for key, number in known.items() if alive[number]}
            assert sorted(known.values()) == list(range(len(known)))


def test_zeros_and_nans_are_one_key() -> None:
    table = KeyTable([pa.float64()])
    assert table.ids([pa.array([0.0, -0.0, float("nan"), -float("nan")])]).tolist() == [0, 0, 1, 1]


def test_encodings_of_a_string_are_one_key() -> None:
    table = KeyTable([pa.string()])
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        assert table.ids([pa.array(["b", "a"], kind)]).tolist() == [0, 1]


def test_columns_do_not_run_together() -> None:
    table = KeyTable([pa.string(), pa.string()])
    assert table.ids([pa.array(["a", "ab"]), pa.array(["bc", "c"])]).tolist() == [0, 1]


def test_many_keys_and_chunks() -> None:
    count = size(200_000, 20_000)
    values = np.random.default_rng(1).permutation(count)
    for column in (pa.chunked_array([values[: count // 2], values[count // 2 :]]), pa.array(values.astype(str))):
        table = KeyTable([column.type])
        first = table.ids([column])
        assert first.tolist() == list(range(count))
        assert (table.ids([column]) == first).all()
        half = table.keep(np.arange(count) % 2 == 0)
        assert (half[::2] == np.arange((count + 1) // 2)).all()
        assert (half[1::2] == -1).all()
        assert table.nbytes < 80 * count
