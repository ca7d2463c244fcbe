"""``query.explain()``: what a query means and how it runs, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.automata.cea import CEA, build
from stretto.engines.select import choose
from stretto.engines.tecs.program import Program
from stretto.explain.many import warning
from stretto.explain.sase import explain_sase
from stretto.query.algebra import Filter, Pattern, walk
from stretto.query.passes.bind import BoundQuery
from stretto.query.query import Consume, ParsedQuery, Strategy, Window
from stretto.query.sase import SaseQuery

if TYPE_CHECKING:
    from stretto.matching.compiled import Query

__all__ = ["automaton_of", "explain", "section"]

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


def explain(query: Query) -> str:
    """The parts of a query, one a paragraph: query, pattern, conditions, window, automaton, engine and why."""
    if isinstance(query.parsed, SaseQuery):
        more = [("partition", _partition(query)), ("window", _window(query.window)), ("output", _output(query))]
        sections = explain_sase(query, more)
    else:
        sections = _core(query, query.parsed)
    if (many := warning(query.parsed)) is not None:
        sections.append(("warning", many))
    if query.schema is None:
        sections.append(("schema", "none yet: attributes and types are checked when the query meets its events"))
    return "\n".join(section(title, body) for title, body in sections)


def _core(query: Query, parsed: ParsedQuery) -> list[tuple[str, str]]:
    """CEQL: the formula and its automaton."""
    pattern, cea = formula_of(query), automaton_of(query)
    return [
        ("query", query.text.strip()),
        ("pattern", str(pattern)),
        ("conditions", _conditions(query, pattern)),
        ("selection", f"{parsed.strategy}: {_STRATEGIES[parsed.strategy]}"),
        ("partition", _partition(query)),
        ("window", _window(query.window)),
        ("output", _output(query)),
        ("automaton", _automaton(cea, query)),
        ("engine", _engine(parsed)),
    ]


def formula_of(query: Query) -> Pattern:
    """The formula of a query that has one."""
    bound = query.bound if query.schema is not None else None
    if isinstance(bound, BoundQuery):
        return bound.pattern
    assert isinstance(query.parsed, ParsedQuery)
    return query.parsed.pattern


def automaton_of(query: Query) -> CEA:
    """The complex event automaton of a query that has one."""
    if query.schema is None:
        return build(formula_of(query))
    program = query.program()
    assert isinstance(program, Program)
    return program.cea


def section(title: str, body: str) -> str:
    """A part of an explanation, with its title before the first line."""
    first, *rest = body.splitlines() or [""]
    return "\n".join([f"{title:<11}{first}", *(" " * 11 + line for line in rest)])


def _conditions(query: Query, pattern: Pattern) -> str:
    if query.schema is not None:
        return "\n".join(query.program().classifier.describe()) or "none but the event types"
    found = [f"{node.variable}[{node.predicate}]" for node in walk(pattern) if isinstance(node, Filter)]
    return "\n".join(dict.fromkeys(found)) or "none but the event types"


def _partition(query: Query) -> str:
    if not query.partition_by:
        return "none: one stream"
    return f"by {', '.join(query.partition_by)}; events where one of them is NULL are in no partition"


def _window(window: Window | None) -> str:
    if window is None:
        return "none: a match may last as long as the stream; partial matches are kept until nothing can reach them"
    if window.events is not None:
        return f"end − start ≤ {window.events} events"
    measured = f"[{window.attribute}]" if window.attribute else "the stream's time"
    size = f"{window.seconds} s" if window.seconds is not None else str(window.number)
    return f"end − start ≤ {size}, measured by {measured}"


def _output(query: Query) -> str:
    limit = "" if query.limit is None else f"; at most {query.limit} per triggering event, latest start first"
    shown = ", ".join(query.variables) or "only the intervals"
    return f"{shown}; {_CONSUME[query.consume]}{limit}"


def _automaton(cea: CEA, query: Query) -> str:
    skipping = "events that satisfy no guard are not visited"
    if not cea.waits or query.strategy is Strategy.STRICT:
        skipping = "every event of the stream is visited: some state does not wait"
    return f"{cea}\n{skipping}"


def _engine(query: ParsedQuery) -> str:
    choice = choose(query)
    return f"{choice.engine}: {choice.why}"
