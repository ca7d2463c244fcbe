"""SASE+ on the AFA against the NFAb engine, in order and in disorder, on random cases."""

from __future__ import annotations

import pytest

from tests.cases import agree, disordered
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(1_000, compiled=200)), ids=str)
def test_many_seeds(seeds: range) -> None:
    found = agree(disordered, seeds)
    assert sum(one >= 0 for one in found) >= 0.7 * len(seeds)  # the others say what no AFA does
    assert sum(max(one, 0) for one in found) >= 4 * len(seeds)
