"""The engine of EQL by itself."""

from __future__ import annotations

from stretto.engines.programs import LatestProgram
from tests.conformance.adapters import through
from tests.conformance.vectors import Row, Vector

LANGUAGE = "it reads EQL only"
SKIPS = {LANGUAGE: 399}


def why_not(vector: Vector) -> str:
    return "" if vector.language == "eql" else LANGUAGE


def found(vector: Vector) -> list[Row]:
    return through(LatestProgram(vector.bound), vector, vector.bound.tested)
