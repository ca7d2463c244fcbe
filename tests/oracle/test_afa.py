"""The AFA engine against the reference evaluator, and the reference against itself, on random cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from numba.core import config

from tests.afa_checks import check, check_reference
from tests.conftest import cases as at_most

#: An automaton's functions are compiled, which takes longer than a case: runs that compile take fewer.
CASES = {check: 12_000 if config.DISABLE_JIT else 800, check_reference: 700}


@pytest.mark.parametrize("checked", [check, check_reference])
def test_many_seeds(checked: Callable[[int], int]) -> None:
    """A failure names its seed: ``python -m tests.afa_checks seed seed+1`` makes it small."""
    assert sum(checked(seed) for seed in range(at_most(CASES[checked]))) > 0
