"""The engine of ``MATCH_RECOGNIZE`` against the reference evaluator, on random cases, and at its limits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from stretto.engines.rows import program
from stretto.errors import DataError, LimitError, QueryError
from stretto.languages.match_recognize import parse
from stretto.matching.sql.row_pattern_table import recognize
from stretto.query.passes.bind_rows import bind
from tests.cases import agree, rows
from tests.conftest import blocks, cases
from tests.reference.match_recognize import evaluate


def check(one: rows.Case, _seed: int) -> str:
    """Check a case, and say how it ended."""
    return rows.compared(one, rows.expected(one))


@pytest.mark.parametrize("seeds", blocks(cases(2_000)), ids=str)
def test_many_seeds(seeds: range) -> None:
    found = agree(rows, seeds, check=check)
    assert found.count("refused") <= len(seeds) / 20  # DISTINCT values that read the number of the match, in DEFINE
    assert found.count("long") <= len(seeds) / 10
    assert found.count("rows") >= len(seeds) / 3


def found(clause: str, table: pa.Table, **options: Any) -> list[dict[str, Any]]:
    bound = bind(parse(f"MATCH_RECOGNIZE ({clause})"), table.schema)
    return recognize(bound, table, **options).to_pylist()


def numbers(*values: int | None) -> pa.Table:
    """Rows with a time t and a number x."""
    return pa.table({"t": range(len(values)), "x": pa.array(values, pa.int64())})


@pytest.mark.parametrize("count", [63, 64, 65, 200])
def test_positions_of_several_words(count: int) -> None:
    table = numbers(*([1] * (2 * count + 1)), 2)
    clause = (
        "ORDER BY t MEASURES count(A.*) AS a, LAST(t) AS e "
        f"PATTERN (A{{{count}}} (A | B)) DEFINE A AS x = 1, B AS x = 2"
    )
    assert found(clause, table) == [{"a": count + 1, "e": count}, {"a": count, "e": 2 * count + 1}]
    assert found(clause, table.slice(1)) == [{"a": count + 1, "e": count + 1}]


def test_a_pattern_of_a_thousand_variables() -> None:
    names = [f"V{at}" for at in range(1_000)]
    define = ", ".join(f"{name} AS x = {at}" for at, name in enumerate(names))
    clause = f"ORDER BY t MEASURES FIRST(t) AS b, CLASSIFIER() AS c PATTERN ({' '.join(names)}) DEFINE {define}"
    assert found(clause, numbers(0, 1, 2, *range(1_000), 0)) == [{"b": 3, "c": "V999"}]


def test_many_partitions_of_one_row() -> None:
    count = 100_000
    table = pa.table({"k": range(count), "t": [0] * count, "x": [at % 2 for at in range(count)]})
    clause = "PARTITION BY k ORDER BY t MEASURES A.x AS x, MATCH_NUMBER() AS n PATTERN (^ A $) DEFINE A AS x = 1"
    given = found(clause, table)
    assert [one["k"] for one in given] == list(range(1, count, 2))
    assert {(one["x"], one["n"]) for one in given} == {(1, 1)}


def test_rows_whose_key_is_null_are_one_partition() -> None:
    table = pa.table({"k": [None, "a", None, "a", "b"], "t": [1, 1, 0, 0, 0], "x": [10, 20, 30, 40, 50]})
    clause = "PARTITION BY k ORDER BY t MEASURES A.x AS a, B.x AS b PATTERN (A B)"
    assert found(clause, table) == [{"k": None, "a": 30, "b": 10}, {"k": "a", "a": 40, "b": 20}]


DIVIDES = "ORDER BY t MEASURES A.x AS a, B.x AS b PATTERN (A+ B) DEFINE B AS sum(A.x) / LAST(B.x) = -1"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((-7, 4), [{"a": -7, "b": 4}]),
        ((7, -4), [{"a": 7, "b": -4}]),
        ((-8, 4), []),
        ((-3, 4), []),
        ((7, 0), []),
        ((None, 1), []),
    ],
)
def test_integers_divide_towards_zero(values: tuple[int | None, ...], expected: list[dict[str, Any]]) -> None:
    table = numbers(*values)
    assert found(DIVIDES, table) == expected
    assert evaluate(bind(parse(f"MATCH_RECOGNIZE ({DIVIDES})"), table.schema), table).to_pylist() == expected


@pytest.mark.parametrize("values", [(-(2**63), -1), (2**63 - 1, 1, 1)])
def test_an_integer_that_leaves_64_bits_is_refused(values: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="an integer leaves 64 bits"):
        found(DIVIDES, numbers(*values))


def test_rarer_aggregates_choose_the_way() -> None:
    table = numbers(3, 3, 5, 3, 9, 1)
    clause = (
        "ORDER BY t MEASURES count(A.*) AS a, count(B.*) AS b, B.x AS x "
        "PATTERN (A+ B+ C) DEFINE C AS count(DISTINCT A.x) = 1 AND max_by(B.x, B.t) > 4 AND stddev_pop(x) > 1.5"
    )
    assert found(clause, table) == [{"a": 2, "b": 3, "x": 9}]


def test_ways_are_told_apart_by_their_sets_of_values() -> None:
    """Where the numbers of values are equal, but not the values: the second way to the same row is gone through, too."""
    table = numbers(1, 2, 2, 1, 0)
    clause = (
        "ORDER BY t MEASURES CLASSIFIER() AS c, sum(A.x) AS s PATTERN ((A | B){2} (A | B){2} C) "
        "DEFINE A AS x > 0, B AS x > 0, C AS count(DISTINCT A.x) = 1 AND sum(DISTINCT A.x) = 2 AND count(A.*) = 1"
    )
    assert found(clause, table, capacity=1) == [{"c": "C", "s": 2}]


def test_sums_of_decimals_are_decimals() -> None:
    kind = pa.decimal128(38, 2)
    texts = ["9" * 36 + ".99", "0.01", None, "-" + "9" * 36 + ".90", "-0.04", "1.10", "1.10"]
    table = pa.table({"t": range(7), "d": pa.array(texts, pa.string()).cast(kind)})
    clause = (
        "MATCH_RECOGNIZE (ORDER BY t MEASURES sum(d) AS s, sum(DISTINCT d) AS u, FINAL sum(B.d) AS f, sum(d) > 1 AS m "
        "ALL ROWS PER MATCH PATTERN (A B*))"
    )
    bound = bind(parse(clause), table.schema)
    for judge in (evaluate, recognize):
        with pytest.raises(DataError, match="leaves 38 digits"):  # the first two make 10^36
            judge(bound, table)
        found = judge(bound, table.slice(2))
        assert found.schema.field("s").type == kind
        assert list(map(str, found.column("s").to_pylist())) == [
            *("None", "-" + "9" * 36 + ".90", "-" + "9" * 36 + ".94"),
            *("-" + "9" * 35 + "8.84", "-" + "9" * 35 + "7.74"),
        ]
        assert [str(one)[-4:] for one in found.column("u").to_pylist()] == ["None", "9.90", "9.94", "8.84", "8.84"]
        assert {str(one)[-5:] for one in found.column("f").to_pylist()} == {"97.74"}
        assert found.column("m").to_pylist() == [None, False, False, False, False]


def test_decimals_beside_integers_are_numbers() -> None:
    table = pa.table({"t": [1, 2], "x": [9, 10], "d": pa.array([None, "10.0"], pa.string()).cast(pa.decimal128(6, 2))})
    assert found("ORDER BY t MEASURES B.t AS b PATTERN (A B) DEFINE B AS d > A.x", table) == [{"b": 2}]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("count(DISTINCT A.x + MATCH_NUMBER()) > 1", "do not read MATCH_NUMBER"),
        ("min_by(A.x, A.x * MATCH_NUMBER()) > 1", "chooses by the number of the match"),
        ("any_value(COALESCE(A.x, 1)) > 1", "has a value where there is no row"),
        ("max_by(A.s || CLASSIFIER(A), A.x) = 'a'", "computes values of several rows"),
        ("A.s || B.s = 'ab'", "computes values of several rows"),
        ("sum(A.d) > 1.5", "of decimals is computed in MEASURES, not in conditions"),
        ("1 + sum(A.d) / x > d", "of decimals is computed in MEASURES, not in conditions"),
    ],
)
def test_what_define_refuses(condition: str, message: str) -> None:
    table = numbers(1).append_column("s", pa.array(["a"]))
    table = table.append_column("d", pa.array([None], pa.decimal128(6, 2)))
    clause = f"ORDER BY t MEASURES B.t AS b PATTERN (A+ B) DEFINE B AS {condition}"
    with pytest.raises(QueryError) as raised:
        found(clause, table)
    assert message in str(raised.value)


DAYS = pa.table(
    {
        "t": [1, 2, 3, 4],
        "x": [10, 9, 2, None],
        "y": [1.5, 2.5, None, -1.0],
        "s": ["a", "12", " b", None],
        "ts": [datetime(2020, 1, 31, 1), datetime(2020, 2, 29), datetime(2020, 2, 29, 0, 5), datetime(2021, 1, 1)],
        "d": pa.array(["9.5", "10.0", "1.25", "31"]).cast(pa.decimal128(6, 2)),
    }
)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("x IS DISTINCT FROM A.x", [2, 3, 4]),
        ("x IS NOT DISTINCT FROM 9", [2]),
        ("NOT (x IS DISTINCT FROM NULL)", [4]),
        ("NOT (x IS NOT DISTINCT FROM A.x)", [2, 3, 4]),
        ("x IN (A.x - 1, 2)", [2, 3]),
        ("x NOT IN (A.x - 1, 0)", [3]),
        ("x::double > 3", [2]),
        ("TRY_CAST(s AS bigint) = 12", [2]),
        ("CAST(x AS varchar) || 'q' = '9q'", [2]),
        ("IF(x > 3, 1, 0) = 1", [2]),
        ("nullif(x, 9) IS NULL", [2, 4]),
        ("mod(x, 2) = 1", [2]),
        ("NOT regexp_like(s, '^[0-9]+$')", [3]),
        ("date_diff('day', A.ts, ts) > 20", [2, 4]),
        ("ts <= A.ts + INTERVAL '1' MONTH", [2, 3]),
        ("ts - A.ts < INTERVAL '10' MINUTE", [3]),
        ("ts < FIRST(A.ts) + INTERVAL '5' DAY", [3]),
        ("abs(ts - A.ts) > INTERVAL '29' DAY", [4]),
        ("date_add('hour', 30, A.ts) > ts", [3]),
        ("extract(day FROM ts) = 29 AND ts::date = DATE '2020-02-29'", [2, 3]),
        ("date_trunc('month', ts) = date_trunc('month', A.ts)", [3]),
        ("greatest(x, A.x) = 10 AND least(x, A.x, 5) = 5", [2]),
        ("sqrt(power(A.x, 2)) > x AND ln(exp(A.x)) > 9.5 AND floor(y / A.y) = 1", [2]),
        ("sign(x - A.x) = -1", [2, 3]),
        ("round(avg(A.y) * y, 1) > 3.7", [2]),
        ("d > A.x", [4]),
        ("sum(CAST(A.d AS double)) > d", [3]),
        ("starts_with(s, '1') AND substr(s, 2) = '2'", [2]),
    ],
)
def test_functions_in_conditions(condition: str, rows: list[int]) -> None:
    clause = f"ORDER BY t MEASURES B.t AS b AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) DEFINE B AS {condition}"
    expected = [{"b": one} for one in rows]
    assert evaluate(bind(parse(f"MATCH_RECOGNIZE ({clause})"), DAYS.schema), DAYS).to_pylist() == expected
    assert found(clause, DAYS) == expected


@pytest.mark.parametrize("pattern", ["A{20000}", "PERMUTE(A, B, C, D, E, F, G, H)"])
def test_a_pattern_that_is_too_large(pattern: str) -> None:
    with pytest.raises(LimitError, match="the pattern, written out, has more than"):
        found(f"ORDER BY t MEASURES LAST(t) AS e PATTERN ({pattern})", numbers(1))


WANDERS = "ORDER BY t MEASURES count(*) AS n PATTERN ((A | B)* C) DEFINE C AS count(A.*) > 100"


def test_ways_without_a_match_are_gone_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = numbers(*([1] * 40))
    assert found(WANDERS, table, capacity=4) == []  # 2^40 ways, and 40 numbers of A at each row
    monkeypatch.setattr(program, "MOST_FAILED", 64)
    with pytest.raises(LimitError, match=r"the match that begins at row 0: more than 64 ways .* conditions of C"):
        found(WANDERS, table, capacity=4)


@pytest.mark.parametrize("define", ["", " DEFINE B AS count(A.*) >= 0"])
@pytest.mark.parametrize(
    ("target", "message"), [("A", "at row 0 has no row of A"), ("FIRST B", "at row 0 begins with B")]
)
def test_where_the_next_match_cannot_begin(target: str, message: str, define: str) -> None:
    clause = f"ORDER BY t MEASURES LAST(t) AS e AFTER MATCH SKIP TO {target} PATTERN (A?? B){define}"
    with pytest.raises(DataError, match=message):
        found(clause, numbers(1, 2))
