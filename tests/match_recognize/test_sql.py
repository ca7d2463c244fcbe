"""SQL around MATCH_RECOGNIZE: where clauses are found, what they read, what is taken as a table, and mistakes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.languages.sql import read_statement
from stretto.matching.sql.run import selected
from stretto.query.passes.bind_rows import bind

TICKER = pa.table({"k": ["a", "a", "a", "b", "b"], "x": [1, 2, 3, 1, 2], "price": [9, 7, 8, 5, 4]})
FALLS = """MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY x MEASURES LAST(x) AS until, count(*) AS n PATTERN (A F+) DEFINE F AS price < PREV(price)
)"""
ALL_FALLS = FALLS.replace("PATTERN", "ALL ROWS PER MATCH PATTERN")
FOUND = [{"k": "a", "until": 2, "n": 2}, {"k": "b", "until": 2, "n": 2}]


def run(text: str, **tables: Any) -> list[dict[str, Any]]:
    return stretto.sql(text, **(tables or {"ticker": TICKER})).to_pylist()


# ---- tables


@pytest.mark.parametrize("around", ["SELECT * FROM ticker {}", "SELECT k, until, n FROM ticker {} AS m ORDER BY k"])
def test_tables_of_all_kinds(around: str, tmp_path: Path) -> None:
    pq.write_table(TICKER, tmp_path / "ticker.parquet")
    relation = duckdb.from_arrow(TICKER)
    for table in (
        TICKER,
        TICKER.to_pandas(),
        pl.from_arrow(TICKER),
        relation,
        TICKER.to_pylist(),
        TICKER.to_pydict(),
        tmp_path / "ticker.parquet",
        str(tmp_path / "*.parquet"),
    ):
        assert run(around.format(FALLS), TICKER=table) == FOUND


def test_only_the_columns_that_are_read_are_taken(tmp_path: Path) -> None:
    statement = read_statement(f"SELECT * FROM ticker {FALLS}")
    wide = TICKER.append_column("more", pa.array(range(5)))
    assert selected(bind(statement.clauses[0].parsed, wide.schema)) == ["k", "x", "price"]
    pq.write_table(wide, tmp_path / "wide.parquet")
    assert run(f"SELECT * FROM ticker {FALLS}", ticker=tmp_path / "wide.parquet") == FOUND
    assert "more" in stretto.sql(f"SELECT * FROM ticker {ALL_FALLS}", ticker=wide).column_names


def test_an_empty_table() -> None:
    assert run(f"SELECT * FROM ticker {FALLS}", ticker=TICKER.slice(0, 0)) == []
    assert run(f"SELECT count(*) AS n FROM ticker {FALLS}", ticker=TICKER.slice(0, 0)) == [{"n": 0}]


def test_python_variables_are_no_tables() -> None:
    mine = TICKER  # noqa: F841 - DuckDB would find it
    with pytest.raises(stretto.QueryError, match="mine"):
        run(f"SELECT n FROM mine {FALLS}", other=TICKER)


def test_a_connection_keeps_its_tables_and_settings() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE ticker AS SELECT * FROM (VALUES ('c', 1, 2), ('c', 2, 1)) t(k, x, price)")
    text = f"SELECT k, n, z FROM ticker {FALLS}, more"
    assert stretto.sql(text, con=con, more=[{"z": 7}]).to_pylist() == [{"k": "c", "n": 2, "z": 7}]
    assert con.sql("SHOW TABLES").fetchall() == [("ticker",)]
    assert con.execute("SELECT current_setting('python_enable_replacements')").fetchall() == [(True,)]
    with pytest.raises(stretto.OptionError, match="the connection has a table 'ticker' already"):
        stretto.sql(text, con=con, Ticker=TICKER, more=[{"z": 7}])
    assert con.sql("SELECT count(*) FROM ticker").fetchall() == [(2,)]


def test_two_tables_of_one_name() -> None:
    with pytest.raises(stretto.OptionError, match="two tables are named 'T'"):
        stretto.sql("SELECT 1", t=TICKER, T=TICKER)


# ---- where clauses may stand


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"SELECT sum(n) AS s FROM (SELECT * FROM ticker WHERE x < 3) t {FALLS} m WHERE m.k > 'a'", [{"s": 2}]),
        (f"SELECT t.x FROM ticker AS t JOIN ticker {FALLS} AS m ON t.k = m.k AND t.x = m.until", [{"x": 2}, {"x": 2}]),
        (f"SELECT m.k FROM ticker t, ticker {FALLS} m WHERE t.price = 9", [{"k": "a"}, {"k": "b"}]),
        (f"SELECT n FROM ticker {FALLS} UNION SELECT -1 FROM ticker {FALLS} ORDER BY n", [{"n": -1}, {"n": 2}]),
        (
            f"WITH c AS (SELECT * FROM ticker), d AS (SELECT * FROM c {ALL_FALLS}) SELECT n FROM d {FALLS} m",
            [{"n": 2}, {"n": 2}],
        ),
        (
            f"WITH c AS (SELECT * FROM ticker WHERE k = 'a') SELECT * FROM (WITH ticker AS (SELECT * FROM c) "
            f"SELECT n FROM ticker {FALLS}) AS q",
            [{"n": 2}],
        ),
        (
            "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 2), c AS (SELECT * FROM ticker, r) "
            "SELECT i FROM c MATCH_RECOGNIZE (PARTITION BY i ORDER BY k, x PATTERN (A)) ORDER BY i LIMIT 1",
            [{"i": 1}],
        ),
        (
            f"SELECT (SELECT max(n) FROM ticker {FALLS}) AS most, 'MATCH_RECOGNIZE (' AS text",
            [{"most": 2, "text": "MATCH_RECOGNIZE ("}],
        ),
        (f"SELECT k FROM ticker /* MATCH_RECOGNIZE ( */ {FALLS} -- MATCH_RECOGNIZE (", [{"k": "a"}, {"k": "b"}]),
        (f"SELECT $$it's$$ AS a, e'\\'' AS b, \"k\" FROM ticker {FALLS} LIMIT 1", [{"a": "it's", "b": "'", "k": "a"}]),
        (f"FROM ticker {FALLS} SELECT k;", [{"k": "a"}, {"k": "b"}]),
        ("SELECT 1 AS one", [{"one": 1}]),
    ],
)
def test_where_clauses_may_stand(text: str, expected: list[dict[str, Any]]) -> None:
    assert run(text) == expected


def test_fresh_names_are_not_those_of_the_text() -> None:
    matched = pa.table({"z": [1]})
    text = f"SELECT n, z FROM ticker {FALLS}, matched_1"
    assert run(text, ticker=TICKER, matched_1=matched) == [{"n": 2, "z": 1}] * 2


# ---- mistakes


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "SELECT *\nFROM ticker MATCH_RECOGNIZE (ORDER BY x PATTERN (A) DEFINE A AS prize > 1) m WHERE true",
            "line 2, column 65: unknown column 'prize'",
        ),
        (f"SELECT * FROM tickers {FALLS}", "line 1, column 15: there is no table 'tickers'"),
        (f"SELECT *, 1 FROM tickers {FALLS}", "line 1, column 18: Table with name tickers does not exist"),
        (f"SELECT nn FROM ticker {FALLS}", 'line 1, column 8: Referenced column "nn" not found'),
        (f"SELECT 1\nFROM ticker {FALLS} AS m WHER x", 'line 4, column 8: syntax error at or near "WHER"'),
        ("SELECT 1 FROM MATCH_RECOGNIZE (PATTERN (A))", "line 1, column 15: MATCH_RECOGNIZE stands behind a table"),
        ("SELECT (1 FROM ticker", "line 1, column 8: this '(' is not closed"),
        (
            "SELECT * FROM ticker MATCH_RECOGNIZE (PATTERN (A B DEFINE A AS x > 1)",
            "line 1, column 47: this '(' is not closed",
        ),
        (
            "SELECT * FROM ticker MATCH_RECOGNIZE (MEASURES (x AS y PATTERN (A))",
            "line 1, column 48: this '(' is not closed",
        ),
        (
            "SELECT * FROM ticker MATCH_RECOGNIZE (PATTERN (A B) DEFINE A AS x > 1",
            "line 1, column 38: this '(' is not closed",
        ),
        ("SELECT 1) FROM ticker", "line 1, column 9: there is no '(' for this ')'"),
        ("SELECT 'a FROM ticker", "line 1, column 8: this quote is not closed"),
        ("SELECT 1 /* FROM ticker", "line 1, column 10: this comment is not closed"),
        ("SELECT 1; SELECT 2", "line 1, column 9: there are several statements"),
        (f"CREATE VIEW v AS SELECT * FROM ticker {FALLS}", "line 1, column 8: a view cannot hold MATCH_RECOGNIZE"),
        (
            f"SELECT 1 FROM ticker t, LATERAL (SELECT t.k, t.x, t.price) {FALLS}",
            "line 1, column 33: MATCH_RECOGNIZE cannot read a LATERAL table",
        ),
    ],
)
def test_mistakes_show_the_place_in_the_whole_text(text: str, error: str) -> None:
    with pytest.raises(stretto.QueryError) as caught:
        run(text)
    assert str(caught.value).startswith(error)
    assert caught.value.text == text


def test_a_variable_that_is_mistyped_is_suggested() -> None:
    with pytest.raises(stretto.QueryError, match=r"no variable of the pattern.*\n.*\n.*\nhint: did you mean 'DOWN'"):
        run("SELECT * FROM ticker MATCH_RECOGNIZE (MEASURES dwn.x AS y PATTERN (DOWN))")


def test_mistakes_name_the_clause_and_not_its_result() -> None:
    with pytest.raises(stretto.DataError, match="Could not convert") as caught:
        run(f"SELECT CAST(k AS INT) FROM ticker {FALLS}")
    assert "matched_" not in str(caught.value)


def test_without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert run(f"SELECT * FROM ticker {FALLS}") == FOUND
    with pytest.raises(stretto.OptionError, match=r"pip install 'stretto\[sql\]'"):
        run(f"SELECT k FROM ticker {FALLS}")


def test_pandas_without_columns_of_its_own() -> None:
    frame = pd.DataFrame({"x": [2, 1, 3], "price": [7, 9, 8]}, index=[5, 6, 7])
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY x MEASURES LAST(x) AS until PATTERN (A F) DEFINE F AS price < PREV(price))"
    assert run(text, t=frame) == [{"until": 2}]


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[bool | None, int, list[int]]] = []

    class Recorder:
        def __init__(self, wanted: bool | None, total: int) -> None:
            told.append((wanted, total, []))

        def __enter__(self) -> Callable[[int], None]:
            return told[-1][2].append

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("stretto.matching.sql.run.Progress", Recorder)
    rows = pa.table({"k": [1, 2, 3], "x": [1, 2, 3]})
    clause = "t MATCH_RECOGNIZE (PARTITION BY k MEASURES A.x AS x PATTERN (A)) AS m"
    stretto.sql(f"SELECT * FROM {clause}", progress=True, t=rows)
    stretto.sql(f"SELECT x FROM {clause}", t=rows)
    assert told == [(True, 3, [3]), (None, 3, [3])]


def test_rows_without_columns_are_refused() -> None:
    for around in ("SELECT * FROM", "SELECT count(*) FROM"):
        text = f"{around} t MATCH_RECOGNIZE (PATTERN (A))"
        with pytest.raises(stretto.QueryError, match="the rows of the clause have no columns") as caught:
            stretto.sql(text, t=pa.table({"x": [1, 2]}))
        assert caught.value.span is not None
        assert text[caught.value.span.start : caught.value.span.end] == "MATCH_RECOGNIZE"


# ---- integers that leave 64 bits


@pytest.mark.parametrize("tail", ["", " WHERE y > 0"])  # alone, and with DuckDB around
@pytest.mark.parametrize("rows", [[2, 0, 3, 1], [0, 1, 2, 3], [3, 2, 1, 0]])
def test_an_overflow_names_the_row_as_it_was_given(rows: list[int], tail: str) -> None:
    great = 2**62 + 5
    ticks = pa.table({"k": ["a", "a", "b", "b"], "x": [1, 2, 1, 2], "price": [1, 2, 3, great]}).take(rows)
    row = rows.index(3)
    why = f"{great} * 2 is beyond 64 bits; compute with floats"

    def told(clause: str, ticks: pa.Table = ticks) -> str:
        with pytest.raises(stretto.DataError) as caught:
            stretto.sql(
                f"SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY k ORDER BY x MEASURES {clause}){tail}", ticks=ticks
            )
        return str(caught.value)

    place = f"integer overflow in (price * 2) at row {row}: {why}"
    assert told("LAST(x) AS y PATTERN (A B) DEFINE B AS price * 2 > 3") == place
    assert told("LAST(x) AS y PATTERN (A B) DEFINE B AS SUM(price * 2) > 3") == place
    assert told("SUM(price * 2) AS y PATTERN (A B) DEFINE B AS price > 1") == place
    begin = f"in the match that begins at row {rows.index(2)}: {why}"
    assert told("B.price * 2 AS y PATTERN (A B) DEFINE B AS price > 1").endswith(begin)


def test_an_overflow_of_a_stream_names_no_row_of_another_order() -> None:
    ticks = [{"x": 1, "price": 1}, {"x": 0, "price": 2**62}, {"x": 9, "price": 1}]
    matcher = stretto.Matcher(
        "MATCH_RECOGNIZE (ORDER BY x MEASURES A.x AS y PATTERN (A) DEFINE A AS price * 2 > 1)",
        schema={"x": "int64", "price": "int64"},
        disorder=3,
    )
    with pytest.raises(stretto.DataError, match=r"^integer overflow in \(price \* 2\): 4611686018427387904 \* 2 is"):
        matcher.push(ticks)
