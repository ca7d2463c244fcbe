"""The backtrack algorithm, which the NFAb engine is compared with."""

from __future__ import annotations

from benchmarks.papers.sase.backtrack.engine import Backtrack
from stretto.engines.programs import NfabProgram
from tests.conformance.adapters import nfab, rows_of
from tests.conformance.vectors import Row, Vector

NEGATION = "backtrack does not look for negated events"
LIMIT = "backtrack finds the matches of an event one here, one there, so LIMIT cannot choose among them"
KEEP = "backtrack finds matches, and keeps all of them"
VARIANTS = "backtrack reads components one after the other, each of them there, under one strategy"
SKIPS = {**nfab.SKIPS, NEGATION: 34, LIMIT: 2, KEEP: 6, VARIANTS: 36}


def why_not(vector: Vector) -> str:
    if vector.language == "sase" and vector.bound.parsed.keep is not None:
        return KEEP
    return nfab.why_not(vector) or Backtrack.why_not(NfabProgram(vector.bound, merges=False))


def found(vector: Vector) -> list[Row]:
    return rows_of(Backtrack(NfabProgram(vector.bound, merges=False), capacity=1).match(vector.events))
