"""SASE+ on the AFA against the NFAb engine, in order and in disorder, on random cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from numba.core import config

from tests.conftest import cases as at_most
from tests.sase_afa_checks import check, check_disordered

#: An automaton's functions are compiled, which takes longer than a case: runs that compile take fewer.
CASES = 2_000 if config.DISABLE_JIT else 200


@pytest.mark.parametrize("checked", [check, check_disordered])
def test_many_seeds(checked: Callable[[int], int]) -> None:
    """A failure names its seed: ``python -m tests.sase_afa_checks seed seed+1`` shows it."""
    many = at_most(CASES)
    found = [checked(seed) for seed in range(many)]
    assert sum(one >= 0 for one in found) >= 0.7 * many  # the others say what no AFA does
    assert sum(max(one, 0) for one in found) >= 2 * many
