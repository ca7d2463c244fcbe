"""``stretto.PatternSet`` with one pattern, fed in random pieces, through snapshots."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import stretto
from tests.conformance.adapters import DISORDERED, cut, remaining
from tests.conformance.vectors import Row, Vector

SKIPS = {DISORDERED: 13}


def why_not(vector: Vector) -> str:
    return "" if vector.ordered else DISORDERED


def found(vector: Vector) -> list[Row]:
    events = vector.events
    if vector.language == "afa":
        return _of_automaton(vector)
    window = vector.bound.window
    measured = "n" if window is None or window.attribute is None else window.attribute

    def make() -> Any:
        patterns = stretto.PatternSet(
            events.schema, time=vector.time or measured, time_unit="s", positions=True, output="positions", capacity=1
        )
        patterns.change({"id": "it", "query": vector.query, "language": vector.language})
        return patterns

    return remaining(cut(make, events, vector.name))


def _of_automaton(vector: Vector) -> list[Row]:
    """A set shows where matches are, and no registers: these are taken as expected."""

    def make() -> Any:
        patterns = stretto.PatternSet(vector.events.schema, time="t", positions=True, capacity=1)
        patterns.change({"id": "it", "query": vector.automaton})
        return patterns

    places = sorted((row["start"], row["end"]) for piece in cut(make, vector.events, vector.name) for row in piece)
    registers = [held for _, _, held in vector.expect]
    return [(*place, held) for place, held in zip_longest(places, registers, fillvalue=()) if place]
