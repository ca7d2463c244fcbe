"""Random EQL queries over random streams: the engine against the definition (see ``tests/cases/eql.py``)."""

from __future__ import annotations

from tests.cases import agree, eql
from tests.conftest import cases


def test_random_cases() -> None:
    found = agree(eql, range(cases(10_000, compiled=2_000)))
    assert sum(found) > len(found) // 4
