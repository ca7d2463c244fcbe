"""A plan as running vertices: selections and projections are fused, windows stand where events come in, loops have fixed points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from stretto.dataflow import plan
from stretto.dataflow.checking import Cycle, cycles, ordered
from stretto.dataflow.operators.aggregate import Aggregate
from stretto.dataflow.operators.compute import Compute
from stretto.dataflow.operators.difference import Difference
from stretto.dataflow.operators.distinct import Distinct
from stretto.dataflow.operators.join import Join
from stretto.dataflow.operators.lifetime import Alter, Window, changes
from stretto.dataflow.operators.multicast import Multicast
from stretto.dataflow.operators.operator import Operator, places
from stretto.dataflow.operators.union import Union
from stretto.dataflow.run.code import Program
from stretto.dataflow.run.events import Inputs, Outputs
from stretto.dataflow.run.fixpoint import FixpointVertex, FlyingFixpoint, Pass
from stretto.dataflow.run.history import last_end
from stretto.dataflow.run.levels import BITS, Scope
from stretto.dataflow.run.messages import Data, Definite
from stretto.dataflow.run.rows import EVER, FOREVER, NEVER, PAYLOAD, VE, VS, WEIGHT, Rows, empty
from stretto.dataflow.run.values import Strings, words
from stretto.dataflow.run.vertex import Vertex
from stretto.errors import OptionError

__all__ = ["Graph", "Input", "Output"]


class Input:
    """An external input: its events, and a view of them for each chain of windows."""

    def __init__(self, source: plan.Source) -> None:
        self.source = source
        self.width = PAYLOAD + len(source.schema)
        self.events = None if source.insert_only else Inputs(self.width)
        self.views: dict[tuple[Window, ...], Vertex] = {}
        self.definite = NEVER

    def push(self, events: Rows) -> None:
        """Events that were found right."""
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


class Output(Vertex):
    """What is collected of a stream until it is asked for."""

    def __init__(self, number: int, name: str, node: plan.Node, *, grows: bool) -> None:
        width = PAYLOAD + len(node.schema)
        super().__init__(number, Pass(f"output {name}", 1, width))
        self.node = node
        self.events = Outputs(width, grows=grows)
        self.collected: list[Rows] = []

    def data(self, port: int, rows: Rows) -> None:
        self.collected.append(rows)

    def definite(self, port: int, time: int) -> None:
        self.promised = max(self.promised, time)

    @property
    def ends(self) -> int:
        if self.collected or len(self.events.owed):
            return FOREVER
        return max(super().ends, last_end(self.events.index.held))

    def take(self) -> Rows:
        """The changes since the last call."""
        found = np.concatenate(self.collected) if self.collected else empty(self.operator.width)
        self.collected = []
        return found

    def drain(self) -> Rows:
        """The changes since the last call as events."""
        found = self.events.events(self.take()) if self.collected else empty(self.operator.width)
        self.events.forget(self.promised)
        return found


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
        for name, node in outputs.items():
            output = Output(len(self.vertices), name, node, grows=self._grows())
            self.outputs[name] = output
            self.vertices.append(output)
            self._connect(node, output, 0)
        views = [view for own in self.inputs.values() for view in own.views.values()]
        self.vertices = views + [vertex for vertex in self.vertices if vertex not in views]
        for number, vertex in enumerate(self.vertices):
            vertex.number = number
        for flying in self.flying:
            flying.members = [vertex for vertex in self.vertices if vertex.loop is flying]

    def _grows(self) -> bool:
        """Whether nothing is ever taken back."""
        revises = (plan.Aggregate, plan.Difference, plan.Recognize)
        return not any(
            isinstance(node, revises) or (isinstance(node, plan.Source) and not node.insert_only) for node in self.nodes
        )

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
            if isinstance(node, plan.Where | plan.Project | plan.Lifetime):
                below = node.input
                if isinstance(below, plan.Where | plan.Project) and self._readers[id(below)] == 1:
                    wanted.add(id(below))
        return wanted

    def _make(self, node: plan.Node) -> None:
        if id(node) in self._fused:
            return
        match node:
            case plan.Source():
                self._source(node)
            case plan.Where() | plan.Project() | plan.Lifetime():
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
                self._connect(node.inputs[0], self._add(node, Vertex(len(self.vertices), _pass(node))), 0)
            case _:
                vertex = self._add(node, Vertex(len(self.vertices), self._operator(node)))
                for port, one in enumerate(node.inputs):
                    self._connect(one, vertex, port)
                if isinstance(node, plan.Join) and node.where is not None:
                    self._filter(node, vertex)

    def _operator(self, node: plan.Node) -> Operator:
        width = PAYLOAD + len(node.schema)
        match node:
            case plan.Union():
                return Union(node.label, len(node.parts), width)
            case plan.Distinct():
                return Distinct(node.label, width)
            case plan.Aggregate():
                return Aggregate(node.label, node.input.schema, node.by, node.items)
            case plan.Join():
                widths = (PAYLOAD + len(node.left.schema), PAYLOAD + len(node.right.schema))
                taken = places(list(node.right.schema), [name for name, _ in node.names], PAYLOAD)
                return Join(node.label, widths, _keys(node), taken)
            case plan.Difference():
                return Difference(node.label, width, _keys(node))
            case plan.Recognize():
                from stretto.dataflow.operators.recognize import Recognizer

                return Recognizer(node, self.strings)
        raise AssertionError(node)

    def _source(self, node: plan.Source) -> None:
        known = self.inputs.get(node.name)
        if known is None:
            self.inputs[node.name] = Input(node)
        elif dict(known.source.schema) != dict(node.schema) or known.source.insert_only != node.insert_only:
            raise OptionError(f"two different inputs are named '{node.name}'; define the stream once and use it twice")

    def _constant(self, node: plan.Constant) -> None:
        """Rows that are there from the beginning, and that nothing changes."""
        vertex = self._add(node, Vertex(len(self.vertices), Pass("Constant", 1, PAYLOAD + len(node.schema))))
        rows = np.zeros((len(node.rows), PAYLOAD + len(node.schema)), np.int64)
        rows[:, VS], rows[:, VE], rows[:, WEIGHT] = EVER, FOREVER, 1
        for at, kind in enumerate(node.schema.values()):
            column = pa.array([row[at] for row in node.rows], kind)
            rows[:, PAYLOAD + at] = words(column, kind, self.strings)
        vertex.accept(0, Data(rows))
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
        steps: list[plan.Node] = []
        windows: list[Window] = []
        at: plan.Node = node
        while True:
            if isinstance(at, plan.Lifetime):
                windows.insert(0, (at.duration, at.every))
            elif isinstance(at, plan.Where | plan.Project) and (at is node or id(at) in self._fused or windows):
                steps.insert(0, at)
            else:
                break
            at = at.input
        base = self._view(at, tuple(windows)) if isinstance(at, plan.Source) else None
        if windows and base is None:
            assert isinstance(at, plan.Recognize)
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

    def _filter(self, node: plan.Join, join: Vertex) -> None:
        """A join's condition, behind it."""
        assert node.where is not None
        step = plan.Where(node.schema, node, node.where)
        program = Program(node.schema, [step], self.strings)
        vertex = Vertex(len(self.vertices), Compute(step.label, program))
        vertex.loop, vertex.scope = join.loop, join.scope
        self._made[id(node)] = vertex
        self.vertices.append(vertex)
        _link(join, vertex, 0)

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
                vertex.recursive.outside.append((reader, port))


def _pass(node: plan.Node) -> Operator:
    return Pass(node.label, 1, PAYLOAD + len(node.schema))


def _link(vertex: Vertex, reader: Vertex, port: int) -> None:
    if vertex.loop is not None and vertex.loop is reader.loop:
        _loop(vertex, vertex.out, reader, port)
    else:
        vertex.out.outside.append((reader, port))


def _loop(vertex: Vertex, out: Multicast, reader: Vertex, port: int) -> None:
    """Let a vertex of the same loop read."""
    out.inside.append((reader, port))
    reader.looped.add(port)
    assert vertex.loop is not None
    ranks = vertex.scope.ranks
    if reader.scope.ranks[: len(ranks)] != ranks:
        reader.masks[port] = vertex.scope.mask(reader.scope, vertex.loop.bits)


def _keys(node: plan.Join | plan.Difference) -> tuple[Rows, Rows]:
    sides: Sequence[tuple[list[str], list[str]]] = (
        (list(node.left.schema), [left for left, _ in node.on]),
        (list(node.right.schema), [right for _, right in node.on]),
    )
    left, right = (places(names, chosen, PAYLOAD) for names, chosen in sides)
    return left, right
