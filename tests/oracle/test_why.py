"""What random queries answer that have no match, judged by the definitions (see ``tests/cases/why.py``)."""

from __future__ import annotations

from tests.cases import agree, why, why_afa, why_rows
from tests.conftest import cases


def test_random_cases() -> None:
    found = agree(why, range(cases(5_000, compiled=500)))
    assert sum(map(bool, found)) > len(found) // 3


def test_random_events() -> None:
    found = agree(why, range(cases(3_000, compiled=200)), check=why.check_event)
    found += agree(why_rows, range(cases(1_500, compiled=100)), check=why_rows.check_event)
    found += agree(why_afa, range(cases(1_500, compiled=50)), check=why_afa.check_event)
    assert len(found) // 10 < sum(found) < len(found) // 2


def test_random_clauses() -> None:
    found = agree(why_rows, range(cases(3_000, compiled=200)))
    assert sum(map(bool, found)) > len(found) // 3


def test_random_automata() -> None:
    found = agree(why_afa, range(cases(3_000, compiled=120)))
    assert sum(map(bool, found)) > len(found) // 5
