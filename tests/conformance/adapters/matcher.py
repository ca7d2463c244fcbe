"""``stretto.Matcher``, fed in random pieces, through snapshots; it sorts what is out of order."""

from __future__ import annotations

import math
from typing import Any

import stretto
from tests.conformance.adapters import cut, remaining
from tests.conformance.vectors import Row, Vector

SKIPS: dict[str, int] = {}


def why_not(vector: Vector) -> str:
    return ""


def found(vector: Vector) -> list[Row]:
    options: dict[str, Any] = {"time": vector.time, "capacity": 1}
    if vector.language == "afa":
        options |= {"speculation": 0, "sign": "sign"}
        return remaining(
            cut(lambda: stretto.Matcher(vector.automaton, vector.table.schema, **options), vector.table, vector.name)
        )
    if vector.language == "eql":
        options["time_unit"] = "s"
    if not vector.ordered:
        options["disorder"] = math.inf
    events = vector.events
    return remaining(cut(lambda: stretto.Matcher(vector.query, events.schema, **options), events, vector.name))
