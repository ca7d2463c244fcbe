"""KEEP and AFTER MATCH against the reference, on random small queries and streams."""

from __future__ import annotations

import pytest

from tests.cases import agree, keeping
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(500)), ids=str)
def test_ceql(seeds: range) -> None:
    assert sum(agree(keeping, seeds, case=keeping.case_of_ceql)) > 0


@pytest.mark.parametrize("seeds", blocks(cases(300, compiled=150)), ids=str)
def test_sase(seeds: range) -> None:
    """A query's conditions are compiled, which takes longer than a case."""
    assert sum(agree(keeping, seeds, case=keeping.case_of_sase)) > 0
