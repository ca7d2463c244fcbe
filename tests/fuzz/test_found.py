"""What random cases led to, made small: each was another error than one of stretto, or none that ended."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.languages.match_recognize import parse as parse_clause
from stretto.matching.sql.row_pattern_table import unmet
from stretto.query.passes.bind_rows import bind as bind_rows

AB = "SELECT * FROM S WHERE A ; B"
EVENTS = {"type": ["A", "B"], "t": [2, 1]}


def test_a_table_that_duckdb_does_not_read() -> None:
    table = pa.table({"x": pa.array([Decimal(1)], pa.decimal256(50, 5))})
    with pytest.raises(stretto.DataError, match="DuckDB does not read the table 't': Unsupported Internal Arrow Type"):
        stretto.sql("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)) AS m WHERE true", t=table)


@pytest.mark.parametrize("kind", [pa.map_(pa.string(), pa.int64()), pa.list_(pa.int64()), pa.month_day_nano_interval()])
@pytest.mark.parametrize("call", [stretto.match, stretto.explain])
def test_columns_without_an_order(kind: pa.DataType, call: Any) -> None:
    events = pa.table(EVENTS | {"s": pa.nulls(2, kind), "t": [1, 1]})
    with pytest.raises(stretto.OptionError, match="in no order of 's'"):
        call(AB, events, time="t", sequence="s")


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.float16(), pa.string_view(), pa.int8()])
def test_events_are_sorted_by_any_type(kind: pa.DataType) -> None:
    values = pa.array(["2", "1"] if "string" in str(kind) else [2, 1]).cast(kind)
    events = pa.table({"type": ["B", "A"], "t": [1, 1], "s": values})
    found = stretto.match(AB, events, time="t", sequence="s", output="positions")
    assert found.select(["start", "end"]).to_pylist() == [{"start": 1, "end": 0}]


def test_keys_whose_type_does_not_hold_all_of_them() -> None:
    events = pa.table(
        {"type": ["A", "B"], "t": [1, 2], "x": [1, 1], "y": pa.array([Decimal(1)] * 2, pa.decimal128(38, 37))}
    )
    with pytest.raises(stretto.DataError, match="the key 'x' is compared as decimal128"):
        stretto.match("sequence [A where true] by x [B where true] by y", events, time="t", language="eql")


def test_a_timeline_of_a_match_without_rows() -> None:
    events = pa.table({"type": ["A"], "t": [1]})
    found = stretto.match("SELECT NONE FROM S WHERE A", events, time="t")
    assert "1" in str(stretto.timeline(found, events, time="t"))


@pytest.mark.parametrize(
    "query",
    [
        *(f"{AB} LIMIT {1 << 63}", "PATTERN SEQ(A a) LIMIT 99999999999999999999"),
        *(f"PATTERN SEQ(A{{1,{1 << 63}}} a[])", f"PATTERN SEQ(A{{{'1' * 5000},}} a[])"),
    ],
)
def test_counts_of_more_than_64_bits(query: str) -> None:
    with pytest.raises(stretto.QueryError, match=r"nothing is counted beyond|more than 400 digits"):
        stretto.match(query, pa.table(EVENTS))


def test_the_events_of_a_sample_are_numbered_in_few_digits() -> None:
    query = f"sample by t [A where events[{'1' * 5000}].t == 1] [B where true]"
    with pytest.raises(stretto.QueryError, match="more than 400 digits"):
        stretto.match(query, pa.table(EVENTS), time="t", language="eql")


def test_why_a_clause_with_exponentially_many_ways_has_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clause is gone through to its end, and what is tried instead of it is given up."""
    monkeypatch.setattr("stretto.asking.row_events.FEW_FAILED", 50)
    statement = (
        "SELECT * FROM t MATCH_RECOGNIZE (MEASURES 1 AS m PATTERN (^ (A | B)* (LAST_A | LAST_B) $) "
        "DEFINE LAST_A AS sum(A.x) + x = 2 * sum(B.x) + 1000, LAST_B AS sum(B.x) + x = 2 * sum(A.x) + 1000)"
    )
    rows = pa.table({"x": [1 << number for number in range(8)]})
    assert "were not tried to their end" in str(stretto.why_not(stretto.compile_sql(statement, t=rows), rows))


@pytest.mark.parametrize(
    "query",
    [
        *("SELECT * FROM S WHERE A ; NOT A WITHIN 5 [t]", "PATTERN SEQ(A a, ~(C c)) WITHIN 5"),
        "MATCH_RECOGNIZE (ORDER BY t MEASURES 1 AS m PATTERN (A B))",
    ],
)
@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint64()])
def test_a_punctuation_below_zero_of_times_without_a_sign(query: str, kind: pa.DataType) -> None:
    """The greatest time seen minus the disorder is none of the column's type."""
    events = pa.table({"type": ["A", "B", "D"], "t": pa.array([1, 2, 3], kind)})
    roles = {} if query.startswith("MATCH") else {"time": "t"}
    matcher = stretto.Matcher(query, events.schema, disorder=100, **roles)
    matcher.push(events)
    assert matcher.punctuation == -97
    if roles:
        assert matcher.held()["punctuation"].to_pylist() == [-97]
    assert matcher.finish().num_rows == 1


def test_a_lifetime_that_leaves_the_type_of_times() -> None:
    afa = stretto.AFA({"type": str}, window=100).arc("q0", "q1", when="e.type = 'A'").final("q1")
    matcher = stretto.Matcher(afa, time="t")
    with pytest.raises(stretto.DataError, match="a time leaves int8"):
        matcher.push(pa.table({"type": ["A"], "t": pa.array([100], pa.int8())}))


@pytest.mark.parametrize("value", [1 << 64, -(1 << 64)])
def test_a_value_of_more_than_64_bits(value: int) -> None:
    with pytest.raises(stretto.QueryError, match="does not fit into 64 bits"):
        stretto.match(f"PATTERN SEQ(A a) RETURN {value} AS y", pa.table(EVENTS))
    for measure in (f"{value}", f"max({value})", f"array_agg({value})"):
        with pytest.raises(stretto.QueryError, match="does not fit into 64 bits"):
            stretto.sql(f"SELECT * FROM e MATCH_RECOGNIZE (MEASURES {measure} AS y PATTERN (A))", e=EVENTS)


ODD = {
    "float16": pa.array([1, 2, 1, 2]).cast(pa.float16()),
    "times in a dictionary": pa.array([1, 2, 1, 2]).cast(pa.timestamp("us")).dictionary_encode(),
    "decimals in a dictionary": pa.array([Decimal(1), Decimal(2)] * 2).dictionary_encode(),
    "NULL": pa.nulls(4),
}


@pytest.mark.parametrize("column", ODD.values(), ids=ODD)
@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { } RETURN a.c, max(b[].c), count(b[].c)",
        "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [c]",
        "SELECT * FROM S WHERE A AS a ; B AS b FILTER b[c IS NULL OR c IS NOT NULL]",
    ],
)
def test_columns_of_odd_types(query: str, column: pa.Array) -> None:
    events = pa.table({"type": ["A", "A", "B", "B"], "t": [1, 2, 3, 4], "c": column})
    found = stretto.match(query, events, time="t")
    expected = 0 if "PARTITION" in query and column.type == pa.null() else 2 if "PARTITION" in query else 4
    assert found.num_rows == (6 if "SEQ" in query else expected)
    if "PARTITION" in query and found.num_rows:
        assert "c " in str(stretto.timeline(found, events, time="t", key="c"))
    for options in ({}, {"speculation": float("inf")}):
        matcher = stretto.Matcher(query, events.schema, time="t", **options)
        assert matcher.push(events).num_rows + matcher.finish().num_rows == found.num_rows
    patterns = stretto.PatternSet(events.schema, time="t", measures=True)
    patterns.change([stretto.Change("p", query)])
    assert patterns.push(events).num_rows == found.num_rows
    assert stretto.read_rules([{"id": "r", "query": query}]).match(events, time="t").matches.num_rows == found.num_rows


def test_a_sequence_of_more_than_63_bits() -> None:
    events = pa.table(EVENTS | {"s": pa.array([1, (1 << 64) - 1], pa.uint64())})
    matcher = stretto.Matcher(AB, events.schema, time="t", sequence="s", disorder=5)
    with pytest.raises(stretto.DataError, match="does not fit into 64 bits"):
        matcher.push(events)


def test_a_clause_without_variables_restores() -> None:
    clause = "MATCH_RECOGNIZE (PARTITION BY type PATTERN ( ))"
    events = pa.table({"type": ["a", "b", "a"]})
    matcher, other = stretto.Matcher(clause, events.schema), stretto.Matcher(clause, events.schema)
    matcher.push(events)
    other.restore(matcher.snapshot())
    assert other.push(events).equals(matcher.push(events))


def test_dictionaries_with_null_among_their_values() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array(["x", None]))
    events = pa.table({"k": column, "t": [1, 2, 3]})
    matcher = stretto.Matcher("MATCH_RECOGNIZE (PARTITION BY k PATTERN (A+) DEFINE A AS t > 0)", events.schema)
    matcher.push(events)
    matcher.push(events)
    assert matcher.finish().column("k").to_pylist() == ["x", None]


def test_a_measure_with_the_name_of_a_column_does_not_read_it() -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY t MEASURES max(t) AS k PATTERN (A B) DEFINE A AS t > 9, B AS t > 3)"
    bound = bind_rows(parse_clause(clause), pa.schema({"t": pa.int64(), "k": pa.string()}))
    assert unmet(bound, pa.table({"t": [1, 2, 3]}))
