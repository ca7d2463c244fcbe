"""The tECS engine against the reference evaluator, on random small queries and streams."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.cases import agree, ceql
from tests.conftest import blocks, cases


@settings(max_examples=cases(300))
@given(ceql.drawn())
def test_shrinkable(one: ceql.Case) -> None:
    ceql.check(one)


@pytest.mark.parametrize("seeds", blocks(cases(4_000)), ids=str)
def test_many_seeds(seeds: range) -> None:
    """Thousands of seeds; a failure names its own."""
    assert sum(agree(ceql, seeds)) > 0
