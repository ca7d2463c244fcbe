"""Moving aggregates against columns of their values, on random small queries and streams."""

from __future__ import annotations

import pytest

from tests.cases import agree, moving
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(600, compiled=1_000), 100), ids=str)
def test_moving(seeds: range) -> None:
    assert sum(agree(moving, seeds)) > 0
