"""``timeouts=``: the rows of partial matches and of matches, at any cut, through snapshots, against the reference evaluator."""

from __future__ import annotations

import pytest

from tests.cases import agree, timeouts
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(3_000, compiled=100)), ids=str)
def test_many_seeds(seeds: range) -> None:
    assert sum(agree(timeouts, seeds)) > 0
