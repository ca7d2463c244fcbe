"""What of a query chooses among its matches, as the query says it."""

from __future__ import annotations

from stretto.query import row_pattern as r
from stretto.query.query import Consume, ParsedQuery, Strategy
from stretto.query.sase import SaseQuery


def choosing(parsed: ParsedQuery | SaseQuery) -> str:
    """What chooses among the matches of a query, in words; empty: nothing does.

    >>> import stretto
    >>> choosing(stretto.compile("SELECT MAX * FROM S WHERE A; B LIMIT 2").parsed)
    'SELECT MAX, LIMIT 2'
    """
    told = list[str]()
    if isinstance(parsed, ParsedQuery):
        if parsed.strategy not in (Strategy.ALL, Strategy.STRICT):
            told.append(f"SELECT {parsed.strategy}")
        if parsed.consume is not Consume.NONE:
            told.append(f"CONSUME BY {parsed.consume}")
    elif parsed.non_overlap:
        told.append("OUTPUT non_overlap")
    if parsed.keep is not None:
        told.append(str(parsed.keep))
    if parsed.limit is not None:
        told.append(f"LIMIT {parsed.limit}")
    return ", ".join(told)


def skipping(parsed: r.RowQuery) -> str:
    """Where a clause goes on after a match, in words."""
    variable = "" if parsed.after_variable is None else f" {r.identifier(parsed.after_variable)}"
    return f"AFTER MATCH SKIP {parsed.after}{variable}"
