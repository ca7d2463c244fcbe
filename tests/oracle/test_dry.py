"""What is told of random queries without a match, judged by the definitions (see ``tests/cases/dry.py``)."""

from __future__ import annotations

from stretto.errors import LimitError, QueryError
from stretto.matching.sql.row_pattern_table import unmet
from stretto.query.row_pattern import RowsPerMatch
from tests.cases import agree, dry, rows
from tests.conftest import cases


def test_random_cases() -> None:
    found = agree(dry, range(cases(5_000)))
    assert sum(map(bool, found)) > len(found) // 5


def _rows(one: rows.Case, _seed: int) -> int:
    bound = rows.bound(one)
    if bound.parsed.frame is not None or bound.parsed.rows is RowsPerMatch.WITH_UNMATCHED:
        return 0  # they show rows without a match
    try:
        found = unmet(bound, one.rows, piece=one.capacity)
    except (QueryError, LimitError):
        return 0
    if found:
        assert rows.expected(one) in ([], None), (one, found)
    return len(found)


def test_random_rows() -> None:
    found = agree(rows, range(cases(3_000, compiled=300)), check=_rows)
    assert sum(map(bool, found)) >= len(found) // 50
