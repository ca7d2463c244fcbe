"""Counts and sums over all matches, at any cut, through snapshots, against the reference evaluator."""

from __future__ import annotations

import pytest

from tests.cases import agree, totals
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(5_000)), ids=str)
def test_many_seeds(seeds: range) -> None:
    assert any(rows >= 0 for rows in agree(totals, seeds))
