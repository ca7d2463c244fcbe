"""Which engine may run which query, and why."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.automata.nfab import build
from stretto.automata.shortcut import as_core, why_not
from stretto.engines.nfab.program import NfabProgram
from stretto.engines.tecs.program import Program
from stretto.query.passes.bind import BoundQuery
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.query import ParsedQuery

__all__ = ["AnyProgram", "Choice", "choose", "program_for"]


AnyProgram = Program | NfabProgram


@dataclass(frozen=True)
class Choice:
    """An engine and the reason in words."""

    engine: str
    why: str


def choose(query: ParsedQuery | BoundSase) -> Choice:
    """The engine of a query: conditions on single events and equality of attributes need no more than tECS.

    >>> from stretto.languages.ceql import parse
    >>> choose(parse("SELECT * FROM S WHERE A; B")).engine
    'tecs'
    """
    if isinstance(query, BoundSase):
        why = why_not(build(query))
        if why:
            return Choice("nfab", f"runs with registers, because {why}")
    word = "equivalence test" if isinstance(query, BoundSase) else "PARTITION BY"
    relation = "no condition relates events"
    if query.partition_by:
        relation = f"conditions relate events only by equal {', '.join(query.partition_by)} ({word})"
    return Choice("tecs", f"{relation}: constant time per event whatever the window, output-linear delay")


def program_for(query: BoundQuery | BoundSase, *, valuations: bool) -> AnyProgram:
    """The compiled machine of a bound query."""
    if isinstance(query, BoundQuery):
        return Program(query, valuations=valuations)
    nfab = build(query)
    return NfabProgram(query) if why_not(nfab) else Program(as_core(nfab), valuations=True)
