"""``query.explain()``: what a query means and how it runs, as text.

What an EQL query means and how it runs, in words.

What a query asks of all its matches together, as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from stretto.automata.cea import CEA, build
from stretto.automata.steps import Steps, steps_of
from stretto.engines.programs import Program, TimedProgram, TotalsProgram
from stretto.engines.select import Machine, choose
from stretto.explaining.sase import explain_sase
from stretto.query import predicate as p
from stretto.query.algebra import Filter, walk
from stretto.query.eql import EqlQuery, Mode, Step
from stretto.query.passes.bind import AnyBound, BoundQuery
from stretto.query.passes.bind_eql import BoundEql
from stretto.query.query import AnyQuery, Consume, Keep, ParsedQuery, Skip, Strategy
from stretto.query.totals import Asked, Best, Extent, Sample, Total, Totals
from stretto.query.windows import Window


def warning(query: AnyQuery) -> str | None:
    """Say what may make 2ⁿ matches of n events, and the ways out; ``None`` where nothing does.

    An iteration that skips does, where every choice of its events is a match of its own.
    """
    loops = query.skipping_loops if query.asked is None and query.limit is None else []
    if not loops:
        return None
    return f"{', '.join(loops)}: every choice of its events is a match, 2ⁿ for n events that fit within the window\n{query.fewer}"


_MODES = {
    Mode.EVENT: "single events",
    Mode.SEQUENCE: "the latest partial match goes on with an event that fits, and those before it are forgotten",
    Mode.SAMPLE: "different events in any order, once for each key",
    Mode.JOIN: "the first event of each step in any order, again and again for each key",
}


def explain_eql(
    parsed: EqlQuery, bound: BoundEql | None, program: Callable[[], Machine], _: object
) -> list[tuple[str, str]]:
    """Write the parts of an explanation, title and text; none is like those of all languages."""
    sections = [
        ("query", parsed.text.strip()),
        ("steps", "\n".join(map(_step, parsed.stages))),
        ("selection", f"{parsed.mode}: {_MODES[parsed.mode]}"),
    ]
    asked = {str(one) for one in _conditions(parsed, bound)}
    sections.append(("conditions", "\n".join(sorted(asked)) or "none but the categories"))
    if parsed.until is not None:
        sections.append(("until", f"{_step(parsed.until)} ends the partial matches of its key"))
    window = "none" if parsed.window is None else f"{parsed.window} from the first event to the last"
    sections.append(("maxspan", window))
    sections += [("pipe", f"{one}: of the matches in their order") for one in parsed.pipes]
    if bound is None:
        return sections
    program()
    return [*sections, ("engine", str(choose(bound.parsed, bound)))]


def _step(step: Step) -> str:
    keys = ", ".join(map(str, step.keys))
    never = "no " if step.missing else ""
    return f"{never}{step.category or 'any'} {step.variable}" + (f" by {keys}" if keys else "")


def _conditions(parsed: EqlQuery, bound: BoundEql | None) -> Iterator[str]:
    for step, asked in zip(parsed.whole, parsed.conditions if bound is None else bound.conditions, strict=True):
        if asked != p.And(()):
            yield f"{step.variable}: {asked}"


def asked_sections(query: AnyQuery) -> list[tuple[str, str]]:
    """Say what is counted, added up or chosen, and of which matches; nothing where matches are listed."""
    asked = query.asked
    if asked is None:
        return []
    return [("output", _shown(asked)), ("rows", _rows(asked, query))]


def _shown(asked: Asked) -> str:
    match asked:
        case Totals(items, _, distinct):
            lines = [f"{one.name}: {one}" for one in items]
            if distinct is not None:
                lines.append(f"matches are told apart by the events of {', '.join(distinct)}")
            return "\n".join(lines)
        case Best(score, factors, descending, most):
            which = "greatest" if descending else "least"
            matches = "the match" if most == 1 else f"the {most} matches"
            ties = "of equal ones the later start, the later end, the latest events"
            return f"{matches} with the {which} {_score(score, factors)}; {ties}"
        case Sample(most, seed):
            return f"{most} matches drawn at random, each set of so many as likely as any other (seed {seed})"


def _score(score: Sequence[Total], factors: Sequence[object]) -> str:
    terms = [str(one) if factor == 1 else f"{factor} * {one}" for one, factor in zip(score, factors, strict=True)]
    return " + ".join(terms).replace("+ -1 * ", "- ").replace("+ -", "- ")


def _rows(asked: Asked, query: AnyQuery) -> str:
    """Of which matches a row is made, or a choice."""
    scope = asked.scope
    keys = scope.group_by
    names = query.partition_by if keys is None else tuple(map(str, keys))
    by = f", by {', '.join(names)}" if names else ""
    one = "one row" if isinstance(asked, Totals) else "chosen"
    of = "for" if isinstance(asked, Totals) else "of"
    match scope.extent:
        case Extent.TABLE:
            return f"{one} {of} all matches{by}; of a stream when it ends"
        case Extent.EVENT:
            return f"{one} {of} the matches that an event completes{by}"
    assert scope.slide is not None
    assert query.window is not None
    size, slide = _size(query.window), _size(scope.slide)
    return f"{one} {of} the matches wholly inside a window of {size}, of which one begins every {slide}{by}"


def _size(window: Window) -> str:
    if window.events is not None:
        return f"{window.events} events"
    return f"{window.seconds:f} s" if window.seconds is not None else str(window.number)


#: Gives the machine of a query that has a schema; it is made when it is asked for.
Compiled = Callable[[], Machine]

_STRATEGIES = {
    Strategy.ALL: "every complex event",
    Strategy.NEXT: "per interval, the complex event that takes an event as soon as it can",
    Strategy.LAST: "per interval, the complex event that takes events as late as it can",
    Strategy.MAX: "per interval, the complex events with no larger one",
    Strategy.STRICT: "complex events that hold every event of their interval",
}

_CONSUME = {
    Consume.NONE: "an output forgets nothing",
    Consume.PARTITION: "an output forgets the partial matches of its partition",
    Consume.ANY: "an output forgets all partial matches",
}


def explain(parsed: AnyQuery, bound: AnyBound | None, program: Compiled) -> str:
    """Say what a query means and how it runs, a paragraph a part: query, pattern, conditions, window, automaton, engine and why.

    ``bound`` is ``None`` for a query without a schema, and then no ``program`` is asked for.
    """
    more = [
        ("partition", _partition(parsed if bound is None else bound.parsed)),
        ("window", _window(parsed)),
        *(asked_sections(parsed) or [("output", _output(parsed))]),
    ]
    more += [] if parsed.keep is None else [("kept", _kept(parsed.keep, parsed))]
    sections = _SECTIONS[parsed.language](parsed, bound, program, more)
    if (many := warning(parsed)) is not None:
        sections.append(("warning", many))
    if bound is None:
        sections.append(("schema", "none yet: attributes and types are checked when the query meets its events"))
    return "\n".join(section(title, body) for title, body in sections)


def _core(
    parsed: ParsedQuery, bound: BoundQuery | None, program: Compiled, more: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """CEQL: the formula and its automaton."""
    pattern = parsed.pattern if bound is None else bound.pattern
    if bound is None:
        described = [f"{node.variable}[{node.predicate}]" for node in walk(pattern) if isinstance(node, Filter)]
    else:
        described = program().classifier.describe()
    automaton = automaton_of(parsed, None if bound is None else program)
    return [
        ("query", parsed.text.strip()),
        ("pattern", str(pattern)),
        ("conditions", "\n".join(dict.fromkeys(described)) or "none but the event types"),
        ("selection", f"{parsed.strategy}: {_STRATEGIES[parsed.strategy]}"),
        *more,
        ("automaton", str(automaton) if isinstance(automaton, Steps) else _automaton(automaton, parsed)),
        ("engine", str(choose(parsed))),
    ]


#: The parts in which each language is explained.
_SECTIONS: Mapping[str, Callable[[Any, Any, Compiled, list[tuple[str, str]]], list[tuple[str, str]]]] = {
    "ceql": _core,
    "sase": explain_sase,
    "eql": explain_eql,
}


def automaton_of(parsed: ParsedQuery, program: Compiled | None) -> CEA | Steps:
    """Give the automaton that a CEQL query runs on; without a program, that of its text."""
    found = None if program is None else program()
    if isinstance(found, TimedProgram):
        return found.steps
    if isinstance(found, Program | TotalsProgram):
        return found.cea
    return steps_of(parsed.pattern, lambda window: window) if parsed.needs_times else build(parsed.pattern)


def section(title: str, body: str) -> str:
    """Write a part of an explanation, with its title before the first line."""
    first, *rest = body.splitlines() or [""]
    return "\n".join([f"{title:<11}{first}", *(" " * 11 + line for line in rest)])


def _partition(query: AnyQuery) -> str:
    if not query.partition_by:
        return "none: one stream"
    if query.implied:
        asked = [name for name in query.partition_by if name not in query.implied]
        beside = f", and by {', '.join(asked)}" if asked else ""
        return f"by {', '.join(query.implied)}, as the conditions ask for equal ones{beside}; no column of results"
    return f"by {', '.join(query.partition_by)}; events where one of them is NULL are in no partition"


def _window(query: AnyQuery) -> str:
    window, slide = query.window, None if query.asked is None else query.asked.scope.slide
    if window is not None and slide is not None:
        measured = "positions" if window.events else window.attribute or "the stream's time"
        return f"[k·{slide}, k·{slide} + {window}) for every integer k, measured by {measured}"
    if window is None:
        return "none: a match may last as long as the stream; partial matches are kept until nothing can reach them"
    if window.events is not None:
        return f"end − start ≤ {window.events} events"
    measured = f"[{window.attribute}]" if window.attribute else "the stream's time"
    size = f"{window.seconds} s" if window.seconds is not None else str(window.number)
    return f"end − start ≤ {size}, measured by {measured}"


def _kept(keep: Keep, query: AnyQuery) -> str:
    begins = {
        Skip.NEXT: "the next one begins at a later event",
        Skip.PAST: "the next one begins after its last event",
        Skip.FIRST: f"the next one begins at its first {keep.variable}, or later",
        Skip.LAST: f"the next one begins at its last {keep.variable}, or later",
    }
    closed = "the stream ends" if query.window is None else "the window of its start has passed"
    when = f"when {closed}, or no event can go on from its start"
    if not keep.longest:
        when = f"with its last event, unless an earlier start may still have a match: then when that one has, or {when}"
    which = "last" if keep.longest else "first"
    return f"for each start the match that ends {which}; {begins[keep.skip]}\na match comes {when}"


def _output(query: AnyQuery) -> str:
    limit = "" if query.limit is None else f"; at most {query.limit} per triggering event, latest start first"
    shown = ", ".join(query.variables) or "only the intervals"
    return f"{shown}; {_CONSUME[query.consume]}{limit}"


def _automaton(cea: CEA, query: ParsedQuery) -> str:
    skipping = "events that satisfy no guard are not visited"
    if not cea.waits or query.strategy is Strategy.STRICT:
        skipping = "every event of the stream is visited: some state does not wait"
    return f"{cea}\n{skipping}"
