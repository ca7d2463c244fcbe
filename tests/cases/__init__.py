"""Random cases of every language and operator, and what must hold of each.

A module offers ``case(seed)``, which draws a case, and ``check(case, seed)``, which raises an AssertionError unless the library is
right on it, and says how much it found: the seed then decides how the case is fed. Some offer ``shrunk(case, seed)``, a smaller case
that fails in the same way, and ``shown(case)``, the case as code. :func:`agree` is what tests call; at a desk::

    python -m tests.cases ceql 0 100000
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["agree"]


def agree(
    language: Any,
    seeds: Iterable[int],
    *,
    case: Callable[[int], Any] | None = None,
    check: Callable[..., Any] | None = None,
    **options: Any,
) -> list[Any]:
    """Check the cases of some seeds; how much each found. A failure names its seed.

    Parameters
    ----------
    language
        A module of this folder.
    seeds
        Of which cases.
    case, check
        In place of the module's own.
    options
        For ``check``.
    """
    found = []
    for seed in seeds:
        try:
            found.append((check or language.check)((case or language.case)(seed), seed, **options))
        except Exception as error:
            name = language.__name__.rpartition(".")[2]
            shown = f"python -m tests.cases {name} {seed} {seed + 1}"
            raise AssertionError(f"seed {seed} ({shown}): {type(error).__name__}: {error}") from error
    return found
