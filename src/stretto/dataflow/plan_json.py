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

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from stretto.dataflow import plan
from stretto.dataflow.checking import loops_of, ordered_with_loops
from stretto.dataflow.operators.recognize import recognized
from stretto.dataflow.stream import Stream
from stretto.errors import OptionError, StrettoError
from stretto.languages.relational import read_condition, read_value
from stretto.matching.compiled import Query, compile_query
from stretto.query import predicate as p
from stretto.query.sase import SaseQuery
from stretto.query.typing import kind_of

__all__ = ["VERSION", "from_json", "to_json"]

VERSION = 1

Row = Mapping[str, pa.DataType]


def to_json(outputs: Mapping[str, Stream]) -> str:
    """Streams, with the plan that makes them, as JSON text.

    Parameters
    ----------
    outputs
        Streams by name.

    Raises
    ------
    OptionError
        Something in the plan is Python code, which does not travel: a registered function, an AFA.
    """
    return json.dumps(_Writer([one.node for one in outputs.values()]).written(outputs), ensure_ascii=False)


def from_json(text: str) -> dict[str, Stream]:
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
    def __init__(self, outputs: Iterable[plan.Node]) -> None:
        nodes = ordered_with_loops(list(outputs))
        # A matcher makes the window before it by itself.
        hidden = {id(node.input) for node in nodes if isinstance(node, plan.Recognize)}
        self.nodes = [node for node in nodes if id(node) not in hidden]
        self.number = {id(node): at for at, node in enumerate(self.nodes)}
        self.loops = loops_of(nodes)
        self.loop_number = {id(loop): at for at, loop in enumerate(self.loops)}

    def written(self, outputs: Mapping[str, Stream]) -> dict[str, Any]:
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
            "outputs": {name: self.number[id(one.node)] for name, one in outputs.items()},
        }

    def _node(self, node: plan.Node) -> dict[str, Any]:
        written: dict[str, Any] = {"op": type(node).__name__.lower()}
        if isinstance(node, plan.Recognize):
            written["inputs"] = [self.number[id(one)] for one in node.input.inputs]
        elif not isinstance(node, plan.Fixpoint):
            written["inputs"] = [self.number[id(one)] for one in node.inputs]
        match node:
            case plan.Source():
                written |= {"name": node.name, "insert_only": node.insert_only, "columns": _columns(node.schema)}
            case plan.Constant():
                rows = [list(map(_plain, row)) for row in node.rows]
                written |= {"columns": _columns(node.schema), "rows": rows}
            case plan.Lifetime():
                written |= {"duration": node.duration, "every": node.every}
            case plan.Where():
                written["condition"] = _text(node.condition, node, node.input.schema)
            case plan.Project():
                values = [[name, _value(value, node, node.input.schema)] for name, value in node.values]
                written |= {"values": values, "columns": _columns(node.schema)}
            case plan.Join():
                written |= {"on": [list(pair) for pair in node.on], "names": [list(pair) for pair in node.names]}
                written["where"] = None if node.where is None else _text(node.where, node, node.schema)
            case plan.Aggregate():
                written["by"] = list(node.by)
                written["items"] = [[item.name, item.function, item.column] for item in node.items]
            case plan.Difference():
                written["on"] = [list(pair) for pair in node.on]
            case plan.Recognize():
                written |= _pattern(node)
            case plan.Recursion() | plan.Fixpoint():
                written |= {"loop": self.loop_number[id(node.loop)], "index": node.index}
                if isinstance(node, plan.Recursion):
                    written["columns"] = _columns(node.schema)
        return written


def _columns(row: Row) -> dict[str, str]:
    return {name: str(kind) for name, kind in row.items()}


def _plain(value: Any) -> Any:
    """A constant as JSON has it; what JSON lacks is an object that names its kind."""
    match value:
        case float() if not math.isfinite(value):
            return {"float": str(value)}
        case dt.datetime() | dt.date():
            return {"time": value.isoformat()}
        case bool() | int() | float() | str():
            return value
    raise OptionError(f"the plan has the constant {value!r}, which JSON cannot say")


def _value(value: p.Operand, node: plan.Node, row: Row) -> Any:
    """A computed value as text; a constant as an object, because as a text it would be a column."""
    return {"constant": _plain(value.value)} if isinstance(value, p.Constant) else _text(value, node, row)


def _text(expression: p.Expression, node: plan.Node, row: Row) -> str:
    """An expression as text that means the same when it is read."""
    if called := p.calls(expression):
        raise OptionError(
            f"{node.label}: the function '{called[0].name}' is registered in this process, and Python code does not travel: "
            "compute a column with it before"
        )
    text = str(expression)
    read: Callable[[str, Row], p.Expression] = read_value if isinstance(expression, p.Operand) else read_condition
    try:
        same = str(read(text, row)) == text
    except StrettoError as error:
        raise OptionError(f"{node.label}: this does not travel, as it cannot be read again: {error}") from error
    if not same:
        raise OptionError(f"{node.label}: this does not travel, as its text has another meaning: {text}")
    return text


def _pattern(node: plan.Recognize) -> dict[str, Any]:
    pattern = node.pattern
    if not isinstance(pattern, Query):
        raise OptionError(
            f"{node.label}: an AFA is built by Python code, which does not travel: write the pattern as a query"
        )
    parsed = pattern.parsed
    called = p.calls(parsed.condition) if isinstance(parsed, SaseQuery) and parsed.condition is not None else []
    if called:
        raise OptionError(
            f"{node.label}: the function '{called[0].name}' is registered in this process, and Python code does not travel"
        )
    for name, value in node.options.items():
        if not isinstance(value, str | int | float | bool | None):
            raise OptionError(
                f"{node.label}: the option {name}={value!r} does not travel: it is no text, number or truth value"
            )
    return {"text": pattern.text, "language": pattern.language, "options": dict(node.options)}


# -- reading ----------------------------------------------------------------------------------------------------------

_ZONED = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=(.+))?\]")

_KINDS = {str(kind): kind for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.date32(), pa.date64())}


def _kind(text: str) -> pa.DataType:
    """The Arrow type of a name; those that a payload can have."""
    if text in _KINDS:
        return _KINDS[text]
    zoned = _ZONED.fullmatch(text)
    if zoned is None:
        raise ValueError(f"'{text}' is no type of a payload")
    return pa.timestamp(zoned[1], zoned[2])


class _Reader:
    def __init__(self, written: Mapping[str, Any]) -> None:
        self.written = written
        self.nodes: list[plan.Node] = []
        self.loops = [plan.Loop(one["name"], one["bound"], ends=one["ends"]) for one in written["loops"]]
        self.parts: list[tuple[dict[int, plan.Recursion], dict[int, plan.Fixpoint]]] = [({}, {}) for _ in self.loops]

    def streams(self) -> dict[str, Stream]:
        # Fixed points read nodes that come behind them; their columns are those of the loop's variables.
        schemas = {
            (one["loop"], one["index"]): _row(one["columns"])
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
                self.nodes.append(self._node(one, [self._input(at, number) for at in one["inputs"]]))
        for loop, (variables, fixpoints), one in zip(self.loops, self.parts, self.written["loops"], strict=True):
            places = range(len(one["bodies"]))
            loop.variables = tuple(variables[at] for at in places)
            loop.bodies = tuple(self.nodes[at] for at in one["bodies"])
            loop.fixpoints = tuple(fixpoints[at] for at in places)
            for variable, body in zip(loop.variables, loop.bodies, strict=True):
                if list(variable.schema.items()) != list(body.schema.items()):
                    raise ValueError(f"a relation of the loop '{loop.name}' and its query have other columns")
        return {name: Stream(self.nodes[at]) for name, at in self.written["outputs"].items()}

    def _input(self, at: int, number: int) -> plan.Node:
        if not 0 <= at < number:
            raise ValueError(f"node {number} reads node {at}, which does not come before it")
        return self.nodes[at]

    def _node(self, one: Mapping[str, Any], inputs: list[plan.Node]) -> plan.Node:
        row = inputs[0].schema if inputs else {}
        match one["op"]:
            case "source":
                return plan.Source(_row(one["columns"]), one["name"], one["insert_only"])
            case "constant":
                return plan.Constant(_row(one["columns"]), tuple(tuple(map(_constant, each)) for each in one["rows"]))
            case "lifetime":
                return plan.Lifetime(row, inputs[0], one["duration"], one["every"])
            case "where":
                return plan.Where(row, inputs[0], read_condition(one["condition"], row))
            case "project":
                values = tuple((name, _operand(value, row)) for name, value in one["values"])
                return plan.Project(_row(one["columns"]), inputs[0], values)
            case "join":
                return _join(one, *inputs)
            case "union":
                if any(list(part.schema.items()) != list(row.items()) for part in inputs):
                    raise ValueError("the streams of a union have other columns")
                return plan.Union(row, tuple(inputs))
            case "distinct":
                return plan.Distinct(row, inputs[0])
            case "aggregate":
                items = tuple(plan.Item(*item) for item in one["items"])
                made = {name: row[name] for name in one["by"]} | {item.name: _item_kind(item, row) for item in items}
                return plan.Aggregate(made, inputs[0], tuple(one["by"]), items)
            case "difference":
                return plan.Difference(row, inputs[0], inputs[1], _pairs(one["on"], row, inputs[1].schema))
            case "recognize":
                return recognized(inputs[0], compile_query(one["text"], language=one["language"]), one["options"])
        raise ValueError(f"there is no operator '{one['op']}'")


def _row(written: Mapping[str, str]) -> dict[str, pa.DataType]:
    return {name: _kind(text) for name, text in written.items()}


def _constant(written: Any) -> Any:
    match written:
        case {"float": text}:
            return float(text)
        case {"time": text}:
            return dt.datetime.fromisoformat(text) if "T" in text else dt.date.fromisoformat(text)
    return written


def _operand(written: Any, row: Row) -> p.Operand:
    return p.Constant(_constant(written["constant"])) if isinstance(written, dict) else read_value(written, row)


def _pairs(written: Iterable[Iterable[str]], left: Row, right: Row) -> tuple[tuple[str, str], ...]:
    pairs = tuple((mine, its) for mine, its in written)
    for mine, its in pairs:
        if left[mine] != right[its]:
            raise ValueError(f"the keys '{mine}' and '{its}' have other types")
    return pairs


def _join(one: Mapping[str, Any], left: plan.Node, right: plan.Node) -> plan.Join:
    on = _pairs(one["on"], left.schema, right.schema)
    names = tuple((name, called) for name, called in one["names"])
    row = {**left.schema, **{called: right.schema[name] for name, called in names}}
    if len(row) < len(left.schema) + len(names):
        raise ValueError("two columns of a join have one name")
    where = None if one["where"] is None else read_condition(one["where"], row)
    return plan.Join(row, left, right, on, names, where)


def _item_kind(item: plan.Item, row: Row) -> pa.DataType:
    if item.column is None:
        return pa.int64()
    kind = row[item.column]
    if item.function == "avg":
        return pa.float64()
    if item.function not in ("sum", "min", "max") or kind_of(kind) == "string":
        raise ValueError(f"{item.function}({item.column}) is no aggregate of {kind}")
    return kind
