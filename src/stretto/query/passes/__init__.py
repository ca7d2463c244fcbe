"""Rewrites of a pattern, one a file. Each takes a pattern and gives an equivalent one."""

from __future__ import annotations

from collections.abc import Callable

from stretto.query.algebra import Pattern
from stretto.query.passes.flatten import flatten_iterations
from stretto.query.passes.join_filters import join_filters
from stretto.query.passes.push_filters import push_filters

__all__ = ["PASSES", "rewrite"]

#: In order of application.
PASSES: tuple[Callable[[Pattern], Pattern], ...] = (flatten_iterations, join_filters, push_filters)


def rewrite(pattern: Pattern) -> Pattern:
    """Apply all passes."""
    for one_pass in PASSES:
        pattern = one_pass(pattern)
    return pattern
