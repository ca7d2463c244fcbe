"""The AFA operator's reference evaluator against itself, on random cases."""

from __future__ import annotations

from tests.afa_checks import check_reference
from tests.conftest import cases as at_most

CASES = 700


def test_the_reference() -> None:
    """A failure names its seed."""
    assert sum(check_reference(seed) for seed in range(at_most(CASES))) > 0
