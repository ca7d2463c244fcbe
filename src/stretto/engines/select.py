"""Which engine may run which query, and why."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.pattern.query import ParsedQuery

__all__ = ["Choice", "choose"]


@dataclass(frozen=True)
class Choice:
    """An engine and the reason in words."""

    engine: str
    why: str


def choose(query: ParsedQuery) -> Choice:
    """The engine of a query: conditions on single events and equality of attributes need no more than tECS.

    >>> from stretto.languages.ceql import parse
    >>> choose(parse("SELECT * FROM S WHERE A; B")).engine
    'tecs'
    """
    relation = "no condition relates events"
    if query.partition_by:
        relation = f"conditions relate events only by equal {', '.join(query.partition_by)} (PARTITION BY)"
    return Choice("tecs", f"{relation}: constant time per event whatever the window, output-linear delay")
