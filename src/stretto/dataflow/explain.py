"""Plans of dataflows as text and as pictures (FFP paper, figures 1, 3 and 4)."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from stretto.dataflow import plan
from stretto.dataflow.cycles import Cycle, cycles, ordered
from stretto.explaining.dot import Drawing, quoted
from stretto.explaining.text import section

Outputs = Mapping[str, plan.Stream]

#: Where what an operator does may be broken into lines, and how long those are.
_PARTS = re.compile("(?<=,) | (?=AND |OR )")
_WIDEST = 42


class _Plan:
    """A plan with what both forms show of it."""

    def __init__(self, outputs: Outputs) -> None:
        self.outputs = {name: output.node for name, output in outputs.items()}
        self.nodes = ordered(self.outputs.values())
        self.cycles = cycles(self.nodes)
        self.on_cycle = {id(node): cycle for cycle in self.cycles for node in cycle.nodes}
        read = [one for node in self.nodes for one in node.inputs] + list(self.outputs.values())
        self.readers = Counter(map(id, read))

    @property
    def sources(self) -> list[plan.Source]:
        """The inputs, each once."""
        return list({node.name: node for node in self.nodes if isinstance(node, plan.Source)}.values())

    def is_multicast(self, node: plan.Node) -> bool:
        """Whether several operators read a stream; a flying fixed point hands its stream to many by itself."""
        return self.readers[id(node)] > 1 and not isinstance(node, plan.Fixpoint | plan.Recursion)


def _columns(schema: plan.Row, *, typed: bool = False) -> str:
    return ", ".join(f"{name} {kind}" if typed else name for name, kind in schema.items())


# ---- text


def explained(outputs: Outputs) -> str:
    """Inputs, loops with the reason why they end, and for each output the operators that make it.

    Operators stand above their inputs; ``↻`` marks those on a loop. A stream that several operators read is written out once; after
    that it is named by its number.

    Parameters
    ----------
    outputs
        The streams that are wanted, by name.

    Examples
    --------
    >>> from stretto.dataflow import datalog
    >>> print(explained(datalog("far(X) :- road(X, _, C), C > 9.", {"road": {"src": str, "dst": str, "cost": int}})))
    inputs     road (src string, dst string, cost int64)
    far        (x string)
               Distinct
                 Project x := src
                   Select cost > 9
                     Source road
    """
    shown = _Plan(outputs)
    sections = [("inputs", "\n".join(_input(source) for source in shown.sources) or "none")]
    sections += [("loop", f"{cycle.name}: {_ending(cycle)}\n{_turning(cycle)}") for cycle in shown.cycles]
    numbers: dict[int, int] = {}
    for name, node in shown.outputs.items():
        lines = [f"({_columns(node.schema, typed=True)})", *_tree(node, shown, numbers)]
        sections.append((name, "\n".join(lines)))
    return "\n".join(section(title, body) if len(title) < 11 else _wide(title, body) for title, body in sections)


def _wide(title: str, body: str) -> str:
    """A section whose title has a line for itself."""
    return f"{title}\n{textwrap.indent(body, ' ' * 11)}"


def _input(source: plan.Source) -> str:
    only = "; insertions only" if source.insert_only else ""
    return f"{source.name} ({_columns(source.schema, typed=True)}){only}"


def _ending(cycle: Cycle) -> str:
    """Why a loop ends."""
    if cycle.bound is not None:
        return f"at most {cycle.bound} times around; more is an error"
    said = dict.fromkeys(loop.ends for loop in cycle.loops if loop.ends)
    if said and all(loop.ends for loop in cycle.loops):
        return f"ends, as {'; '.join(said)}"
    why = sorted({node.ending for node in cycle.nodes if node.ending})
    return f"ends, as {' and '.join(why)} and no operator computes new values"


def _turning(cycle: Cycle) -> str:
    """How rows go around."""
    if cycle.by_level:
        return "rows go around level by level, so that what is taken back is gone before anything follows from it anew"
    return "rows go around at once, in batches as they come"


def _tree(root: plan.Node, shown: _Plan, numbers: dict[int, int]) -> Iterator[str]:
    """An operator with what is below it, a line each; without recursion, as plans may be deep."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        mark = "↻ " if id(node) in shown.on_cycle else ""
        known = id(node) in numbers
        many = shown.is_multicast(node) or (isinstance(node, plan.Fixpoint) and shown.readers[id(node)] > 1)
        number = ""
        if many and not isinstance(node, plan.Source | plan.Constant):
            number = f" [{numbers.setdefault(id(node), len(numbers) + 1)}]"
        if known:
            number += ", as above"
        elif many:
            number += f", multicast to {shown.readers[id(node)]}"
        yield f"{'  ' * depth}{mark}{node.shown}{number}"
        if not known:
            stack += [(one, depth + 1) for one in reversed(node.inputs)]


# ---- pictures


def drawn(outputs: Outputs) -> Drawing:
    """The plan as a graph: inputs at the bottom, operators above what they read, each arrow with the columns that travel along it.

    A loop's arrows are dashed, as in figure 3 of the paper; its flying fixed point is a double octagon.

    Parameters
    ----------
    outputs
        The streams that are wanted, by name.
    """
    shown = _Plan(outputs)
    names = {id(node): f"n{number}" for number, node in enumerate(shown.nodes)}
    lines = [
        "digraph plan {",
        "  rankdir=BT;",
        '  node [shape=box, fontname="Helvetica", fontsize=11, height=0.3];',
        '  edge [fontname="Helvetica", fontsize=9, arrowsize=0.7];',
    ]
    for node in shown.nodes:
        if not isinstance(node, plan.Recursion):
            lines.append(f'  {names[id(node)]} [{_shape(node)}label="{_box(node)}"];')
            if shown.is_multicast(node):
                lines.append(f'  m{names[id(node)]} [label="Multicast"];')
                lines.append(_edge(names[id(node)], f"m{names[id(node)]}", node, shown, node))
    for node in shown.nodes:
        for one in node.inputs:
            lines.append(_edge(_tail(one, names, shown), names[id(node)], one, shown, node))
    for number, (name, node) in enumerate(shown.outputs.items()):
        lines.append(f'  o{number} [shape=plaintext, label="{quoted(name)}"];')
        lines.append(_edge(_tail(node, names, shown), f"o{number}", node, shown, None))
    lines += _ranks(shown, names)
    return Drawing("\n".join([*lines, "}", ""]))


def _tail(node: plan.Node, names: Mapping[int, str], shown: _Plan) -> str:
    """Where the arrows of a stream begin."""
    if isinstance(node, plan.Recursion):
        node = node.loop.fixpoints[node.index]
    return f"m{names[id(node)]}" if shown.is_multicast(node) else names[id(node)]


def _shape(node: plan.Node) -> str:
    return f"shape={node.shape}, " if node.shape else ""


def _box(node: plan.Node) -> str:
    """The kind of an operator, and below it what it does."""
    kind, _, rest = node.shown.partition(" ")
    if isinstance(node, plan.Source):
        return quoted(node.name)
    lines: list[str] = []
    for part in _PARTS.split(rest):
        if lines and len(lines[-1]) + len(part) < _WIDEST:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return "\\n".join(quoted(line, 60) for line in [kind, *lines[:5]])


def _edge(tail: str, head: str, node: plan.Node, shown: _Plan, reader: plan.Node | None) -> str:
    """An arrow from a stream's operator to a reader, dashed if both are on one loop."""
    cycle = shown.on_cycle.get(id(node))
    looped = cycle is not None and reader is not None and shown.on_cycle.get(id(reader)) is cycle
    style = "style=dashed, " if looped else ""
    # The arrow that closes the loop goes down.
    back = "constraint=false, " if isinstance(node, plan.Recursion) and looped else ""
    return f'  {tail} -> {head} [{style}{back}label="  {quoted(_columns(node.schema), 60)}"];'


def _ranks(shown: _Plan, names: Mapping[int, str]) -> Iterable[str]:
    """Inputs stand in one line at the bottom, outputs in one at the top."""
    bottom = [names[id(node)] for node in shown.nodes if node.shape == "plaintext"]
    for rank, members in (("min", bottom), ("max", [f"o{number}" for number in range(len(shown.outputs))])):
        if members:
            yield f"  {{ rank={rank}; {'; '.join(members)}; }}"
