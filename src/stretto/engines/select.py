"""Which engine may run which query, and why."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.automata.nfab import build
from stretto.automata.shortcut import as_core, why_not
from stretto.engines.nfab.program import NfabProgram
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.tecs.program import Program
from stretto.engines.tecs.runner import Runner
from stretto.query.passes.bind import BoundQuery
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.query import ParsedQuery

__all__ = ["AnyProgram", "AnyRunner", "Choice", "choose", "program_for", "runner_for"]

AnyProgram = Program | NfabProgram
AnyRunner = Runner | NfabRunner


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


def runner_for(
    program: AnyProgram, *, labels: bool, counts: bool = False, late: str = "error", capacity: int = 1 << 12
) -> AnyRunner:
    """A stream's run of a program, from its beginning."""
    if isinstance(program, NfabProgram):
        return NfabRunner(program, labels=labels, counts=counts, late=late, capacity=capacity)
    return Runner(program, labels=labels, counts=counts, late=late, capacity=capacity)
