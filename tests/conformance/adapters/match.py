"""``stretto.match`` over the whole table."""

from __future__ import annotations

from typing import Any

import stretto
from tests.conformance.adapters import remaining
from tests.conformance.vectors import Row, Vector

SIGNED = "it takes events back"
SKIPS = {SIGNED: 3}


def why_not(vector: Vector) -> str:
    return SIGNED if vector.signed else ""


def found(vector: Vector) -> list[Row]:
    query = vector.automaton if vector.language == "afa" else vector.query
    options: dict[str, Any] = {} if vector.language == "afa" else {"output": "positions"}
    return remaining([stretto.match(query, vector.events, time=vector.time, **options).to_pylist()])
