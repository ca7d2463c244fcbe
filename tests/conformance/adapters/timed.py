"""The timed engine by itself, which runs CEQL without gaps as well."""

from __future__ import annotations

from typing import Any

from stretto.engines.match_ops.after_match_skip import KeptProgram
from stretto.engines.programs import TimedProgram
from tests.conformance.adapters import DISORDERED, through
from tests.conformance.vectors import Row, Vector

LANGUAGE = "it reads CEQL only"
SKIPS = {LANGUAGE: 254, DISORDERED: 1}


def why_not(vector: Vector) -> str:
    if vector.language != "ceql":
        return LANGUAGE
    return "" if vector.ordered else DISORDERED


def found(vector: Vector) -> list[Row]:
    made: Any = TimedProgram(vector.bound)
    keep = vector.bound.parsed.keep
    return through(made if keep is None else KeptProgram(made, keep, ()), vector, vector.bound.tested)
