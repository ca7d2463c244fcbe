"""Any text is a statement or a QueryError with its place, and what is left of a statement has the user's text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import QueryError
from stretto.languages.sql import read_statement
from tests.conftest import cases
from tests.languages.mutating import mutations

CLAUSE = "MATCH_RECOGNIZE (ORDER BY x PATTERN (A))"
STATEMENTS = [
    f"WITH c(a) AS MATERIALIZED (SELECT 1 FROM t {CLAUSE} m), d AS (SELECT 2) SELECT * FROM c JOIN (d {CLAUSE} AS q) USING (k), "
    f"LATERAL f(x) {CLAUSE} WHERE 'a' < \"b\" -- x\n UNION SELECT $$q$$ /* k */ FROM `t` {CLAUSE}",
    f"SELECT * FROM t {CLAUSE} AS m;",
    f"WITH RECURSIVE r AS (SELECT 'it''s' UNION ALL (WITH e AS (SELECT 1) SELECT * FROM e, r {CLAUSE})) SELECT e'\\'' FROM r",
]
STATEMENTS.append(
    "WITH c AS (SELECT 1) SELECT id, m OVER w, count(*) OVER w AS n, sum(t.x) OVER w FROM (SELECT 1) AS t WHERE x > 1 "
    "WINDOW w AS (ORDER BY x MEASURES A.x AS m ROWS BETWEEN CURRENT ROW AND 3 FOLLOWING SEEK PATTERN (A B)) "
    "ORDER BY m OVER w UNION SELECT 1"
)
TOKENS = re.compile(r"\w+|'[^']*'|\s+|.", re.DOTALL)


@pytest.mark.parametrize("spark", [False, True])
@given(
    text=mutations([TOKENS.findall(one) for one in STATEMENTS]) | st.text(alphabet="()'\"`;,/*-$ \nWITHx", max_size=40)
)
@settings(max_examples=cases(3000), deadline=None)
def test_any_text(spark: bool, text: str) -> None:
    try:
        statement = read_statement(text, spark=spark)
    except QueryError as error:
        _check_place(text, error)
        return
    names = {clause: f"result_{number}" for number, clause in enumerate(statement.clauses)}
    for rewritten in (statement.rest(names), *(statement.operand(clause, names) for clause in statement.clauses)):
        at = 0
        for part in rewritten.parts:
            assert not part.verbatim or text[part.span.start : part.span.end] == part.text
            for offset in range(at, at + len(part.text)):
                place = rewritten.place(offset)
                assert text[place.start] == part.text[offset - at] if part.verbatim else place == part.span
            at += len(part.text)
        assert at == len(str(rewritten))


def _check_place(text: str, error: QueryError) -> None:
    assert error.text == text
    assert error.span is not None
    assert 0 <= error.span.start <= error.span.end <= len(text)
