"""Windows with patterns in statements: measures and functions over them, row by row; what they mean alone is in the random cases."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.engines.rows import backtracking, words
from stretto.errors import DataError, LimitError, QueryError
from stretto.languages.match_recognize import parse
from stretto.languages.sql import read_statement
from stretto.matching.sql.row_pattern_table import recognize
from stretto.query.passes.bind_rows import bind
from tests.reference.match_recognize import evaluate

EIGHT = pa.table({"id": range(1, 9), "value": [90, 80, 70, 80, 90, 50, 40, 60], "k": ["a"] * 8})
DEFINE = {"B": "B AS B.value < PREV(B.value)", "C": "C AS C.value > PREV(C.value)"}
DOWN_UP = "DEFINE B AS B.value < PREV(B.value), C AS C.value > PREV(C.value)"


def window(
    pattern: str = "PATTERN (A B+ C+)",
    *,
    end: str = "UNBOUNDED FOLLOWING",
    measures: str = "MEASURES RUNNING LAST(value) AS val, CLASSIFIER() AS label ",
    define: str | None = None,
) -> str:
    if define is None:
        names = re.findall(r"[BC]", pattern.partition("PATTERN")[2])
        conditions = [one for name, one in DEFINE.items() if name in names]
        define = f"DEFINE {', '.join(conditions or ['A AS TRUE'])}"
    return f"WINDOW w AS (ORDER BY id {measures}ROWS BETWEEN CURRENT ROW AND {end} {pattern} {define})"


def column(text: str, **tables: pa.Table) -> list[Any]:
    """The second column, by the first one."""
    found = stretto.sql(text, **(tables or {"t": EIGHT}))
    rows = sorted(map(tuple, (row.values() for row in found.to_pylist())))
    return [row[1:] if len(row) > 2 else row[1] for row in rows]


_: None = None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (window(), [90, _, _, _, _, 60, _, _]),
        (window(end="3 FOLLOWING"), [80, _, _, _, 60, _, _, _]),
        (window(end="CURRENT ROW"), [_] * 8),
        (window("AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C+)"), [90, 90, _, _, 60, 60, _, _]),
        (window("AFTER MATCH SKIP TO NEXT ROW SEEK PATTERN (A B+ C+)"), [90, 90, 60, 60, 60, 60, _, _]),
        (window("AFTER MATCH SKIP TO LAST C INITIAL PATTERN (A B+ C+)"), [90, _, _, _, 60, _, _, _]),
        (window("SEEK PATTERN (A B+ C+)", end="4 FOLLOWING"), [90, _, _, _, _, 60, _, _]),
        # A frame begins at its row, so that nothing is before a match.
        (window("PATTERN (B | C | A)"), [90, 80, 70, 80, 90, 50, 40, 60]),
        (window("AFTER MATCH SKIP TO NEXT ROW SEEK PATTERN (B)"), [80, 70, 50, 50, 50, 40, _, _]),
        (window("PATTERN (A B??)"), [90, 80, 70, 80, 90, 50, 40, 60]),
        (window("PATTERN (() | A)"), [_] * 8),
        (window("PATTERN (PERMUTE(B, C, A))"), [_, 80, _, _, _, 60, _, _]),
    ],
)
def test_measures(spec: str, expected: list[int | None]) -> None:
    assert column(f"SELECT id, val OVER w FROM t {spec}") == expected
    (clause,) = read_statement(f"SELECT id, val OVER w FROM t {spec}").clauses
    bound = bind(clause.parsed, EIGHT.schema)
    for judge in (evaluate, recognize):
        assert judge(bound, EIGHT).column("val_over_w").to_pylist() == expected


def test_functions_over_what_was_matched() -> None:
    text = (
        "SELECT id, count(*) OVER w, sum(x.value * 2) OVER w AS total, round(avg(value) OVER w, 1) AS mean, "
        "first_value(id) OVER w AS f, last_value(id) OVER W AS l, count(DISTINCT value) OVER w AS d, label OVER w AS m "
        f"FROM t AS x WHERE id <> 2 {window()} ORDER BY val OVER w, id DESC"
    )
    found = stretto.sql(text, t=EIGHT)
    assert found.schema.names == ["id", "count", "total", "mean", "f", "l", "d", "m"]
    rows = {row["id"]: tuple(row.values())[1:] for row in found.to_pylist()}
    assert rows.pop(1) == (4, 660, 82.5, 1, 5, 3, "C")
    assert rows.pop(6) == (3, 300, 50.0, 6, 8, 3, "C")
    assert set(rows.values()) == {(0, _, _, _, _, 0, _)}
    assert found.column("id").to_pylist()[:2] == [6, 1]


def test_a_star_is_the_columns_of_the_table() -> None:
    spec = window()
    found = stretto.sql(f"SELECT *, val OVER w, count(*) OVER w AS n FROM t WHERE id * 1 < 6 {spec}", t=EIGHT)
    assert found.schema.names == [*EIGHT.schema.names, "val", "n"]
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert sorted(rows)[0] == (1, 90, "a", 90, 5)
    found = stretto.sql(f"SELECT DISTINCT label OVER w AS m, x.* FROM t AS x {spec} ORDER BY id", t=EIGHT)
    assert found.schema.names == ["m", *EIGHT.schema.names]
    assert found.column("m").to_pylist() == ["C", _, _, _, _, "C", _, _]
    assert stretto.sql(f"SELECT * FROM t {window(measures='')}", t=EIGHT).sort_by("id").equals(EIGHT)


def test_what_is_called_without_measures() -> None:
    spec = window("PATTERN (A*)", measures="", define="DEFINE A AS value > 75")
    assert column(f"SELECT id, count(*) OVER w, min(value) OVER w FROM t {spec}") == [
        (2, 80), (0, _), (0, _), (2, 80), (0, _), (0, _), (0, _), (0, _)
    ]  # fmt: skip


def test_an_empty_match_is_a_match() -> None:
    spec = window("PATTERN (B*)", measures="MEASURES 'matched' AS m ", define="DEFINE B AS value < 75")
    assert column(f"SELECT id, m OVER w FROM t {spec}")[:4] == ["matched"] * 4
    spec = window("PATTERN (B+)", measures="MEASURES 'matched' AS m ", define="DEFINE B AS value < 75")
    assert column(f"SELECT id, m OVER w FROM t {spec}")[:4] == [_, _, "matched", _]


def test_windows_in_parts_of_a_statement() -> None:
    text = f"""
        WITH u AS (SELECT id + 0 AS id, value FROM t WHERE id > 1),
             v AS (SELECT u.id, count(*) OVER w AS n FROM u {window()})
        SELECT v.id, v.n + o.n AS n FROM v JOIN (SELECT id, count(*) OVER w AS n FROM t {window()}) AS o ON v.id = o.id
        UNION ALL
        SELECT first_id, -1 FROM t MATCH_RECOGNIZE (ORDER BY id MEASURES FIRST(id) AS first_id PATTERN (A B+ C+) {DOWN_UP})
    """
    assert column(text) == [-1, 4, 0, 0, 0, -1, 6, 0, 0]


def test_a_window_over_a_subquery_with_a_clause() -> None:
    text = (
        "SELECT id, n OVER w FROM (SELECT * FROM t MATCH_RECOGNIZE "
        "(ORDER BY id MEASURES A.id AS id, B.value AS value AFTER MATCH SKIP TO NEXT ROW PATTERN (A B))) AS pairs "
        f"{window('PATTERN (A C+)', measures='MEASURES count(*) AS n ')}"
    )
    assert column(text) == [_, 3, _, _, _, 2, _]


def test_measures_may_have_names_of_columns() -> None:
    spec = window(measures="MEASURES LAST(value) AS value, FIRST(id) AS over ")
    assert column(f"SELECT id, value OVER w FROM t {spec}")[0] == 90
    taken = EIGHT.append_column("value_over_w", EIGHT.column("id"))
    with pytest.raises(QueryError, match="has the name of a column"):
        column(f"SELECT id, value OVER w FROM t {spec}", t=taken)


def test_conditions_of_the_match_and_the_begin_of_the_frame() -> None:
    """What stands before a row of the match is cut off by its frame: the same rows are another match."""
    table = pa.table({"id": range(6), "value": [5, 1, 5, 2, 5, 9]})
    spec = window(
        "AFTER MATCH SKIP TO NEXT ROW SEEK PATTERN (A B+ C)",
        measures="MEASURES FIRST(id) AS f, LAST(id) AS l ",
        define="DEFINE A AS value < 3, C AS PREV(A.value) IS NULL AND value = 5",
    )
    found = column(f"SELECT id, f OVER w, l OVER w FROM t {spec}", t=table)
    assert found == [(_, _), (1, 4), (_, _), (_, _), (_, _), (_, _)]
    (clause,) = read_statement(f"SELECT id, f OVER w, l OVER w FROM t {spec}").clauses
    bound = bind(clause.parsed, table.schema)
    assert recognize(bound, table, capacity=1).equals(evaluate(bound, table))


def test_seeking_where_nothing_matches_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 20_000
    table = pa.table({"id": range(count), "value": [1] * count})
    spec = window("SEEK PATTERN (A B C)", define="DEFINE B AS value <= PREV(value), C AS value < FIRST(A.value)")
    clause = read_statement(f"SELECT id, val OVER w FROM t {spec}").clauses[0]
    found = recognize(bind(clause.parsed, table.schema), table)
    assert found.column("val_over_w").null_count == count


@pytest.mark.skipif(hasattr(backtracking.walk_back, "python"), reason="the limit is part of what is compiled")
def test_seeking_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backtracking, "MOST_TRIED", 100)
    table = pa.table({"id": range(1_000), "value": [1] * 1_000})
    spec = window("SEEK PATTERN (A B C)", end="500 FOLLOWING", define="DEFINE C AS value < FIRST(A.value)")
    clause = read_statement(f"SELECT id, val OVER w FROM t {spec}").clauses[0]
    with pytest.raises(LimitError, match="SEEK has looked for matches at more than"):
        recognize(bind(clause.parsed, table.schema), table)


def test_a_window_that_reads_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "MOST_VARIANTS", 3)
    spec = window("PATTERN (A B)", define="DEFINE B AS value < PREV(value, 3)")
    with pytest.raises(LimitError, match="at distances of up to 3"):
        column(f"SELECT id, val OVER w FROM t {spec}")


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("SELECT t.* EXCLUDE (value), val OVER w FROM t #", "* EX", "* stands without EXCLUDE"),
        ("SELECT vall OVER w FROM t #", "vall", "no measure 'vall'\n"),
        ("SELECT rank() OVER w FROM t #", "rank", "'rank' is not computed over a window with a PATTERN"),
        ("SELECT val OVER w FROM t, t AS u #", ", t", "reads one table"),
        ("SELECT val OVER w FROM t JOIN t AS u USING (id) #", "JOIN", "without JOIN"),
        ("SELECT val OVER w FROM t GROUP BY id #", "GROUP", "without GROUP"),
        ("SELECT val OVER w FROM t #, v AS ()", ", v", "stands alone in its WINDOW clause"),
        ("SELECT val OVER (ORDER BY id PATTERN (A)) FROM t #", "OVER (", "has a name"),
        ("SELECT 1 OVER w FROM t #", "OVER w", "stands behind a measure, or a function"),
        ("SELECT sum(valu) OVER w FROM t #", "sum(", "unknown column 'valu'"),
        ("#", "WINDOW", "stands behind SELECT"),
        ("SELECT val OVER w FROM t WINDOW w AS (PATTERN (A))", "WINDOW", "has a frame of ROWS"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, at: str, message: str) -> None:
    text = text.replace("#", window())
    with pytest.raises(QueryError) as raised:
        column(text)
    assert message in f"{raised.value}\n"
    assert raised.value.span is not None
    assert raised.value.span.start == text.index(at)


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("ROWS BETWEEN CURRENT ROW AND 1.5 FOLLOWING PATTERN (A)", "a whole number of rows"),
        ("ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING PATTERN (^ A)", "has no ^"),
        ("ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING ONE ROW PER MATCH PATTERN (A)", "ONE ROW PER MATCH"),
        ("ONE ROW PER MATCH ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING PATTERN (A)", "belongs to MATCH_RECOGNIZE"),
        ("MEASURES MATCH_NUMBER() AS m ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING PATTERN (A)", "have no numbers"),
        ("MEASURES sum(MATCH_NUMBER()) AS m ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING PATTERN (A)", "have no numbers"),
        ("SEEK PATTERN (A)", "SEEK belongs to a pattern in a WINDOW clause"),
    ],
)
def test_what_the_definition_of_a_window_refuses(clause: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        parse(f"MATCH_RECOGNIZE ({clause})", window=True)
    assert message.casefold() in str(raised.value).casefold()


def test_a_frame_belongs_to_a_window() -> None:
    with pytest.raises(QueryError, match="ROWS BETWEEN belongs to a pattern in a WINDOW clause"):
        parse("MATCH_RECOGNIZE (ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING PATTERN (A))")


def test_where_the_next_match_cannot_begin() -> None:
    spec = window("AFTER MATCH SKIP TO FIRST A PATTERN (A B+ C+)")
    with pytest.raises(DataError, match="begins with A"):
        column(f"SELECT id, val OVER w FROM t {spec}")


def test_a_window_is_explained() -> None:
    query = stretto.compile_sql(f"SELECT id, val OVER w FROM t {window('SEEK PATTERN (A B)')}", t=EIGHT.schema)
    text = query.explain()
    assert "line 1: WINDOW over t" in text
    assert "the match begins at it or later in the frame" in text
    assert "DuckDB runs: SELECT id, val_over_w AS val FROM matched_1 AS t" in text
