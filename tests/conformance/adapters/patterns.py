"""``stretto.PatternSet`` with one pattern, fed in random pieces, through snapshots."""

from __future__ import annotations

from typing import Any

import stretto
from tests.conformance.adapters import cut, remaining, tecs
from tests.conformance.vectors import Row, Vector

KEEP = "many patterns at once list every match"
SKIPS = {**tecs.SKIPS, KEEP: 8}


def why_not(vector: Vector) -> str:
    why = tecs.why_not(vector)
    return why or (KEEP if vector.bound.parsed.keep is not None else "")


def found(vector: Vector) -> list[Row]:
    events = vector.events

    def make() -> Any:
        patterns = stretto.PatternSet(
            events.schema, time=vector.time or "n", positions=True, output="positions", capacity=1
        )
        patterns.change({"id": "it", "query": vector.query})
        return patterns

    return remaining(cut(make, events, vector.name))
