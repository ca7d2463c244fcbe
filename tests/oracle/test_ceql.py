"""The tECS engine against the reference evaluator, on random small queries and streams."""

from __future__ import annotations

from hypothesis import given, settings

from stretto.testing import Case, case, cases, check
from tests.conftest import cases as at_most


@settings(max_examples=at_most(300))
@given(cases())
def test_shrinkable(one: Case) -> None:
    check(one)


def test_many_seeds() -> None:
    """Thousands of seeds; a failure names its seed: ``stretto.testing.check(stretto.testing.case(seed))``."""
    for seed in range(at_most(4000)):
        try:
            check(case(seed))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
