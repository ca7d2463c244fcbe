"""The AFA engine against the reference evaluator, and the reference against itself, on random cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.afa_checks import check, check_reference
from tests.conftest import blocks, cases

SEEDS: list[tuple[Callable[[int], int], range]] = [
    *[(check, seeds) for seeds in blocks(cases(5_000, compiled=800))],
    *[(check_reference, seeds) for seeds in blocks(cases(700, compiled=700))],
]


@pytest.mark.parametrize(("checked", "seeds"), SEEDS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_many_seeds(checked: Callable[[int], int], seeds: range) -> None:
    """A failure names its seed: ``python -m tests.afa_checks seed seed+1`` makes it small."""
    assert sum(checked(seed) for seed in seeds) > 0
