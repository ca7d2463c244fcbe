"""Clauses of ``MATCH_RECOGNIZE`` over streams against the whole table, and against what is final, on random cases."""

from __future__ import annotations

import pytest

from tests.cases import agree, row_streams
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(2_000)), ids=str)
def test_any_batches_give_what_the_table_gives(seeds: range) -> None:
    found = agree(row_streams, seeds)
    assert found.count(-1) <= len(seeds) / 4
    assert sum(rows > 0 for rows in found) >= len(seeds) / 3


@pytest.mark.parametrize("seeds", blocks(cases(400), 100), ids=str)
def test_matches_come_when_they_are_final(seeds: range) -> None:
    found = agree(row_streams, seeds, check=row_streams.check_final)
    assert found.count("exact") >= len(seeds) / 2
