"""The tECS engine by itself."""

from __future__ import annotations

from stretto.automata.nfab import build
from stretto.automata.shortcut import why_not as needs_registers
from stretto.automata.shortcut import why_not_event
from stretto.engines.select import program_for
from tests.conformance.adapters import DISORDERED, through
from tests.conformance.vectors import Row, Vector

LATEST = "sequences of EQL have an engine of their own"
REGISTERS, AUTOMATON, GAPS = "it needs registers", "it is an automaton", "it needs more times than that of the start"
SKIPS = {LATEST: 45, AUTOMATON: 29, REGISTERS: 123, DISORDERED: 2, GAPS: 33}


def why_not(vector: Vector) -> str:
    if vector.language == "afa":
        return AUTOMATON
    if vector.language == "eql":
        return LATEST if why_not_event(vector.bound) else ""
    if vector.language == "sase" and needs_registers(build(vector.bound)):
        return REGISTERS
    if vector.language == "ceql" and vector.bound.parsed.needs_times:
        return GAPS
    return "" if vector.ordered else DISORDERED


def found(vector: Vector) -> list[Row]:
    return through(program_for(vector.bound, valuations=False), vector, vector.bound.tested)
