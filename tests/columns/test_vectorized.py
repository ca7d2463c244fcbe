"""Whole columns against one event at a time, on random typed predicates and random data of every kind."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.columns.vectorized import computed, mask
from stretto.errors import DataError, QueryError
from stretto.query import predicate as p
from stretto.query.evaluate import holds, value
from stretto.query.typing import typed
from tests.conftest import cases

INTS = [0, 1, -1, 2, 3, 7, -7, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), 2**63 - 512]
NAN, INF = float("nan"), float("inf")
FLOATS = [
    0.0,
    -0.0,
    1.0,
    1.5,
    -1.5,
    2.0,
    0.1,
    3.0,
    2.0**53,
    2.0**53 + 2,
    2.0**63,
    -(2.0**63),
    1e300,
    5e-324,
    NAN,
    INF,
    -INF,
]
TEXTS = [
    "",
    "a",
    "A",
    "b",
    "ab",
    "a%",
    "a_b",
    "a\\b",
    "é",
    "e\u0301",
    "ß",
    "😀",
    "a\nb",
    "a\0",
    "aaaaaaaa",
    "aaaaaaaab",
    "\U0010ffff",
]
DECIMALS = [Decimal(x) for x in ("0.00", "0.10", "1.00", "2.50", "-2.50", "99999999.99", "-99999999.99", "0.33")]
MOMENTS = [
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2013, 1, 31, 12, 0, 0, 500000),
    dt.datetime(2013, 1, 31),
    dt.datetime(2020, 10, 25, 0, 30),
    dt.datetime(2020, 10, 25, 1, 30),
    dt.datetime(2200, 1, 1, 0, 0, 1),
]
NANOS = [0, 1, -1, 999, 1000, 10**9, 10**9 + 1, 1_359_590_400_000_000_000, -(10**9) - 1]


def _time(unit: str, tz: str | None = None) -> Any:
    kind = pa.timestamp(unit, tz)
    if unit == "ns":
        return kind, NANOS
    per = {"s": 10**6, "ms": 10**3, "us": 1}[unit]
    return kind, [(moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) // per for moment in MOMENTS]


#: Name → type and values.
COLUMNS: dict[str, Any] = {
    "i": (pa.int64(), INTS),
    "j": (pa.int64(), INTS),
    "i8": (pa.int8(), [0, 1, 2, 3, 127, -128]),
    "u64": (pa.uint64(), [0, 1, 2, 3, 2**63 - 1, 2**63, 2**64 - 1, 2**53 + 1]),
    "f": (pa.float64(), FLOATS),
    "g": (pa.float64(), FLOATS),
    "f32": (pa.float32(), [0.0, 0.5, 1.5, 0.1, NAN, INF, 2.0**24]),
    "m": (pa.decimal128(10, 2), DECIMALS),
    "wide": (pa.decimal128(38, 30), [Decimal("0.1"), Decimal("99999999.99"), Decimal("2.5"), Decimal("1e-30")]),
    "wider": (pa.decimal256(76, 2), [Decimal(10) ** 73, Decimal("2.5"), Decimal("0.1")]),
    "b": (pa.bool_(), [True, False]),
    "c": (pa.bool_(), [True, False]),
    "s": (pa.string(), TEXTS),
    "ls": (pa.large_string(), TEXTS),
    "sv": (pa.string_view(), TEXTS),
    "ds": (pa.dictionary(pa.int8(), pa.string()), TEXTS),
    "di": (pa.dictionary(pa.int32(), pa.int64()), INTS),
    "ts": _time("s"),
    "tms": _time("ms"),
    "tus": _time("us"),
    "tns": _time("ns"),
    "zs": _time("s", "UTC"),
    "zus": _time("us", "Europe/Berlin"),
    "zns": _time("ns", "America/New_York"),
    "d": (pa.date32(), [moment.date() for moment in MOMENTS]),
    "e": (pa.date64(), [moment.date() for moment in MOMENTS]),
    "blob": (pa.binary(), [b"", b"a"]),
    "list": (pa.list_(pa.int64()), [[1], []]),
}
TYPES = {name: kind for name, (kind, _) in COLUMNS.items()}

GROUPS = {
    "number": ["i", "j", "i8", "u64", "f", "g", "f32", "m", "wide", "wider", "di"],
    "text": ["s", "ls", "sv", "ds"],
    "time": ["ts", "tms", "tus", "tns", "d", "e"],
    "moment": ["zs", "zus", "zns"],
    "bool": ["b", "c"],
}

numbers = st.one_of(
    st.sampled_from(INTS),
    st.sampled_from(
        [Decimal("0.5"), Decimal("0.1"), Decimal("2.50"), Decimal("3.0"), Decimal("1e18"), Decimal("9.3e18")]
    ),
    st.integers(-4, 4),
    st.sampled_from([2**63, 2**64, -(2**63) - 1, 10**30]),
)
LITERALS: dict[str, st.SearchStrategy[Any]] = {
    "number": numbers,
    "text": st.one_of(st.sampled_from(TEXTS), st.text(max_size=3)),
    "time": st.sampled_from(["2013-01-31", "1970-01-01", "2013-01-31 12:00:00.5", "1969-12-31T23:59:59.999999"]),
    "moment": st.sampled_from(["2013-01-31", "2020-10-25T02:30:00+01:00", "1970-01-01T00:00:00.000001Z"]),
    "bool": st.booleans(),
}
OPS = ["=", "!=", "<", "<=", ">", ">="]


def operands(kind: str, names: list[str], *, computed: bool = True) -> st.SearchStrategy[p.Operand]:
    """Attributes, literals and (of numbers) computations."""
    chosen = [name for name in GROUPS[kind] if name in names]
    leaf: st.SearchStrategy[Any] = LITERALS[kind].map(p.Constant)
    if chosen:
        leaf = st.one_of(st.sampled_from(chosen).map(p.Attribute), st.sampled_from(chosen).map(p.Attribute), leaf)
    if kind != "number" or not computed:
        return leaf
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(p.Arithmetic, st.sampled_from("+-*/%"), inner, inner), st.builds(p.Negative, inner)
        ),
        max_leaves=3,
    )


@st.composite
def atoms(draw: Any, names: list[str], computed: bool = True) -> p.Predicate:
    """One comparison, IN, BETWEEN, LIKE or IS NULL."""
    kind = draw(st.sampled_from([kind for kind in GROUPS if any(name in names for name in GROUPS[kind])]))
    side = operands(kind, names, computed=computed)
    form = draw(st.integers(0, 6))
    if form == 0 and kind != "bool":
        return p.Between(draw(side), draw(side), draw(side))
    if form == 1:
        return p.In(draw(side), tuple(draw(st.lists(LITERALS[kind].map(p.Constant), min_size=1, max_size=7))))
    if form == 2 and kind == "text":
        pattern = st.one_of(
            st.text(st.sampled_from("ab%_é\\.\n"), max_size=5), st.sampled_from(["a%", "%b", "%a%", "a"])
        )
        return p.Like(draw(side), draw(pattern))
    if form == 3:
        return p.IsNull(draw(st.one_of(side, st.sampled_from(names).map(p.Attribute))))
    return p.Comparison(draw(st.sampled_from(OPS)), draw(side), draw(side))


def predicates(names: list[str], computed: bool = True) -> st.SearchStrategy[p.Predicate]:
    """Typed predicates over some of the columns."""
    tree = st.recursive(
        atoms(names, computed),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: p.And(tuple(parts))),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: p.Or(tuple(parts))),
            inner.map(p.Not),
        ),
        max_leaves=3,
    )
    return tree.map(_typed).filter(lambda predicate: predicate is not None)


def _typed(predicate: p.Predicate) -> Any:
    try:
        return typed(predicate, TYPES, None)
    except QueryError:
        return None


@st.composite
def tables(draw: Any, names: list[str], most: int = 8) -> pa.Table:
    """Rows with NULL, as one or several chunks, or a slice of a longer table."""
    rows = draw(st.integers(0, most))
    columns = []
    for name in names:
        kind, values = COLUMNS[name]
        picked = draw(st.lists(st.one_of(st.none(), st.sampled_from(values)), min_size=rows, max_size=rows))
        if name in GROUPS["text"] and rows:
            picked[0] = draw(st.one_of(st.none(), st.text(max_size=12)))
        columns.append(array_of(picked, kind))
    table = pa.table(columns, names)
    shape = draw(st.integers(0, 2))
    if shape == 1:
        cut = draw(st.integers(0, rows))
        return pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    if shape == 2:
        return table.slice(draw(st.integers(0, rows)), draw(st.integers(0, rows)))
    return table


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


@settings(max_examples=cases(1500))
@given(st.data())
def test_mask_says_what_holds_says(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(GROUPS)), min_size=1, max_size=2, unique=True))
    pool = [name for kind in kinds for name in GROUPS[kind]] + ["blob", "list"]
    names = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4, unique=True))
    names = list(dict.fromkeys([*names, GROUPS[kinds[0]][0]]))
    table = data.draw(tables(names))
    predicate = data.draw(predicates(names))
    try:
        found = mask(predicate, table)
    except DataError as error:
        if "beyond 64 bits" not in str(error):
            raise
        return
    assert found.dtype == np.bool_
    assert found.tolist() == [holds(predicate, row) for row in table.to_pylist()], str(predicate)


@pytest.mark.parametrize(
    ("expression", "row"),
    [
        (p.Arithmetic("*", p.Attribute("i"), p.Constant(2)), 2**62),
        (p.Arithmetic("+", p.Attribute("i"), p.Constant(1)), 2**63 - 1),
        (p.Arithmetic("-", p.Attribute("i"), p.Constant(1)), -(2**63)),
        (p.Arithmetic("div", p.Attribute("i"), p.Constant(-1)), -(2**63)),
        (p.Negative(p.Attribute("i")), -(2**63)),
    ],
)
def test_overflow_is_an_error_that_names_the_expression(expression: p.Operand, row: int) -> None:
    table = pa.table({"i": [0, row]})
    with pytest.raises(DataError, match="beyond 64 bits") as caught:
        mask(p.Comparison(">", expression, p.Constant(0)), table)
    assert str(expression) in str(caught.value)


def test_overflow_under_null_is_none() -> None:
    whole = pa.Array.from_buffers(
        pa.int64(), 1, [pa.py_buffer(b"\0"), pa.py_buffer((2**63 - 1).to_bytes(8, "little"))], null_count=1
    )
    predicate = p.Comparison(">", p.Arithmetic("+", p.Attribute("i"), p.Constant(1)), p.Constant(0))
    assert mask(predicate, pa.table({"i": whole})).tolist() == [False]


def test_the_smallest_remainder() -> None:
    predicate = p.Comparison("=", p.Arithmetic("%", p.Attribute("i"), p.Constant(-1)), p.Constant(0))
    assert mask(predicate, pa.table({"i": [-(2**63), 5]})).tolist() == [True, True]


def test_the_quotient_of_integers() -> None:
    rows = [
        (7, 2),
        (-7, 2),
        (7, -2),
        (-7, -2),
        (1, 0),
        (None, 3),
        (3, None),
        (2**63 - 1, -1),
        (-(2**63), 1),
        (-(2**63), 3),
    ]
    table = pa.table({"i": [one for one, _ in rows], "j": [other for _, other in rows]})
    node = p.Arithmetic("div", p.Attribute("i"), p.Attribute("j"))
    exact = [value(node, row) for row in table.to_pylist()]
    found = computed(node, table.to_batches()[0], pa.int64())
    assert found.to_pylist() == exact == [3, -3, -3, 3, None, None, None, -(2**63) + 1, -(2**63), -(2**63) // 3 + 1]
    with pytest.raises(DataError, match="beyond 64 bits"):
        computed(node, pa.record_batch({"i": [-(2**63)], "j": [-1]}), pa.int64())


def test_a_missing_column() -> None:
    with pytest.raises(DataError, match="no column 'prise'; did you mean 'price'"):
        mask(p.IsNull(p.Attribute("prise")), pa.table({"price": [1]}))


def test_constants_need_no_column() -> None:
    assert mask(p.Comparison("<", p.Constant(1), p.Constant(2)), pa.table({"x": [1, 2]})).tolist() == [True, True]


def test_many_small_chunks() -> None:
    table = pa.concat_tables([pa.table({"i": [k], "d": pa.array([str(k)]).dictionary_encode()}) for k in range(50)])
    predicate = p.And((p.Comparison(">", p.Attribute("i"), p.Constant(9)), p.Like(p.Attribute("d"), "_1")))
    assert np.flatnonzero(mask(predicate, table)).tolist() == [11, 21, 31, 41]


def test_dictionaries_that_cannot_be_joined() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    chunks = [pa.array([str(10 * k + j) for j in range(10)]).dictionary_encode().cast(kind) for k in range(20)]
    table = pa.table({"d": pa.chunked_array(chunks)})
    assert np.flatnonzero(mask(p.Comparison("=", p.Attribute("d"), p.Constant("157")), table)).tolist() == [157]
