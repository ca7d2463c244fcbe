"""AFAs as text and as pictures (AFA paper, figures 3 and 14)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from stretto.engines.select import choose_ahead
from stretto.explaining.dot import BELOW, CIRCLES, Drawing, Stage, caption, quoted, thickness
from stretto.explaining.text import section
from stretto.query import predicate as p
from stretto.query.afa import Afa, Arc, Emit, Kind, fence_text, leading, reached, transfer_text

_EMITS = {
    Emit.EVERY: "output at every event that leads to it or is ignored in it",
    Emit.ON_ENTER: "output at every event that leads to it",
}

_KINDS = {Kind.CONSUME: "", Kind.EPSILON: "ε", Kind.IGNORE: "ignores"}


#: Nothing is counted.
NOTHING: Mapping[str, Stage] = MappingProxyType({})


def explain_afa(afa: Afa) -> str:
    """Show schemas, partition, window, and each state with the arcs that leave it."""
    sections = [
        ("events", ", ".join(f"{name} {kind}" for name, kind in afa.events.items()) or "no attribute is read"),
        ("register", _register(afa.register, afa.initial)),
        ("partition", _partition(afa)),
        ("window", _window(afa.window)),
        ("states", "\n".join(line for state in afa.states for line in _state(afa, state))),
        ("note", "\n".join(_notes(afa))),
    ]
    return "\n".join(section(title, body) for title, body in sections if body)


def explain_ahead(text: str, afa: Afa) -> str:
    """Show a query that answers ahead of what is certain: the automaton that it runs as, and why on this engine."""
    return "\n".join([section("query", text.strip()), explain_afa(afa), section("engine", str(choose_ahead()))])


def _notes(afa: Afa) -> list[str]:
    """What the graph says that may not be meant."""
    if not afa.arcs:
        return ["there are no arcs yet, so that nothing matches before some are added to a matcher"]
    there = reached(afa)
    useful = leading(afa, afa.finals)
    found = []
    lost = [state for state in afa.states if state != afa.start and state not in there]
    if lost:
        found.append(f"no computation reaches {', '.join(lost)}")
    dead = [state for state in afa.states if state in there and state not in useful]
    if dead:
        found.append(
            f"no arc leads on from {', '.join(dead)} to a final state, so that what gets there is held for nothing"
        )
    return found


def _register(fields: Mapping[str, Any], initial: tuple[Any, ...]) -> str:
    shown = [
        f"{name} {kind} = {p.Constant(first)}" for (name, kind), first in zip(fields.items(), initial, strict=True)
    ]
    return ", ".join(shown) or "none"


def _partition(afa: Afa) -> str:
    if not afa.partition_by:
        return "none: one stream"
    return f"by {', '.join(afa.partition_by)}; events where one of them is NULL are in no partition"


def _window(window: int | dt.timedelta | None) -> str:
    if window is None:
        return "none: an event contributes for ever"
    return f"an event contributes for {_size(window)}"


def _size(window: int | dt.timedelta) -> str:
    return f"{window} ticks of the time attribute" if isinstance(window, int) else str(window)


def _state(afa: Afa, state: str) -> list[str]:
    roles = ["start"] if state == afa.start else []
    roles += [f"final: {_EMITS[afa.finals[state]]}"] if state in afa.finals else []
    head = f"{state} ({'; '.join(roles)})" if roles else state
    return [head, *(f"  {_arc(arc, afa)}" for arc in afa.arcs if arc.source == state)]


def _arc(arc: Arc, afa: Afa) -> str:
    fence, transfer = fence_text(arc), transfer_text(arc, afa.register)
    parts = [
        arc.id,
        "" if arc.kind is Kind.IGNORE else f"-> {arc.target}",
        _KINDS[arc.kind],
        f"when {fence}" if fence else "always",
        f"then {transfer}" if transfer else "",
        f"valid {_valid(arc)}" if _valid(arc) else "",
    ]
    return "  ".join(part for part in parts if part)


def _valid(arc: Arc) -> str:
    """The lifetime of an arc that has one."""
    if arc.since is None and arc.until is None:
        return ""
    return f"[{'−∞' if arc.since is None else arc.since}, {'∞' if arc.until is None else arc.until})"


def draw_afa(
    afa: Afa,
    states: Mapping[str, Stage] = NOTHING,
    arcs: Mapping[str, Stage] = NOTHING,
    told: Sequence[str] = (),
) -> Drawing:
    """Draw the graph: final states have two circles, an arc says ``id: when / then``; ε-arcs are dotted, ignorable ones dashed.

    ``states`` and ``arcs``: what is said of them, and by which number they are drawn: the greater, the thicker is the line, by the
    logarithm, and what nothing gets to is grey. ``told`` stands below the graph.
    """
    by = [f"by {', '.join(afa.partition_by)}"] if afa.partition_by else []
    window = [] if afa.window is None else [f"each event contributes for {_size(afa.window)}"]
    lines = [
        "digraph AFA {",
        *CIRCLES,
        '  "" [shape=none, width=0];',
        f'  "" -> "{quoted(afa.start)}";',
        *caption([*told, *by, *window]),
    ]
    for state in afa.states:
        own = ["shape=doublecircle"] if state in afa.finals else []
        if state in states:
            own.append(f'label="{_lines(quoted(state), states[state])}"')
        shape = [*own, *_weight(states.get(state))]
        lines.append(f'  "{quoted(state)}"{_attributes(shape)};')
    styles = {Kind.CONSUME: [], Kind.EPSILON: ["style=dotted"], Kind.IGNORE: [BELOW]}
    for arc in afa.arcs:
        ends, told_of = f'"{quoted(arc.source)}" -> "{quoted(arc.target)}"', arcs.get(arc.id)
        own = [*styles[arc.kind], f'label="{_lines(_label(arc, afa), told_of)}"', *_weight(told_of)]
        lines.append(f"  {ends} [{', '.join(own)}];")
    return Drawing("\n".join([*lines, "}", ""]))


def _attributes(own: Sequence[str]) -> str:
    return f" [{', '.join(own)}]" if own else ""


def _lines(name: str, told: Stage | None) -> str:
    return "\\n".join([name, *(() if told is None else map(quoted, told.lines))])


def _weight(told: Stage | None) -> list[str]:
    """How what so many events get to is drawn."""
    if told is None or told.count is None:
        return []
    return [f"penwidth={thickness(told.count)}"] if told.count else ["color=gray60", "fontcolor=gray40"]


def _label(arc: Arc, afa: Afa) -> str:
    fence = fence_text(arc) or "true"
    transfer = transfer_text(arc, afa.register)
    epsilon = "ε, " if arc.kind is Kind.EPSILON else ""
    lines = [f"{quoted(arc.id)}: {epsilon}{quoted(fence, 60)}"]
    if transfer:
        lines[0] += " /"
        lines.append(quoted(transfer, 60))
    if _valid(arc):
        lines.append(_valid(arc))
    return "\\n".join(lines)
