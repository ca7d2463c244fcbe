"""The NFAb engine (basic and merged), the tECS engine where it may run, and snapshots, against the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import blocks, cases
from tests.sase_checks import check, check_snapshots


@pytest.mark.parametrize("seeds", blocks(cases(6_000, compiled=120)), ids=str)
@pytest.mark.parametrize("checked", [check, check_snapshots])
def test_many_seeds(checked: Callable[[int], int], seeds: range) -> None:
    """A failure names its seed: ``tests.sase_checks.check(seed)``."""
    found = 0
    for seed in seeds:
        try:
            found += checked(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert found > 0
