"""The tECS and the timed engine against the reference evaluator, on random small queries and streams."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.cases import agree, ceql, timed
from tests.conftest import blocks, cases


@settings(max_examples=cases(300))
@given(ceql.drawn())
def test_shrinkable(one: ceql.Case) -> None:
    ceql.check(one)


@pytest.mark.parametrize("seeds", blocks(cases(4_000)), ids=str)
def test_many_seeds(seeds: range) -> None:
    """Thousands of seeds; a failure names its own."""
    assert sum(agree(ceql, seeds)) > 0


@pytest.mark.parametrize("seeds", blocks(cases(1_200)), ids=str)
def test_gaps(seeds: range) -> None:
    """Gaps, windows inside and absence at the ends; and the timed engine on queries without, which both engines can."""
    assert sum(agree(timed, seeds)) > 0
