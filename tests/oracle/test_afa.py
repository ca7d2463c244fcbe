"""The AFA engine against the reference evaluator, and the reference against itself, on random cases."""

from __future__ import annotations

import pytest

from tests.cases import afa, agree
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(5_000, compiled=800)), ids=str)
def test_many_seeds(seeds: range) -> None:
    assert sum(agree(afa, seeds, thorough=False)) > 0


@pytest.mark.parametrize("seeds", blocks(cases(700, compiled=700)), ids=str)
def test_the_reference_by_itself(seeds: range) -> None:
    assert sum(agree(afa, seeds, check=afa.check_reference)) > 0
