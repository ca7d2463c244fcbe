"""ORDER BY … LIMIT and SAMPLE against the reference, on random small queries and streams."""

from __future__ import annotations

import pytest

from stretto.query.totals import Totals
from tests.cases import agree, totals
from tests.conftest import blocks, cases


def _chosen(one: totals.Case, seed: int) -> int:
    """Check a case that chooses among its matches."""
    return -1 if isinstance(one.compiled.parsed.asked, Totals) else totals.check(one, seed)


@pytest.mark.parametrize("seeds", blocks(cases(3_000)), ids=str)
def test_ceql(seeds: range) -> None:
    assert any(one >= 0 for one in agree(totals, seeds, case=totals.case_of_ceql, check=_chosen))


@pytest.mark.parametrize("seeds", blocks(cases(2_000)), ids=str)
def test_gaps_and_absence_at_the_ends(seeds: range) -> None:
    assert any(one >= 0 for one in agree(totals, seeds, case=totals.case_of_gaps, check=_chosen))


@pytest.mark.parametrize("seeds", blocks(cases(1_500, compiled=300)), ids=str)
def test_sase(seeds: range) -> None:
    """A query's conditions are compiled, which takes longer than a case."""
    assert any(one >= 0 for one in agree(totals, seeds, case=totals.case_of_sase, check=_chosen))
