"""Aggregate, or group-and-apply: speculative, so that results are revised when their group changes (FFP paper, sections 5 and 6)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.dataflow.node import Groups, Node, Row, S, Unary, column_of
from stretto.dataflow.operators import running as r
from stretto.dataflow.operators.operator import Operator, places
from stretto.dataflow.operators.reduce import Reduce
from stretto.dataflow.run.rows import LEVEL, PAYLOAD, VE, VS, WEIGHT, columns
from stretto.dataflow.run.values import Strings
from stretto.errors import OptionError, suggestion
from stretto.query.typing import kind_of

#: What an aggregate may compute, and of which kinds of columns.
_FUNCTIONS = {
    "count": (),
    "sum": ("int", "float"),
    "avg": ("int", "float"),
    "min": ("int", "float", "time", "bool"),
    "max": ("int", "float", "time", "bool"),
}

_WHOLE = {"count": r.COUNT, "sum": r.SUM, "avg": r.AVG, "min": r.MIN, "max": r.MAX}
_REAL = {"sum": r.SUM_REAL, "avg": r.AVG_REAL, "min": r.MIN_REAL, "max": r.MAX_REAL}

_ITEM = re.compile(r"\s*(\w+)\s*\(\s*(\*|[^()]*?)\s*\)\s*")


def aggregate(stream: S, by: str | Sequence[str] = (), /, **items: str) -> S:
    """Group rows, and compute aggregates: a row for each group that is not empty.

    Results are speculative: they are revised whenever a group changes.

    Parameters
    ----------
    by
        The columns of the groups; none: all rows are one group.
    items
        Names with ``count()``, ``sum(column)``, ``avg(column)``, ``min(column)`` or ``max(column)``.

    Examples
    --------
    >>> from stretto.dataflow import stream
    >>> stream("roads", {"src": str, "cost": int}).aggregate("src", least="min(cost)", roads="count()")
    Stream(src: string, least: int64, roads: int64)
    """
    row = stream.node.schema
    groups = tuple(column_of(row, name) for name in ([by] if isinstance(by, str) else by))
    chosen = tuple(_item(name, text, row) for name, text in items.items())
    if not chosen:
        raise OptionError("aggregate() needs an aggregate: total='sum(cost)'; for groups alone: project().distinct()")
    for item in chosen:
        if item.name in groups:
            raise OptionError(f"'{item.name}' is a column of the groups; give the aggregate another name")
    return stream.of(_aggregated(stream.node, groups, chosen))


def _item(name: str, text: str, row: Row) -> Item:
    match = _ITEM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise OptionError(f"'{name}' is {text!r}: write {name}='sum(column)' or {name}='count()'")
    function, column = match[1].lower(), match[2]
    if function not in _FUNCTIONS:
        hint = suggestion(function, _FUNCTIONS, kind="function")
        raise OptionError(f"'{name}' uses '{match[1]}', which is no aggregate; {hint}")
    if function == "count":
        if column not in ("", "*"):
            raise OptionError(f"'{name}': count() counts rows, and columns are never NULL: leave out '{column}'")
        return Item(name, function)
    if column in ("", "*"):
        raise OptionError(f"'{name}': {function}() needs a column: {name}='{function}(cost)'")
    kind = row[column_of(row, column)]
    if kind_of(kind) not in _FUNCTIONS[function]:
        raise OptionError(f"'{name}': {function}({column}) is not defined, as {column} is {kind}")
    return Item(name, function, column)


@dataclass(frozen=True)
class Item:
    """An aggregate of a group: ``function(column)`` under a name; ``count`` has no column."""

    name: str
    function: str
    column: str | None = None

    def __str__(self) -> str:
        return f"{self.name} := {self.function}({self.column or '*'})"

    def kind(self, row: Row) -> pa.DataType:
        """The type of its values, over a row."""
        if self.column is None:
            return pa.int64()
        return pa.float64() if self.function == "avg" else row[self.column]


def _aggregated(node: Node, by: tuple[str, ...], items: tuple[Item, ...]) -> Aggregate:
    row = {name: node.schema[name] for name in by} | {item.name: item.kind(node.schema) for item in items}
    return Aggregate(row, node, by, items)


@dataclass(frozen=True, eq=False)
class Aggregate(Unary):
    """Group-and-apply: for each group that is not empty, its columns and its aggregates."""

    by: tuple[str, ...]
    items: tuple[Item, ...]

    by_level = True
    ending = "only better values go around"

    @property
    def label(self) -> str:
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"Aggregate{by}: {', '.join(map(str, self.items))}"

    @property
    def takes_back(self) -> bool:
        return True

    def origins(self, column: str) -> list[tuple[Node, str]]:
        return [(self.input, column)] if column in self.by else []

    def copies(self, column: str) -> bool:
        return column in self.by

    @property
    def chosen(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)

    @property
    def decides(self) -> list[tuple[Node, str]]:
        return [(self.input, name) for name in self.by]

    def problem(self, inside: set[int]) -> str | None:
        wrong = [item for item in self.items if item.function not in ("min", "max")]
        if not wrong:
            return None
        return f"{wrong[0].function} is not monotone, so the loop has no least fixed point; aggregate behind the loop"

    def operator(self, strings: Strings) -> Operator:
        return Aggregator(self.label, self.input.schema, self.by, self.items)

    def written(self) -> dict[str, Any]:
        return {"by": list(self.by), "items": [[item.name, item.function, item.column] for item in self.items]}

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Node]) -> Aggregate:
        items = tuple(Item(*item) for item in written["items"])
        row = inputs[0].schema
        for item in items:
            if item.column is not None and kind_of(row[item.column]) not in _FUNCTIONS[item.function]:
                raise ValueError(f"{item.function}({item.column}) is no aggregate of {row[item.column]}")
        return _aggregated(inputs[0], tuple(written["by"]), items)

    def keyed(self, groups: Groups) -> Node:
        by = {name: self.schema[name] for name in self.by}
        items = {name: self.schema[name] for name in self.chosen}
        made = groups.made(self.input)
        return Aggregate({**by, **groups.keys, **items}, made, (*self.by, *groups.keys), self.items)


class Aggregator(Reduce):
    """Groups with their aggregates.

    Parameters
    ----------
    label
        What errors call it.
    schema
        The columns that come in.
    by, items
        The columns of the groups, and what is computed of each.
    """

    def __init__(self, label: str, schema: Row, by: Sequence[str], items: Sequence[Item]) -> None:
        used = [item.column for item in items if item.column is not None]
        about = np.array([VS, VE, WEIGHT, LEVEL], np.int64)
        self._chosen = np.concatenate([about, places(schema, [*by, *used], PAYLOAD)])
        operations: list[int] = []
        of: list[int] = []
        for item in items:
            real = item.column is not None and kind_of(schema[item.column]) == "float"
            operations.append((_REAL if real else _WHOLE)[item.function])
            of.append(0 if item.column is None else PAYLOAD + len(by) + sum(at > 0 for at in of))
        super().__init__(label, len(by), np.array(operations, np.int64), np.array(of, np.int64))

    def receive(self, port: int, rows: I64) -> I64:
        return super().receive(port, columns(rows, self._chosen))
