"""The tECS engine against the reference evaluator, on random small queries and streams."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from stretto.testing import ceql as testing
from stretto.testing.ceql import Case, case, check
from tests.conftest import blocks, cases


@settings(max_examples=cases(300))
@given(testing.cases())
def test_shrinkable(one: Case) -> None:
    check(one)


@pytest.mark.parametrize("seeds", blocks(cases(4_000)), ids=str)
def test_many_seeds(seeds: range) -> None:
    """Thousands of seeds; a failure names its seed: ``stretto.testing.ceql.check(stretto.testing.ceql.case(seed))``."""
    for seed in seeds:
        try:
            check(case(seed))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
