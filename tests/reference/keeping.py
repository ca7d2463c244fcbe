"""KEEP and AFTER MATCH: which of the matches of a key stay, straight from the definition (SEMANTICS.md: after a match)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeVar

from stretto.query.query import Keep, Skip


class Placed(Protocol):
    """A match of any language."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def positions(self) -> Collection[int]: ...


M = TypeVar("M", bound=Placed)


def kept(
    found: Iterable[M], keep: Keep | None, held: Callable[[M, str], Iterable[int]], order: Callable[[M], Sequence[int]]
) -> list[M]:
    """The matches of one key that stay.

    Parameters
    ----------
    found
        All matches of the key.
    keep
        What the query says; ``None``: all stay.
    held
        The positions that a variable holds in a match.
    order
        Tells apart matches of one interval that hold the same events.
    """
    if keep is None:
        return list(found)

    def rank(match: M) -> tuple[object, ...]:
        positions = (*sorted(match.positions), math.inf)  # one more event comes before none
        return match.start, -match.end if keep.longest else match.end, positions, *order(match)

    stay: list[M] = []
    begins: float = -math.inf
    for match in sorted(found, key=rank):
        if match.start < begins:
            continue
        stay.append(match)
        begins = match.start + 1
        if keep.skip is Skip.PAST:
            begins = match.end + 1
        elif keep.variable is not None:
            own = list(held(match, keep.variable))
            where = min if keep.skip is Skip.FIRST else max
            begins = max(begins, where(own, default=match.start))
    return stay
