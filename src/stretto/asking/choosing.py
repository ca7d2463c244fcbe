"""What of a query chooses among its matches, as the query says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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


def choosing_rows(parsed: r.RowQuery) -> Iterator[tuple[str, r.RowQuery]]:
    """What chooses among the matches of a clause, in words, and the clause with all up to that.

    Of the alternatives of a pattern the first that matches a row is taken, also where it holds no row; then a match may skip others.
    """
    if isinstance(parsed.pattern, r.Alternation):
        yield f"PATTERN ({parsed.pattern})", replace(parsed, after=r.AfterMatch.NEXT, after_variable=None)
    if parsed.after is not r.AfterMatch.NEXT:
        variable = "" if parsed.after_variable is None else f" {r.identifier(parsed.after_variable)}"
        yield f"AFTER MATCH SKIP {parsed.after}{variable}", parsed
