"""Plans as JSON text: how they travel to other processes. Conditions and values are text of :mod:`stretto.languages.relational`.

The text is an object with ``version``, ``nodes``, ``loops`` and ``outputs``. A node has its operator (``op``), the numbers of the
nodes that it reads, and what else the operator needs; columns have the names of Arrow types. The columns that follow from the inputs
are not written, and everything is checked again when it is read.

>>> from stretto.dataflow import stream
>>> roads = stream("roads", {"src": str, "cost": int})
>>> text = to_json({"cheap": roads.where("cost < 10")})
>>> from_json(text)
{'cheap': Stream(src: string, cost: int64)}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

import pyarrow as pa

from stretto.dataflow import plan
from stretto.dataflow.cycles import loops_of, ordered_with_loops
from stretto.dataflow.json_values import columns, read_columns
from stretto.errors import OptionError, StrettoError
from stretto.matching.compiled import Query
from stretto.query import functions
from stretto.query import predicate as p

VERSION = 1


def to_json(outputs: Mapping[str, plan.Stream]) -> str:
    """Streams, with the plan that makes them, as JSON text.

    Parameters
    ----------
    outputs
        Streams by name.

    Raises
    ------
    OptionError
        Something in the plan is Python code of this process, which does not travel: an AFA, a registered function that has no path.
        Whoever reads the text registers the functions that it calls before.
    """
    return travelling(outputs)[0]


def travelling(outputs: Mapping[str, plan.Stream]) -> tuple[str, functions.Paths]:
    """Do what :func:`to_json` does, with the registered functions that the plan calls, by their paths."""
    nodes = ordered_with_loops([output.node for output in outputs.values()])
    called = functions.paths(name for node in nodes for value in vars(node).values() for name in _calls(value))
    return json.dumps(_Writer(nodes).written(outputs), ensure_ascii=False), called


def _calls(value: Any) -> Iterator[str]:
    """The functions called in what a node holds: conditions, values, queries, and collections and parts that have some."""
    if isinstance(value, p.Expression):
        yield from (call.name for call in p.calls(value))
    elif isinstance(value, Query):
        yield from value.calls
    elif isinstance(value, Mapping | tuple | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _calls(one)
    elif is_dataclass(value) and not isinstance(value, plan.Node | type):
        for one in vars(value).values():
            yield from _calls(one)


def from_json(text: str) -> dict[str, plan.Stream]:
    """The streams that :func:`to_json` wrote.

    Raises
    ------
    OptionError, QueryError
        The text is no plan, or one of another version; or a text in it does not fit.
    """
    try:
        written = json.loads(text)
        version = written["version"]
    except (ValueError, TypeError, KeyError) as error:
        raise OptionError("the text is no plan of stretto: it is no JSON object with a version") from error
    if version != VERSION:
        raise OptionError(
            f"the plan has version {version}, and this stretto reads version {VERSION}: upgrade the older one"
        )
    try:
        return _Reader(written).streams()
    except StrettoError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        raise OptionError(f"the plan is damaged: {error.__class__.__name__}: {error}") from error


# -- writing ----------------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(self, nodes: Sequence[plan.Node]) -> None:
        # What a node puts before itself it does again when it is read.
        hidden = {id(one) for node in nodes for one in node.inputs if one not in node.given}
        self.nodes = [node for node in nodes if id(node) not in hidden]
        self.number = {id(node): at for at, node in enumerate(self.nodes)}
        self.loops = loops_of(nodes)
        self.loop_number = {id(loop): at for at, loop in enumerate(self.loops)}

    def written(self, outputs: Mapping[str, plan.Stream]) -> dict[str, Any]:
        return {
            "version": VERSION,
            "nodes": [self._node(node) for node in self.nodes],
            "loops": [
                {
                    "name": loop.name,
                    "bound": loop.bound,
                    "ends": loop.ends,
                    "bodies": [self.number[id(body)] for body in loop.bodies],
                }
                for loop in self.loops
            ],
            "outputs": {name: self.number[id(output.node)] for name, output in outputs.items()},
        }

    def _node(self, node: plan.Node) -> dict[str, Any]:
        written: dict[str, Any] = {"op": type(node).__name__.lower()}
        if isinstance(node, plan.Fixpoint | plan.Recursion):
            loop = {"loop": self.loop_number[id(node.loop)], "index": node.index}
            if isinstance(node, plan.Fixpoint):
                return written | loop
            return written | {"inputs": []} | loop | {"columns": columns(node.schema)}
        return written | {"inputs": [self.number[id(one)] for one in node.given]} | node.written()


# -- reading ----------------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, written: Mapping[str, Any]) -> None:
        self.written = written
        self.nodes: list[plan.Node] = []
        self.loops = [plan.Loop(one["name"], one["bound"], ends=one["ends"]) for one in written["loops"]]
        self.parts: list[tuple[dict[int, plan.Recursion], dict[int, plan.Fixpoint]]] = [({}, {}) for _ in self.loops]

    def streams(self) -> dict[str, plan.Stream]:
        # Fixed points read nodes that come behind them; their columns are those of the loop's variables.
        schemas = {
            (one["loop"], one["index"]): read_columns(one["columns"])
            for one in self.written["nodes"]
            if one["op"] == "recursion"
        }
        for number, one in enumerate(self.written["nodes"]):
            if one["op"] == "fixpoint":
                loop, index = one["loop"], one["index"]
                fixed = self.parts[loop][1][index] = plan.Fixpoint(schemas[loop, index], self.loops[loop], index)
                self.nodes.append(fixed)
            elif one["op"] == "recursion":
                loop, index = one["loop"], one["index"]
                again = self.parts[loop][0][index] = plan.Recursion(schemas[loop, index], self.loops[loop], index)
                self.nodes.append(again)
            else:
                self.nodes.append(_node(one, [self._input(at, number) for at in one["inputs"]]))
        for loop, (variables, fixpoints), one in zip(self.loops, self.parts, self.written["loops"], strict=True):
            places = range(len(one["bodies"]))
            loop.variables = tuple(variables[at] for at in places)
            loop.bodies = tuple(self.nodes[at] for at in one["bodies"])
            loop.fixpoints = tuple(fixpoints[at] for at in places)
            for variable, body in zip(loop.variables, loop.bodies, strict=True):
                if list(variable.schema.items()) != list(body.schema.items()):
                    raise ValueError(f"a relation of the loop '{loop.name}' and its query have other columns")
        return {name: plan.Stream(self.nodes[at]) for name, at in self.written["outputs"].items()}

    def _input(self, at: int, number: int) -> plan.Node:
        if not 0 <= at < number:
            raise ValueError(f"node {number} reads node {at}, which does not come before it")
        return self.nodes[at]


_OPERATORS = {node.__name__.lower(): node for node in plan.OPERATORS}


def _node(written: Mapping[str, Any], inputs: list[plan.Node]) -> plan.Node:
    if written["op"] not in _OPERATORS:
        raise ValueError(f"there is no operator '{written['op']}'")
    return _OPERATORS[written["op"]].read(written, inputs)
