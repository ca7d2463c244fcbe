"""``stretto.PatternSet`` with one pattern, fed in random pieces, through snapshots."""

from __future__ import annotations

from typing import Any

import stretto
from tests.conformance.adapters import DISORDERED, cut, remaining
from tests.conformance.vectors import Row, Vector

KEEP = "many patterns at once list every match"
AUTOMATON = "it is an automaton"
SKIPS = {AUTOMATON: 14, DISORDERED: 4, KEEP: 10}


def why_not(vector: Vector) -> str:
    if vector.language == "afa":
        return AUTOMATON
    if not vector.ordered:
        return DISORDERED
    return KEEP if vector.bound.parsed.keep is not None else ""


def found(vector: Vector) -> list[Row]:
    events, window = vector.events, vector.bound.window
    measured = "n" if window is None or window.attribute is None else window.attribute

    def make() -> Any:
        patterns = stretto.PatternSet(
            events.schema, time=vector.time or measured, time_unit="s", positions=True, output="positions", capacity=1
        )
        patterns.change({"id": "it", "query": vector.query, "language": vector.language})
        return patterns

    return remaining(cut(make, events, vector.name))
