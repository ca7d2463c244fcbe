"""What must come out: plain loops over the definitions, without plans and automata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

__all__ = ["count_w", "reachable"]


def count_w(ups: Sequence[bool], times: Sequence[int], window: int) -> int:
    """How often ``U D^i U^j D^k U^l`` occurs at consecutive times, with i + k = j + l, in a window.

    Counted from the lengths of runs: behind an uptick come i downticks, j upticks and k downticks, which are whole runs, and l
    upticks of the run behind.
    """
    found = 0
    at = 0
    for _, group in groupby(range(len(times)), key=lambda place: times[place] - place):
        length = len(list(group))
        found += _whole(list(ups[at : at + length]), window)
        at += length
    return found


def _whole(ups: list[bool], window: int) -> int:
    runs = [(up, len(list(group))) for up, group in groupby(ups)]
    found = 0
    for first in range(len(runs) - 4):
        if not runs[first][0]:
            continue
        i, j, k, last = (length for _, length in runs[first + 1 : first + 5])
        wanted = i + k - j
        found += 1 <= wanted <= last and 1 + i + j + k + wanted <= window
    return found


def reachable(links: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """All pairs of nodes with a path from the one to the other, by a search from each node."""
    behind: dict[int, list[int]] = {}
    for src, dst in links:
        behind.setdefault(src, []).append(dst)
    found = set()
    for src, next_ in behind.items():
        seen: set[int] = set()
        stack = list(next_)
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack += behind.get(node, [])
        found.update((src, node) for node in seen)
    return found
