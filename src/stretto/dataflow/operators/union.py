"""Union: all rows of all inputs (FFP paper, section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stretto.dataflow.node import Groups, Node, Relation, S, check_same
from stretto.dataflow.operators.operator import Operator, Pass
from stretto.dataflow.operators.project import in_order
from stretto.dataflow.run.rows import PAYLOAD
from stretto.dataflow.run.values import Strings
from stretto.errors import OptionError


def union(stream: S, *others: Relation) -> S:
    """Put streams together: all rows of all, each as often as it occurs; columns are matched by name.

    Raises
    ------
    OptionError
        The columns are not the same.
    """
    parts: list[Node] = []
    for one in (stream, *others):
        if not isinstance(one, Relation):
            raise OptionError(f"union() takes streams, not {type(one).__name__}")
        check_same(one.schema, stream.schema, "the streams of a union")
        ordered = in_order(one.node, stream.node.schema)
        parts += ordered.parts if isinstance(ordered, Union) else (ordered,)
    return stream.of(Union(stream.node.schema, tuple(parts)))


@dataclass(frozen=True, eq=False)
class Union(Node):
    """All rows of all inputs, each as often as it occurs; its punctuation is the least of theirs."""

    parts: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def origins(self, column: str) -> list[tuple[Node, str]]:
        return [(part, column) for part in self.parts]

    def operator(self, strings: Strings) -> Operator:
        return Pass(self.label, len(self.parts), PAYLOAD + len(self.schema))

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Node]) -> Union:
        row = inputs[0].schema
        if any(list(part.schema.items()) != list(row.items()) for part in inputs):
            raise ValueError("the streams of a union have other columns")
        return cls(row, tuple(inputs))

    def keyed(self, groups: Groups) -> Node:
        parts = tuple(groups.ordered(groups.with_key(part), part) for part in self.parts)
        return Union(parts[0].schema, parts)
