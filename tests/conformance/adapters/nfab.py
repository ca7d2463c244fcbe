"""The NFAb engine by itself, with and without merged runs."""

from __future__ import annotations

from stretto.engines.nfab.program import NfabProgram
from tests.conformance.adapters import DISORDERED, through
from tests.conformance.vectors import Row, Vector

LANGUAGE = "it reads SASE+ only"
SKIPS = {LANGUAGE: 68, DISORDERED: 3}


def why_not(vector: Vector) -> str:
    if vector.language != "sase":
        return LANGUAGE
    return "" if vector.ordered else DISORDERED


def found(vector: Vector) -> list[Row]:
    basic, merged = (
        through(NfabProgram(vector.bound, merges=merges), vector, vector.bound.tested) for merges in (False, True)
    )
    assert sorted(basic) == sorted(merged)
    return basic
