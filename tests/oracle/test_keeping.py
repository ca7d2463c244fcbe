"""KEEP and AFTER MATCH against the reference, on random small queries and streams."""

from __future__ import annotations

import pytest

from tests.cases import agree, keeping
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(1_000)), ids=str)
def test_many_seeds(seeds: range) -> None:
    assert sum(agree(keeping, seeds)) > 0
