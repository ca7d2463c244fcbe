"""``query.explain()`` for SASE+: the steps from the pattern to the automaton, the value vector and its masks, the engine and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stretto.automata.nfab import MODES, Edge, Nfab, Pair, build
from stretto.engines.programs import NfabProgram
from stretto.engines.select import Machine, choose
from stretto.query import predicate as p
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.sase import SaseQuery, Selection

_SELECTIONS = {
    Selection.STRICT: "selected events are neighbours in the stream",
    Selection.PARTITION: "selected events are neighbours in their partition",
    Selection.NEXT: "what does not fit is skipped, the next event that fits is selected",
    Selection.ANY: "any event may be skipped, one that fits as well: every combination",
}


def explain_sase(
    parsed: SaseQuery, bound: BoundSase | None, program: Callable[[], Machine], more: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Write the parts of an explanation, title and text; ``more`` are those that all languages have, for their place."""
    more = [(title, _own(title, text, parsed)) for title, text in more]
    sections = [
        ("query", parsed.text.strip()),
        ("pattern", ", ".join(map(str, parsed.parts))),
        ("selection", "\n".join(_strategies(parsed))),
    ]
    if bound is None:
        condition = "none but the event types" if parsed.condition is None else str(parsed.condition)
        return [*sections, ("conditions", condition), *more]
    nfab = build(bound)
    sections += [*more, ("automaton", "\n".join(_states(nfab)))]
    found = kinds_of_non_determinism(nfab)
    sections.append(("splits", "; ".join(found) or "none: a run makes one move on an event"))
    choice = choose(bound.parsed, bound)
    if choice.engine == "nfab":
        machine = program()
        assert isinstance(machine, NfabProgram)
        sections += [("values V", "\n".join(_values(machine))), ("masks M", "\n".join(_masks(machine)))]
        apart = machine.why_apart
        sections.append(("merging", f"no: {apart}" if apart else "runs with the same state and masked V become one"))
    return [*sections, ("engine", str(choice))]


def _strategies(parsed: SaseQuery) -> Iterator[str]:
    yield f"{parsed.selection}: {_SELECTIONS[parsed.selection]}"
    yield from (f"the step to {name}: {_SELECTIONS[one]}" for name, one in parsed.steps.items())
    yield from (f"inside {name}[]: {_SELECTIONS[one]}" for name, one in parsed.loops.items())


def _own(title: str, text: str, parsed: SaseQuery) -> str:
    """A part that all languages have, where SASE+ says it in another way."""
    if title == "partition" and parsed.partition_by and parsed.selection is Selection.STRICT:
        names = ", ".join(parsed.partition_by)
        return f"none: one stream, in which the events of a match have the same {names}"
    if title == "output" and parsed.asked is None:
        names = ", ".join(item.name for item in parsed.returns or ()) or ", ".join(
            one.variable for one in parsed.positive
        )
        only = (
            "; of a partition's matches that overlap one, then all its runs are dropped" if parsed.non_overlap else ""
        )
        limit = "" if parsed.limit is None else f"; at most {parsed.limit} per triggering event, latest start first"
        return names + only + limit
    return text


def _states(nfab: Nfab) -> Iterator[str]:
    """The states with their edges (steps 1 to 6)."""
    width = max(len(str(name)) for pair in nfab.pairs for name in (pair.component.variable + "[i]", *_negated(nfab)))
    window = "" if nfab.query.window is None else "within the window"
    linear = nfab.places.linear
    begins = {nfab.places.component[step.place] for step in nfab.places.first}
    for number, pair in enumerate(nfab.pairs):
        component = pair.component
        variable = component.variable
        kinds = "|".join(component.types)
        first = f"{variable}[1]" if pair.take else variable
        yield f"{first:<{width}}  begin    {_joined(kinds, asked(pair.begin), window if number else '')}"
        if component.again:
            assert pair.take is not None
            yield f"{variable + '[i]':<{width}}  begin    {_joined(kinds, asked(pair.take), window)}"
        if component.again or number not in begins or number:
            yield f"{'':<{width}}  ignore   {ignored(nfab.step(number), takes=False)}"
        if component.kleene:
            assert pair.take is not None
            yield f"{variable + '[i]':<{width}}  take     {_joined(kinds, asked(pair.take), window)}"
            yield f"{'':<{width}}  ignore   {ignored(nfab.loop(number), takes=True)}"
            if linear:
                yield f"{'':<{width}}  proceed  {proceeds(nfab, number, pair)}"
        if not linear:
            yield f"{'':<{width}}  then     {_behind(nfab, number)}"
    for number, leave in enumerate(nfab.leaves):
        if asked(leave):
            names = ", ".join(
                nfab.pairs[at].component.variable for at, one in enumerate(nfab.round_of) if one == number
            )
            yield f"the group of {names}  left     {asked(leave)}"
    for ending in nfab.endings:
        own = nfab.pairs[ending.of].component
        kinds = _joined("|".join(ending.component.types), asked(ending.edge), window)
        yield f"{own.variable + '[]':<{width}}  ends     {kinds}{', and is not complete without' * own.only}"
    for negation in nfab.negations:
        kinds = "|".join(negation.component.types)
        yield f"{negation.component!s:<{width}}  negated  {_joined(kinds, asked(negation.edge), '')}"


def _behind(nfab: Nfab, number: int) -> str:
    """What may follow a component: others, itself in a further round of its group, the end."""
    places = nfab.places
    mine = [at for at, one in enumerate(places.component) if one == number]
    after = sorted({places.component[step.place] for at in mine for step in places.follow[at]})
    names = [nfab.pairs[one].component.variable for one in after]
    names += ["the end"] if any(places.final[at] for at in mine) else []
    condition = asked(nfab.pairs[number].proceed)
    return f"{condition + ': ' if condition else ''}{', '.join(names)}"


def _negated(nfab: Nfab) -> list[str]:
    return [str(one.component) for one in nfab.negations]


def _joined(kinds: str, condition: str, window: str) -> str:
    """Type, condition and window of an edge, those that there are."""
    rest = " AND ".join(part for part in (condition, window) if part)
    return f"{kinds}: {rest}" if rest else kinds


def asked(edge: Edge) -> str:
    """Write what an edge asks; nothing when it asks nothing."""
    several = len(edge.alone) + len(edge.related) + len(edge.each) > 1
    parts = [_bracketed(one, several) for one in (*edge.alone, *edge.related)]
    return " AND ".join([*parts, *(f"(for every i: {one})" for _, one in edge.each)])


def _bracketed(one: p.Predicate, several: bool) -> str:
    return f"({one})" if several and isinstance(one, p.Or) else str(one)


def ignored(selection: Selection, *, takes: bool) -> str:
    """Say when a run at a state leaves out an event (step 3); ``takes``: the state is that of a further ``a[i]``."""
    return {
        Selection.STRICT: "never",
        Selection.PARTITION: "events of other partitions",
        Selection.NEXT: "not take" if takes else "not begin",
        Selection.ANY: "always",
    }[selection]


def proceeds(nfab: Nfab, number: int, pair: Pair) -> str:
    """Say when a run leaves a Kleene plus (step 6)."""
    condition = asked(pair.proceed)
    if number == len(nfab.pairs) - 1:
        return f"{condition or 'true'}, to the end, after each event that is selected"
    following = nfab.pairs[number + 1].component
    name = f"{following.variable}[1]" if following.kleene else following.variable
    return " AND ".join(part for part in (condition, f"the event may begin {name}") if part)


def kinds_of_non_determinism(nfab: Nfab) -> list[str]:
    """Find which of the four kinds (section 4.1) a query may show, each with its state. Conditions may still exclude one another."""
    found = []
    last = len(nfab.pairs) - 1
    for number, pair in enumerate(nfab.pairs):
        state = f"{pair.component.variable}[i]"
        if pair.component.kleene:
            if number < last:
                found.append(f"take-proceed at {state}")
                if MODES[nfab.loop(number)]:
                    found.append(f"ignore-proceed at {state}")
            if nfab.loop(number) is Selection.ANY:
                found.append(f"take-ignore at {state}")
        if number and nfab.step(number) is Selection.ANY:
            name = f"{pair.component.variable}[1]" if pair.take else pair.component.variable
            found.append(f"begin-ignore at {name}")
    several = [number for number in range(len(nfab.pairs)) if ", " in _behind(nfab, number)]
    names = ", ".join(nfab.pairs[number].component.variable for number in several)
    return [*found, f"a run for each that may follow {names}"] if several else found


def _values(program: NfabProgram) -> Iterator[str]:
    values = program.conditions.values
    for number, slot in enumerate(values.slots, 1):
        variable = program.nfab.pairs[slot.component].component.variable
        column = str(values.columns[slot.column - 1]) if slot.column else ""
        yield f"{number}: {slot.describe(variable, column)}"
    if not values.slots:
        yield "empty: a run is its state, its start and its events"


def _masks(program: NfabProgram) -> Iterator[str]:
    """The values that matter from a state on, and by which its runs are compared."""
    found = 0
    places = program.nfab.places
    for place, number in enumerate(places.component):
        component = program.nfab.pairs[number].component
        first = f"{component.variable}[1]" if component.many else component.variable
        states = [(first, 2 * place)] * bool(place)
        states += [(f"{component.variable}[i]", 2 * place + 1)] * component.kleene
        for name, state in states:
            found += 1
            yield f"{name}: {', '.join(map(str, program.mask(state))) or 'nothing'}"
    if not found:
        yield "none: no run waits"
