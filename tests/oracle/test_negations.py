"""SASE+ with negations that ask single events only: the tECS and NFAb engines against the reference evaluator."""

from __future__ import annotations

import pytest

from tests.cases import agree, negations
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(4_000, compiled=100)), ids=str)
def test_many_seeds(seeds: range) -> None:
    assert sum(agree(negations, seeds)) > 0
