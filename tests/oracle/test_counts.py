"""How far random queries get in their events, counted by the definitions (see ``tests/cases/counts.py``, ``counts_afa.py``)."""

from __future__ import annotations

from tests.cases import agree, counts, counts_afa
from tests.conftest import cases


def test_random_cases() -> None:
    found = agree(counts, range(cases(3_000, compiled=200)))
    assert sum(map(bool, found)) > len(found) // 3


def test_random_automata() -> None:
    found = agree(counts_afa, range(cases(600, compiled=60)))
    assert sum(map(bool, found)) > len(found) // 4
