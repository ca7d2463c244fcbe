"""A warning of queries with exponentially many matches."""

from __future__ import annotations

from stretto.query.query import AnyQuery


def warning(query: AnyQuery) -> str | None:
    """Say what may make 2ⁿ matches of n events, and the ways out; ``None`` where nothing does.

    An iteration that skips does, where every choice of its events is a match of its own.
    """
    loops = query.skipping_loops if query.asked is None and query.limit is None else []
    if not loops:
        return None
    return f"{', '.join(loops)}: every choice of its events is a match, 2ⁿ for n events that fit within the window\n{query.fewer}"
