"""What a step ran into, in words."""

from __future__ import annotations

from stretto.engines.afa import structure as s
from stretto.engines.afa.intake import AfaIntake
from stretto.engines.afa.structure import Batch
from stretto.engines.afa.tree import RAISED
from stretto.engines.shared.scalar_code import IS_NULL, OVERFLOWED
from stretto.errors import DataError, LimitError, StrettoError
from stretto.query.afa import Arc, Kind

#: What may become of such rows.
_POLICY = "hint: late='drop' leaves such rows out and counts them, late='side' hands them over"


def error_at(run: AfaIntake, batch: Batch) -> StrettoError:
    """Name the row, and what went wrong there."""
    registers = run.state.registers
    at, fault = int(registers[s.CURSOR]), int(registers[s.FAULT])
    row = int(batch.row[at])
    where = f"row {row}" if row >= 0 else "the end of a window"
    time = run.shown_time(int(batch.le[at]))
    if fault == s.LATE_EVENT and run.roles.ordered:
        return DataError(
            f"{where} comes out of order: its time is {time}, after {run.shown_time(int(registers[s.SEEN]))}"
        )
    if fault == s.LATE_EVENT:
        limit = run.shown_time(int(registers[s.PUNCTUATION]))
        return DataError(f"{where} is late: its time is {time}, and the punctuation stands at {limit}\n{_POLICY}")
    if fault == s.UNKNOWN:
        told = "time and sequence number" if run.options["keyed"] else "time and payload"
        return DataError(f"{where} retracts an event that is not there: no event has its {told} ({time})\n{_POLICY}")
    if fault == s.CONTRADICTS:
        return DataError(
            f"{where}: its sequence number {int(batch.seq[at])} contradicts its time {time}: in a partition both grow together\n"
            f"{_POLICY}"
        )
    if fault == s.SAME_PLACE:
        return DataError(
            f"{where}: its partition has another event with the time {time} and the sequence number {int(batch.seq[at])}; "
            "a revision retracts the event before"
        )
    return function_error(run, fault, where)


def function_error(run: AfaIntake, fault: int, where: str) -> StrettoError:
    """Name the arc whose function failed, and why."""
    arc = run.tables.arc(int(run.state.registers[s.FAULT_ARC]))
    name = f"arc '{arc.id}' ({arc.source} -> {arc.target})"
    if fault == s.ENDLESS:
        cycle = " -> ".join(_cycle(run, arc))
        return LimitError(
            f"{name}: its ε-cycle {cycle} goes on without end at {where}: each round gives another register, and from one "
            f"partial match {s.MOST_CLOSURE:,} steps are allowed\nhint: a fence on one of its arcs must end it, such as "
            'when="r.n < 100"'
        )
    what, hint = {
        OVERFLOWED: ("an integer leaves 64 bits", "bound it by a fence, or declare the field as float"),
        IS_NULL: (
            "a field of the register would be NULL",
            "a fence such as e.price IS NOT NULL keeps such events from the arc; a division by zero is NULL",
        ),
        RAISED: (
            "its Python function raised an error",
            "it must give a value for every event and register that it is asked",
        ),
    }[fault]
    return DataError(f"{name}: {what} at {where}\nhint: {hint}")


def _cycle(run: AfaIntake, arc: Arc) -> list[str]:
    """The states of an ε-cycle through an arc."""
    follows: dict[str, list[str]] = {}
    for one in map(run.tables.arc, range(1, run.tables.arcs.shape[0])):
        if one.kind is Kind.EPSILON:
            follows.setdefault(one.source, []).append(one.target)
    paths = [[arc.source, arc.target]]
    seen = {arc.target}
    for path in paths:
        if path[-1] == arc.source:
            return path
        for state in follows.get(path[-1], []):
            if state not in seen or state == arc.source:
                seen.add(state)
                paths.append([*path, state])
    return [arc.source, arc.target]
