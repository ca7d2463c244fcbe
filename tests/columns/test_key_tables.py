"""Key tables against a Python dict."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.columns import keys
from stretto.columns.keys import KeyTable
from stretto.errors import DataError
from stretto.frame import Section
from tests.conftest import cases

NAN = float("nan")

KINDS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), 2**32]),
    (pa.int8(), [0, 1, -1, 127]),
    (pa.uint64(), [0, 1, 2**64 - 1, 2**63]),
    (pa.float64(), [0.0, -0.0, 1.5, NAN, -NAN, float("inf"), 5e-324]),
    (pa.float32(), [0.0, -0.0, 1.5, NAN]),
    (pa.bool_(), [True, False]),
    (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC)]),
    (pa.timestamp("s"), [dt.datetime(2020, 1, 1), dt.datetime(1900, 1, 1)]),
    (pa.date32(), [dt.date(2020, 1, 1), dt.date(1969, 12, 31)]),
    (pa.date64(), [dt.date(2020, 1, 1), dt.date(1969, 12, 31)]),
    (pa.time32("s"), [dt.time(1), dt.time(2)]),
    (pa.duration("us"), [dt.timedelta(1), dt.timedelta(-1)]),
    (pa.decimal128(10, 2), [Decimal("1.00"), Decimal("-1.00"), Decimal("99999999.99")]),
    (pa.decimal256(50, 2), [Decimal("1.00"), Decimal("-1.00"), Decimal(10) ** 40]),
    (pa.binary(), [b"", b"\0", b"\0\0", b"abc"]),
    (pa.binary(2), [b"ab", b"\0\0"]),
    (pa.string(), ["", "a", "a\0", "ab", "12345678", "123456789", "é", "😀" * 9]),
    (pa.large_string(), ["", "a", "a\0", "12345678", "123456789"]),
    (pa.string_view(), ["", "a", "a longer one than twelve"]),
    (pa.dictionary(pa.int8(), pa.string()), ["", "a", "b"]),
    (pa.dictionary(pa.int32(), pa.int64()), [5, 6]),
]


def copied(table: KeyTable) -> KeyTable:
    """The table that is read from what this one writes."""
    section, made = Section(), KeyTable(table.types)
    table.save(section)
    made.load(Section.of_bytes(section.to_bytes()))
    return made


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def same(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and value != value else value


class Judge:
    """Numbers from a dict."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Any, ...], int] = {}

    def ids(self, columns: list[list[Any]], rows: list[int]) -> list[int]:
        out = []
        for row in rows:
            key = tuple(same(column[row]) for column in columns)
            out.append(-1 if None in key else self.numbers.setdefault(key, len(self.numbers)))
        return out

    def keep(self, alive: list[bool]) -> None:
        kept = [key for key, number in self.numbers.items() if alive[number]]
        self.numbers = {key: number for number, key in enumerate(kept)}


@settings(max_examples=cases(500))
@given(st.data())
def test_ids_are_those_of_a_dict(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    kinds = [kind for kind, _ in chosen]
    table = KeyTable(kinds, capacity=data.draw(st.sampled_from([1, 256])))
    judge = Judge()
    for _ in range(data.draw(st.integers(1, 4))):
        length = data.draw(st.integers(0, 10))
        arrays = []
        for kind, values in chosen:
            picked = data.draw(st.lists(st.sampled_from([*values, None]), min_size=length + 2, max_size=length + 2))
            array = array_of(picked, kind).slice(1, length)
            shape = data.draw(st.integers(0, 2))
            if shape:
                cut = data.draw(st.integers(0, length))
                array = pa.chunked_array([array.slice(0, cut), array.slice(cut)], kind)
            arrays.append(array)
        rows = None
        if data.draw(st.booleans()) and length:
            rows = data.draw(st.lists(st.integers(0, length - 1), max_size=12))
            if data.draw(st.booleans()):
                rows = sorted(rows)
        found = table.ids(arrays, None if rows is None else np.array(rows, np.int64))
        assert found.dtype == np.int64
        columns = [array.to_pylist() for array in arrays]
        assert found.tolist() == judge.ids(columns, list(range(length)) if rows is None else rows)
        assert len(table) == len(judge.numbers)
        step = data.draw(st.integers(0, 3))
        if step == 0:
            alive = data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table)))
            renamed = table.keep(np.array(alive, np.bool_))
            kept = iter(range(len(alive)))
            assert renamed.tolist() == [next(kept) if one else -1 for one in alive]
            judge.keep(alive)
        elif step == 1:
            table = copied(table)
    assert len(table) == len(judge.numbers)


def test_strings_in_any_layout_are_one_key() -> None:
    texts = ["a", "", "12345678", "a string that is longer", "é", None, "a"]
    layouts = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
    for kind in layouts:
        for second in ([], [pa.int64()]):
            table = KeyTable([kind, *second])
            more = [pa.array([1] * len(texts))] if second else []
            for other in layouts:
                assert table.ids([array_of(texts, other), *more]).tolist() == [0, 1, 2, 3, 4, -1, 0]


def test_dictionaries_with_null_and_unused_values() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 2, 0]), pa.array(["a", None, "b", "unused"]))
    table = KeyTable([array.type])
    assert table.ids([array]).tolist() == [0, -1, -1, 0, 1]
    nothing = pa.DictionaryArray.from_arrays(pa.array([None], pa.int32()), pa.array([], pa.string()))
    assert table.ids([nothing]).tolist() == [-1]
    numbers = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 2]), pa.array([7, 8, None]))
    assert KeyTable([pa.int64()]).ids([numbers]).tolist() == [0, 1, -1, -1]


def test_values_that_run_together_stay_apart() -> None:
    table = KeyTable([pa.string(), pa.string()])
    left, right = pa.array(["ab", "a", "", "abc"]), pa.array(["c", "bc", "abc", ""])
    assert table.ids([left, right]).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_growing(kind: pa.DataType) -> None:
    table = KeyTable([kind], capacity=1)
    values = [str(k) if kind == pa.string() else k * 2**20 for k in range(500)]
    for begin in range(0, 500, 100):
        assert table.ids([pa.array(values[: begin + 100], kind)]).tolist() == list(range(begin + 100))
    full = table.nbytes
    assert table.keep(np.arange(500) == 77)[77] == 0
    assert table.nbytes < full
    assert table.ids([pa.array(values[76:79], kind)]).tolist() == [1, 0, 2]
    table.keep(np.zeros(3, np.bool_))
    assert len(table) == 0
    assert table.ids([pa.array(values[:2], kind)]).tolist() == [0, 1]


@pytest.mark.parametrize("first", [0, 2**40, -(2**40)])
def test_keys_that_lie_near_each_other(first: int) -> None:
    """Numbers of users, some far from all others, and NULLs, also after keys were forgotten and in a copy."""
    random = np.random.default_rng(7)
    table, judge = KeyTable([pa.int64()], capacity=1), Judge()
    for turn in range(12):
        values: list[Any] = (first + random.integers(0, 300 * (1 + turn // 4), 400)).tolist()
        values[:5] = [None, 2**63 - 1, -(2**63), first - 1, first + 10**6 + turn]
        random.shuffle(values)
        assert table.ids([pa.array(values, pa.int64())]).tolist() == judge.ids([values], list(range(400)))
        if turn == 5:
            alive = random.random(len(table)) < 0.5
            table.keep(alive)
            judge.keep(alive.tolist())
        if turn == 8:
            table = copied(table)
    assert table._table.near.any()


def test_equal_hashes_are_no_equal_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a few slots every probe meets other keys; with any hash the answer is the same."""
    monkeypatch.setattr(keys, "BLOCK", 2)
    table = KeyTable([pa.int64(), pa.int64()], capacity=1)
    left, right = np.divmod(np.arange(400), 20)
    assert table.ids([pa.array(left), pa.array(right)]).tolist() == list(range(400))
    assert table.ids([pa.array(left[::-1]), pa.array(right[::-1])]).tolist() == list(range(400))[::-1]


def test_hashes_spread() -> None:
    """Keys that differ by powers of two, or in one byte only, do not pile up in few slots."""
    for step in (1, 2**8, 2**16, 2**32, 2**44):
        table = KeyTable([pa.int64()])
        table.ids([pa.array(np.arange(2000) * step)])
        filled = table._table.slot != 0
        runs = np.diff(np.flatnonzero(np.diff(np.concatenate(([0], filled.astype(np.int8), [0])))))[::2]
        assert runs.max() < 60, step


def test_a_key_without_columns() -> None:
    table = KeyTable([])
    assert len(table) == 0
    assert table.ids([], np.arange(3)).tolist() == [0, 0, 0]
    assert len(table) == 1
    assert len(copied(table)) == 1
    assert table.keep(np.array([False])).tolist() == [-1]
    assert len(table) == 0
    with pytest.raises(DataError, match="pass rows"):
        table.ids([])


def test_wrong_columns() -> None:
    table = KeyTable([pa.int64()])
    with pytest.raises(DataError, match="is string, expected int64"):
        table.ids([pa.array(["a"])])
    with pytest.raises(DataError, match="a key has 1 columns, not 2"):
        table.ids([pa.array([1]), pa.array([1])])
    with pytest.raises(DataError, match="cannot be a key"):
        KeyTable([pa.list_(pa.int64())])
    with pytest.raises(ValueError, match="3 truth values for 0 keys"):
        table.keep(np.ones(3, np.bool_))


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_arrays_that_are_no_table(kind: pa.DataType) -> None:
    table = KeyTable([kind])
    table.ids([pa.array([1, 2]).cast(kind)])
    section = Section()
    table.save(section)
    section.arrays["count"] = np.array([3])
    with pytest.raises(DataError, match="no table of keys"):
        KeyTable([kind]).load(section)
