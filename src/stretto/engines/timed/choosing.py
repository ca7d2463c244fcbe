"""What selection strategies and LIMIT leave of the matches of an event, which are all there."""

from __future__ import annotations

import numpy as np

from stretto.array_types import I64
from stretto.engines.limits import TooMany
from stretto.query.query import Strategy

#: More matches of one interval are not compared with each other.
MOST_COMPARED = 1 << 12


def chosen(strategy: Strategy, limit: int | None, start: I64, end: I64, offset: I64, position: I64) -> I64 | None:
    """The rows that stay, ascending; ``None``: all. Rows ascend by end."""
    rows = np.arange(start.size)
    if strategy in (Strategy.NEXT, Strategy.LAST, Strategy.MAX):
        intervals: dict[tuple[int, int], list[int]] = {}
        for row, interval in enumerate(zip(end.tolist(), start.tolist(), strict=True)):
            intervals.setdefault(interval, []).append(row)
        kept: list[int] = []
        for (last, _), alike in intervals.items():
            kept += _of_interval(strategy, alike, [position[offset[k] : offset[k + 1]] for k in alike], last)
        rows = np.array(sorted(kept), np.int64)
    if limit is not None and rows.size:
        rows = rows[np.lexsort((-start[rows], end[rows]))]
        begins = np.flatnonzero(np.diff(end[rows], prepend=end[rows[0]] - 1))
        number = np.arange(rows.size) - np.repeat(begins, np.diff(begins, append=rows.size))
        rows = np.sort(rows[number < limit])
    return None if rows.size == start.size else rows


def _of_interval(strategy: Strategy, rows: list[int], held: list[I64], end: int) -> list[int]:
    """NEXT and LAST have one best match, and MAX those that no other includes (SEMANTICS: selection strategies)."""
    if len(rows) == 1:
        return rows
    if strategy is Strategy.MAX:
        if len(rows) > MOST_COMPARED:
            raise TooMany(
                end,
                f"completes {len(rows):,} matches of one interval, of which SELECT MAX compares at most {MOST_COMPARED:,}",
                "a narrower WITHIN or GAP has fewer; SELECT NEXT and LAST compare any number",
            )
        sets = [frozenset(one.tolist()) for one in held]
        return [row for row, own in zip(rows, sets, strict=True) if not any(own < other for other in sets)]
    # Which of two holds the first (last) event that only one of them holds: positions compared from that side, a longer one first.
    if strategy is Strategy.NEXT:
        best = min(range(len(rows)), key=lambda k: (*held[k].tolist(), np.inf))
    else:
        best = max(range(len(rows)), key=lambda k: held[k][::-1].tolist())
    # Valuations of the same events are alike.
    return [row for row, own in zip(rows, held, strict=True) if np.array_equal(own, held[best])]
