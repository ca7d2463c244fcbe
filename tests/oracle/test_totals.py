"""Counts and sums over all matches, at any cut, through snapshots, against the reference evaluator."""

from __future__ import annotations

import pytest

from tests.cases import agree, revised, totals
from tests.conftest import blocks, cases


@pytest.mark.parametrize("seeds", blocks(cases(4_000)), ids=str)
def test_ceql(seeds: range) -> None:
    assert any(rows >= 0 for rows in agree(totals, seeds, case=totals.case_of_ceql))


@pytest.mark.parametrize("seeds", blocks(cases(3_000)), ids=str)
def test_gaps_and_absence_at_the_ends(seeds: range) -> None:
    assert any(rows >= 0 for rows in agree(totals, seeds, case=totals.case_of_gaps))


@pytest.mark.parametrize("seeds", blocks(cases(3_000, compiled=300)), ids=str)
def test_sase(seeds: range) -> None:
    """A query's conditions are compiled, which takes longer than a case."""
    assert any(rows >= 0 for rows in agree(totals, seeds, case=totals.case_of_sase))


@pytest.mark.parametrize("seeds", blocks(cases(2_000, compiled=200)), ids=str)
def test_options_and_groups(seeds: range) -> None:
    assert any(rows >= 0 for rows in agree(totals, seeds, case=totals.case_of_variants))


@pytest.mark.parametrize("seeds", blocks(cases(2_000, compiled=200)), ids=str)
def test_ahead_of_what_is_certain(seeds: range) -> None:
    assert any(taken_back > 0 for taken_back in agree(revised, seeds))


@pytest.mark.parametrize("seeds", blocks(cases(2_000)), ids=str)
def test_windows_of_the_events_of_each_key(seeds: range) -> None:
    assert any(rows > 0 for rows in agree(totals, seeds, case=totals.case_of_keys))
