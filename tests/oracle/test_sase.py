"""The NFAb engine (basic and merged), the tECS engine where it may run, and snapshots, against the reference evaluator."""

from __future__ import annotations

import pytest

from tests.cases import agree, sase
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(6_000, compiled=120)), ids=str)
def test_many_seeds(seeds: range) -> None:
    assert sum(agree(sase, seeds)) > 0
