"""``stretto.PatternSet`` with one pattern, fed in random pieces, through snapshots."""

from __future__ import annotations

from typing import Any

import stretto
from tests.conformance.adapters import cut, remaining, tecs
from tests.conformance.vectors import Row, Vector

SKIPS = tecs.SKIPS


def why_not(vector: Vector) -> str:
    return tecs.why_not(vector)


def found(vector: Vector) -> list[Row]:
    events = vector.events

    def make() -> Any:
        patterns = stretto.PatternSet(
            events.schema, time=vector.time or "n", positions=True, output="positions", capacity=1
        )
        patterns.change({"id": "it", "query": vector.query})
        return patterns

    return remaining(cut(make, events, vector.name))
