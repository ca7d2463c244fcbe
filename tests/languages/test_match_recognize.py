"""MATCH_RECOGNIZE: what clauses mean once they are read, and any other text is a QueryError with a place."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stretto.errors import QueryError
from stretto.languages.match_recognize import parse
from stretto.query import predicate as p
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import AfterMatch, RowQuery, RowsPerMatch
from tests.cases import rows
from tests.conftest import cases
from tests.languages.mutating import check_place, mutations

CLAUSES = [
    "MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY day MEASURES A.price AS start, LAST(DOWN.price) AS bottom, "
    "FINAL LAST(UP.price) AS top ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A DOWN+ UP+) "
    "DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price))",
    'match_recognize (order by day desc nulls first, symbol asc measures match_number() as m, classifier(u) as "C l", '
    "count(*) as n, sum(a.size * 2) as s, prev(last(b.price, 2), 3) as p all rows per match with unmatched rows "
    "after match skip to last u pattern (^ a{2,3}? (b | ())*? permute(a, b) $) subset u = (a, b) "
    "define a as not (price between 1 and tax) or symbol in ('x', 'y''z'), b as case when open then 1 else 0 end = 1)",
    "MATCH_RECOGNIZE (ORDER BY day ALL ROWS PER MATCH OMIT EMPTY MATCHES PATTERN ({- A -} B{,2} C{1,}?) "
    "WITHIN INTERVAL '1.5' HOUR -- a window\n DEFINE B AS day > TIMESTAMP '2020-01-01 00:00:00' AND min_by(price, size) IS NOT NULL)",
]
SCHEMA = pa.schema(
    {
        "symbol": pa.string(),
        "day": pa.timestamp("us"),
        "price": pa.float64(),
        "tax": pa.float64(),
        "size": pa.int64(),
        "open": pa.bool_(),
    }
)
TOKENS = re.compile(r"\w+|'[^']*'|\s+|.", re.DOTALL)


def read(text: str) -> RowQuery | None:
    """The clause, or ``None`` where it is refused; anything but a QueryError fails the test."""
    try:
        parsed = parse(text)
        bind(parsed, SCHEMA)
    except QueryError as error:
        check_place(text, error)
        return None
    trees: list[p.Expression] = [*parsed.define.values(), *(one.value for one in parsed.measures)]
    assert {name for tree in trees for name in p.attributes(tree)} == set(parsed.references)
    assert all(str(reference) == name for name, reference in parsed.references.items())
    return parsed


@pytest.mark.parametrize("text", CLAUSES)
def test_the_seeds_are_clauses(text: str) -> None:
    assert read(text) is not None


@settings(max_examples=cases(500))
@given(mutations([TOKENS.findall(text) for text in CLAUSES]))
@example("MATCH_RECOGNIZE (PATTERN (" + "(" * 5000 + "A" + ")" * 5000 + "))")
@example("MATCH_RECOGNIZE (PATTERN (" + "(" * 5000 + "A" + "+)" * 5000 + "))")
@example("MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS " + "(" * 5000 + "open" + ")" * 5000 + ")")
@example("MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS " + "NOT " * 5000 + "open)")
@example("MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS " + "PREV(" * 5000 + "price" + ")" * 5000 + " > 1)")
def test_any_text_is_a_clause_or_an_error_with_a_place(text: str) -> None:
    read(text)


@settings(max_examples=cases(300))
@given(st.text())
def test_any_text_at_all(text: str) -> None:
    read(text)


def test_patterns_are_written_as_they_are_read() -> None:
    for seed in range(cases(400)):
        parsed = parse(rows.case(seed).clause, window=True)
        assert parse(f"MATCH_RECOGNIZE (PATTERN ({parsed.pattern}))").pattern == parsed.pattern, seed


def condition(text: str) -> str:
    return str(parse(f"MATCH_RECOGNIZE (PATTERN (A B) DEFINE A AS {text})").define["A"]).replace("RUNNING LAST", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x < y", "(x) < (y)"),
        ("NOT x < 3", "NOT ((x) < 3) AND NOT ((x) IS NULL)"),
        ("NOT (x < 3 AND y IS NULL)", "NOT ((x) < 3) AND NOT ((x) IS NULL) OR NOT ((y) IS NULL)"),
        ("NOT NOT x IN (1, 2)", "(x) IN (1, 2)"),
        ("x NOT IN (1, 2)", "NOT ((x) IN (1, 2)) AND NOT ((x) IS NULL)"),
        ("s NOT LIKE 'a%'", "NOT ((s) LIKE 'a%') AND NOT ((s) IS NULL)"),
        (
            "x NOT BETWEEN 1 AND y",
            "NOT ((x) >= 1) AND NOT ((x) IS NULL) OR NOT ((x) <= (y)) AND NOT ((x) IS NULL) AND NOT ((y) IS NULL)",
        ),
        ("b", "(b) = TRUE"),
        ("NOT b", "NOT ((b) = TRUE) AND NOT ((b) IS NULL)"),
        ("TRUE", ""),
        ("FALSE OR x > 1", "(x) > 1"),
        ("A.x > PREV(b.x + b.y, 2)", "(A.x) > (PREV((B.x), 2) + PREV((B.y), 2))"),
        ("nullif(x, 0) > 1", "CASE WHEN (x) = 0 THEN NULL ELSE (x) END > 1"),
        ("t < u + INTERVAL '90' MINUTE", "(t) < ((u) + 5400 s)"),
    ],
)
def test_conditions_ask_what_is_true(text: str, expected: str) -> None:
    assert condition(text) == expected


def test_sections_have_defaults() -> None:
    parsed = parse('MATCH_RECOGNIZE (PATTERN (a "b" A))')
    assert parsed.rows is RowsPerMatch.ONE
    assert (parsed.after, parsed.after_variable) == (AfterMatch.PAST, None)
    assert parsed.variables == ("A", "b")
    assert not parsed.define


def test_columns_are_found_without_regard_to_capital_letters() -> None:
    bound = bind(parse("MATCH_RECOGNIZE (PARTITION BY SYMBOL ORDER BY Day MEASURES a.Price AS p PATTERN (A))"), SCHEMA)
    assert bound.parsed.partition_by == ("symbol",)
    assert bound.read == ("symbol", "day", "price")
    assert bound.output == pa.schema({"symbol": pa.string(), "p": pa.float64()})


def test_columns_of_all_rows_stand_in_this_order() -> None:
    text = "MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY day MEASURES 1 AS one ALL ROWS PER MATCH PATTERN (A))"
    assert bind(parse(text), SCHEMA).output.names == ["symbol", "day", "one", "price", "tax", "size", "open"]


@pytest.mark.parametrize(
    ("measure", "kind"),
    [
        ("count(*)", pa.int64()),
        ("count(DISTINCT symbol)", pa.int64()),
        ("sum(size)", pa.int64()),
        ("sum(price)", pa.float64()),
        ("avg(size)", pa.float64()),
        ("size / 2", pa.int64()),
        ("size / 2.0", pa.float64()),
        ("sum(size / 2)", pa.int64()),
        ("CAST(size AS DOUBLE) / 2", pa.float64()),
        ("max(day)", pa.timestamp("us")),
        ("array_agg(symbol)", pa.list_(pa.string())),
        ("CLASSIFIER()", pa.string()),
        ("MATCH_NUMBER()", pa.int64()),
        ("price > 3", pa.bool_()),
        ("bool_or(price > 3)", pa.bool_()),
        ("LAST(day) - FIRST(day)", pa.duration("us")),
        ("stddev(size)", pa.float64()),
        ("min_by(symbol, price)", pa.string()),
    ],
)
def test_types_of_measures(measure: str, kind: pa.DataType) -> None:
    assert bind(parse(f"MATCH_RECOGNIZE (MEASURES {measure} AS m PATTERN (A))"), SCHEMA).measures[0].type == kind
