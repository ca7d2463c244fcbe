"""Event classes against the guards of each row, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.columns import cells, classes
from stretto.columns.classes import Classifier
from stretto.errors import DataError, LimitError, OptionError
from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.evaluate import holds
from stretto.query.guard import Guard
from tests.columns.test_vectorized import GROUPS, TYPES, predicates, tables
from tests.conftest import MODE, cases

KINDS = ["A", "B", "", "a longer type", "a longer type!"]
STREAMS = ["S", "T"]

TEXTS = st.sampled_from([pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])


def expected(guards: list[Guard], schema: Schema, table: pa.Table, default: str) -> list[int]:
    """The vector of each row, straight from the definition."""
    vectors = []
    for row in table.to_pylist():
        stream = row[schema.stream] if schema.stream else default
        kind = row[schema.type] if schema.type else stream
        vector = 0
        for g, guard in enumerate(guards):
            named = kind == guard.type and guard.stream in (None, stream)
            vector |= (named and all(holds(part, row) for part in guard.conditions)) << g
        vectors.append(vector)
    return vectors


def found(classifier: Classifier, table: pa.RecordBatch | pa.Table) -> list[int]:
    ids = classifier.classify(table)
    assert ids.dtype == np.int32
    assert ids.shape == (table.num_rows,)
    return [classifier.vectors[k] for k in ids]


@st.composite
def guards_over(draw: Any, names: list[str]) -> list[Guard]:
    some = draw(st.lists(predicates(names), min_size=1, max_size=5))
    return [
        Guard(
            draw(st.sampled_from(KINDS)),
            draw(st.sampled_from([None, None, *STREAMS])),
            tuple(dict.fromkeys(draw(st.lists(st.sampled_from(some), max_size=2)))),
        )
        for _ in range(draw(st.integers(1, 5)))
    ]


def encoded(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode().cast(kind)
    return pa.array(values, kind)


@settings(max_examples=cases(800))
@given(st.data())
def test_classes_are_the_guards_of_every_row(data: st.DataObject) -> None:
    pool = [name for names in GROUPS.values() for name in names] + ["list"]
    names = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4, unique=True))
    if set(names) == {"list"}:
        names.append("i")
    roles: dict[str, Any] = {"type": None}
    kinds = dict(TYPES)
    for role in ("type", "stream"):
        if data.draw(st.booleans()):
            roles[role] = f"the {role}"
            kinds[f"the {role}"] = data.draw(TEXTS)
    schema = Schema(kinds, **roles)
    guards = data.draw(guards_over(names))
    classifier = Classifier(guards, schema, default_type="S", default_stream="S")
    batches = []
    for _ in range(data.draw(st.integers(1, 3))):
        table = data.draw(tables(names))
        for role, values in (("type", KINDS), ("stream", STREAMS)):
            if roles.get(role):
                length = table.num_rows
                chosen = st.lists(st.sampled_from([*values, None, "other"]), min_size=length, max_size=length)
                table = table.append_column(roles[role], encoded(data.draw(chosen), kinds[roles[role]]))
        batches.append(table)
    for table in batches:
        try:
            vectors = found(classifier, table)
        except DataError as error:
            if "beyond 64 bits" not in str(error):
                raise
            continue
        assert vectors == expected(guards, schema, table, "S")
    assert classifier.vectors[0] == 0
    assert len(set(classifier.vectors)) == len(classifier.vectors)


def column(name: str, kind: pa.DataType) -> Schema:
    return Schema({name: kind}, type=None)


def guard(*conditions: p.Predicate) -> Guard:
    return Guard("S", None, conditions)


def compared(op: str, value: Any, name: str = "x") -> p.Predicate:
    return p.Comparison(op, p.Attribute(name), p.Constant(value))


def test_strings_alike_in_their_first_eight_bytes() -> None:
    texts = ["", "a", "a\0", "12345678", "123456789", "123456780", "1234567", "x" * 40, "x" * 39 + "y"]
    guards = [guard(compared("=", text)) for text in texts]
    classifier = Classifier(guards, column("x", pa.string()), default_type="S")
    rows = [*texts, "12345678 ", "x" * 41, "aa", None]
    vectors = [1 << k for k in range(len(texts))] + [0] * 4
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert found(classifier, pa.table({"x": pa.array(rows, kind)})) == vectors
        assert found(classifier, pa.table({"x": pa.array(["pad", *rows, "pad"], kind).slice(1, len(rows))})) == vectors


def test_many_equal_strings_and_collisions() -> None:
    texts = [f"name{k}" for k in range(300)]
    guards = [guard(p.In(p.Attribute("x"), tuple(p.Constant(t) for t in texts[k::7]))) for k in range(7)]
    classifier = Classifier(guards, column("x", pa.string()), default_type="S")
    assert found(classifier, pa.table({"x": [*texts, "name300"]})) == [1 << (k % 7) for k in range(300)] + [0]


def test_dictionaries_differ_from_chunk_to_chunk() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2], pa.int8()), pa.array(["a", "b", None])),
        pa.DictionaryArray.from_arrays(pa.array([1, 0, 0, 1], pa.int8()), pa.array(["b", "a"])),
        pa.DictionaryArray.from_arrays(pa.array([], pa.int8()), pa.array([], pa.string())),
    ]
    guards = [guard(compared("=", "a")), guard(p.Like(p.Attribute("x"), "%b%")), guard(p.IsNull(p.Attribute("x")))]
    classifier = Classifier(guards, column("x", kind), default_type="S")
    assert found(classifier, pa.table({"x": pa.chunked_array(chunks, kind)})) == [1, 2, 4, 4, 1, 2, 2, 1]


def test_rows_beyond_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "PIECE", 3)
    table = pa.table({"x": [*range(20), None], "y": ["a", "b", None] * 7, "z": [True, False, None] * 7})
    guards = [guard(compared(">", k, "x"), compared("=", "a", "y")) for k in (3, 15)]
    guards += [
        guard(compared("=", True, "z")),
        guard(p.Comparison("<", p.Attribute("x"), p.Arithmetic("*", p.Attribute("x"), p.Attribute("x")))),
    ]
    schema = Schema.of(table, type=None)
    classifier = Classifier(guards, schema, default_type="S")
    assert found(classifier, table.slice(1)) == expected(guards, schema, table.slice(1), "S")


def test_places_of_integers_and_floats() -> None:
    numbers = [-(2**63), -(2**63) + 1, -1, 0, 1, 4095, 2**53 + 1, 2**63 - 2, 2**63 - 1]
    for constants in ([0], numbers, numbers[1:-1], [5, 7], [2**63 - 1], [2**70, -(2**70)]):
        guards = [guard(compared(op, c)) for op in ("=", "!=", "<", "<=", ">", ">=") for c in constants]
        classifier = Classifier(guards, column("x", pa.int64()), default_type="S")
        table = pa.table({"x": pa.array([*numbers, 5, 6, 7, None], pa.int64())})
        assert found(classifier, table) == expected(guards, classifier.schema, table, "S")
    reals = [float("-inf"), -1e308, -5e-324, -0.0, 0.0, 5e-324, 1.5, float("inf"), float("nan"), -float("nan")]
    for some in (reals[:1], reals[3:4], reals[:-1], reals):
        guards = [guard(compared(op, c)) for op in ("=", "!=", "<", "<=", ">", ">=") for c in some]
        classifier = Classifier(guards, column("x", pa.float64()), default_type="S")
        table = pa.table({"x": pa.array([*reals, None])})
        assert found(classifier, table) == expected(guards, classifier.schema, table, "S")


def test_too_many_cells_for_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "DENSE", 1)
    rng = np.random.default_rng(1)
    names = [f"c{k}" for k in range(6)]
    table = pa.table({name: rng.integers(0, 4, 300) for name in names})
    guards = [guard(compared("<", k % 4, name)) for k, name in enumerate(names)]
    schema = Schema.of(table, type=None)
    classifier = Classifier(guards, schema, default_type="S")
    for begin in range(0, 300, 70):
        part = table.slice(begin, 70)
        assert found(classifier, part) == expected(guards, schema, part, "S")


@pytest.mark.parametrize("most", [1 << 20, 8])
def test_more_cells_than_64_bits_number(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(cells, "MOST_SEEN", most)
    monkeypatch.setattr(classes, "PIECE", 16)
    monkeypatch.setattr(cells, "MOST_CELLS", 1 << (62 if most > 8 else 12))
    rng = np.random.default_rng(2)
    names = [f"c{k}" for k in range(80)]
    columns = {name: rng.integers(0, 3, 90) for name in names}
    table = pa.table(columns)
    guards = [guard(compared("=", 1, name)) for name in names] + [
        guard(compared("=", 0, "c0"), compared("<", 2, "c79"))
    ]
    schema = Schema.of(table, type=None)
    classifier = Classifier(guards, schema, default_type="S")
    assert len(classifier._stages) > 1
    for part in (table, table.slice(10, 40)):
        assert found(classifier, part) == expected(guards, schema, part, "S")


def test_too_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "MOST_CLASSES", 4)
    classifier = Classifier([guard(compared("=", k)) for k in range(9)], column("x", pa.int64()), default_type="S")
    with pytest.raises(LimitError, match="9 conditions tell apart more than 4 classes"):
        classifier.classify(pa.table({"x": list(range(9))}))
    assert found(classifier, pa.table({"x": [0, 20]})) == [1, 0] or len(classifier.vectors) == 4


def test_conditions_without_columns() -> None:
    true, false = p.Comparison("<", p.Constant(1), p.Constant(2)), p.Comparison("<", p.Constant(2), p.Constant(1))
    guards = [guard(true), guard(false), Guard("other"), Guard("S", "T"), guard(p.Or((false, true)))]
    classifier = Classifier(guards, Schema({"x": pa.int64()}, type=None), default_type="S", default_stream="S")
    assert found(classifier, pa.table({"x": [1, 2]})) == [0b10001, 0b10001]
    assert classifier.describe() == []
    assert found(Classifier([], Schema({"x": pa.int64()}, type=None)), pa.table({"x": [1]})) == [0]


def test_empty_batches() -> None:
    schema = Schema({"type": pa.string(), "x": pa.float64()})
    classifier = Classifier([Guard("A", None, (compared(">", 1.0),))], schema)
    empty = pa.schema([("type", pa.string()), ("x", pa.float64())]).empty_table()
    assert found(classifier, empty) == []
    assert found(classifier, pa.RecordBatch.from_pylist([], empty.schema)) == []


def test_a_record_batch() -> None:
    classifier = Classifier([Guard("A"), Guard("B")], Schema({"type": pa.string()}))
    assert found(classifier, pa.record_batch({"type": ["B", None, "A"]})) == [2, 0, 1]


def test_the_stream_is_the_type_where_there_is_no_other() -> None:
    classifier = Classifier([Guard("A"), Guard("B", "B")], Schema({"s": pa.string()}, type=None, stream="s"))
    assert found(classifier, pa.table({"s": ["A", "B", None]})) == [1, 2, 0]


def test_intern() -> None:
    classifier = Classifier([Guard("A"), Guard("B")], Schema({"type": pa.string()}))
    assert classifier.intern(0) == 0
    number = classifier.intern(0b10)
    assert classifier.intern(0b10) == number
    assert classifier.classify(pa.table({"type": ["B"]})).tolist() == [number]


def test_one_and_one_point_zero_compute_differently() -> None:
    def product(factor: Any) -> p.Predicate:
        return p.Comparison("=", p.Arithmetic("*", p.Attribute("x"), p.Constant(factor)), p.Constant(2**53 + 1))

    classifier = Classifier([guard(product(1)), guard(product(1.0))], column("x", pa.int64()), default_type="S")
    assert found(classifier, pa.table({"x": [2**53 + 1, 2**53]})) == [1, 0]


def test_columns_that_do_not_fit() -> None:
    schema = Schema({"type": pa.string(), "price": pa.float64()})
    classifier = Classifier([Guard("A", None, (compared(">", 1.0, "price"),))], schema)
    with pytest.raises(DataError, match="column 'price' is int64, expected double"):
        classifier.classify(pa.table({"type": ["A"], "price": [1]}))
    with pytest.raises(DataError, match="no column 'price'; did you mean 'prize'"):
        classifier.classify(pa.table({"type": ["A"], "prize": [1.0]}))
    # Another encoding of the same values is no other type.
    assert found(classifier, pa.table({"type": pa.array(["A"]).dictionary_encode(), "price": [2.0]})) == [1]


def test_types_that_are_all_null() -> None:
    classifier = Classifier([Guard("A")], Schema({"type": pa.null()}))
    assert found(classifier, pa.table({"type": pa.nulls(2)})) == [0, 0]


@pytest.mark.parametrize("role", ["type", "stream"])
def test_roles_need_strings(role: str) -> None:
    with pytest.raises(OptionError, match=f"{role}='k' is int64, not a column of strings"):
        Classifier([Guard("A")], Schema({"k": pa.int64()}, **{"type": None, role: "k"}))
    with pytest.raises(OptionError, match="no column"):
        Classifier([Guard("A")], Schema({"k": pa.int64()}, **{"type": None, role: "gone"}))


def test_description() -> None:
    schema = Schema({"type": pa.string(), "x": pa.int64(), "y": pa.int64()})
    less = p.Comparison("<", p.Attribute("x"), p.Attribute("y"))
    classifier = Classifier([Guard("A", None, (compared(">", 3),)), Guard("B", None, (compared("<", 9), less))], schema)
    classifier.classify(pa.table({"type": ["A"], "x": [4], "y": [4]}))
    assert classifier.describe() == [
        "type: type = 'A', type = 'B'",
        "x: x > 3, x < 9",
        "x, y: x < y",
        "these tell apart 24 kinds of events at most",
    ]


@pytest.mark.skipif(MODE != "bounds-checked", reason="other kernels do not ask, and read what lies before the array")
def test_a_negative_index_is_out_of_bounds() -> None:
    with pytest.raises(IndexError):
        cells._look_up(np.full(1, -1), np.zeros(4, np.int32), np.zeros(1, np.int32))


def test_a_constant_between_two_columns() -> None:
    """Each of them is asked for, whatever their types."""
    table = pa.table(
        {"type": ["A"] * 4, "low": [1, 6, 1, None], "high": [9, 9, 3, 9], "s": list("acaa"), "e": list("cdaz")}
    )
    for asked, right in (
        (p.Between(p.Constant(5), p.Attribute("low"), p.Attribute("high")), [True, False, False, False]),
        (p.Between(p.Constant("b"), p.Attribute("s"), p.Attribute("e")), [True, False, False, True]),
    ):
        classifier = Classifier([Guard("A", None, (asked,))], Schema.of(table.schema))
        assert [classifier.vectors[one] == 1 for one in classifier.classify(table)] == right
