"""Automata as Graphviz graphs: text in the dot language, and SVG where the ``dot`` program is installed."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.automata.cea import CEA, Transition
from stretto.automata.nfab import Edge, Nfab, Pair
from stretto.automata.nfab import build as build_nfab
from stretto.automata.steps import Steps
from stretto.errors import OptionError
from stretto.explaining.sase import asked, ignored, proceeds
from stretto.explaining.text import Compiled, automaton_of
from stretto.query.eql import EqlQuery, Step
from stretto.query.passes.bind import AnyBound
from stretto.query.query import AnyQuery, ParsedQuery
from stretto.times import spoken

#: On a dark ground.
_DARK = (
    "<style>@media (prefers-color-scheme: dark){.stretto-graph>polygon{fill:#0d1117}.stretto-graph text{fill:#e6edf3}"
    ".stretto-graph g path,.stretto-graph g ellipse,.stretto-graph g polygon{stroke:#8d96a0}"
    ".stretto-graph g [fill=black]{fill:#8d96a0}}</style>"
)


#: A loop below its state, so that its label does not lie over that of a loop above.
BELOW = "style=dashed, headport=s, tailport=s"

#: How automata are drawn: circles from left to right.
CIRCLES = (
    "  rankdir=LR;",
    '  node [shape=circle, fontname="Helvetica", fontsize=11];',
    '  edge [fontname="Helvetica", fontsize=10];',
)


@dataclass(frozen=True)
class Drawing:
    """A graph in the dot language. Prints as such; shows itself as SVG in a notebook where Graphviz is installed."""

    source: str

    def __str__(self) -> str:
        return self.source

    @staticmethod
    def can_draw() -> bool:
        """Whether Graphviz is installed."""
        return shutil.which("dot") is not None

    def svg(self) -> str:
        """Draw the picture, as SVG, which is dark where the reader's system is.

        Raises
        ------
        OptionError
            The program ``dot`` of Graphviz is not installed.
        """
        # Constants alone are put into what Graphviz has written.
        found = self._render("svg").decode()
        return found.replace('class="graph"', 'class="graph stretto-graph"', 1).replace("<g ", f"{_DARK}<g ", 1)

    def save(self, path: str | Path) -> None:
        """Write ``.dot``, ``.svg``, ``.png`` or ``.pdf``, by the file's ending."""
        path = Path(path)
        kind = path.suffix.removeprefix(".")
        if kind in ("dot", "gv"):
            path.write_text(self.source, encoding="utf-8")
        elif kind == "svg":
            path.write_text(self.svg(), encoding="utf-8")
        elif kind in ("png", "pdf"):
            path.write_bytes(self._render(kind))
        else:
            raise OptionError(f"cannot draw to '{path.name}': end it in .dot, .svg, .png or .pdf")

    def _render(self, kind: str) -> bytes:
        if not self.can_draw():
            raise OptionError("drawing needs Graphviz's program 'dot'; str(drawing) gives the graph as text without it")
        return subprocess.run(["dot", f"-T{kind}"], input=self.source.encode(), capture_output=True, check=True).stdout

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        bundle = {"text/plain": self.source}
        if self.can_draw():
            bundle["image/svg+xml"] = self.svg()
        return bundle


def draw(parsed: AnyQuery, bound: AnyBound | None, program: Compiled) -> Drawing:
    """Draw a query's automaton.

    A complex event automaton is drawn as in figure 3 of the CORE paper: • marks an event, ∘ skips it.

    An NFAb, which needs a schema, is drawn as in figure 2 of the SASE+ paper: begin and take edges in full lines, ignore edges
    dashed, proceed edges with an empty arrow; negated components are dotted boxes at the state that they stand before.
    """
    return Drawing(_DRAWN[parsed.language](parsed, bound, program))


def _automaton(parsed: ParsedQuery, bound: AnyBound | None, program: Compiled) -> str:
    found, below = automaton_of(parsed, None if bound is None else program), _about(parsed)
    return _steps(found, below) if isinstance(found, Steps) else _dot(found, below)


#: How each language's automaton is drawn.
_DRAWN: Mapping[str, Callable[[Any, Any, Compiled], str]] = {
    "ceql": _automaton,
    "sase": lambda _, bound, program: _nfab(build_nfab(bound), _about(bound.parsed)),
    "eql": lambda parsed, bound, program: _chain(parsed),
}


@dataclass(frozen=True)
class Stage:
    """What is said of how far events get in a step, a state or an arc, and by which number it is drawn; ``None``: it has none."""

    lines: tuple[str, ...]
    count: int | None


def draw_stages(ways: Iterable[Sequence[Stage]], about: Iterable[str]) -> Drawing:
    """Draw the steps of a query as states, a row for each alternative, with how many events reach each.

    The more events reach a state, the thicker is its line, by the logarithm; one that none reaches is dashed.
    """
    lines = [
        "digraph counts {",
        "  rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="Helvetica", fontsize=11];',
        "  start [shape=point, width=0.08];",
        *caption(about),
    ]
    for way, stages in enumerate(ways):
        before = "start"
        for number, stage in enumerate(stages):
            name, last = f"s{way}_{number}", ", peripheries=2" * (number == len(stages) - 1)
            style = 'style="rounded,dashed"' if stage.count == 0 else f"penwidth={thickness(stage.count)}"
            label = "\\n".join(map(_short, stage.lines))
            lines.append(f'  {name} [label="{label}", {style}{last}];')
            lines.append(f"  {before} -> {name} [{style.replace('rounded,', '')}];")
            before = name
    return Drawing("\n".join([*lines, "}", ""]))


def thickness(count: int | None) -> str:
    """How thick a line is, in points: one more for a hundred times the events."""
    return f"{1 + math.log10(max(count or 1, 1)) / 2:.1f}"


def caption(parts: Iterable[str]) -> list[str]:
    """Write what holds for the whole graph below it."""
    text = "; ".join(part for part in parts if part)
    return [f'  label="{quoted(text, 160)}"; fontname="Helvetica"; fontsize=10;'] if text else []


def about(query: AnyQuery) -> list[str]:
    """Partition and window, in words."""
    by = [f"by {', '.join(query.partition_by)}"] if query.partition_by else []
    window = query.window
    if window is None:
        return by
    plain = window.seconds is not None and window.attribute is None
    return [*by, f"within {spoken(float(window.seconds or 0)) if plain else window}"]


def _about(query: AnyQuery) -> list[str]:
    return caption(about(query))


def _chain(query: EqlQuery) -> str:
    """The steps of EQL in a row; what must not come is dotted, and what ends partial matches is dashed."""
    lines = ["digraph EQL {", "  rankdir=LR;", '  node [shape=box, fontname="Helvetica", fontsize=11];']
    lines += caption([] if query.window is None else [f"maxspan {query.window}"])
    for number, step in enumerate(query.stages):
        lines.append(f'  s{number} [label="{_by(step)}"{", style=dotted" * step.missing}];')
        lines += [f"  s{number - 1} -> s{number};"] * bool(number)
    if query.until is not None:
        lines.append(f'  until [label="{_by(query.until)}", style=dashed];')
    return "\n".join([*lines, "}", ""])


def _by(step: Step) -> str:
    keys = quoted(", ".join(map(str, step.keys)))
    return _short(str(step)) + (f"\\nby {keys}" if keys else "")


def _places(nfab: Nfab, about: list[str]) -> str:
    """What may follow what, where components may be missing or come again: a box for each, an edge for each step."""
    names = [f"{pair.component}" for pair in nfab.pairs]
    lines = [
        "digraph NFAb {",
        "  rankdir=LR;",
        '  node [shape=box, fontname="Helvetica", fontsize=11];',
        "  start [shape=point];",
        *about,
    ]
    for number, (name, pair) in enumerate(zip(names, nfab.pairs, strict=True)):
        conditions = [one for one in (asked(pair.begin), asked(pair.take) if pair.take else "") if one]
        label = "\\n".join([_short(name), *(_lines(one) for one in dict.fromkeys(conditions))])
        lines.append(f'  c{number} [label="{label}"];')
    lines.append('  F [shape=doublecircle, label="F"];')
    places = nfab.places
    steps = {("start", f"c{places.component[step.place]}") for step in places.first}
    for at, number in enumerate(places.component):
        steps |= {(f"c{number}", f"c{places.component[step.place]}") for step in places.follow[at]}
        steps |= {(f"c{number}", "F")} if places.final[at] else set()
    return "\n".join([*lines, *(f"  {one} -> {other};" for one, other in sorted(steps)), "}", ""])


def _nfab(nfab: Nfab, about: list[str]) -> str:
    """States in a row, from the first component's to F."""
    if not nfab.places.linear:
        return _places(nfab, about)
    lines = [
        "digraph NFAb {",
        *CIRCLES,
    ]
    names = [
        name
        for pair in nfab.pairs
        for name in (
            [f"{pair.component.variable}[1]", f"{pair.component.variable}[i]"]
            if pair.take
            else [pair.component.variable]
        )
    ]
    lines += about
    lines += ['  "" [shape=none, width=0];', f'  "" -> "{names[0]}";']
    lines += [f'  "{name}";' for name in names] + ['  "F" [shape=doublecircle];']
    names.append("F")
    for number, pair in enumerate(nfab.pairs):
        first = f"{pair.component.variable}[1]" if pair.take else pair.component.variable
        at = names.index(first)
        lines.append(f'  "{first}" -> "{names[at + 1]}" [label="{_edge(pair.begin, pair)}"];')
        if number:
            lines.append(
                f'  "{first}" -> "{first}" [{BELOW}, label="ignore: {ignored(nfab.step(number), takes=False)}"];'
            )
        if pair.take:
            state, after = names[at + 1], names[at + 2]
            lines.append(f'  "{state}" -> "{state}" [label="{_edge(pair.take, pair)}"];')
            lines.append(
                f'  "{state}" -> "{state}" [{BELOW}, label="ignore: {ignored(nfab.loop(number), takes=True)}"];'
            )
            label = _lines(f"proceed: {proceeds(nfab, number, pair)}")
            lines.append(f'  "{state}" -> "{after}" [arrowhead=empty, label="{label}"];')
    return "\n".join([*lines, *_negations(nfab), "}", ""])


def _edge(edge: Edge, pair: Pair) -> str:
    """What an edge does with an event of which type, and what it asks of it."""
    kinds, condition = "|".join(pair.component.types), asked(edge)
    return _short(f"{edge.kind} {kinds}") + (f"\\n{_lines(condition)}" if condition else "")


def _lines(text: str) -> str:
    """Write a condition with a line for each of its parts."""
    return "\\n".join(_short(one) for one in text.replace(" AND ", " AND\n").splitlines())


def _negations(nfab: Nfab) -> list[str]:
    """Negated components as dotted boxes at the state that they stand before in the pattern."""
    found = []
    for negation in nfab.negations:
        name = _short(str(negation.component))
        condition = asked(negation.edge)
        label = f"{name}\\n{_short(condition)}" if condition else name
        found.append(f'  "{name}" [shape=box, style=dotted, label="{label}"];')
        state = "F"
        if negation.right < len(nfab.pairs):
            pair = nfab.pairs[negation.right]
            state = f"{pair.component.variable}[1]" if pair.take else pair.component.variable
        found.append(f'  {{rank=same; "{name}" -> "{state}" [style=dotted, arrowhead=none];}}')
    return found


def _short(text: str) -> str:
    return quoted(text, 60)


def quoted(text: str, most: int | None = None) -> str:
    """Write a text as a string of the dot language, cut to so many characters."""
    text = text if most is None or len(text) <= most else text[: most - 1] + "…"
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _dot(cea: CEA, about: list[str]) -> str:
    lines = [
        "digraph CEA {",
        *CIRCLES,
        "  start [shape=point, style=invis, width=0];",
        "  start -> q0;",
        *about,
    ]
    for state in range(cea.states):
        shape = ", shape=doublecircle" if state in cea.finals else ""
        lines.append(f'  q{state} [label="q{state}"{shape}];')
    joined: dict[tuple[int, int], list[str]] = {}
    for t in cea.transitions:
        joined.setdefault((t.source, t.target), []).append(_label(cea, t))
    for (source, target), labels in joined.items():
        text = "\\n".join(labels)
        lines.append(f'  q{source} -> q{target} [label="{text}"];')
    return "\n".join([*lines, "}", ""])


def _steps(found: Steps, about: list[str]) -> str:
    """Steps as circles, the last ones doubled; an edge says what the two events ask of each other."""
    lines = [
        "digraph steps {",
        *CIRCLES,
        "  start [shape=point, style=invis, width=0];",
        *about,
    ]
    for number, step in enumerate(found.steps):
        names = ", ".join(sorted(step.labels - {step.guard.type}))
        shape = ", shape=doublecircle" if number in found.last else ""
        lines.append(f'  s{number} [label="{_short(f"{step.guard} {names}".strip())}"{shape}];')
    lines += [f"  start -> s{number};" for number in sorted(found.first)]
    for edge in found.edges:
        lines.append(f'  s{edge.source} -> s{edge.target} [label="{_short(edge.asked)}"];')
    return "\n".join([*lines, "}", ""])


def _label(cea: CEA, t: Transition) -> str:
    guard = cea.shown(t.guard)
    if len(guard) > 60:
        guard = guard[:59] + "…"
    names = sorted(t.labels - {cea.guards[t.guard].type}) if t.guard >= 0 else []
    mark = ("• " + ", ".join(names)).rstrip() if t.labels else "∘"
    return f"{guard} / {mark}".replace("\\", "\\\\").replace('"', '\\"')
