"""What is under way of an automaton: the partial matches that the next event may go on with, as near misses."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.engines.afa.runner import AfaRunner, UnderWay
from stretto.explaining.answer import NearMiss, Reason
from stretto.matching.inspection.state_tables import has_key, named_keys
from stretto.query.afa import Afa, Kind, beginning, fence_text, steps_left
from stretto.query.constraints.afa import named
from stretto.times import FOREVER


def of_automaton(afa: Afa, run: AfaRunner, key: Any, most: int) -> tuple[int, list[NearMiss]]:
    """How many partial matches of a key may still become a match, and of these the few that are nearest to one, the oldest first."""
    found, steps = run.under_way(), steps_left(afa)
    left = np.array([steps.get(state, 0) for state in found.state], np.int64)
    there = left > 0  # what is in a final state is a match, and from some states none is reached
    keys = named_keys(afa.partition_by, key, afa.partition_by)
    if keys and there.size:
        table = run.partition_values(found.part)
        for name, value in keys.items():
            there &= np.asarray(has_key(table.column(name), name, value))
    at = np.flatnonzero(there)
    nearest = at[np.argsort(left[at], kind="stable")][:most]
    return at.size, [_miss(afa, run, found, one) for one in nearest.tolist()]


def _miss(afa: Afa, run: AfaRunner, found: UnderWay, at: int) -> NearMiss:
    state, rows = found.state[at], (int(found.first[at]), int(found.last[at]))
    values = [(f"r.{name}", column[at].as_py()) for name, column in zip(afa.register, found.register, strict=True)]
    told = ", ".join(["it has not been taken", *(f"{name} is {value}" for name, value in values)])
    until = int(found.until[at])
    if until < FOREVER:
        values.append(("before", run.shown_time(until)))
        told += f"; it must be before {run.shown_time(until)}"
    else:
        told += "; no window ends it"
    reason = Reason("absent", _waits_for(afa, state), told, rows, tuple(values), (state,))
    times = run.shown_time(int(found.begin[at])), run.shown_time(int(found.end[at]))
    return NearMiss((reason,), {state: tuple(dict.fromkeys(rows))}, times)


def _waits_for(afa: Afa, state: str) -> str:
    """The arcs that lead from a state towards a final one."""
    from_here, steps = beginning(afa, state), steps_left(afa)
    arcs = [
        arc
        for arc in afa.arcs
        if arc.source in from_here and arc.kind is Kind.CONSUME and steps.get(arc.target, len(afa.arcs)) < steps[state]
    ]
    fences = [fence_text(arc) for arc in arcs]
    return " or ".join(f"{named(arc)}{f' when {fence}' * bool(fence)}" for arc, fence in zip(arcs, fences, strict=True))
