"""Conditions that are equalities between events: split by their keys, and whole, against the reference evaluator."""

from __future__ import annotations

import pytest

from tests.cases import agree, apart
from tests.conftest import blocks, cases


@pytest.mark.filterwarnings("ignore::stretto.StrettoWarning")
@pytest.mark.parametrize("seeds", blocks(cases(6_000, compiled=100)), ids=str)
def test_many_seeds(seeds: range) -> None:
    assert sum(agree(apart, seeds)) > 0
