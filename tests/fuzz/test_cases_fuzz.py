"""Random cases of every language end in a result or in an error of stretto; ``make test-fuzz`` tries many more."""

from __future__ import annotations

from tests.conftest import cases
from tests.fuzz.__main__ import turn


def test_nothing_but_results_and_errors_of_stretto() -> None:
    """In a process of its own, which may die: the same cases in every run, of all languages in turn."""
    count = cases(2_000)
    outcome = turn("all", 0, count)
    told = "\n".join(f"python -m tests.fuzz {place} --show: {what}" for _, what, place in outcome.faults)
    assert not outcome.faults, told
    assert outcome.counts.total() == count
    assert outcome.counts["result"] > count // 10
