"""All that patterns of CEQL and SASE+ can say, mixed, in random pieces with snapshots between them, against the reference."""

from __future__ import annotations

import pytest

from tests.cases import agree, mixed
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(3_000, compiled=50)), ids=str)
def test_many_seeds(seeds: range) -> None:
    assert sum(agree(mixed, seeds)) > 0
