"""The AFA engine against the reference evaluator, and the reference against itself, on random cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.afa_checks import check, check_reference
from tests.conftest import cases

COUNTS = {check: cases(12_000, compiled=800), check_reference: cases(700, compiled=700)}


@pytest.mark.parametrize("checked", [check, check_reference])
def test_many_seeds(checked: Callable[[int], int]) -> None:
    """A failure names its seed: ``python -m tests.afa_checks seed seed+1`` makes it small."""
    assert sum(checked(seed) for seed in range(COUNTS[checked])) > 0
