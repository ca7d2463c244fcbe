"""SASE+ queries that need no registers: the same query for the automata of CORE, which take constant time for an event.

Where each condition touches one event alone, and events are related by the equivalence tests only, a match is what CEQL calls a
valuation: which variable holds which event. Neither paper has this; it makes ``skip_till_any_match`` cheap, whose runs are
exponentially many.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import overload

from stretto.automata.nfab import Edge, Nfab, Pair, own_index
from stretto.query.algebra import As, Atom, Filter, Or, Pattern, Plus, Project, Sequence
from stretto.query.passes import rewrite
from stretto.query.passes.bind import BoundQuery
from stretto.query.passes.plain import plain
from stretto.query.query import ParsedQuery, Strategy
from stretto.query.sase import Selection

#: Before each variable: in CEQL's formulas a type is a variable, too, and SASE+ may give a variable the name of a type.
OWN = "\0"


def why_not(nfab: Nfab) -> str:
    """Why a query needs runs with registers, in words; empty when it does not."""
    parsed = nfab.query.parsed
    related = [edge for edge in nfab.edges if edge.related or edge.each]
    if related:
        shown = (related[0].related or tuple(one for _, one in related[0].each))[0]
        return f"a condition relates events: {shown}"
    if nfab.query.partition_by and not nfab.partitioned:
        return f"under {parsed.selection} the equivalence test relates neighbours in the whole stream"
    if parsed.selection is Selection.NEXT:
        return f"{parsed.selection} selects the next event that fits, whatever comes later"
    if nfab.negations:
        return f"{nfab.negations[0].component} looks for events that are in no match"
    if parsed.non_overlap:
        return "OUTPUT non_overlap forgets runs after a match"
    if not parsed.plain:
        return "parts that may be missing, groups, and strategies of single steps are variants of one pattern, each with its runs"
    if nfab.query.schema.stream is not None:
        return "events of several streams are told apart by types only"
    return ""


def as_core(nfab: Nfab) -> BoundQuery:
    """Write the same query for the tECS engine, where :func:`why_not` has no objection: its valuations are the matches."""
    query = nfab.query
    parts = tuple(_part(pair, nfab) for pair in nfab.pairs)
    pattern: Pattern = parts[0]
    if len(parts) > 1:
        pattern = Sequence(parts, (nfab.contiguous,) * (len(parts) - 1))
    variables = frozenset(OWN + pair.component.variable for pair in nfab.pairs)
    rewritten = rewrite(Project(pattern, variables))
    parsed = ParsedQuery(
        text=query.parsed.text,
        strategy=Strategy.ALL,
        items=None,
        streams=query.parsed.streams,
        pattern=rewritten,
        partition_by=query.partition_by,
        window=query.parsed.window,
        limit=query.parsed.limit,
        language="sase",
    )
    return BoundQuery(parsed, query.schema, rewritten, query.window, query.selected, query.time)


def _part(pair: Pair, nfab: Nfab) -> Pattern:
    """A component as a formula: the first event asks for what its begin edge asks, the others for what the take edge does."""
    first = _event(pair, pair.begin, nfab)
    if pair.take is None:
        return first
    further = _event(pair, pair.take, nfab)
    if further == first:
        return Plus(first, nfab.contiguous)
    return Or((first, Sequence((first, Plus(further, nfab.contiguous)), (nfab.contiguous,))))


def _event(pair: Pair, edge: Edge, nfab: Nfab) -> Pattern:
    component = pair.component
    atoms: list[Pattern] = [Atom(kind) for kind in component.types]
    found: Pattern = As(atoms[0] if len(atoms) == 1 else Or(tuple(atoms)), OWN + component.variable)
    for condition in edge.alone:
        alone = plain(condition, nfab.query.parsed, own_index(edge.kind, component))
        found = Filter(found, OWN + component.variable, alone)
    return found


class Unmarked(Seq[frozenset[str]]):
    """The variables of each mark of such a query's automaton; marks may be added while one looks."""

    def __init__(self, marks: Seq[frozenset[str]]) -> None:
        self.marks = marks

    def __len__(self) -> int:
        return len(self.marks)

    @overload
    def __getitem__(self, at: int) -> frozenset[str]: ...

    @overload
    def __getitem__(self, at: slice) -> list[frozenset[str]]: ...

    def __getitem__(self, at: int | slice) -> frozenset[str] | list[frozenset[str]]:
        if isinstance(at, slice):
            return [self[number] for number in range(len(self))[at]]
        return frozenset(label.removeprefix(OWN) for label in self.marks[at] if label.startswith(OWN))
