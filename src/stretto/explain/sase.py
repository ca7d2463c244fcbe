"""``query.explain()`` for SASE+: the steps from the pattern to the automaton, the value vector and its masks, the engine and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stretto.automata.nfab import Nfab, Pair, build
from stretto.engines.nfab.program import NfabProgram
from stretto.engines.select import choose
from stretto.pattern.passes.bind_sase import BoundSase
from stretto.pattern.sase import SaseQuery, Selection

if TYPE_CHECKING:
    from stretto.compiling import Query

__all__ = ["IGNORE", "explain_sase", "kinds_of_non_determinism"]

_SELECTIONS = {
    Selection.STRICT: "selected events are neighbours in the stream",
    Selection.PARTITION: "selected events are neighbours in their partition",
    Selection.NEXT: "what does not fit is skipped, the next event that fits is selected",
    Selection.ANY: "any event may be skipped, one that fits as well: every combination",
}

IGNORE = {
    Selection.STRICT: "never",
    Selection.PARTITION: "events of other partitions",
    Selection.NEXT: "not (take or begin)",
    Selection.ANY: "always",
}


def explain_sase(query: Query, more: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The parts of an explanation, title and text; ``more`` are those that all languages have, for their place."""
    parsed = query.parsed
    assert isinstance(parsed, SaseQuery)
    sections = [
        ("query", parsed.text.strip()),
        ("pattern", ", ".join(map(str, parsed.components))),
        ("selection", f"{parsed.selection}: {_SELECTIONS[parsed.selection]}"),
    ]
    if query.schema is None:
        condition = "none but the event types" if parsed.condition is None else str(parsed.condition)
        return [*sections, ("conditions", condition), *more]
    bound = query.bound
    assert isinstance(bound, BoundSase)
    nfab = build(bound)
    sections += [*more, ("automaton", "\n".join(_states(nfab)))]
    found = kinds_of_non_determinism(nfab)
    sections.append(("splits", "; ".join(found) or "none: a run makes one move on an event"))
    choice = choose(bound)
    if choice.engine == "nfab":
        program = query.program()
        assert isinstance(program, NfabProgram)
        sections += [("values V", "\n".join(_values(program))), ("masks M", "\n".join(_masks(program)))]
        apart = program.why_apart
        sections.append(("merging", f"no: {apart}" if apart else "runs with the same state and masked V become one"))
    return [*sections, ("engine", f"{choice.engine}: {choice.why}")]


def _states(nfab: Nfab) -> Iterator[str]:
    """The states with their edges (steps 1 to 6)."""
    window = "" if nfab.query.window is None else " AND within the window"
    for number, pair in enumerate(nfab.pairs):
        variable = pair.component.variable
        kinds = "|".join(pair.component.types)
        first = f"{variable}[1]" if pair.take else variable
        yield f"{first:<8} begin    {kinds}: {pair.begin}{window if number else ''}"
        if number:
            yield f"{'':<8} ignore   {IGNORE[nfab.selection]}"
        if pair.take is not None:
            yield f"{variable + '[i]':<8} take     {kinds}: {pair.take}{window}"
            yield f"{'':<8} ignore   {IGNORE[nfab.selection]}"
            yield f"{'':<8} proceed  {_proceed(nfab, number, pair)}"
    for negation in nfab.negations:
        yield f"{negation.component!s:<8} negated  {negation.edge}"


def _proceed(nfab: Nfab, number: int, pair: Pair) -> str:
    if number == len(nfab.pairs) - 1:
        return f"{pair.proceed}, to the end, after each event that is selected"
    following = nfab.pairs[number + 1].component
    name = f"{following.variable}[1]" if following.kleene else following.variable
    return f"{pair.proceed} AND the event may begin {name}"


def kinds_of_non_determinism(nfab: Nfab) -> list[str]:
    """Which of the four kinds (section 4.1) a query may show, each with its state. Conditions may still exclude one another."""
    found = []
    last = len(nfab.pairs) - 1
    for number, pair in enumerate(nfab.pairs):
        state = f"{pair.component.variable}[i]"
        if pair.take is not None:
            if number < last:
                found.append(f"take-proceed at {state}")
                if not nfab.contiguous:
                    found.append(f"ignore-proceed at {state}")
            if nfab.selection is Selection.ANY:
                found.append(f"take-ignore at {state}")
        if number and nfab.selection is Selection.ANY:
            name = f"{pair.component.variable}[1]" if pair.take else pair.component.variable
            found.append(f"begin-ignore at {name}")
    return found


def _values(program: NfabProgram) -> Iterator[str]:
    values = program.conditions.values
    for number, slot in enumerate(values.slots, 1):
        variable = program.nfab.pairs[slot.component].component.variable
        column = str(values.columns[slot.column - 1]) if slot.column else ""
        yield f"{number}: {slot.describe(variable, column)}"
    if not values.slots:
        yield "empty: a run is its state, its start and its events"


def _masks(program: NfabProgram) -> Iterator[str]:
    for number, pair in enumerate(program.nfab.pairs):
        first = f"{pair.component.variable}[1]" if pair.take else pair.component.variable
        states = [(first, 2 * number)] * bool(number) + [(f"{pair.component.variable}[i]", 2 * number + 1)] * bool(
            pair.take
        )
        for name, state in states:
            yield f"{name}: {', '.join(map(str, program.mask(state))) or 'nothing'}"
