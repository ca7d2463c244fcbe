"""Project: columns computed from each row by itself (FFP paper, section 2)."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stretto.dataflow.json_values import columns, read_columns, read_operand, written_operand
from stretto.dataflow.node import Groups, Node, Row, S, column_of, payload_type
from stretto.dataflow.run.code import Columns, Step, given_up_if
from stretto.engines.shared.scalar_code import IS_NULL, Code, all_of, call, fault
from stretto.engines.shared.scalar_code import name as local_name
from stretto.errors import OptionError
from stretto.languages.relational import read_value
from stretto.query import predicate as p
from stretto.query.typing import kind_of, type_of_operand


def project(stream: S, /, *kept: str, **computed: Any) -> S:
    """Compute columns from each row by itself.

    Parameters
    ----------
    kept
        Columns that stay as they are.
    computed
        Names of columns with their values: text over the columns, or a constant that is no text.

    Examples
    --------
    >>> from stretto.dataflow import stream
    >>> stream("roads", {"src": str, "dst": str, "cost": int}).project("dst", far="cost * 2", hops=1)
    Stream(dst: string, far: int64, hops: int64)
    """
    row = stream.node.schema
    values: dict[str, p.Operand] = {name: p.Attribute(column_of(row, name)) for name in kept}
    for name, value in computed.items():
        values[name] = read_value(value, row) if isinstance(value, str) else _constant(name, value)
    if not values:
        raise OptionError("project() needs a column: name one, or compute one (far='cost * 2')")
    return stream.of(_projected(stream.node, values))


def rename(stream: S, /, **names: str) -> S:
    """Give columns other names: ``old="new"``.

    Examples
    --------
    >>> from stretto.dataflow import stream
    >>> stream("links", {"src": str, "dst": str}).rename(src="from_")
    Stream(from_: string, dst: string)
    """
    row = stream.node.schema
    for name in names:
        column_of(row, name)
    made = [names.get(name, name) for name in row]
    if len(set(made)) < len(made):
        raise OptionError(f"two columns would be named '{max(made, key=made.count)}'")
    return stream.of(_projected(stream.node, {names.get(name, name): p.Attribute(name) for name in row}))


def in_order(node: Node, row: Row) -> Node:
    """A stream with its columns in the order of a row that has the same."""
    if list(node.schema) == list(row):
        return node
    return Project(row, node, tuple((name, p.Attribute(name)) for name in row))


def _projected(node: Node, values: Mapping[str, p.Operand]) -> Project:
    row = {name: _type_of(name, value, node.schema) for name, value in values.items()}
    return Project(row, node, tuple(values.items()))


def _constant(name: str, value: Any) -> p.Constant:
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise OptionError(f"'{name}' is {value}, which does not fit into 64 bits")
    if isinstance(value, bool | int | float):
        return p.Constant(value)
    raise OptionError(f"'{name}' is computed by text over the columns or a number, not by {type(value).__name__}")


def _type_of(name: str, value: p.Operand, row: Row) -> pa.DataType:
    kind = type_of_operand(value, row)
    if isinstance(value, p.Constant) and kind_of(kind) == "time":
        raise OptionError(f"'{name}' is a constant time: take it from a column")
    return payload_type(kind) or kind


@dataclass(frozen=True, eq=False)
class Project(Step):
    """Columns computed from each row by itself."""

    values: tuple[tuple[str, p.Operand], ...]

    @property
    def label(self) -> str:
        shown = [name if str(value) == name else f"{name} := {value}" for name, value in self.values]
        return f"Project {', '.join(shown)}"

    def origins(self, column: str) -> list[tuple[Node, str]]:
        return [(self.input, attribute) for attribute in p.attributes(dict(self.values)[column])]

    def copies(self, column: str) -> bool:
        return isinstance(dict(self.values)[column], p.Attribute)

    @property
    def creates(self) -> str | None:
        for name, value in self.values:
            if not isinstance(value, p.Attribute | p.Constant):
                return f"'{name}' is computed in it ({value}), so that there may be ever new rows"
        return None

    def code(self, columns: Columns, number: int) -> list[ast.stmt]:
        body: list[ast.stmt] = []
        made: dict[str, Code] = {}
        for at, (column, value) in enumerate(self.values):
            kind = kind_of(self.schema[column])
            code = columns.operand(value)
            if code.known:
                is_null = ast.Assign([fault(ast.Store())], ast.Constant(IS_NULL))
                body.append(given_up_if(ast.UnaryOp(ast.Not(), all_of(code.known)), is_null))
            if isinstance(value, p.Attribute):
                made[column] = code
                continue
            if kind == "float" and code.kind != "float":
                code = Code(call("float", code.value), (), "float")
            local = f"v{number}_{at}"
            body.append(ast.Assign([ast.Name(local, ast.Store())], code.value))
            made[column] = Code(local_name(local), (), kind, code.per_second)
        columns.known = made
        return body

    def written(self) -> dict[str, Any]:
        values = [[name, written_operand(value, self, self.input.schema)] for name, value in self.values]
        return {"values": values, "columns": columns(self.schema)}

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Node]) -> Project:
        row = inputs[0].schema
        values = tuple((name, read_operand(value, row)) for name, value in written["values"])
        return cls(read_columns(written["columns"]), inputs[0], values)

    def keyed(self, groups: Groups) -> Node:
        values = (*self.values, *((name, p.Attribute(name)) for name in groups.keys))
        return Project({**self.schema, **groups.keys}, groups.made(self.input), values)
