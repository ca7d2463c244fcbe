"""Why a ``MATCH_RECOGNIZE`` clause can have no match in some rows: variables of which no row fulfils the condition."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa

from stretto.automata.rows import ACCEPT, RowAutomaton
from stretto.engines.rows.columns import Shifted, shown_name
from stretto.engines.rows.history import as_plain
from stretto.engines.rows.program import RowProgram
from stretto.matching.empty_result.unsatisfied import Looked, read, smallest
from stretto.query.plan import Conjunct


def unmet_rows(program: RowProgram, seen: Iterator[Shifted]) -> list[str]:
    """Which conditions of DEFINE no row fulfils, in words; nothing where the pattern has matches without those variables.

    Parameters
    ----------
    program
        The clause, of whose conditions those are looked at that read rows at a fixed distance.
    seen
        The rows, sorted, in whole partitions.
    """
    looked = {variable: _looked(program, variable) for variable in program.plain}
    if not looked:
        return []
    columns = sorted({name for one in looked.values() for name in one.columns})
    read(list(looked.values()), (pa.Table.from_batches([one.table_of(columns)]) for one in seen))
    unmet = [variable for variable, one in looked.items() if not one.met and one.events]
    needed = smallest(unmet, lambda without: not _possible(program.automaton, without))
    return [said for variable in needed for said in looked[variable].says()]


def _looked(program: RowProgram, variable: str) -> Looked:
    query = program.bound.parsed
    asked = []
    for part in program.plain[variable]:
        span = getattr(part, "span", None)
        written = str(part) if span is None else query.text[span.start : span.end]
        asked.append(Conjunct(f"{variable} AS {written}", as_plain(part, query)))
    return Looked(tuple(asked), noun="row", shown=shown_name)


def _possible(automaton: RowAutomaton, without: Collection[str]) -> bool:
    """Whether a match can end without some variables."""
    found: set[int] = set()
    waiting = [*automaton.first, *automaton.later]
    while waiting:
        position = waiting.pop()
        if position == ACCEPT:
            return True
        if position in found or automaton.variables[automaton.variable[position]] in without:
            continue
        found.add(position)
        if automaton.ends[position]:
            return True
        waiting += automaton.followers[position]
    return False
