"""AFAs as text and as pictures (AFA paper, figures 3 and 14)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from stretto.engines.select import choose_ahead
from stretto.explaining.dot import Drawing, caption, quoted
from stretto.explaining.text import section
from stretto.query import predicate as p
from stretto.query.afa import Afa, Arc, Emit, Kind
from stretto.query.afa_paths import leading, reached
from stretto.query.afa_text import fence_text, transfer_text

_EMITS = {
    Emit.EVERY: "output at every event that leads to it or is ignored in it",
    Emit.ON_ENTER: "output at every event that leads to it",
}

_KINDS = {Kind.CONSUME: "", Kind.EPSILON: "ε", Kind.IGNORE: "ignores"}


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


def draw_afa(afa: Afa) -> Drawing:
    """Draw the graph: final states have two circles, an arc says ``id: when / then``; ε-arcs are dotted, ignorable ones dashed."""
    by = [f"by {', '.join(afa.partition_by)}"] if afa.partition_by else []
    window = [] if afa.window is None else [f"each event contributes for {_size(afa.window)}"]
    lines = [
        "digraph AFA {",
        "  rankdir=LR;",
        '  node [shape=circle, fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=10];',
        '  "" [shape=none, width=0];',
        f'  "" -> "{quoted(afa.start)}";',
        *caption([*by, *window]),
    ]
    for state in afa.states:
        shape = " [shape=doublecircle]" if state in afa.finals else ""
        lines.append(f'  "{quoted(state)}"{shape};')
    styles = {Kind.CONSUME: "", Kind.EPSILON: "style=dotted, ", Kind.IGNORE: "style=dashed, "}
    for arc in afa.arcs:
        ends = f'"{quoted(arc.source)}" -> "{quoted(arc.target)}"'
        lines.append(f'  {ends} [{styles[arc.kind]}label="{_label(arc, afa)}"];')
    return Drawing("\n".join([*lines, "}", ""]))


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
