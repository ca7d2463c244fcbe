"""What of a clause chooses among its matches, as the clause says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stretto.query import row_pattern as r


def choosing_rows(parsed: r.RowQuery) -> Iterator[tuple[str, r.RowQuery]]:
    """What chooses among the matches of a clause, in words, and the clause with all up to that.

    Of the alternatives of a pattern the first that matches a row is taken, also where it holds no row; then a match may skip others.
    """
    if isinstance(parsed.pattern, r.Alternation):
        yield f"PATTERN ({parsed.pattern})", replace(parsed, after=r.AfterMatch.NEXT, after_variable=None)
    if parsed.after is not r.AfterMatch.NEXT:
        variable = "" if parsed.after_variable is None else f" {r.identifier(parsed.after_variable)}"
        yield f"AFTER MATCH SKIP {parsed.after}{variable}", parsed
