"""Why an automaton can have no output over some events: arcs on the way to it whose fences no event fulfils."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from stretto.errors import QueryError
from stretto.matching.empty_result.unsatisfied import Looked, pieces, read, smallest
from stretto.matching.input.files import Source
from stretto.query import predicate as p
from stretto.query.afa import Afa, Arc, reached
from stretto.query.plan import Conjunct
from stretto.query.typing import typed


def unmet_arcs(afa: Afa, events: pa.Table | Source) -> list[str]:
    """Which fences no event fulfils, in words; nothing where a way around those arcs leads to a final state.

    Only what a fence asks of the event alone is looked at: no function of the user, nothing of the register.
    """
    kinds = {own.name: own.type for own in events.schema}
    looked = {arc.id: found for arc in afa.arcs if (found := _looked(arc, kinds)) is not None}
    if not looked:
        return []
    columns = sorted({name for one in looked.values() for name in one.columns})
    read(list(looked.values()), pieces(events, columns))
    unmet = [name for name, one in looked.items() if not one.met and one.events]

    def dry(without: Collection[str]) -> bool:
        return not reached(replace(afa, arcs=tuple(arc for arc in afa.arcs if arc.id not in without))) & {*afa.finals}

    return [said for name in smallest(unmet, dry) for said in looked[name].says()]


def _looked(arc: Arc, kinds: dict[str, pa.DataType]) -> Looked | None:
    if not isinstance(arc.when, p.Predicate):
        return None
    asked = []
    for part in p.conjuncts(arc.when):
        names = {name: name.removeprefix("e.") for name in p.attributes(part) if name.startswith("e.")}
        if not names or len(names) < len(p.attributes(part)) or p.calls(part):
            continue
        try:
            condition = typed(p.renamed(part, names), kinds)
        except QueryError:  # a column of another type, which the automaton converts
            continue
        asked.append(Conjunct(f"{part} of the arc {arc.id} ({arc.source} -> {arc.target})", condition))
    return Looked(tuple(asked)) if asked else None
