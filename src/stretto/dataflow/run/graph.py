"""A plan as running vertices: selections and projections are fused, windows stand where events come in, loops have fixed points.

Who works next: vertices take turns in the order from the inputs to the outputs, each until it has nothing to do.

So a wave of changes goes through all operators before any of it goes around again, batches stay as large as they can be, and nobody
waits for a loop to come to rest: not the outputs, and not what came in meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from stretto.array_types import I64
from stretto.dataflow import plan
from stretto.dataflow.cycles import Cycle, cycles, ordered
from stretto.dataflow.operators.compute import Compute
from stretto.dataflow.operators.lifetime import Alter, Window, changes
from stretto.dataflow.operators.operator import Pass
from stretto.dataflow.run.code import Program, Step
from stretto.dataflow.run.events import Inputs, Outputs
from stretto.dataflow.run.fixpoint import FixpointVertex, FlyingFixpoint
from stretto.dataflow.run.history import last_end
from stretto.dataflow.run.levels import BITS, Scope
from stretto.dataflow.run.rows import NEVER, PAYLOAD, empty
from stretto.dataflow.run.values import Strings, checked_time, rows_of
from stretto.dataflow.run.vertex import Data, Definite, Multicast, Vertex
from stretto.errors import OptionError
from stretto.frame import Section
from stretto.times import FOREVER


def step(graph: Graph) -> bool:
    """Let one vertex take one batch, or one loop go to its next level; whether there was anything to do."""
    vertices = graph.vertices
    count = len(vertices)
    for ahead in range(count):
        at = (graph.turn + ahead) % count
        vertex = vertices[at]
        loop = vertex.loop
        if loop is not None and loop.waits and not vertex.has_data:
            # No data is under way in the loop; the next level goes around ahead of a speculative punctuation.
            graph.turn = loop.members[0].number
            loop.release()
            return True
        if vertex.waits:
            graph.turn = at
            vertex.step()
            return True
    # Before that, probing would keep the others from their work.
    return sum(flying.poll() for flying in graph.flying) > 0


class Input:
    """An external input: its events, and a view of them for each chain of windows."""

    def __init__(self, source: plan.Source) -> None:
        self.source = source
        self.width = PAYLOAD + len(source.schema)
        self.events = None if source.insert_only else Inputs(self.width)
        self.views: dict[tuple[Window, ...], Vertex] = {}
        self.definite = NEVER

    def push(self, events: I64) -> None:
        """Hand events, which were found right, to the views."""
        for windows, vertex in self.views.items():
            vertex.accept(0, Data(changes(events, windows)))

    def punctuate(self, time: int) -> None:
        """No later event begins, and no later retraction ends, before ``time``."""
        self.definite = time
        if self.events is not None:
            self.events.forget(time)
        for vertex in self.views.values():
            vertex.accept(0, Definite(time))

    @property
    def ends(self) -> int:
        """When the last event ends that can still be retracted."""
        return NEVER if self.events is None else last_end(self.events.index.held)

    def save(self, section: Section) -> None:
        """Write how far it is, and its events."""
        section.values["definite"] = self.definite
        if self.events is not None:
            section.arrays["events"] = self.events.index.held

    def load(self, section: Section) -> None:
        """Take what :meth:`save` wrote."""
        self.definite = checked_time(section.values["definite"])
        if self.events is not None:
            index = self.events.index
            index.load(rows_of(section, "events", index.rows.shape[1]))


class Output(Vertex):
    """What is collected of a stream until it is asked for."""

    def __init__(self, number: int, name: str, node: plan.Node, *, grows: bool) -> None:
        width = PAYLOAD + len(node.schema)
        super().__init__(number, Pass(f"output {name}", 1, width))
        self.node = node
        self.events = Outputs(width, grows=grows)
        self.collected: list[I64] = []

    def data(self, port: int, rows: I64) -> None:
        self.collected.append(rows)

    def definite(self, port: int, time: int) -> None:
        self.promised = max(self.promised, time)

    @property
    def ends(self) -> int:
        if self.collected or len(self.events.owed):
            return FOREVER
        return max(super().ends, last_end(self.events.index.held))

    def take(self) -> I64:
        """The changes since the last call."""
        found = np.concatenate(self.collected) if self.collected else empty(self.operator.width)
        self.collected = []
        return found

    def drain(self) -> I64:
        """The changes since the last call as events."""
        found = self.events.events(self.take()) if self.collected else empty(self.operator.width)
        self.events.forget(self.promised)
        return found

    def save(self, section: Section) -> None:
        super().save(section)
        section.arrays |= {"events": self.events.index.held, "owed": self.events.owed}
        section.values["collected"] = len(self.collected)
        section.arrays |= {f"collected.{at}": rows for at, rows in enumerate(self.collected)}

    def load(self, section: Section) -> None:
        super().load(section)
        self.events.index.load(self.kept(section, "events"))
        self.events.owed = self.kept(section, "owed")
        self.collected = [self.kept(section, f"collected.{at}") for at in range(section.count("collected"))]


class Graph:
    """A running plan.

    Parameters
    ----------
    outputs
        The nodes that are wanted, by name.
    mode
        How loops speculate.
    strings
        The dictionary of strings.
    """

    def __init__(self, outputs: Mapping[str, plan.Node], mode: str, strings: Strings) -> None:
        self.mode = mode
        self.strings = strings
        self.inputs: dict[str, Input] = {}
        self.vertices: list[Vertex] = []
        self.outputs: dict[str, Output] = {}
        self.flying: list[FlyingFixpoint] = []
        self.turn = 0  #: the vertex whose turn it is
        self.nodes = ordered(outputs.values())
        self.cycles = cycles(self.nodes)
        self._cycle = {id(node): cycle for cycle in self.cycles for node in cycle.nodes}
        self._flying = {id(cycle): self._fly(cycle) for cycle in self.cycles}
        self._scopes: dict[int, Scope] = {}
        for cycle in self.cycles:
            self._nest(cycle, (0,), cycle.depth if cycle.nests else 1)
        read = [one for node in self.nodes for one in node.inputs] + list(outputs.values())
        self._readers = Counter(map(id, read))
        #: The readers of each recursion, by the node that will feed them.
        self._recursive: dict[int, list[tuple[Vertex, int]]] = {}
        self._made: dict[int, Vertex] = {}
        self._fused = self._fusable()
        for node in self.nodes:
            self._make(node)
        for node in self.nodes:
            if isinstance(node, plan.Fixpoint):
                self._close(node)
        grows = not any(node.takes_back for node in self.nodes)
        for name, node in outputs.items():
            output = Output(len(self.vertices), name, node, grows=grows)
            self.outputs[name] = output
            self.vertices.append(output)
            self._connect(node, output, 0)
        views = [view for own in self.inputs.values() for view in own.views.values()]
        self.vertices = views + [vertex for vertex in self.vertices if vertex not in views]
        for number, vertex in enumerate(self.vertices):
            vertex.number = number
        for flying in self.flying:
            flying.members = [vertex for vertex in self.vertices if vertex.loop is flying]

    # -- state --------------------------------------------------------------------------------------------------------

    @property
    def identity(self) -> list[str]:
        """What makes two plans the same: their vertices with types and readers."""
        lines = [f"speculation {self.mode}"]
        lines += [f"{flying.name}: levels of {flying.bits} bits" for flying in self.flying if flying.bits != BITS]
        for name, own in self.inputs.items():
            lines.append(f"{name}: {_typed(own.source.schema)}{' insert_only' if own.source.insert_only else ''}")
        for vertex in self.vertices:
            readers = [*vertex.out.inside, *vertex.out.outside]
            if isinstance(vertex, FixpointVertex):
                readers += [*vertex.recursive.inside, *vertex.recursive.outside]
            shown = ", ".join(f"{reader.number}.{port}" for reader, port in readers)
            lines.append(f"{vertex.number} {vertex.label} -> {shown}")
        return lines + [f"{name}: {_typed(output.node.schema)}" for name, output in self.outputs.items()]

    def sections(self, section: Section) -> Iterator[tuple[Input | Vertex | FlyingFixpoint, Section]]:
        """What has a state, each with its section."""
        yield from ((own, section.sub(f"input{at}")) for at, own in enumerate(self.inputs.values()))
        yield from ((vertex, section.sub(f"{vertex.number}")) for vertex in self.vertices)
        yield from ((flying, section.sub(f"loop{at}")) for at, flying in enumerate(self.flying))

    # -- loops --------------------------------------------------------------------------------------------------------

    def _fly(self, cycle: Cycle) -> FlyingFixpoint:
        bits = BITS // (cycle.depth if cycle.nests else 1)
        made = FlyingFixpoint(cycle.name, self.mode, by_level=cycle.by_level, bits=bits)
        self.flying.append(made)
        return made

    def _nest(self, cycle: Cycle, ranks: tuple[int, ...], depth: int) -> None:
        """Note which loops the nodes of a cycle stand in."""
        outermost = cycle.outermost
        for node in cycle.nodes:
            turns = depth == 1 or (isinstance(node, plan.Fixpoint) and node.loop is outermost)
            self._scopes[id(node)] = Scope(depth, ranks, turns)
        if depth > 1:
            for rank, inner in enumerate(cycle.inner):
                self._nest(inner, (*ranks, rank), depth)

    # -- nodes --------------------------------------------------------------------------------------------------------

    def _fusable(self) -> set[int]:
        """Selections and projections that only another one reads: they are part of its pass."""
        wanted = set()
        for node in self.nodes:
            if isinstance(node, Step | plan.Lifetime):
                below = node.input
                if isinstance(below, Step) and self._readers[id(below)] == 1:
                    wanted.add(id(below))
        return wanted

    def _make(self, node: plan.Node) -> None:
        if id(node) in self._fused:
            return
        match node:
            case plan.Source():
                self._source(node)
            case Step() | plan.Lifetime():
                self._chain(node)
            case plan.Constant():
                self._constant(node)
            case plan.Recursion():
                pass  # its readers are those of its flying fixed point
            case plan.Fixpoint() if id(node) in self._cycle:
                cycle = self._cycle[id(node)]
                width, scope, bound = PAYLOAD + len(node.schema), self._scopes[id(node)], cycle.bound_of(node.loop)
                label, flying = f"FFP {node.loop.name}", self._flying[id(cycle)]
                self._add(node, FixpointVertex(len(self.vertices), label, width, flying, scope, bound))
                self._connect(node.inputs[0], self._made[id(node)], 0)
            case plan.Fixpoint():
                # One of a loop's relations that is not recursive, whatever else depends on it.
                self._connect(node.inputs[0], self._add(node, Vertex(len(self.vertices), _pass(node, node.label))), 0)
            case _:
                vertex = self._add(node, Vertex(len(self.vertices), node.operator(self.strings)))
                for port, one in enumerate(node.inputs):
                    self._connect(one, vertex, port)
                if isinstance(node.behind, Step):
                    self._put_behind(node, vertex, node.behind)

    def _source(self, node: plan.Source) -> None:
        known = self.inputs.get(node.name)
        if known is None:
            self.inputs[node.name] = Input(node)
        elif dict(known.source.schema) != dict(node.schema) or known.source.insert_only != node.insert_only:
            raise OptionError(f"two different inputs are named '{node.name}'; define the stream once and use it twice")

    def _constant(self, node: plan.Constant) -> None:
        """I64 that are there from the beginning, and that nothing changes."""
        vertex = self._add(node, Vertex(len(self.vertices), _pass(node, "Constant")))
        vertex.accept(0, Data(node.changes(self.strings)))
        vertex.accept(0, Definite(FOREVER))

    def _view(self, source: plan.Source, windows: tuple[Window, ...]) -> Vertex:
        """The vertex of an input's events under windows."""
        own = self.inputs[source.name]
        if windows not in own.views:
            vertex = Vertex(len(self.vertices), Pass(source.label, 1, own.width))
            self.vertices.append(vertex)
            own.views[windows] = vertex
        return own.views[windows]

    def _chain(self, node: plan.Node) -> None:
        """Selections and projections in one pass, on events whose windows were applied before."""
        steps: list[Step] = []
        windows: list[Window] = []
        at: plan.Node = node
        while True:
            if isinstance(at, plan.Lifetime):
                windows.insert(0, (at.duration, at.every))
            elif isinstance(at, Step) and (at is node or id(at) in self._fused or windows):
                steps.insert(0, at)
            else:
                break
            at = at.input
        base = self._view(at, tuple(windows)) if isinstance(at, plan.Source) else None
        if windows and base is None:
            base = Vertex(len(self.vertices), Alter("AlterLifetime", PAYLOAD + len(at.schema), windows))
            self.vertices.append(base)
            self._connect(at, base, 0)
        if not steps:
            assert base is not None
            self._made[id(node)] = base
            return
        label = " / ".join(step.label for step in steps)
        vertex = self._add(node, Vertex(len(self.vertices), Compute(label, Program(at.schema, steps, self.strings))))
        if base is not None:
            _link(base, vertex, 0)
        else:
            self._connect(at, vertex, 0)

    def _put_behind(self, node: plan.Node, first: Vertex, step: Step) -> None:
        """A step that is part of a node, behind its operator."""
        vertex = Vertex(len(self.vertices), Compute(step.label, Program(node.schema, [step], self.strings)))
        vertex.loop, vertex.scope = first.loop, first.scope
        self._made[id(node)] = vertex
        self.vertices.append(vertex)
        _link(first, vertex, 0)

    def _add(self, node: plan.Node, vertex: Vertex) -> Vertex:
        cycle = self._cycle.get(id(node))
        if cycle is not None:
            vertex.loop = self._flying[id(cycle)]
            vertex.scope = self._scopes[id(node)]
            if vertex.loop.bits != BITS:
                vertex.operator.nest(vertex.loop.bits)
        self.vertices.append(vertex)
        self._made[id(node)] = vertex
        return vertex

    # -- edges --------------------------------------------------------------------------------------------------------

    def _connect(self, node: plan.Node, reader: Vertex, port: int) -> None:
        """Let a vertex read a node's stream."""
        if isinstance(node, plan.Recursion):
            self._recursive.setdefault(id(node.loop.fixpoints[node.index]), []).append((reader, port))
            return
        if isinstance(node, plan.Source):
            _link(self._view(node, ()), reader, port)
            return
        _link(self._made[id(node)], reader, port)

    def _close(self, node: plan.Fixpoint) -> None:
        """Close the loop: the readers of a recursion are fed by its flying fixed point."""
        vertex = self._made[id(node)]
        for reader, port in self._recursive.get(id(node), []):
            if not isinstance(vertex, FixpointVertex):
                _link(vertex, reader, port)
            elif reader.loop is vertex.loop:
                _loop(vertex, vertex.recursive, reader, port)
            else:
                reader.widths[port] = vertex.operator.width
                vertex.recursive.outside.append((reader, port))


def _typed(row: plan.Row) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in row.items())


def _pass(node: plan.Node, label: str) -> Pass:
    return Pass(label, 1, PAYLOAD + len(node.schema))


def _link(vertex: Vertex, reader: Vertex, port: int) -> None:
    reader.widths[port] = vertex.operator.width
    if vertex.loop is not None and vertex.loop is reader.loop:
        _loop(vertex, vertex.out, reader, port)
    else:
        vertex.out.outside.append((reader, port))


def _loop(vertex: Vertex, out: Multicast, reader: Vertex, port: int) -> None:
    """Let a vertex of the same loop read."""
    reader.widths[port] = vertex.operator.width
    out.inside.append((reader, port))
    reader.looped.add(port)
    assert vertex.loop is not None
    ranks = vertex.scope.ranks
    if reader.scope.ranks[: len(ranks)] != ranks:
        reader.masks[port] = vertex.scope.mask(reader.scope, vertex.loop.bits)
