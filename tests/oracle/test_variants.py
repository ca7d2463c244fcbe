"""Options, groups, strategies of single steps and UNTIL in SASE+: the NFAb engine and snapshots against the reference evaluator."""

from __future__ import annotations

import pytest

from tests.cases import agree, variants
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(6_000, compiled=100)), ids=str)
def test_many_seeds(seeds: range) -> None:
    assert sum(agree(variants, seeds)) > 0
