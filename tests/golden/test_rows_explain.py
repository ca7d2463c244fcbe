"""The exact texts of ``explain`` and ``draw`` for MATCH_RECOGNIZE."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.cli import main

FALLS = """SELECT * FROM ticker MATCH_RECOGNIZE (
  PARTITION BY symbol ORDER BY day
  MEASURES LAST(DOWN.price) AS bottom
  PATTERN (STRT DOWN+ UP{1,2}?)
  DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price))"""
SCHEMA = {"symbol": "string", "day": "int64", "price": "double", "volume": "int64"}

FALLS_BOUND = """\
query      SELECT * FROM ticker MATCH_RECOGNIZE (
             PARTITION BY symbol ORDER BY day
             MEASURES LAST(DOWN.price) AS bottom
             PATTERN (STRT DOWN+ UP{1,2}?)
             DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price))
clause     line 1: MATCH_RECOGNIZE over ticker
pattern    STRT DOWN+ UP{1,2}?
partition  by symbol; NULL is a value like others
order      by day; NULL comes last
rows       one row a match; the next match may begin behind its last row
automaton  5 positions, 9 edges; what may come next, the preferred first; numbers tell the places of a variable apart
           start   STRT
           STRT    DOWN:1
           DOWN:1  DOWN:2, UP:1
           DOWN:2  DOWN:2, UP:1
           UP:1    the end
           UP:2    the end
conditions STRT: every row
           DOWN: RUNNING LAST(price) < PREV(RUNNING LAST(price), 1) (computed for whole columns)
           UP: RUNNING LAST(price) > PREV(RUNNING LAST(price), 1) (computed for whole columns)
columns    symbol, day, price (3 of 4 are read to match and to measure)
output     symbol string, bottom double
engine     rows: back through each partition for what can be completed, then forward by preference
           it never goes back: at most 9 steps a row, and as many for each row of a match
stream     held are the rows from the first that may still begin a match, 1 row before it; of each partition the last row, for ever
around     nothing: the clause is the statement"""

FALLS_DOT = """\
digraph rows {
  rankdir=LR;
  node [shape=circle, fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=10];
  label="by symbol; ordered by day"; fontname="Helvetica"; fontsize=10;
  start [shape=point];
  p0 [label="STRT"];
  p1 [label="DOWN:1", tooltip="RUNNING LAST(price) < PREV(RUNNING LAST(price), 1)"];
  p2 [label="DOWN:2", tooltip="RUNNING LAST(price) < PREV(RUNNING LAST(price), 1)"];
  p3 [label="UP:1", tooltip="RUNNING LAST(price) > PREV(RUNNING LAST(price), 1)"];
  p4 [label="UP:2", tooltip="RUNNING LAST(price) > PREV(RUNNING LAST(price), 1)"];
  end [shape=doublecircle, label="end"];
  start -> p0;
  p0 -> p1;
  p1 -> p2 [label="1"];
  p1 -> p3 [label="2"];
  p2 -> p2 [label="1"];
  p2 -> p3 [label="2"];
  p3 -> end;
  p4 -> end;
}
"""

SEVERAL = """WITH f AS (SELECT * FROM ticker WHERE price > 0)
SELECT count(*) AS n FROM f MATCH_RECOGNIZE (
  ORDER BY day DESC, price NULLS FIRST
  ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP TO LAST B
  PATTERN (^ A (A | B)* $ | A B)
  DEFINE A AS price > 1 AND count(A.*) < 3, B AS CLASSIFIER() = 'B' AND volume > 1) AS m
JOIN ticker MATCH_RECOGNIZE (ORDER BY day MEASURES A.volume AS v PATTERN ({- A -}) DEFINE A AS price > 1) AS o ON m.day = 1"""

SEVERAL_BOUND = """\
clause     line 2: MATCH_RECOGNIZE over f
pattern    ^ A (A | B)* $ | A B
partition  none: all rows are one
order      by day descending, price; NULL as each says
rows       all rows of a match, one row for an empty match, and the rows of no match; the next match may begin at its last B
automaton  5 positions, 11 edges; what may come next, the preferred first; numbers tell the places of a variable apart
           start  A:3
                  at the first row of a partition: A:1, A:3
           A:1    A:2, B:1; at the last row of a partition: the end
           A:2    A:2, B:1; at the last row of a partition: the end
           B:1    A:2, B:1; at the last row of a partition: the end
           A:3    B:2
           B:2    the end
conditions A: RUNNING LAST(price) > 1.0 (computed for whole columns)
           A: RUNNING count(* OF A) < 3 (asked on the way: it reads rows of the match so far)
           B: RUNNING LAST(volume) > 1 (computed for whole columns)
           B: RUNNING LAST(CLASSIFIER()) = 'B' (asked on the way: it reads rows of the match so far)"""


def test_a_clause_that_never_goes_back() -> None:
    query = stretto.compile_sql(FALLS, ticker=SCHEMA)
    assert query.explain() == FALLS_BOUND
    assert str(query.draw()) == FALLS_DOT
    assert (str(query), repr(query)) == (FALLS, f"<stretto.SqlQuery {FALLS!r}>")
    assert [one.variables for one in query.clauses] == [("STRT", "DOWN", "UP")]


def test_without_tables() -> None:
    told = stretto.compile_sql(FALLS).explain()
    assert told.splitlines()[17:] == [
        "conditions STRT: every row",
        "           DOWN: RUNNING LAST(price) < PREV(RUNNING LAST(price), 1)",
        "           UP: RUNNING LAST(price) > PREV(RUNNING LAST(price), 1)",
        "schema     none yet: columns and types are checked when the clause meets its rows",
        "around     nothing: the clause is the statement",
    ]


def test_clauses_that_may_go_back() -> None:
    pytest.importorskip("duckdb")
    query = stretto.compile_sql(SEVERAL, ticker=pa.schema(SCHEMA.items()).empty_table())
    told = query.explain()
    assert SEVERAL_BOUND in told
    assert "may go back, as the conditions of A, B read rows of the match so far" in told
    assert told.splitlines()[-1] == (
        "around     DuckDB runs: WITH f AS (SELECT * FROM ticker WHERE price > 0) SELECT count(*) AS n FROM matched_1 AS m "
        "JOIN matched_2 AS o ON m.day = 1"
    )
    drawn = str(query.draw())
    assert 'label="line 2: MATCH_RECOGNIZE over f; ordered by day, price";' in drawn
    assert 'c0_start -> c0_p0 [style=dashed, label="first row: 1"];' in drawn
    assert 'c0_p0 -> c0_end [style=dashed, label="last row"];' in drawn
    assert 'c1_p0 [label="{- A -}", tooltip="RUNNING LAST(price) > 1", style=dotted];' in drawn


def test_a_window() -> None:
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY at MEASURES A.at AS a PATTERN (A B*) WITHIN INTERVAL '90' MINUTE)"
    told = stretto.compile_sql(text, t={"at": pa.timestamp("us")}).explain()
    assert "\nwindow     the last row's at is less than the first one's and 5400 s\n" in told
    assert "it may go back, as WITHIN reads rows of the match so far" in told


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        (
            "PATTERN (A+ B)",
            "held are the rows from the first that may still begin a match; of each partition the last row, until time has passed it",
        ),
        (
            "PATTERN (A B) DEFINE B AS x > PREV(x, 3)",
            "…, 3 rows before it; of each partition the last 3 rows, for ever",
        ),
        ("PATTERN (A B) DEFINE B AS s > A.s", "refused: "),
    ],
)
def test_what_a_stream_holds(rest: str, told: str) -> None:
    text = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY d MEASURES A.x AS x {rest})"
    (line,) = (
        line
        for line in stretto.compile_sql(text, t={"d": "int64", "x": "int64", "s": "string"}).explain().splitlines()
        if line.startswith("stream")
    )
    assert told.removeprefix("…") in line


def test_large_automata_are_cut() -> None:
    query = stretto.compile_sql(
        "SELECT * FROM t MATCH_RECOGNIZE (MEASURES A.x AS a PATTERN (A{1000}))", t={"x": "int64"}
    )
    told = query.explain()
    assert "automaton  1000 positions, 1002 edges" in told
    assert "… 960 more" in told
    assert "p39 -> more;" in str(query.draw())
    assert "p41" not in str(query.draw())


@pytest.mark.parametrize(
    ("text", "tables", "message"),
    [
        (
            FALLS.replace("DOWN AS price", "DOWN AS prize"),
            {"ticker": SCHEMA},
            "line 5, column 18: unknown column 'prize'",
        ),
        (FALLS, {"tickers": SCHEMA}, "there is no table 'ticker'"),
        (
            FALLS.replace("PARTITION BY symbol", "").replace("MEASURES LAST(DOWN.price) AS bottom", ""),
            {"ticker": SCHEMA},
            "no columns",
        ),
        ("SELECT 1", {}, "there is no MATCH_RECOGNIZE in the statement"),
    ],
)
def test_mistakes(text: str, tables: dict[str, object], message: str) -> None:
    with pytest.raises(stretto.QueryError, match=message):
        stretto.compile_sql(text, **tables)


def test_a_statement_is_no_query_of_events() -> None:
    with pytest.raises(stretto.QueryError, match=r"this is SQL with MATCH_RECOGNIZE, .*\n.*stretto\.compile_sql"):
        stretto.compile(FALLS)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.schema(SCHEMA.items()).empty_table(), tmp_path / "ticker.parquet")
    (tmp_path / "falls.sql").write_text(FALLS)
    drawn = tmp_path / "falls.dot"

    def told(*given: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["explain", *given])
        assert ended.value.code in (0, 2)
        return "".join(capsys.readouterr())

    assert FALLS_BOUND in told(FALLS, "--table", f"ticker={tmp_path}/ticker.parquet", "--draw", str(drawn))
    assert drawn.read_text() == FALLS_DOT
    assert "schema     none yet" in told(str(tmp_path / "falls.sql"))
    assert "a SQL statement names its tables: --table name=ticker.parquet" in told(FALLS, "ticker.parquet")
