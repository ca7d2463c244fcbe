"""The NFAb engine by itself, with and without merged runs."""

from __future__ import annotations

from typing import Any

from stretto.engines.match_ops.after_match_skip import KeptProgram
from stretto.engines.programs import NfabProgram
from tests.conformance.adapters import DISORDERED, through
from tests.conformance.vectors import Row, Vector

LANGUAGE = "it reads SASE+ only"
SKIPS = {LANGUAGE: 282, DISORDERED: 3}


def why_not(vector: Vector) -> str:
    if vector.language != "sase":
        return LANGUAGE
    return "" if vector.ordered else DISORDERED


def found(vector: Vector) -> list[Row]:
    parsed = vector.bound.parsed
    programs: list[Any] = [NfabProgram(vector.bound, merges=merges) for merges in (False, True)]
    if parsed.keep is not None:
        programs = [KeptProgram(one, parsed.keep, parsed.variables) for one in programs]
    basic, merged = (through(one, vector, vector.bound.tested) for one in programs)
    assert sorted(basic) == sorted(merged)
    return basic
